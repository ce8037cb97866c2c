//! The databases that a trial's requests query: which service of the trial each is, and its queries in each part of the
//! load.
//!
//! A database is a service of the trial when its port is called by database spans, or when it is the only one that runs a
//! known program and no span names a port. Else it stands outside and is known by what the spans call it. Attempts that
//! failed or were refused are left out: their time says nothing of a query.

use std::collections::BTreeMap;

use narrows_model::evidence::TrialEvidence;
use narrows_model::trace::{Span, SpanStatus, Trace};

use crate::read::Reading;
use crate::read::intervals::Interval;
use crate::read::programs::is_database_program;
use crate::read::requests::Query;
use crate::stats::weighted_median;

/// One query that got a response.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SentQuery<'a> {
    pub(crate) trace: &'a Trace,
    pub(crate) query: &'a Query<'a>,
    /// The service that sent it.
    pub(crate) client: &'a str,
}

impl SentQuery<'_> {
    fn span(&self) -> &Span {
        self.query.span
    }
}

/// A database with the queries of the sampled traces.
#[derive(Debug)]
pub(crate) struct Database<'a> {
    /// Its service or, failing that, what the spans call it.
    pub(crate) name: &'a str,
    /// True if it is a service of the trial.
    pub(crate) is_service: bool,
    /// Database system named by its spans: `db.system.name`.
    pub(crate) system: Option<&'a str>,
    /// In order of traces.
    pub(crate) queries: Vec<SentQuery<'a>>,
    /// Queries among the spans that it refused, as a share of all.
    pub(crate) refused_share: f64,
}

/// Durations of the queries of one shape in one interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct QueryTimes {
    /// Number of queries, each weighted by its trace.
    pub(crate) count: f64,
    /// Number of spans, unweighted.
    pub(crate) spans: usize,
    /// Median duration, nanoseconds.
    pub(crate) median_ns: f64,
    /// Median rows that came back; `None` if spans do not say.
    pub(crate) rows: Option<f64>,
}

impl<'a> Database<'a> {
    /// Durations of each query shape in an interval.
    pub(crate) fn taken(&self, interval: &Interval) -> BTreeMap<&'a str, QueryTimes> {
        let mut shapes: BTreeMap<&str, Vec<&SentQuery<'a>>> = BTreeMap::new();
        for sent in self.queries.iter().filter(|sent| interval.contains(sent.span().start_ns)) {
            let query: &'a Query<'a> = sent.query;
            shapes.entry(query.shape.text.as_str()).or_default().push(sent);
        }
        shapes.into_iter().map(|(shape, sent)| (shape, taken(&sent))).collect()
    }

    /// The queries of one shape in an interval, the longest first.
    pub(crate) fn longest(&self, shape: &str, interval: &Interval) -> Vec<SentQuery<'a>> {
        let meant = |sent: &&SentQuery<'a>| sent.query.shape.text == shape && interval.contains(sent.span().start_ns);
        let mut found: Vec<SentQuery<'a>> = self.queries.iter().filter(meant).copied().collect();
        found.sort_by_key(|sent| std::cmp::Reverse(sent.span().duration_ns()));
        found
    }
}

fn taken(all: &[&SentQuery<'_>]) -> QueryTimes {
    let known = all.iter().filter_map(|sent| Some((sent.span().facts.db_rows? as f64, sent.trace.weight)));
    let rows: Vec<(f64, f64)> = known.collect();
    QueryTimes {
        count: all.iter().map(|sent| sent.trace.weight).sum(),
        spans: all.len(),
        median_ns: weighted_median(
            all.iter().map(|sent| (sent.span().duration_ns() as f64, sent.trace.weight)).collect(),
        ),
        rows: (!rows.is_empty()).then(|| weighted_median(rows)),
    }
}

/// The databases that these requests query, by name.
pub(crate) fn databases<'a>(reading: &Reading<'a>) -> Vec<Database<'a>> {
    let trial: &'a TrialEvidence = reading.trial;
    let mut found: BTreeMap<&'a str, (Database<'a>, f64, f64)> = BTreeMap::new();
    for request in reading.requests {
        for query in &request.queries {
            let span: &'a Span = query.span;
            let service = service_of(trial, span);
            let name = name_of(trial, span);
            let entry = found.entry(name).or_insert_with(|| {
                let system = span.facts.db_system.as_deref();
                let is_service = service.is_some();
                (Database { name, is_service, system, queries: Vec::new(), refused_share: 0.0 }, 0.0, 0.0)
            });
            entry.2 += request.trace.weight;
            if crate::read::calls::is_throttled(span) {
                entry.1 += request.trace.weight;
            } else if span.status != SpanStatus::Error {
                entry.0.queries.push(SentQuery { trace: request.trace, query, client: &request.entry.service });
            }
        }
    }
    let share = |refused: f64, all: f64| if all > 0.0 { refused / all } else { 0.0 };
    let finished = |(database, refused, all)| Database { refused_share: share(refused, all), ..database };
    found.into_values().map(finished).collect()
}

/// The name of the database that a span queries: as the trial names it, else as the span does.
pub(crate) fn name_of<'a>(trial: &'a TrialEvidence, span: &'a Span) -> &'a str {
    service_of(trial, span).or(span.facts.db_system.as_deref()).unwrap_or("the database")
}

fn service_of<'a>(trial: &'a TrialEvidence, span: &Span) -> Option<&'a str> {
    let by_port = trial.reached_at(span.facts.server_port);
    let by_program = || {
        let programs = trial.service_names().into_iter().filter(|service| is_database_program(trial, service));
        match &programs.collect::<Vec<&str>>()[..] {
            [only] if span.facts.server_port.is_none() => Some(*only),
            _ => None,
        }
    };
    by_port.map(|instance| instance.service.as_str()).or_else(by_program)
}
