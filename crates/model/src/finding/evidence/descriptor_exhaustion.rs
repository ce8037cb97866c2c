//! Evidence of `descriptor-exhaustion`.

use serde::{Deserialize, Serialize};

use super::load::LoadLevel;

/// A service with a process that has opened nearly all the files and connections that it may, or that will.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct DescriptorExhaustion {
    /// The replica that the figures are of, from 0.
    pub replica: u32,
    /// Replicas of the service that are affected, from 1.
    pub affected_replicas: usize,
    /// Replicas of the service, from 1.
    pub replicas: usize,
    /// Label of the interval of the readings; empty when the descriptors were not sampled.
    pub interval: String,
    /// The load in it.
    pub load: LoadLevel,
    /// Open descriptors and how many there may be; `None` if they were not sampled.
    pub descriptors: Option<Descriptors>,
    /// Failure for lack of descriptors; `None` without one.
    pub failures: Option<Failures>,
    /// Steady growth; `None` if there is none.
    pub growth: Option<Growth>,
}

/// The descriptors of the process that is closest to its limit.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Descriptors {
    /// The most that were open in any reading of the interval.
    pub open: f64,
    /// The process's soft limit, from 1.
    pub limit: f64,
}

/// Failure for lack of descriptors.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Failures {
    /// Share of the requests that fail, 0 to 1.
    pub share: f64,
    /// Name in the errors of the service, such as `too many open files`; `None` if the load sees failures and no
    /// span says why.
    pub name: Option<String>,
    /// The text of one of them; `None` if none was recorded.
    pub text: Option<String>,
    /// Traces that show one.
    pub traces: usize,
}

/// Descriptors whose number grows steadily under one load.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Growth {
    /// How long the interval is, nanoseconds.
    pub length_ns: i64,
    /// Open at its start: the lowest reading of its first quarter.
    pub start: f64,
    /// Open at its end: the highest reading of its last quarter.
    pub end: f64,
    /// More each second, above 0.
    pub per_second: f64,
    /// More for each request of the load; `None` if no request ended.
    pub per_request: Option<f64>,
    /// Until the limit is reached at that rate, nanoseconds, from 0.
    pub until_limit_ns: f64,
}

impl DescriptorExhaustion {
    /// Share of the limit that is in use, 0 to 1; `None` if the descriptors were not sampled.
    pub fn used_share(&self) -> Option<f64> {
        self.descriptors.map(|of| (of.open / of.limit.max(1.0)).clamp(0.0, 1.0))
    }
}
