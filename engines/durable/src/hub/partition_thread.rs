//! The thread of one partition: takes inputs, drives the state machine, carries its effects out.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::error::Error;
use crate::hub::activities::{Task, Whom};
use crate::hub::clock::Clock;
use crate::hub::fence::{Fence, Term, Tick};
use crate::hub::inbox::{CloseMode, Inbox};
use crate::hub::keeper::{Chore, Chores, SnapshotOwner};
use crate::hub::log::Log;
use crate::hub::meter::Meter;
use crate::hub::tenure::Engine;
use crate::hub::{guarded, panicked};
use crate::ids::{Epoch, PartitionId, Position, Time};
use crate::partition::{Effect, Input, LaneProgress, Partition};
use crate::store::{Batching, StoreError};

/// How long a partition that waits for a moment sleeps without a look at the clock, which may be set meanwhile.
const LOOK_AT_CLOCK: Duration = Duration::from_secs(1);

/// Everything one partition's thread works with.
pub(super) struct PartitionThread {
    pub(super) id: PartitionId,
    pub(super) epoch: Epoch,
    pub(super) term: Term,
    pub(super) batching: Batching,
    pub(super) engine: Arc<Engine>,
    pub(super) inbox: Arc<Inbox>,
    pub(super) log: Arc<Log>,
    pub(super) chores: Chores,
    pub(super) meter: Arc<Meter>,
    pub(super) clock: RefCell<Clock>,
    pub(super) begun: Instant,
}

/// The result of recovering a partition.
pub(crate) struct Recovery {
    /// Where its log ends.
    pub(crate) end: Position,
    pub(crate) progress: Vec<LaneProgress>,
}

impl Recovery {
    fn of(partition: &Partition) -> Self {
        Self { end: partition.position(), progress: partition.lane_progress() }
    }
}

/// The present moment.
pub(crate) fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
}

impl PartitionThread {
    /// The time that the partition goes by.
    fn now(&self) -> Time {
        let mut clock = self.clock.borrow_mut();
        let time = clock.read(now(), self.begun.elapsed());
        self.meter.clock(clock.leaps());
        time
    }

    /// Recovers the partition, reports that, and works from when it is told to go until it is to stop. A panic, which is
    /// a bug of the engine, is the end of this partition and of nothing else.
    pub(super) fn run(self, ready: SyncSender<Result<Recovery, StoreError>>, go: &Receiver<()>) {
        let partition = guarded(|| self.recover()).unwrap_or_else(|panic| Err(panicked(self.id, &panic)));
        let recovered = partition.as_ref().map(Recovery::of).map_err(StoreError::clone);
        // The receiver is gone only if opening was given up, and then this thread has nothing to do.
        let _ = ready.send(recovered);
        let (Ok(mut partition), Ok(())) = (partition, go.recv()) else { return };
        if let Err(panic) = guarded(|| self.work(&mut partition)) {
            self.engine.stop(self.id, &self.inbox, &panicked(self.id, &panic));
            let mut inputs = Vec::new();
            self.inbox.take(&mut inputs, Position(0), Some(Duration::ZERO));
            self.stop(&mut partition, &mut inputs, &stopped(self.id, &panicked(self.id, &panic)));
            self.meter.turn_ended();
        }
    }

    fn recover(&self) -> Result<Partition, StoreError> {
        let Engine { store, program, options, post, .. } = &*self.engine;
        let mut partition = Partition::new(self.id, post.count(), Arc::clone(program), Arc::clone(store), options);
        partition.report_to(self.meter.last_instance());
        if post.is_shared() {
            partition.own_blobs(self.epoch);
        }
        let begin = Instant::now();
        partition.recover(&**store)?;
        self.meter.recovered(begin.elapsed());
        self.meter.turned(partition.counts());
        Ok(partition)
    }

    fn work(&self, partition: &mut Partition) {
        let mut inputs = Vec::new();
        let mut tasks = Vec::new();
        let mut durable = partition.position();
        self.carry_out(partition, &mut tasks);
        loop {
            let news = self.inbox.take(&mut inputs, durable, self.timeout(partition));
            if news.closing == Some(CloseMode::AtOnce) {
                return;
            }
            if let Some(error) = news.failed {
                return self.stop(partition, &mut inputs, &stopped(self.id, &error));
            }
            if let Some((other, error)) = news.elsewhere {
                partition.fail_waits(&stopped(other, &error));
            }
            if news.durable > durable {
                durable = news.durable;
                partition.confirm(durable);
                self.carry_out(partition, &mut tasks);
            }
            self.turns(partition, &mut inputs, &mut tasks);
            self.meter.turned(partition.counts());
            if news.closing == Some(CloseMode::Orderly) {
                return self.finish(partition, &mut inputs, durable);
            }
        }
    }

    /// How long the partition may sleep if nothing comes in.
    fn timeout(&self, partition: &Partition) -> Option<Duration> {
        if partition.is_busy() {
            return Some(Duration::ZERO);
        }
        let due = partition.next_due()?;
        let wait = Duration::from_micros(due.0.saturating_sub(self.now().0));
        Some(wait.min(LOOK_AT_CLOCK))
    }

    fn turns(&self, partition: &mut Partition, inputs: &mut Vec<Input>, tasks: &mut Vec<Task>) {
        let mut left = inputs.drain(..).peekable();
        loop {
            self.meter.turn_begins();
            let sealed = match self.batching {
                Batching::Group => partition.turn(&mut left, self.now()),
                Batching::EachStep => partition.turn(&mut left.by_ref().take(1), self.now()),
            };
            if let Some(sealed) = sealed {
                self.log.push(sealed);
            }
            self.meter.turn_ended();
            if let Some(fault) = partition.fault() {
                // The loop finds it at its next look into the inbox; until then nothing leaves.
                return self.engine.stop(self.id, &self.inbox, &fault);
            }
            self.carry_out(partition, tasks);
            if left.peek().is_none() {
                return;
            }
        }
    }

    /// Whether this process may act for the partition. If not, the partition stops, and nothing more leaves it.
    fn may_act(&self) -> bool {
        if self.engine.fence.as_ref().is_none_or(|fence| fence.admits(self.term, Tick::now())) {
            return true;
        }
        self.inbox.fail(Fence::error(self.id));
        false
    }

    fn carry_out(&self, partition: &mut Partition, tasks: &mut Vec<Task>) {
        if partition.effects().is_empty() {
            return;
        }
        if !self.may_act() {
            // Those who wait for a response learn that it will not come.
            return partition.effects().clear();
        }
        for effect in partition.effects().drain(..) {
            match effect {
                Effect::Run(key, call) => {
                    tasks.push(Task { whom: Whom::Partition(self.id, Arc::clone(&self.inbox), key), call })
                }
                Effect::Respond(reply, response) => {
                    // A client that has gone away does not need its response.
                    let _ = reply.send(response);
                }
                Effect::Send { to, first, messages } => self.hand_over(to, first, messages),
                Effect::Acknowledge { to, up_to } => {
                    self.engine.post.send(to, Input::Acknowledged { by: self.id, up_to });
                }
                Effect::Probe { to, up_to } => self.engine.post.send(to, Input::Probe { from: self.id, up_to }),
                Effect::Missing { to, first, before } => {
                    self.engine.post.send(to, Input::Missing { by: self.id, first, before });
                }
                Effect::Keep(name, bytes) => self.chore(Chore::Keep(self.id, name, bytes)),
                Effect::Finish(finished) => {
                    let kept = SnapshotOwner { log: Arc::clone(&self.log), meter: Arc::clone(&self.meter) };
                    self.chore(Chore::Finish(self.id, finished, kept));
                }
            }
        }
        self.engine.activities.push(tasks);
    }

    fn hand_over(&self, to: PartitionId, first: u64, messages: Vec<crate::message::Message>) {
        let (from, post) = (self.id, &self.engine.post);
        if self.batching == Batching::Group {
            return post.send(to, Input::Messages { from, first, messages });
        }
        for (first, message) in (first..).zip(messages) {
            post.send(to, Input::Messages { from, first, messages: vec![message] });
        }
    }

    fn chore(&self, chore: Chore) {
        // The thread for chores ends after those of the partitions; if it has died, its work is given up.
        let _ = self.chores.send(chore);
    }

    /// Waits until all is durable, responds to those who waited for that, and reports to the others that the hub is
    /// closed.
    fn finish(&self, partition: &mut Partition, inputs: &mut Vec<Input>, mut durable: Position) {
        while durable < partition.position() {
            let news = self.inbox.take(inputs, durable, None);
            if news.failed.is_some() || news.closing == Some(CloseMode::AtOnce) {
                break;
            }
            durable = news.durable;
            std::thread::yield_now();
        }
        partition.confirm(durable);
        self.respond_only(partition);
        self.stop(partition, inputs, &Error::Closed);
    }

    fn stop(&self, partition: &mut Partition, inputs: &mut Vec<Input>, error: &Error) {
        partition.stop(error);
        self.respond_only(partition);
        // Nothing of these was begun.
        let error = if self.engine.post.is_shared() { &Error::Moved { partition: self.id } } else { error };
        for input in inputs.drain(..) {
            if let Input::Request(request) = input {
                let _ = request.reply.send(Err(error.clone()));
            }
        }
        self.meter.turned(partition.counts());
    }

    fn respond_only(&self, partition: &mut Partition) {
        if !self.may_act() {
            return partition.effects().clear();
        }
        for effect in partition.effects().drain(..) {
            if let Effect::Respond(reply, response) = effect {
                let _ = reply.send(response);
            }
        }
    }
}

fn stopped(partition: PartitionId, error: &StoreError) -> Error {
    Error::Stopped { partition, source: error.clone() }
}
