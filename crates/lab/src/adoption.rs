//! Processes that detached themselves from their service: a daemon that forked twice, left its session and wiped its
//! environment, so that neither its group nor its mark leads to it.
//!
//! This process is a child subreaper, so such an orphan becomes its child. The kernel lists children; those that nobody
//! here started were adopted. They are told to the guard while they live and are ended with the trial.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, getpid, set_child_subreaper, waitpid};

use crate::Error;
use crate::guard::Guard;
use crate::processes::{self, Identity};

const KILL_TIMEOUT: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(20);

/// The adopted children that are known of.
#[derive(Debug)]
pub(crate) struct AdoptedChildren {
    /// Children that are not a trial's: those there were at the beginning, the guard among them.
    own: BTreeSet<i32>,
    known: BTreeSet<Identity>,
}

impl AdoptedChildren {
    /// Makes this process adopt orphans from now on. Children there are now are never touched.
    pub(crate) fn start() -> Self {
        // Where the kernel refuses, orphans go elsewhere; the mark then finds those that kept their environment.
        let _ = set_child_subreaper(Some(getpid()));
        Self { own: children(), known: BTreeSet::new() }
    }

    /// Looks for orphans and tells the guard. `started` are the processes that the trial itself started.
    pub(crate) fn look(&mut self, started: &[u32], guard: &mut Guard) -> Result<(), Error> {
        for orphan in self.strangers(started) {
            if self.known.insert(orphan) {
                guard.add_process(orphan)?;
            }
        }
        let gone: Vec<Identity> = self.known.iter().copied().filter(|orphan| is_reaped(*orphan)).collect();
        for orphan in gone {
            self.known.remove(&orphan);
            guard.drop_process(orphan)?;
        }
        Ok(())
    }

    /// Kills all orphans, and those that these leave behind, until none is left; for at most five seconds.
    /// Every process that the trial itself started must have been waited for.
    pub(crate) fn end_all(&mut self, guard: &mut Guard) -> Result<(), Error> {
        let deadline = Instant::now() + KILL_TIMEOUT;
        loop {
            self.look(&[], guard)?;
            if self.known.is_empty() || Instant::now() > deadline {
                return Ok(());
            }
            self.known.iter().for_each(|orphan| orphan.send(Signal::KILL));
            std::thread::sleep(POLL);
        }
    }

    fn strangers(&self, started: &[u32]) -> Vec<Identity> {
        let is_strange = |pid: &i32| !self.own.contains(pid) && !started.contains(&(*pid as u32));
        children().into_iter().filter(is_strange).filter_map(Identity::from_pid).collect()
    }
}

/// All children of this process, dead ones that were not waited for included.
fn children() -> BTreeSet<i32> {
    processes::children(std::process::id() as i32).into_iter().collect()
}

/// Waits for a child without blocking; whether it is gone. A process that has the number of a child that is gone is not
/// waited for, for it may be a service.
fn is_reaped(orphan: Identity) -> bool {
    let Some(pid) = Pid::from_raw(orphan.pid).filter(|_| orphan.is_there()) else { return true };
    !matches!(waitpid(Some(pid), WaitOptions::NOHANG), Ok(None))
}
