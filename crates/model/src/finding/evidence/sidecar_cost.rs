//! Evidence of `sidecar-cost`.

use serde::{Deserialize, Serialize};

use super::variant::VariantFigures;
use crate::comparison::SidecarSummary;

/// Cost of the sidecars of a trial or of a variant.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SidecarCost {
    /// Their cost.
    pub sidecars: SidecarSummary,
    /// The time of one hop without the time behind it, median, nanoseconds; `None` if sidecars send no spans.
    pub hop_ns: Option<f64>,
    /// The same system without them at the same rate; `None` if no variant is that.
    pub compared: Option<Compared>,
}

/// A variant with sidecars beside the same without.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Compared {
    /// The variant without sidecars.
    pub without: VariantFigures,
    /// The variant with them.
    pub with: VariantFigures,
    /// By how much their rates may differ at most to be compared, as a share of the smaller.
    pub rate_share_max: f64,
}

impl Compared {
    /// CPU for each request without and with sidecars, core-seconds; `None` if one was not sampled.
    pub fn cpu_seconds_per_request(&self) -> Option<(f64, f64)> {
        self.without.cpu_seconds_per_request.zip(self.with.cpu_seconds_per_request)
    }

    /// Time that sidecars add to the median latency, nanoseconds; below 0 when requests are faster with them.
    pub fn added_p50_ns(&self) -> f64 {
        self.with.p50_ns - self.without.p50_ns
    }

    /// Time that sidecars add to the 95 % latency, nanoseconds.
    pub fn added_p95_ns(&self) -> f64 {
        self.with.p95_ns - self.without.p95_ns
    }
}
