//! The folder on the disk: whose it is, and how its database comes to be there as a whole.
//!
//! The lock is one of the kernel's on the file `lock`, which ends with the process however that ends; the file holds the
//! number of the process, for the one that finds the folder in use.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::Error;

const DATA: &str = "docstore.sqlite";
const DRAFT: &str = "docstore.sqlite.new";
/// What SQLite calls the log of [`DATA`].
const LOG: &str = "docstore.sqlite-wal";
const LOCK: &str = "lock";

/// A folder that this process has for itself for as long as the value lives.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    lock: Arc<File>,
}

impl Folder {
    /// Makes the folder unless it is there, and locks it.
    pub(super) fn lock(path: &Path) -> Result<Self, Error> {
        let failed = |action| move |source| Error::Folder { path: path.to_owned(), action, source };
        fs::create_dir_all(path).map_err(failed("make"))?;
        let place = path.join(LOCK);
        let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&place);
        let mut lock = opened.map_err(failed("lock"))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let process = fs::read_to_string(&place).ok().and_then(|text| text.trim().parse().ok());
                return Err(Error::InUse { path: path.to_owned(), process });
            }
            Err(TryLockError::Error(source)) => return Err(failed("lock")(source)),
        }
        let number = std::process::id();
        lock.set_len(0).and_then(|()| writeln!(lock, "{number}")).map_err(failed("lock"))?;
        Ok(Self { path: path.to_owned(), lock: Arc::new(lock) })
    }

    /// The same folder under the same lock.
    pub(super) fn shared(&self) -> Self {
        Self { path: self.path.clone(), lock: Arc::clone(&self.lock) }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The database.
    pub(super) fn file(&self) -> PathBuf {
        self.path.join(DATA)
    }

    /// Whether there is a database.
    pub(super) fn has_data(&self) -> Result<bool, Error> {
        let exists = |name| self.path.join(name).try_exists().map_err(|source| self.failed("read", source));
        match (exists(DATA)?, exists(LOG)?) {
            // SQLite would write it into whatever file is made here.
            (false, true) => {
                Err(Error::Damaged { file: self.file(), what: format!("its log {LOG} is there, but not the file") })
            }
            (has_data, _) => Ok(has_data),
        }
    }

    /// Where a database is written until it is whole; one that was left there is removed.
    pub(super) fn new_draft(&self) -> Result<PathBuf, Error> {
        let draft = self.path.join(DRAFT);
        match fs::remove_file(&draft) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.failed("write", error)),
            _ => Ok(draft),
        }
    }

    /// Makes the draft the database, also after a loss of power.
    pub(super) fn adopt_draft(&self) -> Result<(), Error> {
        let draft = self.path.join(DRAFT);
        let flush = |path: &Path| File::open(path).and_then(|file| file.sync_all());
        flush(&draft)
            .and_then(|()| fs::rename(&draft, self.file()))
            .and_then(|()| flush(&self.path))
            .and_then(|()| flush(&self.path.join("..")))
            .map_err(|source| self.failed("write", source))
    }

    fn failed(&self, action: &'static str, source: io::Error) -> Error {
        Error::Folder { path: self.path.clone(), action, source }
    }
}
