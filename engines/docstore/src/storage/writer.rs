//! The thread that writes: all changes that have gathered, one transaction, one flush, again.

use std::io;
use std::sync::Arc;
use std::thread;

use super::acknowledgement::AcknowledgedFile;
use super::apply::Disk;
use super::fault::Fault;
use super::folder::Folder;
use super::journal::{Group, Journal, Shared};

/// State of the thread. The folder is locked until it ends.
#[derive(Debug)]
pub(super) struct Writer {
    shared: Arc<Shared>,
    disk: Disk,
    /// `None` for a draft, which acknowledges nothing.
    acknowledged: Option<AcknowledgedFile>,
    folder: Folder,
}

impl Writer {
    /// Writes what `journal` is given, until it is closed.
    pub(super) fn start(
        disk: Disk,
        acknowledged: Option<AcknowledgedFile>,
        folder: Folder,
        journal: &Journal,
    ) -> io::Result<()> {
        let Some(shared) = journal.shared() else { return Ok(()) };
        let mut writer = Self { shared: Arc::clone(&shared), disk, acknowledged, folder };
        let thread = thread::Builder::new().name("docstore-writer".to_owned()).spawn(move || {
            let ending = WriterGuard(Arc::clone(&writer.shared));
            writer.run();
            writer.end();
            drop(ending);
        })?;
        shared.written_by(thread);
        Ok(())
    }

    fn run(&mut self) {
        while let Some(group) = self.shared.next_group() {
            if let Err(error) = self.write(&group) {
                self.disk.leave();
                self.acknowledged = None;
                self.shared.fail(&format!("the folder {} cannot be written: {error}", self.folder.path().display()));
                self.shared.give_back(&group);
                return self.discard();
            }
            self.shared.committed(&group);
        }
    }

    fn write(&mut self, group: &Group) -> Result<(), Fault> {
        let commits = self.disk.commit(&group.changes)?;
        if let Some(file) = &self.acknowledged {
            file.write(commits).map_err(|error| Fault::Failed(error.to_string().into()))?;
        }
        Ok(())
    }

    /// Closes and thereby flushes the database before the folder is unlocked.
    fn end(self) {
        let Self { disk, acknowledged, folder, .. } = self;
        let commits = disk.commits();
        drop(disk);
        if let Some(file) = acknowledged
            && folder.is_closed()
        {
            // If this fails, the file keeps its previous content.
            let _ = file.flushed(commits);
        }
    }

    /// Drops later changes, which are refused, so that the folder stays locked until the store closes.
    fn discard(&self) {
        while let Some(group) = self.shared.next_group() {
            self.shared.give_back(&group);
        }
    }
}

/// Tells everyone who waits that the thread has ended, also by a panic.
struct WriterGuard(Arc<Shared>);

impl Drop for WriterGuard {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.fail("the writer has ended by a panic");
        }
    }
}
