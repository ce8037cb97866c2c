//! A store in memory: for tests and simulations, which can make it forget data that was not durable yet.
//!
//! Nothing here survives the process. After a [`crash`](MemoryStore::crash) the data is as a disk would have kept it.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::memory_bus::MemoryBus;
use super::names::{check_blob_name, check_node_name};
use super::{
    Batching, Bus, FrameBatch, HubShape, Location, LogPiece, Owner, Scan, SharedStore, Store, StoreError, Visit,
};
use crate::ids::{Epoch, PartitionId, Position};

/// Logs and blobs in memory, which several nodes of one process may share.
#[derive(Debug, Default)]
pub struct MemoryStore {
    state: Mutex<State>,
    bus: MemoryBus,
}

#[derive(Debug, Default)]
struct State {
    shape: Option<HubShape>,
    logs: HashMap<PartitionId, Log>,
    blobs: BTreeMap<String, Vec<u8>>,
    /// Reports of nodes about themselves.
    said: BTreeMap<String, Vec<u8>>,
    /// The last number that it returned.
    number: u64,
}

#[derive(Debug, Default)]
struct Log {
    epoch: u64,
    /// Whether the owner of that epoch holds it still.
    owner: Option<String>,
    begins: u64,
    frames: Vec<Arc<[u8]>>,
}

impl Log {
    fn ends(&self) -> u64 {
        self.begins + self.frames.len() as u64
    }

    fn check(&self, partition: PartitionId, epoch: Epoch) -> Result<(), StoreError> {
        if epoch.0 == self.epoch && self.owner.is_some() {
            return Ok(());
        }
        Err(StoreError::Fenced { partition, ours: epoch.0, theirs: self.epoch })
    }
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Simulates the end of a process: its partitions become free. Frames and blobs stay, for each
    /// call that has put them here has returned.
    pub fn crash(&self) {
        self.state().logs.values_mut().for_each(|log| log.owner = None);
    }

    /// Cuts frames off the end of a log, as a loss of power does to an append that has not returned.
    pub fn tear(&self, partition: PartitionId, from: Position) {
        if let Some(log) = self.state().logs.get_mut(&partition) {
            let kept = from.0.saturating_sub(log.begins);
            log.frames.truncate(usize::try_from(kept).unwrap_or(usize::MAX));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing here panics half-way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for MemoryStore {
    fn describe(&self) -> String {
        "memory".to_owned()
    }

    fn batching(&self) -> Batching {
        Batching::Group
    }

    fn shared(&self) -> Option<&dyn SharedStore> {
        Some(self)
    }

    fn open_or_create(&self, wanted: HubShape) -> Result<HubShape, StoreError> {
        Ok(*self.state().shape.get_or_insert(wanted))
    }

    fn acquire(&self, partition: PartitionId, owner: &str) -> Result<Epoch, StoreError> {
        let mut state = self.state();
        let log = state.logs.entry(partition).or_default();
        log.epoch += 1;
        log.owner = Some(owner.to_owned());
        Ok(Epoch(log.epoch))
    }

    fn release(&self, partition: PartitionId, epoch: Epoch) -> Result<(), StoreError> {
        let mut state = self.state();
        let log = state.logs.entry(partition).or_default();
        log.check(partition, epoch)?;
        log.owner = None;
        Ok(())
    }

    fn append(&self, partition: PartitionId, epoch: Epoch, at: Position, batch: &FrameBatch) -> Result<(), StoreError> {
        let mut state = self.state();
        let log = state.logs.entry(partition).or_default();
        log.check(partition, epoch)?;
        if at.0 != log.ends() {
            return Err(StoreError::Conflict { partition, ends: log.ends(), at: at.0 });
        }
        batch.check(|| Location::Frame { partition, position: at.0 })?;
        log.frames.extend(batch.frames().map(Arc::from));
        Ok(())
    }

    fn read(&self, partition: PartitionId, from: Position, visit: &mut Visit<'_>) -> Result<Position, StoreError> {
        let state = self.state();
        let Some(log) = state.logs.get(&partition) else { return Ok(Position(0)) };
        if from.0 < log.begins {
            return Err(StoreError::Missing { partition, begins: log.begins, wanted: from.0 });
        }
        let (begins, ends, frames) = (log.begins, log.ends(), log.frames.clone());
        // The visitor of a frame may read blobs.
        drop(state);
        for (position, frame) in (begins..).zip(&frames).filter(|(position, _)| *position >= from.0) {
            visit(Position(position), frame)?;
        }
        Ok(Position(ends))
    }

    fn truncate(&self, partition: PartitionId, epoch: Epoch, before: Position) -> Result<(), StoreError> {
        let mut state = self.state();
        let log = state.logs.entry(partition).or_default();
        log.check(partition, epoch)?;
        let before = before.0.clamp(log.begins, log.ends());
        log.frames.drain(..usize::try_from(before - log.begins).unwrap_or(0));
        log.begins = before;
        Ok(())
    }

    fn put_blob(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        check_blob_name(name)?;
        self.state().blobs.insert(name.to_owned(), bytes.to_vec());
        Ok(())
    }

    fn get_blob(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        check_blob_name(name)?;
        Ok(self.state().blobs.get(name).cloned())
    }

    fn delete_blob(&self, name: &str) -> Result<(), StoreError> {
        check_blob_name(name)?;
        self.state().blobs.remove(name);
        Ok(())
    }

    fn list_blobs(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        Ok(self.state().blobs.keys().filter(|name| name.starts_with(prefix)).cloned().collect())
    }
}

impl SharedStore for MemoryStore {
    fn number(&self) -> Result<u64, StoreError> {
        let mut state = self.state();
        state.number += 1;
        Ok(state.number)
    }

    fn say(&self, node: &str, said: &[u8]) -> Result<Vec<(String, Vec<u8>)>, StoreError> {
        check_node_name(node)?;
        let mut state = self.state();
        state.said.insert(node.to_owned(), said.to_vec());
        drop(state);
        self.said()
    }

    fn said(&self) -> Result<Vec<(String, Vec<u8>)>, StoreError> {
        Ok(self.state().said.iter().map(|(node, said)| (node.clone(), said.clone())).collect())
    }

    fn forget(&self, node: &str) -> Result<(), StoreError> {
        check_node_name(node)?;
        self.state().said.remove(node);
        Ok(())
    }

    fn owners(&self) -> Result<Vec<Owner>, StoreError> {
        let state = self.state();
        let partitions = (0..state.shape.map_or(0, |shape| shape.partitions)).map(PartitionId);
        let owner = |partition| {
            let log = state.logs.get(&partition);
            let (epoch, node) = log.map_or((0, None), |log| (log.epoch, log.owner.clone()));
            Owner { partition, epoch: Epoch(epoch), node }
        };
        Ok(partitions.map(owner).collect())
    }

    fn take(&self, partition: PartitionId, seen: Epoch, node: &str) -> Result<Epoch, StoreError> {
        let mut state = self.state();
        let log = state.logs.entry(partition).or_default();
        if log.epoch != seen.0 {
            return Err(StoreError::Fenced { partition, ours: seen.0, theirs: log.epoch });
        }
        log.epoch += 1;
        log.owner = Some(node.to_owned());
        Ok(Epoch(log.epoch))
    }

    fn scan(&self, partition: PartitionId, found: &mut Scan<'_>) -> Result<Position, StoreError> {
        let (begins, frames) = {
            let state = self.state();
            let Some(log) = state.logs.get(&partition) else { return Ok(Position(0)) };
            (log.begins, log.frames.clone())
        };
        let ends = begins + frames.len() as u64;
        for (position, frame) in (begins..).zip(&frames) {
            found(LogPiece::Frame(Position(position), frame))?;
        }
        Ok(Position(ends))
    }

    fn restart(&self, partition: PartitionId, epoch: Epoch, at: Position) -> Result<(), StoreError> {
        let mut state = self.state();
        let log = state.logs.entry(partition).or_default();
        log.check(partition, epoch)?;
        (log.begins, log.frames) = (at.0, Vec::new());
        Ok(())
    }

    /// Stores the copies as blobs.
    fn keep(&self, partitions: &[PartitionId]) -> Result<String, StoreError> {
        let mut state = self.state();
        let folder = (1..).map(|number| format!("damaged-{number}/"));
        let is_free = |folder: &String| {
            state.blobs.range(folder.clone()..).next().is_none_or(|(name, _)| !name.starts_with(folder))
        };
        let folder = folder.into_iter().find(is_free).unwrap_or_default();
        for partition in partitions {
            let of_snapshot = format!("p{partition}/snapshot/");
            let blobs = state.blobs.iter().filter(|(name, _)| name.starts_with(&of_snapshot));
            let mut copies: Vec<(String, Vec<u8>)> =
                blobs.map(|(name, bytes)| (format!("{folder}{name}"), bytes.clone())).collect();
            if let Some(log) = state.logs.get(partition) {
                let frames = (log.begins..).zip(&log.frames);
                copies.extend(frames.map(|(at, frame)| (format!("{folder}p{partition}/log/{at}"), frame.to_vec())));
            }
            state.blobs.extend(copies);
        }
        Ok(format!("blobs {folder}"))
    }

    fn bus(&self) -> Arc<dyn Bus> {
        Arc::new(self.bus.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const P: PartitionId = PartitionId(0);

    #[test]
    fn one_of_two_that_saw_the_same_epoch_takes_a_partition() {
        let store = MemoryStore::new();
        store.open_or_create(HubShape { partitions: 1, format: 1 }).expect("a hub");
        assert_eq!(store.owners().expect("read"), [Owner { partition: P, epoch: Epoch(0), node: None }]);
        let epoch = store.take(P, Epoch(0), "a").expect("taken");
        assert!(matches!(store.take(P, Epoch(0), "b"), Err(StoreError::Fenced { ours: 0, theirs: 1, .. })));
        let mut batch = FrameBatch::default();
        batch.push(b"frame");
        store.append(P, epoch, Position(0), &batch).expect("appended");
        let later = store.take(P, epoch, "b").expect("taken");
        assert!(matches!(store.append(P, epoch, Position(1), &batch), Err(StoreError::Fenced { .. })));
        store.release(P, later).expect("given back");
        assert_eq!(store.owners().expect("read"), [Owner { partition: P, epoch: later, node: None }]);
    }

    #[test]
    fn blobs_can_be_read_while_a_log_is() {
        let store = MemoryStore::new();
        let epoch = store.acquire(P, "a").expect("taken");
        let mut batch = FrameBatch::default();
        batch.push(b"frame");
        store.append(P, epoch, Position(0), &batch).expect("appended");
        store.put_blob("p0/payload/0", b"payload").expect("kept");
        let mut read = Vec::new();
        let mut visit = |_, _: &[u8]| {
            read.push(store.get_blob("p0/payload/0")?);
            Ok(())
        };
        store.read(P, Position(0), &mut visit).expect("read");
        assert_eq!(read, [Some(b"payload".to_vec())]);
    }

    #[test]
    fn nodes_hear_what_all_said_last_until_they_are_forgotten() {
        let store = MemoryStore::new();
        store.say("b", b"1").expect("said");
        store.say("b", b"2").expect("said");
        let all = store.say("a", b"3").expect("said");
        assert_eq!(all, [("a".to_owned(), b"3".to_vec()), ("b".to_owned(), b"2".to_vec())]);
        store.forget("b").expect("forgotten");
        assert_eq!(store.say("a", b"4").expect("said").len(), 1);
        assert!(matches!(store.say("a/b", b""), Err(StoreError::BadName { .. })));
    }

    #[test]
    fn what_is_sent_is_received_until_the_line_is_dropped() {
        let store = MemoryStore::new();
        let (got, received) = std::sync::mpsc::sync_channel(1);
        let receive = move |message| got.send(message).expect("the test waits");
        let there = store.bus().open("b", Arc::new(receive)).expect("a line");
        let here = store.bus().open("a", Arc::new(|_| {})).expect("a line");
        here.send(there.address(), bytes::Bytes::from_static(b"hello")).expect("sent");
        let wait = std::time::Duration::from_secs(60);
        assert_eq!(received.recv_timeout(wait).expect("received"), &b"hello"[..]);
        let address = there.address().to_owned();
        drop(there);
        assert!(here.send(&address, bytes::Bytes::new()).is_err());
    }
}
