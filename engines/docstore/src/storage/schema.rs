//! The tables of a store's database. A database whose tables are not exactly these is refused before anything is read.

use std::collections::BTreeSet;

use rusqlite::{Connection, config::DbConfig};

use super::fault::Fault;

/// `NRWc`: kind of database, in its head.
const APPLICATION: i64 = 0x4e52_5763;
/// The version of the tables and of what stands in them.
pub(super) const VERSION: i64 = 1;

const STORE: &str = "CREATE TABLE store (id INTEGER PRIMARY KEY, next_number INTEGER NOT NULL)";
const DATABASES: &str = "CREATE TABLE databases (number INTEGER PRIMARY KEY, body TEXT NOT NULL, crc INTEGER NOT NULL)";
const CONTAINERS: &str = "CREATE TABLE containers (number INTEGER PRIMARY KEY, database INTEGER NOT NULL, \
     body TEXT NOT NULL, crc INTEGER NOT NULL)";
const MARKS: &str = "CREATE TABLE marks (container INTEGER NOT NULL, range INTEGER NOT NULL, lsn INTEGER NOT NULL, \
     number INTEGER NOT NULL, documents INTEGER NOT NULL, crc INTEGER NOT NULL, PRIMARY KEY (container, range)) \
     WITHOUT ROWID";

/// The table of a container's documents.
pub(super) fn documents(container: u32) -> String {
    format!(
        "CREATE TABLE documents_{container} (number INTEGER PRIMARY KEY, key BLOB NOT NULL, effective BLOB NOT NULL, \
         lsn INTEGER NOT NULL, unix_s INTEGER NOT NULL, ttl INTEGER, text TEXT NOT NULL, crc INTEGER NOT NULL)"
    )
}

/// Makes the tables in a new database.
pub(super) fn create(connection: &Connection) -> Result<(), Fault> {
    connection.execute_batch(&format!(
        "PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION};
         {STORE}; {DATABASES}; {CONTAINERS}; {MARKS}; INSERT INTO store VALUES (1, 0);"
    ))?;
    Ok(())
}

/// Whether it is a database of this version, by its head alone.
pub(super) fn check_version(connection: &Connection) -> Result<(), Fault> {
    // Nothing that the file declares may do anything.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    let number = |pragma| connection.query_row(pragma, [], |row| row.get::<_, i64>(0));
    if number("PRAGMA application_id")? != APPLICATION {
        return Err(Fault::Foreign);
    }
    match number("PRAGMA user_version")? {
        VERSION => Ok(()),
        other => Err(Fault::OtherVersion(other)),
    }
}

/// Whether the tables are those of these containers.
pub(super) fn check_tables(connection: &Connection) -> Result<(), Fault> {
    let mut found = connection.prepare("SELECT sql FROM sqlite_schema")?;
    let found: BTreeSet<Option<String>> = found.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    let fixed = [STORE, DATABASES, CONTAINERS, MARKS].map(str::to_owned);
    if let Some(missing) = fixed.iter().find(|sql| !found.contains(&Some((*sql).clone()))) {
        return Err(Fault::Damaged(format!("it has no table by {missing:?}")));
    }
    let mut numbers = connection.prepare("SELECT number FROM containers")?;
    let numbers: Vec<u32> = numbers.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    let expected: BTreeSet<_> = fixed.into_iter().chain(numbers.into_iter().map(documents)).map(Some).collect();
    match found.symmetric_difference(&expected).next() {
        None => Ok(()),
        Some(other) if found.contains(other) => {
            let what = other.as_deref().unwrap_or("an index");
            Err(Fault::Damaged(format!("it has something that does not belong there: {what:?}")))
        }
        Some(missing) => {
            Err(Fault::Damaged(format!("it has no table by {:?}", missing.as_deref().unwrap_or_default())))
        }
    }
}
