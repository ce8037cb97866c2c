//! Lengths of time: read from text as KQL writes them, and printed.

use rusqlite::{Connection, Result};

use super::arguments::{Number, integer, number, text};
use super::scalar;

const SECOND_NS: f64 = 1e9;
const DAY_NS: f64 = 86_400.0 * SECOND_NS;

/// The units of `1.5h` and `15 seconds`, with their length in nanoseconds.
const UNITS: [(&[&str], f64); 9] = [
    (&["d", "day", "days"], DAY_NS),
    (&["h", "hr", "hrs", "hour", "hours"], 3600.0 * SECOND_NS),
    (&["m", "min", "minute", "minutes"], 60.0 * SECOND_NS),
    (&["s", "sec", "second", "seconds"], SECOND_NS),
    (&["ms", "milli", "millis", "millisec", "millisecond", "milliseconds"], 1e6),
    (&["micro", "micros", "microsec", "microsecond", "microseconds"], 1e3),
    (&["tick", "ticks"], 100.0),
    (&["nano", "nanos", "nanosec", "nanosecond", "nanoseconds"], 1.0),
    (&[""], DAY_NS),
];

pub(super) fn register(connection: &Connection) -> Result<()> {
    scalar(connection, "kql_totimespan", 1, |context| {
        Ok(match number(context, 0) {
            Some(Number::Integer(ns)) => Some(ns),
            Some(Number::Real(ns)) => whole(ns),
            None => text(context, 0).and_then(|text| span_of(&text)),
        })
    })?;
    scalar(connection, "kql_timespan_text", 1, |context| Ok(integer(context, 0).map(span_text)))
}

/// `[-][days.]hours:minutes[:seconds[.fraction]]`, or a number with a unit; a number alone is days. In nanoseconds.
fn span_of(text: &str) -> Option<i64> {
    let text = text.trim();
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text),
    };
    let ns = if rest.contains(':') { clock_of(rest)? } else { counted(rest)? };
    ns.checked_mul(sign)
}

fn counted(text: &str) -> Option<i64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = (&text[..end], text[end..].trim().to_ascii_lowercase());
    let (_, length_ns) = UNITS.iter().find(|(names, _)| names.contains(&unit.as_str()))?;
    whole(number.parse::<f64>().ok()? * length_ns)
}

fn clock_of(text: &str) -> Option<i64> {
    let (front, rest) = text.split_once(':')?;
    let (days, hours) = front.split_once('.').unwrap_or(("0", front));
    let (minutes, seconds) = rest.split_once(':').unwrap_or((rest, "0"));
    let (seconds, fraction) = seconds.split_once('.').unwrap_or((seconds, ""));
    let below = |text: &str, limit: i64| digits(text).filter(|number| *number < limit);
    if fraction.len() > 9 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let fraction_ns = format!("{fraction:0<9}").parse::<i64>().ok()?;
    let whole_seconds = below(hours, 24)? * 3600 + below(minutes, 60)? * 60 + below(seconds, 60)?;
    digits(days)?.checked_mul(86_400)?.checked_add(whole_seconds)?.checked_mul(1_000_000_000)?.checked_add(fraction_ns)
}

/// A number of digits alone: no sign, no space.
fn digits(text: &str) -> Option<i64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

fn whole(ns: f64) -> Option<i64> {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    let ns = ns.round();
    (-LIMIT..LIMIT).contains(&ns).then_some(ns as i64)
}

/// As KQL prints a length: `[-][days.]hh:mm:ss[.fffffff]`.
fn span_text(ns: i64) -> String {
    let ticks = ns.unsigned_abs() / 100;
    let (seconds, fraction) = (ticks / 10_000_000, ticks % 10_000_000);
    let (days, hours) = (seconds / 86_400, seconds / 3600 % 24);
    let sign = if ns < 0 && ticks > 0 { "-" } else { "" };
    let days = if days > 0 { format!("{days}.") } else { String::new() };
    let fraction = if fraction > 0 { format!(".{fraction:07}") } else { String::new() };
    format!("{sign}{days}{hours:02}:{:02}:{:02}{fraction}", seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;

    #[test]
    fn lengths_are_read_as_the_language_writes_them() {
        let cases = [
            ("2d", "2.00:00:00"),
            ("1.5h", "01:30:00"),
            ("30m", "00:30:00"),
            ("10s", "00:00:10"),
            ("0.1s", "00:00:00.1000000"),
            ("100ms", "00:00:00.1000000"),
            ("10microsecond", "00:00:00.0000100"),
            ("1tick", "00:00:00.0000001"),
            ("15 seconds", "00:00:15"),
            ("2", "2.00:00:00"),
            ("0.12:34:56.7", "12:34:56.7000000"),
            ("00:01:00", "00:01:00"),
            ("12:34", "12:34:00"),
            ("-1.02:03:04", "-1.02:03:04"),
            ("-5m", "-00:05:00"),
        ];
        for (text, expected) in cases {
            check(&[(&format!("kql_timespan_text(kql_totimespan('{text}'))"), expected)]);
        }
    }

    #[test]
    fn what_is_no_length_is_null() {
        for text in ["", "-", "h", "5 parsecs", "1.2.3s", "25:00:00", "1:60:00", "1:2:3.x", "99999999999999999d", "é"]
        {
            check(&[(&format!("kql_totimespan('{text}')"), "NULL")]);
        }
        check(&[("kql_totimespan(NULL)", "NULL"), ("kql_totimespan(5)", "5"), ("kql_timespan_text(NULL)", "NULL")]);
        check(&[
            ("kql_timespan_text(-9223372036854775807 - 1)", "-106751.23:47:16.8547758"),
            ("kql_timespan_text(-1)", "00:00:00"),
        ]);
    }
}
