//! Events in the history of an orchestration.
//!
//! A history is a sequence of events. Those *from outside* are fed to the code one after another; those the code
//! *decided* stand directly behind the outside event that made it decide. Replay feeds the outside events again and
//! compares decisions. `id` numbers decisions of one execution from 0, in the order the code took them, across all
//! kinds; the event that completes a decision carries the same number.

use crate::failure::Failure;
use crate::ids::{EntityId, InstanceId, Name, Time};
use crate::payload::Payload;

/// The version of an orchestration's code, pinned when an instance starts. 0 stands for "not versioned".
pub type Version = u32;

/// One event, and when it happened. Times in a history decrease only where the clock was set
/// back by more than a minute.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// When it happened; decisions bear the time of the outside event before them.
    pub time: Time,
    /// Event.
    pub kind: EventKind,
}

/// Who waits for a sub-orchestration or an operation.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Caller {
    /// The orchestration that waits.
    pub instance: InstanceId,
    /// Which of its executions. No two of one identifier have the same number, also after it was purged.
    pub generation: u64,
    /// The number of the decision that waits.
    pub id: u32,
}

/// Event of an orchestration, or its decision.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum EventKind {
    // From outside.
    /// The execution began. Always first in a history, and only there.
    Started {
        /// The orchestration's name.
        name: Name,
        /// The version of its code, which stays.
        version: Version,
        /// The number of the execution: continuing as new and starting again count up. It begins with 0 if no
        /// orchestration of the partition was ever purged, else with more than any that was.
        generation: u64,
        /// Its input.
        input: Payload,
        /// Who waits for it.
        parent: Option<Caller>,
    },
    /// An activity returned.
    TaskCompleted {
        /// Which decision.
        id: u32,
        /// Return value.
        result: Payload,
    },
    /// An activity failed.
    TaskFailed {
        /// Which decision.
        id: u32,
        /// How.
        failure: Failure,
    },
    /// A timer fired.
    TimerFired {
        /// Which decision.
        id: u32,
    },
    /// A sub-orchestration completed.
    SubCompleted {
        /// Which decision.
        id: u32,
        /// Return value.
        result: Payload,
    },
    /// A sub-orchestration failed.
    SubFailed {
        /// Which decision.
        id: u32,
        /// How.
        failure: Failure,
    },
    /// An external event was raised to this instance.
    EventRaised {
        /// Its name.
        name: Name,
        /// Payload.
        data: Payload,
    },
    /// An entity completed a call.
    OperationCompleted {
        /// Which decision.
        id: u32,
        /// Return value.
        result: Payload,
    },
    /// An entity's operation failed.
    OperationFailed {
        /// Which decision.
        id: u32,
        /// How.
        failure: Failure,
    },
    /// All requested entities are locked for this orchestration.
    LockGranted {
        /// Which decision.
        id: u32,
    },
    /// Outside events are kept back from the code from here on.
    Suspended {
        /// Why.
        reason: String,
    },
    /// They are given to it again, those kept back first.
    Resumed {
        /// Why.
        reason: String,
    },
    /// The execution was ended from outside. Always last.
    Terminated {
        /// Why.
        reason: String,
    },

    // Decided by the code.
    /// An activity is to run.
    TaskScheduled {
        /// The number of this decision.
        id: u32,
        /// The activity's name.
        name: Name,
        /// Its input.
        input: Payload,
    },
    /// A timer is to fire.
    TimerCreated {
        /// The number of this decision.
        id: u32,
        /// When, at the earliest.
        at: Time,
    },
    /// A timer is not awaited any more.
    TimerCancelled {
        /// The number of the decision that created it.
        id: u32,
    },
    /// A sub-orchestration is to start.
    SubScheduled {
        /// The number of this decision.
        id: u32,
        /// The orchestration's name.
        name: Name,
        /// The version of its code; none takes the newest.
        version: Option<Version>,
        /// Its identifier.
        instance: InstanceId,
        /// Its input.
        input: Payload,
        /// Whether this orchestration waits for it (else it is started and left alone).
        awaited: bool,
    },
    /// An external event is to be raised to another instance.
    EventSent {
        /// The number of this decision.
        id: u32,
        /// To whom.
        instance: InstanceId,
        /// The event's name.
        name: Name,
        /// Payload.
        data: Payload,
    },
    /// An operation of an entity is to run, and is awaited.
    EntityCalled {
        /// The number of this decision.
        id: u32,
        /// Which entity.
        entity: EntityId,
        /// Which operation.
        operation: Name,
        /// Its input.
        input: Payload,
    },
    /// An operation of an entity is to run, and is not awaited.
    EntitySignalled {
        /// The number of this decision.
        id: u32,
        /// Which entity.
        entity: EntityId,
        /// Which operation.
        operation: Name,
        /// Its input.
        input: Payload,
        /// Not before this moment.
        at: Option<Time>,
    },
    /// Entities are to be locked, in the order given: sorted, without repetition.
    LockRequested {
        /// The number of this decision.
        id: u32,
        /// Which entities.
        entities: Vec<EntityId>,
    },
    /// The entities of a lock are free again.
    LockReleased {
        /// The number of the decision that requested the lock.
        id: u32,
        /// Which entities.
        entities: Vec<EntityId>,
    },
    /// The orchestration has set its own status.
    StatusSet {
        /// The value shown.
        status: Payload,
    },
    /// The execution ended well. Always last.
    Completed {
        /// Return value.
        output: Payload,
    },
    /// The execution failed. Always last.
    Failed {
        /// How.
        failure: Failure,
    },
    /// The execution ended, and the next generation begins. Always last.
    ContinuedAsNew {
        /// Input of the next one.
        input: Payload,
        /// External events that had come and that the code had not taken yet; the next one gets them, in this order.
        unread: Vec<(Name, Payload)>,
    },
}

impl EventKind {
    /// Whether it came from outside; else the code decided it.
    #[must_use]
    pub fn is_outside(&self) -> bool {
        matches!(
            self,
            Self::Started { .. }
                | Self::TaskCompleted { .. }
                | Self::TaskFailed { .. }
                | Self::TimerFired { .. }
                | Self::SubCompleted { .. }
                | Self::SubFailed { .. }
                | Self::EventRaised { .. }
                | Self::OperationCompleted { .. }
                | Self::OperationFailed { .. }
                | Self::LockGranted { .. }
                | Self::Suspended { .. }
                | Self::Resumed { .. }
                | Self::Terminated { .. }
        )
    }

    /// The name of the kind, such as `TaskScheduled`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Started { .. } => "Started",
            Self::TaskCompleted { .. } => "TaskCompleted",
            Self::TaskFailed { .. } => "TaskFailed",
            Self::TimerFired { .. } => "TimerFired",
            Self::SubCompleted { .. } => "SubCompleted",
            Self::SubFailed { .. } => "SubFailed",
            Self::EventRaised { .. } => "EventRaised",
            Self::OperationCompleted { .. } => "OperationCompleted",
            Self::OperationFailed { .. } => "OperationFailed",
            Self::LockGranted { .. } => "LockGranted",
            Self::Suspended { .. } => "Suspended",
            Self::Resumed { .. } => "Resumed",
            Self::Terminated { .. } => "Terminated",
            Self::TaskScheduled { .. } => "TaskScheduled",
            Self::TimerCreated { .. } => "TimerCreated",
            Self::TimerCancelled { .. } => "TimerCancelled",
            Self::SubScheduled { .. } => "SubScheduled",
            Self::EventSent { .. } => "EventSent",
            Self::EntityCalled { .. } => "EntityCalled",
            Self::EntitySignalled { .. } => "EntitySignalled",
            Self::LockRequested { .. } => "LockRequested",
            Self::LockReleased { .. } => "LockReleased",
            Self::StatusSet { .. } => "StatusSet",
            Self::Completed { .. } => "Completed",
            Self::Failed { .. } => "Failed",
            Self::ContinuedAsNew { .. } => "ContinuedAsNew",
        }
    }

    /// Whether it ends an execution.
    #[must_use]
    pub fn is_end(&self) -> bool {
        matches!(
            self,
            Self::Completed { .. } | Self::Failed { .. } | Self::Terminated { .. } | Self::ContinuedAsNew { .. }
        )
    }
}
