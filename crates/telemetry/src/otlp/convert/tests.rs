//! Whole requests, from bytes to the model's nouns and from any bytes to a response.

use super::*;
use crate::otlp::{Format, Weights};
use narrows_model::load::Tracing;
use narrows_model::trace::{SpanKind, SpanStatus};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::metrics::v1 as metrics_v1;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status};
use prost::Message;

const T0: u64 = 1_700_000_000_000_000_000;

fn attribute(key: &str, value: any_value::Value) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}

fn text(key: &str, value: &str) -> KeyValue {
    attribute(key, any_value::Value::StringValue(value.to_owned()))
}

fn resource() -> Option<Resource> {
    let attributes = vec![text("service.name", "gateway"), attribute("narrows.replica", any_value::Value::IntValue(2))];
    Some(Resource { attributes, ..Resource::default() })
}

fn scope() -> Option<InstrumentationScope> {
    Some(InstrumentationScope { name: "lib".to_owned(), ..InstrumentationScope::default() })
}

fn span() -> Span {
    Span {
        trace_id: vec![1; 16],
        span_id: vec![2; 8],
        parent_span_id: vec![3; 8],
        name: "GET /".to_owned(),
        kind: 2,
        start_time_unix_nano: T0,
        end_time_unix_nano: T0 + 5,
        attributes: vec![text("http.method", "GET"), text("http.url", "http://h/?token=abc")],
        status: Some(Status { message: "no".to_owned(), code: 2 }),
        ..Span::default()
    }
}

fn traces(spans: Vec<Span>) -> Vec<u8> {
    let scope_spans = vec![ScopeSpans { scope: scope(), spans, ..ScopeSpans::default() }];
    let resource_spans = vec![ResourceSpans { resource: resource(), scope_spans, ..ResourceSpans::default() }];
    ExportTraceServiceRequest { resource_spans }.encode_to_vec()
}

fn metrics(data: metrics_v1::metric::Data) -> Vec<u8> {
    let metric =
        metrics_v1::Metric { name: "m".to_owned(), unit: "s".to_owned(), data: Some(data), ..Default::default() };
    let scope_metrics = vec![metrics_v1::ScopeMetrics { metrics: vec![metric], ..Default::default() }];
    let resource_metrics =
        vec![metrics_v1::ResourceMetrics { resource: resource(), scope_metrics, ..Default::default() }];
    ExportMetricsServiceRequest { resource_metrics }.encode_to_vec()
}

fn log_request(record: LogRecord) -> Vec<u8> {
    let scope_logs = vec![ScopeLogs { log_records: vec![record], ..ScopeLogs::default() }];
    ExportLogsServiceRequest { resource_logs: vec![ResourceLogs { scope_logs, ..ResourceLogs::default() }] }
        .encode_to_vec()
}

#[test]
fn a_span_arrives_whole() {
    let converted = spans(&traces(vec![span()]), Format::Protobuf, &Weights::new()).unwrap();
    let got = &converted.records[0];
    assert_eq!((got.service.as_str(), got.scope.as_str(), got.name.as_str()), ("gateway", "lib", "GET /"));
    assert_eq!((got.trace_id, got.span_id, got.parent_id), ([1; 16], [2; 8], Some([3; 8])));
    assert_eq!((got.kind, got.status, got.status_message.as_str()), (SpanKind::Server, SpanStatus::Error, "no"));
    assert_eq!((got.start_ns, got.duration_ns(), got.weight), (T0 as i64, 5, 1.0));
    assert_eq!(got.facts.http_method.as_deref(), Some("GET"));
    assert_eq!(got.attributes["http.url"], "http://h/?token=abc");
}

#[test]
fn spans_that_make_no_sense_are_left_out_and_counted() {
    let change = |edit: fn(&mut Span)| {
        let mut span = span();
        edit(&mut span);
        span
    };
    let bad = vec![
        change(|span| span.trace_id = vec![0; 16]),
        change(|span| span.trace_id = vec![1; 15]),
        change(|span| span.span_id = vec![]),
        change(|span| span.span_id = vec![0; 8]),
        change(|span| span.parent_span_id = vec![1; 7]),
        change(|span| span.start_time_unix_nano = 0),
        change(|span| span.start_time_unix_nano = u64::MAX),
    ];
    let count = bad.len() as u64;
    let converted = spans(&traces([bad, vec![span()]].concat()), Format::Protobuf, &Weights::new()).unwrap();
    assert_eq!((converted.records.len(), converted.malformed), (1, count));
    let complaint = converted.complaint.unwrap();
    assert_eq!(complaint, "span \"GET /\" of gateway: its trace id is not sixteen bytes, or all zero");
}

#[test]
fn a_span_weighs_what_its_trace_stands_for() {
    let weights = Weights::new();
    weights.set(Some(Tracing { sample: 0.25, tag: [1; 4] }));
    let other = Span { trace_id: vec![9; 16], trace_state: "ot=th:8".to_owned(), ..span() };
    let converted = spans(&traces(vec![span(), other]), Format::Protobuf, &weights).unwrap();
    let got: Vec<f64> = converted.records.iter().map(|span| span.weight).collect();
    assert_eq!(got, [4.0, 2.0]);
}

#[test]
fn without_a_resource_the_service_is_unknown() {
    let scope_spans = vec![ScopeSpans { spans: vec![span()], ..ScopeSpans::default() }];
    let request =
        ExportTraceServiceRequest { resource_spans: vec![ResourceSpans { scope_spans, ..ResourceSpans::default() }] };
    let converted = spans(&request.encode_to_vec(), Format::Protobuf, &Weights::new()).unwrap();
    assert_eq!(converted.records[0].service, "unknown_service");
}

#[test]
fn spans_of_an_ebpf_instrumentation_are_marked_by_their_scope() {
    let scope = |attributes: Vec<KeyValue>, scope: Option<InstrumentationScope>| {
        let scope_spans = vec![ScopeSpans { scope, spans: vec![span()], ..ScopeSpans::default() }];
        let resource = Some(Resource { attributes, ..Resource::default() });
        let resource_spans = vec![ResourceSpans { resource, scope_spans, ..ResourceSpans::default() }];
        let request = ExportTraceServiceRequest { resource_spans }.encode_to_vec();
        let converted = spans(&request, Format::Protobuf, &Weights::new()).unwrap();
        (converted.records[0].scope.clone(), converted.records[0].is_from_outside())
    };
    let ebpf = "opentelemetry-ebpf-instrumentation";
    let by_sdk = vec![text("telemetry.sdk.name", ebpf)];
    assert_eq!(scope(by_sdk.clone(), None), (ebpf.to_owned(), true));
    assert_eq!(scope(vec![text("telemetry.distro.name", "beyla")], None), ("beyla".to_owned(), true));
    assert_eq!(scope(by_sdk, self::scope()), ("lib".to_owned(), false), "a scope of its own");
    assert_eq!(scope(vec![text("telemetry.sdk.name", "opentelemetry")], None), (String::new(), false));
}

#[test]
fn a_long_name_is_cut_between_characters() {
    let cut = shortened("é".repeat(NAME_BYTES_MAX));
    assert_eq!(cut.len(), NAME_BYTES_MAX);
    assert_eq!(shortened(format!("a{}", "é".repeat(NAME_BYTES_MAX))).len(), NAME_BYTES_MAX - 1);
}

#[test]
fn records_beyond_the_limit_are_counted() {
    let request = traces(vec![span(); RECORDS_MAX + 3]);
    let converted = spans(&request, Format::Protobuf, &Weights::new()).unwrap();
    assert_eq!((converted.records.len(), converted.over_limit), (RECORDS_MAX, 3));
    let converted = spans(&traces(vec![Span::default(); RECORDS_MAX + 3]), Format::Protobuf, &Weights::new()).unwrap();
    assert_eq!((converted.malformed, converted.over_limit), (RECORDS_MAX as u64, 3));
}

#[test]
fn a_record_that_is_too_large_is_left_out() {
    let large = Span { attributes: vec![text("k", &"v".repeat(4 << 20))], ..span() };
    let converted = spans(&traces(vec![large, span()]), Format::Protobuf, &Weights::new()).unwrap();
    assert_eq!((converted.records.len(), converted.malformed), (1, 1));
}

fn read_points(data: metrics_v1::metric::Data) -> Vec<(String, String, i64, f64)> {
    let converted = points(&metrics(data), Format::Protobuf, 7).unwrap();
    let read = |(key, point): (narrows_model::series::SeriesKey, narrows_model::series::Point)| {
        assert_eq!((key.service.as_str(), key.replica), ("gateway", 2));
        (key.name, key.unit, point.time_ns, point.value)
    };
    converted.records.into_iter().map(read).collect()
}

#[test]
fn each_kind_of_metric_has_its_points() {
    use metrics_v1::metric::Data;
    use metrics_v1::number_data_point::Value;
    let number = |value, time_unix_nano| metrics_v1::NumberDataPoint {
        value: Some(value),
        time_unix_nano,
        ..Default::default()
    };
    let row = |name: &str, unit: &str, value| (name.to_owned(), unit.to_owned(), T0 as i64, value);
    let gauge = metrics_v1::Gauge { data_points: vec![number(Value::AsInt(-3), T0), number(Value::AsDouble(0.5), 0)] };
    assert_eq!(read_points(Data::Gauge(gauge)), [row("m", "s", -3.0), ("m".to_owned(), "s".to_owned(), 7, 0.5)]);
    let sum = metrics_v1::Sum { data_points: vec![number(Value::AsInt(9), T0)], ..Default::default() };
    assert_eq!(read_points(Data::Sum(sum)), [row("m", "s", 9.0)]);
    let point = metrics_v1::HistogramDataPoint {
        count: 4,
        sum: Some(2.0),
        min: Some(0.25),
        max: Some(1.5),
        time_unix_nano: T0,
        ..Default::default()
    };
    let histogram = metrics_v1::Histogram { data_points: vec![point], ..Default::default() };
    let expected = [row("m.sum", "s", 2.0), row("m.min", "s", 0.25), row("m.max", "s", 1.5), row("m.count", "", 4.0)];
    assert_eq!(read_points(Data::Histogram(histogram)), expected);
    let point = metrics_v1::ExponentialHistogramDataPoint { count: 4, time_unix_nano: T0, ..Default::default() };
    let histogram = metrics_v1::ExponentialHistogram { data_points: vec![point], ..Default::default() };
    assert_eq!(read_points(Data::ExponentialHistogram(histogram)), [row("m.count", "", 4.0)]);
}

#[test]
fn deltas_say_that_they_are() {
    use metrics_v1::metric::Data;
    let aggregation_temporality = metrics_v1::AggregationTemporality::Delta as i32;
    let point = metrics_v1::HistogramDataPoint { count: 4, sum: Some(2.0), max: Some(1.5), ..Default::default() };
    let histogram = metrics_v1::Histogram { data_points: vec![point], aggregation_temporality };
    let value = Some(metrics_v1::number_data_point::Value::AsInt(9));
    let point = metrics_v1::NumberDataPoint { value, ..Default::default() };
    let sum = metrics_v1::Sum { data_points: vec![point], aggregation_temporality, is_monotonic: true };
    for (data, expected) in [
        (Data::Sum(sum), &[("m", true)][..]),
        (Data::Histogram(histogram), &[("m.sum", true), ("m.max", false), ("m.count", true)]),
    ] {
        let converted = points(&metrics(data), Format::Protobuf, 7).unwrap();
        let found: Vec<_> = converted.records.iter().map(|(key, _)| (key.name.as_str(), key.is_delta())).collect();
        assert_eq!(found, expected);
    }
}

#[test]
fn a_summary_keeps_its_quantiles() {
    let at = |quantile, value| metrics_v1::summary_data_point::ValueAtQuantile { quantile, value };
    let quantile_values = vec![at(0.5, 1.0), at(0.99, 9.0)];
    let point =
        metrics_v1::SummaryDataPoint { count: 4, sum: 2.0, time_unix_nano: T0, quantile_values, ..Default::default() };
    let summary = metrics_v1::Summary { data_points: vec![point] };
    let converted = points(&metrics(metrics_v1::metric::Data::Summary(summary)), Format::Protobuf, 7).unwrap();
    let rows = converted.records.iter().map(|(key, point)| {
        (key.name.as_str(), key.unit.as_str(), key.labels.get("quantile").map(String::as_str), point.value)
    });
    let expected = [
        ("m", "s", Some("0.5"), 1.0),
        ("m", "s", Some("0.99"), 9.0),
        ("m.sum", "s", None, 2.0),
        ("m.count", "", None, 4.0),
    ];
    assert_eq!(rows.collect::<Vec<_>>(), expected);
}

#[test]
fn points_without_a_finite_value_are_left_out_and_labels_are_bounded() {
    use metrics_v1::number_data_point::Value;
    let attributes = (0..100).map(|n| attribute(&format!("k{n:03}"), any_value::Value::IntValue(n))).collect();
    let good = metrics_v1::NumberDataPoint { value: Some(Value::AsInt(1)), attributes, ..Default::default() };
    let nan = metrics_v1::NumberDataPoint { value: Some(Value::AsDouble(f64::NAN)), ..Default::default() };
    let flagged = metrics_v1::NumberDataPoint { flags: 1, ..nan.clone() };
    let gauge = metrics_v1::Gauge { data_points: vec![good, nan, flagged] };
    let converted = points(&metrics(metrics_v1::metric::Data::Gauge(gauge)), Format::Protobuf, 7).unwrap();
    assert_eq!((converted.records.len(), converted.malformed), (1, 1));
    let labels = &converted.records[0].0.labels;
    assert_eq!((labels.len(), labels["k031"].as_str()), (32, "31"));
}

#[test]
fn a_log_record_becomes_a_line() {
    let body = |value| Some(AnyValue { value: Some(value) });
    let record = LogRecord {
        observed_time_unix_nano: T0,
        severity_number: 17,
        body: body(any_value::Value::StringValue("oops".to_owned())),
        trace_id: vec![5; 16],
        ..LogRecord::default()
    };
    let line = logs(&log_request(record), Format::Protobuf, 7).unwrap().records.remove(0);
    assert_eq!((line.time_ns, line.severity.as_str(), line.text.as_str()), (T0 as i64, "ERROR", "oops"));
    assert_eq!((line.trace_id, line.service.as_str()), (Some([5; 16]), "unknown_service"));
    let record =
        LogRecord { event_name: "started".to_owned(), severity_text: "Notice".to_owned(), ..LogRecord::default() };
    let line = logs(&log_request(record), Format::Protobuf, 7).unwrap().records.remove(0);
    assert_eq!((line.time_ns, line.severity.as_str(), line.text.as_str()), (7, "Notice", "started"));
    assert_eq!(line.trace_id, None);
}

#[test]
fn a_log_record_keeps_its_exception() {
    let attributes =
        vec![text("exception.type", "Boom"), text("other", "x"), text("exception.stacktrace", "at a\nat b")];
    let body = Some(AnyValue { value: Some(any_value::Value::StringValue("b".repeat(9000))) });
    let record = LogRecord { attributes: attributes.clone(), body, severity_number: 21, ..LogRecord::default() };
    let line = logs(&log_request(record), Format::Protobuf, 7).unwrap().records.remove(0);
    let lines = "\nexception.type=Boom\nexception.message=\nexception.stacktrace=at a\nat b";
    assert_eq!((line.severity.as_str(), line.text), ("FATAL", format!("{}{lines}", "b".repeat(8 << 10))));
    let record = LogRecord { attributes, ..LogRecord::default() };
    let line = logs(&log_request(record), Format::Protobuf, 7).unwrap().records.remove(0);
    assert_eq!((line.severity.as_str(), line.text), ("ERROR", format!("exception{lines}")));
}

#[test]
fn a_mistake_inside_a_record_is_named_with_its_place() {
    let mut request = traces(vec![span()]);
    let name = request.windows(5).position(|window| window == b"GET /").unwrap();
    request[name] = 0xff;
    let error = spans(&request, Format::Protobuf, &Weights::new()).unwrap_err();
    assert_eq!(error.place, "resource_spans[0].scope_spans[0].spans[0]");
    assert!(error.what.contains("Span.name"), "{}", error.what);
}

/// Every decoder, on the same bytes: how many records they gave. Those must hold what is promised of them.
pub(super) fn convert_all(format: Format, bytes: &[u8]) -> usize {
    let mut count = 0;
    if let Ok(converted) = spans(bytes, format, &Weights::new()) {
        count += converted.records.len();
        assert_eq!(converted.malformed > 0, converted.complaint.is_some());
        for span in converted.records {
            assert!(span.weight >= 1.0 && span.trace_id != [0; 16] && span.start_ns > 0 && span.end_ns >= 0);
            assert!([span.name, span.service, span.scope].iter().all(|name| name.len() <= NAME_BYTES_MAX));
            assert!(span.attributes.len() <= ATTRIBUTES_MAX + 2);
        }
    }
    if let Ok(converted) = points(bytes, format, 7) {
        count += converted.records.len();
        for (key, point) in converted.records {
            assert!(point.value.is_finite() && point.time_ns > 0);
            let texts = key.labels.iter().flat_map(|(label, value)| [label, value]).chain([&key.unit, &key.service]);
            assert!(texts.map(String::len).all(|length| length <= NAME_BYTES_MAX));
        }
    }
    if let Ok(converted) = logs(bytes, format, 7) {
        count += converted.records.len();
        for line in converted.records {
            assert!(line.time_ns > 0 && line.text.len() <= bytes.len() + 6000);
            assert!([line.severity, line.service].iter().all(|name| name.len() <= NAME_BYTES_MAX));
        }
    }
    assert!(count <= 3 * RECORDS_MAX);
    count
}

pub(super) fn valid_requests() -> Vec<Vec<u8>> {
    let point = metrics_v1::HistogramDataPoint {
        attributes: vec![text("k", "v")],
        count: 4,
        sum: Some(2.0),
        bucket_counts: vec![1, 3],
        explicit_bounds: vec![0.5],
        ..Default::default()
    };
    let histogram = metrics_v1::Histogram { data_points: vec![point], ..Default::default() };
    let record = LogRecord { body: text("", "oops").value, trace_id: vec![5; 16], ..LogRecord::default() };
    vec![traces(vec![span(), span()]), metrics(metrics_v1::metric::Data::Histogram(histogram)), log_request(record)]
}

#[test]
fn values_nested_beyond_reason_are_refused() {
    let mut value = AnyValue { value: Some(any_value::Value::BoolValue(true)) };
    for _ in 0..150 {
        let values = vec![value];
        let array = opentelemetry_proto::tonic::common::v1::ArrayValue { values };
        value = AnyValue { value: Some(any_value::Value::ArrayValue(array)) };
    }
    let nested = KeyValue { key: "k".to_owned(), value: Some(value), ..KeyValue::default() };
    let error = spans(&traces(vec![Span { attributes: vec![nested], ..span() }]), Format::Protobuf, &Weights::new())
        .unwrap_err();
    assert!(error.what.contains("recursion limit"), "{}", error.what);
}
