//! Plain stand-ins for the functions of the real run file: enough to see that the right one is called with the right
//! values.

use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan, Zoned};
use regex_lite::Regex;
use rusqlite::functions::{Aggregate, Context, FunctionFlags};
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, Result};

type Scalar = fn(&Context<'_>) -> Option<Value>;

const SCALARS: [(&str, i32, Scalar); 31] = [
    ("kql_lower", 1, |c| Some(text(c, 0)?.to_lowercase().into())),
    ("kql_upper", 1, |c| Some(text(c, 0)?.to_uppercase().into())),
    ("kql_equal_ci", 2, |c| truth(lower(c, 0)? == lower(c, 1)?)),
    ("kql_contains", 2, |c| truth(lower(c, 0)?.contains(&lower(c, 1)?))),
    ("kql_starts_with", 2, |c| truth(lower(c, 0)?.starts_with(&lower(c, 1)?))),
    ("kql_ends_with", 2, |c| truth(lower(c, 0)?.ends_with(&lower(c, 1)?))),
    ("kql_has", 2, |c| truth(has(&lower(c, 0)?, &lower(c, 1)?))),
    ("kql_has_cs", 2, |c| truth(has(&text(c, 0)?, &text(c, 1)?))),
    ("kql_has_prefix", 2, |c| {
        truth(words(&lower(c, 0)?).any(|word| word.starts_with(&lower(c, 1).unwrap_or_default())))
    }),
    ("kql_has_suffix", 2, |c| truth(words(&lower(c, 0)?).any(|word| word.ends_with(&lower(c, 1).unwrap_or_default())))),
    ("kql_matches", 2, |c| truth(Regex::new(&text(c, 1)?).ok()?.is_match(&text(c, 0)?))),
    ("kql_extract", 3, |c| {
        let text = text(c, 2)?;
        let group = usize::try_from(whole(c, 1)?).ok()?;
        let regex = Regex::new(&self::text(c, 0)?).ok()?;
        let found = regex.captures(&text).and_then(|found| found.get(group));
        Some(found.map_or("", |found| found.as_str()).to_owned().into())
    }),
    ("kql_replace_regex", 3, |c| {
        let with = text(c, 2)?.replace('\\', "$");
        Some(Regex::new(&text(c, 1)?).ok()?.replace_all(&text(c, 0)?, with.as_str()).into_owned().into())
    }),
    ("kql_split", 2, |c| {
        let parts: Vec<_> = text(c, 0)?.split(&text(c, 1)?).map(|part| format!("\"{part}\"")).collect();
        Some(format!("[{}]", parts.join(",")).into())
    }),
    ("kql_bin", 2, |c| match (c.get_raw(0), c.get_raw(1)) {
        (ValueRef::Integer(x), ValueRef::Integer(step)) if step > 0 => Some((x.div_euclid(step) * step).into()),
        _ => Some(((real(c, 0)? / real(c, 1)?).floor() * real(c, 1)?).into()),
    }),
    ("kql_bin_instant", 2, |c| Some((whole(c, 0)?.div_euclid(whole(c, 1)?) * whole(c, 1)?).into())),
    ("kql_tolong", 1, |c| match c.get_raw(0) {
        ValueRef::Text(_) => Some(text(c, 0)?.trim().parse::<i64>().ok()?.into()),
        _ => Some((real(c, 0)? as i64).into()),
    }),
    ("kql_toreal", 1, |c| match c.get_raw(0) {
        ValueRef::Text(_) => Some(text(c, 0)?.trim().parse::<f64>().ok()?.into()),
        _ => Some(real(c, 0)?.into()),
    }),
    ("kql_tobool", 1, |c| match c.get_raw(0) {
        ValueRef::Text(_) => truth(lower(c, 0)? == "true"),
        _ => truth(real(c, 0)? != 0.0),
    }),
    ("kql_todatetime", 1, |c| {
        let instant: Timestamp = format!("{}T00:00Z", text(c, 0)?).parse().ok()?;
        Some(i64::try_from(instant.as_nanosecond()).ok()?.into())
    }),
    ("kql_totimespan", 1, |c| Some(Duration::from_secs(u64::try_from(whole(c, 0)?).ok()?).as_secs_f64().into())),
    ("kql_datetime_text", 1, |c| Some(zoned(c, 0)?.strftime("%Y-%m-%dT%H:%M:%S.%7fZ").to_string().into())),
    ("kql_timespan_text", 1, |c| Some(format!("{}s", whole(c, 0)? / 1_000_000_000).into())),
    ("kql_format_datetime", 2, |c| Some(format!("{} as {}", zoned(c, 0)?.strftime("%F %T"), text(c, 1)?).into())),
    ("kql_format_timespan", 2, |c| Some(format!("{}s as {}", whole(c, 0)? / 1_000_000_000, text(c, 1)?).into())),
    ("kql_datepart", 2, |c| {
        let at = zoned(c, 1)?;
        let part = match text(c, 0)?.as_str() {
            "year" => i64::from(at.year()),
            "quarter" => i64::from((at.month() + 2) / 3),
            "month" => i64::from(at.month()),
            "day" => i64::from(at.day()),
            "hour" => i64::from(at.hour()),
            "minute" => i64::from(at.minute()),
            "second" => i64::from(at.second()),
            "dayofyear" => i64::from(at.day_of_year()),
            "weekday" => i64::from(at.weekday().to_sunday_zero_offset()),
            other => panic!("{other} is no part that the tests know"),
        };
        Some(part.into())
    }),
    ("kql_startof", 2, |c| {
        let day = zoned(c, 1)?.start_of_day().ok()?;
        let start = match text(c, 0)?.as_str() {
            "week" => day.checked_sub(i64::from(day.weekday().to_sunday_zero_offset()).days()).ok()?,
            "month" => day.first_of_month().ok()?,
            "year" => day.first_of_year().ok()?,
            other => panic!("{other} is no unit that the tests know"),
        };
        Some(i64::try_from(start.timestamp().as_nanosecond()).ok()?.into())
    }),
    ("kql_sqrt", 1, |c| Some(real(c, 0)?.sqrt().into())),
    ("kql_pow", 2, |c| Some(real(c, 0)?.powf(real(c, 1)?).into())),
    ("kql_at_most", 3, |c| Some(whole(c, 0)?.min(whole(c, 1)?).into())),
    ("kql_ceiling", 1, |c| Some(real(c, 0)?.ceil().into())),
];

type Maths = fn(f64) -> f64;

const MATHS: [(&str, Maths); 4] =
    [("kql_ln", f64::ln), ("kql_log10", f64::log10), ("kql_log2", f64::log2), ("kql_exp", f64::exp)];

pub(crate) fn register(connection: &Connection) {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    for (name, count, scalar) in SCALARS {
        connection.create_scalar_function(name, count, flags, move |context| Ok(scalar(context))).unwrap();
    }
    for (name, function) in MATHS {
        connection.create_scalar_function(name, 1, flags, move |c| Ok(real(c, 0).map(function))).unwrap();
    }
    for (name, fold) in AGGREGATES {
        connection.create_aggregate_function(name, -1, flags, Collector(fold)).unwrap();
    }
}

type Row = Vec<Value>;
type Fold = fn(&[Row]) -> Option<Value>;

const AGGREGATES: [(&str, Fold); 12] = [
    ("percentile", |rows| ranked(rows.iter().map(|row| row[0].clone()).collect(), &rows.first()?[1])),
    ("percentilew", |rows| {
        let repeated = |row: &Row| vec![row[0].clone(); number(&row[1]).unwrap_or(0.0) as usize];
        ranked(rows.iter().flat_map(repeated).collect(), &rows.first()?[2])
    }),
    ("arg_max", |rows| {
        let best = rows.iter().map(|row| key(&row[0])).max()?;
        rows.iter().find(|row| key(&row[0]) == best).map(|row| row[1].clone())
    }),
    ("arg_min", |rows| {
        let best = rows.iter().map(|row| key(&row[0])).min()?;
        rows.iter().find(|row| key(&row[0]) == best).map(|row| row[1].clone())
    }),
    ("stdev", |rows| Some(variance(rows, 1)?.sqrt().into())),
    ("variance", |rows| Some(variance(rows, 1)?.into())),
    ("stdevp", |rows| Some(variance(rows, 0)?.sqrt().into())),
    ("variancep", |rows| Some(variance(rows, 0)?.into())),
    ("make_list", |rows| Some(listed(rows, quoted).into())),
    ("make_list_json", |rows| Some(listed(rows, plain).into())),
    ("make_set", |rows| Some(listed(&unique(rows), quoted).into())),
    ("make_set_json", |rows| Some(listed(&unique(rows), plain).into())),
];

/// Keeps every row and folds them in the end.
#[derive(Clone, Copy)]
struct Collector(Fold);

impl Aggregate<Vec<Row>, Option<Value>> for Collector {
    fn init(&self, _: &mut Context<'_>) -> Result<Vec<Row>> {
        Ok(Vec::new())
    }

    fn step(&self, context: &mut Context<'_>, rows: &mut Vec<Row>) -> Result<()> {
        let row: Row = (0..context.len()).map(|at| context.get(at)).collect::<Result<_>>()?;
        if row[0] != Value::Null {
            rows.push(row);
        }
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, rows: Option<Vec<Row>>) -> Result<Option<Value>> {
        Ok(rows.filter(|rows| !rows.is_empty()).and_then(|rows| (self.0)(&rows)))
    }
}

fn ranked(mut values: Vec<Value>, percent: &Value) -> Option<Value> {
    values.sort_by(|a, b| number(a).partial_cmp(&number(b)).unwrap());
    let rank = (number(percent)? / 100.0 * values.len() as f64).ceil().max(1.0) as usize;
    Some(values[rank - 1].clone())
}

fn variance(rows: &[Row], less: usize) -> Option<f64> {
    let values: Vec<f64> = rows.iter().filter_map(|row| number(&row[0])).collect();
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() > less).then(|| squares / (values.len() - less) as f64)
}

fn unique(rows: &[Row]) -> Vec<Row> {
    let mut seen: Vec<Row> = Vec::new();
    for row in rows {
        if !seen.contains(row) {
            seen.push(row.clone());
        }
    }
    seen
}

fn listed(rows: &[Row], element: fn(&Value) -> String) -> String {
    let most = rows[0].get(1).and_then(number).map_or(rows.len(), |most| most as usize);
    format!("[{}]", rows.iter().take(most).map(|row| element(&row[0])).collect::<Vec<_>>().join(","))
}

fn quoted(value: &Value) -> String {
    if let Value::Text(text) = value { format!("\"{text}\"") } else { plain(value) }
}

fn plain(value: &Value) -> String {
    match value {
        Value::Text(text) => text.clone(),
        other => number(other).unwrap_or_default().to_string(),
    }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(number) => Some(*number as f64),
        Value::Real(number) => Some(*number),
        _ => None,
    }
}

fn key(value: &Value) -> (i64, String) {
    match value {
        Value::Text(text) => (0, text.clone()),
        other => ((number(other).unwrap_or(0.0) * 1000.0) as i64, String::new()),
    }
}

fn text(context: &Context<'_>, at: usize) -> Option<String> {
    context.get(at).ok()
}

fn lower(context: &Context<'_>, at: usize) -> Option<String> {
    Some(text(context, at)?.to_lowercase())
}

fn whole(context: &Context<'_>, at: usize) -> Option<i64> {
    context.get(at).ok()
}

fn real(context: &Context<'_>, at: usize) -> Option<f64> {
    number(&context.get(at).ok()?)
}

fn truth(value: bool) -> Option<Value> {
    Some(Value::Integer(i64::from(value)))
}

fn has(text: &str, term: &str) -> bool {
    words(text).any(|word| word == term)
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric())
}

fn zoned(context: &Context<'_>, at: usize) -> Option<Zoned> {
    Some(Timestamp::from_nanosecond(i128::from(whole(context, at)?)).ok()?.to_zoned(TimeZone::UTC))
}
