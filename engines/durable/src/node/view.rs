//! What an operator sees of the nodes of a hub.

use std::time::{Duration, Instant};

use super::record::{Member, PartitionLoad};
use crate::ids::{Epoch, PartitionId};
use crate::store::Owner;

/// A node of a hub, as another node sees it.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct NodeView {
    /// Its name.
    pub name: String,
    /// The version of its program, as its options say.
    pub version: String,
    /// Where other nodes send messages to.
    pub address: String,
    /// How long ago it was last seen to be alive. It is lost once that is nearly as long as the lease.
    pub silent: Duration,
    /// How long it may be silent before the others take its partitions.
    pub lease: Duration,
    /// Whether it is giving its partitions back.
    pub is_leaving: bool,
    /// The partitions it has.
    pub partitions: Vec<OwnedPartition>,
}

impl NodeView {
    /// Whether the others count it among those that are to have partitions.
    #[must_use]
    pub fn is_staying(&self) -> bool {
        !self.is_leaving && self.silent < self.lease
    }
}

/// A partition that a node has.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct OwnedPartition {
    /// Which.
    pub partition: PartitionId,
    /// How often partitions have changed hands until this node had it.
    pub epoch: Epoch,
    /// What it has to do, as its node last said; absent if the node has said nothing since it took it.
    pub load: Option<PartitionLoad>,
}

pub(super) fn of(name: &str, member: &Member, owners: &[Owner], now: Instant) -> NodeView {
    let load = |partition: PartitionId| member.record.loads.iter().find(|load| load.partition == partition.0).copied();
    let owned = owners.iter().filter(|owner| owner.node.as_deref() == Some(name));
    NodeView {
        name: name.to_owned(),
        version: member.record.version.clone(),
        address: member.record.address.clone(),
        silent: member.age(now),
        lease: Duration::from_millis(member.record.lease_ms),
        is_leaving: member.record.is_leaving,
        partitions: owned
            .map(|owner| OwnedPartition { partition: owner.partition, epoch: owner.epoch, load: load(owner.partition) })
            .collect(),
    }
}
