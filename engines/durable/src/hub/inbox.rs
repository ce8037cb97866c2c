//! Inbox of a partition's thread: inputs that wait, and how far the log is durable.
//!
//! One lock, held for moments. Its length is bounded from outside: clients have permits, activities are limited per
//! partition, and other partitions send only what their logs have confirmed.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::ids::{PartitionId, Position};
use crate::partition::Input;
use crate::store::StoreError;

/// How a partition is to stop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CloseMode {
    /// After all inputs that have come, and the frames they cause, are durable.
    Orderly,
    /// At once, as a crash would.
    AtOnce,
}

#[derive(Default)]
struct State {
    inputs: Vec<Input>,
    /// When the first of them came.
    first_at: Option<Instant>,
    /// The longest that an input has waited since somebody last asked.
    waited_max: Duration,
    is_asleep: bool,
    durable: Position,
    failed: Option<StoreError>,
    /// Another partition that has stopped.
    elsewhere: Option<(PartitionId, StoreError)>,
    closing: Option<CloseMode>,
}

/// The inbox of one partition.
#[derive(Default)]
pub(crate) struct Inbox {
    state: Mutex<State>,
    bell: Condvar,
}

/// News for the thread of the partition, besides inputs.
pub(super) struct News {
    pub(super) durable: Position,
    pub(super) failed: Option<StoreError>,
    /// The first other partition that has stopped, once.
    pub(super) elsewhere: Option<(PartitionId, StoreError)>,
    pub(super) closing: Option<CloseMode>,
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts an input in, unless the partition is closing.
    ///
    /// # Errors
    /// The error of the store, if that is the reason.
    pub(crate) fn push(&self, input: Input) -> Result<(), Option<StoreError>> {
        let mut state = self.lock();
        if state.closing.is_some() || state.failed.is_some() {
            return Err(state.failed.clone());
        }
        if state.inputs.is_empty() {
            state.first_at = Some(Instant::now());
        }
        state.inputs.push(input);
        self.wake(state);
        Ok(())
    }

    pub(super) fn confirm(&self, durable: Position) {
        let mut state = self.lock();
        state.durable = durable;
        self.wake(state);
    }

    pub(super) fn fail(&self, error: StoreError) {
        let mut state = self.lock();
        state.failed.get_or_insert(error);
        self.wake(state);
    }

    /// Notes that another partition has stopped.
    pub(super) fn warn(&self, partition: PartitionId, error: StoreError) {
        let mut state = self.lock();
        state.elsewhere = Some((partition, error));
        self.wake(state);
    }

    /// Why the partition has stopped, if it has.
    pub(super) fn failure(&self) -> Option<StoreError> {
        self.lock().failed.clone()
    }

    /// Whether the partition takes nothing in any more.
    pub(crate) fn is_closed(&self) -> bool {
        let state = self.lock();
        state.closing.is_some() || state.failed.is_some()
    }

    pub(super) fn close(&self, closing: CloseMode) {
        let mut state = self.lock();
        if state.closing != Some(CloseMode::AtOnce) {
            state.closing = Some(closing);
        }
        self.wake(state);
    }

    /// How many inputs wait.
    pub(super) fn waiting(&self) -> usize {
        self.lock().inputs.len()
    }

    /// The longest that an input has waited since this was last asked, those that wait now included.
    pub(crate) fn waited_max(&self) -> Duration {
        let mut state = self.lock();
        let waits = state.first_at.map_or(Duration::ZERO, |at| at.elapsed());
        std::mem::take(&mut state.waited_max).max(waits)
    }

    fn wake(&self, mut state: MutexGuard<'_, State>) {
        if std::mem::take(&mut state.is_asleep) {
            drop(state);
            self.bell.notify_one();
        }
    }

    /// Takes all inputs into `inputs`, which is empty; waits up to `timeout` if there is nothing new at all.
    pub(super) fn take(&self, inputs: &mut Vec<Input>, known: Position, timeout: Option<Duration>) -> News {
        let mut state = self.lock();
        let is_quiet = |state: &State| {
            state.inputs.is_empty()
                && state.durable == known
                && state.failed.is_none()
                && state.elsewhere.is_none()
                && state.closing.is_none()
        };
        if is_quiet(&state) && timeout != Some(Duration::ZERO) {
            state.is_asleep = true;
            state = match timeout {
                None => self.bell.wait_while(state, |state| is_quiet(state)).unwrap_or_else(PoisonError::into_inner),
                Some(timeout) => {
                    let woken = self.bell.wait_timeout_while(state, timeout, |state| is_quiet(state));
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
            };
            state.is_asleep = false;
        }
        std::mem::swap(inputs, &mut state.inputs);
        if let Some(at) = state.first_at.take() {
            state.waited_max = state.waited_max.max(at.elapsed());
        }
        let elsewhere = state.elsewhere.take();
        News { durable: state.durable, failed: state.failed.clone(), elsewhere, closing: state.closing }
    }
}
