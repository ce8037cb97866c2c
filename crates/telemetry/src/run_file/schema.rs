//! The tables, views and indexes of a run file, as they are made.
//!
//! There is one version. A file of another one is refused (`verify.rs`), so nothing here changes a file that exists but
//! for the index by which finished files find spans.

use narrows_model::trace::SpanFacts;
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
    let (spans, views) = (with_columns(SPANS), with_columns(VIEWS));
    let insights = with_items(INSIGHTS);
    [TABLES, &spans, &views, &insights].iter().try_for_each(|script| connection.execute_batch(script))
}

/// A script with the columns of spans' facts, each where the script names the place.
fn with_columns(script: &str) -> String {
    let lines = |facts: &[&str], line: &dyn Fn(&str) -> String| facts.iter().map(|fact| line(fact)).collect::<String>();
    let of_shapes = [
        lines(&SpanFacts::TEXTS, &|fact| format!("{fact} INTEGER, -- strings.id\n    ")),
        lines(&SpanFacts::TEMPLATES, &|fact| format!("{fact} INTEGER, -- strings.id of a template\n    ")),
        lines(&SpanFacts::CODES, &|fact| format!("{fact} INTEGER,\n    ")),
    ];
    let of_spans = [
        lines(&SpanFacts::COUNTS, &|fact| format!("{fact} INTEGER,\n    ")),
        lines(&SpanFacts::AMOUNTS, &|fact| format!("{fact} REAL,\n    ")),
    ];
    let shown = [
        lines(&SpanFacts::TEXTS, &|fact| format!("(SELECT text FROM strings WHERE id = h.{fact}) AS {fact},\n       ")),
        lines(&SpanFacts::TEMPLATES, &|fact| {
            format!(
                "printf((SELECT text FROM strings WHERE id = h.{fact}), s.a1, s.a2, s.a3, s.a4, s.a5, s.a6, s.a7, \
                 s.a8, s.a9) AS {fact},\n       "
            )
        }),
        lines(&SpanFacts::CODES, &|fact| format!("h.{fact},\n       ")),
        lines(&SpanFacts::COUNTS, &|fact| format!("s.{fact},\n       ")),
        lines(&SpanFacts::AMOUNTS, &|fact| format!("s.{fact},\n       ")),
    ];
    let filled = [
        ("{facts of shapes}", of_shapes.concat()),
        ("{facts of spans}", of_spans.concat()),
        ("{facts}", shown.concat()),
    ];
    filled.iter().fold(script.to_owned(), |script, (place, columns)| script.replace(place, columns.trim_end()))
}

/// Fills in `itemCount`, the integer number of items that a row of a view represents, at the places that the script
/// names.
///
/// A fractional weight is rounded up in a matching share of the traces, so that sums of `itemCount` equal those of
/// `weight`. Multiples of the golden ratio select the traces: any number of consecutive ones is spread evenly. All
/// spans of a trace are rounded alike.
fn with_items(script: &str) -> String {
    const GOLDEN: &str = "0.6180339887498949";
    let items = |row: &str| {
        format!(
            "CASE WHEN {row}.weight = CAST({row}.weight AS INTEGER) THEN CAST({row}.weight AS INTEGER) \
             ELSE CAST({row}.weight + coalesce((\
             SELECT n.id * {GOLDEN} - CAST(n.id * {GOLDEN} AS INTEGER) FROM trace_rows AS n \
             WHERE n.trace_hex = {row}.trace_id AND n.trial = {row}.trial), 0.5) AS INTEGER) END"
        )
    };
    ["s", "x"].iter().fold(script.to_owned(), |script, row| script.replace(&format!("{{items of {row}}}"), &items(row)))
}

/// Makes what queries need and writing does not.
pub(super) fn index_spans(connection: &Connection) -> rusqlite::Result<()> {
    let spans: i64 = connection.query_row("SELECT coalesce(sum(spans_stored), 0) FROM trials", [], |row| row.get(0))?;
    if spans > INDEXED_SPANS_MAX {
        return Ok(());
    }
    // Sorts that do not fit the cache use files, so that a large run needs no more memory than a small one.
    connection.execute_batch("PRAGMA temp_store = FILE")?;
    connection.execute_batch(INDEX_SPANS)
}

/// Takes that index away again, for a run that goes on.
pub(super) fn drop_spans_index(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(DROP_SPANS_INDEX)
}
