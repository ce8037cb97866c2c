//! `n-plus-one`: a request that asks the database once for each row of an earlier answer.
//!
//! Repetitions are found per request and judged per operation and statement over all traces of the trial, because one
//! odd request is no cause and because what saturates a database under load is the number of queries, even where each
//! is fast. What only the first requests of a trial do, to fill a cache, is no way to work: the later half of the
//! requests must show it as well. Requests that ask no database, such as those that a cache answers, are no sign against
//! it: the share is of those that do. The cost is the share of the operation's latency that the repetition takes, the program's own work
//! between the queries included. It is no promise: the query that replaces them takes time too.

use std::collections::BTreeMap;

use narrows_model::finding::{Confidence, Exemplar, Figure, Finding, FindingKind};
use narrows_model::units;

use crate::Detector;
use crate::reading::Reading;
use crate::repetition::{Repetition, repetitions};
use crate::requests::{Query, Request};
use crate::stats::weighted_median;
use crate::thresholds::Thresholds;
use crate::words::{EXEMPLARS_MAX, TEXT_CHARS_MAX, clipped, exemplar};

/// See the module.
#[derive(Debug)]
pub struct NPlusOne;

/// Enough of a statement to know it by; the whole of it stands in the evidence.
const STATEMENT_CHARS_MAX: usize = 60;
/// From this share of the operation's traces on, the pattern is how the operation works, not how some calls of it do.
const REGULAR_TRACE_SHARE: f64 = 0.5;
/// Share of all requests of the operation that must show it, those that ask no database included.
const TRACE_SHARE_MIN: f64 = 0.05;

impl Detector for NPlusOne {
    fn kind(&self) -> FindingKind {
        FindingKind::NPlusOne
    }

    fn version(&self) -> u32 {
        4
    }

    fn detect(&self, reading: &Reading<'_>) -> Vec<Finding> {
        let (requests, thresholds) = (reading.requests, reading.thresholds);
        let totals = Totals::of(requests);
        let mut groups: BTreeMap<(&str, String, &str), Vec<Sighting<'_>>> = BTreeMap::new();
        for request in requests {
            for repetition in repetitions(request, thresholds.n_plus_one_queries) {
                let key = (&*request.entry.service, request.operation(), &*repetition.queries[0].shape.text);
                groups.entry(key).or_default().push(Sighting { request, repetition });
            }
        }
        groups
            .into_iter()
            .map(|((service, operation, _), seen)| Case::new(service, operation, seen, &totals))
            .filter(|case| case.is_worth_saying(thresholds))
            .map(|case| case.finding(self, thresholds))
            .collect()
    }
}

/// What the trial's traces hold altogether, weighted.
struct Totals {
    queries: f64,
    by_operation: BTreeMap<(String, String), Requests>,
}

/// The requests of one operation.
#[derive(Debug, Clone, Copy)]
struct Requests {
    weight: f64,
    /// Those that ask a database.
    asking_weight: f64,
    /// Those of them that began in the later half of the time.
    late_weight: f64,
    first_ns: i64,
    last_ns: i64,
}

impl Requests {
    fn is_late(&self, start_ns: i64) -> bool {
        start_ns >= self.first_ns + self.last_ns.saturating_sub(self.first_ns) / 2
    }
}

impl Totals {
    fn of(requests: &[Request<'_>]) -> Self {
        let mut totals = Totals { queries: 0.0, by_operation: BTreeMap::new() };
        let key = |request: &Request<'_>| (request.entry.service.clone(), request.operation());
        for request in requests {
            let (weight, start_ns) = (request.trace.weight, request.entry.start_ns);
            totals.queries += weight * request.queries.len() as f64;
            let none =
                Requests { weight: 0.0, asking_weight: 0.0, late_weight: 0.0, first_ns: start_ns, last_ns: start_ns };
            let known = totals.by_operation.entry(key(request)).or_insert(none);
            known.weight += weight;
            known.asking_weight += if request.queries.is_empty() { 0.0 } else { weight };
            (known.first_ns, known.last_ns) = (known.first_ns.min(start_ns), known.last_ns.max(start_ns));
        }
        for request in requests.iter().filter(|request| !request.queries.is_empty()) {
            if let Some(known) =
                totals.by_operation.get_mut(&key(request)).filter(|k| k.is_late(request.entry.start_ns))
            {
                known.late_weight += request.trace.weight;
            }
        }
        totals
    }
}

/// A repetition and the request it was seen in.
struct Sighting<'a> {
    request: &'a Request<'a>,
    repetition: Repetition<'a>,
}

impl Sighting<'_> {
    fn count(&self) -> usize {
        self.repetition.queries.len()
    }

    fn latency_ns(&self) -> f64 {
        self.request.entry.duration_ns().max(1) as f64
    }

    fn exemplar(&self) -> Exemplar {
        exemplar(self.request.trace, self.repetition.queries.iter().map(|query| query.span))
    }

    fn cost_share(&self) -> f64 {
        (self.repetition.cost_ns as f64 / self.latency_ns()).min(1.0)
    }
}

/// One statement repeated in one operation, over all traces.
struct Case<'a> {
    service: &'a str,
    operation: String,
    seen: Vec<Sighting<'a>>,
    /// Of the operation's requests that ask a database.
    trace_share: f64,
    /// The same in the later half of the time.
    late_share: f64,
    /// Of all its requests.
    share_of_all: f64,
    query_share: f64,
}

impl<'a> Case<'a> {
    fn new(service: &'a str, operation: String, mut seen: Vec<Sighting<'a>>, totals: &Totals) -> Self {
        let weight: f64 = seen.iter().map(|s| s.request.trace.weight).sum();
        let queries: f64 = seen.iter().map(|s| s.request.trace.weight * s.count() as f64).sum();
        let of_operation = totals.by_operation.get(&(service.to_owned(), operation.clone())).copied();
        let is_late = |s: &&Sighting<'_>| of_operation.is_none_or(|all| all.is_late(s.request.entry.start_ns));
        let late: f64 = seen.iter().filter(is_late).map(|s| s.request.trace.weight).sum();
        seen.sort_by_key(|s| std::cmp::Reverse(s.request.entry.duration_ns()));
        let share = |part: f64, whole: f64| if whole > 0.0 { (part / whole).min(1.0) } else { 0.0 };
        let one = Requests { weight, asking_weight: weight, late_weight: late, first_ns: 0, last_ns: 0 };
        let all = of_operation.unwrap_or(one);
        Self {
            service,
            operation,
            trace_share: share(weight, all.asking_weight),
            late_share: share(late, all.late_weight),
            share_of_all: share(weight, all.weight),
            query_share: share(queries, totals.queries),
            seen,
        }
    }

    fn is_worth_saying(&self, thresholds: &Thresholds) -> bool {
        let is_common = self.seen.len() >= thresholds.n_plus_one_traces
            && self.share_of_all >= TRACE_SHARE_MIN
            && self.trace_share >= thresholds.n_plus_one_trace_share
            && self.late_share >= thresholds.n_plus_one_trace_share;
        let is_dear = self.busy_ns() >= thresholds.n_plus_one_time_ns
            || self.busy_share() >= thresholds.n_plus_one_latency_share
            || self.query_share >= thresholds.n_plus_one_query_share;
        is_common && is_dear
    }

    fn median(&self, value: impl Fn(&Sighting<'_>) -> f64) -> f64 {
        weighted_median(self.seen.iter().map(|s| (value(s), s.request.trace.weight)).collect())
    }

    fn busy_ns(&self) -> f64 {
        self.median(|s| s.repetition.busy_ns as f64)
    }

    fn busy_share(&self) -> f64 {
        self.median(|s| s.repetition.busy_ns as f64 / s.latency_ns())
    }

    fn counts(&self) -> (usize, usize, usize) {
        let counts = || self.seen.iter().map(Sighting::count);
        (counts().min().unwrap_or(0), self.median(|s| s.count() as f64) as usize, counts().max().unwrap_or(0))
    }

    fn example(&self) -> &'a Query<'a> {
        self.seen[0].repetition.queries[0]
    }

    fn values_differ(&self) -> bool {
        self.seen.iter().any(|s| s.repetition.values_differ)
    }

    fn finding(&self, detector: &NPlusOne, thresholds: &Thresholds) -> Finding {
        let (min, p50, max) = self.counts();
        let verb =
            if self.example().shape.is_write() { "writes rows one at a time" } else { "fetches rows one at a time" };
        Finding {
            title: format!("{} {verb}: {p50} similar queries in each request", self.operation),
            resource: self.service.into(),
            operation: Some(self.operation.clone()),
            cost_share: self.median(|s| s.cost_share()),
            cost_of: format!("of the latency of {}", self.operation),
            confidence: self.confidence(thresholds),
            reasons: self.reasons(),
            numbers: vec![
                Figure::new("queries in each request, median", p50 as f64, ""),
                Figure::new("queries in each request, smallest", min as f64, ""),
                Figure::new("queries in each request, largest", max as f64, ""),
                Figure::new("time of these queries, median", self.busy_ns(), "ns"),
                Figure::new(
                    "time of these queries and of the gaps between them, median",
                    self.median(|s| s.repetition.cost_ns as f64),
                    "ns",
                ),
                Figure::new("traces of the operation with queries that show it", self.trace_share * 100.0, "%"),
                Figure::new("share of all queries", self.query_share * 100.0, "%"),
            ],
            evidence_text: Some(self.evidence_text()),
            exemplars: self.seen.iter().take(EXEMPLARS_MAX).map(Sighting::exemplar).collect(),
            ruled_out: self.ruled_out(),
            falsified_by: format!(
                "The rows are fetched together and {} is as slow as before, or its traces still contain about {p50} of \
                 these queries.",
                self.operation
            ),
            advice: self.advice(),
            caveats: self.caveats().into_iter().map(Into::into).collect(),
            ..detector.finding()
        }
    }

    /// High when most requests show it and a second sign agrees: values differ, the number follows the result, or the
    /// queries fill a good part of the latency.
    fn confidence(&self, thresholds: &Thresholds) -> Confidence {
        let (min, _, max) = self.counts();
        let has_second_sign =
            self.values_differ() || max > min || self.busy_share() >= thresholds.n_plus_one_latency_share;
        let has_text = self.example().span.facts.db_query.is_some();
        if self.trace_share >= REGULAR_TRACE_SHARE && has_second_sign && has_text {
            Confidence::High
        } else {
            Confidence::Medium
        }
    }

    fn reasons(&self) -> Vec<String> {
        let (min, p50, max) = self.counts();
        let mut reasons = vec![format!(
            "{} of the traces of {} that query a database show it ({} traces): after another query, {p50} queries of \
             one shape follow under one parent.",
            units::percent(self.trace_share),
            self.operation,
            self.seen.len(),
        )];
        if max > min {
            reasons.push(format!(
                "Their number differs from request to request, from {min} to {max}, as it does when it depends on the \
                 rows of an earlier result."
            ));
        }
        if self.values_differ() {
            reasons.push("Each has different values.".into());
        }
        reasons
            .push(format!("They are {} of all queries in the traces of this trial.", units::percent(self.query_share)));
        reasons
    }

    fn evidence_text(&self) -> String {
        let query = self.example();
        let mut text = clipped(&query.shape.text, TEXT_CHARS_MAX);
        if !query.text.split_whitespace().eq(query.shape.text.split_whitespace()) {
            text += &format!("\n\nas sent: {}", clipped(query.text, TEXT_CHARS_MAX));
        }
        text + &format!("\n\nafter: {}", clipped(&self.seen[0].repetition.source.shape.text, TEXT_CHARS_MAX))
    }

    fn ruled_out(&self) -> Vec<String> {
        let queries = || self.seen.iter().flat_map(|s| &s.repetition.queries);
        let spans: usize = queries().map(|query| query.scopes.len()).sum();
        let factor = spans as f64 / queries().count().max(1) as f64;
        let scopes = self.example().scopes.join(", ");
        let double = if factor > 1.0 {
            format!("Double instrumentation: {} spans for each query ({scopes}), counted once.", units::number(factor))
        } else {
            format!("Double instrumentation: each query has one span ({scopes}).")
        };
        let housekeeping: usize = self.seen.iter().map(|s| s.request.housekeeping).sum();
        let mut ruled_out = vec![
            double,
            format!(
                "Connections, pools and transactions: {} such spans in these traces, none counted as a query.",
                units::count(housekeeping as u64)
            ),
            "Pages and batches: the statement has no offset, no cursor and no list of several values.".into(),
        ];
        if self.values_differ() {
            ruled_out.push("The same query repeated: the values differ.".into());
        }
        ruled_out
    }

    fn advice(&self) -> String {
        let place = format!("In the code behind {} of {}", self.operation, self.service);
        let statement = clipped(&self.example().shape.text, STATEMENT_CHARS_MAX);
        if self.example().shape.is_write() {
            return format!(
                "{place}, replace the repeated `{statement}` by one statement for all rows: a multi-row INSERT, a batch \
                 (JDBC addBatch, SQLAlchemy insertmanyvalues), or COPY."
            );
        }
        format!(
            "{place}, replace the repeated `{statement}` by one query for all rows: a JOIN with the query before it, \
             or one look-up with an IN list of the keys. With an object-relational mapper, use eager loading: \
             SQLAlchemy selectinload, JPA @EntityGraph or JOIN FETCH, Rails includes, Django prefetch_related; with \
             GraphQL a dataloader."
        )
    }

    fn caveats(&self) -> Vec<String> {
        let query = self.example();
        let mut caveats =
            vec!["The query that replaces these takes time too, so not all of the cost can be saved.".into()];
        if !self.values_differ() {
            caveats.push(
                "The traces do not record the values of the queries, so it is not shown that they differ.".into(),
            );
        }
        if query.span.facts.db_query.is_none() {
            caveats.push("The traces carry summaries of the queries, not their text.".into());
        }
        if query.shape.values_max == 1 {
            caveats.push("If the instrumentation shortens lists of values, this statement may be a batch.".into());
        }
        caveats
    }
}

#[cfg(test)]
mod tests;
