//! Events of a history.

use super::input::Input;
use super::{CodecError, Fetch, Spill, output};
use crate::event::{Event, EventKind};
use crate::ids::Time;

/// Kind of the event that follows. Its number is stored: new kinds get new numbers, old ones stay.
mod tag {
    pub(super) const STARTED: u8 = 1;
    pub(super) const TASK_COMPLETED: u8 = 2;
    pub(super) const TASK_FAILED: u8 = 3;
    pub(super) const TIMER_FIRED: u8 = 4;
    pub(super) const SUB_COMPLETED: u8 = 5;
    pub(super) const SUB_FAILED: u8 = 6;
    pub(super) const EVENT_RAISED: u8 = 7;
    pub(super) const OPERATION_COMPLETED: u8 = 8;
    pub(super) const OPERATION_FAILED: u8 = 9;
    pub(super) const LOCK_GRANTED: u8 = 10;
    pub(super) const SUSPENDED: u8 = 11;
    pub(super) const RESUMED: u8 = 12;
    pub(super) const TERMINATED: u8 = 13;
    pub(super) const TASK_SCHEDULED: u8 = 20;
    pub(super) const TIMER_CREATED: u8 = 21;
    pub(super) const TIMER_CANCELLED: u8 = 22;
    pub(super) const SUB_SCHEDULED: u8 = 23;
    pub(super) const EVENT_SENT: u8 = 24;
    pub(super) const ENTITY_CALLED: u8 = 25;
    pub(super) const ENTITY_SIGNALLED: u8 = 26;
    pub(super) const LOCK_REQUESTED: u8 = 27;
    pub(super) const LOCK_RELEASED: u8 = 28;
    pub(super) const STATUS_SET: u8 = 29;
    pub(super) const COMPLETED: u8 = 30;
    pub(super) const FAILED: u8 = 31;
    pub(super) const CONTINUED_AS_NEW: u8 = 32;
}

/// Writes an event behind `out`. `previous` is the time of the event before it in its history, [`Time`]`(0)` for the
/// first: the difference is written, which is negative after a clock was set back.
pub fn put_event(out: &mut Vec<u8>, previous: Time, time: Time, kind: &EventKind, spill: &mut dyn Spill) {
    if kind.is_outside() {
        put_outside(out, difference(previous, time), kind, spill);
    } else {
        put_decision(out, difference(previous, time), kind, spill);
    }
}

/// How much later it is, twice; one less than twice how much earlier.
fn difference(previous: Time, time: Time) -> u64 {
    let later = time.0.wrapping_sub(previous.0) as i64;
    ((later << 1) ^ (later >> 63)) as u64
}

/// The moment that is so much later.
fn later(previous: Time, difference: u64) -> Option<Time> {
    let later = (difference >> 1) as i64 ^ -((difference & 1) as i64);
    previous.0.checked_add_signed(later).map(Time)
}

/// Header of every event.
fn head(out: &mut Vec<u8>, tag: u8, later: u64) {
    out.push(tag);
    output::number(out, later);
}

/// The head of an event that carries the number of a decision.
fn numbered(out: &mut Vec<u8>, tag: u8, later: u64, id: u32) {
    head(out, tag, later);
    output::number(out, u64::from(id));
}

fn put_outside(out: &mut Vec<u8>, later: u64, kind: &EventKind, spill: &mut dyn Spill) {
    match kind {
        EventKind::Started { name, version, generation, input, parent } => {
            head(out, tag::STARTED, later);
            output::text(out, name.as_str());
            output::number(out, u64::from(*version));
            output::number(out, *generation);
            output::payload(out, input, spill);
            output::optional(out, parent.as_ref(), output::caller);
        }
        EventKind::TaskCompleted { id, result } => {
            numbered(out, tag::TASK_COMPLETED, later, *id);
            output::payload(out, result, spill);
        }
        EventKind::TaskFailed { id, failure } => {
            numbered(out, tag::TASK_FAILED, later, *id);
            output::failure(out, failure, spill);
        }
        EventKind::TimerFired { id } => numbered(out, tag::TIMER_FIRED, later, *id),
        EventKind::SubCompleted { id, result } => {
            numbered(out, tag::SUB_COMPLETED, later, *id);
            output::payload(out, result, spill);
        }
        EventKind::SubFailed { id, failure } => {
            numbered(out, tag::SUB_FAILED, later, *id);
            output::failure(out, failure, spill);
        }
        EventKind::EventRaised { name, data } => {
            head(out, tag::EVENT_RAISED, later);
            output::text(out, name.as_str());
            output::payload(out, data, spill);
        }
        EventKind::OperationCompleted { id, result } => {
            numbered(out, tag::OPERATION_COMPLETED, later, *id);
            output::payload(out, result, spill);
        }
        EventKind::OperationFailed { id, failure } => {
            numbered(out, tag::OPERATION_FAILED, later, *id);
            output::failure(out, failure, spill);
        }
        EventKind::LockGranted { id } => numbered(out, tag::LOCK_GRANTED, later, *id),
        EventKind::Suspended { reason } => put_reason(out, tag::SUSPENDED, later, reason),
        EventKind::Resumed { reason } => put_reason(out, tag::RESUMED, later, reason),
        EventKind::Terminated { reason } => put_reason(out, tag::TERMINATED, later, reason),
        _ => {}
    }
}

fn put_reason(out: &mut Vec<u8>, tag: u8, later: u64, reason: &str) {
    head(out, tag, later);
    output::text(out, reason);
}

fn put_decision(out: &mut Vec<u8>, later: u64, kind: &EventKind, spill: &mut dyn Spill) {
    match kind {
        EventKind::TaskScheduled { id, name, input } => {
            numbered(out, tag::TASK_SCHEDULED, later, *id);
            output::text(out, name.as_str());
            output::payload(out, input, spill);
        }
        EventKind::TimerCreated { id, at } => {
            numbered(out, tag::TIMER_CREATED, later, *id);
            output::time(out, at);
        }
        EventKind::TimerCancelled { id } => numbered(out, tag::TIMER_CANCELLED, later, *id),
        EventKind::SubScheduled { id, name, version, instance, input, awaited } => {
            numbered(out, tag::SUB_SCHEDULED, later, *id);
            output::text(out, name.as_str());
            output::optional(out, *version, |out, version| output::number(out, u64::from(version)));
            output::text(out, instance.as_str());
            output::payload(out, input, spill);
            out.push(u8::from(*awaited));
        }
        EventKind::EventSent { id, instance, name, data } => {
            numbered(out, tag::EVENT_SENT, later, *id);
            output::text(out, instance.as_str());
            output::text(out, name.as_str());
            output::payload(out, data, spill);
        }
        EventKind::EntityCalled { id, entity, operation, input } => {
            numbered(out, tag::ENTITY_CALLED, later, *id);
            output::text(out, entity.instance().as_str());
            output::text(out, operation.as_str());
            output::payload(out, input, spill);
        }
        EventKind::EntitySignalled { id, entity, operation, input, at } => {
            numbered(out, tag::ENTITY_SIGNALLED, later, *id);
            output::text(out, entity.instance().as_str());
            output::text(out, operation.as_str());
            output::payload(out, input, spill);
            output::optional(out, at.as_ref(), output::time);
        }
        EventKind::LockRequested { id, entities } => {
            numbered(out, tag::LOCK_REQUESTED, later, *id);
            output::entities(out, entities);
        }
        EventKind::LockReleased { id, entities } => {
            numbered(out, tag::LOCK_RELEASED, later, *id);
            output::entities(out, entities);
        }
        other => put_end(out, later, other, spill),
    }
}

fn put_end(out: &mut Vec<u8>, later: u64, kind: &EventKind, spill: &mut dyn Spill) {
    match kind {
        EventKind::StatusSet { status } => {
            head(out, tag::STATUS_SET, later);
            output::payload(out, status, spill);
        }
        EventKind::Completed { output: value } => {
            head(out, tag::COMPLETED, later);
            output::payload(out, value, spill);
        }
        EventKind::Failed { failure } => {
            head(out, tag::FAILED, later);
            output::failure(out, failure, spill);
        }
        EventKind::ContinuedAsNew { input, unread } => {
            head(out, tag::CONTINUED_AS_NEW, later);
            output::payload(out, input, spill);
            output::number(out, unread.len() as u64);
            for (name, data) in unread {
                output::text(out, name.as_str());
                output::payload(out, data, spill);
            }
        }
        _ => {}
    }
}

/// Reads events that were written one behind another. Ends after the first error.
pub struct Events<'a> {
    input: Input<'a>,
    previous: Time,
    fetch: &'a mut dyn Fetch,
    is_broken: bool,
}

impl<'a> Events<'a> {
    /// Reads `bytes`; `previous` is the time of the event before the first of them, [`Time`]`(0)` if there is none.
    pub fn new(bytes: &'a [u8], previous: Time, fetch: &'a mut dyn Fetch) -> Self {
        Self { input: Input::new(bytes), previous, fetch, is_broken: false }
    }

    /// How many bytes the events given so far took.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.input.at()
    }

    fn event(&mut self) -> Result<Event, CodecError> {
        let began = self.input.at();
        let tag = self.input.byte()?;
        let difference = self.input.number()?;
        let Some(time) = later(self.previous, difference) else {
            return Input::wrong(began + 1, format!("a difference of {difference}, which is outside of time"));
        };
        let kind = if tag < tag::TASK_SCHEDULED { self.outside(began, tag)? } else { self.decision(began, tag)? };
        self.previous = time;
        Ok(Event { time: self.previous, kind })
    }

    fn outside(&mut self, began: usize, tag: u8) -> Result<EventKind, CodecError> {
        let Self { input, fetch, .. } = self;
        let fetch: &mut dyn Fetch = *fetch;
        Ok(match tag {
            tag::STARTED => EventKind::Started {
                name: input.name()?,
                version: input.small()?,
                generation: input.number()?,
                input: input.payload(fetch)?,
                parent: input.optional(Input::caller)?,
            },
            tag::TASK_COMPLETED => EventKind::TaskCompleted { id: input.small()?, result: input.payload(fetch)? },
            tag::TASK_FAILED => EventKind::TaskFailed { id: input.small()?, failure: input.failure(fetch)? },
            tag::TIMER_FIRED => EventKind::TimerFired { id: input.small()? },
            tag::SUB_COMPLETED => EventKind::SubCompleted { id: input.small()?, result: input.payload(fetch)? },
            tag::SUB_FAILED => EventKind::SubFailed { id: input.small()?, failure: input.failure(fetch)? },
            tag::EVENT_RAISED => EventKind::EventRaised { name: input.name()?, data: input.payload(fetch)? },
            tag::OPERATION_COMPLETED => {
                EventKind::OperationCompleted { id: input.small()?, result: input.payload(fetch)? }
            }
            tag::OPERATION_FAILED => EventKind::OperationFailed { id: input.small()?, failure: input.failure(fetch)? },
            tag::LOCK_GRANTED => EventKind::LockGranted { id: input.small()? },
            tag::SUSPENDED => EventKind::Suspended { reason: input.string()? },
            tag::RESUMED => EventKind::Resumed { reason: input.string()? },
            tag::TERMINATED => EventKind::Terminated { reason: input.string()? },
            other => return Input::wrong(began, format!("{other}, expected the kind of an event")),
        })
    }

    fn decision(&mut self, began: usize, tag: u8) -> Result<EventKind, CodecError> {
        let Self { input, fetch, .. } = self;
        let fetch: &mut dyn Fetch = *fetch;
        Ok(match tag {
            tag::TASK_SCHEDULED => {
                EventKind::TaskScheduled { id: input.small()?, name: input.name()?, input: input.payload(fetch)? }
            }
            tag::TIMER_CREATED => EventKind::TimerCreated { id: input.small()?, at: input.time()? },
            tag::TIMER_CANCELLED => EventKind::TimerCancelled { id: input.small()? },
            tag::SUB_SCHEDULED => EventKind::SubScheduled {
                id: input.small()?,
                name: input.name()?,
                version: input.optional(Input::small)?,
                instance: input.instance()?,
                input: input.payload(fetch)?,
                awaited: input.flag()?,
            },
            tag::EVENT_SENT => EventKind::EventSent {
                id: input.small()?,
                instance: input.instance()?,
                name: input.name()?,
                data: input.payload(fetch)?,
            },
            tag::ENTITY_CALLED => EventKind::EntityCalled {
                id: input.small()?,
                entity: input.entity()?,
                operation: input.name()?,
                input: input.payload(fetch)?,
            },
            tag::ENTITY_SIGNALLED => EventKind::EntitySignalled {
                id: input.small()?,
                entity: input.entity()?,
                operation: input.name()?,
                input: input.payload(fetch)?,
                at: input.optional(Input::time)?,
            },
            tag::LOCK_REQUESTED => EventKind::LockRequested { id: input.small()?, entities: input.entities()? },
            tag::LOCK_RELEASED => EventKind::LockReleased { id: input.small()?, entities: input.entities()? },
            tag::STATUS_SET => EventKind::StatusSet { status: input.payload(fetch)? },
            tag::COMPLETED => EventKind::Completed { output: input.payload(fetch)? },
            tag::FAILED => EventKind::Failed { failure: input.failure(fetch)? },
            tag::CONTINUED_AS_NEW => EventKind::ContinuedAsNew {
                input: input.payload(fetch)?,
                unread: input.list(|input| Ok((input.name()?, input.payload(fetch)?)))?,
            },
            other => return Input::wrong(began, format!("{other}, expected the kind of an event")),
        })
    }
}

impl Iterator for Events<'_> {
    type Item = Result<Event, CodecError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_broken || self.input.is_at_end() {
            return None;
        }
        let event = self.event();
        self.is_broken = event.is_err();
        Some(event)
    }
}

impl std::fmt::Debug for Events<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Events").field("input", &self.input).field("previous", &self.previous).finish_non_exhaustive()
    }
}
