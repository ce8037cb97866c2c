//! `narrows predict --try`: a change that is made in the experiment and measured, how its value is found, one that is kept for
//! the next run, an interrupted try, and what is refused.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Output};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::common::{Bench, ask, end, eventually, has_python, nothing_is_left, succeeded, text};
use crate::compare::{SERVER, waiting};
use narrows_testing::measure;

const CLOSED: &str = "constant-vus, vus: 2";

/// The service of the recorded run `tickets.json.gz`, which works on `WORKERS` requests at a time.
const LIMITED: &str = r#"
experiment: tickets
parameters: { workers: "2" }
system:
  services:
    tickets:
      run: [python3, server.py, "${port}"]
      env: { WORKERS: "${workers}" }
      ready: "GET /"
load:
  target: tickets
  scenarios:
    buyers: { model: ramping-vus, levels: { from: 1, add: 5, every: 2s, to: 16 }, request: "GET /" }
variants:
  - { name: baseline }
"#;

/// The limited service, with its recorded run.
fn limited() -> Bench {
    let bench = Bench::new(LIMITED);
    let places =
        "import os, threading\nPLACES = threading.Semaphore(int(os.environ[\"WORKERS\"]))\nWORK_SECONDS = 0.04\n";
    let work = "with PLACES:\n            time.sleep(WORK_SECONDS)";
    let server = SERVER.replace("time.sleep(float(sys.argv[2]))", work);
    std::fs::write(bench.path("server.py"), format!("{places}{server}")).unwrap();
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/shop/tickets.json.gz");
    std::fs::copy(recorded, bench.path("tickets.json.gz")).unwrap();
    bench
}

/// Arguments that try a higher limit, as the recorded run suggests it.
const RAISE_LIMIT: [&str; 8] = [
    "predict",
    "tickets.json.gz",
    "--try",
    "raise-limit=tickets",
    "--experiment",
    "experiment.yaml",
    "--out",
    "tried.narrows",
];

/// Output of a command that runs in a pseudoterminal. `typed` lists pairs in Python: the text to wait for, and the reply.
fn at_a_terminal(bench: &Bench, arguments: &[&str], typed: &str) -> Output {
    let program = format!(
        r#"
import os, pty, sys

child, terminal = pty.fork()
if child == 0:
    os.execv(sys.argv[1], sys.argv[1:])
said, todo = b"", [{typed}]
while True:
    try:
        piece = os.read(terminal, 4096)
    except OSError:
        break
    said += piece
    if todo and todo[0][0] in said:
        os.write(terminal, todo.pop(0)[1])
sys.stdout.buffer.write(said)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"#
    );
    let narrows = bench.narrows(arguments);
    let mut command = Command::new("python3");
    command.args(["-c", &program]).arg(narrows.get_program()).args(narrows.get_args()).current_dir(bench.path("."));
    for (name, value) in narrows.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    end(command)
}

/// A run of the first variant, with the load as long as the experiment says, times a factor.
fn run(bench: &Bench, variant: &str, factor: &str, out: &str) -> String {
    let ended = bench.run(&["run", "--variant", variant, "--time-scale", factor, "--out", out]);
    assert!(ended.status.success(), "{}", text(&ended.stderr));
    text(&ended.stdout).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_change_is_made_in_the_experiment_and_measured_beside_the_system_as_it_is() {
    if !has_python() {
        return;
    }
    measure(|| {
        let bench = waiting(CLOSED);
        run(&bench, "main", "1.5", "runs/first.narrows");
        let replicas =
            ["predict", "first:main", "--try", "add-replicas=web", "--repeat", "2", "--out", "tried.narrows"];
        let tried = bench.run(&[&replicas[..], &["--json"]].concat());
        let said = text(&tried.stderr);
        assert!(said.contains("add-replicas=web,2: replicas of web 1 → 2 (main-add-replicas beside main)"), "{said}");
        let json: Value = serde_json::from_slice(&tried.stdout).unwrap_or_else(|error| panic!("{error}: {said}"));
        assert_eq!(tried.status.code(), Some(if json["is_held"] == true { 0 } else { 1 }), "{said}");
        assert_eq!((&json["format"], &json["before"]["trial"]), (&"narrows-try/1".into(), &"main".into()));
        let measured = &json["prediction"]["measured"];
        assert_eq!(measured["trial"], "main-add-replicas");
        assert_eq!(measured["levels"].as_array().map(Vec::len), Some(1), "{measured:#}");
        let variants = ask(&bench.path("tried.narrows"), "select group_concat(distinct variant) from trials");
        assert!(variants.contains("main-add-replicas"), "{variants}");
        let replicas = "select count(*) from services where service = 'web' group by trial order by 1 desc limit 1";
        assert_eq!(ask(&bench.path("tried.narrows"), replicas), "2");
    });
}

#[test]
fn a_variant_that_differs_in_the_value_is_the_one_that_is_measured() {
    if !has_python() {
        return;
    }
    measure(|| {
        let bench = limited();
        std::fs::write(bench.path("experiment.yaml"), format!("{LIMITED}  - {{ name: wide, workers: 16 }}\n")).unwrap();
        let tried = bench.run(&[&RAISE_LIMIT[..], &["--repeat", "2", "--time-scale", "0.5", "--json"]].concat());
        let said = text(&tried.stderr);
        assert!(
            said.contains("raise-limit=tickets,16: WORKERS of tickets 2 → 16, as a variant of the experiment"),
            "{said}"
        );
        assert!(said.contains("(wide beside baseline)"), "{said}");
        let json: Value = serde_json::from_slice(&tried.stdout).unwrap_or_else(|error| panic!("{error}: {said}"));
        assert_eq!((&json["made"]["is_listed"], &json["is_held"]), (&true.into(), &true.into()), "{json:#}");
        assert_eq!((tried.status.code(), &json["prediction"]["measured"]["trial"]), (Some(0), &"wide".into()));
        let heaviest = |of: &Value| of["levels"][3]["rate"].as_f64().unwrap();
        let (before, after) = (heaviest(&json["before"]), heaviest(&json["prediction"]["measured"]));
        assert!(after > 3.0 * before, "{before} {after}");
        let variants = ask(&bench.path("tried.narrows"), "select group_concat(distinct variant) from trials");
        assert!(["baseline,wide", "wide,baseline"].contains(&variants.as_str()), "{variants}");
    });
}

#[test]
fn a_terminal_asks_which_of_several_values_is_meant() {
    if !has_python() {
        return;
    }
    let bench = limited();
    let two = LIMITED.replace("WORKERS: \"${workers}\"", "WORKERS: \"${workers}\", THREADS: \"2\"");
    std::fs::write(bench.path("experiment.yaml"), two).unwrap();
    let elsewhere = bench.run(&RAISE_LIMIT);
    let said = text(&elsewhere.stderr);
    assert_eq!(elsewhere.status.code(), Some(2), "{said}");
    assert!(said.contains("several values of the experiment may stand for raise-limit=tickets,16\nhint: "), "{said}");
    assert!(said.contains("`--parameter workers=16` (WORKERS of tickets, now 2)"), "{said}");
    assert!(said.contains("`--parameter THREADS=16` (THREADS of tickets, now 2)"), "{said}");

    let chosen = at_a_terminal(&bench, &RAISE_LIMIT, r#"(b"number:", b"2\n"), (b"[1/6]", b"\x03")"#);
    let said = text(&chosen.stdout);
    let second = said.lines().find_map(|line| line.trim().strip_prefix("2  ")).unwrap_or_else(|| panic!("{said}"));
    let made = format!("raise-limit=tickets,16: {second} (baseline-raise-limit beside baseline)");
    assert!(second.ends_with("of tickets 2 → 16") && said.contains(&made), "{said}");
    assert_eq!(chosen.status.code(), Some(2), "{said}");
    assert!(said.contains("interrupted; tried.narrows keeps what was measured"), "{said}");
    nothing_is_left(&bench, &bench.path("tried.narrows"));

    let unknown = at_a_terminal(&bench, &RAISE_LIMIT, r#"(b"number:", b"9\n")"#);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown.stdout).contains("hint: choose with `--parameter "), "{}", text(&unknown.stdout));
}

#[test]
fn ctrl_c_ends_a_try_in_order_and_keeps_what_it_measured() {
    if !has_python() {
        return;
    }
    let bench = waiting(CLOSED);
    run(&bench, "main", "2", "runs/first.narrows");
    let replicas = ["predict", "first:main", "--try", "add-replicas=web", "--out", "tried.narrows"];
    let (mut child, mut lines) = bench.start_until(&replicas, "[2/6]");
    let tried = bench.path("tried.narrows");
    eventually("load in the second trial", || succeeded(&tried, 2) > 0);
    let kept = succeeded(&tried, 1);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let status = child.wait().unwrap();
    let mut said = String::new();
    lines.read_to_string(&mut said).unwrap();
    assert_eq!(status.code(), Some(2), "{said}");
    let hint = "hint: `narrows compare tried.narrows:main tried.narrows:main-add-replicas` judges complete pairs";
    assert!(
        said.contains("error: interrupted; tried.narrows keeps what was measured\n") && said.contains(hint),
        "{said}"
    );
    nothing_is_left(&bench, &tried);
    assert_eq!(ask(&tried, "select state from run"), "interrupted");
    assert_eq!(ask(&tried, "select group_concat(state) from trials"), "done,interrupted");
    assert!(kept > 0 && succeeded(&tried, 1) == kept && succeeded(&tried, 2) > 0, "{kept} requests of the first trial");
    let again = bench.run(&["predict", "first:main", "--try", "add-cpu=machine"]);
    assert_eq!(
        again.status.code(),
        Some(0),
        "the run that it was predicted from is as it was: {}",
        text(&again.stderr)
    );
}

#[test]
fn the_prediction_of_a_change_in_the_code_waits_for_the_run_that_has_it() {
    if !has_python() {
        return;
    }
    measure(|| {
        let bench = limited();
        run(&bench, "baseline", "1", "runs/first.narrows");
        let kept = bench.run(&["predict", "first", "--try", "shorten-section=tickets,2"]);
        let said = text(&kept.stderr);
        assert_eq!(kept.status.code(), Some(0), "{said}");
        assert!(said.contains("no value of the experiment stands for shorten-section=tickets,2"), "{said}");

        let predicted =
            "Predicted from first:baseline for making what requests of tickets take turns at 2 times as short: ";
        let as_before = "so the change seems not to be made.";
        let unchanged = run(&bench, "baseline", "0.5", "runs/second.narrows");
        assert!(unchanged.contains(predicted) && unchanged.contains(as_before), "{unchanged}");

        let server = std::fs::read_to_string(bench.path("server.py")).unwrap();
        std::fs::write(bench.path("server.py"), server.replace("WORK_SECONDS = 0.04", "WORK_SECONDS = 0.02")).unwrap();
        let changed = run(&bench, "baseline", "0.5", "runs/third.narrows");
        assert!(changed.contains(predicted) && !changed.contains(as_before), "{changed}");
        assert!(
            changed.contains("both inside the 90 % interval") && changed.contains("first:baseline → baseline"),
            "{changed}"
        );
        let settled = run(&bench, "baseline", "0.5", "runs/fourth.narrows");
        assert!(!settled.contains("Predicted from"), "{settled}");
    });
}

#[test]
fn what_cannot_be_tried_is_refused_before_anything_starts() {
    if !has_python() {
        return;
    }
    let bench = waiting(CLOSED);
    run(&bench, "main", "0.5", "runs/first.narrows");
    let refused = |arguments: &[&str]| {
        let refused = bench.run(&[&["predict", "first:main", "--try"], arguments].concat());
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}: {}", text(&refused.stdout));
        text(&refused.stderr).to_owned()
    };
    let unknown = refused(&["add-replicas=web", "--parameter", "pool=2"]);
    assert!(unknown.starts_with("error: no value that web is started with is named `pool`\nhint: "), "{unknown}");
    let load = refused(&["more-load=40"]);
    assert!(load.starts_with("error: `more-load` is a change of the load, which `--try` does not make\n"), "{load}");
    std::fs::rename(bench.path("experiment.yaml"), bench.path("moved.yaml")).unwrap();
    let gone = refused(&["add-replicas=web"]);
    assert!(gone.contains("experiment.yaml, is gone\nhint: put it back where it was, or name it with"), "{gone}");
}
