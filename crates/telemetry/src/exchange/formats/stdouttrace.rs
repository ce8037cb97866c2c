//! Spans written by OpenTelemetry's exporter `stdouttrace` for Go: one object each, on one line or on many.
//!
//! Its kinds have the numbers of OTLP's. Of the resource only the service name is kept, of events only exceptions.

use narrows_model::trace::{Span, SpanId, SpanStatus};
use serde_json::{Map, Value};

use super::values::{self, Exceptions, id};
use super::{Format, HasKind, Record, Records};
use crate::normalise;
use crate::otlp::Weights;
use crate::otlp::convert::{ATTRIBUTES_MAX, without_own_parent};
use crate::otlp::numbers::kind_of;

pub(super) const FORMAT: Format = Format {
    name: "Go's stdouttrace",
    lists: &[],
    wrappers: &[],
    records: &[Record {
        marks: &["SpanContext", "StartTime"],
        members: &[
            "Name",
            "SpanContext",
            "Parent",
            "SpanKind",
            "StartTime",
            "EndTime",
            "Attributes",
            "Events",
            "Status",
            "Resource",
            "InstrumentationScope",
            "InstrumentationLibrary",
        ],
        read: span,
    }],
};

fn span(text: &str, weights: &Weights) -> Records {
    Records::of_span(text, |mut span| span_of(&mut span, weights))
}

fn span_of(span: &mut Value, weights: &Weights) -> Result<(Span, HasKind), String> {
    let context = &span["SpanContext"];
    let trace_id = id::<16>(&context["TraceID"], "TraceID")?;
    let span_id = id::<8>(&context["SpanID"], "SpanID")?;
    let weight = weights.weigh(&trace_id, context["TraceState"].as_str().unwrap_or_default());
    let parent: Option<SpanId> = id(&span["Parent"]["SpanID"], "Parent").ok();
    let (start_ns, end_ns) = (instant(span, "StartTime")?, instant(span, "EndTime")?);
    let (start_ns, end_ns) = values::times(start_ns, end_ns, "StartTime")?;
    let resource = pairs(&mut span["Resource"]);
    let mut attributes = pairs(&mut span["Attributes"]);
    put_exceptions(&mut span["Events"], &mut attributes);
    let parent_id = without_own_parent(parent, &span_id, &mut attributes);
    let kind = span["SpanKind"].as_i64().and_then(kind_of);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let scope = ["InstrumentationScope", "InstrumentationLibrary"].map(|name| text(&span[name]["Name"])).concat();
    let read = Span {
        trace_id,
        span_id,
        parent_id,
        service: values::service(resource.get("service.name").and_then(Value::as_str)),
        scope: values::cut(scope),
        name: values::cut(text(&span["Name"])),
        kind: kind.unwrap_or_default(),
        start_ns,
        end_ns,
        status: match span["Status"]["Code"].as_str() {
            Some("Error") => SpanStatus::Error,
            Some("Ok") => SpanStatus::Ok,
            _ => SpanStatus::Unset,
        },
        status_message: text(&span["Status"]["Description"]),
        facts: normalise::facts(&attributes),
        attributes,
        weight,
    };
    Ok((read, kind.into()))
}

/// An instant of RFC 3339 in nanoseconds since the Unix epoch.
fn instant(span: &Value, name: &str) -> Result<i64, String> {
    let time = span[name].as_str().and_then(|text| text.parse::<jiff::Timestamp>().ok());
    let time = time.ok_or_else(|| format!("its {name} is not a time of RFC 3339"))?;
    Ok(i64::try_from(time.as_nanosecond()).unwrap_or(i64::MAX))
}

/// Attributes, each with a type beside its value.
fn pairs(list: &mut Value) -> Map<String, Value> {
    let pair = |pair: &mut Value| {
        let key = pair.get("Key")?.as_str()?.to_owned();
        Some((key, pair.get_mut("Value")?.get_mut("Value").map(Value::take).unwrap_or_default()))
    };
    list.as_array_mut().into_iter().flatten().filter_map(pair).take(ATTRIBUTES_MAX).collect()
}

fn put_exceptions(events: &mut Value, attributes: &mut Map<String, Value>) {
    let mut exceptions = Exceptions::default();
    for event in events.as_array_mut().into_iter().flatten().filter(|event| event.is_object()) {
        let time_ns = instant(event, "Time").unwrap_or(0);
        exceptions.see(time_ns, &pairs(&mut event["Attributes"]));
    }
    exceptions.put_into(attributes);
}

#[cfg(test)]
mod tests {
    use narrows_model::trace::SpanKind;
    use serde_json::json;

    use super::super::read_changed;
    use super::*;
    use crate::otlp::convert::EXCEPTIONS;

    fn one(changes: Value) -> Result<(Span, bool), String> {
        let string = |key: &str, value: &str| json!({ "Key": key, "Value": { "Type": "STRING", "Value": value } });
        let none = "0".repeat(16);
        let given = json!({
            "Name": "roll", "SpanKind": 2,
            "SpanContext": { "TraceID": "829fb7ceb787403c96eac3caf285c965", "SpanID": "8b6b408b6c1a35e5", "TraceState": "" },
            "Parent": { "TraceID": none.repeat(2), "SpanID": none },
            "StartTime": "2023-09-25T12:42:06.177119576+02:00", "EndTime": "2023-09-25T12:42:06.177136776+02:00",
            "Attributes": [string("http.method", "GET"), { "Key": "http.status_code", "Value": { "Type": "INT64", "Value": 500 } }],
            "Events": [{ "Name": "exception", "Time": "2023-09-25T12:42:06.1771+02:00", "Attributes": [string("exception.type", "E")] }],
            "Status": { "Code": "Error", "Description": "boom" },
            "Resource": [string("service.name", "dice")], "InstrumentationLibrary": { "Name": "lib" },
        });
        read_changed(span, given, &changes)
    }

    #[test]
    fn a_span_is_read_whole() {
        let (span, has_kind) = one(json!({})).unwrap();
        assert_eq!((span.span_id, span.parent_id), (0x8b6b_408b_6c1a_35e5_u64.to_be_bytes(), None));
        assert_eq!((span.start_ns, span.duration_ns()), (1_695_638_526_177_119_576, 17_200));
        assert_eq!((span.service.as_str(), span.scope.as_str(), span.name.as_str()), ("dice", "lib", "roll"));
        assert_eq!((span.kind, has_kind), (SpanKind::Server, true));
        assert_eq!((span.status, span.status_message.as_str()), (SpanStatus::Error, "boom"));
        assert_eq!(span.facts.http_status, Some(500));
        assert_eq!(span.attributes[EXCEPTIONS][0]["type"], "E");
        let (span, has_kind) = one(json!({ "SpanKind": 0, "Parent": { "SpanID": "00000000000000ff" } })).unwrap();
        assert_eq!((span.kind, has_kind, span.parent_id), (SpanKind::Internal, false, Some(255_u64.to_be_bytes())));
    }

    #[test]
    fn what_makes_no_sense_is_said() {
        let cases = [
            (json!({ "SpanContext": {} }), "its TraceID is not a text"),
            (json!({ "StartTime": "0001-01-01T00:00:00Z" }), "its StartTime is not between the years 1970 and 2116"),
            (json!({ "EndTime": "soon" }), "its EndTime is not a time of RFC 3339"),
            (json!({ "EndTime": "2150-01-01T00:00:00Z" }), "its end is after the year 2116"),
        ];
        for (changes, expected) in cases {
            let error = one(changes.clone()).unwrap_err();
            assert!(error.contains(expected), "{changes}: {error}");
        }
        assert_eq!(
            one(json!({ "Attributes": [7, {}], "Events": [7], "Resource": 7, "Status": 7 })).unwrap().0.service,
            "unknown_service"
        );
    }
}
