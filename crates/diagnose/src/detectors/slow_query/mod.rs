//! `slow-query`: a request waits for one query that is slow even without other load on the database, or for several.
//!
//! Slow queries of different shapes are one finding about their database where none takes the share alone and all of them
//! together do.
//!
//! It is measured under the lightest load: a query that is quick there and slow later waits for others, which is
//! `database-saturation`. Many quick queries are `n-plus-one`, and a wait for a connection ends before the query's span
//! begins. Failed queries do not show how long a query takes.
//!
//! Of services without spans, the database itself says which statement takes long (`by_server.rs`).

use std::collections::BTreeMap;

use narrows_model::finding::evidence::slow_query as evidence;
use narrows_model::finding::{Caveat, Confidence, Finding, FindingKind};
use narrows_model::trace::{Span, SpanStatus};

use crate::Detector;
use crate::exemplars::{EXEMPLARS_MAX, TEXT_CHARS_MAX, clipped, exemplar};
use crate::read::Reading;
use crate::read::calls::{Handled, Times, median_of};
use crate::read::cpu::Cpu;
use crate::read::databases::name_of;
use crate::read::intervals::Interval;
use crate::read::requests::{Query, cut_at_end};
use crate::stats::finite;
use crate::thresholds::rule_thresholds;

mod by_server;
mod words;

rule_thresholds! {
    /// Median time of one query under the lightest load, nanoseconds.
    slow_query_ns: f64 = 5e7;
    /// Share of the operation's latency that its slow queries take: those of one shape, or else of several.
    slow_query_share: f64 = 0.5;
    /// Largest number of queries of the shape in a request, median; more are another problem.
    slow_query_times: f64 = 3.0;
    /// Requests that must show it.
    slow_query_traces: usize = 5;
}

/// See the module.
#[derive(Debug)]
pub struct SlowQuery;

impl Detector for SlowQuery {
    fn kind(&self) -> FindingKind {
        FindingKind::SlowQuery
    }

    fn version(&self) -> u32 {
        4
    }

    fn detect(&self, reading: &Reading<'_>) -> Vec<Finding> {
        let of_operation = reading.operations.iter().filter_map(|((service, operation), all)| {
            let (part, all) = lightest(reading, all);
            let shapes: BTreeMap<&str, &Query<'_>> =
                all.iter().flat_map(|one| &one.request.queries).map(|query| (&*query.shape.text, query)).collect();
            let candidates = shapes.into_values().map(|query| Candidate::new(reading, part, vec![query], &all));
            let slow = candidates.filter(Candidate::is_slow).collect();
            Some(worst(slow, &all)?.finding(self, service, operation))
        });
        of_operation.chain(by_server::findings(reading)).collect()
    }
}

/// The requests of an operation under the lightest load with enough of them; all requests if no load has enough.
fn lightest<'r, 'a>(reading: &Reading<'a>, all: &'r [Handled<'a>]) -> (Option<&'a Interval>, Vec<&'r Handled<'a>>) {
    let within = |interval: &Interval| -> Vec<&'r Handled<'a>> {
        all.iter().filter(|handled| interval.contains(handled.request.entry.start_ns)).collect()
    };
    let parts = reading.intervals.iter().map(|interval| (interval, within(interval)));
    let enough = parts.filter(|(_, requests)| requests.len() >= reading.thresholds.slow_query.slow_query_traces);
    match enough.min_by(|(a, _), (b, _)| a.by_demand(b)) {
        Some((interval, requests)) => (Some(interval), requests),
        None => (None, all.iter().collect()),
    }
}

/// The slow queries that an operation waits for most: of one shape, or else all those of one database.
fn worst<'a>(mut slow: Vec<Candidate<'a>>, all: &[&'a Handled<'a>]) -> Option<Candidate<'a>> {
    slow.sort_by(|a, b| b.share().total_cmp(&a.share()));
    let first = slow.first()?;
    if first.takes_enough() {
        return Some(slow.swap_remove(0));
    }
    let of_first = slow.iter().filter(|one| one.database() == first.database());
    let together = Candidate::new(first.reading, first.part, of_first.map(|one| one.shapes[0]).collect(), all);
    together.takes_enough().then_some(together)
}

/// A request with its queries of these shapes.
struct RequestQueries<'a> {
    handled: &'a Handled<'a>,
    spans: Vec<&'a Span>,
    /// Time with at least one of these queries under way, nanoseconds.
    time_ns: f64,
}

/// Queries of one operation.
struct Candidate<'a> {
    reading: &'a Reading<'a>,
    part: Option<&'a Interval>,
    /// A query of each shape, at least one.
    shapes: Vec<&'a Query<'a>>,
    /// Requests with such a query, the slowest first.
    requests: Vec<RequestQueries<'a>>,
    /// Time of all requests of the operation, weighted by trace, nanoseconds.
    whole_ns: f64,
}

impl<'a> Candidate<'a> {
    fn new(
        reading: &'a Reading<'a>,
        part: Option<&'a Interval>,
        shapes: Vec<&'a Query<'a>>,
        all: &[&'a Handled<'a>],
    ) -> Self {
        let mut requests: Vec<RequestQueries<'a>> =
            all.iter().filter_map(|handled| queries_in(handled, &shapes)).collect();
        requests.sort_by(|a, b| b.time_ns.total_cmp(&a.time_ns));
        let whole_ns = all.iter().map(|handled| handled.latency_ns() * handled.weight()).sum();
        Self { reading, part, shapes, requests, whole_ns }
    }

    /// Time and number of the queries of one of its shapes.
    fn statement(&self, query: &Query<'a>) -> evidence::SlowStatement {
        let of_shape = self.requests.iter().filter_map(|request| queries_in(request.handled, &[query]));
        let of_shape: Vec<RequestQueries<'_>> = of_shape.collect();
        let median = |value: fn(&RequestQueries<'_>) -> f64| {
            median_of(&of_shape, |request| (value(request), request.handled.weight()))
        };
        evidence::SlowStatement {
            shape: clipped(&query.shape.text, TEXT_CHARS_MAX),
            query_ns: median(|request| request.time_ns / request.spans.len() as f64),
            queries_per_request: median(|request| request.spans.len() as f64),
        }
    }

    /// The database that they go to.
    fn database(&self) -> &'a str {
        name_of(self.reading.trial, self.shapes[0].span)
    }

    /// Share of the operation's time spent in these queries.
    fn share(&self) -> f64 {
        let spent: f64 = self.requests.iter().map(|request| request.time_ns * request.handled.weight()).sum();
        if self.whole_ns > 0.0 { (spent / self.whole_ns).min(1.0) } else { 0.0 }
    }

    /// Whether its queries, of one shape, are slow and few.
    fn is_slow(&self) -> bool {
        let thresholds = &self.reading.thresholds.slow_query;
        let statement = self.statement(self.shapes[0]);
        self.requests.len() >= thresholds.slow_query_traces
            && statement.queries_per_request <= thresholds.slow_query_times
            && statement.query_ns >= thresholds.slow_query_ns
    }

    fn takes_enough(&self) -> bool {
        self.share() >= self.reading.thresholds.slow_query.slow_query_share
    }

    /// Busy share of the database's CPU meanwhile, 0 to 1; `None` if it was not sampled.
    fn busy(&self, database: &str) -> Option<f64> {
        Cpu::new(self.reading).busy_share(database, self.part?)
    }

    fn rows(&self) -> Option<f64> {
        if self.shapes.len() > 1 {
            return None;
        }
        let known = || self.requests.iter().flat_map(|request| &request.spans).filter_map(|span| span.facts.db_rows);
        known().next()?;
        let each: Vec<f64> = known().map(|rows| rows as f64).collect();
        crate::stats::median(each)
    }

    fn finding(&self, detector: &SlowQuery, service: &str, operation: &str) -> Finding {
        let database = self.database();
        let busy = self.busy(database);
        let unknown = busy.is_none().then(|| Caveat::DatabaseCpuNotSampled { database: database.into() });
        let spans = self.requests.iter().flat_map(|one| one.spans.iter().map(|span| (one.handled.request, *span)));
        Finding {
            resource: database.into(),
            operation: Some(operation.into()),
            cost_share: self.share(),
            confidence: if busy.is_some() { Confidence::High } else { Confidence::Medium },
            exemplars: self
                .requests
                .iter()
                .take(EXEMPLARS_MAX)
                .map(|request| exemplar(request.handled.request.trace, request.spans.iter().copied()))
                .collect(),
            caveats: unknown.into_iter().chain(cut_at_end(spans)).collect(),
            ..Finding::new(self.evidence(service, busy), detector.version())
        }
    }

    fn evidence(&self, service: &str, busy: Option<f64>) -> evidence::SlowQuery {
        // Imported spans come without a load.
        let load = self.part.map(Interval::load_level).filter(|load| load.users > 0 || load.arrivals.is_some());
        let first = self.statement(self.shapes[0]);
        evidence::SlowQuery {
            service: service.into(),
            shape: first.shape,
            query: clipped(self.shapes[0].text, TEXT_CHARS_MAX),
            source: evidence::QuerySource::Spans,
            query_ns: first.query_ns,
            queries_per_request: first.queries_per_request,
            rows: self.rows(),
            is_lightest_load: load.is_some() && self.reading.intervals.len() > 1,
            load,
            database_cpu_share: busy.map(finite),
            others: self.shapes[1..].iter().map(|query| self.statement(query)).collect(),
        }
    }
}

/// The queries of these shapes in one request; `None` if none of them succeeded.
fn queries_in<'a>(handled: &'a Handled<'a>, shapes: &[&Query<'_>]) -> Option<RequestQueries<'a>> {
    let is_meant = |query: &&Query<'_>| shapes.iter().any(|shape| shape.shape.text == query.shape.text);
    let meant = handled.request.queries.iter().filter(is_meant);
    let spans: Vec<&Span> = meant.map(|query| query.span).filter(|span| span.status != SpanStatus::Error).collect();
    let time_ns = Times::union_of(spans.iter().map(|span| handled.request.time_of(span))).length_ns();
    (!spans.is_empty()).then_some(RequestQueries { handled, spans, time_ns })
}

#[cfg(test)]
mod tests;
