//! How values of the model are written into columns and read back: words, numbers and JSON.

use narrows_model::json::Stored;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ValueRef};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

pub(super) use crate::otlp::numbers::{kind_number, kind_of, status_number, status_of};
pub(super) use crate::ranges::ADDEND_MAX;
use crate::ranges::{INSTANT_NS_MAX, WEIGHT_MAX};

/// Values of the model as JSON text.
pub(super) fn json<T: Stored>(value: &T) -> String {
    value.to_json().unwrap_or_else(|_| "null".into())
}

/// The word of a unit variant, as `serde` names it.
pub(super) fn word<T: Serialize>(value: T) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => word,
        _ => String::new(),
    }
}

/// The unit variant of a word; `None` if there is no such variant.
pub(super) fn from_word<T: DeserializeOwned>(word: &str) -> Option<T> {
    serde_json::from_value(Value::from(word)).ok()
}

/// A column that holds JSON.
pub(super) struct Json<T>(pub(super) T);

impl<T: Stored> FromSql for Json<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        T::from_json(value.as_str()?).map(Json).map_err(FromSqlError::other)
    }
}

/// A column that holds the attributes of a span as JSON. Unlike [`Json`] it is read by code of this crate, which is
/// optimised for speed: there are as many as there are spans.
pub(super) struct Attributes(pub(super) Map<String, Value>);

impl FromSql for Attributes {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        serde_json::from_str(value.as_str()?).map(Attributes).map_err(FromSqlError::other)
    }
}

/// A column that holds the word of a unit variant.
pub(super) struct Word<T>(pub(super) T);

impl<T: DeserializeOwned> FromSql for Word<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        from_word(value.as_str()?).map(Word).ok_or(FromSqlError::InvalidType)
    }
}

/// The longest name that is read, in bytes. Narrows writes names of at most 4 KiB.
const NAME_BYTES_MAX: usize = 64 << 10;

/// A column that holds a displayed name.
pub(super) struct Name(pub(super) String);

impl FromSql for Name {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        match value.as_str()? {
            name if name.len() <= NAME_BYTES_MAX => Ok(Name(name.to_owned())),
            name => Err(FromSqlError::other(NameTooLong(name.len()))),
        }
    }
}

/// Length of a name, in bytes.
#[derive(Debug, thiserror::Error)]
#[error("a name of {0} bytes, expected at most {NAME_BYTES_MAX}")]
struct NameTooLong(usize);

/// A column that holds a count: never negative.
pub(super) struct Count(pub(super) u64);

impl FromSql for Count {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let number = value.as_i64()?;
        u64::try_from(number).map(Count).map_err(|_| FromSqlError::OutOfRange(number))
    }
}

/// A column with an instant that Narrows wrote itself, in nanoseconds since the Unix epoch: 0 to [`INSTANT_NS_MAX`].
pub(super) struct Instant(pub(super) i64);

impl FromSql for Instant {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        match value.as_i64()? {
            number @ 0..=INSTANT_NS_MAX => Ok(Instant(number)),
            number => Err(FromSqlError::OutOfRange(number)),
        }
    }
}

/// An instant of somebody else's clock, which may say anything, within the range of [`Instant`].
pub(super) fn plausible(instant_ns: i64) -> i64 {
    instant_ns.clamp(0, INSTANT_NS_MAX)
}

/// Weight of a span or a trace, as a number that can be added up. One that is not a positive number says nothing: it
/// stands for itself.
pub(super) fn plausible_weight(weight: f64) -> f64 {
    if weight > 0.0 { weight.min(WEIGHT_MAX) } else { 1.0 }
}

/// A column with a count that is added up with others: 0 to 2⁴⁰, so that the sum of millions of them fits a `u64`.
pub(super) struct Addend(pub(super) u64);

impl FromSql for Addend {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        match Count::column_result(value)?.0 {
            number @ 0..=ADDEND_MAX => Ok(Addend(number)),
            number => Err(FromSqlError::OutOfRange(signed(number))),
        }
    }
}

/// A column with a number that is finite.
pub(super) struct Finite(pub(super) f64);

impl FromSql for Finite {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let number = value.as_f64()?;
        if number.is_finite() { Ok(Finite(number)) } else { Err(FromSqlError::InvalidType) }
    }
}

/// The HTTP status of a span; `None` if no status has that number.
pub(super) fn http_status_of(number: Option<i64>) -> Option<u16> {
    number.and_then(|number| u16::try_from(number).ok())
}

/// A count as SQLite's signed integer; the largest one when it does not fit.
pub(super) fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_model::run::{RunState, TrialState, Verdict, WindowKind};

    #[test]
    fn numbers_out_of_their_range_are_errors() {
        let integer = ValueRef::Integer;
        for (number, is_instant, is_addend) in [
            (0, true, true),
            (1 << 40, true, true),
            ((1 << 40) + 1, true, false),
            (1 << 62, true, false),
            ((1 << 62) + 1, false, false),
            (-1, false, false),
            (i64::MIN, false, false),
        ] {
            assert_eq!(Instant::column_result(integer(number)).is_ok(), is_instant, "{number}");
            assert_eq!(Addend::column_result(integer(number)).is_ok(), is_addend, "{number}");
        }
        for number in [f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
            assert!(Finite::column_result(ValueRef::Real(number)).is_err(), "{number}");
        }
        assert!(Instant::column_result(ValueRef::Real(1.0)).is_err() && Finite::column_result(ValueRef::Null).is_err());
        assert_eq!([i64::MIN, 5, i64::MAX].map(plausible), [0, 5, 1 << 62]);
        let weights = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, 0.0, 2.5, 1e300];
        assert_eq!(weights.map(plausible_weight), [1.0, 1e9, 1.0, 1.0, 1.0, 2.5, 1e9]);
    }

    #[test]
    fn words_read_back_as_what_was_written() {
        assert_eq!(word(RunState::Interrupted), "interrupted");
        assert_eq!(from_word::<WindowKind>("warmup"), Some(WindowKind::Warmup));
        assert_eq!(from_word::<TrialState>(&word(TrialState::Planned)), Some(TrialState::Planned));
        assert_eq!(from_word::<Verdict>("fine"), None);
    }
}
