//! `narrows run --compare` and `narrows compare`: the verdict on two variants, and what is refused.

use serde_json::{Value, json};

use crate::common::{Bench, ask, has_python, text};
use narrows_testing::measure;

/// A service that waits for a time before each response, as its variant says.
pub(crate) const WAITING: &str = r#"
experiment: waiting
parameters: { wait: "0.004", rate: "50" }
system:
  services:
    web:
      run: [python3, server.py, "${port}", "${wait}"]
      ready: "GET /"
load:
  target: web
  scenarios:
    read: { model: LOAD, duration: 2s, request: "GET /" }
variants:
  - { name: main }
  - { name: slow, from: main, wait: "0.03" }
  - { name: busier, from: main, rate: "90" }
"#;

pub(crate) const SERVER: &str = r#"
import http.server, sys, time

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1

    def do_GET(self):
        time.sleep(float(sys.argv[2]))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_):
        pass

http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"#;

/// The service under this load.
pub(crate) fn waiting(load: &str) -> Bench {
    let bench = Bench::new(&WAITING.replace("LOAD", load));
    std::fs::write(bench.path("server.py"), SERVER).unwrap();
    bench
}

const CLOSED: &str = "constant-vus, vus: 2";
const OPEN: &str = r#"constant-arrival-rate, rate: "${rate}/s""#;

#[test]
fn a_comparison_ends_when_the_verdict_is_clear() {
    if !has_python() {
        return;
    }
    measure(|| {
        let bench = waiting(CLOSED);
        let run = ["run", "--compare", "main,slow", "--repeat", "6", "--seed", "7", "--out", "run.narrows"];
        let ended = bench.run(&[&run[..], &["--fail-if", "slower"]].concat());
        let said = text(&ended.stdout);
        assert_eq!(ended.status.code(), Some(1), "{said}{}", text(&ended.stderr));
        assert!(said.contains("slow is slower than main: mean latency +"), "{said}");
        assert!(said.contains("random order, seed 7") && said.contains("The load is closed"), "{said}");
        let trials: u32 = ask(&bench.path("run.narrows"), "select count(*) from trials").parse().unwrap();
        assert!((6..12).contains(&trials), "{trials} trials of at most 12");
        let kept = ask(&bench.path("run.narrows"), "select value from conclusions where key = 'proof'");
        let kept: Value = serde_json::from_str(&kept).unwrap();
        assert_eq!((&kept["verdict"], &kept["design"]["order"]["seed"]), (&json!("slower"), &json!(7)));

        let again = bench.run(&["compare", "run.narrows:main", "run.narrows:slow", "--json"]);
        let json: Value = serde_json::from_slice(&again.stdout).unwrap();
        assert_eq!((again.status.code(), &json["format"]), (Some(0), &json!("narrows-proof/1")));
        assert_eq!((&json["quantities"], &json["sentence"]), (&kept["quantities"], &kept["sentence"]));
        let turned = bench.run(&["compare", "run.narrows:slow", "run.narrows:main"]);
        assert!(text(&turned.stdout).contains("main is faster than slow"), "{}", text(&turned.stdout));

        let resumed = bench.run(&["run", "--resume", "--out", "run.narrows"]);
        assert_eq!(resumed.status.code(), Some(2));
        assert!(text(&resumed.stderr).contains("is a comparison; `narrows compare"), "{}", text(&resumed.stderr));
    });
}

#[test]
fn unequal_rates_end_a_comparison_after_the_first_pair() {
    if !has_python() {
        return;
    }
    // On a machine that others use, the generator may be late, and its figures are invalid before the rates are seen.
    measure(|| {
        let bench = waiting(OPEN);
        let run = bench.run(&["run", "--compare", "main,busier", "--out", "run.narrows"]);
        let said = text(&run.stderr);
        assert_eq!(run.status.code(), Some(2), "{said}");
        assert!(
            said.contains("error: cannot compare: the rates of arrivals differ: ") && said.contains("busier 90.0/s"),
            "{said}"
        );
        assert!(said.contains("hint: give both variants the same rate"), "{said}");
        assert_eq!(ask(&bench.path("run.narrows"), "select count(*) from trials"), "2");
    });
}

#[test]
fn trials_in_turn_are_compared_in_pairs_and_those_of_two_runs_are_not() {
    if !has_python() {
        return;
    }
    let bench = waiting(CLOSED);
    let run = |out: &str, more: &[&str]| {
        let ended = bench.run(&[&["run", "--time-scale", "0.5", "--out", out][..], more].concat());
        assert!(ended.status.success(), "{}", text(&ended.stderr));
    };
    run("turns.narrows", &["--variant", "main", "--variant", "slow", "--repeat", "3"]);
    run("once.narrows", &["--variant", "main"]);
    let said = text(&bench.run(&["compare", "turns.narrows:main", "turns.narrows:slow"]).stdout);
    assert!(
        said.contains("3 pairs of trials · in turn") && said.contains("always measured in the same order"),
        "{said}"
    );
    let copied = bench.path("copy.narrows");
    std::fs::copy(bench.path("turns.narrows"), &copied).unwrap();
    let one_run = text(&bench.run(&["compare", "turns.narrows:main", "copy.narrows:slow"]).stdout);
    assert!(one_run.contains("3 pairs of trials"), "a copy is the same run: {one_run}");
    let refused = bench.run(&["compare", "turns.narrows:main", "once.narrows"]);
    assert_eq!(refused.status.code(), Some(2));
    let said = text(&refused.stderr);
    assert!(
        said.starts_with("error: cannot compare: once was measured once, expected at least 2 trials\nhint: "),
        "{said}"
    );
}

#[test]
fn what_cannot_be_compared_is_refused_with_one_sentence() {
    let bench = waiting(CLOSED);
    let parent = json!({ "refType": "CHILD_OF", "traceID": "1", "spanID": "b" });
    let span = json!({ "traceID": "1", "spanID": "a", "operationName": "GET /", "references": [parent], "processID": "p1",
        "startTime": 1_700_000_000_000_000_i64, "duration": 1000, "tags": [] });
    let processes = json!({ "p1": { "serviceName": "shop", "tags": [] } });
    let traces = json!({ "data": [{ "traceID": "1", "spans": [span], "processes": processes }] });
    std::fs::write(bench.path("traces.json"), traces.to_string()).unwrap();
    for out in ["one.narrows", "two.narrows"] {
        assert!(bench.run(&["import", "traces.json", "--out", out]).status.success());
    }
    for (arguments, said) in [
        (&["compare", "one.narrows", "two.narrows"][..], "error: cannot compare: one has no load that Narrows sent\n"),
        (&["compare", "one.narrows", "one.narrows"], "error: cannot compare: both sides are one\n"),
        (&["compare", "one.narrows", "two.narrows:slow"], "error: two.narrows has no trial slow; it has imported\n"),
        (&["compare", "one.narrows", "none.narrows"], "error: no run file none.narrows\n"),
        (&["run", "--compare", "main,none"], "error: no variant is named `none`; the experiment has `main`, `slow`"),
        (&["run", "--compare", "main,main"], "error: cannot compare: both sides are main\n"),
        (
            &["run", "--compare", "main"],
            "error: invalid value 'main' for '--compare <BEFORE,AFTER>': expected two variants",
        ),
        (
            &["run", "--compare", "main,slow", "--repeat", "1"],
            "error: `--compare` needs at least 2 trials of each variant",
        ),
        (&["run", "--margin", "5%"], "error: `--by`, `--margin` and `--fail-if` need `--compare BEFORE,AFTER`\n"),
        (&["compare", "a", "b", "--margin", "0"], "error: invalid value '0' for '--margin <SHARE>': expected a share"),
        (&["compare", "a", "b", "--by", "p98"], "error: invalid value 'p98' for '--by <FIGURE>': expected one of rate"),
    ] {
        let refused = bench.run(arguments);
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}");
        assert!(text(&refused.stderr).starts_with(said), "{arguments:?}: {}", text(&refused.stderr));
    }
}
