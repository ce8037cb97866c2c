//! One document of JSON, at its outermost level: which of its lists are handed on, element by element, as text.
//!
//! The names of the long lists are known here (`data`, `resourceSpans`, …); what their elements mean is not. A single
//! trace of Jaeger and a list of them are handed on as if they stood in `data`.

use std::fmt;

use serde::Deserializer as _;
use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, SeqAccess, Unexpected, Visitor};
use serde_json::value::RawValue;

/// Names of members that are reported when none is known.
const NAMES_MAX: usize = 5;

/// A list whose elements are handed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum List {
    /// `data` of Jaeger's API and its user interface.
    JaegerTraces,
    ResourceSpans,
    ResourceMetrics,
    ResourceLogs,
}

impl List {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "data" => List::JaegerTraces,
            "resourceSpans" => List::ResourceSpans,
            "resourceMetrics" => List::ResourceMetrics,
            "resourceLogs" => List::ResourceLogs,
            _ => return None,
        })
    }

    /// The member's name.
    pub(super) fn name(self) -> &'static str {
        match self {
            List::JaegerTraces => "data",
            List::ResourceSpans => "resourceSpans",
            List::ResourceMetrics => "resourceMetrics",
            List::ResourceLogs => "resourceLogs",
        }
    }
}

/// What is found in a file, in order.
#[derive(Debug)]
pub(super) enum Found<'t> {
    /// An element of a list, as text.
    Element { list: List, index: usize, text: &'t str, place: Place },
    /// A document with none of the lists; the names of its members.
    Foreign { members: Vec<String>, place: Place },
    /// Text that is no JSON; in a file of lines the next line follows.
    Broken { what: String, place: Place },
}

/// Where something stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// In a line of a file of lines, from 1.
    Line(u64),
    /// Somewhere in a single document.
    Document,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Line(line) => write!(f, "line {line}: "),
            Place::Document => Ok(()),
        }
    }
}

pub(super) type Visit<'v> = &'v mut dyn FnMut(Found<'_>) -> Result<(), String>;

/// See the module.
pub(super) struct Document<'d> {
    pub(super) visit: Visit<'d>,
    pub(super) place: Place,
    /// What the visitor said, when it wants no more.
    pub(super) failed: Option<String>,
    /// Is called after each element.
    pub(super) passed: &'d dyn Fn(),
}

impl Document<'_> {
    pub(super) fn read<'de, R: serde_json::de::Read<'de>>(
        &mut self,
        json: &mut serde_json::Deserializer<R>,
    ) -> Result<(), serde_json::Error> {
        json.deserialize_any(Top(self))
    }

    fn tell<E: serde::de::Error>(&mut self, found: Found<'_>) -> Result<(), E> {
        (self.visit)(found).map_err(|failed| {
            self.failed = Some(failed);
            E::custom("the visitor wants no more")
        })
    }
}

struct Top<'t, 'd>(&'t mut Document<'d>);

impl<'de> Visitor<'de> for Top<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or a list")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let document = self.0;
        let mut is_known = false;
        let mut members = Vec::new();
        let mut trace = BareTrace::default();
        while let Some(name) = map.next_key::<String>()? {
            if let Some(list) = List::named(&name) {
                is_known = true;
                map.next_value_seed(Elements { document: &mut *document, list })?;
            } else if let Some(part) = trace.part(&name) {
                *part = Some(map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
            (document.passed)();
            if members.len() < NAMES_MAX {
                members.push(name.chars().take(40).collect());
            }
        }
        let place = document.place;
        match trace.whole() {
            Some(text) if !is_known => {
                document.tell(Found::Element { list: List::JaegerTraces, index: 0, text: &text, place })
            }
            _ if !is_known => document.tell(Found::Foreign { members, place }),
            _ => Ok(()),
        }
    }

    fn visit_str<E: serde::de::Error>(self, _: &str) -> Result<(), E> {
        Err(E::invalid_type(Unexpected::Other("a string"), &self))
    }

    /// A list of Jaeger's traces, as its user interface also takes them.
    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<(), A::Error> {
        Elements { document: self.0, list: List::JaegerTraces }.visit_seq(seq)
    }
}

/// A trace of Jaeger that stands alone, without the list.
#[derive(Default)]
struct BareTrace {
    id: Option<Box<RawValue>>,
    spans: Option<Box<RawValue>>,
    processes: Option<Box<RawValue>>,
}

impl BareTrace {
    fn part(&mut self, name: &str) -> Option<&mut Option<Box<RawValue>>> {
        match name {
            "traceID" => Some(&mut self.id),
            "spans" => Some(&mut self.spans),
            "processes" => Some(&mut self.processes),
            _ => None,
        }
    }

    fn whole(&self) -> Option<String> {
        let (spans, processes) = (self.spans.as_ref()?.get(), self.processes.as_ref()?.get());
        let id = self.id.as_ref().map_or("null", |id| id.get());
        Some(format!("{{\"traceID\":{id},\"spans\":{spans},\"processes\":{processes}}}"))
    }
}

/// The elements of a list, each as text.
struct Elements<'t, 'd> {
    document: &'t mut Document<'d>,
    list: List,
}

impl<'de> DeserializeSeed<'de> for Elements<'_, '_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Elements<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list as {:?}", self.list.name())
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        Ok(())
    }

    /// Otherwise the message would hold the whole text, which may be anything: long, or a secret.
    fn visit_str<E: serde::de::Error>(self, _: &str) -> Result<(), E> {
        Err(E::invalid_type(Unexpected::Other("a string"), &self))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let Self { document, list } = self;
        let mut index = 0;
        while let Some(element) = seq.next_element::<Box<RawValue>>()? {
            let place = document.place;
            document.tell::<A::Error>(Found::Element { list, index, text: element.get(), place })?;
            (document.passed)();
            index = index.checked_add(1).ok_or_else(|| A::Error::custom("too many elements"))?;
        }
        Ok(())
    }
}
