//! Parameters that are given another value: on the command line, or a little more or less than theirs.
//!
//! The new value is written into the experiment's text, wherever the old one stands. So everything that reads the text
//! (secrets, reports, a run that is continued) sees the experiment that ran.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

use narrows_model::run::Trial;
use saphyr_parser::ScalarStyle;

use super::scaled::{scaled, scaled_multiple, scaled_share};
use super::used::NOBODY;
use super::{OTHERWISE, TIMES, USED_BY, VALUE};
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
    /// The experiment with the values that a trial of it was given because other variants were measured (`held_by`,
    /// `used_by`), so that these need not run again. Variants that set such a parameter keep theirs.
    ///
    /// # Errors
    /// When a value does not fit where the parameter is used.
    pub fn as_measured(&self, trial: &Trial) -> Result<Self, ExperimentError> {
        let Some(variant) = self.variants.iter().find(|variant| variant.name == trial.variant) else {
            return Ok(self.clone());
        };
        let held = self.fallbacks.iter().filter(|held| !held.by.contains(&variant.name)).map(|held| &held.parameter);
        let used = self.used.iter().filter(|used| used.is_of(variant, self)).map(|used| &used.parameter);
        let values: BTreeMap<&str, &str> =
            held.chain(used).filter_map(|name| Some((name.as_str(), trial.parameters.get(name)?.as_str()))).collect();
        let source = rewritten(self, |scalar| match parameter_with(USED_BY.name(), scalar) {
            Some(name) => values.contains_key(name).then(|| Ok(NOBODY.to_owned())),
            None => Some(Ok((*values.get(parameter_with(VALUE.name(), scalar)?)?).to_owned())),
        })?;
        self.language.parse(&source, self.file(), &self.dir).map_err(ExperimentError::Invalid)
    }

    /// The variants to run so that `names` are given what is measured in others: those that `used_by` names come with them.
    /// None are all, which stays so.
    pub fn with_measuring(&self, names: &[String]) -> Vec<String> {
        let named = self.variants.iter().filter(|variant| names.contains(&variant.name));
        let needed = named.flat_map(|variant| self.used.iter().filter(|used| used.is_of(variant, self)));
        let needed = needed.map(|used| used.by.clone()).filter(|by| !names.contains(by)).collect::<BTreeSet<_>>();
        names.iter().cloned().chain(needed).collect()
    }

    /// The experiment with a parameter's value times a factor, in every variant. Where the value follows a measurement, its
    /// share (`otherwise`) or multiple (`times`) of that is scaled too. Whole numbers stay whole, so a small one may stay as it
    /// is.
    ///
    /// # Errors
    /// When the experiment has no such parameter; when a value of it is no number; when a scaled value does not fit where the
    /// parameter is used.
    pub fn scaled(&self, parameter: &str, factor: f64) -> Result<Self, ExperimentError> {
        check_names(self, [parameter])?;
        let source = rewritten(self, |scalar| {
            let is_meant = |name: Option<&str>| name == Some(parameter);
            let new = if is_meant(parameter_of(scalar)) {
                scaled(&scalar.text, factor)
            } else if is_meant(parameter_with(OTHERWISE.name(), scalar)) {
                scaled_share(&scalar.text, factor)
            } else if is_meant(parameter_with(TIMES.name(), scalar)) {
                scaled_multiple(&scalar.text, factor)
            } else {
                return None;
            };
            let no_number = || ExperimentError::NoNumber { name: parameter.to_owned(), value: scalar.text.clone() };
            Some(new.ok_or_else(no_number))
        })?;
        self.language.parse(&source, self.file(), &self.dir).map_err(ExperimentError::Invalid)
    }
}

fn with_values(experiment: &Experiment, values: &BTreeMap<&str, &str>) -> Result<String, ExperimentError> {
    check_names(experiment, values.keys().copied())?;
    rewritten(experiment, |scalar| match parameter_with(USED_BY.name(), scalar) {
        // A value that was given is not measured.
        Some(name) => values.contains_key(name).then(|| Ok(NOBODY.to_owned())),
        None => Some(Ok((*values.get(parameter_of(scalar)?)?).to_owned())),
    })
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

/// The parameter of which a scalar is the value of one of its keys.
fn parameter_with<'s>(key: &str, scalar: &'s Scalar) -> Option<&'s str> {
    let path: Vec<&str> = scalar.path.iter().map(String::as_str).collect();
    match path[..] {
        ["parameters", name, found] if found == key && !matches!(scalar.role, Role::Key) => Some(name),
        _ => None,
    }
}

/// Where the new value goes, on one line: a parameter's in quotes, others as they are.
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
    use narrows_testkit::trial::TrialBuilder;

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

    /// The experiment, whose pool is measured in `large`.
    fn measured() -> Experiment {
        let pool = "pool: { value: 0.5, reason: why, used_by: large, of: shop, times: 1.5 } #";
        let source = SOURCE.replace("pool: 5 #", pool).replace("vus: \"${pool}\"", "vus: 1");
        let system = "system: { services: { shop: { run: [shop] } } }\nload:";
        crate::language().parse(&source.replace("load:", system), "e.yaml", Path::new("/lab")).unwrap()
    }

    #[test]
    fn the_multiple_of_measured_cpu_is_scaled() {
        let scaled = measured().scaled("pool", 1.2).unwrap();
        assert!(
            scaled.source.contains("value: \"0.6\"") && scaled.source.contains("times: 1.8 }"),
            "{}",
            scaled.source
        );
        assert_eq!(scaled.used[0].times, 1.8);
    }

    #[test]
    fn a_value_that_is_given_is_not_measured() {
        let set = with_values(&measured(), &[("pool", "0.7")].into()).unwrap();
        assert!(set.contains("value: \"0.7\", reason: why, used_by: none"), "{set}");
        let mut trial = TrialBuilder::new("small").build().trial;
        trial.parameters = [("pool".to_owned(), "0.33".to_owned())].into();
        let again = measured().as_measured(&trial).unwrap();
        let pool = |at: usize| again.variants[at].parameters["pool"].as_str();
        assert_eq!((again.used.len(), pool(0), pool(1)), (0, "0.33", "50"));
        trial.variant = "large".to_owned();
        assert_eq!(measured().as_measured(&trial).unwrap().source, measured().source, "it measures");
    }

    #[test]
    fn the_variant_that_measures_comes_with_one_that_follows_it() {
        let with = |names: &[&str]| {
            measured().with_measuring(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(with(&[]), [""; 0]);
        assert_eq!(with(&["small"]), ["small", "large"]);
        assert_eq!(with(&["large"]), ["large"]);
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
