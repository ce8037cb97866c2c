//! Questions to a run file.

use std::path::Path;
use std::time::Duration;

use narrows_model::table::{Cell, Table};
use narrows_telemetry::run_file::{QueryLimits, Reader};

use crate::error::Refusal;

/// Bounds of what a page asks.
pub(crate) const LIMITS: QueryLimits = QueryLimits { rows: 10_000, bytes: 32 << 20, time: Duration::from_secs(10) };

/// Runs a query with the bounds of pages.
pub(crate) fn ask(path: &Path, sql: &str) -> Result<Table, Refusal> {
    Ok(Reader::open(path)?.sql(sql, &LIMITS)?)
}

/// A text as SQL writes it.
pub(crate) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\0', "").replace('\'', "''"))
}

/// A cell's text; empty without one.
pub(crate) fn text(cell: Option<&Cell>) -> &str {
    match cell {
        Some(Cell::Text(text)) => text,
        _ => "",
    }
}

/// A cell's whole number.
pub(crate) fn integer(cell: Option<&Cell>) -> Option<i64> {
    match cell? {
        Cell::Integer(number) | Cell::Instant(number) | Cell::Span(number) => Some(*number),
        Cell::Real(number) => Some(*number as i64),
        _ => None,
    }
}

/// A cell's number.
pub(crate) fn number(cell: Option<&Cell>) -> Option<f64> {
    match cell? {
        Cell::Real(number) => Some(*number),
        cell => integer(Some(cell)).map(|number| number as f64),
    }
}
