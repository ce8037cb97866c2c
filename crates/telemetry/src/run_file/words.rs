//! How values of the model are written into columns and read back: words, numbers and JSON.

use narrows_model::trace::{SpanKind, SpanStatus};
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ValueRef};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Instances of the model's types as JSON text. Numbers that are not finite become `null`.
pub(super) fn json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "null".into())
}

/// The word of a unit variant, as `serde` names it.
pub(super) fn word<T: Serialize>(value: T) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => word,
        _ => String::new(),
    }
}

/// The unit variant of a word; none when there is no such variant.
pub(super) fn from_word<T: DeserializeOwned>(word: &str) -> Option<T> {
    serde_json::from_value(Value::from(word)).ok()
}

/// A column that holds JSON.
pub(super) struct Json<T>(pub(super) T);

impl<T: DeserializeOwned> FromSql for Json<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        serde_json::from_str(value.as_str()?).map(Json).map_err(FromSqlError::other)
    }
}

/// A column that holds the word of a unit variant.
pub(super) struct Word<T>(pub(super) T);

impl<T: DeserializeOwned> FromSql for Word<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        from_word(value.as_str()?).map(Word).ok_or(FromSqlError::InvalidType)
    }
}

/// A column that holds a count: never negative.
pub(super) struct Count(pub(super) u64);

impl FromSql for Count {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let number = value.as_i64()?;
        u64::try_from(number).map(Count).map_err(|_| FromSqlError::OutOfRange(number))
    }
}

/// OTLP's number of a span kind.
pub(super) fn kind_number(kind: SpanKind) -> i64 {
    match kind {
        SpanKind::Internal => 1,
        SpanKind::Server => 2,
        SpanKind::Client => 3,
        SpanKind::Producer => 4,
        SpanKind::Consumer => 5,
    }
}

/// The span kind of OTLP's number.
pub(super) fn kind_of(number: i64) -> Option<SpanKind> {
    [SpanKind::Internal, SpanKind::Server, SpanKind::Client, SpanKind::Producer, SpanKind::Consumer]
        .into_iter()
        .find(|kind| kind_number(*kind) == number)
}

/// OTLP's number of a span status.
pub(super) fn status_number(status: SpanStatus) -> i64 {
    match status {
        SpanStatus::Unset => 0,
        SpanStatus::Ok => 1,
        SpanStatus::Error => 2,
    }
}

/// The span status of OTLP's number.
pub(super) fn status_of(number: i64) -> Option<SpanStatus> {
    [SpanStatus::Unset, SpanStatus::Ok, SpanStatus::Error].into_iter().find(|status| status_number(*status) == number)
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
    fn words_read_back_as_what_was_written() {
        for kind in 1..=5 {
            assert_eq!(kind_of(kind).map(kind_number), Some(kind));
        }
        for status in 0..=2 {
            assert_eq!(status_of(status).map(status_number), Some(status));
        }
        assert_eq!(kind_of(0), None);
        assert_eq!(word(RunState::Interrupted), "interrupted");
        assert_eq!(from_word::<WindowKind>("warmup"), Some(WindowKind::Warmup));
        assert_eq!(from_word::<TrialState>(&word(TrialState::Planned)), Some(TrialState::Planned));
        assert_eq!(from_word::<Verdict>("fine"), None);
    }
}
