//! One JSON document, split at its outermost level into the parts to be read as records, each handed on as text.
//!
//! [`super::formats`] names the parts: lists whose elements are handed on one by one, members that hold a nested
//! document, and objects that are single records. A top-level list holds documents, or lists of them.

use std::fmt;

use serde::Deserializer as _;
use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, SeqAccess, Unexpected, Visitor};
use serde_json::value::RawValue;

use super::documents::ELEMENT_BYTES_MAX;
use super::formats::{self, Read};

/// Maximum number of member names that an error lists if none of them holds records.
const NAMES_MAX: usize = 20;
/// The longest of these names, in characters.
const NAME_CHARS_MAX: usize = 40;
/// Maximum depth of nested documents that are read.
const DEPTH_MAX: usize = 3;

/// Items of a file, in order.
#[derive(Debug)]
pub(super) enum Item<'t> {
    /// Text that holds records.
    Part { read: Read, path: &'t str, text: &'t str, place: Place },
    /// A document without any such part, and a description of it.
    Unknown { what: String, path: &'t str, place: Place },
    /// Text that is no JSON; in a file of lines the next line follows.
    Broken { what: String, place: Place },
}

/// Where something stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// In a line of a file of lines, from 1.
    Line(u64),
    /// In one of several documents, numbered from 1.
    Document(u64),
    /// Somewhere in the only document, or in the first.
    Anywhere,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Line(line) => write!(f, "line {line}: "),
            Place::Document(number) => write!(f, "document {number}: "),
            Place::Anywhere => Ok(()),
        }
    }
}

pub(super) type Visit<'v> = &'v mut dyn FnMut(Item<'_>) -> Result<(), String>;

/// See the module.
pub(super) struct Document<'d> {
    pub(super) visit: Visit<'d>,
    pub(super) place: Place,
    /// Reason of a visitor that wants no more.
    pub(super) failed: Option<String>,
    /// Called after each part.
    pub(super) passed: &'d dyn Fn(),
}

impl Document<'_> {
    pub(super) fn read<'de, R: serde_json::de::Read<'de>>(
        &mut self,
        json: &mut serde_json::Deserializer<R>,
    ) -> Result<(), serde_json::Error> {
        json.deserialize_any(Top { document: self, path: "", depth: 0 })
    }

    fn tell<E: serde::de::Error>(&mut self, found: Item<'_>) -> Result<(), E> {
        (self.visit)(found).map_err(|failed| {
            self.failed = Some(failed);
            E::custom("the visitor wants no more")
        })
    }
}

/// A document, or one nested in another.
struct Top<'t, 'd> {
    document: &'t mut Document<'d>,
    path: &'t str,
    depth: usize,
}

impl Top<'_, '_> {
    /// Reads a document nested in this one, at `path`.
    fn within<E: serde::de::Error>(&mut self, path: &str, text: &str) -> Result<(), E> {
        let Self { document, depth, .. } = self;
        let place = document.place;
        if !text.starts_with(['{', '[']) || *depth >= DEPTH_MAX {
            let what = "a value that is neither an object nor a list".to_owned();
            return document.tell(Item::Unknown { what, path, place });
        }
        let mut json = serde_json::Deserializer::from_str(text);
        let top = Top { document, path, depth: *depth + 1 };
        let read = json.deserialize_any(top);
        (document.passed)();
        // It has already been parsed as a part of this document, so it is JSON.
        read.map_err(E::custom)
    }
}

impl<'de> Visitor<'de> for Top<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or a list")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        let mut has_parts = false;
        let mut members: Vec<String> = Vec::new();
        let mut kept: Vec<(String, Box<RawValue>)> = Vec::new();
        let mut kept_bytes = 0_usize;
        while let Some(name) = map.next_key::<String>()? {
            if let Some(list) = formats::list(&name) {
                let path = self.path_of(&name);
                let elements = Elements { document: &mut *self.document, read: list.read, path: &path };
                has_parts |= map.next_value_seed(elements)?;
            } else if formats::is_wrapper(&name) {
                let value: Box<RawValue> = map.next_value()?;
                if value.get().starts_with('{') {
                    has_parts = true;
                    self.within(&self.path_of(&name), value.get())?;
                }
            } else if formats::is_of_record(&name) {
                let value: Box<RawValue> = map.next_value()?;
                kept_bytes += value.get().len();
                if kept_bytes > ELEMENT_BYTES_MAX {
                    return Err(A::Error::custom("an object that is larger than what is read at once"));
                }
                kept.push((name.clone(), value));
            } else {
                map.next_value::<IgnoredAny>()?;
                (self.document.passed)();
            }
            if members.len() < NAMES_MAX {
                members.push(name.chars().take(NAME_CHARS_MAX).collect());
            }
        }
        (self.document.passed)();
        if has_parts { Ok(()) } else { self.record(&kept, &members) }
    }

    fn visit_str<E: serde::de::Error>(self, _: &str) -> Result<(), E> {
        Err(E::invalid_type(Unexpected::Other("a string"), &self))
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<(), A::Error> {
        let mut index = 0_usize;
        while let Some(element) = seq.next_element::<Box<RawValue>>()? {
            let path = format!("{}[{index}]", self.path);
            self.within(&path, element.get())?;
            index += 1;
        }
        Ok(())
    }
}

impl Top<'_, '_> {
    fn path_of(&self, member: &str) -> String {
        let dot = if self.path.is_empty() { "" } else { "." };
        format!("{}{dot}{member}", self.path)
    }

    /// Hands on an object that is a single record.
    fn record<E: serde::de::Error>(self, kept: &[(String, Box<RawValue>)], members: &[String]) -> Result<(), E> {
        let Self { document, path, .. } = self;
        let place = document.place;
        let record = formats::record(|name| kept.iter().any(|(known, _)| known == name));
        let Some(record) = record else {
            return document.tell(Item::Unknown { what: formats::described(members), path, place });
        };
        let members = kept.iter().filter(|(name, _)| record.members.contains(&name.as_str()));
        let members: Vec<String> = members.map(|(name, value)| format!("\"{name}\":{}", value.get())).collect();
        let text = format!("{{{}}}", members.join(","));
        document.tell(Item::Part { read: record.read, path, text: &text, place })
    }
}

/// The elements of a list, each as text. Returns whether it is a list.
struct Elements<'t, 'd> {
    document: &'t mut Document<'d>,
    read: Read,
    path: &'t str,
}

impl<'de> DeserializeSeed<'de> for Elements<'_, '_> {
    type Value = bool;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Elements<'_, '_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list as {:?}", self.path)
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<bool, E> {
        Ok(false)
    }

    /// Another format uses this name for something else.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(false)
    }

    /// Otherwise the message would hold the whole text, which may be anything: long, or a secret.
    fn visit_str<E: serde::de::Error>(self, _: &str) -> Result<bool, E> {
        Err(E::invalid_type(Unexpected::Other("a string"), &self))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<bool, A::Error> {
        let Self { document, read, path } = self;
        let mut index = 0_usize;
        while let Some(element) = seq.next_element::<Box<RawValue>>()? {
            let (path, place) = (format!("{path}[{index}]"), document.place);
            document.tell::<A::Error>(Item::Part { read, path: &path, text: element.get(), place })?;
            (document.passed)();
            index += 1;
        }
        Ok(true)
    }
}
