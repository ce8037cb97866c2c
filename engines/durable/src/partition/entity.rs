//! Turns of entities: what has come in is sorted by the lock, operations run as one batch, results go out.
//!
//! Under a lock only the owner's operations run; all else waits in order until the lock is freed. Without one nothing
//! waits, unless the frame had no room for more: then the rest goes on in the next turn.

use crate::codec::{EntityDelta, Patch};
use crate::event::Caller;
use crate::failure::{Failure, FailureKind};
use crate::ids::EntityId;
use crate::message::{Message, MessageKind};
use crate::partition::Partition;
use crate::partition::table::{EntityState, Instance};
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
    is_state_changed: bool,
    is_lock_changed: bool,
    /// Something was taken out of the middle of the queue, so that it has to be written anew.
    is_queue_rewritten: bool,
}

impl Partition {
    /// Runs what has come in for an entity in this turn.
    pub(super) fn operate(&mut self, handle: u64) {
        // One that waits in the backlog may have become empty, and so be gone, by something that came meanwhile.
        let Some(instance) = self.table.get_mut(handle) else { return };
        let before = instance.bytes();
        let id = EntityId::try_from(instance.id.clone()).expect("only entities are sent operations");
        let entity = instance.entity_mut().expect("what is named like an entity is one");
        self.worksite.enter(id.instance());
        let mut turn = Turn::new(id, std::mem::take(entity));
        self.drain(&mut turn);
        for message in std::mem::take(&mut turn.entity.arrived) {
            self.sort(&mut turn, message);
        }
        self.flush(&mut turn);
        let has_changed = turn.has_changed();
        if has_changed {
            let delta = turn.delta(self.now);
            self.spiller.tighten(self.frame.len());
            self.frame.entity(handle, &delta, &mut self.spiller);
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
        } else if self.is_behind(handle) && !self.backlog.contains(&handle) {
            self.backlog.push_back(handle);
        }
    }

    /// Whether an entity has operations that wait for nothing but room.
    pub(super) fn is_behind(&self, handle: u64) -> bool {
        let entity = self.table.get(handle).and_then(Instance::entity);
        entity.is_some_and(|entity| entity.lock.is_none() && !entity.queue.is_empty())
    }

    fn sort(&mut self, turn: &mut Turn, message: Message) {
        match &message.kind {
            MessageKind::Unlock { owner } if turn.entity.lock.as_ref() == Some(owner) => {
                self.flush(turn);
                turn.entity.lock = None;
                turn.is_lock_changed = true;
                self.drain(turn);
            }
            MessageKind::Unlock { owner } => {
                let before = turn.forget_lock(owner);
                self.unlock(owner, before);
            }
            _ if turn.is_free_for(&message.kind) && (turn.entity.lock.is_some() || !self.is_full()) => {
                self.process(turn, message.kind);
            }
            _ => turn.entity.queue.push(message),
        }
    }

    /// Takes up what has waited, as far as no lock is in the way and there is room.
    fn drain(&mut self, turn: &mut Turn) {
        while turn.entity.lock.is_none() && !self.is_full() {
            let Some(message) = turn.entity.queue.pop() else { break };
            if turn.old > 0 {
                turn.old -= 1;
                turn.popped += 1;
            }
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
            MessageKind::Lock { owner, entities, next } => {
                let put_back = self.flush(turn);
                if put_back > 0 {
                    let kind = MessageKind::Lock { owner, entities, next };
                    let to = turn.id.instance().clone();
                    return turn.entity.queue.insert(put_back, Message { to, kind });
                }
                turn.entity.lock = Some(owner.clone());
                turn.is_lock_changed = true;
                self.pass_lock_on(owner, entities, next + 1);
            }
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

    /// Runs the batch and sends its results and messages. Says how many operations it put back to the front of the
    /// queue, because the frame has no room for more.
    fn flush(&mut self, turn: &mut Turn) -> usize {
        let mut operations = std::mem::take(&mut turn.batch);
        let mut callers = std::mem::take(&mut turn.callers);
        let mut done = 0;
        while done < operations.len() {
            if done > 0 && turn.entity.lock.is_none() && self.is_full() {
                return turn.put_back(operations.split_off(done), callers.split_off(done));
            }
            let (step, ran) = self.run_operations(turn, &operations[done..]);
            self.conclude(turn, step, callers[done..done + ran].iter_mut());
            done += ran;
        }
        0
    }

    /// Runs as many operations as together do not add too much to the frame; one that does so alone is refused.
    fn run_operations(&self, turn: &Turn, operations: &[Operation]) -> (EntityStep, usize) {
        let mut count = operations.len();
        loop {
            let step = self.program.operate(&turn.id, turn.entity.state.as_ref(), &operations[..count], self.now);
            let (bytes, most) = (self.measure().step(&step), self.bounds.step_bytes);
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
            is_state_changed: false,
            is_lock_changed: false,
            is_queue_rewritten: false,
        }
    }

    /// Puts operations that were not run before all that waits.
    fn put_back(&mut self, operations: Vec<Operation>, callers: Vec<Option<Caller>>) -> usize {
        let count = operations.len();
        for (at, (Operation { name, input }, caller)) in operations.into_iter().zip(callers).enumerate() {
            let kind = MessageKind::Operate { operation: name, input, caller, at: None };
            self.entity.queue.insert(at, Message { to: self.id.instance().clone(), kind });
        }
        self.is_queue_rewritten = true;
        count
    }

    fn is_free_for(&self, kind: &MessageKind) -> bool {
        let Some(owner) = &self.entity.lock else { return self.entity.queue.is_empty() };
        let MessageKind::Operate { caller: Some(caller), .. } = kind else { return false };
        (&caller.instance, caller.generation) == (&owner.instance, owner.generation)
    }

    /// An execution that ended before it got the lock does not want it any more. Gives the entities that it had got so
    /// far: there, the word that it is over may have come before the lock did.
    fn forget_lock(&mut self, owner: &Caller) -> Vec<EntityId> {
        let mut before = Vec::new();
        self.is_queue_rewritten |= self.entity.queue.retain(|message| match &message.kind {
            MessageKind::Lock { owner: found, entities, next } if found == owner => {
                before.extend(entities.iter().take(*next as usize).cloned());
                false
            }
            _ => true,
        });
        before
    }

    fn has_changed(&self) -> bool {
        let is_queue_changed = self.is_queue_rewritten || self.popped > 0 || self.entity.queue.len() > self.old;
        self.is_state_changed || self.is_lock_changed || is_queue_changed
    }

    fn delta(&self, now: crate::ids::Time) -> EntityDelta {
        let states = self.before.as_ref().zip(self.entity.state.as_ref()).filter(|_| self.is_state_changed);
        let patch = states.and_then(|(before, after)| Patch::between(before, after));
        let kept = if self.is_queue_rewritten { 0 } else { self.old };
        let popped = if self.is_queue_rewritten { u32::MAX } else { self.popped };
        EntityDelta {
            time: now,
            state: (self.is_state_changed && patch.is_none()).then(|| self.entity.state.clone()),
            patch,
            popped,
            pushed: self.entity.queue.iter().skip(kept).cloned().collect(),
            lock: self.is_lock_changed.then(|| self.entity.lock.clone()),
        }
    }
}
