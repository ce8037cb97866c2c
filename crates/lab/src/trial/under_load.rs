//! The load of a trial, written down while it happens.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use narrows_agents::{AgentsEvent, MergedLoad, WatchedReplica};
use narrows_load::{Clock, LoadOutcome, PlannedWindow, placed};
use narrows_model::caveat::TrialCaveat;
use narrows_model::load::{LoadBatch, LoadPlan, LoadSecond};
use narrows_model::run::{Machine, ServiceInstance, Trial, Window};

use crate::Error;
use crate::agents::{self, SentLoad};
use crate::environment::cores;
use crate::progress::{Event, Progress};
use crate::trial::early_end::EarlyEnd;
use crate::trial::replica_end::{Lives, note_the_ended};
use crate::trial::services::{RunningReplica, pids};
use crate::trial::{Bench, Faults, WATCH_INTERVAL};

const BATCHES_IN_FLIGHT: usize = 64;
/// How long telemetry is awaited that agents receive, at least: exporters send every 5 s.
const SETTLE_MIN: Duration = Duration::from_millis(5_500);

/// Ends the load when it is dropped, so that nothing waits for a load that nobody follows any more.
struct EndsLoad<'a>(&'a AtomicBool);

impl Drop for EndsLoad<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Decision of the observer of a load, after each second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Onward {
    /// Let it go on.
    GoOn,
    /// It has shown enough: end it in order.
    Enough,
}

/// Is shown the seconds of a load as they come.
pub(crate) type Onlooker<'a> = dyn FnMut(&[LoadSecond]) -> Onward + 'a;

/// A load that is over.
#[derive(Debug)]
pub(crate) struct FinishedLoad {
    pub(crate) outcome: LoadOutcome,
    /// Its windows on the wall clock, from this index on.
    pub(crate) windows: Vec<Window>,
    /// Reason of an early end: a dead service, a signal.
    pub(crate) fate: Result<(), Error>,
}

impl Bench<'_> {
    /// Sends the load and follows it to its end, or to that of an objective that breaks off.
    pub(crate) fn load(
        &mut self,
        plan: LoadPlan,
        trial: &mut Trial,
        running: &mut [RunningReplica],
        progress: &mut dyn Progress,
    ) -> Result<(), Error> {
        let mut early = EarlyEnd::new(&self.experiment.objectives, &plan);
        self.faults = Faults::new(std::mem::take(&mut self.planned_faults));
        let (drain, timeout) = (plan.drain, plan.timeout);
        let sent = self.send(plan, 0, trial, running, &mut |rows| early.see(rows), progress);
        for caveat in std::mem::take(&mut self.faults).caveats() {
            progress.note(trial, caveat);
        }
        let sent = sent?;
        self.recorder.put_windows(trial.id, &sent.windows)?;
        trial.validity = sent.outcome.validity;
        for caveat in early.caveat().into_iter().chain(undrained(sent.outcome.undrained, drain, timeout)) {
            progress.note(trial, caveat);
        }
        sent.fate.and_then(|()| self.go_on())
    }

    /// Sends a load, its windows numbered from `first_window` on. Errors when it could not be sent.
    pub(crate) fn send(
        &mut self,
        mut plan: LoadPlan,
        first_window: u32,
        trial: &mut Trial,
        running: &mut [RunningReplica],
        onlooker: &mut Onlooker<'_>,
        progress: &mut dyn Progress,
    ) -> Result<FinishedLoad, Error> {
        plan.threads = plan.threads.clamp(1, cores() as usize);
        self.weights.set(plan.tracing);
        let windows = narrows_load::planned_windows(&plan);
        let duration = windows.iter().map(|window| window.end).max().filter(|end| *end < Duration::MAX);
        progress.tell(&Event::LoadStarted { duration });
        let end_load = AtomicBool::new(false);
        let (outcome, fate) = std::thread::scope(|scope| {
            let (plan, end_load) = (&plan, &end_load);
            let (sender, batches) = sync_channel(BATCHES_IN_FLIGHT);
            let (tell, told) = agents::events();
            let sent = SentLoad {
                trial: trial.id,
                plan,
                is_elsewhere: pids(running).is_empty(),
                peers: self.elsewhere.clone(),
                settle: self.experiment.telemetry.settle.max(SETTLE_MIN),
                store: Arc::clone(&self.store),
            };
            let agents = self.agents.take();
            let load = scope.spawn(move || {
                let result = match &agents {
                    None => narrows_load::run(plan, Clock::new(), end_load, &sender)
                        .map(MergedLoad::whole)
                        .map_err(Error::from),
                    Some(agents) => agents.run(sent, end_load, &sender, &tell),
                };
                (result, agents)
            });
            let ends_load = EndsLoad(end_load);
            let lives = Lives::new();
            let windows = &windows;
            let mut follower =
                Follower { bench: self, trial, windows, duration, first_ns: None, lives, onlooker, told, progress };
            let followed = follower.follow(batches, running, end_load);
            follower.bench.faults.end(running, &*follower.bench.store);
            note_the_ended(running, follower.trial, follower.progress);
            drop(ends_load);
            (load.join(), followed)
        });
        let (sent, agents) = outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        self.agents = agents;
        let sent = match sent {
            Ok(sent) => sent,
            // Agents may fail because the run was ended.
            Err(error) => return fate.and(Err(error)),
        };
        agents::keep(&sent, trial);
        let outcome = sent.outcome;
        let windows = placed(&windows, first_window, outcome.started_ns, Some(outcome.ended_ns));
        Ok(FinishedLoad { outcome, windows, fate })
    }
}

/// A caveat on requests without a response at the end of the drain.
fn undrained(requests: u64, drain: Duration, timeout: Duration) -> Option<TrialCaveat> {
    let (drain_ns, timeout_ns) = (drain.as_nanos() as f64, timeout.as_nanos() as f64);
    (requests > 0).then_some(TrialCaveat::Undrained { requests, drain_ns, timeout_ns })
}

/// Writes down the load as it happens.
struct Follower<'a, 'b> {
    bench: &'a mut Bench<'b>,
    trial: &'a mut Trial,
    windows: &'a [PlannedWindow],
    duration: Option<Duration>,
    first_ns: Option<i64>,
    lives: Lives,
    onlooker: &'a mut Onlooker<'a>,
    /// News of agents.
    told: Receiver<AgentsEvent>,
    progress: &'a mut dyn Progress,
}

impl Follower<'_, '_> {
    /// Follows the load until it is over. Ends it early when a service dies, which is the error, a signal came, or the
    /// onlooker has seen enough.
    fn follow(
        &mut self,
        batches: Receiver<LoadBatch>,
        running: &mut [RunningReplica],
        end_load: &AtomicBool,
    ) -> Result<(), Error> {
        let mut fate = Ok(());
        loop {
            match batches.recv_timeout(self.bench.faults.timeout(WATCH_INTERVAL)) {
                Ok(batch) => {
                    if self.keep(batch)? == Onward::Enough {
                        end_load.store(true, Ordering::Relaxed);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    self.hear()?;
                    return fate;
                }
            }
            self.hear()?;
            if fate.is_ok() {
                self.bench.faults.tend(running, &*self.bench.store);
                fate = self.bench.look_around(&mut self.lives, running, None, self.trial, self.progress);
            }
            if fate.is_err() {
                end_load.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Takes the news of agents.
    fn hear(&mut self) -> Result<(), Error> {
        for event in self.told.try_iter() {
            if let AgentsEvent::Sees { replicas, .. } = &event {
                for WatchedReplica { service, replica, pid } in replicas {
                    let instance = ServiceInstance::watched(service, *replica, *pid);
                    let there = ServiceInstance { machine: Machine::Unknown, ..instance };
                    self.bench.recorder.put_service(self.trial.id, &there)?;
                }
            }
            self.progress.tell(&Event::Note(&agents::note(&event)));
        }
        Ok(())
    }

    fn keep(&mut self, batch: LoadBatch) -> Result<Onward, Error> {
        if let Some(last) = batch.seconds.last() {
            let first = match self.first_ns {
                Some(first) => first,
                None => self.begin(last.start_ns)?,
            };
            let elapsed = Duration::from_nanos((last.end_ns() - first).max(0) as u64);
            self.progress.tell(&Event::Second { elapsed, duration: self.duration, rows: &batch.seconds });
        }
        self.bench.faults.see(&batch.seconds);
        let onward = (self.onlooker)(&batch.seconds);
        self.bench.recorder.put_load(self.trial.id, batch)?;
        Ok(onward)
    }

    /// Records the load's first second, which fixes the times of its windows.
    fn begin(&mut self, first_ns: i64) -> Result<i64, Error> {
        self.first_ns = Some(first_ns);
        let boundaries: Vec<i64> =
            self.windows.iter().flat_map(|window| [window.start, window.end]).map(|at| instant(first_ns, at)).collect();
        self.bench.recorder.fold_between(self.trial.id, &boundaries)?;
        Ok(first_ns)
    }
}

/// The instant this long after another, at most the last representable one.
fn instant(start_ns: i64, after: Duration) -> i64 {
    start_ns.saturating_add(i64::try_from(after.as_nanos()).unwrap_or(i64::MAX))
}

impl Bench<'_> {
    /// Looks after adopted processes, the replicas under load and the signals, once. `beside` is a process that was
    /// started beside the replicas.
    pub(super) fn look_around(
        &mut self,
        lives: &mut Lives,
        running: &mut [RunningReplica],
        beside: Option<u32>,
        trial: &mut Trial,
        progress: &mut dyn Progress,
    ) -> Result<(), Error> {
        let started: Vec<u32> = pids(running).into_iter().chain(beside).collect();
        self.adopted.look(&started, &mut self.guard)?;
        for replica in running {
            lives.tend(replica, self, trial, progress)?;
        }
        self.go_on()
    }
}
