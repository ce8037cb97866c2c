//! Files kept ready to become segments: full of zeros, or of what an older segment held, and with room on the disk.
//!
//! To overwrite bytes that the disk has is several times faster than to append to a file that grows. A thread of its
//! own fills files ahead, so that no append waits for it; if none is ready, the append makes do with an empty one.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use super::disk;
use crate::store::StoreError;

/// Files kept ready at most; more than that are removed.
const READY_MAX: usize = 8;
/// Wishes that wait for the thread at most; more would create files that nobody needs.
const WISHES_MAX: usize = 8;
const CHUNK: usize = 1 << 20;

/// The files that are ready, and the thread that makes more.
#[derive(Debug)]
pub(super) struct Spares {
    folder: PathBuf,
    bytes: u64,
    ready: Arc<Mutex<Ready>>,
    wish: Option<SyncSender<()>>,
    maker: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Ready {
    files: Vec<PathBuf>,
    next: u64,
}

impl Spares {
    /// Takes up the files of a folder, which is made if need be. `bytes` is the size of a segment.
    pub(super) fn open(folder: &Path, bytes: u64) -> Result<Self, StoreError> {
        disk::make_folder(folder)?;
        let entries = std::fs::read_dir(folder).map_err(|error| disk::failed("list", folder, None, &error))?;
        let mut ready = Ready::default();
        for path in entries.flatten().map(|entry| entry.path()) {
            let is_whole = path.metadata().is_ok_and(|data| data.len() == bytes);
            if is_whole && ready.files.len() < READY_MAX && is_spare(&path) {
                ready.files.push(path);
            } else {
                disk::remove(&path)?;
            }
        }
        // Names are taken again only after the file that had them is gone.
        ready.next = ready.files.iter().filter_map(|path| spare_number(path)).max().map_or(0, |number| number + 1);
        let ready = Arc::new(Mutex::new(ready));
        let (wish, wishes) = sync_channel(WISHES_MAX);
        let maker = Maker { folder: folder.to_owned(), bytes, ready: Arc::clone(&ready) };
        let maker = std::thread::Builder::new()
            .name("durable-spares".to_owned())
            .spawn(move || maker.run(&wishes))
            .map_err(|error| disk::failed("start a thread for", folder, None, &error))?;
        Ok(Self { folder: folder.to_owned(), bytes, ready, wish: Some(wish), maker: Some(maker) })
    }

    /// Requests that one more be ready; does not wait.
    pub(super) fn wish(&self) {
        if let Some(wish) = &self.wish {
            let _ = wish.try_send(());
        }
    }

    /// A file of at least `bytes`, under the path given, open for reading and writing.
    pub(super) fn take(&self, path: &Path, bytes: u64) -> io::Result<File> {
        let ready = if bytes <= self.bytes { lock(&self.ready).files.pop() } else { None };
        self.wish();
        let Some(spare) = ready else {
            let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path)?;
            file.set_len(bytes.max(self.bytes))?;
            return Ok(file);
        };
        std::fs::rename(&spare, path)?;
        OpenOptions::new().read(true).write(true).open(path)
    }

    /// Takes back a segment that is not needed any more.
    pub(super) fn give(&self, segment: &Path) -> Result<(), StoreError> {
        let is_whole = segment.metadata().is_ok_and(|data| data.len() == self.bytes);
        let mut ready = lock(&self.ready);
        if !is_whole || ready.files.len() >= READY_MAX {
            return disk::remove(segment);
        }
        let path = spare_path(&self.folder, ready.next);
        ready.next += 1;
        std::fs::rename(segment, &path).map_err(|error| disk::failed("rename", segment, None, &error))?;
        ready.files.push(path);
        Ok(())
    }
}

impl Drop for Spares {
    fn drop(&mut self) {
        self.wish = None;
        if let Some(maker) = self.maker.take() {
            let _ = maker.join();
        }
    }
}

struct Maker {
    folder: PathBuf,
    bytes: u64,
    ready: Arc<Mutex<Ready>>,
}

impl Maker {
    fn run(&self, wishes: &Receiver<()>) {
        while wishes.recv().is_ok() {
            let number = {
                let mut ready = lock(&self.ready);
                if ready.files.len() >= READY_MAX {
                    continue;
                }
                ready.next += 1;
                ready.next - 1
            };
            let path = spare_path(&self.folder, number);
            match self.fill(&path) {
                Ok(()) => lock(&self.ready).files.push(path),
                // No room, or no right: an append that needs the room will say so with its own place.
                Err(_) => drop(std::fs::remove_file(&path)),
            }
        }
    }

    fn fill(&self, path: &Path) -> io::Result<()> {
        let mut file = File::create(path)?;
        let zeros = vec![0; CHUNK];
        let mut left = self.bytes;
        while left > 0 {
            let now = left.min(CHUNK as u64);
            file.write_all(&zeros[..now as usize])?;
            left -= now;
        }
        file.sync_all()
    }
}

fn lock(ready: &Mutex<Ready>) -> std::sync::MutexGuard<'_, Ready> {
    // A list of paths is whole at every moment.
    ready.lock().unwrap_or_else(PoisonError::into_inner)
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
