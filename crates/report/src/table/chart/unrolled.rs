//! Arrays expanded to rows: `make-series` returns one row per series, with all its points in arrays.

use jiff::Timestamp;
use narrows_model::table::{Cell, Column, ColumnType, Table};
use serde_json::Value;

/// The table with one row per element of its arrays; `None` if it has no arrays. Other cells are repeated, and an array
/// that is shorter than the longest in its row is padded with missing values.
pub(super) fn unrolled(table: &Table) -> Option<Table> {
    let is_series = |at: &usize| is_series(table, *at);
    let series: Vec<usize> = (0..table.columns.len()).filter(is_series).collect();
    if series.is_empty() {
        return None;
    }
    let mut rows = Vec::new();
    for row in &table.rows {
        let arrays: Vec<Vec<Cell>> = series.iter().map(|at| row.get(*at).and_then(cells).unwrap_or_default()).collect();
        let length = arrays.iter().map(Vec::len).max().unwrap_or(0);
        for position in 0..length {
            let mut point = row.clone();
            for (at, array) in series.iter().zip(&arrays) {
                point[*at] = array.get(position).cloned().unwrap_or(Cell::Null);
            }
            rows.push(point);
        }
    }
    let kind = |at: usize| match rows.iter().map(|row| &row[at]).find(|cell| **cell != Cell::Null) {
        Some(Cell::Instant(_)) => ColumnType::Instant,
        Some(Cell::Text(_)) => ColumnType::Text,
        _ => ColumnType::Real,
    };
    let columns = table.columns.iter().enumerate().map(|(at, column)| match series.contains(&at) {
        true => Column { name: column.name.clone(), kind: kind(at) },
        false => column.clone(),
    });
    Some(Table { columns: columns.collect(), rows, ..table.clone() })
}

/// True if a column is JSON and all its values are arrays.
fn is_series(table: &Table, column: usize) -> bool {
    let mut values = table.rows.iter().filter_map(|row| row.get(column)).filter(|cell| **cell != Cell::Null).peekable();
    table.columns[column].kind == ColumnType::Json
        && values.peek().is_some()
        && values.all(|cell| matches!(cell, Cell::Text(text) if text.starts_with('[')))
}

fn cells(cell: &Cell) -> Option<Vec<Cell>> {
    let Cell::Text(text) = cell else { return None };
    let elements: Vec<Value> = serde_json::from_str(text).ok()?;
    Some(elements.into_iter().map(element).collect())
}

fn element(value: Value) -> Cell {
    let instant = |text: &str| i64::try_from(text.parse::<Timestamp>().ok()?.as_nanosecond()).ok();
    match value {
        Value::Null => Cell::Null,
        Value::Bool(value) => Cell::Bool(value),
        Value::Number(number) => number.as_f64().map_or(Cell::Null, Cell::Real),
        Value::String(text) => instant(&text).map_or(Cell::Text(text), Cell::Instant),
        other => Cell::Text(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use narrows_model::table::Chart;

    use super::super::super::fixture::{self, text};
    use super::*;

    #[test]
    fn points_become_rows() {
        let columns = [("service", ColumnType::Text), ("n", ColumnType::Json), ("at", ColumnType::Json)];
        let row = |service: &str, n: &str| {
            vec![text(service), text(n), text(r#"["1970-01-01T00:00:00.0000000Z","1970-01-01T00:00:01.0000000Z"]"#)]
        };
        let table = fixture::table(&columns, vec![row("a", "[1,2.5]"), row("b", "[null]")]);
        let unrolled = unrolled(&Table { chart: Some(Chart::Time), ..table }).unwrap();
        let point = |service: &str, n, at| vec![text(service), n, Cell::Instant(at)];
        let wanted = [
            point("a", Cell::Real(1.0), 0),
            point("a", Cell::Real(2.5), 1_000_000_000),
            point("b", Cell::Null, 0),
            point("b", Cell::Null, 1_000_000_000),
        ];
        assert_eq!(unrolled.rows, wanted);
        let kinds: Vec<_> = unrolled.columns.iter().map(|column| column.kind).collect();
        assert_eq!(kinds, [ColumnType::Text, ColumnType::Real, ColumnType::Instant]);
    }

    #[test]
    fn a_table_without_arrays_is_left_as_it_is() {
        let columns = [("name", ColumnType::Text), ("bag", ColumnType::Json)];
        assert!(unrolled(&fixture::table(&columns, vec![vec![text("[1]"), text("{}")]])).is_none());
        assert!(unrolled(&fixture::table(&columns, Vec::new())).is_none());
    }
}
