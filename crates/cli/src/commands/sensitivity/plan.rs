//! Which parameters of an experiment are scaled, and which are not for what reason.

use narrows_lab::experiment::{Experiment, ExperimentError, RecordedExperiment, nearest};
use narrows_model::published::Notes;
use narrows_model::sensitivity::LeftOut;
use narrows_model::units;

use super::Arguments;
use super::subject::{Subject, subjects};
use crate::exit::Failure;

/// The runs of one experiment.
pub(super) struct Plan {
    pub(super) subject: Subject,
    pub(super) parameters: Vec<Parameter>,
    pub(super) left_out: Vec<LeftOut>,
}

/// A parameter to scale.
pub(super) struct Parameter {
    pub(super) name: String,
    /// The experiment with the lower and with the higher value.
    pub(super) sides: [Experiment; 2],
}

/// The runs of the named experiments.
pub(super) fn plans(arguments: &Arguments) -> Result<Vec<Plan>, Failure> {
    let subjects = subjects(arguments)?;
    check_names(&arguments.parameter, &subjects)?;
    let plans: Vec<Plan> =
        subjects.into_iter().map(|subject| plan(subject, arguments)).collect::<Result<_, Failure>>()?;
    if plans.iter().all(|plan| plan.parameters.is_empty()) {
        let names: Vec<&str> = plans.iter().map(|plan| plan.subject.experiment.name.as_str()).collect();
        return Err(Failure::new(format!(
            "no figure of {} was fitted with a parameter that can be scaled",
            names.join(", ")
        ))
        .hint("name a parameter with `--parameter NAME`, or after `fitted` in the experiment file"));
    }
    Ok(plans)
}

/// Refuses a parameter that no experiment has.
fn check_names(asked: &[String], subjects: &[Subject]) -> Result<(), Failure> {
    let is_known = |name: &String| subjects.iter().any(|subject| own_name(name, &subject.experiment).is_some());
    let Some(unknown) = asked.iter().find(|name| !is_known(name)) else { return Ok(()) };
    let failure = Failure::new(format!("no experiment here has a parameter `{unknown}`"));
    let known: Vec<&str> =
        subjects.iter().flat_map(|subject| subject.experiment.parameters.keys().map(String::as_str)).collect();
    Err(match nearest(unknown, &known) {
        Some(near) => failure.hint(format!("did you mean `{near}`?")),
        None => failure,
    })
}

/// The parameter of this experiment that `NAME` or `EXPERIMENT.NAME` is; `None` where it is another's.
fn own_name<'a>(asked: &'a str, experiment: &Experiment) -> Option<&'a str> {
    let name = match asked.split_once('.') {
        Some((of, name)) => Some(name).filter(|_| of == experiment.name)?,
        None => asked,
    };
    experiment.parameters.contains_key(name).then_some(name)
}

fn plan(subject: Subject, arguments: &Arguments) -> Result<Plan, Failure> {
    let experiment = &subject.experiment;
    let notes = RecordedExperiment::read(&experiment.source).notes;
    let mut parameters = Vec::new();
    let mut left_out = Vec::new();
    for name in fitted(&notes, |variant| subject.has(variant)) {
        match scaled(experiment, name, arguments.by) {
            Ok(parameter) => parameters.push(parameter),
            Err(reason) => left_out.push(LeftOut { what: name.to_owned(), reason }),
        }
    }
    for name in arguments.parameter.iter().filter_map(|asked| own_name(asked, experiment)) {
        if !parameters.iter().any(|parameter: &Parameter| parameter.name == name) {
            let cannot = |reason| Failure::new(format!("cannot scale `{name}` of {}: {reason}", experiment.name));
            parameters.push(scaled(experiment, name, arguments.by).map_err(cannot)?);
            left_out.retain(|left| left.what != name);
        }
    }
    left_out.extend(others(&notes, &parameters, &left_out));
    Ok(Plan { subject, parameters, left_out })
}

/// Parameters that figures of these variants were fitted with.
fn fitted(notes: &Notes, is_meant: impl Fn(&str) -> bool) -> Vec<&str> {
    notes.published.as_ref().map_or_else(Vec::new, |published| published.chosen_for(is_meant))
}

/// The experiment with a lower and with a higher value of a parameter; the error says why it cannot be scaled.
fn scaled(experiment: &Experiment, name: &str, by: f64) -> Result<Parameter, String> {
    if !experiment.parameters.contains_key(name) {
        return Err("it names no parameter".to_owned());
    }
    let lower = side(experiment, name, by, 1.0 - by)?;
    Ok(Parameter { name: name.to_owned(), sides: [lower, side(experiment, name, by, 1.0 + by)?] })
}

/// The experiment with a parameter's value times a factor, which changes it by the share `by`.
fn side(experiment: &Experiment, name: &str, by: f64, factor: f64) -> Result<Experiment, String> {
    match experiment.scaled(name, factor) {
        Ok(scaled) if scaled.parameters == experiment.parameters && scaled.variants == experiment.variants => {
            Err(format!("a whole number that {} does not change", units::percent(by)))
        }
        Ok(scaled) => Ok(scaled),
        Err(ExperimentError::Invalid(errors)) => {
            let reasons: Vec<&str> = errors.iter().take(1).map(|error| error.message.as_str()).collect();
            Err(format!("{} of its value does not fit: {}", units::percent(factor), reasons.concat()))
        }
        // It may quote a value.
        Err(error) => Err(experiment.known_secrets().hidden(error.to_string())),
    }
}

/// Fitted parameters that are not scaled: those of variants that do not run here, and those whose reason is no figure.
fn others(notes: &Notes, parameters: &[Parameter], left_out: &[LeftOut]) -> Vec<LeftOut> {
    let is_new = |name: &&str| {
        !parameters.iter().any(|parameter| parameter.name == **name) && !left_out.iter().any(|left| left.what == **name)
    };
    let elsewhere: Vec<&str> = fitted(notes, |_| true).into_iter().filter(is_new).collect();
    let with_reason = notes.parameters.iter().map(|note| note.name.as_str());
    let with_reason: Vec<&str> = with_reason.filter(is_new).filter(|name| !elsewhere.contains(name)).collect();
    let left = |names: Vec<&str>, reason: &str| {
        (!names.is_empty()).then(|| LeftOut { what: names.join(", "), reason: reason.to_owned() })
    };
    [
        left(elsewhere, "fitted only for variants that did not run"),
        left(with_reason, "chosen for another reason than a figure"),
    ]
    .into_iter()
    .flatten()
    .collect()
}
