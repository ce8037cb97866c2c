//! Evidence of `serial-fan-out`.

use serde::{Deserialize, Serialize};

/// Calls that the requests of an operation make one after another, though they do not need each other.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SerialFanOut {
    /// Traces that show it.
    pub traces: usize,
    /// Of the operation's traces, the share that show it, 0 to 1.
    pub trace_share: f64,
    /// Calls in a request that shows it, median.
    pub calls: usize,
    /// Of these requests, the share that make exactly the median number of calls, 0 to 1.
    pub same_count_share: f64,
    /// From this share on, the number is taken to depend on the program and not on a response, 0 to 1.
    pub same_count_share_min: f64,
    /// Latency of the operation, median of all its requests, nanoseconds.
    pub latency_ns: f64,
    /// Time of a request in these calls and in no other, median, nanoseconds.
    pub calls_ns: f64,
    /// The part of it in the longest of these calls, median, nanoseconds.
    pub longest_ns: f64,
    /// The part of it in all of these calls but the longest, which parallel calls would save, median, nanoseconds.
    pub saving_ns: f64,
    /// Callee.
    pub target: Target,
    /// Where the calls go.
    pub destinations: Destinations,
    /// The query as sent, or else method, address and path without ids, of different addresses each on a line; clipped.
    pub text: String,
}

impl SerialFanOut {
    /// Whether the calls are as many in nearly all requests.
    pub fn has_fixed_count(&self) -> bool {
        self.same_count_share >= self.same_count_share_min
    }
}

/// Destination of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    /// A database: the calls are queries.
    Database,
    /// Another service.
    #[default]
    Service,
}

/// Where similar calls go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Destinations {
    /// In nearly all requests each to another partition.
    Partitions,
    /// Each to another address, which is known before the first of them begins.
    Addresses,
    /// It is not recorded.
    #[default]
    Unknown,
}
