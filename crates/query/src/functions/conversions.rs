//! From one type to another. What cannot be converted is NULL.

use super::call::Call;
use crate::error::Fault;
use crate::literal;
use crate::sql::{Constant, Value};
use crate::types::Type;

/// KQL counts ticks from the year 1.
const EPOCH_TICKS: i64 = 621_355_968_000_000_000;

fn subject<'a>(call: &'a Call<'_>) -> Result<&'a Value, Fault> {
    call.values.first().ok_or_else(|| call.fault(0, "a value is missing"))
}

fn impossible(call: &Call<'_>, value: &Value) -> Fault {
    call.fault(0, format!("`{}` is not defined for a {}", call.name.text, value.kind.word()))
}

/// A value as a string, for people.
pub(crate) fn text(value: &Value) -> String {
    let sql = &value.sql;
    match value.kind {
        Type::Text => sql.clone(),
        Type::Long | Type::Real => format!("CAST({sql} AS TEXT)"),
        Type::Bool => format!("CASE {sql} WHEN 1 THEN 'true' WHEN 0 THEN 'false' END"),
        Type::Datetime => format!("kql_datetime_text({sql})"),
        Type::Timespan => format!("kql_timespan_text({sql})"),
        Type::Dynamic => {
            let kind = match &value.within {
                Some((document, path)) => format!("json_type({document}, {path})"),
                None => format!("json_type({sql})"),
            };
            format!(
                "CASE {kind} WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' ELSE CAST({} AS TEXT) END",
                value.scalar()
            )
        }
    }
}

/// Converts a text to a value of a type; NULL if it is not one.
pub(crate) fn of_text(kind: Type, text: &str) -> String {
    match kind {
        Type::Text => text.to_owned(),
        Type::Long => format!("kql_tolong({text})"),
        Type::Real => format!("kql_toreal({text})"),
        Type::Bool => format!("kql_tobool({text})"),
        Type::Datetime => format!("kql_todatetime({text})"),
        Type::Timespan => format!("kql_totimespan({text})"),
        Type::Dynamic => format!("CASE WHEN json_valid({text}) THEN {text} ELSE json_quote({text}) END"),
    }
}

/// Never NULL: what is absent is the empty string.
pub(super) fn to_string(call: &Call<'_>) -> Result<Value, Fault> {
    let value = subject(call)?;
    if value.kind == Type::Text {
        return Ok(value.clone());
    }
    Ok(Value::new(Type::Text, format!("ifnull({}, '')", text(value))))
}

pub(super) fn to_long(call: &Call<'_>) -> Result<Value, Fault> {
    let value = subject(call)?;
    let sql = &value.sql;
    let sql = match value.kind {
        Type::Long => return Ok(value.clone()),
        Type::Bool => sql.clone(),
        Type::Real => format!("CAST({sql} AS INTEGER)"),
        Type::Text | Type::Dynamic => format!("kql_tolong({})", value.scalar()),
        Type::Timespan => format!("({sql} / {})", literal::TICK_NS),
        Type::Datetime => format!("({sql} / {} + {EPOCH_TICKS})", literal::TICK_NS),
    };
    Ok(Value::new(Type::Long, sql))
}

pub(super) fn to_real(call: &Call<'_>) -> Result<Value, Fault> {
    let value = subject(call)?;
    let sql = match value.kind {
        Type::Real => return Ok(value.clone()),
        Type::Bool | Type::Long => format!("CAST({} AS REAL)", value.sql),
        Type::Text | Type::Dynamic => format!("kql_toreal({})", value.scalar()),
        Type::Datetime | Type::Timespan => format!("CAST({} AS REAL)", to_long(call)?.sql),
    };
    Ok(Value::new(Type::Real, sql))
}

pub(super) fn to_bool(call: &Call<'_>) -> Result<Value, Fault> {
    let value = subject(call)?;
    let sql = match value.kind {
        Type::Bool => return Ok(value.clone()),
        Type::Long | Type::Real => format!("({} <> 0)", value.sql),
        Type::Text | Type::Dynamic => format!("kql_tobool({})", value.scalar()),
        Type::Datetime | Type::Timespan => return Err(impossible(call, value)),
    };
    Ok(Value::new(Type::Bool, sql))
}

pub(super) fn to_datetime(call: &Call<'_>) -> Result<Value, Fault> {
    let value = subject(call)?;
    match (value.kind, value.as_text()) {
        (Type::Datetime, _) => Ok(value.clone()),
        (_, Some(text)) => {
            Ok(literal::datetime(text)
                .map_or_else(|| Value::null(Type::Datetime), |ns| Value::whole(Type::Datetime, ns)))
        }
        (Type::Text | Type::Dynamic, _) => {
            Ok(Value::new(Type::Datetime, format!("kql_todatetime({})", value.scalar())))
        }
        _ => Err(impossible(call, value).hint("`unixtime_nanoseconds_todatetime(…)` takes a number")),
    }
}

pub(super) fn to_timespan(call: &Call<'_>) -> Result<Value, Fault> {
    let value = subject(call)?;
    match (value.kind, value.as_text()) {
        (Type::Timespan, _) => Ok(value.clone()),
        (_, Some(text)) => {
            Ok(literal::timespan(text)
                .map_or_else(|| Value::null(Type::Timespan), |ns| Value::whole(Type::Timespan, ns)))
        }
        (Type::Text | Type::Dynamic, _) => {
            Ok(Value::new(Type::Timespan, format!("kql_totimespan({})", value.scalar())))
        }
        (Type::Long, _) => Ok(Value::new(Type::Timespan, format!("({} * {})", value.sql, literal::TICK_NS))),
        _ => Err(impossible(call, value)),
    }
}

/// A string that is no JSON is a JSON string.
pub(super) fn to_dynamic(call: &Call<'_>) -> Result<Value, Fault> {
    let value = subject(call)?;
    let sql = &value.sql;
    match (value.kind, &value.constant) {
        (Type::Dynamic, _) => Ok(value.clone()),
        (_, Some(Constant::Text(text))) => {
            Ok(Value::json(serde_json::from_str(text).unwrap_or_else(|_| serde_json::Value::String(text.clone()))))
        }
        (Type::Text, _) => {
            Ok(Value::new(Type::Dynamic, format!("CASE WHEN json_valid({sql}) THEN {sql} ELSE json_quote({sql}) END")))
        }
        _ => Ok(Value::new(Type::Dynamic, json(value))),
    }
}

/// A value as JSON. A string stays a string, whatever it contains.
pub(crate) fn json(value: &Value) -> String {
    match value.kind {
        Type::Dynamic => value.sql.clone(),
        Type::Bool => text(value),
        Type::Text | Type::Long | Type::Real => format!("json_quote({})", value.sql),
        Type::Datetime | Type::Timespan => format!("json_quote({})", text(value)),
    }
}
