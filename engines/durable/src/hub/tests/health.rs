//! Partitions that stop, panic or are held up: everybody who waits is told, and nothing else suffers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use super::{TIMEOUT, block, open, options, start};
use crate::client::Status;
use crate::error::Error;
use crate::hub::{Health, Hub};
use crate::ids::{EntityId, Epoch, InstanceId, PartitionId, Position, Time};
use crate::offline::HubReader;
use crate::options::HubOptions;
use crate::partition::testing::{Scripts, id};
use crate::program::{ActivityCall, ActivityFuture, Cursor, EntityStep, Operation, Program};
use crate::store::{Batching, Fault, FaultyStore, FrameBatch, HubShape, MemoryStore, Store, StoreError, Visit};
use crate::{Failure, Payload};

/// A name of an instance that lives on a partition.
fn on(partition: u16, partitions: u16) -> InstanceId {
    let ids = (0..).map(|n| id(&format!("w{n}")));
    ids.into_iter().find(|id| id.partition(partitions).0 == partition).expect("one of them")
}

#[test]
fn a_partition_that_stops_fails_waits_on_others_and_the_close() {
    let disk = Arc::new(MemoryStore::new());
    let two = || HubOptions { partitions: 2, ..options() };
    let hub = open(&disk, two());
    let waits = on(0, 2);
    block(start(&hub.client(), "Wait", waits.as_str(), 1)).expect("started");
    hub.close().expect("closed");
    // Both partitions are taken, then the first commit fails.
    let faulty: Arc<dyn Store> = Arc::new(FaultyStore::new(Arc::clone(&disk), 2, Fault::Nothing));
    let hub = Hub::open(faulty, Scripts, two()).expect("a hub");
    let client = hub.client();
    block(async {
        let instance = waits.clone();
        let other = on(1, 2);
        let wait = client.wait(&instance, TIMEOUT);
        let (waited, started) = tokio::join!(wait, start(&client, "Wait", other.as_str(), 1));
        assert!(matches!(started, Err(Error::Stopped { .. })), "{started:?}");
        assert!(matches!(waited, Err(Error::Stopped { partition: PartitionId(1), .. })), "{waited:?}");
        let again = client.wait(&instance, TIMEOUT).await;
        assert!(matches!(again, Err(Error::Stopped { .. })), "{again:?}");
        assert_eq!(client.get(&instance).await.expect("it works").expect("an instance").status, Status::Running);
    });
    let health = hub.health();
    assert!(matches!(health[..], [Health::Running, Health::Stopped(_)]), "{health:?}");
    let closed = hub.close();
    assert!(matches!(closed, Err(Error::Stopped { partition: PartitionId(1), .. })), "{closed:?}");
}

/// User code that breaks its promise not to panic.
struct Panics;

impl Program for Panics {
    fn newest(&self, name: &str) -> Option<u32> {
        Scripts.newest(name)
    }

    fn cursor(&self, instance: &InstanceId, name: &str, version: u32) -> Result<Box<dyn Cursor>, Failure> {
        assert!(name != "Sleep", "on purpose");
        Scripts.cursor(instance, name, version)
    }

    fn is_idempotent(&self, name: &str) -> bool {
        Scripts.is_idempotent(name)
    }

    fn run(&self, call: ActivityCall) -> ActivityFuture {
        Scripts.run(call)
    }

    fn operate(&self, id: &EntityId, state: Option<&Payload>, operations: &[Operation], now: Time) -> EntityStep {
        Scripts.operate(id, state, operations, now)
    }
}

#[test]
fn a_panic_stops_its_partition_and_reaches_those_who_wait() {
    let options = HubOptions { partitions: 1, ..options() };
    let hub = Hub::open(Arc::new(MemoryStore::new()), Panics, options).expect("a hub");
    let client = hub.client();
    block(async {
        let waits = start(&client, "Wait", "w", 1).await.expect("started");
        let (waited, started) = tokio::join!(client.wait(&waits, TIMEOUT), start(&client, "Sleep", "s", 1));
        for told in [waited.map(drop), started.map(drop)] {
            let error = told.expect_err("it has stopped").to_string();
            assert!(error.contains("partition 0 has stopped") || error == "the hub is closed", "{error}");
        }
        let later = client.get(&waits).await.expect_err("it has stopped").to_string();
        assert_eq!(later, "partition 0 has stopped: cannot run partition 0: it panicked: on purpose");
    });
    assert!(matches!(hub.health()[..], [Health::Stopped(_)]));
    assert!(hub.close().is_err());
}

#[test]
fn a_partition_that_stopped_is_noted_in_its_store_until_it_is_opened_again() {
    let store = Arc::new(MemoryStore::new());
    let two = || HubOptions { partitions: 2, ..options() };
    let hub = Hub::open(Arc::clone(&store) as Arc<dyn Store>, Panics, two()).expect("a hub");
    let failed = block(start(&hub.client(), "Sleep", on(1, 2).as_str(), 1));
    assert!(failed.is_err(), "it has stopped");
    assert!(hub.close().is_err());
    let seen = || {
        let store: Arc<dyn Store> = Arc::clone(&store) as _;
        HubReader::open(&store).expect("read").stopped().to_vec()
    };
    let [stopped] = &seen()[..] else { panic!("{:?}", seen()) };
    let expected = (1, "cannot run partition 1: it panicked: on purpose");
    assert_eq!((stopped.partition, stopped.reason.as_str()), expected);
    assert!(stopped.at_us > 0);
    open(&store, two()).close().expect("closed");
    assert_eq!(seen(), []);
}

#[test]
fn a_partition_without_room_for_a_note_stops_all_the_same() {
    let disk = Arc::new(MemoryStore::new());
    let faulty: Arc<dyn Store> = Arc::new(FaultyStore::new(Arc::clone(&disk), 1, Fault::Nothing));
    let hub = Hub::open(faulty, Scripts, HubOptions { partitions: 1, ..options() }).expect("a hub");
    assert!(block(start(&hub.client(), "Wait", "w", 1)).is_err());
    assert!(matches!(hub.health()[..], [Health::Stopped(_)]));
    assert!(hub.close().is_err());
    let store: Arc<dyn Store> = disk;
    assert_eq!(HubReader::open(&store).expect("read").stopped(), []);
}

/// User code that does not return before it is let go.
#[derive(Default)]
struct Gate {
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn open(&self) {
        *self.is_open.lock().expect("no panic") = true;
        self.opened.notify_all();
    }

    fn pass(&self) {
        let is_open = self.is_open.lock().expect("no panic");
        drop(self.opened.wait_while(is_open, |is_open| !*is_open).expect("no panic"));
    }
}

/// Holds its partition up when it begins to run `Sleep`.
struct Blocks(Arc<Gate>);

impl Program for Blocks {
    fn newest(&self, name: &str) -> Option<u32> {
        Scripts.newest(name)
    }

    fn cursor(&self, instance: &InstanceId, name: &str, version: u32) -> Result<Box<dyn Cursor>, Failure> {
        if name == "Sleep" {
            self.0.pass();
        }
        Scripts.cursor(instance, name, version)
    }

    fn is_idempotent(&self, name: &str) -> bool {
        Scripts.is_idempotent(name)
    }

    fn run(&self, call: ActivityCall) -> ActivityFuture {
        Scripts.run(call)
    }

    fn operate(&self, id: &EntityId, state: Option<&Payload>, operations: &[Operation], now: Time) -> EntityStep {
        Scripts.operate(id, state, operations, now)
    }
}

#[test]
fn code_that_does_not_return_is_reported_with_its_instance_until_it_does() {
    let gate = Arc::new(Gate::default());
    let options = HubOptions { partitions: 2, ..options() };
    let hub = Hub::open(Arc::new(MemoryStore::new()), Blocks(Arc::clone(&gate)), options).expect("a hub");
    let (held, free) = (on(0, 2), on(1, 2));
    let comes = |wanted: &dyn Fn(&[Health]) -> bool| {
        (0..1_000).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            wanted(&hub.health_beyond(Duration::from_millis(20)))
        })
    };
    std::thread::scope(|scope| {
        let held_up = scope.spawn(|| block(start(&hub.client(), "Sleep", held.as_str(), 1)));
        let is_held =
            |health: &[Health]| matches!(health, [Health::HeldUp { by: Some(by), .. }, Health::Running] if *by == held);
        let is_reported = comes(&is_held);
        let started = block(start(&hub.client(), "Wait", free.as_str(), 1));
        // A test that fails must not leave the thread waiting.
        gate.open();
        assert!(is_reported, "it holds its partition up");
        assert!(started.is_ok(), "the other partition works: {started:?}");
        assert!(held_up.join().expect("no panic").is_ok());
    });
    assert!(comes(&|health| matches!(health, [Health::Running, Health::Running])), "{:?}", hub.health());
    hub.close().expect("closed");
}

/// A store that panics when it is read.
#[derive(Default)]
struct Breaks {
    inner: MemoryStore,
    is_broken: AtomicBool,
}

impl Store for Breaks {
    fn describe(&self) -> String {
        self.inner.describe()
    }

    fn batching(&self) -> Batching {
        self.inner.batching()
    }

    fn open_or_create(&self, wanted: HubShape) -> Result<HubShape, StoreError> {
        self.inner.open_or_create(wanted)
    }

    fn acquire(&self, partition: PartitionId, owner: &str) -> Result<Epoch, StoreError> {
        self.inner.acquire(partition, owner)
    }

    fn release(&self, partition: PartitionId, epoch: Epoch) -> Result<(), StoreError> {
        self.inner.release(partition, epoch)
    }

    fn append(&self, partition: PartitionId, epoch: Epoch, at: Position, batch: &FrameBatch) -> Result<(), StoreError> {
        self.inner.append(partition, epoch, at, batch)
    }

    fn read(&self, partition: PartitionId, from: Position, visit: &mut Visit<'_>) -> Result<Position, StoreError> {
        assert!(!self.is_broken.load(Ordering::Relaxed) || partition.0 != 1, "on purpose");
        self.inner.read(partition, from, visit)
    }

    fn truncate(&self, partition: PartitionId, epoch: Epoch, before: Position) -> Result<(), StoreError> {
        self.inner.truncate(partition, epoch, before)
    }

    fn put_blob(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        self.inner.put_blob(name, bytes)
    }

    fn get_blob(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.inner.get_blob(name)
    }

    fn delete_blob(&self, name: &str) -> Result<(), StoreError> {
        self.inner.delete_blob(name)
    }

    fn list_blobs(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        self.inner.list_blobs(prefix)
    }
}

#[test]
fn a_panic_while_a_hub_is_opened_is_an_error() {
    let store = Arc::new(Breaks::default());
    let open = || Hub::open(Arc::clone(&store) as Arc<dyn Store>, Scripts, options());
    open().expect("a hub").close().expect("closed");
    store.is_broken.store(true, Ordering::Relaxed);
    let error = open().err().expect("it cannot be opened").to_string();
    assert_eq!(error, "cannot run partition 1: it panicked: on purpose");
    store.is_broken.store(false, Ordering::Relaxed);
    open().expect("a hub").close().expect("closed");
}
