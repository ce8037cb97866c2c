//! The request headers the store obeys. A header it cannot read is a bad request, never a default.

use axum::http::HeaderMap;
use serde_json::Value;

use super::response::Failure;
use crate::scalar::Scalar;

/// Documents on a page when the client leaves the number to the store.
const DEFAULT_PAGE_ITEMS: usize = 100;
const MAX_PAGE_ITEMS: usize = 1_000;

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

/// `x-ms-documentdb-partitionkey`: a JSON array of one scalar, `[{}]` for a document without the property.
pub(super) fn partition_key(headers: &HeaderMap) -> Result<Option<Scalar>, Failure> {
    const NAME: &str = "x-ms-documentdb-partitionkey";
    let Some(value) = text(headers, NAME)? else { return Ok(None) };
    let refused = || unusable(NAME, value, "a JSON array of one scalar");
    match serde_json::from_str(value).map_err(|_| refused())? {
        Value::Array(mut components) if components.len() == 1 => match components.pop() {
            Some(Value::Object(none)) if none.is_empty() => Ok(Some(Scalar::Undefined)),
            Some(component) => Scalar::from_json(&component).map(Some).ok_or_else(refused),
            None => Err(refused()),
        },
        _ => Err(refused()),
    }
}

/// `x-ms-documentdb-partitionkeyrangeid`: a range's number.
pub(super) fn range(headers: &HeaderMap) -> Result<Option<u32>, Failure> {
    number(headers, "x-ms-documentdb-partitionkeyrangeid", "a range's number")
}

/// `x-ms-continuation`: the position the next page starts at.
pub(super) fn continuation(headers: &HeaderMap) -> Result<u32, Failure> {
    Ok(number(headers, "x-ms-continuation", "a continuation this store has given")?.unwrap_or(0))
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

fn number(headers: &HeaderMap, name: &str, expected: &str) -> Result<Option<u32>, Failure> {
    let Some(value) = text(headers, name)? else { return Ok(None) };
    value.parse().map(Some).map_err(|_| unusable(name, value, expected))
}

fn unusable(name: &str, value: &str, expected: &str) -> Failure {
    Failure::bad_request(&format!("the header {name} is {value:?}, expected {expected}"))
}
