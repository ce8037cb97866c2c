//! The YAML document as a tree that knows the place of each of its parts.
//!
//! Built from parser events rather than taken from a ready-made document type, because this is where every fault must
//! survive beside the others: a key given twice is told and skipped, not the end of reading. Scalars keep their text
//! as written, with the type that YAML 1.2's core schema gives them. Aliases and tags are refused (an experiment has
//! parameters instead), which also makes a small file a small tree. Nesting is limited, so recursion over it is too.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, Span, StrInput};

use super::mistake::{Report, Wrong, shortened};

/// Deeper documents are refused.
const DEPTH_MAX: usize = 32;

/// Line and column, both from 1.
pub(super) type Place = (usize, usize);

/// A part of the document.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub(super) place: Place,
    pub(super) form: Form,
}

/// What a part is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Form {
    Scalar(Scalar),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// A key of a map and its value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) key_place: Place,
    pub(super) value: Node,
}

/// A leaf.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Scalar {
    pub(super) text: String,
    pub(super) origin: Origin,
}

/// What a scalar's text means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    Null,
    Boolean,
    Integer,
    Number,
    String,
    /// Written with `${…}`, which is replaced now: its type is whatever its text reads as.
    Bound,
    /// Written with a `${…}` that cannot be replaced; the fault has been told.
    Broken,
}

impl Node {
    pub(super) fn scalar(place: Place, text: impl Into<String>, origin: Origin) -> Self {
        Self { place, form: Form::Scalar(Scalar { text: text.into(), origin }) }
    }

    /// The value of a key, when this is a map that has it.
    pub(super) fn get(&self, key: &str) -> Option<&Node> {
        match &self.form {
            Form::Map(entries) => entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value),
            _ => None,
        }
    }

    /// The keys and values; none unless this is a map.
    pub(super) fn entries(&self) -> &[Entry] {
        match &self.form {
            Form::Map(entries) => entries,
            _ => &[],
        }
    }

    /// What this is, for messages.
    pub(super) fn described(&self) -> String {
        match &self.form {
            Form::List(_) => "a list".to_owned(),
            Form::Map(_) => "a map".to_owned(),
            Form::Scalar(scalar) => match scalar.origin {
                Origin::Null => "nothing".to_owned(),
                Origin::String | Origin::Bound => format!("\"{}\"", shortened(&scalar.text)),
                _ => shortened(&scalar.text),
            },
        }
    }
}

/// Reads a document. None when there is nothing to go on with; the report says why.
pub(super) fn parse(source: &str, report: &mut Report) -> Option<Node> {
    let mut builder = Builder::default();
    match builder.build(source, report) {
        Ok(()) => {}
        Err((place, wrong)) => {
            report.add(place, String::new(), wrong);
            return None;
        }
    }
    if builder.root.is_none() {
        report.add((1, 1), String::new(), Wrong::new("the file is empty, expected an experiment"));
    }
    builder.root
}

type Fatal = (Place, Wrong);

#[derive(Default)]
struct Builder {
    root: Option<Node>,
    open: Vec<Open>,
    documents: usize,
}

/// A list or map whose end has not been seen.
struct Open {
    place: Place,
    contents: Contents,
}

enum Contents {
    List(Vec<Node>),
    Map { entries: Vec<Entry>, first: HashMap<String, Place>, key: Option<(String, Place)> },
}

impl Builder {
    fn build(&mut self, source: &str, report: &mut Report) -> Result<(), Fatal> {
        let mut parser: Parser<'_, StrInput<'_>> = Parser::new_from_str(source);
        while let Some(event) = parser.next_event() {
            let (event, span) = event.map_err(|error| {
                let marker = error.marker();
                ((marker.line(), marker.col() + 1), Wrong::new(format!("not YAML: {}", error.info())))
            })?;
            self.take(event, span, report)?;
        }
        Ok(())
    }

    fn take(&mut self, event: Event<'_>, span: Span, report: &mut Report) -> Result<(), Fatal> {
        let place = (span.start.line(), span.start.col() + 1);
        match event {
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 {
                    return Err((
                        place,
                        Wrong::new("a second document begins here, expected one experiment in a file"),
                    ));
                }
            }
            Event::Scalar(text, style, _, tag) => {
                refuse_tag(tag.is_some(), place)?;
                let origin = if style == ScalarStyle::Plain { origin_of(&text) } else { Origin::String };
                self.close_value(Node::scalar(place, text, origin), report)?;
            }
            Event::SequenceStart(_, tag) => {
                refuse_tag(tag.is_some(), place)?;
                self.enter(place, Contents::List(Vec::new()))?;
            }
            Event::MappingStart(_, tag) => {
                refuse_tag(tag.is_some(), place)?;
                self.enter(place, Contents::Map { entries: Vec::new(), first: HashMap::new(), key: None })?;
            }
            Event::SequenceEnd | Event::MappingEnd => self.leave(report)?,
            Event::Alias(_) => {
                let wrong = Wrong::new("an alias (`*name`), which experiment files do not have");
                return Err((place, wrong.hint("write the value again, or make it a parameter: `${name}`")));
            }
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
        }
        Ok(())
    }

    fn enter(&mut self, place: Place, contents: Contents) -> Result<(), Fatal> {
        if self.open.len() >= DEPTH_MAX {
            return Err((place, Wrong::new(format!("nested deeper than {DEPTH_MAX} levels"))));
        }
        if let Some(Open { contents: Contents::Map { key: None, .. }, .. }) = self.open.last() {
            return Err((place, Wrong::new("a key that is a list or a map, expected a text")));
        }
        self.open.push(Open { place, contents });
        Ok(())
    }

    fn leave(&mut self, report: &mut Report) -> Result<(), Fatal> {
        let Some(Open { place, contents }) = self.open.pop() else { return Ok(()) };
        let form = match contents {
            Contents::List(items) => Form::List(items),
            Contents::Map { entries, .. } => Form::Map(entries),
        };
        self.close_value(Node { place, form }, report)
    }

    /// Puts a finished part where it belongs: it is the root, an item, a key or a key's value.
    fn close_value(&mut self, node: Node, report: &mut Report) -> Result<(), Fatal> {
        let Some(Open { contents, .. }) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        match contents {
            Contents::List(items) => items.push(node),
            Contents::Map { key: key @ None, .. } => {
                if let Form::Scalar(scalar) = node.form {
                    *key = Some((scalar.text, node.place));
                }
            }
            Contents::Map { entries, first, key } => {
                let Some((key, key_place)) = key.take() else { return Ok(()) };
                if let Some((line, _)) = first.get(&key) {
                    let wrong = Wrong::new(format!("`{}` is given twice, first in line {line}", shortened(&key)));
                    report.add(key_place, self.path(), wrong);
                } else {
                    first.insert(key.clone(), key_place);
                    entries.push(Entry { key, key_place, value: node });
                }
            }
        }
        Ok(())
    }

    /// Where the open map or list is.
    fn path(&self) -> String {
        let mut path = String::new();
        for open in &self.open[..self.open.len().saturating_sub(1)] {
            match &open.contents {
                Contents::List(items) => path.push_str(&format!("[{}]", items.len())),
                Contents::Map { key, .. } => {
                    let key = key.as_ref().map_or("", |(key, _)| key);
                    push_key(&mut path, key);
                }
            }
        }
        path
    }
}

fn refuse_tag(is_tagged: bool, place: Place) -> Result<(), Fatal> {
    if is_tagged { Err((place, Wrong::new("a tag (`!name`), which experiment files do not have"))) } else { Ok(()) }
}

fn push_key(path: &mut String, key: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(&shortened(key));
}

/// The type of a plain scalar: YAML 1.2.2 §10.3.2, core schema; infinities and NaN are text here.
fn origin_of(text: &str) -> Origin {
    let is_radix = |prefix: &str, radix| {
        text.strip_prefix(prefix).is_some_and(|digits| u64::from_str_radix(digits, radix).is_ok())
    };
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Origin::Null,
        "true" | "True" | "TRUE" | "false" | "False" | "FALSE" => Origin::Boolean,
        _ if text.parse::<i64>().is_ok() || is_radix("0x", 16) || is_radix("0o", 8) => Origin::Integer,
        _ if text.bytes().any(|b| b.is_ascii_digit()) && text.parse::<f64>().is_ok_and(f64::is_finite) => {
            Origin::Number
        }
        _ => Origin::String,
    }
}

/// A part of the document together with the way to it, which is spelled out only when a mistake asks for it.
#[derive(Debug, Clone, Copy)]
pub(super) struct At<'a> {
    pub(super) node: &'a Node,
    parent: Option<&'a At<'a>>,
    step: Step<'a>,
}

#[derive(Debug, Clone, Copy)]
enum Step<'a> {
    Root,
    Key(&'a str, Place),
    Item(usize),
}

impl<'a> At<'a> {
    pub(super) fn root(node: &'a Node) -> Self {
        Self { node, parent: None, step: Step::Root }
    }

    /// The same place with another node, such as the one in which `${…}` is replaced.
    pub(super) fn with(self, node: &'a Node) -> Self {
        Self { node, ..self }
    }

    /// The value of a key, when this is a map that has it.
    pub(super) fn get(&'a self, key: &str) -> Option<At<'a>> {
        self.entries().find(|(name, _)| *name == key).map(|(_, at)| at)
    }

    /// The keys and values; none unless this is a map.
    pub(super) fn entries(&'a self) -> impl Iterator<Item = (&'a str, At<'a>)> {
        self.node.entries().iter().map(|entry| {
            let step = Step::Key(&entry.key, entry.key_place);
            (entry.key.as_str(), At { node: &entry.value, parent: Some(self), step })
        })
    }

    /// The items; none unless this is a list.
    pub(super) fn items(&'a self) -> impl Iterator<Item = At<'a>> {
        let items: &[Node] = match &self.node.form {
            Form::List(items) => items,
            _ => &[],
        };
        items.iter().enumerate().map(|(i, node)| At { node, parent: Some(self), step: Step::Item(i) })
    }

    /// The text of a scalar that is not broken.
    pub(super) fn text(&self) -> Option<&'a str> {
        match &self.node.form {
            Form::Scalar(scalar) if !matches!(scalar.origin, Origin::Null | Origin::Broken) => Some(&scalar.text),
            _ => None,
        }
    }

    pub(super) fn place(&self) -> Place {
        self.node.place
    }

    /// Where this begins with its key, when it has one.
    pub(super) fn key_place(&self) -> Place {
        match self.step {
            Step::Key(_, place) => place,
            _ => self.node.place,
        }
    }

    /// `load.scenarios.list.vus`, `variants[2].name`: list items count from 0.
    pub(super) fn path(&self) -> String {
        let mut path = self.parent.map(At::path).unwrap_or_default();
        match self.step {
            Step::Root => {}
            Step::Key(key, _) => push_key(&mut path, key),
            Step::Item(index) => path.push_str(&format!("[{index}]")),
        }
        path
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mistakes(source: &str) -> Vec<String> {
        let mut report = Report::new("e.yaml");
        parse(source, &mut report);
        report.into_mistakes().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_is_not_one_plain_document_is_told_with_its_place() {
        let deep = "[".repeat(100);
        let cases = [
            ("", "e.yaml:1:1: the file is empty, expected an experiment"),
            ("# only a comment\n", "e.yaml:1:1: the file is empty, expected an experiment"),
            ("a: 1\n---\nb: 2\n", "e.yaml:2:1: a second document begins here, expected one experiment in a file"),
            ("a: &x 1\nb: *x\n", "e.yaml:2:4: an alias (`*name`), which experiment files do not have"),
            ("a: !secret x\n", "e.yaml:1:4: a tag (`!name`), which experiment files do not have"),
            ("? [a]\n: 1\n", "e.yaml:1:3: a key that is a list or a map, expected a text"),
            ("a:\n  b: 1\n  c: 2\n  b: 3\n", "e.yaml:4:3: a: `b` is given twice, first in line 2"),
            (&deep, "e.yaml:1:33: nested deeper than 32 levels"),
        ];
        for (source, expected) in cases {
            assert_eq!(mistakes(source), [expected], "{source}");
        }
    }

    #[test]
    fn broken_yaml_is_told_with_its_place() {
        let [mistake] = &mistakes("a: [1, 2\nb: 3\n")[..] else { panic!("expected one mistake") };
        assert!(mistake.starts_with("e.yaml:2:"), "{mistake}");
    }

    #[test]
    fn scalars_have_the_types_of_the_core_schema() {
        let cases = [
            ("~", Origin::Null),
            ("true", Origin::Boolean),
            ("yes", Origin::String),
            ("12", Origin::Integer),
            ("-3", Origin::Integer),
            ("0x1F", Origin::Integer),
            ("1.5", Origin::Number),
            ("1e3", Origin::Number),
            ("1e999", Origin::String),
            (".inf", Origin::String),
            ("10s", Origin::String),
            ("infinity", Origin::String),
        ];
        for (text, expected) in cases {
            assert_eq!(origin_of(text), expected, "{text}");
        }
    }

    #[test]
    fn columns_count_characters() {
        let root = parse("a: { ü: 1, b: 2 }", &mut Report::new("e.yaml")).unwrap();
        let at = At::root(&root);
        let a = at.get("a").unwrap();
        let b = a.get("b").unwrap();
        assert_eq!((b.key_place(), b.place(), b.path()), ((1, 12), (1, 15), "a.b".to_owned()));
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(source in "[-?:,\\[\\]{}#&*!|>'\"%@` \n\ta-c0-9$\\\\]{0,80}") {
            let mut report = Report::new("e.yaml");
            let root = parse(&source, &mut report);
            prop_assert!(root.is_some() || !report.is_empty());
        }
    }
}
