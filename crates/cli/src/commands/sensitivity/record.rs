//! The record of the runs: gathered from their files, written, and read again.

use std::io::Read;
use std::path::{Path, PathBuf};

use narrows_lab::experiment::Experiment;
use narrows_lab::run::state_of;
use narrows_model::comparison::Outcome as Concluded;
use narrows_model::run::RunState;
use narrows_model::sensitivity::{Examined, FORMAT, Point, Scaled, ScaledParameter, Sensitivity};
use narrows_report::sensitivity::point;

use super::plan::{Parameter, Plan};
use super::steps::{AS_IT_IS, distinct, path_as_it_is, path_scaled, values};
use crate::Outcome;
use crate::exit::Failure;

/// Bytes of a record at most; one of the demos has a tenth of a megabyte.
const BYTES_MAX: u64 = 16 << 20;

/// Conclusions of the complete runs in a folder.
pub(super) fn gather(plans: &[Plan], out: &Path, change: f64) -> Result<Sensitivity, Failure> {
    let experiments = plans.iter().map(|plan| examined(plan, out)).collect::<Result<_, Failure>>()?;
    Ok(Sensitivity { format: FORMAT.to_owned(), change, experiments })
}

fn examined(plan: &Plan, out: &Path) -> Result<Examined, Failure> {
    let subject = &plan.subject;
    let mut as_is: Vec<Point> = Vec::new();
    let mut first: Option<Concluded> = None;
    for which in 0..AS_IT_IS.len() {
        let outcome = complete(&path_as_it_is(out, plan, which), plan, &subject.experiment)?;
        as_is.extend(outcome.as_ref().map(point));
        first = first.or(outcome);
    }
    let scaled = |parameter: &Parameter, side: usize| -> Result<Scaled, Failure> {
        let experiment = &parameter.sides[side];
        let outcome = complete(&path_scaled(out, plan, parameter, side), plan, experiment)?;
        Ok(Scaled {
            value: value(plan, experiment, outcome.as_ref(), &parameter.name),
            point: outcome.as_ref().map(point),
        })
    };
    let parameter = |parameter: &Parameter| {
        Ok(ScaledParameter {
            name: parameter.name.clone(),
            value: value(plan, &subject.experiment, first.as_ref(), &parameter.name),
            lower: scaled(parameter, 0)?,
            higher: scaled(parameter, 1)?,
        })
    };
    Ok(Examined {
        experiment: subject.experiment.name.clone(),
        time_scale: subject.time_scale,
        parameters: plan.parameters.iter().map(parameter).collect::<Result<_, Failure>>()?,
        as_is,
        left_out: plan.left_out.clone(),
    })
}

/// Conclusions of a run; `None` while it is not complete.
fn complete(path: &Path, plan: &Plan, experiment: &Experiment) -> Result<Option<Concluded>, Failure> {
    match state_of(path, experiment, plan.subject.time_scale)? {
        Some(RunState::Complete) => Ok(Some(narrows_lab::conclude::outcome(path)?)),
        _ => Ok(None),
    }
}

/// A parameter's values: those that trials had, which may have given way to what variants reached, or else those of the
/// experiment.
fn value(plan: &Plan, experiment: &Experiment, outcome: Option<&Concluded>, parameter: &str) -> String {
    match outcome {
        Some(outcome) => {
            let trials = outcome.evidence.trials.iter();
            distinct(trials.filter_map(|one| one.trial.parameters.get(parameter).cloned()))
        }
        None => values(&plan.subject, experiment, parameter),
    }
}

/// Writes a record.
pub(super) fn write(path: &Path, sensitivity: &Sensitivity) -> Outcome {
    let text = serde_json::to_string_pretty(sensitivity)
        .map_err(|error| Failure::new(format!("cannot write {}: {error}", path.display())))?;
    crate::commands::write_to(path, &format!("{text}\n"))
}

/// Reads records as one.
pub(super) fn read_all(paths: &[PathBuf]) -> Result<Sensitivity, Failure> {
    let mut all: Option<Sensitivity> = None;
    for path in paths {
        let next = read(path)?;
        match &mut all {
            None => all = Some(next),
            Some(all) if all.change == next.change => all.experiments.extend(next.experiments),
            Some(all) => {
                return Err(Failure::new(format!(
                    "{} has a change of {}, expected {} as in the others",
                    path.display(),
                    next.change,
                    all.change
                )));
            }
        }
    }
    all.ok_or_else(|| Failure::new("expected a record after `--from`"))
}

fn read(path: &Path) -> Result<Sensitivity, Failure> {
    let shown = path.display();
    let mut text = String::new();
    narrows_files::open(path)
        .and_then(|file| file.take(BYTES_MAX).read_to_string(&mut text))
        .map_err(|error| Failure::new(format!("cannot read the record {shown}: {error}")))?;
    let wrong = |why: String| {
        Failure::new(format!("{shown} is no record of `narrows sensitivity`: {why}"))
            .hint("`narrows sensitivity` writes one as sensitivity.json in its folder")
    };
    let sensitivity: Sensitivity = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    match sensitivity.format.as_str() {
        FORMAT => Ok(sensitivity),
        other => Err(wrong(format!("its format is `{other}`, expected `{FORMAT}`"))),
    }
}
