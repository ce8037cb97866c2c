//! Evidence of `memory-growth`.

use serde::{Deserialize, Serialize};

use super::load::LoadLevel;

/// A service whose memory grows towards its limit, or that was killed or ran short of memory there.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct MemoryGrowth {
    /// The replica that the figures are of, from 0: of several the one killed most often, then the fullest.
    pub replica: u32,
    /// Replicas of the service that grow, were killed or ran short of memory, from 1.
    pub affected_replicas: usize,
    /// Replicas of the service, from 1.
    pub replicas: usize,
    /// How much memory it may use; `None` if that is not known.
    pub limit: Option<Limit>,
    /// Its steady growth; `None` if only kills or a shortage are known.
    pub growth: Option<Growth>,
    /// Processes of the replica that the kernel killed at the limit while the load counted.
    pub kills: u64,
    /// From the start of the load to the first of them, nanoseconds, from 0; none without a kill.
    pub first_kill_ns: Option<i64>,
    /// Its longest time at the limit in which tasks waited for memory; `None` without one.
    pub shortage: Option<Shortage>,
    /// Its highest reading while the load counted, bytes; `None` if its memory was not sampled.
    pub most_bytes: Option<f64>,
}

/// How much memory a replica may use.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Limit {
    /// Whose limit it is.
    pub of: LimitOf,
    /// Bytes, above 0.
    pub bytes: f64,
}

/// Whose limit it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LimitOf {
    /// The replica's own.
    #[default]
    Replica,
    /// None is set: what the replica uses and what the machine has left.
    Machine,
}

/// Memory that grows steadily under one load.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Growth {
    /// Label of the interval.
    pub interval: String,
    /// The load in it.
    pub load: LoadLevel,
    /// How long it is, nanoseconds.
    pub length_ns: i64,
    /// In use at its start: the lowest reading of its first quarter, bytes.
    pub start_bytes: f64,
    /// In use at its end: the highest reading of its last quarter, bytes.
    pub end_bytes: f64,
    /// Bytes per second, above 0.
    pub bytes_per_second: f64,
    /// Bytes per request of the load, above 0; `None` if no request ended.
    pub bytes_per_request: Option<f64>,
    /// Until the limit is reached at that rate, nanoseconds, from 0.
    pub until_limit_ns: f64,
    /// By how much the heap that survives collections grew, as a share of the growth, from 0; `None` if the runtime
    /// does not report it.
    pub heap_share: Option<f64>,
}

/// Time at the limit in which the kernel had no memory for the replica without taking some from it first.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Shortage {
    /// Length, nanoseconds, above 0.
    pub length_ns: i64,
    /// Share of it in which some task waited for memory or, if the replica's resident memory filled the limit, for a disk:
    /// 0 to 1, in the replica's control group or on the host.
    pub waiting: f64,
    /// Bytes per second that the replica read from disks meanwhile; `None` if not sampled.
    pub read: Option<f64>,
}

impl MemoryGrowth {
    /// The share of the limit in use at the end of the growth or, for one that was killed, at most: 0 to 1. 1 for a
    /// shortage, and when a kill is all that is known.
    pub fn used_share(&self) -> f64 {
        let end = self.growth.as_ref().filter(|_| self.kills == 0).map(|growth| growth.end_bytes).or(self.most_bytes);
        let end = end.filter(|_| self.shortage.is_none());
        let share = self.limit.zip(end).map(|(limit, end)| end / limit.bytes);
        share.filter(|share| share.is_finite()).unwrap_or(1.0).clamp(0.0, 1.0)
    }
}
