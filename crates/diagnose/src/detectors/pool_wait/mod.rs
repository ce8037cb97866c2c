//! `pool-wait`: requests wait for a connection, while their calls over it return quickly.
//!
//! The wait is outside the database's spans, which makes it look like the program's own time. It is named only if there
//! is evidence: pool spans, metrics of the pool's state, or sockets (`by_sockets.rs`): connections that are all in use and
//! no more of them under more load, while the service has taken on more requests. Within a pool span, time spent opening
//! a connection is not a wait, nor is time with another call of the request under way.
//!
//! Each part of the trial under one load is judged separately, and the worst is reported.
//!
//! If queries take longer than the wait for them, the queries are the problem: connections are held because of them,
//! and this detector reports nothing.

use std::collections::BTreeMap;

use narrows_model::finding::evidence::pool_wait::{self as evidence, PoolSign};
use narrows_model::finding::{Caveat, Confidence, Finding, FindingKind};
use narrows_model::trace::Span;

use crate::Detector;
use crate::exemplars::{EXEMPLARS_MAX, exemplar};
use crate::read::Reading;
use crate::read::calls::{Handled, Times, median_of};
use crate::read::periods::period_of;
use crate::read::pools::{PoolMetrics, Readings, Within, is_plain_connect, is_taking};
use crate::stats::finite;
use crate::thresholds::rule_thresholds;
use takings::Takings;

mod by_sockets;
mod takings;
mod words;

rule_thresholds! {
    /// Share of the latency of the service's requests.
    pool_wait_share: f64 = 0.20;
    /// Median wait of a request, nanoseconds.
    pool_wait_ns: f64 = 5e6;
    /// Wait as a multiple of the time in the queries themselves; below it the queries are what is slow.
    pool_wait_query_factor: f64 = 1.0;
    /// Traces that must show it.
    pool_wait_traces: usize = 5;
    /// Share of the readings with pending requests or with all connections in use.
    pool_wait_reading_share: f64 = 0.25;
    /// Readings of a pool that are needed.
    pool_wait_readings: usize = 5;
    /// Shortest tenth of the `connect` spans, as a share of their mean, up to which they are waits: opening a
    /// connection takes about the same time each time.
    pool_wait_spread_share: f64 = 0.25;
}

/// See the module.
#[derive(Debug)]
pub struct PoolWait;

/// Quantile of the lengths of pool spans that counts as short.
const SHORT_SHARE: f64 = 0.1;

impl Detector for PoolWait {
    fn kind(&self) -> FindingKind {
        FindingKind::PoolWait
    }

    fn version(&self) -> u32 {
        2
    }

    fn detect(&self, reading: &Reading<'_>) -> Vec<Finding> {
        let takings = Takings::new(reading);
        let mut services: BTreeMap<&str, Vec<(&str, &[Handled<'_>])>> = BTreeMap::new();
        for ((service, operation), all) in reading.operations {
            services.entry(service).or_default().push((operation, all));
        }
        let parts = parts(reading);
        let candidates = services.into_iter().filter_map(|(service, operations)| {
            let of_part = parts.iter().flat_map(|part| {
                let metrics = PoolMetrics::new(reading.trial, service, part);
                let operations = operations.iter();
                let candidates = operations.filter_map(|&(operation, all)| {
                    Candidate::new(reading, service, &metrics, OfOperation { operation, all, part }, &takings)
                });
                candidates.filter(Candidate::is_worth_saying).collect::<Vec<_>>()
            });
            let worst = of_part.max_by(|a, b| a.wait_share().total_cmp(&b.wait_share()))?;
            let metrics = PoolMetrics::new(reading.trial, service, &worst.part);
            Some(worst.finding(self, &metrics))
        });
        let mut found: Vec<Finding> = candidates.collect();
        let is_found = |service: &str, found: &[Finding]| found.iter().any(|finding| finding.resource == service);
        for service in reading.trial.service_names() {
            if !is_found(service, &found) {
                found.extend(by_sockets::finding(reading, service));
            }
        }
        found
    }
}

/// Parts of the trial that are judged separately, because a median over all hides a pool that suffices only for few
/// users.
fn parts(reading: &Reading<'_>) -> Vec<Within> {
    let parts: Vec<Within> = reading.intervals.iter().map(|interval| interval.start_ns..interval.end_ns).collect();
    let all = i64::MIN..i64::MAX;
    if parts.is_empty() { Vec::from([all]) } else { parts }
}

/// A request and its wait.
struct Wait<'a> {
    handled: &'a Handled<'a>,
    wait_ns: f64,
    query_ns: f64,
    shown: Vec<&'a Span>,
}

/// The requests of one operation, and the part of the trial in which they are judged.
struct OfOperation<'a, 'p> {
    operation: &'a str,
    all: &'a [Handled<'a>],
    part: &'p Within,
}

/// One operation of a service.
struct Candidate<'a> {
    reading: &'a Reading<'a>,
    service: &'a str,
    operation: &'a str,
    sign: PoolSign,
    /// All requests of the operation, the longest wait first.
    waits: Vec<Wait<'a>>,
    part: Within,
}

impl<'a> Candidate<'a> {
    fn new(
        reading: &'a Reading<'a>,
        service: &'a str,
        metrics: &PoolMetrics,
        of: OfOperation<'a, '_>,
        takings: &Takings<'a>,
    ) -> Option<Self> {
        let OfOperation { operation, all, part } = of;
        let thresholds = &reading.thresholds.pool_wait;
        let crowded = metrics.crowded(thresholds.pool_wait_readings, thresholds.pool_wait_reading_share);
        let is_long = metrics.wait_ns.is_some_and(|wait_ns| wait_ns >= thresholds.pool_wait_ns);
        let has_metric = crowded.is_some() || is_long;
        let all = || all.iter().filter(|handled| part.contains(&handled.request.entry.start_ns));
        let by_spans: Vec<Wait<'a>> = all().map(|handled| taken(handled, takings)).collect();
        let shown: Vec<&Span> = by_spans.iter().flat_map(|wait| wait.shown.iter().copied()).collect();
        let is_told = !shown.is_empty() && (has_metric || waits_at_all(&shown, thresholds.pool_wait_spread_share));
        let (sign, mut waits) = match (is_told, has_metric, metrics.wait_ns) {
            (true, true, _) => (PoolSign::SpansAndMetrics, by_spans),
            (true, false, _) => (PoolSign::Spans, by_spans),
            (false, true, Some(wait_ns)) => {
                (PoolSign::ReportedTimes, all().map(|handled| gap(handled, Some(wait_ns))).collect())
            }
            (false, true, None) => (PoolSign::ReportedState, all().map(|handled| gap(handled, None)).collect()),
            (false, false, _) => return None,
        };
        waits.sort_by(|a, b| b.wait_ns.total_cmp(&a.wait_ns));
        Some(Self { reading, service, operation, sign, waits, part: part.clone() })
    }

    fn median(&self, value: impl Fn(&Wait<'a>) -> f64) -> f64 {
        median_of(&self.waits, |wait| (value(wait), wait.handled.weight()))
    }

    fn wait_ns(&self) -> f64 {
        self.median(|wait| wait.wait_ns)
    }

    fn query_ns(&self) -> f64 {
        self.median(|wait| wait.query_ns)
    }

    /// Share of the time of all requests spent waiting.
    fn wait_share(&self) -> f64 {
        let sum = |value: &dyn Fn(&Wait<'a>) -> f64| -> f64 {
            self.waits.iter().map(|wait| value(wait) * wait.handled.weight()).sum()
        };
        let whole = sum(&|wait| wait.handled.latency_ns());
        if whole > 0.0 { (sum(&|wait| wait.wait_ns) / whole).min(1.0) } else { 0.0 }
    }

    fn is_worth_saying(&self) -> bool {
        let thresholds = &self.reading.thresholds.pool_wait;
        let shown = self.waits.iter().filter(|wait| wait.wait_ns > 0.0).count();
        shown >= thresholds.pool_wait_traces
            && self.wait_share() >= thresholds.pool_wait_share
            && self.wait_ns() >= thresholds.pool_wait_ns
            && self.wait_ns() >= thresholds.pool_wait_query_factor * self.query_ns()
    }

    fn finding(&self, detector: &PoolWait, metrics: &PoolMetrics) -> Finding {
        let shown = self.waits.iter().take(EXEMPLARS_MAX);
        Finding {
            resource: self.service.into(),
            operation: Some(self.operation.into()),
            cost_share: self.wait_share(),
            confidence: self.confidence(),
            exemplars: shown.map(|w| exemplar(w.handled.request.trace, w.shown.iter().copied())).collect(),
            caveats: self.caveats(),
            period: period_of(self.reading.trial, self.part.start, self.part.end),
            ..Finding::new(self.evidence(metrics), detector.version())
        }
    }

    fn confidence(&self) -> Confidence {
        match self.sign {
            PoolSign::SpansAndMetrics => Confidence::High,
            PoolSign::Spans | PoolSign::ReportedTimes => Confidence::Medium,
            PoolSign::ReportedState | PoolSign::Sockets => Confidence::Low,
        }
    }

    fn evidence(&self, metrics: &PoolMetrics) -> evidence::PoolWait {
        let readings = |of: Readings| evidence::Readings { count: of.count, share: of.share };
        evidence::PoolWait {
            sign: self.sign,
            wait_ns: finite(self.wait_ns()),
            query_ns: finite(self.query_ns()),
            other_calls_ns: finite(self.median(other_calls_ns)),
            pool: evidence::PoolMetrics {
                wait_ns: metrics.wait_ns.map(finite),
                use_ns: metrics.use_ns.map(finite),
                size: metrics.max.map(finite),
                taken: metrics.takings.map(finite),
                pending: metrics.pending.map(readings),
                full: metrics.full.map(readings),
            },
            sockets: None,
        }
    }

    fn caveats(&self) -> Vec<Caveat> {
        let of_sign = match self.sign {
            PoolSign::ReportedState => Some(Caveat::WaitReadFromGaps),
            PoolSign::Spans => Some(Caveat::NoPoolMetric),
            PoolSign::SpansAndMetrics | PoolSign::ReportedTimes | PoolSign::Sockets => None,
        };
        [Caveat::MoreQueriesAtOnce].into_iter().chain(of_sign).collect()
    }
}

/// Time with calls to other services between a request's first and last query, nanoseconds.
fn other_calls_ns(wait: &Wait<'_>) -> f64 {
    let spans = || wait.handled.request.queries.iter().map(|query| query.span);
    let first = spans().map(|span| span.end_ns).min().unwrap_or(0);
    let last = spans().map(|span| span.start_ns).max().unwrap_or(0);
    let others = wait.handled.request.other_calls.iter();
    Times::union_of(others.map(|call| (call.start_ns.max(first), call.end_ns.min(last)))).length_ns()
}

/// Wait of a request according to its pool spans.
fn taken<'a>(handled: &'a Handled<'a>, takings: &Takings<'a>) -> Wait<'a> {
    let shown = takings.within(handled);
    let openings = shown.iter().flat_map(|span| takings.openings(span));
    let busy = calls_of(handled).chain(openings);
    let wait = Times::union_of(shown.iter().map(|span| (span.start_ns, span.end_ns.min(handled.request.entry.end_ns))));
    Wait { wait_ns: wait.without(&Times::union_of(busy)).length_ns(), query_ns: query_ns(handled), handled, shown }
}

/// Time that a request may have waited before its queries, at most `wait_ns` per query.
fn gap<'a>(handled: &'a Handled<'a>, wait_ns: Option<f64>) -> Wait<'a> {
    let queries = || handled.request.queries.iter().map(|query| query.span);
    let last_ns = queries().map(|span| span.start_ns).max().unwrap_or(handled.request.entry.start_ns);
    let before =
        Times::union_of([(handled.request.entry.start_ns, last_ns)]).without(&Times::union_of(calls_of(handled)));
    let count = queries().count() as f64;
    let at_most = wait_ns.map_or(f64::INFINITY, |wait_ns| wait_ns * count);
    Wait { handled, wait_ns: before.length_ns().min(at_most), query_ns: query_ns(handled), shown: queries().collect() }
}

fn query_ns(handled: &Handled<'_>) -> f64 {
    Times::union_of(handled.request.queries.iter().map(|query| (query.span.start_ns, query.span.end_ns))).length_ns()
}

/// Start and end of the attempts of a request's calls, without pool spans.
fn calls_of<'a>(handled: &'a Handled<'a>) -> impl Iterator<Item = (i64, i64)> + 'a {
    let calls = handled.calls.iter().flat_map(|call| &call.attempts).filter(|span| !is_taking(span));
    calls.map(|span| (span.start_ns, span.end_ns))
}

/// Whether these spans can be waits: their name says so, or some are much shorter than the mean, which openings are
/// not.
fn waits_at_all(shown: &[&Span], spread_share: f64) -> bool {
    if shown.iter().any(|span| !is_plain_connect(span)) {
        return true;
    }
    let mut lengths: Vec<f64> = shown.iter().map(|span| span.duration_ns() as f64).collect();
    lengths.sort_by(f64::total_cmp);
    let short = lengths[(lengths.len() as f64 * SHORT_SHARE) as usize];
    short <= spread_share * lengths.iter().sum::<f64>() / lengths.len() as f64
}

#[cfg(test)]
mod tests;
