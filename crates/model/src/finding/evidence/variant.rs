//! One variant of a run, where variants are compared.

use serde::{Deserialize, Serialize};

use crate::comparison::VariantSummary;

/// Figures of a variant, medians over its repetitions.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct VariantFigures {
    /// The variant.
    pub variant: String,
    /// Requests that succeed per second.
    pub rate: f64,
    /// Mean latency from intended send, nanoseconds.
    pub mean_ns: f64,
    /// Median latency, nanoseconds.
    pub p50_ns: f64,
    /// 95 % latency, nanoseconds.
    pub p95_ns: f64,
    /// CPU of all services for each successful request, core-seconds; `None` if it was not sampled.
    pub cpu_seconds_per_request: Option<f64>,
}

impl VariantFigures {
    /// Requests under way at any time, by Little's law: throughput × mean latency.
    pub fn under_way(&self) -> f64 {
        self.rate * self.mean_ns / 1e9
    }

    /// The figures of a variant; `None` if it has no rate, or nothing succeeded.
    pub fn of(summary: &VariantSummary) -> Option<Self> {
        Some(Self {
            variant: summary.variant.clone(),
            rate: summary.rate.filter(|rate| *rate > 0.0)?,
            mean_ns: summary.mean_ns?,
            p50_ns: summary.p50_ns?,
            p95_ns: summary.p95_ns?,
            cpu_seconds_per_request: summary.cpu_seconds_per_request.filter(|seconds| seconds.is_finite()),
        })
    }
}
