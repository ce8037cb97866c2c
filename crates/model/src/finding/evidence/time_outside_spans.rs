//! Evidence of `time-outside-spans`.

use serde::{Deserialize, Serialize};

use super::load::LoadLevel;

/// Time of an operation's requests that the load generator measures and no span covers.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct TimeOutsideSpans {
    /// The load with most demand at which it was read.
    pub heaviest: EndToEnd,
    /// The lightest load at which it was read; `None` if there is no other.
    pub lightest: Option<EndToEnd>,
    /// Shape of the gap over the loads.
    pub pattern: GapPattern,
    /// Services without spans that no span shows a call to, so that they may stand before the service.
    pub in_front: Vec<String>,
    /// Bytes of a response, mean.
    pub response_bytes: f64,
    /// Whether the CPU of the service or of the machine was not sampled under these loads.
    pub cpu_unknown: bool,
    /// Mean time until the service's kernel acknowledged a request, nanoseconds, where sockets show the delay; `None`
    /// where spans do.
    pub acknowledged_ns: Option<f64>,
}

/// A request as the load generator and the first span time it, under one load.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct EndToEnd {
    /// The load.
    pub load: LoadLevel,
    /// From the request's send to the end of its response, nanoseconds: the mean, without spans the median.
    pub client_ns: f64,
    /// The service's span, mean, nanoseconds; without spans, that time without the delay.
    pub span_ns: f64,
}

impl EndToEnd {
    /// Time that no span covers, nanoseconds, from 0.
    pub fn gap_ns(&self) -> f64 {
        (self.client_ns - self.span_ns).max(0.0)
    }
}

/// Shape of a gap over the loads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GapPattern {
    /// One load alone, or neither of the others.
    #[default]
    Unknown,
    /// It grows with the load, as a queue before the service does.
    Grows,
    /// It is the same under every load.
    Constant,
    /// It is about 40 ms under every load: the shortest time after which Linux acknowledges what it received.
    DelayedAcknowledgement,
}
