//! A connection for one query: read-only, with KQL's functions, bounded in time and memory.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::Result;

use super::super::bounds::{BoundedConnection, Bounds};
use super::super::error::Error;
use super::super::open;
use super::budget::Budget;
use super::functions;
use super::guard::FirstRefusal;

/// The longest text or blob that a query may make, and the longest it may read, in bytes.
pub(super) const VALUE_BYTES_MAX: i32 = 64 << 20;
/// Bytes that all aggregates of a query may hold together.
const AGGREGATES_BYTES_MAX: usize = 512 << 20;

/// Connection on which a query runs.
pub(super) struct Session {
    pub(super) connection: BoundedConnection,
    pub(super) refused: FirstRefusal,
}

impl Session {
    /// Opens the file anew: functions and limits of a query are nothing to other readers. The query must end within
    /// `time`.
    pub(super) fn open(path: &Path, time: Duration) -> std::result::Result<Self, Error> {
        let bounds = Bounds { time, value_bytes: VALUE_BYTES_MAX, ..Bounds::of_file(path) };
        let mut connection = open::for_reading(path, bounds)?;
        let refused = FirstRefusal::default();
        prepare(&mut connection, &refused).map_err(|error| Error::sqlite(path, error))?;
        Ok(Self { connection, refused })
    }
}

fn prepare(connection: &mut BoundedConnection, refused: &FirstRefusal) -> Result<()> {
    functions::register(connection, &Arc::new(Budget::new(AGGREGATES_BYTES_MAX)))?;
    let refused = refused.clone();
    connection.authorizer(Some(move |context: rusqlite::hooks::AuthContext<'_>| refused.decide(&context)))
}
