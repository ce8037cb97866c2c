//! Queries that one request repeats, and the part of its time that the repetition takes.
//!
//! The cost of a repetition is more than the time in its queries: between two of them the program turns rows into
//! objects, waits for a connection and builds the next statement. The rule for dividing a request's time, from the
//! first repeated query's start to the last one's end: an instant belongs to the call that is in progress, to the one
//! that began first when several are; a short gap without a call belongs to the call that ended last before it. So two
//! repetitions that alternate share the time between them, and no instant is counted twice. A gap is short if it is not
//! longer than the call before it or than 2 ms. In a longer one the program does work of its own, which would remain
//! without the queries; of such a gap only the waits for a connection count, where spans show them.
//!
//! A query that repeats without any values, or with the same ones each time, is no repetition in this sense (polling, a
//! look-up without a cache), nor is one that fetches the next page or a batch, nor one that goes to every partition of a
//! store. A query that failed and is made again counts once. Reads repeat after a query that may have returned their
//! keys; writes need none before them, because their rows may have come with the request. Such writes follow one another:
//! with pauses between them they report on other work, and a statement that names one row in all of them has one row.

use std::collections::{BTreeMap, HashSet};

use narrows_model::trace::{Span, SpanId};

use crate::read::calls::{Times, went_wrong};
use crate::read::requests::{Query, Request};
use crate::thresholds::Thresholds;

/// One statement, repeated within one request.
#[derive(Debug)]
pub(crate) struct Repetition<'a> {
    /// The repeated queries in order of start.
    pub(crate) queries: Vec<&'a Query<'a>>,
    /// The last query of another shape before the first of them; writes may have none.
    pub(crate) source: Option<&'a Query<'a>>,
    /// Time when at least one of them was under way, nanoseconds.
    pub(crate) busy_ns: u64,
    /// Time of the request that is theirs by the rule of this module, nanoseconds.
    pub(crate) cost_ns: u64,
    /// True if their values are known to differ; otherwise the values are not recorded.
    pub(crate) values_differ: bool,
}

/// Length up to which a gap after a quick query counts as its consequence, nanoseconds.
pub(crate) const SHORT_GAP_NS: i64 = 2_000_000;

/// The repetitions in a request: a number of queries of one shape under one logical parent.
pub(crate) fn repetitions<'a>(request: &'a Request<'a>, thresholds: &Thresholds) -> Vec<Repetition<'a>> {
    let queries_min = thresholds.n_plus_one.n_plus_one_queries;
    let mut by_shape: BTreeMap<&str, BTreeMap<SpanId, Vec<&Query<'_>>>> = BTreeMap::new();
    for query in request.queries.iter().filter(|query| !went_wrong(query.span)) {
        by_shape.entry(&query.shape.text).or_default().entry(query.parent).or_default().push(query);
    }
    let mut found = Vec::new();
    for parents in by_shape.into_values() {
        let mut queries: Vec<&Query<'_>> =
            parents.into_values().filter(|queries| queries.len() >= queries_min).flatten().collect();
        queries.sort_by_key(|query| query.span.start_ns);
        found.extend(repetition(request, queries, thresholds));
    }
    found
}

fn repetition<'a>(
    request: &'a Request<'a>,
    queries: Vec<&'a Query<'a>>,
    thresholds: &Thresholds,
) -> Option<Repetition<'a>> {
    let first = queries.first()?;
    let is_batch = |query: &Query<'_>| query.span.facts.batch_size.is_some_and(|size| size > 1);
    if queries.iter().any(|query| query.shape.is_batch() || query.shape.is_page() || is_batch(query)) {
        return None;
    }
    let values_differ = values_differ(&queries)?;
    if !values_differ && is_fan_out(&queries) {
        return None;
    }
    let is_source =
        |query: &&Query<'_>| query.shape.text != first.shape.text && query.span.start_ns <= first.span.start_ns;
    let source = request.queries.iter().rev().find(is_source);
    let is_write = first.shape.is_write();
    let stands_alone = || is_write && !pauses(&queries, thresholds);
    if is_write && has_one_row(&queries) || source.is_none() && !stands_alone() {
        return None;
    }
    let (busy_ns, cost_ns) = time_taken(request, &queries);
    Some(Repetition { source, busy_ns, cost_ns, values_differ, queries })
}

/// Whether the repeated queries select different rows; `None` if it is known that they do not.
fn values_differ(queries: &[&Query<'_>]) -> Option<bool> {
    let values: HashSet<String> = queries.iter().map(|query| values_of(query)).collect();
    // A query that is known only by its summary or name shows no values either.
    let are_bound = queries.iter().all(|query| query.shape.placeholders > 0 || query.span.facts.db_query.is_none());
    let are_recorded = queries.iter().all(|query| bound_values(query.span).next().is_some());
    match values.len() {
        1 if are_bound && !are_recorded => Some(false),
        1 => None,
        _ => Some(true),
    }
}

/// True if each of these writes names the same row, by values that are written out after its `WHERE`.
fn has_one_row(queries: &[&Query<'_>]) -> bool {
    fn condition(text: &str) -> Option<&str> {
        text.to_ascii_lowercase().rfind("where ").map(|at| &text[at..])
    }
    let of_first = queries.first().and_then(|query| condition(query.text));
    of_first.is_some_and(|first| queries.iter().all(|query| condition(query.text) == Some(first)))
        && queries.iter().all(|query| query.shape.placeholders == 0)
}

/// True if the request mostly does something else between these, for longer than they take.
fn pauses(queries: &[&Query<'_>], thresholds: &Thresholds) -> bool {
    let is_pause = |pair: &&[&Query<'_>]| {
        let idle_ns = pair[1].span.start_ns.saturating_sub(pair[0].span.end_ns);
        idle_ns >= thresholds.duplicate_query.duplicate_query_pause_ns
            && idle_ns.unsigned_abs() >= pair[1].span.duration_ns()
    };
    2 * queries.windows(2).filter(is_pause).count() >= queries.len()
}

/// True if the same text went once to each of several partitions: one question to many places, not many questions.
fn is_fan_out(queries: &[&Query<'_>]) -> bool {
    let partitions: HashSet<&str> =
        queries.iter().filter_map(|query| query.span.facts.db_partition.as_deref()).collect();
    partitions.len() > 1 && partitions.len() == queries.len()
}

/// Key that distinguishes two queries of one shape: the text as sent and the recorded values.
pub(crate) fn values_of(query: &Query<'_>) -> String {
    bound_values(query.span).fold(query.text.to_owned(), |text, (key, value)| format!("{text}\n{key}={value}"))
}

/// The values that were recorded beside a query, by the attributes' names.
pub(crate) fn bound_values(span: &Span) -> impl Iterator<Item = (&String, String)> {
    let is_parameter = |key: &str| key.starts_with("db.query.parameter") || key == "db.statement.parameters";
    span.attributes.iter().filter(move |(key, _)| is_parameter(key)).map(|(key, value)| (key, value.to_string()))
}

/// Time in the repeated queries, and time that is theirs. See the module's rule.
fn time_taken(request: &Request<'_>, repeated: &[&Query<'_>]) -> (u64, u64) {
    let ids: HashSet<SpanId> = repeated.iter().map(|query| query.span.span_id).collect();
    let end_ns = repeated.iter().map(|query| query.span.end_ns).max().unwrap_or(0).min(request.entry.end_ns);
    let start_ns = repeated.first().map_or(0, |query| query.span.start_ns);
    let mut calls: Vec<&Span> =
        request.queries.iter().map(|query| query.span).chain(request.other_calls.iter().copied()).collect();
    calls.sort_by_key(|call| call.start_ns);
    let waits = Times::union_of(request.housekeeping.iter().map(|span| request.time_of(span)));
    let mut cost_ns = 0_i64;
    let mut now_ns = start_ns;
    // Length of the call that ended last, if it is one of these.
    let mut repeated_ns = Some(0);
    for call in calls.iter().filter(|call| call.end_ns > start_ns && call.start_ns < end_ns) {
        let is_repeated = ids.contains(&call.span_id);
        if call.start_ns > now_ns {
            let gap_ns = repeated_ns.map_or(0, |length_ns| consequence_ns((now_ns, call.start_ns), length_ns, &waits));
            cost_ns = gap_ns.saturating_add(cost_ns);
            now_ns = call.start_ns;
        }
        if call.end_ns > now_ns {
            let own_ns = if is_repeated { call.end_ns.min(end_ns).saturating_sub(now_ns) } else { 0 };
            cost_ns = own_ns.saturating_add(cost_ns);
            now_ns = call.end_ns.min(end_ns);
            repeated_ns = is_repeated.then(|| call.end_ns.saturating_sub(call.start_ns));
        }
    }
    (union_ns(repeated, end_ns), cost_ns.max(0) as u64)
}

/// The part of a gap, first instant and first instant after, that the query before it causes, nanoseconds: all of a short
/// gap, otherwise the waits for a connection within.
fn consequence_ns(gap: (i64, i64), query_ns: i64, waits: &Times) -> i64 {
    let gap_ns = gap.1.saturating_sub(gap.0);
    let own_ns = Times::union_of([gap]).without(waits).length_ns() as i64;
    if own_ns <= query_ns.max(SHORT_GAP_NS) { gap_ns } else { gap_ns - own_ns }
}

/// The time up to an instant in which at least one of these, in order of start, was under way.
fn union_ns(queries: &[&Query<'_>], until_ns: i64) -> u64 {
    let (mut total_ns, mut reached_ns) = (0_i64, i64::MIN);
    for query in queries {
        let (start_ns, end_ns) = (query.span.start_ns.max(reached_ns), query.span.end_ns.min(until_ns));
        total_ns = end_ns.saturating_sub(start_ns).max(0).saturating_add(total_ns);
        reached_ns = reached_ns.max(end_ns);
    }
    total_ns as u64
}

#[cfg(test)]
mod tests {
    use narrows_model::trace::Forest;
    use narrows_testkit::spans::{Beat, SpanBuilder, client, database, query, run_of, server};

    use super::*;
    use crate::read::requests::requests;

    const ROW: &str = "SELECT name FROM customer WHERE id = ?";

    /// Count, busy and own milliseconds of each repetition.
    fn found(children: Vec<SpanBuilder>) -> Vec<(usize, f64, f64)> {
        let source = query("SELECT * FROM orders").at(0.0, 2.0);
        found_in(server("shop", "GET /orders").at(0.0, 200.0).child(source).children(children))
    }

    fn found_in(root: SpanBuilder) -> Vec<(usize, f64, f64)> {
        let (traces, thresholds) = ([root.trace(1)], Thresholds::default());
        let forests = Forest::of_all(&traces);
        let requests = requests(&forests, &thresholds);
        let found = repetitions(&requests[0], &thresholds);
        found.iter().map(|r| (r.queries.len(), r.busy_ns as f64 / 1e6, r.cost_ns as f64 / 1e6)).collect()
    }

    fn beat(first_ms: f64, step_ms: f64, length_ms: f64) -> Beat {
        Beat { first_ms, step_ms, length_ms }
    }

    #[test]
    fn time_between_repeated_queries_is_theirs() {
        assert_eq!(found(run_of(10, beat(10.0, 5.0, 3.0), |_| query(ROW))), [(10, 30.0, 48.0)]);
    }

    #[test]
    fn work_between_queries_is_not_theirs_but_waits_for_a_connection_are() {
        assert_eq!(found(run_of(10, beat(10.0, 15.0, 1.0), |_| query(ROW))), [(10, 10.0, 10.0)]);
        let mut pooled = run_of(10, beat(10.0, 15.0, 1.0), |_| query(ROW));
        pooled.extend(run_of(9, beat(20.0, 15.0, 5.0), |_| database("pg-pool.connect")));
        assert_eq!(found(pooled), [(10, 10.0, 55.0)]);
    }

    #[test]
    fn another_call_in_between_keeps_its_time() {
        let mut children = run_of(10, beat(10.0, 5.0, 3.0), |_| query(ROW));
        // From 13.5 to 14.5 the call, from there to 15 what follows it: neither is the repetition's.
        children.push(client("GET").at(13.5, 1.0));
        assert_eq!(found(children), [(10, 30.0, 46.5)]);
    }

    #[test]
    fn alternating_repetitions_share_the_time() {
        let mut children = run_of(10, beat(10.0, 10.0, 3.0), |_| query(ROW));
        children.extend(run_of(10, beat(15.0, 10.0, 4.0), |_| query("SELECT street FROM address WHERE id = ?")));
        let found = found(children);
        // 3 ms of query and 2 ms after it for the one; 4 and 1 for the other; its last is not followed by anything.
        assert_eq!(found, [(10, 30.0, 48.0), (10, 40.0, 49.0)]);
        assert!(found.iter().map(|(_, _, own)| own).sum::<f64>() <= 109.0);
    }

    #[test]
    fn parallel_queries_count_their_time_once() {
        assert_eq!(found(run_of(10, beat(10.0, 0.5, 20.0), |_| query(ROW))), [(10, 24.5, 24.5)]);
    }

    #[test]
    fn only_different_values_repeat() {
        let literal = |i: usize| query(&format!("SELECT name FROM customer WHERE id = {i}"));
        assert_eq!(found(run_of(6, beat(5.0, 5.0, 1.0), literal)).len(), 1);
        let parameter = |i: usize| query(ROW).attribute("db.query.parameter.0", i as u64);
        assert_eq!(found(run_of(6, beat(5.0, 5.0, 1.0), parameter)).len(), 1);
        for same in [
            query("SELECT name FROM customer WHERE id = 7"),
            query("SELECT count(*) FROM customer"),
            query(ROW).attribute("db.query.parameter.0", 7),
        ] {
            assert!(found(run_of(6, beat(5.0, 5.0, 1.0), |_| same.clone())).is_empty());
        }
    }

    #[test]
    fn queries_without_text_repeat_by_their_names() {
        let mapper = |_| {
            database("mongoose.item.findOne").facts(|facts| {
                (facts.db_operation, facts.db_collection) = (Some("findOne".into()), Some("items".into()));
            })
        };
        assert_eq!(found(run_of(11, beat(10.0, 5.0, 3.0), mapper)), [(11, 33.0, 53.0)]);
        let summary = |_| database("mysql").attribute("db.query.summary", "SELECT items");
        assert_eq!(found(run_of(11, beat(10.0, 5.0, 3.0), summary)), [(11, 33.0, 53.0)]);
    }

    #[test]
    fn writes_repeat_without_a_query_before_them() {
        let alone = |beat, text: &dyn Fn(usize) -> String| {
            let writes = run_of(8, beat, |i| query(&text(i)));
            found_in(server("shop", "POST /orders").at(0.0, 400.0).children(writes)).len()
        };
        let insert = |_: usize| "INSERT INTO line (a, b) VALUES (?, ?)".to_owned();
        assert_eq!(alone(beat(5.0, 5.0, 3.0), &insert), 1);
        assert_eq!(alone(beat(5.0, 5.0, 3.0), &|i| format!("UPDATE part SET n = n - 1 WHERE id = {i}")), 1);
        assert_eq!(alone(beat(5.0, 5.0, 3.0), &|i| format!("UPDATE job SET done = {i} WHERE id = 7")), 0, "one row");
        assert_eq!(alone(beat(5.0, 40.0, 3.0), &insert), 0, "with other work between them");
        assert_eq!(alone(beat(5.0, 5.0, 3.0), &|_| ROW.to_owned()), 0, "reads");
    }

    #[test]
    fn time_after_the_request_does_not_count() {
        let mut late = run_of(6, beat(100.0, 5.0, 3.0), |_| query(ROW));
        late[5] = query(ROW).at(125.0, 1e9);
        assert_eq!(found(late), [(6, 90.0, 100.0)]);
    }

    #[test]
    fn pages_and_batches_do_not_repeat() {
        for text in [
            "SELECT * FROM orders ORDER BY id LIMIT 10 OFFSET ?",
            "SELECT * FROM customer WHERE id IN (?, ?, ?)",
            "SELECT * FROM customer WHERE id = ANY(?)",
        ] {
            assert!(found(run_of(9, beat(5.0, 5.0, 1.0), |_| query(text))).is_empty(), "{text}");
        }
        let batch = |_| query("INSERT INTO line (a) VALUES (?)").facts(|facts| facts.batch_size = Some(50));
        assert!(found(run_of(9, beat(5.0, 5.0, 1.0), batch)).is_empty(), "batches that the driver sends");
        let tried = run_of(9, beat(5.0, 5.0, 1.0), |i| if i < 8 { query(ROW).failed() } else { query(ROW) });
        assert!(found(tried).is_empty(), "tries of one query");
    }
}
