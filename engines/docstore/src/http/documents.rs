//! Documents: what a request to them asks for, and queries of one partition at a time.
//!
//! A query names its partition by a range id or by a partition key; without either it is refused with sub-status 1004,
//! which makes a client request the query plan and fan out over the ranges itself.

use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode};
use serde_json::json;

use super::response::{Failure, Reply};
use super::{batch, headers, points};
use crate::container::Container;
use crate::partition::{Done, Operation, Page, Partition, Refused};
use crate::query::Selection;
use crate::store::Store;

/// "A query over several partitions cannot be served by the gateway."
const SUB_STATUS_CROSS_PARTITION: u32 = 1004;

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Throttled { retry_after } => Self::throttled(retry_after),
            Refused::Moved => Self::gone(),
        }
    }
}

/// `POST …/docs`: a query, a query plan, a batch or a write, as the headers say.
pub(super) fn post(store: &Store, container: &Container, headers: &HeaderMap, body: &[u8]) -> Result<Reply, Failure> {
    if headers::flag(headers, "x-ms-cosmos-is-query-plan-request")? {
        Selection::from_body(body).map_err(|error| Failure::bad_request(&error))?;
        return Ok(plan());
    }
    if headers::is_query(headers)? {
        return query_page(store, container, headers, body);
    }
    if headers::flag(headers, "x-ms-cosmos-is-batch-request")? {
        return batch::run(store, container, headers, body);
    }
    let is_upsert = headers::flag(headers, "x-ms-documentdb-is-upsert")?;
    let operation = if is_upsert { Operation::Upsert } else { Operation::Create };
    points::write(store, container, headers, body, operation)
}

fn query_page(store: &Store, container: &Container, headers: &HeaderMap, body: &[u8]) -> Result<Reply, Failure> {
    let selection = Selection::from_body(body).map_err(|error| Failure::bad_request(&error))?;
    let (range, selection) = match (headers::range(headers)?, headers::partition_key(headers)?) {
        (range, Some(key)) => {
            let home = container.range_of(&key);
            if range.is_some_and(|range| range != home) {
                return Err(Failure::bad_request(&format!("the partition key belongs to range {home}, not {range:?}")));
            }
            (home, selection.within(&container.definition().key, key))
        }
        (Some(range), None) => (range, selection),
        (None, None) => {
            let message = "the query covers every partition: name one by x-ms-documentdb-partitionkeyrangeid \
                           or x-ms-documentdb-partitionkey";
            return Err(Failure::bad_request(message).with_sub_status(SUB_STATUS_CROSS_PARTITION));
        }
    };
    let (from, limit) = (headers::continuation(headers)?, headers::page_items(headers)?);
    let done = partition(container, range)?.page(store.now(), &selection, from, limit)?;
    Ok(page(container, range, &done))
}

/// A page of documents from one range.
pub(super) fn page(container: &Container, range: u32, done: &Done<Page>) -> Reply {
    let Page { documents, next } = &done.outcome;
    let (rid, count) = (&container.rid, documents.len());
    let body = format!("{{\"_rid\":\"{rid}\",\"Documents\":[{}],\"_count\":{count}}}", documents.join(","));
    let reply =
        Reply::new(StatusCode::OK, done.charge, body).with("x-ms-item-count", count).with_session(range, done.lsn);
    match next {
        Some(number) => reply.with("x-ms-continuation", number),
        None => reply,
    }
}

/// The plan of every query of the subset: the same query on each range, responses joined in the order of the ranges.
fn plan() -> Reply {
    let body = json!({
        "partitionedQueryExecutionInfoVersion": 2,
        "queryInfo": {
            "distinctType": "None", "top": null, "offset": null, "limit": null,
            "orderBy": [], "orderByExpressions": [], "groupByExpressions": [], "groupByAliases": [],
            "aggregates": [], "groupByAliasToAggregateType": {}, "rewrittenQuery": "",
            "hasSelectValue": false, "hasNonStreamingOrderBy": false,
        },
        "queryRanges": [{ "min": "", "max": "FF", "isMinInclusive": true, "isMaxInclusive": false }],
    });
    Reply::description(&body)
}

/// The partition of a range: gone if the range was split, a bad request if there never was one.
pub(super) fn partition(container: &Container, id: u32) -> Result<Arc<Partition>, Failure> {
    let ranges = container.ranges();
    match ranges.get(id) {
        Some(range) => Ok(Arc::clone(&range.partition)),
        None if ranges.is_gone(id) => Err(Failure::gone()),
        None => {
            let last = ranges.iter().map(|range| range.id).max().unwrap_or_default();
            Err(Failure::bad_request(&format!("there is no range {id}, expected 0 to {last}")))
        }
    }
}
