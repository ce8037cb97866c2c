//! Arguments of a function: text, numbers, or NULL.
//!
//! SQL has no types, so a number where text is expected is its digits, and the other way round counts as NULL, as KQL's
//! conversions have it. Text that is not UTF-8 is taken with its faults replaced.

use std::borrow::Cow;
use std::cmp::Ordering;

use rusqlite::functions::Context;
use rusqlite::types::{Value, ValueRef};

/// A number of SQL.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Number {
    Integer(i64),
    Real(f64),
}

impl Number {
    pub(super) fn as_f64(self) -> f64 {
        match self {
            Number::Integer(number) => number as f64,
            Number::Real(number) => number,
        }
    }

    /// By value; whole numbers among each other exactly.
    pub(super) fn order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Number::Integer(a), Number::Integer(b)) => a.cmp(b),
            (a, b) => a.as_f64().total_cmp(&b.as_f64()),
        }
    }
}

impl From<Number> for Value {
    fn from(number: Number) -> Self {
        match number {
            Number::Integer(number) => Value::Integer(number),
            Number::Real(number) => Value::Real(number),
        }
    }
}

/// The text at a place; `None` if it is NULL or bytes.
pub(super) fn text<'a>(context: &'a Context<'_>, at: usize) -> Option<Cow<'a, str>> {
    match context.get_raw(at) {
        ValueRef::Text(bytes) => Some(String::from_utf8_lossy(bytes)),
        ValueRef::Integer(number) => Some(number.to_string().into()),
        ValueRef::Real(number) => Some(number.to_string().into()),
        ValueRef::Null | ValueRef::Blob(_) => None,
    }
}

/// The number at a place; `None` if it is anything else.
pub(super) fn number(context: &Context<'_>, at: usize) -> Option<Number> {
    match context.get_raw(at) {
        ValueRef::Integer(number) => Some(Number::Integer(number)),
        ValueRef::Real(number) => Some(Number::Real(number)),
        ValueRef::Null | ValueRef::Text(_) | ValueRef::Blob(_) => None,
    }
}

/// The whole number at a place, without a fraction that a real has; `None` if it is anything else, or beyond 64
/// bits.
pub(super) fn integer(context: &Context<'_>, at: usize) -> Option<i64> {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    match number(context, at)? {
        Number::Integer(number) => Some(number),
        Number::Real(number) if (-LIMIT..LIMIT).contains(&number) => Some(number as i64),
        Number::Real(_) => None,
    }
}
