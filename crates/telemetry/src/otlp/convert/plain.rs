//! Spans as SDKs write them, decoded in one walk: nearly all spans are plain, and decoding is much of what a span costs.
//!
//! Plain are attributes of one text, number or flag each, and no events. Whatever else is found, mistakes included, is
//! left to `prost`, which decodes the span from its beginning: there is one opinion of what is well written.

use opentelemetry_proto::tonic::trace::v1 as otlp;
use prost::Message;
use serde_json::Value;

use super::{spans::ATTRIBUTES_MAX, values};
use crate::otlp::wire::{Content, next_field};

/// Attributes that most spans stay below.
const USUAL: usize = 16;

/// A span and the attributes that are not in it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Plain {
    pub(super) span: otlp::Span,
    pub(super) attributes: Vec<(String, Value)>,
}

impl Plain {
    /// A span that has its attributes itself.
    pub(super) fn from_span(span: otlp::Span) -> Self {
        Self { span, attributes: Vec::new() }
    }
}

/// A plain span as it stands in its record: nothing is copied.
#[derive(Debug, Clone, Default)]
pub(super) struct PlainSpan<'a> {
    pub(super) trace_id: &'a [u8],
    pub(super) span_id: &'a [u8],
    pub(super) parent_span_id: &'a [u8],
    pub(super) trace_state: &'a str,
    pub(super) name: &'a str,
    pub(super) kind: i32,
    pub(super) start_unix_nano: u64,
    pub(super) end_unix_nano: u64,
    pub(super) status: Option<otlp::Status>,
}

/// A plain value as it stands in its record.
#[derive(Debug, Clone, Copy)]
pub(super) enum Scalar<'a> {
    Text(&'a str),
    Flag(bool),
    Int(i64),
    Double(f64),
}

/// Walks a plain span of at most [`ATTRIBUTES_MAX`] attributes and shows `visit` each of them, whose key it has to read as
/// text; `None` for any other span, and when `visit` says none.
#[inline]
pub(super) fn walk<'a>(
    record: &'a [u8],
    mut visit: impl FnMut(&'a [u8], Scalar<'a>) -> Option<()>,
) -> Option<PlainSpan<'a>> {
    let mut span = PlainSpan::default();
    let (mut rest, mut attributes) = (record, 0);
    while !rest.is_empty() {
        match next_field(&mut rest).ok()? {
            (1, Content::Bytes(bytes)) => span.trace_id = bytes,
            (2, Content::Bytes(bytes)) => span.span_id = bytes,
            (3, Content::Bytes(bytes)) => span.trace_state = text(bytes)?,
            (4, Content::Bytes(bytes)) => span.parent_span_id = bytes,
            (5, Content::Bytes(bytes)) => span.name = text(bytes)?,
            (6, Content::Varint(number)) => span.kind = number as i32,
            (7, Content::Fixed64(number)) => span.start_unix_nano = number,
            (8, Content::Fixed64(number)) => span.end_unix_nano = number,
            (9, Content::Bytes(bytes)) if attributes < ATTRIBUTES_MAX => {
                attributes += 1;
                let (key, value) = attribute(bytes)?;
                visit(key, value)?;
            }
            // How many attributes, events and links the sender dropped, and flags: none is kept.
            (10 | 12 | 14, Content::Varint(_)) | (16, Content::Fixed32) => {}
            (15, Content::Bytes(bytes)) if span.status.is_none() => {
                span.status = Some(otlp::Status::decode(bytes).ok()?);
            }
            _ => return None,
        }
    }
    Some(span)
}

/// A plain span of at most [`ATTRIBUTES_MAX`] attributes; `None` for any other.
pub(super) fn span(record: &[u8]) -> Option<Plain> {
    let mut attributes = Vec::with_capacity(USUAL);
    let walked = walk(record, |key, value| {
        attributes.push((text(key)?.to_owned(), value.json()));
        Some(())
    })?;
    let span = otlp::Span {
        trace_id: walked.trace_id.to_vec(),
        span_id: walked.span_id.to_vec(),
        trace_state: walked.trace_state.to_owned(),
        parent_span_id: walked.parent_span_id.to_vec(),
        name: walked.name.to_owned(),
        kind: walked.kind,
        start_time_unix_nano: walked.start_unix_nano,
        end_time_unix_nano: walked.end_unix_nano,
        status: walked.status,
        ..otlp::Span::default()
    };
    Some(Plain { span, attributes })
}

impl Scalar<'_> {
    pub(super) fn json(self) -> Value {
        match self {
            Self::Text(text) => Value::String(text.to_owned()),
            Self::Flag(flag) => Value::Bool(flag),
            Self::Int(number) => Value::from(number),
            Self::Double(number) => values::double(number),
        }
    }
}

/// A key and a value, in this order, each once.
#[inline]
fn attribute(mut bytes: &[u8]) -> Option<(&[u8], Scalar<'_>)> {
    let (1, Content::Bytes(key)) = next_field(&mut bytes).ok()? else { return None };
    let (2, Content::Bytes(mut value)) = next_field(&mut bytes).ok()? else { return None };
    let content = next_field(&mut value).ok()?;
    if !bytes.is_empty() || !value.is_empty() {
        return None;
    }
    let value = match content {
        (1, Content::Bytes(bytes)) => Scalar::Text(text(bytes)?),
        (2, Content::Varint(number)) => Scalar::Flag(number != 0),
        (3, Content::Varint(number)) => Scalar::Int(number as i64),
        (4, Content::Fixed64(bits)) => Scalar::Double(f64::from_bits(bits)),
        _ => return None,
    };
    Some((key, value))
}

#[inline]
fn text(bytes: &[u8]) -> Option<&str> {
    str::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, KeyValue, any_value::Value as Any};
    use proptest::prelude::*;
    use proptest::sample::Index;

    fn attribute_of(key: &str, value: Any) -> KeyValue {
        KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
    }

    fn usual() -> otlp::Span {
        otlp::Span {
            trace_id: vec![1; 16],
            span_id: vec![2; 8],
            trace_state: "ot=th:8".to_owned(),
            parent_span_id: vec![3; 8],
            flags: 0x101,
            name: "GET /é".to_owned(),
            kind: 3,
            start_time_unix_nano: 1_700_000_000_000_000_000,
            end_time_unix_nano: 1_700_000_000_000_000_009,
            attributes: vec![
                attribute_of("text", Any::StringValue("a b".to_owned())),
                attribute_of("flag", Any::BoolValue(true)),
                attribute_of("number", Any::IntValue(-5)),
                attribute_of("double", Any::DoubleValue(f64::NAN)),
                attribute_of("empty", Any::StringValue(String::new())),
            ],
            dropped_attributes_count: 7,
            dropped_events_count: 7,
            dropped_links_count: 7,
            status: Some(otlp::Status { code: 2, message: "no".to_owned() }),
            ..otlp::Span::default()
        }
    }

    /// A span as `prost` decodes it, without the fields that are not kept.
    fn by_prost(record: &[u8]) -> Option<Plain> {
        let mut span = otlp::Span::decode(record).ok()?;
        let attributes = values::pairs(std::mem::take(&mut span.attributes)).collect();
        span.flags = 0;
        (span.dropped_attributes_count, span.dropped_events_count, span.dropped_links_count) = (0, 0, 0);
        Some(Plain { span, attributes })
    }

    #[test]
    fn a_usual_span_is_plain_and_means_the_same() {
        let record = usual().encode_to_vec();
        let plain = span(&record);
        assert!(plain.is_some());
        assert_eq!(plain, by_prost(&record));
    }

    #[test]
    fn what_is_not_plain_is_left_to_others() {
        let list = Any::ArrayValue(ArrayValue { values: vec![] });
        let with = |change: &dyn Fn(&mut otlp::Span)| {
            let mut span = usual();
            change(&mut span);
            span.encode_to_vec()
        };
        let cases = [
            with(&|span| span.attributes.push(attribute_of("list", list.clone()))),
            with(&|span| span.attributes.push(KeyValue { key: "none".to_owned(), ..KeyValue::default() })),
            with(&|span| span.events.push(otlp::span::Event::default())),
            with(&|span| span.attributes = vec![attribute_of("k", Any::BoolValue(true)); ATTRIBUTES_MAX + 1]),
            [usual().encode_to_vec(), vec![0x0a]].concat(),
        ];
        for record in cases {
            assert_eq!(span(&record), None);
        }
    }

    proptest! {
        #[test]
        fn what_is_plain_means_what_prost_says(
            puts in prop::collection::vec((any::<Index>(), any::<u8>()), 0..4),
            end in any::<Index>(),
        ) {
            let mut record = usual().encode_to_vec();
            for (at, byte) in puts {
                let at = at.index(record.len());
                record[at] = byte;
            }
            for record in [&record[..], &record[..end.index(record.len())]] {
                if let Some(plain) = span(record) {
                    prop_assert_eq!(Some(plain), by_prost(record));
                }
            }
        }
    }
}
