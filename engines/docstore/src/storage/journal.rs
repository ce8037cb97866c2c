//! Changes on their way to the disk, and who waits for them.
//!
//! Every change gets a ticket, one higher than the last, and the disk gets changes in this order, so a single number says
//! how far it is. The bytes under way are bounded by [`ROOM_BYTES`] and one request for each thread that serves: a request
//! begins only while there is room.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use tokio::sync::watch;

use super::fault::Unavailable;
use super::record::Change;

/// Changes that may be under way before requests wait.
const ROOM_BYTES: usize = 64 << 20;

/// The place of a change among all; the first one is before every change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket(u64);

/// Where changes go: to the disk, or nowhere for a store in memory.
#[derive(Debug, Clone)]
pub(crate) struct Journal(Option<Arc<Shared>>);

/// State that the journal and its writer share.
#[derive(Debug)]
pub(super) struct Shared {
    queue: Mutex<Queue>,
    moved: Condvar,
    progress: watch::Sender<Progress>,
    /// The last change of a database, a container or its ranges, which every request may have seen.
    described: AtomicU64,
    /// The bytes of all changes that the disk does not have yet.
    bytes: AtomicUsize,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct Queue {
    changes: Vec<Change>,
    last: u64,
    is_closed: bool,
}

/// How far the disk is.
#[derive(Debug, Clone, Default)]
struct Progress {
    durable: u64,
    /// Why writing has stopped.
    failure: Option<Arc<str>>,
    is_closed: bool,
}

/// Changes that are written together.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) changes: Vec<Change>,
    last: u64,
    bytes: usize,
}

impl Journal {
    /// Changes are dropped, and requests do not wait for them.
    pub(crate) fn none() -> Self {
        Self(None)
    }

    /// Changes gather for a writer.
    pub(crate) fn new() -> Self {
        Self(Some(Arc::new(Shared {
            queue: Mutex::default(),
            moved: Condvar::new(),
            progress: watch::Sender::new(Progress::default()),
            described: AtomicU64::new(0),
            bytes: AtomicUsize::new(0),
            thread: Mutex::new(None),
        })))
    }

    /// Whether changes are kept at all.
    pub(crate) fn keeps(&self) -> bool {
        self.0.is_some()
    }

    /// Hands over a change of documents. The caller holds the lock under which it was made.
    pub(crate) fn write(&self, change: Change) -> Ticket {
        self.0.as_ref().map_or(Ticket::default(), |shared| shared.enqueue(change))
    }

    /// Hands over a change that every request may have seen from now on, whatever it reads.
    pub(crate) fn describe(&self, change: Change) {
        if let Some(shared) = &self.0 {
            let Ticket(number) = shared.enqueue(change);
            shared.described.fetch_max(number, Ordering::SeqCst);
        }
    }

    /// The last change that every request may have seen.
    pub(crate) fn described(&self) -> Ticket {
        Ticket(self.0.as_ref().map_or(0, |shared| shared.described.load(Ordering::SeqCst)))
    }

    /// Whether writes are taken; once they are not, they never are again.
    pub(crate) fn check(&self) -> Result<(), Unavailable> {
        self.0.as_ref().map_or(Ok(()), |shared| shared.progress.borrow().check())
    }

    /// Waits until the disk has the change and all before it.
    pub(crate) async fn durable(&self, Ticket(number): Ticket) -> Result<(), Unavailable> {
        let Some(shared) = self.0.as_ref().filter(|_| number > 0) else { return Ok(()) };
        if shared.progress.borrow().durable >= number {
            return Ok(());
        }
        let mut progress = shared.progress.subscribe();
        let settled = progress.wait_for(|progress| progress.durable >= number || progress.check().is_err()).await;
        match settled {
            Ok(progress) if progress.durable >= number => Ok(()),
            Ok(progress) => progress.check(),
            Err(_) => Err(closed()),
        }
    }

    /// Waits until there is room for more changes, or writing has stopped.
    pub(crate) async fn room(&self) {
        let Some(shared) = self.0.as_ref().filter(|shared| !shared.has_room()) else { return };
        let mut progress = shared.progress.subscribe();
        // An end of the writer shows in the next call.
        let _ = progress.wait_for(|progress| shared.has_room() || progress.check().is_err()).await;
    }

    /// The same, blocking the thread.
    pub(crate) fn wait_for_room(&self) {
        let Some(shared) = &self.0 else { return };
        let mut queue = shared.lock();
        while !shared.has_room() && shared.progress.borrow().check().is_ok() {
            queue = shared.moved.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits until all is written and ends the writer; an error is what kept it from that.
    pub(crate) fn close(&self) -> Result<(), Unavailable> {
        let Some(shared) = &self.0 else { return Ok(()) };
        shared.lock().is_closed = true;
        shared.moved.notify_all();
        let thread = shared.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // A writer that panicked has said so on its way.
            let _ = thread.join();
        }
        shared.progress.send_modify(|progress| progress.is_closed = true);
        let failure = shared.progress.borrow().failure.clone();
        failure.map_or(Ok(()), |why| Err(Unavailable(why)))
    }

    /// State that a writer shares with this journal.
    pub(super) fn shared(&self) -> Option<Arc<Shared>> {
        self.0.clone()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enqueue(&self, change: Change) -> Ticket {
        let mut queue = self.lock();
        self.bytes.fetch_add(change.bytes(), Ordering::SeqCst);
        queue.changes.push(change);
        queue.last += 1;
        self.moved.notify_all();
        Ticket(queue.last)
    }

    fn has_room(&self) -> bool {
        self.bytes.load(Ordering::SeqCst) <= ROOM_BYTES
    }

    /// The thread that [`Journal::close`] is to wait for.
    pub(super) fn written_by(&self, thread: JoinHandle<()>) {
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
    }

    /// Waits for changes and takes all there are; None once the journal is closed and empty.
    pub(super) fn next_group(&self) -> Option<Group> {
        let mut queue = self.lock();
        while queue.changes.is_empty() {
            if queue.is_closed {
                return None;
            }
            queue = self.moved.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        let changes = std::mem::take(&mut queue.changes);
        let bytes = changes.iter().map(Change::bytes).sum();
        Some(Group { changes, last: queue.last, bytes })
    }

    /// The disk has this group.
    pub(super) fn committed(&self, group: &Group) {
        self.give_back(group);
        self.progress.send_modify(|progress| progress.durable = group.last);
    }

    /// The group is under way no more.
    pub(super) fn give_back(&self, group: &Group) {
        let _queue = self.lock();
        self.bytes.fetch_sub(group.bytes, Ordering::SeqCst);
        self.moved.notify_all();
    }

    /// No more changes are written, for this reason unless there is one already.
    pub(super) fn fail(&self, why: &str) {
        self.progress.send_modify(|progress| {
            progress.failure.get_or_insert_with(|| why.into());
        });
        let _queue = self.lock();
        self.moved.notify_all();
    }
}

impl Progress {
    /// Whether there is more to come.
    fn check(&self) -> Result<(), Unavailable> {
        match &self.failure {
            Some(why) => Err(Unavailable(Arc::clone(why))),
            None if self.is_closed => Err(closed()),
            None => Ok(()),
        }
    }
}

fn closed() -> Unavailable {
    Unavailable("the store is closed".into())
}
