//! `narrows run FILE`: the experiment from its start to the sentence with its meaning.

use std::path::PathBuf;

use narrows_lab::run::{Begin, newest_unfinished};
use narrows_model::comparison::{Kept, Outcome as Concluded};
use narrows_model::run::RunState;

use crate::exit::Exit;
use crate::running::{Form, Wanted, factor, run_and_tell, unfinished};
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
    /// Continue an interrupted run at its first unfinished trial: the newest of this experiment, or the one of `--out`
    #[arg(long, conflicts_with_all = ["variant", "repeat", "time_scale"])]
    resume: bool,
    /// The run file [default: runs/EXPERIMENT-DATE-TIME.narrows]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn execute(arguments: &Arguments) -> Outcome {
    let experiment = super::read_experiment(&arguments.file).map_err(|failure| match arguments.resume {
        true if !arguments.file.exists() => failure.hint(
            "--resume needs the experiment file, because a run file holds no secrets; put the file back where it was",
        ),
        _ => failure,
    })?;
    let begin = if arguments.resume { Begin::Resume } else { Begin::Fresh };
    let path = match (&arguments.out, begin) {
        (Some(path), _) => path.clone(),
        (None, Begin::Fresh) => runs_folder::new_path(&experiment.name),
        (None, Begin::Resume) => newest_unfinished(&runs_folder::folder(), &experiment.name)?,
    };
    let (ended, outcome) = run_and_tell(&Wanted {
        experiment: &experiment,
        variants: &arguments.variant,
        repetitions: arguments.repeat,
        time_scale: arguments.time_scale,
        path: &path,
        begin,
        form: if arguments.json { Form::Json } else { Form::Text },
    })?;
    if ended.state != RunState::Complete {
        return Err(unfinished(ended, &path, &format!("{} continues it", resuming(arguments))));
    }
    let shown = path.display();
    stderr::say(&format!("\nrun file: {shown}\nreport:   narrows report {shown} --html report.html"));
    Ok(verdict(&outcome))
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
