//! Instances as callers see them.

use crate::event::{Caller, Version};
use crate::failure::Failure;
use crate::ids::{InstanceId, Name, Time};
use crate::payload::Payload;

/// State of an instance. Its number is stored.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Status {
    /// Accepted, and waiting for the moment it is to start.
    Pending = 0,
    /// Started.
    Running = 1,
    /// Events are kept back from it.
    Suspended = 2,
    /// Ended well.
    Completed = 3,
    /// Failed.
    Failed = 4,
    /// Ended from outside.
    Terminated = 5,
    /// An entity: it has no end.
    Entity = 6,
    /// Started, or accepted, and its code is missing or does not fit its history.
    Parked = 7,
}

impl Status {
    /// All of them; the place is the number.
    pub const ALL: [Self; 8] = [
        Self::Pending,
        Self::Running,
        Self::Suspended,
        Self::Completed,
        Self::Failed,
        Self::Terminated,
        Self::Entity,
        Self::Parked,
    ];

    /// Whether nothing more will happen to it.
    #[must_use]
    pub fn is_ended(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Terminated)
    }

    /// The word for it, in lower case.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Suspended => "suspended",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Terminated => "terminated",
            Self::Entity => "entity",
            Self::Parked => "parked",
        }
    }
}

/// An instance as it stands in the log.
#[derive(Clone, PartialEq, Debug)]
pub struct InstanceView {
    /// Who it is.
    pub id: InstanceId,
    /// The name of its code.
    pub name: Name,
    /// The version of its code; 0 for entities.
    pub version: Version,
    /// The number of its execution: continuing as new and starting again count up. See
    /// [`EventKind::Started`](crate::EventKind::Started).
    pub generation: u64,
    /// Its state.
    pub status: Status,
    /// When it was accepted.
    pub created: Time,
    /// When something last happened to it.
    pub updated: Time,
    /// Who waits for it.
    pub parent: Option<Caller>,
    /// Its input; the state of an entity. Empty if a query did not request values.
    pub input: Payload,
    /// The status that it has set itself. `None` if a query did not request values.
    pub custom_status: Option<Payload>,
    /// Why its code does not fit, if it is parked.
    pub parked: Option<String>,
    /// How it ended, if it has. Absent where a query did not request values.
    pub output: Option<Result<Payload, Failure>>,
}

/// Which instances are meant. The default means all orchestrations.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Filter {
    /// In one of these states; empty means any but [`Status::Entity`].
    pub statuses: Vec<Status>,
    /// With an identifier that begins so.
    pub prefix: String,
    /// Accepted at or after this moment.
    pub created_from: Option<Time>,
    /// Accepted before this moment.
    pub created_to: Option<Time>,
}

/// Some instances, and where the others go on.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Page {
    /// In the order of partitions, then of acceptance.
    pub instances: Vec<InstanceView>,
    /// Give this to the next query; `None` means that there are no more.
    pub next: Option<String>,
}

/// Instances that pass a filter, in figures.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Summary {
    /// How many there are.
    pub count: u64,
    /// Earliest creation and latest update; `None` if there are no instances.
    pub period: Option<(Time, Time)>,
}

impl Summary {
    /// The same with other instances.
    pub(crate) fn with(self, other: Self) -> Self {
        let periods = [self.period, other.period].into_iter().flatten();
        let period = periods.reduce(|(first, last), (created, updated)| (first.min(created), last.max(updated)));
        Self { count: self.count + other.count, period }
    }
}
