//! Turns a query in KQL, the language of Application Insights and Azure Data Explorer, into SQL over the views of a run
//! file.
//!
//! Pure: text in, text out. Who runs the SQL, and the functions that SQLite does not have, are in the run file's room. A
//! part of the language is known, and everything else is refused by its name and place rather than half understood.

mod catalog;
mod error;
mod functions;
mod lexer;
mod literal;
mod lower;
mod overrides;
mod parser;
mod sql;
mod syntax;
mod types;
mod visit;

use narrows_model::table::{Chart, Column, ColumnType};

pub use error::Mistake;

use error::{Fault, TextRange};

/// How long a query may be, in bytes.
pub const QUERY_BYTES_MAX: usize = 256 * 1024;

/// A query in SQL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompiledQuery {
    /// One SELECT, complete: literals are in it, escaped, and there are no parameters.
    pub sql: String,
    /// Its columns, in order. Instants and lengths of time come as nanoseconds, truth values as 0 and 1, dynamic values
    /// as JSON text.
    pub columns: Vec<Column>,
    /// The picture that `render` requests.
    pub chart: Option<Chart>,
}

/// A table that queries can name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableShape {
    /// Its name in queries.
    pub name: &'static str,
    /// The view of the run file with its rows; `None` for a table that a run never fills.
    pub view: Option<&'static str>,
    /// Its columns, in order.
    pub columns: Vec<ColumnShape>,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnShape {
    /// Its name in queries.
    pub name: String,
    /// The type of its values.
    pub kind: ColumnType,
    /// The column of the view that holds its values; `None` if every row has the same value.
    pub stored_as: Option<&'static str>,
}

/// Every table that a query can name.
pub fn tables() -> Vec<TableShape> {
    let tables = catalog::all().iter().map(|table| TableShape {
        name: table.name,
        view: table.view,
        columns: table.fields.iter().map(column_shape).collect(),
    });
    tables.collect()
}

fn column_shape(field: &catalog::Field) -> ColumnShape {
    ColumnShape {
        name: field.name.clone(),
        kind: field.kind.column(),
        stored_as: match field.source {
            catalog::FieldSource::Column(column) | catalog::FieldSource::Expression { column, .. } => Some(column),
            catalog::FieldSource::Text(_) | catalog::FieldSource::Nothing => None,
        },
    }
}

/// Compiles a query.
///
/// Each override, a name and an expression, takes the place of the value of the `let` of that name.
///
/// # Errors
///
/// The first error in the query and its place: KQL that is wrong, or not in the part that is known here. A mistake in
/// the value of an override counts its lines and columns in that value, and names it.
pub fn compile(text: &str, overrides: &[(String, String)]) -> Result<CompiledQuery, Mistake> {
    let in_text = |fault: Fault| fault.in_text(text);
    check_length(text).map_err(in_text)?;
    let mut query = parser::query(text).map_err(in_text)?;
    for (position, (name, value)) in overrides.iter().enumerate() {
        overrides::apply(&mut query, position, name, value)?;
    }
    let values: Vec<_> = overrides.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let lowered = lower::lower(&mut query, text).map_err(|fault| overrides::located(fault, text, &values))?;
    let columns =
        lowered.columns.into_iter().map(|column| Column { name: column.name, kind: column.value.kind.column() });
    Ok(CompiledQuery { sql: lowered.sql, columns: columns.collect(), chart: lowered.chart })
}

fn check_length(text: &str) -> Result<(), Fault> {
    match text.len() <= QUERY_BYTES_MAX {
        true => Ok(()),
        false => {
            Err(Fault::new(TextRange { start: 0, end: 0 }, format!("a query is {QUERY_BYTES_MAX} bytes long at most")))
        }
    }
}
