//! `duplicate-query`: a request repeats a query whose result it already has.
//!
//! For example, the filter, the permission check and the handler each load the user, or an object mapper loads an
//! entity in each of its sessions. The values must be known to be the same: the text has none or contains them, or they
//! are recorded, or the row counts agree in every request and differ between requests. One query per row of several is
//! `n-plus-one`. Repeats that only some requests have, or only those at the beginning, are not a finding. Nor are
//! repeats that take a small part of the time: each request pays for them, but they are not where it waits.

use std::collections::{BTreeMap, BTreeSet};

use narrows_model::finding::evidence::Counts;
use narrows_model::finding::evidence::duplicate_query::{self as evidence, Sameness};
use narrows_model::finding::{Caveat, Confidence, Evidence, Finding, FindingKind, Role};
use narrows_model::trace::SpanKind;

use crate::Detector;
use crate::exemplars::{EXEMPLARS_MAX, TEXT_CHARS_MAX, clipped, exemplar};
use crate::read::Reading;
use crate::read::calls::{Handled, Times, median_of};
use crate::read::databases::name_of;
use crate::stats::finite;
use crate::thresholds::{Thresholds, rule_thresholds};
use repeats::{RepeatedQuery, repeated};

mod repeats;
mod statements;
mod words;

rule_thresholds! {
    /// Requests that must show it.
    duplicate_query_requests: usize = 5;
    /// Share of the operation's requests with queries that must show it, also of those in the later half of the time.
    duplicate_query_request_share: f64 = 0.5;
    /// Share of the operation's latency that the repeats take.
    duplicate_query_share: f64 = 0.10;
    /// Time without any call before a query from which it reads a state again, nanoseconds.
    duplicate_query_pause_ns: i64 = 10_000_000;
}

/// See the module.
#[derive(Debug)]
pub struct DuplicateQuery;

/// Minimum number of requests whose row counts must agree, if nothing else shows that the values are the same.
const AGREEING_REQUESTS: usize = 10;
/// Maximum probability that the row counts of two requests agree by chance.
const AGREEING_BY_CHANCE: f64 = 0.5;

impl Detector for DuplicateQuery {
    fn kind(&self) -> FindingKind {
        FindingKind::DuplicateQuery
    }

    fn version(&self) -> u32 {
        1
    }

    fn request_cost_ns(&self, finding: &Finding) -> Option<f64> {
        let Evidence::DuplicateQuery(evidence) = &finding.evidence else { return None };
        Some(evidence.repeats_ns)
    }

    fn role(&self, _finding: &Finding) -> Role {
        Role::CostsMore
    }

    fn detect(&self, reading: &Reading<'_>) -> Vec<Finding> {
        let of_operation = reading.operations.iter().filter_map(|((service, operation), all)| {
            let candidate = Candidate::new(all, reading.thresholds)?;
            let is_worth_saying = candidate.share() >= reading.thresholds.duplicate_query.duplicate_query_share;
            is_worth_saying.then(|| candidate.finding(self, reading, service, operation))
        });
        of_operation.collect()
    }
}

/// A request and the queries that it repeats.
struct RepeatingRequest<'a> {
    handled: &'a Handled<'a>,
    repeated: Vec<RepeatedQuery<'a>>,
}

impl RepeatingRequest<'_> {
    fn weight(&self) -> f64 {
        self.handled.weight()
    }

    fn repeats(&self) -> usize {
        self.repeated.iter().map(|one| one.repeats.len()).sum()
    }

    /// Time with at least one repeat under way, nanoseconds.
    fn repeats_ns(&self) -> f64 {
        let end_ns = self.handled.request.entry.end_ns;
        let spans = self.repeated.iter().flat_map(|one| &one.repeats);
        Times::union_of(spans.map(|span| (span.start_ns, span.end_ns.min(end_ns)))).length_ns()
    }
}

/// Queries that the requests of one operation regularly repeat.
struct Candidate<'a> {
    /// Requests with repeats, those with most time in repeats first.
    seen: Vec<RepeatingRequest<'a>>,
    /// Share of requests with repeats, among the operation's requests that query a database.
    request_share: f64,
    /// Time of all requests of the operation, weighted by trace, nanoseconds.
    whole_ns: f64,
}

impl<'a> Candidate<'a> {
    /// Returns `None` if nothing is repeated regularly.
    fn new(all: &'a [Handled<'a>], thresholds: &Thresholds) -> Option<Self> {
        let repeated_in = |handled: &'a Handled<'a>| {
            let is_request = matches!(handled.request.entry.kind, SpanKind::Server | SpanKind::Consumer);
            let repeated = if is_request { repeated(handled.request, thresholds) } else { Vec::new() };
            (!repeated.is_empty()).then_some(RepeatingRequest { handled, repeated })
        };
        let mut seen: Vec<RepeatingRequest<'_>> = all.iter().filter_map(repeated_in).collect();
        let asking = QueryingRequests::new(all);
        let shapes: BTreeSet<String> =
            seen.iter().flat_map(|one| &one.repeated).map(|one| one.first.shape.text.clone()).collect();
        let regular: BTreeSet<String> =
            shapes.into_iter().filter(|shape| asking.is_regular(&seen, shape, thresholds)).collect();
        seen.iter_mut().for_each(|one| one.repeated.retain(|of| regular.contains(&of.first.shape.text)));
        seen.retain(|one| !one.repeated.is_empty());
        seen.sort_by(|a, b| b.repeats_ns().total_cmp(&a.repeats_ns()));
        let whole_ns = all.iter().map(|handled| handled.latency_ns() * handled.weight()).sum();
        let weight: f64 = seen.iter().map(RepeatingRequest::weight).sum();
        let request_share = if asking.weight > 0.0 { (weight / asking.weight).min(1.0) } else { 0.0 };
        (!seen.is_empty()).then_some(Self { seen, request_share, whole_ns })
    }

    fn median(&self, value: impl Fn(&RepeatingRequest<'_>) -> f64) -> f64 {
        median_of(&self.seen, |seen| (value(seen), seen.weight()))
    }

    /// Share of the operation's time spent in repeats.
    fn share(&self) -> f64 {
        let spent: f64 = self.seen.iter().map(|seen| seen.repeats_ns() * seen.weight()).sum();
        if self.whole_ns > 0.0 { (spent / self.whole_ns).min(1.0) } else { 0.0 }
    }

    fn counts(&self) -> Counts {
        let counts = || self.seen.iter().map(RepeatingRequest::repeats);
        Counts {
            least: counts().min().unwrap_or(0),
            median: self.median(|seen| seen.repeats() as f64) as usize,
            most: counts().max().unwrap_or(0),
        }
    }

    fn all_repeated(&self) -> impl Iterator<Item = (f64, &RepeatedQuery<'a>)> {
        self.seen.iter().flat_map(|seen| seen.repeated.iter().map(|one| (seen.weight(), one)))
    }

    /// Time in the repeats of each statement, by shape, weighted by trace, nanoseconds.
    fn by_shape(&self) -> BTreeMap<&str, f64> {
        let mut spent: BTreeMap<&str, f64> = BTreeMap::new();
        for (weight, one) in self.all_repeated() {
            let time_ns: f64 = one.repeats.iter().map(|span| span.duration_ns() as f64).sum();
            *spent.entry(&one.first.shape.text).or_default() += weight * time_ns;
        }
        spent
    }

    fn sameness(&self) -> Sameness {
        self.all_repeated().map(|(_, one)| one.sameness).max().unwrap_or_default()
    }

    fn finding(&self, detector: &DuplicateQuery, reading: &Reading<'_>, service: &str, operation: &str) -> Finding {
        let is_guess = self.sameness() == Sameness::Rows;
        let shown = |seen: &RepeatingRequest<'_>| {
            let pairs = seen.repeated.iter().flat_map(|one| [one.first.span].into_iter().chain(one.repeats.clone()));
            exemplar(seen.handled.request.trace, pairs)
        };
        Finding {
            resource: service.into(),
            operation: Some(operation.into()),
            cost_share: self.share(),
            confidence: if is_guess { Confidence::Medium } else { Confidence::High },
            exemplars: self.seen.iter().take(EXEMPLARS_MAX).map(shown).collect(),
            caveats: [Caveat::RowsMayChangeBetween]
                .into_iter()
                .chain(is_guess.then_some(Caveat::SameValuesReadFromRows))
                .collect(),
            ..Finding::new(self.evidence(reading), detector.version())
        }
    }

    fn evidence(&self, reading: &Reading<'_>) -> evidence::DuplicateQuery {
        let by_shape = self.by_shape();
        let dearest = by_shape.iter().max_by(|a, b| a.1.total_cmp(b.1)).map_or("", |(shape, _)| *shape);
        let of_it = || self.all_repeated().filter(|(_, one)| one.first.shape.text == dearest);
        let sends: Vec<(f64, f64)> = of_it().map(|(weight, one)| (one.repeats.len() as f64 + 1.0, weight)).collect();
        let example = of_it().map(|(_, one)| one.first).next();
        let queries: f64 =
            reading.requests.iter().map(|request| request.trace.weight * request.queries.len() as f64).sum();
        let repeats: f64 = self.seen.iter().map(|seen| seen.weight() * seen.repeats() as f64).sum();
        evidence::DuplicateQuery {
            traces: self.seen.len(),
            request_share: self.request_share,
            repeats: self.counts(),
            repeats_ns: self.median(|seen| seen.repeats_ns()),
            latency_ns: self.median(|seen| seen.handled.latency_ns()),
            query_share: finite(repeats / queries).min(1.0),
            statements: by_shape.len(),
            shape: clipped(dearest, TEXT_CHARS_MAX),
            sent: example.map_or_else(String::new, |query| clipped(query.text, TEXT_CHARS_MAX)),
            sends: median_of(&sends, |pair| *pair) as usize,
            database: example.map_or_else(String::new, |query| name_of(reading.trial, query.span).to_owned()),
            sameness: of_it().map(|(_, one)| one.sameness).max().unwrap_or_default(),
        }
    }
}

/// The requests of an operation that query a database.
struct QueryingRequests {
    weight: f64,
    late_weight: f64,
    /// Start of the later half of the time.
    late_from_ns: i64,
}

impl QueryingRequests {
    fn new(all: &[Handled<'_>]) -> Self {
        let asking = || all.iter().filter(|handled| !handled.request.queries.is_empty());
        let starts = || asking().map(|handled| handled.request.entry.start_ns);
        let (first_ns, last_ns) = (starts().min().unwrap_or(0), starts().max().unwrap_or(0));
        let late_from_ns = first_ns + last_ns.saturating_sub(first_ns) / 2;
        let late = asking().filter(|handled| handled.request.entry.start_ns >= late_from_ns);
        Self { weight: asking().map(Handled::weight).sum(), late_weight: late.map(Handled::weight).sum(), late_from_ns }
    }

    /// Whether most requests repeat this statement, also in the later half of the time.
    fn is_regular(&self, seen: &[RepeatingRequest<'_>], shape: &str, thresholds: &Thresholds) -> bool {
        let is_it = |one: &&RepeatedQuery<'_>| one.first.shape.text == shape;
        let with = || seen.iter().filter(|seen| seen.repeated.iter().any(|one| is_it(&one)));
        let late = with().filter(|seen| seen.handled.request.entry.start_ns >= self.late_from_ns);
        let (weight, late_weight): (f64, f64) =
            (with().map(RepeatingRequest::weight).sum(), late.map(RepeatingRequest::weight).sum());
        let share = thresholds.duplicate_query.duplicate_query_request_share;
        let repeated: Vec<&RepeatedQuery<'_>> = with().flat_map(|seen| seen.repeated.iter().filter(is_it)).collect();
        with().count() >= thresholds.duplicate_query.duplicate_query_requests
            && weight >= share * self.weight
            && late_weight >= share * self.late_weight
            && are_same(&repeated)
    }
}

/// Whether the values are known to be the same, or the row counts cannot agree by chance.
fn are_same(repeated: &[&RepeatedQuery<'_>]) -> bool {
    let unknown: Vec<&&RepeatedQuery<'_>> = repeated.iter().filter(|one| one.sameness == Sameness::Rows).collect();
    let mut requests_by_rows: BTreeMap<Option<u64>, f64> = BTreeMap::new();
    for one in &unknown {
        *requests_by_rows.entry(one.first.span.facts.db_rows).or_default() += 1.0;
    }
    let all = unknown.len() as f64;
    let by_chance: f64 = requests_by_rows.values().map(|requests| (requests / all).powi(2)).sum();
    let agree = || unknown.iter().all(|one| one.rows_agree);
    unknown.is_empty() || unknown.len() >= AGREEING_REQUESTS && agree() && by_chance <= AGREEING_BY_CHANCE
}

#[cfg(test)]
mod tests;
