//! Other things that an orchestration awaits: timers, events from outside, entities and their locks.

use std::marker::PhantomData;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use serde::de::DeserializeOwned;

use crate::event::EventKind;
use crate::failure::{Failure, FailureKind};
use crate::ids::{EntityId, Name, Time};
use crate::model::shared::{HeldLock, Shared, Ticket, Wait};
use crate::payload::Payload;

/// A durable timer; await it. It runs from the first time it is polled.
#[must_use = "a timer runs only when it is awaited"]
pub struct Timer {
    shared: Rc<Shared>,
    at: Time,
    ticket: Option<Ticket>,
}

impl Timer {
    pub(super) fn new(shared: &Rc<Shared>, at: Time) -> Self {
        Self { shared: Rc::clone(shared), at, ticket: None }
    }
}

impl Future for Timer {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let at = this.at;
        let schedule = || this.shared.schedule(Wait::Timer, |id| EventKind::TimerCreated { id, at });
        this.ticket.get_or_insert_with(schedule).poll().map(|_| ())
    }
}

/// A wait for an event from outside; await it for the event's data.
#[must_use = "an event is taken only when it is awaited"]
pub struct EventWait<T> {
    shared: Rc<Shared>,
    name: Name,
    timeout: Option<Duration>,
    alarm: Option<Ticket>,
    number: Option<u64>,
    value: PhantomData<fn() -> T>,
}

impl<T> EventWait<T> {
    pub(super) fn new(shared: &Rc<Shared>, name: Name) -> Self {
        Self { shared: Rc::clone(shared), name, timeout: None, alarm: None, number: None, value: PhantomData }
    }

    /// Fails with `Timeout` if no event has come after this long.
    pub fn timeout(mut self, after: Duration) -> Self {
        self.timeout = Some(after);
        self
    }

    fn take(&mut self) -> Option<Payload> {
        let mut state = self.shared.state_mut();
        let data = state.mailbox.as_mut()?.take(&self.name)?;
        state.bytes -= data.len();
        Some(data)
    }

    fn wait(&mut self) {
        let mut state = self.shared.state_mut();
        let branch = state.wait();
        self.number = Some(state.mailbox.get_or_insert_default().wait(self.number, &self.name, branch));
    }

    fn forget(&mut self) {
        let mut state = self.shared.state_mut();
        if let (Some(number), Some(mailbox)) = (self.number.take(), &mut state.mailbox) {
            mailbox.forget(number);
        }
    }
}

impl<T: DeserializeOwned> Future for EventWait<T> {
    type Output = Result<T, Failure>;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(data) = self.take() {
            self.alarm = None;
            self.forget();
            return Poll::Ready(data.decode());
        }
        if let Some(after) = self.timeout.take() {
            self.alarm = Some(self.shared.alarm(after));
        }
        if self.alarm.as_ref().is_some_and(|alarm| alarm.poll().is_ready()) {
            self.alarm = None;
            self.forget();
            let text = format!("event {}: none has come in the time given", self.name);
            return Poll::Ready(Err(Failure::new(FailureKind::Timeout, text)));
        }
        self.wait();
        Poll::Pending
    }
}

impl<T> Drop for EventWait<T> {
    fn drop(&mut self) {
        self.forget();
    }
}

/// A call of an entity; await it for the result. Nothing happens before.
#[must_use = "an entity is called only when the call is awaited"]
pub struct EntityCall<O> {
    shared: Rc<Shared>,
    entity: EntityId,
    operation: Name,
    input: Option<Result<Payload, Failure>>,
    ticket: Option<Ticket>,
    output: PhantomData<fn() -> O>,
}

impl<O> EntityCall<O> {
    pub(super) fn new(shared: &Rc<Shared>, entity: EntityId, operation: Name, input: Result<Payload, Failure>) -> Self {
        let (shared, input) = (Rc::clone(shared), Some(input));
        Self { shared, entity, operation, input, ticket: None, output: PhantomData }
    }

    fn schedule(&mut self, input: Result<Payload, Failure>) -> Result<(), Failure> {
        let input = input?;
        if let Some(HeldLock { entities, is_granted: true }) = &self.shared.state().lock
            && entities.binary_search(&self.entity).is_err()
        {
            let text = format!("{} is not among the entities locked, and only those can be called", self.entity);
            return Err(Failure::new(FailureKind::Conflict, text));
        }
        let (entity, operation) = (self.entity.clone(), self.operation.clone());
        let decision = |id| EventKind::EntityCalled { id, entity, operation, input };
        self.ticket = Some(self.shared.schedule(Wait::Operation, decision));
        Ok(())
    }
}

impl<O: DeserializeOwned> Future for EntityCall<O> {
    type Output = Result<O, Failure>;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(input) = self.input.take()
            && let Err(failure) = self.schedule(input)
        {
            return Poll::Ready(Err(failure));
        }
        let Some(ticket) = &self.ticket else { return Poll::Pending };
        ticket.poll().map(|result| result.and_then(|payload| payload.decode()))
    }
}

/// A wait for a lock; await it for the guard. Nothing happens before.
#[must_use = "entities are locked only when the lock is awaited"]
pub struct LockRequest {
    shared: Rc<Shared>,
    /// Sorted, without repetition; taken when they are requested.
    entities: Option<Vec<EntityId>>,
    ticket: Option<Ticket>,
}

impl LockRequest {
    pub(super) fn new(shared: &Rc<Shared>, entities: Vec<EntityId>) -> Self {
        Self { shared: Rc::clone(shared), entities: Some(entities), ticket: None }
    }

    fn schedule(&mut self, entities: Vec<EntityId>) -> Result<(), Failure> {
        let mut state = self.shared.state_mut();
        let failure = |text| Err(Failure::new(FailureKind::Conflict, text));
        if state.lock.is_some() {
            return failure("there is a lock already: lock all entities at once, or drop the first guard before");
        }
        if entities.is_empty() {
            return failure("there is no entity to lock");
        }
        state.lock = Some(HeldLock { entities: entities.clone(), is_granted: false });
        drop(state);
        self.ticket = Some(self.shared.schedule(Wait::Lock, |id| EventKind::LockRequested { id, entities }));
        Ok(())
    }
}

impl Future for LockRequest {
    type Output = Result<LockGuard, Failure>;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(entities) = self.entities.take()
            && let Err(failure) = self.schedule(entities)
        {
            return Poll::Ready(Err(failure));
        }
        let Some(ticket) = &self.ticket else { return Poll::Pending };
        if ticket.poll().is_pending() {
            return Poll::Pending;
        }
        let id = ticket.id();
        self.ticket = None;
        if let Some(held) = &mut self.shared.state_mut().lock {
            held.is_granted = true;
        }
        Poll::Ready(Ok(LockGuard { shared: Rc::clone(&self.shared), id }))
    }
}

impl Drop for LockRequest {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            release(&self.shared, ticket.id());
        }
    }
}

/// Entities locked for this orchestration, until this is dropped or the execution ends.
#[must_use = "dropping the guard frees the entities"]
pub struct LockGuard {
    shared: Rc<Shared>,
    id: u32,
}

impl Drop for LockGuard {
    fn drop(&mut self) {
        release(&self.shared, self.id);
    }
}

fn release(shared: &Shared, id: u32) {
    let held = shared.state_mut().lock.take();
    if let Some(HeldLock { entities, .. }) = held {
        shared.note(EventKind::LockReleased { id, entities });
    }
}
