//! Every number that a detector compares with, in one table.
//!
//! The pages under `docs/reference/findings` quote these values. A change of a value that changes findings raises the
//! version of the detector that reads it.

/// The thresholds of all detectors. Shares are 0 to 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Thresholds {
    /// `n-plus-one`: queries of one shape under one parent that make a run.
    pub n_plus_one_queries: usize,
    /// `n-plus-one`: traces that must show it.
    pub n_plus_one_traces: usize,
    /// `n-plus-one`: share of the operation's traces that must show it.
    pub n_plus_one_trace_share: f64,
    /// `n-plus-one`: median time in the repeated queries of one request that alone makes it worth saying, nanoseconds.
    pub n_plus_one_time_ns: f64,
    /// `n-plus-one`: share of the operation's latency that alone makes it worth saying.
    pub n_plus_one_latency_share: f64,
    /// `n-plus-one`: share of all the trial's queries that alone makes it worth saying.
    pub n_plus_one_query_share: f64,
    /// How far apart two spans of stacked libraries may start and still be the same query, nanoseconds.
    pub duplicate_start_gap_ns: i64,
    /// `cpu-saturation`: share of a service's CPU limit.
    pub cpu_limit_share: f64,
    /// `cpu-saturation`: share of one core that a replica's busiest thread uses.
    pub cpu_thread_share: f64,
    /// `cpu-saturation`: share of the host's CPU.
    pub cpu_host_share: f64,
    /// `cpu-saturation` and `generator-limited`: points that a median over a window needs.
    pub cpu_points: usize,
    /// `cpu-saturation` and `generator-limited`: the least time that those points span, nanoseconds.
    pub cpu_span_ns: i64,
    /// `cpu-saturation`: throughput has stopped growing when it grows by less than this share of what users grow by.
    pub flat_growth_share: f64,
    /// `cpu-saturation`: requests queue when latency is this many times that of the lightest load.
    pub queueing_latency_factor: f64,
    /// `cpu-saturation`: Little's law holds when users ÷ (rate × latency) is within this share of 1.
    pub little_tolerance: f64,
    /// `generator-limited`: share of the mean latency that was spent before sending, from which figures are doubtful.
    pub generator_lateness_doubtful: f64,
    /// `generator-limited`: the same, from which they are invalid.
    pub generator_lateness_invalid: f64,
    /// `generator-limited`: mean lateness below which nothing is said, nanoseconds: what timers cost.
    pub generator_lateness_ns_min: f64,
    /// `generator-limited`: share of one core of the busiest load thread, from which figures are doubtful.
    pub generator_thread_doubtful: f64,
    /// `generator-limited`: the same, from which they are invalid.
    pub generator_thread_invalid: f64,
    /// `generator-limited`: the generator's share of the CPU in use on a full host.
    pub generator_host_share: f64,
    /// Comparison: the smallest relative change that is called one.
    pub change_min: f64,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            n_plus_one_queries: 5,
            n_plus_one_traces: 3,
            n_plus_one_trace_share: 0.20,
            n_plus_one_time_ns: 50e6,
            n_plus_one_latency_share: 0.20,
            n_plus_one_query_share: 0.20,
            duplicate_start_gap_ns: 1_000_000,
            cpu_limit_share: 0.85,
            cpu_thread_share: 0.85,
            cpu_host_share: 0.90,
            cpu_points: 5,
            cpu_span_ns: 5_000_000_000,
            flat_growth_share: 0.25,
            queueing_latency_factor: 1.5,
            little_tolerance: 0.15,
            generator_lateness_doubtful: 0.10,
            generator_lateness_invalid: 0.50,
            generator_lateness_ns_min: 100_000.0,
            generator_thread_doubtful: 0.80,
            generator_thread_invalid: 0.95,
            generator_host_share: 0.30,
            change_min: 0.05,
        }
    }
}
