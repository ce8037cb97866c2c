//! `retry-storm`: failing calls are retried again and again, which loads a failing service more.
//!
//! Attempts per call are counted in each part of the trial. Few and constant retries are healthy. A storm is their
//! growth, from hardly any in a calm part to 1.5 attempts per call or more. If several services of a trace retry, their
//! factors multiply.
//!
//! Transactions that lost a conflict and begin again are such calls too, with different advice.
//!
//! Only attempts after a failed one that has ended count as retries: hedged calls overlap, polling gets responses, and
//! refused attempts that waited as long as requested belong to `throttling`. A response that blames the caller (status
//! 400 to 499) is no reason to retry and does not count either.

use std::collections::{BTreeMap, BTreeSet};

use narrows_model::finding::evidence::retry_storm::{self as evidence, Attempts, Layer};
use narrows_model::finding::{Caveat, Confidence, Finding, FindingKind};
use narrows_model::operation::CallEvidence;
use narrows_model::trace::{Span, TraceId};

use crate::Detector;
use crate::exemplars::{EXEMPLARS_MAX, TEXT_CHARS_MAX, clipped, exemplar};
use crate::read::Reading;
use crate::read::calls::{Call, Handled, median_of};
use crate::read::periods::period_of;
use crate::read::stores::Store;
use crate::thresholds::rule_thresholds;
use parts::{Count, Parts, counts, storm_in};
use retries::{is_conflict, is_retryable, retries};

mod parts;
mod retries;
mod words;

rule_thresholds! {
    /// Attempts per call in the worst part of the trial.
    storm_amplification: f64 = 1.5;
    /// Attempts per call in its calm part.
    calm_amplification: f64 = 1.1;
    /// Calls that each of the two parts must hold.
    storm_calls: usize = 10;
    /// Traces that must show a retry.
    storm_traces: usize = 5;
}

/// See the module.
#[derive(Debug)]
pub struct RetryStorm;

/// Minimum share of failed attempts in the storm, in the counts over all spans, that confirms the traces.
const FAILED_SHARE_MIN: f64 = 0.1;
impl Detector for RetryStorm {
    fn kind(&self) -> FindingKind {
        FindingKind::RetryStorm
    }

    fn version(&self) -> u32 {
        1
    }

    fn detect(&self, reading: &Reading<'_>) -> Vec<Finding> {
        let Some(parts) = Parts::new(reading) else { return Vec::new() };
        let mut candidates = Vec::new();
        for ((service, operation), all) in reading.operations {
            let mut kinds: BTreeMap<&str, Vec<RetriedCall<'_>>> = BTreeMap::new();
            for handled in all {
                for call in &handled.calls {
                    let retries = retries(call, reading.thresholds);
                    kinds.entry(&call.kind).or_default().push(RetriedCall { handled, call, retries });
                }
            }
            let of_operation =
                kinds.into_values().filter_map(|seen| Candidate::new(reading, &parts, service, operation, seen));
            candidates.extend(of_operation);
        }
        layered(candidates).into_iter().map(|candidate| candidate.finding(self)).collect()
    }
}

/// A call and the number of its retries.
struct RetriedCall<'a> {
    handled: &'a Handled<'a>,
    call: &'a Call<'a>,
    retries: usize,
}

/// The calls of one kind in one operation.
struct Candidate<'a> {
    reading: &'a Reading<'a>,
    service: &'a str,
    operation: &'a str,
    /// Calls retried in the storm, those with most retries first.
    seen: Vec<RetriedCall<'a>>,
    calm: Count,
    storm: Count,
    bounds_ns: (i64, i64),
    /// Median lengths of calls that succeeded at once in the calm, and of failed attempts in the storm, nanoseconds.
    lengths_ns: (f64, f64),
    /// Services below that retry too, with their attempts per call.
    layers: Vec<Layer>,
}

impl<'a> Candidate<'a> {
    fn new(
        reading: &'a Reading<'a>,
        parts: &Parts,
        service: &'a str,
        operation: &'a str,
        seen: Vec<RetriedCall<'a>>,
    ) -> Option<Self> {
        let thresholds = reading.thresholds;
        let counts = counts(parts, &seen);
        let (first, last) = storm_in(&counts, thresholds)?;
        let mut sums = (Count::default(), Count::default());
        for (part, count) in counts.iter().enumerate() {
            if (first..=last).contains(&part) {
                sums.1.add(*count);
            } else if count.amplification() <= thresholds.retry_storm.calm_amplification {
                sums.0.add(*count);
            }
        }
        let (calm, storm) = sums;
        let is_storm = |seen: &RetriedCall<'_>| (first..=last).contains(&parts.at(seen.call.start_ns()));
        let lengths_ns = lengths(&seen, is_storm);
        let mut seen: Vec<RetriedCall<'a>> =
            seen.into_iter().filter(|seen| is_storm(seen) && seen.retries > 0).collect();
        seen.sort_by_key(|seen| std::cmp::Reverse(seen.retries));
        let is_enough =
            calm.seen >= thresholds.retry_storm.storm_calls && storm.seen >= thresholds.retry_storm.storm_calls;
        let traces: BTreeSet<TraceId> = seen.iter().map(|seen| seen.handled.request.trace.id).collect();
        let is_sure = is_enough && traces.len() >= thresholds.retry_storm.storm_traces;
        let bounds_ns = parts.bounds(first, last);
        is_sure.then_some(Self {
            reading,
            service,
            operation,
            seen,
            calm,
            storm,
            bounds_ns,
            lengths_ns,
            layers: Vec::new(),
        })
    }

    fn traces(&self) -> BTreeSet<TraceId> {
        self.seen.iter().map(|seen| seen.handled.request.trace.id).collect()
    }

    /// This candidate as a layer of a service above it.
    fn layer(&self) -> Layer {
        Layer { service: self.service.to_owned(), attempts_per_call: self.storm.amplification() }
    }

    fn callee(&self) -> String {
        self.seen
            .first()
            .map_or_else(String::new, |seen| Store::for_call(self.reading.trial, seen.call.tries()[0]).name)
    }

    /// Share of the attempts at these calls that failed in the storm, from the counts over all spans.
    fn failed_share(&self) -> Option<f64> {
        let names: BTreeSet<&str> =
            self.seen.iter().flat_map(|seen| seen.call.tries()).map(|span| span.name.as_str()).collect();
        let is_its = |call: &&CallEvidence| names.contains(call.name.as_str());
        let of_service = self.reading.trial.operations.iter().filter(|operation| operation.service == self.service);
        let seconds = of_service.flat_map(|operation| operation.calls.iter().filter(is_its)).flat_map(|c| &c.seconds);
        let in_storm = seconds.filter(|second| (self.bounds_ns.0..self.bounds_ns.1).contains(&second.start_ns));
        let (failed, all) = in_storm.fold((0.0, 0.0), |(failed, all), second| {
            let wrong = second.failed + second.throttled;
            (failed + wrong, all + wrong + second.succeeded)
        });
        (all > 0.0).then(|| failed / all).filter(|share| share.is_finite())
    }

    fn finding(&self, detector: &RetryStorm) -> Finding {
        let evidence = self.evidence();
        Finding {
            resource: self.service.into(),
            operation: Some(self.operation.into()),
            cost_share: (1.0 - 1.0 / evidence.amplification().max(1.0)).clamp(0.0, 1.0),
            confidence: self.confidence(),
            exemplars: self
                .seen
                .iter()
                .take(EXEMPLARS_MAX)
                .map(|seen| exemplar(seen.handled.request.trace, seen.call.tries().iter().copied()))
                .collect(),
            caveats: self.caveats(),
            period: period_of(self.reading.trial, self.bounds_ns.0, self.bounds_ns.1),
            ..Finding::new(evidence, detector.version())
        }
    }

    fn evidence(&self) -> evidence::RetryStorm {
        let attempts = |count: Count| Attempts { calls: count.seen, per_call: count.amplification() };
        let text = |call: &Call<'_>| clipped(call.query.map_or(&*call.kind, |query| query.text), TEXT_CHARS_MAX);
        let (succeeded_ns, failed_ns) = self.lengths_ns;
        evidence::RetryStorm {
            callee: self.callee(),
            text: self.seen.first().map(|seen| text(seen.call)),
            storm: attempts(self.storm),
            calm: attempts(self.calm),
            layers: self.layers.clone(),
            failed_ns,
            succeeded_ns: (succeeded_ns > 0.0).then_some(succeeded_ns),
            failed_share: self.failed_share(),
            conflict_share: self.conflict_share(),
        }
    }

    fn confidence(&self) -> Confidence {
        match self.failed_share() {
            Some(share) if share >= FAILED_SHARE_MIN => Confidence::High,
            _ => Confidence::Medium,
        }
    }

    /// Share of the failed attempts in the storm that lost a conflict with another transaction.
    fn conflict_share(&self) -> f64 {
        let failed = || self.seen.iter().flat_map(|seen| seen.call.tries()).filter(|span| is_retryable(span));
        failed().filter(|span| is_conflict(span)).count() as f64 / failed().count().max(1) as f64
    }

    fn caveats(&self) -> Vec<Caveat> {
        let mut caveats = vec![Caveat::FailureNotExplained { callee: self.callee() }];
        if self.failed_share().is_none() {
            caveats.push(Caveat::CallsOnlySampled);
        }
        caveats
    }
}

/// Median length of calls that succeeded at once outside the storm, and of failed attempts in it, nanoseconds.
fn lengths(seen: &[RetriedCall<'_>], is_storm: impl Fn(&RetriedCall<'_>) -> bool) -> (f64, f64) {
    let length = |span: &Span, weight: f64| (span.duration_ns() as f64, weight);
    let (mut fine, mut failed) = (Vec::new(), Vec::new());
    for seen in seen {
        let weight = seen.handled.weight();
        if is_storm(seen) {
            let wrong = seen.call.tries().iter().filter(|span| is_retryable(span));
            failed.extend(wrong.map(|span| length(span, weight)));
        } else if seen.retries == 0 && seen.call.succeeded() {
            fine.push(length(seen.call.last(), weight));
        }
    }
    (median_of(&fine, |pair| *pair), median_of(&failed, |pair| *pair))
}

/// Turns candidates of other services in the same traces into layers of the one that begins first.
fn layered(mut candidates: Vec<Candidate<'_>>) -> Vec<Candidate<'_>> {
    let begins = |candidate: &Candidate<'_>| {
        let depths = candidate
            .seen
            .iter()
            .map(|seen| seen.handled.request.entry.start_ns.saturating_sub(trace_start(seen.handled)));
        depths.min().unwrap_or(0)
    };
    candidates.sort_by_cached_key(begins);
    let mut outer: Vec<(BTreeSet<TraceId>, Candidate<'_>)> = Vec::new();
    for candidate in candidates {
        let traces = candidate.traces();
        let is_above = |(known_traces, known): &&mut (BTreeSet<TraceId>, Candidate<'_>)| {
            known.service != candidate.service
                && known_traces.intersection(&traces).count() >= candidate.reading.thresholds.retry_storm.storm_traces
        };
        match outer.iter_mut().find(is_above) {
            Some((_, known)) => known.layers.push(candidate.layer()),
            None => outer.push((traces, candidate)),
        }
    }
    outer.into_iter().map(|(_, candidate)| candidate).collect()
}

fn trace_start(handled: &Handled<'_>) -> i64 {
    handled.request.trace.spans.first().map_or(0, |span| span.start_ns)
}

#[cfg(test)]
mod tests;
