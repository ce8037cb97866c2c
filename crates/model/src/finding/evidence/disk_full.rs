//! Evidence of `disk-full`.

use serde::{Deserialize, Serialize};

/// Operations that fail in one place because its disk is full. Counts of operations and requests are estimated from the
/// sampled traces.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct DiskFull {
    /// Whose disk it is.
    pub owner: Owner,
    /// Reports of the errors, the most frequent first; at least one in a finding.
    pub reports: Vec<Report>,
    /// Operations that failed because of it, each where the error began.
    pub failed: f64,
    /// Sampled traces that show one of them.
    pub traces: usize,
    /// The callers' operations that met it, the most frequent first; a few where there are many.
    pub operations: Vec<AffectedOperation>,
    /// All requests that entered the system.
    pub requests: f64,
    /// Those of them that met it.
    pub affected: f64,
    /// Those that met it and failed.
    pub affected_failed: f64,
    /// When the load began, nanoseconds since the Unix epoch.
    pub load_start_ns: i64,
    /// When the first of these operations began, nanoseconds since the Unix epoch.
    pub first_ns: i64,
    /// When the last of them ended, nanoseconds since the Unix epoch.
    pub last_ns: i64,
    /// The text of one of the errors; clipped where it is very long, `None` if only codes were recorded.
    pub message: Option<String>,
}

/// Whose disk is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Owner {
    /// A service that writes files, or that has its database in its own process.
    #[default]
    Service,
    /// A database, a broker or another server that services call.
    Server,
}

/// How an error reports it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Report {
    /// The code, the type of error or the words, such as `ENOSPC` or `53100`.
    pub name: String,
    /// Its meaning.
    pub cause: DiskCause,
    /// Sampled operations that failed with it.
    pub operations: usize,
}

/// Meaning of an error, the surest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DiskCause {
    /// The disk has no space left.
    #[default]
    NoSpace,
    /// The user's quota on the disk is used up.
    QuotaExceeded,
    /// A table cannot grow: the disk is full, or the table has a limit of its own.
    TableFull,
    /// A broker cannot use its log folder: the disk is full, or it failed.
    StorageFailed,
}

impl DiskCause {
    /// Whether other things than a disk without space are reported in the same way.
    pub fn is_ambiguous(self) -> bool {
        matches!(self, DiskCause::TableFull | DiskCause::StorageFailed)
    }
}

/// An operation of a service whose requests met a full disk.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct AffectedOperation {
    /// The service.
    pub service: String,
    /// The operation.
    pub operation: String,
    /// Its operations that failed because of the disk.
    pub failed: f64,
}

impl DiskFull {
    /// Share of the requests that met it, 0 to 1.
    pub fn affected_share(&self) -> f64 {
        (self.affected / self.requests.max(f64::MIN_POSITIVE)).min(1.0)
    }

    /// Meaning of the surest report.
    pub fn cause(&self) -> DiskCause {
        self.reports.iter().map(|report| report.cause).min().unwrap_or_default()
    }
}
