//! Evidence of `provisioned-rate`.

use serde::{Deserialize, Serialize};

/// The fullest partition of a store, in counted time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ProvisionedRate {
    /// The partition.
    pub partition: String,
    /// Its provisioned throughput, request units per second, above 0; the highest value where it changed.
    pub provisioned: f64,
    /// Consumption at the top: the share of the provisioned throughput that is exceeded in no more than `top_time_share`
    /// of the time, 0 to about 1.
    pub top_share: f64,
    /// The share of the time that `top_share` leaves out, 0 to 1.
    pub top_time_share: f64,
    /// The highest consumption in a reading, as a share of the provisioned throughput.
    pub peak_share: f64,
    /// Mean consumption, as a share of the provisioned throughput.
    pub mean_share: f64,
    /// From this share of its provisioned throughput on, a partition counts as full.
    pub full_share_min: f64,
    /// Time in which it was full, seconds.
    pub full_seconds: f64,
    /// Partitions of the store that are full at the top.
    pub full_partitions: usize,
    /// Partitions of the store.
    pub partitions: usize,
    /// Attempts that were rejected while it was full, from 0.
    pub rejected: f64,
}
