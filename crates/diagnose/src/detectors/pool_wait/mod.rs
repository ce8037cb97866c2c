//! `pool-wait`: requests wait for a connection, while what they ask over it is answered quickly.
//!
//! The wait lies outside the database's spans, so from these alone it looks like the program's own time. It is named
//! only where something says what the time is: spans of the pool, or metrics of its state. Of a pool's span, the part in
//! which a connection is opened is no wait, nor is time in which another call of the request is under way.
//!
//! Each part of the trial under one load is judged for itself, and the worst speaks.
//!
//! Where queries themselves take longer than the wait for them, the queries are the matter: connections are held because
//! of them, and this detector is silent.

use std::collections::{BTreeMap, HashMap, HashSet};

use narrows_model::finding::{Confidence, Figure, Finding, FindingKind, Period};
use narrows_model::trace::{Span, SpanId, SpanKind, Trace, TraceId};
use narrows_model::units;

use crate::Detector;
use crate::calls::{Handled, Times, median_of};
use crate::periods::period_of;
use crate::pools::{PoolMetrics, Within, is_plain_connect, is_taking};
use crate::reading::Reading;
use crate::words::{EXEMPLARS_MAX, exemplar};

/// See the module.
#[derive(Debug)]
pub struct PoolWait;

/// The part of the takings that count as the shortest ones.
const SHORT_SHARE: f64 = 0.1;

impl Detector for PoolWait {
    fn kind(&self) -> FindingKind {
        FindingKind::PoolWait
    }

    fn version(&self) -> u32 {
        1
    }

    fn detect(&self, reading: &Reading<'_>) -> Vec<Finding> {
        let takings = Takings::of(reading);
        let mut services: BTreeMap<&str, Vec<(&str, &[Handled<'_>])>> = BTreeMap::new();
        for ((service, operation), all) in reading.operations {
            services.entry(service).or_default().push((operation, all));
        }
        let parts = parts(reading);
        let cases = services.into_iter().filter_map(|(service, operations)| {
            let of_part = parts.iter().flat_map(|part| {
                let metrics = PoolMetrics::of(reading.trial, service, part);
                let operations = operations.iter();
                let cases = operations.filter_map(|&(operation, all)| {
                    Case::new(reading, (service, &metrics), (operation, all, part), &takings)
                });
                cases.filter(Case::is_worth_saying).collect::<Vec<_>>()
            });
            let worst = of_part.max_by(|a, b| a.wait_share().total_cmp(&b.wait_share()))?;
            let metrics = PoolMetrics::of(reading.trial, service, &worst.part);
            Some(worst.finding(self, &metrics))
        });
        cases.collect()
    }
}

/// The parts of the trial that are judged one by one, since a pool that suffices for few users hides in a median over all.
fn parts(reading: &Reading<'_>) -> Vec<Within> {
    let parts: Vec<Within> = reading.intervals.iter().map(|interval| interval.start_ns..interval.end_ns).collect();
    let all = i64::MIN..i64::MAX;
    if parts.is_empty() { Vec::from([all]) } else { parts }
}

/// How far up the parents of a pool's span are followed.
const DEPTH_MAX: usize = 64;

/// The spans of pools, by what they are below, and what was opened below them.
struct Takings<'a> {
    /// By trace and the span of the request.
    by_request: HashMap<(TraceId, SpanId), Vec<&'a Span>>,
    /// Those below no request, by trace and service, in order of start: only their time says whose they are.
    strays: HashMap<(TraceId, &'a str), Vec<&'a Span>>,
    openings: HashMap<SpanId, Vec<(i64, i64)>>,
}

impl<'a> Takings<'a> {
    fn of(reading: &Reading<'a>) -> Self {
        let mut takings = Self { by_request: HashMap::new(), strays: HashMap::new(), openings: HashMap::new() };
        for trace in &reading.trial.traces {
            takings.add(trace);
        }
        takings.strays.values_mut().for_each(|spans| spans.sort_by_key(|span| span.start_ns));
        takings
    }

    fn add(&mut self, trace: &'a Trace) {
        let ids: HashSet<SpanId> = trace.spans.iter().filter(|span| is_taking(span)).map(|span| span.span_id).collect();
        if ids.is_empty() {
            return;
        }
        let by_id: HashMap<SpanId, &'a Span> = trace.spans.iter().map(|span| (span.span_id, span)).collect();
        for span in &trace.spans {
            if let Some(parent) = span.parent_id.filter(|parent| ids.contains(parent)) {
                self.openings.entry(parent).or_default().push((span.start_ns, span.end_ns));
            } else if ids.contains(&span.span_id) {
                match entry_above(&by_id, span) {
                    Some(entry) => self.by_request.entry((trace.id, entry.span_id)).or_default().push(span),
                    None => self.strays.entry((trace.id, &span.service)).or_default().push(span),
                }
            }
        }
    }

    fn within(&self, handled: &Handled<'a>) -> Vec<&'a Span> {
        let (entry, trace_id) = (handled.request.entry, handled.request.trace.id);
        let own = self.by_request.get(&(trace_id, entry.span_id)).into_iter().flatten();
        let own = own.filter(|span| (entry.start_ns..=entry.end_ns).contains(&span.start_ns));
        let strays = self.strays.get(&(trace_id, entry.service.as_str())).map_or(&[][..], Vec::as_slice);
        let from = strays.partition_point(|span| span.start_ns < entry.start_ns);
        own.chain(strays[from..].iter().take_while(|span| span.start_ns <= entry.end_ns)).copied().collect()
    }
}

/// The span that stands for the request that this one is in: the nearest server or consumer span above it in its
/// service, else the topmost.
fn entry_above<'a>(by_id: &HashMap<SpanId, &'a Span>, span: &Span) -> Option<&'a Span> {
    let above = |of: &Span| of.parent_id.and_then(|id| by_id.get(&id).copied()).filter(|up| up.service == of.service);
    let is_entry = |span: &Span| matches!(span.kind, SpanKind::Server | SpanKind::Consumer);
    let path = std::iter::successors(above(span), |at| above(at).filter(|_| !is_entry(at)));
    path.take(DEPTH_MAX).last()
}

/// How it is known that requests wait.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Sign {
    /// Spans of the pool, and metrics that agree.
    Both,
    /// Spans of the pool only.
    Spans,
    /// Times that the pool reports.
    Times,
    /// Somebody waits, or all connections are used; how long is read from the gaps before queries.
    State,
}

/// One request that waited.
struct Wait<'a> {
    handled: &'a Handled<'a>,
    wait_ns: f64,
    query_ns: f64,
    shown: Vec<&'a Span>,
}

/// One operation of a service.
struct Case<'a> {
    reading: &'a Reading<'a>,
    service: &'a str,
    operation: &'a str,
    sign: Sign,
    /// All its requests, the longest wait first.
    waits: Vec<Wait<'a>>,
    part: Within,
}

impl<'a> Case<'a> {
    fn new(
        reading: &'a Reading<'a>,
        (service, metrics): (&'a str, &PoolMetrics),
        (operation, all, part): (&'a str, &'a [Handled<'a>], &Within),
        takings: &Takings<'a>,
    ) -> Option<Self> {
        let thresholds = reading.thresholds;
        let crowded = metrics.crowded(thresholds.pool_wait_readings, thresholds.pool_wait_reading_share);
        let is_long = metrics.wait_ns.is_some_and(|wait_ns| wait_ns >= thresholds.pool_wait_ns);
        let has_metric = crowded.is_some() || is_long;
        let all = || all.iter().filter(|handled| part.contains(&handled.request.entry.start_ns));
        let by_spans: Vec<Wait<'a>> = all().map(|handled| taken(handled, takings)).collect();
        let shown: Vec<&Span> = by_spans.iter().flat_map(|wait| wait.shown.iter().copied()).collect();
        let is_told = !shown.is_empty() && (has_metric || waits_at_all(&shown, thresholds.pool_wait_spread_share));
        let (sign, mut waits) = match (is_told, has_metric, metrics.wait_ns) {
            (true, true, _) => (Sign::Both, by_spans),
            (true, false, _) => (Sign::Spans, by_spans),
            (false, true, Some(wait_ns)) => (Sign::Times, all().map(|handled| gap(handled, Some(wait_ns))).collect()),
            (false, true, None) => (Sign::State, all().map(|handled| gap(handled, None)).collect()),
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

    /// Of the time of all requests.
    fn wait_share(&self) -> f64 {
        let sum = |value: &dyn Fn(&Wait<'a>) -> f64| -> f64 {
            self.waits.iter().map(|wait| value(wait) * wait.handled.weight()).sum()
        };
        let whole = sum(&|wait| wait.handled.latency_ns());
        if whole > 0.0 { (sum(&|wait| wait.wait_ns) / whole).min(1.0) } else { 0.0 }
    }

    fn is_worth_saying(&self) -> bool {
        let thresholds = self.reading.thresholds;
        let shown = self.waits.iter().filter(|wait| wait.wait_ns > 0.0).count();
        shown >= thresholds.pool_wait_traces
            && self.wait_share() >= thresholds.pool_wait_share
            && self.wait_ns() >= thresholds.pool_wait_ns
            && self.wait_ns() >= thresholds.pool_wait_query_factor * self.query_ns()
    }

    fn finding(&self, detector: &PoolWait, metrics: &PoolMetrics) -> Finding {
        let (service, operation) = (self.service, self.operation);
        Finding {
            title: format!(
                "{service} waits for a connection: {} of each {operation}, its queries take {}",
                units::duration(self.wait_ns()),
                units::duration(self.query_ns())
            ),
            resource: service.into(),
            operation: Some(operation.into()),
            cost_share: self.wait_share(),
            cost_of: format!("of the latency of {operation}"),
            confidence: self.confidence(),
            reasons: self.reasons(metrics),
            numbers: self.numbers(metrics),
            exemplars: self
                .waits
                .iter()
                .take(EXEMPLARS_MAX)
                .map(|wait| exemplar(wait.handled.request.trace, wait.shown.iter().copied()))
                .collect(),
            ruled_out: self.ruled_out(),
            falsified_by: format!(
                "With twice as many connections, {operation} waits as long for one as before, or its queries slow down \
                 by as much."
            ),
            advice: self.advice(metrics),
            caveats: self.caveats().into_iter().map(Into::into).collect(),
            period: self.period(),
            ..detector.finding()
        }
    }

    fn period(&self) -> Option<Period> {
        period_of(self.reading.trial, self.part.start, self.part.end)
    }

    fn confidence(&self) -> Confidence {
        match self.sign {
            Sign::Both => Confidence::High,
            Sign::Spans | Sign::Times => Confidence::Medium,
            Sign::State => Confidence::Low,
        }
    }

    fn reasons(&self, metrics: &PoolMetrics) -> Vec<String> {
        let share = units::percent(self.wait_share());
        let mut reasons = vec![match self.sign {
            Sign::Both | Sign::Spans => format!(
                "Spans of the pool take {share} of the time of {}, with no other call of the request in progress.",
                self.operation
            ),
            Sign::Times | Sign::State => format!(
                "Before its queries, {} spends {share} of its time with no call in progress, and the pool reports that \
                 requests wait.",
                self.operation
            ),
        }];
        reasons.extend(metrics.wait_ns.map(|ns| format!("The pool reports a mean wait of {}.", units::duration(ns))));
        reasons.extend(metrics.pending.filter(|readings| readings.share > 0.0).map(|readings| {
            format!("Requests wait in {} of the pool's {} readings.", units::percent(readings.share), readings.count)
        }));
        if let (Some(full), Some(max)) = (metrics.full.filter(|readings| readings.share > 0.0), metrics.max) {
            reasons.push(format!(
                "All {} connections are in use in {} of {} readings.",
                units::number(max),
                units::percent(full.share),
                full.count
            ));
        }
        reasons.push(format!(
            "The queries themselves take {} of a request (median), the wait {}.",
            units::duration(self.query_ns()),
            units::duration(self.wait_ns())
        ));
        reasons
    }

    fn numbers(&self, metrics: &PoolMetrics) -> Vec<Figure> {
        let mut numbers = vec![
            Figure::new("wait for connections in each request, median", self.wait_ns(), "ns"),
            Figure::new("time in queries in each request, median", self.query_ns(), "ns"),
            Figure::new("share of the latency", self.wait_share() * 100.0, "%"),
        ];
        numbers.extend(metrics.wait_ns.map(|ns| Figure::new("wait for a connection, mean", ns, "ns")));
        numbers.extend(metrics.use_ns.map(|ns| Figure::new("a connection is held, mean", ns, "ns")));
        numbers.extend(metrics.max.map(|max| Figure::new("connections at most", max, "")));
        numbers.extend(metrics.takings.map(|takings| Figure::new("connections taken", takings, "")));
        numbers
    }

    fn ruled_out(&self) -> Vec<String> {
        let mut ruled_out = vec![format!(
            "A slow database: its queries take {} of a request, less than the wait.",
            units::duration(self.query_ns())
        )];
        ruled_out.push(match self.sign {
            Sign::Both | Sign::Spans => {
                "Opening connections: the time in spans that open them, below a span of the pool, was subtracted."
                    .to_owned()
            }
            Sign::Times => {
                "Work of the program before a query: no more time was counted than the pool reports.".to_owned()
            }
            Sign::State => "A gap without a wait: the pool reports that requests wait.".to_owned(),
        });
        ruled_out
    }

    /// Time in which a request calls other services between its first and its last query, median.
    fn held_ns(&self) -> f64 {
        self.median(|wait| {
            let spans = || wait.handled.request.queries.iter().map(|query| query.span);
            let first = spans().map(|span| span.end_ns).min().unwrap_or(0);
            let last = spans().map(|span| span.start_ns).max().unwrap_or(0);
            let others = wait.handled.request.other_calls.iter();
            Times::of(others.map(|call| (call.start_ns.max(first), call.end_ns.min(last)))).length_ns()
        })
    }

    fn advice(&self, metrics: &PoolMetrics) -> String {
        let service = self.service;
        let size = metrics.max.map_or(String::new(), |max| format!(" (now {})", units::number(max)));
        let held_ns = self.held_ns();
        let held = if held_ns > self.query_ns() {
            format!(
                "Between its queries it calls other services for {}: return the connection before that. ",
                units::duration(held_ns)
            )
        } else {
            match metrics.use_ns.filter(|use_ns| *use_ns > 2.0 * self.query_ns().max(1.0)) {
                Some(use_ns) => format!(
                    "A connection is held for {} while queries take {}: return it before remote calls and other work, \
                     and keep transactions short. ",
                    units::duration(use_ns),
                    units::duration(self.query_ns())
                ),
                None => "Take one connection per request, return it before remote calls, and keep transactions short. "
                    .into(),
            }
        };
        format!(
            "{held}If that is not enough, make the pool of {service} larger{size}, as far as the database can run that \
             many queries at once: all replicas together must stay below its own limit."
        )
    }

    fn caveats(&self) -> Vec<String> {
        let mut caveats = vec![
            "More connections mean more queries at once: how the database copes with them is not known.".to_owned(),
        ];
        if self.sign == Sign::State {
            caveats.push("The wait is estimated from the gaps before queries: it is an upper limit.".into());
        }
        if self.sign == Sign::Spans {
            caveats.push("No pool metric (pending requests, wait time) confirms it.".into());
        }
        caveats
    }
}

/// What a request waited by the spans of its pool.
fn taken<'a>(handled: &'a Handled<'a>, takings: &Takings<'a>) -> Wait<'a> {
    let shown = takings.within(handled);
    let openings = shown.iter().filter_map(|span| takings.openings.get(&span.span_id)).flatten().copied();
    let busy = calls_of(handled).chain(openings);
    let wait = Times::of(shown.iter().map(|span| (span.start_ns, span.end_ns.min(handled.request.entry.end_ns))));
    Wait { wait_ns: wait.without(&Times::of(busy)).length_ns(), query_ns: query_ns(handled), handled, shown }
}

/// What a request may have waited before its queries, and no more than a wait for each.
fn gap<'a>(handled: &'a Handled<'a>, wait_ns: Option<f64>) -> Wait<'a> {
    let queries = || handled.request.queries.iter().map(|query| query.span);
    let last_ns = queries().map(|span| span.start_ns).max().unwrap_or(handled.request.entry.start_ns);
    let before = Times::of([(handled.request.entry.start_ns, last_ns)]).without(&Times::of(calls_of(handled)));
    let count = queries().count() as f64;
    let at_most = wait_ns.map_or(f64::INFINITY, |wait_ns| wait_ns * count);
    Wait { handled, wait_ns: before.length_ns().min(at_most), query_ns: query_ns(handled), shown: queries().collect() }
}

fn query_ns(handled: &Handled<'_>) -> f64 {
    Times::of(handled.request.queries.iter().map(|query| (query.span.start_ns, query.span.end_ns))).length_ns()
}

/// When the calls of a request were under way.
fn calls_of<'a>(handled: &'a Handled<'a>) -> impl Iterator<Item = (i64, i64)> + 'a {
    let calls = handled.calls.iter().flat_map(|call| &call.attempts).filter(|span| !is_taking(span));
    calls.map(|span| (span.start_ns, span.end_ns))
}

/// Whether these spans can be waits: their name says so, or some are much shorter than most, which opening is not.
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
