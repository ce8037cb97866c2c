//! The cursor: one execution of an orchestration, driven by outside events.
//!
//! The code is a future that is polled once per event that it awaits; what its awaits decided lies in the shared state
//! afterwards. A future that waits though nothing is open, or that has used its waker, has awaited what is
//! not its context's: the execution fails, by name, in place of hanging.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use serde::Serialize;

use crate::event::{Event, EventKind};
use crate::failure::{Failure, FailureKind};
use crate::ids::Time;
use crate::model::context::Ctx;
use crate::model::shared::{Delivery, Shared};
use crate::model::{replay, sentry};
use crate::payload::Payload;
use crate::program::{Cursor, Progress};

/// An orchestration's code without its types.
pub(super) trait Code: Send + Sync {
    /// Makes the future; its input may not fit.
    fn begin(&self, ctx: Ctx, input: &Payload) -> Result<Pin<Box<dyn Run>>, Failure>;
}

/// A future of user code without its type.
pub(super) trait Run {
    fn run(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<Payload, Failure>>;
}

impl<F, O> Run for F
where
    F: Future<Output = Result<O, Failure>>,
    O: Serialize,
{
    fn run(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<Payload, Failure>> {
        self.poll(context).map(|result| result.and_then(|output| Payload::encode(&output)))
    }
}

/// Start of the panic message of tokio's futures outside of its runtime. They panic before they are awaited.
const NO_RUNTIME: &str = "must be called from the context of a Tokio";

/// One execution in the middle of its code.
pub(super) struct Execution {
    shared: Rc<Shared>,
    code: Arc<dyn Code>,
    stage: Stage,
    /// Events that came while it is suspended.
    kept: Option<VecDeque<EventKind>>,
}

enum Stage {
    Fresh,
    Running(Pin<Box<dyn Run>>),
    Ended,
}

impl Execution {
    pub(super) fn new(shared: Rc<Shared>, code: Arc<dyn Code>) -> Self {
        Self { shared, code, stage: Stage::Fresh, kept: None }
    }

    fn take(&mut self, event: &Event) -> Progress {
        match (&self.stage, &event.kind) {
            (Stage::Fresh, EventKind::Started { generation, input, .. }) => self.begin(event.time, *generation, input),
            (Stage::Fresh | Stage::Ended, _) | (_, EventKind::Started { .. }) => Progress::Ignored,
            (_, EventKind::Terminated { .. }) => {
                self.close();
                Progress::Ended
            }
            (_, EventKind::Suspended { .. }) if self.kept.is_none() => {
                self.kept = Some(VecDeque::new());
                Progress::Waiting
            }
            (_, EventKind::Resumed { .. }) => self.resume(event.time),
            (_, kind) => self.give(event.time, kind),
        }
    }

    fn begin(&mut self, now: Time, generation: u64, input: &Payload) -> Progress {
        let mut state = self.shared.state_mut();
        state.now = now;
        state.generation = generation;
        state.is_polling = true;
        drop(state);
        let begun = catch_unwind(AssertUnwindSafe(|| self.code.begin(Ctx::new(&self.shared), input)));
        self.shared.state_mut().is_polling = false;
        match begun {
            Ok(Ok(run)) => {
                self.stage = Stage::Running(run);
                self.run()
            }
            Ok(Err(failure)) => self.condemn(failure),
            Err(panic) => self.condemn(self.panicked(&*panic)),
        }
    }

    fn give(&mut self, now: Time, kind: &EventKind) -> Progress {
        let mut state = self.shared.state_mut();
        if let Some(kept) = &mut self.kept {
            if !state.accepts(kind) {
                return Progress::Ignored;
            }
            kept.push_back(kind.clone());
            return Progress::Waiting;
        }
        let before = std::mem::replace(&mut state.now, now);
        match state.deliver(kind) {
            Delivery::Refused => {
                state.now = before;
                Progress::Ignored
            }
            Delivery::Kept => Progress::Waiting,
            Delivery::Woken => {
                drop(state);
                self.run()
            }
        }
    }

    fn resume(&mut self, now: Time) -> Progress {
        let Some(mut kept) = self.kept.take() else { return Progress::Ignored };
        while let Some(kind) = kept.pop_front() {
            // The code may have given up meanwhile what this one completes.
            if self.give(now, &kind) == Progress::Ended {
                self.pass_on(&kept);
                return Progress::Ended;
            }
        }
        self.shared.state_mut().now = now;
        Progress::Waiting
    }

    /// Gives events that were kept back to the generation that follows.
    fn pass_on(&self, kept: &VecDeque<EventKind>) {
        if let Some(EventKind::ContinuedAsNew { unread, .. }) = self.shared.state_mut().decisions.last_mut() {
            unread.extend(kept.iter().filter_map(|kind| match kind {
                EventKind::EventRaised { name, data } => Some((name.clone(), data.clone())),
                _ => None,
            }));
        }
    }

    /// Polls the code once.
    fn run(&mut self) -> Progress {
        let Stage::Running(run) = &mut self.stage else { return Progress::Ignored };
        let mut state = self.shared.state_mut();
        state.is_polling = true;
        state.is_waiting = false;
        drop(state);
        let watched = sentry::watch(|context| catch_unwind(AssertUnwindSafe(|| run.as_mut().run(context))));
        let mut state = self.shared.state_mut();
        state.is_polling = false;
        state.branch = None;
        let (fatal, is_waiting) = (state.fatal.take(), state.is_waiting);
        drop(state);
        match (watched.value, fatal) {
            (Err(panic), _) => self.condemn(self.panicked(&*panic)),
            (Ok(_), Some(failure)) => self.condemn(*failure),
            (Ok(_), None) if watched.is_waker_used => self.condemn(self.shared.foreign()),
            (Ok(Poll::Ready(result)), None) => self.end(result),
            (Ok(Poll::Pending), None) if is_waiting => Progress::Waiting,
            (Ok(Poll::Pending), None) => self.condemn(self.shared.foreign()),
        }
    }

    /// Ends with the engine's verdict on the code, which no continuing as new undoes.
    fn condemn(&mut self, failure: Failure) -> Progress {
        self.shared.state_mut().next = None;
        self.end(Err(failure))
    }

    fn end(&mut self, result: Result<Payload, Failure>) -> Progress {
        self.close();
        let mut state = self.shared.state_mut();
        let decision = match (state.next.take(), result) {
            (Some(input), _) => {
                let unread = state.mailbox.take().map(|mailbox| mailbox.into_letters()).unwrap_or_default();
                EventKind::ContinuedAsNew { input, unread }
            }
            (None, Ok(output)) => EventKind::Completed { output },
            (None, Err(failure)) => EventKind::Failed { failure: failure.bounded() },
        };
        state.decisions.push(decision);
        Progress::Ended
    }

    /// Drops the code. What it drops decides nothing any more, and its panics end here.
    fn close(&mut self) {
        let stage = std::mem::replace(&mut self.stage, Stage::Ended);
        if let Stage::Running(run) = stage {
            let _ = catch_unwind(AssertUnwindSafe(|| drop(run)));
        }
    }

    fn panicked(&self, panic: &(dyn Any + Send)) -> Failure {
        if said(panic).contains(NO_RUNTIME) {
            return self.shared.foreign();
        }
        Failure::new(FailureKind::Panic, format!("orchestration {} panicked: {}", self.shared.name, said(panic)))
    }
}

/// Message of a panic.
pub(super) fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

impl Cursor for Execution {
    fn feed(&mut self, event: &Event, decisions: &mut Vec<EventKind>) -> Progress {
        std::mem::swap(&mut self.shared.state_mut().decisions, decisions);
        let progress = self.take(event);
        std::mem::swap(&mut self.shared.state_mut().decisions, decisions);
        progress
    }

    fn replay(&mut self, history: &mut dyn Iterator<Item = Result<Event, Failure>>) -> Result<Progress, Failure> {
        self.shared.state_mut().is_replaying = true;
        let replayed = replay::replay(self, history);
        self.shared.state_mut().is_replaying = false;
        replayed
    }

    fn bytes(&self) -> usize {
        let run = if let Stage::Running(run) = &self.stage { size_of_val(&**run) } else { 0 };
        let kept = self.kept.as_ref().map_or(0, |kept| kept.capacity() * size_of::<EventKind>());
        size_of::<Self>() + size_of::<Shared>() + self.shared.state().heap_bytes() + run + kept
    }
}

impl Drop for Execution {
    fn drop(&mut self) {
        self.close();
    }
}
