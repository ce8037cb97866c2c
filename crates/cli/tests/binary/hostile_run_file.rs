//! Run files made to hang, crash or misuse the commands that read them.

use std::path::PathBuf;

use rusqlite::Connection;

use crate::common::{Bench, text};
use crate::query::made;

const ENDLESS: &str = "WITH RECURSIVE t (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t)";

/// Every command that reads a run file.
const COMMANDS: [&[&str]; 8] = [
    &["report", "hostile.narrows", "--html", "page.html"],
    &["diagnose", "hostile.narrows"],
    &["diff", "drones.narrows", "hostile.narrows"],
    &["diff", "hostile.narrows", "drones.narrows"],
    &["query", "hostile.narrows", "SELECT * FROM trials"],
    &["export", "hostile.narrows", "--format", "otlp-json", "--out", "-"],
    &["export", "hostile.narrows", "--format", "csv", "--what", "logs", "--out", "-"],
    &["predict", "hostile.narrows"],
];

/// The run file of the tests of `narrows query`, and a copy that was changed by these statements.
fn changed(sql: &str) -> (Bench, PathBuf) {
    let bench = Bench::new("");
    let hostile = bench.path("hostile.narrows");
    std::fs::copy(made(&bench), &hostile).unwrap();
    Connection::open(&hostile).unwrap().execute_batch(&format!("PRAGMA foreign_keys = 0; {sql}")).unwrap();
    (bench, hostile)
}

#[test]
fn files_with_other_declarations_are_refused_by_every_command() {
    for (sql, expected) in [
        (
            format!("DROP TABLE trials; CREATE VIEW trials AS {ENDLESS} SELECT x AS id FROM t"),
            "trials is a view, expected a table",
        ),
        (
            "CREATE TRIGGER boom AFTER INSERT ON span_rows BEGIN DELETE FROM run; END".to_owned(),
            "unexpected trigger boom on span_rows",
        ),
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
    ] {
        let (bench, hostile) = changed(&sql);
        let before = std::fs::read(&hostile).unwrap();
        for command in COMMANDS {
            let output = bench.run(command);
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{command:?}: {said}");
            assert!(said.starts_with("error: hostile.narrows is not a run file as Narrows writes it: "), "{said}");
            assert!(said.contains(expected) && said.contains("\nhint: nothing in it was run"), "{said}");
        }
        assert_eq!(std::fs::read(&hostile).unwrap(), before);
    }
}

#[test]
fn another_version_is_refused() {
    let (bench, _) = changed("PRAGMA user_version = 7");
    for command in COMMANDS {
        let output = bench.run(command);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{command:?}: {said}");
        assert!(said.starts_with("error: run file hostile.narrows has version 7, expected 6\nhint: "), "{said}");
    }
}

#[test]
fn odd_values_never_crash_a_command() {
    let window = "INSERT INTO windows VALUES (1, 0, 'steady', 'w', 0, 1 << 62, NULL, 4, 1e300);";
    for (sql, is_refused) in [
        ("UPDATE trials SET variant = x'00'", true),
        ("UPDATE run SET started_ns = -1", true),
        ("UPDATE trials SET caveats = zeroblob(300000000)", true),
        ("UPDATE run SET experiment = CAST(x'ff' AS TEXT)", true),
        ("UPDATE trials SET ended_ns = 0", false),
        ("UPDATE run SET time_scale = -1, repetitions = 0", false),
        ("UPDATE span_rows SET parent_span_id = span_id", false),
        ("UPDATE span_rows SET start_ns = -9223372036854775807, length_ns = -9223372036854775807", false),
        (
            "UPDATE span_rows SET length_ns = 9223372036854775807, db_rows = 9223372036854775807, db_charge = 9e999",
            false,
        ),
        ("UPDATE span_shape_rows SET weight = 1e308; UPDATE trace_rows SET weight = -1e308", false),
        (
            "INSERT INTO series VALUES (1, 1, 'process.cpu.cores', '{cpu}', 'package', 0, '{}'); \
             INSERT INTO points VALUES (1, 1, -9223372036854775807, 9e999), (2, 1, 9223372036854775807, -9e999), \
             (3, 1, 1592611200000000000, NULL), (4, 1, 1592611201000000000, 1e308)",
            false,
        ),
    ] {
        let (bench, _) = changed(&format!("UPDATE trials SET state = 'done'; {window} {sql}"));
        let honest = Connection::open(bench.path("drones.narrows")).unwrap();
        honest.execute_batch("UPDATE trials SET state = 'done'").unwrap();
        drop(honest);
        for command in &COMMANDS[..4] {
            let output = bench.run(command);
            let said = text(&output.stderr);
            // Values that move all requests out of the windows leave nothing to compare.
            let is_empty = command[0] == "diff" && said.contains("cannot compare: ");
            let expected = if is_refused || is_empty { Some(2) } else { Some(0) };
            assert_eq!(output.status.code(), expected, "{sql}: {command:?}: {said}");
            assert!(!is_refused || said.contains("hostile.narrows is damaged: "), "{sql}: {said}");
        }
    }
}
