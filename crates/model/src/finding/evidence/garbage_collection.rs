//! Evidence of `garbage-collection`.

use serde::{Deserialize, Serialize};

use super::cpu::Proof;
use super::load::LoadLevel;

/// A service that its garbage collector stops, in one interval of the load. Of several replicas the one that is stopped
/// most is meant.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct GarbageCollection {
    /// Sign that the pauses matter.
    pub sign: PauseSign,
    /// The runtime that reports them.
    pub runtime: Runtime,
    /// The metric that they are read from.
    pub metric: String,
    /// Replicas that are stopped as much.
    pub hot_replicas: usize,
    /// Replicas of the service.
    pub replicas: usize,
    /// Label of the interval.
    pub interval: String,
    /// The load in it.
    pub load: LoadLevel,
    /// Successful responses per second in it, from 0.
    pub rate: f64,
    /// Mean latency in it, from the intended send, nanoseconds.
    pub latency_ns: f64,
    /// 99th percentile of the latency in it, nanoseconds.
    pub p99_ns: f64,
    /// Share of the time in which collections stopped the replica, 0 to 1; where only helpers show them, the share of its
    /// CPU time that those took.
    pub share: f64,
    /// Cores that the runtime's helper threads used; `None` if a metric or a thread shows the pauses themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub helper_cores: Option<f64>,
    /// Collections that stopped it, per second; `None` if they are not counted.
    pub collections: Option<f64>,
    /// Mean length of such a pause, nanoseconds; `None` if they are not counted.
    pub pause_ns: Option<f64>,
    /// The long pauses among them; `None` if no kind of collection has a mean as long as that.
    pub long: Option<LongPauses>,
    /// Seconds per second of collections that ran beside the program and did not stop it, from 0.
    pub concurrent: f64,
    /// How full the heap is after collections; `None` if that is not reported.
    pub heap: Option<Heap>,
    /// Share of the heap's limit from which it is nearly full, 0 to 1.
    pub heap_share_min: f64,
    /// Cores in use by all replicas together, median; `None` if they were not sampled.
    pub cores: Option<f64>,
    /// Proof that more load was not carried; `None` without one.
    pub proof: Option<Proof>,
}

/// Sign that pauses matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PauseSign {
    /// They take a large share of the time.
    #[default]
    Share,
    /// Each is so long that the slowest requests are those that wait for one.
    Length,
    /// The runtime's helper threads use more CPU than the program's own thread while its memory is at the heap's limit.
    Helpers,
}

/// Whose collector it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Runtime {
    /// A Java virtual machine.
    #[default]
    Jvm,
    /// V8, the engine of Node.js.
    V8,
    /// Go.
    Go,
    /// .NET.
    DotNet,
}

/// Collections of those kinds that take long on average.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct LongPauses {
    /// How many, in the interval.
    pub count: f64,
    /// Their mean length, nanoseconds.
    pub mean_ns: f64,
    /// Share of the time that they take, 0 to 1.
    pub share: f64,
}

/// The largest part of a heap, medians.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Heap {
    /// Its name, such as `G1 Old Gen`.
    pub pool: String,
    /// Bytes in use after its last collection.
    pub used_bytes: f64,
    /// Bytes that it may have, above 0.
    pub limit_bytes: f64,
}

impl Heap {
    /// How full it is, 0 to 1.
    pub fn share(&self) -> f64 {
        if self.limit_bytes > 0.0 { (self.used_bytes / self.limit_bytes).clamp(0.0, 1.0) } else { 0.0 }
    }
}

impl GarbageCollection {
    /// Whether collections free little, because nearly all of the heap is in use.
    pub fn is_heap_full(&self) -> bool {
        self.heap.as_ref().is_some_and(|heap| heap.share() >= self.heap_share_min)
    }
}
