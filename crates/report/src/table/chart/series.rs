//! Drawn columns: the table's columns sorted into what lies along the bottom, what distinguishes series, and values.

use narrows_model::table::{Cell, Chart, ColumnType, Table};

use super::super::cells::{number, shown};
use super::scale::Unit;
use crate::text::paint::clean;

/// Series that are drawn at most; those that come first.
const SERIES_MAX: usize = 8;

/// Points in order.
#[derive(Debug, PartialEq)]
pub(super) struct Series {
    pub(super) name: String,
    pub(super) unit: Unit,
    pub(super) points: Vec<(f64, f64)>,
}

/// All series over one bottom axis.
pub(super) struct Lines {
    pub(super) series: Vec<Series>,
    /// Series that are not among them.
    pub(super) left_out: usize,
    pub(super) bottom: Unit,
    pub(super) bottom_name: String,
}

/// Lines that can be drawn from a table.
pub(super) fn lines(table: &Table) -> Option<Lines> {
    let bottom_at = bottom(table)?;
    let values: Vec<usize> = (0..table.columns.len()).filter(|at| *at != bottom_at && is_value(table, *at)).collect();
    let apart: Vec<usize> = (0..table.columns.len()).filter(|at| *at != bottom_at && !values.contains(at)).collect();
    let mut series: Vec<Series> = Vec::new();
    for row in &table.rows {
        let (Some(x), group) = (position(row.get(bottom_at)), group(row, &apart)) else { continue };
        for at in &values {
            let Some(y) = row.get(*at).and_then(number) else { continue };
            let name = series_name(&group, &clean(&table.columns[*at].name), values.len());
            match series.iter_mut().find(|series| series.name == name) {
                Some(series) => series.points.push((x, y)),
                None => series.push(Series { name, unit: unit(table, *at), points: vec![(x, y)] }),
            }
        }
    }
    series.iter_mut().for_each(|series| series.points.sort_by(|a, b| a.0.total_cmp(&b.0)));
    let left_out = series.len().saturating_sub(SERIES_MAX);
    series.truncate(SERIES_MAX);
    let bottom_name = clean(&table.columns[bottom_at].name);
    (!series.is_empty()).then_some(Lines { series, left_out, bottom: unit(table, bottom_at), bottom_name })
}

fn series_name(group: &str, column: &str, columns: usize) -> String {
    match (group.is_empty(), columns) {
        (true, _) => column.to_owned(),
        (false, 1) => format!("{group} ({column})"),
        (false, _) => format!("{group}: {column}"),
    }
}

/// The column along the bottom: the first with instants; where any column will do, the first with numbers.
fn bottom(table: &Table) -> Option<usize> {
    let columns = 0..table.columns.len();
    let instants = columns.clone().find(|at| unit(table, *at) == Unit::Instant);
    let numbers = || (table.chart == Some(Chart::Line)).then(|| columns.clone().find(|at| is_value(table, *at)))?;
    instants.or_else(numbers)
}

fn group(row: &[Cell], apart: &[usize]) -> String {
    let names: Vec<String> = apart.iter().filter_map(|at| row.get(*at)).map(|cell| clean(&shown(cell))).collect();
    names.join(", ")
}

fn position(cell: Option<&Cell>) -> Option<f64> {
    match cell? {
        Cell::Instant(ns) => Some(*ns as f64),
        cell => number(cell),
    }
}

/// Unit of a column's cells, by its first non-null cell.
pub(super) fn unit(table: &Table, column: usize) -> Unit {
    let kind = table.columns.get(column).map(|column| column.kind);
    let first = table.rows.iter().filter_map(|row| row.get(column)).find(|cell| **cell != Cell::Null);
    match (kind, first) {
        (Some(ColumnType::Instant), _) | (_, Some(Cell::Instant(_))) => Unit::Instant,
        (Some(ColumnType::Span), _) | (_, Some(Cell::Span(_))) => Unit::Duration,
        _ => Unit::Number,
    }
}

/// True if a column has numbers to draw.
pub(super) fn is_value(table: &Table, column: usize) -> bool {
    super::super::cells::is_numeric(table, column)
}

#[cfg(test)]
mod tests {
    use super::super::super::fixture::{self, text};
    use super::*;

    #[test]
    fn words_tell_series_apart() {
        let columns = [("at", ColumnType::Instant), ("service", ColumnType::Text), ("ms", ColumnType::Real)];
        let row = |at, service: &str, ms| vec![Cell::Instant(at), text(service), ms];
        let rows = vec![
            row(2, "a", Cell::Real(20.0)),
            row(1, "a", Cell::Real(10.0)),
            row(1, "b", Cell::Null),
            row(2, "b", Cell::Integer(7)),
        ];
        let table = Table { chart: Some(Chart::Time), ..fixture::table(&columns, rows) };
        let found = lines(&table).unwrap();
        let series = |name: &str, points: &[(f64, f64)]| Series {
            name: name.to_owned(),
            unit: Unit::Number,
            points: points.to_vec(),
        };
        assert_eq!(found.series, [series("a (ms)", &[(1.0, 10.0), (2.0, 20.0)]), series("b (ms)", &[(2.0, 7.0)])]);
        assert_eq!((found.bottom, found.left_out), (Unit::Instant, 0));
    }

    #[test]
    fn what_has_no_bottom_or_no_numbers_is_no_picture() {
        let columns = [("name", ColumnType::Text), ("n", ColumnType::Integer)];
        let rows = vec![vec![text("a"), Cell::Integer(1)]];
        for chart in [Chart::Time, Chart::Line] {
            let table = Table { chart: Some(chart), ..fixture::table(&columns, rows.clone()) };
            assert!(lines(&table).is_none());
        }
    }
}
