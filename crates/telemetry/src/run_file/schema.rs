//! The tables and views of a run file, and how a file of an older schema is taken further.
//!
//! An older file is read as it is, with "nothing" for what it lacks, and is brought up to date only when its run is
//! resumed, because only then is it written to. Versions 2 and 3 added columns and tables and allowed more words in a
//! column; version 4 keeps spans in other tables than those before; version 5 has more facts of a span in columns
//! (`upgrade.rs`), and gives traces a weight of their own; version 6 lets spans wait for their rows; version 7 says at which ports
//! sidecars stand in for a replica. Nothing here goes back.

use rusqlite::Connection;

use super::{SCHEMA_VERSION, upgrade};

const TABLES: &str = include_str!("schema.sql");
const SAMPLES: &str = include_str!("samples.sql");
const SPANS: &str = include_str!("spans.sql");
const INBOX: &str = include_str!("inbox.sql");
const SPANS_FROM_3: &str = include_str!("spans_from_3.sql");
const VIEWS: &str = include_str!("views.sql");
/// The views under the names of Application Insights, which stand on those of [`VIEWS`].
pub(super) const INSIGHTS: &str = include_str!("insights.sql");

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

/// What schema 4 added, but for the tables of spans.
const ADD_THINNING: &str = "ALTER TABLE trials ADD COLUMN spans_thinned INTEGER NOT NULL DEFAULT 0; \
     ALTER TABLE trials ADD COLUMN spans_one_in INTEGER NOT NULL DEFAULT 1;";

/// What schema 5 added to the trials of one before.
const ADD_THINNING_OF_STORED: &str = "ALTER TABLE trials ADD COLUMN spans_thinned_one_in INTEGER NOT NULL DEFAULT 1; \
     ALTER TABLE trials ADD COLUMN spans_thinned_before_ns INTEGER;";

/// What schema 5 added to the spans of schema 4. What traces of schema 4 stand for is part of their shapes' weights too,
/// until `upgrade.rs` takes it out there.
const ADD_FACTS: &str = "ALTER TABLE trace_rows ADD COLUMN weight REAL NOT NULL DEFAULT 1; \
     UPDATE trace_rows SET weight = stands_for WHERE stands_for > 1; \
     ALTER TABLE trace_rows DROP COLUMN stands_for; \
     ALTER TABLE span_rows ADD COLUMN batch_size INTEGER; \
     ALTER TABLE span_shape_rows ADD COLUMN rpc_system INTEGER; \
     ALTER TABLE span_shape_rows ADD COLUMN rpc_service INTEGER; \
     ALTER TABLE span_shape_rows ADD COLUMN rpc_method INTEGER; \
     ALTER TABLE span_shape_rows ADD COLUMN rpc_status INTEGER; \
     ALTER TABLE span_shape_rows ADD COLUMN messaging_system INTEGER; \
     ALTER TABLE span_shape_rows ADD COLUMN messaging_destination INTEGER; \
     ALTER TABLE span_shape_rows ADD COLUMN messaging_operation INTEGER; \
     ALTER TABLE span_shape_rows ADD COLUMN db_collection INTEGER; \
     ALTER TABLE span_shape_rows ADD COLUMN peer_service INTEGER; \
     ALTER TABLE span_shape_rows ADD COLUMN url_template INTEGER; \
     ALTER TABLE span_shape_rows ADD COLUMN request_name INTEGER;";

/// What schema 7 added.
const ADD_STAND_IN_PORTS: &str = "ALTER TABLE services ADD COLUMN stand_in_ports TEXT NOT NULL DEFAULT '[]';";

/// Columns of the view `spans` that files before schema 5 lack and that [`INSIGHTS`] reads, made of what they have.
pub(super) const OLDER_SPANS: [(&str, &str); 3] = [
    ("rpc_system", r#"coalesce(attributes ->> '$."rpc.system.name"', attributes ->> '$."rpc.system"')"#),
    ("messaging_system", r#"attributes ->> '$."messaging.system"'"#),
    (
        "request_name",
        r#"CASE WHEN kind NOT IN ('server', 'consumer') THEN NULL
           WHEN instr(attributes, '"microsoft.request.name"') > 0
               THEN coalesce(attributes ->> '$."microsoft.request.name"', name)
           WHEN http_method IS NULL OR substr(name, 1, length(http_method) + 1) = http_method || ' ' THEN name
           WHEN http_route IS NOT NULL THEN http_method || ' ' || http_route
           WHEN substr(url, 1, 1) = '/' THEN http_method || ' ' || substr(url, 1, instr(url || '?', '?') - 1)
           ELSE name END"#,
    ),
];

/// Views that stand on the tables of spans, which change below them.
const DROP_SPAN_VIEWS: &str = "DROP VIEW IF EXISTS spans; DROP VIEW IF EXISTS requests; \
     DROP VIEW IF EXISTS dependencies; DROP VIEW IF EXISTS exceptions; DROP VIEW IF EXISTS traces; \
     DROP VIEW IF EXISTS customMetrics; DROP VIEW IF EXISTS performanceCounters;";

/// Sets the spans of schema 3 aside.
const SET_SPANS_ASIDE: &str = "DROP INDEX span_rows_by_trace; DROP INDEX span_rows_by_time; \
     ALTER TABLE span_rows RENAME TO older_span_rows;";

/// The index by which conditions on shapes and times find spans. Made when the run ends: filling it in the order in which
/// spans come would cost as much time as the spans themselves, and more room.
const INDEX_SPANS: &str = "CREATE INDEX IF NOT EXISTS span_rows_by_shape ON span_rows (shape, start_ns)";
const DROP_SPANS_INDEX: &str = "DROP INDEX IF EXISTS span_rows_by_shape";
/// Spans of a file that get an index; beyond, making it would keep who waits for the end of a run for minutes.
const INDEXED_SPANS_MAX: i64 = 50_000_000;

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
    /// The newest.
    pub(super) const NEWEST: Self = Self(SCHEMA_VERSION);

    /// Whether spans are kept by trace and shape, not each for itself.
    pub(super) fn has_shapes(self) -> bool {
        self.0 >= 4
    }

    /// Whether all facts of a span have columns, and traces a weight.
    pub(super) fn has_all_facts(self) -> bool {
        self.0 >= 5
    }

    /// Whether spans may wait for their rows.
    pub(super) fn has_inbox(self) -> bool {
        self.0 >= 6
    }

    /// The spans of a row of `trials` that wait for their rows.
    pub(super) fn waiting_column(self) -> &'static str {
        match self.has_inbox() {
            true => "(SELECT coalesce(sum(spans), 0) FROM inbox_rows WHERE inbox_rows.trial = trials.id)",
            false => "0",
        }
    }

    /// The weight of `trace_rows AS t`, which multiplies that of a shape.
    pub(super) fn trace_weight_column(self) -> &'static str {
        if self.has_all_facts() { "t.weight" } else { "1.0" }
    }

    /// The column of `trials` with the spans that were thinned out.
    pub(super) fn thinned_column(self) -> &'static str {
        if self.0 < 4 { "0" } else { "spans_thinned" }
    }

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

    /// The column of `services` with the ports at which sidecars stand in.
    pub(super) fn stand_in_ports_column(self) -> &'static str {
        if self.0 < 7 { "'[]'" } else { "stand_in_ports" }
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
    connection.execute_batch(SPANS)?;
    connection.execute_batch(INBOX)?;
    connection.execute_batch(VIEWS)?;
    connection.execute_batch(INSIGHTS)
}

/// Makes what queries need and writing does not.
pub(super) fn index_spans(connection: &Connection) -> rusqlite::Result<()> {
    let spans: i64 = connection.query_row("SELECT coalesce(sum(spans_stored), 0) FROM trials", [], |row| row.get(0))?;
    if spans > INDEXED_SPANS_MAX {
        return Ok(());
    }
    // What does not fit the cache is sorted in files, so that a large run needs no more memory than a small one.
    connection.execute_batch("PRAGMA temp_store = FILE")?;
    connection.execute_batch(INDEX_SPANS)
}

/// Brings an older file up to the newest schema. For use within a transaction.
pub(super) fn bring_up_to_date(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(DROP_SPANS_INDEX)?;
    let found: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if found >= SCHEMA_VERSION {
        return Ok(());
    }
    if found < 2 {
        connection.execute_batch(ADD_SPAN_FACTS)?;
    }
    if found < 3 {
        connection.execute_batch(ADD_LOAD_COLUMNS)?;
        connection.execute_batch(SET_SAMPLES_ASIDE)?;
        connection.execute_batch(SAMPLES)?;
        connection.execute_batch(BRING_SAMPLES_BACK)?;
    }
    if found < 5 {
        bring_spans_up_to_date(connection, found)?;
    }
    if found < 6 {
        connection.execute_batch(INBOX)?;
    }
    connection.execute_batch(ADD_STAND_IN_PORTS)?;
    connection.pragma_update(None, "user_version", SCHEMA_VERSION)
}

/// Brings the spans of a schema before 5 into the tables of schema 5.
fn bring_spans_up_to_date(connection: &Connection, found: i64) -> rusqlite::Result<()> {
    connection.execute_batch(DROP_SPAN_VIEWS)?;
    if found < 4 {
        connection.execute_batch(ADD_THINNING)?;
        connection.execute_batch(SET_SPANS_ASIDE)?;
        connection.execute_batch(SPANS)?;
        connection.execute_batch(SPANS_FROM_3)?;
    } else {
        connection.execute_batch(ADD_FACTS)?;
    }
    connection.execute_batch(ADD_THINNING_OF_STORED)?;
    upgrade::fill_facts(connection)?;
    connection.execute_batch(VIEWS)?;
    connection.execute_batch(INSIGHTS)
}
