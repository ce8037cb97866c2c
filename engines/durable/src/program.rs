//! Requirements on user code: the boundary between the engine's core and the programming model.
//!
//! A [`Cursor`] is one orchestration in the middle of its code, as a state machine: outside events in, decisions out.
//! It does no input or output, reads no clock and lives on one thread. [`Registry`](crate::Registry) is the
//! implementation for typed async Rust; tests and simulations bring their own.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::event::{Event, EventKind, Version};
use crate::failure::Failure;
use crate::ids::{EntityId, InstanceId, Name, Time};
use crate::message::Message;
use crate::payload::Payload;

/// User code, by name.
pub trait Program: Send + Sync + 'static {
    /// The newest version registered under a name; `None` if there is no such orchestration.
    fn newest(&self, orchestration: &str) -> Option<Version>;

    /// A cursor before its first event, which will be [`EventKind::Started`].
    ///
    /// # Errors
    /// A failure of kind `Unregistered` that names the missing orchestration and the versions there are.
    fn cursor(&self, instance: &InstanceId, name: &str, version: Version) -> Result<Box<dyn Cursor>, Failure>;

    /// Whether an activity may run though its scheduling could be forgotten by a crash. `false` for unknown names.
    fn is_idempotent(&self, activity: &str) -> bool;

    /// An activity's run. Unknown names give a future that fails with `Unregistered`; panics inside the future are
    /// the executor's to catch, panics in this method too.
    fn run(&self, call: ActivityCall) -> ActivityFuture;

    /// Runs operations of one entity, in order. Never panics: a panic in user code is that operation's failure, and
    /// leaves the state as it was before that operation.
    fn operate(&self, entity: &EntityId, state: Option<&Payload>, operations: &[Operation], now: Time) -> EntityStep;
}

/// The run of an activity.
pub type ActivityFuture = Pin<Box<dyn Future<Output = Result<Payload, Failure>> + Send>>;

/// One attempt of an activity.
#[derive(Clone, Debug)]
pub struct ActivityCall {
    /// The activity's name.
    pub name: Name,
    /// Its input.
    pub input: Payload,
    /// Who called; with the two numbers below, a key that is the same whenever this call is run again.
    pub instance: InstanceId,
    /// Which execution of the instance.
    pub generation: u64,
    /// Which decision of that execution.
    pub id: u32,
}

/// One operation of an entity.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Operation {
    /// Its name.
    pub name: Name,
    /// Its input.
    pub input: Payload,
}

/// Effects of a batch of operations.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EntityStep {
    /// The state afterwards; `None` means that the entity is gone.
    pub state: Option<Payload>,
    /// One result per operation.
    pub results: Vec<Result<Payload, Failure>>,
    /// Messages sent by the operations: `Start`, `Raise` and `Operate` without caller.
    pub messages: Vec<Message>,
}

/// Fate of an outside event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// It is not awaited (a result of a decision that is not open); it must not be stored.
    Ignored,
    /// The code has taken it, or will.
    Waiting,
    /// The last decision ends the execution ([`EventKind::is_end`]).
    Ended,
}

/// One execution of an orchestration in the middle of its code.
pub trait Cursor {
    /// Feeds one outside event (never `Terminated`) and appends the code's decisions to `decisions`. While suspended,
    /// events are kept and `Waiting` is returned without decisions. Code that panics, awaits what is not its context's
    /// or returns an error decides [`EventKind::Failed`]; nothing makes this method panic.
    fn feed(&mut self, event: &Event, decisions: &mut Vec<EventKind>) -> Progress;

    /// Feeds a whole history to a fresh cursor and compares the decisions.
    ///
    /// # Errors
    /// A failure of kind `Nondeterminism` that names the place in the history, what stands there and what the code
    /// decided instead; or the first error of `history`.
    fn replay(&mut self, history: &mut dyn Iterator<Item = Result<Event, Failure>>) -> Result<Progress, Failure>;

    /// About how many bytes it holds in memory.
    fn bytes(&self) -> usize;
}

impl<T: Program + ?Sized> Program for Arc<T> {
    fn newest(&self, orchestration: &str) -> Option<Version> {
        (**self).newest(orchestration)
    }

    fn cursor(&self, instance: &InstanceId, name: &str, version: Version) -> Result<Box<dyn Cursor>, Failure> {
        (**self).cursor(instance, name, version)
    }

    fn is_idempotent(&self, activity: &str) -> bool {
        (**self).is_idempotent(activity)
    }

    fn run(&self, call: ActivityCall) -> ActivityFuture {
        (**self).run(call)
    }

    fn operate(&self, entity: &EntityId, state: Option<&Payload>, operations: &[Operation], now: Time) -> EntityStep {
        (**self).operate(entity, state, operations, now)
    }
}
