//! A run: its trials in turn, into one file, with an orderly end whatever happens.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use narrows_model::run::{Run, RunState, Trial, TrialState};
use narrows_sampler::{Sampler, SamplerConfig};
use narrows_telemetry::Store;
use narrows_telemetry::exchange::is_evidence;
use narrows_telemetry::otlp::{Receiver, Weights, is_loopback};
use narrows_telemetry::run_file::{Reader, RunFile};

use crate::adoption::AdoptedChildren;
use crate::agents::{Agents, AgentsRequest};
use crate::cluster::Found;
use crate::experiment::{Experiment, LoadMaker, Telemetry, Variant, redacted};
use crate::guard::Guard;
use crate::leftovers::{Leftovers, new_mark};
use crate::ports::Ports;
use crate::progress::{Event, Progress};
use crate::setup::Setups;
use crate::trial::{Bench, Faults, Next, PlannedLoad, Roots, Work};
use crate::{Error, comparison_plan, conclude, environment, measured_parameters, plan};

pub use crate::plan::Order;

/// The name under which a run file keeps the absolute path of its experiment file.
const EXPERIMENT_FILE: &str = "experiment_file";

/// Experiment to run, and its options.
#[derive(Debug)]
pub struct Options<'a> {
    /// The experiment.
    pub experiment: &'a Experiment,
    /// The variants to run; all when empty.
    pub variants: Vec<String>,
    /// Repetitions of each variant, 1 or more.
    pub repetitions: u32,
    /// The order of the variants within a repetition.
    pub order: Order,
    /// Factor on the load's durations, above 0.
    pub time_scale: f64,
    /// The run file: to create, or to go on with.
    pub path: PathBuf,
    /// Whether the run file is new.
    pub begin: Begin,
    /// The command whose standard input reaches [`crate::guard::watch`].
    pub guard_command: Vec<String>,
    /// Agents that send the load; this process without.
    pub agents: Option<AgentsRequest>,
}

/// Whether a run starts or goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begin {
    /// A new run file is made.
    Fresh,
    /// An interrupted run goes on at its first unfinished trial.
    Resume,
}

/// How a run ended. The run file is closed in each case, and whole unless the disk is full: then it holds what was written
/// before.
#[derive(Debug)]
pub struct RunEnd {
    /// The state written into the file.
    pub state: RunState,
    /// Reason of its stop, if it is not complete.
    pub error: Option<Error>,
}

/// Runs the experiment. `stop` ends it early, in order: the trial under way becomes `interrupted`.
/// Errors only when the run could not begin; what happens later is in [`RunEnd`].
pub fn run(options: &Options<'_>, stop: &AtomicBool, progress: &mut dyn Progress) -> Result<RunEnd, Error> {
    run_with(options, &mut PlannedLoad, stop, progress)
}

/// As [`run`], with something else to be done in each trial than to send the experiment's load.
pub(crate) fn run_with(
    options: &Options<'_>,
    work: &mut dyn Work,
    stop: &AtomicBool,
    progress: &mut dyn Progress,
) -> Result<RunEnd, Error> {
    let (file, run, mut trials) = open(options)?;
    let mut todo: Vec<usize> = (0..trials.len()).filter(|i| trials[*i].state != TrialState::Done).collect();
    todo.sort_by_key(|i| !measured_parameters::is_first(options.experiment, &trials[*i]));
    progress.tell(&Event::RunStarted {
        path: &options.path,
        trials: todo.len(),
        already_done: trials.len() - todo.len(),
        varied: &plan::varied(&trials),
    });
    let result = run_trials(options, &file, &run, &mut trials, &todo, work, stop, progress);
    let concluded = result
        .and_then(|()| conclude::write(&options.path, &file.recorder()))
        .and_then(|()| work.conclude(&file.recorder()));
    let state = match &concluded {
        Ok(()) => RunState::Complete,
        Err(Error::Interrupted) => RunState::Interrupted,
        Err(_) => RunState::Failed,
    };
    match (concluded, file.finish(state)) {
        (Ok(()), finished) => finished.map(|()| RunEnd { state, error: None }).map_err(Error::from),
        // The error of the run may also keep its file from being finished, and says more.
        (Err(error), _) => Ok(RunEnd { state, error: Some(error) }),
    }
}

fn open(options: &Options<'_>) -> Result<(RunFile, Run, Vec<Trial>), Error> {
    match options.begin {
        Begin::Fresh => {
            let variants = plan::select(options.experiment, &options.variants)?;
            let shown = |variant: &Variant| options.experiment.shown_parameters(variant);
            let trials = plan::trials(&variants, options.repetitions, options.order, shown);
            let run = new_run(options);
            if let Some(folder) = options.path.parent() {
                std::fs::create_dir_all(folder).map_err(|source| Error::File {
                    what: "create",
                    path: folder.to_owned(),
                    source,
                })?;
            }
            let file = RunFile::create(&options.path, &run)?;
            let recorder = file.recorder();
            recorder.hide(options.experiment.known_secrets());
            recorder.put_conclusion(
                EXPERIMENT_FILE,
                &serde_json::json!(std::path::absolute(options.experiment.file()).ok()),
            )?;
            // A run that may end early has no trial that it may not make.
            if options.order == Order::InTurn {
                trials.iter().try_for_each(|trial| recorder.put_trial(trial))?;
            }
            Ok((file, run, trials))
        }
        Begin::Resume => {
            // Looked at before the file is taken over: a refusal leaves it as it was.
            let reader = Reader::open(&options.path)?;
            let kept = reader.run()?.experiment_source;
            comparison_plan::refuse_to_resume(&reader, &options.path)?;
            drop(reader);
            is_same_experiment(&kept, options.experiment, &options.path)?;
            let (file, run, trials) = RunFile::resume(&options.path)?;
            file.recorder().hide(options.experiment.known_secrets());
            Ok((file, run, trials))
        }
    }
}

/// A run goes on with the experiment file, since the run file has its text without secrets. So the texts are compared
/// without them: a password may have changed meanwhile.
fn is_same_experiment(kept: &str, experiment: &Experiment, path: &Path) -> Result<(), Error> {
    let (old, new) = (redacted(kept), experiment.redacted_source());
    if old == new {
        return Ok(());
    }
    let same = old.lines().zip(new.lines()).take_while(|(old, new)| old == new).count();
    Err(Error::OtherExperiment { file: experiment.file().to_owned(), path: path.to_owned(), line: same + 1 })
}

fn new_run(options: &Options<'_>) -> Run {
    Run {
        id: format!("{:016x}", environment::random_u64()),
        experiment: options.experiment.name.clone(),
        narrows_version: env!("CARGO_PKG_VERSION").to_owned(),
        started_ns: environment::now_ns(),
        ended_ns: None,
        state: RunState::Running,
        seed: options.experiment.seed,
        time_scale: options.time_scale,
        repetitions: options.repetitions,
        experiment_source: options.experiment.redacted_source(),
        environment: environment::fingerprint(),
    }
}

#[allow(clippy::too_many_arguments, reason = "it is one step of a run, cut out of it for its length")]
fn run_trials(
    options: &Options<'_>,
    file: &RunFile,
    run: &Run,
    trials: &mut [Trial],
    todo: &[usize],
    work: &mut dyn Work,
    stop: &AtomicBool,
    progress: &mut dyn Progress,
) -> Result<(), Error> {
    let recorder = file.recorder();
    let store: Arc<dyn Store> = Arc::new(recorder.clone());
    let weights = Weights::default();
    let roots = Arc::new(Roots::before(Arc::clone(&store)));
    let receiver = receive(&options.experiment.telemetry, Arc::clone(&roots) as Arc<dyn Store>, &weights, progress)?;
    let sampler = Sampler::start(SamplerConfig::default(), Arc::clone(&store))?;
    if let Some(told) = Leftovers::clean_up().sentence() {
        progress.tell(&Event::Note(&told));
    }
    let mark = new_mark(&run.id);
    let guard = Guard::start(&options.guard_command, &mark)?;
    let is_resumed = options.begin == Begin::Resume;
    let start = |wanted| {
        // The mark of their own keeps them alive when that of a trial is looked for.
        let own = new_mark(&format!("{}a", run.id));
        Agents::start(wanted, &run.id, is_resumed, &own, &options.guard_command, &store)
    };
    if options.agents.is_some() && options.experiment.load.maker == LoadMaker::Command {
        return Err(Error::AgentsForCommand);
    }
    let agents = options.agents.as_ref().map(start).transpose()?;
    let mut bench = Bench {
        experiment: options.experiment,
        mark,
        seed: run.seed,
        time_scale: run.time_scale,
        receiver: &receiver,
        recorder: recorder.clone(),
        store,
        roots,
        weights,
        sampler: &sampler,
        guard,
        adopted: AdoptedChildren::start(),
        ports: Ports::new(),
        setups: Setups::default(),
        containers: None,
        deployments: Found::default(),
        planned_faults: Vec::new(),
        faults: Faults::default(),
        agents,
        elsewhere: Vec::new(),
        stop,
    };
    let result = each_trial(&mut bench, file, &options.path, trials, todo, work, progress);
    for error in bench.deployments.restore() {
        progress.tell(&Event::Note(&format!("A Deployment stays as the last variant set it: {error}")));
    }
    if let Some(agents) = bench.agents.take() {
        agents.stop();
    }
    bench.guard.done();
    sampler.stop();
    receiver.stop();
    result
}

/// Receives on loopback, for services that are started here, and where the experiment says besides.
fn receive(
    telemetry: &Telemetry,
    store: Arc<dyn Store>,
    weights: &Weights,
    progress: &mut dyn Progress,
) -> Result<Receiver, Error> {
    let mut addresses = vec![(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), None)];
    let listen = telemetry.listen()?;
    addresses.extend(listen.iter().map(|listen| (listen.address(), listen.token().cloned())));
    let receiver = Receiver::start_guarded(&addresses, store, weights.clone())?;
    if let [_, address] = receiver.local_addrs() {
        let beyond = "; other machines can reach it, and OTLP is not encrypted there: the network can read the token";
        let beyond = if is_loopback(address.ip()) { "" } else { beyond };
        progress.tell(&Event::Note(&format!("receives OTLP on {address} too{beyond}")));
    }
    Ok(receiver)
}

fn each_trial(
    bench: &mut Bench<'_>,
    file: &RunFile,
    path: &Path,
    trials: &mut [Trial],
    todo: &[usize],
    work: &mut dyn Work,
    progress: &mut dyn Progress,
) -> Result<(), Error> {
    for (position, index) in (1..).zip(todo) {
        if bench.stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        let trial = &mut trials[*index];
        let result = one_trial(bench, file, path, trial, (position, todo.len()), work, progress);
        progress.tell(&Event::TrialEnded { trial });
        result?;
        if work.after(path, trial, progress)? == Next::Enough {
            break;
        }
    }
    Ok(())
}

fn one_trial(
    bench: &mut Bench<'_>,
    file: &RunFile,
    path: &Path,
    trial: &mut Trial,
    (position, of): (usize, usize),
    work: &mut dyn Work,
    progress: &mut dyn Progress,
) -> Result<(), Error> {
    let mut variant = bench
        .experiment
        .variants
        .iter()
        .find(|variant| variant.name == trial.variant)
        .cloned()
        .ok_or_else(|| Error::Resume(format!("the experiment has no variant `{}` any more", trial.variant)))?;
    let recorder = file.recorder();
    if trial.state != TrialState::Planned {
        file.restart_trial(trial.id)?;
    }
    *trial = plan::begun(trial, environment::now_ns());
    measured_parameters::adapt(bench.experiment, path, &mut variant, trial)?;
    progress.tell(&Event::TrialStarted { trial, position, of });
    conclude::put_trial(&recorder, trial)?;
    recorder.set_trial(Some(trial.id));
    let result = bench.trial(&variant, trial, work, progress);
    recorder.set_trial(None);
    let result = result.and_then(|()| recorder.failure().map_or(Ok(()), |failure| Err(failure.into())));
    trial.ended_ns = Some(environment::now_ns());
    trial.state = match &result {
        Ok(()) => TrialState::Done,
        Err(Error::Interrupted) => TrialState::Interrupted,
        Err(error) => {
            trial.error = Some(error.to_string());
            TrialState::Failed
        }
    };
    conclude::put_trial(&recorder, trial)?;
    if let Some(agents) = &bench.agents {
        agents.forget(trial.id);
    }
    result
}

/// The experiment file that a run was started with; `None` if its run file does not say.
///
/// # Errors
/// When the run file cannot be read.
pub fn experiment_file(path: &Path) -> Result<Option<PathBuf>, Error> {
    if is_evidence(path) {
        return Ok(None);
    }
    let kept = Reader::open(path)?.conclusion(EXPERIMENT_FILE)?;
    Ok(kept.and_then(|file| Some(PathBuf::from(file.as_str()?))))
}

/// How far the run in a file came; `None` where there is no file.
///
/// # Errors
/// When the file cannot be read, and when its run is of another experiment or of another length.
pub fn state_of(path: &Path, experiment: &Experiment, time_scale: f64) -> Result<Option<RunState>, Error> {
    if !path.exists() {
        return Ok(None);
    }
    let run = Reader::open(path)?.run()?;
    is_same_experiment(&run.experiment_source, experiment, path)?;
    if run.time_scale != time_scale {
        let shown = path.display();
        return Err(Error::Resume(format!("{shown} has time scale {}, expected {time_scale}", run.time_scale)));
    }
    Ok(Some(run.state))
}

/// The newest run file of an experiment in a folder that can be resumed.
/// Errors when there is none.
pub fn newest_unfinished(folder: &Path, experiment: &str) -> Result<PathBuf, Error> {
    let none = || Error::Resume(format!("{} holds no unfinished run of `{experiment}`", folder.display()));
    let entries = std::fs::read_dir(folder).map_err(|_| none())?;
    let mut found: Vec<(i64, PathBuf)> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "narrows"))
        .filter_map(|path| Some((unfinished_since(&path, experiment)?, path)))
        .collect();
    found.sort();
    found.pop().map(|(_, path)| path).ok_or_else(none)
}

fn unfinished_since(path: &Path, experiment: &str) -> Option<i64> {
    let run = Reader::open(path).ok()?.run().ok()?;
    let is_it = run.experiment == experiment && matches!(run.state, RunState::Interrupted | RunState::Failed);
    is_it.then_some(run.started_ns)
}
