//! Calls of activities and of sub-orchestrations, with attempts and timeouts.
//!
//! Attempts are decisions of the orchestration like any others: each schedules anew, pauses are durable timers. The
//! engine's core knows nothing of them.

use std::marker::PhantomData;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use serde::de::DeserializeOwned;

use crate::event::{EventKind, Version};
use crate::failure::{Failure, FailureKind};
use crate::ids::{InstanceId, Name};
use crate::model::retry::RetryPolicy;
use crate::model::shared::{Shared, Ticket, Wait};
use crate::payload::Payload;

/// A call of an activity; await it for its result. Nothing happens before.
#[must_use = "an activity runs only when its call is awaited"]
pub struct Call<O> {
    attempts: Attempts<Task>,
    output: PhantomData<fn() -> O>,
}

/// A call of another orchestration; await it for its result. Nothing happens before.
#[must_use = "an orchestration starts only when its call is awaited or detached"]
pub struct SubCall<O> {
    attempts: Attempts<Sub>,
    output: PhantomData<fn() -> O>,
}

impl<O> Call<O> {
    pub(super) fn new(shared: &Rc<Shared>, name: Name, input: Result<Payload, Failure>) -> Self {
        Self { attempts: Attempts::new(shared, Task { name }, input), output: PhantomData }
    }

    /// Makes the call again if it fails.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.attempts.retry = Some(Box::new(policy));
        self
    }

    /// Fails with `Timeout` if there is no result after this long, all attempts and pauses together. An activity that
    /// still runs then goes on; its result is not taken.
    pub fn timeout(mut self, after: Duration) -> Self {
        self.attempts.timeout = Some(after);
        self
    }
}

impl<O> SubCall<O> {
    pub(super) fn new(shared: &Rc<Shared>, name: Name, input: Result<Payload, Failure>) -> Self {
        let sub = Sub { name, version: None, instance: None };
        Self { attempts: Attempts::new(shared, sub, input), output: PhantomData }
    }

    /// Who it is to be.
    pub fn id(mut self, id: &InstanceId) -> Self {
        self.attempts.request.instance = Some(id.clone());
        self
    }

    /// The version of its code, in place of the newest.
    pub fn version(mut self, version: Version) -> Self {
        self.attempts.request.version = Some(version);
        self
    }

    /// Starts it again if it fails.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.attempts.retry = Some(Box::new(policy));
        self
    }

    /// Fails with `Timeout` if it has not ended after this long, all attempts and pauses together. It goes on.
    pub fn timeout(mut self, after: Duration) -> Self {
        self.attempts.timeout = Some(after);
        self
    }

    /// Starts it and leaves it alone. Gives its identifier.
    ///
    /// # Errors
    /// A failure if the input cannot be written, or the identifier made for it is too long.
    pub fn detach(self) -> Result<InstanceId, Failure> {
        let Attempts { shared, request: Sub { name, version, instance }, input, .. } = self.attempts;
        let input = input?;
        let instance = instance.map_or_else(|| shared.next_sub(), Ok)?;
        let started = instance.clone();
        shared.tell(|id| EventKind::SubScheduled { id, name, version, instance, input, awaited: false });
        Ok(started)
    }
}

impl<O: DeserializeOwned> Future for Call<O> {
    type Output = Result<O, Failure>;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        self.attempts.poll().map(|result| result.and_then(|payload| payload.decode()))
    }
}

impl<O: DeserializeOwned> Future for SubCall<O> {
    type Output = Result<O, Failure>;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        self.attempts.poll().map(|result| result.and_then(|payload| payload.decode()))
    }
}

/// Call that can be attempted.
trait Request {
    fn schedule(&mut self, shared: &Rc<Shared>, input: Payload) -> Result<Ticket, Failure>;
    fn describe(&self) -> String;
}

struct Task {
    name: Name,
}

impl Request for Task {
    fn schedule(&mut self, shared: &Rc<Shared>, input: Payload) -> Result<Ticket, Failure> {
        let name = self.name.clone();
        Ok(shared.schedule(Wait::Task, |id| EventKind::TaskScheduled { id, name, input }))
    }

    fn describe(&self) -> String {
        format!("activity {}", self.name)
    }
}

struct Sub {
    name: Name,
    version: Option<Version>,
    instance: Option<InstanceId>,
}

impl Request for Sub {
    fn schedule(&mut self, shared: &Rc<Shared>, input: Payload) -> Result<Ticket, Failure> {
        let (name, version) = (self.name.clone(), self.version);
        let instance = self.instance.clone().map_or_else(|| shared.next_sub(), Ok)?;
        Ok(shared.schedule(Wait::Sub, |id| EventKind::SubScheduled {
            id,
            name,
            version,
            instance,
            input,
            awaited: true,
        }))
    }

    fn describe(&self) -> String {
        format!("orchestration {}", self.name)
    }
}

struct Attempts<R> {
    shared: Rc<Shared>,
    request: R,
    input: Result<Payload, Failure>,
    retry: Option<Box<RetryPolicy>>,
    timeout: Option<Duration>,
    deadline: Option<Ticket>,
    made: u32,
    stage: Stage,
}

enum Stage {
    Fresh,
    Running(Ticket, Option<Ticket>),
    Pausing(Ticket),
    Ended,
}

impl<R: Request> Attempts<R> {
    fn new(shared: &Rc<Shared>, request: R, input: Result<Payload, Failure>) -> Self {
        let shared = Rc::clone(shared);
        Self { shared, request, input, retry: None, timeout: None, deadline: None, made: 0, stage: Stage::Fresh }
    }

    fn poll(&mut self) -> Poll<Result<Payload, Failure>> {
        loop {
            let failure = match &self.stage {
                Stage::Fresh => match self.attempt() {
                    Ok(()) => continue,
                    Err(failure) => return self.end(Err(failure)),
                },
                Stage::Running(ticket, limit) => match (ticket.poll(), limit) {
                    (Poll::Ready(Ok(payload)), _) => return self.end(Ok(payload)),
                    (Poll::Ready(Err(failure)), _) => failure,
                    (Poll::Pending, Some(limit)) if limit.poll().is_ready() => self.late("this attempt"),
                    (Poll::Pending, _) => return self.wait(),
                },
                Stage::Pausing(pause) => {
                    if pause.poll().is_pending() {
                        return self.wait();
                    }
                    self.stage = Stage::Fresh;
                    continue;
                }
                Stage::Ended => return Poll::Pending,
            };
            match self.retry.as_ref().and_then(|retry| retry.pause_after(self.made, &failure)) {
                None => return self.end(Err(failure)),
                Some(Duration::ZERO) => self.stage = Stage::Fresh,
                Some(pause) => self.stage = Stage::Pausing(self.shared.alarm(pause)),
            }
        }
    }

    fn attempt(&mut self) -> Result<(), Failure> {
        let input = if self.retry.is_some() {
            self.input.clone()?
        } else {
            std::mem::replace(&mut self.input, Ok(Payload::EMPTY))?
        };
        let ticket = self.request.schedule(&self.shared, input)?;
        self.made += 1;
        if self.deadline.is_none() {
            self.deadline = self.timeout.map(|after| self.shared.alarm(after));
        }
        let limit = self.retry.as_ref().and_then(|retry| retry.timeout()).map(|after| self.shared.alarm(after));
        self.stage = Stage::Running(ticket, limit);
        Ok(())
    }

    /// Waits, unless the time for all is up.
    fn wait(&mut self) -> Poll<Result<Payload, Failure>> {
        if self.deadline.as_ref().is_none_or(|deadline| deadline.poll().is_pending()) {
            return Poll::Pending;
        }
        let failure = self.late("the call");
        self.end(Err(failure))
    }

    fn end(&mut self, result: Result<Payload, Failure>) -> Poll<Result<Payload, Failure>> {
        self.stage = Stage::Ended;
        self.deadline = None;
        Poll::Ready(result)
    }

    fn late(&self, what: &str) -> Failure {
        let text = format!("{}: no result of {what} (number {}) in the time given", self.request.describe(), self.made);
        Failure::new(FailureKind::Timeout, text)
    }
}
