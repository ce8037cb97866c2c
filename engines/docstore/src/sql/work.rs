//! The work of a query: counted in steps, limited for each page, and stopped when its client has left.
//!
//! A step is the evaluation of an expression, or 8 bytes that are written or compared: 50 to 150 ns. Work is counted in
//! advance, so a page never does much more than its limit.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Maximum number of steps of one page, about 3 s.
const PAGE_STEPS: u64 = 40_000_000;
/// Maximum number of steps of a page for which other requests wait, a few milliseconds.
const BRIEF_STEPS: u64 = 100_000;
/// Number of steps between two checks whether a page must stop.
const LOOK_STEPS: u64 = 10_000;
/// Time limit for a page on a separate thread.
const PAGE_TIMEOUT: Duration = Duration::from_secs(30);

/// The work of a page reached its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooMuchWork;

/// The work that a page may do.
#[derive(Debug, Clone)]
pub(crate) struct Allowance {
    steps: u64,
    watch: Option<Watch>,
}

impl Allowance {
    /// Allowance for a page that other requests wait for.
    pub(crate) fn brief() -> Self {
        Self { steps: BRIEF_STEPS, watch: None }
    }

    /// Allowance for a condition on one document of `text_bytes` that other requests wait for.
    pub(crate) fn brief_beyond(text_bytes: usize) -> Self {
        Self { steps: BRIEF_STEPS / 10 + text_bytes as u64 / 4, watch: None }
    }

    /// Allowance for a page on a separate thread, until `watch` ends.
    pub(crate) fn long(watch: Watch) -> Self {
        Self { steps: PAGE_STEPS, watch: Some(watch) }
    }

    /// The allowance of [`Allowance::long`] without a watch.
    #[cfg(test)]
    pub(crate) fn unwatched() -> Self {
        Self::of(PAGE_STEPS)
    }

    /// An allowance of this many steps.
    #[cfg(test)]
    pub(crate) fn of(steps: u64) -> Self {
        Self { steps, watch: None }
    }
}

/// The end of a page's time: its deadline, or the departure of its client.
#[derive(Debug, Clone)]
pub(crate) struct Watch {
    deadline: Instant,
    is_abandoned: Arc<AtomicBool>,
}

/// The client's side of a [`Watch`]. Dropping it ends the watch.
#[derive(Debug)]
pub(crate) struct Waiter(Arc<AtomicBool>);

impl Watch {
    /// A watch that begins now.
    pub(crate) fn start() -> (Self, Waiter) {
        let is_abandoned = Arc::new(AtomicBool::new(false));
        let waiter = Waiter(Arc::clone(&is_abandoned));
        (Self { deadline: Instant::now() + PAGE_TIMEOUT, is_abandoned }, waiter)
    }

    /// Whether the client has left.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.is_abandoned.load(Ordering::Relaxed)
    }

    fn is_over(&self) -> bool {
        self.is_abandoned() || Instant::now() >= self.deadline
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Number of steps of one page so far.
#[derive(Debug)]
pub(super) struct Work {
    allowance: Allowance,
    steps: Cell<u64>,
    /// Number of steps at which the allowance is checked again.
    next_look: Cell<u64>,
}

impl Work {
    pub(super) fn new(allowance: Allowance) -> Self {
        let work = Self { allowance, steps: Cell::new(0), next_look: Cell::new(0) };
        work.plan_look(0);
        work
    }

    /// Counts `steps` before they are taken.
    pub(super) fn add(&self, steps: usize) -> Result<(), TooMuchWork> {
        let total = self.steps.get().saturating_add(steps as u64);
        self.steps.set(total);
        if total < self.next_look.get() { Ok(()) } else { self.look(total) }
    }

    pub(super) fn steps(&self) -> u64 {
        self.steps.get()
    }

    fn look(&self, total: u64) -> Result<(), TooMuchWork> {
        let is_over = self.allowance.watch.as_ref().is_some_and(Watch::is_over);
        if is_over || total > self.allowance.steps {
            return Err(TooMuchWork);
        }
        self.plan_look(total);
        Ok(())
    }

    fn plan_look(&self, total: u64) {
        let next = if self.allowance.watch.is_some() { total.saturating_add(LOOK_STEPS) } else { u64::MAX };
        self.next_look.set(next.min(self.allowance.steps.saturating_add(1)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_takes_the_steps_it_may_and_no_more() {
        let work = Work::new(Allowance::brief());
        assert_eq!(work.add(BRIEF_STEPS as usize), Ok(()));
        assert_eq!(work.add(1), Err(TooMuchWork));
        assert_eq!(work.add(usize::MAX), Err(TooMuchWork));
    }

    #[test]
    fn a_page_whose_client_has_left_stops_at_the_next_look() {
        let (watch, waiter) = Watch::start();
        let work = Work::new(Allowance::long(watch));
        assert_eq!(work.add(LOOK_STEPS as usize), Ok(()));
        drop(waiter);
        assert_eq!(work.add(LOOK_STEPS as usize - 1), Ok(()));
        assert_eq!(work.add(1), Err(TooMuchWork));
    }

    #[test]
    fn a_page_stops_at_its_deadline() {
        let (watch, _waiter) = Watch::start();
        let work = Work::new(Allowance::long(Watch { deadline: Instant::now(), ..watch }));
        assert_eq!(work.add(LOOK_STEPS as usize), Err(TooMuchWork));
    }
}
