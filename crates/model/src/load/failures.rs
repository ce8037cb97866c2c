//! Why requests fail, counted by kind and by cause.

use serde::{Deserialize, Serialize};

use crate::units;

/// Why a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ErrorKind {
    /// No connection could be opened.
    Connect,
    /// The connection broke before the response was complete.
    Reset,
    /// No complete response in time.
    Timeout,
    /// Response that is not HTTP.
    Protocol,
    /// A complete response with a status of 400 or above, or one that the checks do not allow.
    Status,
    /// A complete response that failed another check, or held no value that a later step needs.
    Check,
}

impl ErrorKind {
    /// All kinds, in the order they are printed.
    pub const ALL: [ErrorKind; 6] = [
        ErrorKind::Connect,
        ErrorKind::Reset,
        ErrorKind::Timeout,
        ErrorKind::Protocol,
        ErrorKind::Status,
        ErrorKind::Check,
    ];

    /// The word used in files and tables.
    pub fn as_str(self) -> &'static str {
        match self {
            ErrorKind::Connect => "connect",
            ErrorKind::Reset => "reset",
            ErrorKind::Timeout => "timeout",
            ErrorKind::Protocol => "protocol",
            ErrorKind::Status => "status",
            ErrorKind::Check => "check",
        }
    }
}

/// Failed requests by kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ErrorCounts {
    /// See [`ErrorKind::Connect`].
    pub connect: u64,
    /// See [`ErrorKind::Reset`].
    pub reset: u64,
    /// See [`ErrorKind::Timeout`].
    pub timeout: u64,
    /// See [`ErrorKind::Protocol`].
    pub protocol: u64,
    /// See [`ErrorKind::Status`].
    pub status: u64,
    /// See [`ErrorKind::Check`].
    pub check: u64,
}

impl ErrorCounts {
    /// The count of one kind, to change.
    pub fn of_mut(&mut self, kind: ErrorKind) -> &mut u64 {
        match kind {
            ErrorKind::Connect => &mut self.connect,
            ErrorKind::Reset => &mut self.reset,
            ErrorKind::Timeout => &mut self.timeout,
            ErrorKind::Protocol => &mut self.protocol,
            ErrorKind::Status => &mut self.status,
            ErrorKind::Check => &mut self.check,
        }
    }

    /// The count of one kind.
    pub fn of(mut self, kind: ErrorKind) -> u64 {
        *self.of_mut(kind)
    }

    /// All kinds together.
    pub fn total(self) -> u64 {
        ErrorKind::ALL.iter().map(|kind| self.of(*kind)).sum()
    }

    /// The kinds that there are, such as `connect 7,030, status 2`.
    pub fn by_kind(self) -> String {
        let there = ErrorKind::ALL.into_iter().filter(|kind| self.of(*kind) > 0);
        let counts = there.map(|kind| format!("{} {}", kind.as_str(), units::count(self.of(kind))));
        counts.collect::<Vec<_>>().join(", ")
    }

    /// Adds another's counts.
    pub fn add(&mut self, other: ErrorCounts) {
        for kind in ErrorKind::ALL {
            *self.of_mut(kind) += other.of(kind);
        }
    }
}

/// A reason for which requests failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorCause {
    /// How it is counted.
    pub kind: ErrorKind,
    /// Details, such as `Connection refused (os error 111)`.
    pub text: String,
    /// How many requests.
    pub count: u64,
}
