//! Nothing outlives its run, and what was measured is kept, however the run ends.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Child;

use crate::common::{
    Bench, TWO_FILE_SERVERS, ask, cgroups, end, eventually, has_caps, has_python, marked, nothing_is_left, start_until,
    succeeded, text, that_mounts,
};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// Starts a run with caps, lets it write down some of its second trial's load, sends a signal, and gives the run file.
fn end_in_second_trial(bench: &Bench, signal: Signal) -> (Option<i32>, PathBuf) {
    let run = bench.path("run.narrows");
    let (mut child, _lines) = bench.start_until(&["run", "--out", "run.narrows"], "[2/2]");
    eventually("load in the second trial", || succeeded(&run, 2) > 0);
    kill_process(Pid::from_child(&child), signal).unwrap();
    let status = child.wait().unwrap();
    (status.code(), run)
}

/// The second trial lasts so long that a busy machine sees its load and ends it in time.
fn capped() -> String {
    let caps = if has_caps() { "      cpus: 0.5\n      memory: 256MiB\n" } else { "" };
    let capped = TWO_FILE_SERVERS.replace("      cwd: tmp\n", &format!("      cwd: .\n{caps}"));
    let lengths = capped
        .replace("duration: 4s", "duration: \"${length}\"")
        .replace("{ level: \"1\" }", "{ level: \"1\", length: 4s }");
    lengths.replace("level: \"2\" }", "level: \"2\", length: 8s }")
}

fn resume_completes(bench: &Bench, run: &Path) {
    let kept = succeeded(run, 1);
    assert!(kept > 0);
    let resumed = bench.run(&["run", "--resume", "--out", "run.narrows"]);
    assert!(resumed.status.success(), "{}", text(&resumed.stderr));
    assert_eq!(ask(run, "select state from run"), "complete");
    assert_eq!(ask(run, "select group_concat(state) from trials"), "done,done");
    assert_eq!(ask(run, "select count(error) from trials"), "0");
    assert_eq!(succeeded(run, 1), kept, "the finished trial was left alone");
    assert!(succeeded(run, 2) > 0);
    assert!(!bench.path("run.narrows-wal").exists() && !bench.path("run.narrows-shm").exists());
    nothing_is_left(bench, run);
}

#[test]
fn ctrl_c_ends_the_run_in_order() {
    if !has_python() {
        return;
    }
    let bench = Bench::new(&capped());
    let (code, run) = end_in_second_trial(&bench, Signal::INT);
    assert_eq!(code, Some(2));
    nothing_is_left(&bench, &run);
    assert_eq!(ask(&run, "select state from run"), "interrupted");
    assert_eq!(ask(&run, "select group_concat(state) from trials"), "done,interrupted");
    assert!(succeeded(&run, 2) > 0, "what the interrupted trial measured is kept");
    let said = bench.run(&["diagnose", "run.narrows"]);
    assert!(text(&said.stdout).contains("interrupted"), "{}", text(&said.stdout));
    resume_completes(&bench, &run);
}

#[test]
fn kill_9_leaves_nothing_and_loses_nothing() {
    if !has_python() {
        return;
    }
    let bench = Bench::new(&capped());
    let (code, run) = end_in_second_trial(&bench, Signal::KILL);
    assert_eq!(code, None);
    assert!(succeeded(&run, 2) > 0, "what was written down before the kill is there");
    nothing_is_left(&bench, &run);
    let said = bench.run(&["diagnose", "run.narrows"]);
    assert!(text(&said.stdout).contains("interrupted"), "{}{}", text(&said.stdout), text(&said.stderr));
    resume_completes(&bench, &run);
}

#[test]
fn a_run_that_resumes_at_once_is_not_touched_by_what_cleans_up_after_the_killed_one() {
    if !has_python() {
        return;
    }
    let bench = Bench::new(&capped());
    let (_, run) = end_in_second_trial(&bench, Signal::KILL);
    resume_completes(&bench, &run);
}

#[test]
fn the_next_run_removes_what_a_run_left_whose_guard_was_killed_too() {
    if !has_python() {
        return;
    }
    let experiment = capped().replace(
        "[python3, -m, http.server, \"${port}\", --bind, 127.0.0.1]",
        "[sh, -c, \"setsid sleep 1000 & exec python3 -m http.server ${port} --bind 127.0.0.1\"]",
    );
    let bench = Bench::new(&experiment);
    let (mut child, _lines) = bench.start_until(&["run", "--out", "killed.narrows"], "[1/2]");
    let run = bench.path("killed.narrows");
    eventually("load in the first trial", || succeeded(&run, 1) > 0);
    let id = ask(&run, "select id from run");
    kill_process(Pid::from_raw(guard_of(&child)).unwrap(), Signal::KILL).unwrap();
    kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
    child.wait().unwrap();
    assert!(!marked(&id).is_empty() && !bench.scratch().is_empty(), "nothing is left to be removed");
    let next = bench.run(&["run", "--out", "next.narrows"]);
    let told = text(&next.stderr);
    assert!(next.status.success(), "{told}");
    assert!(told.contains("note: removed ") && told.contains(" that a killed run had left"), "{told}");
    assert!(marked(&id).is_empty() && cgroups(&id).is_empty() && bench.scratch().is_empty(), "{told}");
    nothing_is_left(&bench, &bench.path("next.narrows"));
}

#[test]
fn a_signal_while_a_service_is_set_up_ends_the_setup() {
    if !has_python() {
        return;
    }
    let slow = TWO_FILE_SERVERS.replace("      cwd: tmp\n", "      cwd: tmp\n      setup: [[sleep, \"300\"]]\n");
    let bench = Bench::new(&slow);
    let (mut child, _lines) = bench.start_until(&["run", "--out", "run.narrows"], "setting up");
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(2));
    nothing_is_left(&bench, &bench.path("run.narrows"));
    assert_eq!(ask(&bench.path("run.narrows"), "select state from run"), "interrupted");
}

/// The fields of `/proc/PID/stat` after the name, beginning with field 3.
fn stat(pid: i32) -> Option<Vec<String>> {
    let line = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = line.rsplit_once(") ")?;
    Some(fields.split_ascii_whitespace().map(str::to_owned).collect())
}

/// The guard of a run: its child that was started as `narrows guard`.
fn guard_of(run: &Child) -> i32 {
    let is_guard = |pid: &i32| {
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let parent = stat(*pid).and_then(|fields| fields.get(1).cloned());
        parent.is_some_and(|parent| parent == run.id().to_string()) && command.ends_with(b"\0guard\0")
    };
    let entries = std::fs::read_dir("/proc").unwrap();
    let mut pids = entries.filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    pids.find(is_guard).unwrap()
}

#[test]
fn the_guard_outlives_signals_to_the_runs_group_and_to_itself() {
    if !has_python() {
        return;
    }
    // Only the guard ends what detached itself: it has no parent whose death would end it.
    let script = "setsid sleep 3142 & exec python3 -m http.server $PORT --bind 127.0.0.1";
    let detached = TWO_FILE_SERVERS.replace(
        "run: [python3, -m, http.server, \"${port}\", --bind, 127.0.0.1]",
        &format!("run: [sh, -c, \"{script}\"]"),
    );
    let bench = Bench::new(&detached);
    let run = bench.path("run.narrows");
    let mut command = bench.narrows(&["run", "--out", "run.narrows"]);
    let (mut child, _lines) = start_until(command.process_group(0), "[1/2]");
    eventually("load", || succeeded(&run, 1) > 0);
    let guard = guard_of(&child);
    let fields = stat(guard).unwrap();
    assert_eq!(fields[2..=3], [guard.to_string(), guard.to_string()], "the guard leads a group and a session");

    // A run that stands still ends nothing in order; what ends is the guard's doing.
    kill_process(Pid::from_child(&child), Signal::STOP).unwrap();
    kill_process_group(Pid::from_child(&child), Signal::INT).unwrap();
    for signal in [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM] {
        kill_process(Pid::from_raw(guard).unwrap(), signal).unwrap();
    }
    kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
    assert_eq!(child.wait().unwrap().code(), None);
    nothing_is_left(&bench, &run);
}

/// Responds to a number of requests, prints that, and exits with code 7.
const MORTAL: &str = r#"
import http.server, os, sys

class Handler(http.server.BaseHTTPRequestHandler):
    left = 40

    def do_GET(self):
        Handler.left -= 1
        if Handler.left == 0:
            print("out of cheese", file=sys.stderr, flush=True)
            os._exit(7)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass

http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"#;

#[test]
fn a_service_that_dies_under_load_ends_the_run_with_its_last_words() {
    if !has_python() {
        return;
    }
    let mortal = TWO_FILE_SERVERS
        .replace("[python3, -m, http.server, \"${port}\", --bind, 127.0.0.1]", "[python3, mortal.py, \"${port}\"]")
        .replace("cwd: tmp", "cwd: .");
    let bench = Bench::new(&mortal);
    std::fs::write(bench.path("mortal.py"), MORTAL).unwrap();
    let ended = bench.run(&["run", "--out", "run.narrows"]);
    let said = text(&ended.stderr);
    assert_eq!(ended.status.code(), Some(2), "{said}");
    assert!(said.contains("exited with code 7 while under load") && said.contains("out of cheese"), "{said}");
    assert_eq!(ask(&bench.path("run.narrows"), "select state from run"), "failed");
    let shown = text(&ended.stdout);
    assert!(shown.contains("first: until then ") && shown.contains(" responses in "), "{shown}");
    nothing_is_left(&bench, &bench.path("run.narrows"));
}

/// True if a row of the table shows a throughput and a mean latency.
fn has_figures(row: &str) -> bool {
    row.contains("/s") && [" ms", " µs"].iter().any(|unit| row.contains(unit))
}

#[test]
fn what_the_first_variant_measured_is_shown_when_the_second_does_not_start() {
    if !has_python() {
        return;
    }
    let second = TWO_FILE_SERVERS.replace(
        "    files:\n",
        "    late:\n      run: [python3, late.py, \"${level}\", \"${port}\"]\n      cwd: .\n    files:\n",
    );
    let bench = Bench::new(&second);
    std::fs::write(bench.path("late.py"), LATE).unwrap();
    let ended = bench.run(&["run", "--out", "run.narrows", "--time-scale", "0.25", "--html"]);
    let (said, shown) = (text(&ended.stderr), text(&ended.stdout));
    assert_eq!(ended.status.code(), Some(2), "{said}");
    assert!(said.contains("late: exited with code 3 before it was ready"), "{said}");
    let row = shown.lines().find(|line| line.starts_with("first ")).unwrap_or_default();
    assert!(has_figures(row), "{shown}");
    assert!(shown.contains("failed      second\n"), "{shown}");
    let page = std::fs::read_to_string(bench.path("run.html")).unwrap();
    assert!(page.contains("<b>second</b> late: exited with code 3"), "{page}");
}

/// A service that starts at the first level only.
const LATE: &str = r#"
import sys, http.server
if sys.argv[1] != "1":
    sys.exit(3)
http.server.HTTPServer(("127.0.0.1", int(sys.argv[2])), http.server.SimpleHTTPRequestHandler).serve_forever()
"#;

#[test]
fn a_service_that_never_comes_up_is_named() {
    if !has_python() {
        return;
    }
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

#[test]
fn a_port_that_someone_else_has_is_refused_and_not_measured() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let fixed = TWO_FILE_SERVERS.replace("      cwd: tmp\n", &format!("      cwd: tmp\n      port: {port}\n"));
    let bench = Bench::new(&fixed);
    let ended = bench.run(&["run"]);
    let said = text(&ended.stderr);
    assert_eq!(ended.status.code(), Some(2), "{said}");
    assert!(said.contains(&format!("files: port {port} on 127.0.0.1 is taken by another process")), "{said}");
}

#[test]
fn a_daemon_that_wiped_its_environment_ends_with_the_trial() {
    if !has_python() {
        return;
    }
    let script =
        "setsid env -i sh -c 'sleep 3141 & echo $! > daemon.pid' && exec python3 -m http.server $PORT --bind 127.0.0.1";
    let daemon = TWO_FILE_SERVERS
        .replace(
            "run: [python3, -m, http.server, \"${port}\", --bind, 127.0.0.1]",
            &format!("run: [sh, -c, \"{script}\"]"),
        )
        .replace("cwd: tmp", "cwd: .");
    let bench = Bench::new(&daemon);
    let run = bench.run(&["run", "--variant", "first", "--time-scale", "0.5", "--out", "run.narrows"]);
    assert!(run.status.success(), "{}", text(&run.stderr));
    let pid = std::fs::read_to_string(bench.path("daemon.pid")).unwrap();
    let command = std::fs::read_to_string(format!("/proc/{}/cmdline", pid.trim())).unwrap_or_default();
    assert!(!command.contains("3141"), "process {} is still there", pid.trim());
}

#[test]
fn a_service_that_ignores_its_stop_is_named_with_the_reason() {
    if !has_python() {
        return;
    }
    let deaf = TWO_FILE_SERVERS
        .replace("[python3, -m, http.server, \"${port}\", --bind, 127.0.0.1]", "[python3, deaf.py, \"${port}\"]")
        .replace("cwd: tmp", "cwd: .\n      stop: { timeout: 300ms }");
    let bench = Bench::new(&deaf);
    std::fs::write(bench.path("deaf.py"), DEAF).unwrap();
    let run = bench.run(&["run", "--variant", "first", "--time-scale", "0.25", "--out", "run.narrows"]);
    let said = text(&run.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(run.status.success(), "{said}{}", text(&run.stderr));
    assert!(said.contains("files did not end within 300 ms of SIGTERM and was killed: python"), "{said}");
    assert!(said.contains(" ignores SIGTERM. Its last spans may be missing."), "{said}");
}

/// A service that ignores SIGTERM.
const DEAF: &str = r#"
import signal, sys, http.server
signal.signal(signal.SIGTERM, signal.SIG_IGN)
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), http.server.SimpleHTTPRequestHandler).serve_forever()
"#;

#[test]
fn a_full_disk_ends_the_run_and_leaves_a_file_that_can_be_read() {
    if !has_python() {
        return;
    }
    let Some(mut command) = that_mounts(ON_A_SMALL_DISK) else { return };
    let filler = TWO_FILE_SERVERS
        .replace(
            "[python3, -m, http.server, \"${port}\", --bind, 127.0.0.1]",
            "[python3, filler.py, \"${level}\", \"${port}\"]",
        )
        .replace("cwd: tmp", "cwd: .");
    let bench = Bench::new(&filler);
    std::fs::write(bench.path("filler.py"), FILLER).unwrap();
    std::fs::create_dir(bench.path("small")).unwrap();
    command.current_dir(bench.path("")).env("TMPDIR", bench.path("tmp")).env("NO_COLOR", "1");
    let output = end(command);
    let (shown, said) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(shown.matches("exit 2\n").count(), 1, "the run fails: {shown}{said}");
    assert!(said.contains("disk is full"), "{said}");
    let (of_run, diagnosed) = shown.split_once("exit 2\n").unwrap();
    assert!(diagnosed.ends_with("exit 0\n"), "the file is read: {shown}{said}");
    for shown in [of_run, diagnosed] {
        let row = shown.lines().find(|line| line.starts_with("first ")).unwrap_or_default();
        assert!(has_figures(row), "{shown}{said}");
    }
}

/// Runs the experiment on a disk of its own, then reads the run file.
const ON_A_SMALL_DISK: &str = r#"
mount -t tmpfs -o size=16m none small || exit 3
"$0" run --out small/run.narrows --time-scale 0.5
echo "exit $?"
"$0" diagnose small/run.narrows
echo "exit $?"
"#;

/// A service that fills the disk before it serves, unless its level is the first.
const FILLER: &str = r#"
import sys, http.server
if sys.argv[1] != "1":
    try:
        with open("small/fill", "wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
    except OSError:
        pass
http.server.HTTPServer(("127.0.0.1", int(sys.argv[2])), http.server.SimpleHTTPRequestHandler).serve_forever()
"#;
