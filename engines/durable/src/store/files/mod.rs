//! A store in a folder: a log per partition in segments, sealed small files, blobs.
//!
//! ```text
//! FOLDER/hub            what the hub is
//!        lock           held by the process that has it open
//!        p0/epoch       how often partition 0 changed hands
//!        p0/end         where its log ended when it was given back in order
//!        p0/log-…       segments, named after their first position
//!        blobs/…        blobs, by name
//!        spare/…        files that will become segments
//! ```
//!
//! Appends are one write and one `fdatasync`. One process has the folder at a time, by `flock`, which the kernel takes
//! back however the process ends.

mod disk;
mod log;
mod reader;
mod sealed;
mod segment;
mod spare;

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{FlockOperation, flock};

use super::names::check_blob_name;
use super::{Batching, FrameBatch, HubShape, Location, Store, StoreError, Visit};
use crate::ids::{Epoch, PartitionId, Position};
use log::Log;
pub use reader::FileReader;
use sealed::Sort;
use spare::Spares;

/// How a folder is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileStoreOptions {
    /// The size of a segment in bytes, 64 KiB to 1 GiB. One append that needs more gets a segment of its own size.
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
    folder: PathBuf,
    options: FileStoreOptions,
    logs: Mutex<HashMap<PartitionId, Arc<Mutex<Log>>>>,
    spares: Spares,
    /// Held as long as the store lives.
    _lock: File,
}

impl FileStore {
    /// Opens a folder, which is made if it is not there, for this process alone.
    ///
    /// # Errors
    /// [`StoreError::InUse`] if another process has it open; [`StoreError::Io`] if it cannot be made or written.
    pub fn open(folder: impl AsRef<Path>, options: FileStoreOptions) -> Result<Self, StoreError> {
        let folder = folder.as_ref().to_owned();
        let segment_bytes = options.segment_bytes.clamp(SEGMENT_BYTES_MIN, SEGMENT_BYTES_MAX);
        disk::make_folder(&folder)?;
        let lock = lock_folder(&folder)?;
        let spares = Spares::open(&folder.join("spare"), segment_bytes)?;
        let options = FileStoreOptions { segment_bytes };
        Ok(Self { folder, options, logs: Mutex::default(), spares, _lock: lock })
    }

    fn log(&self, partition: PartitionId) -> Arc<Mutex<Log>> {
        let mut logs = self.logs.lock().unwrap_or_else(PoisonError::into_inner);
        let log = logs.entry(partition).or_insert_with(|| Arc::new(Mutex::new(Log::new(partition, &self.folder))));
        Arc::clone(log)
    }

    fn blob_path(&self, name: &str) -> Result<PathBuf, StoreError> {
        blob_path(&self.folder, name)
    }
}

fn blob_path(folder: &Path, name: &str) -> Result<PathBuf, StoreError> {
    check_blob_name(name)?;
    Ok(folder.join("blobs").join(name))
}

/// The shape of the hub in a folder, if there is one.
fn read_shape(folder: &Path, format: u16) -> Result<Option<HubShape>, StoreError> {
    let path = folder.join("hub");
    let Some(bytes) = sealed::read(&path, Sort::Hub)? else { return Ok(None) };
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

fn list_blobs(folder: &Path, prefix: &str) -> Result<Vec<String>, StoreError> {
    let mut names = Vec::new();
    list(&folder.join("blobs"), "", prefix, &mut names)?;
    names.sort();
    Ok(names)
}

/// Takes the folder for this process, and says in it who that is.
fn lock_folder(folder: &Path) -> Result<File, StoreError> {
    let path = folder.join("lock");
    let failed = |error: std::io::Error| disk::failed("open", &path, None, &error);
    let file = File::options().read(true).write(true).create(true).truncate(false).open(&path).map_err(failed)?;
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        let by = std::fs::read_to_string(&path).unwrap_or_default();
        let by = if by.is_empty() { "another process".to_owned() } else { by };
        return Err(StoreError::InUse { place: Location::File { path: folder.to_owned(), offset: None }, by });
    }
    file.set_len(0).map_err(failed)?;
    std::os::unix::fs::FileExt::write_all_at(&file, format!("process {}", std::process::id()).as_bytes(), 0)
        .map_err(failed)?;
    Ok(file)
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
        if let Some(shape) = read_shape(&self.folder, wanted.format)? {
            return Ok(shape);
        }
        let bytes = [wanted.partitions.to_le_bytes(), wanted.format.to_le_bytes()].concat();
        sealed::write(&self.folder.join("hub"), Sort::Hub, &bytes)?;
        Ok(wanted)
    }

    fn acquire(&self, partition: PartitionId, _: &str) -> Result<Epoch, StoreError> {
        locked(&self.log(partition)).acquire()
    }

    fn release(&self, partition: PartitionId, epoch: Epoch) -> Result<(), StoreError> {
        locked(&self.log(partition)).release(epoch)
    }

    fn append(&self, partition: PartitionId, epoch: Epoch, at: Position, batch: &FrameBatch) -> Result<(), StoreError> {
        locked(&self.log(partition)).append(epoch, at, batch, &self.spares, &self.options)
    }

    fn read(&self, partition: PartitionId, from: Position, visit: &mut Visit<'_>) -> Result<Position, StoreError> {
        locked(&self.log(partition)).read(from, visit)
    }

    fn truncate(&self, partition: PartitionId, epoch: Epoch, before: Position) -> Result<(), StoreError> {
        locked(&self.log(partition)).truncate(epoch, before, &self.spares)
    }

    fn put_blob(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        sealed::write(&self.blob_path(name)?, Sort::Blob, bytes)
    }

    fn get_blob(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        sealed::read(&self.blob_path(name)?, Sort::Blob)
    }

    fn delete_blob(&self, name: &str) -> Result<(), StoreError> {
        disk::remove(&self.blob_path(name)?)
    }

    fn list_blobs(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        list_blobs(&self.folder, prefix)
    }
}

/// The blobs below a folder. Names that do not lead to the prefix are not looked into.
fn list(folder: &Path, above: &str, prefix: &str, names: &mut Vec<String>) -> Result<(), StoreError> {
    let failed = |error: std::io::Error| disk::failed("list", folder, None, &error);
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
    };
    for entry in entries {
        let entry = entry.map_err(failed)?;
        let name = format!("{above}{}", entry.file_name().to_string_lossy());
        if entry.file_type().map_err(failed)?.is_dir() {
            let below = format!("{name}/");
            if below.starts_with(prefix) || prefix.starts_with(&below) {
                list(&entry.path(), &below, prefix, names)?;
            }
        } else if name.starts_with(prefix) && !name.ends_with(disk::TEMPORARY) {
            names.push(name);
        }
    }
    Ok(())
}
