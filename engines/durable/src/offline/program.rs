//! Placeholder for an absent program: it takes every event and decides nothing.

use crate::event::{Event, EventKind, Version};
use crate::failure::{Failure, FailureKind};
use crate::ids::{EntityId, InstanceId, Time};
use crate::payload::Payload;
use crate::program::{ActivityCall, ActivityFuture, Cursor, EntityStep, Operation, Program, Progress};

pub(super) struct NoProgram;

/// Takes the event that suspends it, the only one that is fed here; no code ever responds to it.
struct NoCursor;

impl Cursor for NoCursor {
    fn feed(&mut self, event: &Event, _: &mut Vec<EventKind>) -> Progress {
        match event.kind {
            EventKind::Suspended { .. } => Progress::Waiting,
            _ => Progress::Ignored,
        }
    }

    fn replay(&mut self, _: &mut dyn Iterator<Item = Result<Event, Failure>>) -> Result<Progress, Failure> {
        Ok(Progress::Waiting)
    }

    fn bytes(&self) -> usize {
        0
    }
}

impl Program for NoProgram {
    fn newest(&self, _: &str) -> Option<Version> {
        None
    }

    fn cursor(&self, _: &InstanceId, _: &str, _: Version) -> Result<Box<dyn Cursor>, Failure> {
        Ok(Box::new(NoCursor))
    }

    fn is_idempotent(&self, _: &str) -> bool {
        false
    }

    fn run(&self, call: ActivityCall) -> ActivityFuture {
        Box::pin(std::future::ready(Err(no_code(call.name.as_str()))))
    }

    fn operate(&self, _: &EntityId, state: Option<&Payload>, operations: &[Operation], _: Time) -> EntityStep {
        let results = operations.iter().map(|operation| Err(no_code(operation.name.as_str()))).collect();
        EntityStep { state: state.cloned(), results, messages: Vec::new() }
    }
}

fn no_code(name: &str) -> Failure {
    Failure::new(FailureKind::Unregistered, format!("there is no code of {name}"))
}
