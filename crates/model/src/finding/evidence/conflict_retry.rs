//! Evidence of `conflict-retry`.

use serde::{Deserialize, Serialize};

/// The conflicts between transactions in one store: those of one operation, or all that the store counts.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ConflictRetry {
    /// The requests of the finding's operation; `None` if no span shows a conflict and only the store counts them.
    pub requests: Option<Requests>,
    /// The store's own counts of its conflicts; empty if it counts none.
    pub counters: Vec<Counter>,
    /// Requests of the load that failed, if only the store counts conflicts and these are about as many; else 0.
    #[serde(default)]
    pub failed: u64,
}

impl ConflictRetry {
    /// Conflicts over all counters of the store, from 0.
    pub fn counted(&self) -> f64 {
        self.counters.iter().map(|counter| counter.conflicts).sum()
    }
}

/// A counter of a store.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Counter {
    /// Its name.
    pub name: String,
    /// By how much it grew while the load counted, over all replicas, from 0.
    pub conflicts: f64,
}

/// The requests of one operation. Counts of requests are estimated from the sampled traces.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Requests {
    /// All of them.
    pub all: f64,
    /// Those that failed, for whatever reason.
    pub failed: f64,
    /// Those that met a conflict.
    pub conflicting: f64,
    /// Those that met a conflict and failed.
    pub conflicting_failed: f64,
    /// Those that met a conflict and began again.
    pub retried: f64,
    /// Those that began again and did not fail.
    pub retried_well: f64,
    /// Sampled requests that met a conflict.
    pub sampled: usize,
    /// Conflicts in the sampled requests.
    pub conflicts: usize,
    /// Share of the operation's time in attempts that came to nothing, 0 to 1.
    pub lost_share: f64,
    /// From the first attempt of a request that began again to its last one, median, nanoseconds; `None` if none did.
    pub retry_lost_ns: Option<f64>,
    /// How the store names the conflict, the most frequent first; empty when only an error's text shows it.
    pub codes: Vec<String>,
    /// A statement that met a conflict; clipped where it is very long.
    pub statement: Option<String>,
}

impl Requests {
    /// A count of these requests as a share of all of them.
    pub fn share(&self, requests: f64) -> f64 {
        requests / self.all.max(f64::MIN_POSITIVE)
    }

    /// Share of the requests that met a conflict and failed, 0 to 1.
    pub fn failed_share(&self) -> f64 {
        self.share(self.conflicting_failed)
    }

    /// Whether conflicts cost more requests than time.
    pub fn costs_requests(&self) -> bool {
        self.failed_share() >= self.lost_share
    }
}
