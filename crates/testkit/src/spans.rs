//! Traces as trees of spans, written the way one would draw them.
//!
//! Times are milliseconds from the start of the trace, not from the parent, because overlaps are what tests are about.
//! A child inherits its parent's service unless it names its own.
//!
//! ```
//! use narrows_testkit::spans::{Beat, query, run_of, server};
//!
//! let trace = server("shop", "GET /orders")
//!     .at(0.0, 60.0)
//!     .child(query("SELECT * FROM orders").at(1.0, 3.0))
//!     .children(run_of(10, Beat { first_ms: 5.0, step_ms: 5.0, length_ms: 3.0 }, |_| query("SELECT 1")))
//!     .trace(1);
//! assert_eq!(trace.spans.len(), 12);
//! ```

use narrows_model::trace::{Span, SpanFacts, SpanId, SpanKind, SpanStatus, Trace, TraceId};
use serde_json::{Map, Value};

use crate::TRIAL_START_NS;

/// A span and the spans below it, before ids and absolute times are given.
#[derive(Debug, Clone)]
pub struct SpanBuilder {
    service: String,
    scope: String,
    name: String,
    kind: SpanKind,
    start_ms: f64,
    length_ms: f64,
    status: SpanStatus,
    status_message: String,
    facts: SpanFacts,
    attributes: Map<String, Value>,
    children: Vec<SpanBuilder>,
}

/// When the spans of a run of equal spans happen.
#[derive(Debug, Clone, Copy)]
pub struct Beat {
    /// Start of the first.
    pub first_ms: f64,
    /// From one start to the next.
    pub step_ms: f64,
    /// Length of each.
    pub length_ms: f64,
}

/// The span of a service that handles `GET /orders`: method and route are read from the operation.
pub fn server(service: &str, operation: &str) -> SpanBuilder {
    let mut span = SpanBuilder::new(SpanKind::Server, operation);
    span.service = service.into();
    span.scope = "test.server".into();
    if let Some((method, route)) = operation.split_once(' ') {
        span.facts.http_method = Some(method.into());
        span.facts.http_route = Some(route.into());
        span.facts.http_status = Some(200);
    }
    span
}

/// A span within one process.
pub fn internal(name: &str) -> SpanBuilder {
    SpanBuilder::new(SpanKind::Internal, name)
}

/// A call to another service that is not a database.
pub fn client(name: &str) -> SpanBuilder {
    SpanBuilder::new(SpanKind::Client, name)
}

/// A PostgreSQL query from the scope `psycopg`.
pub fn query(text: &str) -> SpanBuilder {
    let mut span = database(text.split_whitespace().next().unwrap_or("query"));
    span.facts.db_query = Some(text.into());
    span
}

/// One attempt of a query against a document store that is cut into partitions.
pub fn document_query(text: &str, partition: &str) -> SpanBuilder {
    let mut span = SpanBuilder::new(SpanKind::Client, "query").scope("store").partition(partition);
    span.facts.db_system = Some("azure.cosmosdb".into());
    span.facts.db_query = Some(text.into());
    span.facts.db_status = Some("200".into());
    span
}

/// A database span without a query, such as `connect`.
pub fn database(name: &str) -> SpanBuilder {
    let mut span = SpanBuilder::new(SpanKind::Client, name);
    span.scope = "psycopg".into();
    span.facts.db_system = Some("postgresql".into());
    span
}

/// `count` spans on a beat; `span` is called for each in turn.
pub fn run_of(count: usize, beat: Beat, span: impl Fn(usize) -> SpanBuilder) -> Vec<SpanBuilder> {
    (0..count).map(|i| span(i).at(beat.first_ms + beat.step_ms * i as f64, beat.length_ms)).collect()
}

impl SpanBuilder {
    fn new(kind: SpanKind, name: &str) -> Self {
        Self {
            service: String::new(),
            scope: "test".into(),
            name: name.into(),
            kind,
            start_ms: 0.0,
            length_ms: 1.0,
            status: SpanStatus::Unset,
            status_message: String::new(),
            facts: SpanFacts::default(),
            attributes: Map::new(),
            children: Vec::new(),
        }
    }

    /// A span of any kind, for spans that the functions of this module do not make.
    pub fn of_kind(kind: SpanKind, name: &str) -> Self {
        Self::new(kind, name)
    }

    /// Another name than its constructor gave it.
    pub fn named(mut self, name: &str) -> Self {
        self.name = name.into();
        self
    }

    /// Sets what its attributes mean.
    pub fn facts(mut self, set: impl FnOnce(&mut SpanFacts)) -> Self {
        set(&mut self.facts);
        self
    }

    /// When it starts, from the start of the trace, and how long it lasts, in milliseconds.
    pub fn at(mut self, start_ms: f64, length_ms: f64) -> Self {
        self.start_ms = start_ms;
        self.length_ms = length_ms;
        self
    }

    /// The service, where it is not the parent's.
    pub fn service(mut self, service: &str) -> Self {
        self.service = service.into();
        self
    }

    /// The instrumentation library.
    pub fn scope(mut self, scope: &str) -> Self {
        self.scope = scope.into();
        self
    }

    /// An attribute as it came.
    pub fn attribute(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.attributes.insert(key.into(), value.into());
        self
    }

    /// The physical partition that the call went to.
    pub fn partition(mut self, partition: &str) -> Self {
        self.facts.db_partition = Some(partition.into());
        self
    }

    /// Sets the store's charge, in request units.
    pub fn charge(mut self, request_units: f64) -> Self {
        self.facts.db_charge = Some(request_units);
        self
    }

    /// Sets the number of returned rows.
    pub fn rows(mut self, rows: u64) -> Self {
        self.facts.db_rows = Some(rows);
        self
    }

    /// The address that an HTTP call went to, with `GET` as its method.
    pub fn url(mut self, url: &str) -> Self {
        self.facts.http_method = Some("GET".into());
        self.facts.url = Some(url.into());
        self
    }

    /// Sets the service and method of a gRPC call: `shop.v1.Cart` and `Add`.
    pub fn remote(mut self, service: &str, method: &str) -> Self {
        self.facts.rpc_system = Some("grpc".into());
        self.facts.rpc_service = Some(service.into());
        self.facts.rpc_method = Some(method.into());
        self
    }

    /// Refuses the attempt with status 429; `retry_after_ms` is the wait that the response requests, if it does.
    pub fn throttled(mut self, retry_after_ms: Option<f64>) -> Self {
        let is_database = self.facts.db_system.is_some();
        self.facts.db_status = is_database.then(|| "429".into());
        self.facts.http_status = (!is_database).then_some(429);
        self.facts.retry_after_ns = retry_after_ms.map(|ms| (ms * 1e6).round() as u64);
        self.failed()
    }

    /// Sets the number of this retry within its call, from 1.
    pub fn resent(mut self, count: u32) -> Self {
        self.facts.resend_count = Some(count);
        self
    }

    /// The port that the call went to.
    pub fn to_port(mut self, port: u16) -> Self {
        self.facts.server_port = Some(port);
        self
    }

    /// Marks it as gone wrong.
    pub fn failed(mut self) -> Self {
        self.status = SpanStatus::Error;
        self
    }

    /// Marks it as gone wrong, with this text in its status.
    pub fn failed_with(mut self, message: &str) -> Self {
        self.status_message = message.into();
        self.failed()
    }

    /// A span below this one.
    pub fn child(mut self, child: SpanBuilder) -> Self {
        self.children.push(child);
        self
    }

    /// Spans below this one.
    pub fn children(mut self, children: impl IntoIterator<Item = SpanBuilder>) -> Self {
        self.children.extend(children);
        self
    }

    /// The trace with this root, of weight 1. `number` makes its ids, and its start: 10 ms times `number` into the
    /// trial.
    pub fn trace(self, number: u32) -> Trace {
        self.weighted_trace(number, 1.0)
    }

    /// As [`Self::trace`], standing for `weight` traces.
    pub fn weighted_trace(self, number: u32, weight: f64) -> Trace {
        self.laid_out(number, weight, TRIAL_START_NS + i64::from(number) * 10_000_000)
    }

    /// As [`Self::trace`], but from this instant on.
    pub fn trace_from(self, number: u32, start_ns: i64) -> Trace {
        self.laid_out(number, 1.0, start_ns)
    }

    fn laid_out(self, number: u32, weight: f64, start_ns: i64) -> Trace {
        let mut trace_id = TraceId::default();
        trace_id[0] = 0x4e;
        trace_id[12..].copy_from_slice(&number.to_be_bytes());
        let mut lay = Layout { trace_id, start_ns, weight, number, spans: Vec::new() };
        lay.add(self, None, "");
        let mut spans = lay.spans;
        spans.sort_by_key(|span| span.start_ns);
        Trace { id: trace_id, spans, weight }
    }
}

struct Layout {
    trace_id: TraceId,
    start_ns: i64,
    weight: f64,
    number: u32,
    spans: Vec<Span>,
}

impl Layout {
    fn add(&mut self, node: SpanBuilder, parent_id: Option<SpanId>, parent_service: &str) {
        let mut span_id = SpanId::default();
        span_id[..4].copy_from_slice(&self.number.to_be_bytes());
        span_id[4..].copy_from_slice(&(self.spans.len() as u32 + 1).to_be_bytes());
        let service = if node.service.is_empty() { parent_service.to_owned() } else { node.service };
        let at_ns = |ms: f64| self.start_ns + (ms * 1e6).round() as i64;
        self.spans.push(Span {
            trace_id: self.trace_id,
            span_id,
            parent_id,
            service: service.clone(),
            scope: node.scope,
            name: node.name,
            kind: node.kind,
            start_ns: at_ns(node.start_ms),
            end_ns: at_ns(node.start_ms + node.length_ms),
            status: node.status,
            status_message: node.status_message,
            facts: node.facts,
            attributes: node.attributes,
            weight: self.weight,
        });
        for child in node.children {
            self.add(child, Some(span_id), &service);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_becomes_spans_in_order_of_start() {
        let trace = server("shop", "GET /orders")
            .at(0.0, 10.0)
            .child(client("late").at(5.0, 1.0))
            .child(internal("early").at(1.0, 2.0).child(query("SELECT 1").at(1.5, 0.5).service("other")))
            .trace(3);
        let names: Vec<_> = trace.spans.iter().map(|span| span.name.as_str()).collect();
        assert_eq!(names, ["GET /orders", "early", "SELECT", "late"]);
        assert_eq!(trace.spans[1].service, "shop");
        assert_eq!(trace.spans[2].service, "other");
        assert_eq!(trace.spans[2].parent_id, Some(trace.spans[1].span_id));
        assert_eq!(trace.spans[2].duration_ns(), 500_000);
        assert_eq!(trace.root().map(|span| span.name.as_str()), Some("GET /orders"));
    }
}
