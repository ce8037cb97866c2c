//! The text of a cell: in full for programs, shorter for people.

use jiff::Timestamp;
use narrows_model::table::{Cell, Table};
use narrows_model::trace::hex;

/// A value in full: instants as RFC 3339 with seven digits, lengths as `[-][days.]hh:mm:ss[.fffffff]`, bytes in
/// hexadecimal, nothing for no value.
pub(super) fn exact(cell: &Cell) -> String {
    match cell {
        Cell::Null => String::new(),
        Cell::Bool(value) => value.to_string(),
        Cell::Integer(value) => value.to_string(),
        Cell::Real(value) => value.to_string(),
        Cell::Text(text) => text.clone(),
        Cell::Instant(ns) => instant(*ns),
        Cell::Span(ns) => span(*ns),
        Cell::Bytes(bytes) => hex(bytes),
    }
}

/// A value on one line for people: as [`exact`], but without digits that only rounding made, and instants without a
/// fraction of zeros.
pub(super) fn shown(cell: &Cell) -> String {
    match cell {
        Cell::Real(value) => rounded(*value),
        Cell::Instant(ns) => {
            let text = instant(*ns);
            let text = text.trim_end_matches('Z').trim_end_matches('0').trim_end_matches('.');
            // A second of `00` must keep its zeros.
            if ns % 1_000_000_000 == 0 { format!("{}Z", &instant(*ns)[..19]) } else { format!("{text}Z") }
        }
        cell => exact(cell),
    }
}

/// ISO 8601 in UTC. Every 64-bit number of nanoseconds is an instant.
fn instant(ns: i64) -> String {
    let instant = Timestamp::from_nanosecond(i128::from(ns)).unwrap_or_default();
    instant.strftime("%Y-%m-%dT%H:%M:%S.%7fZ").to_string()
}

fn span(ns: i64) -> String {
    let ticks = ns.unsigned_abs() / 100;
    let (seconds, fraction) = (ticks / 10_000_000, ticks % 10_000_000);
    let sign = if ns < 0 && ticks > 0 { "-" } else { "" };
    let days = if seconds >= 86_400 { format!("{}.", seconds / 86_400) } else { String::new() };
    let fraction = if fraction > 0 { format!(".{fraction:07}") } else { String::new() };
    let (hours, minutes) = (seconds / 3600 % 24, seconds / 60 % 60);
    format!("{sign}{days}{hours:02}:{minutes:02}:{:02}{fraction}", seconds % 60)
}

/// Nine digits, which no measurement exceeds; of large numbers fifteen, which is what arithmetic with them keeps.
fn rounded(value: f64) -> String {
    const LARGE: f64 = 1e9;
    let digits = if value.abs() < LARGE { 9 } else { 15 };
    format!("{value:.*e}", digits - 1).parse::<f64>().unwrap_or(value).to_string()
}

/// True if a column holds numbers, as far as it holds anything: such columns stand right.
pub(super) fn is_numeric(table: &Table, column: usize) -> bool {
    let cells = || table.rows.iter().filter_map(|row| row.get(column)).filter(|cell| **cell != Cell::Null);
    cells().next().is_some() && cells().all(|cell| number(cell).is_some())
}

/// A cell's number, if it is one; lengths in nanoseconds.
pub(super) fn number(cell: &Cell) -> Option<f64> {
    match cell {
        Cell::Integer(value) | Cell::Span(value) => Some(*value as f64),
        Cell::Real(value) => value.is_finite().then_some(*value),
        Cell::Null | Cell::Bool(_) | Cell::Text(_) | Cell::Instant(_) | Cell::Bytes(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::START_NS;
    use super::*;

    #[test]
    fn values_for_people_say_no_more_than_they_know() {
        let cases = [
            (Cell::Real(0.1 + 0.2), "0.30000000000000004", "0.3"),
            (Cell::Real(11.0), "11", "11"),
            (Cell::Real(115.0 / 3.0), "38.333333333333336", "38.3333333"),
            (Cell::Real(123_456_789_012.5), "123456789012.5", "123456789012.5"),
            (Cell::Real(f64::INFINITY), "inf", "inf"),
            (Cell::Instant(START_NS), "2020-06-18T20:59:00.0000000Z", "2020-06-18T20:59:00Z"),
            (Cell::Instant(START_NS + 500_000_000), "2020-06-18T20:59:00.5000000Z", "2020-06-18T20:59:00.5Z"),
            (Cell::Instant(-1), "1969-12-31T23:59:59.9999999Z", "1969-12-31T23:59:59.9999999Z"),
            (Cell::Instant(i64::MIN), "1677-09-21T00:12:43.1452241Z", "1677-09-21T00:12:43.1452241Z"),
            (Cell::Span(-90_061_000_000_000), "-1.01:01:01", "-1.01:01:01"),
            (Cell::Span(1_500_000_000), "00:00:01.5000000", "00:00:01.5000000"),
            (Cell::Bytes(vec![0xab, 1]), "ab01", "ab01"),
            (Cell::Null, "", ""),
        ];
        for (cell, in_full, for_people) in cases {
            assert_eq!((exact(&cell).as_str(), shown(&cell).as_str()), (in_full, for_people));
        }
    }
}
