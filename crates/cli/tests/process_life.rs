//! Nothing outlives its run, and what was measured is kept, however the run ends.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

mod common;

use std::io::Read;
use std::path::PathBuf;

use common::{Bench, TWO_FILE_SERVERS, ask, cgroups, eventually, marked, text};
use rustix::process::{Pid, Signal, kill_process};

/// Starts a run with a CPU cap, lets it get into its second trial's load, sends a signal, and gives the run file.
fn end_in_second_trial(bench: &Bench, signal: Signal) -> (Option<i32>, PathBuf) {
    let (mut child, mut lines) = bench.start_until(&["run", "--out", "run.narrows"], "[2/2]");
    let mut rest = [0u8; 1];
    let mut seen = String::new();
    while !seen.contains("load 0:0") {
        assert_eq!(lines.read(&mut rest).unwrap(), 1, "ended early: {seen}");
        seen.push(char::from(rest[0]));
    }
    kill_process(Pid::from_child(&child), signal).unwrap();
    let status = child.wait().unwrap();
    (status.code(), bench.path("run.narrows"))
}

fn nothing_is_left(bench: &Bench, run: &std::path::Path) {
    let id = ask(run, "select id from run");
    eventually("the end of every process of the run", || marked(&id).is_empty());
    eventually("the removal of every control group of the run", || cgroups(&id).is_empty());
    eventually("the removal of every scratch folder of the run", || bench.scratch().is_empty());
}

fn capped() -> String {
    TWO_FILE_SERVERS.replace("      cwd: tmp\n", "      cwd: .\n      cpus: 0.5\n      memory: 256MiB\n")
}

fn resume_completes(bench: &Bench, run: &std::path::Path) {
    let kept = ask(run, "select sum(weight) from samples where trial = 1");
    let resumed = bench.run(&["run", "--resume", "--out", "run.narrows"]);
    assert!(resumed.status.success(), "{}", text(&resumed.stderr));
    assert_eq!(ask(run, "select state from run"), "complete");
    assert_eq!(ask(run, "select group_concat(state) from trials"), "done,done");
    assert_eq!(ask(run, "select sum(weight) from samples where trial = 1"), kept, "the finished trial was left alone");
    assert!(!bench.path("run.narrows-wal").exists() && !bench.path("run.narrows-shm").exists());
}

#[test]
fn ctrl_c_ends_the_run_in_order() {
    let bench = Bench::new(&capped());
    let (code, run) = end_in_second_trial(&bench, Signal::INT);
    assert_eq!(code, Some(2));
    nothing_is_left(&bench, &run);
    assert_eq!(ask(&run, "select state from run"), "interrupted");
    assert_eq!(ask(&run, "select group_concat(state) from trials"), "done,interrupted");
    let said = bench.run(&["diagnose", "run.narrows"]);
    assert!(text(&said.stdout).contains("interrupted"), "{}", text(&said.stdout));
    resume_completes(&bench, &run);
}

#[test]
fn kill_9_leaves_nothing_and_loses_nothing() {
    let bench = Bench::new(&capped());
    let (code, run) = end_in_second_trial(&bench, Signal::KILL);
    assert_eq!(code, None);
    nothing_is_left(&bench, &run);
    let said = bench.run(&["diagnose", "run.narrows"]);
    assert!(text(&said.stdout).contains("interrupted"), "{}{}", text(&said.stdout), text(&said.stderr));
    resume_completes(&bench, &run);
}

#[test]
fn a_service_that_dies_under_load_ends_the_run_with_its_last_words() {
    let dying = TWO_FILE_SERVERS.replace(
        "run: [python3, -m, http.server, \"${port}\", --bind, 127.0.0.1]",
        "run: [sh, -c, \"python3 -m http.server $PORT --bind 127.0.0.1 & sleep 2; echo out of cheese >&2; kill $!; exit 7\"]",
    );
    let bench = Bench::new(&dying);
    let ended = bench.run(&["run", "--out", "run.narrows"]);
    let said = text(&ended.stderr);
    assert_eq!(ended.status.code(), Some(2), "{said}");
    assert!(said.contains("exited with code 7 while under load") && said.contains("out of cheese"), "{said}");
    assert_eq!(ask(&bench.path("run.narrows"), "select state from run"), "failed");
    nothing_is_left(&bench, &bench.path("run.narrows"));
}

#[test]
fn a_service_that_never_comes_up_is_named() {
    let wrong = TWO_FILE_SERVERS.replace("python3, -m, http.server,", "python3, -m, no_such_module,");
    let bench = Bench::new(&wrong);
    let ended = bench.run(&["run", "--out", "run.narrows"]);
    let said = text(&ended.stderr);
    assert_eq!(ended.status.code(), Some(2), "{said}");
    assert!(said.contains("before it was ready") && said.contains("No module named no_such_module"), "{said}");

    let missing = TWO_FILE_SERVERS.replace("[python3,", "[no-such-program,");
    let bench = Bench::new(&missing);
    let said = text(&bench.run(&["run"]).stderr);
    assert!(said.contains("cannot start `no-such-program`") && said.contains("hint: "), "{said}");
}
