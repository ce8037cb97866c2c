//! Queries and their plans.
//!
//! A query names its partition by a range id or by a partition key. Without either, a query whose filter fixes the
//! partition key goes to the range of these keys, if it is one. A query across partitions whose results need no merging is
//! served range after range, if the client allows that and does not want to ask them in parallel. Sorted results that began
//! on one range are merged here once that has been split. Every other query is
//! refused with sub-status 1004, which makes a client request the query plan and ask the ranges itself; the plan names only
//! ranges that can have results.

use axum::http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

use super::documents::partition;
use super::headers;
use super::response::{Failure, Reply};
use super::walk::Walk;
use crate::charge::Charge;
use crate::container::Container;
use crate::moment::{Moment, Pace};
use crate::partition::{Completed, Partition, Refusal};
use crate::query::Selection;
use crate::ranges::Range;
use crate::sql::{Batch, Features, Plan, Progress, TooMuchWork};

/// "A query over several partitions cannot be served by the gateway."
const SUB_STATUS_CROSS_PARTITION: u32 = 1004;

impl From<TooMuchWork> for Failure {
    fn from(_: TooMuchWork) -> Self {
        Self::too_much_work()
    }
}

impl Failure {
    pub(super) fn too_much_work() -> Self {
        Self::bad_request(
            "the query does too much work for one page: filter by an indexed path, or join fewer elements",
        )
    }
}

/// One page of a query's results on one range.
pub(super) fn page(moment: &Moment, container: &Container, headers: &HeaderMap, body: &[u8]) -> Result<Reply, Failure> {
    let mut selection = read(body)?;
    if let Some((begin, end)) = headers::hashes(headers)? {
        selection = selection.within_hashes(&container.definition().key, begin, end);
    }
    let (range, selection) = match (headers::range(headers)?, headers::partition_key(headers)?) {
        (range, Some(key)) => {
            let home = container.range_of(&key);
            if let Some(range) = range.filter(|range| *range != home) {
                return Err(Failure::bad_request(&format!("the partition key belongs to range {home}, not {range}")));
            }
            (home, selection.within(&container.definition().key, key))
        }
        (Some(range), None) => (range, selection),
        (None, None) => return page_anywhere(moment, container, headers, &selection),
    };
    page_of(moment, container, headers, &selection, range)
}

fn page_of(
    moment: &Moment,
    container: &Container,
    headers: &HeaderMap,
    selection: &Selection,
    range: u32,
) -> Result<Reply, Failure> {
    let (earlier, limit) = (headers::continuation(headers)?, headers::page_items(headers)?);
    let (from, progress) = earlier.unwrap_or((range, Progress::default()));
    if !selection.has(&progress) {
        return Err(headers::unusable_continuation(headers::continuation_text(headers)?.unwrap_or_default()));
    }
    if from != range && progress.after.is_none() && !goes_on_elsewhere(container, selection, range) {
        return Err(continuation_before_split());
    }
    let done = partition(container, range)?.query(moment, selection, &progress, limit)?;
    let (reply, next) = results(container, range, done)?;
    Ok(match next {
        Some(progress) => reply.with("x-ms-continuation", headers::continuation_of(range, &progress)),
        None => reply,
    })
}

/// A page of a query that names neither range nor partition key.
fn page_anywhere(
    moment: &Moment,
    container: &Container,
    headers: &HeaderMap,
    selection: &Selection,
) -> Result<Reply, Failure> {
    let only = only_range(container, selection);
    let may_walk = headers::flag(headers, "x-ms-documentdb-query-enablecrosspartition")?
        && !headers::flag(headers, "x-ms-documentdb-query-parallelizecrosspartitionquery")?;
    match only {
        _ if !selection.is_merged() && (only.is_some() || may_walk) => {
            walked_page(moment, container, headers, selection)
        }
        Some(range) => page_of(moment, container, headers, selection, range),
        // A client that is sent to the query plan would begin anew, and repeat the results it has.
        None if selection.is_merged() && headers::continuation_text(headers)?.is_some() => {
            merged_page(moment, container, headers, selection)
        }
        None => Err(across_ranges(container, selection)),
    }
}

/// Whether a continuation of another range, of which `range` is a part, counts on it. A number of results does only if all
/// of them are there.
fn goes_on_elsewhere(container: &Container, selection: &Selection, range: u32) -> bool {
    let ranges = container.ranges();
    let all_here = |places: Vec<u128>| places.iter().all(|&place| ranges.holding(place).id == range);
    !selection.is_gathered() || places(container, selection).is_some_and(all_here)
}

fn continuation_before_split() -> Failure {
    let message = "the partition was split since the continuation was given, and results that are grouped or distinct, or \
                   sorted by long values, cannot go on in its parts: start the query again";
    Failure::bad_request(message)
}

/// A page of one range; the continuation goes on in the next one that can have results.
fn walked_page(
    moment: &Moment,
    container: &Container,
    headers: &HeaderMap,
    selection: &Selection,
) -> Result<Reply, Failure> {
    let (walk, limit) = (Walk::from_headers(headers)?, headers::page_items(headers)?);
    let places = places(container, selection);
    let is_wanted =
        |range: &Range| places.as_ref().is_none_or(|places| places.iter().any(|&place| range.span.contains(place)));
    let query = |partition: &Partition, progress: Progress| partition.query(moment, selection, &progress, limit);
    let (range, done) = walk.step(container, is_wanted, query)?;
    let (reply, next) = results(container, range.id, done)?;
    let next = walk.after(range.span.min(), range.span.end(), next);
    Ok(match next.filter(|walk| walk.has_more(container, is_wanted)) {
        Some(walk) => reply.with("x-ms-continuation", walk.text()),
        None => reply,
    })
}

/// A page of sorted results that began on one range which has been split since: the first of what its parts have.
fn merged_page(
    moment: &Moment,
    container: &Container,
    headers: &HeaderMap,
    selection: &Selection,
) -> Result<Reply, Failure> {
    let (earlier, limit) = (headers::continuation(headers)?, headers::page_items(headers)?);
    let (from, progress) =
        earlier.filter(|(_, progress)| progress.after.is_some()).ok_or_else(continuation_before_split)?;
    if !selection.has(&progress) {
        return Err(headers::unusable_continuation(headers::continuation_text(headers)?.unwrap_or_default()));
    }
    let places = places(container, selection);
    let is_wanted =
        |range: &Range| places.as_ref().is_none_or(|places| places.iter().any(|&place| range.span.contains(place)));
    let query = |partition: &Partition, _| partition.query(moment, selection, &progress, limit);
    if let Pace::Brief = moment.pace() {
        // If a later partition took too long, the repeated request would be charged again for the earlier ones.
        moment.defer();
        return Err(Refusal::Long.into());
    }
    let (mut page, mut charge, mut session) = (Batch::default(), Charge::ZERO, Vec::new());
    let mut walk = Some(Walk::default());
    while let Some(here) = walk.filter(|walk| walk.has_more(container, is_wanted)) {
        let (range, done) = here.step(container, is_wanted, query)?;
        charge = charge + done.charge;
        session.push((range.id, done.lsn));
        let next = done.outcome.map_err(|too_much| Failure::from(too_much).with_charge(charge))?;
        page = selection.merged([page, next], &progress, limit);
        walk = here.after(range.span.min(), range.span.end(), None);
    }
    let Batch { items, next, .. } = page;
    let reply = reply_of(container, charge, &items).with_sessions(&session);
    Ok(match next {
        Some(progress) => reply.with("x-ms-continuation", headers::continuation_of(from, &progress)),
        None => reply,
    })
}

/// The response with the results of one range, and where its next page starts.
fn results(
    container: &Container,
    range: u32,
    done: Completed<Result<Batch, TooMuchWork>>,
) -> Result<(Reply, Option<Progress>), Failure> {
    let batch = done.outcome.map_err(|too_much| Failure::from(too_much).with_charge(done.charge))?;
    let Batch { items, next, .. } = batch;
    Ok((reply_of(container, done.charge, &items).with_session(range, done.lsn), next))
}

fn reply_of(container: &Container, charge: Charge, items: &[Box<str>]) -> Reply {
    let (rid, count) = (&container.rid, items.len());
    let body = format!("{{\"_rid\":\"{rid}\",\"Documents\":[{}],\"_count\":{count}}}", items.join(","));
    Reply::new(StatusCode::OK, charge, body).with("x-ms-item-count", count)
}

/// The plan of a query, for a client that merges the results of several ranges.
pub(super) fn plan(container: &Container, headers: &HeaderMap, body: &[u8]) -> Result<Reply, Failure> {
    let selection = read(body)?;
    let features = Features::from_header(headers::text(headers, "x-ms-cosmos-supported-query-features")?);
    let plan = selection.plan(&features).map_err(|error| Failure::bad_request(&error))?;
    Ok(Reply::description(&description(container, &selection, &plan)))
}

/// The query in the body of a request.
pub(super) fn read(body: &[u8]) -> Result<Selection, Failure> {
    Selection::from_body(body).map_err(|error| Failure::bad_request(&error))
}

/// The one range that can have results, if the filter leaves no more.
fn only_range(container: &Container, selection: &Selection) -> Option<u32> {
    let ranges = container.ranges();
    let first = ranges.holding(0).id;
    if ranges.count() == 1 {
        return Some(first);
    }
    let mut ids: Vec<u32> = places(container, selection)?.iter().map(|&place| ranges.holding(place).id).collect();
    ids.sort_unstable();
    ids.dedup();
    match ids.as_slice() {
        // A filter that no key meets has no results on any range.
        [] => Some(first),
        [range] => Some(*range),
        _ => None,
    }
}

/// The places of the partition keys that the filter leaves possible; `None` for a filter that leaves all possible.
fn places(container: &Container, selection: &Selection) -> Option<Vec<u128>> {
    let keys = selection.keys(&container.definition().key)?;
    Some(keys.iter().map(|key| container.effective(key).place()).collect())
}

fn across_ranges(container: &Container, selection: &Selection) -> Failure {
    let message = "the query covers several partitions: name one by x-ms-documentdb-partitionkeyrangeid or \
                   x-ms-documentdb-partitionkey, or request the query plan";
    let failure = Failure::bad_request(message).with_sub_status(SUB_STATUS_CROSS_PARTITION);
    match selection.plan(&Features::from_header(None)) {
        Ok(plan) => failure.with_additional(description(container, selection, &plan).to_string()),
        Err(error) => Failure::bad_request(&error),
    }
}

fn description(container: &Container, selection: &Selection, plan: &Plan) -> Value {
    json!({
        "partitionedQueryExecutionInfoVersion": 2,
        "queryInfo": plan.info,
        "queryRanges": query_ranges(container, selection),
    })
}

/// The hashes a client has to ask for: those of the keys the filter leaves possible, else all.
fn query_ranges(container: &Container, selection: &Selection) -> Vec<Value> {
    let keys = selection.keys(&container.definition().key).unwrap_or_default();
    let mut hashes: Vec<String> = keys.iter().map(|key| container.effective(key).digits()).collect();
    hashes.sort_unstable();
    hashes.dedup();
    if hashes.is_empty() {
        return vec![json!({ "min": "", "max": "FF", "isMinInclusive": true, "isMaxInclusive": false })];
    }
    let point = |hash: &String| json!({ "min": hash, "max": hash, "isMinInclusive": true, "isMaxInclusive": true });
    hashes.iter().map(point).collect()
}
