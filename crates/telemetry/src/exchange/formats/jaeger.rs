//! Traces in Jaeger's JSON, as its API and its user interface's download write them.
//!
//! Times are microseconds. Jaeger stores some OpenTelemetry fields as tags, under the names of OpenTelemetry's "Jaeger"
//! transformation: `span.kind`, `error`, `otel.status_code`, `otel.status_description`, `otel.scope.name`,
//! `w3c.tracestate`. These are removed from the attributes. The parent is the first `CHILD_OF` reference within the
//! trace, else the first `FOLLOWS_FROM`. A trace whose root reports a probabilistic sampler gets the weight that
//! follows from the sampling rate.
//!
//! A span's logs are not kept, except for exceptions; nor are references to other traces, and tags of a process other
//! than its name.

use narrows_model::trace::{Span, SpanKind};
use serde_json::{Map, Value};

use super::values::{self, Exceptions, id, micros, take_text};
use super::{Format, HasKind, List, Record, Records};
use crate::normalise;
use crate::otlp::Weights;
use crate::otlp::convert::{ATTRIBUTES_MAX, without_own_parent};

/// The most traces that one stands for: as in OpenTelemetry's `tracestate`, 2^56.
const WEIGHT_MAX: f64 = (1_u64 << 56) as f64;

pub(super) const FORMAT: Format = Format {
    name: "Jaeger",
    lists: &[List { name: "data", read: trace }],
    wrappers: &[],
    records: &[
        Record { marks: &["spans", "processes"], members: &["traceID", "spans", "processes"], read: trace },
        Record { marks: &["errors"], members: &["errors"], read: errors },
    ],
};

/// The spans of a trace.
fn trace(text: &str, weights: &Weights) -> Records {
    let trace: Value = match serde_json::from_str(text) {
        Ok(trace) => trace,
        Err(error) => return Records::malformed(error.to_string()),
    };
    let Value::Object(mut trace) = trace else { return Records::malformed("a trace is an object") };
    let Some(Value::Array(spans)) = trace.remove("spans") else {
        return Records::malformed("a trace has a list of `spans`");
    };
    let processes = trace.remove("processes").unwrap_or_default();
    let trace_id = trace.remove("traceID").unwrap_or_default();
    let mut records = Records::default();
    for (index, span) in spans.into_iter().enumerate() {
        records.push(span_of(span, &trace_id, &processes, weights), || format!(".spans[{index}]"));
    }
    weigh_by_sampler(&mut records.spans);
    records
}

/// The errors that Jaeger returns instead of traces.
fn errors(text: &str, _: &Weights) -> Records {
    let response: Value = serde_json::from_str(text).unwrap_or_default();
    let first = response["errors"].get(0);
    let part = |name: &str| first.and_then(|error| error.get(name)).map(values::described);
    let parts: Vec<String> = ["code", "msg"].into_iter().filter_map(part).collect();
    match first {
        None => Records::malformed("a response of Jaeger's API without traces"),
        Some(_) => Records::malformed(format!("Jaeger's API returned an error: {}", parts.join(" "))),
    }
}

fn span_of(span: Value, trace_of: &Value, processes: &Value, weights: &Weights) -> Result<(Span, HasKind), String> {
    let Value::Object(mut span) = span else { return Err("a span is an object".to_owned()) };
    let id_of = |span: &Map<String, Value>, name: &str| span.get(name).cloned().unwrap_or_default();
    let own_trace = id_of(&span, "traceID");
    let trace_id = id::<16>(if own_trace.is_null() { trace_of } else { &own_trace }, "traceID")?;
    let span_id = id::<8>(&id_of(&span, "spanID"), "spanID")?;
    let start_ns = micros(span.get("startTime"), "startTime")?;
    let duration_ns = micros(span.get("duration"), "duration")?;
    let (start_ns, end_ns) = values::times(start_ns, start_ns.saturating_add(duration_ns), "startTime")?;
    let mut attributes = tags(span.remove("tags"));
    put_exceptions(span.get("logs"), &mut attributes);
    let (status, status_message) = values::status(&mut attributes);
    let trace_state = take_text(&mut attributes, &["w3c.tracestate"]).unwrap_or_default();
    let parent_id = without_own_parent(parent(&span, &trace_id), &span_id, &mut attributes);
    let kind = take_text(&mut attributes, &["span.kind"]).as_deref().and_then(kind);
    let span = Span {
        trace_id,
        span_id,
        parent_id,
        service: service(&span, processes),
        scope: values::scope(&mut attributes),
        name: values::cut(span.get("operationName").and_then(Value::as_str).unwrap_or_default().to_owned()),
        kind: kind.unwrap_or_default(),
        start_ns,
        end_ns,
        status,
        status_message,
        facts: normalise::facts(&attributes),
        attributes,
        weight: weights.weigh(&trace_id, &trace_state),
    };
    Ok((span, kind.into()))
}

fn parent(span: &Map<String, Value>, trace_id: &[u8; 16]) -> Option<[u8; 8]> {
    let references = span.get("references").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let of_kind = |kind: &str| {
        let is_it = |reference: &&Value| {
            reference["refType"] == kind && id::<16>(&reference["traceID"], "").as_ref() == Ok(trace_id)
        };
        references.iter().find(is_it).and_then(|reference| id::<8>(&reference["spanID"], "").ok())
    };
    let older = || span.get("parentSpanID").and_then(|parent| id::<8>(parent, "").ok());
    of_kind("CHILD_OF").or_else(|| of_kind("FOLLOWS_FROM")).or_else(older)
}

/// The name of the process that the span names, or of the one that older exports put into it.
fn service(span: &Map<String, Value>, processes: &Value) -> String {
    let by_id = || span.get("processID").and_then(Value::as_str).and_then(|id| processes.get(id));
    let process = span.get("process").filter(|process| process.is_object()).or_else(by_id);
    values::service(process.and_then(|process| process.get("serviceName")?.as_str()))
}

fn kind(word: &str) -> Option<SpanKind> {
    Some(match word {
        "server" => SpanKind::Server,
        "client" => SpanKind::Client,
        "producer" => SpanKind::Producer,
        "consumer" => SpanKind::Consumer,
        "internal" => SpanKind::Internal,
        _ => return None,
    })
}

/// Tags as attributes; of two with one key the later stays.
fn tags(tags: Option<Value>) -> Map<String, Value> {
    let Some(Value::Array(tags)) = tags else { return Map::new() };
    let typed = |tag: Value| {
        let Value::Object(mut tag) = tag else { return None };
        let Some(Value::String(key)) = tag.remove("key") else { return None };
        let value = tag.remove("value").unwrap_or_default();
        Some((key, typed(tag.get("type").and_then(Value::as_str), value)))
    };
    tags.into_iter().filter_map(typed).take(ATTRIBUTES_MAX).collect()
}

/// A value as the type beside it says: numbers may stand there as texts.
fn typed(kind: Option<&str>, value: Value) -> Value {
    let Value::String(text) = &value else { return value };
    let read = match kind {
        Some("int64") => text.parse::<i64>().ok().map(Value::from),
        Some("float64") => text.parse::<f64>().ok().and_then(serde_json::Number::from_f64).map(Value::Number),
        Some("bool") => text.parse::<bool>().ok().map(Value::Bool),
        _ => None,
    };
    read.unwrap_or(value)
}

fn put_exceptions(logs: Option<&Value>, attributes: &mut Map<String, Value>) {
    let logs = logs.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut exceptions = Exceptions::default();
    for log in logs {
        let time_ns = micros(log.get("timestamp"), "timestamp").unwrap_or(0);
        exceptions.see(time_ns, &tags(log.get("fields").cloned()));
    }
    exceptions.put_into(attributes);
}

/// Jaeger's clients write the sampler that chose a trace into the tags of its root.
fn weigh_by_sampler(spans: &mut [Span]) {
    let rate = |span: &Span| {
        let is_probabilistic = span.attributes.get("sampler.type").is_some_and(|kind| kind == "probabilistic");
        let rate = span.attributes.get("sampler.param").and_then(Value::as_f64)?;
        (is_probabilistic && rate > 0.0 && rate <= 1.0).then_some(rate)
    };
    let Some(rate) = spans.iter().find_map(rate) else { return };
    let weight = (1.0 / rate).min(WEIGHT_MAX);
    spans.iter_mut().for_each(|span| span.weight = weight);
}

#[cfg(test)]
mod tests {
    use narrows_model::trace::SpanStatus;
    use serde_json::json;

    use super::*;
    use crate::otlp::convert::EXCEPTIONS;

    fn read(of: Value) -> Records {
        trace(&of.to_string(), &Weights::new())
    }

    fn said(records: &Records) -> String {
        let complaint = records.complaint.as_ref().unwrap();
        format!("{}: {}", complaint.place, complaint.what)
    }

    fn one(changes: Value) -> Result<Span, String> {
        let mut span = json!({ "traceID": "1f", "spanID": "2", "operationName": "GET /", "startTime": 1_700_000_000_000_000_i64,
            "duration": 1500, "processID": "p1" });
        for (name, value) in changes.as_object().unwrap() {
            span[name] = value.clone();
        }
        let trace = read(
            json!({ "traceID": "1f", "spans": [span], "processes": { "p1": { "serviceName": "web", "tags": [] } } }),
        );
        assert_eq!(trace.malformed as usize + trace.spans.len(), 1);
        let error = (trace.malformed > 0).then(|| said(&trace));
        trace.spans.into_iter().next().ok_or_else(|| error.unwrap())
    }

    fn tag(key: &str, kind: &str, value: Value) -> Value {
        json!({ "key": key, "type": kind, "value": value })
    }

    #[test]
    fn a_span_has_its_process_its_times_and_its_ids() {
        let span = one(json!({})).unwrap();
        assert_eq!(span.trace_id, 0x1f_u128.to_be_bytes());
        assert_eq!(span.span_id, 2_u64.to_be_bytes());
        assert_eq!((span.service.as_str(), span.name.as_str(), span.parent_id), ("web", "GET /", None));
        assert_eq!((span.start_ns, span.end_ns), (1_700_000_000_000_000_000, 1_700_000_000_001_500_000));
        assert_eq!((span.kind, span.status, span.weight), (SpanKind::Internal, SpanStatus::Unset, 1.0));
        assert_eq!(one(json!({ "processID": "p9" })).unwrap().service, "unknown_service");
        assert_eq!(one(json!({ "process": { "serviceName": "own" } })).unwrap().service, "own");
    }

    #[test]
    fn tags_become_attributes_of_their_type_and_what_has_a_place_of_its_own_goes_there() {
        let span = one(json!({ "tags": [
            tag("span.kind", "string", json!("server")), tag("error", "bool", json!(true)),
            tag("otel.scope.name", "string", json!("lib")), tag("otel.status_description", "string", json!("boom")),
            tag("http.status_code", "int64", json!(503)), tag("n", "int64", json!("-7")), tag("x", "float64", json!(0.5)),
            tag("b", "bool", json!("true")), tag("s", "string", json!("7")), tag("raw", "binary", json!("AAE=")), json!(5),
        ] }))
        .unwrap();
        assert_eq!((span.kind, span.status, span.scope.as_str()), (SpanKind::Server, SpanStatus::Error, "lib"));
        assert_eq!((span.status_message.as_str(), span.facts.http_status), ("boom", Some(503)));
        let expected = json!({ "http.status_code": 503, "n": -7, "x": 0.5, "b": true, "s": "7", "raw": "AAE=" });
        assert_eq!(Value::Object(span.attributes), expected);
        let status = |tags: Value| one(json!({ "tags": tags })).unwrap().status;
        assert_eq!(status(json!([tag("otel.status_code", "string", json!("OK"))])), SpanStatus::Ok);
        assert_eq!(status(json!([tag("error", "string", json!("true"))])), SpanStatus::Error);
        let own = one(json!({ "tags": [tag("error", "string", json!("no such file"))] })).unwrap();
        assert_eq!((own.status, own.attributes["error"].as_str()), (SpanStatus::Unset, Some("no such file")));
    }

    #[test]
    fn the_parent_is_a_child_of_reference_before_a_follows_from() {
        let reference =
            |kind: &str, trace: &str, span: &str| json!({ "refType": kind, "traceID": trace, "spanID": span });
        let parent =
            |references: Value| one(json!({ "references": references })).unwrap().parent_id.map(u64::from_be_bytes);
        let follows = reference("FOLLOWS_FROM", "1f", "3");
        assert_eq!(parent(json!([follows.clone(), reference("CHILD_OF", "1f", "4")])), Some(4));
        assert_eq!(parent(json!([follows])), Some(3));
        assert_eq!(parent(json!([reference("CHILD_OF", "2f", "4")])), None, "a link to another trace");
        assert_eq!(one(json!({ "parentSpanID": "5" })).unwrap().parent_id.map(u64::from_be_bytes), Some(5));
    }

    #[test]
    fn exceptions_among_logs_are_kept() {
        let fields =
            json!([tag("event", "string", json!("exception")), tag("exception.type", "string", json!("IoError"))]);
        let span =
            one(json!({ "logs": [{ "timestamp": 7, "fields": fields }, { "timestamp": 8, "fields": [] }] })).unwrap();
        let expected = json!([{ "time_ns": 7_000, "type": "IoError", "message": "", "stacktrace": "" }]);
        assert_eq!(span.attributes[EXCEPTIONS], expected);
    }

    #[test]
    fn a_sampled_trace_stands_for_several() {
        let root = json!({ "spanID": "1", "startTime": 1, "duration": 1,
            "tags": [tag("sampler.type", "string", json!("probabilistic")), tag("sampler.param", "float64", json!(0.1))] });
        let child = json!({ "spanID": "2", "startTime": 1, "duration": 1 });
        let trace = read(json!({ "traceID": "1", "spans": [child, root] }));
        assert!(trace.spans.iter().all(|span| span.weight == 10.0), "{trace:?}");
        let rarest = json!({ "tags": [tag("sampler.type", "string", json!("probabilistic")), tag("sampler.param", "float64", json!(1e-300))] });
        assert_eq!(one(rarest).unwrap().weight, WEIGHT_MAX);
        let state = json!({ "tags": [tag("w3c.tracestate", "string", json!("ot=th:8"))] });
        assert_eq!(one(state).unwrap().weight, 2.0);
    }

    #[test]
    fn what_makes_no_sense_is_said() {
        let cases = [
            (json!({ "spanID": "xyz" }), ".spans[0]: its spanID `xyz` is not 1 to 16 hexadecimal digits"),
            (json!({ "spanID": "00" }), ".spans[0]: its spanID is zero"),
            (json!({ "traceID": 5 }), ".spans[0]: its traceID is not a text"),
            (json!({ "startTime": "soon" }), ".spans[0]: its startTime is not a number of microseconds"),
            (json!({ "startTime": 0 }), ".spans[0]: its startTime is not between the years 1970 and 2116"),
            (json!({ "startTime": i64::MAX }), ".spans[0]: its startTime is not between the years 1970 and 2116"),
            (json!({ "startTime": 5_680_368_000_000_000_i64 }), ".spans[0]: its startTime is not between"),
            (json!({ "duration": i64::MAX / 1_000 }), ".spans[0]: its end is after the year 2116"),
            (json!({ "duration": null }), ".spans[0]: its duration is not a number of microseconds"),
        ];
        for (changes, expected) in cases {
            let error = one(changes.clone()).unwrap_err();
            assert!(error.contains(expected), "{changes}: {error}");
        }
        for (text, expected) in [
            ("5", "a trace is an object"),
            ("{}", "a trace has a list of `spans`"),
            ("{\"spans\":7}", "a trace has a list of `spans`"),
            ("{", "EOF while parsing an object"),
            ("{\"spans\":[7]}", ".spans[0]: a span is an object"),
        ] {
            let read = trace(text, &Weights::new());
            assert!(read.malformed == 1 && said(&read).contains(expected), "{text}: {read:?}");
        }
    }
}
