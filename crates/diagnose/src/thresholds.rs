//! Every number that a detector or a trap of instrumentation compares with, in one table.
//!
//! An experiment may set any of them by name. The pages under `docs/reference/findings`, `docs/reference/thresholds.md`
//! and `docs/reference/instrumentation.md` quote these values. A change of a value that changes findings raises the
//! version of the detector that reads it.

/// The kinds of numbers in the table.
trait Number: Copy {
    /// As it is shown and compared.
    fn to_f64(self) -> f64;
    /// None when the number cannot be one of this kind.
    fn from_f64(value: f64) -> Option<Self>
    where
        Self: Sized;
}

impl Number for f64 {
    fn to_f64(self) -> f64 {
        self
    }

    fn from_f64(value: f64) -> Option<Self> {
        (value.is_finite() && value >= 0.0).then_some(value)
    }
}

/// The largest whole number that may be set: every whole number up to it is exact in a float.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

macro_rules! whole {
    ($($kind:ty),+) => {
        $(impl Number for $kind {
            fn to_f64(self) -> f64 {
                self as f64
            }

            fn from_f64(value: f64) -> Option<Self> {
                (value.fract() == 0.0 && (0.0..=WHOLE_MAX).contains(&value)).then_some(value as $kind)
            }
        })+
    };
}

whole!(usize, u64, i64);

/// One row of the table of thresholds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row {
    /// The name by which an experiment sets it.
    pub name: &'static str,
    /// Its value here.
    pub value: f64,
    /// Whether it must be a whole number.
    pub is_whole: bool,
    /// Who reads it and what it means, with its unit.
    pub says: &'static [&'static str],
}

/// Why a threshold was not set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unset {
    /// None has this name.
    Unknown,
    /// It must be a number of 0 or more.
    NotANumber,
    /// It must be a whole number of 0 or more.
    NotWhole,
}

macro_rules! thresholds {
    ($($(#[doc = $doc:literal])+ $name:ident: $kind:ident = $default:expr;)+) => {
        /// The thresholds of all detectors and traps. Shares are 0 to 1.
        #[derive(Debug, Clone, PartialEq)]
        pub struct Thresholds {
            $($(#[doc = $doc])+ pub $name: $kind,)+
        }

        impl Default for Thresholds {
            fn default() -> Self {
                Self { $($name: $default,)+ }
            }
        }

        impl Thresholds {
            /// All of them, in the order of the table.
            pub fn rows(&self) -> Vec<Row> {
                vec![$(Row {
                    name: stringify!($name),
                    value: self.$name.to_f64(),
                    is_whole: stringify!($kind) != "f64",
                    says: &[$($doc),+],
                },)+]
            }

            /// Sets one by its name.
            ///
            /// # Errors
            /// When none has this name, and when the value cannot be one of its kind.
            pub fn set(&mut self, name: &str, value: f64) -> Result<(), Unset> {
                match name {
                    $(stringify!($name) => {
                        let refusal = if stringify!($kind) == "f64" { Unset::NotANumber } else { Unset::NotWhole };
                        self.$name = <$kind as Number>::from_f64(value).ok_or(refusal)?;
                    })+
                    _ => return Err(Unset::Unknown),
                }
                Ok(())
            }
        }
    };
}

thresholds! {
    /// `n-plus-one`: queries of one shape under one parent that count as a repetition.
    n_plus_one_queries: usize = 5;
    /// `n-plus-one`: traces that must show it.
    n_plus_one_traces: usize = 3;
    /// `n-plus-one`: share of the operation's traces with queries that must show it.
    n_plus_one_trace_share: f64 = 0.20;
    /// `n-plus-one`: median time in the repeated queries of one request that is enough for a finding, nanoseconds.
    n_plus_one_time_ns: f64 = 50e6;
    /// `n-plus-one`: share of the operation's latency that is enough for a finding.
    n_plus_one_latency_share: f64 = 0.20;
    /// `n-plus-one`: share of all the trial's queries that is enough for a finding.
    n_plus_one_query_share: f64 = 0.20;
    /// How far apart two spans of stacked libraries may start and still count as one query, nanoseconds.
    duplicate_start_gap_ns: i64 = 1_000_000;
    /// `cpu-saturation`: share of a service's CPU limit.
    cpu_limit_share: f64 = 0.85;
    /// `cpu-saturation`: share of one core that a replica's busiest thread uses. Higher than for a cap: an event loop
    /// at 85 % makes its requests wait but still takes on more of them; a cap that is used up takes on none.
    cpu_thread_share: f64 = 0.90;
    /// `cpu-saturation`: share of the host's CPU.
    cpu_host_share: f64 = 0.90;
    /// `cpu-saturation`: largest share of the host's CPU that other programs use where the host is named. With more, they
    /// may also be why a load does not fit.
    cpu_foreign_share: f64 = 0.25;
    /// The limit of a trial: share of the host's CPU from which on the host is the limit if threads wait for processors.
    cpu_pressed_share: f64 = 0.75;
    /// The limit of a trial: threads of the services that must wait for a processor then, a mean for each processor.
    cpu_pressed_threads: f64 = 0.25;
    /// The limit of a trial: share of the requests' time in which threads of the services wait for a processor, from
    /// which on other programs that fill the machine may be the cause.
    cpu_wait_share: f64 = 0.1;
    /// `cpu-saturation` and `generator-limited`: points that a median over a window needs.
    cpu_points: usize = 5;
    /// `cpu-saturation` and `generator-limited`: shortest time that those points span, nanoseconds.
    cpu_span_ns: i64 = 5_000_000_000;
    /// `cpu-saturation` and `generator-limited`: different steps that the load must have before shorter steps are read
    /// by themselves.
    steps: usize = 4;
    /// `cpu-saturation` and `generator-limited`: shortest length of such a step, and time that its points span,
    /// nanoseconds.
    step_span_ns: i64 = 2_500_000_000;
    /// `cpu-saturation` and `generator-limited`: points that a median over such a step needs.
    step_points: usize = 3;
    /// `cpu-saturation` and `generator-limited`: largest standard error of their mean, as a share of it.
    step_error_share: f64 = 0.10;
    /// `cpu-saturation`: share of periods in which a control group used up its quota, from which bursts count.
    cpu_throttled_share: f64 = 0.05;
    /// `cpu-saturation`: share of the time in which a task of the group waited for CPU, from which bursts count.
    cpu_pressure_share: f64 = 0.10;
    /// `cpu-saturation`: share of the limit that a service limited by bursts must use, median.
    cpu_throttled_limit_share: f64 = 0.70;
    /// `cpu-saturation`: share of the machine's CPU time taken by the hypervisor, from which there is a caveat.
    cpu_steal_share: f64 = 0.05;
    /// `cpu-saturation`: throughput has stopped growing when it grows by less than this share of the growth of users or
    /// of the offered rate.
    flat_growth_share: f64 = 0.25;
    /// `cpu-saturation`: requests queue when latency is this many times that of the lightest load.
    queueing_latency_factor: f64 = 1.5;
    /// `cpu-saturation`: Little's law holds when users ÷ (rate × latency) is within this share of 1.
    little_tolerance: f64 = 0.15;
    /// `interpreter-lock`: cores that the threads of a replica must use together.
    lock_cores_min: f64 = 0.85;
    /// `interpreter-lock`: cores that they may use together at most.
    lock_cores_max: f64 = 1.15;
    /// `interpreter-lock`: cores that they must use together when no lighter load shows the same use.
    lock_cores_near: f64 = 0.95;
    /// `interpreter-lock`: cores by which their use may differ between the two loads.
    lock_cores_change: f64 = 0.10;
    /// `interpreter-lock`: share of these cores that the busiest thread may use at most.
    lock_thread_share: f64 = 0.75;
    /// `interpreter-lock`: seconds per second that this thread may wait for a processor at most.
    lock_thread_wait: f64 = 0.25;
    /// `interpreter-lock`: cores that a cap on the replica must allow at least.
    lock_cap_cores: f64 = 1.5;
    /// `interpreter-lock`: share of the time of the service's requests that must pass outside their calls.
    lock_own_share: f64 = 0.25;
    /// `interpreter-lock`: the same, when the program is not known as an interpreter.
    lock_unknown_own_share: f64 = 0.50;
    /// `interpreter-lock`: cores of the machine that must be idle.
    lock_idle_cores: f64 = 0.5;
    /// `retrograde-throughput`: levels of load, including the heaviest.
    fall_steps: usize = 3;
    /// `retrograde-throughput`: share of the best throughput that must be lost at the heaviest level.
    fall_share: f64 = 0.10;
    /// `database-saturation`: factor by which the same queries must take longer under the heaviest load.
    database_inflation: f64 = 3.0;
    /// `database-saturation`: factor by which that load must exceed the lightest.
    database_demand_growth: f64 = 2.0;
    /// `database-saturation`: queries of a shape in each of the two loads.
    database_queries: usize = 10;
    /// `database-saturation`: share by which their rows may differ.
    database_rows_share: f64 = 0.25;
    /// `database-saturation`: share of their CPU that the calling services may use at most.
    database_client_share: f64 = 0.70;
    /// `database-saturation`: share of its CPU below which a database waits for something else.
    database_busy_share: f64 = 0.50;
    /// `throttling`: share of the attempts that must be refused.
    throttled_share: f64 = 0.01;
    /// `throttling`: attempts that must be refused, so that a handful in a short run is not enough.
    throttled_attempts: f64 = 20.0;
    /// `throttling`: share of the latency of the operation's slower half that must be spent waiting for another
    /// attempt.
    throttled_wait_share: f64 = 0.10;
    /// `throttling`: traces that must show a refused attempt and the next one.
    throttled_traces: usize = 3;
    /// `throttling`: share of the wait that the refusal requested, below which a gap is not that wait.
    retry_after_share_min: f64 = 0.8;
    /// `throttling`: this multiple of that wait, plus the slack, counts as waiting; the rest of a longer gap has
    /// another cause.
    retry_after_factor_max: f64 = 2.0;
    /// `throttling`: time that timers and a busy program may add, nanoseconds.
    retry_after_slack_ns: f64 = 50e6;
    /// `throttling`: share of its provisioned throughput from which a partition counts as full in a second. Readings do
    /// not start with the store's own seconds, so a full second may be split over two.
    partition_full_share: f64 = 0.8;
    /// `provisioned-rate`: share of its provisioned throughput from which a partition has no headroom left.
    provisioned_full_share: f64 = 0.80;
    /// `provisioned-rate`: share of the counted time, the busiest part, that is left out.
    provisioned_top_share: f64 = 0.01;
    /// `provisioned-rate`: seconds in total in which it must use that much.
    provisioned_seconds: f64 = 3.0;
    /// `provisioned-rate`: largest distance between two readings at which a full second is still visible, seconds.
    provisioned_reading_seconds: f64 = 1.5;
    /// `provisioned-rate`: share by which the provisioned rate may change over the trial and still count as fixed.
    provisioned_change_share: f64 = 0.05;
    /// `hot-partition`: calls to the fullest place, as a multiple of the mean.
    hot_ratio: f64 = 1.5;
    /// `hot-partition`: calls that must be seen, so that a few are not enough.
    hot_calls: f64 = 30.0;
    /// `hot-partition`: use or latency of the fullest place, as a multiple of the others'.
    hot_strain_ratio: f64 = 1.25;
    /// `hot-partition`: share of its limit that the fullest place must use, when only its use is higher.
    hot_use_share: f64 = 0.5;
    /// `hot-partition`: time by which calls to the fullest place must be longer, when only their latency is higher,
    /// nanoseconds.
    hot_latency_ns: f64 = 1e6;
    /// `hot-partition`: probability that the load's keys fall this way by chance, from which there are too few of them.
    hot_chance: f64 = 0.001;
    /// `outage`: share of the failed calls in that time that must have gone to the replica that was down, when only
    /// traces show where they failed.
    outage_call_share: f64 = 0.8;
    /// `slow-dependency`: share of the operation's time that its requests must wait for the dependency.
    dependency_share: f64 = 0.5;
    /// `slow-dependency`: median length of a call under the lightest load from which it is slow by itself, nanoseconds.
    dependency_slow_ns: f64 = 100e6;
    /// `slow-dependency`: median length of a call under the heaviest load, when calls take longer there, nanoseconds.
    dependency_full_ns: f64 = 50e6;
    /// `slow-dependency`: factor by which calls must take longer under the heaviest load than under the lightest.
    dependency_growth: f64 = 2.0;
    /// `slow-dependency`: requests that must wait for it under a load.
    dependency_requests: usize = 5;
    /// `slow-query`: median time of one query under the lightest load, nanoseconds.
    slow_query_ns: f64 = 5e7;
    /// `slow-query`: share of the operation's latency that its queries of one shape take.
    slow_query_share: f64 = 0.5;
    /// `slow-query`: largest number of queries of the shape in a request, median; more are another problem.
    slow_query_times: f64 = 3.0;
    /// `slow-query`: requests that must show it.
    slow_query_traces: usize = 5;
    /// `duplicate-query`: requests that must show it.
    duplicate_query_requests: usize = 5;
    /// `duplicate-query`: share of the operation's requests with queries that must show it, also of those in the later
    /// half of the time.
    duplicate_query_request_share: f64 = 0.5;
    /// `duplicate-query`: share of the operation's latency that the repeats take.
    duplicate_query_share: f64 = 0.10;
    /// `duplicate-query`: time without any call before a query from which it reads a state again, nanoseconds.
    duplicate_query_pause_ns: i64 = 10_000_000;
    /// `time-outside-spans`: share of the users' mean wait that neither a span covers nor the service's CPU explains, under
    /// the heaviest load.
    outside_share: f64 = 0.3;
    /// `time-outside-spans`: the same time, mean, nanoseconds.
    outside_ns: f64 = 5e6;
    /// `time-outside-spans`: spans that were received in an interval.
    outside_requests: f64 = 100.0;
    /// `pool-wait`: share of the latency of the service's requests.
    pool_wait_share: f64 = 0.20;
    /// `pool-wait`: median wait of a request, nanoseconds.
    pool_wait_ns: f64 = 5e6;
    /// `pool-wait`: wait as a multiple of the time in the queries themselves; below it the queries are what is slow.
    pool_wait_query_factor: f64 = 1.0;
    /// `pool-wait`: traces that must show it.
    pool_wait_traces: usize = 5;
    /// `pool-wait`: share of the readings with pending requests or with all connections in use.
    pool_wait_reading_share: f64 = 0.25;
    /// `pool-wait`: readings of a pool that are needed.
    pool_wait_readings: usize = 5;
    /// `pool-wait`: shortest tenth of the `connect` spans, as a share of their mean, up to which they are waits:
    /// opening a connection takes about the same time each time.
    pool_wait_spread_share: f64 = 0.25;
    /// `retry-storm`: attempts per call in the worst part of the trial.
    storm_amplification: f64 = 1.5;
    /// `retry-storm`: attempts per call in its calm part.
    calm_amplification: f64 = 1.1;
    /// `retry-storm`: calls that each of the two parts must hold.
    storm_calls: usize = 10;
    /// `retry-storm`: traces that must show a retry.
    storm_traces: usize = 5;
    /// `chatty-http`: calls of one endpoint under one parent, each with another id.
    chatty_calls: usize = 5;
    /// `chatty-http`: traces that must show it.
    chatty_traces: usize = 3;
    /// `chatty-http`: share of the operation's traces that must show it.
    chatty_trace_share: f64 = 0.20;
    /// `chatty-http`: median time in the calls of one request that is enough for a finding, nanoseconds.
    chatty_time_ns: f64 = 50e6;
    /// `chatty-http`: share of the operation's latency that is enough for a finding.
    chatty_latency_share: f64 = 0.20;
    /// `chatty-http`: share of all calls to that host that is enough for a finding.
    chatty_callee_share: f64 = 0.50;
    /// `serial-fan-out`: calls of one kind under one parent.
    fan_out_calls: usize = 3;
    /// `serial-fan-out`: share of their time in which two of them may be in progress.
    fan_out_overlap_share: f64 = 0.05;
    /// `serial-fan-out`: median time per request that parallel calls would save, nanoseconds.
    fan_out_saving_ns: f64 = 20e6;
    /// `serial-fan-out`: the same as a share of the operation's median latency.
    fan_out_saving_share: f64 = 0.20;
    /// `serial-fan-out`, `cross-partition-query`: share of the operation's traces that must show it.
    regular_trace_share: f64 = 0.80;
    /// `serial-fan-out`, `cross-partition-query`: traces that must show it.
    regular_traces: usize = 3;
    /// `serial-fan-out`, `cross-partition-query`: share of those in which the number of calls must be the same, when
    /// only that shows that the program plans them.
    same_count_share: f64 = 0.90;
    /// `straggler-branch`: share of the operation's requests in which the same branch must be the last to end.
    straggler_last_share: f64 = 0.60;
    /// `straggler-branch`: how much later than the next branch it must end, as a share of the operation's median
    /// latency.
    straggler_drag_share: f64 = 0.20;
    /// `straggler-branch`: the same, nanoseconds.
    straggler_drag_ns: f64 = 5e6;
    /// `straggler-branch`: how long two branches must be in progress together, nanoseconds; shorter overlaps come from
    /// clocks that disagree.
    straggler_overlap_ns: f64 = 1e6;
    /// `straggler-branch`: the same as a share of the branch that ends first.
    straggler_overlap_share: f64 = 0.5;
    /// `straggler-branch`: requests that must show it.
    straggler_requests: usize = 5;
    /// `cross-partition-query`: share of the store's partitions that a request must touch.
    cross_partition_share: f64 = 0.8;
    /// `cross-partition-query`: partitions that the store must have.
    cross_partition_partitions: usize = 3;
    /// `cross-partition-query`: share of the touched partitions that must return no row.
    cross_partition_empty_share: f64 = 0.5;
    /// `generator-limited`: delay before sending as a share of the mean latency, from which figures are doubtful.
    generator_lateness_doubtful: f64 = 0.10;
    /// `generator-limited`: the same, from which they are invalid.
    generator_lateness_invalid: f64 = 0.50;
    /// `generator-limited`: mean delay below which it does not count, nanoseconds: the cost of timers.
    generator_lateness_ns_min: f64 = 100_000.0;
    /// `generator-limited`: share of the due iterations that never started, from which figures are doubtful.
    generator_dropped_doubtful: f64 = 0.001;
    /// `generator-limited`: the same, from which they are invalid.
    generator_dropped_invalid: f64 = 0.01;
    /// `generator-limited`: share of the due iterations that waited for a free user, from which figures are doubtful.
    generator_waited_doubtful: f64 = 0.10;
    /// `generator-limited`: the same, from which that wait explains the delay before sending.
    generator_waited_share: f64 = 0.01;
    /// `generator-limited`: share of one core used by the busiest load thread, from which figures are doubtful.
    generator_thread_doubtful: f64 = 0.80;
    /// `generator-limited`: the same, from which they are invalid.
    generator_thread_invalid: f64 = 0.95;
    /// `generator-limited`: the generator's share of the CPU in use on a full host.
    generator_host_share: f64 = 0.30;
    /// `not-steady`: seconds that a window must have.
    unsteady_seconds: usize = 20;
    /// `not-steady`: change from the first half to the second, or standard deviation of a wave, as a share of the mean.
    unsteady_share: f64 = 0.15;
    /// `not-steady`: change from the first fifth to the rest, as a share.
    unsteady_start_share: f64 = 0.30;
    /// `not-steady`: standard deviations at which the Mann–Kendall test finds a trend.
    unsteady_trend: f64 = 1.96;
    /// `not-steady`: correlation of the seconds with those one period later.
    unsteady_wave_correlation: f64 = 0.60;
    /// `not-steady`: change from which the figures are invalid, if most of the counted time shows one.
    unsteady_invalid_share: f64 = 0.50;
    /// `not-steady`: difference in the share of the machine's CPU that the hypervisor or other programs take in the tenths of
    /// a window, from which they may explain a change.
    unsteady_disturbed_share: f64 = 0.05;
    /// `not-steady`: rank correlation of what disturbs with the quantity, from which it explains a change.
    unsteady_disturbed_correlation: f64 = 0.60;
    /// `offered-load-limited`: share by which the throughput of two variants may differ, including its whole interval,
    /// and by which responses may fall behind arrivals.
    offered_rate_share: f64 = 0.05;
    /// `offered-load-limited`: share of a closed load's users that must be thinking at any time.
    offered_thinking_share: f64 = 0.9;
    /// `offered-load-limited`: share of the requests that may fail.
    offered_error_share: f64 = 0.01;
    /// `offered-load-limited`: change of the CPU per request that throughput does not show.
    offered_cpu_share: f64 = 0.10;
    /// `offered-load-limited`: factor by which the heaviest step must exceed the lightest.
    offered_growth: f64 = 1.5;
    /// `offered-load-limited`: factor by which a request may take longer under the heaviest step than under the
    /// lightest.
    offered_latency_factor: f64 = 1.2;
    /// `offered-load-limited`: share by which throughput may fall behind the growth of the load.
    offered_follow_share: f64 = 0.10;
    /// `offered-load-limited`: share of its CPU that the busiest service may use under the heaviest step.
    offered_busy_share: f64 = 0.7;
    /// `conflict-retry`: share of an operation's requests that must meet a conflict.
    conflict_share: f64 = 0.005;
    /// `conflict-retry`: share of the operation's time lost in failed attempts that is enough for a finding.
    conflict_time_share: f64 = 0.05;
    /// `conflict-retry`: traces that must show it.
    conflict_traces: usize = 5;
    /// `conflict-retry`: share of the operation's failed requests from which conflicts are the reason for its failures,
    /// however few.
    conflict_error_share: f64 = 0.5;
    /// `conflict-retry`: traces that must show such a failure.
    conflict_error_traces: usize = 3;
    /// `disk-full`: traces that must show an operation that fails because a disk is full.
    disk_full_traces: usize = 3;
    /// `disk-full`: share of all requests that must meet it.
    disk_full_share: f64 = 0.005;
    /// `disk-full`: share of the failed requests from which it is the reason for the failures, however few.
    disk_full_error_share: f64 = 0.5;
    /// `disk-bound`: share of the requests in a service's own time that must wait for the disk.
    disk_request_share: f64 = 0.5;
    /// `disk-bound`: share of all requests in progress that they must be.
    disk_latency_share: f64 = 0.3;
    /// `disk-bound`: threads at the disk at any moment from which those that wait for a lock count as waiting for it.
    disk_threads: f64 = 0.8;
    /// `serialised-section`: share of all requests in progress that must wait for their turn in one service.
    serial_waiting_share: f64 = 0.5;
    /// `serialised-section`: requests that are at work at any moment, at most.
    serial_at_work: f64 = 1.5;
    /// `serialised-section`: requests in progress at any moment, at least.
    serial_requests: f64 = 3.0;
    /// `event-loop-lag`: mean wait of an event for the loop, nanoseconds.
    loop_wait_ns: f64 = 2e7;
    /// `event-loop-lag`: the same as a share of the mean latency.
    loop_latency_share: f64 = 0.2;
    /// `accept-queue`: share of the requests under way that must wait to be accepted.
    accept_queue_share: f64 = 0.10;
    /// `accept-queue`: readings that must show dropped connections.
    accept_queue_drop_readings: usize = 3;
    /// `port-exhaustion`: traces that must show an error that says so.
    port_traces: usize = 3;
    /// `port-exhaustion`: share of all requests that must meet such an error.
    port_error_share: f64 = 0.005;
    /// `port-exhaustion`: share of the local ports that closed connections must hold to confirm it.
    port_held_share: f64 = 0.5;
    /// `dns`: requests that must show a look-up.
    dns_requests: usize = 5;
    /// `dns`: share of the time of all requests that look-ups must take.
    dns_share: f64 = 0.10;
    /// `dns`: time per request that look-ups must take, nanoseconds.
    dns_ns: f64 = 2e6;
    /// `thread-pool`: share of its threads that must work.
    thread_pool_full_share: f64 = 0.95;
    /// `thread-pool`: share of the requests under way that must wait for a thread.
    thread_pool_share: f64 = 0.10;
    /// `descriptor-exhaustion`: share of its limit from which a process has no descriptor left.
    descriptor_full_share: f64 = 0.95;
    /// `descriptor-exhaustion`: readings in an interval that must show it.
    descriptor_readings: usize = 3;
    /// `descriptor-exhaustion`: traces that must show an error that says so.
    descriptor_traces: usize = 3;
    /// `descriptor-exhaustion`: share of all requests that must meet such an error.
    descriptor_error_share: f64 = 0.005;
    /// `descriptor-exhaustion`: growth under one load, as a share of the limit.
    descriptor_growth_share: f64 = 0.05;
    /// `memory-growth`, `descriptor-exhaustion`: shortest time under one load in which there must be growth, nanoseconds.
    memory_span_ns: i64 = 60_000_000_000;
    /// `memory-growth`, `descriptor-exhaustion`: readings in each quarter of that time.
    memory_quarter_readings: usize = 3;
    /// `memory-growth`: growth in that time, as a share of the limit.
    memory_growth_share: f64 = 0.05;
    /// `memory-growth`: share of the growth of resident memory that the proportional set size and the runtime's heap
    /// after collections must show, where they are known.
    memory_confirmed_share: f64 = 0.5;
    /// `few-clients`: requests at the fullest replica, as a multiple of the mean.
    few_clients_ratio: f64 = 1.3;
    /// `few-clients`: requests that must be seen, so that a few are not enough.
    few_clients_requests: usize = 30;
    /// `few-clients`: clients per replica below which there are few.
    few_clients_each: f64 = 4.0;
    /// `few-clients`: distance of a replica's share from a whole number of clients, as a part of one client.
    few_clients_part: f64 = 0.2;
    /// `garbage-collection`: share of the time in which collections stop a replica.
    gc_share: f64 = 0.08;
    /// `garbage-collection`: mean length from which pauses count as long, nanoseconds.
    gc_pause_ns: f64 = 1e8;
    /// `garbage-collection`: share of the time that long pauses must take.
    gc_pause_share: f64 = 0.02;
    /// `garbage-collection`: long pauses in a window.
    gc_pauses: usize = 3;
    /// `garbage-collection`, `event-loop-lag` and `thread-pool`: readings of a runtime's metrics in a window that must show it.
    runtime_readings: usize = 3;
    /// `garbage-collection`: share of its limit in use after a collection, from which a heap is nearly full.
    gc_heap_share: f64 = 0.85;
    /// The ranking: share of the time from which collections are the reason why a service's CPU is full.
    gc_cause_share: f64 = 0.25;
    /// `sidecar-cost`: share of the CPU of all services that sidecars must use.
    sidecar_cpu_share: f64 = 0.05;
    /// `sidecar-cost`: share by which they must make the median latency longer, if they use less CPU.
    sidecar_latency_share: f64 = 0.05;
    /// `unequal-rates`, `sidecar-cost`: share by which the throughput of two variants may differ and still count as one
    /// rate.
    unequal_rate_share: f64 = 0.05;
    /// `unequal-rates`: share by which a slower variant must use more CPU per request.
    unequal_cpu_share: f64 = 0.10;
    /// `uneven-assignment`: readings of a replica's partitions in an interval.
    assignment_readings: usize = 3;
    /// `uneven-assignment`: share of these readings that must report the same number.
    assignment_held_share: f64 = 0.8;
    /// `uneven-assignment`: share of its CPU limit that a replica with the most partitions must use.
    assignment_busy_share: f64 = 0.7;
    /// `uneven-assignment`: what such a replica must use, as a multiple of what one with the fewest uses.
    assignment_busy_ratio: f64 = 1.2;
    /// `uneven-assignment`: largest such multiple, as a multiple of that of their partitions. With more, something else
    /// than the number of partitions makes them busier.
    assignment_excess: f64 = 1.5;
    /// `operational-laws`: share by which a law may be off.
    law_tolerance: f64 = 0.15;
    /// `operational-laws`: share of failed requests above which Little's law is not checked.
    law_error_share: f64 = 0.01;
    /// `operational-laws`: cores by which CPU may be off in addition.
    law_cores: f64 = 0.15;
    /// `operational-laws`: share by which a service's CPU may be off the line that it follows.
    law_line_share: f64 = 0.30;
    /// `operational-laws`: calls of a service from which its own spans are compared with them.
    law_calls: f64 = 200.0;
    /// `operational-laws`: share of these that may be missing among its own spans.
    law_flow_share: f64 = 0.20;
    /// `doubled-spans`, `nested-doubles`: calls that must have a double.
    doubled_calls: usize = 10;
    /// `doubled-spans`, `nested-doubles`: share of a scope's calls that must have one.
    doubled_share: f64 = 0.5;
    /// `doubled-spans`: share of the shorter span's time in which both are in progress.
    doubled_overlap_share: f64 = 0.90;
    /// `nested-doubles`: share of the outer span's time that the inner one takes.
    nested_length_share: f64 = 0.90;
    /// `pool-spans`: connections taken, as a share of the request's queries.
    pool_query_share: f64 = 0.5;
    /// `pool-spans`: requests that must show it.
    pool_requests: usize = 3;
    /// `pool-spans`: connections taken in all of these.
    pool_connections: usize = 10;
    /// `missing-database-spans`, `instrumentation-gap`: median time of a request under no span, nanoseconds.
    gap_ns: f64 = 5e6;
    /// `missing-database-spans`, `instrumentation-gap`: the same as a share of the median latency.
    gap_share: f64 = 0.5;
    /// `missing-database-spans`, `instrumentation-gap`: share of that time above which CPU time explains it.
    gap_cpu_share: f64 = 0.5;
    /// `missing-database-spans`, `instrumentation-gap`: requests of the operation.
    gap_requests: usize = 20;
    /// `instrumentation-gap`: requests of the operation under the lightest load, and under the heaviest.
    gap_growth_requests: usize = 10;
    /// `instrumentation-gap`: CPU time per request from which a service counts that no span shows a call to,
    /// nanoseconds.
    gap_busy_ns: f64 = 1e6;
    /// `missing-parents`: share of the spans.
    torn_span_share: f64 = 0.01;
    /// `missing-parents`: traces that must show it.
    torn_traces: usize = 5;
    /// `clock-skew`: how far a span may lie outside its call, nanoseconds.
    skew_slack_ns: f64 = 1e6;
    /// `clock-skew`: calls between the two services.
    skew_calls: usize = 10;
    /// `clock-skew`: share of these that must be impossible.
    skew_call_share: f64 = 0.5;
    /// `sampled-traces`: requests that a trace stands for.
    sampled_weight: f64 = 2.0;
    /// `sampled-traces`: responses of the load from which requests among the spans are compared with them.
    unsampled_requests: u64 = 200;
    /// `sampled-traces`: share of the responses that spans show, below which most are missing.
    unsampled_share: f64 = 0.5;
    /// `impossible-durations`: calls and requests of a service that take no time.
    zero_spans: usize = 10;
    /// `impossible-durations`: the same as a share.
    zero_span_share: f64 = 0.05;
    /// `start-up-spans`: share of the trial's spans that belong to no request.
    start_up_share: f64 = 0.5;
    /// `start-up-spans`: number of these.
    start_up_spans: u64 = 1000;
    /// `traces-without-request`: traces started by one service that hold no request.
    requestless_traces: usize = 20;
    /// `traces-without-request`: the same as a share of all.
    requestless_share: f64 = 0.3;
    /// The ranking: cost below which a finding is not the bottleneck, as a share.
    narrow_place_share: f64 = 0.05;
    /// The ranking: the same for what one request spends on repeated calls or queries, nanoseconds.
    narrow_place_ns: f64 = 1e5;
    /// Comparison: smallest relative change that is reported.
    change_min: f64 = 0.05;
    /// Comparison: share of the latency of the requests that a service must add to be a cause of their change.
    culprit_share: f64 = 0.05;
    /// Comparison: share of the requests that must fail because of a service, beyond those before, to make it a cause.
    culprit_error_share: f64 = 0.01;
    /// Comparison: how far trials of a variant measured once are assumed to lie apart, as the standard deviation of the
    /// logarithm.
    trial_spread: f64 = 0.10;
    /// Comparison: the same where the machine was shared.
    trial_spread_shared: f64 = 0.20;
    /// Comparison: share of the machine's CPU that other programs and the hypervisor take, from which it was shared.
    shared_machine_share: f64 = 0.10;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_is_set_by_its_name() {
        let mut thresholds = Thresholds::default();
        assert_eq!(thresholds.set("cpu_limit_share", 0.7), Ok(()));
        assert_eq!(thresholds.set("n_plus_one_queries", 8.0), Ok(()));
        assert_eq!((thresholds.cpu_limit_share, thresholds.n_plus_one_queries), (0.7, 8));
        assert_eq!(thresholds.set("n_plus_one_queries", 8.5), Err(Unset::NotWhole));
        assert_eq!(thresholds.set("cpu_limit_share", f64::NAN), Err(Unset::NotANumber));
        assert_eq!(thresholds.set("cpu_limit_share", -1.0), Err(Unset::NotANumber));
        assert_eq!(thresholds.set("cpu", 1.0), Err(Unset::Unknown));
    }

    #[test]
    fn every_row_can_be_set_to_what_it_is() {
        let mut thresholds = Thresholds::default();
        for row in Thresholds::default().rows() {
            assert_eq!(thresholds.set(row.name, row.value), Ok(()), "{}", row.name);
        }
        assert_eq!(thresholds, Thresholds::default());
    }
}
