//! The database as a connection: how it is made and opened, and how all of it is read.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::acknowledgement::Commits;
use super::fault::Fault;
use super::record::{Content, Mark};
use super::{rows, schema};
use crate::Flush;
use crate::stored_document::StoredDocument;

/// Statements that are kept prepared: two for each of as many containers, and those for the rest.
const STATEMENTS_MAX: usize = 128;
/// How long another program that reads the database may keep it locked.
const BUSY_TIMEOUT: Duration = Duration::from_secs(2);
/// Pages of the log after which they are copied into the database, 16 MiB.
const CHECKPOINT_PAGES: u32 = 2_000;
/// Pages of twice SQLite's size: a store is read from front to end when it opens, and documents fill them better.
const PAGE_BYTES: u32 = 8 << 10;
/// Memory for pages, in KiB.
const CACHE_KIB: u32 = 16 << 10;

/// Makes a database beside its final place: should the process or the machine fail before it is whole, it is made anew.
pub(super) fn create(file: &Path) -> Result<Connection, Fault> {
    let connection = Connection::open(file)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    connection.execute_batch(&format!(
        "PRAGMA page_size = {PAGE_BYTES}; PRAGMA locking_mode = exclusive; PRAGMA journal_mode = off;
         PRAGMA synchronous = off; PRAGMA cache_size = -{CACHE_KIB};"
    ))?;
    schema::create(&connection)?;
    Ok(connection)
}

/// Opens the database of a folder that is locked.
pub(super) fn open(file: &Path, sync: Flush) -> Result<Connection, Fault> {
    let connection = connect(file, sync)?;
    schema::check_tables(&connection)?;
    Ok(connection)
}

/// The same, without a check of the tables.
pub(super) fn connect(file: &Path, sync: Flush) -> Result<Connection, Fault> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(file, flags)?;
    // A database that is rejected stays unchanged, and so does its log.
    leave(&connection)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    // `normal` flushes before it copies the log into the database: a loss of power costs the last writes, not the rest.
    let synchronous = match sync {
        Flush::Always => "full",
        Flush::Never => "normal",
    };
    connection.execute_batch("PRAGMA locking_mode = exclusive;")?;
    schema::check_version(&connection)?;
    connection.execute_batch(&format!(
        "PRAGMA journal_mode = wal; PRAGMA synchronous = {synchronous};
         PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}; PRAGMA cache_size = -{CACHE_KIB};"
    ))?;
    Ok(connection)
}

/// Configures a connection to leave the log beside the database when it is closed.
pub(super) fn leave(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map(drop)
}

/// Configures a connection to copy the log into the database when it is closed.
pub(super) fn take(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false).map(drop)
}

/// Everything but documents.
pub(super) fn content(connection: &Connection) -> Result<Content, Fault> {
    let next_number = connection.query_row("SELECT next_number FROM store WHERE id = 1", [], |row| row.get(0))?;
    let mut content = Content { next_number, ..Content::default() };
    each(connection, "SELECT * FROM databases ORDER BY number", |row| {
        content.databases.push(rows::database(row)?);
        Ok(())
    })?;
    let mut marks: BTreeMap<u32, BTreeMap<u32, Mark>> = BTreeMap::new();
    each(connection, "SELECT * FROM marks", |row| {
        let (container, range, mark) = rows::mark(row)?;
        if (container, range) == rows::COMMITS {
            content.commits = Some(Commits::of_mark(mark));
        } else {
            marks.entry(container).or_default().insert(range, mark);
        }
        Ok(())
    })?;
    each(connection, "SELECT * FROM containers ORDER BY number", |row| {
        let container = rows::container(row)?;
        let marks = marks.remove(&container.id.container).unwrap_or_default();
        content.containers.push((container, marks));
        Ok(())
    })?;
    Ok(content)
}

/// Hands every document of a container to `take`, by number.
pub(super) fn documents(
    connection: &Connection,
    container: u32,
    mut take: impl FnMut(StoredDocument) -> Result<(), String>,
) -> Result<(), Fault> {
    each(connection, &format!("SELECT * FROM documents_{container} ORDER BY number"), |row| {
        take(rows::document(row)?).map_err(Fault::Damaged)
    })
}

fn each(
    connection: &Connection,
    query: &str,
    mut read: impl FnMut(&rusqlite::Row) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let mut statement = connection.prepare(query)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        read(row)?;
    }
    Ok(())
}
