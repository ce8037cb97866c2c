//! Delivery of inputs to the partitions of a hub: into the inboxes of those that run in this process, and by another way to
//! those that do not.

use std::sync::{Arc, PoisonError, RwLock};

use crate::hub::inbox::Inbox;
use crate::ids::PartitionId;
use crate::partition::Input;
use crate::store::StoreError;

/// The way to partitions that do not run in this process. What is sent may be lost.
pub(crate) trait Away: Send + Sync {
    /// Sends messages or acknowledgements. It does not wait.
    fn send(&self, to: PartitionId, input: Input);
}

/// The inboxes of all partitions of a hub.
pub(crate) struct Post {
    /// `None` while the partition does not run here.
    inboxes: Vec<RwLock<Option<Arc<Inbox>>>>,
    away: Option<Arc<dyn Away>>,
}

impl Post {
    /// For a hub of `count` partitions, none of which runs yet. Without `away`, all are to run here.
    pub(crate) fn new(count: u16, away: Option<Arc<dyn Away>>) -> Self {
        Self { inboxes: (0..count).map(|_| RwLock::default()).collect(), away }
    }

    pub(crate) fn count(&self) -> u16 {
        u16::try_from(self.inboxes.len()).unwrap_or(u16::MAX)
    }

    /// All partitions, in order.
    pub(crate) fn partitions(&self) -> impl Iterator<Item = PartitionId> + use<> {
        (0..self.count()).map(PartitionId)
    }

    /// Whether partitions may run elsewhere.
    pub(super) fn is_shared(&self) -> bool {
        self.away.is_some()
    }

    /// The inbox of a partition that runs here, or ran here last.
    pub(crate) fn inbox(&self, of: PartitionId) -> Option<Arc<Inbox>> {
        let slot = self.inboxes.get(usize::from(of.0))?;
        slot.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn put(&self, of: PartitionId, inbox: Option<Arc<Inbox>>) {
        if let Some(slot) = self.inboxes.get(usize::from(of.0)) {
            *slot.write().unwrap_or_else(PoisonError::into_inner) = inbox;
        }
    }

    /// Gives a partition messages or an acknowledgement of another. They may be lost, and are repeated then.
    pub(super) fn send(&self, to: PartitionId, input: Input) {
        match (self.inbox(to), &self.away) {
            // A partition that has stopped is sent the same again when it is opened again.
            (Some(inbox), _) => drop(inbox.push(input)),
            (None, Some(away)) => away.send(to, input),
            (None, None) => {}
        }
    }

    /// Stops a partition: it fails all its calls, and unless it goes on elsewhere, the other partitions fail the waits
    /// that may need it. Says whether it had not been stopped before.
    pub(super) fn stop(&self, partition: PartitionId, own: &Inbox, error: &StoreError) -> bool {
        let is_first = own.failure().is_none();
        own.fail(error.clone());
        if !self.is_shared() {
            let others = self.partitions().filter(|other| *other != partition);
            others.filter_map(|other| self.inbox(other)).for_each(|inbox| inbox.warn(partition, error.clone()));
        }
        is_first
    }
}
