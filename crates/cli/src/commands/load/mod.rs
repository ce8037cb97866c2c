//! `narrows load URL`: one-shot load with hey's flags and hey's meaning.
//!
//! `arguments` are read and made into a `plan`; the load is sent, followed (`follow`) while it lasts, and reported
//! (`summary`) when it is over. Nothing is kept but the requested `outputs`.

mod addresses;
mod arguments;
mod follow;
mod json;
mod objectives;
mod outputs;
mod plan;
mod summary;
mod target;

use std::sync::mpsc::sync_channel;

use narrows_load::{Clock, LoadOutcome};
use narrows_model::comparison::{Kept, ObjectiveResult};
use narrows_model::load::LoadPlan;
use narrows_model::run::Verdict;

use crate::Outcome;
use crate::exit::{Exit, Failure, with_causes};
pub(crate) use arguments::{Arguments, with_two_dashes};
use follow::Follower;
use objectives::CountedTotals;
use outputs::Outputs;
use target::Target;

const BATCHES_IN_FLIGHT: usize = 64;

/// A load that is over.
#[derive(Debug)]
struct FinishedLoad {
    outcome: LoadOutcome,
    /// The part after the warm-up.
    counted: CountedTotals,
    objectives: Vec<ObjectiveResult>,
    /// Why it was ended before its time; `None` if it was not.
    stopped: Option<String>,
}

pub(crate) fn execute(arguments: &Arguments) -> Outcome {
    let target = Target::parse(&arguments.url)?;
    let plan = plan::plan(arguments, &target)?;
    let outputs = Outputs::create(&arguments.results)?;
    let sent = send(arguments, &plan, outputs)?;
    match arguments.results.json {
        true => super::print_json(json::json(arguments, &plan, &sent)),
        false => super::print(&summary::text(arguments, &plan, &sent)),
    }?;
    Ok(verdict(arguments, &sent))
}

fn send(arguments: &Arguments, plan: &LoadPlan, outputs: Outputs) -> Result<FinishedLoad, Failure> {
    let stop =
        crate::signals::stop_flag().map_err(|error| Failure::new(format!("cannot listen for signals: {error}")))?;
    let mut follower = Follower::new(arguments, plan, outputs, &stop);
    let outcome = std::thread::scope(|scope| {
        let (sender, batches) = sync_channel(BATCHES_IN_FLIGHT);
        let stop = &stop;
        let load = scope.spawn(move || narrows_load::run(plan, Clock::new(), stop, &sender));
        batches.iter().for_each(|batch| follower.see(&batch));
        load.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    follower.end(outcome.map_err(refused)?)
}

/// Why the engine did not begin.
fn refused(error: narrows_load::Error) -> Failure {
    let failure = Failure::new(with_causes(&error));
    match error {
        narrows_load::Error::OpenFiles { .. } => {
            failure.hint("lower -c or --max-connections, or allow more with `ulimit -n`")
        }
        _ => failure,
    }
}

/// Exit code 1 when nothing succeeded, an objective was missed, or the numbers are invalid and must not be.
fn verdict(arguments: &Arguments, sent: &FinishedLoad) -> Exit {
    let is_missed = sent.objectives.iter().any(|objective| objective.kept != Kept::Yes);
    let is_refused = arguments.goals.strict && sent.outcome.validity.verdict == Verdict::Invalid;
    if is_missed || is_refused || sent.outcome.totals.succeeded == 0 { Exit::VerdictFailed } else { Exit::Fine }
}
