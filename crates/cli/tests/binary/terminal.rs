//! Untrusted text is printed as plain text in terminals and spreadsheets, and no command blocks on a named pipe.

use std::process::Output;

use narrows_model::printable::is_obeyed;
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::common::{Bench, text};

/// An OTLP/JSON trace with terminal control characters in its names.
const TRACE: &str = r#"{"resourceSpans":[{"resource":{"attributes":[
{"key":"service.name","value":{"stringValue":"we\u001b[2Jb\u202e"}}]},"scopeSpans":[{"scope":{"name":"s"},"spans":[
{"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"b7ad6b7169203331","name":"=HYPERLINK(\u009b1m)","kind":2,
"startTimeUnixNano":"1700000000000000000","endTimeUnixNano":"1700000003000000000",
"status":{"code":2,"message":"\u001b]0;title\u0007 failed\u2066"}}]}]}]}"#;

/// Asserts that an output has only printable characters; the message names the first other one.
fn is_text(command: &[&str], output: &Output) {
    for stream in [&output.stdout, &output.stderr] {
        // Lines of exported CSV end with CRLF, as RFC 4180 requires.
        let text = str::from_utf8(stream).unwrap().replace("\r\n", "\n");
        let obeyed = text.char_indices().find(|(_, c)| is_obeyed(*c) && !matches!(c, '\n' | '\t'));
        assert_eq!(obeyed, None, "`narrows {}`: {text:?}", command.join(" "));
    }
}

#[test]
fn names_of_a_run_are_printed_as_text() {
    let bench = Bench::new("");
    std::fs::write(bench.path("trace.json"), TRACE).unwrap();
    let all = "SELECT service, name, status_message FROM spans";
    for command in [
        &["import", "trace.json", "--out", "run.narrows"][..],
        &["diagnose", "run.narrows"],
        &["diagnose", "run.narrows", "--json"],
        &["report", "run.narrows", "--html", "page.html", "--json", "-"],
        &["query", "run.narrows", all],
        &["query", "run.narrows", all, "--format", "csv"],
        &["query", "run.narrows", all, "--format", "json"],
        &["query", "run.narrows", all, "--format", "markdown"],
        &["export", "run.narrows", "--format", "csv"],
        &["export", "run.narrows", "--format", "jsonl"],
        &["export", "run.narrows", "--format", "otlp-json"],
        &["export", "run.narrows", "--format", "jaeger-json"],
    ] {
        let output = bench.run(command);
        assert_eq!(output.status.code(), Some(0), "{command:?}: {}", text(&output.stderr));
        is_text(command, &output);
    }
    let json = bench.run(&["query", "run.narrows", all, "--format", "json"]).stdout;
    let rows: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(rows[0]["service"], "we\u{1b}[2Jb\u{202e}", "JSON means what came");
    let csv = bench.run(&["query", "run.narrows", all, "--format", "csv"]).stdout;
    assert!(text(&csv).contains("we\u{fffd}[2Jb\u{fffd},'=HYPERLINK(\u{fffd}1m),"), "{}", text(&csv));
}

#[test]
fn what_a_failed_service_printed_last_and_names_of_a_file_are_printed_as_text() {
    let experiment = r#"
experiment: last-words
system:
  services:
    web:
      run: [sh, -c, "printf 'bad \\033[2J\\033]0;t\\007 \\302\\2331m \\342\\200\\256 end\\n' >&2; exit 3"]
      ready: "GET /"
load:
  target: web
  scenarios: { main: { model: shared-iterations, vus: 1, iterations: 1, request: "GET /" } }
"#;
    let bench = Bench::new(experiment);
    let failed = bench.run(&["run", "--out", "run.narrows"]);
    assert_eq!(failed.status.code(), Some(2));
    is_text(&["run"], &failed);
    let told = text(&failed.stderr);
    assert!(told.contains("bad \u{fffd}[2J\u{fffd}]0;t\u{fffd} \u{fffd}1m \u{fffd} end"), "{told}");

    let wrong = experiment.replace("main:", "\"ma\\e[2Jin\\u202E\":").replace("vus: 1", "vus: \"\\e[31mmany\"");
    std::fs::write(bench.path("wrong.yaml"), wrong).unwrap();
    let check = bench.run(&["check", "wrong.yaml"]);
    assert_eq!(check.status.code(), Some(1), "{}", text(&check.stderr));
    is_text(&["check"], &check);
    assert!(text(&check.stdout).contains("many"), "{}", text(&check.stdout));
    is_text(&["check"], &bench.run(&["check", "no\u{1b}[2Jsuch\u{202e}.yaml"]));
    is_text(&["attach"], &bench.run(&["attach", "--for", "\u{1b}[2Jx"]));
}

#[test]
fn a_named_pipe_is_refused_by_every_command_that_reads_a_file() {
    let experiment = "experiment: e\nload: { target: 'http://127.0.0.1:1', scenarios: { a: { model: constant-vus, vus: 1, \
                      duration: 1s, request: 'GET /{{x.a}}' } }, data: { x: { csv: pipe } } }\n";
    let bench = Bench::new(experiment);
    mknodat(CWD, bench.path("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    std::fs::write(bench.path("trace.json"), TRACE).unwrap();
    assert!(bench.run(&["import", "trace.json", "--out", "run.narrows"]).status.success());
    for command in [
        &["check", "pipe"][..],
        &["check"],
        &["run", "pipe"],
        &["capacity", "pipe"],
        &["diagnose", "pipe"],
        &["report", "pipe"],
        &["diff", "pipe", "run.narrows"],
        &["compare", "pipe:a", "run.narrows:b"],
        &["predict", "pipe"],
        &["query", "pipe", "SELECT 1"],
        &["query", "run.narrows", "--kql", "pipe"],
        &["export", "pipe", "--format", "csv"],
        &["import", "pipe", "--out", "new.narrows"],
        &["baseline", "check", "run.narrows", "--baseline", "pipe"],
        &["sensitivity", "--from", "pipe"],
        &["run", "--resume", "--out", "pipe"],
        &["load", "http://127.0.0.1:1/", "-n", "1", "-c", "1", "-D", "pipe"],
    ] {
        let output = bench.run(command);
        let told = text(&output.stderr) + &text(&output.stdout);
        assert!(matches!(output.status.code(), Some(1 | 2)), "{command:?}: {told}");
        let says_why = ["named pipe", "no run file", "not a Narrows run file", "expected"];
        assert!(says_why.iter().any(|why| told.contains(why)), "{command:?}: {told}");
    }
}
