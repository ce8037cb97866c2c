//! One partition that runs in this process: how it is started and how it is stopped.
//!
//! It has two threads, for its state machine and for its log. They begin to work only once the partition has recovered
//! and is told to, so that an error before that leaves nothing done.

use std::cell::RefCell;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use super::activities::{Activities, Task, Whom};
use super::fence::{Fence, Term};
use super::inbox::CloseMode;
use super::keeper::Chores;
use super::log::{self, Log, Target};
use super::meter::Meter;
use super::partition_thread::{PartitionThread, Recovery};
use super::{Inbox, Post, died, guarded, now, panicked, thread};
use crate::error::Error;
use crate::ids::{Epoch, PartitionId, Position};
use crate::options::HubOptions;
use crate::partition::Input;
use crate::partition::Reply;
use crate::program::ActivityCall;
use crate::program::Program;
use crate::stopped;
use crate::store::{Store, StoreError};

/// State that all partitions of a process share.
pub(crate) struct Engine {
    pub(super) store: Arc<dyn Store>,
    pub(super) program: Arc<dyn Program>,
    pub(super) options: HubOptions,
    pub(super) post: Arc<Post>,
    /// Where several processes share the store: whether this one may act.
    pub(super) fence: Option<Arc<Fence>>,
    pub(super) activities: Arc<Activities>,
    /// `None` once no more chores are taken.
    pub(super) chores: Mutex<Option<Chores>>,
}

impl Engine {
    /// The inboxes of all partitions.
    pub(crate) fn post(&self) -> &Arc<Post> {
        &self.post
    }

    /// How many activities wait for a thread.
    pub(crate) fn activities_waiting(&self) -> usize {
        self.activities.waiting()
    }

    /// Takes activities out that would wait longest, at most so many.
    pub(crate) fn lend_activities(&self, most: usize) -> Vec<Task> {
        self.activities.take_last(most)
    }

    /// Has an activity run here after all.
    pub(crate) fn take_activity_back(&self, task: Task) {
        self.activities.put_back(task);
    }

    /// Runs an activity for another node.
    pub(crate) fn run_activity(&self, call: ActivityCall, reply: Reply) {
        self.activities.put_back(Task { whom: Whom::Node(reply), call });
    }

    /// Lets activities end as soon as their threads have nothing in hand.
    pub(crate) fn end_activities(&self) {
        self.activities.close();
    }

    /// Lets the keeper end once the partitions have.
    pub(crate) fn end_chores(&self) {
        *self.chores.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Stops a partition and notes why in the store.
    pub(super) fn stop(&self, partition: PartitionId, own: &Inbox, error: &StoreError) {
        if self.post.stop(partition, own, error) {
            stopped::note(&*self.store, partition, error, now());
        }
    }
}

/// A partition whose thread recovers it.
pub(crate) struct RecoveringPartition {
    id: PartitionId,
    epoch: Epoch,
    inbox: Arc<Inbox>,
    log: Arc<Log>,
    meter: Arc<Meter>,
    shell: JoinHandle<()>,
    recovered: Receiver<Result<Recovery, StoreError>>,
    go: SyncSender<()>,
}

impl RecoveringPartition {
    /// Starts the thread of a partition that this process owns, and has taken in this term of its lease.
    pub(crate) fn start(
        engine: &Arc<Engine>,
        id: PartitionId,
        epoch: Epoch,
        term: Term,
        meter: &Arc<Meter>,
    ) -> Result<Self, Error> {
        let (ready, recovered) = sync_channel(1);
        let (go, gone) = sync_channel(1);
        let (inbox, log) = (Arc::<Inbox>::default(), Arc::<Log>::default());
        let chores = engine.chores.lock().unwrap_or_else(PoisonError::into_inner).clone().ok_or(Error::Closed)?;
        let shell = PartitionThread {
            id,
            epoch,
            term,
            batching: engine.store.batching(),
            engine: Arc::clone(engine),
            inbox: Arc::clone(&inbox),
            log: Arc::clone(&log),
            chores,
            meter: Arc::clone(meter),
            clock: RefCell::default(),
            begun: Instant::now(),
        };
        let shell = thread(format!("partition-{id}"), move || shell.run(ready, &gone))?;
        Ok(Self { id, epoch, inbox, log, meter: Arc::clone(meter), shell, recovered, go })
    }

    /// Waits until the partition is as its log says.
    pub(crate) fn recovered(&self) -> Result<Recovery, StoreError> {
        self.recovered.recv().unwrap_or_else(|_| Err(died()))
    }

    /// Lets inputs in, which wait until the partition works.
    pub(crate) fn admit(&self, engine: &Engine) {
        engine.post.put(self.id, Some(Arc::clone(&self.inbox)));
    }

    /// Lets the thread end with nothing done.
    pub(crate) fn give_up(self) {
        drop(self.go);
        // A thread that panicked has nothing more to say.
        let _ = self.shell.join();
    }

    /// Lets the partition work, whose log ends at `end`.
    pub(crate) fn go(self, engine: &Arc<Engine>, end: Position) -> Result<Tenure, Error> {
        let Self { id, epoch, inbox, log, meter, shell, go, .. } = self;
        inbox.confirm(end);
        let target = Target { store: Arc::clone(&engine.store), partition: id, epoch, end };
        let tenure = (Arc::clone(engine), Arc::clone(&inbox), Arc::clone(&log), meter);
        let writer = thread(format!("log-{id}"), move || {
            let (engine, inbox, log, meter) = tenure;
            let written = guarded(|| log::write(&log, target, &inbox, &meter));
            if let Err(error) = written.unwrap_or_else(|panic| Err(panicked(id, &panic))) {
                log.close();
                engine.stop(id, &inbox, &error);
            }
        })?;
        // A thread that does not take it has died, which its inbox says.
        let _ = go.send(());
        Ok(Tenure { id, epoch, inbox, log, shell, writer })
    }
}

/// A partition that runs.
pub(crate) struct Tenure {
    pub(crate) id: PartitionId,
    pub(crate) epoch: Epoch,
    inbox: Arc<Inbox>,
    log: Arc<Log>,
    shell: JoinHandle<()>,
    writer: JoinHandle<()>,
}

impl Tenure {
    /// Has the partition take nothing more in and end.
    pub(crate) fn close(&self) {
        self.inbox.close(CloseMode::Orderly);
    }

    /// Ends the partition at once; frames that are not durable yet are lost.
    pub(crate) fn halt(&self) {
        self.log.halt();
        self.inbox.close(CloseMode::AtOnce);
    }

    /// Why it has stopped, if it has.
    pub(crate) fn failure(&self) -> Option<StoreError> {
        self.inbox.failure()
    }

    /// Makes the partition look for unacknowledged messages to `to`, or to all.
    pub(crate) fn repeat(&self, to: Option<PartitionId>) {
        // One that ends has nothing to repeat.
        let _ = self.inbox.push(Input::Repeat { to });
    }

    /// Waits until a partition that was told to end has ended. Returns why it had stopped before, if it had.
    pub(crate) fn ended(self) -> Option<Error> {
        // A thread that panicked has nothing more to say.
        let _ = self.shell.join();
        self.log.close();
        let _ = self.writer.join();
        self.inbox.failure().map(|source| Error::Stopped { partition: self.id, source })
    }
}
