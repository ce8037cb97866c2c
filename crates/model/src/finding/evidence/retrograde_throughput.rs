//! Evidence of `retrograde-throughput`.

use serde::{Deserialize, Serialize};

use super::load::LoadLevel;
use crate::scalability::Misfit;

/// Throughput that falls while the load grows.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RetrogradeThroughput {
    /// The level with the best throughput.
    pub peak: Level,
    /// The level with the most load.
    pub fall: Level,
    /// Of the best throughput, the share that is lost at the fall, 0 to 1.
    pub lost_share: f64,
    /// The low end of its 95 % interval, above 0.
    pub lost_share_low: f64,
    /// The high end of it.
    pub lost_share_high: f64,
    /// A later level with the load of the peak that brought the throughput back; `None` if the load only grew.
    pub recovered: Option<Recovered>,
    /// Quantity that grows from the peak to the fall, the most telling first.
    pub growing: Vec<Growing>,
    /// The universal scalability law through the levels; none with too few of them.
    pub law: Option<Law>,
}

/// A level of a load that rises in steps.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Level {
    /// Offered load.
    pub load: LoadLevel,
    /// Requests that succeed per second.
    pub rate: f64,
    /// Mean latency from intended send, nanoseconds.
    pub latency_ns: f64,
    /// Mean time from actual send, nanoseconds.
    pub service_ns: f64,
    /// Failed requests ÷ all that ended, 0 to 1.
    pub error_share: f64,
}

impl Level {
    /// Requests under way at any time, by Little's law: throughput × time from send to response.
    pub fn in_flight(&self) -> f64 {
        self.rate * self.service_ns / 1e9
    }
}

/// A level after the fall.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Recovered {
    /// Offered load.
    pub load: LoadLevel,
    /// Requests that succeed per second.
    pub rate: f64,
}

/// Quantity that grows from the peak to the fall.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
pub enum Growing {
    /// Rejected attempts.
    Rejections {
        /// The store or service that rejects them.
        target: String,
        /// Share of its calls that it rejects at the peak, 0 to 1.
        before: f64,
        /// The same at the fall.
        now: f64,
    },
    /// A service's CPU, which is at its limit at the fall.
    Cpu {
        /// The service.
        service: String,
        /// Share of the CPU available to it that it uses at the fall, 0 to 1.
        share: f64,
        /// CPU that each request costs it, where that grows.
        per_request: Option<CpuPerRequest>,
    },
    /// Failed requests.
    Errors {
        /// Share of all that ended at the peak, 0 to 1.
        before: f64,
        /// The same at the fall.
        now: f64,
    },
    /// The time that requests take.
    Waiting,
}

/// CPU that each request costs a service, nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CpuPerRequest {
    /// At the peak.
    pub before_ns: f64,
    /// At the fall.
    pub now_ns: f64,
}

/// The universal scalability law through the levels.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Law {
    /// λ: requests per second, one at a time.
    pub lambda: f64,
    /// σ: the part of a request that waits for others.
    pub sigma: f64,
    /// κ: what each request costs each other.
    pub kappa: f64,
    /// The low and the high end of the 95 % interval of κ; none with too few levels for one.
    pub kappa_interval: Option<(f64, f64)>,
    /// Why the fit should not be relied on, if it should not.
    pub misfit: Option<Misfit>,
}

impl Law {
    /// Whether it fits and κ is above 0 with its whole interval.
    pub fn shows_a_peak(&self) -> bool {
        self.misfit.is_none() && self.kappa_interval.is_some_and(|(low, _)| low > 0.0)
    }

    /// Requests under way with which the throughput is best; `None` if the law has no such peak.
    pub fn best_in_flight(&self) -> Option<f64> {
        (self.sigma < 1.0 && self.kappa > 0.0).then(|| ((1.0 - self.sigma) / self.kappa).sqrt())
    }
}
