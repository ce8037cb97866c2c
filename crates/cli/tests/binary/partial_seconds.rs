//! Requests in the last or only part of a second are all counted: in the table, the objectives, the exit code and
//! queries.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::common::{Bench, ask, text};
use crate::server::{Server, response};

/// A server that fails every request after the first `good` ones.
fn failing_after(good: usize) -> Server {
    let asked = AtomicUsize::new(0);
    Server::plain(move |_| match asked.fetch_add(1, Ordering::Relaxed) {
        earlier if earlier < good => response("200 OK", "", "hello"),
        _ => response("500 Internal Server Error", "", "no"),
    })
}

/// An experiment in which one user sends this many requests in turn, with these objectives.
fn experiment(server: &Server, iterations: u32, pace: &str, objectives: &str) -> String {
    let url = server.url("");
    format!(
        "experiment: short\nload:\n  target: {url}\n  scenarios:\n    a: {{ model: shared-iterations, vus: 1, iterations: \
         {iterations}{pace}, request: \"GET /\" }}\nobjectives: [{objectives}]\n"
    )
}

fn outcome(bench: &Bench, run: &str) -> Value {
    let told = bench.run(&["diagnose", run, "--json"]);
    serde_json::from_slice(&told.stdout).unwrap_or_else(|error| panic!("{error}: {}", text(&told.stderr)))
}

/// Successes and failures in the load of the first trial, and failures in the table.
fn counts(outcome: &Value) -> (u64, u64, u64) {
    let load = &outcome["trials"][0]["load"];
    let failed = load["errors"].as_object().unwrap().values().filter_map(Value::as_u64).sum();
    let table = outcome["comparison"]["variants"][0]["errors"].as_u64().unwrap();
    (load["succeeded"].as_u64().unwrap(), failed, table)
}

const COUNTED: &str = "select sum(succeeded) || ' ' || sum(errors_status) from load_seconds s join windows w \
    on w.trial = s.trial and s.start_ns >= w.start_ns and (s.start_ns < w.end_ns or s.start_ns <= w.drained_ns)";

#[test]
fn failures_in_the_last_part_of_a_second_break_an_objective() {
    let server = failing_after(50);
    let bench = Bench::new(&experiment(&server, 54, ", pace: 20ms", "\"error_rate == 0\""));
    let run = bench.run(&["run", "--out", "a.narrows"]);
    let said = text(&run.stdout);
    assert_eq!(run.status.code(), Some(1), "{said}{}", text(&run.stderr));
    assert!(said.contains("7.4 %"), "{said}");
    assert_eq!(counts(&outcome(&bench, "a.narrows")), (50, 4, 4));
    assert_eq!(ask(&bench.path("a.narrows"), COUNTED), "50 4");
    assert_eq!(server.asked().len(), 54);
}

#[test]
fn a_load_within_a_second_is_judged_by_all_its_requests() {
    let server = failing_after(0);
    let objectives = "\"error_rate == 0\", \"p95 < 1ms\", \"rate >= 1000/s\"";
    let bench = Bench::new(&experiment(&server, 20, "", objectives));
    let run = bench.run(&["run", "--out", "a.narrows"]);
    let said = text(&run.stdout);
    assert_eq!(run.status.code(), Some(1), "{said}{}", text(&run.stderr));
    let outcome = outcome(&bench, "a.narrows");
    assert_eq!(counts(&outcome), (0, 20, 20));
    let kept = |index: usize| outcome["trials"][0]["objectives"][index]["kept"].clone();
    assert_eq!([kept(0), kept(1), kept(2)], ["no", "unknown", "no"], "{outcome:#}");
    assert_eq!(outcome["trials"][0]["load"]["latency"]["p95_ns"], Value::Null);
    assert_eq!(row(&said, "baseline"), ["0/s", "–", "–", "–", "–", "20"], "{said}");
    assert!(said.contains("100 %") && !said.contains("recorded no load"), "{said}");
}

#[test]
fn a_one_shot_load_is_judged_by_all_its_requests() {
    let (bench, server) = (Bench::new(""), failing_after(50));
    let words = ["load", &server.url("/"), "-n", "54", "-c", "1", "--objective", "error_rate == 0"];
    let load = bench.run(&words);
    assert_eq!(load.status.code(), Some(1), "{}", text(&load.stderr));
    let said = text(&load.stdout);
    assert!(said.contains("MISSED   error_rate == 0: 7.4 %"), "{said}");
    assert!(said.contains("[200] 50 responses") && said.contains("[500] 4 responses"), "{said}");
}

/// Requests as OTLP/JSON: start and duration of each in milliseconds, and whether it failed.
fn import(bench: &Bench, requests: &[(i64, i64, bool)]) -> (String, Value) {
    let span = |(at, (began_ms, took_ms, has_failed)): (usize, &(i64, i64, bool))| {
        let start_ns = 1_790_000_000_000_000_000 + began_ms * 1_000_000;
        json!({
            "traceId": format!("{:032x}", at + 1), "spanId": "0000000000000001", "name": "GET /a", "kind": 2,
            "startTimeUnixNano": start_ns.to_string(), "endTimeUnixNano": (start_ns + took_ms * 1_000_000).to_string(),
            "status": { "code": if *has_failed { 2 } else { 0 } },
        })
    };
    let spans: Vec<Value> = requests.iter().enumerate().map(span).collect();
    let web = json!({ "attributes": [{ "key": "service.name", "value": { "stringValue": "web" } }] });
    let traces = json!({ "resourceSpans": [{ "resource": web, "scopeSpans": [{ "spans": spans }] }] });
    std::fs::write(bench.path("traces.json"), traces.to_string()).unwrap();
    let import = bench.run(&["import", "traces.json", "--out", "a.narrows"]);
    assert!(import.status.success(), "{}", text(&import.stderr));
    (text(&import.stdout), outcome(bench, "a.narrows"))
}

/// The cells of the only variant's row: rate, mean, three quantiles, errors.
fn row<'a>(said: &'a str, variant: &str) -> Vec<&'a str> {
    let row = said.lines().find(|line| line.starts_with(variant)).unwrap_or_else(|| panic!("{said}"));
    row.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).skip(1).take(6).collect()
}

#[test]
fn an_import_of_one_request_has_its_latency_and_no_rate() {
    for began_ms in [0, 600] {
        let bench = Bench::new("");
        let (said, outcome) = import(&bench, &[(began_ms, 700, false)]);
        assert_eq!(row(&said, "imported"), ["–", "700 ms", "700 ms", "700 ms", "700 ms", "0"], "{said}");
        assert_eq!(counts(&outcome), (1, 0, 0));
        assert!(!said.contains("recorded no load"), "{said}");
    }
}

#[test]
fn an_import_of_failures_alone_has_no_latency() {
    let bench = Bench::new("");
    let requests: Vec<(i64, i64, bool)> = (0..20).map(|n| (n * 10, 5, true)).collect();
    let (said, outcome) = import(&bench, &requests);
    assert_eq!(row(&said, "imported")[1..], ["–", "–", "–", "–", "20"], "{said}");
    assert_eq!(counts(&outcome), (0, 20, 20));
    assert_eq!(ask(&bench.path("a.narrows"), COUNTED), "0 20");
}

#[test]
fn requests_minutes_apart_all_count() {
    let bench = Bench::new("");
    let requests: Vec<(i64, i64, bool)> = (0..20).map(|n| (n * 180_000 + n * 37 % 999, 50 + n, n % 2 == 1)).collect();
    let (said, outcome) = import(&bench, &requests);
    assert_eq!(counts(&outcome), (10, 10, 10));
    assert_eq!(outcome["trials"][0]["load"]["error_rate"], 0.5);
    let cells = row(&said, "imported");
    assert_eq!((cells[0], cells[5]), ("–", "10"), "{said}");
    assert!(!said.contains(" 0 ns"), "{said}");
    assert_eq!(ask(&bench.path("a.narrows"), "select sum(itemCount) from requests"), "20");
}
