//! Requests to documents: which operation each of them means.

use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode};

use super::response::{Failure, Reply};
use super::{batch, headers, point_operations, queries};
use crate::container::Container;
use crate::moment::Moment;
use crate::partition::{Completed, Operation, Page, Partition, Refusal};

impl From<Refusal> for Failure {
    fn from(refused: Refusal) -> Self {
        match refused {
            Refusal::Unavailable(unavailable) => unavailable.into(),
            Refusal::Throttled { retry_after, charge } => Self::throttled(retry_after).with_charge(charge),
            Refusal::Moved => Self::gone(),
            // Such a request is repeated on another thread, or its client has left.
            Refusal::Long => Self::too_much_work(),
        }
    }
}

/// `POST …/docs`: a query, a query plan, a batch or a write, as the headers say.
pub(super) fn post(moment: &Moment, container: &Container, headers: &HeaderMap, body: &[u8]) -> Result<Reply, Failure> {
    if headers::flag(headers, "x-ms-cosmos-is-query-plan-request")? {
        return queries::plan(container, headers, body);
    }
    if headers::is_query(headers)? {
        return queries::page(moment, container, headers, body);
    }
    if headers::flag(headers, "x-ms-cosmos-is-batch-request")? {
        return batch::run(moment, container, headers, body);
    }
    let is_upsert = headers::flag(headers, "x-ms-documentdb-is-upsert")?;
    let operation = if is_upsert { Operation::Upsert } else { Operation::Create };
    point_operations::write(moment, container, headers, point_operations::document(body)?, operation)
}

/// A page of a list from one range.
pub(super) fn page(container: &Container, range: u32, done: &Completed<Page>) -> Reply {
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
