//! `slow-dependency`: requests spend most of their time on a dependency that sends no spans and is known by its
//! address.
//!
//! Only time on the critical path counts: a call that delays no response does not count, however long it is. The path
//! is that of requests from outside; a dependency several services away counts with the time that they wait for it.
//! There are two claims: the dependency is slow even under the lightest load, or it has no capacity left, because its
//! calls take several times as long under the heaviest. A caller short of CPU sees quick calls end late, so growth
//! counts only if the caller has spare CPU. Many quick calls are not a slow dependency.
//!
//! Without spans of the caller, its sockets show how many requests wait, and for how long (`by_sockets.rs`).
//!
//! Services with their own spans explain their time, and queries with a text belong to `slow-query` and
//! `database-saturation`. The ranking drops this finding if another one explains the same calls.

use std::collections::{BTreeMap, BTreeSet};

use narrows_model::finding::evidence::slow_dependency as evidence;
use narrows_model::finding::evidence::slow_dependency::{DependencyGrowth, DependencyLevel, DependencyStatus};
use narrows_model::finding::{Caveat, Confidence, Finding, FindingKind};

use crate::Detector;
use crate::exemplars::{EXEMPLARS_MAX, exemplar};
use crate::read::Reading;
use crate::read::calls::{median_of, went_wrong};
use crate::read::cpu::Cpu;
use crate::read::intervals::Interval;
use crate::read::periods::period_of;
use crate::stats::{finite, weighted_median};
use crate::thresholds::rule_thresholds;
use request_dependencies::{DependencyTime, RequestDependencies, by_operation};

pub(crate) mod by_sockets;
mod request_dependencies;
mod words;

rule_thresholds! {
    /// Share of the operation's time that its requests must wait for the dependency.
    dependency_share: f64 = 0.5;
    /// Median length of a call under the lightest load from which it alone is slow, nanoseconds.
    dependency_slow_ns: f64 = 100e6;
    /// Median length of a call under the heaviest load, when calls take longer there, nanoseconds.
    dependency_full_ns: f64 = 50e6;
    /// Factor by which calls must take longer under the heaviest load than under the lightest.
    dependency_growth: f64 = 2.0;
    /// Requests that must wait for it under a load.
    dependency_requests: usize = 5;
}

/// Growth factor of call time from the lightest to the heaviest load below which it counts as constant.
const CONSTANT_FACTOR_MAX: f64 = 1.5;
const LEVELS_MAX: usize = 12;
const STATUSES_MAX: usize = 3;

/// See the module.
#[derive(Debug)]
pub struct SlowDependency;

impl Detector for SlowDependency {
    fn kind(&self) -> FindingKind {
        FindingKind::SlowDependency
    }

    fn version(&self) -> u32 {
        2
    }

    fn explains_slow_calls(&self) -> bool {
        false
    }

    fn explains_gaps(&self) -> bool {
        false
    }

    fn detect(&self, reading: &Reading<'_>) -> Vec<Finding> {
        let of_operation = by_operation(reading).into_iter().filter_map(|((_, operation), requests)| {
            let names: BTreeSet<&str> =
                requests.iter().flat_map(|walked| walked.spent.keys().map(String::as_str)).collect();
            let candidates = names.into_iter().map(|name| Candidate { reading, name, requests: &requests });
            let found = candidates.filter_map(|candidate| candidate.finding(self, operation));
            found.max_by(|a, b| a.cost_share.total_cmp(&b.cost_share))
        });
        of_operation.chain(by_sockets::findings(reading)).collect()
    }
}

/// One dependency of one operation.
struct Candidate<'r> {
    reading: &'r Reading<'r>,
    name: &'r str,
    requests: &'r [RequestDependencies<'r>],
}

/// The requests under one load, or under all.
struct Part<'r> {
    interval: Option<&'r Interval>,
    requests: Vec<&'r RequestDependencies<'r>>,
    /// Share of these requests' time spent on the dependency, 0 to 1.
    share: f64,
    /// Mean time on the dependency per request, nanoseconds.
    request_ns: f64,
    /// Median length of a call, nanoseconds.
    call_ns: f64,
}

impl<'r> Candidate<'r> {
    fn finding(&self, detector: &SlowDependency, operation: &str) -> Option<Finding> {
        let parts = self.parts();
        let all = || self.part(None);
        let (light, heavy) = (parts.first(), parts.last());
        let factor = light.zip(heavy).map_or(1.0, |(light, heavy)| heavy.call_ns / light.call_ns.max(1.0));
        let ends = light.zip(heavy).and_then(|(light, heavy)| light.interval.zip(heavy.interval));
        let growth = growth(self.reading, &self.callers(), ends, factor);
        let levels = parts.iter().filter_map(level).take(LEVELS_MAX).collect();
        let part = match (growth, light, heavy) {
            (DependencyGrowth::Grows, _, Some(heavy)) if self.is_saturated(heavy) => self.part(heavy.interval),
            (_, Some(light), _) => self.part(light.interval),
            _ => all(),
        };
        let is_found = growth == DependencyGrowth::Grows && self.is_saturated(&part) || self.is_slow(&part);
        is_found.then(|| self.of_part(detector, operation, &part, growth, levels))
    }

    /// Parts of the load with enough requests, the lightest first.
    fn parts(&self) -> Vec<Part<'r>> {
        let steady = self.reading.intervals.iter().filter(|interval| interval.is_steady);
        let parts = steady.map(|interval| self.part(Some(interval)));
        let mut parts: Vec<Part<'r>> = parts.filter(|part| self.is_enough(part)).collect();
        parts.sort_by(|a, b| a.interval.zip(b.interval).map_or(std::cmp::Ordering::Equal, |(a, b)| a.by_demand(b)));
        parts
    }

    fn part(&self, interval: Option<&'r Interval>) -> Part<'r> {
        let is_in = |walked: &&RequestDependencies<'_>| {
            interval.is_none_or(|interval| interval.contains(walked.handled.request.entry.start_ns))
        };
        let requests: Vec<&RequestDependencies<'r>> = self.requests.iter().filter(is_in).collect();
        let (mut spent_ns, mut whole_ns, mut weight) = (0.0, 0.0, 0.0);
        let mut lengths: Vec<(f64, f64)> = Vec::new();
        for walked in &requests {
            let each = walked.handled.weight();
            whole_ns += walked.handled.latency_ns() * each;
            weight += each;
            let Some(spent) = walked.spent.get(self.name) else { continue };
            spent_ns += spent.ns * each;
            lengths.extend(spent.calls.iter().map(|call| (call.duration_ns() as f64, each)));
        }
        let share = if whole_ns > 0.0 { (spent_ns / whole_ns).min(1.0) } else { 0.0 };
        let request_ns = if weight > 0.0 { spent_ns / weight } else { 0.0 };
        let call_ns = if lengths.is_empty() { 0.0 } else { weighted_median(lengths) };
        Part { interval, requests, share: finite(share), request_ns: finite(request_ns), call_ns: finite(call_ns) }
    }

    fn is_enough(&self, part: &Part<'_>) -> bool {
        let calling = part.requests.iter().filter(|walked| walked.spent.contains_key(self.name));
        calling.count() >= self.reading.thresholds.slow_dependency.dependency_requests
    }

    fn is_slow(&self, part: &Part<'_>) -> bool {
        let thresholds = &self.reading.thresholds.slow_dependency;
        self.is_enough(part)
            && part.share >= thresholds.dependency_share
            && part.call_ns >= thresholds.dependency_slow_ns
    }

    fn is_saturated(&self, part: &Part<'_>) -> bool {
        let thresholds = &self.reading.thresholds.slow_dependency;
        self.is_enough(part)
            && part.share >= thresholds.dependency_share
            && part.call_ns >= thresholds.dependency_full_ns
    }

    fn calls(&self, part: &Part<'r>) -> Vec<(&'r RequestDependencies<'r>, &'r DependencyTime<'r>)> {
        let requests = part.requests.iter();
        requests.filter_map(|walked| Some((*walked, walked.spent.get(self.name)?))).collect()
    }

    fn callers(&self) -> BTreeSet<&'r str> {
        let spent = self.requests.iter().filter_map(|walked| walked.spent.get(self.name));
        spent.flat_map(|spent| &spent.calls).map(|call| call.service.as_str()).collect()
    }

    fn of_part(
        &self,
        detector: &SlowDependency,
        operation: &str,
        part: &Part<'r>,
        growth: DependencyGrowth,
        levels: Vec<DependencyLevel>,
    ) -> Finding {
        let trial = self.reading.trial;
        let cpu = Cpu::new(self.reading);
        let place = |interval: &Interval| self.reading.intervals.iter().position(|other| other == interval);
        let grown = part.interval.filter(|_| growth == DependencyGrowth::Grows && self.is_saturated(part));
        let proof = grown.and_then(place).and_then(|at| cpu.proof(at));
        let mut calls = self.calls(part);
        calls.sort_by(|(_, a), (_, b)| b.ns.total_cmp(&a.ns));
        let (statuses, failed_share) = statuses(&calls);
        let confidence = match growth {
            DependencyGrowth::Constant => Confidence::High,
            DependencyGrowth::Grows if proof.is_some() => Confidence::High,
            DependencyGrowth::Grows | DependencyGrowth::Unknown => Confidence::Medium,
        };
        let times = median_of(&calls, |(walked, spent)| (spent.calls.len() as f64, walked.handled.weight()));
        let shown = calls.iter().take(EXEMPLARS_MAX);
        let evidence = evidence::SlowDependency {
            callers: self.callers().into_iter().map(str::to_owned).collect(),
            is_in_experiment: trial.service_names().contains(&self.name),
            request_ns: part.request_ns,
            call_ns: part.call_ns,
            calls_per_request: times,
            growth,
            levels,
            failed_share,
            statuses,
            proof,
            sockets: None,
        };
        Finding {
            resource: self.name.to_owned(),
            operation: Some(operation.to_owned()),
            cost_share: part.share,
            confidence,
            exemplars: shown
                .map(|(walked, spent)| exemplar(walked.handled.request.trace, spent.calls.iter().copied()))
                .collect(),
            caveats: vec![Caveat::DependencySendsNoSpans { dependency: self.name.to_owned() }],
            period: grown.and_then(|interval| period_of(trial, interval.start_ns, interval.end_ns)),
            ..Finding::new(evidence, detector.version())
        }
    }
}

/// Whether calls take longer under the heavier of two loads, by this factor. A caller short of CPU sees them end late.
fn growth(
    reading: &Reading<'_>,
    callers: &BTreeSet<&str>,
    loads: Option<(&Interval, &Interval)>,
    factor: f64,
) -> DependencyGrowth {
    let cpu = Cpu::new(reading);
    let is_heavier = loads.is_some_and(|(light, heavy)| cpu.lighter_than(heavy).any(|lighter| lighter == light));
    let has_limit = |caller: &&str| {
        let services = reading.trial.service_names().into_iter();
        services.filter(|service| service == caller).any(|service| cpu.of_service(service).is_some())
    };
    let is_short_of_cpu = || cpu.of_host().is_some() || callers.iter().any(has_limit);
    match factor {
        _ if !is_heavier => DependencyGrowth::Unknown,
        _ if factor < CONSTANT_FACTOR_MAX => DependencyGrowth::Constant,
        _ if factor >= reading.thresholds.slow_dependency.dependency_growth && !is_short_of_cpu() => {
            DependencyGrowth::Grows
        }
        _ => DependencyGrowth::Unknown,
    }
}

fn level(part: &Part<'_>) -> Option<DependencyLevel> {
    let interval = part.interval?;
    Some(DependencyLevel { load: interval.load_level(), rate: finite(interval.rate), call_ns: part.call_ns })
}

/// Statuses of calls, most frequent first, and the share of calls that failed.
fn statuses(calls: &[(&RequestDependencies<'_>, &DependencyTime<'_>)]) -> (Vec<DependencyStatus>, f64) {
    let mut counts: BTreeMap<String, f64> = BTreeMap::new();
    let (mut failed, mut all) = (0.0, 0.0);
    for (walked, spent) in calls {
        let weight = walked.handled.weight();
        for call in &spent.calls {
            let facts = &call.facts;
            let http = facts.http_status.map(|code| code.to_string());
            let known = http.or_else(|| facts.rpc_status.clone()).or_else(|| facts.db_status.clone());
            if let Some(status) = known.or_else(|| facts.error_type.clone()) {
                *counts.entry(status).or_default() += weight;
            }
            all += weight;
            failed += if went_wrong(call) { weight } else { 0.0 };
        }
    }
    let share = |weight: f64| if all > 0.0 { finite(weight / all) } else { 0.0 };
    let statuses = counts.into_iter().map(|(status, weight)| DependencyStatus { status, share: share(weight) });
    let mut statuses: Vec<DependencyStatus> = statuses.collect();
    statuses.sort_by(|a, b| b.share.total_cmp(&a.share));
    statuses.truncate(STATUSES_MAX);
    (statuses, share(failed))
}

#[cfg(test)]
mod tests;
