//! A connection for one query: read-only, with the newest views and KQL's functions, bounded in time and memory.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::limits::Limit;
use rusqlite::{Connection, Result};

use super::super::SCHEMA_VERSION;
use super::super::error::Error;
use super::super::reader::connect;
use super::super::schema::Schema;
use super::budget::Budget;
use super::guard::Refused;
use super::{functions, views};

/// The longest text or blob that a query may make, and the longest it may read, in bytes.
pub(super) const VALUE_BYTES_MAX: i32 = 64 << 20;
/// The longest query, in bytes.
const SQL_BYTES_MAX: i32 = 1 << 20;
/// What all aggregates of a query may hold together, in bytes.
const AGGREGATES_BYTES_MAX: usize = 512 << 20;
/// Steps of SQLite's machine between two looks at the clock; a step is well below a microsecond.
const STEPS_BETWEEN_LOOKS: i32 = 10_000;

/// What a query is run on.
pub(super) struct Session {
    pub(super) connection: Connection,
    pub(super) refused: Refused,
}

impl Session {
    /// Opens the file anew: views and limits of a query are nothing to other readers. The query must end within `time`.
    pub(super) fn open(path: &Path, schema: Schema, time: Duration) -> std::result::Result<Self, Error> {
        let mut connection = connect(path)?;
        let refused = Refused::default();
        prepare(&connection, schema).map_err(|error| Error::sqlite(path, error))?;
        bound(&mut connection, time, &refused).map_err(|error| Error::sqlite(path, error))?;
        Ok(Self { connection, refused })
    }
}

fn prepare(connection: &Connection, schema: Schema) -> Result<()> {
    functions::register(connection, &Arc::new(Budget::new(AGGREGATES_BYTES_MAX)))?;
    connection.execute_batch("PRAGMA query_only = OFF")?;
    views::create(connection, schema.0 < SCHEMA_VERSION)?;
    connection.execute_batch("PRAGMA query_only = ON")
}

fn bound(connection: &mut Connection, time: Duration, refused: &Refused) -> Result<()> {
    for (limit, value) in [
        (Limit::SQLITE_LIMIT_LENGTH, VALUE_BYTES_MAX),
        (Limit::SQLITE_LIMIT_SQL_LENGTH, SQL_BYTES_MAX),
        (Limit::SQLITE_LIMIT_ATTACHED, 0),
        (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
    ] {
        connection.set_limit(limit, value)?;
    }
    let begun = Instant::now();
    connection.progress_handler(STEPS_BETWEEN_LOOKS, Some(move || begun.elapsed() >= time))?;
    let refused = refused.clone();
    connection.authorizer(Some(move |context: rusqlite::hooks::AuthContext<'_>| refused.decide(&context)))
}
