//! Memory that all aggregates of one query may hold together.
//!
//! SQLite sorts and groups on disk when it must, but a percentile keeps its group's values and a list its elements. They
//! take from one budget, and the query ends with an error when that is spent.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How much may still be taken, in bytes.
#[derive(Debug)]
pub(super) struct Budget {
    bytes_max: usize,
    taken: AtomicUsize,
}

impl Budget {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { bytes_max, taken: AtomicUsize::new(0) }
    }
}

/// Memory that one aggregate has taken. Gives it back when dropped.
#[derive(Debug)]
pub(super) struct Allocation {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Allocation {
    pub(super) fn new(budget: &Arc<Budget>) -> Self {
        Self { budget: Arc::clone(budget), bytes: 0 }
    }

    /// Takes more, or ends the query.
    pub(super) fn take(&mut self, bytes: usize) -> rusqlite::Result<()> {
        let before = self.budget.taken.fetch_add(bytes, Ordering::Relaxed);
        self.bytes += bytes;
        if before.saturating_add(bytes) <= self.budget.bytes_max {
            return Ok(());
        }
        let limit = narrows_model::units::bytes(self.budget.bytes_max as f64);
        let message = format!("its percentiles and lists need more than {limit} of memory, expected smaller groups");
        Err(rusqlite::Error::UserFunctionError(message.into()))
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        self.budget.taken.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
