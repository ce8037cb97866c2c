//! A table as aligned text for a terminal.
//!
//! A table too wide is made to fit: long texts are shortened first, then columns at the end are left out and named below.
//! Numbers and instants are never shortened, for what is left of one is another.
//! One row alone, when it does not fit, is written downwards instead, a line for each column, in full.

use narrows_model::table::{Cell, Table};
use narrows_model::units;

use super::cells::{is_numeric, shown};
use crate::section::Align;
use crate::text::Style;
use crate::text::grid::render;
use crate::text::paint::{Paint, clean};

/// The narrowest that a column is made for the sake of others.
const COLUMN_MIN: usize = 12;
/// Columns between two columns, as the renderer has them.
const GAP: usize = 2;

/// The rows with a heading, and how many they are. `style.width` of `usize::MAX` shortens nothing. Ends with a line feed.
pub fn text(table: &Table, style: Style) -> String {
    let paint = Paint(style.color);
    let cells: Vec<Vec<String>> =
        table.rows.iter().map(|row| row.iter().map(|cell| clean(&shown(cell))).collect()).collect();
    let names: Vec<String> = table.columns.iter().map(|column| clean(&column.name)).collect();
    let widths = natural_widths(&names, &cells);
    let is_elastic: Vec<bool> = (0..names.len()).map(|column| is_elastic(table, column)).collect();
    let (widths, fitting) = fit(widths, &is_elastic, style.width);
    let is_shortened = fitting < names.len() || shortened(&names, &cells, &widths);
    let mut out = match &cells[..] {
        [row] if is_shortened => downwards(&names, row, paint),
        _ => across(table, &names, &cells, &widths[..fitting], style),
    };
    if fitting < names.len() && cells.len() != 1 {
        let left_out = names[fitting..].join(", ");
        out += &format!("{}\n", paint.dim(&format!("columns that do not fit: {left_out}")));
    }
    out + &format!("{}\n", paint.dim(&count(table)))
}

fn count(table: &Table) -> String {
    let rows = table.rows.len();
    let noun = if rows == 1 { "row" } else { "rows" };
    let more = if table.is_cut { ", and there are more" } else { "" };
    format!("{} {noun}{more}", units::count(rows as u64))
}

fn natural_widths(names: &[String], cells: &[Vec<String>]) -> Vec<usize> {
    let longest = |column: usize| cells.iter().filter_map(|row| row.get(column)).map(|cell| width(cell)).max();
    names.iter().enumerate().map(|(column, name)| width(name).max(longest(column).unwrap_or(0))).collect()
}

fn width(text: &str) -> usize {
    text.chars().count()
}

/// True if a column's cells may be shortened.
fn is_elastic(table: &Table, column: usize) -> bool {
    table.rows.iter().any(|row| matches!(row.get(column), Some(Cell::Text(_) | Cell::Bytes(_))))
}

/// Narrows the widest elastic columns until all fit, but none below [`COLUMN_MIN`]; returns how many then fit.
fn fit(mut widths: Vec<usize>, is_elastic: &[bool], room: usize) -> (Vec<usize>, usize) {
    let total = |widths: &[usize]| {
        let gaps = GAP * widths.len().saturating_sub(1);
        widths.iter().fold(gaps, |total, width| total.saturating_add(*width))
    };
    let elastic = |widths: &[usize]| {
        let all = widths.iter().zip(is_elastic).enumerate();
        all.filter(|(_, (_, is_elastic))| **is_elastic).max_by_key(|(_, (width, _))| **width).map(|(at, _)| at)
    };
    while total(&widths) > room {
        let Some(widest) = elastic(&widths).filter(|at| widths[*at] > COLUMN_MIN) else { break };
        // A width beyond that of any terminal needs no counting down.
        widths[widest] = (widths[widest] - 1).min(room.max(COLUMN_MIN));
    }
    let fitting = (1..=widths.len()).rev().find(|count| total(&widths[..*count]) <= room);
    let fitting = fitting.unwrap_or(widths.len().min(1));
    (widths, fitting)
}

fn shortened(names: &[String], cells: &[Vec<String>], widths: &[usize]) -> bool {
    let is_wide = |(text, limit): (&String, &usize)| width(text) > *limit;
    names.iter().zip(widths).any(is_wide) || cells.iter().any(|row| row.iter().zip(widths).any(is_wide))
}

fn across(table: &Table, names: &[String], cells: &[Vec<String>], widths: &[usize], style: Style) -> String {
    let align = |column| if is_numeric(table, column) { Align::Right } else { Align::Left };
    let header: Vec<_> =
        names.iter().zip(widths).enumerate().map(|(at, (name, width))| (cut(name, *width), align(at))).collect();
    let rows: Vec<Vec<String>> =
        cells.iter().map(|row| row.iter().zip(widths).map(|(cell, width)| cut(cell, *width)).collect()).collect();
    render(&header, &rows, Paint(style.color), usize::from(u16::MAX))
}

fn downwards(names: &[String], row: &[String], paint: Paint) -> String {
    let widest = names.iter().map(|name| width(name)).max().unwrap_or(0);
    let line = |(name, cell): (&String, &String)| {
        let pad = " ".repeat(widest - width(name) + GAP);
        format!("{}{pad}{cell}", paint.bold(name)).trim_end().to_owned() + "\n"
    };
    names.iter().zip(row).map(line).collect()
}

/// Text of at most so many characters, the last of which then shows that there was more.
fn cut(text: &str, limit: usize) -> String {
    if width(text) <= limit {
        return text.to_owned();
    }
    text.chars().take(limit.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use narrows_model::table::ColumnType;

    use super::super::fixture::{self, text as cell};
    use super::*;
    use crate::text::Color;

    fn plain(table: &Table, width: usize) -> String {
        text(table, Style { width, color: Color::Never })
    }

    #[test]
    fn numbers_stand_right_and_the_rest_left() {
        insta::assert_snapshot!(plain(&fixture::all(), 200), @r#"
        name                            n   ms  ok     at                                         took  labels
        ───────────────────────────────────────────────────────────────────────────────────────────────────────────────
        GET /         9223372036854775807    2  true   2020-06-18T20:59:00.1234567Z         1.02:03:04  {"b":1,"a":[2]}
        a "b", c|d e                       0.3  false                                -00:00:01.5000000  not json
        2 rows
        "#);
    }

    #[test]
    fn what_does_not_fit_is_shortened_then_left_out() {
        insta::assert_snapshot!(plain(&fixture::all(), 78), @r#"
        name                            n   ms  ok     at
        ───────────────────────────────────────────────────────────────────────────
        GET /         9223372036854775807    2  true   2020-06-18T20:59:00.1234567Z
        a "b", c|d e                       0.3  false
        columns that do not fit: took, labels
        2 rows
        "#);
        insta::assert_snapshot!(plain(&fixture::all(), 40), @r#"
        name                            n   ms
        ──────────────────────────────────────
        GET /         9223372036854775807    2
        a "b", c|d e                       0.3
        columns that do not fit: ok, at, took, labels
        2 rows
        "#);
        let columns = [("query", ColumnType::Text), ("calls", ColumnType::Integer)];
        let row = |query| vec![cell(query), Cell::Integer(1_234_567)];
        let queries = fixture::table(&columns, vec![row("SELECT * FROM c WHERE c.ownerId = @ownerId"), row("x")]);
        let said = plain(&queries, 30);
        assert!(said.contains("\nSELECT * FROM c WHER…  1234567\n"), "{said}");
    }

    #[test]
    fn one_row_alone_is_written_downwards() {
        let mut table = fixture::all();
        table.rows.truncate(1);
        insta::assert_snapshot!(plain(&table, 60), @r#"
        name    GET /
        n       9223372036854775807
        ms      2
        ok      true
        at      2020-06-18T20:59:00.1234567Z
        took    1.02:03:04
        labels  {"b":1,"a":[2]}
        1 row
        "#);
    }

    #[test]
    fn the_count_says_whether_there_is_more() {
        let columns = [("x", ColumnType::Any)];
        let rows = (0..1200).map(|number| vec![Cell::Integer(number)]).collect();
        let table = Table { is_cut: true, ..fixture::table(&columns, rows) };
        assert!(plain(&table, 80).ends_with("\n1,200 rows, and there are more\n"));
        assert_eq!(plain(&fixture::table(&columns, Vec::new()), 80), "x\n─\n0 rows\n");
        let hostile = fixture::table(&columns, vec![vec![cell("a\x1b[31mb")]]);
        assert!(!plain(&hostile, 80).contains('\x1b'));
    }
}
