//! Evidence of `event-loop-lag`.

use serde::{Deserialize, Serialize};

use super::cpu::Proof;
use super::load::LoadLevel;

/// A service whose event loop is blocked while requests wait for it, in one interval of the load. Of several replicas
/// the one with the longest wait is meant.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct EventLoopLag {
    /// Replicas whose loop is blocked as much.
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
    /// Readings of the loop's delay in it.
    pub readings: usize,
    /// How long an event waits for the loop, mean, estimated from the delays, nanoseconds.
    pub wait_ns: f64,
    /// Time between two turns of the loop's timer, mean, nanoseconds; the timer's own interval is part of it.
    pub mean_ns: f64,
    /// The shortest, nanoseconds, which is the timer's interval.
    pub least_ns: f64,
    /// The 99th percentile, nanoseconds; `None` if it is not reported.
    pub p99_ns: Option<f64>,
    /// Share of the time in which the loop is blocked for longer than the timer's interval, 0 to 1.
    pub blocked_share: f64,
    /// Share of the time in which the loop runs callbacks, 0 to 1; `None` if it is not reported.
    pub utilization: Option<f64>,
    /// Cores that the busiest thread uses, median; `None` if it was not sampled.
    pub thread_cores: Option<f64>,
    /// Proof that more load was not carried; `None` without one.
    pub proof: Option<Proof>,
}

/// Share of the time that a loop must spend in callbacks without using CPU to be taken as waiting in them.
const WAITING_SHARE: f64 = 0.3;

impl EventLoopLag {
    /// Whether callbacks wait for something, such as a file, instead of computing.
    pub fn is_waiting(&self) -> bool {
        self.utilization.zip(self.thread_cores).is_some_and(|(active, cores)| active - cores >= WAITING_SHARE)
    }
}
