//! The folder that stores the data: an SQLite database with a write-ahead log, and one thread that writes it.
//!
//! Memory changes first: a partition changes under its lock and passes the change to the [`Journal`] under the same
//! lock, so the disk gets changes in the order in which they were made. The writer commits all collected changes in one
//! transaction, so many requests share one flush of the disk. Each request waits for its own ticket, without any lock,
//! before its response is sent. Documents belong to a partition by their effective key alone, so a split writes only
//! the ranges and no document.
//!
//! A folder is created under another name, filled, flushed and renamed: it exists with all its first documents or not
//! at all. A commit that fails ends all writing: acknowledged changes are in the folder, and everything else is refused
//! from then on, including reads of unacknowledged changes. Rows carry a CRC, the documents of each range are counted,
//! and a file beside the database holds the last acknowledged commit (`acknowledged`), because SQLite notices damage
//! only in its own structures, and treats a damaged log as one that ends at the damage. A folder that has less than was
//! acknowledged is refused; [`Repair`] reports the loss.
//!
//! Deliberately absent: reading documents from disk while serving (memory holds them all), and folders of other
//! versions.

mod acknowledgement;
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

use self::acknowledgement::{AcknowledgedFile, Commits};
use self::apply::Disk;
use self::fault::Fault;
use self::folder::Folder;
use self::writer::Writer;
use crate::stored_document::StoredDocument;
use crate::{Error, Flush};

/// A folder that is open and not yet written to.
#[derive(Debug)]
pub(crate) struct OpenFolder {
    folder: Folder,
    connection: Connection,
    content: Content,
    sync: Flush,
}

impl OpenFolder {
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

    /// Content of the folder besides documents.
    pub(crate) fn content(&self) -> &Content {
        &self.content
    }

    /// Hands every document of a container to `take`, by number; what `take` returns as an error is damage.
    pub(crate) fn documents(
        &self,
        container: u32,
        take: impl FnMut(StoredDocument) -> Result<(), String>,
    ) -> Result<(), Error> {
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
    // No commit is acknowledged yet. Without this, a database without the file would count as damaged.
    folder.acknowledge(Commits::default(), Flush::Always)?;
    folder.adopt_draft()
}
