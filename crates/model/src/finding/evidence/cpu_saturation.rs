//! Evidence of `cpu-saturation`.

use serde::{Deserialize, Serialize};

use super::cpu::{CpuConsumers, CpuLimit, Proof};
use super::load::LoadLevel;
use crate::limit::MachineCpu;

/// A service or a machine at a CPU limit, in one interval of the load.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CpuSaturation {
    /// The limit.
    pub limit: CpuLimit,
    /// Share of the limit in use, median, 0 to about 1; of several replicas the one closest to its limit.
    pub level: f64,
    /// Whether the busiest thread waits for a core in the rest of the time; only where that thread is the limit.
    pub waits_for_core: bool,
    /// Cores of the machine.
    pub machine_cores: u32,
    /// Replicas at the limit.
    pub hot_replicas: usize,
    /// Replicas of the service; 1 for the machine.
    pub replicas: usize,
    /// Label of the interval.
    pub interval: String,
    /// The load in it.
    pub load: LoadLevel,
    /// Successful responses per second in it, from 0.
    pub rate: f64,
    /// Mean latency in it, from the intended send, nanoseconds.
    pub latency_ns: f64,
    /// Cores in use by all replicas together, median, above 0; `None` if they were not sampled.
    pub cores: Option<f64>,
    /// How the kernel held the replica back.
    pub held: Held,
    /// Proof that more load was not carried; `None` without one.
    pub proof: Option<Proof>,
    /// Cores in use by the load generator, median; `None` if it was not sampled.
    pub generator_cores: Option<f64>,
    /// The largest consumers of the machine's CPU; only where the machine is the limit.
    pub consumers: CpuConsumers,
    /// The machine's CPU, divided; only where the machine is the limit and was sampled.
    pub machine: Option<MachineCpu>,
}

/// How often the kernel held a replica back, medians.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Held {
    /// Share of the scheduling periods in which its quota was used up, 0 to 1; `None` if not sampled.
    pub throttled_share: Option<f64>,
    /// Share of the time in which at least one of its tasks waited for CPU, 0 to 1; `None` if not sampled.
    pub waiting_share: Option<f64>,
    /// Share of the requests under way that waited for a processor in the service, mean, 0 to 1; `None` if no socket shows
    /// requests there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_share: Option<f64>,
    /// From this share of periods on, the quota counts as holding it back.
    pub throttled_share_min: f64,
    /// From this share of the time on, waiting for CPU counts as holding it back.
    pub waiting_share_min: f64,
    /// From this share of the requests under way on, waiting for CPU counts as holding the load back.
    #[serde(default)]
    pub requests_share_min: f64,
}
