//! Faults of a hub, as opposed to user code, whose failures are values of [`Failure`](crate::Failure).

use crate::failure::Failure;
use crate::ids::{InstanceId, PartitionId};
use crate::store::StoreError;

/// Why a request to the hub failed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An identifier or a name cannot be one.
    #[error("{value:?} cannot be an identifier, expected {expected}")]
    BadId {
        /// The text found, at most its first 64 characters.
        value: String,
        /// Accepted values.
        expected: &'static str,
    },
    /// An option is outside its range.
    #[error("option {option} is {value}, expected {expected}")]
    BadOption {
        /// The field of [`HubOptions`](crate::HubOptions) or of a request.
        option: &'static str,
        /// The value found.
        value: String,
        /// The values that would do.
        expected: String,
    },
    /// User code failed, or a value cannot be written or read.
    #[error(transparent)]
    Failed(#[from] Failure),
    /// There is no such instance.
    #[error("there is no instance {0}")]
    NotFound(InstanceId),
    /// The identifier is taken.
    #[error("instance {instance} exists already and {state}")]
    Exists {
        /// The identifier.
        instance: InstanceId,
        /// "is running" or "has ended".
        state: &'static str,
    },
    /// The instance is in a state that does not allow it.
    #[error("instance {instance} {state}, so it cannot be {action}")]
    Conflict {
        /// The instance.
        instance: InstanceId,
        /// Its state.
        state: &'static str,
        /// Request.
        action: &'static str,
    },
    /// A bound on memory is reached; nothing was done.
    #[error(
        "partition {partition} holds {bytes} bytes of instances, messages and activities, at most {limit} are allowed"
    )]
    Full {
        /// The partition.
        partition: PartitionId,
        /// Content.
        bytes: u64,
        /// Maximum content.
        limit: u64,
    },
    /// A value is too large.
    #[error("a payload of {bytes} bytes, expected at most {limit}")]
    PayloadTooLarge {
        /// Its size.
        bytes: u64,
        /// The largest allowed.
        limit: u64,
    },
    /// The time given ran out.
    #[error("instance {instance} has not ended within {waited_ms} ms")]
    TimedOut {
        /// The instance waited for.
        instance: InstanceId,
        /// How long was waited.
        waited_ms: u64,
    },
    /// A partition went to another node before it took the request up; nothing was done.
    #[error("partition {partition} has moved to another node; nothing was done")]
    Moved {
        /// The partition.
        partition: PartitionId,
    },
    /// No node had the partition for as long as a request may take; nothing was done.
    #[error("no node has had partition {partition} for {waited_ms} ms{}; nothing was done", because(.reason))]
    Unavailable {
        /// The partition.
        partition: PartitionId,
        /// How long it was waited for.
        waited_ms: u64,
        /// The last error of the store that this node has met meanwhile.
        reason: Option<String>,
    },
    /// The node that had the partition was lost before it responded, and to do the same again could do it twice.
    #[error(
        "the node of partition {partition} was lost before it responded{}; whether the request was done is unknown",
        because(.reason)
    )]
    Unknown {
        /// The partition.
        partition: PartitionId,
        /// The last error of the store that this node has met meanwhile.
        reason: Option<String>,
    },
    /// The hub is closed or closing.
    #[error("the hub is closed")]
    Closed,
    /// A partition stopped because its store failed; everything acknowledged is safe, the rest is unknown.
    #[error("partition {partition} has stopped: {source}")]
    Stopped {
        /// The partition.
        partition: PartitionId,
        /// Error of the store.
        source: StoreError,
    },
    /// The store failed while the hub was opened or closed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn because(reason: &Option<String>) -> String {
    reason.as_ref().map_or_else(String::new, |reason| format!(" ({reason})"))
}

/// So that `?` works in user code.
impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Failed(failure) => failure,
            other => Self::application(other.to_string()),
        }
    }
}

impl Error {
    /// Advice, where there is more than the text says.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        let (Self::Store(source) | Self::Stopped { source, .. }) = self else { return None };
        source.hint()
    }

    pub(crate) fn bad_id(value: &str, expected: &'static str) -> Self {
        Self::BadId { value: value.chars().take(64).collect(), expected }
    }
}
