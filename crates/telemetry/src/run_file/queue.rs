//! The bounded queue before the writer thread.
//!
//! It is bounded by records, because a record is what costs memory: a call may bring one or thousands. Work that someone
//! waits for at the other end is let in at any fill, since there is never more of it than there are waiting threads.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::error::{Error, Result};
use super::rows::Rows;
use crate::Kept;

/// Most records that go into one transaction, as far as calls are not larger.
const BATCH_RECORDS_MAX: usize = 10_000;

type Apply = Box<dyn FnOnce(&mut Rows) -> Result<Kept> + Send>;
type Done = Box<dyn FnOnce(Result<Kept>) + Send>;

/// One call: what to write, and whom to tell once it is committed.
pub(super) struct Job {
    pub(super) records: usize,
    pub(super) apply: Apply,
    pub(super) done: Done,
}

/// Whether a call may be turned away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admission {
    /// When the queue is full.
    IfThereIsRoom,
    /// Never: its caller blocks until it is done.
    Always,
}

/// Why a job was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turned {
    Full,
    Closed,
}

pub(super) struct Queue {
    state: Mutex<State>,
    filled: Condvar,
    records_max: usize,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    records: usize,
    closed: bool,
}

impl Queue {
    pub(super) fn new(records_max: usize) -> Self {
        Self { state: Mutex::default(), filled: Condvar::new(), records_max }
    }

    /// Takes a job, or gives it back. A call larger than the whole queue is taken when nothing else waits.
    pub(super) fn push(&self, job: Job, admission: Admission) -> std::result::Result<(), (Job, Turned)> {
        let mut state = self.lock();
        if state.closed {
            return Err((job, Turned::Closed));
        }
        let is_full = state.records > 0 && state.records + job.records > self.records_max;
        if is_full && admission == Admission::IfThereIsRoom {
            return Err((job, Turned::Full));
        }
        state.records += job.records;
        state.jobs.push_back(job);
        drop(state);
        self.filled.notify_one();
        Ok(())
    }

    /// Waits for work and takes what one transaction should hold; none once the queue is closed and empty.
    pub(super) fn take_batch(&self) -> Option<Vec<Job>> {
        let mut state = self.lock();
        while state.jobs.is_empty() && !state.closed {
            state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let mut batch = Vec::new();
        let mut records = 0;
        while let Some(job) = state.jobs.front() {
            if !batch.is_empty() && records + job.records > BATCH_RECORDS_MAX {
                break;
            }
            records += job.records;
            batch.extend(state.jobs.pop_front());
        }
        state.records -= records;
        (!batch.is_empty()).then_some(batch)
    }

    /// Lets nothing more in; what waits is still written.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.filled.notify_all();
    }

    /// Lets nothing more in and tells all who wait.
    pub(super) fn abandon(&self) {
        self.close();
        let jobs = std::mem::take(&mut self.lock().jobs);
        jobs.into_iter().for_each(|job| (job.done)(Err(Error::Closed)));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(records: usize) -> Job {
        Job { records, apply: Box::new(|_| Ok(Kept::default())), done: Box::new(|_| {}) }
    }

    #[test]
    fn a_full_queue_turns_away_what_may_be_sent_again_and_nothing_else() {
        let queue = Queue::new(10);
        let push = |records, admission| queue.push(job(records), admission).map_err(|(_, turned)| turned);
        assert_eq!(push(11, Admission::IfThereIsRoom), Ok(()), "larger than the queue, but alone");
        assert_eq!(push(1, Admission::IfThereIsRoom), Err(Turned::Full));
        assert_eq!(push(5, Admission::Always), Ok(()));
        assert_eq!(queue.take_batch().map(|jobs| jobs.len()), Some(2));
        assert_eq!(push(10, Admission::IfThereIsRoom), Ok(()));
        queue.close();
        assert_eq!(push(1, Admission::Always), Err(Turned::Closed));
        assert_eq!(queue.take_batch().map(|jobs| jobs.len()), Some(1));
        assert!(queue.take_batch().is_none());
    }

    #[test]
    fn a_batch_is_bounded_and_keeps_the_order() {
        let queue = Queue::new(usize::MAX);
        for records in [BATCH_RECORDS_MAX, 1, BATCH_RECORDS_MAX - 1, 7] {
            assert!(queue.push(job(records), Admission::IfThereIsRoom).is_ok());
        }
        let taken = || -> Vec<usize> { queue.take_batch().unwrap().iter().map(|job| job.records).collect() };
        assert_eq!(taken(), [BATCH_RECORDS_MAX]);
        assert_eq!(taken(), [1, BATCH_RECORDS_MAX - 1]);
        assert_eq!(taken(), [7]);
    }
}
