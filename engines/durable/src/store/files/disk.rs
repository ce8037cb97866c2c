//! Access to files and folders: the few calls that a store needs of a disk, and errors that name the file.
//!
//! All access goes through [`Disk`], so that tests can put a disk in its place that fails, forgets and lies as real ones
//! do. The real one is [`RealDisk`]; it adds nothing to the calls of the operating system.

use std::fmt::Debug;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use crate::store::{Location, StoreError};

/// A disk. Paths are those of the operating system; folders exist before anything is put into them.
pub(crate) trait Disk: Send + Sync + Debug {
    /// Makes a folder; one that is there already is no error.
    fn make_folder(&self, path: &Path) -> io::Result<()>;
    /// Whether there is a folder.
    fn is_folder(&self, path: &Path) -> bool;
    /// The entries of a folder, in any order.
    fn list(&self, folder: &Path) -> io::Result<Vec<FolderEntry>>;
    /// All bytes of a file.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;
    /// How long a file is.
    fn bytes(&self, path: &Path) -> io::Result<u64>;
    /// Which file a path leads to: another value once the file was replaced.
    fn identity(&self, path: &Path) -> io::Result<(u64, i64)>;
    /// Makes a file of so many zeros, in place of an earlier one.
    fn create(&self, path: &Path, bytes: u64) -> io::Result<Box<dyn DiskFile>>;
    /// Opens a file for writing.
    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;
    /// Gives a file another name, in place of an earlier file of that name.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes created, renamed and removed names of a folder durable.
    fn sync_folder(&self, path: &Path) -> io::Result<()>;
}

/// A file that is open for writing.
pub(crate) trait DiskFile: Send + Debug {
    /// Writes all bytes at an offset.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Makes the content and the length of the file durable.
    fn sync(&self) -> io::Result<()>;
    /// How long it is.
    fn bytes(&self) -> io::Result<u64>;
}

/// A name in a folder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct FolderEntry {
    pub(crate) name: String,
    pub(crate) is_folder: bool,
}

impl FolderEntry {
    fn read(entry: &std::fs::DirEntry) -> io::Result<Self> {
        let name = entry.file_name().to_string_lossy().into_owned();
        Ok(Self { name, is_folder: entry.file_type()?.is_dir() })
    }
}

/// The disk of this machine.
#[derive(Debug)]
pub(crate) struct RealDisk;

impl Disk for RealDisk {
    fn make_folder(&self, path: &Path) -> io::Result<()> {
        match std::fs::create_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
            made => made,
        }
    }

    fn is_folder(&self, path: &Path) -> bool {
        path.is_dir()
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<FolderEntry>> {
        std::fs::read_dir(folder)?.map(|entry| FolderEntry::read(&entry?)).collect()
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        std::fs::read(path)
    }

    fn bytes(&self, path: &Path) -> io::Result<u64> {
        Ok(path.metadata()?.len())
    }

    fn identity(&self, path: &Path) -> io::Result<(u64, i64)> {
        // The time goes along, because the number of a file that was removed is used again.
        path.metadata().map(|data| (data.ino(), data.mtime_nsec()))
    }

    fn create(&self, path: &Path, bytes: u64) -> io::Result<Box<dyn DiskFile>> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path)?;
        file.set_len(bytes)?;
        Ok(Box::new(file))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(OpenOptions::new().read(true).write(true).open(path)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        File::open(path).and_then(|folder| folder.sync_all())
    }
}

impl DiskFile for File {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }

    fn bytes(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }
}

/// The error of an operation on a file.
pub(super) fn failed(action: &'static str, path: &Path, offset: Option<u64>, error: &io::Error) -> StoreError {
    let is_full = matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
    let place = Location::File { path: path.to_owned(), offset };
    StoreError::Io { action, place, reason: error.to_string(), is_full }
}

/// The error of a file that holds other bytes than were written.
pub(super) fn damaged(path: &Path, offset: u64, what: impl Into<String>) -> StoreError {
    StoreError::Damaged { place: Location::File { path: path.to_owned(), offset: Some(offset) }, what: what.into() }
}

/// The error of a file or folder that should be there.
pub(super) fn missing(path: &Path, what: impl Into<String>) -> StoreError {
    StoreError::Damaged { place: Location::File { path: path.to_owned(), offset: None }, what: what.into() }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Makes a folder and those above it, durably.
pub(super) fn make_folder(disk: &dyn Disk, path: &Path) -> Result<(), StoreError> {
    if disk.is_folder(path) {
        return Ok(());
    }
    let above = folder_of(path);
    make_folder(disk, above)?;
    disk.make_folder(path).map_err(|error| failed("create", path, None, &error))?;
    sync_folder(disk, above)
}

/// Makes created, renamed and removed names of a folder durable.
pub(super) fn sync_folder(disk: &dyn Disk, path: &Path) -> Result<(), StoreError> {
    disk.sync_folder(path).map_err(|error| failed("sync", path, None, &error))
}

/// Makes a folder, those in it, and its own name durable: a process that was killed may have left any of them in the
/// kernel's memory only.
pub(super) fn sync_tree(disk: &dyn Disk, path: &Path) -> Result<(), StoreError> {
    sync_folder(disk, folder_of(path))?;
    sync_below(disk, path)
}

fn sync_below(disk: &dyn Disk, path: &Path) -> Result<(), StoreError> {
    sync_folder(disk, path)?;
    for found in list(disk, path)?.into_iter().filter(|found| found.is_folder) {
        sync_below(disk, &path.join(found.name))?;
    }
    Ok(())
}

/// The entries of a folder; empty if there is no such folder.
pub(super) fn list(disk: &dyn Disk, folder: &Path) -> Result<Vec<FolderEntry>, StoreError> {
    match disk.list(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        listed => listed.map_err(|error| failed("list", folder, None, &error)),
    }
}

/// Replaces the content of a path, durably: a reader finds the old bytes or the new ones.
pub(super) fn replace(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let folder = folder_of(path);
    make_folder(disk, folder)?;
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(TEMPORARY);
    let temporary = folder.join(name);
    if let Err(error) = write_synced(disk, &temporary, bytes) {
        // Without room, or without a disk, it may stay as well; the next one has its name.
        let _ = disk.remove(&temporary);
        return Err(failed("write", &temporary, None, &error));
    }
    disk.rename(&temporary, path).map_err(|error| failed("rename", &temporary, None, &error))?;
    sync_folder(disk, folder)
}

/// Suffix of the names of files that are being written; no blob has such a name.
pub(super) const TEMPORARY: &str = "~new";

fn write_synced(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let file = disk.create(path, 0)?;
    file.write_at(bytes, 0)?;
    file.sync()
}

/// The bytes of a file; `None` if there is no such file.
pub(super) fn read(disk: &dyn Disk, path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    match disk.read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed("read", path, None, &error)),
    }
}

/// Removes a file, if it is there.
pub(super) fn remove(disk: &dyn Disk, path: &Path) -> Result<(), StoreError> {
    match disk.remove(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed("remove", path, None, &error)),
        _ => Ok(()),
    }
}
