//! A store in memory whose calls can be held up node by node, and whose bus loses and delays messages. For tests.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use narrows_testing::Chance;

use crate::ids::{Epoch, PartitionId, Position};
use crate::store::{
    Batching, Bus, FrameBatch, HubShape, Line, Location, MemoryStore, Owner, Receive, Scan, SharedStore, Store,
    StoreError, Visit,
};

/// Faults for all nodes of a hub.
#[derive(Default)]
pub(super) struct Trouble {
    /// Nodes whose calls to the store wait, as if they were stopped.
    paused: Mutex<BTreeSet<String>>,
    bell: Condvar,
    /// Whether the store has no room for anything more.
    pub(super) is_full: AtomicBool,
    /// One message in so many is lost; 0 means none.
    pub(super) loses_one_in: AtomicUsize,
    /// Messages take up to so many milliseconds; 0 means none.
    pub(super) delay_ms_max: AtomicUsize,
    /// The node that has appended to each partition, by epoch.
    writers: Mutex<HashMap<(PartitionId, Epoch), String>>,
}

impl Trouble {
    pub(super) fn pause(&self, node: &str) {
        self.paused.lock().expect("a lock").insert(node.to_owned());
    }

    pub(super) fn resume(&self, node: &str) {
        self.paused.lock().expect("a lock").remove(node);
        self.bell.notify_all();
    }

    fn pass(&self, node: &str) {
        let paused = self.paused.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.bell.wait_while(paused, |paused| paused.contains(node)).unwrap_or_else(PoisonError::into_inner));
    }

    /// # Errors
    /// As of a server whose disk is full.
    fn admit(&self) -> Result<(), StoreError> {
        if !self.is_full.load(Ordering::Relaxed) {
            return Ok(());
        }
        let place = Location::Remote { server: "a server".to_owned(), what: "its disk".to_owned() };
        Err(StoreError::Io { action: "write", place, reason: "no room is left".to_owned(), is_full: true })
    }

    fn is_paused(&self, node: &str) -> bool {
        self.paused.lock().unwrap_or_else(PoisonError::into_inner).contains(node)
    }
}

/// The store as one node has it.
pub(super) struct Unreliable {
    node: String,
    store: Arc<MemoryStore>,
    trouble: Arc<Trouble>,
}

impl Unreliable {
    pub(super) fn new(node: &str, store: &Arc<MemoryStore>, trouble: &Arc<Trouble>) -> Arc<Self> {
        Arc::new(Self { node: node.to_owned(), store: Arc::clone(store), trouble: Arc::clone(trouble) })
    }

    fn store(&self) -> &MemoryStore {
        self.trouble.pass(&self.node);
        &self.store
    }
}

impl Store for Unreliable {
    fn describe(&self) -> String {
        self.store.describe()
    }

    fn batching(&self) -> Batching {
        self.store.batching()
    }

    fn shared(&self) -> Option<&dyn SharedStore> {
        Some(self)
    }

    fn open_or_create(&self, wanted: HubShape) -> Result<HubShape, StoreError> {
        self.store().open_or_create(wanted)
    }

    fn acquire(&self, partition: PartitionId, owner: &str) -> Result<Epoch, StoreError> {
        self.store().acquire(partition, owner)
    }

    fn release(&self, partition: PartitionId, epoch: Epoch) -> Result<(), StoreError> {
        self.store().release(partition, epoch)
    }

    fn append(&self, partition: PartitionId, epoch: Epoch, at: Position, batch: &FrameBatch) -> Result<(), StoreError> {
        self.trouble.admit()?;
        self.store().append(partition, epoch, at, batch)?;
        let mut writers = self.trouble.writers.lock().expect("a lock");
        let writer = writers.entry((partition, epoch)).or_insert_with(|| self.node.clone());
        assert_eq!(*writer, self.node, "two nodes wrote partition {partition} in one epoch");
        Ok(())
    }

    fn read(&self, partition: PartitionId, from: Position, visit: &mut Visit<'_>) -> Result<Position, StoreError> {
        self.store().read(partition, from, visit)
    }

    fn truncate(&self, partition: PartitionId, epoch: Epoch, before: Position) -> Result<(), StoreError> {
        self.store().truncate(partition, epoch, before)
    }

    fn put_blob(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        self.store().put_blob(name, bytes)
    }

    fn get_blob(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.store().get_blob(name)
    }

    fn delete_blob(&self, name: &str) -> Result<(), StoreError> {
        self.store().delete_blob(name)
    }

    fn list_blobs(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        self.store().list_blobs(prefix)
    }
}

impl SharedStore for Unreliable {
    fn number(&self) -> Result<u64, StoreError> {
        self.store().number()
    }

    fn say(&self, node: &str, said: &[u8]) -> Result<Vec<(String, Vec<u8>)>, StoreError> {
        self.trouble.admit()?;
        self.store().say(node, said)
    }

    fn said(&self) -> Result<Vec<(String, Vec<u8>)>, StoreError> {
        self.store().said()
    }

    fn forget(&self, node: &str) -> Result<(), StoreError> {
        self.store().forget(node)
    }

    fn owners(&self) -> Result<Vec<Owner>, StoreError> {
        self.store().owners()
    }

    fn take(&self, partition: PartitionId, seen: Epoch, node: &str) -> Result<Epoch, StoreError> {
        self.store().take(partition, seen, node)
    }

    fn scan(&self, partition: PartitionId, found: &mut Scan<'_>) -> Result<Position, StoreError> {
        self.store().scan(partition, found)
    }

    fn restart(&self, partition: PartitionId, epoch: Epoch, at: Position) -> Result<(), StoreError> {
        self.store().restart(partition, epoch, at)
    }

    fn keep(&self, partitions: &[PartitionId]) -> Result<String, StoreError> {
        self.store().keep(partitions)
    }

    fn bus(&self) -> Arc<dyn Bus> {
        let (node, trouble) = (self.node.clone(), Arc::clone(&self.trouble));
        Arc::new(LossyBus { node, trouble, bus: self.store.bus() })
    }
}

/// A bus that loses and delays.
struct LossyBus {
    node: String,
    trouble: Arc<Trouble>,
    bus: Arc<dyn Bus>,
}

impl Bus for LossyBus {
    fn open(&self, node: &str, receive: Receive) -> Result<Box<dyn Line>, StoreError> {
        let (paused, name) = (Arc::clone(&self.trouble), self.node.clone());
        let while_awake: Receive = Arc::new(move |message| {
            if !paused.is_paused(&name) {
                receive(message);
            }
        });
        let line: Arc<dyn Line> = Arc::from(self.bus.open(node, while_awake)?);
        let late = Arc::new(DelayLine::default());
        let (waiting, out) = (Arc::clone(&late), Arc::clone(&line));
        let thread = std::thread::spawn(move || waiting.send(&*out));
        let (trouble, chance) = (Arc::clone(&self.trouble), Mutex::new(Chance::new(node.len() as u64)));
        Ok(Box::new(LossyLine { node: self.node.clone(), line, late, trouble, chance, thread: Some(thread) }))
    }
}

type DelayedMessages = VecDeque<(Instant, String, Bytes)>;

/// Messages on their way. Those from one node stay in order.
#[derive(Default)]
struct DelayLine {
    waiting: Mutex<DelayedMessages>,
    bell: Condvar,
    is_closed: AtomicBool,
}

impl DelayLine {
    fn send(&self, line: &dyn Line) {
        loop {
            let waiting = self.waiting.lock().expect("a lock");
            let is_quiet = |waiting: &mut DelayedMessages| waiting.is_empty() && !self.is_closed.load(Ordering::SeqCst);
            let mut waiting = self.bell.wait_while(waiting, is_quiet).expect("a lock");
            if self.is_closed.load(Ordering::SeqCst) {
                return;
            }
            let Some((due, address, message)) = waiting.pop_front() else { continue };
            drop(waiting);
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            // It is lost if the other node is gone.
            let _ = line.send(&address, message);
        }
    }
}

struct LossyLine {
    node: String,
    line: Arc<dyn Line>,
    late: Arc<DelayLine>,
    trouble: Arc<Trouble>,
    chance: Mutex<Chance>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Line for LossyLine {
    fn address(&self) -> &str {
        self.line.address()
    }

    fn send(&self, address: &str, message: Bytes) -> Result<(), StoreError> {
        let loses = self.trouble.loses_one_in.load(Ordering::Relaxed);
        let delay = self.trouble.delay_ms_max.load(Ordering::Relaxed);
        let mut chance = self.chance.lock().expect("a lock");
        if self.trouble.is_paused(&self.node) || (loses > 0 && chance.one_in(loses)) {
            return Ok(());
        }
        if delay == 0 {
            drop(chance);
            return self.line.send(address, message);
        }
        let due = Instant::now() + Duration::from_millis(chance.below(delay) as u64);
        drop(chance);
        self.late.waiting.lock().expect("a lock").push_back((due, address.to_owned(), message));
        self.late.bell.notify_one();
        Ok(())
    }
}

impl Drop for LossyLine {
    fn drop(&mut self) {
        self.late.is_closed.store(true, Ordering::SeqCst);
        drop(self.late.waiting.lock());
        self.late.bell.notify_one();
        if let Some(thread) = self.thread.take().filter(|thread| thread.thread().id() != std::thread::current().id()) {
            let _ = thread.join();
        }
    }
}
