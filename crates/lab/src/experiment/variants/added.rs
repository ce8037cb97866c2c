//! A variant that an experiment does not list, with another value for one of its services.
//!
//! It is written into the experiment's text, so that everything that reads the text sees the experiment that runs. A value
//! that is no parameter yet becomes one, with its own value in all other variants.

use std::ops::Range;

use super::{BASELINE, VARIANTS};
use crate::experiment::document::scalars::{Role, Scalar, Scalars};
use crate::experiment::error::ExperimentError;
use crate::experiment::grammar::kind::is_name;
use crate::experiment::placeholders::names::{PARAMETERS_KEY, RESERVED_FOR_PARAMETERS, SERVICES, SYSTEM};
use crate::experiment::tunables::{TextPlace, Tunable};
use crate::experiment::{Experiment, Variant};

/// A piece of text and the bytes that it takes the place of.
type Edit = (Range<usize>, String);

impl Experiment {
    /// The experiment with one more variant, which starts from another one and gives a service another value. Returns it
    /// with the variant's name.
    ///
    /// # Errors
    /// When the value does not fit its place, and when the text is written in a way that cannot be added to.
    pub fn with_variant(
        &self,
        from: &Variant,
        suffix: &str,
        tunable: &Tunable,
        value: &str,
    ) -> Result<(Self, String), ExperimentError> {
        let name = self.free_name(&format!("{}-{suffix}", from.name));
        let parameter = tunable.parameter.clone().unwrap_or_else(|| self.free_parameter(&tunable.name));
        let scalars = Scalars::of(&self.source).all;
        let text = Text { source: &self.source, scalars: &scalars };
        let item =
            format!("{{ name: {}, from: {}, {parameter}: {} }}", quoted(&name), quoted(&from.name), quoted(value));
        let added = text.with_item(&item).and_then(|mut edits| {
            if tunable.parameter.is_none() {
                edits.push(text.with_placeholder(tunable, &parameter)?);
                edits.push(text.with_parameter(&format!("{parameter}: {}", quoted(&tunable.value)))?);
            }
            Some(edited(&self.source, edits))
        });
        let cannot = || ExperimentError::CannotAdd { file: self.file.clone(), variant: item.clone() };
        let experiment = self.language.parse(&added.ok_or_else(cannot)?, self.file(), &self.dir);
        let experiment = experiment.map_err(ExperimentError::Invalid)?;
        let is_as_meant = experiment.variants.len() == self.variants.len() + 1
            && experiment.variants.last().is_some_and(|last| last.name == name)
            && experiment.services == self.services;
        if is_as_meant { Ok((experiment, name)) } else { Err(cannot()) }
    }

    fn free_name(&self, wanted: &str) -> String {
        let candidates = std::iter::once(wanted.to_owned()).chain((2..).map(|n| format!("{wanted}-{n}")));
        let is_free = |name: &String| self.variants.iter().all(|variant| variant.name != *name);
        candidates.into_iter().find(is_free).unwrap_or_default()
    }

    fn free_parameter(&self, wanted: &str) -> String {
        let plain: String =
            wanted.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).collect();
        let plain = plain.trim_matches('_');
        let first = if is_name(plain) { plain.to_owned() } else { "value".to_owned() };
        let candidates = std::iter::once(first.clone()).chain((2..).map(|n| format!("{first}_{n}")));
        let is_free =
            |name: &String| !self.parameters.contains_key(name) && !RESERVED_FOR_PARAMETERS.contains(&name.as_str());
        candidates.into_iter().find(is_free).unwrap_or_default()
    }
}

/// A text in double quotes, as YAML reads it.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The text with all edits made.
fn edited(source: &str, mut edits: Vec<Edit>) -> String {
    edits.sort_by_key(|(place, _)| place.start);
    let mut text = source.to_owned();
    // From the last to the first, so that the places before stay true.
    for (place, instead) in edits.into_iter().rev() {
        text.replace_range(place, &instead);
    }
    text
}

/// An experiment's text and its scalars.
struct Text<'a> {
    source: &'a str,
    scalars: &'a [Scalar],
}

impl Text<'_> {
    /// The value of a tunable replaced by `${parameter}`.
    fn with_placeholder(&self, tunable: &Tunable, parameter: &str) -> Option<Edit> {
        let placeholder = format!("${{{parameter}}}");
        match &tunable.place {
            TextPlace::Scalar { at, before } => Some((at.clone(), quoted(&format!("{before}{placeholder}")))),
            TextPlace::Missing => self.with_entry(
                &[SYSTEM, SERVICES, &tunable.service],
                &format!("{}: {}", tunable.name, quoted(&placeholder)),
            ),
        }
    }

    /// One more parameter.
    fn with_parameter(&self, entry: &str) -> Option<Edit> {
        match self.key(PARAMETERS_KEY) {
            Some(key) => self.with_entry(&[PARAMETERS_KEY], entry).or_else(|| self.in_empty_map(key, entry)),
            None => Some(self.at_end(&format!("{PARAMETERS_KEY}: {{ {entry} }}"))),
        }
    }

    /// One more entry, the first of the map at a path.
    fn with_entry(&self, path: &[&str], entry: &str) -> Option<Edit> {
        let is_key = |scalar: &&Scalar| {
            matches!(scalar.role, Role::Key) && scalar.path.split_last().is_some_and(|(_, parents)| parents == path)
        };
        let at = self.scalars.iter().find(is_key)?.place.start;
        let before = &self.source[..at];
        let is_inline = before.trim_end().ends_with(['{', ',']);
        let indent = &before[before.rfind('\n').map_or(0, |end| end + 1)..];
        let text = if is_inline { format!("{entry}, ") } else { format!("{entry}\n{indent}") };
        (is_inline || indent.trim().is_empty()).then_some((at..at, text))
    }

    /// The first entry of an empty map, which stands behind its key.
    fn in_empty_map(&self, key: &Scalar, entry: &str) -> Option<Edit> {
        let rest = &self.source[key.place.end..];
        let (open, close) = (rest.find('{')?, rest.find('}')?);
        let is_empty = rest[..open].trim() == ":" && rest.get(open + 1..close)?.trim().is_empty();
        let at = key.place.end + open + 1;
        is_empty.then(|| (at..at, format!(" {entry}")))
    }

    /// Edits that append an item to the list of variants, or add the list; `None` if the list is not written as one.
    fn with_item(&self, item: &str) -> Option<Vec<Edit>> {
        let Some(key) = self.key(VARIANTS.name()) else {
            let list = format!("{}:\n  - {{ name: {BASELINE} }}\n  - {item}", VARIANTS.name());
            return Some(vec![self.at_end(&list)]);
        };
        let from = key.place.end;
        let is_later = |scalar: &&Scalar| is_top_key(scalar) && scalar.place.start > from;
        let end = self.scalars.iter().find(is_later).map_or(self.source.len(), |next| next.place.start);
        let section = &self.source[from..end];
        if section.trim_start_matches([':', ' ', '\t']).starts_with('[') {
            let at = from + section.rfind(']')?;
            return Some(vec![(at..at, format!(", {item}"))]);
        }
        let dash = section.lines().find(|line| line.trim_start().starts_with("- "))?;
        let indent = &dash[..dash.len() - dash.trim_start().len()];
        let mut written = 0;
        let mut at = 0;
        for line in section.split_inclusive('\n') {
            at += line.len();
            if !line.trim().is_empty() && !line.trim_start().starts_with('#') {
                written = at - (line.len() - line.trim_end().len());
            }
        }
        let at = from + written;
        Some(vec![(at..at, format!("\n{indent}- {item}"))])
    }

    /// A key of the document itself.
    fn key(&self, name: &str) -> Option<&Scalar> {
        self.scalars.iter().find(|scalar| is_top_key(scalar) && scalar.text == name)
    }

    fn at_end(&self, text: &str) -> Edit {
        let end = self.source.len();
        let line = if self.source.ends_with('\n') { "" } else { "\n" };
        (end..end, format!("{line}{text}\n"))
    }
}

fn is_top_key(scalar: &Scalar) -> bool {
    matches!(scalar.role, Role::Key) && scalar.path.len() == 1
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const SYSTEM_AND_LOAD: &str = r#"
system:
  services:
    web:
      run: [web, --threads=4, "${workers}"] # a comment
      env: { POOL: 2 }
load:
  target: web
  scenarios: { s: { model: constant-vus, vus: 1, duration: 1s, request: GET / } }
"#;

    fn experiment(before: &str, after: &str) -> Experiment {
        let source = format!("experiment: shop\n{before}{SYSTEM_AND_LOAD}{after}");
        crate::language().parse(&source, "e.yaml", Path::new("/")).expect("an experiment")
    }

    /// The experiment with a variant in which a value of `web` is another one.
    fn added(experiment: &Experiment, name: &str, value: &str) -> (Experiment, String) {
        let from = &experiment.variants[0];
        let tunables = experiment.tunables(from);
        let tunable = tunables.iter().find(|one| one.name == name).expect("a tunable");
        experiment.with_variant(from, "tried", tunable, value).expect("an experiment")
    }

    /// The value of `web` that a name has in a variant.
    fn value(experiment: &Experiment, variant: &str, name: &str) -> String {
        let variant = experiment.variants.iter().find(|one| one.name == variant).expect("a variant");
        let tunables = experiment.tunables(variant);
        tunables.into_iter().find(|one| one.name == name).map(|one| one.value).unwrap_or_default()
    }

    #[test]
    fn a_parameter_has_another_value_in_the_added_variant_alone() {
        for list in [
            "variants:\n  - { name: a }\n  # the last\n  - { name: b, workers: 9 }\n\n# the end\n",
            "variants: [{ name: a }, { name: b, workers: 9 }]\n",
            "variants:\n- name: a\n- name: b\n  workers: 9\nseed: 7\n",
        ] {
            let (tried, name) = added(&experiment("parameters: { workers: 2 }\n", list), "workers", "8");
            assert_eq!(name, "a-tried");
            let names: Vec<&str> = tried.variants.iter().map(|variant| variant.name.as_str()).collect();
            assert_eq!(names, ["a", "b", "a-tried"], "{}", tried.source);
            let of = |variant| value(&tried, variant, "workers");
            assert_eq!((of("a"), of("b"), of("a-tried")), ("2".into(), "9".into(), "8".into()), "{}", tried.source);
        }
    }

    #[test]
    fn a_value_that_is_no_parameter_becomes_one() {
        for parameters in ["parameters: { workers: 2 }\n", "parameters:\n  workers: 2 # of them\n"] {
            let experiment = experiment(parameters, "");
            for (name, old, new) in [("--threads", "4", "16"), ("POOL", "2", "8"), ("replicas", "1", "3")] {
                let (tried, variant) = added(&experiment, name, new);
                let of = |variant| value(&tried, variant, name);
                assert_eq!((of("baseline"), of(&variant)), (old.into(), new.into()), "{}", tried.source);
                assert!(tried.source.contains("# a comment"), "{}", tried.source);
            }
        }
        let plain = SYSTEM_AND_LOAD.replace(", \"${workers}\"", "");
        for parameters in ["", "\nparameters: {}"] {
            let source = format!("experiment: shop{parameters}{plain}");
            let plain = crate::language().parse(&source, "e.yaml", Path::new("/")).unwrap();
            let (tried, variant) = added(&plain, "POOL", "8");
            assert_eq!(tried.parameters["pool"], "2");
            assert_eq!(value(&tried, &variant, "POOL"), "8");
        }
    }

    #[test]
    fn a_text_that_cannot_be_added_to_is_refused_with_the_variant_to_write() {
        let experiment = experiment("parameters: { workers: 2 }\n", "variants:\n  -\n    name: a\n");
        let from = &experiment.variants[0];
        let tunables = experiment.tunables(from);
        let tunable = tunables.iter().find(|one| one.name == "workers").expect("a tunable");
        let error = experiment.with_variant(from, "tried", tunable, "8").unwrap_err().to_string();
        assert_eq!(error, "cannot add a variant to the text of e.yaml");
    }
}
