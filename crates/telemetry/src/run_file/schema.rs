//! The tables, views and indexes of a run file, as they are made.
//!
//! There is one version. A file of another one is refused (`verify.rs`), so nothing here changes a file that exists but
//! for the index by which finished files find spans.

use rusqlite::Connection;

const TABLES: &str = include_str!("schema.sql");
const SPANS: &str = include_str!("spans.sql");
const VIEWS: &str = include_str!("views.sql");
/// The views under the names of Application Insights, which stand on those of [`VIEWS`].
const INSIGHTS: &str = include_str!("insights.sql");

/// The index by which conditions on shapes and times find spans. Made when the run ends: filling it in the order in which
/// spans come would cost as much time as the spans themselves, and more room.
pub(super) const INDEX_SPANS: &str = "CREATE INDEX IF NOT EXISTS span_rows_by_shape ON span_rows (shape, start_ns)";
const DROP_SPANS_INDEX: &str = "DROP INDEX IF EXISTS span_rows_by_shape";
/// Spans of a file that get an index; beyond, making it would delay the end of a run for minutes.
const INDEXED_SPANS_MAX: i64 = 50_000_000;

/// Makes all tables and views.
pub(super) fn create(connection: &Connection) -> rusqlite::Result<()> {
    [TABLES, SPANS, VIEWS, INSIGHTS].iter().try_for_each(|script| connection.execute_batch(script))
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

/// Takes that index away again, for a run that goes on.
pub(super) fn drop_spans_index(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(DROP_SPANS_INDEX)
}
