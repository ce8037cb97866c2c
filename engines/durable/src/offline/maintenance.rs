//! Changes to a hub that does not run.
//!
//! All partitions are taken, as a hub takes them, so that no hub runs meanwhile. Changes are appended to the logs and
//! are durable when [`HubMaintenance::apply`] returns. What they send to instances whose code would have to run (a
//! parent learns that its sub-orchestration was terminated, a lock is freed) waits for the next hub with the program.
//! Terminating and purging need no code, so sub-orchestrations are terminated and purged with those above them at once.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::error::Error;
use crate::hub::agreement;
use crate::ids::{Epoch, PartitionId, Position};
use crate::message::MessageKind;
use crate::node::exclusion::{self, SilentNodes};
use crate::partition::{Change, Effect, Partition};
use crate::store::{FrameBatch, Store};

/// Frames and bytes of one append.
const FRAMES_PER_APPEND_MAX: usize = 1024;
const BYTES_PER_APPEND_MAX: usize = 4 << 20;

/// A hub that is changed while it stands still. Dropping it gives the partitions back.
pub struct HubMaintenance {
    store: Arc<dyn Store>,
    parts: Vec<Part>,
}

struct Part {
    id: PartitionId,
    epoch: Epoch,
    partition: Partition,
    /// Sealed, and not in the log yet; the first is to be at `at`.
    batch: FrameBatch,
    at: Position,
}

/// Results of changes.
#[derive(Debug, Default)]
pub struct ChangeResults {
    /// For each requested change, in order, whether it was made.
    pub each: Vec<Result<(), Error>>,
    /// How many instances changed, sub-orchestrations included.
    pub instances: u64,
}

impl HubMaintenance {
    /// Takes the hub of a store, which must be there and not be open.
    ///
    /// # Errors
    /// [`Error::Store`] if it is in use, damaged or foreign.
    pub fn open(store: Arc<dyn Store>) -> Result<Self, Error> {
        let shape = super::shape(&*store)?;
        let silent = SilentNodes::nodes(&*store)?;
        let owner = exclusion::name();
        let mut hub = Self { store, parts: Vec::new() };
        for id in (0..shape.partitions).map(PartitionId) {
            let epoch = hub.store.acquire(id, &owner)?;
            match super::recovered(&hub.store, id, shape) {
                Ok(partition) => hub.parts.push(Part::new(id, epoch, partition)),
                Err(error) => {
                    // The error that led here is the one to report; what was taken before is given back by `drop`.
                    let _ = hub.store.release(id, epoch);
                    return Err(error.into());
                }
            }
        }
        silent.are_silent(&*hub.store)?;
        let progress: Vec<_> = hub.parts.iter().map(|part| part.partition.lane_progress()).collect();
        agreement::check(&progress)?;
        Ok(hub)
    }

    /// Makes changes, one after another; a change that cannot be made leaves the others. All are durable afterwards.
    ///
    /// # Errors
    /// [`Error::Store`] if the store failed: some changes may then be durable, and no more can be made.
    pub fn apply(&mut self, changes: impl IntoIterator<Item = Change>) -> Result<ChangeResults, Error> {
        let mut applied = ChangeResults::default();
        for change in changes {
            let made = self.make(change)?;
            applied.each.push(made.map(|count| applied.instances += count));
        }
        let mut following: VecDeque<Change> = self.flush()?.into();
        while let Some(change) = following.pop_front() {
            // One that has ended or gone by itself meanwhile is no error of the change that led to it.
            applied.instances += self.make(change)?.unwrap_or(0);
            if following.is_empty() {
                following.extend(self.flush()?);
            }
        }
        Ok(applied)
    }

    /// Makes a change, in as many frames as it needs. The outer error is the store's.
    fn make(&mut self, change: Change) -> Result<Result<u64, Error>, Error> {
        let count = u16::try_from(self.parts.len()).unwrap_or(u16::MAX);
        let at = usize::from(change.id().partition(count).0);
        let mut made = self.make_frame(at, change.clone())?;
        while let Ok(before) = made
            && self.parts[at].partition.is_purging(change.id())
        {
            made = self.make_frame(at, change.clone())?.map(|count| before + count);
        }
        Ok(made)
    }

    fn make_frame(&mut self, at: usize, change: Change) -> Result<Result<u64, Error>, Error> {
        let part = &mut self.parts[at];
        let (made, sealed) = part.partition.maintain(change, crate::hub::now());
        if let Some(sealed) = sealed {
            for (name, payload) in sealed.blobs {
                self.store.put_blob(&name, payload.as_bytes())?;
            }
            part.batch.push(sealed.frame);
        }
        if let Some(fault) = part.partition.fault() {
            return Err(fault.into());
        }
        if part.batch.len() >= FRAMES_PER_APPEND_MAX || part.batch.bytes() >= BYTES_PER_APPEND_MAX {
            part.append(&*self.store)?;
        }
        Ok(made)
    }

    /// Makes all changes durable, and gives those that follow from them.
    fn flush(&mut self) -> Result<Vec<Change>, Error> {
        let mut following = Vec::new();
        for part in &mut self.parts {
            part.append(&*self.store)?;
            let effects = part.partition.effects().drain(..);
            let sent = effects.filter_map(|effect| match effect {
                Effect::Send { messages, .. } => Some(messages),
                _ => None,
            });
            following.extend(sent.flatten().filter_map(|message| match message.kind {
                MessageKind::Terminate { reason } => Some(Change::Terminate { id: message.to, reason }),
                MessageKind::Purge => Some(Change::Purge { id: message.to }),
                _ => None,
            }));
        }
        Ok(following)
    }

    /// Gives the partitions back.
    ///
    /// # Errors
    /// [`Error::Store`] if the store refuses.
    pub fn close(mut self) -> Result<(), Error> {
        self.release()
    }

    fn release(&mut self) -> Result<(), Error> {
        let mut released = Ok(());
        for part in self.parts.drain(..) {
            released = released.and(self.store.release(part.id, part.epoch));
        }
        released.map_err(Error::from)
    }
}

impl Drop for HubMaintenance {
    fn drop(&mut self) {
        // An error has no caller to go to here; `close` reports it.
        let _ = self.release();
    }
}

impl Part {
    fn new(id: PartitionId, epoch: Epoch, partition: Partition) -> Self {
        let at = partition.position();
        Self { id, epoch, partition, batch: FrameBatch::default(), at }
    }

    fn append(&mut self, store: &dyn Store) -> Result<(), Error> {
        if self.batch.is_empty() {
            return Ok(());
        }
        store.append(self.id, self.epoch, self.at, &self.batch)?;
        self.at.0 += self.batch.len() as u64;
        self.batch.clear();
        self.partition.confirm(self.at);
        Ok(())
    }
}
