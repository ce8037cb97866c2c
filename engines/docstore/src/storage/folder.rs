//! The folder on the disk: whose it is, and how its database comes to be there as a whole.
//!
//! The lock is one of the kernel's on the file `lock`, which ends with the process however that ends; the file holds the
//! number of the process, for the one that finds the folder in use.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::acknowledgement::{AcknowledgedFile, Commits, Note};
use crate::{Error, Flush};

const DATA: &str = "docstore.sqlite";
const DRAFT: &str = "docstore.sqlite.new";
/// SQLite's name for the log of [`DATA`].
const LOG: &str = "docstore.sqlite-wal";
/// File with the last acknowledged commit.
const ACKNOWLEDGED: &str = "acknowledged";
const LOCK: &str = "lock";

/// Maximum number of folders with copies of damaged files.
const KEPT_MAX: usize = 99;

/// A folder that this process has for itself for as long as the value lives.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    lock: Arc<File>,
}

impl Folder {
    /// Makes the folder unless it is there, and locks it.
    pub(super) fn lock(path: &Path) -> Result<Self, Error> {
        fs::create_dir_all(path).map_err(|source| Error::Folder { path: path.to_owned(), action: "make", source })?;
        Self::lock_existing(path)
    }

    /// Locks an existing folder.
    pub(super) fn lock_existing(path: &Path) -> Result<Self, Error> {
        let failed = |action| move |source| Error::Folder { path: path.to_owned(), action, source };
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
            (false, false) => match self.acknowledged()? {
                Note::Missing => Ok(false),
                // It is written before a new database exists.
                Note::Read(noted) if noted.commits == Commits::default() => Ok(false),
                Note::Damaged | Note::Read(_) => {
                    let what = format!("the file {ACKNOWLEDGED} is there, but not this one");
                    Err(Error::Damaged { file: self.file(), what })
                }
            },
            (has_data, _) => Ok(has_data),
        }
    }

    /// Whether the log was copied into the database, as SQLite does on a clean close.
    pub(super) fn is_closed(&self) -> bool {
        matches!(self.path.join(LOG).try_exists(), Ok(false))
    }

    /// A description of acknowledged commits that the database has lost; `None` if it has them all.
    pub(super) fn loss(&self, found: Option<Commits>) -> Result<Option<String>, Error> {
        let commits = found.unwrap_or_default();
        Ok(match (self.acknowledged()?, found) {
            // A new folder, or one of a version without this file.
            (Note::Missing, None) => None,
            (Note::Missing, Some(_)) => {
                Some(format!("the file {ACKNOWLEDGED} is missing, which says what was acknowledged"))
            }
            (Note::Damaged, _) => {
                Some(format!("the file {ACKNOWLEDGED}, which says what was acknowledged, is damaged"))
            }
            (Note::Read(noted), _) if noted.is_binding() && noted.commits.number > commits.number => {
                let Commits { number, documents } = noted.commits;
                let missing = number - commits.number;
                Some(format!(
                    "of {number} commits that were acknowledged the last {missing} are missing: it had {documents} \
                     documents and has {}",
                    commits.documents
                ))
            }
            (Note::Read(_), _) => None,
        })
    }

    /// The last acknowledged commit.
    pub(super) fn acknowledged(&self) -> Result<Note, Error> {
        Note::read(&self.path.join(ACKNOWLEDGED)).map_err(|source| self.failed("read", source))
    }

    /// Records acknowledged commits from now on.
    pub(super) fn acknowledge(&self, commits: Commits, sync: Flush) -> Result<AcknowledgedFile, Error> {
        let opened = AcknowledgedFile::open(&self.path.join(ACKNOWLEDGED), commits, sync);
        opened.map_err(|source| self.failed("write", source))
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
        flush(&draft)
            .and_then(|()| fs::rename(&draft, self.file()))
            .and_then(|()| flush(&self.path))
            .and_then(|()| flush(&self.path.join("..")))
            .map_err(|source| self.failed("write", source))
    }

    /// Copies the database and the files beside it to a subfolder, whose path is returned.
    pub(super) fn keep_damaged(&self) -> Result<PathBuf, Error> {
        let mut places = (1..=KEPT_MAX).map(|number| self.path.join(format!("damaged-{number}")));
        let is_free = |place: &PathBuf| matches!(place.try_exists(), Ok(false));
        let too_many = || io::Error::other(format!("{KEPT_MAX} copies of damaged files are there already"));
        let copy = |place: &Path| {
            fs::create_dir(place)?;
            for name in [DATA, LOG, ACKNOWLEDGED] {
                match fs::copy(self.path.join(name), place.join(name)) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    copied => {
                        copied?;
                        flush(&place.join(name))?;
                    }
                }
            }
            flush(place)
        };
        let place = places.find(is_free).ok_or_else(|| self.failed("write", too_many()))?;
        copy(&place).and_then(|()| flush(&self.path)).map_err(|source| self.failed("write", source))?;
        Ok(place)
    }

    /// Removes the log, so that another database does not use it.
    pub(super) fn remove_log(&self) -> Result<(), Error> {
        match fs::remove_file(self.path.join(LOG)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.failed("write", error)),
            _ => flush(&self.path).map_err(|source| self.failed("write", source)),
        }
    }

    fn failed(&self, action: &'static str, source: io::Error) -> Error {
        Error::Folder { path: self.path.clone(), action, source }
    }
}

fn flush(path: &Path) -> io::Result<()> {
    File::open(path).and_then(|file| file.sync_all())
}
