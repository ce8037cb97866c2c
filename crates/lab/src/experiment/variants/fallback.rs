//! Parameters whose value gives way to what variants were measured to reach: a rate that all of them can hold.
//!
//! A rate at which variants are compared has to be one that each of them reaches, and how much that is depends on the
//! machine. So the value in the file is what is wanted, `held_by` names the variants that must have reached it, and
//! `otherwise` is the share of the slowest one's rate that later variants are given where one did not.

use super::{HELD_BY, OTHERWISE, PARAMETERS, VALUE, Variant};
use crate::experiment::document::at::At;
use crate::experiment::error::{Problem, Report};
use crate::experiment::quantity;

/// A parameter with a condition.
#[derive(Debug, Clone, PartialEq)]
pub struct Fallback {
    /// The parameter.
    pub parameter: String,
    /// The variants that must have reached its value.
    pub by: Vec<String>,
    /// The share of the slowest one's rate that takes its place, 0 to 1.
    pub otherwise: f64,
}

impl Fallback {
    /// Rate of a later variant in place of `wanted`, after the variants reached `rates`; `None` if all of them reached
    /// it. Requests per second, rounded down to whole ones as long as there are any.
    pub fn instead(&self, wanted: &str, rates: &[f64]) -> Option<f64> {
        let wanted = quantity::rate(wanted)?;
        let slowest = rates.iter().copied().reduce(f64::min).filter(|slowest| *slowest < wanted)?;
        let share = slowest * self.otherwise;
        Some(if share >= 1.0 { share.floor() } else { share })
    }
}

/// The parameters with a condition.
pub(crate) fn read(root: At<'_>) -> Vec<Fallback> {
    let parameters = root.get(&PARAMETERS);
    let held = |(name, at): (&str, At<'_>)| {
        let by = at.get(&HELD_BY)?.items().filter_map(|item| item.text().map(str::to_owned)).collect();
        Some(Fallback { parameter: name.to_owned(), by, otherwise: at.read(&OTHERWISE)? })
    };
    parameters.iter().flat_map(At::entries).filter_map(held).collect()
}

/// Reports variants that are not there, and values that are no rates.
pub(crate) fn check(root: At<'_>, variants: &[Variant], report: &mut Report) {
    let parameters = root.get(&PARAMETERS);
    for (_, parameter) in parameters.iter().flat_map(At::entries) {
        let Some(by) = parameter.get(&HELD_BY) else { continue };
        for item in by.items() {
            let Some(name) = item.text() else { continue };
            if !variants.iter().any(|variant| variant.name == name) {
                let known = variants.iter().map(|variant| variant.name.as_str());
                report.add(item.place(), item.path(), Problem::unknown("variant", name, known));
            }
        }
        let Some(value) = parameter.get(&VALUE) else { continue };
        if value.text().is_some_and(|text| quantity::rate(text).is_none()) {
            let problem = Problem::new("expected a rate such as `500/s`, which variants can reach");
            report.add(value.place(), value.path(), problem);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    const HELD: &str = "\
experiment: held
parameters: { rate: { value: 100/s, reason: R, held_by: [a, b], otherwise: 0.6 } }
load: { target: \"http://127.0.0.1:1\", scenarios: { s: { model: constant-arrival-rate, rate: \"${rate}\", duration: 1s, request: GET / } } }
variants: [{ name: a }, { name: b }, { name: c }]
";

    fn errors(source: &str) -> String {
        match crate::language().parse(source, "e.yaml", Path::new("/lab")) {
            Ok(_) => String::new(),
            Err(errors) => errors.iter().map(|error| format!("{error}\n")).collect(),
        }
    }

    #[test]
    fn the_slowest_decides() {
        let held = &crate::language().parse(HELD, "e.yaml", Path::new("/lab")).unwrap().fallbacks[0];
        assert_eq!((held.parameter.as_str(), held.by.len(), held.otherwise), ("rate", 2, 0.6));
        for (wanted, rates, instead) in [
            ("100/s", &[100.0, 300.0][..], None),
            ("100/s", &[99.0, 300.0], Some(59.0)),
            ("100", &[300.0, 50.0], Some(30.0)),
            ("100", &[0.5], Some(0.3)),
            ("60/min", &[1.0], None),
            ("100", &[], None),
            ("many", &[1.0], None),
        ] {
            assert_eq!(held.instead(wanted, rates), instead, "{wanted} {rates:?}");
        }
    }

    #[test]
    fn errors_are_reported() {
        for (was, is, expected) in [
            ("[a, b]", "[a, d]", "unknown variant `d`"),
            ("100/s", "fast", "expected a rate"),
            (", otherwise: 0.6", "", "otherwise"),
            ("held_by: [a, b], ", "", "held_by"),
            ("0.6", "1.6", "a number from 0 to 1"),
        ] {
            let found = errors(&HELD.replacen(was, is, 1));
            assert!(found.contains(expected), "{is}: {found}");
        }
    }
}
