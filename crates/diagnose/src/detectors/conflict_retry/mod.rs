//! `conflict-retry`: database transactions conflict, and the caller of the one that loses gets an error or retries.
//!
//! A conflict without a retry costs an error; a retried one costs the time of all tries but the last. Both are reported
//! per operation, because one place may retry a deadlock that another does not handle. `retry-storm` looks at attempts
//! that multiply while something fails; this detector looks at the rate of conflicts, which may be constant.
//!
//! A few retried conflicts are too cheap to report. If no span shows why a transaction failed, the store's own counters
//! (`wsrep_local_bf_aborts`, `wsrep_local_cert_failures`, deadlocks) may still show it: by their number, or because about
//! as many requests failed.

use std::collections::{BTreeMap, BTreeSet};

use narrows_model::evidence::TrialEvidence;
use narrows_model::finding::evidence::conflict_retry::{self as evidence, Counter, Requests};
use narrows_model::finding::{Caveat, Confidence, Exemplar, Finding, FindingKind};
use narrows_model::load::ErrorKind;
use narrows_model::operation::OperationEvidence;
use narrows_model::series::{Point, Series};
use narrows_model::trace::TraceId;

use crate::Detector;
use crate::detectors::conflict_retry::conflicts::{Met, is_conflict, met};
use crate::exemplars::{EXEMPLARS_MAX, TEXT_CHARS_MAX, clipped, exemplar};
use crate::read::Reading;
use crate::read::calls::{Handled, median_of, went_wrong};
use crate::read::requests::query_text;
use crate::read::stores::Store;
use crate::stats::finite;
use crate::thresholds::rule_thresholds;

mod conflicts;
mod words;

rule_thresholds! {
    /// Share of an operation's requests that must meet a conflict.
    conflict_share: f64 = 0.005;
    /// Share of the operation's time lost in failed attempts that is enough for a finding.
    conflict_time_share: f64 = 0.05;
    /// Traces that must show it.
    conflict_traces: usize = 5;
    /// Share of the operation's failed requests from which conflicts are the reason for its failures, however few.
    conflict_error_share: f64 = 0.5;
    /// Traces that must show such a failure.
    conflict_error_traces: usize = 3;
}

/// See the module.
#[derive(Debug)]
pub struct ConflictRetry;

/// Databases' own names of conflict counters, with `_` between words.
const COUNTERS: [&str; 5] =
    ["wsrep_local_bf_aborts", "wsrep_local_cert_failures", "innodb_deadlocks", "deadlocks", "postgresql_deadlocks"];

/// Conflicts that a store counts for each failed request, at most, if they are why requests fail: a cluster may count one
/// under two names. More of them are retried, and the failures may be others.
const CONFLICTS_PER_FAILURE_MAX: f64 = 2.0;

impl Detector for ConflictRetry {
    fn kind(&self) -> FindingKind {
        FindingKind::ConflictRetry
    }

    fn version(&self) -> u32 {
        2
    }

    fn detect(&self, reading: &Reading<'_>) -> Vec<Finding> {
        let of_operations = reading.operations.iter();
        let candidates: Vec<Candidate<'_>> = of_operations
            .filter_map(|((service, operation), all)| Candidate::new(reading, service, operation, all))
            .collect();
        let mut findings: Vec<Finding> = candidates
            .iter()
            .filter(|candidate| candidate.is_worth_saying())
            .map(|candidate| candidate.finding(self))
            .collect();
        if reading.trial.traces.iter().flat_map(|trace| &trace.spans).all(|span| !is_conflict(span)) {
            findings.extend(of_counters(self, reading));
        }
        findings
    }
}

/// The requests of one operation that met a conflict: failed requests first, then by time lost.
struct Candidate<'a> {
    reading: &'a Reading<'a>,
    service: &'a str,
    operation: &'a str,
    met: Vec<Met<'a>>,
    /// Requests, failed requests and total time in nanoseconds of the whole operation, weighted by trace.
    requests: f64,
    failed: f64,
    time_ns: f64,
}

impl<'a> Candidate<'a> {
    fn new(reading: &'a Reading<'a>, service: &'a str, operation: &'a str, all: &'a [Handled<'a>]) -> Option<Self> {
        let mut met: Vec<Met<'a>> = all.iter().filter_map(met).collect();
        met.sort_by_key(|met| std::cmp::Reverse((met.failed, met.lost_ns)));
        let sum =
            |of: &dyn Fn(&Handled<'a>) -> f64| all.iter().map(|handled| handled.weight() * of(handled)).sum::<f64>();
        let is_failed = |handled: &Handled<'a>| f64::from(u8::from(went_wrong(handled.request.entry)));
        let (requests, failed, time_ns) = (sum(&|_| 1.0), sum(&is_failed), sum(&Handled::latency_ns));
        (!met.is_empty()).then_some(Self { reading, service, operation, met, requests, failed, time_ns })
    }

    /// Number of requests that met a conflict and satisfy `is_so`, weighted by trace.
    fn count(&self, is_so: impl Fn(&Met<'_>) -> bool) -> f64 {
        // From 0, because an empty sum is -0.
        self.met.iter().filter(|met| is_so(met)).fold(0.0, |sum, met| sum + met.handled.weight())
    }

    /// Share of the operation's requests that met a conflict and satisfy `is_so`.
    fn share(&self, is_so: impl Fn(&Met<'_>) -> bool) -> f64 {
        self.count(is_so) / self.requests.max(f64::MIN_POSITIVE)
    }

    /// Share of the operation's time lost to conflicts.
    fn lost_share(&self) -> f64 {
        let lost: f64 = self.met.iter().map(|met| met.handled.weight() * met.lost_ns as f64).sum();
        (lost / self.time_ns.max(1.0)).min(1.0)
    }

    fn traces(&self, is_so: impl Fn(&Met<'_>) -> bool) -> usize {
        let ids = self.met.iter().filter(|met| is_so(met)).map(|met| met.handled.request.trace.id);
        ids.collect::<BTreeSet<TraceId>>().len()
    }

    fn is_worth_saying(&self) -> bool {
        let thresholds = &self.reading.thresholds.conflict_retry;
        let is_frequent = self.share(|_| true) >= thresholds.conflict_share;
        let is_dear = self.lost_share() >= thresholds.conflict_time_share;
        let is_error = |met: &Met<'_>| met.failed;
        let failed = self.count(is_error);
        let explains = failed > 0.0 && failed >= thresholds.conflict_error_share * self.failed;
        self.traces(|_| true) >= thresholds.conflict_traces && (is_frequent || is_dear)
            || explains && self.traces(is_error) >= thresholds.conflict_error_traces
    }

    fn store(&self) -> String {
        let span = self.met.first().and_then(|met| met.conflicts.first());
        span.map_or_else(String::new, |span| Store::for_call(self.reading.trial, span).name)
    }

    /// Codes by which the store reported conflicts, the three most frequent, most frequent first.
    fn codes(&self) -> Vec<&str> {
        let mut codes: BTreeMap<&str, usize> = BTreeMap::new();
        for span in self.met.iter().flat_map(|met| &met.conflicts) {
            let said = [&span.facts.db_status, &span.facts.error_type].into_iter().flatten().next();
            *codes.entry(said.map_or("", String::as_str)).or_default() += 1;
        }
        codes.remove("");
        let mut codes: Vec<(&str, usize)> = codes.into_iter().collect();
        codes.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        codes.into_iter().map(|(code, _)| code).take(3).collect()
    }

    fn finding(&self, detector: &ConflictRetry) -> Finding {
        let requests = self.requests();
        let store = self.store();
        let counters = counted_by_stores(self.reading.trial).remove(store.as_str()).unwrap_or_default();
        Finding {
            operation: Some(self.operation.into()),
            cost_share: requests.failed_share().max(requests.lost_share),
            confidence: if self.is_counted() { Confidence::High } else { Confidence::Medium },
            exemplars: self.exemplars(),
            resource: store,
            ..Finding::new(
                evidence::ConflictRetry { requests: Some(requests), counters, failed: 0 },
                detector.version(),
            )
        }
    }

    fn requests(&self) -> Requests {
        let again: Vec<&Met<'_>> = self.met.iter().filter(|met| met.began_again).collect();
        let lost_ns = || median_of(&again, |met| (met.lost_ns as f64, met.handled.weight()));
        Requests {
            all: self.requests,
            failed: self.failed,
            conflicting: self.count(|_| true),
            conflicting_failed: self.count(|met| met.failed),
            retried: self.count(|met| met.began_again),
            retried_well: self.count(|met| met.began_again && !met.failed),
            sampled: self.met.len(),
            conflicts: self.met.iter().map(|met| met.conflicts.len()).sum(),
            lost_share: self.lost_share(),
            retry_lost_ns: (!again.is_empty()).then(lost_ns),
            codes: self.codes().into_iter().map(str::to_owned).collect(),
            statement: self.statement(),
        }
    }

    /// Whether the counts over all spans show failed database calls of this service.
    fn is_counted(&self) -> bool {
        let is_its = |operation: &OperationEvidence| {
            operation.service == self.service
                && operation.calls.iter().any(|call| call.is_database && call.failed > 0.0)
        };
        self.reading.trial.operations.iter().any(is_its)
    }

    fn statement(&self) -> Option<String> {
        let texts = self.met.iter().flat_map(|met| &met.conflicts).filter_map(|span| query_text(span));
        texts.into_iter().next().map(|text| clipped(text, TEXT_CHARS_MAX))
    }

    fn exemplars(&self) -> Vec<Exemplar> {
        let spans = |met: &Met<'a>| met.conflicts.to_vec();
        self.met.iter().take(EXEMPLARS_MAX).map(|met| exemplar(met.handled.request.trace, spans(met))).collect()
    }
}

/// Conflict counters that grew during counted time, by store, each summed over its replicas.
fn counted_by_stores(trial: &TrialEvidence) -> BTreeMap<&str, Vec<Counter>> {
    let mut counted: BTreeMap<&str, Vec<Counter>> = BTreeMap::new();
    for series in trial.series.iter().filter(|series| is_counter(&series.key.name)) {
        let counters = counted.entry(&series.key.service).or_default();
        let (name, conflicts) = (&series.key.name, finite(grown(trial, series)));
        match counters.iter_mut().find(|counter| counter.name == *name) {
            Some(counter) => counter.conflicts += conflicts,
            None => counters.push(Counter { name: name.clone(), conflicts }),
        }
    }
    counted.values_mut().for_each(|counters| counters.retain(|counter| counter.conflicts > 0.0));
    counted.retain(|_, counters| !counters.is_empty());
    counted
}

fn is_counter(name: &str) -> bool {
    let name = name.to_lowercase().replace(['.', '-'], "_");
    COUNTERS.iter().any(|known| name == *known || name.ends_with(&format!("_{known}")))
}

/// Growth of a series in counted time. A series with a unit per second is already a rate.
fn grown(trial: &TrialEvidence, series: &Series) -> f64 {
    let counted = |points: &[Point]| {
        let pairs = points.windows(2).filter(|pair| trial.is_counted(pair[1].time_ns));
        pairs.map(|pair| (pair[1].time_ns - pair[0].time_ns) as f64 / 1e9 * pair[1].value.max(0.0)).sum::<f64>()
    };
    if series.key.unit.ends_with("/s") {
        return counted(&series.points);
    }
    let first = series.points.first().map(|point| Point { value: 0.0, ..*point });
    counted(&first.into_iter().chain(series.rates()).collect::<Vec<_>>())
}

/// Findings from the stores' own counters, for trials without a conflict in any span.
fn of_counters(detector: &ConflictRetry, reading: &Reading<'_>) -> Vec<Finding> {
    let thresholds = &reading.thresholds.conflict_retry;
    let load = reading.trial.counted_load();
    let requests = (load.succeeded + load.errors.total()) as f64;
    // The client of a lost transaction gets a response with an error status.
    let failed = load.errors.of(ErrorKind::Status);
    let of_store = |(store, counters): (&str, Vec<Counter>)| {
        let mut evidence = evidence::ConflictRetry { requests: None, counters, failed: 0 };
        let (counted, all) = (evidence.counted(), load.errors.total() as f64);
        let is_as_many = counted >= thresholds.conflict_error_share * all && counted <= CONFLICTS_PER_FAILURE_MAX * all;
        evidence.failed = if failed >= thresholds.conflict_error_traces as u64 && is_as_many { failed } else { 0 };
        let share = counted / requests.max(1.0);
        let is_found = share >= thresholds.conflict_share || evidence.failed > 0;
        is_found.then(|| Finding {
            resource: store.into(),
            cost_share: share.min(1.0),
            confidence: if evidence.failed > 0 { Confidence::Medium } else { Confidence::Low },
            caveats: vec![Caveat::ConflictsNotInSpans],
            ..Finding::new(evidence, detector.version())
        })
    };
    counted_by_stores(reading.trial).into_iter().filter_map(of_store).collect()
}

#[cfg(test)]
mod tests;
