//! Questions to a run file: what is let through, and how far it may go.

use narrows_model::table::{Cell as TableCell, Chart, Column, ColumnType, Table};

use super::*;

/// A finished file with one of everything.
pub(super) fn finished() -> Place {
    let place = Place::new();
    let (file, recorder) = started(&place.path(), Limits::default());
    write_all(&recorder);
    file.finish(RunState::Complete).unwrap();
    place
}

pub(super) fn ask(place: &Place, sql: &str) -> std::result::Result<Table, QueryError> {
    Reader::open(&place.path()).unwrap().sql(sql, &QueryLimits::default())
}

fn said(place: &Place, sql: &str) -> String {
    ask(place, sql).unwrap_err().to_string()
}

/// The cells of the first row, separated by `|`.
pub(super) fn first(place: &Place, sql: &str) -> String {
    let table = ask(place, sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    let print = |cell: &TableCell| match cell {
        TableCell::Null => "NULL".to_owned(),
        TableCell::Integer(number) => number.to_string(),
        TableCell::Real(number) => format!("{number:?}"),
        TableCell::Text(text) => text.clone(),
        other => format!("{other:?}"),
    };
    table.rows.first().map_or_else(String::new, |row| row.iter().map(print).collect::<Vec<_>>().join("|"))
}

#[test]
fn what_would_write_is_refused_and_changes_nothing() {
    let place = finished();
    let elsewhere = place.folder.path().join("copy.db");
    let before = std::fs::read(place.path()).unwrap();
    let vacuum_into = format!("VACUUM INTO '{}'", elsewhere.display());
    let attach = format!("ATTACH '{}' AS other", elsewhere.display());
    let cases = [
        ("INSERT INTO run SELECT * FROM run", "insert into run"),
        ("UPDATE trials SET variant = 'x'", "update trials"),
        ("DELETE FROM run", "delete from run"),
        ("WITH t AS (SELECT 1) DELETE FROM trials", "delete from trials"),
        ("EXPLAIN DELETE FROM trials", "delete from trials"),
        ("CREATE TABLE t (x)", "change the tables"),
        ("CREATE TEMP TABLE t (x)", "change the tables"),
        ("DROP TABLE trials", "change the tables"),
        ("ALTER TABLE trials ADD COLUMN x", "change the tables"),
        (&*attach, "attach another file"),
        ("DETACH main", "detach a file"),
        ("PRAGMA journal_mode = DELETE", "run PRAGMA journal_mode"),
        ("PRAGMA user_version = 9", "run PRAGMA user_version"),
        ("PRAGMA query_only = OFF", "run PRAGMA query_only"),
        ("PRAGMA writable_schema = ON", "run PRAGMA writable_schema"),
        ("PRAGMA wal_checkpoint", "run PRAGMA wal_checkpoint"),
        ("BEGIN", "begin or end a transaction"),
        ("ANALYZE", "write statistics or indexes"),
        ("SELECT load_extension('x')", "call load_extension"),
    ];
    for (sql, action) in cases {
        let expected = format!("the query would {action}, expected one that only reads, such as a SELECT");
        let found = said(&place, sql);
        // SQLite drops statements of nothing to attach or no such function before it calls the authorizer.
        let is_unknown = found.starts_with("no such function: load_extension") || found == "not authorized";
        assert!(found == expected || is_unknown, "{sql}: {found}");
    }
    for sql in ["VACUUM", &*vacuum_into, "REINDEX"] {
        assert!(matches!(ask(&place, sql), Err(QueryError::Writes { .. })), "{sql}: {}", said(&place, sql));
    }
    assert_eq!(std::fs::read(place.path()).unwrap(), before);
    assert!(!elsewhere.exists());
}

#[test]
fn one_whole_statement_is_asked_for() {
    let place = finished();
    for (sql, expected) in [
        ("", "the query is empty, expected a SELECT"),
        (" -- nothing\n;", "the query is empty, expected a SELECT"),
        ("SELECT 1; SELECT 2", "the query has several statements, expected one"),
        (
            "SELECT 1; DELETE FROM run",
            "the query would delete from run, expected one that only reads, such as a SELECT",
        ),
        ("SELECT :name", "the query has a parameter `:name`, expected its value in its place"),
        ("SELECT ?", "the query has a parameter `?`, expected its value in its place"),
        ("SELECT nobody FROM run", "no such column: nobody"),
        ("SELECT * FROM nowhere", "no such table: nowhere"),
        (
            "SELECT kql_matches('a', '(') FROM run",
            "`(` is no regular expression: regex parse error:\n    (\n    ^\nerror: unclosed group",
        ),
        ("SELECT percentile(value, 200) FROM metrics", "a percentile of 200, expected 0 to 100"),
        ("SELECT zeroblob(100000000)", "string or blob too big"),
    ] {
        assert_eq!(said(&place, sql), expected, "{sql}");
    }
    assert_eq!(first(&place, "SELECT 1; -- and a remark"), "1");
    assert_eq!(first(&place, "PRAGMA user_version"), SCHEMA_VERSION.to_string());
    assert_eq!(first(&place, "SELECT name FROM pragma_table_info('trials') WHERE cid = 1"), "variant");
    assert!(first(&place, "EXPLAIN QUERY PLAN SELECT * FROM trials").contains("trials"));
}

#[test]
fn a_mistake_has_its_place() {
    let place = finished();
    let found = ask(&place, "SELECT 'ü',\n  sum(x FROM run").unwrap_err();
    let QueryError::Sql { message, place } = found else { panic!("{found}") };
    assert_eq!((message.as_str(), place), ("near \"FROM\": syntax error", Some((2, 9))));
}

#[test]
fn a_query_without_an_end_is_stopped() {
    let place = finished();
    let endless = "WITH RECURSIVE t (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t) SELECT sum(x % 7) FROM t";
    let limits = QueryLimits { time: std::time::Duration::from_millis(500), ..QueryLimits::default() };
    let reader = Reader::open(&place.path()).unwrap();
    let found = reader.sql(endless, &limits).unwrap_err().to_string();
    assert_eq!(found, "the query was stopped after 500 ms");
    assert_eq!(reader.sql("SELECT 1", &limits).unwrap().rows.len(), 1, "the next one has its own time");
}

#[test]
fn queries_over_spans_that_are_above_each_other_and_come_twice_return() {
    let place = Place::new();
    let (file, recorder) = started(&place.path(), Limits::default());
    let [server, call] = <[Span; 2]>::try_from(trace(1, T0).spans).unwrap();
    let under = |id: u8, parent: u8, at: i64| Span {
        span_id: [id; 8],
        parent_id: Some([parent; 8]),
        start_ns: T0 + at,
        ..call.clone()
    };
    let spans =
        vec![Span { span_id: [8; 8], ..server }, under(1, 2, 0), under(1, 2, 1), under(2, 1, 0), under(2, 1, 1)];
    assert_eq!(wait(recorder.spans(spans)), kept(5));
    file.finish(RunState::Complete).unwrap();
    let sql = "SELECT count(*), max(operation_Name) FROM";
    assert_eq!(first(&place, &format!("{sql} dependencies")), "4|");
    assert_eq!(first(&place, &format!("{sql} exceptions")), "4|");
}

#[test]
fn a_result_is_cut_at_its_limits() {
    let place = finished();
    let reader = Reader::open(&place.path()).unwrap();
    let count = "WITH RECURSIVE t (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t WHERE x < 10) SELECT x FROM t";
    let result = |limits: QueryLimits| {
        let table = reader.sql(count, &limits).unwrap();
        (table.rows.len(), table.is_cut)
    };
    let all = QueryLimits::default();
    assert_eq!(result(QueryLimits { rows: 10, ..all }), (10, false));
    assert_eq!(result(QueryLimits { rows: 9, ..all }), (9, true));
    assert_eq!(result(QueryLimits { rows: 0, ..all }), (0, true));
    assert_eq!(result(QueryLimits { bytes: 3 * size_of::<TableCell>(), ..all }), (3, true));
}

#[test]
fn compiled_columns_say_what_cells_hold() {
    let place = finished();
    let reader = Reader::open(&place.path()).unwrap();
    let kinds = [ColumnType::Bool, ColumnType::Instant, ColumnType::Span, ColumnType::Real, ColumnType::Text];
    let columns = kinds.map(|kind| Column { name: "c".into(), kind });
    let sql = "SELECT 1, 5, 6, 7, 'x' UNION ALL SELECT NULL, 'odd', NULL, 0.5, NULL";
    let table = reader.run_compiled(sql, &columns, Some(Chart::Bar), &QueryLimits::default()).unwrap();
    use TableCell::{Bool, Instant, Null, Real, Span, Text};
    let expected = [
        vec![Bool(true), Instant(5), Span(6), Real(7.0), Text("x".into())],
        vec![Null, Text("odd".into()), Null, Real(0.5), Null],
    ];
    assert_eq!((&table.rows[..], table.chart, &table.columns[..]), (&expected[..], Some(Chart::Bar), &columns[..]));
    let wrong = reader.run_compiled(sql, &columns[1..], None, &QueryLimits::default()).unwrap_err();
    assert_eq!(wrong.to_string(), "the compiled query returns 5 columns, expected 4");
}

#[test]
fn a_file_that_is_being_written_can_be_asked() {
    let place = Place::new();
    let (file, recorder) = started(&place.path(), Limits::default());
    write_all(&recorder);
    assert_eq!(first(&place, "SELECT count(*) FROM requests"), "3");
    file.finish(RunState::Complete).unwrap();
    assert_eq!(first(&place, "SELECT count(*) FROM requests"), "3");
}

#[test]
fn damage_is_an_error_and_never_a_panic() {
    let place = finished();
    let whole = std::fs::read(place.path()).unwrap();
    let mut failed = 0;
    for at in (0..whole.len()).step_by(4099) {
        let mut bytes = whole.clone();
        bytes[at..(at + 64).min(whole.len())].fill(0xff);
        std::fs::write(place.path(), bytes).unwrap();
        let everything = "SELECT * FROM requests UNION ALL SELECT * FROM dependencies";
        let asked = Reader::open(&place.path())
            .map_err(QueryError::from)
            .and_then(|reader| reader.sql(everything, &QueryLimits::default()));
        failed += usize::from(asked.is_err());
    }
    assert!(failed > 0, "some of it must have mattered");
}
