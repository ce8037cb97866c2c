//! Spans.

use narrows_model::trace::{Span, SpanKind, SpanStatus};
use opentelemetry_proto::tonic::trace::v1 as otlp;
use serde_json::{Map, Value};

use super::plain::{self, Plain};
use super::{Converted, Origin, exceptions, id, instant, shortened, values};
use crate::normalise;
use crate::otlp::request::{Format, Malformed, Record, TRACES, each_record};
use crate::otlp::weights::{Rule, Weights};

/// The most attributes of a span, in the order in which they came; an SDK sends 128 unless told otherwise.
pub const ATTRIBUTES_MAX: usize = 1024;

/// The spans of an `ExportTraceServiceRequest`.
///
/// A span without a valid trace id, span id or start is left out and counted as malformed, as is one whose parent id
/// is neither empty nor eight bytes, or whose end is beyond the year 2262. An end before the start is kept: clocks do
/// run backwards. Exceptions among the span's events become the attribute [`super::EXCEPTIONS`].
///
/// # Errors
/// When the bytes are not such a message.
pub fn spans(request: &[u8], format: Format, weights: &Weights) -> Result<Converted<Span>, Malformed> {
    let rule = weights.rule();
    let mut converted = Converted::new();
    each_record(TRACES, format, request, |origin, record| {
        let Some(Plain { mut span, attributes }) = decode(&mut converted, record)? else { return Ok(()) };
        span.name = shortened(span.name);
        match checked(&span) {
            Ok(ids) => {
                cut_attributes(&mut span, origin, &mut converted);
                let attributes = attributes.into_iter().chain(values::pairs(std::mem::take(&mut span.attributes)));
                converted.push(convert(origin, rule, ids, attributes.collect(), span));
            }
            Err(what) => converted.leave_out(|| format!("span {:?} of {}: {what}", span.name, origin.service)),
        }
        Ok(())
    })?;
    Ok(converted)
}

/// A span; its attributes are in one of the two places.
fn decode(converted: &mut Converted<Span>, record: Record<'_>) -> Result<Option<Plain>, String> {
    match record {
        Record::Protobuf(bytes) if converted.has_room() && record.excess().is_none() => match plain::span(bytes) {
            Some(plain) => Ok(Some(plain)),
            None => Ok(converted.decode(record)?.map(Plain::of)),
        },
        _ => Ok(converted.decode(record)?.map(Plain::of)),
    }
}

fn cut_attributes(span: &mut otlp::Span, origin: &Origin, converted: &mut Converted<Span>) {
    let came = span.attributes.len();
    if came > ATTRIBUTES_MAX {
        span.attributes.truncate(ATTRIBUTES_MAX);
        let (name, service) = (&span.name, &origin.service);
        converted.warning.get_or_insert_with(|| {
            format!("span {name:?} of {service}: of its {came} attributes the first {ATTRIBUTES_MAX} were kept")
        });
    }
}

struct Checked {
    trace_id: [u8; 16],
    span_id: [u8; 8],
    parent_id: Option<[u8; 8]>,
    start_ns: i64,
    end_ns: i64,
}

fn checked(span: &otlp::Span) -> Result<Checked, &'static str> {
    let parent = &span.parent_span_id;
    if !matches!(parent.len(), 0 | 8) {
        return Err("its parent id is not eight bytes");
    }
    Ok(Checked {
        trace_id: id(&span.trace_id).ok_or("its trace id is not sixteen bytes, or all zero")?,
        span_id: id(&span.span_id).ok_or("its span id is not eight bytes, or all zero")?,
        parent_id: id(parent),
        start_ns: instant(span.start_time_unix_nano).ok_or("its start is not a time")?,
        end_ns: i64::try_from(span.end_time_unix_nano).map_err(|_| "its end is not a time")?,
    })
}

fn convert(origin: &Origin, rule: Rule, ids: Checked, mut attributes: Map<String, Value>, span: otlp::Span) -> Span {
    exceptions::of_events(span.events).put_into(&mut attributes);
    let status = span.status.unwrap_or_default();
    Span {
        trace_id: ids.trace_id,
        span_id: ids.span_id,
        parent_id: ids.parent_id,
        service: origin.service.clone(),
        scope: origin.scope.clone(),
        name: span.name,
        kind: kind(span.kind),
        start_ns: ids.start_ns,
        end_ns: ids.end_ns,
        status: match status.code {
            1 => SpanStatus::Ok,
            2 => SpanStatus::Error,
            _ => SpanStatus::Unset,
        },
        status_message: status.message,
        facts: normalise::facts(&attributes),
        attributes,
        weight: rule.weigh(&ids.trace_id, &span.trace_state),
    }
}

/// OTLP's numbers; an unknown one is internal, as the specification has it for "unspecified".
fn kind(number: i32) -> SpanKind {
    match number {
        2 => SpanKind::Server,
        3 => SpanKind::Client,
        4 => SpanKind::Producer,
        5 => SpanKind::Consumer,
        _ => SpanKind::Internal,
    }
}
