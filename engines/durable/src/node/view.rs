//! View of the nodes of a hub for an operator.

use std::time::{Duration, Instant};

use super::record::{Member, Members, PartitionLoad};
use crate::ids::{Epoch, PartitionId};
use crate::store::Owner;

/// A node of a hub, as another node sees it.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct NodeView {
    /// Its name.
    pub name: String,
    /// Number of the node among those opened under this name: greater than that of all earlier ones.
    pub incarnation: u64,
    /// Whether another node was opened later under its name. This node ends as soon as it notices.
    pub is_replaced: bool,
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
        !self.is_leaving && !self.is_replaced && self.silent < self.lease
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
    /// Its load, as its node last reported; `None` if the node has not reported since it took the partition.
    pub load: Option<PartitionLoad>,
}

/// All nodes that have not been forgotten, in order of their names.
pub(super) fn all(members: &Members, owners: &[Owner], now: Instant) -> Vec<NodeView> {
    let view = |(key, member): (&String, &Member)| {
        let is_replaced = members.is_replaced(&member.record.identity);
        NodeView { is_replaced, ..of(key, member, owners, now) }
    };
    let mut all: Vec<NodeView> = members.all().map(view).collect();
    all.sort_by(|one, other| (&one.name, one.incarnation).cmp(&(&other.name, other.incarnation)));
    all
}

fn of(key: &str, member: &Member, owners: &[Owner], now: Instant) -> NodeView {
    let load = |partition: PartitionId| member.record.loads.iter().find(|load| load.partition == partition.0).copied();
    let owned = owners.iter().filter(|owner| owner.node.as_deref() == Some(key));
    NodeView {
        name: member.record.identity.name.clone(),
        incarnation: member.record.identity.incarnation,
        is_replaced: false,
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
