//! Effect of each message on its receiver.

use crate::client::Status;
use crate::codec::KEPT;
use crate::error::Error;
use crate::event::{Caller, EventKind};
use crate::failure::{Failure, FailureKind, bounded};
use crate::ids::{EntityId, InstanceId, Name, Time};
use crate::message::{Message, MessageKind, Reuse};
use crate::partition::Partition;
use crate::partition::table::{EntityState, Execution, Instance, Kind};
use crate::partition::timers::{AT_ONCE, PendingStart};
use crate::partition::view::open_subs;
use crate::payload::Payload;

/// Request of a start, without the receiver.
pub(super) struct StartRequest {
    pub(super) name: Name,
    pub(super) version: Option<u32>,
    pub(super) input: Payload,
    pub(super) parent: Option<Caller>,
}

impl Partition {
    /// Delivers a message of an instance. If it cannot be delivered, the waiting caller gets a failure.
    pub(super) fn deliver(&mut self, message: Message) {
        let waits = match &message.kind {
            MessageKind::Start { parent: Some(parent), .. } => Some(parent.clone()),
            _ => None,
        };
        if let (Err(error), Some(parent)) = (self.tell(message), waits) {
            let result = Err(Failure::new(FailureKind::Conflict, error.to_string()));
            let kind = MessageKind::SubDone { generation: parent.generation, id: parent.id, result };
            self.send(Message { to: parent.instance, kind });
        }
    }

    /// Delivers a message and says why if it cannot be.
    pub(super) fn tell(&mut self, message: Message) -> Result<(), Error> {
        let Some(Message { to, kind }) = self.keep_if_parked(message) else { return Ok(()) };
        match kind {
            MessageKind::Start { name, version, input, parent, at, reuse } => {
                self.start(to, StartRequest { name, version, input, parent }, at, reuse)
            }
            MessageKind::SubDone { generation, id, result } => {
                self.resolve(
                    &to,
                    generation,
                    match result {
                        Ok(result) => EventKind::SubCompleted { id, result },
                        Err(failure) => EventKind::SubFailed { id, failure },
                    },
                );
                Ok(())
            }
            MessageKind::TaskDone { generation, id, result } => {
                self.resolve(
                    &to,
                    generation,
                    match result {
                        Ok(result) => EventKind::TaskCompleted { id, result },
                        Err(failure) => EventKind::TaskFailed { id, failure },
                    },
                );
                Ok(())
            }
            MessageKind::Operated { generation, id, result } => {
                self.resolve(
                    &to,
                    generation,
                    match result {
                        Ok(result) => EventKind::OperationCompleted { id, result },
                        Err(failure) => EventKind::OperationFailed { id, failure },
                    },
                );
                Ok(())
            }
            MessageKind::Locked { generation, id, entities } => {
                if !self.resolve(&to, generation, EventKind::LockGranted { id }) {
                    self.unlock(&Caller { instance: to, generation, id }, entities);
                }
                Ok(())
            }
            MessageKind::Raise { name, data } => self.raise(to, name, data),
            MessageKind::Terminate { reason } => self.terminate(&to, bounded(reason)),
            MessageKind::Suspend { reason } => {
                self.switch(&to, Status::Running, "suspended", EventKind::Suspended { reason: bounded(reason) })
            }
            MessageKind::Resume { reason } => {
                self.switch(&to, Status::Suspended, "resumed", EventKind::Resumed { reason: bounded(reason) })
            }
            MessageKind::Purge => self.purge(&to).map(drop),
            kind @ (MessageKind::Operate { .. } | MessageKind::Lock { .. } | MessageKind::Unlock { .. }) => {
                self.touch(to, kind)
            }
        }
    }

    fn resolve(&mut self, to: &InstanceId, generation: u64, kind: EventKind) -> bool {
        self.table.handle(to).is_some_and(|handle| self.feed(handle, Some(generation), kind))
    }

    fn start(&mut self, id: InstanceId, request: StartRequest, at: Option<Time>, reuse: Reuse) -> Result<(), Error> {
        if id.as_entity().is_some() {
            return Err(Error::bad_id(id.as_str(), "an identifier that does not begin with '@' (entities do)"));
        }
        let mut generation = self.generations.next();
        if let Some(handle) = self.table.handle(&id) {
            match self.make_room(handle, &id, &request, reuse)? {
                StartPlan::Keep => return Ok(()),
                StartPlan::Begin => {
                    self.begin(handle, request);
                    return Ok(());
                }
                StartPlan::Free(next) => generation = next,
            }
        }
        let now = self.now;
        let kind = Kind::Orchestration(Execution::pending(generation));
        let handle = self.table.add(Instance { id: id.clone(), created: now, updated: now, kind });
        self.log.frame.created(handle, now, id.as_str());
        self.counts.started += 1;
        if generation > 0 {
            self.log.frame.numbered(handle, generation);
        }
        // Terminating the instance in its place may have filled the frame.
        let at = at.filter(|at| *at > now).or_else(|| self.is_full().then_some(AT_ONCE));
        match at {
            Some(at) => self.start_later(handle, id, request, at),
            None => self.begin(handle, request),
        }
        Ok(())
    }

    /// Settles what happens to the instance that has the identifier already.
    fn make_room(
        &mut self,
        handle: u64,
        id: &InstanceId,
        request: &StartRequest,
        reuse: Reuse,
    ) -> Result<StartPlan, Error> {
        let instance = self.table.known(handle);
        let generation = instance.execution().map_or(0, |execution| execution.generation + 1);
        let status = instance.status();
        // The message that was deferred until its moment has come.
        if status == Status::Pending && self.timers.start(handle).is_none() {
            return Ok(StartPlan::Begin);
        }
        let exists = |state| Error::Exists { instance: id.clone(), state };
        match (reuse, status.is_ended()) {
            (Reuse::Ignore, _) => return Ok(StartPlan::Keep),
            (Reuse::Never, true) => return Err(exists("has ended")),
            (Reuse::Never | Reuse::IfEnded, false) => return Err(exists("is running")),
            (Reuse::Terminate, false) => {
                let reason = format!("started again as {}", request.name);
                self.terminate(id, reason)?;
            }
            (Reuse::IfEnded | Reuse::Terminate, true) => {}
        }
        self.forget(handle);
        Ok(StartPlan::Free(generation))
    }

    fn start_later(&mut self, handle: u64, to: InstanceId, request: StartRequest, at: Time) {
        let StartRequest { name, version, input, parent } = request;
        let kind = MessageKind::Start { name, version, input, parent, at: None, reuse: Reuse::Never };
        let message = self.defer(at, Message { to, kind });
        self.timers.set_start(handle, PendingStart { at, message });
    }

    /// Keeps a message until its moment.
    pub(super) fn defer(&mut self, at: Time, message: Message) -> u64 {
        self.defer_until(at.min(Time(KEPT.0 - 1)), message)
    }

    /// Lets a message arrive in the next turn, before all others.
    pub(super) fn put_off(&mut self, message: Message) {
        self.defer_until(AT_ONCE, message);
    }

    pub(super) fn defer_until(&mut self, at: Time, message: Message) -> u64 {
        let number = self.timers.defer(at, message);
        let message = self.timers.message(number).expect("it was put there just now");
        self.log.deferred(number, at, message);
        number
    }

    fn raise(&mut self, to: InstanceId, name: Name, data: Payload) -> Result<(), Error> {
        let Some(handle) = self.table.handle(&to) else { return Err(Error::NotFound(to)) };
        if let Some(PendingStart { at, .. }) = self.timers.start(handle) {
            self.defer(at, Message { to, kind: MessageKind::Raise { name, data } });
            return Ok(());
        }
        // An event for an execution that has ended is accepted and has no effect.
        self.feed(handle, None, EventKind::EventRaised { name, data });
        Ok(())
    }

    fn switch(&mut self, to: &InstanceId, from: Status, action: &'static str, kind: EventKind) -> Result<(), Error> {
        let handle = self.table.handle(to).ok_or_else(|| Error::NotFound(to.clone()))?;
        let status = self.table.known(handle).status();
        if status != from {
            return Err(conflict(to, status, action));
        }
        self.feed(handle, None, kind);
        Ok(())
    }

    fn terminate(&mut self, to: &InstanceId, reason: String) -> Result<(), Error> {
        let handle = self.table.handle(to).ok_or_else(|| Error::NotFound(to.clone()))?;
        let execution = self.table.known(handle).execution();
        match execution.map_or(Status::Entity, |execution| execution.status) {
            Status::Pending => {
                if let Some(start) = self.timers.take_start(handle) {
                    self.log.frame.undeferred(start.message);
                    if let Some(Message { kind: MessageKind::Start { name, version, input, parent, .. }, .. }) =
                        self.timers.undefer(start.message)
                    {
                        self.write_started(handle, StartRequest { name, version, input, parent });
                    }
                }
                self.cut_off(handle, reason);
                Ok(())
            }
            Status::Running | Status::Suspended => {
                self.check_cascade(handle, to, &reason)?;
                self.begin_unrun(handle);
                self.cut_off(handle, reason);
                Ok(())
            }
            status => Err(conflict(to, status, "terminated")),
        }
    }

    /// All sub-orchestrations that an execution waits for are terminated in the frame that ends it.
    fn check_cascade(&self, handle: u64, id: &InstanceId, reason: &str) -> Result<(), Error> {
        let subs = open_subs(self.table.running(handle));
        let (measure, reason) = (self.log.measure(), MessageKind::Terminate { reason: reason.to_owned() });
        let bytes: usize =
            subs.iter().map(|sub| measure.message(&Message { to: sub.clone(), kind: reason.clone() })).sum();
        if bytes <= self.settings.bounds.step_bytes {
            return Ok(());
        }
        let text = format!(
            "to terminate {id} and its {} sub-orchestrations takes {bytes} bytes, at most {} are allowed; give a shorter \
             reason, or terminate those first",
            subs.len(),
            self.settings.bounds.step_bytes
        );
        Err(Error::Failed(Failure::new(FailureKind::Limit, text)))
    }

    /// Puts a message for an entity where its next turn finds it; the entity exists from its first message on.
    fn touch(&mut self, to: InstanceId, kind: MessageKind) -> Result<(), Error> {
        if let MessageKind::Operate { at: Some(at), .. } = &kind
            && *at > self.now
        {
            let at = *at;
            self.defer(at, Message { to, kind });
            return Ok(());
        }
        let handle = match self.table.handle(&to) {
            Some(handle) => handle,
            None if matches!(kind, MessageKind::Unlock { .. }) => return Ok(()),
            None if to.as_entity().is_none() => return Err(Error::NotFound(to)),
            None => self.add_entity(&to),
        };
        // An orchestration can be sent what only entities take.
        let Some(entity) = self.table.known_mut(handle).entity_mut() else {
            return Err(Error::NotFound(to));
        };
        if entity.arrived.is_empty() {
            self.work.touched.push(handle);
        }
        let message = Message { to, kind };
        let bytes = self.log.spiller.measure().message(&message);
        entity.arrived.push(message);
        self.work.add_arrived(bytes);
        Ok(())
    }

    fn add_entity(&mut self, id: &InstanceId) -> u64 {
        let now = self.now;
        let kind = Kind::Entity(Box::<EntityState>::default());
        let handle = self.table.add(Instance { id: id.clone(), created: now, updated: now, kind });
        self.log.frame.created(handle, now, id.as_str());
        handle
    }

    /// Frees entities from a lock.
    pub(super) fn unlock(&mut self, owner: &Caller, entities: Vec<EntityId>) {
        for entity in entities {
            let kind = MessageKind::Unlock { owner: owner.clone() };
            self.send(Message { to: entity.instance().clone(), kind });
        }
    }

    /// About how many bytes the partition holds of what requests of clients add to.
    pub(super) fn held_bytes(&self) -> u64 {
        self.table.bytes + self.outbox.bytes() + self.timers.bytes() + self.activities.bytes()
    }

    /// Whether there is room for more.
    pub(super) fn admit(&self) -> Result<(), Error> {
        let bytes = self.held_bytes();
        if bytes < self.settings.bytes_max {
            return Ok(());
        }
        Err(Error::Full { partition: self.settings.id, bytes, limit: self.settings.bytes_max })
    }

    /// Removes an instance from memory and, with this frame, from the log.
    pub(super) fn forget(&mut self, handle: u64) {
        self.code.cursors.remove(handle);
        self.forget_parked(handle);
        self.end_purge(handle);
        self.log.frame.purged(handle);
        let instance = self.table.remove(handle).expect("an instance is forgotten by the step that has looked it up");
        self.timers.forget(handle, instance.execution().map_or(0, |execution| execution.generation));
        if let Some(start) = self.timers.take_start(handle) {
            self.log.frame.undeferred(start.message);
            self.timers.undefer(start.message);
        }
        for reply in self.waits.take(handle).unwrap_or_default() {
            self.output.respond(reply, Err(Error::NotFound(instance.id.clone())));
        }
    }
}

enum StartPlan {
    /// There is nothing of this identifier any more; this is the number of the next execution.
    Free(u64),
    /// It stays as it is.
    Keep,
    /// It has waited for its start, which is now.
    Begin,
}

fn conflict(instance: &InstanceId, status: Status, action: &'static str) -> Error {
    let state = match status {
        Status::Pending => "has not started",
        Status::Running => "is running",
        Status::Suspended => "is suspended",
        Status::Completed => "has completed",
        Status::Failed => "has failed",
        Status::Terminated => "was terminated",
        Status::Entity => "is an entity",
        Status::Parked => "is parked",
    };
    Error::Conflict { instance: instance.clone(), state, action }
}
