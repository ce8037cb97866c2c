//! The scalars of an experiment's text with their places, for changing the text where one stands.
//!
//! The YAML parser reports the places, so comments, keys and lines stay as they are. Works on texts with errors as far as
//! the parser reads them.

use std::ops::Range;

use narrows_telemetry::secrets::is_program;
use saphyr_parser::{Event, Parser, ScalarStyle, StrInput};

/// Placeholder for an item of a list in a path.
pub(crate) const ITEM: &str = "[]";
/// Placeholder for a key that is no text.
const NO_TEXT: &str = "?";

/// A key or a value.
pub(crate) struct Scalar {
    /// The keys to it, its own place in lists as [`ITEM`].
    pub(crate) path: Vec<String>,
    /// Its bytes in the text, with its quotes.
    pub(crate) place: Range<usize>,
    pub(crate) style: ScalarStyle,
    pub(crate) text: String,
    pub(crate) role: Role,
}

pub(crate) enum Role {
    Key,
    /// For an item of a list, the context that decides an argument's meaning: the last program named before it, and the
    /// previous item if that is a scalar.
    Value(Vec<String>),
}

/// The scalars of a text.
pub(crate) struct Scalars {
    /// In the order of the text.
    pub(crate) all: Vec<Scalar>,
    /// Where the parser gave up, or the text's end.
    pub(crate) end: usize,
}

/// A map or list that is being read.
enum Open {
    Map(Option<String>),
    List { program: Option<String>, last: Option<String> },
}

impl Scalars {
    pub(crate) fn of(source: &str) -> Self {
        let offsets = Offsets::of(source);
        let mut scalars = Scalars { all: Vec::new(), end: source.len() };
        let mut open: Vec<Open> = Vec::new();
        let mut parser: Parser<'_, StrInput<'_>> = Parser::new_from_str(source);
        while let Some(event) = parser.next_event() {
            let (event, span) = match event {
                Ok(read) => read,
                Err(error) => {
                    // The text is known up to the last scalar.
                    let read = scalars.all.last().map_or(0, |scalar| scalar.place.end);
                    scalars.end = offsets.byte(error.marker().index()).min(read);
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
                        Some(Open::List { program, last }) => {
                            Role::Value([program, last].into_iter().flatten().cloned().collect())
                        }
                        _ => Role::Value(Vec::new()),
                    };
                    let path = open.iter().map(Open::step).collect();
                    let text = text.into_owned();
                    close(&mut open, Some(&text));
                    scalars.all.push(Scalar { path, place, style, text, role });
                }
                Event::SequenceStart(..) => open.push(Open::List { program: None, last: None }),
                Event::MappingStart(..) => open.push(Open::Map(None)),
                Event::SequenceEnd | Event::MappingEnd => {
                    open.pop();
                    close(&mut open, None);
                }
                Event::Alias(_) => close(&mut open, None),
                _ => {}
            }
        }
        scalars
    }
}

impl Open {
    fn step(&self) -> String {
        match self {
            Open::Map(key) => key.clone().unwrap_or_else(|| NO_TEXT.to_owned()),
            Open::List { .. } => ITEM.to_owned(),
        }
    }
}

/// Takes note in the innermost map or list that a part of it has ended.
fn close(open: &mut [Open], text: Option<&str>) {
    match open.last_mut() {
        Some(Open::Map(key @ None)) => *key = Some(text.unwrap_or(NO_TEXT).to_owned()),
        Some(Open::Map(key)) => *key = None,
        Some(Open::List { program, last }) => {
            if let Some(name) = text.filter(|text| is_program(text)) {
                *program = Some(name.to_owned());
            }
            *last = text.map(str::to_owned);
        }
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
