//! From the model's nouns to OTLP's messages: what is handed to another receiver.
//!
//! Records are grouped by who sent them. What a run file does not know is not made up: metrics are gauges, whatever they
//! came as, and a histogram is its count and its sum. A span that stands for several says so in `tracestate`, as
//! OpenTelemetry's consistent probability sampling has it.

use std::collections::BTreeMap;

use narrows_model::series::{LogLine, LogStream, Point, SeriesKey};
use narrows_model::trace::Span;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse};
use opentelemetry_proto::tonic::common::v1::{
    AnyValue, ArrayValue, InstrumentationScope, KeyValue, KeyValueList, any_value,
};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::metrics::v1 as metrics;
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1 as trace;
use prost::Message;
use serde_json::{Map, Value};

use super::numbers::{kind_number, status_number};
use super::rpc::Status;

/// The attribute of a resource that says which trial a record comes from.
pub(crate) const TRIAL: &str = "narrows.trial";

/// An `ExportTraceServiceRequest`.
pub(crate) fn spans(spans: Vec<Span>, trial: &str) -> Vec<u8> {
    let mut groups: BTreeMap<String, BTreeMap<String, Vec<trace::Span>>> = BTreeMap::new();
    for span in spans {
        let (service, scope) = (span.service.clone(), span.scope.clone());
        groups.entry(service).or_default().entry(scope).or_default().push(span_message(span));
    }
    let resource_spans = groups.into_iter().map(|(service, scopes)| trace::ResourceSpans {
        resource: Some(resource(&service, 0, trial)),
        scope_spans: scopes
            .into_iter()
            .map(|(name, spans)| trace::ScopeSpans { scope: scope(name), spans, ..Default::default() })
            .collect(),
        ..Default::default()
    });
    ExportTraceServiceRequest { resource_spans: resource_spans.collect() }.encode_to_vec()
}

/// An `ExportMetricsServiceRequest`.
pub(crate) fn points(points: Vec<(SeriesKey, Point)>, trial: &str) -> Vec<u8> {
    type Metrics = BTreeMap<(String, String), Vec<metrics::NumberDataPoint>>;
    let mut groups: BTreeMap<(String, u32), Metrics> = BTreeMap::new();
    for (key, point) in points {
        let SeriesKey { name, unit, service, replica, labels } = key;
        let attributes = labels.into_iter().map(|(label, value)| attribute(label, Value::String(value)));
        let data_point = metrics::NumberDataPoint {
            attributes: attributes.collect(),
            time_unix_nano: unsigned(point.time_ns),
            value: Some(metrics::number_data_point::Value::AsDouble(point.value)),
            ..Default::default()
        };
        groups.entry((service, replica)).or_default().entry((name, unit)).or_default().push(data_point);
    }
    let resource_metrics = groups.into_iter().map(|((service, replica), by_name)| metrics::ResourceMetrics {
        resource: Some(resource(&service, replica, trial)),
        scope_metrics: vec![metrics::ScopeMetrics {
            metrics: by_name.into_iter().map(|((name, unit), points)| gauge(name, unit, points)).collect(),
            ..Default::default()
        }],
        ..Default::default()
    });
    ExportMetricsServiceRequest { resource_metrics: resource_metrics.collect() }.encode_to_vec()
}

fn gauge(name: String, unit: String, data_points: Vec<metrics::NumberDataPoint>) -> metrics::Metric {
    let data = Some(metrics::metric::Data::Gauge(metrics::Gauge { data_points }));
    metrics::Metric { name, unit, data, ..Default::default() }
}

/// An `ExportLogsServiceRequest`.
pub(crate) fn logs(lines: Vec<LogLine>, trial: &str) -> Vec<u8> {
    let mut groups: BTreeMap<(String, u32), Vec<LogRecord>> = BTreeMap::new();
    for line in lines {
        let by = (line.service.clone(), line.replica);
        groups.entry(by).or_default().push(log_message(line));
    }
    let resource_logs = groups.into_iter().map(|((service, replica), log_records)| ResourceLogs {
        resource: Some(resource(&service, replica, trial)),
        scope_logs: vec![ScopeLogs { log_records, ..Default::default() }],
        ..Default::default()
    });
    ExportLogsServiceRequest { resource_logs: resource_logs.collect() }.encode_to_vec()
}

/// Rejected part of a request that was accepted, and why: the response messages of all signals are one on
/// the wire. What is no such message says nothing.
pub(crate) fn rejected(response: &[u8]) -> (u64, String) {
    let response = ExportTraceServiceResponse::decode(response).unwrap_or_default();
    let partial = response.partial_success.unwrap_or_default();
    (u64::try_from(partial.rejected_spans).unwrap_or(0), partial.error_message)
}

/// The message of a response that refuses a request; empty when it is no `google.rpc.Status`.
pub(crate) fn refusal(response: &[u8]) -> String {
    Status::decode(response).map(|status| status.message).unwrap_or_default()
}

fn span_message(span: Span) -> trace::Span {
    trace::Span {
        trace_id: span.trace_id.to_vec(),
        span_id: span.span_id.to_vec(),
        parent_span_id: span.parent_id.map(|id| id.to_vec()).unwrap_or_default(),
        trace_state: trace_state(span.weight),
        name: span.name,
        kind: kind_number(span.kind) as i32,
        start_time_unix_nano: unsigned(span.start_ns),
        end_time_unix_nano: unsigned(span.end_ns),
        attributes: attributes(span.attributes),
        status: Some(trace::Status { code: status_number(span.status) as i32, message: span.status_message }),
        ..Default::default()
    }
}

fn log_message(line: LogLine) -> LogRecord {
    let stream = match line.stream {
        LogStream::Otlp => None,
        stream => Some(attribute("log.iostream".to_owned(), Value::from(stream.as_str()))),
    };
    LogRecord {
        time_unix_nano: unsigned(line.time_ns),
        severity_text: line.severity,
        body: Some(any(Value::String(line.text))),
        trace_id: line.trace_id.map(|id| id.to_vec()).unwrap_or_default(),
        attributes: stream.into_iter().collect(),
        ..Default::default()
    }
}

fn resource(service: &str, replica: u32, trial: &str) -> Resource {
    let mut of = vec![("service.name", Value::from(service)), (TRIAL, Value::from(trial))];
    if replica > 0 {
        of.push(("narrows.replica", Value::from(replica)));
    }
    let attributes = of.into_iter().map(|(name, value)| attribute(name.to_owned(), value)).collect();
    Resource { attributes, ..Default::default() }
}

fn scope(name: String) -> Option<InstrumentationScope> {
    (!name.is_empty()).then(|| InstrumentationScope { name, ..Default::default() })
}

/// The `tracestate` of a span that stands for `weight` spans: the threshold of the probability 1 ÷ `weight`, in units
/// of 2^-56, without trailing zeros. Empty for 1.
pub(crate) fn trace_state(weight: f64) -> String {
    const END: f64 = (1_u64 << 56) as f64;
    if !(weight > 1.0 && weight.is_finite()) {
        return String::new();
    }
    let threshold = (END - END / weight) as u64;
    let digits = format!("{:014x}", threshold.min((1 << 56) - 1));
    let digits = digits.trim_end_matches('0');
    format!("ot=th:{}", if digits.is_empty() { "0" } else { digits })
}

fn unsigned(ns: i64) -> u64 {
    u64::try_from(ns).unwrap_or(0)
}

fn attributes(map: Map<String, Value>) -> Vec<KeyValue> {
    map.into_iter().map(|(key, value)| attribute(key, value)).collect()
}

fn attribute(key: String, value: Value) -> KeyValue {
    KeyValue { key, value: Some(any(value)), ..Default::default() }
}

fn any(value: Value) -> AnyValue {
    use any_value::Value as Any;
    let value = match value {
        Value::Null => None,
        Value::Bool(value) => Some(Any::BoolValue(value)),
        Value::Number(number) => Some(match number.as_i64() {
            Some(whole) => Any::IntValue(whole),
            None => Any::DoubleValue(number.as_f64().unwrap_or(f64::NAN)),
        }),
        Value::String(text) => Some(Any::StringValue(text)),
        Value::Array(items) => Some(Any::ArrayValue(ArrayValue { values: items.into_iter().map(any).collect() })),
        Value::Object(fields) => Some(Any::KvlistValue(KeyValueList { values: attributes(fields) })),
    };
    AnyValue { value }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::otlp::Weights;

    #[test]
    fn a_weight_is_read_back_from_its_trace_state() {
        assert_eq!(trace_state(1.0), "");
        assert_eq!(trace_state(f64::INFINITY), "");
        assert_eq!(trace_state(2.0), "ot=th:8");
        for weight in [1.5, 3.0, 20.0, 1_000.0, 1e9] {
            let read = Weights::new().weigh(&[1; 16], &trace_state(weight));
            assert!((read / weight - 1.0).abs() < 1e-6, "{weight}: {read}");
        }
    }
}
