//! Instants and lengths of time as KQL writes them.
//!
//! Both are counted in nanoseconds here: instants since the Unix epoch, which reach from 1677 to 2262. KQL's own clock ticks in
//! 100 ns and reaches further; what does not fit is refused.

use jiff::civil;
use jiff::tz::Offset;

/// Nanoseconds in a second.
pub(crate) const SECOND_NS: i64 = 1_000_000_000;
/// Nanoseconds in a day.
pub(crate) const DAY_NS: i64 = 86_400 * SECOND_NS;
/// A tick of the language.
pub(crate) const TICK_NS: i64 = 100;

/// How long a unit is that stands behind a number.
pub(crate) fn unit_ns(unit: &str) -> Option<i64> {
    Some(match unit {
        "d" | "day" | "days" => DAY_NS,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3_600 * SECOND_NS,
        "m" | "min" | "minute" | "minutes" => 60 * SECOND_NS,
        "s" | "sec" | "second" | "seconds" => SECOND_NS,
        "ms" | "milli" | "millis" | "millisecond" | "milliseconds" => 1_000_000,
        "micro" | "micros" | "microsecond" | "microseconds" => 1_000,
        "nano" | "nanos" | "nanosecond" | "nanoseconds" => 1,
        "tick" | "ticks" => TICK_NS,
        _ => return None,
    })
}

/// A decimal number times a unit, if it fits.
pub(crate) fn times(digits: &str, unit_ns: i64) -> Option<i64> {
    if let Ok(whole) = digits.parse::<i64>() {
        return whole.checked_mul(unit_ns);
    }
    let exact = digits.parse::<f64>().ok()? * unit_ns as f64;
    (exact.abs() < i64::MAX as f64).then_some(exact.round() as i64)
}

/// An instant: `2020-06-18`, `2020-06-18 20:59`, `2020-06-18T20:59:00.1234567Z`, with `+02:00` too. Without an offset it
/// is UTC.
pub(crate) fn datetime(text: &str) -> Option<i64> {
    let text = unquoted(text);
    let (date, rest) = match text.find(['T', 't', ' ']) {
        Some(at) => (&text[..at], text[at + 1..].trim_start()),
        None => (text, ""),
    };
    let mut parts = date.split('-');
    let year = whole(parts.next()?, 4, 4)?;
    let month = parts.next().map_or(Some(1), |part| whole(part, 1, 2))?;
    let day = parts.next().map_or(Some(1), |part| whole(part, 1, 2))?;
    if parts.next().is_some() {
        return None;
    }
    let (clock, offset) = split_offset(rest)?;
    let (hour, minute, second, fraction_ns) = if clock.is_empty() { (0, 0, 0, 0) } else { clock_time(clock)? };
    let year = i16::try_from(year).ok()?;
    let small = |value: i64| i8::try_from(value).ok();
    let nanoseconds = i32::try_from(fraction_ns).ok()?;
    let civil = civil::DateTime::new(
        year,
        small(month)?,
        small(day)?,
        small(hour)?,
        small(minute)?,
        small(second)?,
        nanoseconds,
    );
    let instant = offset.to_timestamp(civil.ok()?).ok()?;
    i64::try_from(instant.as_nanosecond()).ok()
}

/// A length of time: `1d`, `1.02:03:04.5678`, `02:03`, or a number of days.
pub(crate) fn timespan(text: &str) -> Option<i64> {
    let text = unquoted(text);
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text),
    };
    let length = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(length);
    if !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let span = if !unit.is_empty() {
        times(digits.trim(), unit_ns(unit)?)?
    } else if text.contains(':') {
        clocked(text)?
    } else {
        whole(text, 1, 6)?.checked_mul(DAY_NS)?
    };
    span.checked_mul(sign)
}

/// `[days.]hours:minutes[:seconds[.fraction]]`.
fn clocked(text: &str) -> Option<i64> {
    let colon = text.find(':')?;
    let (days, clock) = match text[..colon].split_once('.') {
        Some((days, _)) => (whole(days, 1, 6)?, &text[days.len() + 1..]),
        None => (0, text),
    };
    let (hour, minute, second, fraction_ns) = clock_time(clock)?;
    let seconds = ((days * 24 + hour) * 60 + minute) * 60 + second;
    seconds.checked_mul(SECOND_NS)?.checked_add(fraction_ns)
}

/// Hours, minutes, seconds and nanoseconds.
fn clock_time(text: &str) -> Option<(i64, i64, i64, i64)> {
    let (clock, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut parts = clock.split(':');
    let hour = whole(parts.next()?, 1, 2)?;
    let minute = whole(parts.next()?, 2, 2)?;
    let second = parts.next().map_or(Some(0), |part| whole(part, 2, 2))?;
    let is_sound = parts.next().is_none() && hour < 24 && minute < 60 && second < 60;
    let fraction_ns = if fraction.is_empty() {
        0
    } else {
        let digits = whole(fraction, 1, 9)?;
        digits * 10_i64.pow(9 - u32::try_from(fraction.len()).ok()?)
    };
    is_sound.then_some((hour, minute, second, fraction_ns))
}

/// The time of day and the offset behind it.
fn split_offset(text: &str) -> Option<(&str, Offset)> {
    if let Some(clock) = text.strip_suffix(['Z', 'z']) {
        return Some((clock.trim_end(), Offset::UTC));
    }
    let Some(at) = text.rfind(['+', '-']) else { return Some((text, Offset::UTC)) };
    let (hours, minutes) = text[at + 1..].split_once(':')?;
    let minutes = whole(hours, 2, 2)? * 60 + whole(minutes, 2, 2)?;
    let sign = if text[at..].starts_with('-') { -1 } else { 1 };
    let offset = Offset::from_seconds(i32::try_from(sign * minutes * 60).ok()?).ok()?;
    Some((text[..at].trim_end(), offset))
}

/// Digits and nothing else, from one count to another.
fn whole(text: &str, shortest: usize, longest: usize) -> Option<i64> {
    let is_whole = (shortest..=longest).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    is_whole.then(|| text.parse().ok()).flatten()
}

/// A text without the quotation marks around it.
pub(crate) fn unquoted(text: &str) -> &str {
    let text = text.trim();
    let inner = ['"', '\''].into_iter().find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote));
    inner.unwrap_or(text).trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants() {
        let start = 1_592_514_000 * SECOND_NS; // 2020-06-18 21:00 UTC
        for (text, wanted) in [
            ("2020-06-18T21:00:00.000Z", Some(start)),
            ("\"2020-06-18T21:00:00Z\"", Some(start)),
            ("2020-06-18 21:00", Some(start)),
            ("2020-06-18T23:00:00+02:00", Some(start)),
            ("2020-06-18T21:00:00.1234567Z", Some(start + 123_456_700)),
            ("1970-01-01", Some(0)),
            ("1970", Some(0)),
            ("1969-12-31 23:59:59", Some(-SECOND_NS)),
            ("2020-13-01", None),
            ("2020-02-30", None),
            ("9999-01-01", None),
            ("2020-06-18T25:00", None),
            ("yesterday", None),
            ("", None),
        ] {
            assert_eq!(datetime(text), wanted, "{text}");
        }
    }

    #[test]
    fn lengths_of_time() {
        for (text, wanted) in [
            ("1d", Some(DAY_NS)),
            ("-2h", Some(-7_200 * SECOND_NS)),
            ("1.02:03:04.5", Some(DAY_NS + 7_384 * SECOND_NS + SECOND_NS / 2)),
            ("00:05", Some(300 * SECOND_NS)),
            ("'00:00:10'", Some(10 * SECOND_NS)),
            ("3", Some(3 * DAY_NS)),
            ("25:00", None),
            ("soon", None),
            ("999999d", None),
            ("-", None),
        ] {
            assert_eq!(timespan(text), wanted, "{text}");
        }
    }
}
