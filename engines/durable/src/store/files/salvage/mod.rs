//! A folder with a damaged hub: reads the readable data, copies damaged files, and begins new logs.
//!
//! Here damage is no error but a finding. Reading writes nothing; it only locks the folder. A new log
//! begins behind every position of the old one, so an interrupted repair can be repeated: until the new segment is
//! there, the old files are the hub; afterwards nothing reads them.

mod keep;
mod log;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) use log::{Frames, SalvagedLog};

use super::disk::{self, Disk, RealDisk};
use super::log::Log;
use super::sealed::{self, Sort};
use super::{BLOBS, FileReader, HUB, SPARE, blob_path, list_blobs, lock_folder, read_shape, write_shape};
use crate::codec::FORMAT;
use crate::ids::{PartitionId, Position};
use crate::options::PARTITIONS_MAX;
use crate::store::{HubShape, Location, StoreError};

/// A folder that is repaired. It is locked as long as this lives.
#[derive(Debug)]
pub(crate) struct Salvage {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
    _lock: File,
}

impl Salvage {
    /// Takes the folder, which must be there, and changes nothing in it.
    pub(crate) fn open(folder: &Path) -> Result<Self, StoreError> {
        let lock = lock_folder(folder)?;
        Ok(Self { disk: Arc::new(RealDisk), folder: folder.to_owned(), _lock: lock })
    }

    /// Snapshots and large payloads, for reading.
    pub(crate) fn blobs(&self) -> FileReader {
        FileReader::new(&self.folder)
    }

    /// The shape of the hub, as the file `hub` has it. The inner error is that the file is damaged or missing.
    ///
    /// # Errors
    /// [`StoreError::Foreign`] if the file is whole and is of another format.
    pub(crate) fn shape(&self) -> Result<Result<HubShape, StoreError>, StoreError> {
        let path = self.folder.join(HUB);
        // Another format stands in a file that is whole; everything else is damage.
        match sealed::read(&*self.disk, &path, Sort::Hub) {
            Ok(Some(_)) => {}
            Ok(None) => return Ok(Err(disk::missing(&path, "it is missing"))),
            Err(error @ StoreError::Io { .. }) => return Err(error),
            Err(error) => return Ok(Err(error)),
        }
        match read_shape(&*self.disk, &self.folder, FORMAT) {
            Err(error @ StoreError::Damaged { .. }) => Ok(Err(error)),
            shape => Ok(shape?.ok_or_else(|| disk::missing(&path, "it is missing"))),
        }
    }

    /// How many partitions the hub has at least, as its folders show.
    pub(crate) fn partitions_min(&self) -> Result<u16, StoreError> {
        let mut count = 0;
        for above in [self.folder.clone(), self.folder.join(BLOBS)] {
            for found in disk::list(&*self.disk, &above)?.into_iter().filter(|found| found.is_folder) {
                let number: Option<u16> = found.name.strip_prefix('p').and_then(|number| number.parse().ok());
                let number = number.filter(|number| *number < PARTITIONS_MAX);
                count = count.max(number.map_or(0, |number| number + 1));
            }
        }
        Ok(count)
    }

    /// Whether a hub was ever open here.
    pub(crate) fn was_used(&self) -> Result<bool, StoreError> {
        if !list_blobs(&*self.disk, &self.folder, "")?.is_empty() {
            return Ok(true);
        }
        for number in 0..self.partitions_min()? {
            match self.log(PartitionId(number)).was_used() {
                Ok(false) => {}
                Err(error @ StoreError::Io { .. }) => return Err(error),
                // A file that is damaged was written once.
                Ok(true) | Err(_) => return Ok(true),
            }
        }
        Ok(false)
    }

    fn log(&self, partition: PartitionId) -> Log {
        Log::new(Arc::clone(&self.disk), partition, &self.folder)
    }

    /// Reads a log from `from` on.
    ///
    /// # Errors
    /// [`StoreError::Io`] if a file cannot be read.
    pub(crate) fn read_log(
        &self,
        partition: PartitionId,
        from: Position,
        frames: Frames<'_>,
    ) -> Result<SalvagedLog, StoreError> {
        log::read(&self.log(partition), from, frames)
    }

    /// Begins a log anew at a position behind everything that it ever held, and removes its old segments.
    pub(crate) fn restart(&self, partition: PartitionId, at: Position, epoch: u64) -> Result<(), StoreError> {
        log::restart(&self.log(partition), at, epoch)
    }

    /// Keeps bytes under a name, durably.
    pub(crate) fn put_blob(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        sealed::write(&*self.disk, &blob_path(&self.folder, name)?, Sort::Blob, bytes)
    }

    /// Writes the file `hub`.
    pub(crate) fn put_shape(&self, shape: HubShape) -> Result<(), StoreError> {
        write_shape(&*self.disk, &self.folder, shape)
    }

    /// Removes files that were kept ready to become segments: they hold old frames, which a log whose epochs begin anew
    /// could take for its own.
    pub(crate) fn remove_spares(&self) -> Result<(), StoreError> {
        let folder = self.folder.join(SPARE);
        for found in disk::list(&*self.disk, &folder)? {
            disk::remove(&*self.disk, &folder.join(found.name))?;
        }
        Ok(())
    }

    /// Copies the logs and snapshots of partitions, and the file `hub`, to a folder beside them, which is returned.
    pub(crate) fn keep(&self, partitions: &[PartitionId]) -> Result<PathBuf, StoreError> {
        let mut kept = vec![PathBuf::from(HUB)];
        for partition in partitions {
            kept.push(format!("p{partition}").into());
            kept.push(Path::new(BLOBS).join(format!("p{partition}")).join("snapshot"));
        }
        keep::copy(&self.folder, &kept)
    }

    pub(crate) fn place(&self) -> Location {
        Location::File { path: self.folder.clone(), offset: None }
    }
}
