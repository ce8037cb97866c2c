//! `narrows predict RUN`: what each change that a finding suggests would gain, or the changes that are named.

use narrows_model::comparison::Outcome as RunOutcome;
use narrows_model::prediction::{Change, ChangeKind, Predictions};
use narrows_predict::{Cannot, predict, predict_suggested, read_change, score, usage};

use crate::exit::Failure;
use crate::{Outcome, complete, run_address};

#[derive(Debug, clap::Args)]
#[command(after_help = changes())]
pub(crate) struct Arguments {
    /// A run file or its name in the runs folder, perhaps with `:VARIANT` or `:VARIANT#REPETITION` [default: the newest]
    #[arg(value_name = "RUN[:VARIANT]", add = complete::addresses())]
    run: Option<String>,
    /// A change to predict, such as `speed-up=orders,2`; may be repeated [default: all that the findings suggest]
    #[arg(long, value_name = "NAME[=ARGUMENTS]")]
    change: Vec<String>,
    /// What was measured once the change was made, to compare with: a run, or `:VARIANT` of the newest
    #[arg(long, value_name = "RUN[:VARIANT]", requires = "change", add = complete::addresses())]
    of: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The changes and how each is written.
fn changes() -> String {
    let lines = ChangeKind::ALL.iter().map(|kind| format!("  {}={}\n", kind.name(), usage(*kind)));
    format!("Changes:\n{}", lines.collect::<String>())
}

pub(crate) fn execute(arguments: &Arguments) -> Outcome {
    let asked = arguments.change.iter().map(|text| change(text)).collect::<Result<Vec<_>, _>>()?;
    let address = run_address::find(arguments.run.as_deref())?;
    let outcome = narrows_lab::conclude::outcome_of(&address.path, &address.selection)?;
    let mut predictions = of_trials(&outcome, &asked)?;
    if let Some(after) = &arguments.of {
        compare(&mut predictions, after)?;
    }
    if arguments.json {
        return super::print(&format!("{:#}\n", narrows_report::json::predictions(&predictions)));
    }
    let texts: Vec<String> =
        predictions.iter().map(|one| narrows_report::text::predictions(one, super::style())).collect();
    super::print(&texts.join("\n"))
}

/// Puts what the only trial at an address measured beside each prediction.
fn compare(predictions: &mut [Predictions], address: &str) -> Result<(), Failure> {
    let address = run_address::find(Some(address))?;
    let outcome = narrows_lab::conclude::outcome_of(&address.path, &address.selection)?;
    let [after] = &outcome.evidence.trials[..] else {
        let labels: Vec<String> = outcome.evidence.trials.iter().map(|trial| trial.trial.label()).collect();
        let failure =
            Failure::new(format!("{} has {} trials, expected one to compare with", address.label, labels.len()));
        return Err(failure.hint(format!("name one of them: {}", labels.join(", "))));
    };
    let all = predictions.iter_mut().flat_map(|of_trial| {
        let trial = of_trial.trial.clone();
        of_trial.predictions.iter_mut().map(move |prediction| (trial.clone(), prediction))
    });
    for (trial, prediction) in all {
        score(prediction, after).map_err(|cannot| failure(&trial, &cannot))?;
    }
    Ok(())
}

fn change(text: &str) -> Result<Change, Failure> {
    read_change(text).map_err(|error| Failure::new(&error).hint(error.hint()))
}

/// The predictions of each trial that allows some; when none does, the reason of the first.
fn of_trials(outcome: &RunOutcome, asked: &[Change]) -> Result<Vec<Predictions>, Failure> {
    let trials = outcome.evidence.trials.iter().zip(&outcome.findings);
    let predicted = trials.map(|(trial, findings)| {
        let predicted =
            if asked.is_empty() { predict_suggested(trial, findings) } else { predict(trial, findings, asked) };
        predicted.map_err(|cannot| failure(&trial.trial.label(), &cannot))
    });
    let (mut found, mut failures) = (Vec::new(), Vec::new());
    for one in predicted {
        match one {
            Ok(predictions) => found.push(predictions),
            Err(failure) => failures.push(failure),
        }
    }
    match (found.is_empty(), failures.into_iter().next()) {
        (true, Some(failure)) => Err(failure),
        (true, None) => Err(Failure::new("cannot predict anything: the run has no trial")),
        _ => Ok(found),
    }
}

fn failure(trial: &str, cannot: &Cannot) -> Failure {
    let failure = Failure::new(format!("cannot predict from {trial}: {cannot}"));
    match cannot.hint() {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
