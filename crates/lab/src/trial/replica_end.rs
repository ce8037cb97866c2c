//! Fate of a replica that ends by itself under load: the trial ends with it, or it is started again.
//!
//! Starting again never holds the load up: the pause passes between two looks, and nobody waits for readiness. What
//! fails meanwhile is counted as the load's errors. A replica that is started again gets its port, command,
//! environment and caps anew, and is in the guard's, the sampler's and the run file's sight as the first one was.

use std::time::{Duration, Instant};

use narrows_model::run::Trial;
use rustix::process::Signal;

use crate::Error;
use crate::experiment::{Restart, Start};
use crate::guard::{self, Guard};
use crate::progress::Progress;
use crate::trial::Bench;
use crate::trial::replica_state::{self, ReplicaState};
use crate::trial::services::{Life, PendingStart, RunningReplica, Then, UnplannedEnd, died};

/// So often replicas are started again in one trial, all of them together.
const RESTARTS_MAX: u32 = 5;

/// From the end of a replica to its next start.
const RESTART_PAUSE: Duration = Duration::from_millis(200);

const WHEN: &str = "while under load";

/// Replicas that ended by themselves since the load began.
#[derive(Debug)]
pub(super) struct Lives {
    load_began: Instant,
    restarts: u32,
}

impl Lives {
    /// The load begins now.
    pub(super) fn new() -> Self {
        Self { load_began: Instant::now(), restarts: 0 }
    }

    /// Looks after a replica. Errors when it ended and is not to be started again.
    pub(super) fn tend(
        &mut self,
        replica: &mut RunningReplica,
        bench: &mut Bench<'_>,
        trial: &mut Trial,
        progress: &mut dyn Progress,
    ) -> Result<(), Error> {
        match &replica.life {
            Life::Down => Ok(()),
            Life::Starting(pending) if Instant::now() < pending.due => Ok(()),
            Life::Starting(_) => start_again(replica, bench, trial, progress),
            Life::Leaving { deadline, then } => {
                let (deadline, then) = (*deadline, *then);
                see_off(replica, deadline, then, &mut bench.guard);
                Ok(())
            }
            Life::Up => self.look_at(replica, bench),
        }
    }

    /// Looks whether a replica that should be up has ended.
    fn look_at(&mut self, replica: &mut RunningReplica, bench: &mut Bench<'_>) -> Result<(), Error> {
        match replica.service.restart {
            Restart::Never => match replica.process.ended() {
                Some(how) => {
                    replica_state::note_kill(replica, &*bench.store);
                    Err(died(replica, how, WHEN))
                }
                None => Ok(()),
            },
            Restart::Always => match replica.process.ended_with_its_group() {
                Some(how) => {
                    replica_state::note(replica, ReplicaState::Down, &*bench.store);
                    replica_state::note_kill(replica, &*bench.store);
                    self.lay_down(replica, how, &mut bench.guard)
                }
                None => Ok(()),
            },
        }
    }

    /// Clears up after a replica that has ended and says when the next one is to start.
    fn lay_down(&mut self, replica: &mut RunningReplica, how: String, guard: &mut Guard) -> Result<(), Error> {
        if self.restarts == RESTARTS_MAX {
            return Err(died(replica, how, WHEN));
        }
        self.restarts += 1;
        clear(replica, guard);
        let after_ns = self.load_began.elapsed().as_nanos() as f64;
        replica.life = Life::starting(Instant::now() + RESTART_PAUSE, Some(UnplannedEnd { how, after_ns }));
        Ok(())
    }
}

/// Looks whether a replica that was made to end has done so.
fn see_off(replica: &mut RunningReplica, deadline: Instant, then: Then, guard: &mut Guard) {
    if replica.process.ended_with_its_group().is_none() {
        if Instant::now() >= deadline {
            replica.process.signal_all(Signal::KILL);
        }
        return;
    }
    clear(replica, guard);
    replica.life = match then {
        Then::Start(pause) => Life::starting(Instant::now() + pause, None),
        Then::StayDown => Life::Down,
    };
}

/// Removes what a replica that has ended left.
fn clear(replica: &mut RunningReplica, guard: &mut Guard) {
    replica.process.clear(guard);
    if matches!(replica.service.start, Start::Component { .. }) {
        // Its workers may still hold what the next one needs.
        guard::kill_working_in(&replica.launch.cwd);
    }
}

fn start_again(
    replica: &mut RunningReplica,
    bench: &mut Bench<'_>,
    trial: &mut Trial,
    progress: &mut dyn Progress,
) -> Result<(), Error> {
    let end = match &mut replica.life {
        Life::Starting(pending) => pending.end.take(),
        _ => None,
    };
    *replica = bench.start_again(replica, trial, progress)?;
    replica_state::note(replica, ReplicaState::Up, &*bench.store);
    bench.watch_one(replica)?;
    if let Some(end) = end {
        progress.note(trial, end.caveat(replica, true));
    }
    Ok(())
}

/// Notes the replicas for whose next start the load did not last long enough.
pub(super) fn note_the_ended(running: &[RunningReplica], trial: &mut Trial, progress: &mut dyn Progress) {
    for replica in running {
        if let Life::Starting(PendingStart { end: Some(end), .. }) = &replica.life {
            progress.note(trial, end.caveat(replica, false));
        }
    }
}
