//! Packs spans.

use super::super::Origin;
use super::super::plain::{self, PlainSpan, Scalar};
use super::super::spans::SpanHead;
use super::*;
use crate::otlp::weights::Rule;
use crate::secrets::{TextKind, are_public, is_plain_text};

/// Bytes of packed spans for one of a request, about: room that is made at first.
const REQUEST_PART: usize = 2;

/// Packs the spans of one request.
#[derive(Debug)]
pub(in crate::otlp::convert) struct Packer {
    packed: PackedSpans,
    origin: Option<Origin>,
    weight: f64,
    keys: Keys,
    /// The attributes of the span that is looked at.
    attributes: Vec<u8>,
}

impl Packer {
    /// For a request of so many bytes.
    pub(in crate::otlp::convert) fn new(request_bytes: usize) -> Self {
        let bytes = Vec::with_capacity((request_bytes / REQUEST_PART).min(BYTES_MAX));
        let packed = PackedSpans { bytes, spans: 0 };
        Self { packed, origin: None, weight: 0.0, keys: Keys::default(), attributes: Vec::new() }
    }

    /// Packed bytes. They takes no more room than its length, or twice of it: it may wait in a queue.
    pub(in crate::otlp::convert) fn done(mut self) -> PackedSpans {
        if self.packed.bytes.len() < self.packed.bytes.capacity() / 2 {
            self.packed.bytes.shrink_to_fit();
        }
        self.packed
    }

    /// Takes a span, or says that it is not to be packed.
    pub(in crate::otlp::convert) fn take(&mut self, origin: &Origin, rule: Rule, record: &[u8]) -> bool {
        let is_full = self.packed.spans >= SPANS_MAX || self.packed.bytes.len() >= BYTES_MAX;
        if is_full || record.len() > RECORD_BYTES_MAX {
            return false;
        }
        let known = self.keys.list.len();
        let taken = self.take_whole(origin, rule, record).is_some();
        if !taken {
            self.keys.list.truncate(known);
        }
        taken
    }

    fn take_whole(&mut self, origin: &Origin, rule: Rule, record: &[u8]) -> Option<()> {
        let is_new = self.origin.as_ref() != Some(origin);
        if is_new && !(is_plain_text(&origin.service) && is_plain_text(&origin.scope)) {
            return None;
        }
        let Self { keys, attributes, .. } = self;
        attributes.clear();
        let (mut count, mut before) = (0_u16, None);
        let span = plain::walk(record, |key, value| {
            let at = keys.put(attributes, before, key)?;
            before = Some(at);
            count += 1;
            put_value(attributes, keys.list[at].kind, value)
        })?;
        let ids = [span.trace_id, span.span_id, span.parent_span_id];
        let ids = SpanHead::these(ids, span.start_unix_nano, span.end_unix_nano).ok()?;
        if !are_public(span.name, span.status.as_ref().map_or("", |status| &status.message)) {
            return None;
        }
        self.begin(origin, rule.weigh(&ids.trace_id, span.trace_state));
        self.put(&span, count);
        self.packed.spans += 1;
        Some(())
    }

    /// Writes where the next span comes from and what it weighs, where that is not as before.
    fn begin(&mut self, origin: &Origin, weight: f64) {
        let bytes = &mut self.packed.bytes;
        if bytes.is_empty() {
            bytes.push(FORM);
        }
        if self.origin.as_ref() != Some(origin) {
            bytes.push(ORIGIN);
            put_text(bytes, origin.service.as_bytes());
            put_text(bytes, origin.scope.as_bytes());
            // None is 0.
            let replica = origin.stated_replica.map_or(0, |replica| u64::from(replica) + 1);
            bytes.extend_from_slice(&replica.to_le_bytes());
            self.origin = Some(origin.clone());
        }
        if self.weight.to_bits() != weight.to_bits() {
            self.weight = weight;
            bytes.push(WEIGHT);
            bytes.extend_from_slice(&weight.to_le_bytes());
        }
    }

    fn put(&mut self, span: &PlainSpan<'_>, attributes: u16) {
        let bytes = &mut self.packed.bytes;
        bytes.push(SPAN);
        bytes.extend_from_slice(span.trace_id);
        bytes.extend_from_slice(span.span_id);
        put_text(bytes, span.parent_span_id);
        bytes.extend_from_slice(&span.start_unix_nano.to_le_bytes());
        bytes.extend_from_slice(&span.end_unix_nano.to_le_bytes());
        let (code, message) = span.status.as_ref().map_or((0, ""), |status| (status.code, &status.message));
        // Numbers that nobody knows mean what 0 means.
        bytes.extend([span.kind, code].map(|number| u8::try_from(number).unwrap_or(0)));
        put_text(bytes, span.name.as_bytes());
        put_text(bytes, message.as_bytes());
        bytes.extend_from_slice(&attributes.to_le_bytes());
        bytes.extend_from_slice(&self.attributes);
    }
}

/// Nothing of a record is longer than a length can say.
fn put_text(bytes: &mut Vec<u8>, text: &[u8]) {
    bytes.extend_from_slice(&(text.len() as u16).to_le_bytes());
    bytes.extend_from_slice(text);
}

/// `None` if there is a secret in it.
fn put_value(bytes: &mut Vec<u8>, kind: TextKind, value: Scalar<'_>) -> Option<()> {
    match value {
        Scalar::Text(text) => {
            bytes.push(TEXT);
            put_text(bytes, text.as_bytes());
            return kind.is_public(text).then_some(());
        }
        Scalar::Flag(flag) => bytes.push(if flag { TRUE } else { FALSE }),
        Scalar::Int(number) => {
            bytes.push(INT);
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        Scalar::Double(number) => {
            bytes.push(DOUBLE);
            bytes.extend_from_slice(&number.to_le_bytes());
        }
    }
    Some(())
}

/// The keys so far.
#[derive(Debug, Default)]
struct Keys {
    list: Vec<Key>,
    /// The key that came first in the last span.
    first: usize,
}

#[derive(Debug)]
struct Key {
    name: Box<[u8]>,
    kind: TextKind,
    /// The key that came after this one last: spans of a kind have their attributes in one order.
    after: usize,
}

impl Keys {
    /// Writes a key's number, and the key if it is new; `None` if there are too many, or its values are secrets.
    #[inline]
    fn put(&mut self, bytes: &mut Vec<u8>, before: Option<usize>, name: &[u8]) -> Option<usize> {
        let guess = before.map_or(self.first, |before| self.list[before].after);
        if self.list.get(guess).is_some_and(|key| *key.name == *name) {
            bytes.push(guess as u8);
            return Some(guess);
        }
        let at = self.list.iter().position(|key| *key.name == *name);
        let at = match at {
            Some(at) => {
                bytes.push(at as u8);
                at
            }
            None => self.add(bytes, name)?,
        };
        match before {
            Some(before) => self.list[before].after = at,
            None => self.first = at,
        }
        Some(at)
    }

    fn add(&mut self, bytes: &mut Vec<u8>, name: &[u8]) -> Option<usize> {
        let at = self.list.len();
        if at >= KEYS_MAX {
            return None;
        }
        let kind = TextKind::of_public(str::from_utf8(name).ok()?)?;
        self.list.push(Key { name: name.into(), kind, after: 0 });
        bytes.push(at as u8);
        put_text(bytes, name);
        Some(at)
    }
}
