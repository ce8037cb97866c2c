//! Kinds that are numbers and quantities.

use std::time::Duration;

use narrows_load::{RATE_MAX, RATE_MIN};
use serde_json::json;

use super::Refusal;
use super::simple::{Simple, no_hint};
use narrows_model::load::ThinkTime;

use crate::experiment::document::tree::Origin;
use crate::experiment::error::shortened;
use crate::experiment::quantity;

/// Weights beyond this are a slip of the pen.
const WEIGHT_MAX: f64 = 1e9;

/// More cores than any machine has.
const CORES_MAX: f64 = 1024.0;

const AS_NUMBER: &[Origin] = &[Origin::Integer, Origin::Number];
const AS_QUANTITY: &[Origin] = &[Origin::Integer, Origin::String];
const AS_RATE: &[Origin] = &[Origin::Integer, Origin::Number, Origin::String];

/// `true` or `false`.
pub(crate) static BOOLEAN: Simple<bool> = Simple {
    expected: "`true` or `false`",
    name: "`true` or `false`",
    written: &[Origin::Boolean],
    read: |text| text.to_ascii_lowercase().parse().map_err(|_| None),
    hint: no_hint,
    schema: || json!({ "type": "boolean" }),
};

/// A whole number, perhaps negative.
pub(crate) static INTEGER: Simple<i64> = Simple {
    expected: "a whole number",
    name: "whole number",
    written: &[Origin::Integer],
    read: |text| text.parse().map_err(|_| None),
    hint: no_hint,
    schema: || json!({ "type": "integer" }),
};

/// A number of processor cores above 0.
pub(crate) static CORES: Simple<f64> = Simple {
    expected: "a number of cores above 0",
    name: "cores",
    written: AS_NUMBER,
    read: |text| number(text, |n| n > 0.0 && n <= CORES_MAX),
    hint: no_hint,
    schema: || json!({ "type": "number", "exclusiveMinimum": 0, "maximum": CORES_MAX as u64 }),
};

/// A number of 0 or more.
pub(crate) static AMOUNT: Simple<f64> = Simple {
    expected: "a number of 0 or more",
    name: "number of 0 or more",
    written: AS_NUMBER,
    read: |text| number(text, |n| n >= 0.0),
    hint: no_hint,
    schema: || json!({ "type": "number", "minimum": 0 }),
};

/// A number from 0 to 1.
pub(crate) static SHARE: Simple<f64> = Simple {
    expected: "a number from 0 to 1",
    name: "share",
    written: AS_NUMBER,
    read: |text| number(text, |n| (0.0..=1.0).contains(&n)),
    hint: no_hint,
    schema: || json!({ "type": "number", "minimum": 0, "maximum": 1 }),
};

/// A number above 0.
pub(crate) static WEIGHT: Simple<f64> = Simple {
    expected: "a number above 0",
    name: "number above 0",
    written: AS_NUMBER,
    read: |text| number(text, |n| n > 0.0 && n <= WEIGHT_MAX),
    hint: no_hint,
    schema: || json!({ "type": "number", "exclusiveMinimum": 0, "maximum": WEIGHT_MAX }),
};

/// A length of time, 0 included.
pub(crate) static DURATION: Simple<Duration> = Simple {
    expected: "a length of time such as `30s` or `1m30s`",
    name: "length of time",
    written: AS_QUANTITY,
    read: |text| quantity::duration(text).ok_or(None),
    hint: unit_of_time,
    schema: || json!({ "anyOf": [{ "type": "string", "pattern": quantity::DURATION_PATTERN }, { "const": 0 }] }),
};

/// A length of time, or two with ` to ` between them, the first no longer than the second.
pub(crate) static THINK_TIME: Simple<ThinkTime> = Simple {
    expected: "a length of time such as `2s`, or the shortest and the longest, as `1s to 3s`",
    name: "length of time or `1s to 3s`",
    written: AS_QUANTITY,
    read: |text| quantity::durations(text).map(|(from, to)| ThinkTime { from, to }).ok_or(None),
    hint: unit_of_time,
    schema: || {
        let one = quantity::DURATION_PATTERN.trim_matches(['^', '$']);
        let pattern = format!("^{one}( to {one})?$");
        json!({ "anyOf": [{ "type": "string", "pattern": pattern }, { "const": 0 }] })
    },
};

/// A length of time above 0.
pub(crate) static POSITIVE_DURATION: Simple<Duration> = Simple {
    expected: "a length of time above 0 such as `30s` or `1m30s`",
    name: "length of time above 0",
    written: AS_QUANTITY,
    read: |text| quantity::duration(text).filter(|duration| !duration.is_zero()).ok_or(None),
    hint: unit_of_time,
    schema: || json!({ "type": "string", "pattern": quantity::DURATION_PATTERN, "not": { "pattern": "^[0.hmsuµ]*$" } }),
};

/// An amount of memory above 0, in bytes.
pub(crate) static MEMORY: Simple<u64> = Simple {
    expected: "an amount of memory such as `256MiB`",
    name: "amount of memory",
    written: AS_QUANTITY,
    read: |text| quantity::bytes(text).filter(|bytes| *bytes > 0).ok_or(None),
    hint: no_hint,
    schema: || {
        json!({ "anyOf": [
            { "type": "string", "pattern": quantity::BYTES_PATTERN, "not": { "pattern": "^[0.]*[A-Za-z]*$" } },
            { "type": "integer", "minimum": 1 },
        ] })
    },
};

/// A number per second, or a number per unit of time, above 0; per second.
pub(crate) static RATE: Simple<f64> = Simple {
    expected: "a rate above 0 such as 500 or `30/min`",
    name: "rate",
    written: AS_RATE,
    read: |text| quantity::rate(text).filter(|rate| (RATE_MIN..=RATE_MAX).contains(rate)).ok_or(None),
    hint: unit_of_rate,
    schema: || {
        json!({ "anyOf": [
            { "type": "number", "minimum": RATE_MIN, "maximum": RATE_MAX },
            { "type": "string", "pattern": quantity::RATE_PATTERN, "not": { "pattern": "^[0.]+(/|$)" } },
        ] })
    },
};

/// As [`RATE`], or 0.
pub(crate) static RATE_OR_NONE: Simple<f64> = Simple {
    expected: "a rate such as 500 or `30/min`",
    name: "rate or 0",
    written: AS_RATE,
    read: |text| match quantity::rate(text) {
        Some(0.0) => Ok(0.0),
        _ => (RATE.read)(text),
    },
    hint: unit_of_rate,
    schema: || {
        json!({ "anyOf": [
            { "type": "number", "minimum": 0, "maximum": RATE_MAX },
            { "type": "string", "pattern": quantity::RATE_PATTERN },
        ] })
    },
};

/// A finite number as YAML writes it.
pub(crate) fn finite(text: &str) -> Option<f64> {
    text.parse::<f64>().ok().filter(|n| n.is_finite())
}

fn number(text: &str, is_in_range: impl Fn(f64) -> bool) -> Result<f64, Refusal> {
    finite(text).filter(|n| is_in_range(*n)).ok_or(None)
}

fn unit_of_time(text: &str) -> Option<String> {
    if finite(text).is_some_and(|n| n > 0.0) {
        Some(format!("add a unit: `{0}s`, `{0}ms`", shortened(text)))
    } else {
        quantity::advice(text)
    }
}

fn unit_of_rate(text: &str) -> Option<String> {
    match quantity::rate(text) {
        Some(rate) if rate > 0.0 => Some(format!("from {RATE_MIN} to {RATE_MAX} per second")),
        Some(_) => None,
        None => text.contains('/').then(|| "use `/s`, `/min` or `/h`".to_owned()),
    }
}
