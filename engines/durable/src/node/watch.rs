//! The nodes of a hub, for a process that is not one of them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::record::Members;
use super::view::{self, NodeView};
use crate::error::Error;
use crate::ids::PartitionId;
use crate::stopped::{self, StoppedPartition};
use crate::store::{Owner, SharedStore};

/// Watches the nodes of a hub. It reads the store and writes nothing.
///
/// Whether a node is alive shows only by looking twice: a record that has not changed for a beat or two is that of a node
/// that is silent.
pub struct NodeWatch {
    store: Arc<dyn SharedStore>,
    members: Members,
    owners: Vec<Owner>,
}

impl NodeWatch {
    /// Looks for the first time.
    ///
    /// # Errors
    /// [`Error::Store`] if there is no hub, or the store is out of reach or damaged.
    pub fn open(store: Arc<dyn SharedStore>) -> Result<Self, Error> {
        let mut watch = Self { store, members: Members::default(), owners: Vec::new() };
        watch.look()?;
        Ok(watch)
    }

    /// Looks again.
    ///
    /// # Errors
    /// [`Error::Store`] if the store is out of reach or damaged.
    pub fn look(&mut self) -> Result<(), Error> {
        let begun = Instant::now();
        self.members.hear(self.store.said()?, begun, Instant::now());
        self.owners = self.store.owners()?;
        Ok(())
    }

    /// How long to watch until it is known which nodes are alive: two beats of the slowest node; zero without nodes.
    #[must_use]
    pub fn enough(&self) -> Duration {
        let beats = self.nodes().into_iter().map(|node| node.lease * 2 / 5);
        beats.max().unwrap_or_default()
    }

    /// All nodes that have not been forgotten, in order of their names. A node was silent since the look at which its
    /// record was new.
    #[must_use]
    pub fn nodes(&self) -> Vec<NodeView> {
        view::all(&self.members, &self.owners, Instant::now())
    }

    /// How many partitions the hub has.
    #[must_use]
    pub fn partitions(&self) -> usize {
        self.owners.len()
    }

    /// Partitions that have stopped, or that no node could take so far, and the reason, as noted in the store by their
    /// nodes. A note is removed when its partition runs again.
    #[must_use]
    pub fn stopped(&self) -> Vec<StoppedPartition> {
        self.owners.iter().filter_map(|owner| stopped::read(&*self.store, owner.partition)).collect()
    }

    /// Partitions that no node has, in order.
    #[must_use]
    pub fn free(&self) -> Vec<PartitionId> {
        self.owners.iter().filter(|owner| owner.node.is_none()).map(|owner| owner.partition).collect()
    }
}
