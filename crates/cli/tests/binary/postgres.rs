//! A PostgreSQL server of an experiment's own: it is filled, queried, sampled and gone.
//!
//! They need PostgreSQL (Debian package postgresql). `NARROWS_TEST_SKIP_POSTGRES=1` leaves them out; what is not installed is
//! skipped too.

use std::path::Path;

use crate::common::{Bench, ask, cgroups, eventually, marked, text, working};
use narrows_testing::postgres_programs;
use rustix::process::{Pid, Signal, kill_process};

/// The path of its client; `None` where the test is skipped.
fn psql() -> Option<String> {
    postgres_programs().map(|folder| folder.join("psql").to_string_lossy().into_owned())
}

fn experiment(psql: &str, service: &str, sql: &str) -> String {
    format!(
        r#"
experiment: database
system:
  services:
    db:
      postgres: {{ database: customers, sql: [schema.sql, rows.sql], settings: {{ shared_buffers: 16MB }} }}
      memory: 512MiB
{service}
load:
  command: [{psql}, -X, -w, -v, ON_ERROR_STOP=1, -d, "${{db.url}}", -c, "{sql}"]
"#
    )
}

fn bench(experiment: &str, rows: &str) -> Bench {
    let bench = Bench::new(experiment);
    std::fs::write(bench.path("schema.sql"), "CREATE TABLE names (\n  id int PRIMARY KEY,\n  name text NOT NULL\n);\n")
        .unwrap();
    std::fs::write(bench.path("rows.sql"), rows).unwrap();
    bench
}

const ROWS: &str = "INSERT INTO names SELECT n, 'name ' || n FROM generate_series(1, 1000) n;\n";

fn nothing_is_left(bench: &Bench, run: &Path) {
    let id = ask(run, "select id from run");
    eventually("the end of every process of the run", || marked(&id).is_empty() && working(bench).is_empty());
    eventually("the removal of every control group of the run", || cgroups(&id).is_empty());
    eventually("the removal of every scratch folder of the run", || bench.scratch().is_empty());
}

#[test]
fn a_server_is_filled_asked_sampled_and_gone() {
    let Some(psql) = psql() else { return };
    let busy = "SELECT 'rows: ' || count(*), 'buffers: ' || current_setting('shared_buffers') FROM names; \
                SELECT count(*) FROM generate_series(1, 12000000) n WHERE n % 7 = 0";
    let bench = bench(&experiment(&psql, "", busy), ROWS);
    let output = bench.run(&["run", "--out", "run.narrows"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let run = bench.path("run.narrows");
    let said = |what: &str| ask(&run, &format!("select count(*) from logs where text like '%{what}%'"));
    assert_eq!((said("rows: 1000").as_str(), said("buffers: 16MB").as_str()), ("1", "1"));
    let points = |name: &str| {
        let sql = format!("select count(*) from metrics where service = 'db' and name = '{name}' and value > 0");
        ask(&run, &sql).parse::<u32>().unwrap()
    };
    for name in ["postgresql.connection.max", "postgresql.commits", "process.memory.rss"] {
        assert!(points(name) > 0, "{name}");
    }
    // The query runs in a worker that the server forked.
    let busiest = ask(
        &run,
        "select cast(max(value) * 100 as int) from metrics where service = 'db' and name = 'process.cpu.cores'",
    );
    assert!(busiest.parse::<u32>().unwrap() > 10, "{busiest} % of a core");
    assert_eq!(said("database system is shut down"), "1", "it ended in order");
    nothing_is_left(&bench, &run);
}

#[test]
fn an_error_in_sql_is_reported_with_file_line_and_message() {
    let Some(psql) = psql() else { return };
    let bench = bench(&experiment(&psql, "", "SELECT 1"), "SELECT 1;\n\nINSERT INTO names\nVALUES (1, NULL);\n");
    let output = bench.run(&["run", "--out", "run.narrows"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    let expected =
        format!("db: {}:4: ERROR: null value in column", bench.path("rows.sql").canonicalize().unwrap().display());
    assert!(said.contains(&expected), "{said}");
    assert!(said.contains("| DETAIL:"), "{said}");
    nothing_is_left(&bench, &bench.path("run.narrows"));
}

#[test]
fn a_setting_that_postgresql_refuses_is_reported_with_its_words() {
    let Some(psql) = psql() else { return };
    let experiment = experiment(&psql, "", "SELECT 1").replace("16MB", "plenty");
    let bench = bench(&experiment, ROWS);
    let output = bench.run(&["run", "--out", "run.narrows"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("db: exited with code 1 before it was ready") && said.contains("shared_buffers"), "{said}");
    nothing_is_left(&bench, &bench.path("run.narrows"));
}

#[test]
fn kill_9_leaves_no_worker_not_even_one_in_a_query() {
    let Some(psql) = psql() else { return };
    let endless = "SELECT count(*) FROM generate_series(1, 1000000000000) a";
    let bench = bench(&experiment(&psql, "", endless), ROWS);
    let run = bench.path("run.narrows");
    let (mut child, _lines) = bench.start_until(&["run", "--out", "run.narrows"], "  load ");
    let pid = Pid::from_child(&child);
    eventually("a worker in the query", || {
        let active = "name = 'postgresql.backends' and value > 0 and labels like '%\"active\"%'";
        ask(&run, &format!("select count(*) from metrics where {active}")) != "0"
    });
    kill_process(pid, Signal::KILL).unwrap();
    child.wait().unwrap();
    nothing_is_left(&bench, &run);
}
