//! A load that another program sent, and the program's own report on it: totals, without seconds or distributions.

use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;

/// The program that sent the load of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadProgram {
    /// Its name, such as `k6`.
    pub name: String,
    /// The thresholds of the program's script.
    pub thresholds: Vec<Threshold>,
    /// Totals that it reports; `None` if it reports none, or not in a form that Narrows reads.
    pub reported: Option<ReportedLoad>,
}

impl LoadProgram {
    /// The counts that it reports.
    pub fn counts(&self) -> impl Iterator<Item = u64> + use<> {
        self.reported.into_iter().flat_map(|load| [load.requests, load.failed, load.due, load.dropped])
    }
}

/// A threshold of a load program's script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Threshold {
    /// As the program names it, such as `http_req_failed: rate<0.01`.
    pub text: String,
    /// Whether the program reports it as crossed.
    pub is_crossed: bool,
}

/// Totals of a load as its program reports them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ReportedLoad {
    /// Duration of the load in seconds, above 0.
    pub seconds: f64,
    /// Number of requests that ended, successful or not.
    pub requests: u64,
    /// Number of these that failed.
    pub failed: u64,
    /// Iterations of an open model that were due.
    pub due: u64,
    /// Number of these that never began.
    pub dropped: u64,
    /// Latency of successful requests.
    pub latency: LatencyFigures,
}

impl ReportedLoad {
    /// Requests that succeeded.
    pub fn succeeded(&self) -> u64 {
        self.requests.saturating_sub(self.failed)
    }

    /// Successful responses per second, if the duration is known.
    pub fn known_rate(&self) -> Option<f64> {
        (self.seconds > 0.0).then(|| self.succeeded() as f64 / self.seconds)
    }

    /// Failed ÷ all requests; `None` without requests.
    pub fn error_rate(&self) -> Option<f64> {
        (self.requests > 0).then(|| self.failed as f64 / self.requests as f64)
    }
}

/// Latency figures in nanoseconds; `None` if unknown.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct LatencyFigures {
    /// Arithmetic mean.
    pub mean_ns: Option<f64>,
    /// Smallest.
    pub min_ns: Option<f64>,
    /// Median.
    pub p50_ns: Option<f64>,
    /// 90th percentile.
    pub p90_ns: Option<f64>,
    /// 95th percentile.
    pub p95_ns: Option<f64>,
    /// 99th percentile.
    pub p99_ns: Option<f64>,
    /// 99.9th percentile.
    pub p999_ns: Option<f64>,
    /// Largest.
    pub max_ns: Option<f64>,
}

impl From<&Histogram> for LatencyFigures {
    fn from(latency: &Histogram) -> Self {
        if latency.count() == 0 {
            return Self::default();
        }
        let quantile = |q| Some(latency.quantile_ns(q) as f64);
        Self {
            mean_ns: Some(latency.mean_ns()),
            min_ns: Some(latency.min_ns() as f64),
            p50_ns: quantile(0.50),
            p90_ns: quantile(0.90),
            p95_ns: quantile(0.95),
            p99_ns: quantile(0.99),
            p999_ns: quantile(0.999),
            max_ns: Some(latency.max_ns() as f64),
        }
    }
}
