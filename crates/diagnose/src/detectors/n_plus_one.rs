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
            caveats: self.caveats(),
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
mod tests {
    use narrows_model::trace::Trace;
    use narrows_testkit::spans::{
        Beat, SpanBuilder, client, database, document_query, internal, query, run_of, server,
    };
    use narrows_testkit::trial::TrialBuilder;

    use super::*;

    const ROW: &str = "SELECT name FROM customer WHERE id = $1";
    const BEAT: Beat = Beat { first_ms: 5.0, step_ms: 5.0, length_ms: 3.0 };

    fn orders(children: Vec<SpanBuilder>) -> SpanBuilder {
        let source = query("SELECT id, customer_id FROM orders LIMIT 50").at(1.0, 2.0);
        server("shop", "GET /orders").at(0.0, 100.0).child(source).children(children)
    }

    fn detect(traces: impl IntoIterator<Item = Trace>) -> Vec<Finding> {
        crate::detect(&NPlusOne, &TrialBuilder::new("a").traces(traces).build(), &Thresholds::default())
    }

    fn detect_in_each(children: Vec<SpanBuilder>) -> Vec<Finding> {
        detect((0..10).map(|number| orders(children.clone()).trace(number)))
    }

    fn with_noise_between(noise: SpanBuilder) -> Vec<SpanBuilder> {
        let mut children = run_of(10, BEAT, |_| query(ROW));
        children.extend(run_of(10, Beat { first_ms: 8.5, length_ms: 0.5, ..BEAT }, |_| noise.clone()));
        children
    }

    #[test]
    fn one_query_per_row_is_named_with_its_evidence() {
        let findings = detect_in_each(run_of(10, BEAT, |_| query(ROW)));
        let [finding] = &findings[..] else { panic!("one finding, not {findings:?}") };
        assert_eq!(finding.title, "GET /orders fetches rows one at a time: 10 similar queries in each request");
        assert_eq!((finding.resource.as_str(), finding.operation.as_deref()), ("shop", Some("GET /orders")));
        assert_eq!(finding.cost_share, 0.48);
        assert_eq!(finding.confidence, Confidence::High);
        assert_eq!(finding.exemplars.len(), 3);
        assert_eq!(finding.exemplars[0].span_ids.len(), 5);
        let text = finding.evidence_text.as_deref().unwrap();
        assert!(
            text.starts_with(
                "SELECT name FROM customer WHERE id = ?\n\nas sent: SELECT name FROM customer WHERE id = $1"
            )
        );
        assert!(finding.advice.contains("selectinload") && finding.advice.contains("GET /orders"));
    }

    #[test]
    fn it_fires_through_what_stands_between() {
        let doubled = |scope: &str| {
            let mut children = run_of(10, BEAT, |_| query(ROW).scope("sqlalchemy"));
            children.extend(run_of(10, Beat { first_ms: 5.1, length_ms: 2.8, ..BEAT }, |_| query(ROW).scope(scope)));
            children
        };
        let wrapped =
            |i: usize| internal("CustomerRepository.findById").child(query(ROW).at(5.5 + 5.0 * i as f64, 2.0));
        let cases = [
            ("pool connects", with_noise_between(database("pg-pool.connect")), 10.0),
            ("transactions", with_noise_between(query("BEGIN")), 10.0),
            ("sent pieces", with_noise_between(internal("GET /orders http send")), 10.0),
            ("middleware", with_noise_between(internal("middleware - json")), 10.0),
            ("a call to another service", with_noise_between(client("GET")), 10.0),
            ("a second library", doubled("psycopg2"), 10.0),
            ("a repository per row", run_of(10, BEAT, wrapped), 10.0),
            ("literal values", run_of(10, BEAT, |i| query(&format!("SELECT a FROM t WHERE id = {i}"))), 10.0),
            ("the least number", run_of(5, BEAT, |_| query(ROW)), 5.0),
            ("parallel queries", run_of(10, Beat { step_ms: 0.1, ..BEAT }, |_| query(ROW)), 10.0),
            ("writes", run_of(10, BEAT, |_| query("INSERT INTO line (a) VALUES ($1)")), 10.0),
        ];
        for (name, children, count) in cases {
            let findings = detect_in_each(children);
            assert_eq!(findings.len(), 1, "with {name}: {findings:#?}");
            assert_eq!(findings[0].numbers[0].value, count, "with {name}");
        }
    }

    #[test]
    fn what_a_cache_answers_is_no_sign_against_it() {
        let asking = |number| orders(run_of(10, BEAT, |_| query(ROW))).trace(number);
        let cached = |number| server("shop", "GET /orders").at(0.0, 1.0).trace(number);
        let mixed = |asking_of_ten: u32| {
            detect((0..100).map(|number| if number % 10 < asking_of_ten { asking(number) } else { cached(number) }))
        };
        assert_eq!((mixed(1).len(), mixed(10).len()), (1, 1));
        assert!(mixed(1)[0].reasons[0].starts_with("100 % of the traces of GET /orders that query a database show it"));
        let rare = detect((0..100).map(|number| if number % 33 == 0 { asking(number) } else { cached(number) }));
        assert_eq!(rare, [], "few enough do not matter");
    }

    #[test]
    fn double_instrumentation_is_said() {
        let mut children = run_of(10, BEAT, |_| query(ROW).scope("sqlalchemy"));
        children.extend(run_of(10, Beat { first_ms: 5.1, length_ms: 2.8, ..BEAT }, |_| query(ROW).scope("psycopg2")));
        let findings = detect_in_each(children);
        assert!(findings[0].ruled_out[0].contains("2 spans for each query (sqlalchemy, psycopg2)"));
    }

    #[test]
    fn healthy_programs_are_left_alone() {
        let prefetch = vec![query("SELECT name FROM customer WHERE id IN ($1, $2, $3, $4, $5, $6)").at(5.0, 30.0)];
        let mut different = Vec::new();
        for (i, table) in ["a", "b", "c", "d", "e", "f", "g"].iter().enumerate() {
            different.push(query(&format!("SELECT x FROM {table} WHERE id = $1")).at(5.0 + 5.0 * i as f64, 4.0));
        }
        let four_twice = ["sqlalchemy", "psycopg2"].map(|scope| run_of(4, BEAT, |_| query(ROW).scope(scope))).concat();
        let cases = [
            ("nothing else", vec![]),
            ("four queries", run_of(4, BEAT, |_| query(ROW))),
            ("four queries of two libraries", four_twice),
            ("a prefetch", prefetch),
            ("different queries", different),
            ("batches", run_of(8, BEAT, |_| query("SELECT name FROM customer WHERE id IN ($1, $2, $3)"))),
            ("pages", run_of(8, BEAT, |_| query("SELECT id FROM orders ORDER BY id LIMIT 10 OFFSET $1"))),
            ("polling", run_of(8, BEAT, |_| query("SELECT count(*) FROM job"))),
            ("connects only", run_of(12, BEAT, |_| database("connect"))),
            ("pings", run_of(12, BEAT, |_| query("SELECT 1"))),
            ("calls that are no queries", run_of(12, BEAT, |_| client("GET"))),
        ];
        for (name, children) in cases {
            assert_eq!(detect_in_each(children), [], "with {name}");
        }
    }

    #[test]
    fn one_question_to_every_partition_is_another_cause() {
        let text = "SELECT VALUE SUM(c.hours) FROM c WHERE c.owner = @owner";
        let partition = |i: usize| document_query(text, &i.to_string());
        assert_eq!(detect_in_each(run_of(9, BEAT, partition)), []);
        let mut refused = run_of(9, BEAT, partition);
        refused.push(partition(9).throttled(Some(1.0)).at(50.0, 1.0));
        refused.push(partition(9).at(53.0, 1.0));
        assert_eq!(detect_in_each(refused), [], "a partition that is asked again after a refusal");
        let row = |i: usize| partition(i).attribute("db.query.parameter.owner", i as u64);
        assert_eq!(detect_in_each(run_of(9, BEAT, row)).len(), 1, "another row in each partition");
        assert_eq!(detect_in_each(run_of(9, BEAT, |i| partition(i % 4))).len(), 1, "partitions that come again");
    }

    #[test]
    fn without_a_query_before_it_is_silent() {
        let bare = server("shop", "GET /orders").at(0.0, 100.0).children(run_of(10, BEAT, |_| query(ROW)));
        assert_eq!(detect((0..10).map(|number| bare.clone().trace(number))), []);
    }

    #[test]
    fn few_traces_or_a_small_share_of_them_are_not_enough() {
        let narrow = || orders(run_of(10, BEAT, |_| query(ROW)));
        let mixed = |bad: u32, all: u32| {
            detect((0..all).map(|n| if n >= all - bad { narrow() } else { orders(vec![]) }.trace(n)))
        };
        for (bad, all, fires) in [(2, 2, false), (3, 3, true), (3, 20, false), (4, 20, true), (19, 100, false)] {
            assert_eq!(mixed(bad, all).len(), usize::from(fires), "{bad} of {all}");
        }
        let weighted = (0..6)
            .map(|n| if n < 3 { narrow() } else { orders(vec![]) }.weighted_trace(n, if n < 3 { 1.0 } else { 50.0 }));
        assert_eq!(detect(weighted), []);
    }

    #[test]
    fn what_fills_a_cache_in_the_beginning_is_left_alone() {
        let filling = |n: u32| orders(if n < 8 { run_of(10, BEAT, |_| query(ROW)) } else { vec![] }).trace(n);
        assert_eq!(detect((0..20).map(filling)), []);
    }

    #[test]
    fn a_cheap_repetition_beside_much_other_work_is_silent() {
        let tiny = Beat { first_ms: 5.0, step_ms: 0.2, length_ms: 0.1 };
        let other = Beat { first_ms: 20.0, step_ms: 1.0, length_ms: 0.5 };
        let mut children = run_of(5, tiny, |_| query(ROW));
        children
            .extend((0..30).map(|i| query(&format!("SELECT a FROM t{i}")).at(20.0 + f64::from(i), other.length_ms)));
        assert_eq!(detect_in_each(children), []);
    }

    #[test]
    fn a_fast_repetition_that_is_most_of_the_database_load_fires() {
        let tiny = Beat { first_ms: 5.0, step_ms: 0.2, length_ms: 0.1 };
        let findings = detect_in_each(run_of(20, tiny, |_| query(ROW)));
        assert_eq!(findings.len(), 1);
        assert!(findings[0].cost_share < 0.05);
    }

    #[test]
    fn growth_with_the_result_is_said() {
        let traces = (0..10).map(|n| orders(run_of(6 + n as usize, BEAT, |_| query(ROW))).trace(n));
        let findings = detect(traces);
        assert!(findings[0].reasons.iter().any(|reason| reason.contains("from 6 to 15")), "{:?}", findings[0].reasons);
    }
}
