//! A hub without its program: for tools that look into a store, and change something in it while no hub runs.
//!
//! To open a hub takes the code of its orchestrations, for it goes on at once: timers fire, activities start, messages
//! are delivered, and orchestrations without code are parked. Here nothing goes on. [`HubReader`]
//! only looks, also beside a running hub; [`HubMaintenance`] makes the requested changes, and nothing besides.
//! [`HubRepair`] makes a damaged hub open again, without the lost data.

mod maintenance;
mod program;
mod reader;
mod repair;
#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use maintenance::{ChangeResults, HubMaintenance};
pub use reader::HubReader;
pub use repair::{Damage, Findings, HubRepair, LISTED_MAX};

use program::NoProgram;

use crate::codec::FORMAT;
use crate::ids::PartitionId;
use crate::options::{HubOptions, Mode};
use crate::partition::Partition;
use crate::store::{HubShape, Store, StoreError};

/// The shape of the hub in a store; of a new one, if the store makes one.
fn shape(store: &dyn Store) -> Result<HubShape, StoreError> {
    store.open_or_create(HubShape { partitions: 1, format: FORMAT })
}

/// A partition as the store has it. What it would do next is left out.
fn recovered(store: &Arc<dyn Store>, id: PartitionId, shape: HubShape) -> Result<Partition, StoreError> {
    let options = HubOptions { mode: Mode::PersistFirst, ..HubOptions::default() };
    let mut partition = Partition::new(id, shape.partitions, Arc::new(NoProgram), Arc::clone(store), &options);
    partition.recover(&**store)?;
    partition.effects().clear();
    Ok(partition)
}
