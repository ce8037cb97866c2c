//! Attributes a change to services: the growth of each service's part of the requests from one side to the other.
//!
//! A request's critical path is divided among the services that it leads through (`parts.rs`), so that what one service
//! adds counts at that service and not at all those that wait for it. `change.rs` compares the parts of both sides and
//! says which changes are more than noise, with errors estimated over blocks of time (`values.rs`). Where no service is
//! slower over all requests, `rare.rs` judges each by its calls alone. Further evidence are gaps around the calls of one
//! caller (`starved.rs`), what users wait for without any span (`outside.rs`), internal spans (`internal.rs`), CPU and memory
//! (`usage.rs`), and logs (`logs.rs`). `order.rs` puts the likeliest cause first, and `words.rs` puts it into a sentence.
//!
//! Only operations that begin traces on both sides are compared, those requests with each other that make the same calls
//! (`shapes.rs`), each with as many requests as the later side has, so that another mix of requests is not taken for a
//! slower service.
//!
//! Where a side has no traces, what services report over time is compared instead: `metrics/`.
//!
//! Not here: changes of the load itself, which `compare` reports.

mod change;
mod failures;
mod internal;
mod logs;
mod metrics;
mod order;
mod outside;
mod parts;
mod rare;
mod shapes;
mod starved;
mod usage;
mod values;
mod visits;
mod words;

use std::collections::BTreeMap;

use narrows_model::caveat::{ComparisonCaveat, Skew};
use narrows_model::diff::{RequestsDiff, ServiceDiff, ServiceRole};
use narrows_model::evidence::TrialEvidence;
use narrows_model::operation::OperationSummary;
use narrows_model::series::names;

use self::change::Comparison;
use self::parts::Parts;
use self::shapes::Shapes;
use crate::compare::between::assumed;
use crate::compare::summaries::operations;
use crate::thresholds::Thresholds;

pub(crate) use self::words::sentence;

/// Services reported: those whose part changed most.
const SERVICES_MAX: usize = 50;
/// CPU limits that differ by less than this share are the same.
const LIMIT_SHARE_MIN: f64 = 0.01;
/// Difference of clocks below which no comparison changes, nanoseconds.
const CLOCKS_APART_NS: f64 = 1e8;

/// Origin of a change.
#[derive(Debug, Default)]
pub(crate) struct Ranking {
    /// The requests that were compared.
    pub(crate) requests: Option<RequestsDiff>,
    /// The services of both sides, the likeliest cause first.
    pub(crate) services: Vec<ServiceDiff>,
    /// Caveats on the clocks.
    pub(crate) clocks: Vec<ComparisonCaveat>,
}

/// The trials of one side and its name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NamedTrials<'a> {
    pub(crate) label: &'a str,
    pub(crate) trials: &'a [&'a TrialEvidence],
}

/// Ranks the services of two sides.
pub(crate) fn ranking(before: NamedTrials<'_>, after: NamedTrials<'_>, thresholds: &Thresholds) -> Ranking {
    let sides = [before.label, after.label];
    let (before, after) = (before.trials, after.trials);
    let spread = assumed([before, after], thresholds);
    let [old, new] = both(before, after, |trials| Parts::of(trials, thresholds));
    let clocks =
        sides.into_iter().zip([&old.skews, &new.skews]).filter_map(|(side, skews)| clocks_apart(side, skews)).collect();
    let comparison = Comparison::new(old, new, spread);
    let mut services = match &comparison {
        Some(comparison) => changes(comparison, before, after, thresholds),
        None => metrics::changes(before, after, thresholds),
    };
    let calls = comparison.as_ref().map(Comparison::call_pairs).unwrap_or_default();
    let by_logs = logs::put_to(&mut services, &calls, before, after, thresholds);
    let weight = |one: &ServiceDiff| {
        let by_logs = by_logs.get(&one.service).copied().unwrap_or(0.0);
        by_logs.max(order::weight_of(one, usage::machine_share(&one.service, before, after)))
    };
    services.sort_by(|a, b| weight(b).total_cmp(&weight(a)).then_with(|| a.service.cmp(&b.service)));
    services.truncate(SERVICES_MAX);
    Ranking { requests: comparison.map(|comparison| comparison.requests()), services, clocks }
}

/// A figure of both sides, which are worked out at the same time.
fn both<T: Send>(
    before: &[&TrialEvidence],
    after: &[&TrialEvidence],
    of: impl Fn(&[&TrialEvidence]) -> T + Sync,
) -> [T; 2] {
    std::thread::scope(|scope| {
        let old = scope.spawn(|| of(before));
        let new = of(after);
        [old.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), new]
    })
}

/// The change of each service, in no order.
fn changes(
    comparison: &Comparison,
    before: &[&TrialEvidence],
    after: &[&TrialEvidence],
    thresholds: &Thresholds,
) -> Vec<ServiceDiff> {
    let (old, new) = (operations(before), operations(after));
    let change = |name: &String| {
        let mut service = comparison.service(name, thresholds);
        service.cpu = cpu_per_request(before, name).zip(cpu_per_request(after, name));
        service.cpu_limit = limit_of(before, name)
            .zip(limit_of(after, name))
            .filter(|(old, new)| (new - old).abs() >= LIMIT_SHARE_MIN * old.max(*new));
        if service.role == ServiceRole::Unchanged && is_slower(&old, &new, name, thresholds) {
            service.role = ServiceRole::Waiting;
        }
        service
    };
    let mut services: Vec<ServiceDiff> = comparison.services.iter().map(change).collect();
    if services.iter().all(|service| service.role != ServiceRole::Slower) {
        rare::judge(&mut services, comparison, thresholds);
    }
    outside::judge(&mut services, comparison, before, after, thresholds);
    services.iter_mut().for_each(|service| usage::judge(service, before, after));
    services
}

/// The CPU limit of all replicas of a service together, in cores, as the last trial had it; `None` if one has no limit.
fn limit_of(trials: &[&TrialEvidence], service: &str) -> Option<f64> {
    let trial = trials.last()?;
    let mut replicas = trial.services.iter().filter(|instance| instance.service == service).peekable();
    replicas.peek()?;
    replicas.map(|instance| instance.cpu_limit_cores.or_else(|| sampled_limit(trial, service, instance.replica))).sum()
}

fn sampled_limit(trial: &TrialEvidence, service: &str, replica: u32) -> Option<f64> {
    let key = (names::CGROUP_CPU_LIMIT, service, replica);
    let is_it = |key_of: &narrows_model::series::SeriesKey| {
        (key_of.name.as_str(), key_of.service.as_str(), key_of.replica) == key
    };
    let points = trial.series.iter().find(|series| is_it(&series.key))?.points.iter();
    points.filter(|point| trial.is_counted(point.time_ns)).map(|point| point.value).next_back()
}

/// Each service's part of the requests that begin traces: nanoseconds of each request, a mean, and that as a share of
/// the latency. By service; empty without traces.
pub(crate) fn times(trials: &[&TrialEvidence], thresholds: &Thresholds) -> BTreeMap<String, (f64, f64)> {
    let parts = Parts::of(trials, thresholds);
    let (mut requests, mut latency_ns) = (0.0, 0.0);
    let mut sums: BTreeMap<String, f64> = BTreeMap::new();
    for operation in parts.operations.values().flat_map(Shapes::all) {
        let weight = operation.latency.weight;
        requests += weight;
        latency_ns += weight * operation.latency.mean_over(&operation.latency).0;
        for (service, time) in &operation.time {
            *sums.entry(service.clone()).or_default() += weight * time.mean_over(&operation.latency).0;
        }
    }
    let of = |(service, ns): (String, f64)| (service, (ns / requests, ns / latency_ns));
    sums.into_iter().filter(|_| requests > 0.0 && latency_ns > 0.0).map(of).collect()
}

/// CPU of a service for each request of the load, nanoseconds; `None` if either was not measured.
fn cpu_per_request(trials: &[&TrialEvidence], service: &str) -> Option<f64> {
    let (mut cpu_s, mut requests) = (0.0, 0.0);
    for trial in trials {
        let usage = trial.counted_usage(names::CPU_CORES, service);
        let load = trial.counted_load();
        if usage.points > 0 && load.succeeded > 0 {
            cpu_s += usage.mean * load.seconds;
            requests += load.succeeded as f64;
        }
    }
    (requests > 0.0).then(|| cpu_s * 1e9 / requests)
}

/// True if the responses of a service, waiting for others included, take notably longer.
fn is_slower(before: &[OperationSummary], after: &[OperationSummary], service: &str, thresholds: &Thresholds) -> bool {
    let mean = |side: &[OperationSummary]| {
        let of_service = || side.iter().filter(|operation| operation.service == service);
        let completed: f64 = of_service().map(|operation| operation.completed).sum();
        (completed > 0.0).then(|| of_service().map(|one| one.mean_ns * one.completed).sum::<f64>() / completed)
    };
    mean(before).zip(mean(after)).is_some_and(|(old, new)| new > old * (1.0 + thresholds.culprit_share))
}

/// Clocks of a side that differ by enough to change a comparison.
fn clocks_apart(side: &str, skews: &[Skew]) -> Option<ComparisonCaveat> {
    let clocks: Vec<Skew> = skews.iter().filter(|skew| skew.ahead_ns.abs() >= CLOCKS_APART_NS).cloned().collect();
    (!clocks.is_empty()).then(|| ComparisonCaveat::ClocksDiffer { side: side.to_owned(), clocks })
}
