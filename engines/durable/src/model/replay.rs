//! Replay: a history fed to fresh code, and each decision compared with the one that stands there.
//!
//! Values are equal if their bytes are, or if they are the same JSON but for the order of keys: a map that a program
//! writes in another order after a restart is no other decision.

use std::collections::VecDeque;

use crate::event::{Event, EventKind};
use crate::failure::{Failure, FailureKind};
use crate::payload::Payload;
use crate::program::{Cursor, Progress};

/// Feeds `history` to `cursor`, which has seen nothing yet.
pub(super) fn replay(
    cursor: &mut dyn Cursor,
    history: &mut dyn Iterator<Item = Result<Event, Failure>>,
) -> Result<Progress, Failure> {
    let mut progress = Progress::Waiting;
    let mut decided = Vec::new();
    let mut expected: VecDeque<EventKind> = VecDeque::new();
    let mut count = 0;
    for event in history {
        let event = event?;
        let place = count;
        count += 1;
        if !event.kind.is_outside() {
            match expected.pop_front() {
                Some(decision) if is_same(&decision, &event.kind) => continue,
                Some(decision) => return Err(differs(place, &describe(&event.kind), &decides(&decision))),
                None => return Err(differs(place, &describe(&event.kind), "the code decides nothing more")),
            }
        }
        if let Some(decision) = expected.front() {
            return Err(differs(place, &describe(&event.kind), &decides(decision)));
        }
        progress = cursor.feed(&event, &mut decided);
        if progress == Progress::Ignored {
            return Err(differs(place, &describe(&event.kind), "the code does not wait for it"));
        }
        expected.extend(decided.drain(..));
    }
    match expected.front() {
        Some(decision) => Err(differs(count, "the end of the history", &decides(decision))),
        None => Ok(progress),
    }
}

fn differs(place: usize, found: &str, instead: &str) -> Failure {
    let text = format!(
        "event {place} of the history, counted from 0, is {found}, but {instead}; code that has changed needs a version \
         of its own"
    );
    Failure::new(FailureKind::Nondeterminism, text)
}

fn decides(decision: &EventKind) -> String {
    format!("the code decides {}", describe(decision))
}

/// An event in a few words: its kind, its number, its name.
fn describe(kind: &EventKind) -> String {
    match kind {
        EventKind::Started { name, version, .. } => format!("Started({name}, version {version})"),
        EventKind::TaskCompleted { id, .. } => format!("TaskCompleted({id})"),
        EventKind::TaskFailed { id, .. } => format!("TaskFailed({id})"),
        EventKind::TimerFired { id } => format!("TimerFired({id})"),
        EventKind::SubCompleted { id, .. } => format!("SubCompleted({id})"),
        EventKind::SubFailed { id, .. } => format!("SubFailed({id})"),
        EventKind::EventRaised { name, .. } => format!("EventRaised({name})"),
        EventKind::OperationCompleted { id, .. } => format!("OperationCompleted({id})"),
        EventKind::OperationFailed { id, .. } => format!("OperationFailed({id})"),
        EventKind::LockGranted { id } => format!("LockGranted({id})"),
        EventKind::Suspended { .. } => "Suspended".to_owned(),
        EventKind::Resumed { .. } => "Resumed".to_owned(),
        EventKind::Terminated { .. } => "Terminated".to_owned(),
        decision => describe_decision(decision),
    }
}

fn describe_decision(kind: &EventKind) -> String {
    match kind {
        EventKind::TaskScheduled { id, name, input } => format!("TaskScheduled({id}, {name}, {input:?})"),
        EventKind::TimerCreated { id, at } => format!("TimerCreated({id}, at {} µs)", at.0),
        EventKind::TimerCancelled { id } => format!("TimerCancelled({id})"),
        EventKind::SubScheduled { id, name, instance, input, .. } => {
            format!("SubScheduled({id}, {name}, as {instance}, {input:?})")
        }
        EventKind::EventSent { id, instance, name, data } => {
            format!("EventSent({id}, {name} to {instance}, {data:?})")
        }
        EventKind::EntityCalled { id, entity, operation, input } => {
            format!("EntityCalled({id}, {operation} of {entity}, {input:?})")
        }
        EventKind::EntitySignalled { id, entity, operation, input, .. } => {
            format!("EntitySignalled({id}, {operation} of {entity}, {input:?})")
        }
        EventKind::LockRequested { id, entities } => format!("LockRequested({id}, {} entities)", entities.len()),
        EventKind::LockReleased { id, .. } => format!("LockReleased({id})"),
        EventKind::StatusSet { status } => format!("StatusSet({status:?})"),
        EventKind::Completed { output } => format!("Completed({output:?})"),
        EventKind::Failed { failure } => format!("Failed({failure})"),
        EventKind::ContinuedAsNew { input, unread } => {
            format!("ContinuedAsNew({input:?}, {} events unread)", unread.len())
        }
        _ => "an event of another kind".to_owned(),
    }
}

/// Whether two decisions are the same.
fn is_same(decided: &EventKind, stored: &EventKind) -> bool {
    if decided == stored {
        return true;
    }
    let (mut decided, mut stored) = (decided.clone(), stored.clone());
    match (payload(&mut decided), payload(&mut stored)) {
        (Some(one), Some(other)) => {
            let (one, other) = (std::mem::take(one), std::mem::take(other));
            is_same_json(&one, &other) && decided == stored
        }
        _ => false,
    }
}

fn payload(decision: &mut EventKind) -> Option<&mut Payload> {
    match decision {
        EventKind::TaskScheduled { input, .. }
        | EventKind::SubScheduled { input, .. }
        | EventKind::EntityCalled { input, .. }
        | EventKind::EntitySignalled { input, .. }
        | EventKind::ContinuedAsNew { input, .. } => Some(input),
        EventKind::EventSent { data, .. } => Some(data),
        EventKind::StatusSet { status } => Some(status),
        EventKind::Completed { output } => Some(output),
        _ => None,
    }
}

pub(super) fn is_same_json(one: &Payload, other: &Payload) -> bool {
    let read = |payload: &Payload| serde_json::from_slice::<serde_json::Value>(payload.as_bytes()).ok();
    matches!((read(one), read(other)), (Some(one), Some(other)) if one == other)
}
