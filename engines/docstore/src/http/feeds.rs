//! Documents without a query: a list of them, or of those that changed (the change feed, latest versions).
//!
//! A reader names a range, a partition key or a span of effective keys. One that names nothing walks through all ranges;
//! its continuation holds the place in the hash space, so that it goes on after a split where it was.

use axum::http::header::{IF_MODIFIED_SINCE, IF_NONE_MATCH};
use axum::http::{HeaderMap, StatusCode};

use super::documents::{page, partition};
use super::headers;
use super::response::{Failure, Reply};
use crate::container::Container;
use crate::http_date;
use crate::partition::{Changes, Done, Scope, Since};
use crate::store::Store;

const START: &str = "x-ms-start-epk";
const END: &str = "x-ms-end-epk";

/// Where the documents are: on one range, or anywhere.
enum Place {
    Range(u32),
    Anywhere,
}

/// `GET …/docs`.
pub(super) fn get(store: &Store, container: &Container, headers: &HeaderMap) -> Result<Reply, Failure> {
    match headers::text(headers, "a-im")? {
        None => list(store, container, headers),
        Some(kind) if kind.eq_ignore_ascii_case("incremental feed") => changes(store, container, headers),
        Some(kind) => Err(headers::unusable("a-im", kind, "Incremental Feed")),
    }
}

fn list(store: &Store, container: &Container, headers: &HeaderMap) -> Result<Reply, Failure> {
    let limit = headers::page_items(headers)?;
    match target(container, headers)? {
        (Place::Range(range), scope) => {
            let from = headers::first_number(headers)?;
            Ok(page(container, range, &partition(container, range)?.list(store.now(), &scope, from, limit)?))
        }
        (Place::Anywhere, scope) => {
            let walk = Walk::from_header(headers::text(headers, "x-ms-continuation")?)?;
            let ranges = container.ranges();
            let range = ranges.holding(walk.min);
            let from = if range.span.min() < walk.end { walk.number } else { 0 };
            let mut done = range.partition.list(store.now(), &scope, from, limit)?;
            let next = done.outcome.next.take();
            let reply = page(container, range.id, &done);
            Ok(match walk.after(range.span.min(), range.span.end(), next) {
                Some(walk) => reply.with("x-ms-continuation", walk.text()),
                None => reply,
            })
        }
    }
}

/// A place in a list over all ranges: in the span from `min` to `end`, documents before `number` are done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Walk {
    min: u128,
    end: u128,
    number: u64,
}

impl Walk {
    fn from_header(token: Option<&str>) -> Result<Self, Failure> {
        let Some(token) = token else { return Ok(Self { min: 0, end: 0, number: 0 }) };
        let read = |token: &str| {
            let mut parts = token.split('.');
            let (min, end, number) = (parts.next()?, parts.next()?, parts.next()?);
            let place = |digits| u128::from_str_radix(digits, 16).ok();
            let walk = Self { min: place(min)?, end: place(end)?, number: number.parse().ok()? };
            (parts.next().is_none() && crate::effective_key::is_place(walk.min)).then_some(walk)
        };
        read(token).ok_or_else(|| headers::unusable("x-ms-continuation", token, "a continuation this store has given"))
    }

    /// Where to go on after a page of the range from `min` to `end`.
    fn after(self, min: u128, end: u128, next: Option<u64>) -> Option<Self> {
        let is_last = !crate::effective_key::is_place(end);
        match next {
            Some(number) => Some(Self { min, end: end.max(self.end), number }),
            None if is_last => None,
            // The range that was walked has been split since: the same documents are done in its other parts.
            None if end < self.end => Some(Self { min: end, ..self }),
            None => Some(Self { min: end, end, number: 0 }),
        }
    }

    fn text(self) -> String {
        format!("{:x}.{:x}.{}", self.min, self.end, self.number)
    }
}

fn changes(store: &Store, container: &Container, headers: &HeaderMap) -> Result<Reply, Failure> {
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
    let done = partition(container, range)?.changes(store.now(), &scope, since, limit)?;
    Ok(changed(container, range, &done))
}

fn changed(container: &Container, range: u32, done: &Done<Changes>) -> Reply {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_goes_on_behind_the_range_and_within_what_was_split() {
        let begin = Walk::from_header(None).unwrap();
        let more = begin.after(0, 8, Some(5)).unwrap();
        assert_eq!(more, Walk { min: 0, end: 8, number: 5 });
        assert_eq!(Walk::from_header(Some(&more.text())).unwrap(), more);
        // The range 0..8 has been split at 4.
        let other_half = more.after(0, 4, None).unwrap();
        assert_eq!(other_half, Walk { min: 4, end: 8, number: 5 });
        assert_eq!(other_half.after(4, 8, None), Some(Walk { min: 8, end: 8, number: 0 }));
        assert_eq!(other_half.after(4, 1 << 126, None), None);
        for token in ["", "1", "1.2", "1.2.x", "1.2.3.4", "ffffffffffffffffffffffffffffffff.0.0"] {
            assert!(Walk::from_header(Some(token)).is_err(), "{token}");
        }
    }
}
