//! The disk that is simulated: what is on it survives every crash, and nothing else does.
//!
//! It keeps all that was ever appended, also what was cut off, so that a partition recovered from a snapshot can be
//! held against one that is built from the whole log.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::codec::{BlobRef, CodecError, Fetch};
use crate::ids::{Epoch, PartitionId, Position};
use crate::partition::spill::blob_name;
use crate::payload::Payload;
use crate::store::{Batching, FrameBatch, HubShape, Location, Store, StoreError, Visit};

/// Logs and blobs.
pub(super) struct Disk {
    batching: Batching,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    logs: Vec<Log>,
    blobs: BTreeMap<String, Vec<u8>>,
    refuses_reads: bool,
}

#[derive(Default)]
struct Log {
    /// Frames before this were cut off.
    begins: u64,
    frames: Vec<Vec<u8>>,
}

impl Disk {
    pub(super) fn new(partitions: u16, batching: Batching) -> Self {
        let logs = (0..partitions).map(|_| Log::default()).collect();
        Self { batching, state: Mutex::new(State { logs, ..State::default() }) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("one thread")
    }

    /// Puts a frame at the end of a log.
    pub(super) fn write(&self, partition: PartitionId, frame: Vec<u8>) {
        self.state().logs[usize::from(partition.0)].frames.push(frame);
    }

    /// Where a log ends.
    pub(super) fn end(&self, partition: PartitionId) -> Position {
        Position(self.state().logs[usize::from(partition.0)].frames.len() as u64)
    }

    /// Whether reads of blobs fail from now on.
    pub(super) fn refuse_reads(&self, refuses: bool) {
        self.state().refuses_reads = refuses;
    }

    pub(super) fn cut(&self, partition: PartitionId, before: Position) {
        let log = &mut self.state().logs[usize::from(partition.0)];
        assert!(before.0 <= log.frames.len() as u64, "the log of {partition} was cut behind its end");
        log.begins = log.begins.max(before.0);
    }
}

fn refused() -> StoreError {
    let place = Location::File { path: "disk".into(), offset: None };
    StoreError::Io { action: "read", place, reason: "it was made to fail".to_owned(), is_full: false }
}

impl Store for Disk {
    fn describe(&self) -> String {
        "a simulated disk".to_owned()
    }

    fn batching(&self) -> Batching {
        self.batching
    }

    fn open_or_create(&self, wanted: HubShape) -> Result<HubShape, StoreError> {
        Ok(wanted)
    }

    fn acquire(&self, _: PartitionId, _: &str) -> Result<Epoch, StoreError> {
        Ok(Epoch(1))
    }

    fn release(&self, _: PartitionId, _: Epoch) -> Result<(), StoreError> {
        Ok(())
    }

    fn append(&self, partition: PartitionId, _: Epoch, _: Position, batch: &FrameBatch) -> Result<(), StoreError> {
        batch.frames().for_each(|frame| self.write(partition, frame.to_vec()));
        Ok(())
    }

    fn read(&self, partition: PartitionId, from: Position, visit: &mut Visit<'_>) -> Result<Position, StoreError> {
        let frames = {
            let state = self.state();
            let log = &state.logs[usize::from(partition.0)];
            if from.0 < log.begins {
                return Err(StoreError::Missing { partition, begins: log.begins, wanted: from.0 });
            }
            log.frames.clone()
        };
        for (position, frame) in (0..).zip(&frames).skip(from.0 as usize) {
            visit(Position(position), frame)?;
        }
        Ok(Position(frames.len() as u64))
    }

    fn truncate(&self, partition: PartitionId, _: Epoch, before: Position) -> Result<(), StoreError> {
        self.cut(partition, before);
        Ok(())
    }

    fn put_blob(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        self.state().blobs.insert(name.to_owned(), bytes.to_vec());
        Ok(())
    }

    fn get_blob(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let state = self.state();
        if state.refuses_reads { Err(refused()) } else { Ok(state.blobs.get(name).cloned()) }
    }

    fn delete_blob(&self, name: &str) -> Result<(), StoreError> {
        self.state().blobs.remove(name);
        Ok(())
    }

    fn list_blobs(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        Ok(self.state().blobs.keys().filter(|name| name.starts_with(prefix)).cloned().collect())
    }
}

/// The disk as it would be had no snapshot ever been taken. It has no blobs.
pub(super) struct Archive(pub(super) Arc<Disk>);

impl Store for Archive {
    fn describe(&self) -> String {
        self.0.describe()
    }

    fn batching(&self) -> Batching {
        self.0.batching
    }

    fn open_or_create(&self, wanted: HubShape) -> Result<HubShape, StoreError> {
        self.0.open_or_create(wanted)
    }

    fn acquire(&self, partition: PartitionId, owner: &str) -> Result<Epoch, StoreError> {
        self.0.acquire(partition, owner)
    }

    fn release(&self, partition: PartitionId, epoch: Epoch) -> Result<(), StoreError> {
        self.0.release(partition, epoch)
    }

    fn append(&self, _: PartitionId, _: Epoch, _: Position, _: &FrameBatch) -> Result<(), StoreError> {
        Err(refused())
    }

    fn read(&self, partition: PartitionId, from: Position, visit: &mut Visit<'_>) -> Result<Position, StoreError> {
        let frames = self.0.state().logs[usize::from(partition.0)].frames.clone();
        for (position, frame) in (0..).zip(&frames).skip(from.0 as usize) {
            visit(Position(position), frame)?;
        }
        Ok(Position(frames.len() as u64))
    }

    fn truncate(&self, _: PartitionId, _: Epoch, _: Position) -> Result<(), StoreError> {
        Err(refused())
    }

    fn put_blob(&self, _: &str, _: &[u8]) -> Result<(), StoreError> {
        Err(refused())
    }

    fn get_blob(&self, _: &str) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(None)
    }

    fn delete_blob(&self, _: &str) -> Result<(), StoreError> {
        Err(refused())
    }

    fn list_blobs(&self, _: &str) -> Result<Vec<String>, StoreError> {
        Ok(Vec::new())
    }
}

/// Payloads as the disk has them, for who reads frames.
pub(super) struct Payloads<'a>(pub(super) &'a Disk);

impl Fetch for Payloads<'_> {
    fn fetch(&mut self, blob: BlobRef) -> Result<Payload, CodecError> {
        let bytes = self.0.state().blobs.get(&blob_name(blob)).cloned();
        let bytes = bytes.filter(|bytes| bytes.len() as u64 == blob.bytes);
        let missing = || CodecError { at: 0, what: format!("{} is not on the disk", blob_name(blob)) };
        bytes.map(Payload::from_bytes).ok_or_else(missing)
    }
}
