//! The thread that writes the log of one partition: everything sealed while it wrote goes into its next commit.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::hub::inbox::Inbox;
use crate::hub::meter::Meter;
use crate::ids::{Epoch, PartitionId, Position};
use crate::partition::SealedFrame;
use crate::payload::Payload;
use crate::store::{FrameBatch, Store, StoreError};

/// Bytes that may wait for the log; beyond it the partition waits.
const WAITING_BYTES_MAX: usize = 16 << 20;

#[derive(Default)]
struct Queue {
    frames: FrameBatch,
    blobs: Vec<(String, Payload)>,
    blob_bytes: usize,
    cut_before: Option<Position>,
    is_closed: bool,
    is_halted: bool,
}

impl Queue {
    fn has_work(&self) -> bool {
        !self.frames.is_empty() || self.cut_before.is_some()
    }
}

/// Frames and blobs that wait to be written to the log of a partition.
#[derive(Default)]
pub(super) struct Log {
    queue: Mutex<Queue>,
    work: Condvar,
    room: Condvar,
}

impl Queue {
    /// Whether a frame has to wait for room.
    fn is_full(&self) -> bool {
        self.frames.bytes() + self.blob_bytes > WAITING_BYTES_MAX && !self.is_closed && !self.is_halted
    }
}

impl Log {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a frame and its blobs in; waits for room.
    pub(super) fn push(&self, sealed: SealedFrame<'_>) {
        let mut queue = self.lock();
        queue = self.room.wait_while(queue, |queue| queue.is_full()).unwrap_or_else(PoisonError::into_inner);
        queue.blob_bytes += sealed.blobs.iter().map(|(_, payload)| payload.len()).sum::<usize>();
        queue.blobs.extend(sealed.blobs);
        queue.frames.push(sealed.frame);
        drop(queue);
        self.work.notify_one();
    }

    /// Requests that the log be cut.
    pub(super) fn cut(&self, before: Position) {
        self.lock().cut_before = Some(before);
        self.work.notify_one();
    }

    /// Writes the rest of the queue, then ends the thread.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.work.notify_one();
        self.room.notify_one();
    }

    /// Drops the queue, as a crash would.
    pub(super) fn halt(&self) {
        self.lock().is_halted = true;
        self.work.notify_one();
        self.room.notify_one();
    }

    fn next(&self, into: &mut Queue) -> bool {
        let queue = self.lock();
        let mut queue = self
            .work
            .wait_while(queue, |queue| !queue.has_work() && !queue.is_closed && !queue.is_halted)
            .unwrap_or_else(PoisonError::into_inner);
        if queue.is_halted || !queue.has_work() {
            return false;
        }
        std::mem::swap(&mut queue.frames, &mut into.frames);
        std::mem::swap(&mut queue.blobs, &mut into.blobs);
        queue.blob_bytes = 0;
        into.cut_before = queue.cut_before.take();
        drop(queue);
        self.room.notify_one();
        true
    }
}

/// Where the thread writes to.
pub(super) struct Target {
    pub(super) store: Arc<dyn Store>,
    pub(super) partition: PartitionId,
    pub(super) epoch: Epoch,
    pub(super) end: Position,
}

/// Writes until the log is closed, and reports to the partition how far it is.
///
/// # Errors
/// The first error of the store; nothing is written afterwards.
pub(super) fn write(log: &Log, mut target: Target, inbox: &Inbox, meter: &Meter) -> Result<(), StoreError> {
    let mut batch = Queue::default();
    while log.next(&mut batch) {
        commit(&mut target, &mut batch, inbox, meter)?;
    }
    Ok(())
}

fn commit(target: &mut Target, batch: &mut Queue, inbox: &Inbox, meter: &Meter) -> Result<(), StoreError> {
    for (name, payload) in batch.blobs.drain(..) {
        target.store.put_blob(&name, payload.as_bytes())?;
    }
    if !batch.frames.is_empty() {
        let begin = std::time::Instant::now();
        target.store.append(target.partition, target.epoch, target.end, &batch.frames)?;
        target.end.0 += batch.frames.len() as u64;
        meter.committed(batch.frames.len(), batch.frames.bytes(), begin.elapsed());
        inbox.confirm(target.end);
        batch.frames.clear();
    }
    match batch.cut_before.take() {
        Some(before) => target.store.truncate(target.partition, target.epoch, before),
        None => Ok(()),
    }
}
