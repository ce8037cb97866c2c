//! What an experiment does to its own replicas under load, and what it tells about it.

#![cfg(feature = "reference-systems")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

mod common;

use std::path::Path;

use common::{Bench, ask, cgroups, eventually, marked, text};

const STORES: &str = r#"
experiment: faulty-store
system:
  services:
    docstore:
      run: [narrows, engine, docstore, --port, "${port}"]
      replicas: 2
      RESTART
load:
  target: docstore
  timeout: 5s
  scenarios:
    read:
      model: constant-vus
      vus: 4
      duration: 10s
      think_time: 5ms
      request: "GET /dbs/dronedelivery"
faults: FAULTS
"#;

fn run(restart: &str, faults: &str) -> (Bench, Vec<String>) {
    let bench = Bench::new(&STORES.replace("RESTART", restart).replace("FAULTS", faults));
    let output = bench.run(&["run", "--out", "run.narrows"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let run = bench.path("run.narrows");
    assert_eq!(ask(&run, "select state from run"), "complete");
    let caveats = serde_json::from_str(&ask(&run, "select caveats from trials")).unwrap();
    (bench, caveats)
}

fn about<'a>(caveats: &'a [String], what: &str) -> Vec<&'a String> {
    caveats.iter().filter(|caveat| caveat.contains(what)).collect()
}

fn nothing_is_left(bench: &Bench, run: &Path) {
    let id = ask(run, "select id from run");
    eventually("the end of every process of the run", || marked(&id).is_empty());
    eventually("the removal of every control group of the run", || cgroups(&id).is_empty());
    eventually("the removal of every scratch folder of the run", || bench.scratch().is_empty());
}

#[test]
fn a_killed_replica_comes_back_and_what_it_cost_is_told() {
    let (bench, caveats) = run("restart: always", "[{ at: 4s, kill: docstore-2 }]");
    let run = bench.path("run.narrows");
    let told = about(&caveats, "was killed");
    let [told] = told[..] else { panic!("{caveats:?}") };
    assert!(told.starts_with("docstore[1] was killed 4.") && told.contains("as the experiment has it: "), "{told}");
    assert!(told.contains("failed (") && told.contains("succeeded again as before."), "{told}");
    assert!(about(&caveats, "and was started again").is_empty(), "a fault is told once: {caveats:?}");
    let failed = "select sum(errors_connect + errors_reset) from load_seconds";
    assert_ne!(ask(&run, failed), "0");
    assert_eq!(ask(&run, "select count(*) from logs where text like 'narrows: docstore[1] was killed%'"), "1");
    nothing_is_left(&bench, &run);
}

#[test]
fn a_replica_that_stays_down_does_not_end_the_run_and_can_be_started_by_a_fault() {
    let faults = "[{ at: 3s, kill: docstore }, { at: 6s, restart: \"docstore[0]\" }, { at: 7s, restart: docstore-2 }]";
    let (bench, caveats) = run("restart: never", faults);
    assert_eq!(about(&caveats, "docstore was killed 3.").len(), 1, "{caveats:?}");
    assert_eq!(about(&caveats, "docstore was down and was started again 6.").len(), 1, "{caveats:?}");
    assert_eq!(about(&caveats, "docstore[1] was stopped to be started again 7.").len(), 1, "{caveats:?}");
    let run = bench.path("run.narrows");
    let last = "select sum(succeeded) from load_seconds where start_ns > (select max(start_ns) from load_seconds) - 2500000000";
    assert_ne!(ask(&run, last), "0");
    nothing_is_left(&bench, &run);
}

#[test]
fn a_replica_that_stands_still_answers_late() {
    let (bench, caveats) =
        run("restart: never", "[{ at: 3s, pause: docstore, for: 1500ms }, { at: 9s, pause: docstore, for: 9s }]");
    let told = about(&caveats, "was made to stand still for");
    assert_eq!(told.len(), 2, "{caveats:?}");
    assert!(told[0].starts_with("docstore was made to stand still for 1.50 s 3."), "{told:?}");
    let run = bench.path("run.narrows");
    assert_eq!(ask(&run, "select sum(errors_connect + errors_reset) from load_seconds"), "0");
    let slow = ask(&run, "select count(*) from samples where latency_ms > 500");
    assert_ne!(slow, "0");
    nothing_is_left(&bench, &run);
}
