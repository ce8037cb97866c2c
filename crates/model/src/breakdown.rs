//! Where the time of an operation's requests goes.

use serde::{Deserialize, Serialize};

/// What an interval of a request's critical path was spent on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "name")]
pub enum TimeCategory {
    /// The operation's own service at work, or waiting for something that no span shows.
    Own,
    /// Waiting for a connection or a place in a pool.
    Pool,
    /// Waiting to call again after a refusal or a failure; the name of what refused.
    BackOff(String),
    /// Another service or a database: its name.
    Dependency(String),
    /// Time that the trace does not explain: gaps of spans that never arrived, clocks that disagree.
    Unknown,
}

/// One category's part of an operation's time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TimePart {
    /// What it was spent on.
    pub category: TimeCategory,
    /// Mean per request, nanoseconds.
    pub mean_ns: f64,
    /// Of the mean latency, 0 to 1. The parts of an operation add up to 1.
    pub share: f64,
}

/// The critical paths of an operation's requests, added up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Breakdown {
    /// The service that responds.
    pub service: String,
    /// The operation, such as `GET /orders`.
    pub operation: String,
    /// Requests it was read from, each as many times as it stands for.
    pub requests: f64,
    /// Mean latency of those requests, nanoseconds.
    pub mean_ns: f64,
    /// Most time first.
    pub parts: Vec<TimePart>,
}
