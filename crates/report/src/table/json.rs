//! A table as a JSON array of objects, one for each row, on a line each.

use narrows_model::table::{Cell, ColumnType, Table};
use serde_json::Value;

use super::cells::exact;

/// Keys stand in the order of the columns; a name that comes again has its number behind it (`x`, `x_2`). Whole numbers
/// are numbers up to 64 bits, instants RFC 3339, lengths of time text, JSON itself. Ends with a line feed.
pub fn json(table: &Table) -> String {
    let keys: Vec<String> = names(table).into_iter().map(|name| Value::from(name).to_string()).collect();
    let object = |row: &Vec<Cell>| {
        let members = keys.iter().zip(row).zip(&table.columns);
        let members: Vec<String> =
            members.map(|((key, cell), column)| format!("{key}: {}", value(cell, column.kind))).collect();
        format!("  {{{}}}", members.join(", "))
    };
    let objects: Vec<String> = table.rows.iter().map(object).collect();
    if objects.is_empty() { "[]\n".to_owned() } else { format!("[\n{}\n]\n", objects.join(",\n")) }
}

/// The columns' names, each once.
fn names(table: &Table) -> Vec<String> {
    let mut names: Vec<String> = Vec::with_capacity(table.columns.len());
    for column in &table.columns {
        let numbered = (2..).map(|number| format!("{}_{number}", column.name));
        let name = std::iter::once(column.name.clone()).chain(numbered).find(|name| !names.contains(name));
        names.extend(name);
    }
    names
}

fn value(cell: &Cell, kind: ColumnType) -> String {
    match cell {
        Cell::Null => "null".to_owned(),
        Cell::Bool(value) => value.to_string(),
        Cell::Integer(value) => value.to_string(),
        Cell::Real(value) => Value::from(*value).to_string(),
        Cell::Text(text) if kind == ColumnType::Json && is_json(text) => text.clone(),
        cell => Value::from(exact(cell)).to_string(),
    }
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<Value>(text).is_ok() && !text.contains('\n')
}

#[cfg(test)]
mod tests {
    use super::super::fixture;
    use super::*;

    #[test]
    fn rows_are_objects() {
        let table = fixture::all();
        let written = json(&table);
        insta::assert_snapshot!(written, @r#"
        [
          {"name": "GET /", "n": 9223372036854775807, "ms": 2.0, "ok": true, "at": "2020-06-18T20:59:00.1234567Z", "took": "1.02:03:04", "labels": {"b":1,"a":[2]}},
          {"name": "a \"b\", c|d\ne", "n": null, "ms": 0.30000000000000004, "ok": false, "at": null, "took": "-00:00:01.5000000", "labels": "not json"}
        ]
        "#);
        let read: Value = serde_json::from_str(&written).unwrap();
        assert_eq!(read[0]["n"], i64::MAX);
    }

    #[test]
    fn names_are_unique_and_numbers_finite() {
        let columns = ["x", "x", "x_2"].map(|name| (name, ColumnType::Any));
        let table = fixture::table(&columns, vec![vec![Cell::Integer(1), Cell::Real(f64::INFINITY), Cell::Null]]);
        assert_eq!(json(&table), "[\n  {\"x\": 1, \"x_2\": null, \"x_2_2\": null}\n]\n");
        assert_eq!(json(&fixture::table(&columns, Vec::new())), "[]\n");
    }
}
