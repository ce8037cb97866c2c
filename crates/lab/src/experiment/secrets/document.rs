//! The secrets among the scalars of an experiment's text, and the edits that blank them.

use std::collections::BTreeSet;
use std::ops::Range;

use narrows_telemetry::secrets::{REDACTED, find_in_text};
use saphyr_parser::ScalarStyle;

use super::Secrets;
use super::credentials::{credentials, is_open, parts};
use super::keys::is_naming;
use super::scalar::SecretPart;
use crate::experiment::document::scalars::{Role, Scalar, Scalars};

/// The scalars of a text, in its order.
pub(super) struct Document<'a> {
    source: &'a str,
    scalars: Vec<Scalar>,
    /// Where the parser gave up, or the text's end.
    end: usize,
}

impl<'a> Document<'a> {
    pub(super) fn read(source: &'a str) -> Self {
        let Scalars { all: scalars, end } = Scalars::of(source);
        Document { source, scalars, end }
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
                SecretPart::Whole => credentials(&scalar.text),
                SecretPart::Parts(places, _) => parts(&scalar.text, &places),
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

    /// Replacements at places of the source.
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
            SecretPart::Whole if scalar.text.is_empty() || is_open(&scalar.text) => Vec::new(),
            SecretPart::Whole => {
                let instead = match scalar.style {
                    ScalarStyle::SingleQuoted => format!("'{REDACTED}'"),
                    ScalarStyle::DoubleQuoted => format!("\"{REDACTED}\""),
                    // The text below it keeps its lines.
                    _ if is_block => REDACTED.to_owned() + &"\n".repeat(written.matches('\n').count()),
                    _ => REDACTED.to_owned(),
                };
                vec![(scalar.place.clone(), instead)]
            }
            SecretPart::Parts(..) if is_block => blanks(written, scalar.place.start).collect(),
            SecretPart::Parts(mut places, perhaps) => {
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
