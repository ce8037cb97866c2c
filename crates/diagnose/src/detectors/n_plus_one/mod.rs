//! `n-plus-one`: a request queries the database once for each row of an earlier result, or writes rows one at a time.
//!
//! Repetitions are found per request, and judged per operation and statement over all traces of the trial: one odd
//! request is not a cause, and the number of queries saturates a database under load even if each is fast. Repetitions
//! of the first requests only, which fill a cache, do not count: the later half of the requests must show them too.
//! Requests without a query, such as those served by a cache, are no evidence against it: the share is of requests with
//! queries. The cost is the share of the operation's latency that the queries, their waits and short gaps after them
//! take. The gain is smaller, because the replacing query takes time too.

use std::collections::BTreeMap;

use narrows_model::finding::evidence::Counts;
use narrows_model::finding::evidence::n_plus_one::{self as evidence, Access, Statement, Values};
use narrows_model::finding::{Caveat, Confidence, Evidence, Exemplar, Finding, FindingKind};

use crate::Detector;
use crate::exemplars::{EXEMPLARS_MAX, TEXT_CHARS_MAX, clipped, exemplar};
use crate::read::Reading;
use crate::read::repetition::{Repetition, repetitions};
use crate::read::requests::{Query, Request, cut_at_end};
use crate::stats::weighted_median;
use crate::thresholds::{Thresholds, rule_thresholds};
use totals::{Requests, Totals};

mod totals;
mod words;

rule_thresholds! {
    /// Queries of one shape under one parent that count as a repetition.
    n_plus_one_queries: usize = 5;
    /// Traces that must show it.
    n_plus_one_traces: usize = 3;
    /// Share of the operation's traces with queries that must show it.
    n_plus_one_trace_share: f64 = 0.20;
    /// Median time in the repeated queries of one request that is enough for a finding, nanoseconds.
    n_plus_one_time_ns: f64 = 50e6;
    /// Share of the operation's latency that is enough for a finding.
    n_plus_one_latency_share: f64 = 0.20;
    /// Share of all the trial's queries that is enough for a finding.
    n_plus_one_query_share: f64 = 0.20;
}

/// See the module.
#[derive(Debug)]
pub struct NPlusOne;

/// Share of the operation's traces from which the pattern counts as regular.
const REGULAR_TRACE_SHARE: f64 = 0.5;
/// Minimum share of all requests of the operation, including those without a query, that must show the repetition.
const TRACE_SHARE_MIN: f64 = 0.05;

impl Detector for NPlusOne {
    fn kind(&self) -> FindingKind {
        FindingKind::NPlusOne
    }

    fn version(&self) -> u32 {
        6
    }

    fn request_cost_ns(&self, finding: &Finding) -> Option<f64> {
        let Evidence::NPlusOne(evidence) = &finding.evidence else { return None };
        Some(evidence.cost_ns)
    }

    fn detect(&self, reading: &Reading<'_>) -> Vec<Finding> {
        let (requests, thresholds) = (reading.requests, reading.thresholds);
        let totals = Totals::new(requests);
        let mut groups: BTreeMap<(&str, String, &str), Vec<Sighting<'_>>> = BTreeMap::new();
        for request in requests {
            for repetition in repetitions(request, thresholds) {
                let key = (&*request.entry.service, request.operation(), &*repetition.queries[0].shape.text);
                groups.entry(key).or_default().push(Sighting { request, repetition });
            }
        }
        groups
            .into_iter()
            .map(|((service, operation, _), seen)| Candidate::new(service, operation, seen, &totals))
            .filter(|candidate| candidate.is_worth_saying(thresholds))
            .map(|candidate| candidate.finding(self, thresholds))
            .collect()
    }
}

/// A repetition and its request.
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
struct Candidate<'a> {
    service: &'a str,
    operation: String,
    seen: Vec<Sighting<'a>>,
    /// Share of requests with the repetition, among the operation's requests that query a database.
    trace_share: f64,
    /// The same share in the later half of the time.
    late_share: f64,
    /// Share of requests with the repetition, among all requests of the operation.
    share_of_all: f64,
    query_share: f64,
}

impl<'a> Candidate<'a> {
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
        let is_common = self.seen.len() >= thresholds.n_plus_one.n_plus_one_traces
            && self.share_of_all >= TRACE_SHARE_MIN
            && self.trace_share >= thresholds.n_plus_one.n_plus_one_trace_share
            && self.late_share >= thresholds.n_plus_one.n_plus_one_trace_share;
        let is_dear = self.busy_ns() >= thresholds.n_plus_one.n_plus_one_time_ns
            || self.busy_share() >= thresholds.n_plus_one.n_plus_one_latency_share
            || self.query_share >= thresholds.n_plus_one.n_plus_one_query_share;
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

    fn counts(&self) -> Counts {
        let counts = || self.seen.iter().map(Sighting::count);
        Counts {
            least: counts().min().unwrap_or(0),
            median: self.median(|s| s.count() as f64) as usize,
            most: counts().max().unwrap_or(0),
        }
    }

    fn example(&self) -> &'a Query<'a> {
        self.seen[0].repetition.queries[0]
    }

    fn values_differ(&self) -> bool {
        self.seen.iter().any(|s| s.repetition.values_differ)
    }

    fn finding(&self, detector: &NPlusOne, thresholds: &Thresholds) -> Finding {
        Finding {
            resource: self.service.into(),
            operation: Some(self.operation.clone()),
            cost_share: self.median(|s| s.cost_share()),
            confidence: self.confidence(thresholds),
            exemplars: self.seen.iter().take(EXEMPLARS_MAX).map(Sighting::exemplar).collect(),
            caveats: self.caveats(),
            ..Finding::new(self.evidence(), detector.version())
        }
    }

    fn evidence(&self) -> evidence::NPlusOne {
        let queries = || self.seen.iter().flat_map(|s| &s.repetition.queries);
        let spans: usize = queries().map(|query| query.scopes.len()).sum();
        evidence::NPlusOne {
            traces: self.seen.len(),
            trace_share: self.trace_share,
            query_share: self.query_share,
            queries: self.counts(),
            latency_ns: self.median(|s| s.latency_ns()),
            busy_ns: self.busy_ns(),
            cost_ns: self.median(|s| s.repetition.cost_ns as f64),
            statement: self.statement(),
            after: self.seen[0].repetition.source.map(|source| clipped(&source.shape.text, TEXT_CHARS_MAX)),
            values: if self.values_differ() { Values::Different } else { Values::NotRecorded },
            spans_per_query: spans as f64 / queries().count().max(1) as f64,
            scopes: self.example().scopes.iter().map(|scope| (*scope).to_owned()).collect(),
            housekeeping_spans: self.seen.iter().map(|s| s.request.housekeeping.len()).sum(),
        }
    }

    fn statement(&self) -> Statement {
        let query = self.example();
        let reads_alike = query.text.split_whitespace().eq(query.shape.text.split_whitespace());
        Statement {
            shape: clipped(&query.shape.text, TEXT_CHARS_MAX),
            sent: (!reads_alike).then(|| clipped(query.text, TEXT_CHARS_MAX)),
            access: if query.shape.is_write() { Access::Write } else { Access::Read },
            system: query.span.facts.db_system.clone(),
        }
    }

    /// High if most requests show it and a second sign agrees: values differ, the number of queries varies, or the
    /// queries take much of the latency.
    fn confidence(&self, thresholds: &Thresholds) -> Confidence {
        let has_second_sign = self.values_differ()
            || self.counts().vary()
            || self.busy_share() >= thresholds.n_plus_one.n_plus_one_latency_share;
        let has_text = self.example().span.facts.db_query.is_some();
        if self.trace_share >= REGULAR_TRACE_SHARE && has_second_sign && has_text {
            Confidence::High
        } else {
            Confidence::Medium
        }
    }

    fn caveats(&self) -> Vec<Caveat> {
        let query = self.example();
        let conditional = [
            (!self.values_differ(), Caveat::QueryValuesNotRecorded),
            (query.span.facts.db_query.is_none(), Caveat::QueryTextsNotRecorded),
            (query.shape.values_max == 1, Caveat::StatementMayBeBatch),
        ];
        let applicable = conditional.into_iter().filter_map(|(applies, caveat)| applies.then_some(caveat));
        let spans = self.seen.iter().flat_map(|s| s.repetition.queries.iter().map(|query| (s.request, query.span)));
        [Caveat::ReplacingQueryTakesTime].into_iter().chain(applicable).chain(cut_at_end(spans)).collect()
    }
}

#[cfg(test)]
mod tests;
