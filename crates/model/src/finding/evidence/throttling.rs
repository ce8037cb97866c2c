//! Evidence of `throttling`.

use serde::{Deserialize, Serialize};

use super::sockets::SocketReading;

/// From this share of waits as long as requested on, the waits are taken for the store's doing.
pub const WAITS_AS_REQUESTED_SHARE_MIN: f64 = 0.8;

/// One store that rejects calls, and the operation that waits most for it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Throttling {
    /// Attempts that the store rejected, from 0, estimated over all requests.
    pub rejected: f64,
    /// Attempts in all, the rejected ones included.
    pub attempts: f64,
    /// Attempts for each call that succeeded, from 1; `None` if no call succeeded.
    pub attempts_per_success: Option<f64>,
    /// Of the time of the slower half of the requests, the share spent waiting to retry with no call in progress, 0 to 1.
    pub wait_share: f64,
    /// Median wait after a rejection, nanoseconds.
    pub wait_median_ns: f64,
    /// Seconds in which attempts were rejected.
    pub seconds_with_rejections: usize,
    /// Seconds in which there were attempts.
    pub seconds_with_attempts: usize,
    /// Of the waits after a rejection that named a time, the share as long as that, 0 to 1; `None` if no rejection named one.
    pub waits_as_requested_share: Option<f64>,
    /// Partitions of the store that report their throughput.
    pub partitions: usize,
    /// Throughput provisioned for each partition, request units per second.
    pub provisioned: Option<f64>,
    /// The most that a partition consumed in a second with rejections, request units per second; `None` if its limit is
    /// unknown.
    pub peak: Option<f64>,
    /// Mean consumption of a partition, request units per second.
    pub mean: Option<f64>,
    /// Consumption and rejected charge of the busiest partition in its busiest second, request units per second.
    pub demand: Option<f64>,
    /// Other operations that wait for the same store.
    pub other_operations: Vec<String>,
    /// Sleeps between calls, where no span shows rejections; the figures above are then 0 or absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sleeps: Option<SleepsBetweenCalls>,
}

/// Requests of a service that sleep and call a peer again.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SleepsBetweenCalls {
    /// The service.
    pub caller: String,
    /// Calls to the peer for each request, mean.
    pub calls_per_request: f64,
    /// Wait for one call, mean, nanoseconds.
    pub call_ns: f64,
    /// Sleep of a request, mean, nanoseconds.
    pub sleep_ns: f64,
    /// The same under the lightest load, from 0.
    pub lighter_sleep_ns: f64,
    /// The requests that sleep.
    pub reading: SocketReading,
}

impl Throttling {
    /// Share of the attempts that were rejected, 0 to 1.
    pub fn rejected_share(&self) -> f64 {
        if self.attempts > 0.0 { self.rejected / self.attempts } else { 0.0 }
    }

    /// Whether most waits are as long as the rejection requested.
    pub fn waits_as_requested(&self) -> bool {
        self.waits_as_requested_share.is_some_and(|share| share >= WAITS_AS_REQUESTED_SHARE_MIN)
    }
}
