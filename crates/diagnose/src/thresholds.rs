//! Every number that a detector or a trap of instrumentation compares with, in one table.
//!
//! The pages under `docs/reference/findings` and `docs/reference/instrumentation.md` quote these values. A change of a
//! value that changes findings raises the version of the detector that reads it.

/// The thresholds of all detectors and traps. Shares are 0 to 1.
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
    /// `cpu-saturation`: share of one core that a replica's busiest thread uses. Higher than for a cap: an event loop at
    /// 85 % makes its requests wait, but still takes on more of them; what is used up takes on none.
    pub cpu_thread_share: f64,
    /// `cpu-saturation`: share of the host's CPU.
    pub cpu_host_share: f64,
    /// `cpu-saturation` and `generator-limited`: points that a median over a window needs.
    pub cpu_points: usize,
    /// `cpu-saturation` and `generator-limited`: the least time that those points span, nanoseconds.
    pub cpu_span_ns: i64,
    /// `cpu-saturation`: throughput has stopped growing when it grows by less than this share of what users or
    /// the rate offered grow by.
    pub flat_growth_share: f64,
    /// `cpu-saturation`: requests queue when latency is this many times that of the lightest load.
    pub queueing_latency_factor: f64,
    /// `cpu-saturation`: Little's law holds when users ÷ (rate × latency) is within this share of 1.
    pub little_tolerance: f64,
    /// `throttling`: share of the attempts that must be refused.
    pub throttled_share: f64,
    /// `throttling`: attempts that must be refused, so that a short run does not decide by a handful.
    pub throttled_attempts: f64,
    /// `throttling`: share of the latency of the operation's slow half that must pass waiting for another attempt.
    pub throttled_wait_share: f64,
    /// `throttling`: traces that must show a refused attempt and its repetition.
    pub throttled_traces: usize,
    /// `throttling`: share of the time that the answer told to wait, below which a gap was no such wait.
    pub retry_after_share_min: f64,
    /// `throttling`: as many times that time, and the slack, count as wait; what is longer has another cause.
    pub retry_after_factor_max: f64,
    /// `throttling`: what timers and a busy program may add, nanoseconds.
    pub retry_after_slack_ns: f64,
    /// `throttling`: share of its provisioned throughput from which a partition counts as used up in a second. Readings
    /// do not begin with the store's own seconds, so a full one may be split over two.
    pub partition_full_share: f64,
    /// `serial-fan-out`: calls of one kind under one parent.
    pub fan_out_calls: usize,
    /// `serial-fan-out`: share of their time in which two of them may be under way.
    pub fan_out_overlap_share: f64,
    /// `serial-fan-out`: median time that calls side by side would save in a request, nanoseconds.
    pub fan_out_saving_ns: f64,
    /// `serial-fan-out`: the same as a share of the operation's median latency.
    pub fan_out_saving_share: f64,
    /// `serial-fan-out`, `cross-partition-query`: share of the operation's traces that must show it.
    pub regular_trace_share: f64,
    /// `serial-fan-out`, `cross-partition-query`: traces that must show it.
    pub regular_traces: usize,
    /// `serial-fan-out`, `cross-partition-query`: share of those in which the number of calls must be the same, where
    /// only that speaks for a fixed plan.
    pub same_count_share: f64,
    /// `cross-partition-query`: share of the store's partitions that a request must touch.
    pub cross_partition_share: f64,
    /// `cross-partition-query`: partitions that the store must have.
    pub cross_partition_partitions: usize,
    /// `cross-partition-query`: share of the touched partitions that must have nothing to say.
    pub cross_partition_empty_share: f64,
    /// `generator-limited`: share of the mean latency that was spent before sending, from which figures are doubtful.
    pub generator_lateness_doubtful: f64,
    /// `generator-limited`: the same, from which they are invalid.
    pub generator_lateness_invalid: f64,
    /// `generator-limited`: mean lateness below which nothing is said, nanoseconds: what timers cost.
    pub generator_lateness_ns_min: f64,
    /// `generator-limited`: share of the iterations due that never began, from which figures are doubtful.
    pub generator_dropped_doubtful: f64,
    /// `generator-limited`: the same, from which they are invalid.
    pub generator_dropped_invalid: f64,
    /// `generator-limited`: share of the iterations due that had to wait for a free user, from which figures are
    /// doubtful.
    pub generator_waited_doubtful: f64,
    /// `generator-limited`: the same, from which the wait is what made requests late.
    pub generator_waited_share: f64,
    /// `generator-limited`: share of one core of the busiest load thread, from which figures are doubtful.
    pub generator_thread_doubtful: f64,
    /// `generator-limited`: the same, from which they are invalid.
    pub generator_thread_invalid: f64,
    /// `generator-limited`: the generator's share of the CPU in use on a full host.
    pub generator_host_share: f64,
    /// `doubled-spans`, `nested-doubles`: calls that must have a double.
    pub doubled_calls: usize,
    /// `doubled-spans`, `nested-doubles`: share of a scope's calls that must have one.
    pub doubled_share: f64,
    /// `doubled-spans`: share of the shorter span's time in which both are under way.
    pub doubled_overlap_share: f64,
    /// `nested-doubles`: share of the outer span's time that the inner one takes.
    pub nested_length_share: f64,
    /// `pool-spans`: connections taken, as a share of the request's queries.
    pub pool_query_share: f64,
    /// `pool-spans`: requests that must show it.
    pub pool_requests: usize,
    /// `pool-spans`: connections taken in all of these.
    pub pool_connections: usize,
    /// `missing-database-spans`: median time of a request in which nothing is under way, nanoseconds.
    pub gap_ns: f64,
    /// `missing-database-spans`: the same as a share of the median latency.
    pub gap_share: f64,
    /// `missing-database-spans`: share of that time from which processor time explains it.
    pub gap_cpu_share: f64,
    /// `missing-database-spans`: requests of the operation.
    pub gap_requests: usize,
    /// `missing-parents`: share of the spans.
    pub torn_span_share: f64,
    /// `missing-parents`: traces that must show it.
    pub torn_traces: usize,
    /// `clock-skew`: how far a span may lie outside its call, nanoseconds.
    pub skew_slack_ns: f64,
    /// `clock-skew`: calls between the two services.
    pub skew_calls: usize,
    /// `clock-skew`: share of these that must be impossible.
    pub skew_call_share: f64,
    /// `sampled-traces`: requests that a trace stands for.
    pub sampled_weight: f64,
    /// `sampled-traces`: answers of the load from which requests among the spans are compared with them.
    pub unsampled_requests: u64,
    /// `sampled-traces`: share of the answers that spans show, below which most are missing.
    pub unsampled_share: f64,
    /// `impossible-durations`: calls and requests of a service that take no time.
    pub zero_spans: usize,
    /// `impossible-durations`: the same as a share.
    pub zero_span_share: f64,
    /// `start-up-spans`: share of the trial's spans that belong to no request.
    pub start_up_share: f64,
    /// `start-up-spans`: how many these are.
    pub start_up_spans: u64,
    /// `traces-without-request`: traces begun by one service that hold no request.
    pub requestless_traces: usize,
    /// `traces-without-request`: the same as a share of all.
    pub requestless_share: f64,
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
            cpu_thread_share: 0.90,
            cpu_host_share: 0.90,
            cpu_points: 5,
            cpu_span_ns: 5_000_000_000,
            flat_growth_share: 0.25,
            queueing_latency_factor: 1.5,
            little_tolerance: 0.15,
            throttled_share: 0.01,
            throttled_attempts: 20.0,
            throttled_wait_share: 0.10,
            throttled_traces: 3,
            retry_after_share_min: 0.8,
            retry_after_factor_max: 2.0,
            retry_after_slack_ns: 50e6,
            partition_full_share: 0.8,
            fan_out_calls: 3,
            fan_out_overlap_share: 0.05,
            fan_out_saving_ns: 20e6,
            fan_out_saving_share: 0.20,
            regular_trace_share: 0.80,
            regular_traces: 3,
            same_count_share: 0.90,
            cross_partition_share: 0.8,
            cross_partition_partitions: 3,
            cross_partition_empty_share: 0.5,
            generator_lateness_doubtful: 0.10,
            generator_lateness_invalid: 0.50,
            generator_lateness_ns_min: 100_000.0,
            generator_dropped_doubtful: 0.001,
            generator_dropped_invalid: 0.01,
            generator_waited_doubtful: 0.10,
            generator_waited_share: 0.01,
            generator_thread_doubtful: 0.80,
            generator_thread_invalid: 0.95,
            generator_host_share: 0.30,
            doubled_calls: 10,
            doubled_share: 0.5,
            doubled_overlap_share: 0.90,
            nested_length_share: 0.90,
            pool_query_share: 0.5,
            pool_requests: 3,
            pool_connections: 10,
            gap_ns: 5e6,
            gap_share: 0.5,
            gap_cpu_share: 0.5,
            gap_requests: 20,
            torn_span_share: 0.01,
            torn_traces: 5,
            skew_slack_ns: 1e6,
            skew_calls: 10,
            skew_call_share: 0.5,
            sampled_weight: 2.0,
            unsampled_requests: 200,
            unsampled_share: 0.5,
            zero_spans: 10,
            zero_span_share: 0.05,
            start_up_share: 0.5,
            start_up_spans: 1000,
            requestless_traces: 20,
            requestless_share: 0.3,
            change_min: 0.05,
        }
    }
}
