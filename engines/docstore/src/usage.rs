//! What every partition uses, with the names of where it is: one reading for those who show it.

use std::sync::Arc;

use crate::container::Container;
use crate::database::Database;
use crate::partition::Usage;
use crate::store::Store;

/// One partition of a container, at the time of the reading.
#[derive(Debug)]
pub(crate) struct PartitionUsage {
    /// The number of its range.
    pub(crate) range: u32,
    pub(crate) usage: Usage,
    /// The bytes of its documents' text.
    pub(crate) bytes: usize,
}

/// Calls `each` with every container and the partitions it has; those that were split are left out.
pub(crate) fn read(store: &Store, mut each: impl FnMut(&Arc<Database>, &Container, &[PartitionUsage])) {
    for database in store.databases() {
        for container in database.containers() {
            let ranges = container.ranges();
            let partitions: Vec<PartitionUsage> = ranges
                .iter()
                .map(|range| PartitionUsage {
                    range: range.id,
                    usage: range.partition.usage(),
                    bytes: range.partition.text_bytes(),
                })
                .collect();
            each(&database, &container, &partitions);
        }
    }
}
