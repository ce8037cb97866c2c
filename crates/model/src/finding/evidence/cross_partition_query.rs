//! Evidence of `cross-partition-query`.

use serde::{Deserialize, Serialize};

/// One query of an operation that goes to nearly all partitions of a store.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CrossPartitionQuery {
    /// Traces that show it.
    pub traces: usize,
    /// Of the operation's traces, the share that show it, 0 to 1.
    pub trace_share: f64,
    /// The store.
    pub store: String,
    /// Partitions of the store.
    pub partitions: usize,
    /// Partitions that responded to the query in one request, median.
    pub touched: usize,
    /// Of these requests, the share in which exactly the median number responded, 0 to 1.
    pub same_count_share: f64,
    /// Partitions without rows among those, median; `None` if it is not known which have rows.
    pub empty: Option<usize>,
    /// Of the partitions that responded, the share without rows, median, 0 to 1; `None` if that is not known.
    pub empty_share: Option<f64>,
    /// A query with a greater share of partitions without rows is taken not to need them all, 0 to 1.
    pub empty_share_min: f64,
    /// Charge of the query in one request, mean, request units; `None` if no charge is recorded.
    pub charge: Option<f64>,
    /// The part of it in partitions that had rows, mean, request units; `None` if that is not known.
    pub useful_charge: Option<f64>,
    /// The most that a partition consumed in a second, as a share of what is provisioned for it, from 0; `None` if the
    /// store does not report both.
    pub peak_share: Option<f64>,
    /// The query as sent, clipped.
    pub query: Option<String>,
}

impl CrossPartitionQuery {
    /// Share that is spent without a result, 0 to 1, and its whole.
    pub fn waste(&self) -> (f64, Measure) {
        match (self.charge.zip(self.useful_charge), self.empty_share) {
            (Some((all, useful)), _) if all > 0.0 => (((all - useful) / all).clamp(0.0, 1.0), Measure::Charge),
            (_, Some(share)) => (share, Measure::Partitions),
            _ => (1.0 - 1.0 / self.touched.max(1) as f64, Measure::PartitionsAtMost),
        }
    }
}

/// Whole of a share without a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// Of the charge, in request units.
    Charge,
    /// Of the partitions that respond.
    Partitions,
    /// Of these at most, if a single one has rows.
    PartitionsAtMost,
}
