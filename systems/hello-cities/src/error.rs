//! Errors that keep the service from starting, going on, or running a workload.

use std::time::Duration;

/// A service or a workload that failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot listen, serve, hear signals or export its telemetry.
    #[error(transparent)]
    Serving(#[from] narrows_serving::Error),
    /// The arguments say no address that it may listen on.
    #[error(transparent)]
    Listen(#[from] narrows_system::ListenError),
    /// A setting is outside its range.
    #[error("{name} is {value:?}, expected {expected}")]
    Setting {
        /// The setting's name.
        name: &'static str,
        /// Given value.
        value: String,
        /// Accepted values.
        expected: &'static str,
    },
    /// The folder for the hub cannot be made.
    #[error("cannot make the folder {folder}")]
    Folder {
        /// The folder.
        folder: String,
        /// Error of the system.
        source: std::io::Error,
    },
    /// The hub holds orchestrations of another process, with which figures would be mixed.
    #[error("{place} holds {count} orchestrations, expected none")]
    NotEmpty {
        /// Where the hub is.
        place: String,
        /// Orchestrations in it.
        count: u64,
    },
    /// The hub refused.
    #[error(transparent)]
    Hub(#[from] narrows_durable::Error),
    /// Some orchestrations did not complete.
    #[error("{completed} of {expected} orchestrations have completed")]
    Incomplete {
        /// Those that did.
        completed: u64,
        /// Those that were to.
        expected: u64,
    },
    /// The workload did not end in time.
    #[error("the workload has not ended after {} s", .0.as_secs())]
    Late(Duration),
    /// The partitions of the hub have not spread over its nodes in time.
    #[error("the partitions are not spread over the nodes after {} s", .0.as_secs())]
    NotSpread(Duration),
    /// The kernel's data of this process cannot be read.
    #[error("cannot read {0}")]
    Process(&'static str),
    /// The figures cannot be written as JSON.
    #[error("cannot write the figures as JSON")]
    Json(#[source] serde_json::Error),
}

impl narrows_system::Advice for Error {
    fn hint(&self) -> Option<&str> {
        match self {
            Self::Serving(error) => error.hint(),
            Self::Listen(error) => error.hint(),
            Self::Hub(error) => error.hint(),
            _ => None,
        }
    }
}

impl From<narrows_durable::Failure> for Error {
    fn from(failure: narrows_durable::Failure) -> Self {
        Self::Hub(failure.into())
    }
}

impl From<narrows_durable::store::StoreError> for Error {
    fn from(error: narrows_durable::store::StoreError) -> Self {
        Self::Hub(error.into())
    }
}
