//! Steps of orchestrations: an outside event in, the code's decisions written down and acted on.

use crate::client::Status;
use crate::codec::Events;
use crate::event::{Caller, Event, EventKind};
use crate::failure::{Failure, FailureKind};
use crate::ids::{EntityId, Name, Time};
use crate::message::{Message, MessageKind, Reuse};
use crate::partition::deliver::StartRequest;
use crate::partition::gate::GatedEffect;
use crate::partition::input::TaskKey;
use crate::partition::table::{Execution, Instance};
use crate::partition::{Partition, Response};
use crate::payload::Payload;
use crate::program::{ActivityCall, Progress};

/// The execution that follows one that continued as new.
struct NextExecution {
    request: StartRequest,
    generation: u64,
    unread: Vec<(Name, Payload)>,
}

impl Partition {
    /// Begins an execution of an instance that has no history.
    pub(super) fn begin(&mut self, handle: u64, request: StartRequest) {
        let kind = self.code.started(self.table.running(handle).generation, request);
        self.step(handle, kind);
    }

    /// Writes the beginning of an execution whose code will never run.
    pub(super) fn write_started(&mut self, handle: u64, request: StartRequest) {
        let kind = self.code.started(self.table.running(handle).generation, request);
        self.note_started(handle, &kind);
        let time = self.now;
        self.encode(handle, &Event { time, kind }, &[]);
        self.write(handle, time);
    }

    /// Feeds an outside event to an orchestration, if that execution of it runs. Says whether the code took it.
    pub(super) fn feed(&mut self, handle: u64, generation: Option<u64>, kind: EventKind) -> bool {
        // A timer or a result may come for an instance that was purged, or whose identifier an entity has.
        let Some(execution) = self.table.get(handle).and_then(Instance::execution) else { return false };
        let runs = matches!(execution.status, Status::Running | Status::Suspended);
        if !runs || generation.is_some_and(|generation| generation != execution.generation) {
            return false;
        }
        if execution.is_continuing {
            // A result is for the execution that has ended; an event for the instance is for the next one.
            return generation.is_none() && self.feed_next(handle, kind);
        }
        self.step(handle, kind)
    }

    /// Feeds an event to the execution that follows one that has continued as new, which has to begin first.
    fn feed_next(&mut self, handle: u64, kind: EventKind) -> bool {
        self.restart(handle);
        if !self.table.running(handle).is_continuing && !self.is_full() {
            return self.feed(handle, None, kind);
        }
        // It continued at once, or filled the frame: the event goes on in the next turn, so that this one ends.
        let kind = match kind {
            EventKind::EventRaised { name, data } => MessageKind::Raise { name, data },
            EventKind::Suspended { reason } => MessageKind::Suspend { reason },
            EventKind::Resumed { reason } => MessageKind::Resume { reason },
            _ => return false,
        };
        let to = self.table.known(handle).id.clone();
        self.put_off(Message { to, kind });
        true
    }

    fn step(&mut self, handle: u64, kind: EventKind) -> bool {
        let instance = self.table.known(handle);
        self.code.last_instance.enter(&instance.id);
        let event = Event { time: instance.updated.followed_by(self.now), kind };
        self.note_started(handle, &event.kind);
        let mut decisions = std::mem::take(&mut self.code.decisions);
        let progress = match self.ready(handle, &event.kind) {
            Ok(()) => self.code.cursors.get(handle).expect("a cursor that is ready").feed(&event, &mut decisions),
            Err(failure) if self.code.parks(&failure) => {
                self.code.decisions = decisions;
                self.park(handle, &failure, event.kind);
                return true;
            }
            Err(failure) => {
                decisions.push(EventKind::Failed { failure });
                Progress::Ended
            }
        };
        if progress == Progress::Ignored {
            decisions.clear();
            self.code.decisions = decisions;
            return false;
        }
        let encoded = self.encode(handle, &event, &decisions);
        let (bytes, most) = (encoded.max(self.sent_bytes(handle, &decisions)), self.settings.bounds.step_bytes);
        if bytes > most {
            let text = format!("one step decided on {bytes} bytes, at most {most} are allowed");
            decisions = vec![EventKind::Failed { failure: Failure::new(FailureKind::Limit, text) }];
            self.encode(handle, &event, &decisions);
        }
        self.write(handle, event.time);
        self.note_outside(handle, event.kind);
        for decision in decisions.drain(..) {
            self.act(handle, decision);
        }
        self.code.decisions = decisions;
        self.code.cursors.measure(handle);
        true
    }

    /// Room that the messages of decisions take.
    fn sent_bytes(&self, handle: u64, decisions: &[EventKind]) -> usize {
        let sender = self.table.known(handle).id.as_str().len();
        let sent: usize = decisions.iter().map(|decision| self.log.measure().sent_by(decision, sender)).sum();
        // Locks that are held are freed at the end, in the same frame: that must fit at any time.
        let counts = |decision: &EventKind| decision.is_end() || matches!(decision, EventKind::LockRequested { .. });
        let execution = self.table.running(handle);
        if !execution.has_locks || !decisions.iter().any(counts) {
            return sent;
        }
        let held = super::view::open_locks(execution).into_iter();
        let freed =
            held.map(|(id, entities)| self.log.measure().sent_by(&EventKind::LockReleased { id, entities }, sender));
        sent + freed.sum::<usize>()
    }

    fn ready(&mut self, handle: u64, next: &EventKind) -> Result<(), Failure> {
        if self.code.is_ready(handle) {
            return Ok(());
        }
        self.code.make_ready(handle, self.table.known(handle), next, &self.log.spiller)
    }

    /// Whether the code of a parked orchestration fits its history.
    pub(super) fn replay_parked(&mut self, handle: u64) -> bool {
        // Any event but the first asks for a replay.
        self.ready(handle, &EventKind::Resumed { reason: String::new() }).is_ok()
    }

    /// Encodes an event and the decisions it caused. Gives the number of bytes.
    fn encode(&mut self, handle: u64, event: &Event, decisions: &[EventKind]) -> usize {
        let instance = self.table.known(handle);
        let is_first = instance.orchestration().history.is_empty();
        let previous = if is_first { Time(0) } else { instance.updated };
        self.log.encode(previous, event, decisions)
    }

    /// Writes the encoded events to the history and the frame.
    fn write(&mut self, handle: u64, time: Time) {
        let instance = self.table.known_mut(handle);
        let before = instance.bytes();
        instance.updated = time;
        self.log.append(handle, instance.orchestration_mut());
        self.table.resized(handle, before);
    }

    fn note_started(&mut self, handle: u64, kind: &EventKind) {
        let EventKind::Started { name, version, generation, parent, .. } = kind else { return };
        let execution = self.table.running_mut(handle);
        execution.name = name.clone();
        execution.version = *version;
        execution.generation = *generation;
        execution.parent = parent.clone().map(Box::new);
        self.table.set_status(handle, Status::Running);
    }

    fn note_outside(&mut self, handle: u64, kind: EventKind) {
        match kind {
            EventKind::Suspended { .. } => self.table.set_status(handle, Status::Suspended),
            EventKind::Resumed { .. } => self.table.set_status(handle, Status::Running),
            EventKind::EventRaised { .. } | EventKind::TimerFired { .. } => self.counts.events += 1,
            EventKind::TaskCompleted { .. }
            | EventKind::TaskFailed { .. }
            | EventKind::SubCompleted { .. }
            | EventKind::SubFailed { .. }
            | EventKind::OperationCompleted { .. }
            | EventKind::OperationFailed { .. } => self.counts.events += 2,
            _ => {}
        }
    }

    pub(super) fn set_continuing(&mut self, handle: u64) {
        self.table.running_mut(handle).is_continuing = true;
    }

    fn act(&mut self, handle: u64, decision: EventKind) {
        match decision {
            EventKind::TaskScheduled { id, name, input } => self.schedule(handle, id, name, input),
            EventKind::TimerCreated { id, at } => self.timers.add(self.key(handle, id), at),
            EventKind::TimerCancelled { id } => self.timers.cancel(self.key(handle, id)),
            EventKind::SubScheduled { id, name, version, instance, input, awaited } => {
                let parent = awaited.then(|| self.caller(handle, id));
                let kind = MessageKind::Start { name, version, input, parent, at: None, reuse: Reuse::IfEnded };
                self.send(Message { to: instance, kind });
            }
            EventKind::EventSent { instance, name, data, .. } => {
                self.send(Message { to: instance, kind: MessageKind::Raise { name, data } });
            }
            EventKind::EntityCalled { id, entity, operation, input } => {
                let caller = Some(self.caller(handle, id));
                let kind = MessageKind::Operate { operation, input, caller, at: None };
                self.send(Message { to: entity.instance().clone(), kind });
            }
            EventKind::EntitySignalled { entity, operation, input, at, .. } => {
                let kind = MessageKind::Operate { operation, input, caller: None, at };
                self.send(Message { to: entity.instance().clone(), kind });
            }
            EventKind::LockRequested { id, entities } => self.lock(handle, id, entities),
            EventKind::LockReleased { id, entities } => {
                let owner = self.caller(handle, id);
                self.unlock(&owner, entities);
            }
            EventKind::StatusSet { .. } => self.table.running_mut(handle).has_status = true,
            EventKind::Completed { output } => self.end(handle, Status::Completed, Ok(output)),
            EventKind::Failed { failure } => self.end(handle, Status::Failed, Err(failure)),
            EventKind::ContinuedAsNew { .. } => {
                self.release_all(handle);
                self.set_continuing(handle);
                self.work.restarts.push_back(handle);
            }
            _ => {}
        }
    }

    fn key(&self, handle: u64, id: u32) -> TaskKey {
        TaskKey { handle, generation: self.table.running(handle).generation, id }
    }

    fn caller(&self, handle: u64, id: u32) -> Caller {
        let instance = self.table.known(handle);
        Caller { instance: instance.id.clone(), generation: instance.orchestration().generation, id }
    }

    fn schedule(&mut self, handle: u64, id: u32, name: Name, input: Payload) {
        let key = self.key(handle, id);
        let instance = self.table.known(handle).id.clone();
        let call = ActivityCall { name, input, instance, generation: key.generation, id };
        if self.settings.mode == crate::options::Mode::Speculative
            && self.code.program.is_idempotent(call.name.as_str())
        {
            self.activities.run(key, call, &mut self.output);
        } else {
            self.output.gate.stage(GatedEffect::Run(key, call));
        }
    }

    fn lock(&mut self, handle: u64, id: u32, entities: Vec<EntityId>) {
        self.table.running_mut(handle).has_locks = true;
        // User code may request a lock of nothing, for which no entity can send a grant.
        let Some(first) = entities.first() else { return };
        let (owner, to) = (self.caller(handle, id), first.instance().clone());
        self.send(Message { to, kind: MessageKind::Lock { owner, entities, next: 0 } });
    }

    /// Ends an execution from outside.
    pub(super) fn cut_off(&mut self, handle: u64, reason: String) {
        let instance = self.table.known(handle);
        let time = instance.updated.followed_by(self.now);
        for sub in super::view::open_subs(instance.orchestration()) {
            let reason = reason.clone();
            self.send(Message { to: sub, kind: MessageKind::Terminate { reason } });
        }
        self.encode(handle, &Event { time, kind: EventKind::Terminated { reason: reason.clone() } }, &[]);
        self.write(handle, time);
        self.end(handle, Status::Terminated, Err(Failure::new(FailureKind::Terminated, reason)));
    }

    fn end(&mut self, handle: u64, status: Status, result: Result<Payload, Failure>) {
        self.forget_parked(handle);
        self.release_all(handle);
        self.table.set_status(handle, status);
        self.counts.ended += 1;
        let instance = self.table.known_mut(handle);
        let before = instance.bytes();
        let execution = instance.orchestration_mut();
        execution.history.shrink_to_fit();
        let parent = execution.parent.clone();
        self.table.resized(handle, before);
        if let Some(replies) = self.waits.take(handle) {
            let view = self.reader().view_ended(handle, &result);
            for reply in replies {
                self.output.respond(reply, view.clone().map(|view| Response::View(Some(Box::new(view)))));
            }
        }
        if let Some(Caller { instance, generation, id }) = parent.map(|parent| *parent) {
            self.send(Message { to: instance, kind: MessageKind::SubDone { generation, id, result } });
        }
    }

    /// Drops what only a running execution needs, and frees the entities it has locked.
    fn release_all(&mut self, handle: u64) {
        self.code.cursors.remove(handle);
        let instance = self.table.known(handle);
        let execution = instance.orchestration();
        let generation = execution.generation;
        let locks = if execution.has_locks { super::view::open_locks(execution) } else { Vec::new() };
        let id = instance.id.clone();
        self.timers.forget(handle, generation);
        for (lock, entities) in locks {
            self.unlock(&Caller { instance: id.clone(), generation, id: lock }, entities);
        }
    }

    /// Begins the next execution of an instance whose history ends with continue-as-new.
    pub(super) fn restart(&mut self, handle: u64) {
        // An event that came first has begun it already, or it was terminated or purged meanwhile.
        let Some(NextExecution { request, unread, .. }) = self.renew(handle) else { return };
        self.begin(handle, request);
        let to = self.table.known(handle).id.clone();
        for (name, data) in unread {
            let is_parked = self.table.is_parked(handle);
            if is_parked || self.is_full() {
                let message = Message { to: to.clone(), kind: MessageKind::Raise { name, data } };
                if let Some(message) = self.keep_if_parked(message) {
                    self.put_off(message);
                }
            } else {
                // The generation may count on meanwhile.
                self.feed(handle, None, EventKind::EventRaised { name, data });
            }
        }
    }

    /// Begins the next execution, if there is to be one, and leaves its code alone: it is about to be ended.
    pub(super) fn begin_unrun(&mut self, handle: u64) {
        if let Some(NextExecution { request, .. }) = self.renew(handle) {
            self.write_started(handle, request);
        }
    }

    /// Puts an empty history in the place of one that ends with continue-as-new.
    fn renew(&mut self, handle: u64) -> Option<NextExecution> {
        let next = self.next_execution(handle)?;
        self.table.set_status(handle, Status::Pending);
        let instance = self.table.known_mut(handle);
        let before = instance.bytes();
        let time = instance.updated.followed_by(self.now);
        instance.updated = time;
        *instance.orchestration_mut() = Execution::pending(next.generation);
        self.table.resized(handle, before);
        self.log.frame.restarted(handle, time, &[]);
        Some(next)
    }

    fn next_execution(&self, handle: u64) -> Option<NextExecution> {
        let execution = self.table.get(handle)?.execution().filter(|execution| execution.is_continuing)?;
        let mut reader = self.log.spiller.step_reader();
        let last = Events::new(&execution.history, Time(0), &mut reader).last()?.ok()?;
        // Bytes that a checksum has passed may still be another program's.
        let EventKind::ContinuedAsNew { input, unread } = last.kind else { return None };
        let request = StartRequest {
            name: execution.name.clone(),
            version: Some(execution.version),
            input,
            parent: execution.parent.as_deref().cloned(),
        };
        Some(NextExecution { request, generation: execution.generation + 1, unread })
    }
}
