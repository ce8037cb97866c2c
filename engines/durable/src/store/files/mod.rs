//! A store in a folder: a log per partition in segments, sealed small files, blobs.
//!
//! ```text
//! FOLDER/hub            what the hub is; written last when it is made
//!        p0/epoch       how often partition 0 changed hands
//!        p0/end         where its log ended when a segment was begun, or when it was given back in order
//!        p0/log-…       segments, named after their first position
//!        blobs/…        blobs, by name
//!        spare/…        files that will become segments
//! ```
//!
//! Appends are one write and one `fdatasync`. One process has the folder at a time, by `flock` on the folder itself,
//! which the kernel takes back however the process ends. Where that fails (a folder that was moved and copied, a file
//! system without locks), the epoch decides: it is looked at before each append.

pub(crate) mod disk;
mod log;
mod reader;
pub(crate) mod salvage;
mod sealed;
mod segment;
#[cfg(test)]
pub(crate) mod simulated;
mod spare;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{FlockOperation, flock};

use super::names::check_blob_name;
use super::{Batching, FrameBatch, HubShape, Location, Store, StoreError, Visit};
use crate::ids::{Epoch, PartitionId, Position};
use crate::store::lock_holder::{Sort as Lock, holder};
use disk::{Disk, RealDisk};
use log::{Log, Supply};
pub use reader::FileReader;
use sealed::Sort;
use spare::{FillMode, Spares};

/// How a folder is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileStoreOptions {
    /// The size of a segment in bytes, 64 KiB to 1 GiB. One append that needs more gets its own segment size.
    pub segment_bytes: u64,
}

impl Default for FileStoreOptions {
    fn default() -> Self {
        Self { segment_bytes: 16 << 20 }
    }
}

const SEGMENT_BYTES_MIN: u64 = 64 << 10;
const SEGMENT_BYTES_MAX: u64 = 1 << 30;

/// A hub in a folder.
#[derive(Debug)]
pub struct FileStore {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
    options: FileStoreOptions,
    logs: Mutex<HashMap<PartitionId, Arc<Mutex<Log>>>>,
    spares: Spares,
    /// Held as long as the store lives.
    _lock: Option<File>,
}

impl FileStore {
    /// Opens a folder, which is made if it is not there, for this process alone.
    ///
    /// # Errors
    /// [`StoreError::InUse`] if another process has it open; [`StoreError::Io`] if it cannot be made or written.
    pub fn open(folder: impl AsRef<Path>, options: FileStoreOptions) -> Result<Self, StoreError> {
        let folder = folder.as_ref();
        let segment_bytes = options.segment_bytes.clamp(SEGMENT_BYTES_MIN, SEGMENT_BYTES_MAX);
        disk::make_folder(&RealDisk, folder)?;
        let lock = lock_folder(folder)?;
        let options = FileStoreOptions { segment_bytes };
        Self::on(Arc::new(RealDisk), folder, options, FillMode::Ahead, Some(lock))
    }

    /// On a disk that is simulated, and without a lock.
    #[cfg(test)]
    pub(crate) fn simulated(disk: Arc<dyn Disk>, folder: &Path, segment_bytes: u64) -> Result<Self, StoreError> {
        disk::make_folder(&*disk, folder)?;
        Self::on(disk, folder, FileStoreOptions { segment_bytes }, FillMode::AtOnce, None)
    }

    fn on(
        disk: Arc<dyn Disk>,
        folder: &Path,
        options: FileStoreOptions,
        filling: FillMode,
        lock: Option<File>,
    ) -> Result<Self, StoreError> {
        let spares = Spares::open(Arc::clone(&disk), &folder.join(SPARE), options.segment_bytes, filling)?;
        disk::sync_tree(&*disk, folder)?;
        Ok(Self { disk, folder: folder.to_owned(), options, logs: Mutex::default(), spares, _lock: lock })
    }

    fn supply(&self) -> Supply<'_> {
        Supply { spares: &self.spares, segment_bytes: self.options.segment_bytes }
    }

    fn log(&self, partition: PartitionId) -> Arc<Mutex<Log>> {
        let mut logs = self.logs.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Arc::new(Mutex::new(Log::new(Arc::clone(&self.disk), partition, &self.folder)));
        Arc::clone(logs.entry(partition).or_insert_with(new))
    }

    fn blob_path(&self, name: &str) -> Result<PathBuf, StoreError> {
        blob_path(&self.folder, name)
    }

    /// Makes the folders of all partitions, and then the file that says that there is a hub.
    fn create(&self, shape: HubShape) -> Result<(), StoreError> {
        let path = self.folder.join(HUB);
        if let Some(left) = self.left_behind()? {
            return Err(disk::missing(&path, format!("it is missing, though {} is there", left.display())));
        }
        for partition in (0..shape.partitions).map(PartitionId) {
            locked(&self.log(partition)).create()?;
        }
        write_shape(&*self.disk, &self.folder, shape)
    }

    /// A file that only a hub can have left in the folder.
    fn left_behind(&self) -> Result<Option<PathBuf>, StoreError> {
        for found in disk::list(&*self.disk, &self.folder)?.into_iter().filter(|found| found.is_folder) {
            let path = self.folder.join(&found.name);
            let number = found.name.strip_prefix('p').and_then(|number| number.parse().ok());
            let was_used = match number {
                Some(number) => locked(&self.log(PartitionId(number))).was_used()?,
                None => found.name == BLOBS && !list_blobs(&*self.disk, &self.folder, "")?.is_empty(),
            };
            if was_used {
                return Ok(Some(path));
            }
        }
        Ok(None)
    }
}

/// The file that says that a folder is a hub, and of which shape.
const HUB: &str = "hub";
const BLOBS: &str = "blobs";
const SPARE: &str = "spare";

fn blob_path(folder: &Path, name: &str) -> Result<PathBuf, StoreError> {
    check_blob_name(name)?;
    Ok(folder.join(BLOBS).join(name))
}

/// The shape of the hub in a folder, if there is one.
fn read_shape(disk: &dyn Disk, folder: &Path, format: u16) -> Result<Option<HubShape>, StoreError> {
    let path = folder.join(HUB);
    let Some(bytes) = sealed::read(disk, &path, Sort::Hub)? else { return Ok(None) };
    let [a, b, c, d] = bytes[..] else {
        return Err(disk::damaged(&path, 0, format!("{} bytes, expected 4", bytes.len())));
    };
    let shape = HubShape { partitions: u16::from_le_bytes([a, b]), format: u16::from_le_bytes([c, d]) };
    if shape.format != format {
        let what = format!("its format is {}, expected {format}", shape.format);
        return Err(StoreError::Foreign { place: Location::File { path, offset: None }, what });
    }
    Ok(Some(shape))
}

fn write_shape(disk: &dyn Disk, folder: &Path, shape: HubShape) -> Result<(), StoreError> {
    let bytes = [shape.partitions.to_le_bytes(), shape.format.to_le_bytes()].concat();
    sealed::write(disk, &folder.join(HUB), Sort::Hub, &bytes)
}

fn list_blobs(disk: &dyn Disk, folder: &Path, prefix: &str) -> Result<Vec<String>, StoreError> {
    let mut names = Vec::new();
    list(disk, &folder.join(BLOBS), "", prefix, &mut names)?;
    names.sort();
    Ok(names)
}

/// Takes the folder for this process. The lock is on the folder itself, so it cannot be removed without the folder.
fn lock_folder(folder: &Path) -> Result<File, StoreError> {
    let failed = |error: std::io::Error| disk::failed("open", folder, None, &error);
    let file = File::open(folder).map_err(failed)?;
    let is_locked = flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
    let (locked, found) = (file.metadata().map_err(failed)?, folder.metadata().map_err(failed)?);
    let is_same = (locked.dev(), locked.ino()) == (found.dev(), found.ino());
    if is_locked && is_same {
        return Ok(file);
    }
    let by = holder(folder, Lock::Flock).map_or("another process".to_owned(), |id| format!("process {id}"));
    Err(StoreError::InUse { place: Location::File { path: folder.to_owned(), offset: None }, by })
}

fn locked(log: &Mutex<Log>) -> MutexGuard<'_, Log> {
    // A panic between two steps of an append leaves the tail as it was before or after a write; the next one meets a
    // conflict at worst.
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Store for FileStore {
    fn describe(&self) -> String {
        format!("files in {}", self.folder.display())
    }

    fn batching(&self) -> Batching {
        Batching::Group
    }

    fn open_or_create(&self, wanted: HubShape) -> Result<HubShape, StoreError> {
        let Some(shape) = read_shape(&*self.disk, &self.folder, wanted.format)? else {
            self.create(wanted)?;
            return Ok(wanted);
        };
        for partition in (0..shape.partitions).map(PartitionId) {
            locked(&self.log(partition)).epoch()?;
        }
        Ok(shape)
    }

    fn acquire(&self, partition: PartitionId, _: &str) -> Result<Epoch, StoreError> {
        locked(&self.log(partition)).acquire()
    }

    fn release(&self, partition: PartitionId, epoch: Epoch) -> Result<(), StoreError> {
        locked(&self.log(partition)).release(epoch)
    }

    fn append(&self, partition: PartitionId, epoch: Epoch, at: Position, batch: &FrameBatch) -> Result<(), StoreError> {
        locked(&self.log(partition)).append(epoch, at, batch, self.supply())
    }

    fn read(&self, partition: PartitionId, from: Position, visit: &mut Visit<'_>) -> Result<Position, StoreError> {
        locked(&self.log(partition)).read(from, self.supply(), visit)
    }

    fn truncate(&self, partition: PartitionId, epoch: Epoch, before: Position) -> Result<(), StoreError> {
        locked(&self.log(partition)).truncate(epoch, before, &self.spares)
    }

    fn put_blob(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        sealed::write(&*self.disk, &self.blob_path(name)?, Sort::Blob, bytes)
    }

    fn get_blob(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        sealed::read(&*self.disk, &self.blob_path(name)?, Sort::Blob)
    }

    fn delete_blob(&self, name: &str) -> Result<(), StoreError> {
        disk::remove(&*self.disk, &self.blob_path(name)?)
    }

    fn list_blobs(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        list_blobs(&*self.disk, &self.folder, prefix)
    }
}

/// The blobs below a folder. Names that do not lead to the prefix are not looked into.
fn list(disk: &dyn Disk, folder: &Path, above: &str, prefix: &str, names: &mut Vec<String>) -> Result<(), StoreError> {
    for found in disk::list(disk, folder)? {
        let name = format!("{above}{}", found.name);
        if found.is_folder {
            let below = format!("{name}/");
            if below.starts_with(prefix) || prefix.starts_with(&below) {
                list(disk, &folder.join(found.name), &below, prefix, names)?;
            }
        } else if name.starts_with(prefix) && !name.ends_with(disk::TEMPORARY) {
            names.push(name);
        }
    }
    Ok(())
}
