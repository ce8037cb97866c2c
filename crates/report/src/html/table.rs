//! Tables as HTML. The two figures of a pair never share a cell.

use maud::{Markup, html};

use super::blocks::{class, inline};
use super::cut;
use crate::measures;
use crate::section::{Align, Cell, Column, Figure, Group, Row, Table};

/// A table with this many cells in a row takes the whole width.
const CELLS_OF_WIDE_MIN: usize = 6;
/// Characters of a cell at most.
const TEXT_CHARS_MAX: usize = 600;

pub(super) fn table(table: &Table) -> Markup {
    let has_pairs = table.columns.iter().any(|column| column.pair.is_some());
    let cells: usize = table.columns.iter().map(width).sum();
    html! {
        div.scroll {
            table class=[class_of_table(has_pairs, cells)] {
                thead {
                    tr { @for column in &table.columns { (heading(column)) } }
                    @if has_pairs { tr { @for column in &table.columns { (names_of_pair(column)) } } }
                }
                @for group in &table.groups { (body(group, &table.columns, cells)) }
            }
        }
    }
}

/// A table of many columns takes the whole width.
fn class_of_table(has_pairs: bool, cells: usize) -> Option<&'static str> {
    match (has_pairs, cells) {
        (true, _) => Some("wide beside"),
        (false, CELLS_OF_WIDE_MIN..) => Some("wide"),
        (false, _) => None,
    }
}

/// Cells of a column in each row.
fn width(column: &Column) -> usize {
    if column.pair.is_some() { 2 } else { 1 }
}

fn heading(column: &Column) -> Markup {
    let span = column.pair.map(|_| 2);
    html! { th class=[aligned(column)] colspan=[span] { (cut(&column.name, TEXT_CHARS_MAX)) } }
}

fn aligned(column: &Column) -> Option<&'static str> {
    (column.align == Align::Right).then_some("n")
}

fn class_of_row(row: &Row) -> Option<&'static str> {
    match row {
        Row { stands_out: true, .. } => Some("differs"),
        Row { remark, .. } if !remark.is_empty() => Some("remarked"),
        _ => None,
    }
}

fn names_of_pair(column: &Column) -> Markup {
    html! {
        @match column.pair {
            Some([first, second]) => { th.n { i { (first) } } th.n { b { (second) } } },
            None => th {},
        }
    }
}

fn body(group: &Group, columns: &[Column], cells: usize) -> Markup {
    html! {
        tbody {
            @if let Some(title) = &group.title { tr.group { th colspan=(cells) { (inline(title)) } } }
            @for row in &group.rows { (of_row(row, columns, cells)) }
        }
    }
}

fn of_row(row: &Row, columns: &[Column], cells: usize) -> Markup {
    html! {
        tr class=[class_of_row(row)] {
            @for (at, (cell, column)) in row.cells.iter().zip(columns).enumerate() {
                @match cell {
                    Cell::One(one) if at == 0 => th scope="row" { (figure(one)) },
                    Cell::One(one) => (single(one, column)),
                    Cell::Pair(first, second) => {
                        td.n { i { (first.text) } (details(first)) }
                        td.n { b { (second.text) } (details(second)) }
                    },
                }
            }
        }
        @if !row.remark.is_empty() {
            tr.remark { td colspan=(cells) { span { (cut(&row.remark, TEXT_CHARS_MAX)) } } }
        }
    }
}

fn single(one: &Figure, column: &Column) -> Markup {
    let hover = (!one.hover.is_empty()).then_some(one.hover.as_str());
    let class = [aligned(column), class(one.tone)].into_iter().flatten().collect::<Vec<_>>().join(" ");
    let class = (!class.is_empty()).then_some(class);
    html! { td class=[class] title=[hover] { (figure(one)) } }
}

fn figure(one: &Figure) -> Markup {
    let text = cut(&one.text, TEXT_CHARS_MAX);
    html! {
        @match one {
            Figure { is_code: true, .. } => code { (text) },
            Figure { is_strong: true, .. } => b { (text) },
            Figure { is_link: true, .. } => a href={ "#" (one.text) } { (text) },
            _ => (text),
        }
        (details(one))
    }
}

/// Small print, bars and the standing.
fn details(one: &Figure) -> Markup {
    html! {
        @if let Some(share) = one.bar { span.bar { i style=(format!("width:{:.1}%", share * 100.0)) {} } }
        @if !one.parts.is_empty() {
            span.divided {
                @for (colour, share, title) in &one.parts {
                    i class=(colour) style=(format!("width:{:.1}%", share * 100.0)) title=(title) {}
                }
            }
        }
        @if !one.small.is_empty() { " " small { (one.small) } }
        @if !one.range.is_empty() { " " small { (one.range) } }
        @if let Some((word, by)) = measures::standing(&one.standing) {
            small.standing { (word) ": " (cut(by, TEXT_CHARS_MAX)) }
        }
    }
}
