//! Questions to a run file: any SQL that only reads, and what KQL was compiled to.
//!
//! Every question gets a connection of its own with the tables and views of the file and the functions that KQL needs. It
//! can write nothing and open nothing else, and it is bounded in time, rows and memory. Here is no KQL: that is compiled
//! elsewhere, into SQL and the types of its columns.

mod budget;
mod cells;
mod error;
mod functions;
mod guard;
mod session;

use std::time::Duration;

use narrows_model::table::{Chart, Column, ColumnType, Table};
use rusqlite::{ErrorCode, Statement};

pub use error::QueryError;

use super::error::Error;
use super::reader::Reader;
use session::Session;

/// How far a query may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueryLimits {
    /// Rows of the result; those after them are left out, and [`Table::is_cut`] says so.
    pub rows: usize,
    /// Maximum memory of the result, in bytes; rows that would take more are left out too.
    pub bytes: usize,
    /// How long it may run before it is stopped.
    pub time: Duration,
}

impl Default for QueryLimits {
    fn default() -> Self {
        Self { rows: 100_000, bytes: 256 << 20, time: Duration::from_secs(60) }
    }
}

impl Reader {
    /// Runs a statement of SQL. Its columns have whatever type each row brings.
    ///
    /// # Errors
    /// When it is not one statement that only reads, when SQLite does not understand it, when it takes too long, and
    /// when the file cannot be read.
    pub fn sql(&self, sql: &str, limits: &QueryLimits) -> Result<Table, QueryError> {
        self.execute(sql, None, limits)
    }

    /// Runs what KQL was compiled to: `columns` says what the SQL's columns are called and hold.
    ///
    /// # Errors
    /// As [`Reader::sql`], and when the SQL has another number of columns.
    pub fn run_compiled(
        &self,
        sql: &str,
        columns: &[Column],
        chart: Option<Chart>,
        limits: &QueryLimits,
    ) -> Result<Table, QueryError> {
        Ok(Table { chart, ..self.execute(sql, Some(columns), limits)? })
    }

    fn execute(&self, sql: &str, columns: Option<&[Column]>, limits: &QueryLimits) -> Result<Table, QueryError> {
        let session = Session::open(&self.path, limits.time)?;
        let failed = |error| self.explain(&session, sql, error, limits);
        let mut statement = session.connection.prepare(sql).map_err(failed)?;
        check(&statement)?;
        let found = columns_of(&statement);
        let columns = columns.map_or(Ok(found.clone()), |columns| match columns.len() == found.len() {
            true => Ok(columns.to_vec()),
            false => Err(QueryError::Columns { found: found.len(), expected: columns.len() }),
        })?;
        let mut table = Table { columns, rows: Vec::new(), is_cut: false, chart: None };
        fill(&mut statement, &mut table, limits).map_err(failed)?;
        Ok(table)
    }

    /// Sorts what SQLite reports by what its author can do about it.
    fn explain(&self, session: &Session, sql: &str, error: rusqlite::Error, limits: &QueryLimits) -> QueryError {
        use rusqlite::Error as Sqlite;
        if let Some(action) = session.refused.take() {
            return QueryError::Writes { action };
        }
        match error.sqlite_error_code() {
            Some(ErrorCode::OperationInterrupted) => return QueryError::TimedOut { time: limits.time },
            Some(ErrorCode::ReadOnly) => return QueryError::Writes { action: "write to the run file".to_owned() },
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt | ErrorCode::SystemIoFailure) => {
                return Error::sqlite(&self.path, error).into();
            }
            _ => {}
        }
        match error {
            Sqlite::MultipleStatement => QueryError::ManyStatements,
            Sqlite::SqlInputError { msg, offset, .. } => {
                let place = usize::try_from(offset).ok().and_then(|offset| place_of(sql, offset));
                QueryError::Sql { message: msg, place }
            }
            error => QueryError::Sql { message: error.to_string(), place: None },
        }
    }
}

/// Line and column of a byte of the query, in characters from 1.
fn place_of(sql: &str, offset: usize) -> Option<(usize, usize)> {
    let before = sql.get(..offset)?;
    let line = before.rsplit('\n').next().unwrap_or(before);
    Some((before.matches('\n').count() + 1, line.chars().count() + 1))
}

fn check(statement: &Statement<'_>) -> Result<(), QueryError> {
    if statement.parameter_count() > 0 {
        let name = statement.parameter_name(1).unwrap_or("?").to_owned();
        return Err(QueryError::Parameter { name });
    }
    if !statement.readonly() {
        return Err(QueryError::Writes { action: "write to the run file".to_owned() });
    }
    if statement.column_count() == 0 {
        return Err(QueryError::Empty);
    }
    Ok(())
}

fn columns_of(statement: &Statement<'_>) -> Vec<Column> {
    statement.column_names().map(|name| Column { name: name.to_owned(), kind: ColumnType::Any }).collect()
}

/// Takes rows until there are no more or a limit is reached.
fn fill(statement: &mut Statement<'_>, table: &mut Table, limits: &QueryLimits) -> rusqlite::Result<()> {
    let mut bytes = 0;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let cells = table.columns.iter().enumerate().map(|(at, column)| Ok(cells::cell(row.get_ref(at)?, column.kind)));
        let cells = cells.collect::<rusqlite::Result<Vec<_>>>()?;
        bytes += cells.iter().map(cells::bytes).sum::<usize>();
        if table.rows.len() == limits.rows || bytes > limits.bytes {
            table.is_cut = true;
            break;
        }
        table.rows.push(cells);
    }
    Ok(())
}
