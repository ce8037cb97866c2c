//! `disk-full`: operations of a service, or of a database or broker that it calls, fail because a disk is full.
//!
//! The errors report it themselves, so the rule interprets them (`reports`) and finds whose disk it is (`origin`). Each
//! place with a full disk is one finding, whichever operations it affects. The number of affected requests decides: one
//! error in thousands of requests is a temporary file, and an error outside any request belongs to a background job.
//!
//! Log records are not part of a trial's evidence, so a full disk that only a log reports is not found.

use std::collections::{BTreeMap, BTreeSet};

use narrows_model::finding::evidence::disk_full::{self as evidence, AffectedOperation, DiskCause, Owner, Report};
use narrows_model::finding::{Caveat, Confidence, Exemplar, Finding, FindingKind};
use narrows_model::trace::{Forest, Trace, TraceId};

use crate::Detector;
use crate::exemplars::{EXEMPLARS_MAX, TEXT_CHARS_MAX, clipped, exemplar};
use crate::read::Reading;
use crate::read::calls::went_wrong;
use crate::read::periods::period_of;
use crate::read::requests::operation_of;
use crate::thresholds::rule_thresholds;
use origin::{Origin, origins};

mod origin;
mod reports;
mod words;

rule_thresholds! {
    /// Traces that must show an operation that fails because a disk is full.
    disk_full_traces: usize = 3;
    /// Share of all requests that must meet it.
    disk_full_share: f64 = 0.005;
    /// Share of the failed requests from which it is the reason for the failures, however few.
    disk_full_error_share: f64 = 0.5;
}

/// Maximum operations listed with a finding.
const OPERATIONS_MAX: usize = 5;
/// Maximum reports listed with a finding.
const REPORTS_MAX: usize = 3;

/// See the module.
#[derive(Debug)]
pub struct DiskFull;

impl Detector for DiskFull {
    fn kind(&self) -> FindingKind {
        FindingKind::DiskFull
    }

    fn version(&self) -> u32 {
        1
    }

    fn detect(&self, reading: &Reading<'_>) -> Vec<Finding> {
        let forests = forests_of_requests(reading);
        let mut places: BTreeMap<(Owner, &str), Vec<Origin<'_>>> = BTreeMap::new();
        for origin in forests.iter().flat_map(|forest| origins(reading.trial, forest)) {
            places.entry((origin.owner, origin.place)).or_default().push(origin);
        }
        let load = Load::of(&forests);
        let cases = places.into_iter().map(|((owner, place), all)| Case::new(reading, load, owner, place, all));
        cases.filter(Case::is_worth_saying).map(|case| case.finding(self)).collect()
    }
}

/// The trees of the traces that contain a request.
fn forests_of_requests<'a>(reading: &Reading<'a>) -> Vec<&'a Forest<'a>> {
    let ids: BTreeSet<TraceId> = reading.requests.iter().map(|request| request.trace.id).collect();
    reading.forests.iter().filter(|forest| ids.contains(&forest.trace().id)).collect()
}

/// Number of requests that entered the system, and of those that failed, weighted by trace.
#[derive(Debug, Clone, Copy)]
struct Load {
    requests: f64,
    failed: f64,
}

impl Load {
    fn of(forests: &[&Forest<'_>]) -> Self {
        let traces = forests.iter().map(|forest| forest.trace());
        let requests = weight_of(traces.clone());
        let failed = weight_of(traces.filter(|trace| has_failed(trace)));
        Self { requests, failed }
    }
}

fn weight_of<'a>(traces: impl Iterator<Item = &'a Trace>) -> f64 {
    // From 0, because an empty sum is -0.
    traces.fold(0.0, |sum, trace| sum + trace.weight)
}

fn has_failed(trace: &Trace) -> bool {
    trace.root().is_some_and(went_wrong)
}

/// A place with a full disk.
struct Case<'a> {
    reading: &'a Reading<'a>,
    load: Load,
    owner: Owner,
    place: &'a str,
    /// In order of start; at least one.
    origins: Vec<Origin<'a>>,
    /// The traces of the origins, each once.
    traces: BTreeMap<TraceId, &'a Trace>,
}

impl<'a> Case<'a> {
    fn new(reading: &'a Reading<'a>, load: Load, owner: Owner, place: &'a str, mut origins: Vec<Origin<'a>>) -> Self {
        origins.sort_by_key(|origin| origin.span.start_ns);
        let traces = origins.iter().map(|origin| (origin.trace.id, origin.trace)).collect();
        Self { reading, load, owner, place, origins, traces }
    }

    fn affected(&self) -> f64 {
        weight_of(self.traces.values().copied())
    }

    fn affected_failed(&self) -> f64 {
        weight_of(self.traces.values().copied().filter(|trace| has_failed(trace)))
    }

    fn is_worth_saying(&self) -> bool {
        let thresholds = &self.reading.thresholds.disk_full;
        let is_frequent = self.affected() >= thresholds.disk_full_share * self.load.requests;
        let failed = self.affected_failed();
        let explains = failed > 0.0 && failed >= thresholds.disk_full_error_share * self.load.failed;
        self.traces.len() >= thresholds.disk_full_traces && (is_frequent || explains)
    }

    fn finding(&self, detector: &DiskFull) -> Finding {
        let evidence = self.evidence();
        let operation = match &self.operations()[..] {
            [only] => Some(only.operation.clone()),
            _ => None,
        };
        Finding {
            resource: self.place.into(),
            operation,
            cost_share: evidence.affected_share(),
            confidence: self.confidence(evidence.cause()),
            exemplars: self.exemplars(),
            caveats: self.caveat(evidence.cause()).into_iter().collect(),
            period: period_of(self.reading.trial, evidence.first_ns, evidence.last_ns),
            ..Finding::new(evidence, detector.version())
        }
    }

    fn evidence(&self) -> evidence::DiskFull {
        let mut operations = self.operations();
        operations.truncate(OPERATIONS_MAX);
        let first_ns = self.origins.iter().map(|origin| origin.span.start_ns).min().unwrap_or_default();
        let last_ns = self.origins.iter().map(|origin| origin.span.end_ns).max().unwrap_or_default();
        let texts = self.origins.iter().find_map(|origin| origin.report.text);
        evidence::DiskFull {
            owner: self.owner,
            reports: self.reports(),
            failed: self.origins.iter().map(|origin| origin.trace.weight).sum(),
            traces: self.traces.len(),
            operations,
            requests: self.load.requests,
            affected: self.affected(),
            affected_failed: self.affected_failed(),
            load_start_ns: self.reading.trial.windows.first().map_or(first_ns, |window| window.start_ns),
            first_ns,
            last_ns,
            message: texts.map(|text| clipped(text, TEXT_CHARS_MAX)),
        }
    }

    /// Errors that report the full disk, the most frequent first.
    fn reports(&self) -> Vec<Report> {
        let mut counts: BTreeMap<(DiskCause, &str), usize> = BTreeMap::new();
        for origin in &self.origins {
            *counts.entry((origin.report.cause, origin.report.name)).or_default() += 1;
        }
        let report = |((cause, name), operations): ((DiskCause, &str), usize)| Report {
            name: name.to_owned(),
            cause,
            operations,
        };
        let mut reports: Vec<Report> = counts.into_iter().map(report).collect();
        reports.sort_by_key(|report| std::cmp::Reverse(report.operations));
        reports.truncate(REPORTS_MAX);
        reports
    }

    /// The affected operations of the reporting services, the most frequent first.
    fn operations(&self) -> Vec<AffectedOperation> {
        let mut failed: BTreeMap<(&str, String), f64> = BTreeMap::new();
        for origin in &self.origins {
            let key = (origin.entry.service.as_str(), operation_of(origin.entry));
            *failed.entry(key).or_default() += origin.trace.weight;
        }
        let mut failed: Vec<((&str, String), f64)> = failed.into_iter().collect();
        failed.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        let operation = |((service, operation), failed): ((&str, String), f64)| AffectedOperation {
            service: service.to_owned(),
            operation,
            failed,
        };
        failed.into_iter().map(operation).collect()
    }

    fn confidence(&self, cause: DiskCause) -> Confidence {
        match cause.is_ambiguous() {
            true => Confidence::Low,
            false if self.is_counted() => Confidence::High,
            false => Confidence::Medium,
        }
    }

    /// Whether the counts over all spans show failures in the services that report the error.
    fn is_counted(&self) -> bool {
        let services: BTreeSet<&str> = self.origins.iter().map(|origin| origin.entry.service.as_str()).collect();
        self.reading.trial.operations.iter().any(|operation| {
            let has_failed = operation.failed > 0.0 || operation.calls.iter().any(|call| call.failed > 0.0);
            has_failed && services.contains(operation.service.as_str())
        })
    }

    fn caveat(&self, cause: DiskCause) -> Option<Caveat> {
        match cause {
            DiskCause::NoSpace | DiskCause::QuotaExceeded => None,
            DiskCause::TableFull => Some(Caveat::TableMayHaveLimit { database: self.place.into() }),
            DiskCause::StorageFailed => Some(Caveat::DiskMayHaveFailed { broker: self.place.into() }),
        }
    }

    /// The first traces with the error.
    fn exemplars(&self) -> Vec<Exemplar> {
        let mut shown: Vec<&Trace> = Vec::new();
        for origin in &self.origins {
            if shown.len() < EXEMPLARS_MAX && !shown.iter().any(|trace| trace.id == origin.trace.id) {
                shown.push(origin.trace);
            }
        }
        let spans = |trace: &Trace| {
            let id = trace.id;
            self.origins.iter().filter(move |origin| origin.trace.id == id).map(|origin| origin.span)
        };
        shown.into_iter().map(|trace| exemplar(trace, spans(trace))).collect()
    }
}

#[cfg(test)]
mod tests;
