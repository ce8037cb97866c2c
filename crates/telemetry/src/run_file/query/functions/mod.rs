//! The functions that a query may call besides SQLite's own: what KQL has and SQL does not.
//!
//! One file for each idea. All are deterministic, none reads or writes anything, and NULL in is NULL out. Instants and
//! lengths of time are whole nanoseconds, lists are JSON. `docs/reference/query.md` lists them for people who write SQL.

mod arguments;
mod clock;
mod conversions;
mod extremes;
mod formats;
mod instants;
mod lists;
mod maths;
mod moments;
mod numbers;
mod percentile;
mod regexes;
mod terms;
mod text;
mod timespans;

use std::ffi::c_int;
use std::sync::Arc;

use rusqlite::functions::{Context, FunctionFlags, SqlFnOutput};
use rusqlite::{Connection, Error, Result};

use super::budget::Budget;

/// Makes every function known to a connection. What aggregates hold is taken from `budget`.
pub(super) fn register(connection: &Connection, budget: &Arc<Budget>) -> Result<()> {
    numbers::register(connection)?;
    maths::register(connection)?;
    conversions::register(connection)?;
    text::register(connection)?;
    terms::register(connection)?;
    regexes::register(connection)?;
    instants::register(connection)?;
    timespans::register(connection)?;
    formats::register(connection)?;
    moments::register(connection)?;
    extremes::register(connection, budget)?;
    percentile::register(connection, budget)?;
    lists::register(connection, budget)
}

/// Properties of all functions here that SQLite may assume.
const FLAGS: FunctionFlags = FunctionFlags::SQLITE_UTF8.union(FunctionFlags::SQLITE_DETERMINISTIC);

/// Registers one function of so many arguments; -1 is any number.
fn scalar<T: SqlFnOutput + 'static>(
    connection: &Connection,
    name: &str,
    arguments: c_int,
    function: fn(&Context<'_>) -> Result<T>,
) -> Result<()> {
    connection.create_scalar_function(name, arguments, FLAGS, function)
}

/// An error that ends the query, in our own words.
fn wrong(message: impl Into<String>) -> Error {
    Error::UserFunctionError(message.into().into())
}

#[cfg(test)]
mod testing {
    use super::*;

    /// A connection with the functions and nothing else.
    pub(super) fn connection() -> Connection {
        let connection = Connection::open_in_memory().unwrap();
        register(&connection, &Arc::new(Budget::new(1 << 20))).unwrap();
        connection
    }

    /// The only cell of a query, as SQLite's command line would print it; NULL is `NULL`, an error its message.
    pub(super) fn cell(connection: &Connection, sql: &str) -> String {
        use rusqlite::types::Value;
        match connection.query_row(sql, [], |row| row.get::<_, Value>(0)) {
            Ok(Value::Null) => "NULL".to_owned(),
            Ok(Value::Integer(number)) => number.to_string(),
            Ok(Value::Real(number)) => format!("{number:?}"),
            Ok(Value::Text(text)) => text,
            Ok(Value::Blob(blob)) => format!("{blob:?}"),
            Err(error) => format!("error: {error}"),
        }
    }

    /// Checks expressions against their cells.
    pub(super) fn check(cases: &[(&str, &str)]) {
        let connection = connection();
        for (expression, expected) in cases {
            assert_eq!(cell(&connection, &format!("SELECT {expression}")), *expected, "{expression}");
        }
    }
}
