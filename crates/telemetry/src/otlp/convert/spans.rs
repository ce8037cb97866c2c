//! Spans.

use narrows_model::trace::{Span, SpanKind};
use opentelemetry_proto::tonic::trace::v1 as otlp;
use serde_json::{Map, Value};

use super::packed::Packer;
use super::plain::{self, Plain};
use super::{Conversion, Origin, PackedSpans, exceptions, id, instant, shortened, values, without_own_parent};
use crate::normalise;
use crate::otlp::numbers;
use crate::otlp::request::{Format, MalformedRequest, Record, TRACES, each_record};
use crate::otlp::weights::{Rule, Weights};
use crate::ranges::INSTANT_NS_MAX;

/// The most attributes of a span, in the order in which they came; an SDK sends 128 unless configured otherwise.
pub const ATTRIBUTES_MAX: usize = 1024;

/// The attribute that names the span's replica, as its resource has it.
const REPLICA: &str = "narrows.replica";

/// The spans of an `ExportTraceServiceRequest`.
///
/// A span without a valid trace id, span id or start is left out and counted as malformed. So is one whose parent id is
/// neither empty nor eight bytes, and one that starts or ends after `INSTANT_NS_MAX`. An end before the start is
/// kept, because clocks can run backwards. A span that is its own parent becomes a root with the attribute
/// [`narrows_model::trace::OWN_PARENT`]. Exceptions among the span's events become the attribute [`super::EXCEPTIONS`].
///
/// # Errors
/// When the bytes are not such a message.
pub fn spans(request: &[u8], format: Format, weights: &Weights) -> Result<Conversion<Span>, MalformedRequest> {
    let rule = weights.rule();
    let mut converted = Conversion::new();
    each_record(TRACES, format, request, |origin, record| converted.take(origin, rule, record))?;
    Ok(converted)
}

/// As [`spans`], but spans that can be kept as they came are packed instead of converted.
///
/// # Errors
/// When the bytes are not such a message.
pub(crate) fn spans_to_keep(
    request: &[u8],
    format: Format,
    weights: &Weights,
) -> Result<(PackedSpans, Conversion<Span>), MalformedRequest> {
    let rule = weights.rule();
    let (mut packer, mut converted) = (Packer::new(request.len()), Conversion::new());
    each_record(TRACES, format, request, |origin, record| match record {
        Record::Protobuf(bytes) if converted.has_room() && packer.take(origin, rule, bytes) => {
            converted.elsewhere += 1;
            Ok(())
        }
        record => converted.take(origin, rule, record),
    })?;
    Ok((packer.done(), converted))
}

impl Conversion<Span> {
    fn take(&mut self, origin: &Origin, rule: Rule, record: Record<'_>) -> Result<(), String> {
        let Some(Plain { mut span, attributes }) = decode(self, record)? else { return Ok(()) };
        span.name = shortened(span.name);
        match SpanHead::from_span(&span) {
            Ok(ids) => {
                cut_attributes(&mut span, origin, self);
                let weight = rule.weigh(&ids.trace_id, &span.trace_state);
                let attributes = attributes.into_iter().chain(values::pairs(std::mem::take(&mut span.attributes)));
                if span.kind == otlp::span::SpanKind::Unspecified as i32 && self.has_room() {
                    self.without_kind.push(self.records.len());
                }
                self.push(convert(origin.into(), weight, ids, attributes.collect(), span));
            }
            Err(what) => self.leave_out(|| format!("span {:?} of {}: {what}", span.name, origin.service)),
        }
        Ok(())
    }
}

/// Whose a span is, as the span itself reports it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Whose<'a> {
    pub(super) service: &'a str,
    pub(super) scope: &'a str,
    /// The replica, where the resource says one.
    pub(super) replica: Option<u32>,
}

impl<'a> From<&'a Origin> for Whose<'a> {
    fn from(origin: &'a Origin) -> Self {
        Self { service: &origin.service, scope: &origin.scope, replica: origin.stated_replica }
    }
}

/// A span that was packed; `None` if it makes no sense.
pub(super) fn unpacked(whose: Whose<'_>, weight: f64, plain: Plain) -> Option<Span> {
    let Plain { mut span, attributes } = plain;
    span.name = shortened(span.name);
    let ids = SpanHead::from_span(&span).ok()?;
    Some(convert(whose, weight, ids, attributes.into_iter().collect(), span))
}

/// A span; its attributes are in one of the two places.
fn decode(converted: &mut Conversion<Span>, record: Record<'_>) -> Result<Option<Plain>, String> {
    match record {
        Record::Protobuf(bytes) if converted.has_room() && record.excess().is_none() => match plain::span(bytes) {
            Some(plain) => Ok(Some(plain)),
            None => Ok(converted.decode(record)?.map(Plain::from_span)),
        },
        _ => Ok(converted.decode(record)?.map(Plain::from_span)),
    }
}

fn cut_attributes(span: &mut otlp::Span, origin: &Origin, converted: &mut Conversion<Span>) {
    let came = span.attributes.len();
    if came > ATTRIBUTES_MAX {
        span.attributes.truncate(ATTRIBUTES_MAX);
        let (name, service) = (&span.name, &origin.service);
        converted.warning.get_or_insert_with(|| {
            format!("span {name:?} of {service}: of its {came} attributes the first {ATTRIBUTES_MAX} were kept")
        });
    }
}

/// Ids and times of a span.
pub(super) struct SpanHead {
    pub(super) trace_id: [u8; 16],
    span_id: [u8; 8],
    parent_id: Option<[u8; 8]>,
    start_ns: i64,
    end_ns: i64,
}

impl SpanHead {
    fn from_span(span: &otlp::Span) -> Result<Self, &'static str> {
        let ids = [&span.trace_id, &span.span_id, &span.parent_span_id].map(Vec::as_slice);
        Self::these(ids, span.start_time_unix_nano, span.end_time_unix_nano)
    }

    /// Of the ids of a trace, a span and its parent, and its times.
    #[inline]
    pub(super) fn these([trace_id, span_id, parent]: [&[u8]; 3], start: u64, end: u64) -> Result<Self, &'static str> {
        if !matches!(parent.len(), 0 | 8) {
            return Err("its parent id is not eight bytes");
        }
        Ok(Self {
            trace_id: id(trace_id).ok_or("its trace id is not sixteen bytes, or all zero")?,
            span_id: id(span_id).ok_or("its span id is not eight bytes, or all zero")?,
            parent_id: id(parent),
            start_ns: instant(start).ok_or("its start is not between the years 1970 and 2116")?,
            end_ns: i64::try_from(end)
                .ok()
                .filter(|ns| *ns <= INSTANT_NS_MAX)
                .ok_or("its end is after the year 2116")?,
        })
    }
}

fn convert(whose: Whose<'_>, weight: f64, ids: SpanHead, mut attributes: Map<String, Value>, span: otlp::Span) -> Span {
    exceptions::of_events(span.events).put_into(&mut attributes);
    let parent_id = without_own_parent(ids.parent_id, &ids.span_id, &mut attributes);
    let kind = numbers::kind_of(span.kind.into()).unwrap_or_default();
    // Only requests name the replica that handled them: other spans lie below one.
    if let Some(replica) = whose.replica.filter(|_| kind == SpanKind::Server) {
        attributes.entry(REPLICA).or_insert(replica.into());
    }
    let status = span.status.unwrap_or_default();
    Span {
        trace_id: ids.trace_id,
        span_id: ids.span_id,
        parent_id,
        service: whose.service.to_owned(),
        scope: whose.scope.to_owned(),
        name: span.name,
        kind,
        start_ns: ids.start_ns,
        end_ns: ids.end_ns,
        status: numbers::status_of(status.code.into()).unwrap_or_default(),
        status_message: status.message,
        facts: normalise::facts(&attributes),
        attributes,
        weight,
    }
}
