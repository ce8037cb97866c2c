//! Evidence of `accept-queue`.

use serde::{Deserialize, Serialize};

use super::load::LoadLevel;

/// A service whose connections wait to be accepted, or are dropped before that, in one interval of the load. Of several
/// replicas and ports the one with most of them is meant.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct AcceptQueue {
    /// The port that the service listens on.
    pub port: u16,
    /// The replica, from 0.
    pub replica: u32,
    /// Replicas whose connections wait as well.
    pub hot_replicas: usize,
    /// Replicas of the service.
    pub replicas: usize,
    /// Label of the interval.
    pub interval: String,
    /// The load in it.
    pub load: LoadLevel,
    /// Requests under way at any time in it, from 0.
    pub under_way: f64,
    /// Connections that wait to be accepted, median of the readings.
    pub queued: f64,
    /// How many may wait; `None` if it is not known.
    pub limit: Option<f64>,
    /// Proof that connections are dropped; `None` without one.
    pub drops: Option<Drops>,
    /// Where users wait beyond the spans of the service; `None` if that is not known.
    pub outside: Option<Outside>,
    /// Share of the CPU that the busiest replica may or can use, 0 to about 1; `None` if it was not sampled.
    pub cpu_share: Option<f64>,
}

/// Connections dropped because no place was left to wait in.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Drops {
    /// Attempts dropped per second, mean. A client repeats an attempt after a second.
    pub per_second: f64,
    /// Readings that show any.
    pub readings: usize,
    /// Whether the service's own socket counts them, rather than the whole of its network.
    pub is_of_socket: bool,
}

/// Means over all requests of the interval, nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Outside {
    /// From a request's send to its response.
    pub client_ns: f64,
    /// The span of the service.
    pub span_ns: f64,
}

impl AcceptQueue {
    /// Whether no place is left: the kernel lets one more connection wait than the limit says.
    pub fn is_full(&self) -> bool {
        self.limit.is_some_and(|limit| self.queued >= limit)
    }
}
