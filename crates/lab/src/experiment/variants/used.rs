//! Parameters that are set to the CPU that a service used in another variant of the same run.
//!
//! How much CPU a service needs depends on the machine, so a limit that is to bind on any machine cannot be written down.
//! `used_by` names the variant that is run first to measure it, `of` the service, and `times` how much of it the parameter is.

use super::{OF, PARAMETERS, TIMES, USED_BY, VALUE, Variant};
use crate::experiment::Experiment;
use crate::experiment::document::at::At;
use crate::experiment::error::{Problem, Report};
use crate::experiment::placeholders::names::Names;

/// The `used_by` of a parameter that keeps the value it is written with, as one given on the command line does.
pub(crate) const NOBODY: &str = "none";

/// A parameter in cores.
#[derive(Debug, Clone, PartialEq)]
pub struct UsedCpu {
    /// The parameter.
    pub parameter: String,
    /// The variant that is run first, and keeps its own value.
    pub by: String,
    /// The service whose replicas used it.
    pub service: String,
    /// The parameter as a multiple of what a replica used, above 0.
    pub times: f64,
}

impl UsedCpu {
    /// Whether a variant is given the measured value: it sets none itself, and is not the one that is measured.
    pub(crate) fn is_of(&self, variant: &Variant, experiment: &Experiment) -> bool {
        let (own, common) = (variant.parameters.get(&self.parameter), experiment.parameters.get(&self.parameter));
        self.by != variant.name && own == common
    }

    /// Value after replicas used `cores` each in the mean: cores, in hundredths, at least one.
    pub fn value(&self, cores: f64) -> f64 {
        ((cores * self.times * 100.0).round() / 100.0).max(0.01)
    }
}

/// The parameters that are measured so.
pub(crate) fn read(root: At<'_>) -> Vec<UsedCpu> {
    let used = |(name, at): (&str, At<'_>)| {
        let by = at.read(&USED_BY).filter(|by| by != NOBODY)?;
        Some(UsedCpu { parameter: name.to_owned(), by, service: at.read(&OF)?, times: at.read(&TIMES)? })
    };
    root.get(&PARAMETERS).iter().flat_map(At::entries).filter_map(used).collect()
}

/// Reports variants and services that are not there, and values that are no cores.
pub(crate) fn check(root: At<'_>, names: &Names<'_>, variants: &[Variant], report: &mut Report) {
    for (_, parameter) in root.get(&PARAMETERS).iter().flat_map(At::entries) {
        let Some(by) = parameter.get(&USED_BY) else { continue };
        if let Some(name) = by.text().filter(|name| *name != NOBODY)
            && !variants.iter().any(|variant| variant.name == name)
        {
            let known = variants.iter().map(|variant| variant.name.as_str());
            report.add(by.place(), by.path(), Problem::unknown("variant", name, known));
        }
        if let (Some(of), Some(known)) = (parameter.get(&OF), names.services())
            && let Some(service) = of.text().filter(|service| !known.contains(service))
        {
            report.add(of.place(), of.path(), Problem::unknown("service", service, known.iter().copied()));
        }
        let Some(value) = parameter.get(&VALUE) else { continue };
        let cores = value.text().and_then(|text| text.parse::<f64>().ok());
        if !cores.is_some_and(|cores| cores > 0.0 && cores.is_finite()) {
            let problem = Problem::new("expected a number of cores such as `0.5`, which a service can use");
            report.add(value.place(), value.path(), problem);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const SOURCE: &str = "\
experiment: used
parameters:
  cap: { value: 0.5, reason: R, used_by: free, of: shop, times: 1.0 }
system: { services: { shop: { run: [shop], cpus: \"${cap}\" } } }
load: { target: shop, scenarios: { s: { model: constant-vus, vus: 1, duration: 1s, request: GET / } } }
variants: [{ name: capped }, { name: free, cap: 4 }]
";

    #[test]
    fn a_value_is_what_was_used_in_hundredths() {
        let used = &crate::language().parse(SOURCE, "e.yaml", Path::new("/lab")).unwrap().used[0];
        assert_eq!((used.parameter.as_str(), used.by.as_str(), used.service.as_str()), ("cap", "free", "shop"));
        for (cores, value) in [(0.2449, 0.24), (0.001, 0.01), (3.0, 3.0)] {
            assert_eq!(used.value(cores), value);
        }
        assert_eq!(UsedCpu { times: 0.8, ..used.clone() }.value(0.5), 0.4);
    }

    #[test]
    fn errors_are_reported() {
        for (was, is, expected) in [
            ("used_by: free", "used_by: fre", "unknown variant `fre`"),
            ("of: shop", "of: shopp", "unknown service `shopp`"),
            ("value: 0.5", "value: half", "expected a number of cores"),
            ("times: 1.0", "times: 0", "above 0"),
            (", times: 1.0", "", "times"),
            ("used_by: free, ", "", "used_by"),
            ("times: 1.0", "times: 1.0, held_by: [free], otherwise: 0.5", "held_by"),
        ] {
            let found = match crate::language().parse(&SOURCE.replacen(was, is, 1), "e.yaml", Path::new("/lab")) {
                Ok(_) => String::new(),
                Err(errors) => errors.iter().map(|error| format!("{error}\n")).collect(),
            };
            assert!(found.contains(expected), "{is}: {found}");
        }
        let kept = SOURCE.replacen("used_by: free", "used_by: none", 1);
        assert_eq!(crate::language().parse(&kept, "e.yaml", Path::new("/lab")).unwrap().used, []);
    }
}
