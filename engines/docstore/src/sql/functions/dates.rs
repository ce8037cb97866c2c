//! Functions on points in time: texts such as `2021-03-04T05:06:07.1234567Z`, ticks of 100 nanoseconds and milliseconds
//! since 1970. Days are counted in the Gregorian calendar, by the method of Howard Hinnant's "chrono-compatible
//! low-level date algorithms".

use super::{Arguments, Entry, defined};
use crate::sql::value::Value;

const TICKS_PER_MS: i64 = 10_000;
const TICKS_PER_SECOND: i64 = 1_000 * TICKS_PER_MS;
const TICKS_PER_DAY: i64 = 86_400 * TICKS_PER_SECOND;
/// 9999-12-31, the last day there is a text for, and 0001-01-01, the first, in days since 1970.
const DAYS: std::ops::RangeInclusive<i64> = -719_162..=2_932_896;

pub(super) const ALL: &[Entry] = &[
    Entry::new("DATETIMEADD", 3, 3, |given| defined(add(given))),
    Entry::new("DATETIMEBIN", 2, 4, |given| defined(bin(given))),
    Entry::new("DATETIMEDIFF", 3, 3, |given| defined(difference(given))),
    Entry::new("DATETIMEFROMPARTS", 3, 7, |given| defined(from_parts(given))),
    Entry::new("DATETIMEPART", 2, 2, |given| defined(part(given))),
    Entry::new("DATETIMETOTICKS", 1, 1, |given| defined(ticks_of(given, 0).map(|ticks| Value::Number(ticks as f64)))),
    Entry::new("DATETIMETOTIMESTAMP", 1, 1, |given| {
        defined(ticks_of(given, 0).map(|ticks| Value::Number(ticks.div_euclid(TICKS_PER_MS) as f64)))
    }),
    Entry::new("GETCURRENTDATETIME", 0, 0, |given| defined(text(given.context.now_ticks))),
    Entry::new("GETCURRENTDATETIMESTATIC", 0, 0, |given| defined(text(given.context.now_ticks))),
    Entry::new("GETCURRENTTICKS", 0, 0, |given| Value::Number(given.context.now_ticks as f64)),
    Entry::new("GETCURRENTTICKSSTATIC", 0, 0, |given| Value::Number(given.context.now_ticks as f64)),
    Entry::new("GETCURRENTTIMESTAMP", 0, 0, |given| Value::Number((given.context.now_ticks / TICKS_PER_MS) as f64)),
    Entry::new("GETCURRENTTIMESTAMPSTATIC", 0, 0, |given| {
        Value::Number((given.context.now_ticks / TICKS_PER_MS) as f64)
    }),
    Entry::new("TICKSTODATETIME", 1, 1, |given| defined(given.whole(0).and_then(text))),
    Entry::new("TIMESTAMPTODATETIME", 1, 1, |given| {
        defined(given.whole(0).and_then(|ms| ms.checked_mul(TICKS_PER_MS)).and_then(text))
    }),
];

/// Unit of a part of a point in time.
#[derive(Clone, Copy)]
enum Part {
    Months(i64),
    /// Ticks in one of them.
    Ticks(i64),
    /// One nanosecond is less than a tick.
    Nanosecond,
}

fn part_named(name: &str) -> Option<(&'static str, Part)> {
    const NAMES: [(&[&str], Part); 9] = [
        (&["year", "yyyy", "yy"], Part::Months(12)),
        (&["month", "mm", "m"], Part::Months(1)),
        (&["day", "dd", "d"], Part::Ticks(TICKS_PER_DAY)),
        (&["hour", "hh"], Part::Ticks(3_600 * TICKS_PER_SECOND)),
        (&["minute", "mi", "n"], Part::Ticks(60 * TICKS_PER_SECOND)),
        (&["second", "ss", "s"], Part::Ticks(TICKS_PER_SECOND)),
        (&["millisecond", "ms"], Part::Ticks(TICKS_PER_MS)),
        (&["microsecond", "mcs"], Part::Ticks(10)),
        (&["nanosecond", "ns"], Part::Nanosecond),
    ];
    let name = name.to_ascii_lowercase();
    NAMES.iter().find(|(names, _)| names.contains(&name.as_str())).map(|(names, part)| (names[0], *part))
}

fn add(given: &Arguments<'_>) -> Option<Value> {
    let ((_, part), count, ticks) = (part_named(given.text(0)?)?, given.whole(1)?, ticks_of(given, 2)?);
    let sum = match part {
        Part::Ticks(each) => ticks.checked_add(count.checked_mul(each)?)?,
        Part::Nanosecond => ticks.checked_add(count / 100)?,
        Part::Months(each) => {
            let (year, month, day) = date(ticks.div_euclid(TICKS_PER_DAY));
            let months = (year * 12 + month - 1).checked_add(count.checked_mul(each)?)?;
            let (year, month) = (months.div_euclid(12), months.rem_euclid(12) + 1);
            if !(1..=9_999).contains(&year) {
                return None;
            }
            let day = day.min(days_of_month(year, month));
            days(year, month, day) * TICKS_PER_DAY + ticks.rem_euclid(TICKS_PER_DAY)
        }
    };
    text(sum)
}

/// Months since the beginning of year 0.
fn months(ticks: i64) -> i64 {
    let (year, month, _) = date(ticks.div_euclid(TICKS_PER_DAY));
    year * 12 + month - 1
}

/// Boundaries of the part that lie between two points in time.
fn difference(given: &Arguments<'_>) -> Option<Value> {
    let ((_, part), begin, end) = (part_named(given.text(0)?)?, ticks_of(given, 1)?, ticks_of(given, 2)?);
    let count = match part {
        Part::Ticks(each) => end.div_euclid(each) - begin.div_euclid(each),
        Part::Nanosecond => (end - begin).checked_mul(100)?,
        Part::Months(each) => months(end).div_euclid(each) - months(begin).div_euclid(each),
    };
    Some(Value::Number(count as f64))
}

/// The beginning of the bin a point in time is in; bins count from 1970 or from the fourth argument.
fn bin(given: &Arguments<'_>) -> Option<Value> {
    let (ticks, (_, part)) = (ticks_of(given, 0)?, part_named(given.text(1)?)?);
    let size = if given.values.len() > 2 { given.whole(2).filter(|size| *size > 0)? } else { 1 };
    let origin = if given.values.len() > 3 { ticks_of(given, 3)? } else { 0 };
    match part {
        Part::Ticks(each) => {
            let width = each.checked_mul(size)?;
            text(origin + (ticks - origin).div_euclid(width).checked_mul(width)?)
        }
        Part::Nanosecond => text(ticks),
        Part::Months(each) => {
            let (year, month, _) = date(ticks.div_euclid(TICKS_PER_DAY));
            let (first_year, first_month, _) = date(origin.div_euclid(TICKS_PER_DAY));
            let width = each.checked_mul(size)?;
            let first = first_year * 12 + first_month - 1;
            let months = first + (year * 12 + month - 1 - first).div_euclid(width).checked_mul(width)?;
            text(days(months.div_euclid(12), months.rem_euclid(12) + 1, 1).checked_mul(TICKS_PER_DAY)?)
        }
    }
}

fn from_parts(given: &Arguments<'_>) -> Option<Value> {
    let mut parts = [1, 1, 1, 0, 0, 0, 0];
    for (index, part) in parts.iter_mut().enumerate().take(given.values.len()) {
        *part = given.whole(index)?;
    }
    let [year, month, day, hour, minute, second, ticks] = parts;
    text(point(year, month, day, [hour, minute, second, ticks])?)
}

fn part(given: &Arguments<'_>) -> Option<Value> {
    let ((name, _), ticks) = (part_named(given.text(0)?)?, ticks_of(given, 1)?);
    let (year, month, day) = date(ticks.div_euclid(TICKS_PER_DAY));
    let of_day = ticks.rem_euclid(TICKS_PER_DAY);
    let of_second = of_day % TICKS_PER_SECOND;
    let number = match name {
        "year" => year,
        "month" => month,
        "day" => day,
        "hour" => of_day / (3_600 * TICKS_PER_SECOND),
        "minute" => of_day / (60 * TICKS_PER_SECOND) % 60,
        "second" => of_day / TICKS_PER_SECOND % 60,
        "millisecond" => of_second / TICKS_PER_MS,
        "microsecond" => of_second / 10,
        _ => of_second * 100,
    };
    Some(Value::Number(number as f64))
}

fn ticks_of(given: &Arguments<'_>, index: usize) -> Option<i64> {
    read(given.text(index)?)
}

/// `YYYY-MM-DD`, then perhaps `THH:MM:SS`, a fraction and Z.
fn read(text: &str) -> Option<i64> {
    let (date, time) = match text.split_once('T') {
        Some((date, time)) => (date, time.strip_suffix('Z').unwrap_or(time)),
        None => (text, "00:00:00"),
    };
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let (time, fraction) = time.split_once('.').unwrap_or((time, ""));
    let [hour, minute, second] = numbers(time, ':', [2, 2, 2])?;
    if fraction.len() > 7 || !fraction.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let ticks = format!("{fraction:0<7}").parse().ok()?;
    point(year, month, day, [hour, minute, second, ticks])
}

fn numbers<const N: usize>(text: &str, separator: char, digits: [usize; N]) -> Option<[i64; N]> {
    let mut numbers = [0; N];
    let mut pieces = text.split(separator);
    for (number, digits) in numbers.iter_mut().zip(digits) {
        let piece = pieces.next()?;
        if piece.len() != digits || !piece.bytes().all(|digit| digit.is_ascii_digit()) {
            return None;
        }
        *number = piece.parse().ok()?;
    }
    pieces.next().is_none().then_some(numbers)
}

/// Ticks since 1970, if each part is within its bounds.
fn point(year: i64, month: i64, day: i64, [hour, minute, second, ticks]: [i64; 4]) -> Option<i64> {
    let is_date =
        (1..=9_999).contains(&year) && (1..=12).contains(&month) && (1..=days_of_month(year, month)).contains(&day);
    let is_time = (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0..60).contains(&second)
        && (0..TICKS_PER_SECOND).contains(&ticks);
    let seconds = (hour * 60 + minute).checked_mul(60)?.checked_add(second)?;
    (is_date && is_time).then(|| days(year, month, day) * TICKS_PER_DAY + seconds * TICKS_PER_SECOND + ticks)
}

fn text(ticks: i64) -> Option<Value> {
    let day_number = ticks.div_euclid(TICKS_PER_DAY);
    if !DAYS.contains(&day_number) {
        return None;
    }
    let (year, month, day) = date(day_number);
    let of_day = ticks.rem_euclid(TICKS_PER_DAY);
    let (seconds, fraction) = (of_day / TICKS_PER_SECOND, of_day % TICKS_PER_SECOND);
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    Some(Value::Text(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{fraction:07}Z")))
}

fn days_of_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 to a date; years begin in March, so that a leap day is the last of its year.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// The inverse of [`days`].
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day_of_year - (153 * shifted + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::functions::tests::check;

    #[test]
    fn points_in_time() {
        check(&[
            ("GETCURRENTDATETIME()", "\"2021-03-04T05:06:07.0000000Z\""),
            ("GetCurrentTimestamp()", "1614834367000"),
            ("DateTimeAdd('mm', 1, '2020-01-31T10:00:00Z')", "\"2020-02-29T10:00:00.0000000Z\""),
            ("DateTimeAdd('hh', -25, '2020-03-01')", "\"2020-02-28T23:00:00.0000000Z\""),
            ("DateTimeAdd('yyyy', 9999, '2020-03-01')", "undefined"),
            ("DateTimeAdd('century', 1, '2020-03-01')", "undefined"),
            ("DateTimeDiff('month', '2020-01-31', '2021-02-01')", "13"),
            ("DateTimeDiff('s', '2020-01-01T00:00:00.9Z', '2020-01-01T00:00:01Z')", "1"),
            ("DateTimePart('ms', '2020-01-01T00:00:00.9876543Z')", "987"),
            ("DateTimePart('m', '2020-12-01')", "12"),
            ("DateTimeFromParts(2020, 2, 29, 1, 2, 3, 4)", "\"2020-02-29T01:02:03.0000004Z\""),
            ("DateTimeFromParts(2021, 2, 29)", "undefined"),
            ("DateTimeToTimestamp('1970-01-02')", "86400000"),
            ("DateTimeToTicks('1970-01-01T00:00:00.0000001Z')", "1"),
            ("TimestampToDateTime(86400000)", "\"1970-01-02T00:00:00.0000000Z\""),
            ("TicksToDateTime(-1)", "\"1969-12-31T23:59:59.9999999Z\""),
            ("DateTimeBin('2021-01-08T18:35:00.0000000Z', 'hh', 5)", "\"2021-01-08T15:00:00.0000000Z\""),
            ("DateTimeBin('2021-01-08T18:35:00.0000000Z', 'dd', 7)", "\"2021-01-07T00:00:00.0000000Z\""),
            ("DateTimeBin('2021-06-28T17:24:29Z', 'mm')", "\"2021-06-01T00:00:00.0000000Z\""),
            ("DateTimeToTicks('2020-13-01')", "undefined"),
        ]);
    }

    #[test]
    fn each_day_has_its_date() {
        for day in DAYS.step_by(97) {
            let (year, month, day_of_month) = date(day);
            assert_eq!(days(year, month, day_of_month), day);
        }
        assert_eq!((date(*DAYS.start()), date(*DAYS.end())), ((1, 1, 1), (9_999, 12, 31)));
    }
}
