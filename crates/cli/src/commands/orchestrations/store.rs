//! Which store a path means, and how it is opened: to read, also while a process has it; to change, for this alone.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use narrows_durable::store::{ClassicStore, FileReader, FileStore, FileStoreOptions, Store, StoreError};
use narrows_durable::{Error, HubMaintenance, HubReader, InstanceId, Status};

use crate::exit::{Failure, with_causes};
use crate::stderr;

/// The file of a hub in SQLite, in its folder.
pub(super) const DATABASE: &str = "hub.db";
/// Identifiers that a mistaken one is compared with.
const COMPARED_MAX: usize = 100_000;
/// Identifiers that a hint names.
const HINTED_MAX: usize = 3;

/// A store that a path means.
#[derive(Debug)]
pub(super) enum StorePath {
    Files(PathBuf),
    Classic(PathBuf),
}

impl StorePath {
    pub(super) fn at(path: &Path) -> Result<Self, Failure> {
        if path.is_file() {
            return Ok(Self::Classic(path.to_owned()));
        }
        if path.join("hub").is_file() {
            return Ok(Self::Files(path.to_owned()));
        }
        if path.join(DATABASE).is_file() {
            return Ok(Self::Classic(path.join(DATABASE)));
        }
        let shown = path.display();
        let what = if path.is_dir() {
            format!("{shown} is not a hub: it has neither a file `hub` nor a database `{DATABASE}`")
        } else {
            format!("folder {shown} does not exist")
        };
        if path.join("p0").is_dir() {
            let hint = format!("`narrows orchestrations repair {shown}` recovers a hub that lost this file");
            return Err(Failure::new(what).hint(hint));
        }
        Err(Failure::new(what).hint("use the folder that the program passes to `FileStore::open`"))
    }

    /// Notes that a process has the hub open, because what is read then changes.
    pub(super) fn note_holder(&self) {
        let Self::Files(folder) = self else { return };
        if let Some(process) = FileReader::new(folder).holder() {
            stderr::say(&format!("note: process {process} has the hub open: this is its state a moment ago"));
        }
    }

    /// Opens the hub and runs a query on it.
    pub(super) fn read<T>(&self, query: impl Fn(&HubReader) -> Result<T, Error>) -> Result<T, Failure> {
        let store = self.reader().map_err(|error| self.explain(&error.into()))?;
        HubReader::read(&store, query).map_err(|error| self.explain(&error))
    }

    fn reader(&self) -> Result<Arc<dyn Store>, StoreError> {
        Ok(match self {
            Self::Files(folder) => Arc::new(FileReader::new(folder)),
            Self::Classic(database) => Arc::new(ClassicStore::open_for_reading(database)?),
        })
    }

    /// Takes the hub, so that no process opens it meanwhile, and changes something in it.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut HubMaintenance) -> Result<T, Error>) -> Result<T, Failure> {
        let changed = || -> Result<T, Error> {
            let store: Arc<dyn Store> = match self {
                Self::Files(folder) => Arc::new(FileStore::open(folder, FileStoreOptions::default())?),
                Self::Classic(database) => Arc::new(ClassicStore::open(database)?),
            };
            let mut maintenance = HubMaintenance::open(store)?;
            let changed = change(&mut maintenance)?;
            maintenance.close()?;
            Ok(changed)
        };
        changed().map_err(|error| self.explain(&error))
    }

    /// An error with what to do about it.
    pub(super) fn explain(&self, error: &Error) -> Failure {
        let failure = Failure::new(with_causes(error));
        let (Error::Store(source) | Error::Stopped { source, .. }) = error else { return failure };
        match source {
            StoreError::InUse { by, .. } => failure.hint(match self {
                Self::Files(_) => {
                    format!(
                        "{by} can do it through its `Client`; else end it first (`list` and `history` work meanwhile)"
                    )
                }
                Self::Classic(_) => format!("only one process can open a hub in SQLite: end {by} first"),
            }),
            _ => match error.hint() {
                Some(hint) => failure.hint(hint),
                None => failure,
            },
        }
    }
}

/// Reports that there is no such instance, and which ones have similar names.
pub(super) fn unknown(found: &StorePath, id: &InstanceId) -> Failure {
    let failure = Failure::new(Error::NotFound(id.clone()));
    let near = found.read(|reader| near(reader, id.as_str())).unwrap_or_default();
    if near.is_empty() {
        return failure.hint("`narrows orchestrations list HUB` lists them");
    }
    failure.hint(format!("did you mean {}?", near.join(" or ")))
}

/// Identifiers that begin like `text`, or else the nearest.
fn near(reader: &HubReader, text: &str) -> Result<Vec<String>, Error> {
    let filter = narrows_durable::Filter { statuses: Status::ALL.to_vec(), ..Default::default() };
    let mut ids = Vec::new();
    reader.each(&filter, |view| {
        if ids.len() < COMPARED_MAX {
            ids.push(view.id.as_str().to_owned());
        }
    })?;
    let mut near: Vec<&str> = ids.iter().map(String::as_str).filter(|id| id.starts_with(text)).collect();
    near.sort_unstable();
    near.truncate(HINTED_MAX);
    if near.is_empty() {
        let known: Vec<&str> = ids.iter().map(String::as_str).collect();
        near.extend(narrows_lab::experiment::nearest(text, &known));
    }
    Ok(near.into_iter().map(|id| format!("`{id}`")).collect())
}
