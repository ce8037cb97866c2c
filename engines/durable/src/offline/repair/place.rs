//! The location of a damaged hub: a folder, or a store that nodes share.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::ids::{Epoch, PartitionId, Position};
use crate::node::exclusion::{self, SilentNodes};
use crate::offline::repair::shape;
use crate::store::files::salvage::{Frames, Salvage, SalvagedLog};
use crate::store::{HubShape, Location, LogPiece, SharedStore, Store, StoreError};

/// The location of a hub, held during inspection or repair.
pub(super) trait Place {
    /// The shape of the hub, and any damage of the record that holds it.
    fn shape(&self) -> Result<(HubShape, Option<StoreError>), StoreError>;

    /// Snapshots and large payloads, for reading.
    fn blobs(&self) -> Arc<dyn Store>;

    /// The epoch in the names of new blobs; `None` if the names contain none.
    fn epoch(&self, partition: PartitionId) -> Option<Epoch>;

    /// Reads a log from `from` on.
    fn read_log(&self, partition: PartitionId, from: Position, frames: Frames<'_>) -> Result<SalvagedLog, StoreError>;

    /// Copies the logs and snapshots of partitions. Returns the location of the copies.
    fn keep(&self, partitions: &[PartitionId]) -> Result<String, StoreError>;

    /// Stores the shape of the hub.
    fn put_shape(&self, shape: HubShape) -> Result<(), StoreError>;

    /// Replaces all snapshots of a partition by `snapshot`: names and contents, with the list last.
    fn put_snapshot(&self, partition: PartitionId, snapshot: &[(String, Vec<u8>)]) -> Result<(), StoreError>;

    /// Restarts a log at a position after everything that it ever held.
    fn restart(&self, partition: PartitionId, at: Position, epoch: u64) -> Result<(), StoreError>;
}

impl Place for Salvage {
    fn shape(&self) -> Result<(HubShape, Option<StoreError>), StoreError> {
        shape::find(self)
    }

    fn blobs(&self) -> Arc<dyn Store> {
        Arc::new(Self::blobs(self))
    }

    fn epoch(&self, _partition: PartitionId) -> Option<Epoch> {
        None
    }

    fn read_log(&self, partition: PartitionId, from: Position, frames: Frames<'_>) -> Result<SalvagedLog, StoreError> {
        Self::read_log(self, partition, from, frames)
    }

    fn keep(&self, partitions: &[PartitionId]) -> Result<String, StoreError> {
        let kept = Self::keep(self, partitions)?;
        self.remove_spares()?;
        Ok(kept.display().to_string())
    }

    fn put_shape(&self, shape: HubShape) -> Result<(), StoreError> {
        Self::put_shape(self, shape)
    }

    /// Parts of older snapshots are removed with the next snapshot.
    fn put_snapshot(&self, _partition: PartitionId, snapshot: &[(String, Vec<u8>)]) -> Result<(), StoreError> {
        snapshot.iter().try_for_each(|(name, bytes)| self.put_blob(name, bytes))
    }

    fn restart(&self, partition: PartitionId, at: Position, epoch: u64) -> Result<(), StoreError> {
        Self::restart(self, partition, at, epoch)
    }
}

/// A hub in a shared store. All its partitions are taken, so that no node runs one meanwhile.
pub(super) struct SharedPlace {
    store: Arc<dyn SharedStore>,
    shape: HubShape,
    epochs: Vec<Epoch>,
}

impl SharedPlace {
    /// Takes the hub, which must exist and must not be open.
    pub(super) fn open(store: Arc<dyn SharedStore>) -> Result<Self, StoreError> {
        // A missing hub must not be created.
        let partitions = u16::try_from(store.owners()?.len()).unwrap_or(u16::MAX);
        let shape = store.open_or_create(HubShape { partitions, format: crate::codec::FORMAT })?;
        let silent = SilentNodes::nodes(&*store)?;
        let mut place = Self { store, shape, epochs: Vec::new() };
        for id in (0..shape.partitions).map(PartitionId) {
            let epoch = place.store.acquire(id, &exclusion::name())?;
            place.epochs.push(epoch);
        }
        silent.are_silent(&*place.store)?;
        Ok(place)
    }

    fn epoch_of(&self, partition: PartitionId) -> Epoch {
        self.epochs[usize::from(partition.0)]
    }
}

impl Drop for SharedPlace {
    fn drop(&mut self) {
        for (id, epoch) in (0..).map(PartitionId).zip(&self.epochs) {
            // A partition that is not released becomes free when this process ends.
            let _ = self.store.release(id, *epoch);
        }
    }
}

impl Place for SharedPlace {
    fn shape(&self) -> Result<(HubShape, Option<StoreError>), StoreError> {
        Ok((self.shape, None))
    }

    fn blobs(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store) as _
    }

    fn epoch(&self, partition: PartitionId) -> Option<Epoch> {
        Some(self.epoch_of(partition))
    }

    fn read_log(
        &self,
        partition: PartitionId,
        from: Position,
        mut frames: Frames<'_>,
    ) -> Result<SalvagedLog, StoreError> {
        let mut reading = SharedLogReader::new(partition, from);
        let noted = self.store.scan(partition, &mut |found| {
            match found {
                LogPiece::Frame(position, frame) => reading.frame(position.0, frame, &mut frames),
                LogPiece::Damage(damage) => reading.damage.push(damage),
            }
            Ok(())
        })?;
        Ok(reading.end(noted.0))
    }

    fn keep(&self, partitions: &[PartitionId]) -> Result<String, StoreError> {
        self.store.keep(partitions)
    }

    fn put_shape(&self, _shape: HubShape) -> Result<(), StoreError> {
        // The shape was read when the hub was taken, so it exists.
        Ok(())
    }

    fn put_snapshot(&self, partition: PartitionId, snapshot: &[(String, Vec<u8>)]) -> Result<(), StoreError> {
        snapshot.iter().try_for_each(|(name, bytes)| self.store.put_blob(name, bytes))?;
        let old = self.store.list_blobs(&format!("p{partition}/snapshot/"))?;
        let old = old.iter().filter(|name| snapshot.iter().all(|(kept, _)| kept != *name));
        // An unreadable list would hide the new one.
        old.into_iter().try_for_each(|name| self.store.delete_blob(name))
    }

    fn restart(&self, partition: PartitionId, at: Position, _epoch: u64) -> Result<(), StoreError> {
        self.store.restart(partition, self.epoch_of(partition), at)
    }
}

/// A log of a shared store, read as long as its frames are consecutive.
struct SharedLogReader {
    partition: PartitionId,
    from: u64,
    /// The frame that must come next.
    next: u64,
    /// Whether a frame is missing; later frames cannot be applied.
    is_broken: bool,
    /// Damage since the last frame.
    damage: Vec<StoreError>,
    out: SalvagedLog,
}

impl SharedLogReader {
    fn new(partition: PartitionId, from: Position) -> Self {
        let (from, next) = (from.0, from.0);
        Self { partition, from, next, is_broken: false, damage: Vec::new(), out: SalvagedLog::default() }
    }

    fn frame(&mut self, position: u64, frame: &[u8], frames: &mut Frames<'_>) {
        self.out.reached = self.out.reached.max(position + 1);
        if self.is_broken {
            return (frames.stray)(position, frame);
        }
        if position <= self.from && self.next == self.from {
            // Nothing before the first wanted frame is needed.
            self.damage.clear();
        }
        self.out.found.append(&mut self.damage);
        let failed = match position.cmp(&self.next) {
            Ordering::Less => return,
            // A frame that cannot be read counts as missing.
            Ordering::Equal => (frames.visit)(Position(position), frame).err(),
            Ordering::Greater => Some(self.missing(position)),
        };
        if let Some(failed) = failed {
            self.out.found.push(failed);
            self.is_broken = true;
            (frames.stray)(position, frame);
        } else {
            self.next += 1;
        }
    }

    /// The result of reading a log that had reached `noted` according to the store.
    fn end(mut self, noted: u64) -> SalvagedLog {
        self.out.reached = self.out.reached.max(noted);
        self.out.found.append(&mut self.damage);
        if self.out.reached < self.from {
            let what = format!(
                "it ends before frame {}, and its snapshot was taken before frame {}",
                self.out.reached, self.from
            );
            self.out.found.push(self.damaged(what));
        } else if self.next < self.out.reached && !self.is_broken {
            self.out.found.push(self.missing(self.out.reached));
        }
        self.out.end = self.next;
        self.out
    }

    fn missing(&self, before: u64) -> StoreError {
        self.damaged(format!("frames {} to {} are missing", self.next, before - 1))
    }

    fn damaged(&self, what: String) -> StoreError {
        StoreError::Damaged { place: Location::Log { partition: self.partition }, what }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame at this position, or damage.
    #[derive(Clone, Copy)]
    enum Piece {
        Frame(u64),
        Damage,
    }
    use Piece::{Damage, Frame};

    /// Results of reading from frame 4 on a log that reached `noted`: the frames, the frames after the damage, and the
    /// damage.
    fn read(pieces: &[Piece], noted: u64) -> (Vec<u64>, Vec<u64>, Vec<String>, SalvagedLog) {
        let (mut read, mut strays) = (Vec::new(), Vec::new());
        let mut reading = SharedLogReader::new(PartitionId(0), Position(4));
        for piece in pieces {
            match piece {
                Damage => reading.damage.push(reading.damaged("found".to_owned())),
                Frame(position) => {
                    let mut visit = |position: Position, _: &[u8]| {
                        read.push(position.0);
                        Ok(())
                    };
                    let mut stray = |position, _: &[u8]| strays.push(position);
                    reading.frame(*position, b"", &mut Frames { visit: &mut visit, stray: &mut stray });
                }
            }
        }
        let log = reading.end(noted);
        let found = log.found.iter().map(|error| error.to_string().replace("the log of partition 0 is damaged: ", ""));
        (read, strays, found.collect(), log)
    }

    #[test]
    fn a_log_is_read_up_to_the_first_frame_that_is_missing() {
        let none: [&str; 0] = [];
        for (pieces, noted, whole, strays, found) in [
            (&[Frame(3), Frame(4), Frame(5)][..], 6, &[4, 5][..], &[][..], &none[..]),
            (&[Frame(0), Damage, Frame(3), Damage, Frame(4)], 0, &[4], &[], &none),
            (&[Frame(4), Damage, Frame(5)], 0, &[4, 5], &[], &["found"]),
            (&[Frame(4), Frame(7), Damage, Frame(9)], 0, &[4], &[7, 9], &["frames 5 to 6 are missing", "found"]),
            (&[Frame(4), Damage, Frame(6)], 0, &[4], &[6], &["found", "frames 5 to 5 are missing"]),
            (&[Frame(4), Damage], 0, &[4], &[], &["found"]),
            (&[Frame(4)], 8, &[4], &[], &["frames 5 to 7 are missing"]),
            (&[Frame(1)], 0, &[], &[], &["it ends before frame 2, and its snapshot was taken before frame 4"]),
            (&[], 4, &[], &[], &none),
        ] {
            let (read, behind, damage, log) = read(pieces, noted);
            assert_eq!((&read[..], &behind[..]), (whole, strays), "{damage:?}");
            assert_eq!(damage, found);
            assert_eq!(log.end, whole.last().map_or(4, |last| last + 1));
        }
    }
}
