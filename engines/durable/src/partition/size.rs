//! Upper bounds of the room that things take in a frame, known before they are written.

use crate::event::{Caller, EventKind};
use crate::failure::Failure;
use crate::ids::{EntityId, INSTANCE_ID_BYTES_MAX};
use crate::message::{Message, MessageKind};
use crate::payload::Payload;
use crate::program::EntityStep;

/// Tags, numbers, lengths and moments of one message or event.
const HEAD: usize = 64;
/// Bytes that a result for a parent takes besides the result.
const PARENT: usize = HEAD + INSTANCE_ID_BYTES_MAX;

/// Measures with the bound above which payloads are kept out of line.
#[derive(Clone, Copy)]
pub(super) struct Measure {
    pub(super) inline_max: usize,
}

impl Measure {
    /// In memory, everything is in line.
    pub(super) const IN_MEMORY: Self = Self { inline_max: usize::MAX };

    fn payload(self, payload: &Payload) -> usize {
        if payload.len() > self.inline_max { HEAD } else { payload.len() }
    }

    fn result(self, result: &Result<Payload, Failure>) -> usize {
        match result {
            Ok(value) => self.payload(value),
            Err(failure) => self.failure(failure),
        }
    }

    fn failure(self, failure: &Failure) -> usize {
        failure.message.len() + failure.details.as_ref().map_or(0, |details| self.payload(details))
    }

    /// A message, where it is sent or kept.
    pub(super) fn message(self, message: &Message) -> usize {
        let rest = match &message.kind {
            MessageKind::Start { name, input, parent, .. } => {
                name.as_str().len() + self.payload(input) + parent.as_ref().map_or(0, caller)
            }
            MessageKind::SubDone { result, .. }
            | MessageKind::TaskDone { result, .. }
            | MessageKind::Operated { result, .. } => self.result(result),
            MessageKind::Raise { name, data } => name.as_str().len() + self.payload(data),
            MessageKind::Operate { operation, input, caller: waits, .. } => {
                operation.as_str().len() + self.payload(input) + waits.as_ref().map_or(0, caller)
            }
            MessageKind::Lock { owner, entities, .. } => caller(owner) + all(entities),
            MessageKind::Locked { entities, .. } => all(entities),
            MessageKind::Unlock { owner } => caller(owner),
            MessageKind::Terminate { reason } | MessageKind::Suspend { reason } | MessageKind::Resume { reason } => {
                reason.len()
            }
            MessageKind::Purge => 0,
        };
        HEAD + message.to.as_str().len() + rest
    }

    /// Messages that a decision sends, besides the decision itself. `sender` is the length of the sender's identifier.
    pub(super) fn sent_by(self, decision: &EventKind, sender: usize) -> usize {
        match decision {
            EventKind::SubScheduled { name, instance, input, .. } => {
                2 * HEAD + name.as_str().len() + instance.as_str().len() + self.payload(input) + sender
            }
            EventKind::EventSent { instance, name, data, .. } => {
                HEAD + instance.as_str().len() + name.as_str().len() + self.payload(data)
            }
            EventKind::EntityCalled { entity, operation, input, .. }
            | EventKind::EntitySignalled { entity, operation, input, .. } => {
                let names = entity.instance().as_str().len() + operation.as_str().len();
                2 * HEAD + names + self.payload(input) + sender
            }
            // It has to be possible to free them, too.
            EventKind::LockRequested { entities, .. } => HEAD + sender + all(entities) + released(entities, sender),
            EventKind::LockReleased { entities, .. } => released(entities, sender),
            EventKind::Completed { output } => PARENT + self.payload(output),
            EventKind::Failed { failure } => PARENT + self.failure(failure),
            // The next execution is given them again, and may have to put them off.
            EventKind::ContinuedAsNew { unread, .. } => {
                unread.iter().map(|(name, data)| HEAD + sender + name.as_str().len() + self.payload(data)).sum()
            }
            _ => 0,
        }
    }

    /// Results of operations of an entity.
    pub(super) fn step(self, step: &EntityStep) -> usize {
        let state = step.state.as_ref().map_or(0, |state| self.payload(state));
        let results: usize = step.results.iter().map(|result| HEAD + self.result(result)).sum();
        state + results + step.messages.iter().map(|message| self.message(message)).sum::<usize>()
    }
}

/// About how many bytes a message takes in memory.
pub(crate) fn room(message: &Message) -> usize {
    size_of::<Message>() + Measure::IN_MEMORY.message(message)
}

fn released(entities: &[EntityId], sender: usize) -> usize {
    all(entities) + entities.len() * (2 * HEAD + sender)
}

fn caller(caller: &Caller) -> usize {
    HEAD + caller.instance.as_str().len()
}

fn all(entities: &[EntityId]) -> usize {
    entities.iter().map(|entity| entity.instance().as_str().len() + 5).sum()
}
