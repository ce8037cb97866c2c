//! A damaged hub: finds the lost data, and makes the hub open again without it.
//!
//! [`HubRepair::open`] reads the readable data and changes nothing. [`HubRepair::accept`] makes it the state of the hub:
//! it copies the damaged files, then writes each partition that changed as a snapshot behind its old log. Partitions
//! that lost something take over the numbers of messages that the others know of, so that no number is given twice and
//! no message that was taken is taken again. It does not guess at lost data, and runs no code.

mod agreement;
mod loss;
mod place;
mod shape;
mod strays;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

pub use loss::{Damage, Findings, LISTED_MAX};

use super::NoProgram;
use crate::error::Error;
use crate::ids::{InstanceId, PartitionId, Position};
use crate::options::{HubOptions, Mode};
use crate::partition::{Partition, SalvagedSnapshot};
use crate::store::files::salvage::{Frames, Salvage, SalvagedLog};
use crate::store::{HubShape, SharedStore, StoreError};
use place::{Place, SharedPlace};
use strays::Strays;

/// A hub in a folder or in a shared store, held during inspection or repair.
pub struct HubRepair {
    place: Box<dyn Place>,
    shape: HubShape,
    parts: Vec<Part>,
    findings: Findings,
}

/// A partition as far as it can be read.
struct Part {
    id: PartitionId,
    partition: Partition,
    log: SalvagedLog,
    /// Why parts of its snapshot are lost.
    snapshot: Vec<StoreError>,
    /// Whether nothing of its snapshot, and so of its log, can be used.
    is_empty: bool,
    /// Instances that frames behind the damage are about.
    strays: BTreeSet<InstanceId>,
    /// How many of those frames can be read.
    strays_read: u64,
}

impl HubRepair {
    /// Reads a hub that no process has open. Nothing is changed.
    ///
    /// # Errors
    /// [`Error::Store`] if the folder is in use, cannot be read, or holds no hub of this format.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, Error> {
        Self::read(Box::new(Salvage::open(folder.as_ref())?))
    }

    /// Reads a hub in a shared store that no node and no process has open. Holds all partitions until this value is
    /// dropped, and changes nothing else.
    ///
    /// # Errors
    /// [`Error::Store`] if the hub is in use, cannot be read, or does not exist.
    pub fn open_shared(store: Arc<dyn SharedStore>) -> Result<Self, Error> {
        Self::read(Box::new(SharedPlace::open(store)?))
    }

    fn read(place: Box<dyn Place>) -> Result<Self, Error> {
        let (shape, missing) = place.shape()?;
        let parts = (0..shape.partitions).map(|id| Part::read(&*place, PartitionId(id), shape.partitions));
        let mut parts = parts.collect::<Result<Vec<_>, _>>()?;
        let gaps = agreement::reach(&mut parts);
        let findings = loss::findings(&parts, &gaps, shape.partitions, missing);
        Ok(Self { place, shape, parts, findings })
    }

    /// The damage, and the data that [`HubRepair::accept`] gives up.
    #[must_use]
    pub fn findings(&self) -> &Findings {
        &self.findings
    }

    /// Replaces the state of the hub by the readable data. Returns the location of the copies of the damaged logs and
    /// snapshots, a folder or a description of the tables or stream; `None` if nothing is damaged.
    ///
    /// # Errors
    /// [`Error::Store`]. If the copies fail, nothing has changed; otherwise the repair can be repeated.
    pub fn accept(mut self) -> Result<Option<String>, Error> {
        if self.findings.is_sound() {
            return Ok(None);
        }
        let damaged: Vec<PartitionId> = self.findings.damages.iter().map(|damage| damage.partition).collect();
        let kept = self.place.keep(&damaged)?;
        for part in self.parts.iter_mut().filter(|part| damaged.contains(&part.id)) {
            part.write(&*self.place)?;
        }
        if self.findings.hub.is_some() {
            self.place.put_shape(self.shape)?;
        }
        Ok(Some(kept))
    }
}

impl Part {
    fn read(place: &dyn Place, id: PartitionId, partitions: u16) -> Result<Self, StoreError> {
        let blobs = place.blobs();
        let options = HubOptions { mode: Mode::PersistFirst, ..HubOptions::default() };
        let new = || {
            let mut partition = Partition::new(id, partitions, Arc::new(NoProgram), Arc::clone(&blobs), &options);
            if let Some(epoch) = place.epoch(id) {
                partition.own_blobs(epoch);
            }
            partition
        };
        let (mut partition, mut log, strays) = (new(), None, RefCell::new(Strays::default()));
        let mut stray = |_, frame: &[u8]| strays.borrow_mut().add(frame);
        let snapshot = partition.salvage(&*blobs, &mut |from, visit| {
            let read = place.read_log(id, from, Frames { visit, stray: &mut stray })?;
            let end = read.end;
            log = Some(read);
            Ok(Position(end))
        })?;
        let (is_empty, snapshot) = match snapshot {
            SalvagedSnapshot::Read(lost) => (false, lost),
            SalvagedSnapshot::Useless(error) => (true, vec![error]),
        };
        if is_empty {
            partition = new();
        }
        let log = match log {
            Some(log) => log,
            None => {
                // The frames are read only to be named.
                let mut named = |_, frame: &[u8]| -> Result<(), StoreError> {
                    strays.borrow_mut().add(frame);
                    Ok(())
                };
                place.read_log(id, Position(0), Frames { visit: &mut named, stray: &mut stray })?
            }
        };
        let strays = strays.into_inner();
        let (strays_read, strays) = (strays.frames(), strays.instances(&partition));
        Ok(Self { id, partition, log, snapshot, is_empty, strays, strays_read })
    }

    /// Whether a file of it is damaged or missing.
    fn is_damaged(&self) -> bool {
        !self.log.found.is_empty() || !self.snapshot.is_empty()
    }

    /// Writes the current state of the partition: first the snapshot, whose list replaces the old one.
    fn write(&mut self, place: &dyn Place) -> Result<(), StoreError> {
        let at = Position(self.log.reached.max(self.log.end) + 1);
        self.partition.rebase(at);
        place.put_snapshot(self.id, &self.partition.snapshot_at_once())?;
        place.restart(self.id, at, self.log.epoch)
    }
}
