//! Instants: read from text, printed, taken apart, and the edges of the days, weeks, months and years they are in.

use jiff::civil::{Date, DateTime, Time, Weekday};
use jiff::{Span, ToSpan};
use rusqlite::functions::Context;
use rusqlite::{Connection, Result};

use super::arguments::{integer, text};
use super::clock::{civil, instant_of, instant_text, nanoseconds};
use super::{scalar, wrong};

/// KQL's smallest length of time, by which an end is before the next start, in nanoseconds.
const TICK_NS: i64 = 100;
const PARTS: &str = "year, quarter, month, week_of_year, day, dayofyear, dayofweek, hour, minute, second, millisecond, \
                     microsecond or nanosecond";

pub(super) fn register(connection: &Connection) -> Result<()> {
    scalar(connection, "kql_todatetime", 1, |context| Ok(text(context, 0).and_then(|text| instant_of(&text))))?;
    scalar(connection, "kql_datetime_text", 1, |context| Ok(integer(context, 0).and_then(instant_text)))?;
    scalar(connection, "kql_datepart", 2, |context| {
        let Some((part, at)) = text(context, 0).zip(integer(context, 1).and_then(civil)) else { return Ok(None) };
        let found = part_of(&part.to_lowercase(), at);
        found.map(Some).ok_or_else(|| wrong(format!("`{part}` is no part of an instant, expected {PARTS}")))
    })?;
    for arguments in [2, 3] {
        scalar(connection, "kql_startof", arguments, |context| edge(context, |start, _| Some(start)))?;
        scalar(connection, "kql_endof", arguments, |context| edge(context, |_, next| next.checked_sub(TICK_NS)))?;
    }
    Ok(())
}

fn part_of(part: &str, at: DateTime) -> Option<i64> {
    Some(match part {
        "year" => at.year().into(),
        "quarter" => ((at.month() - 1) / 3 + 1).into(),
        "month" => at.month().into(),
        "week_of_year" => at.date().iso_week_date().week().into(),
        "day" => at.day().into(),
        "dayofyear" => at.day_of_year().into(),
        "dayofweek" | "weekday" => at.weekday().to_sunday_zero_offset().into(),
        "hour" => at.hour().into(),
        "minute" => at.minute().into(),
        "second" => at.second().into(),
        "millisecond" => (at.subsec_nanosecond() / 1_000_000).into(),
        "microsecond" => (at.subsec_nanosecond() / 1_000).into(),
        "nanosecond" => at.subsec_nanosecond().into(),
        _ => return None,
    })
}

/// `choose` gets the first instant of the interval that the argument lies in, moved on by the offset, and that of the
/// one after.
fn edge(context: &Context<'_>, choose: fn(i64, i64) -> Option<i64>) -> Result<Option<i64>> {
    let offset = if context.len() > 2 { integer(context, 2) } else { Some(0) };
    let (Some(unit), Some(at), Some(offset)) = (text(context, 0), integer(context, 1).and_then(civil), offset) else {
        return Ok(None);
    };
    let Some((start, one)) = interval(&unit.to_lowercase(), at) else {
        return Err(wrong(format!("`{unit}` is no unit, expected second, minute, hour, day, week, month or year")));
    };
    let moved = |by: i64| start.checked_add(one.checked_mul(by).ok()?).ok().and_then(nanoseconds);
    Ok(moved(offset).zip(offset.checked_add(1).and_then(moved)).and_then(|(start, next)| choose(start, next)))
}

/// The start of the interval that an instant lies in, and its length. Weeks begin on Sundays.
fn interval(unit: &str, at: DateTime) -> Option<(DateTime, Span)> {
    let (date, time) = (at.date(), at.time());
    let clock = |hour, minute, second| Time::new(hour, minute, second, 0).ok().map(|time| date.to_datetime(time));
    let midnight = |date: Date| date.to_datetime(Time::midnight());
    Some(match unit {
        "second" => (clock(time.hour(), time.minute(), time.second())?, 1.second()),
        "minute" => (clock(time.hour(), time.minute(), 0)?, 1.minute()),
        "hour" => (clock(time.hour(), 0, 0)?, 1.hour()),
        "day" => (midnight(date), 1.day()),
        "week" => {
            let since_sunday = i64::from(date.weekday().since(Weekday::Sunday));
            (midnight(date.checked_sub(since_sunday.days()).ok()?), 1.week())
        }
        "month" => (midnight(date.first_of_month()), 1.month()),
        "year" => (midnight(date.first_of_year()), 1.year()),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;

    #[test]
    fn instants_are_read_and_printed() {
        check(&[
            ("kql_todatetime('1970-01-01T00:00:00.0000001Z')", "100"),
            ("kql_datetime_text(kql_todatetime('2020-06-18T20:59:00.000Z'))", "2020-06-18T20:59:00.0000000Z"),
            ("kql_datetime_text(kql_todatetime('2014-05-25T08:20:03.123456+02:00'))", "2014-05-25T06:20:03.1234560Z"),
            ("kql_datetime_text(kql_todatetime('2014-11-08 15:55'))", "2014-11-08T15:55:00.0000000Z"),
            ("kql_datetime_text(kql_todatetime(' 2014-11-08 '))", "2014-11-08T00:00:00.0000000Z"),
            ("kql_datetime_text(kql_todatetime('Sat, 8 Nov 2014 15:05:02 GMT'))", "2014-11-08T15:05:02.0000000Z"),
            ("kql_datetime_text(-1)", "1969-12-31T23:59:59.9999999Z"),
            ("kql_todatetime('yesterday')", "NULL"),
            ("kql_todatetime('')", "NULL"),
            ("kql_todatetime('9999-12-31')", "NULL"),
            ("kql_todatetime(NULL)", "NULL"),
            ("kql_datetime_text(NULL)", "NULL"),
        ]);
    }

    #[test]
    fn instants_are_taken_apart_as_the_language_documents_it() {
        // The example of KQL's own page on datetime_part().
        let at = "kql_todatetime('2017-10-30 01:02:03.7654321')";
        let cases = [
            ("year", "2017"),
            ("Quarter", "4"),
            ("month", "10"),
            ("week_of_year", "44"),
            ("day", "30"),
            ("DayOfYear", "303"),
            ("dayofweek", "1"),
            ("hour", "1"),
            ("minute", "2"),
            ("second", "3"),
            ("millisecond", "765"),
            ("microsecond", "765432"),
            ("nanosecond", "765432100"),
        ];
        for (part, expected) in cases {
            check(&[(&format!("kql_datepart('{part}', {at})"), expected)]);
        }
        check(&[
            ("kql_datepart('day', NULL)", "NULL"),
            (
                "kql_datepart('era', 0)",
                "error: `era` is no part of an instant, expected year, quarter, month, week_of_year, day, dayofyear, \
                 dayofweek, hour, minute, second, millisecond, microsecond or nanosecond",
            ),
        ]);
    }

    #[test]
    fn edges_of_intervals_of_the_calendar() {
        let cases = [
            ("startof('day', AT)", "2017-01-01T00:00:00.0000000Z"),
            ("startof('day', AT, -1)", "2016-12-31T00:00:00.0000000Z"),
            ("startof('hour', AT)", "2017-01-01T10:00:00.0000000Z"),
            ("startof('week', AT)", "2017-01-01T00:00:00.0000000Z"),
            ("startof('week', AT, 1)", "2017-01-08T00:00:00.0000000Z"),
            ("startof('month', AT, 1)", "2017-02-01T00:00:00.0000000Z"),
            ("startof('year', AT, -1)", "2016-01-01T00:00:00.0000000Z"),
            ("endof('day', AT)", "2017-01-01T23:59:59.9999999Z"),
            ("endof('month', AT, 1)", "2017-02-28T23:59:59.9999999Z"),
            ("endof('year', AT)", "2017-12-31T23:59:59.9999999Z"),
        ];
        for (call, expected) in cases {
            let call = call.replace("AT", "kql_todatetime('2017-01-01 10:10:17')");
            check(&[(&format!("kql_datetime_text(kql_{call})"), expected)]);
        }
        check(&[
            ("kql_startof('day', NULL)", "NULL"),
            ("kql_startof('day', 0, 99999999999)", "NULL"),
            (
                "kql_startof('age', 0)",
                "error: `age` is no unit, expected second, minute, hour, day, week, month or year",
            ),
        ]);
    }
}
