//! From SQLite's values to a table's cells.

use narrows_model::table::{Cell, ColumnType};
use rusqlite::types::ValueRef;

/// A value as its column has it. One that does not fit its column stays what it is.
pub(super) fn cell(value: ValueRef<'_>, kind: ColumnType) -> Cell {
    match (value, kind) {
        (ValueRef::Null, _) => Cell::Null,
        (ValueRef::Integer(number), ColumnType::Bool) => Cell::Bool(number != 0),
        (ValueRef::Integer(number), ColumnType::Instant) => Cell::Instant(number),
        (ValueRef::Integer(number), ColumnType::Span) => Cell::Span(number),
        (ValueRef::Integer(number), ColumnType::Real) => Cell::Real(number as f64),
        (ValueRef::Integer(number), _) => Cell::Integer(number),
        (ValueRef::Real(number), ColumnType::Integer) if number.fract() == 0.0 && number.abs() < 9e15 => {
            Cell::Integer(number as i64)
        }
        (ValueRef::Real(number), _) => Cell::Real(number),
        (ValueRef::Text(text), _) => Cell::Text(String::from_utf8_lossy(text).into_owned()),
        (ValueRef::Blob(bytes), _) => Cell::Bytes(bytes.to_vec()),
    }
}

/// Memory of a cell, in bytes.
pub(super) fn bytes(cell: &Cell) -> usize {
    size_of::<Cell>()
        + match cell {
            Cell::Text(text) => text.len(),
            Cell::Bytes(bytes) => bytes.len(),
            _ => 0,
        }
}
