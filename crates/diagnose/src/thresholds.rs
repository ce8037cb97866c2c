//! Every number that a detector or a trap of instrumentation compares with.
//!
//! A detector declares the thresholds of its rule in its own folder; those that several rules, the ranking, comparisons or
//! traps read are listed here. An experiment may set any of them by name, so names are unique. The table in
//! `docs/reference/thresholds.md` is generated from these declarations; the pages under `docs/reference/findings` and
//! `docs/reference/instrumentation.md` quote the values. A change of a value that changes findings raises the version of
//! the detector that reads it.

/// Type of a threshold.
pub(crate) trait Number {
    /// The value as it is shown and compared.
    fn value(&self) -> f64;
    /// True if only whole numbers are allowed.
    fn is_whole(&self) -> bool;
    /// Takes another value.
    ///
    /// # Errors
    /// When the value cannot be one of this type.
    fn set(&mut self, value: f64) -> Result<(), Unset>;
}

impl Number for f64 {
    fn value(&self) -> f64 {
        *self
    }

    fn is_whole(&self) -> bool {
        false
    }

    fn set(&mut self, value: f64) -> Result<(), Unset> {
        if !value.is_finite() || value < 0.0 {
            return Err(Unset::NotANumber);
        }
        *self = value;
        Ok(())
    }
}

/// The largest whole number that may be set: every whole number up to it is exact in a float.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

macro_rules! whole {
    ($($kind:ty),+) => {
        $(impl Number for $kind {
            fn value(&self) -> f64 {
                *self as f64
            }

            fn is_whole(&self) -> bool {
                true
            }

            fn set(&mut self, value: f64) -> Result<(), Unset> {
                if value.fract() != 0.0 || !(0.0..=WHOLE_MAX).contains(&value) {
                    return Err(Unset::NotWhole);
                }
                *self = value as $kind;
                Ok(())
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
    /// The detectors, traps or steps that read it, in Markdown.
    pub read_by: &'static str,
    /// Lines of the meaning, with the unit.
    pub(crate) meaning: &'static [&'static str],
}

impl Row {
    /// Meaning with the unit, as one line.
    pub fn meaning(&self) -> String {
        let lines: Vec<&str> = self.meaning.iter().map(|line| line.trim()).collect();
        lines.join(" ")
    }
}

/// Why a threshold was not set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unset {
    /// No threshold has this name.
    Unknown,
    /// It must be a number of 0 or more.
    NotANumber,
    /// It must be a whole number of 0 or more.
    NotWhole,
}

/// Declares a type with thresholds, each with its meaning and usual value under the name of who reads it, and with the
/// thresholds of each of these folders of detectors.
macro_rules! thresholds {
    (
        $(#[$about:meta])* $type:ident
        { $($read_by:literal { $($(#[doc = $doc:literal])+ $name:ident: $kind:ident = $default:expr;)* })* }
        $($folder:ident::$detector:ident, $id:literal;)*
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $type {
            $($($(#[doc = $doc])+ pub $name: $kind,)*)*
            $(#[doc = concat!("Thresholds of `", $id, "`.")] pub $folder: $crate::detectors::$folder::RuleThresholds,)*
        }

        impl Default for $type {
            fn default() -> Self {
                Self { $($($name: $default,)*)* $($folder: Default::default(),)* }
            }
        }

        impl $type {
            /// All thresholds: those of each detector, then those that several rules read.
            pub fn rows(&self) -> Vec<$crate::thresholds::Row> {
                let mut rows: Vec<$crate::thresholds::Row> = Vec::new();
                $(rows.extend(self.$folder.rows().into_iter().map(|row| {
                    $crate::thresholds::Row { read_by: concat!("`", $id, "`"), ..row }
                }));)*
                rows.extend([$($($crate::thresholds::Row {
                    name: stringify!($name),
                    value: $crate::thresholds::Number::value(&self.$name),
                    is_whole: $crate::thresholds::Number::is_whole(&self.$name),
                    read_by: $read_by,
                    meaning: &[$($doc),+],
                },)*)*]);
                rows
            }

            /// The threshold of this name.
            pub(crate) fn named(&mut self, name: &str) -> Option<&mut dyn $crate::thresholds::Number> {
                match name {
                    $($(stringify!($name) => Some(&mut self.$name),)*)*
                    _ => None$(.or_else(|| self.$folder.named(name)))*,
                }
            }
        }
    };
}

/// Declares the thresholds of a detector's rule, as `RuleThresholds`: each has its meaning with its unit, the name by
/// which an experiment sets it, and its usual value.
macro_rules! rule_thresholds {
    ($($declared:tt)*) => {
        $crate::thresholds::thresholds! {
            /// Thresholds of the detector's rule.
            RuleThresholds { "" { $($declared)* } }
        }
    };
}

pub(crate) use {rule_thresholds, thresholds};

crate::detectors::each_detector! { thresholds
    /// The thresholds of all detectors, and those that several of them, the ranking, comparisons or traps read. Shares
    /// are 0 to 1.
    Thresholds {
        "Reading of spans" {
            /// How far apart two spans of stacked libraries may start and still count as one query, nanoseconds.
            duplicate_start_gap_ns: i64 = 1_000_000;
        }
        "Several detectors" {
            /// Share of the host's CPU.
            cpu_host_share: f64 = 0.90;
            /// Share of the machine's CPU time taken by the hypervisor, from which there is a caveat.
            cpu_steal_share: f64 = 0.05;
        }
        "The limit of a trial" {
            /// Share of the host's CPU from which on the host is the limit if threads wait for processors.
            cpu_pressed_share: f64 = 0.75;
            /// Threads of the services that must wait for a processor then, a mean for each processor.
            cpu_pressed_threads: f64 = 0.25;
            /// Share of the requests' time in which threads of the services wait for a processor, from which on other
            /// programs that fill the machine may be the cause.
            cpu_wait_share: f64 = 0.1;
        }
        "`cpu-saturation` and `generator-limited`" {
            /// Points that a median over a window needs.
            cpu_points: usize = 5;
            /// Shortest time that those points span, nanoseconds.
            cpu_span_ns: i64 = 5_000_000_000;
            /// Different steps that the load must have before shorter steps are read by themselves.
            steps: usize = 4;
            /// Shortest length of such a step, and time that its points span, nanoseconds.
            step_span_ns: i64 = 2_500_000_000;
            /// Points that a median over such a step needs.
            step_points: usize = 3;
            /// Largest standard error of their mean, as a share of it.
            step_error_share: f64 = 0.10;
        }
        "`serial-fan-out`, `cross-partition-query`" {
            /// Share of the operation's traces that must show it.
            regular_trace_share: f64 = 0.80;
            /// Traces that must show it.
            regular_traces: usize = 3;
            /// Share of those in which the number of calls must be the same, when only that shows that the program plans
            /// them.
            same_count_share: f64 = 0.90;
        }
        "`memory-growth`, `descriptor-exhaustion`" {
            /// Shortest time under one load in which there must be growth, nanoseconds.
            memory_span_ns: i64 = 60_000_000_000;
            /// Readings in each quarter of that time.
            memory_quarter_readings: usize = 3;
        }
        "`garbage-collection`, `event-loop-lag` and `thread-pool`" {
            /// Readings of a runtime's metrics in a window that must show it.
            runtime_readings: usize = 3;
        }
        "The ranking" {
            /// Share of the time from which collections are the reason why a service's CPU is full.
            gc_cause_share: f64 = 0.25;
            /// Cost below which a finding is not the bottleneck, as a share.
            narrow_place_share: f64 = 0.05;
            /// The same for what one request spends on repeated calls or queries, nanoseconds.
            narrow_place_ns: f64 = 1e5;
        }
        "`unequal-rates`, `sidecar-cost`" {
            /// Share by which the throughput of two variants may differ and still count as one rate.
            unequal_rate_share: f64 = 0.05;
        }
        "`operational-laws`" {
            /// Share by which a law may be off.
            law_tolerance: f64 = 0.15;
            /// Share of failed requests above which Little's law is not checked.
            law_error_share: f64 = 0.01;
            /// Cores by which CPU may be off in addition.
            law_cores: f64 = 0.15;
            /// Share by which a service's CPU may be off the line that it follows.
            law_line_share: f64 = 0.30;
            /// Calls of a service from which its own spans are compared with them.
            law_calls: f64 = 200.0;
            /// Share of these that may be missing among its own spans.
            law_flow_share: f64 = 0.20;
        }
        "`doubled-spans`, `nested-doubles`" {
            /// Calls that must have a double.
            doubled_calls: usize = 10;
            /// Share of a scope's calls that must have one.
            doubled_share: f64 = 0.5;
        }
        "`doubled-spans`" {
            /// Share of the shorter span's time in which both are in progress.
            doubled_overlap_share: f64 = 0.90;
        }
        "`nested-doubles`" {
            /// Share of the outer span's time that the inner one takes.
            nested_length_share: f64 = 0.90;
        }
        "`pool-spans`" {
            /// Connections taken, as a share of the request's queries.
            pool_query_share: f64 = 0.5;
            /// Requests that must show it.
            pool_requests: usize = 3;
            /// Connections taken in all of these.
            pool_connections: usize = 10;
        }
        "`missing-database-spans`, `instrumentation-gap`" {
            /// Median time of a request under no span, nanoseconds.
            gap_ns: f64 = 5e6;
            /// The same as a share of the median latency.
            gap_share: f64 = 0.5;
            /// Share of that time above which CPU time explains it.
            gap_cpu_share: f64 = 0.5;
            /// Requests of the operation.
            gap_requests: usize = 20;
        }
        "`missing-parents`" {
            /// Share of the spans.
            torn_span_share: f64 = 0.01;
            /// Traces that must show it.
            torn_traces: usize = 5;
        }
        "`clock-skew`" {
            /// How far a span may lie outside its call, nanoseconds.
            skew_slack_ns: f64 = 1e6;
            /// Calls between the two services.
            skew_calls: usize = 10;
            /// Share of these that must be impossible.
            skew_call_share: f64 = 0.5;
        }
        "`sampled-traces`" {
            /// Requests that a trace stands for.
            sampled_weight: f64 = 2.0;
            /// Responses of the load from which requests among the spans are compared with them.
            unsampled_requests: u64 = 200;
            /// Share of the responses that spans show, below which most are missing.
            unsampled_share: f64 = 0.5;
        }
        "`impossible-durations`" {
            /// Calls and requests of a service that take no time.
            zero_spans: usize = 10;
            /// The same as a share.
            zero_span_share: f64 = 0.05;
        }
        "`start-up-spans`" {
            /// Share of the trial's spans that belong to no request.
            start_up_share: f64 = 0.5;
            /// Number of these.
            start_up_spans: u64 = 1000;
        }
        "`traces-without-request`" {
            /// Traces started by one service that hold no request.
            requestless_traces: usize = 20;
            /// The same as a share of all.
            requestless_share: f64 = 0.3;
        }
        "Comparison" {
            /// Smallest relative change that is reported.
            change_min: f64 = 0.05;
            /// Share of the latency of the requests that a service must add to be a cause of their change.
            culprit_share: f64 = 0.05;
            /// Share of the requests that must fail because of a service, beyond those before, to make it a cause.
            culprit_error_share: f64 = 0.01;
            /// Part of the growth of a service's latency or errors that its callees must not explain, by metrics alone.
            culprit_own_share: f64 = 0.35;
            /// Times as much CPU for each request, or as many requests or fewer, that is a change by metrics alone.
            culprit_metric_growth: f64 = 1.25;
            /// Times as often that an error must be logged.
            culprit_message_growth: f64 = 2.0;
            /// Share of the calls, or of the service's most frequent message, from which one that is no error counts.
            culprit_message_share: f64 = 0.2;
            /// How far trials of a variant measured once are assumed to lie apart, as the standard deviation of the
            /// logarithm.
            trial_spread: f64 = 0.10;
            /// The same where the machine was shared.
            trial_spread_shared: f64 = 0.20;
            /// Share of the machine's CPU that other programs and the hypervisor take, from which it was shared.
            shared_machine_share: f64 = 0.10;
        }
    }
}

impl Thresholds {
    /// Sets one by its name.
    ///
    /// # Errors
    /// When no threshold has this name, and when the value cannot be one of its type.
    pub fn set(&mut self, name: &str, value: f64) -> Result<(), Unset> {
        self.named(name).ok_or(Unset::Unknown)?.set(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_is_set_by_its_name() {
        let mut thresholds = Thresholds::default();
        assert_eq!(thresholds.set("cpu_limit_share", 0.7), Ok(()));
        assert_eq!(thresholds.set("n_plus_one_queries", 8.0), Ok(()));
        assert_eq!(thresholds.cpu_saturation.cpu_limit_share, 0.7);
        assert_eq!(thresholds.n_plus_one.n_plus_one_queries, 8);
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

    #[test]
    fn names_are_unique() {
        let mut names: Vec<&str> = Thresholds::default().rows().iter().map(|row| row.name).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
