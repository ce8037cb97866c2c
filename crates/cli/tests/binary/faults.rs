//! Faults of an experiment: replicas that are killed, paused or restarted under load, and the report of it.

use crate::common::{Bench, ask, caveats, nothing_is_left, text};
use narrows_testing::measure;

const STORES: &str = r#"
experiment: faulty-store
system:
  services:
    docstore:
      run: [narrows, engine, docstore, --no-auth, --port, "${port}"]
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
    (bench, caveats(&run))
}

/// Requests that succeeded in the last seconds of the load.
const SUCCEEDED_AT_LAST: &str =
    "select sum(succeeded) from load_seconds where start_ns > (select max(start_ns) from load_seconds) - 2500000000";

fn about<'a>(caveats: &'a [String], what: &str) -> Vec<&'a String> {
    caveats.iter().filter(|caveat| caveat.contains(what)).collect()
}

/// How many seconds into the load something is reported to have happened.
fn told_at_s(told: &str) -> f64 {
    let before = told.split_once(" s into the load").unwrap_or_else(|| panic!("{told}")).0;
    before.rsplit(' ').next().unwrap().parse().unwrap()
}

#[test]
fn a_killed_replica_comes_back_and_what_it_cost_is_reported() {
    measure(a_killed_replica_recovers);
}

fn a_killed_replica_recovers() {
    let (bench, caveats) = run("restart: always", "[{ at: 4s, kill: docstore-2 }]");
    let run = bench.path("run.narrows");
    let told = about(&caveats, "was killed");
    let [told] = told[..] else { panic!("{caveats:?}") };
    assert!(told.starts_with("docstore[1] was killed ") && told_at_s(told) >= 4.0, "{told}");
    assert!(told.contains("as the experiment specifies: ") && told.contains("failed ("), "{told}");
    assert!(told.contains("succeeded again as before."), "{caveats:?}");
    assert_ne!(ask(&run, SUCCEEDED_AT_LAST), "0");
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
    for (what, at_s) in [
        ("docstore was killed ", 3.0),
        ("docstore was down and was started again ", 6.0),
        ("docstore[1] was stopped to be started again ", 7.0),
    ] {
        let [told] = about(&caveats, what)[..] else { panic!("{what}: {caveats:?}") };
        assert!(told.starts_with(what) && told_at_s(told) >= at_s, "{told}");
    }
    let run = bench.path("run.narrows");
    assert_ne!(ask(&run, SUCCEEDED_AT_LAST), "0");
    nothing_is_left(&bench, &run);
}

#[test]
fn a_paused_replica_responds_late() {
    let (bench, caveats) =
        run("restart: never", "[{ at: 3s, pause: docstore, for: 1500ms }, { at: 9s, pause: docstore, for: 9s }]");
    let told = about(&caveats, "was paused for");
    assert_eq!(told.len(), 2, "{caveats:?}");
    assert!(told[0].starts_with("docstore was paused for 1.50 s ") && told_at_s(told[0]) >= 3.0, "{told:?}");
    let run = bench.path("run.narrows");
    assert_eq!(ask(&run, "select sum(errors_connect + errors_reset) from load_seconds"), "0");
    let slow = ask(&run, "select count(*) from samples where latency_ms > 500");
    assert_ne!(slow, "0");
    nothing_is_left(&bench, &run);
}
