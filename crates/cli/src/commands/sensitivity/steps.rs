//! The runs one after the other, each into a file of its own. What is complete is not run again.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use narrows_lab::experiment::Experiment;
use narrows_lab::run::{Begin, state_of};
use narrows_model::run::RunState;

use super::plan::{Parameter, Plan};
use super::subject::Subject;
use crate::agents::AgentsArguments;
use crate::exit::Failure;
use crate::running::{RunOptions, run_until};
use crate::stderr;

/// One run.
pub(super) struct Step<'a> {
    /// `drone-delivery with store_delay_ms 20 in place of 25`.
    label: String,
    path: PathBuf,
    experiment: &'a Experiment,
    subject: &'a Subject,
}

/// How the runs ended.
#[derive(Default)]
pub(super) struct RunEndings {
    /// Those that did not come to their end.
    pub(super) failed: Vec<String>,
    pub(super) is_interrupted: bool,
}

/// The names of an experiment's runs without a change. Two would leave it open which of them is the odd one.
pub(super) const AS_IT_IS: [&str; 3] = ["as-it-is-first", "as-it-is-middle", "as-it-is-last"];
/// Endings of the names of runs with a lower and with a higher value.
const SIDES: [&str; 2] = ["lower", "higher"];

/// The run file without a change.
pub(super) fn path_as_it_is(out: &Path, plan: &Plan, which: usize) -> PathBuf {
    out.join(&plan.subject.experiment.name).join(AS_IT_IS[which]).with_extension("narrows")
}

/// The run file with a lower (0) or higher (1) value.
pub(super) fn path_scaled(out: &Path, plan: &Plan, parameter: &Parameter, side: usize) -> PathBuf {
    out.join(&plan.subject.experiment.name).join(format!("{}-{}.narrows", parameter.name, SIDES[side]))
}

/// All runs; none of an experiment of which no parameter is scaled.
pub(super) fn steps<'a>(plans: &'a [Plan], out: &Path) -> Vec<Step<'a>> {
    plans.iter().filter(|plan| !plan.parameters.is_empty()).flat_map(|plan| of_plan(plan, out)).collect()
}

fn of_plan<'a>(plan: &'a Plan, out: &Path) -> Vec<Step<'a>> {
    let (subject, name) = (&plan.subject, &plan.subject.experiment.name);
    let as_it_is = |which: usize| Step {
        label: format!("{name} as it is"),
        path: path_as_it_is(out, plan, which),
        experiment: &subject.experiment,
        subject,
    };
    let scaled = |parameter: &'a Parameter, side: usize| {
        let experiment = &parameter.sides[side];
        let [value, own] = [experiment, &subject.experiment].map(|one| values(subject, one, &parameter.name));
        Step {
            label: format!("{name} with {} {value} in place of {own}", parameter.name),
            path: path_scaled(out, plan, parameter, side),
            experiment,
            subject,
        }
    };
    let of_parameters = plan.parameters.iter().flat_map(|parameter| [scaled(parameter, 0), scaled(parameter, 1)]);
    let mut steps: Vec<Step<'_>> = std::iter::once(as_it_is(0)).chain(of_parameters).chain([as_it_is(2)]).collect();
    steps.insert(steps.len() / 2, as_it_is(1));
    steps
}

/// A parameter's values in the variants that run, each once.
pub(super) fn values(subject: &Subject, experiment: &Experiment, parameter: &str) -> String {
    let shown = subject.variants_of(experiment).map(|variant| experiment.shown_parameters(variant));
    distinct(shown.filter_map(|mut parameters| parameters.remove(parameter)))
}

/// Texts with commas between them, each once.
pub(super) fn distinct(texts: impl Iterator<Item = String>) -> String {
    let mut all: Vec<String> = Vec::new();
    for text in texts {
        if !all.contains(&text) {
            all.push(text);
        }
    }
    all.join(", ")
}

/// Makes the runs that are not complete, until `stop` is set. One that fails is reported, and the others go on.
pub(super) fn run(steps: &[Step<'_>], stop: &AtomicBool) -> Result<RunEndings, Failure> {
    let states: Vec<Option<RunState>> = steps.iter().map(state).collect::<Result<_, Failure>>()?;
    let mut ran = RunEndings::default();
    for (n, (step, state)) in (1..).zip(steps.iter().zip(states)) {
        let position = format!("run {n} of {}: {}", steps.len(), step.label);
        if state == Some(RunState::Complete) {
            stderr::say(&format!("{position}: complete, not run again"));
            continue;
        }
        stderr::say(&format!("\n{position}"));
        let begin = if state.is_some() { Begin::Resume } else { Begin::Fresh };
        if let Err(failure) = one(step, begin, stop) {
            if stop.load(Ordering::Relaxed) {
                ran.is_interrupted = true;
                break;
            }
            failure.print();
            ran.failed.push(step.label.clone());
        }
    }
    Ok(ran)
}

fn state(step: &Step<'_>) -> Result<Option<RunState>, Failure> {
    let known = state_of(&step.path, step.experiment, step.subject.time_scale);
    known.map_err(|error| Failure::from(error).hint("choose another folder with `--out`, or remove this file"))
}

fn one(step: &Step<'_>, begin: Begin, stop: &AtomicBool) -> Result<(), Failure> {
    let ended = run_until(
        &RunOptions {
            experiment: step.experiment,
            variants: &step.subject.variants,
            repetitions: step.subject.repetitions,
            time_scale: step.subject.time_scale,
            path: &step.path,
            begin,
            agents: AgentsArguments::default().request(step.experiment)?,
        },
        stop,
    )?;
    match (ended.state, ended.error) {
        (RunState::Complete, _) => Ok(()),
        (_, Some(error)) => Err(Failure::from(error)),
        (_, None) => Err(Failure::new("the run failed")),
    }
}
