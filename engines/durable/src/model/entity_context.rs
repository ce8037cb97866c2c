//! Context of an entity's operation: effects besides changing its state.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use serde::Serialize;

use crate::error::Error;
use crate::failure::{Failure, FailureKind};
use crate::ids::{EntityId, InstanceId, Name, Time};
use crate::message::{Message, MessageKind, Reuse};
use crate::model::definition::{EntityOp, ExternalEvent, Orchestration};
use crate::payload::Payload;

/// Context of an operation, besides the state and its input. Its messages go out once the operation is done, and
/// not at all if it fails.
#[derive(Debug)]
pub struct EntityContext {
    id: EntityId,
    now: Time,
    messages: Vec<Message>,
    is_deleted: bool,
}

impl EntityContext {
    pub(super) fn new(id: EntityId, now: Time) -> Self {
        Self { id, now, messages: Vec::new(), is_deleted: false }
    }

    /// Who this entity is.
    #[must_use]
    pub fn id(&self) -> &EntityId {
        &self.id
    }

    /// The time of this batch of operations.
    #[must_use]
    pub fn now(&self) -> Time {
        self.now
    }

    /// Lets the entity be gone once this operation is done; the next operation finds a new one.
    pub fn delete(&mut self) {
        self.is_deleted = true;
    }

    /// Has an entity run an operation.
    ///
    /// # Errors
    /// A failure of kind `Payload` if the input cannot be written.
    pub fn signal<S, I: Serialize, O>(
        &mut self,
        entity: &EntityId,
        operation: EntityOp<S, I, O>,
        input: &I,
    ) -> Result<(), Failure> {
        self.operate(entity, operation.name(), Payload::encode(input)?, None);
        Ok(())
    }

    /// Has an entity run an operation at a moment to come.
    ///
    /// # Errors
    /// A failure of kind `Payload` if the input cannot be written.
    pub fn signal_at<S, I: Serialize, O>(
        &mut self,
        entity: &EntityId,
        operation: EntityOp<S, I, O>,
        input: &I,
        at: Time,
    ) -> Result<(), Failure> {
        self.operate(entity, operation.name(), Payload::encode(input)?, Some(at));
        Ok(())
    }

    fn operate(&mut self, entity: &EntityId, operation: &'static str, input: Payload, at: Option<Time>) {
        let kind = MessageKind::Operate { operation: Name::Static(operation), input, caller: None, at };
        self.messages.push(Message { to: entity.instance().clone(), kind });
    }

    /// Starts an orchestration under a new identifier, and returns that.
    ///
    /// # Errors
    /// A failure if the input cannot be written, or the identifier made for it is too long.
    pub fn start<I: Serialize, O>(&mut self, code: Orchestration<I, O>, input: &I) -> Result<InstanceId, Failure> {
        // Operations are not replayed, so chance may have a part in it.
        let (one, other) = (RandomState::new().hash_one(self.now), RandomState::new().hash_one(self.now));
        let text = format!("{}:{}:{one:016x}{other:016x}", self.id.name(), self.id.key());
        let id = InstanceId::new(text).map_err(|error: Error| Failure::new(FailureKind::Limit, error.to_string()))?;
        self.start_as(code, &id, input)?;
        Ok(id)
    }

    /// Starts an orchestration under this identifier. Nothing happens if one of it runs.
    ///
    /// # Errors
    /// A failure of kind `Payload` if the input cannot be written.
    pub fn start_as<I: Serialize, O>(
        &mut self,
        code: Orchestration<I, O>,
        id: &InstanceId,
        input: &I,
    ) -> Result<(), Failure> {
        let (name, input) = (Name::Static(code.name()), Payload::encode(input)?);
        let kind = MessageKind::Start { name, version: None, input, parent: None, at: None, reuse: Reuse::IfEnded };
        self.messages.push(Message { to: id.clone(), kind });
        Ok(())
    }

    /// Raises an event to an orchestration.
    ///
    /// # Errors
    /// A failure of kind `Payload` if the value cannot be written.
    pub fn raise<T: Serialize>(
        &mut self,
        instance: &InstanceId,
        event: ExternalEvent<T>,
        value: &T,
    ) -> Result<(), Failure> {
        let kind = MessageKind::Raise { name: Name::Static(event.name()), data: Payload::encode(value)? };
        self.messages.push(Message { to: instance.clone(), kind });
        Ok(())
    }

    pub(super) fn take_deleted(&mut self) -> bool {
        std::mem::take(&mut self.is_deleted)
    }

    pub(super) fn sent(&self) -> usize {
        self.messages.len()
    }

    /// Takes back the messages after the first `sent`, and a deletion.
    pub(super) fn forget(&mut self, sent: usize) {
        self.messages.truncate(sent);
        self.is_deleted = false;
    }

    pub(super) fn into_messages(self) -> Vec<Message> {
        self.messages
    }
}
