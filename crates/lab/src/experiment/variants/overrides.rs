//! Parameters that are given another value: on the command line, or a little more or less than theirs.
//!
//! The new value is written into the experiment's text, wherever the old one stands. So everything that reads the text
//! (secrets, reports, a run that is continued) sees the experiment that ran.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use saphyr_parser::ScalarStyle;

use super::OTHERWISE;
use super::scaled::{scaled, scaled_share};
use crate::experiment::document::scalars::{ITEM, Role, Scalar, Scalars};
use crate::experiment::error::{ExperimentError, did_you_mean};
use crate::experiment::{Experiment, Language};

impl Language {
    /// Reads an experiment file as [`Language::read`] does and gives parameters other values, in every variant. Of two
    /// values for one parameter, the last counts.
    ///
    /// # Errors
    /// As [`Language::read`]; when the experiment has no such parameter; when a value does not fit where the parameter is
    /// used.
    pub fn read_with(self, path: &Path, values: &[(String, String)]) -> Result<Experiment, ExperimentError> {
        let experiment = self.read(path)?;
        if values.is_empty() {
            return Ok(experiment);
        }
        let values: BTreeMap<&str, &str> = values.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let source = with_values(&experiment, &values)?;
        self.parse(&source, experiment.file(), &experiment.dir).map_err(ExperimentError::Invalid)
    }
}

impl Experiment {
    /// The experiment with a parameter's value times a factor, in every variant, and the share of a measured rate that may
    /// take its place (`otherwise`). Whole numbers stay whole, so a small one may stay as it is.
    ///
    /// # Errors
    /// When the experiment has no such parameter; when a value of it is no number; when a scaled value does not fit where the
    /// parameter is used.
    pub fn scaled(&self, parameter: &str, factor: f64) -> Result<Self, ExperimentError> {
        check_names(self, [parameter])?;
        let source = rewritten(self, |scalar| {
            let new = match (parameter_of(scalar), share_of(scalar)) {
                (Some(name), _) if name == parameter => scaled(&scalar.text, factor),
                (_, Some(name)) if name == parameter => scaled_share(&scalar.text, factor),
                _ => return None,
            };
            let no_number = || ExperimentError::NoNumber { name: parameter.to_owned(), value: scalar.text.clone() };
            Some(new.ok_or_else(no_number))
        })?;
        self.language.parse(&source, self.file(), &self.dir).map_err(ExperimentError::Invalid)
    }
}

fn with_values(experiment: &Experiment, values: &BTreeMap<&str, &str>) -> Result<String, ExperimentError> {
    check_names(experiment, values.keys().copied())?;
    rewritten(experiment, |scalar| Some(Ok((*values.get(parameter_of(scalar)?)?).to_owned())))
}

/// Refuses the first name that is no parameter.
fn check_names<'a>(experiment: &Experiment, names: impl IntoIterator<Item = &'a str>) -> Result<(), ExperimentError> {
    let Some(name) = names.into_iter().find(|name| !experiment.parameters.contains_key(*name)) else { return Ok(()) };
    let known: Vec<&str> = experiment.parameters.keys().map(String::as_str).collect();
    Err(ExperimentError::UnknownParameter {
        name: name.to_owned(),
        known: known.iter().map(|name| (*name).to_owned()).collect(),
        hint: did_you_mean(name, &known),
    })
}

/// The experiment's text with new values for the scalars that are given one.
fn rewritten(
    experiment: &Experiment,
    new: impl Fn(&Scalar) -> Option<Result<String, ExperimentError>>,
) -> Result<String, ExperimentError> {
    let mut source = experiment.source.clone();
    // From the last to the first, so that the places before stay true.
    for scalar in Scalars::of(&experiment.source).all.iter().rev() {
        let Some(value) = new(scalar) else { continue };
        let (place, instead) = edit(scalar, &value?)?;
        source.replace_range(place, &instead);
    }
    Ok(source)
}

/// The parameter whose value a scalar is, in the experiment or in a variant.
fn parameter_of(scalar: &Scalar) -> Option<&str> {
    if matches!(scalar.role, Role::Key) {
        return None;
    }
    let path: Vec<&str> = scalar.path.iter().map(String::as_str).collect();
    match path[..] {
        ["parameters", name] | ["parameters", name, "value"] => Some(name),
        ["variants", ITEM, name] if !matches!(name, "name" | "from") => Some(name),
        _ => None,
    }
}

/// The parameter in whose place a scalar is the share of a measured rate.
fn share_of(scalar: &Scalar) -> Option<&str> {
    let path: Vec<&str> = scalar.path.iter().map(String::as_str).collect();
    match path[..] {
        ["parameters", name, key] if key == OTHERWISE.name() && !matches!(scalar.role, Role::Key) => Some(name),
        _ => None,
    }
}

/// Where the new value goes, on one line: a parameter's in quotes, a share as the number that it is.
fn edit(scalar: &Scalar, value: &str) -> Result<(Range<usize>, String), ExperimentError> {
    if matches!(scalar.style, ScalarStyle::Literal | ScalarStyle::Folded) {
        return Err(ExperimentError::BlockParameter { name: parameter_of(scalar).unwrap_or_default().to_owned() });
    }
    let written = match parameter_of(scalar) {
        Some(_) => serde_json::Value::from(value).to_string(),
        None => value.to_owned(),
    };
    Ok((scalar.place.clone(), written))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "\
experiment: shop # a comment
parameters:
  pool: 5 # connections
  rate: { value: '100', reason: why }
  note: |
    of two
    lines
load:
  target: \"http://127.0.0.1:1\"
  scenarios: { s: { model: constant-vus, vus: \"${pool}\", duration: 1s, request: GET / } }
variants:
  - { name: small }
  - { name: large, pool: 50, rate: \"200\" }
";

    fn experiment() -> Experiment {
        crate::language().parse(SOURCE, "e.yaml", Path::new("/lab")).unwrap()
    }

    fn changed(values: &[(&str, &str)]) -> Result<String, ExperimentError> {
        with_values(&experiment(), &values.iter().copied().collect())
    }

    #[test]
    fn a_value_is_written_wherever_the_parameter_has_one_and_all_else_stays() {
        let expected = SOURCE
            .replace("pool: 5 #", "pool: \"7\" #")
            .replace("'100'", "\"a: \\\"b\\\" # ü\"")
            .replace("pool: 50, rate: \"200\"", "pool: \"7\", rate: \"a: \\\"b\\\" # ü\"");
        let source = changed(&[("pool", "7"), ("rate", "a: \"b\" # ü")]).unwrap();
        assert_eq!(source, expected);
        let experiment = crate::language().parse(&source, "e.yaml", Path::new("/lab")).unwrap();
        for variant in &experiment.variants {
            assert_eq!(
                (variant.parameters["pool"].as_str(), variant.parameters["rate"].as_str()),
                ("7", "a: \"b\" # ü")
            );
        }
    }

    #[test]
    fn a_scaled_parameter_is_scaled_in_the_variants_that_set_it_too() {
        let scaled = experiment().scaled("pool", 1.2).unwrap();
        assert_eq!(scaled.source, SOURCE.replace("pool: 5 #", "pool: \"6\" #").replace("pool: 50", "pool: \"60\""));
        assert_eq!((scaled.parameters["pool"].as_str(), scaled.file()), ("6", "e.yaml"));
        let error = |name: &str| experiment().scaled(name, 1.2).unwrap_err().to_string();
        assert!(
            error("note").starts_with("parameter `note` is `of two\nlines\n`, expected a number"),
            "{}",
            error("note")
        );
        assert!(error("pol").starts_with("no parameter is named `pol`"), "{}", error("pol"));
    }

    #[test]
    fn the_share_of_a_rate_is_scaled_with_it_and_is_all_of_it_at_most() {
        let rate = |value: &str, otherwise: &str| {
            format!("rate: {{ value: {value}, reason: why, held_by: [small], otherwise: {otherwise} }}")
        };
        let before = "rate: { value: '100', reason: why }";
        let experiment = crate::language()
            .parse(&SOURCE.replace(before, &rate("'100'", "0.9")), "e.yaml", Path::new("/lab"))
            .unwrap();
        let large = |value: &str| format!("rate: \"{value}\" }}");
        for (factor, value, of_large, otherwise) in [(0.8, "80", "160", "0.72"), (1.2, "120", "240", "1")] {
            let scaled = experiment.scaled("rate", factor).unwrap().source;
            assert!(scaled.contains(&rate(&format!("\"{value}\""), otherwise)), "{scaled}");
            assert!(scaled.contains(&large(of_large)), "{scaled}");
        }
    }

    #[test]
    fn what_cannot_be_changed_is_an_error() {
        let error = changed(&[("pol", "7")]).unwrap_err();
        assert_eq!(error.to_string(), "no parameter is named `pol`; the experiment has `note`, `pool`, `rate`");
        let ExperimentError::UnknownParameter { hint, .. } = error else { panic!("{error}") };
        assert_eq!(hint.as_deref(), Some("did you mean `pool`?"));
        let error = changed(&[("note", "7")]).unwrap_err();
        assert_eq!(error.to_string(), "parameter `note` is a block of lines, which cannot be given another value");
    }

    #[test]
    fn a_file_is_read_with_other_values_which_are_judged_like_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("e.yaml");
        std::fs::write(&file, SOURCE).unwrap();
        let set = |pool: &str| {
            crate::language()
                .read_with(&file, &[("pool".to_owned(), "1".to_owned()), ("pool".to_owned(), pool.to_owned())])
        };
        assert_eq!(set("9").unwrap().parameters["pool"], "9");
        assert_eq!(crate::language().read_with(&file, &[]).unwrap().source, SOURCE);
        let error = set("many").unwrap_err().to_string();
        assert!(error.contains("e.yaml:10:") && error.contains("found \"many\""), "{error}");
    }
}
