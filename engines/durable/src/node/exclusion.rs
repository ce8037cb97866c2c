//! Single-process hubs and nodes of the same hub exclude each other; the latecomer is refused.
//!
//! A process alone writes nothing about itself but its name as the owner of the partitions, which no node can have. The
//! store knows whether it lives ([`Store::acquire`]). Nodes are alive as long as their records change.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::record::Members;
use crate::ids::Epoch;
use crate::store::{Location, Owner, SharedStore, Store, StoreError};

/// Prefix of the names of processes; names of nodes have no spaces.
const PROCESS: &str = "process ";
/// How often records are read to see whether they change.
const LOOK: Duration = Duration::from_millis(50);

/// The name under which this process takes partitions when it runs all of them.
pub(crate) fn name() -> String {
    format!("{PROCESS}{}", std::process::id())
}

fn is_process(owner: &Owner) -> bool {
    owner.node.as_deref().is_some_and(|name| name.starts_with(PROCESS))
}

/// Nodes that have left records behind and were found to be silent: how often each had said something.
pub(crate) struct SilentNodes(BTreeMap<String, (u64, u64)>);

impl SilentNodes {
    /// Finds out which nodes of a hub are alive.
    ///
    /// # Errors
    /// [`StoreError::InUse`] if one is, or those of the store.
    pub(crate) fn nodes(store: &dyn Store) -> Result<Self, StoreError> {
        let Some(shared) = store.shared() else { return Ok(Self(BTreeMap::new())) };
        let silent = Self(said(shared)?.said());
        if silent.0.is_empty() {
            return Ok(silent);
        }
        let (begun, enough) = (Instant::now(), said(shared)?.beats(2));
        while begun.elapsed() < enough {
            std::thread::sleep(LOOK.min(enough));
            silent.are_silent(store)?;
        }
        Ok(silent)
    }

    /// Checks that no node has said anything since.
    ///
    /// # Errors
    /// [`StoreError::InUse`] with the name of one that has, or those of the store.
    pub(crate) fn are_silent(&self, store: &dyn Store) -> Result<(), StoreError> {
        let Some(shared) = store.shared() else { return Ok(()) };
        let is_new = |(name, said): &(String, (u64, u64))| self.0.get(name) != Some(said);
        let members = said(shared)?;
        match members.said().into_iter().find(is_new) {
            Some((key, _)) => Err(in_use(store, format!("node {}", members.name(&key)))),
            None => Ok(()),
        }
    }
}

fn said(store: &dyn SharedStore) -> Result<Members, StoreError> {
    let mut members = Members::default();
    let begun = Instant::now();
    members.hear(store.said()?, begun, begun);
    Ok(members)
}

fn in_use(store: &dyn Store, by: String) -> StoreError {
    StoreError::InUse { place: Location::Remote { server: store.describe(), what: "the hub".to_owned() }, by }
}

/// Checks that no process runs the hub alone.
///
/// # Errors
/// [`StoreError::InUse`] if one does, or those of the store.
pub(super) fn refuse_process(store: &dyn SharedStore, node: &str) -> Result<(), StoreError> {
    let Some(owner) = store.owners()?.into_iter().find(is_process) else { return Ok(()) };
    // It is there to be taken only if the process has ended.
    let epoch = store.acquire(owner.partition, node)?;
    store.release(owner.partition, epoch)
}

/// Takes a partition from an owner for a node; from a process that runs it alone only if that has ended.
///
/// # Errors
/// As [`SharedStore::take`], and [`StoreError::InUse`].
pub(super) fn take(store: &dyn SharedStore, from: &Owner, node: &str) -> Result<Epoch, StoreError> {
    if is_process(from) { store.acquire(from.partition, node) } else { store.take(from.partition, from.epoch, node) }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::hub::Hub;
    use crate::node::Node;
    use crate::node::tests::{hub_options, named, until};
    use crate::offline::HubMaintenance;
    use crate::partition::testing::Scripts;
    use crate::store::MemoryStore;

    const LEASE: Duration = Duration::from_millis(500);

    #[test]
    fn a_hub_that_nodes_run_is_not_opened_alone_until_they_have_ended() {
        let store = Arc::new(MemoryStore::new());
        let node = Node::open(Arc::clone(&store) as _, Scripts, hub_options(2), named("a", LEASE)).expect("a node");
        let running = |node: &Node| node.partitions().len() == 2;
        until("the node has both partitions", || running(&node));
        let alone = || Hub::open(Arc::clone(&store) as _, Scripts, hub_options(2)).map_err(|error| error.to_string());
        assert_eq!(alone().err().as_deref(), Some("the hub of memory is in use by node a"));
        let changes = HubMaintenance::open(Arc::clone(&store) as _).err().map(|error| error.to_string());
        assert_eq!(changes.as_deref(), Some("the hub of memory is in use by node a"));
        assert!(running(&node), "nothing has changed");
        node.halt();
        let hub = alone().expect("the node is silent");
        hub.close().expect("closed");
        let node = Node::open(Arc::clone(&store) as _, Scripts, hub_options(2), named("b", LEASE)).expect("a node");
        node.close().expect("closed");
        let hub = alone().expect("no node is there");
        hub.close().expect("closed");
    }
}
