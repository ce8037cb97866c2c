//! Limits of a trial that come from its instrumentation: what its traces say other than what happened.

use serde::{Deserialize, Serialize};

use crate::finding::Exemplar;

/// Spans to look at, in one trace.
pub type SpanExample = Exemplar;

/// Traces that say how many requests they stand for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SampledTraces {
    /// Fewest requests that a trace stands for, at least 1.
    pub least: f64,
    /// Median.
    pub usual: f64,
    /// Most.
    pub most: f64,
    /// Spans left out because the run file neared its limit of size.
    pub thinned: u64,
    /// True if services or the load sample, so that the setting of a sampler keeps more.
    pub is_sampler: bool,
}

/// Spans that name a parent that is not in their trace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MissingParents {
    /// Spans whose parent is missing, at least 1.
    pub torn_spans: usize,
    /// All spans.
    pub spans: usize,
    /// Traces with such spans.
    pub torn_traces: usize,
    /// All traces.
    pub traces: usize,
    /// Services with most of these spans and how many each has, most first.
    pub services: Vec<(String, usize)>,
    /// True if spans were refused at a limit, which may be the cause.
    pub were_refused: bool,
    /// Example.
    pub example: SpanExample,
}

/// Spans that name themselves as their parents.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OwnParents {
    /// These spans, at least 1.
    pub own: usize,
    /// All spans.
    pub spans: usize,
    /// Service of the first.
    pub service: String,
    /// Name of the first span.
    pub span: String,
    /// Example.
    pub example: SpanExample,
}

/// Spans with the id of an earlier span of their trace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RepeatedIds {
    /// These spans, at least 1.
    pub repeated: usize,
    /// All spans.
    pub spans: usize,
    /// Service of the first.
    pub service: String,
    /// Library that reports the first; empty if it is not named.
    pub scope: String,
    /// Name of the first span.
    pub span: String,
    /// Example.
    pub example: SpanExample,
}

/// Traces of a service that hold no request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TracesWithoutRequest {
    /// Service that began the traces.
    pub service: String,
    /// Traces without a request, at least 1.
    pub requestless: usize,
    /// All traces.
    pub traces: usize,
    /// Names of their first spans and how many have each, most frequent first.
    pub roots: Vec<(String, usize)>,
    /// True if the service has server spans in other traces.
    pub has_server_spans: bool,
    /// Example.
    pub example: SpanExample,
}

/// An operation that may query a database that no span shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UnseenDatabaseCalls {
    /// Service of the operation.
    pub service: String,
    /// The operation.
    pub operation: String,
    /// Another operation of the service, which has database spans.
    pub other_operation: Option<String>,
    /// Metric of a database client that the service reports.
    pub metric: Option<String>,
    /// Requests looked at.
    pub requests: usize,
    /// Latency, nanoseconds, median.
    pub latency_ns: f64,
    /// Time under no span, nanoseconds, median.
    pub gap_ns: f64,
    /// CPU time of a request, nanoseconds; `None` if it is not known.
    pub cpu_ns: Option<f64>,
    /// Example.
    pub example: SpanExample,
}

/// Clocks of two services that differ.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DifferentClocks {
    /// The service that calls.
    pub caller: String,
    /// The service that is called.
    pub callee: String,
    /// Time by which the callee's clock is ahead, nanoseconds; below 0 if it is behind.
    pub ahead_ns: f64,
    /// Median distance of single calls from that, nanoseconds.
    pub spread_ns: f64,
    /// Calls looked at.
    pub calls: usize,
    /// Calls whose handling lies outside them.
    pub impossible: usize,
    /// Example.
    pub example: SpanExample,
}

/// Spans that end before they begin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NegativeDurations {
    /// Service.
    pub service: String,
    /// These spans, at least 1.
    pub negative: usize,
    /// Those of them without an end.
    pub never_ended: usize,
    /// All spans of the service.
    pub spans: usize,
    /// Library that reports the example; empty if it is not named.
    pub scope: String,
    /// Name of the example.
    pub span: String,
    /// Example.
    pub example: SpanExample,
}

/// Calls and requests that take no time at all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ZeroDurations {
    /// Service.
    pub service: String,
    /// Calls and requests that take no time, at least 1.
    pub zero: usize,
    /// All its calls and requests.
    pub calls: usize,
    /// True if all times of the service are whole milliseconds.
    pub is_clock_coarse: bool,
    /// Example.
    pub example: SpanExample,
}

/// Calls that go on for more than an hour after the request that made them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EndlessCalls {
    /// Service.
    pub service: String,
    /// These calls, at least 1.
    pub endless: usize,
    /// All its calls.
    pub calls: usize,
    /// Time of the longest, nanoseconds.
    pub longest_ns: f64,
    /// Library that reports the longest; empty if it is not named.
    pub scope: String,
    /// Name of the longest.
    pub span: String,
    /// Example.
    pub example: SpanExample,
}

/// Calls that two libraries report side by side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DoubledSpans {
    /// Service.
    pub service: String,
    /// Library whose spans are to stay.
    pub kept: String,
    /// Library whose spans are the doubles.
    pub double: String,
    /// Doubles, at least 1.
    pub doubles: usize,
    /// All spans of that library.
    pub spans: usize,
    /// Mean share of a double's time that lies within the other span, 0 to 1.
    pub overlap: f64,
    /// Example.
    pub example: SpanExample,
}

/// Calls that two libraries report, one span within the other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NestedDoubles {
    /// Service.
    pub service: String,
    /// Library of the outer spans.
    pub outer: String,
    /// Library of the inner spans.
    pub inner: String,
    /// Doubles, at least 1.
    pub doubles: usize,
    /// All spans of the outer library.
    pub spans: usize,
    /// Mean share of the outer span's time that the inner one takes, 0 to 1.
    pub inner_share: f64,
    /// Example.
    pub example: SpanExample,
}

/// Spans for connections taken from a pool, between the queries of a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PoolSpans {
    /// Service.
    pub service: String,
    /// Name of such a span.
    pub span: String,
    /// Requests looked at.
    pub requests: usize,
    /// Connections that a request takes, median.
    pub connections: f64,
    /// Queries of a request, median.
    pub queries: f64,
    /// Time that they take of a request, nanoseconds, median.
    pub time_ns: f64,
    /// Example.
    pub example: SpanExample,
}
