//! `narrows predict --try CHANGE`: makes a predicted change in its experiment, runs both variants in turn, and puts what was
//! predicted beside what was measured.
//!
//! A change that no value of the experiment stands for is one in the code. Its prediction is kept in the run file, and the
//! next runs of the experiment show it beside what they measure.

use std::io::{BufRead, IsTerminal};
use std::path::{Path, PathBuf};

use narrows_diagnose::proof::{MARGIN, Question};
use narrows_lab::change::{Candidate, ChangeRequest, ChangedExperiment, Counterpart, changed, counterpart, sized};
use narrows_lab::comparison::{self, ComparisonEnd, ComparisonRequest};
use narrows_lab::experiment::{Experiment, ExperimentError, Variant};
use narrows_lab::{conclude, kept_predictions, run};
use narrows_model::comparison::Outcome as Concluded;
use narrows_model::evidence::TrialEvidence;
use narrows_model::prediction::{Change, ChangeKind, MadeChange, Measured, Prediction, Tried};
use narrows_model::proof::{Quantity, REPEATS_MAX};
use narrows_model::run::RunState;
use narrows_predict::{
    DiagnosedTrial, description, diagnosed_trials, places, predict, score_repeated, tried_sentence, usual_amount,
};
use narrows_report::text::made;

use super::{Arguments, change, failure};
use crate::agents::AgentsArguments;
use crate::commands::{print_json, print_painted, read_experiment, say_where, style};
use crate::exit::{Exit, Failure};
use crate::live::Live;
use crate::run_address::{self, RunAddress};
use crate::running::{factor, guard_command, stop_flag, unfinished};
use crate::{Outcome, runs_folder, stderr};

/// Pairs of trials at most, unless another number is given: enough to see how far trials of one variant lie apart.
const PAIRS: u32 = 3;

/// Options of `--try`.
#[derive(Debug, clap::Args)]
pub(crate) struct TryArguments {
    /// Make a change in the experiment, such as `add-replicas=web,3`, run it in turn with the system as it is, and print
    /// predicted beside measured. Exit code 1 if throughput or mean latency lies outside its 90 % interval
    #[arg(long = "try", value_name = "NAME[=ARGUMENTS]", conflicts_with_all = ["change", "of", "score"])]
    pub(super) tried: Option<String>,
    /// The parameter, environment variable or flag that stands for the change, and its new value
    #[arg(long, value_name = "NAME=VALUE", requires = "tried", value_parser = super::super::run::setting)]
    parameter: Option<(String, String)>,
    /// The experiment file of the run [default: the one that the run was started with]
    #[arg(long, value_name = "FILE", requires = "tried")]
    experiment: Option<PathBuf>,
    /// Run each variant this many times at most [default: 3]; the run ends sooner if the verdict is clear
    #[arg(long, value_name = "N", requires = "tried", value_parser = clap::value_parser!(u32).range(2..=i64::from(REPEATS_MAX)))]
    repeat: Option<u32>,
    /// Multiply the durations of the load by this factor [default: that of the run]
    #[arg(long, value_name = "FACTOR", requires = "tried", value_parser = factor)]
    time_scale: Option<f64>,
    /// The run file of both variants [default: runs/EXPERIMENT-DATE-TIME.narrows]
    #[arg(long, value_name = "FILE", requires = "tried")]
    out: Option<PathBuf>,
}

/// Makes the change and runs it, or keeps its prediction if it is one in the code.
pub(super) fn execute(arguments: &Arguments, text: &str) -> Outcome {
    let asked = change(text)?;
    if asked.kind == ChangeKind::MoreLoad {
        let failure = Failure::new("`more-load` is a change of the load, which `--try` does not make");
        return Err(failure.hint("run the experiment with that load"));
    }
    let address = run_address::find(arguments.runs.first().map(String::as_str))?;
    let outcome = conclude::outcome_of(&address.path, &address.selection)?;
    let diagnosed = only_variant(&outcome, &address)?;
    let asked = Change { amount: asked.amount.or_else(|| usual_amount(&diagnosed, asked.kind)), ..asked };
    let experiment =
        experiment(arguments, &outcome, &address)?.as_measured(&diagnosed.trial.trial).map_err(cannot_change)?;
    let variant = variant(&experiment, &diagnosed)?;
    let request = ChangeRequest {
        experiment: &experiment,
        variant,
        change: &asked,
        size_now: places(&diagnosed, &asked.target),
        chosen: arguments.trying.parameter.as_ref().map(|(name, value)| (name.as_str(), value.as_str())),
    };
    let (candidate, listed) = match counterpart(&request) {
        Counterpart::Code if request.chosen.is_some() => return Err(unknown_parameter(&request)),
        Counterpart::Code => return keep(arguments, &address, &diagnosed, &asked),
        Counterpart::Variant(name, candidate) => (candidate, Some(name)),
        Counterpart::Value(candidate) => (candidate, None),
        Counterpart::Several(candidates) => (choose(&asked, candidates)?, None),
    };
    let sized = sized(&asked, &candidate, request.size_now);
    let prediction = predicted(&diagnosed, &sized)?;
    let made_change = MadeChange {
        service: candidate.tunable.service.clone(),
        name: candidate.tunable.name.clone(),
        from: candidate.tunable.value.clone(),
        to: candidate.value.clone().unwrap_or_default(),
        is_listed: listed.is_some(),
    };
    let changed = match listed {
        Some(variant) => ChangedExperiment { experiment: experiment.clone(), variant },
        None => changed(&request, &candidate).map_err(cannot_change)?,
    };
    stderr::say(&format!("{sized}: {} ({} beside {})", made(&made_change), changed.variant, variant.name));
    let path = arguments.trying.out.clone().unwrap_or_else(|| runs_folder::new_path(&experiment.name));
    let wanted = ComparisonRequest {
        experiment: &changed.experiment,
        before: variant.name.clone(),
        after: changed.variant.clone(),
        pairs: arguments.trying.repeat.unwrap_or(PAIRS),
        question: Question { by: Quantity::Mean, margin: MARGIN },
        seed: None,
        time_scale: arguments.trying.time_scale.unwrap_or(outcome.evidence.run.time_scale),
        path: path.clone(),
        guard_command: guard_command()?,
        agents: AgentsArguments::default().request(&changed.experiment)?,
    };
    measure(&wanted)?;
    let tried = tried(&path, &wanted, made_change, prediction)?;
    if arguments.json {
        print_json(narrows_report::json::tried(&tried))?;
    } else {
        print_painted(&format!("\n{}", narrows_report::text::tried(&tried, style())))?;
    }
    say_where(&path);
    Ok(if tried.prediction.is_held() == Some(true) { Exit::Fine } else { Exit::VerdictFailed })
}

/// Runs both variants in pairs.
fn measure(wanted: &ComparisonRequest<'_>) -> Result<(), Failure> {
    let stop = stop_flag()?;
    let mut live = Live::new();
    let compared = comparison::compare(wanted, &stop, &mut live);
    live.finish();
    let ComparisonEnd { ended, .. } = compared?;
    if ended.state == RunState::Complete {
        return Ok(());
    }
    let (shown, before, after) = (wanted.path.display(), &wanted.before, &wanted.after);
    Err(unfinished(
        ended,
        &wanted.path,
        &format!("`narrows compare {shown}:{before} {shown}:{after}` judges complete pairs"),
    ))
}

/// The prediction beside what both variants measured.
fn tried(
    path: &Path,
    wanted: &ComparisonRequest<'_>,
    made: MadeChange,
    mut prediction: Prediction,
) -> Result<Tried, Failure> {
    let outcome = conclude::outcome(path)?;
    let of = |variant: &str| -> Vec<&TrialEvidence> {
        outcome.evidence.trials.iter().filter(|trial| trial.trial.variant == variant).collect()
    };
    let before = measured(prediction.clone(), &of(&wanted.before))?;
    prediction.measured = Some(measured(prediction.clone(), &of(&wanted.after))?);
    let sentence = tried_sentence(&prediction, &before.figures);
    Ok(Tried { run: path.display().to_string(), made, before, prediction, sentence })
}

/// Figures of trials at the levels of a prediction.
fn measured(mut prediction: Prediction, trials: &[&TrialEvidence]) -> Result<Measured, Failure> {
    let label = trials.first().map_or_else(String::new, |trial| trial.trial.label());
    score_repeated(&mut prediction, trials).map_err(|cannot| failure(&label, &cannot))?;
    prediction.measured.ok_or_else(|| Failure::new(format!("{label} measured nothing")))
}

/// Prints what a change in the code would gain, and keeps the prediction for the next run of the experiment.
fn keep(arguments: &Arguments, address: &RunAddress, diagnosed: &DiagnosedTrial<'_>, asked: &Change) -> Outcome {
    let predictions = predict(diagnosed, std::slice::from_ref(asked))
        .map_err(|cannot| failure(&diagnosed.trial.trial.label(), &cannot))?;
    let Some(prediction) = predictions.predictions.first() else { return Ok(Exit::Fine) };
    kept_predictions::keep(&address.path, &diagnosed.trial.trial.variant, prediction)?;
    if arguments.json {
        print_json(narrows_report::json::predictions(std::slice::from_ref(&predictions)))?;
    } else {
        print_painted(&narrows_report::text::predictions(&predictions, style()))?;
    }
    stderr::say(&format!(
        "\nno value of the experiment stands for {asked}: make the change in the code or its surroundings ({})\n{} keeps the \
         prediction, and the next \
         `narrows run` of the experiment shows it beside what it measures\nhint: `--parameter NAME=VALUE` names a value that stands for it",
        description(asked),
        address.path.display()
    ));
    Ok(Exit::Fine)
}

fn predicted(diagnosed: &DiagnosedTrial<'_>, change: &Change) -> Result<Prediction, Failure> {
    let label = diagnosed.trial.trial.label();
    let predictions = predict(diagnosed, std::slice::from_ref(change)).map_err(|cannot| failure(&label, &cannot))?;
    predictions.predictions.into_iter().next().ok_or_else(|| Failure::new(format!("nothing is predicted of {label}")))
}

/// The first trial of the only variant.
fn only_variant<'a>(outcome: &'a Concluded, address: &RunAddress) -> Result<DiagnosedTrial<'a>, Failure> {
    let trials = diagnosed_trials(outcome);
    let mut variants: Vec<&str> = trials.iter().map(|one| one.trial.trial.variant.as_str()).collect();
    variants.dedup();
    match (variants.len(), trials.into_iter().next()) {
        (_, None) => Err(Failure::new("cannot predict anything: the run has no trial")),
        (1, Some(first)) => Ok(first),
        _ => Err(Failure::new(format!("{} has {} variants, expected one to change", address.label, variants.len()))
            .hint(format!("name one of them after a colon: {}", variants.join(", ")))),
    }
}

/// The experiment that a run was made with, as its file is now.
fn experiment(arguments: &Arguments, outcome: &Concluded, address: &RunAddress) -> Result<Experiment, Failure> {
    let label = &address.label;
    let file = match &arguments.trying.experiment {
        Some(file) => file.clone(),
        None => run::experiment_file(&address.path)?.ok_or_else(|| {
            Failure::new(format!("{label} does not say which experiment file it was made with"))
                .hint("name the file with `--experiment FILE`")
        })?,
    };
    if arguments.trying.experiment.is_none() && !file.exists() {
        return Err(Failure::new(format!("the experiment file of {label}, {}, is gone", file.display()))
            .hint("put it back where it was, or name it with `--experiment FILE`"));
    }
    let experiment = read_experiment(&file)?;
    let run = &outcome.evidence.run;
    if experiment.name != run.experiment {
        return Err(Failure::new(format!(
            "{} is the experiment `{}`, expected `{}`, which {label} is a run of",
            file.display(),
            experiment.name,
            run.experiment
        )));
    }
    Ok(experiment)
}

fn variant<'a>(experiment: &'a Experiment, diagnosed: &DiagnosedTrial<'_>) -> Result<&'a Variant, Failure> {
    let name = &diagnosed.trial.trial.variant;
    let found = experiment.variants.iter().find(|variant| variant.name == *name);
    found.ok_or_else(|| Failure::new(format!("{} has no variant `{name}` any more", experiment.file())))
}

fn cannot_change(error: ExperimentError) -> Failure {
    match error {
        ExperimentError::Invalid(errors) => {
            let reasons: Vec<String> = errors.iter().map(|error| error.message.clone()).collect();
            Failure::new(format!("the experiment does not allow this value: {}", reasons.join("; ")))
        }
        ExperimentError::CannotAdd { ref variant, .. } => {
            Failure::new(&error).hint(format!("add it by hand: `- {variant}`"))
        }
        other => Failure::new(other),
    }
}

/// The candidate that the user chooses, at a terminal; elsewhere an error lists them.
fn choose(asked: &Change, candidates: Vec<Candidate>) -> Result<Candidate, Failure> {
    if std::io::stdin().is_terminal()
        && std::io::stderr().is_terminal()
        && candidates.iter().all(|one| one.value.is_some())
    {
        let shown = candidates.iter().zip(1..).map(|(one, number)| format!("  {number}  {}\n", shown(one)));
        stderr::say(&format!("several values may stand for {asked}:\n{}number:", shown.collect::<String>()));
        let mut line = String::new();
        let read = std::io::stdin().lock().read_line(&mut line);
        let number = read.ok().and_then(|_| line.trim().parse::<usize>().ok());
        if let Some(candidate) = number.and_then(|number| candidates.get(number.checked_sub(1)?)) {
            return Ok(candidate.clone());
        }
    }
    let flags: Vec<String> = candidates.iter().map(flag).collect();
    let what = if flags.len() > 1 { "several values" } else { "a value" };
    Err(Failure::new(format!("{what} of the experiment may stand for {asked}"))
        .hint(format!("choose with {}", flags.join(" or "))))
}

/// A candidate in words, such as `POOL of web 2 → 4`.
fn shown(candidate: &Candidate) -> String {
    let tunable = &candidate.tunable;
    let to = candidate.value.as_deref().unwrap_or("VALUE");
    format!("{} of {} {} → {to}", tunable.name, tunable.service, tunable.value)
}

/// The flag that chooses a candidate.
fn flag(candidate: &Candidate) -> String {
    let tunable = &candidate.tunable;
    let name = tunable.parameter.as_deref().unwrap_or(tunable.name.trim_start_matches('-'));
    let value = candidate.value.as_deref().unwrap_or("VALUE");
    format!("`--parameter {name}={value}` ({} of {}, now {})", tunable.name, tunable.service, tunable.value)
}

fn unknown_parameter(request: &ChangeRequest<'_>) -> Failure {
    let name = request.chosen.map_or("", |(name, _)| name);
    let mut known: Vec<String> = request.experiment.tunables(request.variant).into_iter().map(|one| one.name).collect();
    known.dedup();
    Failure::new(format!("no value that {} is started with is named `{name}`", request.change.target))
        .hint(format!("the services are started with {}", known.join(", ")))
}
