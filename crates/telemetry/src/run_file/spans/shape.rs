//! Shapes: what many spans have in common, written once.
//!
//! A span is taken apart by its layout into a key, which is everything that goes into its shape, and the slots that fill
//! the shape's templates. The cache of shapes is bounded and only ever a cache: a shape that was forgotten is written
//! again. It holds ids that a rollback takes back, so it must be emptied then.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use narrows_model::trace::{Span, SpanFacts};
use rusqlite::{Connection, ToSql, params_from_iter};
use serde_json::Value;

use super::key_hash::HashKeys;
use super::layout::{Field, LAYOUTS_MAX, Layout, Layouts, Place, Role, push_text, push_value};
use super::request_name::RequestName;
use super::slot::{ATTRIBUTE_SLOTS, SLOTS, Slot, is_plain};
use super::tally::SpanClass;
use super::template::{self, Part};
use crate::run_file::intern::Strings;
use crate::run_file::words::{kind_number, status_number};

/// Most shapes of the cache.
const SHAPES_MAX: usize = 8 * LAYOUTS_MAX;
/// Most bytes of keys in the cache.
const KEY_BYTES_MAX: usize = 32 << 20;

/// Columns of a shape before its facts: see [`insert`].
const ALWAYS: [&str; 8] = ["trial", "service", "scope", "name", "kind", "status", "attributes", "status_message"];

static INSERT_SHAPE: LazyLock<String> = LazyLock::new(|| {
    let facts = [&SpanFacts::TEMPLATES[..], &["request_name"], &SpanFacts::CODES, &SpanFacts::TEXTS, &["weight"]];
    let columns = [&ALWAYS[..], &facts.concat()].concat();
    let values = vec!["?"; columns.len()].join(", ");
    format!("INSERT INTO span_shape_rows ({}) VALUES ({values})", columns.join(", "))
});

/// A shape that is in the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    pub(super) id: i64,
    /// Under what its spans are counted.
    pub(super) counted: SpanClass,
}

/// Gives each span its shape.
#[derive(Debug, Default)]
pub(super) struct Shapes {
    layouts: Layouts,
    known: HashMap<Box<[u8]>, Shape, HashKeys>,
    key: Vec<u8>,
    key_bytes: usize,
}

impl Shapes {
    /// The shape of a span, which is added when it is new, and what fills its templates.
    pub(super) fn get_or_add<'a>(
        &mut self,
        connection: &Connection,
        strings: &mut Strings,
        trial: i64,
        span: &'a Span,
        weight: f64,
    ) -> rusqlite::Result<(Shape, [Slot<'a>; SLOTS])> {
        let position = self.layouts.position(span);
        loop {
            self.key.clear();
            let layout = self.layouts.get(position);
            let parts = take_apart(&mut self.key, layout, span);
            push_rest(&mut self.key, trial, span, weight);
            if let Some(shape) = self.known.get(self.key.as_slice()) {
                return Ok((*shape, parts.slots));
            }
            // At most as often as there are fields: each moves once.
            if !self.layouts.learn(position, span) {
                let layout = self.layouts.get(position);
                let shape = insert(connection, strings, layout, &parts, trial, span, weight)?;
                self.remember(shape);
                return Ok((shape, parts.slots));
            }
        }
    }

    /// Empties the cache; needed after a rollback, which takes ids back.
    pub(super) fn forget(&mut self) {
        self.known.clear();
        self.key_bytes = 0;
    }

    fn remember(&mut self, shape: Shape) {
        if self.known.len() >= SHAPES_MAX || self.key_bytes + self.key.len() > KEY_BYTES_MAX {
            self.forget();
        }
        self.key_bytes += self.key.len();
        self.known.insert(self.key.as_slice().into(), shape);
    }
}

/// Where a text of the span stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Absent,
    /// In the shape.
    Shape,
    /// In a slot of its own.
    Slot(usize),
    /// It is the same as this attribute.
    Attribute(usize),
    /// It is this attribute, a question mark, and that one.
    Joined(usize, usize),
}

struct Parts<'a> {
    slots: [Slot<'a>; SLOTS],
    message: Source,
    url: Source,
    query: Source,
    destination: Source,
}

/// Attributes that a fact may be a copy of, with their positions.
#[derive(Default)]
struct Originals<'a> {
    url: Option<usize>,
    path: Option<(usize, &'a str)>,
    query: Option<(usize, &'a str)>,
    statement: Option<usize>,
    destination: Option<usize>,
}

/// Sorts what a span says into slots and key.
fn take_apart<'a>(key: &mut Vec<u8>, layout: &Layout, span: &'a Span) -> Parts<'a> {
    key.extend_from_slice(&layout.number.to_le_bytes());
    key.extend_from_slice(&layout.version.to_le_bytes());
    let mut slots: [Slot<'a>; SLOTS] = Default::default();
    let mut originals = Originals::default();
    let mut rest = String::new();
    for (at, (field, (name, value))) in layout.fields.iter().zip(&span.attributes).enumerate() {
        match field.place {
            Place::Shape => push_value(key, value),
            Place::Slot(slot) => {
                key.push(if value.is_string() { b'"' } else { b'-' });
                slots[slot] = Slot::of_value(value);
            }
            Place::Rest => template::push_member(&mut rest, name, value),
        }
        if let (true, Value::String(text)) = (field.role != Role::Plain && field.place != Place::Rest, value) {
            originals.see(at, field, text, span);
        }
    }
    if !rest.is_empty() {
        slots[ATTRIBUTE_SLOTS - 1] = Slot::Text(Cow::Owned(rest));
    }
    let mut next = ATTRIBUTE_SLOTS;
    let mut own = |text: &'a str| {
        slots[next] = Slot::of_text(text);
        next += 1;
        Source::Slot(next - 1)
    };
    let message = match layout.message.place {
        Place::Shape => Source::Shape,
        _ => own(&span.status_message),
    };
    let url = span.facts.url.as_deref().map(|url| originals.of_url(url).unwrap_or_else(|| own(url)));
    let query = span.facts.db_query.as_deref();
    let query = query.map(|query| originals.statement.map_or_else(|| own(query), Source::Attribute));
    let destination = span.facts.messaging_destination.as_deref();
    let parts = Parts {
        slots,
        message,
        url: url.unwrap_or(Source::Absent),
        query: query.unwrap_or(Source::Absent),
        destination: destination
            .map_or(Source::Absent, |_| originals.destination.map_or(Source::Shape, Source::Attribute)),
    };
    for (source, text) in [(parts.message, Some(span.status_message.as_str())), (parts.destination, destination)] {
        if let (Source::Shape, Some(text)) = (source, text) {
            push_text(key, text);
        }
    }
    [parts.message, parts.url, parts.query, parts.destination].into_iter().for_each(|source| source.push(key));
    parts
}

impl<'a> Originals<'a> {
    fn see(&mut self, at: usize, field: &Field, text: &'a str, span: &Span) {
        // In a slot stands what JSON writes, which a template that is no JSON can print only if it is the text itself.
        if field.place != Place::Shape && !is_plain(text) {
            return;
        }
        let facts = &span.facts;
        match field.role {
            Role::Url if facts.url.as_deref() == Some(text) => self.url = self.url.or(Some(at)),
            Role::Statement if facts.db_query.as_deref() == Some(text) => self.statement = self.statement.or(Some(at)),
            Role::Destination if facts.messaging_destination.as_deref() == Some(text) => {
                self.destination = self.destination.or(Some(at));
            }
            Role::Path => self.path = Some((at, text)),
            Role::Query => self.query = Some((at, text)),
            Role::Plain | Role::Url | Role::Statement | Role::Destination => {}
        }
    }

    fn of_url(&self, url: &str) -> Option<Source> {
        if let Some(at) = self.url {
            return Some(Source::Attribute(at));
        }
        let (path_at, path) = self.path?;
        let after = url.strip_prefix(path)?;
        if after.is_empty() {
            return Some(Source::Attribute(path_at));
        }
        let (query_at, query) = self.query?;
        (after.strip_prefix('?') == Some(query) && path_at < query_at).then_some(Source::Joined(path_at, query_at))
    }
}

impl Source {
    fn push(self, key: &mut Vec<u8>) {
        let (tag, one, other) = match self {
            Source::Absent => (0, 0, 0),
            Source::Shape => (1, 0, 0),
            Source::Slot(slot) => (2, slot, 0),
            Source::Attribute(at) => (3, at, 0),
            Source::Joined(one, other) => (4, one, other),
        };
        key.push(tag);
        key.extend_from_slice(&(one as u32).to_le_bytes());
        key.extend_from_slice(&(other as u32).to_le_bytes());
    }
}

/// Adds everything else that stands in the shape. What tells layouts apart is known by the layout's number, but for the
/// name.
fn push_rest(key: &mut Vec<u8>, trial: i64, span: &Span, weight: f64) {
    let facts = &span.facts;
    key.extend_from_slice(&trial.to_le_bytes());
    key.extend_from_slice(&weight.to_bits().to_le_bytes());
    key.push(status_number(span.status) as u8);
    push_text(key, &span.name);
    for text in facts.texts() {
        key.push(u8::from(text.is_some()));
        if let Some(text) = text {
            push_text(key, text);
        }
    }
    for number in facts.codes() {
        key.push(u8::from(number.is_some()));
        key.extend_from_slice(&number.unwrap_or_default().to_le_bytes());
    }
    RequestName::new(span.kind, &span.name, facts, &span.attributes).push(key);
}

fn insert(
    connection: &Connection,
    strings: &mut Strings,
    layout: &Layout,
    parts: &Parts<'_>,
    trial: i64,
    span: &Span,
    weight: f64,
) -> rusqlite::Result<Shape> {
    let facts = &span.facts;
    let mut template = |source, own: &str| -> rusqlite::Result<Option<i64>> {
        template_of(source, own, layout, span).map(|template| strings.id(connection, &template)).transpose()
    };
    let templates = [
        template(parts.message, &span.status_message)?,
        template(parts.url, "")?,
        template(parts.query, "")?,
        template(parts.destination, facts.messaging_destination.as_deref().unwrap_or_default())?,
    ];
    let (service, name) = (strings.id(connection, &span.service)?, strings.id(connection, &span.name)?);
    let scope = strings.id(connection, &span.scope)?;
    let attributes = strings.id(connection, &template::of_attributes(&span.attributes, &layout.fields))?;
    let always = [trial, service, scope, name, kind_number(span.kind), status_number(span.status), attributes];
    let request_name = RequestName::new(span.kind, &span.name, facts, &span.attributes).text();
    let mut columns: Vec<Option<i64>> = always.map(Some).into_iter().chain(templates).collect();
    columns.push(strings.optional(connection, request_name.as_deref())?);
    columns.extend(facts.codes().map(|number| number.map(i64::from)));
    for text in facts.texts() {
        columns.push(strings.optional(connection, text)?);
    }
    let columns = columns.iter().map(|column| column as &dyn ToSql).chain([&weight as &dyn ToSql]);
    let id = connection.prepare_cached(&INSERT_SHAPE)?.insert(params_from_iter(columns))?;
    let counted = SpanClass::new(service, name, span);
    Ok(Shape { id, counted })
}

/// The template of a text that stands where `source` says; `None` if there is no such text.
fn template_of(source: Source, in_shape: &str, layout: &Layout, span: &Span) -> Option<String> {
    let attribute = |at: usize| match layout.fields.get(at).map(|field| field.place) {
        Some(Place::Slot(slot)) => Part::Slot(slot),
        _ => Part::Fixed(span.attributes.values().nth(at).and_then(Value::as_str).unwrap_or_default()),
    };
    Some(match source {
        Source::Absent => return None,
        Source::Shape => template::of_parts(&[Part::Fixed(in_shape)]),
        Source::Slot(slot) => template::of_parts(&[Part::Slot(slot)]),
        Source::Attribute(at) => template::of_parts(&[attribute(at)]),
        Source::Joined(path, query) => template::of_parts(&[attribute(path), Part::Fixed("?"), attribute(query)]),
    })
}
