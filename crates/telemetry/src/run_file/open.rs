//! Opens run files: read-only to be read, for writing to be taken up. Either way nothing that a file declares runs before
//! it is verified.
//!
//! A file whose run was cut short has a write-ahead log beside it, which SQLite reads along; for that it needs a place
//! for its shared index, so the folder must be writable.
//!
//! The file is opened through SQLite alone. Opening and closing it any other way in a process that also writes it would
//! drop the writer's locks, as POSIX has it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension};
use rustix::fs::Access;

use super::bounds::{BoundedConnection, Bounds, distrust, stop_after};
use super::error::{Error, Result};
use super::words::Count;
use super::{APPLICATION_ID, SCHEMA_VERSION, file, verify};

/// How long to wait for another process that holds a lock.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Opens a file to be read, as far as its place allows, and verifies it.
///
/// # Errors
/// When it is no run file, has another version or other tables and views than run files have, is damaged, or cannot be
/// read where it lies.
pub(super) fn for_reading(path: &Path, bounds: Bounds) -> Result<BoundedConnection> {
    rustix::fs::access(path, Access::READ_OK).map_err(|error| Error::io(path, error.into()))?;
    // A folder, or a named pipe, on which opening would block.
    if !path.is_file() {
        return Err(Error::NotARunFile(path.to_owned()));
    }
    let connection = connect(path, bounds)?;
    verify(&connection, path)?;
    Ok(connection)
}

/// Opens a file that a process left unfinished, to go on writing it, and verifies it. Whatever is done with the connection
/// must end within the time of `bounds`, until [`trust_time`] is called.
///
/// # Errors
/// As [`for_reading`], and when the file cannot be written to.
pub(super) fn for_writing(path: &Path, bounds: Bounds) -> Result<Connection> {
    if path.exists() && !path.is_file() {
        return Err(Error::NotARunFile(path.to_owned()));
    }
    let wrap = |error| Error::sqlite(path, error);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags).map_err(wrap)?;
    distrust(&connection, bounds.value_bytes).map_err(wrap)?;
    stop_after(&mut connection, bounds.time).map_err(wrap)?;
    connection.busy_timeout(BUSY_TIMEOUT).map_err(wrap)?;
    verify(&connection, path)?;
    file::prepare_to_write(&connection).map_err(wrap)?;
    Ok(connection)
}

/// Lets a connection write for as long as it likes: the file was taken over, and what comes now is this process's own.
pub(super) fn trust_time(connection: &mut Connection) -> rusqlite::Result<()> {
    connection.progress_handler(0, None::<fn() -> bool>)
}

/// Opens the file for reading, as far as its place allows.
fn connect(path: &Path, bounds: Bounds) -> Result<BoundedConnection> {
    let error = match first_look(path.as_os_str(), OpenFlags::empty(), bounds) {
        Ok(connection) => return Ok(connection),
        Err(error) => error,
    };
    if !matches!(error.sqlite_error_code(), Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly)) {
        return Err(Error::sqlite(path, error));
    }
    if has_log(path) {
        return Err(Error::DirectoryReadOnly(path.to_owned()));
    }
    // In WAL mode but without a log, in a read-only folder: no process can be writing the file.
    first_look(&immutable_uri(path), OpenFlags::SQLITE_OPEN_URI, bounds).map_err(|error| Error::sqlite(path, error))
}

/// Opens the file and reads its first page, without which SQLite has not opened anything.
fn first_look(name: &OsStr, more: OpenFlags, bounds: Bounds) -> rusqlite::Result<BoundedConnection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | more;
    let connection = BoundedConnection::new(Connection::open_with_flags(name, flags)?, bounds)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.execute_batch("PRAGMA query_only = ON")?;
    connection.query_row("SELECT count(*) FROM sqlite_master", [], |_| Ok(()))?;
    Ok(connection)
}

fn has_log(path: &Path) -> bool {
    let mut log = OsString::from(path);
    log.push("-wal");
    std::fs::metadata(log).is_ok_and(|metadata| metadata.len() > 0)
}

fn immutable_uri(path: &Path) -> OsString {
    let mut uri = String::from("file:");
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => uri.push(char::from(*byte)),
            byte => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri.push_str("?immutable=1");
    uri.into()
}

/// Errors unless it is a whole run file of this version that declares what run files declare.
fn verify(connection: &Connection, path: &Path) -> Result<()> {
    let wrap = |error| Error::sqlite(path, error);
    let pragma = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).map_err(wrap);
    if pragma("application_id")? != APPLICATION_ID {
        return Err(Error::NotARunFile(path.to_owned()));
    }
    let found = pragma("user_version")?;
    if found != SCHEMA_VERSION {
        return Err(Error::Version { path: path.to_owned(), found });
    }
    if let Some(difference) = verify::difference(connection).map_err(wrap)? {
        return Err(Error::Foreign { path: path.to_owned(), difference });
    }
    is_as_long_as_it_says(connection, path)
}

/// SQLite itself does not mind when the end of the last page is missing. With a log beside it, a file may be shorter.
fn is_as_long_as_it_says(connection: &Connection, path: &Path) -> Result<()> {
    let sql = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size, pragma_journal_mode \
               WHERE journal_mode <> 'wal'";
    let size = connection.query_row(sql, [], |row| row.get::<_, Count>(0)).optional();
    let length = std::fs::metadata(path).map_err(|error| Error::io(path, error))?.len();
    match size.map_err(|error| Error::sqlite(path, error))? {
        Some(Count(size)) if length < size => {
            Err(Error::damaged(path, format!("it is cut off after {length} of {size} bytes")))
        }
        _ => Ok(()),
    }
}
