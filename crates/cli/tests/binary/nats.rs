//! NATS servers of an experiment's own, one and a cluster: they are used, measured and gone.
//!
//! They need NATS (Debian package nats-server). `NARROWS_TEST_SKIP_NATS=1` leaves them out; where it is not installed they
//! are skipped too.

use std::path::Path;

use crate::common::{Bench, OTHER_LISTENER, ask, end, eventually, free_port, nothing_is_left, text, working};
use narrows_testing::{has_programs, is_disabled, skip};
use rustix::process::{Pid, Signal, kill_process};

/// Whether its program is installed; the test is skipped where it is not.
fn is_there() -> bool {
    const SKIP: &str = "NARROWS_TEST_SKIP_NATS";
    if is_disabled(SKIP) {
        skip(&format!("{SKIP} is set"));
        return false;
    }
    has_programs(&["nats-server"])
}

/// The hub of the reference system keeps its orchestrations there: five streams, and messages for every step.
fn experiment(component: &str, hub: &str, duration: &str) -> String {
    format!(
        r#"
experiment: bus
system:
  services:
    bus:
      {component}
      memory: 512MiB
    hub:
      run:
        - narrows
        - system
        - hello-cities
        - hub
        - --port
        - "${{port}}"
        - --store
        - "${{bus.urls}}/{hub}"
        - --folder
        - "${{trial.dir}}/hub"
        - --partitions
        - "2"
      ready: GET /health
load:
  target: hub
  timeout: 1m
  scenarios:
    workload:
      model: constant-vus
      vus: 1
      duration: {duration}
      request: "POST /workloads/hello-cities?n=20"
objectives: ["error_rate == 0"]
"#
    )
}

/// The highest value of a metric of one of the servers.
fn highest(run: &Path, replica: u32, name: &str) -> u64 {
    let sql = format!(
        "select cast(max(value) as int) from metrics where service = 'bus' and replica = {replica} and name = '{name}'"
    );
    ask(run, &sql).parse().unwrap_or_else(|_| panic!("no {name}"))
}

fn logs(run: &Path) -> String {
    ask(run, "select group_concat(text, '; ') from logs where service = 'bus'")
}

#[test]
fn a_server_is_used_measured_and_gone() {
    if !is_there() {
        return;
    }
    let component = "nats: { max_memory: 64MiB, max_file: 1GiB, settings: { max_payload: 2MB, write_deadline: 5s } }";
    let bench = Bench::new(&experiment(component, "cities", "3s"));
    let output = bench.run(&["run", "--out", "run.narrows"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let run = bench.path("run.narrows");
    let highest = |name: &str| highest(&run, 0, name);
    assert!(highest("nats.connections") >= 1);
    assert!(highest("nats.connections.accepted") >= 1);
    assert_eq!(highest("nats.routes"), 0);
    assert!(highest("nats.subscriptions") > 1);
    assert!(highest("nats.messages.in") > 20);
    assert!(highest("nats.messages.out") > 20);
    assert!(highest("nats.bytes.in") > 1_000);
    assert!(highest("nats.bytes.out") > 1_000);
    assert_eq!(highest("nats.slow_consumers"), 0);
    assert_eq!(highest("nats.jetstream.streams"), 5);
    assert!(highest("nats.jetstream.messages") > 20);
    assert!(highest("nats.jetstream.bytes") > 1_000);
    assert!(highest("nats.jetstream.file.used") > 1_000);
    assert_eq!(highest("nats.jetstream.file.limit"), 1 << 30);
    assert_eq!(highest("nats.jetstream.memory.limit"), 64 << 20);
    assert!(highest("nats.jetstream.api.requests") > 5);
    assert!(highest("process.memory.rss") > 4 << 20);
    assert!(logs(&run).contains("Server Exiting"), "it ended in order: {}", logs(&run));
    nothing_is_left(&bench, &run);
}

#[test]
fn a_cluster_keeps_streams_on_all_servers_and_goes_on_without_one_of_them() {
    if !is_there() {
        return;
    }
    let faults = "faults: [{ at: 2s, restart: \"bus[1]\" }]\n";
    let experiment = experiment("nats: { nodes: 3 }", "cities?replicas=3", "6s") + faults;
    let bench = Bench::new(&experiment);
    let output = bench.run(&["run", "--out", "run.narrows"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let run = bench.path("run.narrows");
    for replica in 0..3 {
        let highest = |name: &str| highest(&run, replica, name);
        assert_eq!(highest("nats.routes"), 2, "server {replica}");
        assert_eq!(highest("nats.jetstream.streams"), 5, "server {replica}");
        assert!(highest("nats.jetstream.messages") > 20, "server {replica}");
        assert!(highest("nats.jetstream.file.used") > 1_000, "server {replica}");
    }
    nothing_is_left(&bench, &run);
}

#[test]
fn a_server_that_is_killed_under_load_comes_back_with_its_streams() {
    if !is_there() {
        return;
    }
    let faults = "faults: [{ at: 2s, kill: bus }]\n";
    let bench = Bench::new(&(experiment("nats: {}\n      restart: always", "cities", "5s") + faults));
    let output = bench.run(&["run", "--out", "run.narrows"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let run = bench.path("run.narrows");
    assert_eq!(logs(&run).matches("Server is ready").count(), 2, "{}", logs(&run));
    assert!(logs(&run).contains("Restored "), "{}", logs(&run));
    nothing_is_left(&bench, &run);
}

#[test]
fn a_setting_that_nats_refuses_is_reported_with_its_words() {
    if !is_there() {
        return;
    }
    let bench = Bench::new(&experiment("nats: { settings: { no_such_setting: 1 } }", "cities", "1s"));
    let output = bench.run(&["run", "--out", "run.narrows"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("bus: exited with code 1") && said.contains("unknown field \"no_such_setting\""), "{said}");
    nothing_is_left(&bench, &bench.path("run.narrows"));
}

#[test]
fn a_port_that_another_service_took_ends_the_run() {
    if !is_there() || !has_programs(&["python3"]) {
        return;
    }
    let port = free_port();
    let other = OTHER_LISTENER.replace("PORT", &port.to_string());
    let experiment = experiment(&format!("nats: {{}}\n      port: {port}"), "cities", "1s")
        .replace("    bus:\n", &format!("{other}    bus:\n"));
    let bench = Bench::new(&experiment);
    let output = end(bench.narrows(&["run", "--out", "run.narrows"]));
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    for words in ["bus: exited with code 1 before it was ready", "hint: another process listens at its port"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    nothing_is_left(&bench, &bench.path("run.narrows"));
}

#[test]
fn kill_9_leaves_no_server() {
    if !is_there() {
        return;
    }
    let bench = Bench::new(&experiment("nats: { nodes: 3 }", "cities", "1h"));
    let run = bench.path("run.narrows");
    let (mut child, _lines) = bench.start_until(&["run", "--out", "run.narrows"], "  load ");
    kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
    child.wait().unwrap();
    nothing_is_left(&bench, &run);
    eventually("the end of every process in the run's folder", || working(&bench).is_empty());
}
