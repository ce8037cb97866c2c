//! The folder that keeps a store: an SQLite database with a write-ahead log, and one thread that writes it.
//!
//! Memory comes first: a partition changes under its lock and hands the change to the [`Journal`] under the same lock, so
//! the disk gets changes in the order in which they were made. The writer takes all that has gathered as one transaction,
//! and so many requests share one flush of the disk; each waits for its own ticket, without any lock, before its response
//! leaves. Documents belong to a partition by their effective key alone, so a split writes the ranges and no document.
//!
//! A folder is created under another name, filled, flushed and renamed: it is there with all its first documents or not at
//! all. A commit that fails ends all writing: what was acknowledged is in the folder, and what was not is refused from
//! then on, also to readers. Rows carry a CRC, the documents of each range are counted, and what was `acknowledged` is noted
//! in a file beside the database, because SQLite notices damage only in its own structures, and takes a log for one that
//! ends where it is damaged. A folder that has less than was acknowledged is refused; [`Repair`] says what it has lost.
//!
//! Deliberately absent: reading documents from the disk while serving (memory holds them all), and other versions of the
//! folder than this one.

mod acknowledged;
mod apply;
mod disk;
mod fault;
mod folder;
mod journal;
mod record;
mod repair;
mod rows;
mod schema;
#[cfg(test)]
mod tests;
mod writer;

use std::path::Path;

use rusqlite::Connection;

pub(crate) use self::fault::Unavailable;
pub(crate) use self::journal::{Journal, Ticket};
pub(crate) use self::record::{
    Change, ContainerRecord, Content, DatabaseRecord, Mark, RangeRecord, RangesRecord, Write,
};
pub use self::repair::Repair;

use self::acknowledged::{AcknowledgedFile, Commits};
use self::apply::Disk;
use self::fault::Fault;
use self::folder::Folder;
use self::writer::Writer;
use crate::held::Held;
use crate::{Error, Flush};

/// A folder that is open and not yet written to.
#[derive(Debug)]
pub(crate) struct Opened {
    folder: Folder,
    connection: Connection,
    content: Content,
    sync: Flush,
}

impl Opened {
    /// Opens the folder `path`, which is made unless it is there and then has what `fill` writes.
    pub(crate) fn open(path: &Path, sync: Flush, fill: impl FnOnce(&Journal)) -> Result<Self, Error> {
        let folder = Folder::lock(path)?;
        if !folder.has_data()? {
            create(&folder, fill)?;
        }
        let file = folder.file();
        let connection = disk::open(&file, sync).map_err(|fault| fault.of(&file))?;
        let content = disk::content(&connection).map_err(|fault| fault.of(&file))?;
        let loss = folder.loss(content.commits)?;
        loss.map_or(Ok(()), |loss| Err(Fault::Damaged(loss).of(&file)))?;
        Ok(Self { folder, connection, content, sync })
    }

    /// What the folder has besides documents.
    pub(crate) fn content(&self) -> &Content {
        &self.content
    }

    /// Hands every document of a container to `take`, by number; what `take` returns as an error is damage.
    pub(crate) fn documents(&self, container: u32, take: impl FnMut(Held) -> Result<(), String>) -> Result<(), Error> {
        disk::documents(&self.connection, container, take).map_err(|fault| fault.of(&self.folder.file()))
    }

    /// Something that the folder says is not so.
    pub(crate) fn damaged(&self, what: String) -> Error {
        Fault::Damaged(what).of(&self.folder.file())
    }

    /// Writes what `journal` is given from now on.
    pub(crate) fn serve(self, journal: &Journal) -> Result<(), Error> {
        let Self { folder, connection, content, sync } = self;
        disk::take(&connection).map_err(|error| Fault::from(error).of(&folder.file()))?;
        let acknowledged = folder.acknowledge(content.commits.unwrap_or_default(), sync)?;
        start(folder, Disk::new(connection, &content), Some(acknowledged), journal)
    }
}

fn start(folder: Folder, disk: Disk, acknowledged: Option<AcknowledgedFile>, journal: &Journal) -> Result<(), Error> {
    let path = folder.path().to_owned();
    let started = Writer::start(disk, acknowledged, folder, journal);
    started.map_err(|source| Error::Folder { path, action: "write", source })
}

fn create(folder: &Folder, fill: impl FnOnce(&Journal)) -> Result<(), Error> {
    let draft = folder.new_draft()?;
    let connection = disk::create(&draft).map_err(|fault| fault.of(&draft))?;
    let journal = Journal::new();
    start(folder.shared(), Disk::new(connection, &Content::default()), None, &journal)?;
    fill(&journal);
    journal.close().map_err(|Unavailable(why)| Fault::Failed(why).of(&draft))?;
    // Nothing is yet. Without this, a database without the file would have lost it.
    folder.acknowledge(Commits::default(), Flush::Always)?;
    folder.adopt_draft()
}
