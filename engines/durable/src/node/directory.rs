//! Owners of partitions and addresses of nodes, as far as this node knows.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::record::Member;
use crate::ids::PartitionId;
use crate::store::{Owner, StoreError};

/// Another node, or this one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Peer {
    /// Which run of it.
    pub(crate) run: u64,
    /// Where it receives messages.
    pub(crate) address: String,
}

impl Peer {
    pub(crate) fn of(member: &Member) -> Self {
        Self { run: member.record.run, address: member.record.address.clone() }
    }
}

#[derive(Default)]
struct State {
    owners: Vec<Owner>,
    peers: BTreeMap<String, Peer>,
    troubles: BTreeMap<Option<PartitionId>, String>,
}

/// Known directory. It changes when the store is read.
pub(super) struct Directory {
    state: Mutex<State>,
    changes: watch::Sender<u64>,
}

impl Default for Directory {
    fn default() -> Self {
        Self { state: Mutex::default(), changes: watch::Sender::new(0) }
    }
}

impl Directory {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in who has what, and returns the partitions whose owner has changed.
    pub(super) fn own(&self, owners: Vec<Owner>) -> Vec<PartitionId> {
        let mut state = self.state();
        let is_new = |owner: &&Owner| state.owners.get(usize::from(owner.partition.0)) != Some(*owner);
        let changed: Vec<PartitionId> = owners.iter().filter(is_new).map(|owner| owner.partition).collect();
        state.owners = owners;
        drop(state);
        if !changed.is_empty() {
            self.changed();
        }
        changed
    }

    /// Takes in which nodes are alive.
    pub(super) fn meet(&self, peers: BTreeMap<String, Peer>) {
        let mut state = self.state();
        if state.peers != peers {
            state.peers = peers;
            drop(state);
            self.changed();
        }
    }

    /// Wakes those who wait for a change.
    pub(super) fn changed(&self) {
        self.changes.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Sees every change from now on.
    pub(super) fn watch(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    pub(super) fn owners(&self) -> Vec<Owner> {
        self.state().owners.clone()
    }

    /// The node that has a partition, if it is alive.
    pub(super) fn home(&self, partition: PartitionId) -> Option<Peer> {
        let state = self.state();
        let name = state.owners.get(usize::from(partition.0))?.node.as_ref()?;
        state.peers.get(name).cloned()
    }

    /// Whether this run of a node is alive.
    pub(super) fn is_alive(&self, run: u64) -> bool {
        self.state().peers.values().any(|peer| peer.run == run)
    }

    /// Notes this node's error of the store over a partition, or over its beats; `None` once there is no error any more.
    pub(super) fn note(&self, of: Option<PartitionId>, trouble: Option<&StoreError>) {
        let mut state = self.state();
        match trouble {
            Some(error) => drop(state.troubles.insert(of, error.to_string())),
            None => drop(state.troubles.remove(&of)),
        }
    }

    /// Why a partition is out of reach, as far as this node knows.
    pub(super) fn trouble(&self, partition: PartitionId) -> Option<String> {
        let state = self.state();
        state.troubles.get(&Some(partition)).or_else(|| state.troubles.get(&None)).cloned()
    }

    /// All nodes that are alive.
    pub(super) fn peers(&self) -> Vec<Peer> {
        self.state().peers.values().cloned().collect()
    }
}
