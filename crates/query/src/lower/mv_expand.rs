//! `mv-expand`: one row per element of an array or bag.
//!
//! Every value is first converted to an array: a bag becomes an array of single-key bags, or of pairs, and a scalar an
//! array with that one element. So null gives one row, and an empty array none.

use super::names::implied_name;
use super::steps::one_name;
use super::{Lowering, Scope};
use crate::error::{Fault, TextRange};
use crate::sql::{Column, Key, Relation, Value};
use crate::syntax::{MvExpand, Shape};
use crate::types::Type;

/// Prefix of the names of the array columns. Queries cannot contain it.
const ARRAY: char = '\u{1}';

impl Lowering<'_> {
    pub(super) fn mv_expanded(
        &mut self,
        relation: Relation,
        expand: &MvExpand,
        place: TextRange,
    ) -> Result<Relation, Fault> {
        let limit = match &expand.limit {
            Some(limit) => Some(self.row_count(limit)?),
            None => None,
        };
        let mut widened = relation.clone();
        let mut names = Vec::new();
        for (position, (item, kind)) in expand.values.iter().enumerate() {
            let value = self.value(&item.value, Scope::Rows(&relation))?;
            self.no_window(item.value.place)?;
            if value.kind != Type::Dynamic {
                let message = format!("this is a {}, which has no elements", value.kind.word());
                let fault = Fault::new(item.value.place, message);
                return Err(fault.hint("only a dynamic value has; `parse_json(…)` makes one"));
            }
            let name = match (one_name(item)?, &item.value.kind) {
                (Some(name), _) => name.text.clone(),
                (None, Shape::Name(name)) => name.clone(),
                (None, _) => implied_name(&item.value)
                    .map_or_else(|| format!("Column{}", position + 1), |name| relation.free_name(&name)),
            };
            names.push((name, kind.unwrap_or(Type::Dynamic)));
            let array = Value::new(Type::Dynamic, as_array(&value.sql, expand.is_pairs));
            widened.columns.push(Column { name: array_name(position), value: array });
        }
        let mut expanded = self.seal(widened, place)?;
        let arrays: Vec<String> = expanded
            .columns
            .split_off(expanded.columns.len() - names.len())
            .into_iter()
            .map(|it| it.value.sql)
            .collect();
        let element = self.alias();
        let driver = match arrays.as_slice() {
            [only] => only.clone(),
            several => longest(several),
        };
        expanded.from = expanded.from.map(|from| format!("{from}, json_each({driver}) AS {element}"));
        for ((name, kind), array) in names.into_iter().zip(&arrays) {
            let json = if arrays.len() == 1 {
                format!("nullif({}, 'null')", element_json(&element))
            } else {
                format!("nullif({array} -> {element}.key, 'null')")
            };
            expanded.set(Column { name, value: typed(kind, json) });
        }
        if let Some(index) = &expand.index {
            expanded.set(Column { name: index.text.clone(), value: Value::new(Type::Long, format!("{element}.key")) });
        }
        if let Some(limit) = limit {
            expanded.filters.push(format!("{element}.key < {limit}"));
        }
        if !expanded.order.is_empty() {
            expanded.order.push(Key { sql: format!("{element}.key"), direction: "" });
        }
        Ok(Relation { is_costly: true, ..expanded })
    }
}

fn array_name(position: usize) -> String {
    format!("{ARRAY}array {position}")
}

fn as_array(value: &str, is_pairs: bool) -> String {
    let pair = if is_pairs { "json_array(e.key" } else { "json_object(e.key" };
    let json = element_json("e");
    format!(
        "CASE json_type({value}) WHEN 'array' THEN {value} \
         WHEN 'object' THEN (SELECT json_group_array({pair}, json({json}))) FROM json_each({value}) AS e) \
         ELSE json_array(json({value})) END"
    )
}

/// An element of `json_each`, as JSON.
fn element_json(each: &str) -> String {
    format!(
        "CASE {each}.type WHEN 'text' THEN json_quote({each}.value) WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' \
         WHEN 'null' THEN 'null' ELSE CAST({each}.value AS TEXT) END"
    )
}

/// The longest of several arrays.
fn longest(arrays: &[String]) -> String {
    let lengths: Vec<_> = arrays.iter().map(|array| format!("json_array_length({array})")).collect();
    let cases: Vec<_> =
        arrays.iter().zip(&lengths).map(|(array, length)| format!("WHEN {length} THEN {array}")).collect();
    format!("CASE max({}) {} END", lengths.join(", "), cases.join(" "))
}

/// An element as a value of a type. Elements of another type become null, but every element can be a string.
fn typed(kind: Type, json: String) -> Value {
    let value = format!("({json} ->> '$')");
    let of_types = |types: &str, sql: String| format!("CASE WHEN json_type({json}) IN ({types}) THEN {sql} END");
    let sql = match kind {
        Type::Dynamic => json,
        Type::Text => crate::functions::text(&Value::new(Type::Dynamic, json)),
        Type::Long => of_types("'integer'", value),
        Type::Real => of_types("'integer', 'real'", format!("CAST({value} AS REAL)")),
        Type::Bool => of_types("'true', 'false'", value),
        Type::Datetime => of_types("'text'", format!("kql_todatetime({value})")),
        Type::Timespan => of_types("'text'", format!("kql_totimespan({value})")),
    };
    Value::new(kind, sql)
}
