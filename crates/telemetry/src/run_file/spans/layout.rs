//! Which attributes of a kind of span stand in its shape, and which in the row of each span: learned as spans come.
//!
//! Spans of one service, scope, kind, name and set of attribute keys have one layout. Every attribute begins as part of
//! the shape and moves to the span once it has shown more than a few values. Beyond a number of names the name no longer
//! tells layouts apart, so that names with ids in them do not teach the same thing again and again. All of it is bounded,
//! and losing it costs only bytes: a shape may stand in the file twice.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};

use narrows_model::trace::Span;
use serde_json::Value;

use super::key_hash::HashKeys;
use super::slot::ATTRIBUTE_SLOTS;
use crate::run_file::words::kind_number;

/// Values of one attribute that may stand in shapes.
const VALUES_MAX: usize = 8;
/// Shapes of one layout before its most varied attribute moves to the spans.
const SHAPES_MAX: usize = 64;
/// Layouts that know the name of their spans.
const NAMED_MAX: usize = 1_024;
/// All layouts.
pub(super) const LAYOUTS_MAX: usize = 4_096;
/// Bytes of what tells layouts apart.
const KEY_BYTES_MAX: usize = 8 << 20;

/// Where a value stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Shape,
    /// The number of the slot, from 0.
    Slot(usize),
    /// In the last slot of attributes, together with others.
    Rest,
}

/// Facts of the span that an attribute may be a copy of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Plain,
    Url,
    Path,
    Query,
    Statement,
    Destination,
}

/// One attribute of a layout, or the status message.
#[derive(Debug, Clone)]
pub(super) struct Field {
    pub(super) place: Place,
    pub(super) role: Role,
    /// Hashes of the values it had while it stood in shapes.
    seen: Vec<u64>,
}

/// How the spans of one kind are taken apart.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) number: u32,
    /// Grows with every field that moves.
    pub(super) version: u32,
    /// In the order of the attributes.
    pub(super) fields: Vec<Field>,
    pub(super) message: Field,
    shapes: usize,
}

/// All layouts by what tells them apart.
#[derive(Debug, Default)]
pub(super) struct Layouts {
    numbers: HashMap<Box<[u8]>, usize, HashKeys>,
    layouts: Vec<Layout>,
    key: Vec<u8>,
    key_bytes: usize,
    hashes: RandomState,
    /// Layouts that were forgotten keep their numbers: shapes name them.
    forgotten: u32,
}

impl Layouts {
    /// The position of the layout of a span, which is made when it is new.
    pub(super) fn position(&mut self, span: &Span) -> usize {
        self.key.clear();
        push_text(&mut self.key, &span.name);
        let nameless = self.key.len();
        push_text(&mut self.key, &span.service);
        push_text(&mut self.key, &span.scope);
        self.key.push(kind_number(span.kind) as u8);
        span.attributes.keys().for_each(|key| push_text(&mut self.key, key));
        if let Some(position) = self.numbers.get(self.key.as_slice()) {
            return *position;
        }
        let key = if self.layouts.len() < NAMED_MAX { &self.key[..] } else { &self.key[nameless..] };
        if let Some(position) = self.numbers.get(key) {
            return *position;
        }
        let key: Box<[u8]> = key.into();
        if self.layouts.len() >= LAYOUTS_MAX || self.key_bytes + key.len() > KEY_BYTES_MAX {
            self.forget();
        }
        self.key_bytes += key.len();
        self.numbers.insert(key, self.layouts.len());
        self.layouts.push(Layout::new(self.forgotten.wrapping_add(self.layouts.len() as u32), span));
        self.layouts.len() - 1
    }

    pub(super) fn get(&self, position: usize) -> &Layout {
        &self.layouts[position]
    }

    /// Takes note of a shape that is new, and says whether a field moved: the span has another shape then.
    pub(super) fn learn(&mut self, position: usize, span: &Span) -> bool {
        self.layouts[position].learn(&self.hashes, span)
    }

    fn forget(&mut self) {
        self.forgotten = self.forgotten.wrapping_add(self.layouts.len() as u32);
        self.numbers.clear();
        self.layouts.clear();
        self.key_bytes = 0;
    }
}

impl Layout {
    fn new(number: u32, span: &Span) -> Self {
        let field = |role| Field { place: Place::Shape, role, seen: Vec::new() };
        let fields = span.attributes.keys().map(|key| field(role_of(key))).collect();
        Self { number, version: 0, fields, message: field(Role::Plain), shapes: 0 }
    }

    fn learn(&mut self, hashes: &RandomState, span: &Span) -> bool {
        self.shapes += 1;
        for (field, value) in self.fields.iter_mut().zip(span.attributes.values()) {
            field.see(|| hash_of(hashes, value));
        }
        self.message.see(|| hashes.hash_one(&span.status_message));
        let varied = |field: &Field| if field.place == Place::Shape { field.seen.len() } else { 0 };
        let Some(most) = self.fields.iter_mut().chain([&mut self.message]).max_by_key(|field| varied(field)) else {
            return false;
        };
        let moves = varied(most) > VALUES_MAX || (self.shapes > SHAPES_MAX && varied(most) > 1);
        if moves {
            most.place = Place::Rest;
            most.seen = Vec::new();
            self.place();
            self.version += 1;
            self.shapes = 0;
        }
        moves
    }

    /// Gives the attributes that do not stand in the shape their slots: all but the last alone, the last with the rest.
    fn place(&mut self) {
        let moved: Vec<&mut Field> = self.fields.iter_mut().filter(|field| field.place != Place::Shape).collect();
        let fit = moved.len() <= ATTRIBUTE_SLOTS;
        for (slot, field) in moved.into_iter().enumerate() {
            field.place = if fit || slot < ATTRIBUTE_SLOTS - 1 { Place::Slot(slot) } else { Place::Rest };
        }
    }
}

impl Field {
    fn see(&mut self, hash: impl FnOnce() -> u64) {
        if self.place == Place::Shape {
            let hash = hash();
            if self.seen.len() <= VALUES_MAX && !self.seen.contains(&hash) {
                self.seen.push(hash);
            }
        }
    }
}

fn role_of(key: &str) -> Role {
    match key {
        "url.full" | "http.url" | "http.target" => Role::Url,
        "url.path" => Role::Path,
        "url.query" => Role::Query,
        "db.query.text" | "db.statement" => Role::Statement,
        "messaging.destination.name" | "messaging.destination" | "messaging.source.name" => Role::Destination,
        _ => Role::Plain,
    }
}

fn hash_of(hashes: &RandomState, value: &Value) -> u64 {
    let mut key = Vec::new();
    push_value(&mut key, value);
    let mut hasher = hashes.build_hasher();
    hasher.write(&key);
    hasher.finish()
}

/// Adds a text to a key, so that no two rows of texts make the same key.
pub(super) fn push_text(key: &mut Vec<u8>, text: &str) {
    key.extend_from_slice(&(text.len() as u32).to_le_bytes());
    key.extend_from_slice(text.as_bytes());
}

/// Adds a value to a key.
pub(super) fn push_value(key: &mut Vec<u8>, value: &Value) {
    match value {
        Value::String(text) => {
            key.push(b's');
            push_text(key, text);
        }
        Value::Number(number) if number.is_i64() => {
            key.push(b'i');
            key.extend_from_slice(&number.as_i64().unwrap_or_default().to_le_bytes());
        }
        value => {
            key.push(b'j');
            push_text(key, &value.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn span(name: &str, attributes: Value) -> Span {
        let Value::Object(attributes) = attributes else { unreachable!() };
        let base = json!({
            "trace_id": vec![1; 16], "span_id": vec![1; 8], "parent_id": null, "service": "gateway", "scope": "", "name": name,
            "kind": "server", "start_ns": 0, "end_ns": 0, "status": "unset", "status_message": "",
            "facts": narrows_model::trace::SpanFacts::default(), "attributes": attributes, "weight": 1.0,
        });
        serde_json::from_value(base).unwrap()
    }

    fn places(layouts: &mut Layouts, values: impl Iterator<Item = Value>) -> Vec<Place> {
        let mut position = 0;
        for value in values {
            let span = span("GET /", value);
            position = layouts.position(&span);
            while layouts.learn(position, &span) {}
        }
        layouts.get(position).fields.iter().map(|field| field.place).collect()
    }

    #[test]
    fn what_differs_moves_to_the_span_and_what_repeats_stays() {
        let mut layouts = Layouts::default();
        let values = (0..30).map(|n| json!({ "few": n % 8, "many": n, "one": "x" }));
        assert_eq!(places(&mut layouts, values), [Place::Shape, Place::Slot(0), Place::Shape]);
    }

    #[test]
    fn few_values_of_many_attributes_do_not_multiply() {
        let mut layouts = Layouts::default();
        let values = (0..5_000).map(|n| json!({ "a": n % 5, "b": n / 5 % 6, "c": n / 30 % 7 }));
        assert!(places(&mut layouts, values).iter().any(|place| *place != Place::Shape));
    }

    #[test]
    fn beyond_the_slots_attributes_share_the_last() {
        let mut layouts = Layouts::default();
        let values = (0..100).map(|n| (0..8).map(|key| (format!("k{key}"), json!(n + key))).collect());
        let found = places(&mut layouts, values);
        let alone: Vec<Place> = (0..ATTRIBUTE_SLOTS - 1).map(Place::Slot).collect();
        assert_eq!(found[..ATTRIBUTE_SLOTS - 1], alone);
        assert!(found[ATTRIBUTE_SLOTS - 1..].iter().all(|place| *place == Place::Rest));
    }

    #[test]
    fn names_without_end_share_a_layout_and_keys_without_end_do_not_fill_the_memory() {
        let mut layouts = Layouts::default();
        for number in 0..3 * NAMED_MAX {
            layouts.position(&span(&format!("GET /{number}"), json!({ "a": 1 })));
        }
        assert_eq!(layouts.layouts.len(), NAMED_MAX + 1);
        let mut numbers = std::collections::HashSet::new();
        for number in 0..2 * LAYOUTS_MAX {
            let position = layouts.position(&span("GET /", json!({ format!("key {number}"): 1 })));
            assert!(numbers.insert(layouts.get(position).number), "a number is never given twice");
        }
        assert!(layouts.layouts.len() <= LAYOUTS_MAX && layouts.numbers.len() <= LAYOUTS_MAX);
    }
}
