//! The columns `a1` to `a9` of a span: what fills the templates of its shape.
//!
//! A template prints what is here with SQLite's `%s`, so a text stands here as JSON writes it, without its quotation
//! marks. Digits that are a whole number are kept as one: it takes less room and prints the same.

use std::borrow::Cow;

use rusqlite::ToSql;
use rusqlite::types::{ToSqlOutput, ValueRef};
use serde_json::Value;

/// Columns for what differs from span to span.
pub(super) const SLOTS: usize = 9;
/// The first of them are for attributes; the last of these takes all that find no other.
pub(super) const ATTRIBUTE_SLOTS: usize = 6;
/// The longest text of digits that is certainly a 64-bit number.
const DIGITS_MAX: usize = 18;

/// One column of one span.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) enum Slot<'a> {
    #[default]
    Empty,
    Number(i64),
    Text(Cow<'a, str>),
}

impl<'a> Slot<'a> {
    /// Text as it is, for a template that is no JSON.
    pub(super) fn of_text(text: &'a str) -> Self {
        match whole_number(text) {
            Some(number) => Slot::Number(number),
            None => Slot::Text(Cow::Borrowed(text)),
        }
    }

    /// A value as JSON writes it, a text without its quotation marks.
    pub(super) fn of_value(value: &'a Value) -> Self {
        match value {
            Value::String(text) if is_plain(text) => Self::of_text(text),
            Value::String(text) => Slot::Text(Cow::Owned(escaped(text))),
            Value::Number(number) => match number.as_i64() {
                Some(number) => Slot::Number(number),
                None => Slot::Text(Cow::Owned(number.to_string())),
            },
            value => Slot::Text(Cow::Owned(value.to_string())),
        }
    }
}

impl ToSql for Slot<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Slot::Empty => ValueRef::Null,
            Slot::Number(number) => ValueRef::Integer(*number),
            Slot::Text(text) => ValueRef::Text(text.as_bytes()),
        }))
    }
}

/// Whether JSON writes a text as it is.
pub(super) fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| byte >= 0x20 && byte != b'"' && byte != b'\\')
}

/// A text as JSON writes it between its quotation marks.
pub(super) fn escaped(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// The number that a text is, if it prints the same again.
fn whole_number(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    let is_number = (1..=DIGITS_MAX).contains(&bytes.len())
        && (bytes[0] != b'0' || bytes.len() == 1)
        && bytes.iter().all(u8::is_ascii_digit);
    is_number.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_slot_prints_what_json_writes() {
        let cases = [
            (json!("a%b"), "a%b"),
            (json!("a\"b\\\n\u{0}é"), r#"a\"b\\\n\u0000é"#),
            (json!("17"), "17"),
            (json!("017"), "017"),
            (json!("-1"), "-1"),
            (json!("9999999999999999999"), "9999999999999999999"),
            (json!(""), ""),
            (json!(-5), "-5"),
            (json!(u64::MAX), "18446744073709551615"),
            (json!(0.1), "0.1"),
            (json!(1e300), "1e+300"),
            (json!(null), "null"),
            (json!([true, {"k": "v"}]), r#"[true,{"k":"v"}]"#),
        ];
        for (value, expected) in cases {
            let printed = match Slot::of_value(&value) {
                Slot::Empty => String::new(),
                Slot::Number(number) => number.to_string(),
                Slot::Text(text) => text.into_owned(),
            };
            assert_eq!(printed, expected, "{value}");
        }
    }

    #[test]
    fn only_digits_that_print_the_same_become_numbers() {
        assert_eq!(Slot::of_text("0"), Slot::Number(0));
        assert_eq!(Slot::of_text("999999999999999999"), Slot::Number(999_999_999_999_999_999));
        for text in ["", "00", "+1", " 1", "1.0", "1234567890123456789", "١"] {
            assert_eq!(Slot::of_text(text), Slot::Text(text.into()), "{text}");
        }
    }
}
