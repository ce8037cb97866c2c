//! `narrows diff` on telemetry of other programs: which service a change comes from, what else speaks against it, and what
//! cannot be compared.

use crate::common::{Bench, text};
use serde_json::{Value, json};

/// 2023-11-14T22:13:20Z, in nanoseconds.
const START_NS: i64 = 1_700_000_000_000_000_000;
const MS: i64 = 1_000_000;
/// Requests of a side, ten a second.
const REQUESTS: i64 = 80;

/// Behaviour of a side of the system.
#[derive(Debug, Clone, Copy)]
struct Side {
    /// Time of price for each request, in milliseconds.
    price_ms: i64,
    /// How far its clock is ahead.
    ahead_ms: i64,
    /// How many errors it logs.
    errors: i64,
    /// CPU that it uses, in cores.
    cores: f64,
    /// CPU that it may use.
    limit: f64,
}

const BEFORE: Side = Side { price_ms: 10, ahead_ms: 0, errors: 0, cores: 0.1, limit: 2.0 };
const AFTER: Side = Side { price_ms: 40, ahead_ms: 3_000, errors: 12, cores: 0.4, limit: 0.5 };

fn attribute(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

fn resource(service: &str) -> Value {
    json!({ "attributes": [attribute("service.name", service), attribute("service.instance.id", &format!("{service}-1"))] })
}

/// Front calls price over HTTP: the lines of OTLP's JSON of a side that begins so many seconds after [`START_NS`].
fn otlp(side: Side, after_s: i64) -> String {
    let span = |n: i64, id: i64, parent: i64, (kind, name): (i64, &str), (start_ns, length_ms): (i64, i64)| {
        let mut span = json!({
            "traceId": format!("{:032x}", after_s * 1_000 + n + 1), "spanId": format!("{id:016x}"), "name": name,
            "kind": kind, "startTimeUnixNano": start_ns.to_string(),
            "endTimeUnixNano": (start_ns + length_ms * MS).to_string(),
        });
        if parent > 0 {
            span["parentSpanId"] = json!(format!("{parent:016x}"));
        }
        span
    };
    let start_ns = |n: i64| START_NS + after_s * 1_000 * MS + n * 100 * MS;
    let all = |spans: &dyn Fn(i64) -> Vec<Value>| (0..REQUESTS).flat_map(spans).collect::<Vec<_>>();
    let front = all(&|n| {
        let length = side.price_ms + n % 3;
        vec![
            span(n, 1, 0, (2, "GET /items"), (start_ns(n), length + 10)),
            span(n, 2, 1, (3, "GET"), (start_ns(n) + 5 * MS, length + 2)),
        ]
    });
    let price = all(&|n| {
        let at = start_ns(n) + (6 + side.ahead_ms) * MS;
        vec![span(n, 3, 2, (2, "GET /price"), (at, side.price_ms + n % 3))]
    });
    let spans = |service: &str, spans: Vec<Value>| json!({ "resourceSpans": [{ "resource": resource(service), "scopeSpans": [{ "spans": spans }] }] });
    let line = |n: i64| {
        json!({ "timeUnixNano": start_ns(n * REQUESTS / side.errors).to_string(), "severityText": "ERROR",
            "body": { "stringValue": format!("no quote for part {n} within {} ms", 100 + n) } })
    };
    let lines: Vec<Value> = (0..side.errors).map(line).collect();
    let logs = json!({ "resourceLogs": [{ "resource": resource("price"), "scopeLogs": [{ "logRecords": lines }] }] });
    let point =
        |second: i64, value: f64| json!({ "timeUnixNano": start_ns(second * 10).to_string(), "asDouble": value });
    let points = |each: &dyn Fn(i64) -> f64| (0..8).map(|second| point(second, each(second))).collect::<Vec<_>>();
    let metrics = json!({ "resourceMetrics": [{ "resource": resource("price"), "scopeMetrics": [{ "metrics": [
        { "name": "process.cpu.time", "unit": "s", "sum": { "aggregationTemporality": 2, "isMonotonic": true,
            "dataPoints": points(&|second| 100.0 + side.cores * second as f64) } },
        { "name": "container.cpu.limit", "unit": "{cpus}", "gauge": { "dataPoints": points(&|_| side.limit) } },
    ] }] }] });
    [spans("front", front), spans("price", price), logs, metrics].map(|line| line.to_string()).join("\n")
}

fn import(bench: &Bench, name: &str, text_of_file: &str) {
    std::fs::write(bench.path("otlp.jsonl"), text_of_file).unwrap();
    let import = bench.run(&["import", "otlp.jsonl", "--out", name]);
    assert!(import.status.success(), "{}", text(&import.stderr));
}

/// Both sides as runs of their own.
fn imported(bench: &Bench, after: Side) {
    import(bench, "before.narrows", &otlp(BEFORE, 0));
    import(bench, "after.narrows", &otlp(after, 0));
}

fn diff(bench: &Bench, before: &str, after: &str) -> Value {
    let diff = bench.run(&["diff", before, after, "--json"]);
    assert!(diff.status.success(), "{}", text(&diff.stderr));
    serde_json::from_slice(&diff.stdout).unwrap()
}

/// The words of a text, whatever lines it is broken into.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_service_that_a_change_comes_from_is_named_though_its_clock_is_seconds_ahead() {
    let bench = Bench::new("");
    imported(&bench, AFTER);
    let shown = bench.run(&["diff", "before.narrows", "after.narrows"]);
    let said = text(&shown.stdout);
    assert_eq!(shown.status.code(), Some(0), "{said}{}", text(&shown.stderr));
    let row = said.lines().find(|line| line.starts_with("price ")).unwrap_or_else(|| panic!("{said}"));
    let expected = ["slower 13.0 ms → 43.0 ms +30.0 ms 100 % high", "2 → 0.50"];
    assert!(expected.iter().all(|cell| words(row).contains(cell)), "{said}");
    assert!(said.lines().any(|line| words(line).starts_with("front waits")), "{said}");
    let said = words(&said);
    assert!(
        said.contains("Requests that begin traces take 21.0 ms → 51.0 ms on average (80 and 80 compared)."),
        "{said}"
    );
    assert!(said.contains("Clocks differ in after: that of price is 3.00 s ahead of that of front."), "{said}");
    assert!(said.contains("price: no quote for part * within * ms new error 0 12 0 % → 15 %"), "{said}");
    assert!(
        said.contains(
            "and logs a new error, “no quote for part * within * ms”, in 15 % of the calls; front only waits for it"
        ),
        "{said}"
    );
}

#[test]
fn two_parts_of_one_time_are_compared_by_the_clock_of_the_caller() {
    let bench = Bench::new("");
    let behind = |side: Side| Side { ahead_ms: -20_000, ..side };
    import(&bench, "shop.narrows", &format!("{}\n{}", otlp(behind(BEFORE), 0), otlp(behind(AFTER), 10)));
    // The windows of an import begin with its first span, 20 s before the first request.
    let found = diff(&bench, "shop.narrows@19s..29s", "shop.narrows@29s..");
    let first = &found["services"][0];
    assert_eq!((&first["service"], &first["role"]), (&"price".into(), &"slower".into()), "{found:#}");
    assert_eq!(found["requests"]["count"], json!([80.0, 80.0]));
}

#[test]
fn what_services_report_of_their_cpu_counts_also_after_an_export_and_as_evidence() {
    let bench = Bench::new("");
    imported(&bench, Side { ahead_ms: 0, ..AFTER });
    for name in ["before", "after"] {
        for (format, file) in [("otlp-json", "again.jsonl"), ("evidence", &*format!("{name}.json.gz"))] {
            let export = bench.run(&["export", &format!("{name}.narrows"), "--format", format, "--out", file]);
            assert!(export.status.success(), "{}", text(&export.stderr));
        }
        let import = bench.run(&["import", "again.jsonl", "--out", &format!("{name}-again.narrows")]);
        assert!(import.status.success(), "{}", text(&import.stderr));
    }
    for (before, after) in [
        ("before.narrows", "after.narrows"),
        ("before-again.narrows", "after-again.narrows"),
        ("before.json.gz", "after.json.gz"),
    ] {
        let found = diff(&bench, before, after);
        let price = &found["services"][0];
        assert_eq!(price["service"], "price", "{found:#}");
        let cpu_ms = |side: usize| (price["cpu"][side].as_f64().unwrap() / 1e6).round();
        assert_eq!([cpu_ms(0), cpu_ms(1)], [10.0, 40.0], "{found:#}");
        assert_eq!((&price["cpu_limit"], &price["logs"][0]["after"]), (&json!([2.0, 0.5]), &json!(12)), "{found:#}");
    }
    let outcome = bench.run(&["diagnose", "after.narrows"]);
    let said = text(&outcome.stdout);
    assert!(words(&said).contains("the busiest service used 80 % of its CPU"), "the limit: {said}");
    assert!(words(&said).contains("price 39.8 ms (0.40)"), "the table of what services use: {said}");
}

#[test]
fn what_cannot_be_compared_is_an_error_of_one_sentence() {
    let bench = Bench::new("");
    import(&bench, "shop.narrows", &otlp(BEFORE, 0));
    let renamed = |from: &str, to: &str| otlp(BEFORE, 0).replace(from, to);
    import(&bench, "bank.narrows", &renamed("\"front\"", "\"teller\"").replace("\"price\"", "\"ledger\""));
    import(&bench, "other.narrows", &renamed("GET /items", "GET /parts").replace("GET /price", "GET /quote"));
    // Metrics alone go on for two minutes.
    let metrics = otlp(BEFORE, 70).lines().last().unwrap().to_owned();
    import(&bench, "paused.narrows", &format!("{}\n{}\n{metrics}", otlp(BEFORE, 0), otlp(BEFORE, 40)));
    for (before, after, expected) in [
        (
            "shop.narrows",
            "bank.narrows",
            "cannot compare: shop (front, price) and bank (ledger, teller) have no service in common, expected two \
             measurements of one system",
        ),
        (
            "shop.narrows",
            "other.narrows",
            "cannot compare: shop and other have no operation in common, expected the same requests on both sides",
        ),
        (
            "shop.narrows",
            "paused.narrows@20s..30s",
            "cannot compare: paused@20s..30s has no requests, spans or metrics of services, expected some on each side",
        ),
        ("shop.narrows@1h..2h", "shop.narrows", "has nothing of that time"),
    ] {
        let refused = bench.run(&["diff", before, after]);
        let said = words(&text(&refused.stderr));
        assert_eq!(refused.status.code(), Some(2), "{before} {after}: {said}{}", text(&refused.stdout));
        assert!(said.contains(expected), "{said}");
        assert!(refused.stdout.is_empty());
    }
}
