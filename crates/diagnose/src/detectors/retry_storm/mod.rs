//! `retry-storm`: calls that fail are made again and again, so that more is asked of what already cannot answer.
//!
//! Counted are attempts for each call, part by part of the trial. Retries that are few and always there are healthy; what
//! makes a storm is that their number grows, from hardly any in a calm part to half again as many calls or more. Where
//! several services of one trace try again, their factors multiply.
//!
//! Transactions that lost to another one and begin again are such calls too, with another advice.
//!
//! Only what failed and had ended is made again: hedged calls overlap, polling gets answers, and attempts that were
//! refused and waited as long as they were told are `throttling`'s. An answer that the caller is at fault (status 400 to
//! 499) is no reason to ask again and does not count either.

use std::collections::{BTreeMap, BTreeSet};

use narrows_model::finding::{Confidence, Figure, Finding, FindingKind};
use narrows_model::operation::CallEvidence;
use narrows_model::trace::{Span, TraceId};
use narrows_model::units;

use crate::Detector;
use crate::calls::{Call, Handled, is_throttled, median_of, went_wrong};
use crate::periods::period_of;
use crate::reading::Reading;
use crate::refusals::Gap;
use crate::requests::is_database;
use crate::stores::Store;
use crate::thresholds::Thresholds;
use crate::words::{EXEMPLARS_MAX, TEXT_CHARS_MAX, clipped, exemplar};

/// See the module.
#[derive(Debug)]
pub struct RetryStorm;

/// The counted time is cut into so many parts.
const PARTS: usize = 12;
/// Share of the attempts in the storm that must have failed in the counts over all spans, to agree with the traces.
const FAILED_SHARE_MIN: f64 = 0.1;
/// How databases say that two transactions met, of which one must begin again: SQL states of PostgreSQL, numbers of
/// MySQL and SQL Server, status of Cosmos DB, types of DynamoDB.
const CONFLICTS: [&str; 10] = [
    "40001",
    "40P01",
    "55P03",
    "1205",
    "1213",
    "409",
    "412",
    "449",
    "TransactionConflictException",
    "TransactionCanceledException",
];

impl Detector for RetryStorm {
    fn kind(&self) -> FindingKind {
        FindingKind::RetryStorm
    }

    fn version(&self) -> u32 {
        1
    }

    fn detect(&self, reading: &Reading<'_>) -> Vec<Finding> {
        let Some(parts) = Parts::of(reading) else { return Vec::new() };
        let mut cases = Vec::new();
        for ((service, operation), all) in reading.operations {
            let mut kinds: BTreeMap<&str, Vec<Seen<'_>>> = BTreeMap::new();
            for handled in all {
                for call in &handled.calls {
                    let retries = retries(call, reading.thresholds);
                    kinds.entry(&call.kind).or_default().push(Seen { handled, call, retries });
                }
            }
            let of_operation =
                kinds.into_values().filter_map(|seen| Case::new(reading, &parts, (service, operation), seen));
            cases.extend(of_operation);
        }
        layered(cases).into_iter().map(|case| case.finding(self)).collect()
    }
}

/// The counted time in equal parts.
struct Parts {
    start_ns: i64,
    length_ns: i64,
}

impl Parts {
    fn of(reading: &Reading<'_>) -> Option<Self> {
        let windows = || reading.trial.counted_windows();
        let (start_ns, end_ns) = (windows().map(|w| w.start_ns).min()?, windows().map(|w| w.end_ns).max()?);
        let length_ns = end_ns.saturating_sub(start_ns) / PARTS as i64;
        (length_ns > 0).then_some(Self { start_ns, length_ns })
    }

    fn at(&self, instant_ns: i64) -> usize {
        let part = instant_ns.saturating_sub(self.start_ns).max(0) / self.length_ns;
        usize::try_from(part).unwrap_or(0).min(PARTS - 1)
    }

    fn bounds(&self, first: usize, last: usize) -> (i64, i64) {
        let at = |part: usize| self.start_ns + self.length_ns * part as i64;
        (at(first), at(last + 1))
    }
}

/// A call, and how often it was made again.
struct Seen<'a> {
    handled: &'a Handled<'a>,
    call: &'a Call<'a>,
    retries: usize,
}

/// How often a call was made again because it failed.
fn retries(call: &Call<'_>, thresholds: &Thresholds) -> usize {
    let again = |pair: &&[&Span]| is_retryable(pair[0]) && !is_patient(pair[0], pair[1], thresholds);
    call.tries().windows(2).filter(again).count()
}

/// Whether an attempt failed for a reason that asking again may mend.
fn is_retryable(span: &Span) -> bool {
    let is_callers_fault =
        span.facts.http_status.is_some_and(|status| (400..500).contains(&status) && status != 408 && status != 429);
    went_wrong(span) && (!is_callers_fault || is_conflict(span))
}

/// Whether a database had two transactions meet in it.
fn is_conflict(span: &Span) -> bool {
    let says_so = |text: &Option<String>| text.as_deref().is_some_and(|text| CONFLICTS.contains(&text));
    is_database(span) && (says_so(&span.facts.db_status) || says_so(&span.facts.error_type))
}

/// Whether an attempt was refused and the next one waited for it.
fn is_patient(refused: &Span, next: &Span, thresholds: &Thresholds) -> bool {
    let gap = Gap::of((refused, next));
    let is_backed_off = match gap.told_ns {
        Some(told_ns) => gap.length_ns() >= thresholds.retry_after_share_min * told_ns,
        None => gap.length_ns() >= refused.duration_ns() as f64,
    };
    is_throttled(refused) && is_backed_off
}

/// Calls and attempts of a part of the trial.
#[derive(Debug, Clone, Copy, Default)]
struct Count {
    seen: usize,
    calls: f64,
    attempts: f64,
}

impl Count {
    fn add(&mut self, other: Count) {
        self.seen += other.seen;
        self.calls += other.calls;
        self.attempts += other.attempts;
    }

    /// Attempts for each call; 1 without calls.
    fn amplification(self) -> f64 {
        if self.calls > 0.0 { self.attempts / self.calls } else { 1.0 }
    }
}

/// The calls of one kind in one operation.
struct Case<'a> {
    reading: &'a Reading<'a>,
    service: &'a str,
    operation: &'a str,
    /// Those made again in the storm, most often first.
    seen: Vec<Seen<'a>>,
    calm: Count,
    storm: Count,
    bounds_ns: (i64, i64),
    /// Of calls that succeeded at once in the calm, and of failed attempts in the storm, nanoseconds.
    lengths_ns: (f64, f64),
    /// Services below it that try again too, and by how much.
    layers: Vec<(String, f64)>,
}

impl<'a> Case<'a> {
    fn new(
        reading: &'a Reading<'a>,
        parts: &Parts,
        (service, operation): (&'a str, &'a str),
        seen: Vec<Seen<'a>>,
    ) -> Option<Self> {
        let thresholds = reading.thresholds;
        let counts = counts(parts, &seen);
        let (first, last) = storm_in(&counts, thresholds)?;
        let mut sums = (Count::default(), Count::default());
        for (part, count) in counts.iter().enumerate() {
            if (first..=last).contains(&part) {
                sums.1.add(*count);
            } else if count.amplification() <= thresholds.calm_amplification {
                sums.0.add(*count);
            }
        }
        let (calm, storm) = sums;
        let is_storm = |seen: &Seen<'_>| (first..=last).contains(&parts.at(seen.call.start_ns()));
        let lengths_ns = lengths(&seen, is_storm);
        let mut seen: Vec<Seen<'a>> = seen.into_iter().filter(|seen| is_storm(seen) && seen.retries > 0).collect();
        seen.sort_by_key(|seen| std::cmp::Reverse(seen.retries));
        let is_enough = calm.seen >= thresholds.storm_calls && storm.seen >= thresholds.storm_calls;
        let traces: BTreeSet<TraceId> = seen.iter().map(|seen| seen.handled.request.trace.id).collect();
        let is_sure = is_enough && traces.len() >= thresholds.storm_traces;
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

    /// Attempts for each call, those of all layers multiplied.
    fn amplification(&self) -> f64 {
        self.layers.iter().map(|(_, factor)| factor).product::<f64>() * self.storm.amplification()
    }

    fn callee(&self) -> String {
        self.seen.first().map_or_else(String::new, |seen| Store::of(self.reading.trial, seen.call.tries()[0]).name)
    }

    /// Share of the attempts to what is called that failed in the storm, by the counts over all spans.
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
        (all > 0.0).then(|| failed / all)
    }

    fn finding(&self, detector: &RetryStorm) -> Finding {
        let (service, callee) = (self.service, self.callee());
        let amplification = self.amplification();
        Finding {
            title: format!(
                "{service} calls {callee} {} per request while it fails, and {} before",
                units::times(amplification),
                units::times(self.calm.amplification())
            ),
            resource: service.into(),
            operation: Some(self.operation.into()),
            cost_share: (1.0 - 1.0 / amplification.max(1.0)).clamp(0.0, 1.0),
            cost_of: format!("of the attempts at {callee} in that time"),
            confidence: self.confidence(),
            reasons: self.reasons(&callee),
            numbers: self.numbers(),
            evidence_text: self.seen.first().map(|seen| {
                clipped(seen.call.query.map_or(seen.call.kind.as_ref(), |query| query.text), TEXT_CHARS_MAX)
            }),
            exemplars: self
                .seen
                .iter()
                .take(EXEMPLARS_MAX)
                .map(|seen| exemplar(seen.handled.request.trace, seen.call.tries().iter().copied()))
                .collect(),
            ruled_out: vec![
                "Hedged calls: each attempt began after the one before it had failed.".into(),
                "Polling: attempts that succeeded, or failed because of the caller, do not count.".into(),
                "Throttling with back-off: attempts that were rejected and then waited do not count.".into(),
            ],
            falsified_by: format!(
                "With retries switched off in {service}, {callee} receives as many requests in that time as before."
            ),
            advice: self.advice(&callee),
            caveats: self.caveats(&callee).into_iter().map(Into::into).collect(),
            period: period_of(self.reading.trial, self.bounds_ns.0, self.bounds_ns.1),
            ..detector.finding()
        }
    }

    fn confidence(&self) -> Confidence {
        match self.failed_share() {
            Some(share) if share >= FAILED_SHARE_MIN => Confidence::High,
            _ => Confidence::Medium,
        }
    }

    /// Share of the failed attempts in the storm that lost to another transaction.
    fn conflict_share(&self) -> f64 {
        let failed = || self.seen.iter().flat_map(|seen| seen.call.tries()).filter(|span| is_retryable(span));
        failed().filter(|span| is_conflict(span)).count() as f64 / failed().count().max(1) as f64
    }

    fn reasons(&self, callee: &str) -> Vec<String> {
        let mut reasons = vec![format!(
            "{} of {} makes {} attempts for each of these calls, {} in the calm part of the trial ({} and {} calls in \
             the traces).",
            self.operation,
            self.service,
            units::number(self.storm.amplification()),
            units::number(self.calm.amplification()),
            units::count(self.storm.seen as u64),
            units::count(self.calm.seen as u64)
        )];
        if !self.layers.is_empty() {
            let layers: Vec<String> =
                self.layers.iter().map(|(service, factor)| format!("{service} {}", units::times(*factor))).collect();
            reasons.push(format!(
                "Services below it retry as well ({}): the last of them is called {} for one call.",
                layers.join(", "),
                units::times(self.amplification())
            ));
        }
        reasons
            .extend(self.failed_share().map(|share| {
                format!("Over all spans, {} of the attempts failed in that time.", units::percent(share))
            }));
        let (fine_ns, failed_ns) = self.lengths_ns;
        if failed_ns > 0.0 && fine_ns > 0.0 {
            reasons.push(format!(
                "A failed attempt occupies {callee} and its caller for {} (median), one in the calm part for {}.",
                units::duration(failed_ns),
                units::duration(fine_ns)
            ));
        }
        reasons
    }

    fn numbers(&self) -> Vec<Figure> {
        let mut numbers = vec![
            Figure::new("attempts per call, while it fails", self.storm.amplification(), ""),
            Figure::new("attempts per call, before", self.calm.amplification(), ""),
            Figure::new("attempts per call, all layers", self.amplification(), ""),
            Figure::new("calls in these traces", self.storm.seen as f64, ""),
            Figure::new("failed attempt, median", self.lengths_ns.1, "ns"),
        ];
        numbers.extend(self.failed_share().map(|share| Figure::new("attempts that failed", share * 100.0, "%")));
        numbers
    }

    fn advice(&self, callee: &str) -> String {
        if self.conflict_share() > 0.5 {
            return format!(
                "Transactions conflict: lock rows in one order everywhere, keep the transactions behind {} of {} \
                 short, with nothing slow between their statements, and lock less (a finer key, a lower isolation \
                 level, an update that adds instead of writing back a value that was read). Wait a random time before \
                 a transaction is retried.",
                self.operation, self.service
            );
        }
        let one_layer = if self.layers.is_empty() {
            String::new()
        } else {
            "Retry in one layer only, the one closest to the failing service. ".to_owned()
        };
        format!(
            "{one_layer}In {}, give retries of calls to {callee} a budget (such as one retry per ten calls), wait \
             between them with exponential back-off and jitter, and stop calling for a while when most attempts fail \
             (a circuit breaker). Do not retry once the caller above has timed out. Then find out why {callee} fails: \
             retries only make it worse.",
            self.service
        )
    }

    fn caveats(&self, callee: &str) -> Vec<String> {
        let mut caveats = vec![format!(
            "The finding does not show why {callee} began to fail: retries amplify a failure and rarely cause it."
        )];
        if self.failed_share().is_none() {
            caveats.push(
                "The counts over all spans do not include these calls: the figures are from the sampled traces.".into(),
            );
        }
        caveats
    }
}

fn counts(parts: &Parts, seen: &[Seen<'_>]) -> Vec<Count> {
    let mut counts = vec![Count::default(); PARTS];
    for seen in seen {
        let weight = seen.handled.weight();
        let attempts = weight * (1.0 + seen.retries as f64);
        counts[parts.at(seen.call.start_ns())].add(Count { seen: 1, calls: weight, attempts });
    }
    counts
}

/// The first and the last of the parts in a row that together hold most attempts of a storm; parts without calls do not
/// interrupt it.
fn storm_in(counts: &[Count], thresholds: &Thresholds) -> Option<(usize, usize)> {
    let mut runs: Vec<(usize, usize, f64)> = Vec::new();
    let mut is_open = false;
    for (part, count) in counts.iter().enumerate().filter(|(_, count)| count.seen > 0) {
        if count.amplification() < thresholds.storm_amplification {
            is_open = false;
            continue;
        }
        let again = count.attempts - count.calls;
        match runs.last_mut().filter(|_| is_open) {
            Some(run) => (run.1, run.2) = (part, run.2 + again),
            None => runs.push((part, part, again)),
        }
        is_open = true;
    }
    runs.into_iter().max_by(|a, b| a.2.total_cmp(&b.2)).map(|(first, last, _)| (first, last))
}

/// Median length of calls that succeeded at once outside the storm, and of failed attempts in it.
fn lengths(seen: &[Seen<'_>], is_storm: impl Fn(&Seen<'_>) -> bool) -> (f64, f64) {
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

/// Cases of other services in the same traces become layers of the one that begins first.
fn layered(mut cases: Vec<Case<'_>>) -> Vec<Case<'_>> {
    let begins = |case: &Case<'_>| {
        let depths =
            case.seen.iter().map(|seen| seen.handled.request.entry.start_ns.saturating_sub(trace_start(seen.handled)));
        depths.min().unwrap_or(0)
    };
    cases.sort_by_cached_key(begins);
    let mut outer: Vec<(BTreeSet<TraceId>, Case<'_>)> = Vec::new();
    for case in cases {
        let traces = case.traces();
        let is_above = |(known_traces, known): &&mut (BTreeSet<TraceId>, Case<'_>)| {
            known.service != case.service
                && known_traces.intersection(&traces).count() >= case.reading.thresholds.storm_traces
        };
        match outer.iter_mut().find(is_above) {
            Some((_, known)) => known.layers.push((case.service.to_owned(), case.storm.amplification())),
            None => outer.push((traces, case)),
        }
    }
    outer.into_iter().map(|(_, case)| case).collect()
}

fn trace_start(handled: &Handled<'_>) -> i64 {
    handled.request.trace.spans.first().map_or(0, |span| span.start_ns)
}

#[cfg(test)]
mod tests;
