//! Evidence of `disk-bound`.

use serde::{Deserialize, Serialize};

use super::cpu::Proof;
use super::load::LoadLevel;

/// A service whose requests wait for a disk, in one interval of the load. Numbers of requests are means at any moment.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct DiskBound {
    /// Label of the interval.
    pub interval: String,
    /// The load in it.
    pub load: LoadLevel,
    /// Successful responses per second in it.
    pub rate: f64,
    /// Requests of the load in progress.
    pub in_flight: f64,
    /// Requests in the service's own time.
    pub requests: f64,
    /// Those of them that wait for the disk.
    pub at_disk: f64,
    /// Those of them that wait for a lock while a thread is at the disk; 0 where the disk alone explains it.
    pub behind: f64,
    /// Bytes per second that the service writes to disks; `None` if it was not sampled.
    pub written: Option<f64>,
    /// Bytes per second that it reads from them; `None` if it was not sampled.
    pub read: Option<f64>,
    /// Share of the time in which some task waited for a disk, 0 to 1, in the service's control group or on the host;
    /// `None` if it was not sampled.
    pub pressure: Option<f64>,
    /// Signs that a file is synced for each response; `None` where threads at the disk explain the finding.
    pub synced: Option<SyncedWrites>,
    /// Sign that more load is not carried; `None` for a single user, whose throughput is what the latency allows.
    pub proof: Option<Proof>,
}

/// Signs of writes that are synced to the disk one by one.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct SyncedWrites {
    /// Bytes that the service writes per successful response.
    pub bytes_each: f64,
    /// Share of the service's CPU time that the kernel used, 0 to 1.
    pub system_share: f64,
}
