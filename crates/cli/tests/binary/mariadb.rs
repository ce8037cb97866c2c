//! MariaDB servers of an experiment's own, alone and in a cluster: they are filled, queried, sampled and gone.
//!
//! They need MariaDB, Galera and rsync (Debian packages mariadb-server, galera-4, rsync). `NARROWS_TEST_SKIP_MARIADB=1` leaves
//! them out; what is not installed is skipped too.

use std::path::Path;

use crate::common::{Bench, OTHER_LISTENER, ask, end, free_port, nothing_is_left, text};
use narrows_testing::{has_galera, has_programs, is_disabled, skip};

/// Whether its programs are installed; the test is skipped where they are not.
fn is_there() -> bool {
    const SKIP: &str = "NARROWS_TEST_SKIP_MARIADB";
    if is_disabled(SKIP) {
        skip(&format!("{SKIP} is set"));
        return false;
    }
    has_galera() && has_programs(&["mariadbd", "mariadb", "mariadb-install-db", "rsync", "python3"])
}

const SCHEMA: &str = "CREATE TABLE names (\n  id INT PRIMARY KEY,\n  name TEXT NOT NULL\n);\n";
const ROWS: &str = "INSERT INTO names SELECT seq, CONCAT('name ', seq) FROM seq_1_to_1000;\n";

/// The load is a client that sends every server the same query.
fn experiment(component: &str, sql: &str) -> String {
    format!(
        r#"
experiment: database
system:
  services:
    db:
      {component}
      memory: 1GiB
load:
  command: [python3, ask.py, "${{db.urls}}", "{sql}"]
"#
    )
}

const ASK: &str = r#"
import subprocess, sys
from urllib.parse import urlparse
for url in sys.argv[1].split(","):
    at = urlparse(url)
    command = ["mariadb", "--no-defaults", "--protocol=tcp", "-h", at.hostname, "-P", str(at.port), "-u", at.username, "-N", "-B", at.path[1:], "-e", sys.argv[2]]
    print("rows:", subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip(), flush=True)
"#;

fn bench(experiment: &str, rows: &str) -> Bench {
    let bench = Bench::new(experiment);
    for (name, content) in [("schema.sql", SCHEMA), ("rows.sql", rows), ("ask.py", ASK)] {
        std::fs::write(bench.path(name), content).unwrap();
    }
    bench
}

fn responses(run: &Path, response: &str) -> String {
    ask(run, &format!("select count(*) from logs where text = 'rows: {response}'"))
}

#[test]
fn a_server_is_filled_asked_sampled_and_gone() {
    if !is_there() {
        return;
    }
    let component =
        "mariadb: { database: customers, sql: [schema.sql, rows.sql], settings: { innodb_buffer_pool_size: 16M } }";
    let busy = "SELECT BENCHMARK(20000000, SHA1('a')) * 0 + (SELECT COUNT(*) FROM names)";
    let bench = bench(&experiment(component, busy), ROWS);
    let output = bench.run(&["run", "--out", "run.narrows"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let run = bench.path("run.narrows");
    assert_eq!(responses(&run, "1000"), "1", "{}", ask(&run, "select group_concat(text) from logs"));
    for name in ["mysql.threads", "mysql.query.count", "process.memory.rss"] {
        let points = format!("select count(*) > 0 from metrics where service = 'db' and name = '{name}' and value > 0");
        assert_eq!(ask(&run, &points), "1", "{name}");
    }
    assert_eq!(ask(&run, "select count(*) from metrics where name like 'mysql.wsrep%'"), "0");
    nothing_is_left(&bench, &run);
}

#[test]
fn an_error_in_sql_is_reported_with_file_line_and_message() {
    if !is_there() {
        return;
    }
    let component = "mariadb: { database: customers, sql: [schema.sql, rows.sql] }";
    let bench = bench(&experiment(component, "SELECT 1"), "SELECT 1;\n\nINSERT INTO name VALUES (1, NULL);\n");
    let output = bench.run(&["run", "--out", "run.narrows"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("rows.sql:3: ERROR 1146 (42S02): Table 'customers.name' doesn't exist"), "{said}");
    nothing_is_left(&bench, &bench.path("run.narrows"));
}

#[test]
fn a_cluster_has_the_same_rows_on_every_node() {
    if !is_there() {
        return;
    }
    let component = "galera: { nodes: 3, database: customers, sql: [schema.sql, rows.sql], settings: { innodb_buffer_pool_size: 16M } }";
    let sql = "SELECT CONCAT(COUNT(*), ' of ', (SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'wsrep_cluster_size')) FROM names";
    let bench = bench(&experiment(component, sql), ROWS);
    let output = bench.run(&["run", "--out", "run.narrows"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let run = bench.path("run.narrows");
    assert_eq!(
        responses(&run, "1000 of 3"),
        "3",
        "{}",
        ask(&run, "select group_concat(text) from logs where text like 'rows:%'")
    );
    let nodes =
        ask(&run, "select count(distinct replica) from metrics where name = 'mysql.wsrep_cluster_size' and value = 3");
    assert_eq!(nodes, "3");
    nothing_is_left(&bench, &run);
}

#[test]
fn a_setting_that_mariadb_refuses_is_reported_with_its_words() {
    if !is_there() {
        return;
    }
    let component = "mariadb: { settings: { no_such_setting: 1 } }";
    let bench = bench(&experiment(component, "SELECT 1"), ROWS);
    let output = bench.run(&["run", "--out", "run.narrows"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("db: exited with code") && said.contains("no_such_setting"), "{said}");
    nothing_is_left(&bench, &bench.path("run.narrows"));
}

/// The output of a run that must end with this error.
fn refused(bench: &Bench, expected: &[&str]) {
    let output = end(bench.narrows(&["run", "--out", "run.narrows"]));
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    for words in expected {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert_eq!(said.lines().filter(|line| line.starts_with("error: ")).count(), 1, "{said}");
    nothing_is_left(bench, &bench.path("run.narrows"));
}

#[test]
fn a_port_that_another_service_took_ends_the_run() {
    if !is_there() {
        return;
    }
    let port = free_port();
    let other = OTHER_LISTENER.replace("PORT", &port.to_string());
    let component = format!("mariadb: {{}}\n      port: {port}");
    let experiment = experiment(&component, "SELECT 1").replace("    db:\n", &format!("{other}    db:\n"));
    let expected = [
        "error: db: exited with code 1 before it was ready; it printed last:",
        "Address already in use",
        "hint: another process listens at its port",
    ];
    refused(&bench(&experiment, ROWS), &expected);
}

/// One server is set to keep a part of its data in the folder of another, which is the trial's and not hidden.
#[test]
fn a_data_folder_in_use_ends_the_run() {
    if !is_there() {
        return;
    }
    let second = r#"    second:
      mariadb: { settings: { aria_log_dir_path: "${trial.dir}/db-0/data" } }
      ready: { timeout: 10s }
load:
"#;
    let experiment = experiment("mariadb: {}", "SELECT 1").replace("load:\n", second);
    let expected = [
        "error: second: was not ready after 10.0 s: it has not printed `ready for connections`; it printed last:",
        "Can't lock aria control file",
        "hint: allow a longer start in `ready:`",
    ];
    refused(&bench(&experiment, ROWS), &expected);
}

/// Its state is to come from a node that there is none of.
#[test]
fn a_node_that_never_joins_ends_the_run() {
    if !is_there() {
        return;
    }
    let component = "galera: { nodes: 2, settings: { innodb_buffer_pool_size: 16M, wsrep_sst_donor: nobody } }";
    let bench = bench(&experiment(component, "SELECT 1"), ROWS);
    let expected = ["error: db[1]: ", "before it was ready; it printed last:", "[ERROR] WSREP: State transfer"];
    refused(&bench, &expected);
}

/// Instances of a service each have a node of their own; one node is killed, and comes back with what it missed.
#[cfg(feature = "reference-systems")]
#[test]
fn a_node_that_is_killed_under_load_joins_again() {
    if !is_there() {
        return;
    }
    let bench = Bench::new(JOINS_AGAIN);
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../systems/micron/schema.sql");
    std::fs::copy(schema, bench.path("schema.sql")).unwrap();
    let output = bench.run(&["run", "--out", "run.narrows"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let run = bench.path("run.narrows");
    let told = ask(&run, "select caveats from trials");
    assert!(told.contains("database[1] was killed 4.") && told.contains("requests failed ("), "{told}");
    let points = |name: &str, replica: u32| {
        format!("from metrics where service = 'database' and replica = {replica} and name = 'mysql.{name}'")
    };
    // A node can be back before its absence is sampled; the count of changes shows it all the same.
    let under_load = "time_ns > (select min(start_ns) from load_seconds)";
    let changed = format!("select max(value) > min(value) {} and {under_load}", points("wsrep_cluster_conf_id", 0));
    assert_eq!(ask(&run, &changed), "1", "the others saw it leave or join");
    for replica in 0..3 {
        let newest = |name: &str| {
            let last = format!("{} order by time_ns desc limit 1", points(name, replica));
            ask(&run, &format!("select cast(value as integer) {last}"))
        };
        assert_eq!((newest("wsrep_cluster_size"), newest("wsrep_local_state")), ("3".into(), "4".into()), "{replica}");
    }
    assert_eq!(
        ask(&run, "select sum(errors_status) from load_seconds where scenario = 'lost'"),
        "0",
        "a write is lost"
    );
    let last = "start_ns > (select max(start_ns) from load_seconds) - 8000000000";
    let whole = format!("select sum(succeeded) > 0 from load_seconds where scenario = 'whole' and {last}");
    assert_eq!(ask(&run, &whole), "1", "every node holds what was acknowledged");
    nothing_is_left(&bench, &run);
}

/// Each of three instances writes at a node of its own.
#[cfg(feature = "reference-systems")]
const JOINS_AGAIN: &str = r#"
experiment: joins-again
system:
  services:
    database:
      galera: { database: micron, sql: [schema.sql], settings: { innodb_buffer_pool_size: 64M, innodb_flush_log_at_trx_commit: "2" } }
      restart: always
    micron:
      run: [narrows, system, micron, instance, --port, "${port}", --database, "${database.urls}", --instance, "${replica}", --retries, "20"]
      ready: "GET /health"
      replicas: 3
load:
  target: micron
  timeout: 15s
  tracing: { sample: 0.1 }
  scenarios:
    writes:
      model: constant-vus
      vus: 6
      duration: 60s
      think_time: 50ms
      request: { method: POST, path: /transfers, headers: { Content-Type: application/json }, body: '{"from":{{item}},"to":{{other}},"amount":1}' }
    # The ledger returns 500 if a node has lost a write that an instance acknowledged, 503 if a node cannot be queried.
    lost:
      model: constant-vus
      vus: 1
      duration: 60s
      think_time: 2s
      request: "GET /ledger"
      check: { status: [200, 503] }
    whole:
      model: constant-vus
      vus: 1
      duration: 60s
      think_time: 2s
      request: "GET /ledger"
  data:
    item: { integers: { from: 1, to: 500 } }
    other: { integers: { from: 1001, to: 1500 } }
faults: [{ at: 4s, kill: database-2 }]
"#;
