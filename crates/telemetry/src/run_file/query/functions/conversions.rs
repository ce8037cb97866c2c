//! Text as numbers and truth values. What does not read as one is NULL.

use rusqlite::functions::Context;
use rusqlite::{Connection, Result};

use super::arguments::{Number, integer, number, text};
use super::scalar;

pub(super) fn register(connection: &Connection) -> Result<()> {
    scalar(connection, "kql_tolong", 1, |context| Ok(long(context)))?;
    scalar(connection, "kql_toreal", 1, |context| {
        Ok(number(context, 0).map(Number::as_f64).or_else(|| text(context, 0).and_then(|text| real_of(&text))))
    })?;
    scalar(connection, "kql_tobool", 1, |context| {
        Ok(match text(context, 0) {
            Some(text) if text.trim().eq_ignore_ascii_case("true") => Some(true),
            Some(text) if text.trim().eq_ignore_ascii_case("false") => Some(false),
            Some(text) => real_of(&text).map(|number| number != 0.0),
            None => None,
        })
    })
}

/// Whole numbers, also hexadecimal with `0x`; a fraction is left out.
fn long(context: &Context<'_>) -> Option<i64> {
    if number(context, 0).is_some() {
        return integer(context, 0);
    }
    let text = text(context, 0)?;
    let text = text.trim();
    let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let whole = |number: f64| (number.abs() < 9_223_372_036_854_775_807.0).then_some(number as i64);
    match hexadecimal {
        Some(digits) if digits.starts_with(['+', '-']) => None,
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok().or_else(|| real_of(text).and_then(whole)),
    }
}

fn real_of(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|number: &f64| number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;

    #[test]
    fn text_is_read_as_what_it_says() {
        check(&[
            ("kql_tolong(' 123 ')", "123"),
            ("kql_tolong('0x1F')", "31"),
            ("kql_tolong('0x-1')", "NULL"),
            ("kql_tolong('-2.9')", "-2"),
            ("kql_tolong(7.9)", "7"),
            ("kql_tolong('9223372036854775807')", "9223372036854775807"),
            ("kql_tolong('1e30')", "NULL"),
            ("kql_tolong('many')", "NULL"),
            ("kql_tolong(NULL)", "NULL"),
            ("kql_toreal('2.5')", "2.5"),
            ("kql_toreal(2)", "2.0"),
            ("kql_toreal('inf')", "NULL"),
            ("kql_toreal('')", "NULL"),
            ("kql_tobool('True')", "1"),
            ("kql_tobool('false')", "0"),
            ("kql_tobool('0')", "0"),
            ("kql_tobool(123)", "1"),
            ("kql_tobool('yes')", "NULL"),
            ("kql_tobool(NULL)", "NULL"),
        ]);
    }
}
