//! Messages of instances and clients to instances.
//!
//! A message between partitions is numbered by its sender per receiving partition; the receiver remembers the last
//! number it took, so that each is taken once.

use crate::event::{Caller, Version};
use crate::failure::Failure;
use crate::ids::{EntityId, InstanceId, Name, Time};
use crate::payload::Payload;

/// Handling of a start whose identifier exists already. Its number is stored.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(u8)]
pub enum Reuse {
    /// Refuse while it runs; start again once it has ended.
    #[default]
    IfEnded = 0,
    /// Refuse, whatever its state.
    Never = 1,
    /// Leave it alone, whatever its state, and report success.
    Ignore = 2,
    /// End it if it runs, and start again.
    Terminate = 3,
}

/// A message and whom it is for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    /// Whom it is for.
    pub to: InstanceId,
    /// Content.
    pub kind: MessageKind,
}

/// Content of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum MessageKind {
    /// Start an orchestration.
    Start {
        /// The orchestration's name.
        name: Name,
        /// The version of its code; none takes the newest.
        version: Option<Version>,
        /// Its input.
        input: Payload,
        /// Who waits for it.
        parent: Option<Caller>,
        /// Not before this moment.
        at: Option<Time>,
        /// Treatment of an identifier that is taken.
        reuse: Reuse,
    },
    /// A sub-orchestration that the receiver waits for has ended.
    SubDone {
        /// The execution of the receiver that waits.
        generation: u64,
        /// Its decision.
        id: u32,
        /// How it ended.
        result: Result<Payload, Failure>,
    },
    /// An activity of the receiver, which is parked, has ended.
    TaskDone {
        /// The execution of the receiver that waits.
        generation: u64,
        /// Its decision.
        id: u32,
        /// How it ended.
        result: Result<Payload, Failure>,
    },
    /// An external event.
    Raise {
        /// Its name.
        name: Name,
        /// Payload.
        data: Payload,
    },
    /// An operation of an entity.
    Operate {
        /// Which.
        operation: Name,
        /// Its input.
        input: Payload,
        /// Who waits for the response; none is a signal.
        caller: Option<Caller>,
        /// Not before this moment.
        at: Option<Time>,
    },
    /// The response to an operation.
    Operated {
        /// The execution of the receiver that waits.
        generation: u64,
        /// Its decision.
        id: u32,
        /// Return value of the operation.
        result: Result<Payload, Failure>,
    },
    /// Lock the receiving entity, `entities[next]`, then pass this on to the one after it. The last one responds to the
    /// owner.
    Lock {
        /// Who locks.
        owner: Caller,
        /// All entities, in order.
        entities: Vec<EntityId>,
        /// Which of them the receiver is.
        next: u32,
    },
    /// All entities are locked.
    Locked {
        /// The execution of the receiver that waits.
        generation: u64,
        /// Its decision.
        id: u32,
        /// All entities, so that they can be freed if the orchestration no longer waits.
        entities: Vec<EntityId>,
    },
    /// Free the receiving entity from this lock.
    Unlock {
        /// Who had locked.
        owner: Caller,
    },
    /// End the orchestration.
    Terminate {
        /// Why.
        reason: String,
    },
    /// Keep outside events back from the orchestration.
    Suspend {
        /// Why.
        reason: String,
    },
    /// Give them to it again.
    Resume {
        /// Why.
        reason: String,
    },
    /// Forget the orchestration, if it has ended.
    Purge,
}
