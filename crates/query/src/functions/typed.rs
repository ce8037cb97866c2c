//! Functions whose SQL depends on the types or the constants that they are given.

use super::call::Call;
use super::conversions;
use crate::error::Fault;
use crate::literal::{DAY_NS, SECOND_NS};
use crate::sql::{Constant, Value, whole};
use crate::types::Type;

/// From the year 1, where KQL's instants begin, to the Unix epoch, in nanoseconds.
const EPOCH_NS: i128 = 62_135_596_800 * SECOND_NS as i128;

/// The parts of an instant that KQL names, and what the run file's function calls them.
const PARTS: [(&str, &str); 13] = [
    ("year", "year"),
    ("quarter", "quarter"),
    ("month", "month"),
    ("week_of_year", "week_of_year"),
    ("week", "week_of_year"),
    ("day", "day"),
    ("dayofyear", "dayofyear"),
    ("hour", "hour"),
    ("minute", "minute"),
    ("second", "second"),
    ("millisecond", "millisecond"),
    ("microsecond", "microsecond"),
    ("nanosecond", "nanosecond"),
];

/// Units of a fixed length.
const UNITS: [(&str, i64); 8] = [
    ("week", 7 * DAY_NS),
    ("day", DAY_NS),
    ("hour", 3_600 * SECOND_NS),
    ("minute", 60 * SECOND_NS),
    ("second", SECOND_NS),
    ("millisecond", 1_000_000),
    ("microsecond", 1_000),
    ("nanosecond", 1),
];

/// The type that all values from a position on have in common.
fn common(call: &Call<'_>, positions: impl Iterator<Item = usize>) -> Result<Type, Fault> {
    let mut kind: Option<Type> = None;
    for position in positions {
        let Some(value) = call.values.get(position) else { break };
        let so_far = kind.unwrap_or(value.kind);
        kind = Some(so_far.common(value.kind).ok_or_else(|| {
            let message =
                format!("`{}` gives a {} elsewhere and a {} here", call.name.text, so_far.word(), value.kind.word());
            call.fault(position, message)
        })?);
    }
    Ok(kind.unwrap_or(Type::Text))
}

/// The same if some of the values may be dynamic: they are converted to the common type of the others. If those have no
/// common type, all become dynamic.
fn blended(call: &Call<'_>, positions: impl Iterator<Item = usize> + Clone) -> Result<Type, Fault> {
    let is_dynamic = |at: &usize| call.values.get(*at).is_some_and(|value| value.kind == Type::Dynamic);
    let dynamics = positions.clone().filter(is_dynamic).count();
    if dynamics == positions.clone().count() {
        return Ok(Type::Dynamic);
    }
    let kind = common(call, positions.filter(|at| !is_dynamic(at)));
    if dynamics > 0 { Ok(kind.unwrap_or(Type::Dynamic)) } else { kind }
}

/// A value where its type is `kind`, of which whole numbers may be a part.
fn widened(value: &Value, kind: Type) -> String {
    match (value.kind, kind) {
        (Type::Long, Type::Real) => format!("CAST({} AS REAL)", value.sql),
        (_, Type::Dynamic) => conversions::json(value),
        (Type::Dynamic, Type::Text) => conversions::text(value),
        (Type::Dynamic, _) => conversions::of_text(kind, &value.scalar()),
        _ => value.sql.clone(),
    }
}

pub(super) fn iff(call: &Call<'_>) -> Result<Value, Fault> {
    let condition = call.fitted(0, 'b')?;
    let kind = blended(call, 1..3)?;
    let [_, yes, no] = call.values.as_slice() else { return Err(call.fault(3, "`iff` takes three values")) };
    Ok(Value::new(kind, format!("CASE WHEN {condition} THEN {} ELSE {} END", widened(yes, kind), widened(no, kind))))
}

pub(super) fn case(call: &Call<'_>) -> Result<Value, Fault> {
    let last = call.values.len() - 1;
    if !last.is_multiple_of(2) {
        return Err(
            call.fault(last, "`case` takes pairs of a condition and a value, and a last value without a condition")
        );
    }
    let kind = blended(call, (0..last).filter(|at| at % 2 == 1).chain([last]))?;
    let mut sql = "CASE".to_owned();
    for at in (0..last).step_by(2) {
        sql.push_str(&format!(" WHEN {} THEN {}", call.fitted(at, 'b')?, widened(&call.values[at + 1], kind)));
    }
    sql.push_str(&format!(" ELSE {} END", widened(&call.values[last], kind)));
    Ok(Value::new(kind, sql))
}

/// All values as texts of one type.
fn alike(call: &Call<'_>) -> Result<(Type, Vec<String>), Fault> {
    let kind = common(call, 0..call.values.len())?;
    Ok((kind, call.values.iter().map(|value| widened(value, kind)).collect()))
}

pub(super) fn coalesce(call: &Call<'_>) -> Result<Value, Fault> {
    let (kind, texts) = alike(call)?;
    match kind {
        // An empty string is an absent one.
        Type::Text => {
            let texts: Vec<_> = texts.iter().map(|text| format!("nullif({text}, '')")).collect();
            Ok(Value::new(kind, format!("coalesce({}, '')", texts.join(", "))))
        }
        _ => Ok(Value::new(kind, format!("coalesce({})", texts.join(", ")))),
    }
}

/// The least or greatest of values, NULLs left out; SQLite's function of several values gives NULL for one NULL.
fn pick(call: &Call<'_>, function: &str) -> Result<Value, Fault> {
    let (kind, texts) = alike(call)?;
    if !(kind.is_number() || matches!(kind, Type::Datetime | Type::Timespan | Type::Text)) {
        return Err(call.fault(0, format!("`{}` is not defined for a {}", call.name.text, kind.word())));
    }
    let mut values = texts.into_iter();
    let first = values.next().unwrap_or_default();
    let sql = values.fold(first, |a, b| format!("{function}(ifnull({a}, {b}), ifnull({b}, {a}))"));
    Ok(Value::new(kind, sql))
}

pub(super) fn min_of(call: &Call<'_>) -> Result<Value, Fault> {
    pick(call, "min")
}

pub(super) fn max_of(call: &Call<'_>) -> Result<Value, Fault> {
    pick(call, "max")
}

fn tested(call: &Call<'_>, test: impl Fn(&Value) -> String) -> Result<Value, Fault> {
    let value = call.values.first().ok_or_else(|| call.fault(0, "a value is missing"))?;
    Ok(Value::new(Type::Bool, test(value)))
}

/// No string is null: an absent one is empty.
pub(super) fn is_null(call: &Call<'_>) -> Result<Value, Fault> {
    tested(call, |value| match value.kind {
        Type::Text => "0".to_owned(),
        _ => format!("({} IS NULL)", value.scalar()),
    })
}

pub(super) fn is_not_null(call: &Call<'_>) -> Result<Value, Fault> {
    tested(call, |value| match value.kind {
        Type::Text => "1".to_owned(),
        _ => format!("({} IS NOT NULL)", value.scalar()),
    })
}

pub(super) fn is_empty(call: &Call<'_>) -> Result<Value, Fault> {
    tested(call, |value| format!("(ifnull({}, '') = '')", value.scalar()))
}

pub(super) fn is_not_empty(call: &Call<'_>) -> Result<Value, Fault> {
    tested(call, |value| format!("(ifnull({}, '') <> '')", value.scalar()))
}

pub(super) fn strcat(call: &Call<'_>) -> Result<Value, Fault> {
    let texts = call.values.iter().map(conversions::text).collect::<Vec<_>>();
    Ok(Value::new(Type::Text, format!("concat({})", texts.join(", "))))
}

pub(super) fn strcat_delim(call: &Call<'_>) -> Result<Value, Fault> {
    let delimiter = call.fitted(0, 's')?;
    let texts = call.values[1..].iter().map(conversions::text).collect::<Vec<_>>();
    Ok(Value::new(Type::Text, format!("concat({})", texts.join(&format!(", {delimiter}, ")))))
}

/// Positions count from 0; a negative one counts from the end, as it does in SQLite.
pub(super) fn substring(call: &Call<'_>) -> Result<Value, Fault> {
    let (text, start) = (call.fitted(0, 's')?, call.fitted(1, 'l')?);
    let start = match call.values.get(1).and_then(Value::as_whole) {
        Some(position) if position >= 0 => whole(position.saturating_add(1)),
        Some(position) => whole(position),
        None => format!("({start} + 1)"),
    };
    let sql = match call.values.len() {
        2 => format!("substr({text}, {start})"),
        _ => format!("substr({text}, {start}, max({}, 0))", call.fitted(2, 'l')?),
    };
    Ok(Value::new(Type::Text, sql))
}

pub(super) fn split(call: &Call<'_>) -> Result<Value, Fault> {
    let parts = format!("kql_split({}, {})", call.fitted(0, 's')?, call.fitted(1, 's')?);
    if call.values.len() == 2 {
        return Ok(Value::new(Type::Dynamic, parts));
    }
    let at = call.fitted(2, 'l')?;
    Ok(Value::new(Type::Dynamic, format!("json_array({parts} ->> {at})")))
}

pub(super) fn extract(call: &Call<'_>) -> Result<Value, Fault> {
    let found = format!("kql_extract({}, {}, {})", call.fitted(0, 's')?, call.fitted(1, 'l')?, call.fitted(2, 's')?);
    let kind = match call.values.get(3).map(|value| &value.constant) {
        None => Type::Text,
        Some(Some(Constant::Type(kind))) => *kind,
        Some(_) => return Err(call.fault(3, "the type is written as `typeof(long)`")),
    };
    Ok(Value::new(kind, conversions::of_text(kind, &found)))
}

pub(super) fn abs(call: &Call<'_>) -> Result<Value, Fault> {
    let value = call.values.first().ok_or_else(|| call.fault(0, "a value is missing"))?;
    match value.kind {
        Type::Long | Type::Real | Type::Timespan => Ok(Value::new(value.kind, format!("abs({})", value.sql))),
        kind => Err(call.fault(0, format!("`abs` is not defined for a {}", kind.word()))),
    }
}

pub(super) fn round(call: &Call<'_>) -> Result<Value, Fault> {
    let value = call.fitted(0, 'n')?;
    let digits = if call.values.len() == 2 { call.fitted(1, 'l')? } else { "0".to_owned() };
    let kind = call.values.first().map_or(Type::Real, |value| value.kind);
    match kind {
        Type::Long => Ok(Value::new(kind, value)),
        _ => Ok(Value::new(Type::Real, format!("round({value}, {digits})"))),
    }
}

pub(super) fn ceiling(call: &Call<'_>) -> Result<Value, Fault> {
    let value = call.fitted(0, 'n')?;
    match call.values.first().map(|value| value.kind) {
        Some(Type::Long) => Ok(Value::new(Type::Long, value)),
        _ => Ok(Value::new(Type::Real, format!("kql_ceiling({value})"))),
    }
}

/// Down to a multiple of a step. Instants are counted from the year 1.
pub(super) fn bin(call: &Call<'_>) -> Result<Value, Fault> {
    let [value, step] = call.values.as_slice() else { return Err(call.fault(0, "`bin` takes two values")) };
    let step_constant = step.as_whole();
    if step_constant.is_some_and(|step| step <= 0) {
        return Err(call.fault(1, "a step is greater than 0"));
    }
    match (value.kind, step.kind) {
        (Type::Datetime, Type::Timespan) => match step_constant {
            Some(step) => Ok(whole_bin(value, step, EPOCH_NS)),
            None => Ok(Value::new(value.kind, format!("kql_bin_instant({}, {})", value.sql, step.sql))),
        },
        (Type::Datetime, Type::Long) => Err(call
            .fault(1, "an instant goes down to a length of time")
            .hint("write it with a unit, such as `1h` or `5m`")),
        (Type::Timespan, Type::Timespan) | (Type::Long, Type::Long) => match step_constant {
            Some(step) => Ok(whole_bin(value, step, 0)),
            None => Ok(Value::new(value.kind, format!("kql_bin({}, {})", value.sql, step.sql))),
        },
        (a, b) if a.is_number() && b.is_number() => {
            Ok(Value::new(Type::Real, format!("kql_bin(CAST({} AS REAL), {})", value.sql, step.sql)))
        }
        (a, b) => {
            Err(call.fault(0, format!("`{}` is not defined between {} and {}", call.name.text, a.word(), b.word())))
        }
    }
}

/// Distance from zero back to the start of the bin that contains it. `None` if the length is not a constant, unless
/// bins begin at zero.
pub(crate) fn bin_shift(kind: Type, step: Option<i64>) -> Option<i64> {
    match (kind, step) {
        (Type::Datetime, Some(step)) => i64::try_from(EPOCH_NS.rem_euclid(i128::from(step))).ok(),
        (Type::Datetime, None) => None,
        _ => Some(0),
    }
}

fn whole_bin(value: &Value, step: i64, zero: i128) -> Value {
    let (x, shift) = (&value.sql, zero.rem_euclid(i128::from(step)));
    let shifted = if shift == 0 { x.clone() } else { format!("({x} + {shift})") };
    if step == 1 {
        return Value::new(value.kind, x.clone());
    }
    Value::new(value.kind, format!("({x} - ({shifted} % {step} + {step}) % {step})"))
}

/// SQLite's clock, which stands still while a statement runs.
fn clock() -> String {
    "(CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000000)".to_owned()
}

pub(super) fn now(call: &Call<'_>) -> Result<Value, Fault> {
    let sql = match call.values.len() {
        0 => clock(),
        _ => format!("({} + {})", clock(), call.fitted(0, 't')?),
    };
    Ok(Value::new(Type::Datetime, sql))
}

pub(super) fn ago(call: &Call<'_>) -> Result<Value, Fault> {
    Ok(Value::new(Type::Datetime, format!("({} - {})", clock(), call.fitted(0, 't')?)))
}

pub(super) fn start_of_day(call: &Call<'_>) -> Result<Value, Fault> {
    let instant = Value::new(Type::Datetime, call.fitted(0, 'd')?);
    let start = whole_bin(&instant, DAY_NS, EPOCH_NS);
    match call.values.len() {
        1 => Ok(start),
        _ => Ok(Value::new(Type::Datetime, format!("({} + {} * {DAY_NS})", start.sql, call.fitted(1, 'l')?))),
    }
}

/// The name of a part or unit, which is a constant.
fn unit_name<'a>(call: &'a Call<'_>) -> Result<&'a str, Fault> {
    let text = call.values.first().and_then(Value::as_text);
    text.map(|text| text.strip_suffix('s').unwrap_or(text))
        .ok_or_else(|| call.fault(0, "the name of the part is a constant string"))
}

pub(super) fn datetime_part(call: &Call<'_>) -> Result<Value, Fault> {
    let wanted = unit_name(call)?.to_lowercase();
    let Some((_, part)) = PARTS.iter().find(|(name, _)| *name == wanted) else {
        let fault = call.fault(0, format!("an instant has no part `{wanted}`"));
        return Err(fault.near(&wanted, PARTS.iter().map(|(name, _)| *name)));
    };
    Ok(Value::new(Type::Long, format!("kql_datepart('{part}', {})", call.fitted(1, 'd')?)))
}

/// How many borders of a unit lie between two instants.
pub(super) fn datetime_diff(call: &Call<'_>) -> Result<Value, Fault> {
    let wanted = unit_name(call)?.to_lowercase();
    let (a, b) = (call.fitted(1, 'd')?, call.fitted(2, 'd')?);
    let months = |instant: &str| format!("(kql_datepart('year', {instant}) * 12 + kql_datepart('month', {instant}))");
    let quarters =
        |instant: &str| format!("(kql_datepart('year', {instant}) * 4 + kql_datepart('quarter', {instant}))");
    let sql = match wanted.as_str() {
        "year" => format!("(kql_datepart('year', {a}) - kql_datepart('year', {b}))"),
        "quarter" => format!("({} - {})", quarters(&a), quarters(&b)),
        "month" => format!("({} - {})", months(&a), months(&b)),
        "week" => format!("((kql_startof('week', {a}) - kql_startof('week', {b})) / {})", 7 * DAY_NS),
        other => match UNITS.iter().find(|(name, _)| *name == other) {
            Some((_, unit)) => {
                let floor = |sql: String| whole_bin(&Value::new(Type::Datetime, sql), *unit, EPOCH_NS).sql;
                format!("(({} - {}) / {unit})", floor(a), floor(b))
            }
            None => return Err(no_unit(call, &wanted)),
        },
    };
    Ok(Value::new(Type::Long, sql))
}

fn no_unit(call: &Call<'_>, wanted: &str) -> Fault {
    let known = UNITS.iter().map(|(name, _)| *name).chain(["month", "quarter", "year"]);
    call.fault(0, format!("`{wanted}` is no unit of time")).near(wanted, known)
}

pub(super) fn datetime_add(call: &Call<'_>) -> Result<Value, Fault> {
    let wanted = unit_name(call)?.to_lowercase();
    let Some((_, unit)) = UNITS.iter().find(|(name, _)| *name == wanted) else {
        return Err(match wanted.as_str() {
            "month" | "quarter" | "year" => {
                call.fault(0, format!("`datetime_add` by `{wanted}` is not in the part of KQL that is known here"))
            }
            _ => no_unit(call, &wanted),
        });
    };
    Ok(Value::new(Type::Datetime, format!("({} + {} * {unit})", call.fitted(2, 'd')?, call.fitted(1, 'l')?)))
}

/// The number that a constant is.
pub(super) fn constant_number(value: &Value) -> Option<f64> {
    match value.constant {
        Some(Constant::Whole(number)) if value.kind == Type::Long => Some(number as f64),
        Some(Constant::Real(number)) => Some(number),
        _ => None,
    }
}
