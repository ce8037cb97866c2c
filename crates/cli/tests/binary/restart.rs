//! A replica that ends by itself under load and is to be started again.

use std::path::Path;

use crate::common::{Bench, ask, caveats, cgroups, eventually, marked};
use rustix::process::{Pid, Signal, kill_process};

const MORTAL_STORE: &str = r#"
experiment: mortal-store
system:
  services:
    docstore:
      run: [narrows, engine, docstore, --no-auth, --port, "${port}"]
      restart: always
      memory: 1GiB
load:
  target: docstore
  scenarios:
    read:
      model: constant-vus
      vus: 2
      duration: 15s
      think_time: 5ms
      request: "GET /dbs/dronedelivery"
"#;

fn number(run: &Path, sql: &str) -> i64 {
    ask(run, sql).parse().unwrap()
}

fn nothing_is_left(bench: &Bench, run: &Path) {
    let id = ask(run, "select id from run");
    eventually("the end of every process of the run", || marked(&id).is_empty());
    eventually("the removal of every control group of the run", || cgroups(&id).is_empty());
    eventually("the removal of every scratch folder of the run", || bench.scratch().is_empty());
}

/// Kills the service by the id that the run file has, once the load is under way.
fn kill_by_its_row(run: &Path) -> i64 {
    eventually("load", || number(run, "select coalesce(sum(succeeded), 0) from load_seconds") > 0);
    let pid = number(run, "select pid from services where service = 'docstore'");
    kill_process(Pid::from_raw(pid as i32).unwrap(), Signal::KILL).unwrap();
    pid
}

#[test]
fn a_killed_replica_is_started_again_and_the_run_completes() {
    let bench = Bench::new(MORTAL_STORE);
    let run = bench.path("run.narrows");
    let (mut child, _lines) = bench.start_until(&["run", "--out", "run.narrows"], "  load ");
    let first = kill_by_its_row(&run);
    eventually("another process in the run file", || number(&run, "select pid from services") != first);
    assert_eq!(child.wait().unwrap().code(), Some(0));

    assert_eq!(ask(&run, "select state from run"), "complete");
    let second = number(&run, "select pid from services");
    let failed = "errors_connect + errors_reset > 0";
    assert_ne!(number(&run, &format!("select count(*) from load_seconds where {failed}")), 0);
    assert_eq!(number(&run, "select sum(errors_timeout + errors_protocol + errors_status) from load_seconds"), 0);
    let last_failure = number(&run, &format!("select max(start_ns) from load_seconds where {failed}"));
    let after = |what: &str, table: &str| number(&run, &format!("select {what} from {table} > {last_failure}"));
    assert_ne!(after("coalesce(sum(succeeded), 0)", "load_seconds where start_ns"), 0, "it responds again");
    let memory = "metrics where service = 'docstore' and name = 'process.memory.rss' and time_ns";
    assert_ne!(after("count(*)", memory), 0, "process {second} is sampled");
    let caveats = caveats(&run);
    let said: Vec<&String> = caveats.iter().filter(|caveat| caveat.contains("started again")).collect();
    assert_eq!(said.len(), 1, "{caveats:?}");
    assert!(
        said[0].starts_with("docstore ended by signal 9 after ") && said[0].contains(" of load and was"),
        "{said:?}"
    );
    nothing_is_left(&bench, &run);
}

#[test]
fn a_replica_that_ends_again_and_again_ends_the_run_with_its_last_words() {
    let script = "test -e ${trial.dir}/began && echo cannot >&2 && exit 3; touch ${trial.dir}/began; exec BINARY engine docstore --no-auth --port ${port}"
        .replace("BINARY", env!("CARGO_BIN_EXE_narrows"));
    let once = MORTAL_STORE
        .replace("[narrows, engine, docstore, --no-auth, --port, \"${port}\"]", &format!("[sh, -c, \"{script}\"]"));
    let bench = Bench::new(&once);
    let run = bench.path("run.narrows");
    let (mut child, mut lines) = bench.start_until(&["run", "--out", "run.narrows"], "  load ");
    kill_by_its_row(&run);
    let mut said = String::new();
    std::io::Read::read_to_string(&mut lines, &mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(2), "{said}");
    assert!(said.contains("docstore: exited with code 3 while under load") && said.contains("| cannot"), "{said}");
    assert_eq!(ask(&run, "select state from run"), "failed");
    let caveats = caveats(&run);
    assert_eq!(caveats.iter().filter(|caveat| caveat.contains("and was started again")).count(), 5, "{caveats:?}");
    nothing_is_left(&bench, &run);
}

#[test]
fn without_restart_a_killed_replica_ends_the_run() {
    let bench = Bench::new(&MORTAL_STORE.replace("      restart: always\n", ""));
    let run = bench.path("run.narrows");
    let (mut child, mut lines) = bench.start_until(&["run", "--out", "run.narrows"], "  load ");
    kill_by_its_row(&run);
    let mut said = String::new();
    std::io::Read::read_to_string(&mut lines, &mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(2), "{said}");
    assert!(said.contains("docstore: ended by signal 9 while under load"), "{said}");
    nothing_is_left(&bench, &run);
}
