//! `thresholds`: other values for what detectors compare with.

use narrows_diagnose::thresholds::{Thresholds, Unset};

use super::document::at::At;
use super::error::{Problem, Report, did_you_mean, shortened};
use super::grammar::key::optional;
use super::grammar::kind;
use super::grammar::shape::{Field, NamedMap, Shape};
use super::grammar::values::{AMOUNT, LISTED_MAX};

pub(super) const THRESHOLDS: Field = optional(
    "thresholds",
    Shape::Named(NamedMap { what: "threshold", name: &kind::NAME, value: &AMOUNT.shape(), least: 0, most: LISTED_MAX }),
    "Other values for what detectors compare with, by name; `narrows diagnose --thresholds` lists them.",
);

/// The thresholds that an experiment sets, and the usual ones for the rest. What cannot be read is left as it is.
pub(super) fn thresholds(root: At<'_>) -> Thresholds {
    let mut thresholds = Thresholds::default();
    each(root, |_, name, value| {
        // An unknown name or a number of the wrong kind was reported when the experiment was checked.
        let _ = thresholds.set(name, value);
    });
    thresholds
}

/// Reports names that no threshold has, and numbers that a threshold cannot be.
pub(super) fn check(root: At<'_>, report: &mut Report) {
    let mut thresholds = Thresholds::default();
    each(root, |at, name, value| {
        let (place, problem) = match thresholds.set(name, value) {
            Ok(()) => return,
            Err(Unset::Unknown) => (at.key_place(), unknown(name)),
            Err(Unset::NotANumber) => {
                (at.place(), Problem::new(format!("expected a number of 0 or more, found {value}")))
            }
            Err(Unset::NotWhole) => (at.place(), Problem::new(format!("expected a whole number, found {value}"))),
        };
        report.add(place, at.path(), problem);
    });
}

fn unknown(name: &str) -> Problem {
    let rows = Thresholds::default().rows();
    let known: Vec<&str> = rows.iter().map(|row| row.name).collect();
    let list = "`narrows diagnose --thresholds` lists them";
    Problem::new(format!("unknown threshold `{}`", shortened(name)))
        .hint(did_you_mean(name, &known).unwrap_or_else(|| list.into()))
}

fn each(root: At<'_>, mut visit: impl FnMut(At<'_>, &str, f64)) {
    let Some(section) = root.get(&THRESHOLDS) else { return };
    for (name, at) in section.entries() {
        if let Some(value) = at.value(AMOUNT) {
            visit(at, name, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::RecordedExperiment;
    use super::*;

    fn experiment(section: &str) -> String {
        format!(
            "experiment: e\nload:\n  target: http://localhost\n  scenarios: {{ main: {{ model: constant-vus, vus: 1, \
             duration: 1s, request: GET / }} }}\nthresholds:\n{section}"
        )
    }

    #[test]
    fn a_threshold_is_set_and_the_others_stay() {
        let source = experiment("  cpu_limit_share: 0.7\n  n_plus_one_queries: 8\n");
        assert!(crate::language().parse(&source, "e.yaml", Path::new("/")).is_ok());
        let read = RecordedExperiment::read(&source).thresholds;
        let mut expected = Thresholds::default();
        expected.cpu_saturation.cpu_limit_share = 0.7;
        expected.n_plus_one.n_plus_one_queries = 8;
        assert_eq!(read, expected);
        assert_eq!(RecordedExperiment::read("not an experiment: [").thresholds, Thresholds::default());
    }

    #[test]
    fn what_is_no_threshold_is_reported_with_its_place() {
        let source = experiment("  cpu_limit_shar: 0.7\n  n_plus_one_queries: 8.5\n  flat_growth_share: much\n");
        let errors = crate::language().parse(&source, "e.yaml", Path::new("/")).unwrap_err();
        let reported: Vec<_> = errors.iter().map(|m| (m.line, m.column, m.message.as_str())).collect();
        let expected = [
            (6, 3, "unknown threshold `cpu_limit_shar`"),
            (7, 23, "expected a whole number, found 8.5"),
            (8, 22, "expected a number of 0 or more, found \"much\""),
        ];
        assert_eq!(reported, expected);
        assert!(errors[0].hint.as_ref().is_some_and(|hint| hint.contains("cpu_limit_share")), "{errors:?}");
    }
}
