//! Lengths of time, amounts of memory and rates as an experiment file writes them: `1m30s`, `250ms`, `1.5s`; `256MiB`,
//! `1GB`; `500/s`, `30/min`.

use std::time::Duration;

use super::error::shortened;

/// The units of time.
const TIME_UNITS: [(&str, u64); 6] = [
    ("ms", 1_000_000),
    ("us", 1_000),
    ("µs", 1_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
];

const MEMORY_UNITS: [(&str, u64); 7] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("B", 1),
];

/// The longest time a file may set: 30 days.
pub(super) const DURATION_MAX: Duration = Duration::from_secs(30 * 24 * 3600);

/// Regular expression of the texts that [`duration`] accepts.
pub(super) const DURATION_PATTERN: &str = r"^([0-9]+(\.[0-9]+)?(h|m|s|ms|us|µs))+$";

/// Regular expression of the texts that [`bytes`] accepts.
pub(super) const BYTES_PATTERN: &str = r"^([0-9]+|[0-9]+(\.[0-9]+)?(B|kB|KiB|MB|MiB|GB|GiB))$";

/// Regular expression of the texts that [`rate`] accepts.
pub(super) const RATE_PATTERN: &str = r"^[0-9]+(\.[0-9]+)?(/(s|min|h))?$";

const RATE_UNITS: [(&str, f64); 4] = [("", 1.0), ("/s", 1.0), ("/min", 60.0), ("/h", 3600.0)];

/// Why a text is no length of time.
enum NoDuration<'a> {
    NoNumber,
    NoUnit(&'a str),
    TooLong,
}

/// One or more numbers with units, added up; `0` needs no unit. `None` if it is anything else or above
/// [`DURATION_MAX`].
pub(super) fn duration(text: &str) -> Option<Duration> {
    sum(text).ok()
}

/// The shortest and the longest of `1s to 3s`, or one length of time as both; `None` if it is anything else.
pub(super) fn durations(text: &str) -> Option<(Duration, Duration)> {
    let (from, to) = text.split_once(" to ").unwrap_or((text, text));
    let (from, to) = (duration(from)?, duration(to)?);
    (from <= to).then_some((from, to))
}

/// Hint for a text that is no [`duration`], if there is one.
pub(super) fn advice(text: &str) -> Option<String> {
    match sum(text) {
        Err(NoDuration::TooLong) => Some("the longest is 30 days, `720h`".to_owned()),
        Err(NoDuration::NoUnit(unit)) if !unit.is_empty() => {
            Some(format!("`{}` is not a unit; use `h`, `m`, `s`, `ms` or `us`", shortened(unit)))
        }
        _ => None,
    }
}

fn sum(text: &str) -> Result<Duration, NoDuration<'_>> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let mut rest = text;
    let mut sum_ns = Some(0u64);
    while !rest.is_empty() {
        let (number, after) = decimal(rest).ok_or(NoDuration::NoNumber)?;
        let end = after.find(|c: char| !c.is_alphabetic()).unwrap_or(after.len());
        let (unit, behind) = after.split_at(end);
        let (_, factor) = TIME_UNITS.iter().find(|(known, _)| *known == unit).ok_or(NoDuration::NoUnit(unit))?;
        sum_ns = sum_ns.zip(times(number, *factor)).and_then(|(sum, more)| sum.checked_add(more));
        rest = behind;
    }
    match sum_ns.map(Duration::from_nanos) {
        _ if text.is_empty() => Err(NoDuration::NoNumber),
        Some(sum) if sum <= DURATION_MAX => Ok(sum),
        _ => Err(NoDuration::TooLong),
    }
}

/// A whole number of bytes, or a number with a unit; `None` if it is neither.
pub(super) fn bytes(text: &str) -> Option<u64> {
    let (number, unit) = decimal(text)?;
    if unit.is_empty() && number.fract() != 0.0 {
        return None;
    }
    let (_, factor) = MEMORY_UNITS.iter().find(|(known, _)| unit == *known || (unit.is_empty() && *known == "B"))?;
    times(number, *factor)
}

/// A number of 0 or more, per second unless another unit of time is given: `500`, `500/s`, `30/min`, `1000/h`. `None`
/// if it is anything else.
pub(super) fn rate(text: &str) -> Option<f64> {
    // YAML may write a number as `1e3`.
    if let Some(number) =
        text.parse().ok().filter(|_| text.bytes().all(|b| b.is_ascii_digit() || b".e+-E".contains(&b)))
    {
        return Some(number).filter(|number: &f64| number.is_finite() && *number >= 0.0);
    }
    let (number, unit) = decimal(text)?;
    let (_, seconds) = RATE_UNITS.iter().find(|(known, _)| *known == unit)?;
    Some(number / seconds)
}

/// Splits a plain decimal number off the front: digits, perhaps a point and digits.
pub(super) fn decimal(text: &str) -> Option<(f64, &str)> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let mut end = digits(text);
    if end == 0 {
        return None;
    }
    if let Some(fraction) = text[end..].strip_prefix('.') {
        match digits(fraction) {
            0 => return None,
            more => end += 1 + more,
        }
    }
    Some((text[..end].parse().ok()?, &text[end..]))
}

fn times(number: f64, factor: u64) -> Option<u64> {
    // Beyond 2^53 a double no longer holds every whole number, and no honest quantity is that large.
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    let product = (number * factor as f64).round();
    (product <= EXACT_MAX).then_some(product as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lengths_of_time() {
        let ms = |n| Some(Duration::from_millis(n));
        let cases = [
            ("250ms", ms(250)),
            ("1.5s", ms(1_500)),
            ("1m30s", ms(90_000)),
            ("8m", ms(480_000)),
            ("2h", ms(7_200_000)),
            ("50us", Some(Duration::from_micros(50))),
            ("50µs", Some(Duration::from_micros(50))),
            ("0", ms(0)),
            ("0s", ms(0)),
            ("10", None),
            ("", None),
            ("s", None),
            ("1.s", None),
            (".5s", None),
            ("-1s", None),
            ("1 s", None),
            ("1d", None),
            ("721h", None),
            ("99999999999999999999h", None),
        ];
        for (text, expected) in cases {
            assert_eq!(duration(text), expected, "{text:?}");
        }
    }

    #[test]
    fn units_and_the_limit_are_explained() {
        let limit = Some("the longest is 30 days, `720h`");
        let units = |unit: &str| Some(format!("`{unit}` is not a unit; use `h`, `m`, `s`, `ms` or `us`"));
        assert_eq!(advice("800h").as_deref(), limit);
        assert_eq!(advice("99999999999999999999h1s").as_deref(), limit);
        assert_eq!(advice("31d"), units("d"));
        assert_eq!(advice("1h5min"), units("min"));
        assert_eq!(duration("720h"), Some(DURATION_MAX));
        for text in ["", "x", "10", "1 s", "30s"] {
            assert_eq!(advice(text), None, "{text}");
        }
    }

    #[test]
    fn amounts_of_memory() {
        let cases = [
            ("1048576", Some(1 << 20)),
            ("256MiB", Some(256 << 20)),
            ("1.5GiB", Some(3 << 29)),
            ("64kB", Some(64_000)),
            ("2GB", Some(2_000_000_000)),
            ("10B", Some(10)),
            ("256 MiB", None),
            ("256M", None),
            ("1.5", None),
            ("256mib", None),
            ("MiB", None),
            ("-1", None),
            ("99999999999GiB", None),
        ];
        for (text, expected) in cases {
            assert_eq!(bytes(text), expected, "{text:?}");
        }
    }

    #[test]
    fn rates() {
        let cases = [
            ("500", Some(500.0)),
            ("0.5", Some(0.5)),
            ("1e3", Some(1000.0)),
            ("500/s", Some(500.0)),
            ("30/min", Some(0.5)),
            ("1800/h", Some(0.5)),
            ("0/s", Some(0.0)),
            ("-1", None),
            ("1e999", None),
            ("30/m", None),
            ("30 /s", None),
            ("/s", None),
            ("", None),
            ("1e3/s", None),
        ];
        for (text, expected) in cases {
            assert_eq!(rate(text), expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics_and_milliseconds_come_back(text in "\\PC{0,12}", ms in 0..1_000_000_000u64) {
            let _ = (duration(&text), bytes(&text), rate(&text));
            prop_assert_eq!(duration(&format!("{ms}ms")), Some(Duration::from_millis(ms)));
        }
    }
}
