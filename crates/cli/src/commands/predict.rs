//! `narrows predict RUN`: what each change that a finding suggests would gain, or the changes that are named; with
//! `--try`, the change made and measured, with `--score`, how accurate such predictions were over many runs.

mod trying;

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use narrows_model::comparison::Outcome as RunOutcome;
use narrows_model::prediction::{Change, ChangeKind, Predictions};
use narrows_model::run::Trial;
use narrows_predict::{Cannot, diagnosed_trials, predict, predict_suggested, read_change, score, usage};
use narrows_report::ScoredRun;

use crate::exit::Failure;
use crate::{Outcome, complete, run_address, runs_folder};

/// Where a checkout of Narrows keeps recorded runs, which are scored when nothing is named.
const RECORDED: [&str; 2] = ["crates/diagnose/corpus/recorded", "examples/zoo/recorded"];

#[derive(Debug, clap::Args)]
#[command(after_help = changes())]
pub(crate) struct Arguments {
    /// A run file or its name in the runs folder, perhaps with `:VARIANT` or `:VARIANT#REPETITION` [default: the newest]
    #[arg(value_name = "RUN[:VARIANT]", add = complete::addresses())]
    runs: Vec<String>,
    /// A change to predict, such as `speed-up=orders,2`; may be repeated [default: all that the findings suggest]
    #[arg(long, value_name = "NAME[=ARGUMENTS]")]
    change: Vec<String>,
    /// What was measured once the change was made, to compare with: a run, or `:VARIANT` of the newest
    #[arg(long, value_name = "RUN[:VARIANT]", requires = "change", add = complete::addresses())]
    of: Option<String>,
    /// Put predictions beside what was measured wherever a variant of these runs made a change to another one, and print
    /// how far they were off, as Markdown. `RUN` may be a folder [default: the recorded runs of a checkout of Narrows,
    /// else the runs folder]
    #[arg(long, conflicts_with_all = ["change", "of"])]
    score: bool,
    /// Runs that judge the model: those whose name's last word, after `-`, begins with a letter in this range, such as `n-z`.
    /// The others count as those that tuned it
    #[arg(long, value_name = "LETTER-LETTER", requires = "score", value_parser = letters)]
    judge: Option<RangeInclusive<char>>,
    #[command(flatten)]
    trying: trying::TryArguments,
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
    if arguments.score {
        return score_of(&arguments.runs, arguments.judge.as_ref(), arguments.json);
    }
    if let [_, second, ..] = &arguments.runs[..] {
        let failure = Failure::new(format!("a second run, {second}, expected one"));
        return Err(failure.hint("`--score` takes several runs"));
    }
    if let Some(text) = &arguments.trying.tried {
        return trying::execute(arguments, text);
    }
    let asked = arguments.change.iter().map(|text| change(text)).collect::<Result<Vec<_>, _>>()?;
    let address = run_address::find(arguments.runs.first().map(String::as_str))?;
    let outcome = narrows_lab::conclude::outcome_of(&address.path, &address.selection)?;
    let mut predictions = of_trials(&outcome, &asked)?;
    if let Some(after) = &arguments.of {
        compare(&mut predictions, after)?;
    }
    if arguments.json {
        return super::print_json(narrows_report::json::predictions(&predictions));
    }
    let texts: Vec<String> =
        predictions.iter().map(|one| narrows_report::text::predictions(one, super::style())).collect();
    super::print_painted(&texts.join("\n"))
}

/// Letters from one to another: `n-z`.
fn letters(text: &str) -> Result<RangeInclusive<char>, String> {
    match text.chars().collect::<Vec<_>>()[..] {
        [first, '-', last] if first.is_alphabetic() && first <= last => Ok(first..=last),
        _ => Err("expected two letters, such as `n-z`".to_owned()),
    }
}

/// Whether the last word of a run's name begins with one of these letters.
fn is_judge(name: &str, letters: &RangeInclusive<char>) -> bool {
    let word = name.rsplit('-').next().unwrap_or(name);
    word.chars().next().is_some_and(|first| letters.contains(&first))
}

/// How accurate predictions are over these runs and folders of runs.
fn score_of(runs: &[String], judge: Option<&RangeInclusive<char>>, json: bool) -> Outcome {
    let mut all: Vec<ScoredRun> = Vec::new();
    let files = files(runs)?;
    for path in &files {
        let outcome = narrows_lab::conclude::outcome(path)?;
        let run = name(path);
        let judges = judge.map(|letters| is_judge(&run, letters));
        let scored = narrows_lab::conclude::scored_in_any_order(&outcome);
        all.extend(scored.into_iter().map(|scored| {
            let has_spans = has_spans(&outcome, &scored.before);
            ScoredRun { run: run.clone(), scored, has_spans, judges }
        }));
    }
    if all.is_empty() {
        let runs = if files.len() == 1 { "the run has".to_owned() } else { format!("the {} runs have", files.len()) };
        let failure = Failure::new(format!("nothing to score: {runs} no variant that made a change to another one"));
        return Err(
            failure.hint("`narrows predict :A --change CHANGE --of :B` names the change and the variant that made it")
        );
    }
    if json {
        return super::print_json(narrows_report::json::score(&all));
    }
    super::print(&narrows_report::score(&all))
}

/// Whether the trial of a label has spans.
fn has_spans(outcome: &RunOutcome, label: &str) -> bool {
    outcome.evidence.trials.iter().any(|one| one.trial.label() == label && one.spans_total > 0)
}

/// The run files and files of evidence that are named, and those in named folders, by name.
fn files(runs: &[String]) -> Result<Vec<PathBuf>, Failure> {
    let named: Vec<PathBuf> = runs.iter().map(PathBuf::from).collect();
    let recorded = || RECORDED.iter().map(PathBuf::from).filter(|folder| folder.is_dir()).collect::<Vec<_>>();
    let named = match (named.is_empty(), recorded()) {
        (false, _) => named,
        (true, recorded) if recorded.is_empty() => vec![runs_folder::folder()],
        (true, recorded) => recorded,
    };
    let mut files = Vec::new();
    for path in named {
        if path.is_dir() {
            files.extend(runs_folder::runs_in(&path)?);
        } else {
            files.push(runs_folder::find(Some(&path))?);
        }
    }
    Ok(files)
}

/// A run's name: that of its file.
fn name(path: &Path) -> String {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    name.trim_end_matches(".json.gz").trim_end_matches(".narrows").to_owned()
}

/// Puts what the only trial at an address measured beside each prediction.
fn compare(predictions: &mut [Predictions], address: &str) -> Result<(), Failure> {
    let address = run_address::find(Some(address))?;
    let outcome = narrows_lab::conclude::outcome_of(&address.path, &address.selection)?;
    let [after] = &outcome.evidence.trials[..] else {
        let trials = outcome.evidence.trials.iter().map(|one| &one.trial);
        // A variant's name alone is that of all its repetitions.
        let is_repeated = trials.clone().any(|trial| trial.repetition > 1);
        let label = |trial: &Trial| {
            if is_repeated { format!("{}#{}", trial.variant, trial.repetition) } else { trial.label() }
        };
        let labels: Vec<String> = trials.map(label).collect();
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
    let predicted = diagnosed_trials(outcome).into_iter().map(|diagnosed| {
        let predicted = if asked.is_empty() { predict_suggested(&diagnosed) } else { predict(&diagnosed, asked) };
        predicted.map_err(|cannot| failure(&diagnosed.trial.trial.label(), &cannot))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_told_apart_by_the_last_word_of_their_name() {
        let range = letters("n-z").expect("a range");
        assert!(is_judge("go-partners", &range) && !is_judge("go-ledger", &range) && !is_judge("customer-360", &range));
        assert!(["z-n", "nz", "n-zz", ""].iter().all(|text| letters(text).is_err()));
    }
}
