//! The bounded queue before the writer thread.
//!
//! It is bounded by records and by bytes: a call may bring one record or thousands, a record a few bytes or a hundred
//! thousand. Work that someone waits for at the other end is let in at any fill, since there is never more of it than
//! there are waiting threads. What is refused and will not be sent again is counted here, under the same lock, so
//! that no count slips past the writer's last look.

use std::collections::{BTreeMap, VecDeque};
use std::ops::{AddAssign, SubAssign};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::error::{Error, Result};
use super::rows::Rows;
use crate::KeptCounts;

/// Most that goes into one transaction, as far as calls are not larger.
const BATCH_MAX: Size = Size { records: 10_000, bytes: 32 << 20 };

type Apply = Box<dyn FnOnce(&mut Rows) -> Result<KeptCounts> + Send>;
type Done = Box<dyn FnOnce(Result<KeptCounts>) + Send>;

/// How much a call brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Size {
    pub(super) records: usize,
    /// Roughly.
    pub(super) bytes: usize,
}

impl Size {
    /// Whether this and `more` are within `max`.
    fn has_room_for(self, more: Size, max: Size) -> bool {
        let fits = |fill: usize, more: usize, max| fill.saturating_add(more) <= max;
        fits(self.records, more.records, max.records) && fits(self.bytes, more.bytes, max.bytes)
    }
}

impl AddAssign for Size {
    fn add_assign(&mut self, more: Self) {
        self.records += more.records;
        self.bytes += more.bytes;
    }
}

impl SubAssign for Size {
    fn sub_assign(&mut self, less: Self) {
        self.records -= less.records;
        self.bytes -= less.bytes;
    }
}

/// Records that were refused and are not sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Losses {
    pub(super) points: u64,
    pub(super) logs: u64,
}

impl AddAssign for Losses {
    fn add_assign(&mut self, more: Self) {
        self.points += more.points;
        self.logs += more.logs;
    }
}

/// One call: what to write, and whom to notify once it is committed.
pub(super) struct Job {
    pub(super) size: Size,
    pub(super) apply: Apply,
    pub(super) done: Done,
}

/// Whether a call may be refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admission {
    /// When the queue is full; a trial loses this much then.
    IfThereIsRoom { trial: i64, or_lost: Losses },
    /// Never: its caller blocks until it is done.
    Always,
}

/// Why a job was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QueueError {
    Full,
    Closed,
    WriterFailed,
}

pub(super) struct Queue {
    state: Mutex<State>,
    filled: Condvar,
    max: Size,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    fill: Size,
    /// By trial; of a trial without a loss there is no entry.
    lost: BTreeMap<i64, Losses>,
    failure: Option<Error>,
    closed: Option<QueueError>,
}

impl Queue {
    pub(super) fn new(max: Size) -> Self {
        Self { state: Mutex::default(), filled: Condvar::new(), max }
    }

    /// Takes a job, or says why not. A call larger than the whole queue is taken when nothing else waits.
    pub(super) fn push(&self, job: Job, admission: Admission) -> std::result::Result<(), QueueError> {
        let mut state = self.lock();
        if let Some(turned) = state.closed {
            return Err(turned);
        }
        let is_full = !state.jobs.is_empty() && !state.fill.has_room_for(job.size, self.max);
        if let (true, Admission::IfThereIsRoom { trial, or_lost }) = (is_full, admission) {
            state.lose(trial, or_lost);
            return Err(QueueError::Full);
        }
        state.fill += job.size;
        state.jobs.push_back(job);
        drop(state);
        self.filled.notify_one();
        Ok(())
    }

    /// Keeps the first write error.
    pub(super) fn note_failure(&self, error: &Error) {
        self.lock().failure.get_or_insert_with(|| error.clone());
    }

    /// The first write error.
    pub(super) fn failure(&self) -> Option<Error> {
        self.lock().failure.clone()
    }

    /// Waits for work and takes what one transaction should hold; none once the queue is closed and empty.
    pub(super) fn take_batch(&self) -> Option<Vec<Job>> {
        let mut state = self.lock();
        while state.jobs.is_empty() && state.closed.is_none() {
            state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let mut batch = Vec::new();
        let mut taken = Size::default();
        while let Some(job) = state.jobs.front() {
            if !batch.is_empty() && !taken.has_room_for(job.size, BATCH_MAX) {
                break;
            }
            taken += job.size;
            batch.extend(state.jobs.pop_front());
        }
        state.fill -= taken;
        (!batch.is_empty()).then_some(batch)
    }

    /// Losses since the last look, by trial.
    pub(super) fn take_lost(&self) -> BTreeMap<i64, Losses> {
        std::mem::take(&mut self.lock().lost)
    }

    /// Counts again what could not be written down.
    pub(super) fn put_back_lost(&self, lost: BTreeMap<i64, Losses>) {
        let mut state = self.lock();
        lost.into_iter().for_each(|(trial, lost)| state.lose(trial, lost));
    }

    /// Lets nothing more in; what waits is still written.
    pub(super) fn close(&self) {
        self.lock().closed.get_or_insert(QueueError::Closed);
        self.filled.notify_all();
    }

    /// Accepts nothing more and reports to all who wait that the writer failed.
    pub(super) fn abandon(&self) {
        let mut state = self.lock();
        state.closed = Some(QueueError::WriterFailed);
        let jobs = std::mem::take(&mut state.jobs);
        drop(state);
        self.filled.notify_all();
        jobs.into_iter().for_each(|job| (job.done)(Err(Error::WriterFailed)));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn lose(&mut self, trial: i64, lost: Losses) {
        if lost != Losses::default() {
            *self.lost.entry(trial).or_default() += lost;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: Size = Size { records: 10, bytes: 1000 };

    fn job(records: usize, bytes: usize) -> Job {
        Job { size: Size { records, bytes }, apply: Box::new(|_| Ok(KeptCounts::default())), done: Box::new(|_| {}) }
    }

    fn if_there_is_room(logs: u64) -> Admission {
        Admission::IfThereIsRoom { trial: 1, or_lost: Losses { points: 0, logs } }
    }

    #[test]
    fn a_full_queue_turns_away_what_may_be_sent_again_and_nothing_else() {
        let queue = Queue::new(MAX);
        let push = |records, admission| queue.push(job(records, 1), admission);
        assert_eq!(push(11, if_there_is_room(11)), Ok(()), "larger than the queue, but alone");
        assert_eq!(push(1, if_there_is_room(1)), Err(QueueError::Full));
        assert_eq!(push(5, Admission::Always), Ok(()));
        assert_eq!(queue.take_batch().map(|jobs| jobs.len()), Some(2));
        assert_eq!(push(10, if_there_is_room(10)), Ok(()));
        queue.close();
        assert_eq!(push(1, Admission::Always), Err(QueueError::Closed));
        assert_eq!(queue.take_batch().map(|jobs| jobs.len()), Some(1));
        assert!(queue.take_batch().is_none());
    }

    #[test]
    fn few_records_of_many_bytes_fill_it_too() {
        let queue = Queue::new(MAX);
        let push = |bytes| queue.push(job(1, bytes), if_there_is_room(1));
        assert_eq!([push(999), push(2), push(1)], [Ok(()), Err(QueueError::Full), Ok(())]);
        assert_eq!(queue.take_batch().map(|jobs| jobs.len()), Some(2));
        assert_eq!(push(1001), Ok(()), "larger than the queue, but alone");
    }

    #[test]
    fn what_is_lost_is_counted_until_it_is_written_down() {
        let queue = Queue::new(MAX);
        for logs in [10, 3, 4] {
            let _ = queue.push(job(10, 1), if_there_is_room(logs));
        }
        let _ = queue.push(job(10, 1), if_there_is_room(0));
        let expected = BTreeMap::from([(1, Losses { points: 0, logs: 7 })]);
        assert_eq!(queue.take_lost(), expected);
        assert_eq!(queue.take_lost(), BTreeMap::new());
        queue.put_back_lost(expected.clone());
        assert_eq!(queue.take_lost(), expected);
    }

    #[test]
    fn a_batch_is_bounded_and_keeps_the_order() {
        let queue = Queue::new(Size { records: usize::MAX, bytes: usize::MAX });
        let Size { records, bytes } = BATCH_MAX;
        for (records, bytes) in [(records, 0), (1, 0), (records - 1, bytes), (7, 1), (1, bytes)] {
            assert!(queue.push(job(records, bytes), if_there_is_room(0)).is_ok());
        }
        let taken = || -> Vec<usize> { queue.take_batch().unwrap().iter().map(|job| job.size.records).collect() };
        assert_eq!(taken(), [records]);
        assert_eq!(taken(), [1, records - 1]);
        assert_eq!(taken(), [7]);
        assert_eq!(taken(), [1]);
    }
}
