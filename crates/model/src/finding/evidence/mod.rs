//! The data that findings rest on: one file for each kind, and files for what several kinds have in common.
//!
//! Evidence is data alone: counts, shares, times and names, from which the words of a finding are made and anything else
//! can be computed. Every type has a value without data, its default, for findings made in tests.

pub mod accept_queue;
pub mod chatty_http;
pub mod conflict_retry;
pub mod cpu;
pub mod cpu_saturation;
pub mod cross_partition_query;
pub mod database_saturation;
pub mod descriptor_exhaustion;
pub mod disk_bound;
pub mod disk_full;
pub mod dns;
pub mod duplicate_query;
pub mod event_loop_lag;
pub mod few_clients;
pub mod garbage_collection;
pub mod generator_limited;
pub mod hot_partition;
pub mod instrumentation_gap;
pub mod interpreter_lock;
pub mod load;
pub mod memory_growth;
pub mod n_plus_one;
pub mod not_steady;
pub mod offered_load_limited;
pub mod outage;
pub mod pool_wait;
pub mod port_exhaustion;
pub mod provisioned_rate;
pub mod retrograde_throughput;
pub mod retry_storm;
pub mod serial_fan_out;
pub mod serialised_section;
pub mod sidecar_cost;
pub mod slow_dependency;
pub mod slow_query;
pub mod straggler_branch;
pub mod thread_pool;
pub mod throttling;
pub mod time_outside_spans;
pub mod unequal_rates;
pub mod uneven_assignment;
pub mod variant;

use serde::{Deserialize, Serialize};

/// How often something happens in each request that it happens in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counts {
    /// In the request with fewest.
    pub least: usize,
    /// In the request in the middle, each as often as its trace stands for.
    pub median: usize,
    /// In the request with most.
    pub most: usize,
}

impl Counts {
    /// Whether the count is not the same in all requests.
    pub fn vary(self) -> bool {
        self.most > self.least
    }
}
