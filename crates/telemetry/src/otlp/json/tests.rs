//! Requests in JSON, as senders write them and as they should not.

use narrows_model::series::{Point, SeriesKey};
use narrows_model::trace::{SpanKind, SpanStatus};
use serde_json::json;

use crate::otlp::convert::{self, Conversion};
use crate::otlp::{Format, MalformedRequest, Weights};

const T0: i64 = 1_700_000_000_000_000_000;

fn spans(span: &str) -> Result<Conversion<narrows_model::trace::Span>, MalformedRequest> {
    let request = format!(r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{span}]}}]}}]}}"#);
    convert::spans(request.as_bytes(), Format::Json, &Weights::new())
}

fn points(metric: &str) -> Vec<(SeriesKey, Point)> {
    let request = format!(r#"{{"resourceMetrics":[{{"scopeMetrics":[{{"metrics":[{metric}]}}]}}]}}"#);
    convert::points(request.as_bytes(), Format::Json, 7).unwrap().records
}

#[test]
fn a_trace_is_read_whatever_the_order_of_its_fields() {
    let request = r#"{
      "unknown": [{ "a": null }],
      "resourceSpans": [{
        "schemaUrl": "https://example.org",
        "scopeSpans": [{
          "spans": [{
            "traceId": "0102030405060708090A0B0C0D0E0F10", "spanId": "eee19b7ec3c1b174", "parentSpanId": "EEE19B7EC3C1B173",
            "traceState": "ot=th:8", "flags": 257, "name": "POST /orders", "kind": 2,
            "startTimeUnixNano": "1700000000000000000", "endTimeUnixNano": 1700000000250000000,
            "attributes": [
              { "key": "http.request.method", "value": { "stringValue": "POST" } },
              { "key": "http.response.status_code", "value": { "intValue": "500" } },
              { "key": "flag", "value": { "boolValue": true } },
              { "key": "share", "value": { "doubleValue": 0.25 } },
              { "key": "bytes", "value": { "bytesValue": "AP8" } },
              { "key": "list", "value": { "arrayValue": { "values": [{ "intValue": 1 }, {}, null] } } },
              { "key": "map", "value": { "kvlistValue": { "values": [{ "key": "k", "value": { "stringValue": "v" } }] } } },
              { "key": "none", "value": null }
            ],
            "droppedAttributesCount": 1,
            "events": [{
              "timeUnixNano": "1700000000000000009", "name": "exception",
              "attributes": [{ "key": "exception.type", "value": { "stringValue": "Boom" } }]
            }],
            "links": [{ "traceId": "00", "unknown": {} }],
            "status": { "code": 2, "message": "no" }
          }],
          "scope": { "name": "lib", "version": "1" }
        }],
        "resource": { "attributes": [
          { "key": "service.name", "value": { "stringValue": "gateway" } },
          { "key": "narrows.replica", "value": { "intValue": "2" } }
        ] }
      }]
    }"#;
    let converted = convert::spans(request.as_bytes(), Format::Json, &Weights::new()).unwrap();
    let [span] = converted.records.as_slice() else { panic!("{converted:?}") };
    assert_eq!((span.service.as_str(), span.scope.as_str(), span.name.as_str()), ("gateway", "lib", "POST /orders"));
    assert_eq!(span.trace_id, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]);
    assert_eq!(span.parent_id, Some([0xee, 0xe1, 0x9b, 0x7e, 0xc3, 0xc1, 0xb1, 0x73]));
    assert_eq!((span.start_ns, span.duration_ns(), span.weight), (T0, 250_000_000, 2.0));
    assert_eq!((span.kind, span.status, span.status_message.as_str()), (SpanKind::Server, SpanStatus::Error, "no"));
    assert_eq!((span.facts.http_method.as_deref(), span.facts.http_status), (Some("POST"), Some(500)));
    let expected = json!({
        "http.request.method": "POST", "http.response.status_code": 500, "flag": true, "share": 0.25, "bytes": "00ff",
        "list": [1, null, null], "map": { "k": "v" }, "none": null,
        "narrows.exceptions": [{ "time_ns": T0 + 9, "type": "Boom", "message": "", "stacktrace": "" }],
        "narrows.replica": 2,
    });
    assert_eq!(serde_json::Value::Object(span.attributes.clone()), expected);
}

#[test]
fn absent_and_null_are_defaults_and_enums_may_be_named() {
    let ids = r#""traceId":"01010101010101010101010101010101","spanId":"0202020202020202","startTimeUnixNano":1"#;
    let rest =
        r#""parentSpanId":null,"name":null,"attributes":null,"events":null,"status":null,"endTimeUnixNano":null"#;
    let span = spans(&format!("{{{ids},{rest}}}")).unwrap().records.remove(0);
    assert_eq!((span.parent_id, span.name.as_str(), span.end_ns), (None, "", 0));
    assert_eq!((span.kind, span.status), (SpanKind::Internal, SpanStatus::Unset));
    let named = r#""kind":"SPAN_KIND_CLIENT","status":{"code":"STATUS_CODE_OK"},"endTimeUnixNano":2e0"#;
    let span = spans(&format!("{{{ids},{named}}}")).unwrap().records.remove(0);
    assert_eq!((span.kind, span.status, span.end_ns), (SpanKind::Client, SpanStatus::Ok, 2));
    for request in [r#"{}"#, r#"{"resourceSpans":null}"#, r#"{"resourceSpans":[{"resource":null,"scopeSpans":null}]}"#]
    {
        let converted = convert::spans(request.as_bytes(), Format::Json, &Weights::new()).unwrap();
        assert_eq!(converted.records, [], "{request}");
    }
}

#[test]
fn half_a_character_costs_that_character() {
    let ids = r#""traceId":"01010101010101010101010101010101","spanId":"0202020202020202","startTimeUnixNano":1"#;
    let span = spans(&format!(
        r#"{{{ids},"name":"cut \ud83d","attributes":[{{"key":"\ude00","value":{{"stringValue":"\ud83d\ude00"}}}}]}}"#
    ));
    let span = span.unwrap().records.remove(0);
    assert_eq!(span.name, "cut \u{fffd}");
    assert_eq!(serde_json::Value::Object(span.attributes), json!({ "\u{fffd}": "\u{1f600}" }));
    let mut request =
        format!(r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{{{ids},"name":"cut ?"}}]}}]}}]}}"#).into_bytes();
    let at = request.iter().position(|byte| *byte == b'?').unwrap();
    request[at] = 0xf0;
    let span = convert::spans(&request, Format::Json, &Weights::new()).unwrap().records.remove(0);
    assert_eq!(span.name, "cut \u{fffd}");
}

#[test]
fn ids_may_be_base64_and_levels_may_have_older_names() {
    let request = r#"{"resourceSpans":[{"resource":{},"instrumentationLibrarySpans":[{
        "instrumentationLibrary":{"name":"lib"},"spans":[{"traceId":"AAAAAAAAAAABI0VniavN7w==","spanId":"AAAAAAAAEjQ=",
        "parentSpanId":"-_-_AAAAEjQ","startTimeUnixNano":"5","kind":"SPAN_KIND_UNSPECIFIED"}]}]}]}"#;
    let converted = convert::spans(request.as_bytes(), Format::Json, &Weights::new()).unwrap();
    let span = &converted.records[0];
    assert_eq!(span.trace_id, 0x0123_4567_89ab_cdef_u128.to_be_bytes());
    assert_eq!(span.span_id, 0x1234_u64.to_be_bytes());
    assert_eq!(span.parent_id, Some(0xfbff_bf00_0000_1234_u64.to_be_bytes()));
    assert_eq!((span.scope.as_str(), span.kind), ("lib", SpanKind::Internal));
    assert_eq!(converted.without_kind, [0]);
    let logs = r#"{"resourceLogs":[{"instrumentationLibraryLogs":[{"logs":[{"timeUnixNano":"9"}]}]}]}"#;
    assert_eq!(convert::logs(logs.as_bytes(), Format::Json, 7).unwrap().records[0].time_ns, 9);
}

#[test]
fn mistakes_are_named_with_their_place() {
    let cases = [
        (r#"{"kind":"CLIENT"}"#, r#"kind: expected an enum's number, found "CLIENT""#),
        (r#"{"kind":2.5}"#, "kind: expected an enum's number, found 2.5"),
        (r#"{"name":7}"#, "name: expected a string, found 7"),
        (r#"{"traceId":"abc"}"#, "traceId: expected hexadecimal digits, two for each byte, found \"abc\""),
        (r#"{"attributes":{}}"#, "attributes: expected a list, found an object"),
        (
            r#"{"attributes":[{"value":{"bytesValue":"!"}}]}"#,
            "attributes[0].value.bytesValue: expected base64, found \"!\"",
        ),
        (
            r#"{"attributes":[{"value":{"boolValue":"true"}}]}"#,
            "attributes[0].value.boolValue: expected true or false, found \"true\"",
        ),
        (r#"{"status":{"message":"m","code":[]}}"#, "status.code: expected an enum's number, found a list"),
        (r#"{"startTimeUnixNano":-1}"#, "startTimeUnixNano: expected a whole number of 64 bits, 0 or more, found -1"),
        ("7", "expected an object, found 7"),
    ];
    for (span, expected) in cases {
        let mistake = spans(span).unwrap_err();
        assert_eq!(
            (mistake.place.as_str(), mistake.what.as_str()),
            ("resourceSpans[0].scopeSpans[0].spans[0]", expected)
        );
    }
    let long = format!(r#"{{"traceId":"{}"}}"#, "g".repeat(1000));
    assert!(spans(&long).unwrap_err().what.ends_with("found a string of 1000 bytes"));
}

#[test]
fn a_text_where_a_group_belongs_is_not_repeated() {
    for request in ["\"secret\"", r#"{"resourceSpans":"secret"}"#, r#"{"resourceSpans":["secret"]}"#] {
        let said = convert::spans(request.as_bytes(), Format::Json, &Weights::new()).unwrap_err().to_string();
        assert!(said.contains("a string, expected") && !said.contains("secret"), "{said}");
    }
}

#[test]
fn all_kinds_of_metrics_are_read() {
    let row = |metric: &str| {
        let read =
            |(key, point): (SeriesKey, Point)| (key.name, key.labels.into_values().next(), point.time_ns, point.value);
        points(metric).into_iter().map(read).collect::<Vec<_>>()
    };
    let name = |suffix: &str| format!("m{suffix}");
    let at = r#""timeUnixNano":"9","startTimeUnixNano":"1""#;
    let gauge = format!(
        r#"{{"name":"m","unit":"s","gauge":{{"dataPoints":[{{"asInt":"-3",{at}}},{{"asDouble":0.5}},{{"asDouble":"1.5"}},{{"flags":1}},{{"asDouble":"NaN"}}]}}}}"#
    );
    assert_eq!(row(&gauge), [(name(""), None, 9, -3.0), (name(""), None, 7, 0.5), (name(""), None, 7, 1.5)]);
    let label = r#""attributes":[{"key":"k","value":{"stringValue":"v"}}]"#;
    let sum = format!(
        r#"{{"name":"m","sum":{{"aggregationTemporality":2,"isMonotonic":true,"dataPoints":[{{"asInt":9,{label},{at}}}]}}}}"#
    );
    assert_eq!(row(&sum), [(name(""), Some("v".to_owned()), 9, 9.0)]);
    let body = r#""count":"4","sum":2,"min":0.5,"max":1"#;
    let histogram = format!(
        r#"{{"name":"m","histogram":{{"dataPoints":[{{{body},"bucketCounts":["1","3"],"explicitBounds":[0.7],{at}}}]}}}}"#
    );
    let expected = [(".sum", 2.0), (".min", 0.5), (".max", 1.0), (".count", 4.0)].map(|(n, v)| (name(n), None, 9, v));
    assert_eq!(row(&histogram), expected);
    let exponential = format!(
        r#"{{"name":"m","exponentialHistogram":{{"dataPoints":[{{{body},"scale":3,"zeroCount":"0","positive":{{"offset":1,"bucketCounts":[4]}},{at}}}]}}}}"#
    );
    assert_eq!(row(&exponential), expected);
    let temporality = r#""aggregationTemporality":"AGGREGATION_TEMPORALITY_DELTA","dataPoints""#;
    let deltas = row(&exponential.replace(r#""dataPoints""#, temporality));
    let labels: Vec<Option<&str>> = deltas.iter().map(|(_, label, ..)| label.as_deref()).collect();
    assert_eq!(labels, [Some("delta"), None, None, Some("delta")]);
    let summary = format!(
        r#"{{"name":"m","summary":{{"dataPoints":[{{"count":4,"sum":2,"quantileValues":[{{"quantile":0.99,"value":1}}],{at}}}]}}}}"#
    );
    let quantile = (name(""), Some("0.99".to_owned()), 9, 1.0);
    assert_eq!(row(&summary), [quantile, (name(".sum"), None, 9, 2.0), (name(".count"), None, 9, 4.0)]);
    assert_eq!(row(r#"{"name":"m","newKind":{}}"#), []);
}

#[test]
fn a_log_record_is_read() {
    let request = r#"{"resourceLogs":[{"scopeLogs":[{"logRecords":[{
        "observedTimeUnixNano": "9", "severityNumber": "SEVERITY_NUMBER_WARN", "eventName": "started",
        "traceId": "05050505050505050505050505050505", "spanId": "",
        "body": { "kvlistValue": { "values": [{ "key": "a", "value": { "intValue": "1" } }] } }
    }]}]}]}"#;
    let line = convert::logs(request.as_bytes(), Format::Json, 7).unwrap().records.remove(0);
    assert_eq!((line.time_ns, line.severity.as_str(), line.text.as_str()), (9, "WARN", r#"{"a":1}"#));
    assert_eq!(line.trace_id, Some([5; 16]));
}
