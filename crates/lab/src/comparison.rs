//! `narrows run --compare`: two variants in pairs of trials, until it is clear which is faster.
//!
//! The order within each pair is random. After each pair the trials are looked at; the run ends when the verdict is
//! clear, or with the last planned pair. What cannot be compared (an invalid trial, unequal rates) ends it at once. The
//! plan stands in the run file from the first trial on, so that `narrows compare` later applies the bounds that hold for
//! what was looked at. The statistics are `narrows_diagnose::proof`'s.
//!
//! Not here: going on with an interrupted comparison. What it measured can be compared.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use narrows_diagnose::proof::{self, Measured, Plan, Question, Rules, Side};
use narrows_model::load::LoadPlan;
use narrows_model::proof::Proof;
use narrows_model::run::Trial;
use narrows_telemetry::run_file::{Reader, Recorder};

use crate::agents::AgentsRequest;
use crate::comparison_plan::{ComparisonPlan, PLAN};
use crate::experiment::{BoundCommand, Experiment};
use crate::progress::{Event, Progress};
use crate::run::{Begin, Options, Order, RunEnd, run_with};
use crate::trial::{Bench, Next, RunningReplica, Work};
use crate::{Error, environment, plan};

/// The name under which a run file keeps the verdict.
pub const CONCLUSION: &str = "proof";

/// Subject and rules of a comparison.
#[derive(Debug)]
pub struct ComparisonRequest<'a> {
    /// The experiment.
    pub experiment: &'a Experiment,
    /// The variant to compare with.
    pub before: String,
    /// The variant to compare.
    pub after: String,
    /// Pairs of trials at most, 2 or more.
    pub pairs: u32,
    /// Question.
    pub question: Question,
    /// Seed of the order; a new one for none.
    pub seed: Option<u64>,
    /// Factor on the load's durations, above 0.
    pub time_scale: f64,
    /// The run file to create.
    pub path: PathBuf,
    /// See [`Options::guard_command`].
    pub guard_command: Vec<String>,
    /// See [`Options::agents`].
    pub agents: Option<AgentsRequest>,
}

/// How a comparison ended.
#[derive(Debug)]
pub struct ComparisonEnd {
    /// How the run did.
    pub ended: RunEnd,
    /// The verdict on what was measured; `None` if that is too little.
    pub proof: Option<Proof>,
}

/// Compares. `stop` ends it early, in order.
///
/// # Errors
/// When it could not begin. What happens later is in [`ComparisonEnd`].
pub fn compare(
    wanted: &ComparisonRequest<'_>,
    stop: &AtomicBool,
    progress: &mut dyn Progress,
) -> Result<ComparisonEnd, Error> {
    let (before, after) = (wanted.before.clone(), wanted.after.clone());
    if before == after {
        return Err(Error::Compare(proof::Refusal::Same { label: before }));
    }
    let variants = vec![before.clone(), after.clone()];
    plan::select(wanted.experiment, &variants)?;
    let seed = wanted.seed.unwrap_or_else(|| u64::from(environment::random_u64() as u32));
    let options = Options {
        experiment: wanted.experiment,
        variants,
        repetitions: wanted.pairs,
        order: Order::Drawn { seed },
        time_scale: wanted.time_scale,
        path: wanted.path.clone(),
        begin: Begin::Fresh,
        guard_command: wanted.guard_command.clone(),
        agents: wanted.agents.clone(),
    };
    let mut comparing = ComparisonWork {
        rules: Rules::new(wanted.pairs),
        plan: ComparisonPlan { before, after, planned: wanted.pairs, seed },
        question: wanted.question,
        old: Vec::new(),
        new: Vec::new(),
        proof: None,
    };
    let ended = run_with(&options, &mut comparing, stop, progress)?;
    Ok(ComparisonEnd { ended, proof: comparing.proof })
}

/// The work of every trial of a comparison.
struct ComparisonWork {
    rules: Rules,
    plan: ComparisonPlan,
    question: Question,
    old: Vec<Measured>,
    new: Vec<Measured>,
    proof: Option<Proof>,
}

impl Work for ComparisonWork {
    fn work(
        &mut self,
        bench: &mut Bench<'_>,
        load: LoadPlan,
        trial: &mut Trial,
        running: &mut [RunningReplica],
        progress: &mut dyn Progress,
    ) -> Result<(), Error> {
        bench.recorder.put_conclusion(PLAN, &serde_json::json!(self.plan))?;
        bench.load(load, trial, running, progress)
    }

    fn command(
        &mut self,
        bench: &mut Bench<'_>,
        command: &BoundCommand,
        trial: &mut Trial,
        running: &mut [RunningReplica],
        progress: &mut dyn Progress,
    ) -> Result<(), Error> {
        bench.recorder.put_conclusion(PLAN, &serde_json::json!(self.plan))?;
        bench.load_by_command(command, trial, running, progress)
    }

    fn after(&mut self, path: &Path, trial: &Trial, progress: &mut dyn Progress) -> Result<Next, Error> {
        let evidence = Reader::open(path)?.load_of(trial.id)?;
        let side = if trial.variant == self.plan.before { &mut self.old } else { &mut self.new };
        side.extend(evidence.as_ref().and_then(Measured::of));
        let (before, after) = self.sides();
        proof::check(before, after, self.question.by).map_err(Error::Compare)?;
        let pairs = self.old.len() as u32;
        if self.old.len() != self.new.len() || pairs < 2 {
            return Ok(Next::Trial);
        }
        let plan = Plan::Sequential { seed: self.plan.seed, rules: &self.rules };
        let proof = proof::prove(before, after, plan, self.question).map_err(Error::Compare)?;
        let is_look = self.rules.is_look(pairs);
        if is_look {
            progress.tell(&Event::Looked(&proof.sentence));
        }
        let is_enough = is_look && proof.verdict.is_clear();
        self.proof = Some(proof);
        Ok(if is_enough { Next::Enough } else { Next::Trial })
    }

    fn conclude(&self, recorder: &Recorder) -> Result<(), Error> {
        match &self.proof {
            Some(proof) => Ok(recorder.put_conclusion(CONCLUSION, &serde_json::json!(proof))?),
            None => Ok(()),
        }
    }
}

impl ComparisonWork {
    fn sides(&self) -> (Side<'_>, Side<'_>) {
        let side = |label, trials| Side { label, trials };
        (side(self.plan.before.as_str(), self.old.as_slice()), side(self.plan.after.as_str(), self.new.as_slice()))
    }
}
