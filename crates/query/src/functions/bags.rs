//! Functions that build and read bags and arrays.

use super::call::Call;
use super::conversions;
use crate::error::Fault;
use crate::sql::{Value, quoted};
use crate::types::Type;

/// A value as a JSON element built by SQLite.
fn element(value: &Value) -> String {
    match value.kind {
        Type::Text => format!("ifnull({}, '')", value.sql),
        Type::Long | Type::Real => value.sql.clone(),
        Type::Dynamic => format!("json({})", value.sql),
        Type::Bool => format!("json({})", conversions::text(value)),
        Type::Datetime | Type::Timespan => conversions::text(value),
    }
}

/// A bag of named values.
pub(crate) fn bag<'a>(pairs: impl Iterator<Item = (String, &'a Value)>) -> Value {
    let pairs: Vec<_> = pairs.map(|(key, value)| format!("{key}, {}", element(value))).collect();
    Value::new(Type::Dynamic, format!("json_object({})", pairs.join(", ")))
}

/// `bag_pack(key, value, …)`.
pub(super) fn pack(call: &Call<'_>) -> Result<Value, Fault> {
    if !call.values.len().is_multiple_of(2) {
        return Err(call.fault(call.values.len() - 1, format!("`{}` takes pairs of a key and a value", call.name.text)));
    }
    let mut pairs = Vec::new();
    for at in (0..call.values.len()).step_by(2) {
        pairs.push((call.fitted(at, 's')?, &call.values[at + 1]));
    }
    Ok(bag(pairs.into_iter()))
}

/// `pack_array(value, …)`.
pub(super) fn array(call: &Call<'_>) -> Result<Value, Fault> {
    let elements: Vec<_> = call.values.iter().map(element).collect();
    Ok(Value::new(Type::Dynamic, format!("json_array({})", elements.join(", "))))
}

/// `strcat_array(array, delimiter)`.
pub(super) fn joined(call: &Call<'_>) -> Result<Value, Fault> {
    let (array, delimiter) = (call.fitted(0, 'y')?, call.fitted(1, 's')?);
    let sql = format!("(SELECT group_concat(value, {delimiter} ORDER BY key) FROM json_each({array}))");
    Ok(Value::new(Type::Text, format!("ifnull({sql}, '')")))
}

/// `array_sum(array)`.
pub(super) fn sum(call: &Call<'_>) -> Result<Value, Fault> {
    let array = call.fitted(0, 'y')?;
    Ok(Value::new(Type::Real, format!("(SELECT total(atom) FROM json_each({array}))")))
}

/// `bag_keys(bag)`.
pub(super) fn keys(call: &Call<'_>) -> Result<Value, Fault> {
    let bag = call.fitted(0, 'y')?;
    let sql = format!("(SELECT json_group_array(key) FROM json_each({bag}))");
    Ok(Value::new(Type::Dynamic, format!("CASE json_type({bag}) WHEN 'object' THEN {sql} END")))
}

/// `bag_has_key(bag, key)`.
pub(super) fn has_key(call: &Call<'_>) -> Result<Value, Fault> {
    let (bag, key) = (call.fitted(0, 'y')?, call.fitted(1, 's')?);
    Ok(Value::new(Type::Bool, format!("EXISTS (SELECT 1 FROM json_each({bag}) WHERE key = {key})")))
}

/// `extract_json("$.path", text)`.
pub(super) fn extract_json(call: &Call<'_>) -> Result<Value, Fault> {
    let Some(path) = call.values.first().and_then(Value::as_text).filter(|path| path.starts_with('$')) else {
        return Err(call.fault(0, "the path is a constant string that begins with `$`"));
    };
    let text = call.fitted(1, 's')?;
    let sql = format!("CASE WHEN json_valid({text}) THEN CAST({text} ->> {} AS TEXT) END", quoted(path));
    Ok(Value::new(Type::Text, sql))
}

/// `parse_url(text)`: the parts of a URL, under the names that KQL gives them.
pub(super) fn url(call: &Call<'_>) -> Result<Value, Fault> {
    let text = call.fitted(0, 's')?;
    // Scheme, user, password, host, port, path, query, fragment; after RFC 3986, appendix B.
    let whole = r"^([^:/?#]+)://(?:([^/?#@:]*)(?::([^/?#@]*))?@)?(\[[^\]]*\]|[^/?#:]*)(?::([0-9]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?$";
    let part = |group: usize| format!("kql_extract({}, {group}, {text})", quoted(whole));
    let query = format!(
        "(SELECT json_group_object(kql_extract('^[^=]*', 0, value), kql_extract('^[^=]*=?(.*)$', 1, value)) \
         FROM json_each(kql_split({}, '&')) WHERE value <> '')",
        part(7)
    );
    let named = [("Scheme", 1), ("Host", 4), ("Port", 5), ("Path", 6), ("Username", 2), ("Password", 3)];
    let named: Vec<_> = named.iter().map(|(name, group)| format!("'{name}', {}", part(*group))).collect();
    let sql = format!("json_object({}, 'Query Parameters', json({query}), 'Fragment', {})", named.join(", "), part(8));
    Ok(Value::new(Type::Dynamic, format!("CASE WHEN {text} IS NOT NULL THEN {sql} END")))
}
