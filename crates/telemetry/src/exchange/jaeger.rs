//! A trace in Jaeger's JSON, as its API and its user interface's download write it.
//!
//! Times are microseconds. What OpenTelemetry has in places of its own, Jaeger has in tags, by the names of
//! OpenTelemetry's "Jaeger" transformation: `span.kind`, `error`, `otel.status_code`, `otel.status_description`,
//! `otel.scope.name`, `w3c.tracestate`; they are taken out of the attributes. The parent is the first reference
//! `CHILD_OF` within the trace, without one the first `FOLLOWS_FROM`. A trace whose root says that a probabilistic
//! sampler chose it stands for as many as its rate says.
//!
//! A span's logs are not kept, but for exceptions; nor are references to other traces, and tags of a process other than
//! its name.

use narrows_model::trace::{Span, SpanKind, SpanStatus};
use serde_json::{Map, Value, json};

use crate::normalise;
use crate::otlp::Weights;
use crate::otlp::convert::{ATTRIBUTES_MAX, EXCEPTIONS};

/// The longest name of a span or a service, in bytes.
const NAME_BYTES_MAX: usize = 512;
/// Exceptions of one span.
const EXCEPTIONS_MAX: usize = 8;
/// The most traces that one stands for: as in OpenTelemetry's `tracestate`, 2^56.
const WEIGHT_MAX: f64 = (1_u64 << 56) as f64;
const UNKNOWN_SERVICE: &str = "unknown_service";

/// What a trace came to.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Trace {
    pub(super) spans: Vec<Span>,
    pub(super) malformed: u64,
    /// What is wrong with the first malformed span, or with the trace.
    pub(super) complaint: Option<String>,
}

/// The spans of a trace that is written as `text`.
pub(super) fn spans(text: &str, weights: &Weights) -> Trace {
    let spoilt = |what: String| Trace { malformed: 1, complaint: Some(what), ..Trace::default() };
    let trace: Value = match serde_json::from_str(text) {
        Ok(trace) => trace,
        Err(error) => return spoilt(error.to_string()),
    };
    let Value::Object(mut trace) = trace else { return spoilt("a trace is an object".to_owned()) };
    let Some(Value::Array(spans)) = trace.remove("spans") else {
        return spoilt("a trace has a list of `spans`".to_owned());
    };
    let processes = trace.remove("processes").unwrap_or_default();
    let trace_id = trace.remove("traceID").unwrap_or_default();
    let mut read = Trace::default();
    for (index, span) in spans.into_iter().enumerate() {
        match span_of(span, &trace_id, &processes, weights) {
            Ok(span) => read.spans.push(span),
            Err(what) => {
                read.malformed += 1;
                read.complaint.get_or_insert_with(|| format!("spans[{index}]: {what}"));
            }
        }
    }
    weigh_by_sampler(&mut read.spans);
    read
}

fn span_of(span: Value, trace_of: &Value, processes: &Value, weights: &Weights) -> Result<Span, String> {
    let Value::Object(mut span) = span else { return Err("a span is an object".to_owned()) };
    let id_of = |span: &Map<String, Value>, name: &str| span.get(name).cloned().unwrap_or_default();
    let own_trace = id_of(&span, "traceID");
    let trace_id = id::<16>(if own_trace.is_null() { trace_of } else { &own_trace }, "traceID")?;
    let span_id = id::<8>(&id_of(&span, "spanID"), "spanID")?;
    let start_ns = micros(span.get("startTime"), "startTime")?;
    if start_ns <= 0 {
        return Err("its startTime is no instant after 1970".to_owned());
    }
    let duration_ns = micros(span.get("duration"), "duration")?;
    let mut attributes = tags(span.remove("tags"));
    put_exceptions(span.get("logs"), &mut attributes);
    let (status, status_message) = status(&mut attributes);
    let trace_state = take_text(&mut attributes, &["w3c.tracestate"]).unwrap_or_default();
    Ok(Span {
        trace_id,
        span_id,
        parent_id: parent(&span, &trace_id),
        service: service(&span, processes),
        scope: cut(take_text(&mut attributes, &["otel.scope.name", "otel.library.name"]).unwrap_or_default()),
        name: cut(span.get("operationName").and_then(Value::as_str).unwrap_or_default().to_owned()),
        kind: kind(take_text(&mut attributes, &["span.kind"]).as_deref()),
        start_ns,
        end_ns: start_ns.checked_add(duration_ns).ok_or("its end is beyond the year 2262")?,
        status,
        status_message,
        facts: normalise::facts(&attributes),
        attributes,
        weight: weights.weigh(&trace_id, &trace_state),
    })
}

/// An id as hexadecimal digits, of which leading zeros may be missing.
fn id<const N: usize>(value: &Value, name: &str) -> Result<[u8; N], String> {
    let text = value.as_str().ok_or_else(|| format!("its {name} is not a text"))?;
    let wrong = || {
        format!("its {name} `{}` is not 1 to {} hexadecimal digits", text.chars().take(40).collect::<String>(), N * 2)
    };
    let is_hex = !text.is_empty() && text.len() <= N * 2 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = if is_hex { u128::from_str_radix(text, 16).map_err(|_| wrong())? } else { return Err(wrong()) };
    if number == 0 {
        return Err(format!("its {name} is zero"));
    }
    let bytes = number.to_be_bytes();
    bytes[bytes.len() - N..].try_into().map_err(|_| wrong())
}

/// Microseconds as nanoseconds.
fn micros(value: Option<&Value>, name: &str) -> Result<i64, String> {
    let number = match value {
        Some(Value::Number(number)) => number.as_i64().or_else(|| {
            let fraction = number.as_f64().filter(|us| us.is_finite() && us.abs() < 9e15)?;
            Some(fraction as i64)
        }),
        Some(Value::String(text)) => text.parse().ok(),
        _ => None,
    };
    let number = number.ok_or_else(|| format!("its {name} is not a number of microseconds"))?;
    number.checked_mul(1_000).ok_or_else(|| format!("its {name} {number} µs is beyond the year 2262"))
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
    let name = process.and_then(|process| process.get("serviceName")?.as_str()).filter(|name| !name.is_empty());
    cut(name.unwrap_or(UNKNOWN_SERVICE).to_owned())
}

fn kind(word: Option<&str>) -> SpanKind {
    match word {
        Some("server") => SpanKind::Server,
        Some("client") => SpanKind::Client,
        Some("producer") => SpanKind::Producer,
        Some("consumer") => SpanKind::Consumer,
        _ => SpanKind::Internal,
    }
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

fn take_text(attributes: &mut Map<String, Value>, names: &[&str]) -> Option<String> {
    let name = names.iter().find(|name| attributes.get(**name).is_some_and(Value::is_string))?;
    match attributes.remove(*name) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    }
}

fn status(attributes: &mut Map<String, Value>) -> (SpanStatus, String) {
    let is_error = match attributes.get("error") {
        Some(Value::Bool(is_error)) => Some(*is_error),
        Some(Value::String(text)) if text == "true" || text == "false" => Some(text == "true"),
        // Anything else is an application's own tag, such as the text of the error.
        _ => None,
    };
    if is_error.is_some() {
        attributes.remove("error");
    }
    let code = take_text(attributes, &["otel.status_code"]);
    let message = take_text(attributes, &["otel.status_description"]).unwrap_or_default();
    let status = match (code.as_deref(), is_error) {
        (Some("ERROR"), _) | (_, Some(true)) => SpanStatus::Error,
        (Some("OK"), _) => SpanStatus::Ok,
        _ => SpanStatus::Unset,
    };
    (status, message)
}

/// Exceptions among a span's logs, in the form in which those of OTLP's events are kept.
fn put_exceptions(logs: Option<&Value>, attributes: &mut Map<String, Value>) {
    let logs = logs.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let exception = |log: &Value| {
        let fields = tags(log.get("fields").cloned());
        let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let is_one = fields.keys().any(|key| matches!(key.as_str(), "exception.type" | "exception.message"));
        is_one.then(|| {
            json!({
                "time_ns": micros(log.get("timestamp"), "timestamp").unwrap_or(0),
                "type": cut(text("exception.type")),
                "message": cut(text("exception.message")),
                "stacktrace": text("exception.stacktrace"),
            })
        })
    };
    let exceptions: Vec<Value> = logs.iter().filter_map(exception).take(EXCEPTIONS_MAX).collect();
    if !exceptions.is_empty() {
        attributes.insert(EXCEPTIONS.to_owned(), Value::Array(exceptions));
    }
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

fn cut(mut text: String) -> String {
    if text.len() > NAME_BYTES_MAX {
        let end = (0..=NAME_BYTES_MAX).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(trace: Value) -> Trace {
        spans(&trace.to_string(), &Weights::new())
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
        trace.spans.into_iter().next().ok_or_else(|| trace.complaint.unwrap())
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
        assert_eq!(one(json!({ "processID": "p9" })).unwrap().service, UNKNOWN_SERVICE);
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
            (json!({ "spanID": "xyz" }), "spans[0]: its spanID `xyz` is not 1 to 16 hexadecimal digits"),
            (json!({ "spanID": "00" }), "spans[0]: its spanID is zero"),
            (json!({ "traceID": 5 }), "spans[0]: its traceID is not a text"),
            (json!({ "startTime": "soon" }), "spans[0]: its startTime is not a number of microseconds"),
            (json!({ "startTime": 0 }), "spans[0]: its startTime is no instant after 1970"),
            (json!({ "startTime": i64::MAX }), "µs is beyond the year 2262"),
            (json!({ "duration": i64::MAX / 1_000 }), "spans[0]: its end is beyond the year 2262"),
            (json!({ "duration": null }), "spans[0]: its duration is not a number of microseconds"),
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
            ("{\"spans\":[7]}", "spans[0]: a span is an object"),
        ] {
            let trace = spans(text, &Weights::new());
            assert!(trace.malformed == 1 && trace.complaint.as_ref().unwrap().contains(expected), "{text}: {trace:?}");
        }
    }
}
