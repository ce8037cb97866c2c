//! Measures what keeping spans costs: CPU time for each span that came by OTLP/HTTP, bytes of the file for each span,
//! and the time of queries through the views.
//!
//! `cargo run --release -p narrows-telemetry --example ingest -- [SPANS] [FILE]`, one million spans and a temporary file
//! without arguments. Four services, each with its own connection, send batches of 512 spans of traces of ten: three
//! server spans, two client spans between services, four database calls, one internal span, with 6 to 12 attributes
//! each, among them ports, paths, charges and ids that differ from span to span. Only the threads that receive and write
//! are counted, not those that make and send the batches. Not here: comparing with other programs.

#![allow(clippy::unwrap_used, reason = "a measurement that cannot go on should end")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use narrows_model::run::{Environment, Run, RunState, Trial, TrialState, Validity, Verdict, Window, WindowKind};
use narrows_telemetry::otlp::{Receiver, Weights};
use narrows_telemetry::run_file::{Reader, RunFile, TraceLimit};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value::Value};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status, span::SpanKind};
use prost::Message;
use rusqlite::Connection;

/// 2026-11-21T12:00:00Z.
const T0: u64 = 1_795_262_400_000_000_000;
/// Between two traces: 2,000 a second.
const TRACE_STEP_NS: u64 = 500_000;
const SPANS_PER_TRACE: u64 = 10;
const BATCH: usize = 512;
const SERVICES: [&str; 4] = ["gateway", "orders", "billing", "shipping"];
const ROUTES: [&str; 4] = ["/api/orders/{id}", "/api/customers/{id}/orders", "/api/invoices/{id}", "/api/parcels/{id}"];

fn main() {
    let mut arguments = std::env::args().skip(1);
    let spans: u64 = arguments.next().map_or(1_000_000, |text| text.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let path = arguments.next().map_or_else(|| folder.path().join("ingest.narrows"), PathBuf::from);
    ingest(&path, spans / SPANS_PER_TRACE);
    query(&path);
    read(&path);
}

fn say(line: &str) {
    std::io::stdout().write_all(format!("{line}\n").as_bytes()).unwrap();
}

fn ingest(path: &Path, traces: u64) {
    let file = RunFile::create(path, &run()).unwrap();
    let recorder = file.recorder();
    recorder.put_trial(&trial()).unwrap();
    recorder.put_windows(1, &[window(traces)]).unwrap();
    recorder.set_trial(Some(1));
    let receiver = Receiver::start(&["127.0.0.1:0".parse().unwrap()], Arc::new(recorder), Weights::new()).unwrap();
    let address = receiver.local_addr();
    let (begun, before) = (Instant::now(), cpu_time());
    let sent: u64 = std::thread::scope(|scope| {
        let senders: Vec<_> =
            (0..SERVICES.len()).map(|service| scope.spawn(move || send(address, service, traces))).collect();
        senders.into_iter().map(|sender| sender.join().unwrap()).sum()
    });
    let (took, cpu) = (begun.elapsed(), cpu_time());
    let used: Vec<Duration> = cpu.iter().zip(before).map(|(after, before)| *after - before).collect();
    let core_seconds = used.iter().sum::<Duration>().as_secs_f64();
    let stats = receiver.stop();
    let peak = memory_peak_mib();
    say(&format!("spans received                 {:>12}", stats.spans));
    say(&format!("spans per second (wall clock)  {:>12.0}", sent as f64 / took.as_secs_f64()));
    say(&format!("spans per core-second          {:>12.0}", sent as f64 / core_seconds));
    say(&format!("  receiving, us per span       {:>12.2}", used[0].as_secs_f64() * 1e6 / sent as f64));
    say(&format!("  writing, us per span         {:>12.2}", used[1].as_secs_f64() * 1e6 / sent as f64));
    say(&format!("peak memory, MiB               {peak:>12}"));
    let ending = Instant::now();
    file.finish(RunState::Complete).unwrap();
    say(&format!("finishing the file, s          {:>12.2}", ending.elapsed().as_secs_f64()));
    let bytes = std::fs::metadata(path).unwrap().len();
    say(&format!("bytes of file per span         {:>12.1}", bytes as f64 / sent as f64));
}

fn query(path: &Path) {
    let connection = Connection::open(path).unwrap();
    let has_ns = connection.prepare("SELECT timestamp_ns FROM requests").is_ok();
    let (column, from, to) = match has_ns {
        true => ("timestamp_ns", (T0 + 5_000_000_000).to_string(), (T0 + 35_000_000_000).to_string()),
        false => ("timestamp", "'2026-11-21T12:00:05'".to_owned(), "'2026-11-21T12:00:35'".to_owned()),
    };
    let sums = format!(
        "SELECT (SELECT sum(itemCount) FROM requests WHERE success = 1 AND name = 'GET /api/orders/{{id}}' \
         AND {column} BETWEEN {from} AND {to}), (SELECT sum(itemCount) FROM dependencies \
         WHERE type IN ('azure.cosmosdb', 'Azure DocumentDB') AND {column} BETWEEN {from} AND {to})"
    );
    let means = "SELECT name, count(*), avg(duration) FROM requests GROUP BY name ORDER BY 2 DESC".to_owned();
    let attribute =
        "SELECT sum(weight) FROM spans WHERE json_extract(attributes, '$.\"enduser.id\"') = '17'".to_owned();
    for (what, sql) in [("requests and dependencies", sums), ("means by name", means), ("an attribute", attribute)] {
        let begun = Instant::now();
        let row: (Option<rusqlite::types::Value>, Option<rusqlite::types::Value>) = connection
            .query_row(&sql, [], |row| {
                Ok((row.get(0)?, if row.as_ref().column_count() > 1 { row.get(1)? } else { None }))
            })
            .unwrap();
        say(&format!("query: {what:<24}{:>11.3} s  {row:?}", begun.elapsed().as_secs_f64()));
    }
}

fn read(path: &Path) {
    let begun = Instant::now();
    let evidence = Reader::open(path).unwrap().evidence(TraceLimit::default()).unwrap();
    say(&format!("reading the evidence, s        {:>12.2}", begun.elapsed().as_secs_f64()));
    say(&format!("spans in the file              {:>12}", evidence.trials[0].spans_total));
}

/// CPU time of the threads that receive and of the one that writes.
fn cpu_time() -> [Duration; 2] {
    let mut times = [Duration::ZERO; 2];
    for task in std::fs::read_dir("/proc/self/task").unwrap() {
        let task = task.unwrap().path();
        let name = std::fs::read_to_string(task.join("comm")).unwrap();
        let ns = std::fs::read_to_string(task.join("schedstat")).unwrap();
        let ns = ns.split(' ').next().unwrap().parse().unwrap();
        match name.trim() {
            name if name.starts_with("otlp-") => times[0] += Duration::from_nanos(ns),
            "run-file" => times[1] += Duration::from_nanos(ns),
            _ => {}
        }
    }
    times
}

fn memory_peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
}

/// Sends all spans of one service, and says how many.
fn send(address: SocketAddr, service: usize, traces: u64) -> u64 {
    let mut stream = TcpStream::connect(address).unwrap();
    let mut answers = BufReader::new(stream.try_clone().unwrap());
    let mut batch = Vec::with_capacity(BATCH + SPANS_PER_TRACE as usize);
    let mut sent = 0;
    for number in 0..traces {
        spans_of(service, number, &mut batch);
        if batch.len() >= BATCH || number + 1 == traces {
            let rest = batch.split_off(batch.len().min(BATCH));
            sent += batch.len() as u64;
            post(&mut stream, &mut answers, address, &request(service, std::mem::replace(&mut batch, rest)));
        }
    }
    if !batch.is_empty() {
        sent += batch.len() as u64;
        post(&mut stream, &mut answers, address, &request(service, batch));
    }
    sent
}

fn post(stream: &mut TcpStream, answers: &mut BufReader<TcpStream>, address: SocketAddr, body: &[u8]) {
    let head = format!(
        "POST /v1/traces HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/x-protobuf\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body).unwrap();
    let (mut line, mut length) = (String::new(), 0);
    answers.read_line(&mut line).unwrap();
    assert!(line.starts_with("HTTP/1.1 200"), "{line}");
    while line != "\r\n" {
        line.clear();
        answers.read_line(&mut line).unwrap();
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    answers.read_exact(&mut vec![0; length]).unwrap();
}

fn request(service: usize, spans: Vec<Span>) -> Vec<u8> {
    let resource = Resource { attributes: vec![text("service.name", SERVICES[service])], ..Resource::default() };
    let scope = InstrumentationScope { name: "io.opentelemetry.example".into(), ..InstrumentationScope::default() };
    let scope_spans = vec![ScopeSpans { scope: Some(scope), spans, ..ScopeSpans::default() }];
    let resource_spans = vec![ResourceSpans { resource: Some(resource), scope_spans, ..ResourceSpans::default() }];
    ExportTraceServiceRequest { resource_spans }.encode_to_vec()
}

/// The spans of one trace that one service sends: 4 of the gateway, 3, 2 and 1 of those it calls.
fn spans_of(service: usize, trace: u64, spans: &mut Vec<Span>) {
    let at = |span: u64, parent: Option<u64>, kind, name: String, attributes| {
        let start = T0 + trace * TRACE_STEP_NS + span * 700_000 + mixed(trace * 16 + span) % 90_000;
        let failed = mixed(trace).is_multiple_of(100) && span < 2;
        Span {
            trace_id: [mixed(trace).to_be_bytes(), mixed(trace ^ 0xabcd).to_be_bytes()].concat(),
            span_id: mixed(trace * 16 + span + 1).to_be_bytes().to_vec(),
            parent_span_id: parent.map_or(vec![], |parent| mixed(trace * 16 + parent + 1).to_be_bytes().to_vec()),
            name,
            kind: kind as i32,
            start_time_unix_nano: start,
            end_time_unix_nano: start + 3_000_000 + mixed(trace * 31 + span) % 40_000_000,
            attributes,
            status: failed.then(|| Status { code: 2, message: String::new() }),
            ..Span::default()
        }
    };
    let route = ROUTES[(mixed(trace) % 4) as usize];
    match service {
        0 => {
            spans.push(at(0, None, SpanKind::Server, format!("GET {route}"), answered(trace, route, "gateway", 8080)));
            spans.push(at(1, Some(0), SpanKind::Client, "GET".into(), called(trace, "orders", 8081)));
            spans.push(at(5, Some(0), SpanKind::Client, "GET".into(), called(trace, "billing", 8082)));
            spans.push(at(2, Some(0), SpanKind::Internal, "Pricing.apply".into(), within(trace)));
        }
        1 => {
            let name = "GET /orders/{id}";
            spans.push(at(3, Some(1), SpanKind::Server, name.into(), answered(trace, "/orders/{id}", "orders", 8081)));
            spans.push(at(4, Some(3), SpanKind::Client, "query orders".into(), queried(trace, "orders")));
            spans.push(at(6, Some(3), SpanKind::Client, "query items".into(), queried(trace + 7, "items")));
        }
        2 => {
            let name = "GET /invoices/{id}";
            let attributes = answered(trace, "/invoices/{id}", "billing", 8082);
            spans.push(at(7, Some(5), SpanKind::Server, name.into(), attributes));
            spans.push(at(8, Some(7), SpanKind::Client, "query invoices".into(), queried(trace + 13, "invoices")));
        }
        _ => spans.push(at(9, Some(0), SpanKind::Client, "query parcels".into(), queried(trace + 29, "parcels"))),
    }
}

fn answered(trace: u64, route: &str, host: &str, port: i64) -> Vec<KeyValue> {
    let id = mixed(trace + 3) % 50_000;
    vec![
        text("http.request.method", "GET"),
        text("url.scheme", "http"),
        text("url.path", &route.replace("{id}", &id.to_string())),
        text("http.route", route),
        number("http.response.status_code", if mixed(trace).is_multiple_of(100) { 500 } else { 200 }),
        text("server.address", host),
        number("server.port", port),
        text("network.peer.address", "10.0.3.17"),
        number("network.peer.port", 32_768 + (mixed(trace * 5) % 28_000) as i64),
        text("network.protocol.version", "1.1"),
        text("user_agent.original", "narrows/0.1.0"),
        text("enduser.id", &(id % 500).to_string()),
    ]
}

fn called(trace: u64, host: &str, port: i64) -> Vec<KeyValue> {
    vec![
        text("http.request.method", "GET"),
        text("url.full", &format!("http://{host}:{port}/{host}/{}", mixed(trace + 3) % 50_000)),
        number("http.response.status_code", 200),
        text("server.address", host),
        number("server.port", port),
        number("network.peer.port", 32_768 + (mixed(trace * 7) % 28_000) as i64),
        text("network.protocol.version", "1.1"),
    ]
}

fn queried(trace: u64, container: &str) -> Vec<KeyValue> {
    vec![
        text("db.system.name", "azure.cosmosdb"),
        text("db.namespace", "shop"),
        text("db.collection.name", container),
        text("db.operation.name", "query"),
        text("db.query.text", &format!("SELECT * FROM c WHERE c.{container}Id = @id ORDER BY c.created")),
        text("db.response.status_code", if mixed(trace).is_multiple_of(50) { "429" } else { "200" }),
        double("azure.cosmosdb.operation.request_charge", 2.0 + (mixed(trace) % 600) as f64 / 100.0),
        text("server.address", "docstore"),
        number("server.port", 8_500),
        number("network.peer.port", 8_500 + (mixed(trace * 3) % 16) as i64),
    ]
}

fn within(trace: u64) -> Vec<KeyValue> {
    vec![
        text("code.function.name", "Pricing.apply"),
        text("code.file.path", "src/pricing.ts"),
        number("code.line.number", 118),
        number("thread.id", 1 + (mixed(trace) % 16) as i64),
        text("thread.name", &format!("worker-{}", 1 + mixed(trace) % 16)),
        text("order.id", &format!("o-{:06}", mixed(trace + 3) % 1_000_000)),
    ]
}

fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}

fn text(key: &str, value: &str) -> KeyValue {
    attribute(key, Value::StringValue(value.to_owned()))
}

fn number(key: &str, value: i64) -> KeyValue {
    attribute(key, Value::IntValue(value))
}

fn double(key: &str, value: f64) -> KeyValue {
    attribute(key, Value::DoubleValue(value))
}

/// The finaliser of SplitMix64: numbers that count up become as good as random, and the same each time.
fn mixed(number: u64) -> u64 {
    let mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

fn run() -> Run {
    Run {
        id: "00112233445566ff".into(),
        experiment: "ingest".into(),
        narrows_version: env!("CARGO_PKG_VERSION").into(),
        started_ns: T0 as i64,
        ended_ns: None,
        state: RunState::Running,
        seed: 1,
        time_scale: 1.0,
        repetitions: 1,
        experiment_source: String::new(),
        environment: Environment { kernel: String::new(), cpu_model: String::new(), cores: 2, memory_bytes: 0 },
    }
}

/// One window over all traces.
fn window(traces: u64) -> Window {
    Window {
        index: 0,
        kind: WindowKind::Steady,
        label: "all".into(),
        start_ns: T0 as i64,
        end_ns: (T0 + (traces + 1) * TRACE_STEP_NS) as i64,
        vus: 1,
        rate: None,
    }
}

fn trial() -> Trial {
    Trial {
        id: 1,
        variant: "only".into(),
        repetition: 1,
        state: TrialState::Running,
        started_ns: Some(T0 as i64),
        ended_ns: None,
        parameters: std::collections::BTreeMap::new(),
        validity: Validity { verdict: Verdict::Valid, reasons: vec![] },
        error: None,
        caveats: vec![],
    }
}
