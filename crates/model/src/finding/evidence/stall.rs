//! Evidence of `stall`.

use serde::{Deserialize, Serialize};

/// Times in which a system sent no response, so that all requests of those times waited.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Stall {
    /// Number of stalls, from 1.
    pub stalls: usize,
    /// Length of the stall in the middle, nanoseconds.
    pub length_ns: f64,
    /// Length of the longest, nanoseconds.
    pub longest_ns: f64,
    /// Time from the start of one to that of the next, the one in the middle, nanoseconds; `None` for a single one.
    pub apart_ns: Option<f64>,
    /// Whether nearly all of them follow each other at that distance.
    pub is_regular: bool,
    /// From the start of the load to each of the first of them, nanoseconds.
    pub first_ns: Vec<i64>,
    /// Share of the load's time in them, 0 to 1.
    pub time_share: f64,
    /// Median latency of the load, nanoseconds.
    pub p50_ns: f64,
    /// 95 % latency of the load, nanoseconds.
    pub p95_ns: f64,
    /// Share of the load's requests that took as long as those that waited, 0 to 1.
    pub slow_share: f64,
    /// Sampled quick requests that would lie within the stalls if they were as frequent there as at other times.
    pub quick_expected: f64,
    /// Sampled quick requests that do.
    pub quick_seen: f64,
}
