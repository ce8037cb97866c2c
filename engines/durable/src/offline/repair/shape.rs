//! Number of partitions of a hub: as its file `hub` says, or if that is lost, as everything else shows.
//!
//! An identifier lives on the partition that its hash and the number of partitions say. So a number that is wrong is
//! found out by the first few instances.

use std::sync::Arc;

use crate::codec::FORMAT;
use crate::ids::{InstanceId, PartitionId};
use crate::offline::NoProgram;
use crate::options::{HubOptions, PARTITIONS_MAX};
use crate::partition::Partition;
use crate::store::files::salvage::{Frames, Salvage};
use crate::store::{HubShape, Store, StoreError};

/// The shape of the hub, and the damage of its file `hub`.
pub(super) fn find(salvage: &Salvage) -> Result<(HubShape, Option<StoreError>), StoreError> {
    let missing = match salvage.shape()? {
        Ok(shape) => return Ok((shape, None)),
        Err(error) => error,
    };
    let foreign = |what: &str| StoreError::Foreign { place: salvage.place(), what: what.to_owned() };
    let least = salvage.partitions_min()?;
    if least == 0 || !salvage.was_used()? {
        return Err(foreign("it has no file `hub` and nothing that a hub has written"));
    }
    let mut homes: Vec<(PartitionId, InstanceId)> = Vec::new();
    for id in (0..least).map(PartitionId) {
        homes.extend(instances(salvage, id)?.into_iter().map(|instance| (id, instance)));
    }
    let fits = |count: &u16| homes.iter().all(|(home, instance)| instance.partition(*count) == *home);
    let partitions = (least..=PARTITIONS_MAX).find(fits).ok_or_else(|| foreign("its folders are not of one hub"))?;
    Ok((HubShape { partitions, format: FORMAT }, Some(missing)))
}

/// The instances of a partition of a hub of any size.
fn instances(salvage: &Salvage, id: PartitionId) -> Result<Vec<InstanceId>, StoreError> {
    let blobs: Arc<dyn Store> = Arc::new(salvage.blobs());
    let options = HubOptions::default();
    let mut partition = Partition::new(id, PARTITIONS_MAX, Arc::new(NoProgram), Arc::clone(&blobs), &options);
    partition.salvage(&*blobs, &mut |from, visit| {
        let read = salvage.read_log(id, from, Frames { visit, stray: &mut |_, _| {} })?;
        Ok(crate::ids::Position(read.end))
    })?;
    Ok(partition.identifiers().map(|(_, instance)| instance.clone()).collect())
}
