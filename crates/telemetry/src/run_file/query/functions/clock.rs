//! Instants on the calendar, always in UTC.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;

/// The calendar's date and time of an instant in nanoseconds since the Unix epoch.
pub(super) fn civil(ns: i64) -> Option<DateTime> {
    let instant = Timestamp::from_nanosecond(i128::from(ns)).ok()?;
    Some(Offset::UTC.to_datetime(instant))
}

/// The other way round; None outside what 64 bits of nanoseconds hold, which is 1677 to 2262.
pub(super) fn nanoseconds(civil: DateTime) -> Option<i64> {
    let instant = Offset::UTC.to_timestamp(civil).ok()?;
    i64::try_from(instant.as_nanosecond()).ok()
}

/// The instant that text says: ISO 8601 with or without a time, a fraction and an offset (UTC when there is none), or
/// RFC 2822; `None` if it is anything else.
pub(super) fn instant_of(text: &str) -> Option<i64> {
    let text = text.trim();
    if let Ok(instant) = text.parse::<Timestamp>() {
        return i64::try_from(instant.as_nanosecond()).ok();
    }
    if let Ok(civil) = text.parse::<DateTime>() {
        return nanoseconds(civil);
    }
    let zoned = jiff::fmt::rfc2822::parse(text).ok()?;
    i64::try_from(zoned.timestamp().as_nanosecond()).ok()
}

/// As KQL prints an instant: ISO 8601 with seven digits and `Z`.
pub(super) fn instant_text(ns: i64) -> Option<String> {
    let civil = civil(ns)?;
    let (date, time) = (civil.date(), civil.time());
    let fraction = time.subsec_nanosecond() / 100;
    Some(format!("{date}T{:02}:{:02}:{:02}.{fraction:07}Z", time.hour(), time.minute(), time.second()))
}
