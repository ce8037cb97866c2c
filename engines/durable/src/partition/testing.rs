//! A program without a programming model, for tests of the core: orchestrations are small scripts.
//!
//! `Cities` calls as many activities as its input says, one after another. `Wait` waits for the external event `go`.
//! `Sleep` waits a second. `Nest` runs `Cities` as a sub-orchestration, `Fan` as many that do nothing as its input says. `Again` continues as new as often as its input
//! says. The entity `Sum` adds up what it is given.

use std::time::Duration;

use crate::event::{Event, EventKind, Version};
use crate::failure::{Failure, FailureKind};
use crate::ids::{EntityId, InstanceId, Name, Time};
use crate::payload::Payload;
use crate::program::{ActivityCall, ActivityFuture, Cursor, EntityStep, Operation, Program, Progress};

pub(crate) fn number(value: u64) -> Payload {
    Payload::encode(&value).expect("a number")
}

pub(crate) fn id(text: &str) -> InstanceId {
    InstanceId::parse(text).expect("an identifier")
}

pub(crate) struct Scripts;

#[derive(Default)]
struct Script {
    name: String,
    instance: String,
    left: u64,
    next: u32,
    open: Option<u32>,
    is_over: bool,
}

impl Script {
    fn wait(&mut self, decisions: &mut Vec<EventKind>) -> Progress {
        let id = self.next;
        match self.name.as_str() {
            "Cities" if self.left > 0 => {
                decisions.push(EventKind::TaskScheduled { id, name: Name::Static("Hello"), input: number(self.left) });
            }
            "Nest" if self.left > 0 => decisions.push(self.sub(id, 2)),
            "Sleep" if self.left > 0 => return Progress::Waiting,
            "Wait" if self.left > 0 => return Progress::Waiting,
            "Again" if self.left > 0 => {
                decisions.push(EventKind::ContinuedAsNew { input: number(self.left - 1), unread: Vec::new() });
                return self.over();
            }
            _ => {
                decisions.push(EventKind::Completed { output: number(u64::from(self.next)) });
                return self.over();
            }
        }
        self.next += 1;
        self.open = Some(id);
        Progress::Waiting
    }

    fn sub(&self, id: u32, cities: u64) -> EventKind {
        EventKind::SubScheduled {
            id,
            name: Name::Static("Cities"),
            version: None,
            instance: super::testing::id(&format!("{}-{id}", self.instance)),
            input: number(cities),
            awaited: true,
        }
    }

    fn over(&mut self) -> Progress {
        self.is_over = true;
        Progress::Ended
    }
}

impl Cursor for Script {
    fn feed(&mut self, event: &Event, decisions: &mut Vec<EventKind>) -> Progress {
        if self.is_over {
            return Progress::Ignored;
        }
        match &event.kind {
            EventKind::Started { input, .. } => {
                self.left = input.decode().unwrap_or(0);
                if self.name == "Fan" {
                    decisions.extend((0..self.left as u32).map(|id| self.sub(id, 0)));
                    return Progress::Waiting;
                }
                if self.name == "Sleep" {
                    decisions.push(EventKind::TimerCreated { id: 0, at: event.time.plus(Duration::from_secs(1)) });
                    self.open = Some(0);
                }
            }
            EventKind::SubCompleted { .. } if self.name == "Fan" => {
                self.left -= 1;
                if self.left > 0 {
                    return Progress::Waiting;
                }
            }
            EventKind::TaskCompleted { id, .. } | EventKind::SubCompleted { id, .. } | EventKind::TimerFired { id } => {
                if self.open.take_if(|open| open == id).is_none() {
                    return Progress::Ignored;
                }
                self.left -= 1;
            }
            EventKind::EventRaised { name, .. } if name.as_str() == "go" => self.left -= 1,
            EventKind::SubFailed { failure, .. } | EventKind::TaskFailed { failure, .. } => {
                decisions.push(EventKind::Failed { failure: failure.clone() });
                return self.over();
            }
            _ => return Progress::Waiting,
        }
        self.wait(decisions)
    }

    fn replay(&mut self, history: &mut dyn Iterator<Item = Result<Event, Failure>>) -> Result<Progress, Failure> {
        let (mut decided, mut progress) = (Vec::new(), Progress::Waiting);
        for event in history {
            let event = event?;
            if event.kind.is_outside() {
                decided.clear();
                progress = self.feed(&event, &mut decided);
                decided.reverse();
            } else if decided.pop().as_ref() != Some(&event.kind) {
                return Err(Failure::new(FailureKind::Nondeterminism, format!("{:?} was not decided", event.kind)));
            }
        }
        Ok(progress)
    }

    fn bytes(&self) -> usize {
        200
    }
}

impl Program for Scripts {
    fn newest(&self, _: &str) -> Option<Version> {
        Some(0)
    }

    fn cursor(&self, instance: &InstanceId, name: &str, _: Version) -> Result<Box<dyn Cursor>, Failure> {
        if !["Cities", "Wait", "Sleep", "Nest", "Fan", "Again"].contains(&name) {
            return Err(Failure::new(FailureKind::Unregistered, format!("there is no orchestration {name}")));
        }
        Ok(Box::new(Script { name: name.to_owned(), instance: instance.to_string(), ..Script::default() }))
    }

    fn is_idempotent(&self, _: &str) -> bool {
        false
    }

    fn run(&self, call: ActivityCall) -> ActivityFuture {
        Box::pin(async move { Ok(call.input) })
    }

    fn operate(&self, _: &EntityId, state: Option<&Payload>, operations: &[Operation], _: Time) -> EntityStep {
        let mut sum: u64 = state.and_then(|state| state.decode().ok()).unwrap_or(0);
        let results = operations.iter().map(|operation| {
            sum += operation.input.decode::<u64>().unwrap_or(0);
            Ok(number(sum))
        });
        let results = results.collect();
        EntityStep { state: Some(number(sum)), results, messages: Vec::new() }
    }
}

/// [`Scripts`] without its orchestrations.
pub(crate) struct EmptyProgram;

impl Program for EmptyProgram {
    fn newest(&self, name: &str) -> Option<Version> {
        Scripts.newest(name)
    }

    fn cursor(&self, _: &InstanceId, name: &str, _: Version) -> Result<Box<dyn Cursor>, Failure> {
        Err(Failure::new(FailureKind::Unregistered, format!("there is no orchestration {name}")))
    }

    fn is_idempotent(&self, _: &str) -> bool {
        false
    }

    fn run(&self, call: ActivityCall) -> ActivityFuture {
        Scripts.run(call)
    }

    fn operate(&self, id: &EntityId, state: Option<&Payload>, operations: &[Operation], now: Time) -> EntityStep {
        Scripts.operate(id, state, operations, now)
    }
}
