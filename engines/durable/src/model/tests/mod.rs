//! Cursors driven by hand: events in, decisions out, and every history replayed.

mod calls;
mod combine;
mod entities;
mod faults;
mod hub;
mod lifecycle;
mod random;
mod replays;
mod waits;

use crate::event::{Event, EventKind};
use crate::failure::Failure;
use crate::ids::{InstanceId, Name, Time};
use crate::model::Registry;
use crate::payload::Payload;
use crate::program::{Cursor, Program, Progress};
use serde::Serialize;

/// One second, in the unit of [`Time`].
const SECOND: u64 = 1_000_000;

/// An execution and its history so far.
struct Run<'a> {
    registry: &'a Registry,
    name: &'static str,
    cursor: Box<dyn Cursor>,
    history: Vec<Event>,
    now: Time,
    progress: Progress,
}

impl<'a> Run<'a> {
    /// Starts an orchestration and gives its first decisions.
    fn start(registry: &'a Registry, name: &'static str, input: impl Serialize) -> (Self, Vec<EventKind>) {
        let version = registry.newest(name).expect("registered");
        let cursor = registry.cursor(&instance(), name, version).expect("registered");
        let progress = Progress::Waiting;
        let mut run = Self { registry, name, cursor, history: Vec::new(), now: Time(SECOND), progress };
        let input = json(input);
        let name = Name::Static(name);
        let decisions = run.feed(EventKind::Started { name, version, generation: 0, input, parent: None });
        (run, decisions)
    }

    /// Feeds an event a second after the last.
    fn feed(&mut self, kind: EventKind) -> Vec<EventKind> {
        self.now = Time(self.now.0 + SECOND);
        let event = Event { time: self.now, kind };
        let mut decisions = Vec::new();
        self.progress = self.cursor.feed(&event, &mut decisions);
        if self.progress == Progress::Ignored {
            assert!(decisions.is_empty(), "an ignored event caused {decisions:?}");
            return decisions;
        }
        assert_eq!(self.progress == Progress::Ended, decisions.last().is_some_and(EventKind::is_end));
        self.history.push(event);
        let time = self.now;
        self.history.extend(decisions.iter().map(|kind| Event { time, kind: kind.clone() }));
        decisions
    }

    fn complete(&mut self, id: u32, result: impl Serialize) -> Vec<EventKind> {
        self.feed(EventKind::TaskCompleted { id, result: json(result) })
    }

    fn fail(&mut self, id: u32, message: &str) -> Vec<EventKind> {
        self.feed(EventKind::TaskFailed { id, failure: Failure::application(message) })
    }

    fn fire(&mut self, id: u32) -> Vec<EventKind> {
        self.feed(EventKind::TimerFired { id })
    }

    fn raise(&mut self, name: &'static str, data: impl Serialize) -> Vec<EventKind> {
        self.feed(EventKind::EventRaised { name: Name::Static(name), data: json(data) })
    }

    /// Replays every beginning of the history that a store could hold.
    fn check_replays(&self) {
        for end in 1..=self.history.len() {
            let is_whole = self.history.get(end).is_none_or(|next| next.kind.is_outside());
            if is_whole {
                let replayed = replay(self.registry, self.name, &self.history[..end]);
                assert!(replayed.is_ok(), "after {end} events: {replayed:?}");
            }
        }
        assert_eq!(replay(self.registry, self.name, &self.history), Ok(self.stands()));
    }

    /// Whether the execution has ended, whatever became of the last event.
    fn stands(&self) -> Progress {
        let is_ended = self.history.last().is_some_and(|event| event.kind.is_end());
        if is_ended { Progress::Ended } else { Progress::Waiting }
    }

    /// Puts a replayed cursor in place of the live one, as after a crash.
    fn recover(&mut self) {
        let version = self.registry.newest(self.name).expect("registered");
        self.cursor = self.registry.cursor(&instance(), self.name, version).expect("registered");
        let replayed = self.cursor.replay(&mut self.history.iter().cloned().map(Ok));
        assert_eq!(replayed, Ok(self.stands()));
    }
}

fn replay(registry: &Registry, name: &str, history: &[Event]) -> Result<Progress, Failure> {
    let version = registry.newest(name).expect("registered");
    registry.cursor(&instance(), name, version)?.replay(&mut history.iter().cloned().map(Ok))
}

fn instance() -> InstanceId {
    InstanceId::new("orders-7").expect("an identifier")
}

fn json(value: impl Serialize) -> Payload {
    Payload::encode(&value).expect("JSON")
}

fn scheduled(id: u32, name: &'static str, input: impl Serialize) -> EventKind {
    EventKind::TaskScheduled { id, name: Name::Static(name), input: json(input) }
}

fn completed(output: impl Serialize) -> EventKind {
    EventKind::Completed { output: json(output) }
}

fn timer(id: u32, at: Time) -> EventKind {
    EventKind::TimerCreated { id, at }
}

fn failure_of(decisions: &[EventKind]) -> &Failure {
    match decisions.last() {
        Some(EventKind::Failed { failure }) => failure,
        other => panic!("expected a failure, found {other:?}"),
    }
}
