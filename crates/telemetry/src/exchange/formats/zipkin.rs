//! Spans in Zipkin's JSON, version 2, as its API writes them: a list of spans, or a list of such lists.
//!
//! Times are microseconds, and all tags are texts. A tag `error` marks a span as failed, whatever its value, unless
//! that is `false`. OpenTelemetry fields are stored under the names of its "Zipkin" transformation. The address of the
//! other side becomes attributes under the names that spans of this age use, unless a tag already holds it.
//!
//! Both sides of a call may have the same id (`shared`); they remain two spans. Annotations are not kept.

use narrows_model::trace::{Span, SpanKind, SpanStatus};
use serde_json::{Map, Value};

use super::values::{self, id, micros};
use super::{Format, HasKind, Record, Records};
use crate::normalise;
use crate::otlp::Weights;
use crate::otlp::convert::{ATTRIBUTES_MAX, without_own_parent};

pub(super) const FORMAT: Format = Format {
    name: "Zipkin v2",
    lists: &[],
    wrappers: &[],
    records: &[Record {
        marks: &["traceId", "id"],
        members: &[
            "traceId",
            "id",
            "parentId",
            "kind",
            "shared",
            "name",
            "timestamp",
            "duration",
            "localEndpoint",
            "remoteEndpoint",
            "tags",
            "binaryAnnotations",
        ],
        read: span,
    }],
};

fn span(text: &str, weights: &Weights) -> Records {
    Records::of_span(text, |span| span_of(span, weights))
}

fn span_of(span: Value, weights: &Weights) -> Result<(Span, HasKind), String> {
    let Value::Object(mut span) = span else { return Err("a span is an object".to_owned()) };
    if span.contains_key("binaryAnnotations") {
        return Err("it is a span of Zipkin's JSON, version 1; expected version 2 (`/api/v2/…`)".to_owned());
    }
    let member = |name: &str| span.get(name).filter(|value| !value.is_null());
    let trace_id = id::<16>(&span["traceId"], "traceId")?;
    let span_id = id::<8>(&span["id"], "id")?;
    let parent_id = member("parentId").map(|parent| id::<8>(parent, "parentId")).transpose()?;
    // Only a server joins the span of another side.
    let joined = || member("shared").filter(|shared| **shared == true).map(|_| SpanKind::Server);
    let kind = member("kind").map(kind).transpose()?.or_else(joined);
    let start_ns = micros(member("timestamp"), "timestamp")?;
    // A message that was sent at once has no duration.
    let is_instant = matches!(kind, Some(SpanKind::Producer | SpanKind::Consumer)) && member("duration").is_none();
    let duration_ns = if is_instant { 0 } else { micros(member("duration"), "duration")? };
    let (start_ns, end_ns) = values::times(start_ns, start_ns.saturating_add(duration_ns), "timestamp")?;
    let service = values::service(span.get("localEndpoint").and_then(|endpoint| endpoint["serviceName"].as_str()));
    let name = values::cut(span.get("name").and_then(Value::as_str).unwrap_or_default().to_owned());
    let mut attributes = match span.remove("tags") {
        Some(Value::Object(tags)) => tags.into_iter().take(ATTRIBUTES_MAX).collect(),
        _ => Map::new(),
    };
    let (status, status_message) = status(&mut attributes);
    put_other_side(span.get("remoteEndpoint"), kind, &mut attributes);
    let parent_id = without_own_parent(parent_id, &span_id, &mut attributes);
    let trace_state = values::take_text(&mut attributes, &["w3c.tracestate"]).unwrap_or_default();
    let read = Span {
        trace_id,
        span_id,
        parent_id,
        service,
        scope: values::scope(&mut attributes),
        name,
        kind: kind.unwrap_or_default(),
        start_ns,
        end_ns,
        status,
        status_message,
        facts: normalise::facts(&attributes),
        attributes,
        weight: weights.weigh(&trace_id, &trace_state),
    };
    Ok((read, kind.into()))
}

fn kind(word: &Value) -> Result<SpanKind, String> {
    Ok(match word.as_str() {
        Some("CLIENT") => SpanKind::Client,
        Some("SERVER") => SpanKind::Server,
        Some("PRODUCER") => SpanKind::Producer,
        Some("CONSUMER") => SpanKind::Consumer,
        _ => {
            return Err(format!(
                "its kind is {}, expected CLIENT, SERVER, PRODUCER or CONSUMER",
                values::described(word)
            ));
        }
    })
}

fn status(attributes: &mut Map<String, Value>) -> (SpanStatus, String) {
    let error = attributes.get("error").and_then(Value::as_str);
    let Some(said) = error.filter(|said| !matches!(*said, "true" | "false")) else { return values::status(attributes) };
    let message = said.to_owned();
    let _ = values::status(attributes);
    attributes.remove("error");
    (SpanStatus::Error, message)
}

/// Adds attributes for the other side of the span's call.
fn put_other_side(endpoint: Option<&Value>, kind: Option<SpanKind>, attributes: &mut Map<String, Value>) {
    let Some(endpoint) = endpoint.and_then(Value::as_object) else { return };
    let mut put = |name: &str, value: Option<&Value>| {
        if let Some(value) = value.filter(|value| !value.is_null() && *value != "") {
            attributes.entry(name).or_insert_with(|| value.clone());
        }
    };
    let address = endpoint.get("ipv4").or_else(|| endpoint.get("ipv6"));
    if matches!(kind, Some(SpanKind::Server | SpanKind::Consumer)) {
        return put("client.address", address);
    }
    put("peer.service", endpoint.get("serviceName"));
    put("net.peer.ip", address);
    put("net.peer.port", endpoint.get("port").filter(|port| **port != 0));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::read_changed;
    use super::*;

    fn one(changes: Value) -> Result<(Span, bool), String> {
        let given = json!({ "traceId": "1f", "id": "2", "name": "get", "kind": "SERVER", "duration": 1500,
            "timestamp": 1_700_000_000_000_000_i64, "localEndpoint": { "serviceName": "web", "ipv4": "10.0.0.1" } });
        read_changed(span, given, &changes)
    }

    #[test]
    fn a_span_has_its_ids_its_times_and_its_service() {
        let (span, has_kind) = one(json!({ "parentId": "1" })).unwrap();
        assert_eq!((span.trace_id, span.span_id), (0x1f_u128.to_be_bytes(), 2_u64.to_be_bytes()));
        assert_eq!(span.parent_id, Some(1_u64.to_be_bytes()));
        assert_eq!((span.service.as_str(), span.name.as_str()), ("web", "get"));
        assert_eq!((span.start_ns, span.end_ns), (1_700_000_000_000_000_000, 1_700_000_000_001_500_000));
        assert_eq!((span.kind, has_kind, span.status), (SpanKind::Server, true, SpanStatus::Unset));
        let (span, has_kind) = one(json!({ "kind": null, "localEndpoint": null })).unwrap();
        assert_eq!((span.kind, has_kind, span.service.as_str()), (SpanKind::Internal, false, "unknown_service"));
        let (shared, has_kind) = one(json!({ "kind": null, "shared": true })).unwrap();
        assert_eq!((shared.kind, has_kind), (SpanKind::Server, true));
        let (sent, _) = one(json!({ "kind": "PRODUCER", "duration": null })).unwrap();
        assert_eq!(sent.duration_ns(), 0);
    }

    #[test]
    fn tags_become_attributes_and_facts() {
        let tags =
            json!({ "http.method": "GET", "http.status_code": "503", "error": "timed out", "otel.scope.name": "lib" });
        let (span, _) = one(json!({ "tags": tags })).unwrap();
        assert_eq!((span.status, span.status_message.as_str()), (SpanStatus::Error, "timed out"));
        assert_eq!((span.facts.http_status, span.scope.as_str()), (Some(503), "lib"));
        assert_eq!(Value::Object(span.attributes), json!({ "http.method": "GET", "http.status_code": "503" }));
        let failed = |error: &str| one(json!({ "tags": { "error": error } })).unwrap().0.status;
        assert_eq!(
            [failed(""), failed("true"), failed("false")],
            [SpanStatus::Error, SpanStatus::Error, SpanStatus::Unset]
        );
    }

    #[test]
    fn the_other_side_is_the_callee_of_a_call_and_the_caller_of_a_request() {
        let remote = json!({ "serviceName": "mysql", "ipv4": "10.0.0.9", "port": 3306 });
        let (call, _) = one(json!({ "kind": "CLIENT", "remoteEndpoint": remote })).unwrap();
        assert_eq!(call.facts.peer_service.as_deref(), Some("mysql"));
        assert_eq!((call.facts.server_address.as_deref(), call.facts.server_port), (Some("10.0.0.9"), Some(3306)));
        let (request, _) = one(json!({ "remoteEndpoint": remote })).unwrap();
        assert_eq!((request.facts.server_address, request.facts.server_port), (None, None));
    }

    #[test]
    fn what_makes_no_sense_is_said() {
        let cases = [
            (json!({ "id": "xyz" }), "its id `xyz` is not 1 to 16 hexadecimal digits"),
            (json!({ "parentId": 7 }), "its parentId is not a text"),
            (json!({ "kind": "client" }), "its kind is client, expected CLIENT"),
            (json!({ "timestamp": null }), "its timestamp is not a number of microseconds"),
            (json!({ "timestamp": 5_680_368_000_000_000_i64 }), "its timestamp is not between the years 1970 and 2116"),
            (json!({ "duration": null }), "its duration is not a number of microseconds"),
            (json!({ "binaryAnnotations": [] }), "version 1; expected version 2"),
        ];
        for (changes, expected) in cases {
            let error = one(changes.clone()).unwrap_err();
            assert!(error.contains(expected), "{changes}: {error}");
        }
    }
}
