//! Which scenarios take part in a variant: those whose `when` the variant's parameters meet.
//!
//! Parameters decide, not names of variants, so that a variant which is added later need not be entered here.

use std::collections::BTreeMap;

use super::flow::WHEN;
use crate::experiment::document::at::At;
use crate::experiment::error::{Problem, Report};
use crate::experiment::placeholders::names::Values;

/// The scenarios that take part, by name. Reports when there is none.
pub(crate) fn taking_part<'a>(
    scenarios: &'a At<'a>,
    values: &Values<'_>,
    report: &mut Report,
) -> Vec<(&'a str, At<'a>)> {
    let takes_part = |at: &At<'_>| {
        let Some(when) = at.get(&WHEN) else { return true };
        when.entries().all(|(name, value)| values.parameters.get(name).map(String::as_str) == value.text())
    };
    let taking_part: Vec<_> = scenarios.entries().filter(|(_, at)| takes_part(at)).collect();
    if taking_part.is_empty() && scenarios.entries().next().is_some() {
        let problem = Problem::new("no scenario's `when` matches these parameters");
        report.add(
            scenarios.key_place(),
            scenarios.path(),
            problem.hint("remove `when` from a scenario, or change a variant"),
        );
    }
    taking_part
}

/// Reports names in `when` that are no parameters.
pub(crate) fn check(scenarios: At<'_>, parameters: &BTreeMap<String, String>, report: &mut Report) {
    for (_, scenario) in scenarios.entries() {
        let Some(when) = scenario.get(&WHEN) else { continue };
        for (name, value) in when.entries().filter(|(name, _)| !parameters.contains_key(*name)) {
            let problem = Problem::unknown("parameter", name, parameters.keys().map(String::as_str));
            report.add(value.key_place(), when.path(), problem);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    const TWO: &str = "\
experiment: two
parameters: { pacing: closed }
load:
  target: http://127.0.0.1:1
  scenarios:
    users: { model: constant-vus, vus: 1, duration: 1s, request: GET /, when: { pacing: closed } }
    rate: { model: constant-arrival-rate, rate: 5, duration: 1s, request: GET /, when: { pacing: open } }
variants: [{ name: a }, { name: b, pacing: open }]
";

    fn errors(source: &str) -> String {
        match crate::language().parse(source, "e.yaml", Path::new("/lab")) {
            Ok(_) => String::new(),
            Err(errors) => errors.iter().map(|error| format!("{error}\n")).collect(),
        }
    }

    #[test]
    fn a_variant_has_the_scenarios_whose_parameters_it_has() {
        use crate::experiment::{Bindings, BoundLoad};
        let experiment = crate::language().parse(TWO, "e.yaml", Path::new("/lab")).unwrap();
        let bindings = Bindings {
            ports: Vec::new(),
            otlp_endpoint: "http://127.0.0.1:4318".into(),
            trial_dir: "/tmp/trial".into(),
            seed: 1,
            time_scale: 1.0,
        };
        let names = |variant: usize| match experiment.bind(&experiment.variants[variant], &bindings).unwrap().load {
            BoundLoad::Plan(plan) => plan.scenarios.into_iter().map(|scenario| scenario.name).collect::<Vec<_>>(),
            BoundLoad::Command(command) => panic!("{command:?}"),
        };
        assert_eq!((names(0), names(1)), (vec!["users".to_owned()], vec!["rate".to_owned()]));
    }

    #[test]
    fn a_variant_without_a_scenario_and_an_unknown_parameter_are_errors() {
        let none = errors(&TWO.replace("pacing: open }]", "pacing: other }]"));
        assert!(
            none.contains("no scenario's `when` matches these parameters") && none.contains("(in variant `b`)"),
            "{none}"
        );
        let unknown = errors(&TWO.replace("when: { pacing: open }", "when: { pacng: open }"));
        assert!(unknown.contains("load.scenarios.rate.when: unknown parameter `pacng`"), "{unknown}");
    }
}
