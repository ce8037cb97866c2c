//! Queries of a request whose result it already has.
//!
//! A repeat is the same read at the same place, with nothing in between that can change its result: no write to a table
//! that it mentions, no failure or rollback after which work starts again, no call that may write elsewhere, and no
//! pause, as when polling a state that another process changes. A query that starts while the previous one is under way
//! may be the same query, reported by a second library, and is not a repeat.

use std::collections::{BTreeMap, HashSet};

use narrows_model::finding::evidence::duplicate_query::Sameness;
use narrows_model::trace::Span;

use super::statements::{is_read, leaves_alone, sameness_of};
use crate::read::calls::went_wrong;
use crate::read::repetition::values_of;
use crate::read::requests::{Query, Request, is_database};
use crate::thresholds::Thresholds;

/// A query that a request sends several times.
#[derive(Debug)]
pub(super) struct RepeatedQuery<'a> {
    pub(super) first: &'a Query<'a>,
    /// The repeats after the first query: at least one, in order of start.
    pub(super) repeats: Vec<&'a Span>,
    pub(super) sameness: Sameness,
    /// Whether all of them report the same number of rows.
    pub(super) rows_agree: bool,
}

/// Queries that a request repeats, in no particular order, including those whose values are unknown.
pub(super) fn repeated<'a>(request: &'a Request<'a>, thresholds: &Thresholds) -> Vec<RepeatedQuery<'a>> {
    let groups: Vec<Vec<&Query<'_>>> = groups(request, thresholds);
    if groups.is_empty() {
        return Vec::new();
    }
    let course = Course::new(request, thresholds);
    groups.into_iter().filter_map(|queries| course.repeated(&queries)).collect()
}

/// Reads that the request sends at least twice with the same text and recorded values to the same place.
fn groups<'a>(request: &'a Request<'a>, thresholds: &Thresholds) -> Vec<Vec<&'a Query<'a>>> {
    let mut by_shape: BTreeMap<&str, Vec<&Query<'_>>> = BTreeMap::new();
    for query in request.queries.iter().filter(|query| !went_wrong(query.span) && is_read(query)) {
        by_shape.entry(&query.shape.text).or_default().push(query);
    }
    let mut found = Vec::new();
    for queries in by_shape.into_values().filter(|queries| queries.len() > 1) {
        let mut by_values: BTreeMap<_, Vec<&Query<'_>>> = BTreeMap::new();
        for query in &queries {
            by_values.entry((values_of(query), place_of(query.span))).or_default().push(query);
        }
        let are_unlike = by_values.len() > 1 || sameness_of(queries[0]) == Sameness::Rows;
        // One query per row of several: `n-plus-one`.
        if !are_unlike || queries.len() < thresholds.n_plus_one.n_plus_one_queries {
            found.extend(by_values.into_values().filter(|queries| queries.len() > 1));
        }
    }
    found
}

type Place<'a> = (Option<&'a str>, Option<&'a str>, Option<u16>, Option<&'a str>);

fn place_of(span: &Span) -> Place<'_> {
    let facts = &span.facts;
    let namespace = facts.db_namespace.as_deref();
    (namespace, facts.server_address.as_deref(), facts.server_port, facts.db_partition.as_deref())
}

/// Events of a request that end the validity of earlier results.
struct Course<'a> {
    request: &'a Request<'a>,
    /// Starts of failures, rollbacks and calls that may write, in order.
    breaks: Vec<i64>,
    pause_ns: i64,
}

impl<'a> Course<'a> {
    fn new(request: &'a Request<'a>, thresholds: &Thresholds) -> Self {
        let service = &request.entry.service;
        let own = request.trace.spans.iter().filter(|span| span.service == *service);
        let calls: HashSet<_> = request.other_calls.iter().map(|span| span.span_id).collect();
        let is_break = |span: &&Span| {
            let may_write = calls.contains(&span.span_id) && !is_safe(span);
            span.span_id != request.entry.span_id && (went_wrong(span) || is_rollback(span) || may_write)
        };
        let mut breaks: Vec<i64> = own.filter(is_break).map(|span| span.start_ns).collect();
        breaks.sort_unstable();
        Self { request, breaks, pause_ns: thresholds.duplicate_query.duplicate_query_pause_ns }
    }

    fn repeated(&self, queries: &[&'a Query<'a>]) -> Option<RepeatedQuery<'a>> {
        let (mut last, mut repeats) = (*queries.first()?, Vec::new());
        for query in queries[1..].iter().copied().filter(|query| query.span.start_ns < self.request.entry.end_ns) {
            if query.span.start_ns < last.span.end_ns {
                continue;
            }
            if self.is_repeat(last, query) {
                repeats.push(query.span);
            }
            last = query;
        }
        let rows = |query: &Query<'_>| query.span.facts.db_rows;
        let rows_agree = rows(queries[0]).is_some() && queries.iter().all(|query| rows(query) == rows(queries[0]));
        let shape = &queries[0].shape;
        let is_part = shape.is_page() || shape.is_batch();
        let sameness = sameness_of(queries[0]);
        let tells_nothing = repeats.is_empty() || sameness == Sameness::Rows && is_part;
        (!tells_nothing).then_some(RepeatedQuery { first: queries[0], repeats, sameness, rows_agree })
    }

    fn is_repeat(&self, before: &Query<'_>, query: &Query<'_>) -> bool {
        let (from_ns, to_ns) = (before.span.start_ns, query.span.start_ns);
        let is_between = |span: &Span| from_ns < span.start_ns && span.start_ns <= to_ns;
        let is_broken = self.breaks.iter().any(|at| from_ns < *at && *at <= to_ns);
        let mut others = self.request.queries.iter().filter(|other| is_between(other.span));
        let rows = (before.span.facts.db_rows, query.span.facts.db_rows);
        let has_other_rows = matches!(rows, (Some(one), Some(two)) if one != two);
        !is_broken
            && !has_other_rows
            && !self.waits_before(query)
            && others.all(|other| std::ptr::eq(other, query) || leaves_alone(other, &query.shape))
    }

    /// Whether the request made no call for a while before this query, and for longer than the query takes.
    fn waits_before(&self, query: &Query<'_>) -> bool {
        let at_ns = query.span.start_ns;
        let queries = self.request.queries.iter().map(|query| query.span);
        let calls = queries.chain(self.request.other_calls.iter().copied());
        let reached = calls.filter(|call| call.start_ns < at_ns).map(|call| call.end_ns.min(at_ns)).max();
        let idle_ns = reached.map_or(0, |reached| at_ns.saturating_sub(reached));
        idle_ns >= self.pause_ns && idle_ns.unsigned_abs() >= query.span.duration_ns()
    }
}

/// Whether a call is safe by its HTTP method.
fn is_safe(span: &Span) -> bool {
    !is_database(span) && matches!(span.facts.http_method.as_deref(), Some("GET" | "HEAD" | "OPTIONS"))
}

fn is_rollback(span: &Span) -> bool {
    let is_so = |text: &str| text.trim_start().get(..8).is_some_and(|word| word.eq_ignore_ascii_case("rollback"));
    is_so(&span.name) || span.facts.db_query.as_deref().is_some_and(is_so)
}
