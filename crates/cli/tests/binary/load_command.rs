//! `load: { command: … }`: experiments whose load comes from another program.
//!
//! The service is one of a reference system, which exports its spans, and the program is `narrows load`, a script
//! that stands in for k6, or `hey` where it is installed: what is counted comes from the spans, whoever sends.

use std::process::{Command, Output, Stdio};

use crate::common::{Bench, ask, text};

/// A service that serves one path, traced, and the command that sends the load.
fn experiment(load: &str, rest: &str) -> String {
    format!(
        r#"
experiment: another-generator
system:
  services:
    delivery:
      run: [narrows, system, drone-delivery, delivery, --port, "${{port}}"]
      ready: "GET /health"
load:
  target: delivery
{load}
{rest}
"#
    )
}

/// The URL that the load calls, as experiment files have it. The service records a span for this path only.
fn url(query: &str) -> String {
    format!("${{delivery.url}}/api/deliveries/summary?{query}")
}

const GOOD: &str = "ownerId=o1&year=2020&month=1";

fn run(bench: &Bench) -> (Output, String) {
    let output = bench.run(&["run", "--out", "run.narrows"]);
    let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
    (output, said)
}

/// The output with single spaces, independent of column widths.
fn in_one_line(said: &str) -> String {
    said.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn sum(bench: &Bench, column: &str) -> u64 {
    ask(&bench.path("run.narrows"), &format!("select sum({column}) from load_seconds")).parse().unwrap()
}

#[test]
fn what_another_program_sent_is_counted_from_the_roots_of_the_traces() {
    let bench =
        Bench::new(&experiment(&format!("  command: [narrows, load, \"{}\", -n, \"300\", -c, \"3\"]", url(GOOD)), ""));
    let (output, said) = run(&bench);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert_eq!((sum(&bench, "sent"), sum(&bench, "succeeded"), sum(&bench, "errors_status")), (300, 300, 0), "{said}");
    let file = bench.path("run.narrows");
    assert_eq!(ask(&file, "select group_concat(distinct scenario) from load_seconds"), "narrows");
    assert_eq!(ask(&file, "select count(*) from windows where kind = 'steady'"), "1");
    assert_ne!(ask(&file, "select count(*) from logs where service = 'load command'"), "0", "its output is kept");
    assert!(said.contains("its 300 requests are counted from the server spans of delivery"), "{said}");
}

#[test]
fn objectives_are_judged_by_what_was_counted() {
    let load = format!("  command: [narrows, load, \"{}\", -n, \"50\", -c, \"1\"]", url("ownerId=o1"));
    let bench = Bench::new(&experiment(&load, "objectives: [\"error_rate < 1%\"]"));
    let (output, said) = run(&bench);
    // The service refuses a request without a month; `narrows load` then ends with 1, which is its verdict.
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("error: ") && said.contains("narrows") && said.contains("1"), "{said}");

    let load = format!(
        "  command: [narrows, load, \"{}\", -n, \"50\", -c, \"1\", --check-status, \"400\"]",
        url("ownerId=o1")
    );
    let bench = Bench::new(&experiment(&load, "objectives: [\"error_rate < 1%\", \"rate >= 1000000/s\"]"));
    let (output, said) = run(&bench);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert_eq!((sum(&bench, "sent"), sum(&bench, "errors_status")), (50, 0), "400 is no failure of the server: {said}");
    assert!(said.contains("error_rate < 1%") && said.contains("rate >= 1000000/s"), "{said}");
}

#[test]
fn a_program_without_an_end_is_ended_at_its_limit() {
    let load = format!("  command: [narrows, load, \"{}\", -z, 10m, -c, \"1\", -q, \"50\"]\n  duration: 2s", url(GOOD));
    let bench = Bench::new(&experiment(&load, ""));
    let (output, said) = run(&bench);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("`narrows` was ended after 2.00 s, as the experiment specifies"), "{said}");
    assert!(sum(&bench, "sent") > 0);
}

#[test]
fn a_program_that_is_not_there_or_fails_is_an_error_that_names_it() {
    for (command, expected) in [
        ("[no-such-generator, --fast]", "no-such-generator"),
        ("[sh, -c, \"echo out of petrol >&2; exit 7\"]", "out of petrol"),
    ] {
        let bench = Bench::new(&experiment(&format!("  command: {command}"), ""));
        let (output, said) = run(&bench);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("error: ") && said.contains(expected), "{said}");
    }
}

/// A stand-in for k6: it sends with `narrows load`, and writes the summary to the path it is given.
fn stand_in_for_k6(bench: &Bench, summary: &str, code: i32) {
    use std::os::unix::fs::PermissionsExt;
    let narrows = env!("CARGO_BIN_EXE_narrows");
    let script = format!(
        "#!/bin/sh\n'{narrows}' load \"$BASE_URL\" -n 40 -c 2 || exit 3\n\
         cat > \"$K6_SUMMARY_EXPORT\" <<'END'\n{summary}\nEND\nexit {code}\n"
    );
    std::fs::write(bench.path("k6"), script).unwrap();
    std::fs::set_permissions(bench.path("k6"), std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn with_k6(rest: &str) -> Bench {
    let load = format!("  command: [./k6, run, script.js]\n  env: {{ BASE_URL: \"{}\" }}", url(GOOD));
    Bench::new(&experiment(&load, rest))
}

const SUMMARY: &str = r#"{"metrics": {
  "http_reqs": {"count": 40, "rate": 123.5},
  "http_req_failed": {"passes": 0, "fails": 40, "value": 0},
  "http_req_duration": {"avg": 1.5, "min": 0.1, "med": 1.25, "max": 9.5, "p(90)": 2, "p(95)": 3}}}"#;

#[test]
fn what_k6_says_of_itself_stands_beside_what_was_counted() {
    let bench = with_k6("");
    stand_in_for_k6(&bench, SUMMARY, 0);
    let (output, said) = run(&bench);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert_eq!(sum(&bench, "sent"), 40, "{said}");
    let told = "k6 itself counts 40 requests, 124/s, 0 % failed, mean 1.50 ms, p50 1.25 ms, p90 2.00 ms, p95 3.00 ms";
    let caveats = ask(&bench.path("run.narrows"), "select caveats from trials");
    assert!(caveats.contains(told), "{caveats}");
}

#[test]
fn without_spans_the_figures_are_those_of_k6_and_objectives_are_judged_by_them() {
    use std::os::unix::fs::PermissionsExt;
    const TOTALS: &str = r#"{"metrics": {
      "http_reqs": {"count": 200, "rate": 100},
      "http_req_failed": {"passes": 20, "fails": 180, "value": 0.1, "thresholds": {"rate<0.01": true}},
      "http_req_duration": {"avg": 12.5, "min": 1.2, "med": 10.1, "max": 99.9, "p(90)": 20.2, "p(95)": 30.3},
      "http_req_duration{expected_response:true}": {"avg": 11.5, "med": 9.1, "max": 89.9, "p(90)": 19.2, "p(95)": 29.3}}}"#;
    let bench = Bench::new(
        "experiment: no-spans\nload:\n  command: [./k6, run, script.js]\nobjectives: [error_rate < 1%, p95 < 1s, p99 < 1s]\n",
    );
    let script = format!("#!/bin/sh\ncat > \"$K6_SUMMARY_EXPORT\" <<'END'\n{TOTALS}\nEND\nexit 99\n");
    std::fs::write(bench.path("k6"), script).unwrap();
    std::fs::set_permissions(bench.path("k6"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let (output, said) = run(&bench);
    assert_eq!(output.status.code(), Some(1), "{said}");
    for figure in ["90.0/s", "11.5 ms", "9.10 ms", "29.3 ms", "20"] {
        assert!(said.contains(figure), "{figure}: {said}");
    }
    for row in [
        "error_rate < 1% 10 % ✗",
        "p95 < 1s 29.3 ms ✓",
        "p99 < 1s not reported by the load's program ?",
        "k6: http_req_failed: rate<0.01 crossed ✗",
    ] {
        assert!(in_one_line(&said).contains(row), "{row}: {said}");
    }
    // The run file stores them, so a second reading shows the same.
    let again = bench.run(&["diagnose", "run.narrows"]);
    let again = text(&again.stdout);
    assert!(again.contains("90.0/s") && again.contains("29.3 ms"), "{again}");
    let program = ask(&bench.path("run.narrows"), "select load_program ->> '$.reported.failed' from trials");
    assert_eq!(program, "20");
}

#[test]
fn thresholds_of_k6_that_were_crossed_are_reported_and_a_summary_that_is_none_is_too() {
    let bench = with_k6("");
    stand_in_for_k6(&bench, "not a summary", 99);
    let (output, said) = run(&bench);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("k6 says that thresholds of its script were crossed"), "{said}");
    assert!(in_one_line(&said).contains("k6: thresholds of its script crossed ✗"), "{said}");
    assert!(said.contains("k6-summary.json cannot be read: it is not JSON"), "{said}");
}

#[test]
fn hey_is_another_generator_where_it_is_installed() {
    let has_hey = Command::new("hey").arg("-h").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !has_hey {
        // `hey -h` is only there where Debian's package `hey` is.
        return narrows_testing::skip("hey is not on PATH (Debian package hey)");
    }
    let bench = Bench::new(&experiment(&format!("  command: [hey, -n, \"60\", -c, \"2\", \"{}\"]", url(GOOD)), ""));
    let (output, said) = run(&bench);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert_eq!(sum(&bench, "sent"), 60, "{said}");
    assert_eq!(ask(&bench.path("run.narrows"), "select group_concat(distinct scenario) from load_seconds"), "hey");
}
