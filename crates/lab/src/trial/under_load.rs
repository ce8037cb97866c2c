//! The load of a trial, written down while it happens.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use narrows_load::{Clock, LoadOutcome, PlannedWindow};
use narrows_model::load::{LoadBatch, LoadPlan};
use narrows_model::run::{Trial, Window};

use super::lives::{Lives, note_the_ended};
use super::services::{Running, pids};
use super::{Bench, WATCH_INTERVAL};
use crate::Error;
use crate::environment::cores;
use crate::progress::{Event, Progress};

const BATCHES_IN_FLIGHT: usize = 64;

/// Ends the load when it is dropped, so that nothing waits for a load that nobody follows any more.
struct EndsLoad<'a>(&'a AtomicBool);

impl Drop for EndsLoad<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Bench<'_> {
    /// Sends the load and follows it to its end.
    pub(super) fn load(
        &mut self,
        mut plan: LoadPlan,
        trial: &mut Trial,
        running: &mut [Running],
        progress: &mut dyn Progress,
    ) -> Result<(), Error> {
        plan.threads = plan.threads.clamp(1, cores() as usize);
        self.weights.set(plan.tracing);
        let windows = narrows_load::planned_windows(&plan);
        let duration = windows.iter().map(|window| window.end).max().filter(|end| *end < Duration::MAX);
        progress.tell(&Event::LoadStarted { duration });
        let end_load = AtomicBool::new(false);
        let (outcome, followed) = std::thread::scope(|scope| {
            let (plan, end_load) = (&plan, &end_load);
            let (sender, batches) = sync_channel(BATCHES_IN_FLIGHT);
            let load = scope.spawn(move || narrows_load::run(plan, Clock::new(), end_load, &sender));
            let ends_load = EndsLoad(end_load);
            let lives = Lives::new();
            let mut follower = Follower { bench: self, trial, duration, first_ns: None, lives, progress };
            let followed = follower.follow(batches, running, end_load);
            note_the_ended(running, follower.trial, follower.progress);
            drop(ends_load);
            (load.join(), followed)
        });
        let outcome = outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        self.recorder.put_windows(trial.id, &placed(&windows, &outcome))?;
        trial.validity = outcome.validity;
        followed.and_then(|()| self.go_on())
    }
}

/// Writes down the load as it happens.
struct Follower<'a, 'b> {
    bench: &'a mut Bench<'b>,
    trial: &'a mut Trial,
    duration: Option<Duration>,
    first_ns: Option<i64>,
    lives: Lives,
    progress: &'a mut dyn Progress,
}

impl Follower<'_, '_> {
    /// Follows the load until it is over. Ends it early when a service dies, which is the error, or a signal came.
    fn follow(
        &mut self,
        batches: Receiver<LoadBatch>,
        running: &mut [Running],
        end_load: &AtomicBool,
    ) -> Result<(), Error> {
        let mut fate = Ok(());
        loop {
            match batches.recv_timeout(WATCH_INTERVAL) {
                Ok(batch) => self.keep(batch)?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return fate,
            }
            if fate.is_ok() {
                fate = self.look_around(running);
            }
            if fate.is_err() {
                end_load.store(true, Ordering::Relaxed);
            }
        }
    }

    fn look_around(&mut self, running: &mut [Running]) -> Result<(), Error> {
        self.bench.adopted.look(&pids(running), &mut self.bench.guard)?;
        for replica in running {
            self.lives.tend(replica, self.bench, self.trial, self.progress)?;
        }
        self.bench.go_on()
    }

    fn keep(&mut self, batch: LoadBatch) -> Result<(), Error> {
        if let Some(last) = batch.seconds.last() {
            let first = *self.first_ns.get_or_insert(last.start_ns);
            let elapsed = Duration::from_nanos((last.start_ns - first).max(0) as u64 + 1_000_000_000);
            self.progress.tell(&Event::Second { elapsed, duration: self.duration, rows: &batch.seconds });
        }
        self.bench.recorder.put_load(self.trial.id, batch)?;
        Ok(())
    }
}

/// The planned windows on the wall clock, cut where the load ended early.
fn placed(planned: &[PlannedWindow], outcome: &LoadOutcome) -> Vec<Window> {
    let at = |offset: Duration| outcome.started_ns.saturating_add(i64::try_from(offset.as_nanos()).unwrap_or(i64::MAX));
    planned
        .iter()
        .zip(0..)
        .filter(|(window, _)| at(window.start) < outcome.ended_ns)
        .map(|(window, index)| Window {
            index,
            kind: window.kind,
            label: window.label.clone(),
            start_ns: at(window.start),
            end_ns: at(window.end).min(outcome.ended_ns),
            vus: window.vus,
        })
        .collect()
}
