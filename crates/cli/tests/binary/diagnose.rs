//! `narrows diagnose` and `narrows diff`: what a run means, of which variant, and what differs between two.

use crate::common::{Bench, text};
use serde_json::{Value, json};

/// 2023-11-14T22:13:20Z, in microseconds.
const START_US: i64 = 1_700_000_000_000_000;

/// Thirty requests over three seconds, each of which queries a database so many times for 2 ms.
fn traces(queries: i64) -> Value {
    json!({ "data": requests(0..30, queries) })
}

/// Requests by number: ten a second from the start.
fn requests(numbers: std::ops::Range<i64>, queries: i64) -> Vec<Value> {
    let tag = |key: &str, value: &str| json!({ "key": key, "type": "string", "value": value });
    let one = |n: i64| {
        let trace = format!("{:x}", n + 1);
        let span = |id: String, parent: Option<&str>, name: &str, (at, length): (i64, i64), tags: Value| {
            let reference = |parent| json!({ "refType": "CHILD_OF", "traceID": trace, "spanID": parent });
            let references: Vec<Value> = parent.map(reference).into_iter().collect();
            json!({ "traceID": trace, "spanID": id, "operationName": name, "references": references, "processID": "p1",
                "startTime": START_US + n * 100_000 + at, "duration": length, "tags": tags })
        };
        let list = json!([
            tag("span.kind", "client"),
            tag("db.system", "postgresql"),
            tag("db.statement", "SELECT id FROM orders")
        ]);
        let line = |row: i64| {
            let text = format!("SELECT name FROM customer WHERE id = {row}");
            json!([tag("span.kind", "client"), tag("db.system", "postgresql"), tag("db.statement", &text)])
        };
        let mut spans = vec![
            span("a".into(), None, "GET /orders", (0, 5_000 + queries * 2_000), json!([tag("span.kind", "server")])),
            span("b".into(), Some("a"), "SELECT", (500, 1_000), list),
        ];
        let each = |row: i64| {
            span(format!("{:x}", 16 + row), Some("a"), "SELECT", (2_000 + row * 2_000, 1_900), line(n + row))
        };
        spans.extend((0..queries).map(each));
        json!({ "traceID": trace, "spans": spans, "processes": { "p1": { "serviceName": "orders", "tags": [] } } })
    };
    numbers.map(one).collect()
}

fn imported(bench: &Bench, name: &str, queries: i64) {
    import(bench, name, &traces(queries));
}

fn import(bench: &Bench, name: &str, traces: &Value) {
    std::fs::write(bench.path("traces.json"), traces.to_string()).unwrap();
    let import = bench.run(&["import", "traces.json", "--out", name]);
    assert!(import.status.success(), "{}", text(&import.stderr));
}

#[test]
fn what_differs_between_two_runs_is_reported() {
    let bench = Bench::new("");
    imported(&bench, "before.narrows", 20);
    imported(&bench, "after.narrows", 1);
    let diff = bench.run(&["diff", "before.narrows", "after.narrows"]);
    let said = text(&diff.stdout);
    assert_eq!(diff.status.code(), Some(0), "{said}{}", text(&diff.stderr));
    assert!(said.contains("- vanished  n-plus-one"), "{said}");
    assert!(said.contains("GET /orders → postgresql SELECT  changed"), "{said}");
    assert!(said.contains("The two are of different runs"), "{said}");
    let sentence = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        sentence.contains("orders calls postgresql twice instead of 21 times; n-plus-one of orders is gone"),
        "{said}"
    );

    let json = bench.run(&["diff", "before.narrows", "after.narrows", "--json"]);
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["format"], "narrows-diff/1");
    assert_eq!(json["findings"][0]["fate"], "vanished");
    assert_eq!(json["operations"][0]["calls"][0]["before"], 21.0);

    let same = bench.run(&["diff", "after.narrows", "after.narrows"]);
    assert!(text(&same.stdout).contains("nothing is shown to differ"), "{}", text(&same.stdout));
}

#[test]
fn what_differs_between_two_parts_of_the_time_is_reported() {
    let bench = Bench::new("");
    let quick_then_slow = [requests(0..30, 1), requests(30..60, 20)].concat();
    import(&bench, "shop.narrows", &json!({ "data": quick_then_slow }));
    for (before, after) in [
        ("shop.narrows@0s..3s", "shop.narrows@3s.."),
        ("shop.narrows@..22:13:23", "shop.narrows:imported@22:13:23..2023-11-14T22:13:30Z"),
    ] {
        let diff = bench.run(&["diff", before, after]);
        let said = text(&diff.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(diff.status.code(), Some(0), "{said}{}", text(&diff.stderr));
        assert!(said.contains("orders calls postgresql 21 times instead of twice"), "{said}");
        assert!(said.contains("n-plus-one"), "{said}");
    }
    let nothing = bench.run(&["diff", "shop.narrows@0s..3s", "shop.narrows@1h..2h"]);
    assert_eq!(nothing.status.code(), Some(2));
    let said = text(&nothing.stderr);
    assert!(said.contains("has nothing of that time; it lasts from 2023-11-14T22:13:20Z to"), "{said}");
}

#[test]
fn one_variant_of_a_run_is_looked_at_by_its_name() {
    let bench = Bench::new("");
    imported(&bench, "a.narrows", 20);
    let whole = bench.run(&["diagnose", "a.narrows"]);
    let one = bench.run(&["diagnose", "a.narrows:imported"]);
    assert_eq!(text(&whole.stdout), text(&one.stdout));
    assert!(text(&one.stdout).contains("fetches rows one at a time"), "{}", text(&one.stdout));
    let whole_path = format!("{}:importd", bench.path("a.narrows").display());
    let hinted = "did you mean `imported`?";
    for (address, hint) in [("a.narrows:importd", hinted), (&whole_path, hinted), ("a.narrows:imported#2", "imported")]
    {
        let run = bench.run(&["diagnose", address]);
        assert_eq!(run.status.code(), Some(2), "{address}");
        let said = text(&run.stderr);
        assert!(said.contains("has no trial import") && said.contains(hint), "{address}: {said}");
    }
}

#[test]
fn a_finding_is_explained_and_thresholds_are_listed() {
    let bench = Bench::new("");
    let page = bench.run(&["diagnose", "--explain", "n-plus-one"]);
    assert!(text(&page.stdout).starts_with("# n-plus-one\n"), "{}", text(&page.stdout));
    let trap = bench.run(&["diagnose", "--explain", "clock-skew"]);
    assert!(text(&trap.stdout).starts_with("## clock-skew\n"), "{}", text(&trap.stdout));
    let unknown = bench.run(&["diagnose", "--explain", "n-plus-on"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown.stderr).contains("did you mean `n-plus-one`?"), "{}", text(&unknown.stderr));
    let thresholds = bench.run(&["diagnose", "--thresholds"]);
    assert!(text(&thresholds.stdout).contains("n_plus_one_queries = 5\n"), "{}", text(&thresholds.stdout));
}
