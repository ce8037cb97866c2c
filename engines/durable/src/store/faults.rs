//! A store around another that fails on request: for tests that let every write fail in turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Batching, FrameBatch, HubShape, Location, Store, StoreError, Visit};
use crate::ids::{Epoch, PartitionId, Position};

/// Effect of a write that fails. Its caller gets the same error in each case.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// Nothing is written.
    Nothing,
    /// Of an append, the first half of the frames is written; of anything else, nothing.
    Half,
    /// All is written, and only the response is lost.
    All,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Nothing, Self::Half, Self::All];
}

/// A store whose write number `at` fails, counted from 0 over all partitions, and every write after it.
#[derive(Debug)]
pub struct FaultyStore<S> {
    inner: Arc<S>,
    at: AtomicU64,
    fault: Fault,
    writes: AtomicU64,
    /// Whether the first truncation is the write that fails.
    is_never_truncated: bool,
}

/// Decision about a write.
enum Verdict {
    Through,
    Break,
    Refuse,
}

impl<S: Store> FaultyStore<S> {
    /// Lets the write number `at` fail in the way of `fault`; [`u64::MAX`] lets none fail.
    #[must_use]
    pub fn new(inner: Arc<S>, at: u64, fault: Fault) -> Self {
        Self { inner, at: AtomicU64::new(at), fault, writes: AtomicU64::new(0), is_never_truncated: false }
    }

    /// Fails the first truncation and every write after it, as if the process had ended between a snapshot and the
    /// truncation that follows.
    #[must_use]
    pub fn before_truncation(inner: Arc<S>) -> Self {
        Self { is_never_truncated: true, ..Self::new(inner, u64::MAX, Fault::Nothing) }
    }

    /// How many writes there were so far, those that failed included.
    #[must_use]
    pub fn writes(&self) -> u64 {
        self.writes.load(Ordering::Relaxed)
    }

    fn at(&self) -> u64 {
        self.at.load(Ordering::Relaxed)
    }

    fn verdict(&self) -> Verdict {
        match self.writes.fetch_add(1, Ordering::Relaxed).cmp(&self.at()) {
            std::cmp::Ordering::Less => Verdict::Through,
            std::cmp::Ordering::Equal => Verdict::Break,
            std::cmp::Ordering::Greater => Verdict::Refuse,
        }
    }

    fn error(&self, action: &'static str, partition: PartitionId, position: u64) -> StoreError {
        let place = Location::Frame { partition, position };
        StoreError::Io { action, place, reason: format!("write {} was made to fail", self.at()), is_full: false }
    }

    /// Does a write that is done whole or not at all.
    fn whole<T>(&self, error: StoreError, write: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
        match self.verdict() {
            Verdict::Through => write(),
            Verdict::Break if self.fault == Fault::All => write().and(Err(error)),
            Verdict::Break | Verdict::Refuse => Err(error),
        }
    }

    fn blob_error(&self, action: &'static str) -> StoreError {
        self.error(action, PartitionId(0), 0)
    }
}

impl<S: Store> Store for FaultyStore<S> {
    fn describe(&self) -> String {
        format!("{}, write {} made to fail", self.inner.describe(), self.at())
    }

    fn batching(&self) -> Batching {
        self.inner.batching()
    }

    fn open_or_create(&self, wanted: HubShape) -> Result<HubShape, StoreError> {
        self.inner.open_or_create(wanted)
    }

    fn acquire(&self, partition: PartitionId, owner: &str) -> Result<Epoch, StoreError> {
        self.whole(self.error("take", partition, 0), || self.inner.acquire(partition, owner))
    }

    fn release(&self, partition: PartitionId, epoch: Epoch) -> Result<(), StoreError> {
        self.whole(self.error("release", partition, 0), || self.inner.release(partition, epoch))
    }

    fn append(&self, partition: PartitionId, epoch: Epoch, at: Position, batch: &FrameBatch) -> Result<(), StoreError> {
        let error = self.error("write", partition, at.0);
        let written = match (self.verdict(), self.fault) {
            (Verdict::Through, _) => return self.inner.append(partition, epoch, at, batch),
            (Verdict::Break, Fault::All) => self.inner.append(partition, epoch, at, batch),
            (Verdict::Break, Fault::Half) if batch.len() > 1 => {
                let mut half = FrameBatch::default();
                batch.frames().take(batch.len() / 2).for_each(|frame| half.push(frame));
                self.inner.append(partition, epoch, at, &half)
            }
            _ => Ok(()),
        };
        written.and(Err(error))
    }

    fn read(&self, partition: PartitionId, from: Position, visit: &mut Visit<'_>) -> Result<Position, StoreError> {
        self.inner.read(partition, from, visit)
    }

    fn truncate(&self, partition: PartitionId, epoch: Epoch, before: Position) -> Result<(), StoreError> {
        if self.is_never_truncated {
            self.at.fetch_min(self.writes(), Ordering::Relaxed);
        }
        self.whole(self.error("truncate", partition, before.0), || self.inner.truncate(partition, epoch, before))
    }

    fn put_blob(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        self.whole(self.blob_error("write a blob of"), || self.inner.put_blob(name, bytes))
    }

    fn get_blob(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.inner.get_blob(name)
    }

    fn delete_blob(&self, name: &str) -> Result<(), StoreError> {
        self.whole(self.blob_error("delete a blob of"), || self.inner.delete_blob(name))
    }

    fn list_blobs(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        self.inner.list_blobs(prefix)
    }
}
