//! An experiment's text as scalars with their places, and the edits that blank its secrets.

use std::collections::BTreeSet;
use std::ops::Range;

use narrows_telemetry::secrets::{REDACTED, find_in_text};
use saphyr_parser::{Event, Parser, ScalarStyle, StrInput};

use super::Secrets;
use super::credentials::{credentials, is_open, parts};
use super::keys::{ITEM, is_naming};
use super::scalar::{Found, Role, Scalar};

/// What stands for a key that is no text.
const NO_TEXT: &str = "?";

/// The scalars of a text, in its order.
pub(super) struct Document<'a> {
    source: &'a str,
    scalars: Vec<Scalar>,
    /// Where the parser gave up, or the text's end.
    end: usize,
}

/// A map or list that is being read.
enum Open {
    Map(Option<String>),
    /// With its last item.
    List(Option<String>),
}

impl<'a> Document<'a> {
    pub(super) fn read(source: &'a str) -> Self {
        let offsets = Offsets::of(source);
        let mut document = Document { source, scalars: Vec::new(), end: source.len() };
        let mut open: Vec<Open> = Vec::new();
        let mut parser: Parser<'_, StrInput<'_>> = Parser::new_from_str(source);
        while let Some(event) = parser.next_event() {
            let (event, span) = match event {
                Ok(read) => read,
                Err(error) => {
                    // What was read up to the last scalar is known; the rest is not.
                    let read = document.scalars.last().map_or(0, |scalar| scalar.place.end);
                    document.end = offsets.byte(error.marker().index()).min(read);
                    break;
                }
            };
            match event {
                Event::Scalar(text, style, ..) => {
                    let start = offsets.byte(span.start.index());
                    // A block ends before the indentation of what follows it.
                    let end = offsets.byte(span.end.index()).max(start);
                    let place = start..start + source[start..end].trim_end_matches([' ', '\t']).len();
                    let role = match open.last() {
                        Some(Open::Map(None)) => Role::Key,
                        Some(Open::List(before)) => Role::Value(before.clone()),
                        _ => Role::Value(None),
                    };
                    let path = open.iter().map(Open::step).collect();
                    let text = text.into_owned();
                    close(&mut open, Some(&text));
                    document.scalars.push(Scalar { path, place, style, text, role });
                }
                Event::SequenceStart(..) => open.push(Open::List(None)),
                Event::MappingStart(..) => open.push(Open::Map(None)),
                Event::SequenceEnd | Event::MappingEnd => {
                    open.pop();
                    close(&mut open, None);
                }
                Event::Alias(_) => close(&mut open, None),
                _ => {}
            }
        }
        document
    }

    fn values(&self) -> impl Iterator<Item = &Scalar> {
        self.scalars.iter().filter(|scalar| matches!(scalar.role, Role::Value(_)))
    }

    pub(super) fn secrets(&self) -> Secrets {
        let mut secrets = Secrets::default();
        let parameters: BTreeSet<String> = self.values().flat_map(|scalar| scalar.secret_names()).collect();
        secrets.parameters = parameters;
        let names = self.names();
        for scalar in self.values() {
            let texts = match scalar.found(&secrets) {
                Found::Whole => credentials(&scalar.text),
                Found::Parts(places, _) => parts(&scalar.text, &places),
            };
            secrets.values.extend(texts.into_iter().filter(|text| !names.contains(text.as_str()) && !is_open(text)));
        }
        secrets
    }

    /// Texts that name something, so that they cannot be blanked wherever they stand.
    fn names(&self) -> BTreeSet<&str> {
        let is_name = |scalar: &&Scalar| match scalar.role {
            Role::Key => true,
            Role::Value(_) => scalar.path.last().is_some_and(|key| is_naming(key)),
        };
        self.scalars.iter().filter(is_name).map(|scalar| scalar.text.as_str()).collect()
    }

    /// What is to stand at which places of the source.
    pub(super) fn edits(&self, secrets: &Secrets) -> Vec<(Range<usize>, String)> {
        let mut edits = Vec::new();
        let mut from = 0;
        for scalar in &self.scalars {
            self.edit_comments(from..scalar.place.start, &mut edits);
            from = scalar.place.end.max(from);
            if matches!(scalar.role, Role::Value(_)) {
                edits.extend(self.edits_of(scalar, secrets));
            }
        }
        self.edit_comments(from..self.end.max(from), &mut edits);
        let rest = self.end.max(from);
        edits.extend(blanks(&self.source[rest..], rest));
        edits
    }

    fn edits_of(&self, scalar: &Scalar, secrets: &Secrets) -> Vec<(Range<usize>, String)> {
        let written = &self.source[scalar.place.clone()];
        let is_block = matches!(scalar.style, ScalarStyle::Literal | ScalarStyle::Folded);
        match scalar.found(secrets) {
            Found::Whole if scalar.text.is_empty() || is_open(&scalar.text) => Vec::new(),
            Found::Whole => {
                let instead = match scalar.style {
                    ScalarStyle::SingleQuoted => format!("'{REDACTED}'"),
                    ScalarStyle::DoubleQuoted => format!("\"{REDACTED}\""),
                    // What follows stays in its lines.
                    _ if is_block => REDACTED.to_owned() + &"\n".repeat(written.matches('\n').count()),
                    _ => REDACTED.to_owned(),
                };
                vec![(scalar.place.clone(), instead)]
            }
            Found::Parts(..) if is_block => blanks(written, scalar.place.start).collect(),
            Found::Parts(mut places, perhaps) => {
                places.extend(perhaps);
                if places.is_empty() {
                    return Vec::new();
                }
                // Written as it is meant, perhaps in quotes.
                if let Some(at) = written.find(&scalar.text) {
                    let start = scalar.place.start + at;
                    let edit = |place: Range<usize>| (start + place.start..start + place.end, REDACTED.to_owned());
                    return places.into_iter().map(edit).collect();
                }
                let mut text = scalar.text.clone();
                places.iter().rev().for_each(|place| text.replace_range(place.clone(), REDACTED));
                vec![(scalar.place.clone(), serde_json::Value::from(text).to_string())]
            }
        }
    }

    /// Blanks comments between two scalars.
    fn edit_comments(&self, place: Range<usize>, edits: &mut Vec<(Range<usize>, String)>) {
        let Some(between) = self.source.get(place.clone()) else { return };
        let mut from = place.start;
        for line in between.split_inclusive('\n') {
            if let Some(at) = line.find('#') {
                edits.extend(blanks(&line[at + 1..], from + at + 1));
            }
            from += line.len();
        }
    }
}

/// Blanks for the secrets of free text that begins at `offset`.
fn blanks(text: &str, offset: usize) -> impl Iterator<Item = (Range<usize>, String)> {
    find_in_text(text).into_iter().map(move |place| (offset + place.start..offset + place.end, REDACTED.to_owned()))
}

impl Open {
    fn step(&self) -> String {
        match self {
            Open::Map(key) => key.clone().unwrap_or_else(|| NO_TEXT.to_owned()),
            Open::List(_) => ITEM.to_owned(),
        }
    }
}

/// Takes note in the innermost map or list that a part of it has ended.
fn close(open: &mut [Open], text: Option<&str>) {
    match open.last_mut() {
        Some(Open::Map(key @ None)) => *key = Some(text.unwrap_or(NO_TEXT).to_owned()),
        Some(Open::Map(key)) => *key = None,
        Some(Open::List(before)) => *before = text.map(str::to_owned),
        None => {}
    }
}

/// Bytes of a text by its characters, in which the parser counts.
enum Offsets {
    /// As many as characters.
    Same(usize),
    Of(Vec<usize>),
}

impl Offsets {
    fn of(text: &str) -> Self {
        if text.is_ascii() {
            return Self::Same(text.len());
        }
        Self::Of(text.char_indices().map(|(at, _)| at).chain([text.len()]).collect())
    }

    fn byte(&self, character: usize) -> usize {
        match self {
            Self::Same(length) => character.min(*length),
            Self::Of(offsets) => offsets.get(character).or(offsets.last()).copied().unwrap_or(0),
        }
    }
}
