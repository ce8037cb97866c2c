//! The rows of a view as CSV (RFC 4180) or as lines of JSON, written as they are read.

use std::io::{self, Write};

use narrows_model::printable;
use narrows_model::table::Cell;
use narrows_model::trace::hex;
use serde_json::{Map, Value};

use super::out::{Error, ExportCounts};
use crate::run_file::Reader;

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowFormat {
    /// A line of names, then a line for each row.
    Csv,
    /// An object for each row, on a line of its own.
    JsonLines,
}

/// Writes the rows of a view, of the trials in turn. Of CSV the names come once.
///
/// # Errors
/// When the run file cannot be read or has no such view, or `out` cannot be written.
pub fn write_rows(
    reader: &Reader,
    view: &str,
    trials: &[i64],
    format: RowFormat,
    out: &mut dyn Write,
) -> Result<ExportCounts, Error> {
    let mut written = ExportCounts::default();
    let out = std::cell::RefCell::new(out);
    let names = std::cell::RefCell::new(Vec::new());
    for (at, trial) in trials.iter().enumerate() {
        let mut head = |columns: Vec<String>| -> io::Result<()> {
            if at == 0 && format == RowFormat::Csv {
                let line: Vec<String> = columns.iter().map(|name| quoted(name)).collect();
                write!(out.borrow_mut(), "{}\r\n", line.join(","))?;
            }
            names.replace(columns);
            Ok(())
        };
        let mut row = |cells: Vec<Cell>| -> io::Result<()> {
            written.records += 1;
            match format {
                RowFormat::Csv => {
                    let line: Vec<String> = cells.iter().map(csv).collect();
                    write!(out.borrow_mut(), "{}\r\n", line.join(","))
                }
                RowFormat::JsonLines => {
                    let fields: Map<String, Value> =
                        names.borrow().iter().cloned().zip(cells.into_iter().map(json)).collect();
                    writeln!(out.borrow_mut(), "{}", Value::Object(fields))
                }
            }
        };
        reader.each_row(view, *trial, &mut head, &mut row)??;
    }
    Ok(written)
}

fn csv(cell: &Cell) -> String {
    match cell {
        Cell::Null => String::new(),
        Cell::Bool(value) => value.to_string(),
        Cell::Integer(number) | Cell::Instant(number) | Cell::Span(number) => number.to_string(),
        Cell::Real(number) => number.to_string(),
        Cell::Text(text) => quoted(text),
        Cell::Bytes(bytes) => hex(bytes),
    }
}

fn quoted(text: &str) -> String {
    let text = printable::cell(text);
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.into_owned(),
    }
}

fn json(cell: Cell) -> Value {
    match cell {
        Cell::Null => Value::Null,
        Cell::Bool(value) => Value::Bool(value),
        Cell::Integer(number) | Cell::Instant(number) | Cell::Span(number) => Value::from(number),
        Cell::Real(number) => Value::from(number),
        Cell::Text(text) => Value::String(text),
        Cell::Bytes(bytes) => Value::String(hex(&bytes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_written_so_that_they_can_be_read_again() {
        let cases = [
            (Cell::Null, "", Value::Null),
            (Cell::Text("a".into()), "a", Value::from("a")),
            (Cell::Text("a,\"b\"\n".into()), "\"a,\"\"b\"\"\n\"", Value::from("a,\"b\"\n")),
            (Cell::Text("=1+1".into()), "'=1+1", Value::from("=1+1")),
            (Cell::Text("-1.5".into()), "-1.5", Value::from("-1.5")),
            (Cell::Text("a\u{9b}b".into()), "a\u{fffd}b", Value::from("a\u{9b}b")),
            (Cell::Integer(-1), "-1", Value::from(-1)),
            (Cell::Real(0.5), "0.5", Value::from(0.5)),
            (Cell::Real(f64::NAN), "NaN", Value::Null),
            (Cell::Bytes(vec![0, 255]), "00ff", Value::from("00ff")),
        ];
        for (cell, as_csv, as_json) in cases {
            assert_eq!(csv(&cell), as_csv);
            assert_eq!(json(cell), as_json);
        }
    }
}
