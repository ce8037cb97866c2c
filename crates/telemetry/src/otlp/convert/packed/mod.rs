//! Spans packed together: what a span costs while a load runs is one walk over its bytes and a short note of it.
//!
//! Packed are plain spans ([`super::plain`]) that are whole and in which nothing is a secret; all others are converted
//! at once. What a receiver decides is decided before: that ids and times make sense, and what a span weighs. Everything
//! else, facts and the cutting of texts, is done when they are unpacked, by the same code as for those that never were.
//! Neither resources nor `tracestate` are packed: they may hold what is not kept.
//!
//! The form is ours: the number of the form, then marks. An origin (service, scope, replica) and a weight hold for all spans
//! after them. A span is its ids, times and texts, one after the other, and its attributes, whose keys are numbers: a
//! number that was not there before is followed by its key. Keys are most of what exporters send. Numbers are
//! little-endian, lengths are two bytes.

mod read;
mod write;

use narrows_model::trace::Span;

pub(crate) use self::read::unpack;
pub(super) use self::write::Packer;

/// The first byte; another form gets another number.
const FORM: u8 = 1;
const ORIGIN: u8 = b'o';
const WEIGHT: u8 = b'w';
const SPAN: u8 = b's';

/// Type of an attribute's value; a flag is its kind.
const TEXT: u8 = 0;
const FALSE: u8 = 1;
const TRUE: u8 = 2;
const INT: u8 = 3;
const DOUBLE: u8 = 4;

/// The largest record that is packed, in bytes: lengths in it have two. Whatever is cut, and whatever takes long to look
/// through, is larger.
const RECORD_BYTES_MAX: usize = 16 << 10;
/// The most spans packed together, and about how many bytes: what is unpacked at once.
const SPANS_MAX: usize = 20_000;
const BYTES_MAX: usize = 16 << 20;
/// The most different keys of a request; a span with further ones is not packed.
const KEYS_MAX: usize = 128;

/// Spans of one request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PackedSpans {
    bytes: Vec<u8>,
    spans: usize,
}

/// Bytes that are not packed spans.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} at or after byte {offset} of {length}")]
pub struct NotPacked {
    what: &'static str,
    offset: usize,
    length: usize,
}

impl PackedSpans {
    /// How many spans there are.
    pub fn spans(&self) -> usize {
        self.spans
    }

    /// The spans in their packed form; nothing when there are none.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The spans as they are kept, but that their texts are not cut yet.
    ///
    /// # Errors
    /// Never, for what was packed by this program.
    pub fn unpack(&self) -> Result<Vec<Span>, NotPacked> {
        let mut spans = Vec::with_capacity(self.spans);
        if !self.bytes.is_empty() {
            unpack(&self.bytes, |span| spans.push(span))?;
        }
        Ok(spans)
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value::Value as Any};
    use opentelemetry_proto::tonic::resource::v1::Resource;
    use opentelemetry_proto::tonic::trace::v1 as otlp;
    use proptest::prelude::*;
    use prost::Message;

    use super::*;
    use crate::otlp::Weights;
    use crate::otlp::convert::{Conversion, spans, spans_to_keep};
    use crate::otlp::request::Format;

    fn attribute(key: &str, value: Any) -> KeyValue {
        KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
    }

    fn span(number: u8, attributes: Vec<KeyValue>) -> otlp::Span {
        otlp::Span {
            trace_id: vec![1; 16],
            span_id: vec![number + 1; 8],
            name: "GET /a".to_owned(),
            kind: 2,
            start_time_unix_nano: 5,
            end_time_unix_nano: 9,
            attributes,
            ..otlp::Span::default()
        }
    }

    /// A request of one resource and scope.
    fn request(spans: Vec<otlp::Span>) -> Vec<u8> {
        let scope_spans = vec![otlp::ScopeSpans { spans, ..otlp::ScopeSpans::default() }];
        let attributes = vec![attribute("narrows.replica", Any::IntValue(2))];
        let resource = Some(Resource { attributes, ..Resource::default() });
        let resource_spans = vec![otlp::ResourceSpans { resource, scope_spans, ..otlp::ResourceSpans::default() }];
        otlp::TracesData { resource_spans }.encode_to_vec()
    }

    fn kept(request: &[u8]) -> (PackedSpans, Conversion<Span>) {
        spans_to_keep(request, Format::Protobuf, &Weights::new()).unwrap()
    }

    /// All spans of a request, packed or not, as they are by themselves.
    fn all(request: &[u8]) -> (Vec<Span>, Vec<Span>) {
        let (packed, others) = kept(request);
        let both = packed.unpack().unwrap().into_iter().chain(others.records).collect();
        (both, spans(request, Format::Protobuf, &Weights::new()).unwrap().records)
    }

    #[test]
    fn spans_come_out_as_they_would_have_been_converted() {
        let many = (0..=254).map(|n| {
            let weighed = if n % 3 == 0 { "ot=th:8" } else { "" };
            let attributes = vec![attribute("n", Any::IntValue(n.into())), attribute("é", Any::DoubleValue(0.1))];
            otlp::Span { trace_state: weighed.to_owned(), ..span(n, attributes) }
        });
        let request = request(many.collect());
        let (packed, others) = kept(&request);
        assert_eq!((packed.spans(), others.records.len(), others.malformed), (255, 0, 0));
        let (both, converted) = all(&request);
        assert_eq!(both, converted);
        assert_eq!((both[0].weight, both[1].weight), (2.0, 1.0));
        let state = b"th:8";
        assert!(!packed.bytes().windows(state.len()).any(|window| window == state), "it may hold what is not kept");
    }

    #[test]
    fn what_holds_a_secret_or_makes_no_sense_is_not_packed() {
        let text = |text: &str| Any::StringValue(text.to_owned());
        let secrets = [
            ("http.request.header.authorization", text("Bearer abc")),
            ("user_token", Any::IntValue(17)),
            ("http.request.header.cookie", text("")),
            ("url.full", text("https://u:p@h/a")),
            ("url.full", text("https://h/a?x=1&api_key=abc")),
            ("http.target", text("/a#token=abc")),
            ("url.query", text("sig=abc")),
            ("db.query.text", text("CREATE USER a IDENTIFIED BY 'b'")),
            ("db.statement", text("AUTH abc")),
            ("messaging.destination.name", text("amqp://u:p@h/")),
            ("message", text("Cookie: a=b")),
        ];
        let bad = secrets.map(|(key, value)| span(1, vec![attribute(key, value)])).into_iter().chain([
            otlp::Span { name: "GET /a?token=abc".to_owned(), ..span(1, vec![]) },
            otlp::Span {
                status: Some(otlp::Status { code: 2, message: "at https://u:p@h/".to_owned() }),
                ..span(1, vec![])
            },
            otlp::Span { events: vec![otlp::span::Event::default()], ..span(1, vec![]) },
            span(1, vec![attribute("long", text(&"x".repeat(RECORD_BYTES_MAX)))]),
        ]);
        for bad in bad {
            let (packed, others) = kept(&request(vec![span(0, vec![]), bad.clone(), span(2, vec![])]));
            assert_eq!((packed.spans(), others.records.len()), (2, 1), "{bad:?}");
        }
        let many = (0..=KEYS_MAX).map(|n| span(n as u8, vec![attribute(&format!("k{n}"), Any::IntValue(1))]));
        let (packed, others) = kept(&request(many.collect()));
        assert_eq!((packed.spans(), others.records.len()), (KEYS_MAX, 1));
        let senseless = otlp::Span { trace_id: vec![0; 16], ..span(1, vec![]) };
        let (packed, others) = kept(&request(vec![span(0, vec![]), senseless]));
        assert_eq!((packed.spans(), others.records.len(), others.malformed), (1, 0, 1));
        let public = ["/a?b=c", "https://h/a?x=1#top", "SELECT * FROM a WHERE b = 'c'", "a: b"];
        for text in public {
            let keys = ["url.full", "db.query.text", "note", "exception.message"];
            let attributes = keys.map(|key| attribute(key, Any::StringValue(text.to_owned()))).to_vec();
            assert_eq!(kept(&request(vec![span(0, attributes)])).0.spans(), 1, "{text}");
        }
    }

    #[test]
    fn no_more_is_taken_from_a_request_than_a_limit() {
        let request = request(vec![span(0, vec![]); SPANS_MAX + 10]);
        let (packed, others) = kept(&request);
        assert_eq!((packed.spans(), others.records.len()), (SPANS_MAX, 10));
    }

    #[test]
    fn bytes_that_are_not_packed_spans_are_refused() {
        let packed = kept(&request(vec![span(0, vec![]), span(1, vec![])])).0;
        let said = |bytes: &[u8]| unpack(bytes, |_| {}).map_err(|error| error.to_string());
        assert_eq!(said(packed.bytes()), Ok(()));
        let form = "packed in a form that is not known";
        assert_eq!(said(&[]), Err(format!("{form} at or after byte 0 of 0")));
        assert_eq!(said(&[9]), Err(format!("{form} at or after byte 1 of 1")));
        assert_eq!(said(b"\x01s\0\0"), Err("a span without an origin at or after byte 2 of 4".to_owned()));
        assert_eq!(said(b"\x01o\xff\xff"), Err("something is cut short at or after byte 4 of 4".to_owned()));
        let cut = &packed.bytes()[..packed.bytes().len() - 3];
        assert!(said(cut).unwrap_err().starts_with("something is cut short at"));
        assert_eq!(said(b"\x01?"), Err("an unknown mark at or after byte 2 of 2".to_owned()));
    }

    proptest! {
        #[test]
        fn a_broken_request_means_the_same_whether_its_spans_are_packed_or_not(
            puts in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..5),
        ) {
            let attributes = vec![attribute("k", Any::StringValue("v".to_owned())), attribute("n", Any::IntValue(7))];
            let mut bytes = request((0..4).map(|n| span(n, attributes.clone())).collect());
            for (at, byte) in puts {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            let weights = Weights::new();
            match (spans_to_keep(&bytes, Format::Protobuf, &weights), spans(&bytes, Format::Protobuf, &weights)) {
                (Ok((packed, others)), Ok(expected)) => {
                    prop_assert_eq!((others.malformed, others.over_limit), (expected.malformed, expected.over_limit));
                    let both = packed.unpack().unwrap().into_iter().chain(others.records);
                    let mut got: Vec<String> = both.map(|span| format!("{span:?}")).collect();
                    let mut expected: Vec<String> = expected.records.iter().map(|span| format!("{span:?}")).collect();
                    got.sort();
                    expected.sort();
                    prop_assert_eq!(got, expected);
                }
                (got, expected) => prop_assert_eq!(got.map(drop), expected.map(drop)),
            }
        }

        #[test]
        fn broken_bytes_are_spans_or_a_mistake(
            puts in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
            end in any::<prop::sample::Index>(),
        ) {
            let attributes = vec![attribute("k", Any::StringValue("v".to_owned()))];
            let mut bytes = kept(&request(vec![span(0, attributes.clone()), span(1, attributes)])).0.bytes().to_vec();
            for (at, byte) in puts {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            let mut spans = 0;
            let _ = unpack(&bytes[..end.index(bytes.len())], |_| spans += 1);
            prop_assert!(spans <= 2);
        }
    }
}
