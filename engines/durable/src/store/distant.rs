//! A store around another that responds as if it were on another machine: each call takes a round trip longer.
//!
//! For experiments that need no server and no network. A commit of many steps costs one round trip, and so does the
//! commit of a single step where each step has its own, so both kinds of batching compare as they do over a network.
//! Messages between nodes are not delayed.

use std::sync::Arc;
use std::time::Duration;

use super::{Batching, Bus, FrameBatch, HubShape, Owner, Scan, SharedStore, Store, StoreError, Visit};
use crate::ids::{Epoch, PartitionId, Position};

/// A layer around each append to a [`DistantStore`], such as a quota.
pub trait AppendLayer: Send + Sync + 'static {
    /// Runs `append` once, which writes `bytes` to the log of `partition`, now or after a wait.
    ///
    /// # Errors
    /// Those of `append`.
    fn append(
        &self,
        partition: PartitionId,
        bytes: usize,
        append: &mut dyn FnMut() -> Result<(), StoreError>,
    ) -> Result<(), StoreError>;
}

/// A store that is one round trip away. Calls for different partitions wait at the same time.
pub struct DistantStore<S: ?Sized> {
    round_trip: Duration,
    layer: Option<Arc<dyn AppendLayer>>,
    inner: Arc<S>,
}

impl<S: Store + ?Sized> DistantStore<S> {
    /// Puts a store at a distance.
    #[must_use]
    pub fn new(inner: Arc<S>, round_trip: Duration) -> Self {
        Self { round_trip, layer: None, inner }
    }

    /// The same, with a layer around each append.
    #[must_use]
    pub fn with_layer(self, layer: Arc<dyn AppendLayer>) -> Self {
        Self { layer: Some(layer), ..self }
    }

    /// The store, once the round trip of a call has passed.
    fn call(&self) -> &S {
        std::thread::sleep(self.round_trip);
        &self.inner
    }

    fn append_once(
        &self,
        partition: PartitionId,
        epoch: Epoch,
        at: Position,
        batch: &FrameBatch,
    ) -> Result<(), StoreError> {
        match &self.layer {
            None => self.call().append(partition, epoch, at, batch),
            Some(layer) => {
                layer.append(partition, batch.bytes(), &mut || self.call().append(partition, epoch, at, batch))
            }
        }
    }
}

impl<S: Store + ?Sized> Store for DistantStore<S> {
    fn describe(&self) -> String {
        format!("{}, {:?} away", self.inner.describe(), self.round_trip)
    }

    fn batching(&self) -> Batching {
        self.inner.batching()
    }

    fn shared(&self) -> Option<&dyn SharedStore> {
        self.inner.shared()
    }

    fn open_or_create(&self, wanted: HubShape) -> Result<HubShape, StoreError> {
        self.call().open_or_create(wanted)
    }

    fn acquire(&self, partition: PartitionId, owner: &str) -> Result<Epoch, StoreError> {
        self.call().acquire(partition, owner)
    }

    fn release(&self, partition: PartitionId, epoch: Epoch) -> Result<(), StoreError> {
        self.call().release(partition, epoch)
    }

    fn append(&self, partition: PartitionId, epoch: Epoch, at: Position, batch: &FrameBatch) -> Result<(), StoreError> {
        if self.batching() == Batching::Group || batch.len() < 2 {
            return self.append_once(partition, epoch, at, batch);
        }
        let mut single = FrameBatch::default();
        for (position, frame) in (at.0..).zip(batch.frames()) {
            single.clear();
            single.push(frame);
            self.append_once(partition, epoch, Position(position), &single)?;
        }
        Ok(())
    }

    fn read(&self, partition: PartitionId, from: Position, visit: &mut Visit<'_>) -> Result<Position, StoreError> {
        self.call().read(partition, from, visit)
    }

    fn truncate(&self, partition: PartitionId, epoch: Epoch, before: Position) -> Result<(), StoreError> {
        self.call().truncate(partition, epoch, before)
    }

    fn put_blob(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        self.call().put_blob(name, bytes)
    }

    fn get_blob(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.call().get_blob(name)
    }

    fn delete_blob(&self, name: &str) -> Result<(), StoreError> {
        self.call().delete_blob(name)
    }

    fn list_blobs(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        self.call().list_blobs(prefix)
    }
}

impl<S: SharedStore + ?Sized> SharedStore for DistantStore<S> {
    fn number(&self) -> Result<u64, StoreError> {
        self.call().number()
    }

    fn say(&self, node: &str, said: &[u8]) -> Result<Vec<(String, Vec<u8>)>, StoreError> {
        self.call().say(node, said)
    }

    fn said(&self) -> Result<Vec<(String, Vec<u8>)>, StoreError> {
        self.call().said()
    }

    fn forget(&self, node: &str) -> Result<(), StoreError> {
        self.call().forget(node)
    }

    fn owners(&self) -> Result<Vec<Owner>, StoreError> {
        self.call().owners()
    }

    fn take(&self, partition: PartitionId, seen: Epoch, node: &str) -> Result<Epoch, StoreError> {
        self.call().take(partition, seen, node)
    }

    fn scan(&self, partition: PartitionId, found: &mut Scan<'_>) -> Result<Position, StoreError> {
        self.call().scan(partition, found)
    }

    fn restart(&self, partition: PartitionId, epoch: Epoch, at: Position) -> Result<(), StoreError> {
        self.call().restart(partition, epoch, at)
    }

    fn keep(&self, partitions: &[PartitionId]) -> Result<String, StoreError> {
        self.call().keep(partitions)
    }

    fn bus(&self) -> Arc<dyn Bus> {
        self.inner.bus()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::codec::{FORMAT, FrameWriter};
    use crate::ids::Time;
    use crate::store::{ClassicStore, Fault, FaultyStore, MemoryStore};

    const P: PartitionId = PartitionId(0);
    const ROUND_TRIP: Duration = Duration::from_millis(2);
    const FRAMES: u64 = 5;

    /// Round trips and calls of an append of several frames.
    fn append_to<S: Store>(inner: S) -> (u128, u64) {
        let counted = Arc::new(FaultyStore::new(Arc::new(inner), u64::MAX, Fault::Nothing));
        let store = DistantStore::new(Arc::clone(&counted), ROUND_TRIP);
        store.open_or_create(HubShape { partitions: 1, format: FORMAT }).expect("a hub");
        let epoch = store.acquire(P, "test").expect("taken");
        let mut batch = FrameBatch::default();
        for number in 0..FRAMES {
            let mut writer = FrameWriter::new();
            writer.begin(Time(number));
            writer.created(number, Time(number), "instance");
            batch.push(writer.as_bytes());
        }
        let (begun, before) = (Instant::now(), counted.writes());
        store.append(P, epoch, Position(0), &batch).expect("appended");
        let round_trips = begun.elapsed().as_nanos() / ROUND_TRIP.as_nanos();
        let calls = counted.writes() - before;
        let end = store.read(P, Position(0), &mut |_, _| Ok(())).expect("read");
        assert_eq!(end, Position(FRAMES));
        (round_trips, calls)
    }

    #[test]
    fn a_batch_costs_one_round_trip_and_single_steps_one_each() {
        let (round_trips, calls) = append_to(MemoryStore::new());
        assert_eq!(calls, 1);
        assert!(round_trips >= 1, "{round_trips}");
        let folder = tempfile::tempdir().expect("a folder");
        let (round_trips, calls) = append_to(ClassicStore::open(folder.path().join("hub.db")).expect("a database"));
        assert_eq!(calls, FRAMES);
        assert!(round_trips >= u128::from(FRAMES), "{round_trips}");
    }

    #[test]
    fn nodes_can_share_a_store_at_a_distance() {
        let memory: Arc<dyn SharedStore> = Arc::new(MemoryStore::new());
        let store: Arc<dyn SharedStore> = Arc::new(DistantStore::new(memory, ROUND_TRIP));
        store.open_or_create(HubShape { partitions: 1, format: FORMAT }).expect("a hub");
        let epoch = store.take(P, Epoch(0), "node-0").expect("taken");
        assert_eq!(store.owners().expect("read")[0].epoch, epoch);
        assert_eq!(store.describe(), "memory, 2ms away");
    }
}
