//! A partition of a hub as a state machine: inputs and the time go in, frames and effects come out.
//!
//! It does no input or output of its own (reading back a large payload apart), starts no thread and reads no clock,
//! so that a simulation can drive it as the hub does. One call of [`Partition::turn`] is one frame: all that its
//! inputs changed is applied whole or not at all. Steps run on state that is not durable yet; effects come out of
//! [`Partition::effects`] only after [`Partition::confirm`] has said that what caused them is.
//!
//! ```text
//! inputs ─▶ turn ─▶ frame ─▶ log ─▶ confirm ─▶ effects ─▶ activities, other partitions, clients
//!             └── messages within the partition: at once, in the same frame
//! ```

mod bounds;
mod counts;
mod cursors;
mod deliver;
mod entity;
mod gate;
mod input;
mod maintain;
mod orchestration;
mod outbox;
mod park;
mod purge;
mod queries;
mod queue;
mod recover;
mod requests;
mod salvage;
#[cfg(test)]
mod simulation;
mod size;
mod snapshot;
mod spill;
mod table;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests_of_bounds;
#[cfg(test)]
mod tests_of_long_work;
#[cfg(test)]
mod tests_of_loss;
#[cfg(test)]
mod tests_of_misuse;
#[cfg(test)]
mod tests_of_outbox;
#[cfg(test)]
mod tests_of_room;
mod timers;
mod view;
mod waiting;
mod worksite;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

pub use counts::Counts;
use input::Held;
pub use input::{Effect, Input, Reply, Request, RequestKind, Response, TaskKey, Values};
pub use maintain::Change;
pub(crate) use salvage::Snapshot as SalvagedSnapshot;
pub use snapshot::Finished;

use crate::codec::FrameWriter;
use crate::error::Error;
use crate::event::EventKind;
use crate::ids::{PartitionId, Position, Time};
use crate::message::Message;
use crate::options::{HubOptions, Mismatch, Mode};
use crate::payload::Payload;
use crate::program::{ActivityCall, Program};
use crate::store::{Store, StoreError};

use bounds::Bounds;
use cursors::Cursors;
use gate::{Gate, Gated};
pub(crate) use outbox::Crossing;
use outbox::Outbox;
use purge::Purge;
use size::Measure;
pub(crate) use size::room;
use snapshot::Snapshots;
use spill::Spiller;
use table::Table;
use timers::{Due, Timers};
use waiting::Waiting;
pub(crate) use worksite::Worksite;

/// Messages that are sent again together with a probe.
const PROBE_MESSAGES: usize = 16;

/// The output of a turn, to be written durably and in this order: blobs, then the frame.
#[derive(Debug)]
pub struct Sealed<'a> {
    /// The place of the frame in the log.
    pub position: Position,
    /// Names and bytes of payloads that the frame refers to.
    pub blobs: Vec<(String, Payload)>,
    /// The frame.
    pub frame: &'a [u8],
}

/// A partition. See the module.
pub struct Partition {
    id: PartitionId,
    count: u16,
    program: Arc<dyn Program>,
    mode: Mode,
    activities_max: usize,
    bytes_max: u64,
    bounds: Bounds,
    now: Time,
    /// The position that the frame being written will have.
    next: Position,
    durable: Position,
    table: Table,
    cursors: Cursors,
    timers: Timers,
    outbox: Outbox,
    gate: Gate,
    spiller: Spiller,
    snapshots: Snapshots,
    frame: FrameWriter,
    /// Messages within the partition that are to be delivered in this turn.
    local: VecDeque<Message>,
    /// How much room they take in the frame if they are not.
    local_bytes: usize,
    /// How much room messages take that entities are to be given in this turn, if they are not.
    arrived_bytes: usize,
    /// Inputs that were taken up and did not fit into the frame.
    held: VecDeque<Held>,
    /// Entities with operations that did not fit into the frame.
    backlog: VecDeque<u64>,
    /// Entities to which something has come in this turn.
    touched: Vec<u64>,
    /// Executions that continue as new.
    restarts: VecDeque<u64>,
    names: recover::Names,
    waiters: HashMap<u64, Vec<Reply>>,
    /// The number of the first execution of an identifier that is not in use. It is above those of all executions that
    /// were purged, so that what still comes for one of them is for none of the others.
    generation_next: u64,
    /// As far as the log knows.
    generation_logged: u64,
    /// Instances that are to start later, and the number of the message that will start them.
    pending: HashMap<u64, (Time, u64)>,
    activities_running: usize,
    activities_waiting: Waiting,
    effects: Vec<Effect>,
    counts: Counts,
    on_mismatch: Mismatch,
    /// Purges that one frame had no room for, by what is to be purged.
    purges: HashMap<u64, Purge>,
    /// Parked orchestrations whose code is to be tried.
    retries: VecDeque<u64>,
    worksite: Worksite,
    /// Another partition has stopped, with this error: waits that may need it fail.
    stopped_elsewhere: Option<Error>,
    decisions: Vec<EventKind>,
    scratch: Vec<u8>,
    /// Whether something of `scratch` is kept out of line.
    has_spilled: bool,
}

impl Partition {
    /// An empty partition. [`Partition::recover`] must be called before the first turn.
    #[must_use]
    pub fn new(
        id: PartitionId,
        count: u16,
        program: Arc<dyn Program>,
        store: Arc<dyn Store>,
        options: &HubOptions,
    ) -> Self {
        Self {
            id,
            count,
            program,
            mode: options.mode,
            activities_max: options.activities_running_max,
            bytes_max: options.instance_bytes_max,
            bounds: Bounds::new(store.batching()),
            now: Time(0),
            next: Position(0),
            durable: Position(0),
            table: Table::default(),
            cursors: Cursors::new(options.cursor_cache_bytes),
            timers: Timers::default(),
            outbox: Outbox::new(count),
            gate: Gate::default(),
            spiller: Spiller::new(id, store, options.spill_above_bytes),
            snapshots: Snapshots::new(id, options.snapshot_after_bytes),
            frame: FrameWriter::new(),
            local: VecDeque::new(),
            local_bytes: 0,
            arrived_bytes: 0,
            held: VecDeque::new(),
            backlog: VecDeque::new(),
            touched: Vec::new(),
            restarts: VecDeque::new(),
            names: recover::Names::default(),
            waiters: HashMap::new(),
            generation_next: 0,
            generation_logged: 0,
            pending: HashMap::new(),
            activities_running: 0,
            activities_waiting: Waiting::default(),
            effects: Vec::new(),
            counts: Counts::default(),
            on_mismatch: options.on_mismatch,
            purges: HashMap::new(),
            retries: VecDeque::new(),
            worksite: Worksite::default(),
            stopped_elsewhere: None,
            decisions: Vec::new(),
            scratch: Vec::new(),
            has_spilled: false,
        }
    }

    /// Deals with what is due and with inputs, and writes a frame if that changed anything.
    /// Takes inputs only as long as the frame is not too large; the rest stay in `inputs`. Inputs put off for lack of
    /// room come before newer ones.
    pub fn turn(&mut self, inputs: &mut dyn Iterator<Item = Input>, now: Time) -> Option<Sealed<'_>> {
        self.now = self.now.followed_by(now);
        self.snapshot_step();
        self.frame.begin(self.now);
        self.fire();
        if self.timers.next().is_none_or(|due| due > self.now) {
            self.take_in(inputs);
        }
        self.settle();
        self.cursors.shrink();
        if self.spiller.fault().is_some() { None } else { self.seal() }
    }

    /// Why the partition cannot go on: the store did not give back a large payload. The last turn must then
    /// be discarded.
    #[must_use]
    pub fn fault(&self) -> Option<StoreError> {
        self.spiller.fault()
    }

    /// Whether the frame has no room for anything more to be taken up. What has been may yet have to be written.
    fn is_full(&self) -> bool {
        self.frame.len() + self.local_bytes + self.arrived_bytes >= self.bounds.frame_bytes
    }

    /// Whether the frame has no room for another step of what has been taken up, so that this is put off.
    fn is_spent(&self) -> bool {
        self.frame.len() + self.local_bytes >= self.bounds.frame_bytes
    }

    fn fire(&mut self) {
        for _ in 0..self.bounds.due {
            if self.is_full() {
                break;
            }
            let Some(due) = self.timers.pop(self.now) else { break };
            self.due(due);
        }
    }

    fn take_in(&mut self, inputs: &mut dyn Iterator<Item = Input>) {
        while !self.is_full()
            && let Some(held) = self.held.pop_front()
        {
            match held {
                Held::Messages { from, first, messages } => self.messages(from, first, messages),
                Held::Each { messages, results, reply } => self.deliver_each(messages, results, reply),
            }
        }
        while self.held.is_empty()
            && !self.is_full()
            && let Some(input) = inputs.next()
        {
            self.take(input);
        }
    }

    fn take(&mut self, input: Input) {
        match input {
            Input::TaskDone { task, result } => self.task_done(task, result),
            Input::Messages { from, first, messages } => self.messages(from, first, messages.into()),
            Input::Acknowledged { by, up_to } if self.outbox.knows(by) => {
                self.outbox.arrived(by, up_to);
                self.hand_over(by);
            }
            Input::Probe { from, up_to } if self.outbox.knows(from) => self.probed(from, up_to),
            Input::Missing { by, first, before } if self.outbox.knows(by) => self.resend(by, first, before),
            Input::Repeat { to: Some(to) } if self.outbox.knows(to) => self.probe(to),
            Input::Repeat { to: None } => {
                let stuck: Vec<PartitionId> = self.outbox.stuck().collect();
                stuck.into_iter().for_each(|to| self.probe(to));
            }
            Input::Acknowledged { .. } | Input::Probe { .. } | Input::Missing { .. } | Input::Repeat { .. } => {}
            Input::Request(request) => self.request(request),
        }
    }

    fn task_done(&mut self, task: TaskKey, result: Result<Payload, crate::failure::Failure>) {
        self.activities_running = self.activities_running.saturating_sub(1);
        if let Some((key, call)) = self.next_waiting() {
            self.activities_running += 1;
            self.effects.push(Effect::Run(key, call));
        }
        if self.is_execution_parked(task.handle, Some(task.generation)) {
            return self.keep_result(task, result.map_err(crate::failure::Failure::bounded));
        }
        let kind = match result {
            Ok(result) => EventKind::TaskCompleted { id: task.id, result },
            Err(failure) => EventKind::TaskFailed { id: task.id, failure: failure.bounded() },
        };
        self.feed(task.handle, Some(task.generation), kind);
    }

    fn messages(&mut self, from: PartitionId, mut first: u64, mut messages: VecDeque<Message>) {
        if !self.outbox.knows(from) {
            return;
        }
        if let Some(missing) = self.outbox.new_gap(from, first) {
            self.gate.stage(Gated::Missing(from, missing, first));
        }
        while !self.is_full()
            && let Some(message) = messages.pop_front()
        {
            if self.outbox.take(from, first) {
                self.deliver(message);
            } else {
                self.outbox.keep_early(from, first, message);
            }
            first += 1;
            if messages.is_empty() {
                messages = self.outbox.early_run(from);
                first = self.outbox.taken(from) + 1;
            }
        }
        if !messages.is_empty() {
            self.held.push_back(Held::Messages { from, first, messages });
        }
        // Messages taken earlier are acknowledged again: the sender may have crashed before it heard.
        let taken = self.outbox.taken(from);
        self.gate.stage(Gated::Acknowledge(from, taken));
    }

    /// Reports to a sender what has not come of what it has sent.
    fn probed(&mut self, from: PartitionId, up_to: u64) {
        for (first, before) in self.outbox.gaps(from, up_to) {
            self.gate.stage(Gated::Missing(from, first, before));
        }
        let taken = self.outbox.taken(from);
        self.gate.stage(Gated::Acknowledge(from, taken));
    }

    fn due(&mut self, due: Due) {
        match due {
            Due::Timer(key) => {
                self.feed(key.handle, Some(key.generation), EventKind::TimerFired { id: key.id });
            }
            Due::Message(number, message) => {
                self.frame.undeferred(number);
                if let Some(handle) = self.table.handle(&message.to)
                    && self.pending.get(&handle).is_some_and(|(_, start)| *start == number)
                {
                    self.pending.remove(&handle);
                }
                self.deliver(message);
            }
        }
    }

    /// Deals with what the turn's inputs brought about within the partition, as far as the turn's bounds allow.
    fn settle(&mut self) {
        let mut messages = 0;
        // What was put off for lack of room is due at once, and nothing may overtake it.
        let has_due = self.timers.next().is_some_and(|due| due <= self.now);
        loop {
            if let Some(handle) = self.touched.pop() {
                self.operate(handle);
                continue;
            }
            if messages >= self.bounds.local_messages || self.is_full() {
                break;
            }
            messages += 1;
            if !has_due && let Some(message) = self.next_local() {
                self.deliver(message);
            } else if let Some(handle) = self.restarts.pop_front() {
                self.restart(handle);
            } else if let Some(handle) = self.retries.pop_front() {
                self.retry(handle);
            } else if let Some(handle) = self.backlog.pop_front() {
                self.operate(handle);
            } else {
                break;
            }
        }
        while let Some(message) = self.next_local() {
            self.post(self.id, message);
        }
        assert_eq!((self.local_bytes, self.arrived_bytes), (0, 0), "all that was taken up is dealt with or put off");
    }

    fn next_local(&mut self) -> Option<Message> {
        let message = self.local.pop_front()?;
        self.local_bytes -= self.measure().message(&message);
        Some(message)
    }

    fn measure(&self) -> Measure {
        self.spiller.measure()
    }

    fn seal(&mut self) -> Option<Sealed<'_>> {
        for (from, up_to) in self.outbox.newly_taken() {
            self.frame.consumed(from, up_to);
        }
        if self.frame.is_empty() {
            self.gate.close(self.next);
            self.release();
            return None;
        }
        for (by, up_to) in self.outbox.newly_arrived() {
            self.frame.acknowledged(by, up_to);
        }
        if self.generation_next > self.generation_logged {
            self.generation_logged = self.generation_next;
            self.frame.next_generation(self.generation_next);
        }
        for to in 0..self.count {
            let to = PartitionId(to);
            if let Some(up_to) = self.outbox.newly_sent(to) {
                self.gate.stage(Gated::Send(to, up_to));
            }
        }
        let blobs = self.spiller.take_fresh();
        if !blobs.is_empty() {
            self.gate.stage(Gated::Kept(self.spiller.next()));
        }
        let (bytes, most) = (self.frame.len(), self.bounds.frame_bytes_max());
        assert!(bytes <= most, "a frame of {bytes} bytes, at most {most} were to come of a turn");
        let position = self.next;
        self.next.0 += 1;
        self.gate.close(self.next);
        self.counts.frames += 1;
        self.counts.frame_bytes += self.frame.len() as u64;
        self.snapshots.written(self.frame.len() as u64);
        Some(Sealed { position, blobs, frame: self.frame.as_bytes() })
    }

    /// The log is durable up to here.
    pub fn confirm(&mut self, durable: Position) {
        self.durable = self.durable.max(durable.min(self.next));
        self.release();
    }

    fn release(&mut self) {
        while let Some(gated) = self.gate.pass(self.durable) {
            match gated {
                Gated::Run(key, call) => self.run(key, call),
                Gated::Send(to, up_to) => {
                    self.outbox.allow(to, up_to);
                    self.hand_over(to);
                }
                Gated::Acknowledge(to, up_to) => self.effects.push(Effect::Acknowledge { to, up_to }),
                Gated::Missing(to, first, before) => self.effects.push(Effect::Missing { to, first, before }),
                Gated::Respond(reply, response) => self.effects.push(Effect::Respond(reply, response)),
                Gated::Kept(below) => self.spiller.kept(below),
                Gated::Snapshot => self.snapshot_durable(),
            }
        }
    }

    /// Gives the receiver what it has not been given, in lots that fit into a frame there.
    fn hand_over(&mut self, to: PartitionId) {
        loop {
            let (first, messages) = self.outbox.hand_over(to, self.bounds.lot);
            if messages.is_empty() {
                return;
            }
            self.effects.push(Effect::Send { to, first, messages });
        }
    }

    /// Has a partition say what it misses of what it has not acknowledged. The first few go with that, as they may be all.
    fn probe(&mut self, to: PartitionId) {
        let Some(up_to) = self.outbox.unconfirmed(to) else { return };
        let (first, messages) = self.outbox.again(to, 0, u64::MAX, self.bounds.lot.min(PROBE_MESSAGES));
        self.effects.push(Effect::Send { to, first, messages });
        self.effects.push(Effect::Probe { to, up_to });
    }

    /// Gives the receiver again what it misses, in lots.
    fn resend(&mut self, to: PartitionId, mut next: u64, before: u64) {
        loop {
            let (first, messages) = self.outbox.again(to, next, before, self.bounds.lot);
            if messages.is_empty() {
                return;
            }
            next = first + messages.len() as u64;
            self.effects.push(Effect::Send { to, first, messages });
        }
    }

    fn run(&mut self, key: TaskKey, call: ActivityCall) {
        if self.activities_running < self.activities_max {
            self.activities_running += 1;
            self.effects.push(Effect::Run(key, call));
        } else {
            self.activities_waiting.push(key, call);
        }
    }

    /// Sends a message to wherever its receiver lives. Within the partition it goes on in this turn, unless earlier ones,
    /// which it must not overtake, had to wait for the next.
    fn send(&mut self, message: Message) {
        let to = message.to.partition(self.count);
        if to == self.id && self.mode == Mode::Speculative && self.outbox.is_drained(to) {
            self.local_bytes += self.measure().message(&message);
            self.local.push_back(message);
        } else {
            self.post(to, message);
        }
    }

    fn post(&mut self, to: PartitionId, message: Message) {
        let sequence = self.outbox.sent(to) + 1;
        self.spiller.tighten(self.frame.len());
        self.frame.sent(to, sequence, &message, &mut self.spiller);
        self.outbox.send(to, message);
    }

    fn respond(&mut self, reply: Reply, response: Result<Response, Error>) {
        self.gate.stage(Gated::Respond(reply, response));
    }

    /// What has to happen outside, in order. The caller takes it out.
    pub fn effects(&mut self) -> &mut Vec<Effect> {
        &mut self.effects
    }

    /// How far the ways to and from each partition have come, as far as this one knows.
    pub(crate) fn crossings(&self) -> Vec<Crossing> {
        self.outbox.crossings()
    }

    /// When the next timer or deferred message is due.
    #[must_use]
    pub fn next_due(&self) -> Option<Time> {
        self.timers.next()
    }

    /// The position that the next frame will have.
    #[must_use]
    pub fn position(&self) -> Position {
        self.next
    }

    /// Whether the next turn has something to do without any input: a snapshot that is under way, or what was put off.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        let has_put_off = !self.restarts.is_empty() || !self.held.is_empty();
        let has_put_off = has_put_off || !self.backlog.is_empty() || !self.retries.is_empty();
        self.snapshots.is_under_way() || has_put_off
    }

    /// Where the partition is to note whose code it runs.
    pub(crate) fn report_to(&mut self, worksite: Worksite) {
        self.worksite = worksite;
    }

    /// Another partition has stopped. Whether what is waited for here needs it is not known, so all waits end with the
    /// reason, and so do new ones for what has not ended.
    pub(crate) fn fail_waits(&mut self, error: &Error) {
        let waiting = self.waiters.drain().flat_map(|(_, replies)| replies);
        self.effects.extend(waiting.map(|reply| Effect::Respond(reply, Err(error.clone()))));
        self.stopped_elsewhere = Some(error.clone());
    }

    /// Reports to everybody who waits that the partition has stopped. It takes no requests afterwards.
    pub fn stop(&mut self, error: &Error) {
        let mut replies: Vec<Reply> = self.waiters.drain().flat_map(|(_, replies)| replies).collect();
        replies.extend(self.purges.drain().flat_map(|(_, purge)| purge.into_replies()));
        replies.extend(self.held.drain(..).filter_map(|held| match held {
            Held::Each { reply, .. } => Some(reply),
            Held::Messages { .. } => None,
        }));
        replies.extend(self.gate.drain().filter_map(|gated| match gated {
            Gated::Respond(reply, _) => Some(reply),
            _ => None,
        }));
        self.effects.clear();
        self.effects.extend(replies.into_iter().map(|reply| Effect::Respond(reply, Err(error.clone()))));
    }
}
