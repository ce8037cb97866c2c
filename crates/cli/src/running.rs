//! Running an experiment, from its start to the outcome on standard output, for `run`, `demo` and `sensitivity`.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use narrows_lab::agents::AgentsRequest;
use narrows_lab::experiment::Experiment;
use narrows_lab::run::{Begin, Options, Order, RunEnd, run};
use narrows_model::comparison::Outcome as Concluded;
use narrows_model::run::RunState;

use crate::exit::Failure;
use crate::live::Live;
use crate::{commands, stderr};

/// An experiment to run, and its options.
#[derive(Debug)]
pub(crate) struct RunOptions<'a> {
    pub(crate) experiment: &'a Experiment,
    /// The variants to run; all when empty.
    pub(crate) variants: &'a [String],
    pub(crate) repetitions: u32,
    /// Factor on the load's durations.
    pub(crate) time_scale: f64,
    /// The run file.
    pub(crate) path: &'a Path,
    pub(crate) begin: Begin,
    /// Agents that send the load; this process without.
    pub(crate) agents: Option<AgentsRequest>,
}

/// How the outcome is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Text,
    /// Text that fits on two screens, which demos print.
    #[cfg(feature = "reference-systems")]
    Brief,
    Json,
}

/// Runs an experiment with its progress on standard error, then prints what it showed.
pub(crate) fn run_and_tell(wanted: &RunOptions<'_>, form: Form) -> Result<(RunEnd, Concluded), Failure> {
    let stop = stop_flag()?;
    let ended = run_until(wanted, &stop)?;
    let outcome = narrows_lab::conclude::outcome(wanted.path)?;
    let style = commands::style();
    match form {
        Form::Json => commands::print_json(narrows_report::json::outcome(&outcome)),
        #[cfg(feature = "reference-systems")]
        Form::Brief => commands::print_painted(&format!("\n{}", narrows_report::text::brief(&outcome, style))),
        Form::Text => commands::print_painted(&format!("\n{}", narrows_report::text::outcome(&outcome, style))),
    }?;
    Ok((ended, outcome))
}

/// Runs an experiment with its progress on standard error until its end, or until `stop` is set.
pub(crate) fn run_until(wanted: &RunOptions<'_>, stop: &AtomicBool) -> Result<RunEnd, Failure> {
    let options = Options {
        experiment: wanted.experiment,
        variants: wanted.experiment.with_measuring(wanted.variants),
        repetitions: wanted.repetitions,
        order: Order::InTurn,
        time_scale: wanted.time_scale,
        path: wanted.path.to_owned(),
        begin: wanted.begin,
        guard_command: guard_command()?,
        agents: wanted.agents.clone(),
    };
    let mut live = Live::new();
    let ended = run(&options, stop, &mut live);
    live.finish();
    Ok(ended?)
}

/// The flag that Ctrl-C sets.
pub(crate) fn stop_flag() -> Result<Arc<AtomicBool>, Failure> {
    crate::signals::stop_flag().map_err(|error| Failure::new(format!("cannot listen for signals: {error}")))
}

/// The command of the guard: this program.
pub(crate) fn guard_command() -> Result<Vec<String>, Failure> {
    let own =
        std::env::current_exe().map_err(|error| Failure::new(format!("cannot find the narrows binary: {error}")))?;
    Ok(vec![own.to_string_lossy().into_owned(), "guard".to_owned()])
}

/// The failure of a run that did not come to its end. `next` is what can be done with its run file.
pub(crate) fn unfinished(ended: RunEnd, path: &Path, next: &str) -> Failure {
    let shown = path.display();
    if ended.state == RunState::Interrupted {
        return Failure::new(format!("interrupted; {shown} keeps what was measured")).hint(next);
    }
    stderr::say(&format!("\n{shown} keeps what was measured; {next}"));
    ended.error.map_or_else(|| Failure::new("the run failed"), Failure::from)
}

/// Reads the factor on the durations of the load.
pub(crate) fn factor(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(factor) if factor > 0.0 && factor <= 1_000.0 => Ok(factor),
        _ => Err("expected a number above 0 and up to 1000, such as 0.1".to_owned()),
    }
}
