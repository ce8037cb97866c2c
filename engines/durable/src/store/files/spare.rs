//! Files kept ready to become segments: full of zeros or of an older segment's bytes, and with room on the disk.
//!
//! To overwrite bytes that the disk has is several times faster than to append to a file that grows. A thread of its
//! own fills files ahead, so that no append waits for it; if none is ready, the append makes do with an empty one.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use super::disk::{self, Disk, DiskFile};
use crate::store::StoreError;

/// Files kept ready at most; more than that are removed.
const READY_MAX: usize = 8;
/// Wishes that wait for the thread at most; more would create files that are not needed.
const WISHES_MAX: usize = 8;
const CHUNK: usize = 1 << 20;

/// Who fills files ahead.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FillMode {
    /// A thread.
    Ahead,
    /// The caller of `wish`, at once: for simulations, which have one thread.
    #[cfg(test)]
    AtOnce,
}

/// The files that are ready, and the thread that makes more.
#[derive(Debug)]
pub(super) struct Spares {
    folder: PathBuf,
    bytes: u64,
    maker: Arc<Maker>,
    wish: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Ready {
    files: Vec<PathBuf>,
    next: u64,
}

impl Spares {
    /// Takes up the files of a folder, which is made if need be. `bytes` is the size of a segment.
    pub(super) fn open(disk: Arc<dyn Disk>, folder: &Path, bytes: u64, filling: FillMode) -> Result<Self, StoreError> {
        disk::make_folder(&*disk, folder)?;
        let mut ready = Ready::default();
        let mut found = disk::list(&*disk, folder)?;
        found.sort_by(|one, other| one.name.cmp(&other.name));
        for path in found.into_iter().map(|found| folder.join(found.name)) {
            let is_whole = disk.bytes(&path).is_ok_and(|found| found == bytes);
            if is_whole && ready.files.len() < READY_MAX && is_spare(&path) {
                // The process that filled it may have been killed before its length was on the disk.
                let synced = disk.open(&path).and_then(|file| file.sync());
                synced.map_err(|error| disk::failed("sync", &path, None, &error))?;
                ready.files.push(path);
            } else {
                disk::remove(&*disk, &path)?;
            }
        }
        // Names are taken again only after the file that had them is gone.
        ready.next = ready.files.iter().filter_map(|path| spare_number(path)).max().map_or(0, |number| number + 1);
        let maker = Arc::new(Maker { disk, folder: folder.to_owned(), bytes, ready: Mutex::new(ready) });
        let mut spares = Self { folder: folder.to_owned(), bytes, maker, wish: None, thread: None };
        if filling == FillMode::Ahead {
            let (wish, wishes) = sync_channel(WISHES_MAX);
            let maker = Arc::clone(&spares.maker);
            let thread = std::thread::Builder::new()
                .name("durable-spares".to_owned())
                .spawn(move || maker.run(&wishes))
                .map_err(|error| disk::failed("start a thread for", folder, None, &error))?;
            (spares.wish, spares.thread) = (Some(wish), Some(thread));
        }
        Ok(spares)
    }

    /// Requests that one more be ready; does not wait.
    pub(super) fn wish(&self) {
        match &self.wish {
            // A queue that is full says the same.
            Some(wish) => drop(wish.try_send(())),
            None => self.maker.make(),
        }
    }

    /// A file of at least `bytes`, under the path given. Its length is durable, and its name is once the folder is
    /// synced.
    pub(super) fn take(&self, path: &Path, bytes: u64) -> io::Result<Box<dyn DiskFile>> {
        let ready = if bytes <= self.bytes { self.maker.lock().files.pop() } else { None };
        self.wish();
        let disk = &self.maker.disk;
        let Some(spare) = ready else {
            let file = disk.create(path, bytes.max(self.bytes))?;
            // A file that is shorter than its head says counts as cut, so the length comes before the head.
            file.sync()?;
            return Ok(file);
        };
        disk.rename(&spare, path)?;
        disk.open(path)
    }

    /// Takes back a segment that is not needed any more.
    pub(super) fn give(&self, segment: &Path) -> Result<(), StoreError> {
        let disk = &*self.maker.disk;
        let is_whole = disk.bytes(segment).is_ok_and(|found| found == self.bytes);
        let mut ready = self.maker.lock();
        if !is_whole || ready.files.len() >= READY_MAX {
            return disk::remove(disk, segment);
        }
        let path = spare_path(&self.folder, ready.next);
        ready.next += 1;
        disk.rename(segment, &path).map_err(|error| disk::failed("rename", segment, None, &error))?;
        ready.files.push(path);
        Ok(())
    }
}

impl Drop for Spares {
    fn drop(&mut self) {
        self.wish = None;
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has nothing more to say.
            let _ = thread.join();
        }
    }
}

#[derive(Debug)]
struct Maker {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
    bytes: u64,
    ready: Mutex<Ready>,
}

impl Maker {
    fn lock(&self) -> std::sync::MutexGuard<'_, Ready> {
        // A list of paths is whole at every moment.
        self.ready.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, wishes: &Receiver<()>) {
        while wishes.recv().is_ok() {
            self.make();
        }
    }

    fn make(&self) {
        let path = {
            let mut ready = self.lock();
            if ready.files.len() >= READY_MAX {
                return;
            }
            ready.next += 1;
            spare_path(&self.folder, ready.next - 1)
        };
        match self.fill(&path) {
            Ok(()) => self.lock().files.push(path),
            // No room, or no right: an append that needs the room will say so with its own place.
            Err(_) => drop(self.disk.remove(&path)),
        }
    }

    fn fill(&self, path: &Path) -> io::Result<()> {
        let file = self.disk.create(path, 0)?;
        let zeros = vec![0; CHUNK.min(self.bytes as usize)];
        let mut at = 0;
        while at < self.bytes {
            let now = zeros.len().min((self.bytes - at) as usize);
            file.write_at(&zeros[..now], at)?;
            at += now as u64;
        }
        file.sync()
    }
}

fn spare_path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("spare-{number}"))
}

fn spare_number(path: &Path) -> Option<u64> {
    path.file_name()?.to_str()?.strip_prefix("spare-")?.parse().ok()
}

fn is_spare(path: &Path) -> bool {
    spare_number(path).is_some()
}
