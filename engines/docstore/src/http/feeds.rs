//! Documents without a query: a list of them, or of those that changed (the change feed, latest versions).
//!
//! A reader names a range, a partition key or a span of effective keys. One that names nothing walks through all ranges.

use axum::http::header::{IF_MODIFIED_SINCE, IF_NONE_MATCH};
use axum::http::{HeaderMap, StatusCode};

use super::documents::{page, partition};
use super::headers;
use super::response::{Failure, Reply};
use super::walk::Walk;
use crate::container::Container;
use crate::http_date;
use crate::moment::Moment;
use crate::partition::{Changes, Completed, Partition, Scope, Since};
use crate::ranges::Range;
use crate::sql::Progress;

const START: &str = "x-ms-start-epk";
const END: &str = "x-ms-end-epk";

/// Where the documents are: on one range, or anywhere.
enum Place {
    Range(u32),
    Anywhere,
}

/// `GET …/docs`.
pub(super) fn get(moment: &Moment, container: &Container, headers: &HeaderMap) -> Result<Reply, Failure> {
    match headers::text(headers, "a-im")? {
        None => list(moment, container, headers),
        Some(kind) if kind.eq_ignore_ascii_case("incremental feed") => changes(moment, container, headers),
        Some(kind) => Err(headers::unusable("a-im", kind, "Incremental Feed")),
    }
}

fn list(moment: &Moment, container: &Container, headers: &HeaderMap) -> Result<Reply, Failure> {
    let limit = headers::page_items(headers)?;
    match target(container, headers)? {
        (Place::Range(range), scope) => {
            let from = headers::first_number(headers)?;
            Ok(page(container, range, &partition(container, range)?.list(moment, &scope, from, limit)?))
        }
        (Place::Anywhere, scope) => {
            let (walk, is_wanted) = (Walk::from_headers(headers)?, |_: &Range| true);
            let list =
                |partition: &Partition, progress: Progress| partition.list(moment, &scope, progress.number, limit);
            let (range, mut done) = walk.step(container, is_wanted, list)?;
            let next = done.outcome.next.take().map(|number| Progress { number, ..Progress::default() });
            let reply = page(container, range.id, &done);
            Ok(match walk.after(range.span.min(), range.span.end(), next) {
                Some(walk) => reply.with("x-ms-continuation", walk.text()),
                None => reply,
            })
        }
    }
}

fn changes(moment: &Moment, container: &Container, headers: &HeaderMap) -> Result<Reply, Failure> {
    let (limit, since) = (headers::page_items(headers)?, since(headers)?);
    let (place, scope) = target(container, headers)?;
    let range = match place {
        Place::Range(range) => range,
        Place::Anywhere if container.ranges().count() == 1 => container.ranges().holding(0).id,
        Place::Anywhere => {
            let message = "the change feed is read from one range at a time: name it by \
                           x-ms-documentdb-partitionkeyrangeid or x-ms-documentdb-partitionkey";
            return Err(Failure::bad_request(message));
        }
    };
    let done = partition(container, range)?.changes(moment, &scope, since, limit)?;
    Ok(changed(container, range, &done))
}

fn changed(container: &Container, range: u32, done: &Completed<Changes>) -> Reply {
    let Changes { documents, until } = &done.outcome;
    let (rid, count) = (&container.rid, documents.len());
    let (status, body) = if documents.is_empty() {
        (StatusCode::NOT_MODIFIED, String::new())
    } else {
        let documents = documents.join(",");
        (StatusCode::OK, format!("{{\"_rid\":\"{rid}\",\"Documents\":[{documents}],\"_count\":{count}}}"))
    };
    Reply::new(status, done.charge, body)
        .with("x-ms-item-count", count)
        .with_etag(&format!("\"{until}\""))
        .with_session(range, done.lsn)
}

/// Where a reader of changes begins: `if-none-match` with the tag of its last page or `*`, or a date.
fn since(headers: &HeaderMap) -> Result<Since, Failure> {
    match (headers::text(headers, IF_NONE_MATCH.as_str())?, headers::text(headers, IF_MODIFIED_SINCE.as_str())?) {
        (Some("*"), _) => Ok(Since::Now),
        (Some(tag), _) => {
            let lsn = tag.trim_matches('"').parse().map(Since::Change);
            lsn.map_err(|_| headers::unusable("if-none-match", tag, "the etag of a page this store has given"))
        }
        (None, Some(date)) => http_date::unix_s(date).map(Since::UnixSecond).ok_or_else(|| {
            headers::unusable("if-modified-since", date, "a date such as Tue, 01 Sep 2026 08:00:00 GMT")
        }),
        (None, None) => Ok(Since::Change(0)),
    }
}

fn target(container: &Container, headers: &HeaderMap) -> Result<(Place, Scope), Failure> {
    let range = headers::range(headers)?;
    if let Some(key) = headers::partition_key(headers)? {
        let home = range.unwrap_or_else(|| container.range_of(&key));
        return Ok((Place::Range(home), Scope::Key(key)));
    }
    let scope = match (headers::text(headers, START)?, headers::text(headers, END)?) {
        (Some(min), Some(max)) => Scope::Digits { min: min.to_ascii_uppercase(), max: max.to_ascii_uppercase() },
        _ => Scope::All,
    };
    Ok((range.map_or(Place::Anywhere, Place::Range), scope))
}
