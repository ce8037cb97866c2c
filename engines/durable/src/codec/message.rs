//! Messages from instances and clients to instances.

use super::input::Input;
use super::{CodecError, Fetch, Spill, output};
use crate::message::{Message, MessageKind, Reuse};

/// Kind of the message that follows. Its number is stored.
mod tag {
    pub(super) const START: u8 = 1;
    pub(super) const SUB_DONE: u8 = 2;
    pub(super) const RAISE: u8 = 3;
    pub(super) const OPERATE: u8 = 4;
    pub(super) const OPERATED: u8 = 5;
    pub(super) const LOCK: u8 = 6;
    pub(super) const LOCKED: u8 = 7;
    pub(super) const UNLOCK: u8 = 8;
    pub(super) const TERMINATE: u8 = 9;
    pub(super) const SUSPEND: u8 = 10;
    pub(super) const RESUME: u8 = 11;
    pub(super) const PURGE: u8 = 12;
    pub(super) const TASK_DONE: u8 = 13;
}

const REUSES: [Reuse; 4] = [Reuse::IfEnded, Reuse::Never, Reuse::Ignore, Reuse::Terminate];

/// Writes a message behind `out`.
pub fn put_message(out: &mut Vec<u8>, message: &Message, spill: &mut dyn Spill) {
    output::text(out, message.to.as_str());
    match &message.kind {
        MessageKind::Start { name, version, input, parent, at, reuse } => {
            out.push(tag::START);
            output::text(out, name.as_str());
            output::optional(out, *version, |out, version| output::number(out, u64::from(version)));
            output::payload(out, input, spill);
            output::optional(out, parent.as_ref(), output::caller);
            output::optional(out, at.as_ref(), output::time);
            out.push(*reuse as u8);
        }
        MessageKind::SubDone { generation, id, result } => {
            put_result_head(out, tag::SUB_DONE, *generation, *id);
            output::result(out, result, spill);
        }
        MessageKind::TaskDone { generation, id, result } => {
            put_result_head(out, tag::TASK_DONE, *generation, *id);
            output::result(out, result, spill);
        }
        MessageKind::Raise { name, data } => {
            out.push(tag::RAISE);
            output::text(out, name.as_str());
            output::payload(out, data, spill);
        }
        MessageKind::Operate { operation, input, caller, at } => {
            out.push(tag::OPERATE);
            output::text(out, operation.as_str());
            output::payload(out, input, spill);
            output::optional(out, caller.as_ref(), output::caller);
            output::optional(out, at.as_ref(), output::time);
        }
        MessageKind::Operated { generation, id, result } => {
            put_result_head(out, tag::OPERATED, *generation, *id);
            output::result(out, result, spill);
        }
        other => put_lock_or_order(out, other),
    }
}

fn put_result_head(out: &mut Vec<u8>, tag: u8, generation: u64, id: u32) {
    out.push(tag);
    output::number(out, generation);
    output::number(out, u64::from(id));
}

fn put_lock_or_order(out: &mut Vec<u8>, kind: &MessageKind) {
    let (tag, reason) = match kind {
        MessageKind::Lock { owner, entities, next } => {
            out.push(tag::LOCK);
            output::caller(out, owner);
            output::entities(out, entities);
            return output::number(out, u64::from(*next));
        }
        MessageKind::Locked { generation, id, entities } => {
            put_result_head(out, tag::LOCKED, *generation, *id);
            return output::entities(out, entities);
        }
        MessageKind::Unlock { owner } => {
            out.push(tag::UNLOCK);
            return output::caller(out, owner);
        }
        MessageKind::Terminate { reason } => (tag::TERMINATE, reason),
        MessageKind::Suspend { reason } => (tag::SUSPEND, reason),
        MessageKind::Resume { reason } => (tag::RESUME, reason),
        MessageKind::Purge => return out.push(tag::PURGE),
        // Written by the caller.
        MessageKind::Start { .. }
        | MessageKind::SubDone { .. }
        | MessageKind::TaskDone { .. }
        | MessageKind::Raise { .. }
        | MessageKind::Operate { .. }
        | MessageKind::Operated { .. } => return,
    };
    out.push(tag);
    output::text(out, reason);
}

/// Reads a message, which must take all of the bytes.
///
/// # Errors
/// With the place, if the bytes are not one message.
pub fn get_message(bytes: &[u8], fetch: &mut dyn Fetch) -> Result<Message, CodecError> {
    let mut input = Input::new(bytes);
    let message = message(&mut input, fetch)?;
    if input.is_at_end() { Ok(message) } else { Input::wrong(input.at(), "bytes behind a message, expected the end") }
}

pub(super) fn message(input: &mut Input<'_>, fetch: &mut dyn Fetch) -> Result<Message, CodecError> {
    let to = input.instance()?;
    let began = input.at();
    let kind = match input.byte()? {
        tag::START => MessageKind::Start {
            name: input.name()?,
            version: input.optional(Input::small)?,
            input: input.payload(fetch)?,
            parent: input.optional(Input::caller)?,
            at: input.optional(Input::time)?,
            reuse: reuse(input)?,
        },
        tag::SUB_DONE => {
            MessageKind::SubDone { generation: input.number()?, id: input.small()?, result: input.result(fetch)? }
        }
        tag::RAISE => MessageKind::Raise { name: input.name()?, data: input.payload(fetch)? },
        tag::OPERATE => MessageKind::Operate {
            operation: input.name()?,
            input: input.payload(fetch)?,
            caller: input.optional(Input::caller)?,
            at: input.optional(Input::time)?,
        },
        tag::TASK_DONE => {
            MessageKind::TaskDone { generation: input.number()?, id: input.small()?, result: input.result(fetch)? }
        }
        tag::OPERATED => {
            MessageKind::Operated { generation: input.number()?, id: input.small()?, result: input.result(fetch)? }
        }
        tag::LOCK => lock(input)?,
        tag::LOCKED => {
            MessageKind::Locked { generation: input.number()?, id: input.small()?, entities: input.entities()? }
        }
        tag::UNLOCK => MessageKind::Unlock { owner: input.caller()? },
        tag::TERMINATE => MessageKind::Terminate { reason: input.string()? },
        tag::SUSPEND => MessageKind::Suspend { reason: input.string()? },
        tag::RESUME => MessageKind::Resume { reason: input.string()? },
        tag::PURGE => MessageKind::Purge,
        other => return Input::wrong(began, format!("{other}, expected the kind of a message")),
    };
    Ok(Message { to, kind })
}

fn lock(input: &mut Input<'_>) -> Result<MessageKind, CodecError> {
    let owner = input.caller()?;
    let entities = input.entities()?;
    let began = input.at();
    let next: u32 = input.small()?;
    if next as usize >= entities.len() {
        return Input::wrong(began, format!("entity {next} of {}", entities.len()));
    }
    Ok(MessageKind::Lock { owner, entities, next })
}

fn reuse(input: &mut Input<'_>) -> Result<Reuse, CodecError> {
    let began = input.at();
    let number = input.byte()?;
    REUSES
        .get(usize::from(number))
        .copied()
        .map_or_else(|| Input::wrong(began, format!("{number}, expected what to do with a taken identifier")), Ok)
}
