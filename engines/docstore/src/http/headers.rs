//! The request headers the store obeys. A header it cannot read is a bad request, never a default.

use std::str::FromStr;

use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

use super::response::Failure;
use crate::partition_key::PartitionKey;
use crate::scalar::Scalar;
use crate::sql::{Progress, SortPosition};

/// Documents on a page when the client leaves the number to the store.
const DEFAULT_PAGE_ITEMS: usize = 100;
const MAX_PAGE_ITEMS: usize = 1_000;
const CONTINUATION: &str = "x-ms-continuation";
/// Prefix of a query's continuation of this form.
const CONTINUATION_VERSION: &str = "1";
/// The same with the values of the last result in its order.
const SORTED_VERSION: &str = "3";
/// Longer values of a sorted result would make a header that clients and proxies refuse.
const MAX_SORT_BYTES: usize = 4_096;

/// The value of `name`, if it is there and text.
pub(super) fn text<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, Failure> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    value.to_str().map(Some).map_err(|_| Failure::bad_request(&format!("the header {name} is not ASCII text")))
}

/// Whether `name` says true.
pub(super) fn flag(headers: &HeaderMap, name: &str) -> Result<bool, Failure> {
    match text(headers, name)? {
        None => Ok(false),
        Some(value) if value.eq_ignore_ascii_case("true") => Ok(true),
        Some(value) if value.eq_ignore_ascii_case("false") => Ok(false),
        Some(value) => Err(unusable(name, value, "true or false")),
    }
}

/// `x-ms-documentdb-partitionkey`: a JSON array of scalars, `{}` for a property that is missing.
pub(super) fn partition_key(headers: &HeaderMap) -> Result<Option<PartitionKey>, Failure> {
    const NAME: &str = "x-ms-documentdb-partitionkey";
    let Some(value) = text(headers, NAME)? else { return Ok(None) };
    let refused = || unusable(NAME, value, "a JSON array of scalars");
    let Ok(Value::Array(components)) = serde_json::from_str(value) else { return Err(refused()) };
    let read = |component: &Value| match component {
        Value::Object(none) if none.is_empty() => Ok(Scalar::Undefined),
        component => Scalar::from_json(component).ok_or_else(refused),
    };
    Ok(Some(PartitionKey(components.iter().map(read).collect::<Result<_, _>>()?)))
}

/// Whether the body is a query.
pub(super) fn is_query(headers: &HeaderMap) -> Result<bool, Failure> {
    let is_query_type = text(headers, CONTENT_TYPE.as_str())?
        .is_some_and(|kind| kind.trim_start().starts_with("application/query+json"));
    Ok(is_query_type || flag(headers, "x-ms-documentdb-isquery")?)
}

/// `x-ms-consistency-level`: none stronger than the account's, which is Session.
pub(super) fn check_consistency(headers: &HeaderMap) -> Result<(), Failure> {
    const NAME: &str = "x-ms-consistency-level";
    const SERVED: [&str; 3] = ["Session", "ConsistentPrefix", "Eventual"];
    match text(headers, NAME)? {
        Some(level) if !SERVED.iter().any(|served| served.eq_ignore_ascii_case(level)) => {
            Err(unusable(NAME, level, "Session, ConsistentPrefix or Eventual: the account's level is Session"))
        }
        _ => Ok(()),
    }
}

/// `x-ms-cosmos-supported-serialization-formats`: whether the client reads binary JSON and no text.
pub(super) fn wants_binary(headers: &HeaderMap) -> Result<bool, Failure> {
    const NAME: &str = "x-ms-cosmos-supported-serialization-formats";
    let Some(formats) = text(headers, NAME)? else { return Ok(false) };
    let has = |format: &str| formats.split(',').any(|named| named.trim().eq_ignore_ascii_case(format));
    match (has("JsonText"), has("CosmosBinary")) {
        (false, false) => Err(unusable(NAME, formats, "JsonText or CosmosBinary among the formats")),
        (is_text_read, _) => Ok(!is_text_read),
    }
}

/// `x-ms-documentdb-partitionkeyrangeid`: a range's number.
pub(super) fn range(headers: &HeaderMap) -> Result<Option<u32>, Failure> {
    number(headers, "x-ms-documentdb-partitionkeyrangeid", "a range's number")
}

/// `x-ms-continuation` of a list: the number of the document the next page starts at.
pub(super) fn first_number(headers: &HeaderMap) -> Result<u64, Failure> {
    Ok(number(headers, CONTINUATION, "a continuation this store has given")?.unwrap_or(0))
}

/// `x-ms-continuation` of a query: the range of earlier pages and how far they came.
pub(super) fn continuation(headers: &HeaderMap) -> Result<Option<(u32, Progress)>, Failure> {
    let Some(value) = continuation_text(headers)? else { return Ok(None) };
    read_progress(value).map(Some).ok_or_else(|| unusable_continuation(value))
}

/// `x-ms-continuation`, unless it is empty.
pub(super) fn continuation_text(headers: &HeaderMap) -> Result<Option<&str>, Failure> {
    Ok(text(headers, CONTINUATION)?.filter(|value| !value.is_empty()))
}

pub(super) fn unusable_continuation(value: &str) -> Failure {
    unusable(CONTINUATION, value, "a continuation this store has given")
}

/// The continuation for [`continuation`] to read. The values of a sorted result go into it unless they are long.
pub(super) fn continuation_of(range: u32, progress: &Progress) -> String {
    let Progress { number, row, emitted, after } = progress;
    let sorted = after.as_deref().map(|after| (after, after.keys_text()));
    match sorted.filter(|(_, keys)| keys.len() <= MAX_SORT_BYTES) {
        None => format!("{CONTINUATION_VERSION}.{range}.{number}.{row}.{emitted}"),
        Some((SortPosition { number, row, .. }, keys)) => {
            let keys = URL_SAFE_NO_PAD.encode(keys);
            format!("{SORTED_VERSION}.{range}.{number}.{row}.{emitted}.{keys}")
        }
    }
}

fn read_progress(value: &str) -> Option<(u32, Progress)> {
    let parts: Vec<&str> = value.split('.').collect();
    let (range, number, row, emitted, keys) = match *parts.as_slice() {
        [CONTINUATION_VERSION, range, number, row, emitted] => (range, number, row, emitted, None),
        [SORTED_VERSION, range, number, row, emitted, keys] => (range, number, row, emitted, Some(keys)),
        _ => return None,
    };
    let (number, row, emitted) = (number.parse().ok()?, row.parse().ok()?, emitted.parse().ok()?);
    let progress = match keys {
        None => Progress { number, row, emitted, after: None },
        Some(keys) => {
            let after = SortPosition::from_keys(&URL_SAFE_NO_PAD.decode(keys).ok()?, number, row)?;
            Progress { emitted, after: Some(Box::new(after)), ..Progress::default() }
        }
    };
    Some((range.parse().ok()?, progress))
}

/// `x-ms-start-epk` and `x-ms-end-epk`: the hashes of partition keys a query is for, as digits.
pub(super) fn hashes(headers: &HeaderMap) -> Result<Option<(&str, &str)>, Failure> {
    let (begin, end) = (text(headers, "x-ms-start-epk")?, text(headers, "x-ms-end-epk")?);
    for (name, value) in [("x-ms-start-epk", begin), ("x-ms-end-epk", end)] {
        if value.is_some_and(|value| !value.bytes().all(|digit| digit.is_ascii_hexdigit())) {
            return Err(unusable(name, value.unwrap_or_default(), "hexadecimal digits"));
        }
    }
    Ok((begin.is_some() || end.is_some()).then(|| (begin.unwrap_or_default(), end.unwrap_or("FF"))))
}

/// `x-ms-max-item-count`, where −1 leaves the number to the store; larger pages are cut.
pub(super) fn page_items(headers: &HeaderMap) -> Result<usize, Failure> {
    const NAME: &str = "x-ms-max-item-count";
    match text(headers, NAME)? {
        None => Ok(DEFAULT_PAGE_ITEMS),
        Some("-1") => Ok(MAX_PAGE_ITEMS),
        Some(value) => match value.parse::<usize>() {
            Ok(items) if items > 0 => Ok(items.min(MAX_PAGE_ITEMS)),
            _ => Err(unusable(NAME, value, "a number from 1 on, or -1")),
        },
    }
}

fn number<T: FromStr>(headers: &HeaderMap, name: &str, expected: &str) -> Result<Option<T>, Failure> {
    let Some(value) = text(headers, name)? else { return Ok(None) };
    value.parse().map(Some).map_err(|_| unusable(name, value, expected))
}

pub(super) fn unusable(name: &str, value: &str, expected: &str) -> Failure {
    Failure::bad_request(&format!("the header {name} is {value:?}, expected {expected}"))
}
