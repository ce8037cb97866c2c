//! The tables and views of a run file, and how a file of an older schema is taken further.
//!
//! A version only adds columns and tables. So an older file is read as it is, with "nothing" for what it lacks, and is
//! brought up to date only when its run is resumed, because only then is it written to. Nothing here takes columns away
//! or goes back.

use rusqlite::Connection;

use super::SCHEMA_VERSION;

const TABLES: &str = include_str!("schema.sql");
const VIEWS: &str = include_str!("views.sql");

/// What schema 2 added.
const ADD_SPAN_FACTS: &str = "ALTER TABLE span_rows ADD COLUMN db_rows INTEGER; \
     ALTER TABLE span_rows ADD COLUMN db_charge REAL; \
     ALTER TABLE span_rows ADD COLUMN db_sub_status INTEGER; \
     ALTER TABLE span_rows ADD COLUMN db_partition INTEGER; \
     ALTER TABLE span_rows ADD COLUMN retry_after_ns INTEGER; \
     ALTER TABLE span_rows ADD COLUMN resend_count INTEGER;";

/// The schema of a file that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Schema(pub(super) i64);

impl Schema {
    /// The columns of `span_rows` that schema 1 lacks, as it can answer them.
    pub(super) fn newer_span_columns(self) -> &'static str {
        match self.0 {
            1 => "NULL, NULL, NULL, NULL, NULL, NULL",
            _ => "db_rows, db_charge, db_sub_status, db_partition, retry_after_ns, resend_count",
        }
    }

    /// The column of `span_rows` with what a call was charged.
    pub(super) fn charge_column(self) -> &'static str {
        if self.0 == 1 { "NULL" } else { "db_charge" }
    }
}

/// Makes all tables and views of the newest schema.
pub(super) fn create(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(TABLES)?;
    connection.execute_batch(VIEWS)
}

/// Brings an older file up to the newest schema. For use within a transaction.
pub(super) fn bring_up_to_date(connection: &Connection) -> rusqlite::Result<()> {
    let found: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if found >= SCHEMA_VERSION {
        return Ok(());
    }
    connection.execute_batch(ADD_SPAN_FACTS)?;
    connection.execute_batch(VIEWS)?;
    connection.pragma_update(None, "user_version", SCHEMA_VERSION)
}
