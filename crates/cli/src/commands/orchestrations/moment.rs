//! Moments on the command line: an instant, or how long ago.

use std::time::Duration;

use narrows_durable::Time;

/// `7d`, or a length of time as experiment files have it.
pub(super) fn age(text: &str) -> Result<Duration, String> {
    const DAY_S: u64 = 86_400;
    let days = text.strip_suffix('d').and_then(|days| days.parse::<u64>().ok());
    let age = match days {
        Some(days) => days.checked_mul(DAY_S).map(Duration::from_secs),
        None => narrows_lab::experiment::parse_duration(text),
    };
    age.ok_or_else(|| "expected a length of time such as 90s, 15m, 12h, 7d".to_owned())
}

/// An instant of RFC 3339, or how long ago.
pub(super) fn moment(text: &str) -> Result<Time, String> {
    if let Ok(ago) = age(text) {
        return Ok(before(jiff::Timestamp::now(), ago));
    }
    let instant: jiff::Timestamp = text
        .parse()
        .map_err(|_| "expected an instant such as 2026-11-22T16:00:00Z, or how long ago, such as 2h".to_owned())?;
    Ok(Time(u64::try_from(instant.as_microsecond()).unwrap_or(0)))
}

/// The moment that lies so long before another.
pub(super) fn before(now: jiff::Timestamp, ago: Duration) -> Time {
    let ago = u64::try_from(ago.as_micros()).unwrap_or(u64::MAX);
    Time(u64::try_from(now.as_microsecond()).unwrap_or(0).saturating_sub(ago))
}

/// RFC 3339 in UTC, to the microsecond.
pub(super) fn rfc3339(time: Time) -> String {
    let microseconds = i64::try_from(time.0).unwrap_or(i64::MAX);
    let instant = jiff::Timestamp::from_microsecond(microseconds).unwrap_or(jiff::Timestamp::MAX);
    instant.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

/// Nanoseconds since the epoch, as tables have instants.
pub(super) fn nanoseconds(time: Time) -> i64 {
    i64::try_from(time.0).unwrap_or(i64::MAX).saturating_mul(1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_days_too() {
        assert_eq!(age("7d"), Ok(Duration::from_secs(604_800)));
        assert_eq!(age("1m30s"), Ok(Duration::from_secs(90)));
        for text in ["", "d", "-1d", "1w", "18446744073709551615d"] {
            assert!(age(text).is_err(), "{text}");
        }
    }

    #[test]
    fn moments_are_instants_or_ages() {
        assert_eq!(moment("2026-11-22T16:00:00Z"), Ok(Time(1_795_363_200_000_000)));
        assert_eq!(moment("2026-11-22T17:00:00+01:00"), Ok(Time(1_795_363_200_000_000)));
        assert!(moment("2h").unwrap() < moment("1h").unwrap());
        assert!(moment("yesterday").unwrap_err().starts_with("expected an instant"));
        assert_eq!(rfc3339(Time(1_795_363_200_000_001)), "2026-11-22T16:00:00.000001Z");
        assert_eq!(before(jiff::Timestamp::UNIX_EPOCH, Duration::MAX), Time(0));
    }
}
