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

mod activities;
mod bounds;
mod code;
mod counts;
mod cursors;
mod deliver;
mod entity;
mod gate;
mod generations;
mod input;
mod last_instance;
mod log;
mod maintain;
mod orchestration;
mod outbox;
mod output;
mod park;
mod purge;
mod queries;
mod queue;
mod recover;
mod requests;
mod salvage;
mod settings;
#[cfg(test)]
mod simulation;
mod size;
mod snapshot;
mod spill;
mod table;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod timers;
mod view;
mod waits;
mod work;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

pub use counts::Counts;
pub use input::{Effect, Input, Reply, Request, RequestKind, Response, TaskKey, Values};
pub(crate) use last_instance::LastInstance;
pub use maintain::Change;
pub(crate) use outbox::LaneProgress;
pub(crate) use salvage::Snapshot as SalvagedSnapshot;
pub(crate) use size::room;
pub use snapshot::FinishedSnapshot;

use crate::error::Error;
use crate::event::EventKind;
use crate::failure::Failure;
use crate::ids::{PartitionId, Position, Time};
use crate::message::Message;
use crate::options::{HubOptions, Mode};
use crate::payload::Payload;
use crate::program::Program;
use crate::store::{Store, StoreError};

use activities::Activities;
use code::Code;
use gate::GatedEffect;
use generations::Generations;
use log::Log;
use outbox::{Gap, Outbox};
use output::Output;
use purge::Purge;
use settings::Settings;
use snapshot::Snapshots;
use spill::Spiller;
use table::Table;
use timers::{Due, Timers};
use waits::Waits;
use work::{InputRest, Work};

/// The output of a turn, to be written durably and in this order: blobs, then the frame.
#[derive(Debug)]
pub struct SealedFrame<'a> {
    /// The place of the frame in the log.
    pub position: Position,
    /// Names and bytes of payloads that the frame refers to.
    pub blobs: Vec<(String, Payload)>,
    /// The frame.
    pub frame: &'a [u8],
}

/// A partition. See the module.
pub struct Partition {
    settings: Settings,
    now: Time,
    code: Code,
    /// The instances.
    table: Table,
    generations: Generations,
    timers: Timers,
    activities: Activities,
    /// Both ends of the ways to all partitions.
    outbox: Outbox,
    log: Log,
    snapshots: Snapshots,
    work: Work,
    waits: Waits,
    /// Purges that one frame had no room for, by the handle of the instance that is to be purged.
    purges: HashMap<u64, Purge>,
    output: Output,
    counts: Counts,
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
            settings: Settings::new(id, count, store.batching(), options),
            now: Time(0),
            code: Code::new(program, options),
            table: Table::default(),
            generations: Generations::default(),
            timers: Timers::default(),
            activities: Activities::new(options.activities_running_max),
            outbox: Outbox::new(count),
            log: Log::new(Spiller::new(id, store, options.spill_above_bytes)),
            snapshots: Snapshots::new(id, options.snapshot_after_bytes),
            work: Work::default(),
            waits: Waits::default(),
            purges: HashMap::new(),
            output: Output::default(),
            counts: Counts::default(),
        }
    }

    /// Processes due timers and inputs, and writes a frame if that changed anything.
    /// Takes inputs only as long as the frame is not too large; the rest stay in `inputs`. Inputs put off for lack of
    /// room come before newer ones.
    pub fn turn(&mut self, inputs: &mut dyn Iterator<Item = Input>, now: Time) -> Option<SealedFrame<'_>> {
        self.now = self.now.followed_by(now);
        self.snapshot_step();
        self.log.frame.begin(self.now);
        self.fire();
        if self.timers.next().is_none_or(|due| due > self.now) {
            self.take_in(inputs);
        }
        self.settle();
        self.code.cursors.shrink();
        if self.log.spiller.fault().is_some() { None } else { self.seal() }
    }

    /// Why the partition cannot go on: the store did not give back a large payload. The last turn must then
    /// be discarded.
    #[must_use]
    pub fn fault(&self) -> Option<StoreError> {
        self.log.spiller.fault()
    }

    /// Whether the frame has no room for another input. Inputs taken up may yet have to be written.
    fn is_full(&self) -> bool {
        self.log.frame.len() + self.work.bytes() >= self.settings.bounds.frame_bytes
    }

    /// Whether the frame has no room for another step of inputs taken up, so that they are put off.
    fn is_spent(&self) -> bool {
        self.log.frame.len() + self.work.local_bytes() >= self.settings.bounds.frame_bytes
    }

    fn fire(&mut self) {
        for _ in 0..self.settings.bounds.due {
            if self.is_full() {
                break;
            }
            let Some(due) = self.timers.pop(self.now) else { break };
            self.due(due);
        }
    }

    fn take_in(&mut self, inputs: &mut dyn Iterator<Item = Input>) {
        while !self.is_full()
            && let Some(rest) = self.work.inputs.pop_front()
        {
            match rest {
                InputRest::Messages { from, first, messages } => self.messages(from, first, messages),
                InputRest::Each { messages, results, reply } => self.deliver_each(messages, results, reply),
            }
        }
        while self.work.inputs.is_empty()
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
                self.output.hand_over(&mut self.outbox, by, self.settings.bounds.lot);
            }
            Input::Probe { from, up_to } if self.outbox.knows(from) => self.probed(from, up_to),
            Input::Missing { by, first, before } if self.outbox.knows(by) => {
                self.output.resend(&mut self.outbox, by, Gap { first, before }, self.settings.bounds.lot);
            }
            Input::Repeat { to: Some(to) } if self.outbox.knows(to) => self.probe(to),
            Input::Repeat { to: None } => {
                let stuck: Vec<PartitionId> = self.outbox.stuck().collect();
                stuck.into_iter().for_each(|to| self.probe(to));
            }
            Input::Acknowledged { .. } | Input::Probe { .. } | Input::Missing { .. } | Input::Repeat { .. } => {}
            Input::Request(request) => self.request(request),
        }
    }

    fn task_done(&mut self, task: TaskKey, result: Result<Payload, Failure>) {
        self.activities.ended();
        if let Some((key, call)) = self.next_activity() {
            self.activities.start(key, call, &mut self.output);
        }
        if self.table.is_execution_parked(task.handle, Some(task.generation)) {
            return self.keep_result(task, result.map_err(Failure::bounded));
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
        if let Some(gap) = self.outbox.new_gap(from, first) {
            self.output.gate.stage(GatedEffect::Missing(from, gap));
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
            self.work.inputs.push_back(InputRest::Messages { from, first, messages });
        }
        // Messages taken earlier are acknowledged again: the sender may have crashed before it heard.
        let taken = self.outbox.taken(from);
        self.output.gate.stage(GatedEffect::Acknowledge(from, taken));
    }

    /// Reports to a sender which of its messages have not come.
    fn probed(&mut self, from: PartitionId, up_to: u64) {
        for gap in self.outbox.gaps(from, up_to) {
            self.output.gate.stage(GatedEffect::Missing(from, gap));
        }
        let taken = self.outbox.taken(from);
        self.output.gate.stage(GatedEffect::Acknowledge(from, taken));
    }

    fn due(&mut self, due: Due) {
        match due {
            Due::Timer(key) => {
                self.feed(key.handle, Some(key.generation), EventKind::TimerFired { id: key.id });
            }
            Due::Message(number, message) => {
                self.log.frame.undeferred(number);
                if let Some(handle) = self.table.handle(&message.to) {
                    self.timers.start_delivered(handle, number);
                }
                self.deliver(message);
            }
        }
    }

    /// Processes work that the turn's inputs caused within the partition, as far as the turn's bounds allow.
    fn settle(&mut self) {
        let mut messages = 0;
        // Messages put off for lack of room are due at once, and nothing may overtake them.
        let has_due = self.timers.next().is_some_and(|due| due <= self.now);
        loop {
            if let Some(handle) = self.work.touched.pop() {
                self.operate(handle);
                continue;
            }
            if messages >= self.settings.bounds.local_messages || self.is_full() {
                break;
            }
            messages += 1;
            if !has_due && let Some(message) = self.work.pop_local(self.log.measure()) {
                self.deliver(message);
            } else if let Some(handle) = self.work.restarts.pop_front() {
                self.restart(handle);
            } else if let Some(handle) = self.work.retries.pop_front() {
                self.retry(handle);
            } else if let Some(handle) = self.work.backlog.pop_front() {
                self.operate(handle);
            } else {
                break;
            }
        }
        while let Some(message) = self.work.pop_local(self.log.measure()) {
            self.post(self.settings.id, message);
        }
        assert_eq!(self.work.bytes(), 0, "all that was taken up is dealt with or put off");
    }

    fn seal(&mut self) -> Option<SealedFrame<'_>> {
        for (from, up_to) in self.outbox.newly_taken() {
            self.log.frame.consumed(from, up_to);
        }
        if self.log.frame.is_empty() {
            self.output.gate.close(self.log.position);
            self.release();
            return None;
        }
        for (by, up_to) in self.outbox.newly_arrived() {
            self.log.frame.acknowledged(by, up_to);
        }
        if let Some(next) = self.generations.newly_raised() {
            self.log.frame.next_generation(next);
        }
        for to in (0..self.settings.count).map(PartitionId) {
            if let Some(up_to) = self.outbox.newly_sent(to) {
                self.output.gate.stage(GatedEffect::Send(to, up_to));
            }
        }
        let blobs = self.log.spiller.take_fresh();
        if !blobs.is_empty() {
            self.output.gate.stage(GatedEffect::Kept(self.log.spiller.next()));
        }
        let (bytes, most) = (self.log.frame.len(), self.settings.bounds.frame_bytes_max());
        assert!(bytes <= most, "a frame of {bytes} bytes, at most {most} were to come of a turn");
        let position = self.log.advance();
        self.output.gate.close(self.log.position);
        self.counts.frames += 1;
        self.counts.frame_bytes += self.log.frame.len() as u64;
        self.snapshots.written(self.log.frame.len() as u64);
        Some(SealedFrame { position, blobs, frame: self.log.frame.as_bytes() })
    }

    /// The log is durable up to here.
    pub fn confirm(&mut self, durable: Position) {
        self.log.confirm(durable);
        self.release();
    }

    fn release(&mut self) {
        while let Some(gated) = self.output.gate.pass(self.log.durable) {
            match gated {
                GatedEffect::Run(key, call) => self.activities.run(key, call, &mut self.output),
                GatedEffect::Send(to, up_to) => {
                    self.outbox.allow(to, up_to);
                    self.output.hand_over(&mut self.outbox, to, self.settings.bounds.lot);
                }
                GatedEffect::Acknowledge(to, up_to) => self.output.effects.push(Effect::Acknowledge { to, up_to }),
                GatedEffect::Missing(to, Gap { first, before }) => {
                    self.output.effects.push(Effect::Missing { to, first, before });
                }
                GatedEffect::Respond(reply, response) => self.output.effects.push(Effect::Respond(reply, response)),
                GatedEffect::Kept(below) => self.log.spiller.kept(below),
                GatedEffect::Snapshot => self.snapshots.finish(&mut self.output),
            }
        }
    }

    fn probe(&mut self, to: PartitionId) {
        self.output.probe(&mut self.outbox, to, self.settings.bounds.lot);
    }

    /// Sends a message to wherever its receiver lives. Within the partition it goes on in this turn, unless earlier ones,
    /// which it must not overtake, had to wait for the next.
    fn send(&mut self, message: Message) {
        let to = self.settings.partition_of(&message.to);
        if to == self.settings.id && self.settings.mode == Mode::Speculative && self.outbox.is_drained(to) {
            self.work.push_local(message, self.log.measure());
        } else {
            self.post(to, message);
        }
    }

    fn post(&mut self, to: PartitionId, message: Message) {
        let sequence = self.outbox.sent(to) + 1;
        self.log.sent(to, sequence, &message);
        self.outbox.send(to, message);
    }

    /// Effects that may leave, in order. The caller takes them out.
    pub fn effects(&mut self) -> &mut Vec<Effect> {
        &mut self.output.effects
    }

    /// Progress of the messages to and from each partition, as far as this one knows.
    pub(crate) fn lane_progress(&self) -> Vec<LaneProgress> {
        self.outbox.progress()
    }

    /// When the next timer or deferred message is due.
    #[must_use]
    pub fn next_due(&self) -> Option<Time> {
        self.timers.next()
    }

    /// The position that the next frame will have.
    #[must_use]
    pub fn position(&self) -> Position {
        self.log.position
    }

    /// Whether the next turn has work without any input: a snapshot under way, or inputs put off.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.snapshots.is_under_way() || self.work.has_put_off()
    }

    /// Where the partition is to note whose code it runs.
    pub(crate) fn report_to(&mut self, last_instance: LastInstance) {
        self.code.last_instance = last_instance;
    }

    /// Another partition has stopped. Instances here may wait for it, which is not known, so all waits end with the
    /// reason, and so do new ones for instances that have not ended.
    pub(crate) fn fail_waits(&mut self, error: &Error) {
        self.output.refuse(self.waits.drain(), error);
        self.waits.refuse(error.clone());
    }

    /// Reports to everybody who waits that the partition has stopped. It takes no requests afterwards.
    pub fn stop(&mut self, error: &Error) {
        let mut replies: Vec<Reply> = self.waits.drain().collect();
        replies.extend(self.purges.drain().flat_map(|(_, purge)| purge.into_replies()));
        replies.extend(self.work.drain_replies());
        replies.extend(self.output.clear());
        self.output.refuse(replies.into_iter(), error);
    }
}
