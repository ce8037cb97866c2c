//! Threads that use one core together, which findings share.

use serde::{Deserialize, Serialize};

use super::cpu::Proof;

/// The threads of a replica use one core together while others are idle, in one interval of the load.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct OneCore {
    /// Cores in use by the replica, median, about 1; of several replicas the one closest to 1.
    pub cores: f64,
    /// The same under the lighter load of the proof; `None` if it was not near one core there.
    pub lighter_cores: Option<f64>,
    /// Cores in use by the replica's busiest thread, mean, 0 to 1.
    pub thread_cores: f64,
    /// Seconds per second that this thread waited for a processor, mean; `None` if not sampled.
    pub thread_wait: Option<f64>,
    /// Threads of the replica, median, from 2; `None` if not sampled.
    pub threads: Option<f64>,
    /// Cap of the replica, cores; none without one.
    pub cap: Option<f64>,
    /// Cores of the machine.
    pub machine_cores: u32,
    /// Cores of the machine that were idle, median, from 0.
    pub idle_cores: f64,
    /// Share of the time of the service's requests in which none of their calls was under way, 0 to 1; none without spans.
    pub own_share: Option<f64>,
    /// Replicas of which this is true.
    pub locked_replicas: usize,
    /// Replicas of the service.
    pub replicas: usize,
    /// Label of the interval.
    pub interval: String,
    /// How often the kernel took threads of the replica off a processor, per successful response; `None` if not sampled.
    pub switches_each: Option<f64>,
    /// State of the threads while other programs filled the machine; `None` where cores were idle.
    pub crowded: Option<LockWaits>,
    /// Sign that more load was not carried.
    pub proof: Proof,
}

/// How requests in a service's own time wait, and its threads for a processor.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LockWaits {
    /// Requests in the service's own time, a mean, from 0.
    pub requests: f64,
    /// Those that waited for a lock, a mean, 0 to `requests`.
    pub waiting_for_lock: f64,
    /// Threads that waited for a processor, a mean, from 0.
    pub waiting_for_cpu: f64,
}
