//! The result of a query, for people and for programs: aligned text, Markdown, CSV, JSON, and charts in a terminal.
//!
//! CSV and JSON give every value in full. Text and Markdown are for reading: they leave out zeros without meaning, and
//! text shortens what is wider than the terminal, and marks that.

mod cells;
mod chart;
mod comma;
mod html;
mod json;
mod lines;
mod markdown;
mod parquet_rows;

pub use chart::chart;
pub(crate) use chart::{TimeLine, over_time};
pub use comma::csv;
pub use html::html;
pub use json::json;
pub use lines::text;
pub use markdown::markdown;
pub use parquet_rows::ParquetRows;

#[cfg(test)]
mod fixture {
    use narrows_model::table::{Cell, Column, ColumnType, Table};

    /// 2020-06-18T20:59:00Z.
    pub(super) const START_NS: i64 = 1_592_513_940_000_000_000;

    pub(super) fn table(columns: &[(&str, ColumnType)], rows: Vec<Vec<Cell>>) -> Table {
        let column = |(name, kind): &(&str, ColumnType)| Column { name: (*name).to_owned(), kind: *kind };
        Table { columns: columns.iter().map(column).collect(), rows, is_cut: false, chart: None }
    }

    pub(super) fn text(text: &str) -> Cell {
        Cell::Text(text.to_owned())
    }

    /// One of everything.
    pub(super) fn all() -> Table {
        let columns = [
            ("name", ColumnType::Text),
            ("n", ColumnType::Integer),
            ("ms", ColumnType::Real),
            ("ok", ColumnType::Bool),
            ("at", ColumnType::Instant),
            ("took", ColumnType::Span),
            ("labels", ColumnType::Json),
        ];
        let second = vec![text("a \"b\", c|d\ne"), Cell::Null, Cell::Real(0.1 + 0.2), Cell::Bool(false)];
        let second = [second, vec![Cell::Null, Cell::Span(-1_500_000_000), text("not json")]].concat();
        let first = vec![text("GET /"), Cell::Integer(i64::MAX), Cell::Real(2.0), Cell::Bool(true)];
        let labels = text(r#"{"b":1,"a":[2]}"#);
        let first =
            [first, vec![Cell::Instant(START_NS + 123_456_700), Cell::Span(93_784_000_000_000), labels]].concat();
        table(&columns, vec![first, second])
    }
}
