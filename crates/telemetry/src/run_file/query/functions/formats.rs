//! `format_datetime` and `format_timespan`: letters stand for parts, everything else for itself.
//!
//! A letter that stands for nothing is an error rather than text, since it is a mistake: `YYYY` would print itself.

use rusqlite::functions::Context;
use rusqlite::{Connection, Result};

use super::arguments::{integer, text};
use super::clock::civil;
use super::{scalar, wrong};

/// The longest format, in characters.
const FORMAT_MAX: usize = 1024;

pub(super) fn register(connection: &Connection) -> Result<()> {
    scalar(connection, "kql_format_datetime", 2, |context| format(context, |ns| civil(ns).map(instant), instant_part))?;
    scalar(connection, "kql_format_timespan", 2, |context| format(context, |ns| Some(length(ns)), length_part))
}

/// Parts that formats can show: all of an instant; of a length, all but `year` and `month`, and `days` are whole days.
struct Parts {
    year: u64,
    month: u64,
    days: u64,
    hour: u64,
    minute: u64,
    second: u64,
    /// Ten-millionths of a second.
    ticks: u64,
}

fn instant(at: jiff::civil::DateTime) -> Parts {
    let positive = |number: i64| number.unsigned_abs();
    Parts {
        year: positive(at.year().into()),
        month: positive(at.month().into()),
        days: positive(at.day().into()),
        hour: positive(at.hour().into()),
        minute: positive(at.minute().into()),
        second: positive(at.second().into()),
        ticks: positive((at.subsec_nanosecond() / 100).into()),
    }
}

fn length(ns: i64) -> Parts {
    let ticks = ns.unsigned_abs() / 100;
    let seconds = ticks / 10_000_000;
    Parts {
        year: 0,
        month: 0,
        days: seconds / 86_400,
        hour: seconds / 3600 % 24,
        minute: seconds / 60 % 60,
        second: seconds % 60,
        ticks: ticks % 10_000_000,
    }
}

fn format(
    context: &Context<'_>,
    parts: fn(i64) -> Option<Parts>,
    part: fn(&Parts, char, usize) -> Option<String>,
) -> Result<Option<String>> {
    let Some((parts, format)) = integer(context, 0).and_then(parts).zip(text(context, 1)) else { return Ok(None) };
    if format.chars().count() > FORMAT_MAX {
        return Err(wrong(format!("a format of more than {FORMAT_MAX} characters")));
    }
    let mut out = String::new();
    let mut rest = format.chars().peekable();
    while let Some(letter) = rest.next() {
        if !letter.is_alphabetic() {
            out.push(letter);
            continue;
        }
        let mut count = 1;
        while rest.next_if_eq(&letter).is_some() {
            count += 1;
        }
        let run = letter.to_string().repeat(count);
        let known = part(&parts, letter, count);
        out.push_str(&known.ok_or_else(|| wrong(format!("`{run}` in the format `{format}` stands for nothing")))?);
    }
    Ok(Some(out))
}

fn instant_part(parts: &Parts, letter: char, count: usize) -> Option<String> {
    match (letter, count) {
        ('y', 1) => Some((parts.year % 100).to_string()),
        ('y', 2) => Some(format!("{:02}", parts.year % 100)),
        ('y', 4) => Some(format!("{:04}", parts.year)),
        ('M', 1 | 2) => Some(padded(parts.month, count)),
        ('d', 1 | 2) => Some(padded(parts.days, count)),
        ('h', 1 | 2) => Some(padded((parts.hour + 11) % 12 + 1, count)),
        ('t', 2) => Some(if parts.hour < 12 { "AM" } else { "PM" }.to_owned()),
        _ => clock_part(parts, letter, count),
    }
}

fn length_part(parts: &Parts, letter: char, count: usize) -> Option<String> {
    match (letter, count) {
        ('d', 1..=8) => Some(padded(parts.days, count)),
        ('h', 1 | 2) => Some(padded(parts.hour, count)),
        _ => clock_part(parts, letter, count),
    }
}

fn clock_part(parts: &Parts, letter: char, count: usize) -> Option<String> {
    match (letter, count) {
        ('H', 1 | 2) => Some(padded(parts.hour, count)),
        ('m', 1 | 2) => Some(padded(parts.minute, count)),
        ('s', 1 | 2) => Some(padded(parts.second, count)),
        ('f', 1..=7) => Some(fraction(parts, count)),
        ('F', 1..=7) => Some(fraction(parts, count).trim_end_matches('0').to_owned()),
        _ => None,
    }
}

fn padded(number: u64, width: usize) -> String {
    format!("{number:0width$}")
}

fn fraction(parts: &Parts, digits: usize) -> String {
    format!("{:07}", parts.ticks).chars().take(digits).collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;

    #[test]
    fn instants_as_the_language_documents_it() {
        let cases = [
            ("2017-01-29 09:00:05", "yy-MM-dd [HH:mm:ss]", "17-01-29 [09:00:05]"),
            ("2017-01-29 09:00:05", "yyyy-M-dd [H:mm:ss]", "2017-1-29 [9:00:05]"),
            ("2017-01-29 09:00:05", "yy-MM-dd [hh:mm:ss tt]", "17-01-29 [09:00:05 AM]"),
            ("2009-06-15 13:45:30.6175425", "f ff fff fffffff", "6 61 617 6175425"),
            ("2009-06-15 13:45:30.0001150", "FF|FFFFFFF", "|000115"),
            ("2009-06-15 00:45:30", "h tt", "12 AM"),
            ("2009-06-05 12:45:30", "d h tt y", "5 12 PM 9"),
        ];
        for (at, format, expected) in cases {
            check(&[(&format!("kql_format_datetime(kql_todatetime('{at}'), '{format}')"), expected)]);
        }
        check(&[
            ("kql_format_datetime(0, 'YYYY')", "error: `YYYY` in the format `YYYY` stands for nothing"),
            ("kql_format_datetime(0, '')", ""),
            ("kql_format_datetime(NULL, 'yyyy')", "NULL"),
        ]);
    }

    #[test]
    fn lengths_have_days() {
        let span = "kql_totimespan('29.09:00:05.12345')";
        check(&[
            (&format!("kql_format_timespan({span}, 'dd.hh:mm:ss:FF')"), "29.09:00:05:12"),
            (&format!("kql_format_timespan({span}, 'ddd.h:mm:ss [fffffff]')"), "029.9:00:05 [1234500]"),
        ]);
    }
}
