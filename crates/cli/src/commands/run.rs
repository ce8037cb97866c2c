//! `narrows run FILE`: the experiment from its start to the sentence that says what it means.

use std::path::PathBuf;

use narrows_lab::run::{Begin, Ended, Options, newest_unfinished, run};
use narrows_model::comparison::{Kept, Outcome as Concluded};
use narrows_model::run::RunState;

use crate::exit::{Exit, Failure};
use crate::live::Live;
use crate::{Outcome, runs_folder, stderr};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The experiment file
    #[arg(default_value = "experiment.yaml")]
    file: PathBuf,
    /// Run only this variant; may be given several times
    #[arg(long, value_name = "NAME")]
    variant: Vec<String>,
    /// Run each variant this many times, in turn; with 2 or more the noise floor is printed
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: u32,
    /// Multiply the durations of the load by this factor
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = factor)]
    time_scale: f64,
    /// Go on with an interrupted run at its first unfinished trial: the newest of this experiment, or the one of `--out`
    #[arg(long, conflicts_with_all = ["variant", "repeat", "time_scale"])]
    resume: bool,
    /// The run file [default: runs/EXPERIMENT-DATE-TIME.narrows]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

fn factor(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(factor) if factor > 0.0 && factor <= 1_000.0 => Ok(factor),
        _ => Err("expected a number above 0 and up to 1000, such as 0.1".to_owned()),
    }
}

pub(crate) fn execute(arguments: &Arguments) -> Outcome {
    let experiment = super::read_experiment(&arguments.file)?;
    let begin = if arguments.resume { Begin::Resume } else { Begin::Fresh };
    let path = match (&arguments.out, begin) {
        (Some(path), _) => path.clone(),
        (None, Begin::Fresh) => runs_folder::new_path(&experiment.name),
        (None, Begin::Resume) => newest_unfinished(&runs_folder::folder(), &experiment.name)?,
    };
    let own =
        std::env::current_exe().map_err(|error| Failure::new(format!("cannot find the narrows binary: {error}")))?;
    let options = Options {
        experiment: &experiment,
        variants: arguments.variant.clone(),
        repetitions: arguments.repeat,
        time_scale: arguments.time_scale,
        path: path.clone(),
        begin,
        guard_command: vec![own.to_string_lossy().into_owned(), "guard".to_owned()],
    };
    let stop =
        crate::signals::stop_flag().map_err(|error| Failure::new(format!("cannot listen for signals: {error}")))?;
    let mut live = Live::new();
    let ended = run(&options, &stop, &mut live);
    live.finish();
    conclude(arguments, &path, ended?)
}

fn conclude(arguments: &Arguments, path: &std::path::Path, ended: Ended) -> Outcome {
    let outcome = narrows_lab::conclude::outcome(path)?;
    if arguments.json {
        super::print(&format!("{:#}\n", narrows_report::json::outcome(&outcome)))?;
    } else {
        super::print(&format!("\n{}", narrows_report::text::outcome(&outcome, super::style())))?;
    }
    let shown = path.display();
    match ended {
        Ended { state: RunState::Complete, .. } => {
            stderr::say(&format!("\nrun file: {shown}\nreport:   narrows report {shown} --html report.html"));
            Ok(verdict(&outcome))
        }
        Ended { state: RunState::Interrupted, .. } => {
            Err(Failure::new(format!("interrupted; {shown} keeps what was measured"))
                .hint(format!("{} goes on with it", resuming(arguments))))
        }
        Ended { error, .. } => {
            stderr::say(&format!("\n{shown} keeps what was measured; {} goes on with it", resuming(arguments)));
            Err(error.map_or_else(|| Failure::new("the run failed"), Failure::from))
        }
    }
}

/// The command that resumes this run.
fn resuming(arguments: &Arguments) -> String {
    let out = arguments.out.as_ref().map_or_else(String::new, |path| format!(" --out {}", path.display()));
    format!("`narrows run {} --resume{out}`", arguments.file.display())
}

/// Exit code 1 when an objective was missed in a finished trial.
fn verdict(outcome: &Concluded) -> Exit {
    let is_missed = outcome.objectives.iter().flatten().any(|objective| objective.kept == Kept::No);
    if is_missed { Exit::VerdictFailed } else { Exit::Fine }
}
