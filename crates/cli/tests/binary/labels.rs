//! `narrows diff` on one system whose spans are labelled as different tracers label them: the same services, operations
//! and findings come out.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::common::{Bench, text};

const START_US: i64 = 1_700_000_000_000_000;
const REQUESTS: i64 = 60;
/// Calls of a request to the stock, and queries of one to the cart.
const STOCK_CALLS: i64 = 6;
const CART_QUERIES: i64 = 11;

/// Makes spans in Zipkin's JSON.
#[derive(Default)]
struct Spans(Vec<Value>);

impl Spans {
    /// Adds a span of a trace. Returns its id.
    fn add(&mut self, trace: i64, parent: Option<&str>, kind: &str, service: &str, name: &str) -> String {
        let id = format!("{:016x}", self.0.len() + 1);
        let tags = match kind {
            "SERVER" => json!({ "http.method": "GET", "http.route": name.trim_start_matches("GET ") }),
            _ => json!({}),
        };
        self.0.push(json!({ "traceId": format!("{:032x}", trace + 1), "id": id, "parentId": parent, "kind": kind,
            "name": name, "localEndpoint": { "serviceName": service }, "tags": tags }));
        id
    }

    /// Sets the time of the span with an id.
    fn time(&mut self, id: &str, start_us: i64, length_us: i64) {
        let span = self.0.iter_mut().rfind(|span| span["id"] == id).unwrap();
        (span["timestamp"], span["duration"]) = (json!(start_us), json!(length_us));
    }
}

/// Front calls the stock six times and the cart once, which makes eleven queries.
fn side(stock_us: i64) -> Vec<Value> {
    let mut spans = Spans::default();
    for trace in 0..REQUESTS {
        let start_us = START_US + trace * 100_000;
        let front = spans.add(trace, None, "SERVER", "front", "GET /home");
        let mut now_us = start_us + 1_000 + trace % 7 * 50;
        for callee in std::iter::repeat_n("stock", STOCK_CALLS as usize).chain(["cart"]) {
            let call = spans.add(trace, Some(&front), "CLIENT", "front", "GET");
            let url = format!("http://{callee}:8080/{callee}");
            let last = spans.0.last_mut().unwrap();
            last["tags"] = json!({ "http.method": "GET", "http.url": url });
            last["remoteEndpoint"] = json!({ "serviceName": callee });
            let handled = spans.add(trace, Some(&call), "SERVER", callee, &format!("GET /{callee}"));
            let length_us = if callee == "stock" { stock_us } else { 1_000 * CART_QUERIES + 1_000 };
            for query in 0..CART_QUERIES * i64::from(callee == "cart") {
                let table = if query == 0 { "carts" } else { "items" };
                let id = spans.add(trace, Some(&handled), "CLIENT", callee, "SELECT");
                let statement = format!("SELECT * FROM {table} WHERE id = {query}");
                spans.0.last_mut().unwrap()["tags"] = json!({ "db.system": "mysql", "db.statement": statement });
                spans.time(&id, now_us + 700 + query * 1_000, 900);
            }
            spans.time(&handled, now_us + 100, length_us);
            spans.time(&call, now_us, length_us + 200);
            now_us += length_us + 300;
        }
        spans.time(&front, start_us, now_us + 1_000 - start_us);
    }
    spans.0
}

fn unchanged(spans: Vec<Value>) -> Value {
    json!(spans)
}

/// Both sides of a call with one id.
fn shared(mut spans: Vec<Value>) -> Value {
    let parents: HashMap<String, Value> =
        spans.iter().map(|span| (span["id"].as_str().unwrap().to_owned(), span["parentId"].clone())).collect();
    let calls: HashMap<String, String> = spans
        .iter()
        .filter(|span| span["kind"] == "SERVER")
        .filter_map(|span| Some((span["id"].as_str()?.to_owned(), span["parentId"].as_str()?.to_owned())))
        .collect();
    let shared_id = |id: &Value| id.as_str().map(|id| calls.get(id).cloned().unwrap_or_else(|| id.to_owned()));
    for span in &mut spans {
        let call = span["id"].as_str().and_then(|id| calls.get(id)).cloned();
        let parent = call.as_ref().map_or(&span["parentId"], |call| &parents[call]);
        span["parentId"] = json!(shared_id(parent));
        if let Some(call) = call {
            (span["id"], span["shared"]) = (json!(call), json!(true));
        }
    }
    json!(spans)
}

fn without_kinds(mut spans: Vec<Value>) -> Value {
    spans.iter_mut().for_each(|span| span["kind"] = Value::Null);
    json!(spans)
}

fn shared_without_kinds(spans: Vec<Value>) -> Value {
    let Value::Array(mut spans) = shared(spans) else { unreachable!() };
    spans.iter_mut().for_each(|span| span["shared"] = Value::Null);
    without_kinds(spans)
}

/// The calls of a service in the name of its client.
fn of_clients(mut spans: Vec<Value>) -> Value {
    for span in spans.iter_mut().filter(|span| span["kind"] == "CLIENT") {
        let service = format!("{}-client", span["localEndpoint"]["serviceName"].as_str().unwrap());
        span["localEndpoint"]["serviceName"] = json!(service);
    }
    json!(spans)
}

fn of_clients_without_kinds(spans: Vec<Value>) -> Value {
    let Value::Array(spans) = of_clients(spans) else { unreachable!() };
    without_kinds(spans)
}

/// Spans that a program made itself, all of them internal, which Zipkin has no word for.
fn internal(spans: Vec<Value>) -> Value {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let resource_spans = spans.iter().map(|span| {
        let ns = |us: i64| (us * 1_000).to_string();
        let (start_us, length_us) = (span["timestamp"].as_i64().unwrap(), span["duration"].as_i64().unwrap());
        let tags = span["tags"].as_object().unwrap().iter();
        let peer =
            span["remoteEndpoint"]["serviceName"].as_str().map(|peer| ("peer.service".to_owned(), peer.to_owned()));
        let tags = tags.map(|(key, value)| (key.clone(), text(value))).chain(peer);
        let attributes: Vec<Value> =
            tags.map(|(key, value)| json!({ "key": key, "value": { "stringValue": value } })).collect();
        let service =
            json!({ "key": "service.name", "value": { "stringValue": span["localEndpoint"]["serviceName"] } });
        let mut read = json!({ "traceId": span["traceId"], "spanId": span["id"], "name": span["name"], "kind": 1,
            "startTimeUnixNano": ns(start_us), "endTimeUnixNano": ns(start_us + length_us), "attributes": attributes });
        if span["parentId"].is_string() {
            read["parentSpanId"] = span["parentId"].clone();
        }
        json!({ "resource": { "attributes": [service] }, "scopeSpans": [{ "spans": [read] }] })
    });
    json!({ "resourceSpans": resource_spans.collect::<Vec<_>>() })
}

/// Services, operations and findings of a diff.
fn diff(bench: &Bench, label: fn(Vec<Value>) -> Value) -> Value {
    for (name, stock_us) in [("before", 2_000), ("after", 8_000)] {
        let (file, run) = (format!("{name}.json"), format!("{name}.narrows"));
        std::fs::write(bench.path(&file), label(side(stock_us)).to_string()).unwrap();
        let _ = std::fs::remove_file(bench.path(&run));
        let import = bench.run(&["import", &file, "--out", &run]);
        assert!(import.status.success(), "{}", text(&import.stderr));
    }
    let diff = bench.run(&["diff", "before.narrows", "after.narrows", "--json"]);
    assert!(diff.status.success(), "{}", text(&diff.stderr));
    let diff: Value = serde_json::from_slice(&diff.stdout).unwrap();
    let causes = |finding: &Value| {
        let one = if finding["after"].is_null() { &finding["before"] } else { &finding["after"] };
        json!([finding["fate"], one["detector"], one["resource"], one["operation"], one["cost_share"]])
    };
    let findings: Vec<Value> = diff["findings"].as_array().unwrap().iter().map(causes).collect();
    json!({ "services": diff["services"], "operations": diff["operations"], "findings": findings })
}

/// Spans as one kind of tracer sends them.
type Labelling = fn(Vec<Value>) -> Value;

#[test]
fn labels_of_spans_make_no_difference() {
    let bench = Bench::new("");
    let expected = diff(&bench, unchanged);
    assert_eq!(
        (&expected["services"][0]["service"], &expected["services"][0]["role"]),
        (&json!("stock"), &json!("slower"))
    );
    assert!(expected["findings"].as_array().unwrap().len() >= 2, "{expected:#}");
    let labels: [(&str, Labelling); 6] = [
        ("both sides share an id", shared),
        ("no span has a kind", without_kinds),
        ("both sides share an id, and no span has a kind", shared_without_kinds),
        ("calls have a service of their own", of_clients),
        ("calls have a service of their own, and no span has a kind", of_clients_without_kinds),
        ("all spans are internal", internal),
    ];
    for (label, spans) in labels {
        assert_eq!(diff(&bench, spans), expected, "{label}");
    }
}
