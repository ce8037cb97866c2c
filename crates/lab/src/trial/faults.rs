//! Does to replicas under load what the experiment has in store for them, when it is due.
//!
//! Nothing here waits: a fault is a signal, and what becomes of the replica is for `lives` to see. What came of it for the
//! load is told from its seconds (`recovery`) once it is over.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use narrows_diagnose::words;
use narrows_model::caveat::{FaultAction, TrialCaveat};
use narrows_model::load::Recovery;
use narrows_model::series::{LogLine, LogStream};
use narrows_telemetry::Store;
use rustix::process::Signal;

use crate::environment::now_ns;
use crate::experiment::{Deed, Fault, Restart};
use crate::trial::recovery::Seconds;
use crate::trial::replica_state::{ReplicaState, note};
use crate::trial::services::{Life, RunningReplica, Then};

/// From a fault that kills a replica to its next start, where it is to be started again.
const RESTART_PAUSE: Duration = Duration::from_millis(200);

/// The faults of a load.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    /// Earliest first.
    to_do: VecDeque<Fault>,
    paused: Vec<PausedReplica>,
    done: Vec<FaultRecord>,
    began: Option<Instant>,
    seconds: Seconds,
}

#[derive(Debug)]
struct PausedReplica {
    service: String,
    replica: u32,
    until: Instant,
}

/// A fault that has happened.
#[derive(Debug)]
struct FaultRecord {
    replica: String,
    action: FaultAction,
    /// Time from the beginning of the load.
    after_ns: f64,
    at_ns: i64,
    /// How the load came through it; `None` until no later second can change it.
    recovery: Option<Recovery>,
}

impl Faults {
    /// Those of a load that begins now.
    pub(super) fn new(faults: Vec<Fault>) -> Self {
        Self { to_do: faults.into(), began: Some(Instant::now()), ..Self::default() }
    }

    /// How long until something is due, at most `timeout`.
    pub(super) fn timeout(&self, timeout: Duration) -> Duration {
        let began = self.began.unwrap_or_else(Instant::now);
        let next = self.to_do.front().map(|fault| began + fault.at);
        let first = self.paused.iter().map(|paused| paused.until).chain(next).min();
        first.map_or(timeout, |first| first.saturating_duration_since(Instant::now()).min(timeout))
    }

    /// Does what is due.
    pub(super) fn tend(&mut self, running: &mut [RunningReplica], store: &dyn Store) {
        let Some(began) = self.began else { return };
        let now = Instant::now();
        self.wake(running, store, |paused| paused.until <= now);
        while self.to_do.front().is_some_and(|fault| began + fault.at <= now) {
            let Some(fault) = self.to_do.pop_front() else { return };
            let Some(replica) = find(running, &fault.service, fault.replica) else { continue };
            let was_up = matches!(replica.life, Life::Up);
            let action = self.befall(replica, fault.deed);
            if was_up {
                note(replica, ReplicaState::Down, store);
            }
            let (replica, after_ns) = (replica.process.name().to_owned(), began.elapsed().as_nanos() as f64);
            drop(store.logs(vec![line(&fault, &words::fault(&replica, action, after_ns))]));
            self.done.push(FaultRecord { replica, action, after_ns, at_ns: now_ns(), recovery: None });
        }
    }

    fn befall(&mut self, replica: &mut RunningReplica, deed: Deed) -> FaultAction {
        match (deed, &replica.life) {
            (Deed::Kill, Life::Up) => {
                replica.process.signal_all(Signal::KILL);
                let then = match replica.service.restart {
                    Restart::Always => Then::Start(RESTART_PAUSE),
                    Restart::Never => Then::StayDown,
                };
                replica.life = Life::Leaving { deadline: Instant::now(), then };
                FaultAction::Killed
            }
            (Deed::Restart, Life::Up) => {
                let deadline = Instant::now() + replica.service.stop_timeout;
                replica.process.signal_group(replica.service.stop_signal);
                replica.life = Life::Leaving { deadline, then: Then::Start(Duration::ZERO) };
                FaultAction::Restarted
            }
            (Deed::Restart, Life::Down) => {
                replica.life = Life::starting(Instant::now(), None);
                FaultAction::Started
            }
            (Deed::Pause(time), Life::Up) => {
                replica.process.signal_all(Signal::STOP);
                let (service, until) = (replica.service.name.clone(), Instant::now() + time);
                self.paused.push(PausedReplica { service, replica: replica.service.replica, until });
                FaultAction::Paused(time.as_nanos() as f64)
            }
            (_, Life::Down | Life::Leaving { .. } | Life::Starting(_)) => FaultAction::NotRunning,
        }
    }

    /// Lets those that stand still go on.
    fn wake(&mut self, running: &[RunningReplica], store: &dyn Store, is_due: impl Fn(&PausedReplica) -> bool) {
        for paused in self.paused.extract_if(.., |paused| is_due(paused)) {
            let is_it =
                |one: &&RunningReplica| one.service.name == paused.service && one.service.replica == paused.replica;
            if let Some(replica) = running.iter().find(is_it) {
                replica.process.signal_all(Signal::CONT);
                note(replica, ReplicaState::Up, store);
            }
        }
    }

    /// The load is over: nothing stands still any more.
    pub(super) fn end(&mut self, running: &[RunningReplica], store: &dyn Store) {
        self.wake(running, store, |_| true);
    }

    /// Takes in seconds of the load.
    pub(super) fn see(&mut self, rows: &[narrows_model::load::LoadSecond]) {
        if self.began.is_none() || (self.to_do.is_empty() && self.done.iter().all(|done| done.recovery.is_some())) {
            return;
        }
        self.seconds.see(rows);
        for done in self.done.iter_mut().filter(|done| done.recovery.is_none()) {
            done.recovery = self.seconds.settled_since(done.at_ns);
        }
        let open = self.done.iter().filter(|done| done.recovery.is_none());
        self.seconds.forget_before(open.map(|done| done.at_ns).min());
    }

    /// Caveats on the faults that happened, then on those that the load was over too early for.
    pub(super) fn caveats(&self) -> Vec<TrialCaveat> {
        let happened = self.done.iter().map(|done| TrialCaveat::Fault {
            replica: done.replica.clone(),
            action: done.action,
            after_ns: done.after_ns,
            at_ns: done.at_ns,
            recovery: done.recovery.unwrap_or_else(|| self.seconds.since(done.at_ns)),
        });
        let left = self.to_do.iter().map(|fault| TrialCaveat::FaultNotReached {
            service: fault.service.clone(),
            after_ns: fault.at.as_nanos() as f64,
        });
        happened.chain(left).collect()
    }
}

fn find<'a>(running: &'a mut [RunningReplica], service: &str, replica: u32) -> Option<&'a mut RunningReplica> {
    running.iter_mut().find(|one| one.service.name == service && one.service.replica == replica)
}

/// So that the fault stands among what the service itself printed.
fn line(fault: &Fault, what: &str) -> LogLine {
    LogLine {
        time_ns: now_ns(),
        service: fault.service.clone(),
        replica: fault.replica,
        stream: LogStream::Stderr,
        severity: "WARN".to_owned(),
        text: format!("narrows: {what}"),
        trace_id: None,
    }
}
