//! `narrows import` and `narrows export`: what other programs wrote becomes a run, and goes out again as it came.

use std::io::Write;

use crate::common::{self, Bench, ask, text};
use narrows_telemetry::run_file::EXPORTED_VIEWS;
use narrows_testing::has_programs;
use serde_json::{Value, json};

const START_US: i64 = 1_700_000_000_000_000;

/// Thirty requests over three seconds, each of which queries a database twice.
fn jaeger() -> Value {
    let tag = |key: &str, kind: &str, value: Value| json!({ "key": key, "type": kind, "value": value });
    let traces: Vec<Value> = (0..30_i64)
        .map(|n| {
            let trace = format!("{:x}", n + 1);
            let start = START_US + n * 100_000;
            let span = |id: &str, parent: Option<&str>, name: &str, at: i64, process: &str, tags: Value| {
                let reference = |parent| json!({ "refType": "CHILD_OF", "traceID": trace, "spanID": parent });
                let references: Vec<Value> = parent.map(reference).into_iter().collect();
                json!({ "traceID": trace, "spanID": id, "operationName": name, "references": references,
                    "startTime": start + at, "duration": 20_000 - at, "tags": tags, "processID": process })
            };
            let server =
                json!([tag("span.kind", "string", json!("server")), tag("http.status_code", "int64", json!(200))]);
            let client = json!([
                tag("span.kind", "string", json!("client")),
                tag("db.system", "string", json!("postgresql")),
                tag("db.statement", "string", json!("SELECT 1")),
            ]);
            let spans = [
                span("a", None, "GET /orders", 0, "p1", server),
                span("b", Some("a"), "SELECT", 1_000, "p1", client.clone()),
                span("c", Some("a"), "SELECT", 2_000, "p1", client),
            ];
            json!({ "traceID": trace, "spans": spans, "processes": { "p1": { "serviceName": "orders", "tags": [] } } })
        })
        .collect();
    json!({ "data": traces, "total": 0, "limit": 0, "offset": 0, "errors": null })
}

fn imported(bench: &Bench) {
    std::fs::write(bench.path("traces.json"), jaeger().to_string()).unwrap();
    let import = bench.run(&["import", "traces.json", "--out", "a.narrows"]);
    assert!(import.status.success(), "{}", text(&import.stderr));
    assert!(text(&import.stderr).contains("imported 90 spans, 0 metric points, 0 log records; 0 left out"));
    assert!(text(&import.stdout).contains("imported"), "{}", text(&import.stdout));
}

const IN_ORDER: &str = "SELECT group_concat(line, char(10)) FROM (SELECT trace_id || span_id || coalesce(parent_span_id, '') \
    || service || name || kind || start_ns || '+' || end_ns || status || attributes AS line FROM spans \
    ORDER BY trace_id, span_id)";

#[test]
fn jaegers_traces_become_a_run_that_can_be_diagnosed() {
    let bench = Bench::new("");
    imported(&bench);
    let run = bench.path("a.narrows");
    assert_eq!(ask(&run, "SELECT state || (SELECT state FROM trials) FROM run"), "completedone");
    assert_eq!(ask(&run, "SELECT count(*) || ':' || sum(end_ns - start_ns) FROM windows"), "1:2920000001");
    assert_eq!(ask(&run, "SELECT sum(sent) || '/' || count(DISTINCT start_ns) FROM load_seconds"), "30/3");
    assert_eq!(ask(&run, "SELECT DISTINCT scenario || ' ' || request FROM load_seconds"), "orders GET /orders");
    let again = bench.run(&["diagnose", "a.narrows", "--json"]);
    assert!(again.status.success(), "{}", text(&again.stderr));
    let outcome: Value = serde_json::from_slice(&again.stdout).unwrap();
    assert!(outcome.to_string().contains("its 30 requests are counted from the server spans"), "{outcome}");
}

const OTLP_SPAN: &str = r#"{"traceId":"00000000000000000000000000000001","spanId":"0000000000000001","name":"GET /a","kind":2,
    "startTimeUnixNano":"1790000000000000000","endTimeUnixNano":"1790000000005000000"}"#;

/// Imports a text and returns the first line of the output.
fn said_of(bench: &Bench, text_of_file: &str) -> String {
    std::fs::write(bench.path("in.json"), text_of_file).unwrap();
    // Each run reuses this name.
    let _ = std::fs::remove_file(bench.path("in.narrows"));
    let import = bench.run(&["import", "in.json", "--out", "in.narrows"]);
    assert!(import.status.success(), "{text_of_file}: {}", text(&import.stderr));
    text(&import.stderr).lines().next().unwrap_or_default().to_owned()
}

#[test]
fn what_others_write_is_read_in_every_form() {
    let bench = Bench::new("");
    let scope = format!("{{\"spans\":[{OTLP_SPAN}]}}");
    let resource = format!("{{\"resource\":{{}},\"scopeSpans\":[{scope}]}}");
    let zipkin = r#"{"traceId":"1","id":"1","kind":"SERVER","name":"get","timestamp":1790000000000000,"duration":1000,"localEndpoint":{"serviceName":"a"}}"#;
    let go = r#"{
        "Name": "GET /a", "SpanKind": 2, "SpanContext": { "TraceID": "00000000000000000000000000000001", "SpanID": "0000000000000001" },
        "StartTime": "2026-09-21T14:13:20Z", "EndTime": "2026-09-21T14:13:20.005Z"
    }"#;
    let forms = [
        ("OTLP, older", format!("{{\"resourceSpans\":[{{\"instrumentationLibrarySpans\":[{scope}]}}]}}")),
        ("OTLP, a list", format!("[{{\"resourceSpans\":[{resource}]}}]")),
        ("OTLP after a byte order mark", format!("\u{feff}{{\"resourceSpans\":[{resource}]}}")),
        ("Tempo", format!("{{\"batches\":[{resource}]}}")),
        ("Tempo, version 2", format!("{{\"trace\":{{\"resourceSpans\":[{resource}]}}}}")),
        ("Zipkin", format!("[{zipkin}]")),
        ("Zipkin, several traces", format!("[[{zipkin}]]")),
        ("Go's stdouttrace", go.to_owned()),
        ("half a character", format!("{{\"resourceSpans\":[{}]}}", resource.replace("/a", "\\ud83d"))),
    ];
    for (form, text_of_file) in forms {
        let said = said_of(&bench, &text_of_file);
        assert_eq!(said, "imported 1 span, 0 metric points, 0 log records; 0 left out as malformed", "{form}");
        let found =
            ask(&bench.path("in.narrows"), "SELECT (SELECT count(*) FROM spans) || ' ' || sum(sent) FROM load_seconds");
        assert_eq!(found, "1 1", "{form}");
    }
}

#[test]
fn spans_that_are_kept_once_or_not_at_all_are_said() {
    let bench = Bench::new("");
    let document = |spans: &str| format!("{{\"resourceSpans\":[{{\"scopeSpans\":[{{\"spans\":[{spans}]}}]}}]}}");
    assert_eq!(
        said_of(&bench, &document(&format!("{OTLP_SPAN},{OTLP_SPAN}"))),
        "imported 1 span, 0 metric points, 0 log records; 0 left out as malformed; 1 span came more than once and is kept once"
    );
    let late = OTLP_SPAN.replace("1790000000", "5680368000").replace("000001\"", "000002\"");
    assert_eq!(
        said_of(&bench, &document(&format!("{OTLP_SPAN},{late}"))),
        "imported 1 span, 0 metric points, 0 log records; 1 left out as malformed"
    );
    assert!(
        ask(&bench.path("in.narrows"), "SELECT caveats FROM trials")
            .contains("its start is not between the years 1970 and 2116")
    );
    let own = OTLP_SPAN.replace("\"name\"", "\"parentSpanId\":\"0000000000000001\",\"name\"");
    said_of(&bench, &document(&own));
    assert_eq!(ask(&bench.path("in.narrows"), "SELECT sum(sent) FROM load_seconds"), "1", "it is a request");
    let diagnosed = bench.run(&["diagnose", "in.narrows", "--json"]);
    assert!(
        text(&diagnosed.stdout).contains("1 of 1 spans name themselves as their parent"),
        "{}",
        text(&diagnosed.stdout)
    );
}

#[test]
fn kinds_are_where_the_service_changes() {
    let bench = Bench::new("");
    let span = |id: &str, parent: Option<&str>, process: &str, at: i64, tags: Value| {
        let references: Vec<Value> = parent
            .map(|parent| json!({ "refType": "CHILD_OF", "traceID": "1", "spanID": parent }))
            .into_iter()
            .collect();
        json!({ "traceID": "1", "spanID": id, "operationName": format!("op {process}"), "references": references,
            "startTime": START_US + at, "duration": 10_000 - 2 * at, "tags": tags, "processID": process })
    };
    let kind = |kind: &str| json!([{ "key": "span.kind", "type": "string", "value": kind }]);
    let document = |kinds: [Value; 3]| {
        let [root, call, handling] = kinds;
        let spans = [
            span("a", None, "p1", 0, root),
            span("b", Some("a"), "p1", 100, call),
            span("c", Some("b"), "p2", 200, handling),
        ];
        let processes = json!({ "p1": { "serviceName": "web" }, "p2": { "serviceName": "store" } });
        json!({ "data": [{ "traceID": "1", "spans": spans, "processes": processes }] }).to_string()
    };
    let kinds = "SELECT group_concat(kind) FROM (SELECT kind FROM spans ORDER BY span_id)";
    said_of(&bench, &document([kind("server"), kind("client"), kind("server")]));
    assert_eq!(ask(&bench.path("in.narrows"), kinds), "server,client,server");
    said_of(&bench, &document([json!([]), json!([]), json!([])]));
    assert_eq!(ask(&bench.path("in.narrows"), kinds), "server,client,server");
    assert!(ask(&bench.path("in.narrows"), "SELECT caveats FROM trials").contains("3 spans do not say their kind:"));
}

#[test]
fn what_goes_out_comes_in_again_as_the_same() {
    let bench = Bench::new("");
    imported(&bench);
    let before = ask(&bench.path("a.narrows"), IN_ORDER);
    for (format, file) in [("otlp-json", "b.jsonl"), ("jaeger-json", "c.json")] {
        let export = bench.run(&["export", "a.narrows:imported", "--format", format, "--out", file]);
        assert!(export.status.success(), "{}", text(&export.stderr));
        assert!(text(&export.stderr).contains("records to"), "{}", text(&export.stderr));
        let run = format!("{file}.narrows");
        let import = bench.run(&["import", file, "--out", &run]);
        assert!(import.status.success(), "{}", text(&import.stderr));
        assert_eq!(ask(&bench.path(&run), IN_ORDER), before, "{format}");
    }
}

#[test]
fn evidence_goes_out_small_and_whole() {
    let bench = Bench::new("");
    imported(&bench);
    let export = bench.run(&["export", "a.narrows", "--format", "evidence", "--out", "a.json.gz"]);
    assert!(export.status.success(), "{}", text(&export.stderr));
    let size = std::fs::metadata(bench.path("a.json.gz")).unwrap().len();
    assert!((100..20_000).contains(&size), "{size} bytes");
    let sentence = |file: &str| {
        let outcome = bench.run(&["diagnose", file, "--json"]);
        assert!(outcome.status.success(), "{}", text(&outcome.stderr));
        serde_json::from_slice::<Value>(&outcome.stdout).unwrap()["sentence"].clone()
    };
    assert_eq!(sentence("a.json.gz"), sentence("a.narrows"), "it can be diagnosed like the run file");
    std::fs::write(bench.path("b.gz"), [0x1f, 0x8b, 8, 0, 0]).unwrap();
    let damaged = bench.run(&["diagnose", "b.gz"]);
    assert_eq!(damaged.status.code(), Some(2));
    assert!(text(&damaged.stderr).contains("b.gz: cannot read the evidence"), "{}", text(&damaged.stderr));
    let refused = bench.run(&["export", "a.narrows", "--format", "evidence", "--what", "spans"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("evidence is written as a whole"), "{}", text(&refused.stderr));
}

#[test]
fn a_run_is_sent_to_a_receiver() {
    let bench = Bench::new("");
    imported(&bench);
    let arguments = ["attach", "--for", "60s", "--settle", "200ms", "--otlp", "127.0.0.1:0", "--out", "b.narrows"];
    let mut child = bench
        .narrows(&arguments)
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("collecting; OTLP on ") {
        line.clear();
        assert!(std::io::BufRead::read_line(&mut lines, &mut line).unwrap() > 0, "attach ended");
    }
    let address = line.trim().rsplit_once(' ').unwrap().1.to_owned();
    let drain = std::thread::spawn(move || std::io::read_to_string(lines).unwrap());
    let export = bench.run(&["export", "a.narrows", "--to", &format!("http://{address}")]);
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::INT).unwrap();
    assert!(child.wait().unwrap().success(), "{}", drain.join().unwrap());
    let told = text(&export.stderr);
    assert!(export.status.success() && told.contains("90 spans accepted, 0 refused"), "{told}");
    assert_eq!(ask(&bench.path("b.narrows"), IN_ORDER), ask(&bench.path("a.narrows"), IN_ORDER));
}

#[test]
fn views_are_written_as_tables() {
    let bench = Bench::new("");
    imported(&bench);
    let csv = bench.run(&["export", "a.narrows", "--format", "csv", "--what", "requests"]);
    assert!(csv.status.success(), "{}", text(&csv.stderr));
    let said = text(&csv.stdout);
    assert_eq!(said.lines().count(), 31, "{said}");
    assert!(said.lines().next().unwrap().contains("operation_Id"), "{said}");
    let jsonl = bench.run(&["export", "a.narrows", "--format", "jsonl"]);
    let first: Value = serde_json::from_str(text(&jsonl.stdout).lines().next().unwrap()).unwrap();
    assert_eq!(first["service"], "orders");
    for view in EXPORTED_VIEWS {
        let parquet =
            bench.run(&["export", "a.narrows", "--format", "parquet", "--what", view, "--out", "rows.parquet"]);
        assert!(parquet.status.success(), "{view}: {}", text(&parquet.stderr));
        let parquet = std::fs::read(bench.path("rows.parquet")).unwrap();
        assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"), "{view}");
    }
}

#[test]
fn a_run_is_not_exported_over_itself() {
    let bench = Bench::new("");
    imported(&bench);
    std::fs::hard_link(bench.path("a.narrows"), bench.path("same")).unwrap();
    let before = ask(&bench.path("a.narrows"), IN_ORDER);
    for out in ["a.narrows", "same"] {
        let export = bench.run(&["export", "a.narrows", "--format", "csv", "--out", out]);
        assert_eq!(export.status.code(), Some(2));
        assert!(text(&export.stderr).contains("is the run file itself"), "{}", text(&export.stderr));
    }
    assert_eq!(ask(&bench.path("a.narrows"), IN_ORDER), before);
}

#[test]
fn what_cannot_be_imported_is_said_and_leaves_no_run() {
    let bench = Bench::new("");
    let cases: [(&str, &[u8], &str); 5] = [
        ("empty.json", b"", "cannot import empty.json: it is empty"),
        ("damaged.json", b"{\"data\":[{\"traceID\":\"1\",", "damaged.json: it is not JSON: line 1, column"),
        (
            "foreign.json",
            b"{\"hello\":\"world\"}",
            "it is an object with hello\nhint: `narrows import` reads JSON of OTLP, Tempo,",
        ),
        ("text.json", b"hello", "text.json: it is not JSON"),
        ("hollow.json", b"{\"resourceSpans\":[]}", "holds no span, metric point or log record"),
    ];
    for (name, bytes, expected) in cases {
        std::fs::write(bench.path(name), bytes).unwrap();
        let import = bench.run(&["import", name, "--out", "never.narrows"]);
        let told = text(&import.stderr);
        assert_eq!(import.status.code(), Some(2), "{name}: {told}");
        assert!(told.starts_with("error: ") && told.contains(expected), "{name}: {told}");
        assert!(!bench.path("never.narrows").exists(), "{name}");
    }
    let missing = bench.run(&["import", "none.json", "--out", "never.narrows"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(text(&missing.stderr).contains("cannot read none.json: No such file"), "{}", text(&missing.stderr));
}

#[test]
fn a_useless_file_beside_a_useful_one_is_a_caveat() {
    let bench = Bench::new("");
    std::fs::write(bench.path("traces.json"), jaeger().to_string()).unwrap();
    std::fs::write(bench.path("foreign.json"), "{\"a\":1}").unwrap();
    let import = bench.run(&["import", "foreign.json", "traces.json", "--out", "a.narrows"]);
    assert!(import.status.success(), "{}", text(&import.stderr));
    assert!(text(&import.stderr).contains("caveat: foreign.json: "), "{}", text(&import.stderr));
    assert!(ask(&bench.path("a.narrows"), "SELECT caveats FROM trials").contains("it is an object with a"));
}

#[test]
fn what_cannot_be_exported_is_said() {
    let bench = Bench::new("");
    imported(&bench);
    let cases: [(&[&str], &str); 7] = [
        (&["none.narrows", "--format", "csv"], "no run file none.narrows"),
        (&["a.narrows:other", "--format", "csv"], "has no variant `other`; it has `imported`"),
        (&["a.narrows", "--format", "jaeger-json", "--what", "logs"], "Jaeger's JSON holds spans only"),
        (&["a.narrows", "--format", "otlp-json", "--what", "requests"], "--what requests has no OTLP"),
        (&["a.narrows", "--format", "csv", "--what", "spans,logs"], "csv, jsonl and parquet hold one view"),
        (&["a.narrows", "--to", "http://127.0.0.1:1"], "cannot connect"),
        (&["a.narrows", "--to", "127.0.0.1:4318"], "is not a URL"),
    ];
    for (arguments, expected) in cases {
        let export = bench.run(&[&["export"], arguments].concat());
        let told = text(&export.stderr);
        assert_eq!(export.status.code(), Some(2), "{arguments:?}: {told}");
        assert!(told.contains(expected), "{arguments:?}: {told}");
    }
}

/// A program that others wrote, on a free port, until the end of the test.
struct Foreign {
    child: Option<std::process::Child>,
    address: String,
}

/// None, and a word about it, where the program is not on PATH. `setting` writes its file from the address that it shall
/// listen on.
fn foreign(bench: &Bench, program: &str, setting: impl Fn(&str) -> String) -> Option<Foreign> {
    if !has_programs(&[program]) {
        return None;
    }
    let address = free_address();
    std::fs::write(bench.path("foreign.yaml"), setting(&address)).unwrap();
    let log = std::fs::File::create(bench.path("foreign.log")).unwrap();
    let mut command = std::process::Command::new(program);
    command.arg("--config").arg(bench.path("foreign.yaml")).stdin(std::process::Stdio::null());
    let child = command.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
    let foreign = Foreign { child: Some(child), address };
    common::eventually(program, || std::net::TcpStream::connect(&foreign.address).is_ok());
    Some(foreign)
}

fn free_address() -> String {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

impl Foreign {
    fn end(&mut self) {
        if let Some(mut child) = self.child.take() {
            rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::TERM)
                .unwrap();
            child.wait().unwrap();
        }
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        self.end();
    }
}

fn send(bench: &Bench, foreign: &Foreign) {
    let export = bench.run(&["export", "a.narrows", "--what", "spans", "--to", &format!("http://{}", foreign.address)]);
    let told = text(&export.stderr);
    assert!(export.status.success() && told.contains("90 spans accepted, 0 refused"), "{told}");
}

#[test]
fn the_collector_takes_a_run() {
    let bench = Bench::new("");
    imported(&bench);
    let file = bench.path("kept.jsonl");
    let setting = |address: &str| {
        json!({
            "receivers": { "otlp": { "protocols": { "http": { "endpoint": address } } } },
            "exporters": { "file": { "path": file } },
            "service": {
                "pipelines": { "traces": { "receivers": ["otlp"], "exporters": ["file"] } },
                "telemetry": { "metrics": { "level": "none" } },
            },
        })
        .to_string()
    };
    let Some(mut collector) = foreign(&bench, "otelcol-contrib", setting) else { return };
    send(&bench, &collector);
    collector.end();
    // It wrote all that it was sent: imported again, it is the same run.
    let import = bench.run(&["import", "kept.jsonl", "--out", "b.narrows"]);
    assert!(import.status.success(), "{}", text(&import.stderr));
    assert_eq!(ask(&bench.path("b.narrows"), IN_ORDER), ask(&bench.path("a.narrows"), IN_ORDER));
}

#[test]
fn jaeger_takes_a_run() {
    let bench = Bench::new("");
    imported(&bench);
    let (query, other) = (free_address(), free_address());
    let setting = |address: &str| {
        json!({
            "receivers": { "otlp": { "protocols": { "http": { "endpoint": address } } } },
            "exporters": { "jaeger_storage_exporter": { "trace_storage": "memory" } },
            "extensions": {
                "jaeger_storage": { "backends": { "memory": { "memory": { "max_traces": 1000 } } } },
                "jaeger_query": {
                    "storage": { "traces": "memory" },
                    "http": { "endpoint": query },
                    "grpc": { "endpoint": other },
                },
            },
            "service": {
                "extensions": ["jaeger_storage", "jaeger_query"],
                "pipelines": { "traces": { "receivers": ["otlp"], "exporters": ["jaeger_storage_exporter"] } },
                "telemetry": { "metrics": { "level": "none" } },
            },
        })
        .to_string()
    };
    let Some(jaeger) = foreign(&bench, "jaeger", setting) else { return };
    send(&bench, &jaeger);
    for trace in 1..=30 {
        let kept = got(&query, &format!("/api/traces/{trace:032x}"));
        let mut names: Vec<&str> = Vec::new();
        names.extend(
            kept["data"][0]["spans"].as_array().unwrap().iter().filter_map(|span| span["operationName"].as_str()),
        );
        names.sort_unstable();
        assert_eq!(names, ["GET /orders", "SELECT", "SELECT"], "{kept}");
    }
}

/// A page as JSON.
fn got(address: &str, path: &str) -> Value {
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n").unwrap();
    let response = std::io::read_to_string(stream).unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    assert!(head.contains(" 200 "), "{response}");
    serde_json::from_str(body).unwrap()
}
