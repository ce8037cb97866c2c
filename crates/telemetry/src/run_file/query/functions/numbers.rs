//! Division and rounding down, as KQL has them.

use rusqlite::functions::Context;
use rusqlite::types::Value;
use rusqlite::{Connection, Result};

use super::arguments::{Number, integer, number, text};
use super::{scalar, wrong};

/// Nanoseconds from the first instant of KQL's calendar, 0001-01-01, to that of Unix: 719,162 days.
const CALENDAR_TO_UNIX_NS: i128 = 719_162 * 86_400 * 1_000_000_000;

pub(super) fn register(connection: &Connection) -> Result<()> {
    scalar(connection, "kql_at_most", 3, at_most)?;
    scalar(connection, "kql_div", 2, |context| Ok(two(context).and_then(|(a, b)| div(a, b)).map(Value::from)))?;
    scalar(connection, "kql_bin", 2, |context| Ok(two(context).and_then(|(a, b)| bin(a, b)).map(Value::from)))?;
    scalar(connection, "kql_bin_instant", 2, |context| {
        Ok(integer(context, 0).zip(integer(context, 1)).and_then(|(ns, step)| bin_instant(ns, step)))
    })
}

/// A count, if it is within a limit. Otherwise the query ends with an error; the third argument names the counted
/// thing.
fn at_most(context: &Context<'_>) -> Result<Option<i64>> {
    let (Some(count), Some(most)) = (integer(context, 0), integer(context, 1)) else { return Ok(None) };
    if count <= most {
        return Ok(Some(count));
    }
    let what = text(context, 2).unwrap_or_default();
    Err(wrong(format!("{what}: {count}, expected at most {most}")))
}

fn two(context: &Context<'_>) -> Option<(Number, Number)> {
    number(context, 0).zip(number(context, 1))
}

/// Whole numbers divide without a remainder, toward zero; by zero there is no result. Others as reals do.
fn div(a: Number, b: Number) -> Option<Number> {
    match (a, b) {
        (Number::Integer(a), Number::Integer(b)) => a.checked_div(b).map(Number::Integer),
        (a, b) => Some(Number::Real(a.as_f64() / b.as_f64())),
    }
}

/// The largest multiple of `step` that is not above; `None` for a step that is not above zero.
fn bin(value: Number, step: Number) -> Option<Number> {
    match (value, step) {
        (Number::Integer(value), Number::Integer(step)) => {
            (step > 0).then(|| value.checked_sub(value.rem_euclid(step)).map(Number::Integer))?
        }
        (value, step) => {
            let (value, step) = (value.as_f64(), step.as_f64());
            (step > 0.0).then(|| Number::Real((value / step).floor() * step))
        }
    }
}

/// As [`bin`], counted from the first instant of the calendar: bins of seven days begin on Mondays.
fn bin_instant(ns: i64, step_ns: i64) -> Option<i64> {
    if step_ns <= 0 {
        return None;
    }
    let since_first = i128::from(ns) + CALENDAR_TO_UNIX_NS;
    i64::try_from(i128::from(ns) - since_first.rem_euclid(i128::from(step_ns))).ok()
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;

    #[test]
    fn a_count_has_a_limit() {
        check(&[
            ("kql_at_most(5, 5, 'steps')", "5"),
            ("kql_at_most(6, 5, 'steps')", "error: steps: 6, expected at most 5"),
            ("kql_at_most(NULL, 5, 'steps')", "NULL"),
        ]);
    }

    #[test]
    fn division_is_whole_where_both_numbers_are() {
        check(&[
            ("kql_div(7, 2)", "3"),
            ("kql_div(-7, 2)", "-3"),
            ("kql_div(7, 0)", "NULL"),
            ("kql_div(-9223372036854775807 - 1, -1)", "NULL"),
            ("kql_div(7.0, 2)", "3.5"),
            ("kql_div(7, 0.0)", "inf"),
            ("kql_div(NULL, 2)", "NULL"),
            ("kql_div('7', 2)", "NULL"),
        ]);
    }

    #[test]
    fn bins_are_multiples_below() {
        check(&[
            ("kql_bin(4.5, 1)", "4.0"),
            ("kql_bin(7, 5)", "5"),
            ("kql_bin(-1, 5)", "-5"),
            ("kql_bin(-0.5, 1.0)", "-1.0"),
            ("kql_bin(7, 0)", "NULL"),
            ("kql_bin(7, -5)", "NULL"),
            ("kql_bin(-9223372036854775807 - 1, 10)", "NULL"),
            ("kql_bin(NULL, 5)", "NULL"),
            // 16 days in bins of 7 days.
            ("kql_bin(16 * 86400000000000, 7 * 86400000000000) / 86400000000000", "14"),
        ]);
    }

    #[test]
    fn bins_of_instants_are_counted_from_the_first_day_of_the_calendar() {
        check(&[
            (
                "kql_datetime_text(kql_bin_instant(kql_todatetime('1970-05-11 13:45:07'), 86400000000000))",
                "1970-05-11T00:00:00.0000000Z",
            ),
            // A Thursday, and the Monday before.
            (
                "kql_datetime_text(kql_bin_instant(kql_todatetime('2020-06-18 20:59'), 604800000000000))",
                "2020-06-15T00:00:00.0000000Z",
            ),
            ("kql_bin_instant(-1, 1000)", "-1000"),
            ("kql_bin_instant(5, 0)", "NULL"),
        ]);
    }
}
