//! Turns of entities: messages are sorted by the lock, operations run as one batch, results go out.
//!
//! Under a lock only the owner's operations run; all else waits in order until the lock is freed. Without one nothing
//! waits, unless the frame had no room for more: then the rest goes on in the next turn. Of what waits, only the front is
//! ever taken out, so that a frame says what changed and never the whole queue.

use crate::codec::{EntityDelta, Patch};
use crate::event::Caller;
use crate::failure::{Failure, FailureKind};
use crate::ids::EntityId;
use crate::message::{Message, MessageKind};
use crate::partition::Partition;
use crate::partition::table::EntityState;
use crate::payload::Payload;
use crate::program::{EntityStep, Operation};

/// Operations that run as one batch.
const OPERATIONS_PER_BATCH_MAX: usize = 4096;

/// A turn of one entity while it runs.
struct Turn {
    id: EntityId,
    entity: EntityState,
    /// How many that waited before this turn still do.
    old: usize,
    popped: u32,
    /// Its state before this turn.
    before: Option<Payload>,
    batch: Vec<Operation>,
    callers: Vec<Option<Caller>>,
    /// How many of the batch waited before this turn: its first.
    batch_old: usize,
    is_state_changed: bool,
    is_lock_changed: bool,
    /// Something of the lock's owner is put off, so that all that follows is.
    is_owner_put_off: bool,
}

impl Partition {
    /// Runs the messages that have come for an entity in this turn.
    pub(super) fn operate(&mut self, handle: u64) {
        // One that waits in the backlog may have become empty, and so be gone, by something that came meanwhile.
        let Some(instance) = self.table.get_mut(handle) else { return };
        let before = instance.bytes();
        let id = EntityId::try_from(instance.id.clone()).expect("only entities are sent operations");
        let entity = instance.entity_mut().expect("what is named like an entity is one");
        self.code.last_instance.enter(id.instance());
        let mut turn = Turn::new(id, std::mem::take(entity));
        self.drain(&mut turn);
        for message in std::mem::take(&mut turn.entity.arrived) {
            self.work.remove_arrived(self.log.measure().message(&message));
            self.sort(&mut turn, message);
        }
        self.flush(&mut turn);
        let has_changed = turn.has_changed();
        if has_changed {
            let delta = turn.delta(self.now);
            self.log.entity(handle, &delta);
        }
        let is_gone = turn.entity.state.is_none() && turn.entity.lock.is_none() && turn.entity.queue.is_empty();
        let now = self.now;
        let instance = self.table.known_mut(handle);
        // A change that is not in the log would be missing after a crash.
        if has_changed {
            instance.updated = now;
        }
        *instance.entity_mut().expect("what is named like an entity is one") = turn.entity;
        self.table.resized(handle, before);
        if is_gone {
            self.forget(handle);
        } else if self.table.is_behind(handle) {
            self.work.put_off_entity(handle);
        }
    }

    fn sort(&mut self, turn: &mut Turn, message: Message) {
        match &message.kind {
            MessageKind::Unlock { owner } if turn.entity.lock.as_ref() == Some(owner) => {
                self.flush(turn);
                if turn.is_owner_put_off {
                    return self.put_off(message);
                }
                turn.entity.lock = None;
                turn.is_lock_changed = true;
                self.drain(turn);
            }
            MessageKind::Unlock { .. } if self.is_spent() => self.put_off(message),
            MessageKind::Unlock { owner } => {
                let before = turn.give_up_lock(owner);
                self.unlock(owner, before);
            }
            _ if !turn.is_free_for(&message.kind) => turn.entity.queue.push(message),
            _ if !turn.is_owner_put_off && !self.is_spent() => self.process(turn, message.kind),
            _ if turn.entity.lock.is_none() => turn.entity.queue.push(message),
            _ => {
                turn.is_owner_put_off = true;
                self.put_off(message);
            }
        }
    }

    /// Processes waiting messages, as far as no lock is in the way and there is room.
    fn drain(&mut self, turn: &mut Turn) {
        while turn.entity.lock.is_none() && !self.is_spent() {
            let is_lock = turn.entity.queue.front().is_some_and(|next| matches!(next.kind, MessageKind::Lock { .. }));
            if is_lock && !turn.batch.is_empty() {
                self.flush(turn);
                continue;
            }
            let Some(message) = turn.pop() else { break };
            self.process(turn, message.kind);
        }
    }

    fn process(&mut self, turn: &mut Turn, kind: MessageKind) {
        match kind {
            MessageKind::Operate { operation, input, caller, .. } => {
                turn.batch.push(Operation { name: operation, input });
                turn.callers.push(caller);
                if turn.batch.len() >= OPERATIONS_PER_BATCH_MAX {
                    self.flush(turn);
                }
            }
            MessageKind::Lock { owner, .. } if turn.entity.queue.is_given_up(&owner) => {}
            MessageKind::Lock { owner, entities, next } => {
                if self.flush(turn) == Rest::PutBack {
                    let kind = MessageKind::Lock { owner, entities, next };
                    return turn.entity.queue.push(Message { to: turn.id.instance().clone(), kind });
                }
                turn.entity.lock = Some(owner.clone());
                turn.is_lock_changed = true;
                self.pass_lock_on(owner, entities, next + 1);
            }
            // The word that a lock is not wanted any more has been heard by that lock, which waited before it.
            _ => {}
        }
    }

    fn pass_lock_on(&mut self, owner: Caller, entities: Vec<EntityId>, next: u32) {
        let following = entities.get(next as usize).map(|entity| entity.instance().clone());
        match following {
            Some(to) => self.send(Message { to, kind: MessageKind::Lock { owner, entities, next } }),
            None => {
                let Caller { instance, generation, id } = owner;
                self.send(Message { to: instance, kind: MessageKind::Locked { generation, id, entities } });
            }
        }
    }

    /// Runs the batch and sends its results and messages. If the frame has no room for all of it, the rest goes on in
    /// the next turn: it is put back to the front of the queue, or put off if the queue waits for the lock.
    fn flush(&mut self, turn: &mut Turn) -> Rest {
        let mut operations = std::mem::take(&mut turn.batch);
        let mut callers = std::mem::take(&mut turn.callers);
        let old = std::mem::take(&mut turn.batch_old);
        let mut done = 0;
        while done < operations.len() {
            if done > 0 && self.is_spent() {
                let rest = turn.messages(operations.split_off(done), callers.split_off(done));
                if turn.entity.lock.is_none() {
                    turn.put_back(rest, old.saturating_sub(done));
                    return Rest::PutBack;
                }
                turn.is_owner_put_off = true;
                rest.into_iter().for_each(|message| self.put_off(message));
                return Rest::Nothing;
            }
            let (step, ran) = self.run_operations(turn, &operations[done..]);
            self.conclude(turn, step, callers[done..done + ran].iter_mut());
            done += ran;
        }
        Rest::Nothing
    }

    /// Runs as many operations as together do not add too much to the frame; one that does so alone is refused.
    fn run_operations(&self, turn: &Turn, operations: &[Operation]) -> (EntityStep, usize) {
        let mut count = operations.len();
        loop {
            let step = self.code.program.operate(&turn.id, turn.entity.state.as_ref(), &operations[..count], self.now);
            let (bytes, most) = (self.log.measure().step(&step), self.settings.bounds.step_bytes);
            if bytes <= most {
                return (step, count);
            }
            if count == 1 {
                let text = format!("one operation came to {bytes} bytes, at most {most} are allowed");
                let results = vec![Err(Failure::new(FailureKind::Limit, text))];
                return (EntityStep { state: turn.entity.state.clone(), results, messages: Vec::new() }, 1);
            }
            count /= 2;
        }
    }

    fn conclude<'a>(
        &mut self,
        turn: &mut Turn,
        step: EntityStep,
        callers: impl Iterator<Item = &'a mut Option<Caller>>,
    ) {
        turn.is_state_changed |= turn.entity.state != step.state;
        turn.entity.state = step.state;
        let mut results = step.results.into_iter();
        for caller in callers {
            self.counts.operations += 1;
            let result = results.next();
            let Some(Caller { instance, generation, id }) = caller.take() else {
                self.counts.events += 1;
                continue;
            };
            let missing = || Err(Failure::new(FailureKind::Application, "the entity returned no result"));
            let result = result.unwrap_or_else(missing).map_err(Failure::bounded);
            self.send(Message { to: instance, kind: MessageKind::Operated { generation, id, result } });
        }
        for message in step.messages {
            self.send(message);
        }
    }
}

/// Rest of a batch.
#[derive(PartialEq, Eq)]
enum Rest {
    Nothing,
    PutBack,
}

impl Turn {
    fn new(id: EntityId, entity: EntityState) -> Self {
        Self {
            id,
            old: entity.queue.len(),
            before: entity.state.clone(),
            entity,
            popped: 0,
            batch: Vec::new(),
            callers: Vec::new(),
            batch_old: 0,
            is_state_changed: false,
            is_lock_changed: false,
            is_owner_put_off: false,
        }
    }

    /// Takes the message that has waited longest.
    fn pop(&mut self) -> Option<Message> {
        let message = self.entity.queue.pop()?;
        if self.old > 0 {
            self.old -= 1;
            self.popped += 1;
            self.batch_old += usize::from(matches!(message.kind, MessageKind::Operate { .. }));
        }
        Some(message)
    }

    fn messages(&self, operations: Vec<Operation>, callers: Vec<Option<Caller>>) -> Vec<Message> {
        let to = self.id.instance();
        let of = |(Operation { name, input }, caller)| {
            let kind = MessageKind::Operate { operation: name, input, caller, at: None };
            Message { to: to.clone(), kind }
        };
        operations.into_iter().zip(callers).map(of).collect()
    }

    /// Puts operations that were not run before all that waits. The first `old` of them waited before this turn.
    fn put_back(&mut self, operations: Vec<Message>, old: usize) {
        assert!(operations.len() == old || self.old == 0, "what has come in runs after all that has waited");
        self.entity.queue.push_front(operations.into_iter());
        self.old += old;
        self.popped -= u32::try_from(old).expect("a batch is short");
    }

    fn is_free_for(&self, kind: &MessageKind) -> bool {
        let Some(owner) = &self.entity.lock else { return self.entity.queue.is_empty() };
        let MessageKind::Operate { caller: Some(caller), .. } = kind else { return false };
        (&caller.instance, caller.generation) == (&owner.instance, owner.generation)
    }

    /// An execution that ended before it got the lock does not want it any more: so it is noted at the end of the queue.
    /// Gives the entities that it had got so far: there, the word that it is over may have come before the lock did.
    fn give_up_lock(&mut self, owner: &Caller) -> Vec<EntityId> {
        if self.entity.queue.is_given_up(owner) {
            return Vec::new();
        }
        let Some(before) = self.entity.queue.locked_before(owner).map(<[EntityId]>::to_vec) else { return Vec::new() };
        let kind = MessageKind::Unlock { owner: owner.clone() };
        self.entity.queue.push(Message { to: self.id.instance().clone(), kind });
        before
    }

    fn has_changed(&self) -> bool {
        let is_queue_changed = self.popped > 0 || self.entity.queue.len() > self.old;
        self.is_state_changed || self.is_lock_changed || is_queue_changed
    }

    fn delta(&self, now: crate::ids::Time) -> EntityDelta {
        let states = self.before.as_ref().zip(self.entity.state.as_ref()).filter(|_| self.is_state_changed);
        let patch = states.and_then(|(before, after)| Patch::between(before, after));
        EntityDelta {
            time: now,
            state: (self.is_state_changed && patch.is_none()).then(|| self.entity.state.clone()),
            patch,
            popped: self.popped,
            pushed: self.entity.queue.iter().skip(self.old).cloned().collect(),
            lock: self.is_lock_changed.then(|| self.entity.lock.clone()),
        }
    }
}
