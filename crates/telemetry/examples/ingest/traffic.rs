//! The traffic: traces of ten spans of four services, the same each time.

use narrows_model::run::{Environment, Run, RunState, Trial, TrialState, Validity, Verdict, Window, WindowKind};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value::Value};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status, span::SpanKind};
use prost::Message;

/// 2026-11-21T12:00:00Z.
pub(crate) const T0: u64 = 1_795_262_400_000_000_000;
pub(crate) const SPANS_PER_TRACE: u64 = 10;
pub(crate) const SERVICES: [&str; 4] = ["gateway", "orders", "billing", "shipping"];
/// Between two traces: 2,000 a second.
const TRACE_STEP_NS: u64 = 500_000;
const BATCH: usize = 512;
const ROUTES: [&str; 4] = ["/api/orders/{id}", "/api/customers/{id}/orders", "/api/invoices/{id}", "/api/parcels/{id}"];

/// Calls `post` for each request of one service with the number of its spans and its body.
pub(crate) fn requests_of(service: usize, traces: u64, mut post: impl FnMut(usize, &[u8])) {
    let mut batch = Vec::with_capacity(BATCH + SPANS_PER_TRACE as usize);
    for number in 0..traces {
        spans_of(service, number, &mut batch);
        if batch.len() >= BATCH || number + 1 == traces {
            let rest = batch.split_off(batch.len().min(BATCH));
            post(batch.len(), &request(service, std::mem::replace(&mut batch, rest)));
        }
    }
    if !batch.is_empty() {
        post(batch.len(), &request(service, batch));
    }
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
            spans.push(at(0, None, SpanKind::Server, format!("GET {route}"), handled(trace, route, "gateway", 8080)));
            spans.push(at(1, Some(0), SpanKind::Client, "GET".into(), called(trace, "orders", 8081)));
            spans.push(at(5, Some(0), SpanKind::Client, "GET".into(), called(trace, "billing", 8082)));
            spans.push(at(2, Some(0), SpanKind::Internal, "Pricing.apply".into(), within(trace)));
        }
        1 => {
            let name = "GET /orders/{id}";
            spans.push(at(3, Some(1), SpanKind::Server, name.into(), handled(trace, "/orders/{id}", "orders", 8081)));
            spans.push(at(4, Some(3), SpanKind::Client, "query orders".into(), queried(trace, "orders")));
            spans.push(at(6, Some(3), SpanKind::Client, "query items".into(), queried(trace + 7, "items")));
        }
        2 => {
            let name = "GET /invoices/{id}";
            let attributes = handled(trace, "/invoices/{id}", "billing", 8082);
            spans.push(at(7, Some(5), SpanKind::Server, name.into(), attributes));
            spans.push(at(8, Some(7), SpanKind::Client, "query invoices".into(), queried(trace + 13, "invoices")));
        }
        _ => spans.push(at(9, Some(0), SpanKind::Client, "query parcels".into(), queried(trace + 29, "parcels"))),
    }
}

fn handled(trace: u64, route: &str, host: &str, port: i64) -> Vec<KeyValue> {
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

pub(crate) fn run() -> Run {
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
pub(crate) fn window(traces: u64) -> Window {
    Window {
        index: 0,
        kind: WindowKind::Steady,
        label: "all".into(),
        start_ns: T0 as i64,
        end_ns: (T0 + (traces + 1) * TRACE_STEP_NS) as i64,
        drained_ns: None,
        vus: 1,
        rate: None,
    }
}

pub(crate) fn trial() -> Trial {
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
        load_program: None,
    }
}
