//! Settings of a partition, which stay as they are for its life.

use crate::ids::{InstanceId, PartitionId};
use crate::options::{HubOptions, Mode};
use crate::partition::bounds::Bounds;
use crate::store::Batching;

/// Place of a partition in its hub, and the limits it keeps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub(super) id: PartitionId,
    /// Number of partitions of the hub.
    pub(super) count: u16,
    pub(super) mode: Mode,
    /// Bytes held from which on the partition admits nothing new.
    pub(super) bytes_max: u64,
    pub(super) bounds: Bounds,
}

impl Settings {
    pub(super) fn new(id: PartitionId, count: u16, batching: Batching, options: &HubOptions) -> Self {
        Self { id, count, mode: options.mode, bytes_max: options.instance_bytes_max, bounds: Bounds::new(batching) }
    }

    /// The partition that an instance lives on.
    pub(super) fn partition_of(&self, instance: &InstanceId) -> PartitionId {
        instance.partition(self.count)
    }
}
