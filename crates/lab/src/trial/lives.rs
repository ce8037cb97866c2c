//! What becomes of a replica that ends by itself under load: the trial ends with it, or it is started again.
//!
//! Starting again never holds the load up: the pause passes between two looks, and nobody waits for readiness. What
//! cannot be answered meanwhile is counted as the load's errors. A replica that is started again gets its port, command,
//! environment and caps anew, and is in the guard's, the sampler's and the run file's sight as the first one was.

use std::time::{Duration, Instant};

use narrows_model::run::Trial;
use narrows_model::units;

use super::Bench;
use super::services::{Pending, Running, died};
use crate::Error;
use crate::experiment::Restart;
use crate::guard::Guard;
use crate::progress::{Event, Progress};

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
        replica: &mut Running,
        bench: &mut Bench<'_>,
        trial: &mut Trial,
        progress: &mut dyn Progress,
    ) -> Result<(), Error> {
        match (&replica.pending, replica.service.restart) {
            (Some(pending), _) if Instant::now() < pending.due => Ok(()),
            (Some(_), _) => start_again(replica, bench, trial, progress),
            (None, Restart::Never) => match replica.process.ended() {
                Some(how) => Err(died(replica, how, WHEN)),
                None => Ok(()),
            },
            (None, Restart::Always) => match replica.process.ended_with_its_group() {
                Some(how) => self.lay_down(replica, how, &mut bench.guard),
                None => Ok(()),
            },
        }
    }

    /// Clears up after a replica that has ended and says when the next one is to start.
    fn lay_down(&mut self, replica: &mut Running, how: String, guard: &mut Guard) -> Result<(), Error> {
        if self.restarts == RESTARTS_MAX {
            return Err(died(replica, how, WHEN));
        }
        self.restarts += 1;
        replica.process.clear(guard);
        let after = units::duration(self.load_began.elapsed().as_nanos() as f64);
        let fate = format!("{} {how} after {after} of load", replica.process.name());
        replica.pending = Some(Pending { due: Instant::now() + RESTART_PAUSE, fate });
        Ok(())
    }
}

fn start_again(
    replica: &mut Running,
    bench: &mut Bench<'_>,
    trial: &mut Trial,
    progress: &mut dyn Progress,
) -> Result<(), Error> {
    let fate = replica.pending.take().map(|pending| pending.fate).unwrap_or_default();
    *replica = bench.start(replica.service.clone(), trial, progress)?;
    bench.watch_one(replica)?;
    note(format!("{fate} and was started again"), trial, progress);
    Ok(())
}

/// Notes the replicas for whose next start the load did not last long enough.
pub(super) fn note_the_ended(running: &[Running], trial: &mut Trial, progress: &mut dyn Progress) {
    for pending in running.iter().filter_map(|replica| replica.pending.as_ref()) {
        note(format!("{} and was not started again, for the load was over", pending.fate), trial, progress);
    }
}

fn note(caveat: String, trial: &mut Trial, progress: &mut dyn Progress) {
    progress.tell(&Event::Caveat(&caveat));
    trial.caveats.push(caveat);
}
