//! Trials of a run beside each other, and the outcome of it all: what reports render.

use serde::{Deserialize, Serialize};

use crate::breakdown::Breakdown;
use crate::call_graph::CallGraph;
use crate::evidence::RunEvidence;
use crate::finding::Finding;
use crate::limit::Limit;
use crate::operation::OperationSummary;
use crate::prediction::{Ladder, Scored};
use crate::prices::VariantCost;
use crate::published::{Beside, Notes};

/// A run with everything that was concluded from it.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Evidence of the run.
    pub evidence: RunEvidence,
    /// The findings of each trial, dearest first; same order as `evidence.trials`.
    pub findings: Vec<Vec<Finding>>,
    /// Limit of the throughput of each trial; same order.
    pub limits: Vec<Limit>,
    /// Where the time of the busiest operations of each trial goes, those with most time first; same order.
    pub breakdowns: Vec<Vec<Breakdown>>,
    /// The calls of each trial that sockets show; same order.
    pub call_graphs: Vec<CallGraph>,
    /// The variants beside each other.
    pub comparison: Comparison,
    /// The objectives, for each trial in order.
    pub objectives: Vec<Vec<ObjectiveResult>>,
    /// Changes that later variants made to earlier ones, predicted and measured; empty when none was recognised.
    pub scored: Vec<Scored>,
    /// Order of the changes to each trial's system that gain most together; same order as `evidence.trials`, or empty.
    pub ladders: Vec<Ladder>,
    /// Notes of the experiment file for its readers.
    pub notes: Notes,
    /// Published figures beside the measured ones; empty when the experiment names none.
    pub beside: Vec<Beside>,
    /// Costs of the variants by the prices of the experiment, in the order of the comparison; empty without prices.
    pub costs: Vec<VariantCost>,
    /// Meaning of the run in one sentence.
    pub sentence: String,
}

/// The variants of a run beside the first of them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Comparison {
    /// One per variant, in the experiment's order.
    pub variants: Vec<VariantSummary>,
    /// How far repetitions of one variant lay apart; none without repetitions.
    pub noise: Option<NoiseFloor>,
}

/// One variant over all its repetitions.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct VariantSummary {
    /// The variant.
    pub variant: String,
    /// Finished repetitions.
    pub repetitions: u32,
    /// Successful responses per second, median over repetitions; `None` if no repetition has a rate.
    pub rate: Option<f64>,
    /// Mean latency from intended send, nanoseconds, median over repetitions; `None` if nothing succeeded. So are the
    /// next three fields.
    pub mean_ns: Option<f64>,
    /// Median latency, nanoseconds, median over repetitions.
    pub p50_ns: Option<f64>,
    /// 95 % latency, nanoseconds, median over repetitions.
    pub p95_ns: Option<f64>,
    /// 99 % latency, nanoseconds, median over repetitions.
    pub p99_ns: Option<f64>,
    /// Requests that ended over all repetitions, well or not.
    #[serde(default)]
    pub requests: u64,
    /// Failed requests over all repetitions.
    pub errors: u64,
    /// Failed ÷ ended over all repetitions, 0 to 1.
    pub error_rate: f64,
    /// CPU of all services for each successful request, core-seconds, median over repetitions; `None` if not sampled.
    pub cpu_seconds_per_request: Option<f64>,
    /// The services that ran, in the order they were started.
    pub services: Vec<ServiceSummary>,
    /// Figures of the sidecars of all services; none without sidecars.
    #[serde(default)]
    pub sidecars: Option<SidecarSummary>,
    /// The operations of these services, by service and name.
    pub operations: Vec<OperationSummary>,
    /// The difference to the first variant; `None` for the first itself.
    pub against_first: Option<Difference>,
}

/// Resources that one service used while the load counted, all replicas together; medians over repetitions, maxima over all.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ServiceSummary {
    /// The service.
    pub service: String,
    /// CPU, mean, cores.
    pub cpu_mean: f64,
    /// CPU, most at any sample, cores.
    pub cpu_max: f64,
    /// Resident memory, mean, bytes.
    pub memory_mean: f64,
    /// Resident memory, most at any sample, bytes.
    pub memory_max: f64,
    /// CPU for each successful request of the load, core-seconds; `None` if nothing succeeded.
    pub cpu_seconds_per_request: Option<f64>,
    /// Proportional set size, mean, bytes: pages that processes share count once; `None` if it was not sampled.
    #[serde(default)]
    pub memory_pss_mean: Option<f64>,
    /// The same, most at any sample.
    #[serde(default)]
    pub memory_pss_max: Option<f64>,
    /// Its replicas.
    #[serde(default)]
    pub replicas: Vec<ReplicaSummary>,
}

/// Usage and service of one replica while the load counted; medians over repetitions.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ReplicaSummary {
    /// The replica, from 0.
    pub replica: u32,
    /// CPU, mean, cores.
    pub cpu_mean: f64,
    /// The CPU cap that was in force, cores; `None` if it was not capped.
    pub cpu_limit_cores: Option<f64>,
    /// Memory, mean, bytes: proportional set size where it was sampled, else resident memory.
    pub memory_mean: f64,
    /// Requests per second that it served, from the share of the sampled traces; `None` where no span records which
    /// replica responded.
    pub rate: Option<f64>,
}

/// The sidecars of all services of a variant together; medians over repetitions.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SidecarSummary {
    /// CPU, mean, cores.
    pub cpu_mean: f64,
    /// Their share of the CPU of all services, 0 to 1.
    pub cpu_share: f64,
    /// How often a request passes a sidecar.
    pub traversals_per_request: f64,
    /// Source of that count.
    pub counted_from: TraversalCount,
    /// CPU of all sidecars ÷ (successful requests × traversals), core-seconds; `None` if nothing succeeded.
    pub cpu_seconds_per_traversal: Option<f64>,
}

/// Source of the number of traversals of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TraversalCount {
    /// The spans of the sidecars.
    Hops,
    /// The calls that the services' own spans show: one traversal in, one out for each.
    Calls,
    /// The services that have a sidecar, taken as a chain: no span records more.
    #[default]
    Services,
}

/// How one variant differs from another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// Throughput.
    pub rate: Change,
    /// Mean latency.
    pub mean: Change,
    /// How often the two were measured.
    #[serde(default)]
    pub basis: Basis,
    /// The interval of the change of throughput by what the trials show, without the spread that is assumed between
    /// trials of variants measured once.
    pub rate_within: Interval,
}

/// How often the two sides of a difference were measured, which decides what is known of the noise between trials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// One side or both have a single trial: the spread between trials is assumed.
    MeasuredOnce,
    /// Both have repetitions, which show that spread.
    #[default]
    Repeated,
}

/// A 95 % interval of a relative change, new ÷ old − 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

/// A relative change with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// New ÷ old − 1.
    pub ratio: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Judgement.
    pub meaning: Meaning,
}

/// Judgement of a change, once noise is taken off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Meaning {
    /// Larger than noise explains, upwards.
    Higher,
    /// Larger than noise explains, downwards.
    Lower,
    /// Not distinguishable from noise, and too little for anybody to mind.
    Same,
    /// Not distinguishable from noise, which is so large that a change that matters may hide in it.
    Unclear,
}

impl Meaning {
    /// Whether something changed by more than noise explains.
    pub fn is_change(self) -> bool {
        matches!(self, Meaning::Higher | Meaning::Lower)
    }
}

/// How far repetitions of one variant lay apart: the largest over the variants of (largest − smallest) ÷ median.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct NoiseFloor {
    /// Of throughput.
    pub rate: f64,
    /// Of mean latency.
    pub mean: f64,
    /// Of 95 % latency.
    pub p95: f64,
    /// Of 99 % latency.
    pub p99: f64,
}

/// One objective against one trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ObjectiveResult {
    /// As the experiment file has it.
    pub text: String,
    /// Subject.
    pub subject: Subject,
    /// Measured value, as people read it.
    pub measured: String,
    /// Whether it was kept.
    pub kept: Kept,
}

/// Subject of an objective.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Subject {
    /// A mean or quantile of the latency.
    Latency,
    /// The share of failed requests.
    Errors,
    /// Throughput, or the share of arrivals that were dropped.
    Throughput,
    /// Defined by the program that sent the load.
    Other,
}

/// Whether an objective was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kept {
    /// Yes.
    Yes,
    /// No.
    No,
    /// Nothing was measured.
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_back_from_json_are_the_ones_that_were_written() {
        // Bits of an even spread over all numbers (Weyl's sequence).
        let numbers = (1..20_000_u64).map(|n| f64::from_bits(n.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        for number in numbers.filter(|number| number.is_finite()) {
            let written = Interval { low: number, high: 0.0 };
            let read: Interval = serde_json::from_str(&serde_json::to_string(&written).unwrap()).unwrap();
            assert_eq!(read.low.to_bits(), number.to_bits(), "{number:e}");
        }
    }
}
