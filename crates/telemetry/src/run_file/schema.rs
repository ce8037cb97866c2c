//! The tables and views of a run file, and how a file of an older schema is taken further.
//!
//! A version only adds columns and tables, or allows more words in a column. So an older file is read as it is, with "nothing" for what it lacks, and is
//! brought up to date only when its run is resumed, because only then is it written to. Nothing here takes columns away
//! or goes back.

use rusqlite::Connection;

use super::SCHEMA_VERSION;

const TABLES: &str = include_str!("schema.sql");
const SAMPLES: &str = include_str!("samples.sql");
const VIEWS: &str = include_str!("views.sql");

/// What schema 2 added.
const ADD_SPAN_FACTS: &str = "ALTER TABLE span_rows ADD COLUMN db_rows INTEGER; \
     ALTER TABLE span_rows ADD COLUMN db_charge REAL; \
     ALTER TABLE span_rows ADD COLUMN db_sub_status INTEGER; \
     ALTER TABLE span_rows ADD COLUMN db_partition INTEGER; \
     ALTER TABLE span_rows ADD COLUMN retry_after_ns INTEGER; \
     ALTER TABLE span_rows ADD COLUMN resend_count INTEGER;";

/// What schema 3 added, but for the sampled requests.
const ADD_LOAD_COLUMNS: &str = "ALTER TABLE load_second_rows ADD COLUMN request INTEGER; \
     ALTER TABLE load_second_rows ADD COLUMN due INTEGER NOT NULL DEFAULT 0; \
     ALTER TABLE load_second_rows ADD COLUMN late INTEGER NOT NULL DEFAULT 0; \
     ALTER TABLE load_second_rows ADD COLUMN dropped INTEGER NOT NULL DEFAULT 0; \
     ALTER TABLE load_second_rows ADD COLUMN errors_check INTEGER NOT NULL DEFAULT 0; \
     ALTER TABLE windows ADD COLUMN rate REAL;";

/// Makes room for the sampled requests of schema 3. The view goes first, or it would follow the table to its new name.
const SET_SAMPLES_ASIDE: &str = "DROP VIEW IF EXISTS samples; DROP INDEX sample_rows_by_time; \
     ALTER TABLE sample_rows RENAME TO older_sample_rows;";

/// Brings the sampled requests back from where they were set aside.
const BRING_SAMPLES_BACK: &str = "INSERT INTO sample_rows (id, trial, scenario, vu, intended_ns, sent_ns, done_ns, \
     status, error, bytes, trace_id, weight) SELECT id, trial, scenario, vu, intended_ns, sent_ns, done_ns, status, \
     error, bytes, trace_id, weight FROM older_sample_rows; DROP TABLE older_sample_rows;";

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

    /// What `load_second_rows AS s` has besides its columns: the request's name, and what schemas before 3 lack.
    pub(super) fn newer_load_columns(self) -> &'static str {
        match self.0 {
            1 | 2 => "'' AS request_name, 0 AS due, 0 AS late, 0 AS dropped, 0 AS errors_check",
            _ => "coalesce((SELECT text FROM strings WHERE id = s.request), '') AS request_name",
        }
    }

    /// The name of the request of `sample_rows AS s`.
    pub(super) fn sample_request_column(self) -> &'static str {
        match self.0 {
            1 | 2 => "''",
            _ => "coalesce((SELECT text FROM strings WHERE id = s.request), '')",
        }
    }

    /// The column of `windows` with the rate of arrivals.
    pub(super) fn rate_column(self) -> &'static str {
        if self.0 < 3 { "NULL" } else { "rate" }
    }
}

/// Makes all tables and views of the newest schema.
pub(super) fn create(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(TABLES)?;
    connection.execute_batch(SAMPLES)?;
    connection.execute_batch(VIEWS)
}

/// Brings an older file up to the newest schema. For use within a transaction.
pub(super) fn bring_up_to_date(connection: &Connection) -> rusqlite::Result<()> {
    let found: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if found >= SCHEMA_VERSION {
        return Ok(());
    }
    if found < 2 {
        connection.execute_batch(ADD_SPAN_FACTS)?;
    }
    connection.execute_batch(ADD_LOAD_COLUMNS)?;
    connection.execute_batch(SET_SAMPLES_ASIDE)?;
    connection.execute_batch(SAMPLES)?;
    connection.execute_batch(BRING_SAMPLES_BACK)?;
    connection.execute_batch(VIEWS)?;
    connection.pragma_update(None, "user_version", SCHEMA_VERSION)
}
