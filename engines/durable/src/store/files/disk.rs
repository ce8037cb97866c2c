//! The few things done with files and folders, each with an error that names the file.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

use crate::store::{Location, StoreError};

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

pub(super) fn make_folder(path: &Path) -> Result<(), StoreError> {
    std::fs::create_dir_all(path).map_err(|error| failed("create", path, None, &error))
}

/// Makes what was created, renamed or removed in a folder durable.
pub(super) fn sync_folder(path: &Path) -> Result<(), StoreError> {
    File::open(path).and_then(|folder| folder.sync_all()).map_err(|error| failed("sync", path, None, &error))
}

/// Puts bytes under a path, durably, in place of what was there: a reader finds the old ones or the new.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    make_folder(folder)?;
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(TEMPORARY);
    let temporary = folder.join(name);
    let written = write_synced(&temporary, bytes);
    if let Err(error) = written {
        let _ = std::fs::remove_file(&temporary);
        return Err(failed("write", &temporary, None, &error));
    }
    std::fs::rename(&temporary, path).map_err(|error| failed("rename", &temporary, None, &error))?;
    sync_folder(folder)
}

/// What ends the names of files that are being written; no blob can be called so.
pub(super) const TEMPORARY: &str = "~new";

fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(path)?;
    io::Write::write_all(&mut file, bytes)?;
    file.sync_all()
}

/// The bytes of a file; none if there is no such file.
pub(super) fn read(path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed("read", path, None, &error)),
    }
}

/// Removes a file, if it is there.
pub(super) fn remove(path: &Path) -> Result<(), StoreError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed("remove", path, None, &error)),
        _ => Ok(()),
    }
}
