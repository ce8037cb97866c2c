//! The YAML document as a tree that knows the place of each of its parts.
//!
//! Built from parser events rather than taken from a ready-made document type, because this is where every fault must
//! survive beside the others: a key given twice is reported and skipped, not the end of reading. Scalars keep their text
//! as written, with the type that YAML 1.2's core schema gives them. Aliases and tags are refused (an experiment has
//! parameters instead), which also makes a small file a small tree. Nesting is limited, so recursion over it is too.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, Span, StrInput};

use crate::experiment::error::{Problem, Report, shortened};

/// Deeper documents are refused.
const DEPTH_MAX: usize = 32;

/// Line and column, both from 1.
pub(crate) type Place = (usize, usize);

/// A part of the document.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    pub(crate) place: Place,
    pub(crate) form: Form,
}

/// Kind of a part.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Form {
    Scalar(Scalar),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// A key of a map and its value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) key_place: Place,
    pub(crate) value: Node,
}

/// A leaf.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scalar {
    pub(crate) text: String,
    pub(crate) origin: Origin,
}

/// Meaning of a scalar's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    Null,
    Boolean,
    Integer,
    Number,
    String,
    /// Written with `${…}`, which is replaced now: its type is whatever its text reads as.
    Bound,
    /// Written with a `${…}` that cannot be replaced, or a map that has no text as a key; the fault was reported.
    Broken,
}

impl Node {
    pub(crate) fn scalar(place: Place, text: impl Into<String>, origin: Origin) -> Self {
        Self { place, form: Form::Scalar(Scalar { text: text.into(), origin }) }
    }

    /// The value of a key, when this is a map that has it.
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        match &self.form {
            Form::Map(entries) => entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value),
            _ => None,
        }
    }

    /// The text of a scalar that is not broken.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.form {
            Form::Scalar(scalar) if !matches!(scalar.origin, Origin::Null | Origin::Broken) => Some(&scalar.text),
            _ => None,
        }
    }

    /// The keys and values; none unless this is a map.
    pub(crate) fn entries(&self) -> &[Entry] {
        match &self.form {
            Form::Map(entries) => entries,
            _ => &[],
        }
    }

    /// Its name, for messages.
    pub(crate) fn described(&self) -> String {
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

/// Reads a document; `None` if it is no usable YAML, which the report explains.
pub(crate) fn parse(source: &str, report: &mut Report) -> Option<Node> {
    let mut builder = Builder::default();
    match builder.build(source, report) {
        Ok(()) => {}
        Err((place, problem)) => {
            // An unquoted `{{name}}` breaks the rest of its line, which needs no further error.
            if builder.bad_key_line != Some(place.0) {
                report.add(place, String::new(), problem);
            }
            return None;
        }
    }
    if builder.root.is_none() {
        report.add((1, 1), String::new(), Problem::new("the file is empty, expected an experiment"));
    }
    builder.root
}

type Fatal = (Place, Problem);

#[derive(Default)]
struct Builder {
    root: Option<Node>,
    open: Vec<Open>,
    documents: usize,
    /// The last line in which a key was no text.
    bad_key_line: Option<usize>,
}

/// A list or map whose end has not been seen.
struct Open {
    place: Place,
    contents: Contents,
}

enum Contents {
    List(Vec<Node>),
    Map {
        entries: Vec<Entry>,
        first: HashMap<String, Place>,
        key: Option<(String, Place)>,
    },
    /// A map that had a list or a map as a key: nothing of it is used.
    Broken,
}

impl Builder {
    fn build(&mut self, source: &str, report: &mut Report) -> Result<(), Fatal> {
        let mut parser: Parser<'_, StrInput<'_>> = Parser::new_from_str(source);
        while let Some(event) = parser.next_event() {
            let (event, span) = event.map_err(|error| {
                let marker = error.marker();
                not_yaml(source, (marker.line(), marker.col() + 1), error.info())
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
                        Problem::new("a second document begins here, expected one experiment in a file"),
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
                let problem = Problem::new("aliases (`*name`) are not supported");
                return Err((place, problem.hint("write the value again, or make it a parameter: `${name}`")));
            }
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
        }
        Ok(())
    }

    fn enter(&mut self, place: Place, contents: Contents) -> Result<(), Fatal> {
        if self.open.len() >= DEPTH_MAX {
            return Err((place, Problem::new(format!("nested deeper than {DEPTH_MAX} levels"))));
        }
        self.open.push(Open { place, contents });
        Ok(())
    }

    fn leave(&mut self, report: &mut Report) -> Result<(), Fatal> {
        let Some(Open { place, contents }) = self.open.pop() else { return Ok(()) };
        let form = match contents {
            Contents::List(items) => Form::List(items),
            Contents::Map { entries, .. } => Form::Map(entries),
            Contents::Broken => Form::Scalar(Scalar { text: String::new(), origin: Origin::Broken }),
        };
        self.close_value(Node { place, form }, report)
    }

    /// Puts a finished part where it belongs: it is the root, an item, a key or a key's value.
    fn close_value(&mut self, node: Node, report: &mut Report) -> Result<(), Fatal> {
        let Some(Open { place, contents }) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        match contents {
            Contents::Broken => {}
            Contents::List(items) => items.push(node),
            Contents::Map { key: key @ None, .. } => match node.form {
                Form::Scalar(Scalar { origin: Origin::Broken, .. }) => *contents = Contents::Broken,
                Form::Scalar(Scalar { text, .. }) => *key = Some((text, node.place)),
                _ => {
                    let (place, problem) = bad_key(&node, *place);
                    *contents = Contents::Broken;
                    self.bad_key_line = Some(place.0);
                    report.add(place, self.path(), problem);
                }
            },
            Contents::Map { entries, first, key } => {
                let Some((key, key_place)) = key.take() else { return Ok(()) };
                if let Some((line, _)) = first.get(&key) {
                    let problem = Problem::new(format!("`{}` is given twice, first on line {line}", shortened(&key)));
                    report.add(key_place, self.path(), problem);
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
                Contents::Map { key: Some((key, _)), .. } => push_key(&mut path, key),
                Contents::Map { key: None, .. } | Contents::Broken => {}
            }
        }
        path
    }
}

/// Fault of a text that the parser refuses, and its place.
fn not_yaml(source: &str, place: Place, info: &str) -> Fatal {
    let lines = || source.lines().zip(1..).skip(place.0.saturating_sub(1));
    // The parser may stop at the end of the line before.
    let tab = lines().find_map(|(line, number)| Some((number, tab_in_indentation(line)?)));
    if let (true, Some(tab)) = (info.contains("tab"), tab) {
        let hint = "YAML does not allow tabs for indentation; use spaces";
        return (tab, Problem::new("a tab in the indentation").hint(hint));
    }
    let problem = Problem::new(format!("not YAML: {info}"));
    let line = lines().next().map_or("", |(line, _)| line);
    let opening = line.find("{{").or_else(|| line.find("${"));
    match opening {
        Some(at) if !line[..at].contains(['"', '\'']) => {
            (place, problem.hint("a value with `{{…}}` or `${…}` in it needs quotes"))
        }
        _ => (place, problem),
    }
}

/// The column of the first tab that a line's text stands behind.
fn tab_in_indentation(line: &str) -> Option<usize> {
    let text = line.find(|c: char| !c.is_whitespace())?;
    Some(line[..text].find('\t')? + 1)
}

/// Error about a key that is no text, and its place: `{{name}}` is, to YAML, a map with a map as its key.
fn bad_key(key: &Node, map: Place) -> Fatal {
    let problem = Problem::new("a key that is a list or a map, expected a text");
    match (&key.form, key.entries()) {
        (Form::Map(_), [Entry { key: name, value: Node { form: Form::Scalar(value), .. }, .. }])
            if value.origin == Origin::Null && (map.0, map.1 + 1) == key.place =>
        {
            (map, problem.hint(format!("put the value in quotes, such as `\"{{{{{}}}}}\"`", shortened(name))))
        }
        _ => (key.place, problem),
    }
}

fn refuse_tag(is_tagged: bool, place: Place) -> Result<(), Fatal> {
    if is_tagged { Err((place, Problem::new("tags (`!name`) are not supported"))) } else { Ok(()) }
}

pub(crate) fn push_key(path: &mut String, key: &str) {
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

#[cfg(test)]
mod tests {
    use super::super::at::At;
    use super::*;
    use proptest::prelude::*;

    fn errors(source: &str) -> Vec<String> {
        let mut report = Report::new("e.yaml");
        parse(source, &mut report);
        report.into_errors().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_is_not_one_plain_document_is_reported_with_its_place() {
        let deep = "[".repeat(100);
        let cases = [
            ("", "e.yaml:1:1: the file is empty, expected an experiment"),
            ("# only a comment\n", "e.yaml:1:1: the file is empty, expected an experiment"),
            ("a: 1\n---\nb: 2\n", "e.yaml:2:1: a second document begins here, expected one experiment in a file"),
            ("a: &x 1\nb: *x\n", "e.yaml:2:4: aliases (`*name`) are not supported"),
            ("a: !secret x\n", "e.yaml:1:4: tags (`!name`) are not supported"),
            ("? [a]\n: 1\n", "e.yaml:1:3: a key that is a list or a map, expected a text"),
            ("a:\n  b: 1\n  c: 2\n  b: 3\n", "e.yaml:4:3: a: `b` is given twice, first on line 2"),
            ("a:\n  b: {{u}}\n", "e.yaml:2:6: a.b: a key that is a list or a map, expected a text"),
            ("a: [1, { {u}: 2 }]\n", "e.yaml:1:10: a[1]: a key that is a list or a map, expected a text"),
            ("a: {{u}}/{{v}}\n", "e.yaml:1:4: a: a key that is a list or a map, expected a text"),
            ("a: x\n\tb: 1\n", "e.yaml:2:1: a tab in the indentation"),
            ("a:\n  b: 1\n\n \tc: 2\n", "e.yaml:4:2: a tab in the indentation"),
            (&deep, "e.yaml:1:33: nested deeper than 32 levels"),
        ];
        for (source, expected) in cases {
            assert_eq!(errors(source), [expected], "{source}");
        }
    }

    #[test]
    fn a_map_with_a_bad_key_is_reported_beside_other_errors() {
        let said = errors("a: { x: {{u}}, y: {{v}}, {[w]: 1}: 2 }\nb: 1\nb: 2\n");
        let places: Vec<&str> = said.iter().map(|said| said.split(' ').next().unwrap()).collect();
        assert_eq!(places, ["e.yaml:1:9:", "e.yaml:1:19:", "e.yaml:1:27:", "e.yaml:3:1:"]);
    }

    #[test]
    fn broken_yaml_says_what_to_do_when_that_is_known() {
        let hint = |source| {
            let mut report = Report::new("e.yaml");
            parse(source, &mut report);
            report.into_errors().remove(0).hint
        };
        let cases = [
            ("a: b\n\tc: d\n", Some("YAML does not allow tabs for indentation; use spaces")),
            ("a: {{user.name}}\n", Some("put the value in quotes, such as `\"{{user.name}}\"`")),
            ("a: { b: GET /{{u}} }\n", Some("a value with `{{…}}` or `${…}` in it needs quotes")),
            ("a: { b: ${u} }\n", Some("a value with `{{…}}` or `${…}` in it needs quotes")),
            ("a: [\"{{u}}\"\nb: 1\n", None),
            ("? [a]\n: 1\n", None),
        ];
        for (source, expected) in cases {
            assert_eq!(hint(source).as_deref(), expected, "{source}");
        }
    }

    #[test]
    fn broken_yaml_is_reported_with_its_place() {
        let [error] = &errors("a: [1, 2\nb: 3\n")[..] else { panic!("expected one error") };
        assert!(error.starts_with("e.yaml:2:"), "{error}");
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
        let a = at.named("a").unwrap();
        let b = a.named("b").unwrap();
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
