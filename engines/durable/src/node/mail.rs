//! Messages to a node's thread, and the state that the thread shows to others.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::moves::Leave;
use super::record::Members;
use crate::error::Error;
use crate::hub::Tenure;
use crate::ids::PartitionId;
use crate::store::StoreError;

/// Fate of a move.
pub(super) enum MoveResult {
    Taken(PartitionId, Result<Tenure, Error>),
    Left(PartitionId, Result<(), StoreError>),
}

/// Messages to the thread.
#[derive(Default)]
pub(super) struct Mail {
    pub(super) moved: Vec<MoveResult>,
    pub(super) has_news: bool,
    pub(super) has_moved: bool,
    pub(super) ending: Option<Leave>,
}

/// Messages that the thread has not read yet, and the state that it shows.
#[derive(Default)]
pub(super) struct Control {
    mail: Mutex<Mail>,
    bell: Condvar,
    /// Report of `nodes` and `health`.
    seen: Mutex<NodeStatus>,
}

/// State that the thread has seen last.
#[derive(Clone, Default)]
pub(super) struct NodeStatus {
    pub(super) members: Members,
    /// Why partitions that are not running could not be taken, or have stopped.
    pub(super) errors: BTreeMap<PartitionId, StoreError>,
    /// Why the node has ended by itself.
    pub(super) ended: Option<String>,
}

impl Control {
    fn lock(&self) -> MutexGuard<'_, Mail> {
        self.mail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn moved(&self, moved: MoveResult) {
        self.lock().moved.push(moved);
        self.bell.notify_one();
    }

    /// A partition has changed hands somewhere.
    pub(super) fn news(&self) {
        self.lock().has_news = true;
        self.bell.notify_one();
    }

    /// Has the thread look again at what should be where.
    pub(super) fn turn(&self) {
        self.lock().has_moved = true;
    }

    /// Has the thread give everything back and end.
    pub(super) fn end(&self, how: Leave) {
        self.lock().ending = Some(how);
        self.bell.notify_one();
    }

    pub(super) fn seen(&self) -> NodeStatus {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn see(&self, see: impl FnOnce(&mut NodeStatus)) {
        see(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(super) fn wait(&self, until: Instant) -> Mail {
        let timeout = until.saturating_duration_since(Instant::now());
        let is_quiet =
            |mail: &mut Mail| mail.moved.is_empty() && !mail.has_news && !mail.has_moved && mail.ending.is_none();
        let waited = self.bell.wait_timeout_while(self.lock(), timeout, is_quiet);
        std::mem::take(&mut waited.unwrap_or_else(PoisonError::into_inner).0)
    }

    pub(super) fn wait_for_moves(&self, until: Instant) -> Vec<MoveResult> {
        let timeout = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(10));
        let waited = self.bell.wait_timeout_while(self.lock(), timeout, |mail| mail.moved.is_empty());
        std::mem::take(&mut waited.unwrap_or_else(PoisonError::into_inner).0.moved)
    }
}
