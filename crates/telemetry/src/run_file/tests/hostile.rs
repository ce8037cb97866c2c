//! Files that somebody made to hang, crash or misuse whoever opens them: each is an error, and nothing of it is run.

use std::time::Duration;

use narrows_model::series::LogLine;

use super::super::bounds::Bounds;
use super::packed_requests::{packed, spans};
use super::query::finished;
use super::*;

const ENDLESS: &str = "WITH RECURSIVE t (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t)";

/// A file whose writer was killed while spans waited for their rows, changed by these statements.
fn killed_and_changed(sql: &str) -> Place {
    let place = Place::new();
    let (_file, recorder) = started(&place.path(), Limits::default());
    recorder.put_windows(1, &windows()).unwrap();
    assert_eq!(wait(recorder.packed(packed(spans(0..2)), vec![])), kept(2));
    let killed = place.copy_as_killed();
    change(&killed, sql);
    killed
}

fn change(place: &Place, sql: &str) {
    Connection::open(place.path()).unwrap().execute_batch(sql).unwrap();
}

/// The first error of opening a file and reading everything in it; empty when all of it can be read.
fn refusal(place: &Place) -> String {
    let path = place.path();
    let read = Reader::open(&path).and_then(|reader| {
        reader.evidence(TraceLimit::default())?;
        reader.samples(1)?;
        read_each(&reader)
    });
    read.map_err(|error| error.to_string()).err().unwrap_or_default()
}

fn read_each(reader: &Reader) -> Result<()> {
    let done = || Ok::<_, std::convert::Infallible>(());
    let infallible = |ended: std::result::Result<(), std::convert::Infallible>| ended.unwrap();
    reader.each_span(1, SpanOrder::ByTrace, &mut |_: Span| done()).map(infallible)?;
    reader.each_point(1, &mut |_: (SeriesKey, Point)| done()).map(infallible)?;
    reader.each_log(1, &mut |_: LogLine| done()).map(infallible)?;
    for view in EXPORTED_VIEWS {
        reader.each_row(view, 1, &mut |_| done(), &mut |_| done()).map(infallible)?;
    }
    Ok(())
}

#[test]
fn a_file_that_declares_anything_else_is_refused_before_it_is_read_or_written() {
    let endless_trials =
        format!("PRAGMA foreign_keys = 0; DROP TABLE trials; CREATE VIEW trials AS {ENDLESS} SELECT x AS id FROM t");
    let boom = "BEGIN SELECT RAISE(FAIL, 'it ran'); END";
    for (sql, expected) in [
        (endless_trials, "trials is a view, expected a table"),
        (format!("CREATE TRIGGER boom AFTER INSERT ON span_rows {boom}"), "unexpected trigger boom on span_rows"),
        (format!("CREATE TRIGGER boom AFTER UPDATE ON run {boom}"), "unexpected trigger boom on run"),
        (
            format!("DROP VIEW logs; CREATE VIEW logs AS {ENDLESS} SELECT x AS trial FROM t"),
            "its view logs is declared differently",
        ),
        (
            "PRAGMA writable_schema = ON; UPDATE sqlite_master SET rootpage = 0, \
             sql = 'CREATE VIRTUAL TABLE findings USING dbstat' WHERE name = 'findings'"
                .to_owned(),
            "its table findings is declared differently",
        ),
        (
            "ALTER TABLE windows ADD COLUMN more AS (label || label)".to_owned(),
            "its table windows is declared differently",
        ),
        ("CREATE INDEX more ON points (abs(value))".to_owned(), "unexpected index more on points"),
        ("DROP VIEW samples".to_owned(), "the view samples is missing"),
    ] {
        let place = killed_and_changed(&sql);
        let before = std::fs::read(place.path()).unwrap();
        let opened = Reader::open(&place.path()).unwrap_err();
        assert!(matches!(&opened, Error::Foreign { difference, .. } if difference == expected), "{sql}: {opened}");
        let resumed = RunFile::resume(&place.path()).unwrap_err();
        assert_eq!(resumed.to_string(), opened.to_string());
        assert_eq!(std::fs::read(place.path()).unwrap(), before, "{sql}");
    }
}

#[test]
fn what_verifies_later_than_it_is_opened_is_verified_again() {
    let place = finished();
    let reader = Reader::open(&place.path()).unwrap();
    change(&place, "CREATE TRIGGER boom AFTER INSERT ON points BEGIN SELECT 1; END");
    let error = reader.sql("SELECT 1", &QueryLimits::default()).unwrap_err();
    assert!(error.to_string().ends_with("unexpected trigger boom on points"), "{error}");
}

#[test]
fn values_that_narrows_never_writes_are_errors() {
    let unchecked = "PRAGMA ignore_check_constraints = 1; PRAGMA foreign_keys = 0;";
    for sql in [
        "UPDATE run SET experiment = CAST(x'ff' AS TEXT)",
        "UPDATE run SET seed = '-1'",
        "UPDATE run SET time_scale = 9e999",
        "UPDATE run SET started_ns = -1",
        "UPDATE run SET environment = zeroblob(200000000)",
        "UPDATE trials SET variant = x'00'",
        "UPDATE trials SET spans_stored = -1",
        "UPDATE trials SET started_ns = 'soon'",
        "UPDATE trials SET ended_ns = 9223372036854775807",
        "UPDATE trials SET state = 'odd'",
        "UPDATE trials SET caveats = '{}'",
        "UPDATE trials SET load_program = '{}'",
        "UPDATE trials SET load_program = json_set(load_program, '$.reported.requests', 9223372036854775807)",
        "UPDATE windows SET start_ns = -9223372036854775807",
        "UPDATE windows SET end_ns = start_ns - 1",
        "UPDATE windows SET drained_ns = -1",
        "UPDATE load_second_rows SET length_ns = -1",
        "UPDATE windows SET rate = 9e999 WHERE position = 1",
        "UPDATE windows SET vus = 1 << 40",
        "WITH RECURSIVE t (x) AS (SELECT 10 UNION ALL SELECT x + 1 FROM t WHERE x < 10100) \
         INSERT INTO windows SELECT 1, x, 'steady', 'w', 1, 2, NULL, 1, NULL FROM t",
        "UPDATE services SET port = -1",
        "UPDATE services SET cpu_limit_cores = 9e999",
        "UPDATE load_second_rows SET start_ns = 9223372036854775807",
        "UPDATE load_second_rows SET sent = -5",
        "UPDATE load_second_rows SET repeated = -5",
        "UPDATE load_second_rows SET succeeded = 9223372036854775807",
        "UPDATE load_second_rows SET scenario = 999999",
        "UPDATE load_latency_rows SET count = -1",
        "UPDATE load_latency_rows SET count = 9223372036854775807",
        "UPDATE series SET labels = '[]'",
        "UPDATE points SET value = 'x'",
        "UPDATE sample_rows SET trace_id = x'01'",
        "UPDATE span_rows SET span_id = x'01'",
        "UPDATE span_rows SET length_ns = 'x'",
        "UPDATE span_shape_rows SET kind = 77",
        "UPDATE span_shape_rows SET server_port = -1",
        "UPDATE span_shape_rows SET attributes = (SELECT id FROM strings WHERE text = 'gateway')",
        "UPDATE strings SET text = '%200000000s' || id WHERE id IN (SELECT attributes FROM span_shape_rows)",
        "UPDATE strings SET text = CAST(x'ff' AS TEXT) WHERE text = 'gateway'",
        "UPDATE log_rows SET stream = 'odd'",
    ] {
        let place = finished();
        change(&place, &format!("{unchecked} {sql}"));
        let said = refusal(&place);
        assert!(said.contains(" is damaged: "), "{sql}: {said}");
    }
}

#[test]
fn values_of_other_clocks_and_scales_are_read_within_bounds() {
    for sql in [
        "UPDATE span_rows SET start_ns = -9223372036854775807, length_ns = -9223372036854775807",
        "UPDATE span_rows SET start_ns = 9223372036854775807 - rowid_of.n, length_ns = 9223372036854775807 \
         FROM (SELECT 0 AS n) AS rowid_of",
        "UPDATE span_rows SET parent_span_id = span_id",
        "UPDATE span_rows SET db_rows = 9223372036854775807, db_charge = 9e999",
        "UPDATE span_shape_rows SET weight = -9e999",
        "UPDATE trace_rows SET weight = 9e999",
        "UPDATE trace_rows SET weight = 0; UPDATE span_shape_rows SET weight = 9e999",
        "UPDATE points SET time_ns = CASE id WHEN 1 THEN -9223372036854775807 ELSE 9223372036854775807 END",
        "UPDATE points SET value = 9e999",
        "UPDATE span_rows SET trace = 99",
        "UPDATE span_rows SET shape = 99",
    ] {
        let place = finished();
        change(&place, sql);
        let read = evidence(&place.path());
        let spans = || read.trials[0].traces.iter().flat_map(|trace| &trace.spans);
        assert!(spans().all(|span| span.start_ns >= 0 && span.end_ns >= 0 && span.weight > 0.0), "{sql}");
        assert!(spans().all(|span| span.weight.is_finite()), "{sql}");
        assert!(
            read.trials[0].series.iter().flat_map(|series| &series.points).all(|point| point.time_ns >= 0),
            "{sql}"
        );
    }
}

/// Lets the root page of a table refer to one page many times over, that one to another one, and so on: a file of a few
/// pages that holds 100¹² rows, which SQLite reads without complaint.
fn make_endless(place: &Place, table: &str) {
    const CHILDREN: u32 = 100;
    const LEVELS: u32 = 12;
    let connection = Connection::open(place.path()).unwrap();
    let sql = format!("SELECT rootpage, (SELECT * FROM pragma_page_size) FROM sqlite_master WHERE name = '{table}'");
    let (root, page): (u32, u32) = connection.query_row(&sql, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    let page = page as usize;
    drop(connection);
    let mut bytes = std::fs::read(place.path()).unwrap();
    let pages = u32::try_from(bytes.len() / page).unwrap();
    let at = |number: u32| (number as usize - 1) * page;
    // The rows themselves move to the last page.
    let leaf = bytes[at(root)..at(root) + page].to_vec();
    assert_eq!(leaf[0], 13, "a leaf of a table");
    let interior = |child: u32| {
        let mut made = vec![0; page];
        made[0] = 5;
        let first = page - 5 * CHILDREN as usize;
        made[3..5].copy_from_slice(&(CHILDREN as u16).to_be_bytes());
        made[5..7].copy_from_slice(&(first as u16).to_be_bytes());
        made[8..12].copy_from_slice(&child.to_be_bytes());
        for number in 0..CHILDREN as usize {
            let cell = first + 5 * number;
            made[12 + 2 * number..14 + 2 * number].copy_from_slice(&(cell as u16).to_be_bytes());
            made[cell..cell + 4].copy_from_slice(&child.to_be_bytes());
            made[cell + 4] = 1;
        }
        made
    };
    bytes[at(root)..at(root) + page].copy_from_slice(&interior(pages + 1));
    (1..LEVELS).for_each(|level| bytes.extend(interior(pages + level + 1)));
    bytes.extend(leaf);
    bytes[28..32].copy_from_slice(&(pages + LEVELS).to_be_bytes());
    std::fs::write(place.path(), bytes).unwrap();
}

#[test]
fn rows_without_end_end_with_the_time_or_the_memory_of_a_call() {
    let wide = Bounds { time: Duration::from_secs(3600), value_bytes: 1 << 20, collected_bytes: 1 << 20 };
    let brief = Bounds { time: Duration::from_millis(300), collected_bytes: usize::MAX, ..wide };
    let place = finished();
    make_endless(&place, "trace_rows");
    let reader = Reader::open_within(&place.path(), brief).unwrap();
    let sql = "SELECT count(weight) FROM trace_rows NOT INDEXED";
    let said = reader.query(|connection| connection.query_row(sql, [], |_| Ok(()))).unwrap_err().to_string();
    assert!(said.starts_with("reading run file") && said.ends_with("longer than a file of its size should"), "{said}");

    let place = finished();
    make_endless(&place, "sample_rows");
    let reader = Reader::open_within(&place.path(), wide).unwrap();
    let sql = "SELECT * FROM sample_rows NOT INDEXED";
    let said = reader.query(|connection| connection.rows(sql, [], |_| Ok(())).map(drop)).unwrap_err().to_string();
    assert!(said.ends_with("is damaged: its rows need more than 1.00 MiB of memory"), "{said}");

    let place = finished();
    make_endless(&place, "trials");
    let said = Reader::open(&place.path()).unwrap().trials().map(drop).unwrap_err().to_string();
    assert!(said.ends_with("a table has more than 10000 rows, expected fewer"), "{said}");
}

#[test]
fn a_caller_that_takes_its_time_is_not_stopped() {
    let place = finished();
    let bounds = Bounds { time: Duration::from_millis(200), value_bytes: 1 << 20, collected_bytes: 1 << 20 };
    let reader = Reader::open_within(&place.path(), bounds).unwrap();
    let begun = std::time::Instant::now();
    let mut spans = 0;
    let visit = &mut |_: Span| {
        // Longer than reading may take.
        while begun.elapsed() < Duration::from_millis(400) {
            std::hint::spin_loop();
        }
        spans += 1;
        Ok::<_, std::convert::Infallible>(())
    };
    reader.each_span(1, SpanOrder::ByTrace, visit).unwrap().unwrap();
    assert_eq!(spans, 6);
}

#[test]
fn a_name_that_is_no_name_is_refused() {
    for (table, column) in [("run", "experiment"), ("trials", "variant"), ("windows", "label")] {
        let place =
            killed_and_changed(&format!("UPDATE {table} SET {column} = replace(hex(zeroblob(32769)), '0', 'x')"));
        let refused = refusal(&place);
        assert!(refused.contains("a name of 65538 bytes, expected at most 65536"), "{table}.{column}: {refused}");
    }
}
