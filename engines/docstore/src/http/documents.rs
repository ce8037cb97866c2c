//! Documents: point reads, writes, and queries of one partition at a time.
//!
//! A query names its partition by a range id or by a partition key; without either it is refused with sub-status 1004,
//! which makes a client request the query plan and fan out over the ranges itself.

use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use serde_json::{Map, Value, json};

use super::headers;
use super::response::{Failure, Reply};
use crate::charge::Charge;
use crate::container::Container;
use crate::partition::{Done, Page, Partition, Throttled, WriteMode, Written};
use crate::query::{self, Selection};
use crate::scalar::Scalar;
use crate::store::Store;

/// "The partition key of the header is not the document's."
const SUB_STATUS_KEY_MISMATCH: u32 = 1001;
/// "A query over several partitions cannot be served by the gateway."
const SUB_STATUS_CROSS_PARTITION: u32 = 1004;

impl From<Throttled> for Failure {
    fn from(throttled: Throttled) -> Self {
        Self::throttled(throttled.retry_after)
    }
}

/// `GET …/docs/{id}`.
pub(super) fn read(store: &Store, container: &Container, headers: &HeaderMap, id: &str) -> Result<Reply, Failure> {
    let partition_key = headers::partition_key(headers)?
        .ok_or_else(|| Failure::bad_request("a point read needs the header x-ms-documentdb-partitionkey"))?;
    let address = container.address(partition_key, id);
    let done = partition(container, address.range)?.read(store.now(), &address.key)?;
    let Some(text) = done.outcome else {
        return Err(missing(id).with_charge(done.charge));
    };
    Ok(document(StatusCode::OK, done.charge, &text).with_session(address.range, done.lsn))
}

/// `POST …/docs`: a query, a query plan or a write, as the headers say.
pub(super) fn post(store: &Store, container: &Container, headers: &HeaderMap, body: &[u8]) -> Result<Reply, Failure> {
    if headers::flag(headers, "x-ms-cosmos-is-query-plan-request")? {
        Selection::from_body(body).map_err(|error| Failure::bad_request(&error))?;
        return Ok(plan());
    }
    let is_query_type = headers::text(headers, CONTENT_TYPE.as_str())?
        .is_some_and(|kind| kind.trim_start().starts_with("application/query+json"));
    if is_query_type || headers::flag(headers, "x-ms-documentdb-isquery")? {
        return query_page(store, container, headers, body);
    }
    let upsert = headers::flag(headers, "x-ms-documentdb-is-upsert")?;
    let mode = if upsert { WriteMode::Upsert } else { WriteMode::Create };
    let written = query::object(body).map_err(|error| Failure::bad_request(&error))?;
    write(store, container, headers, written, mode)
}

fn query_page(store: &Store, container: &Container, headers: &HeaderMap, body: &[u8]) -> Result<Reply, Failure> {
    let selection = Selection::from_body(body).map_err(|error| Failure::bad_request(&error))?;
    let (range, selection) = match (headers::range(headers)?, headers::partition_key(headers)?) {
        (range, Some(key)) => {
            let home = container.range_of(&key);
            if range.is_some_and(|range| range != home) {
                return Err(Failure::bad_request(&format!("the partition key belongs to range {home}, not {range:?}")));
            }
            (home, selection.within(&container.partition_key, key))
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

fn page(container: &Container, range: u32, done: &Done<Page>) -> Reply {
    let Page { documents, next } = &done.outcome;
    let (rid, count) = (&container.rid, documents.len());
    let body = format!("{{\"_rid\":\"{rid}\",\"Documents\":[{}],\"_count\":{count}}}", documents.join(","));
    let reply =
        Reply::new(StatusCode::OK, done.charge, body).with("x-ms-item-count", count).with_session(range, done.lsn);
    match next {
        Some(position) => reply.with("x-ms-continuation", position),
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

/// `PUT …/docs/{id}`: replaces the document of the path; the body's id must be the same.
pub(super) fn replace(
    store: &Store,
    container: &Container,
    headers: &HeaderMap,
    id: &str,
    body: &[u8],
) -> Result<Reply, Failure> {
    let written = query::object(body).map_err(|error| Failure::bad_request(&error))?;
    if written.get("id").is_some_and(|given| given != id) {
        return Err(Failure::bad_request(&format!("the property \"id\" is not {id:?}, the id of the path")));
    }
    write(store, container, headers, written, WriteMode::Replace)
}

fn write(
    store: &Store,
    container: &Container,
    headers: &HeaderMap,
    written: Map<String, Value>,
    mode: WriteMode,
) -> Result<Reply, Failure> {
    let address = container.address_of(&written).map_err(|error| Failure::bad_request(&error))?;
    if headers::partition_key(headers)?.is_some_and(|key: Scalar| key != address.partition_key) {
        let message = "the partition key of the header is not the document's";
        return Err(Failure::bad_request(message).with_sub_status(SUB_STATUS_KEY_MISMATCH));
    }
    let id = written.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
    let stamp = container.stamp(address.range, store.unix_s());
    let done = partition(container, address.range)?.write(store.now(), address.key, written, mode, &stamp)?;
    let reply = match &done.outcome {
        Written::Created(text) => document(StatusCode::CREATED, done.charge, text),
        Written::Replaced(text) => document(StatusCode::OK, done.charge, text),
        Written::Exists => return Err(Failure::conflict(&id).with_charge(done.charge)),
        Written::Missing => return Err(missing(&id).with_charge(done.charge)),
        Written::Full => return Err(Failure::full().with_charge(done.charge)),
    };
    Ok(reply.with_session(address.range, done.lsn))
}

fn missing(id: &str) -> Failure {
    Failure::not_found(&format!("document {id:?} with this partition key"))
}

fn document(status: StatusCode, charge: Charge, text: &str) -> Reply {
    let reply = Reply::new(status, charge, text.to_owned());
    match serde_json::from_str::<Value>(text).as_ref().map(|document| document["_etag"].as_str()) {
        Ok(Some(etag)) => reply.with_etag(etag),
        _ => reply,
    }
}

fn partition(container: &Container, range: u32) -> Result<&Partition, Failure> {
    let ranges = container.ranges.count();
    container
        .partition(range)
        .ok_or_else(|| Failure::bad_request(&format!("there is no range {range}, expected 0 to {}", ranges - 1)))
}
