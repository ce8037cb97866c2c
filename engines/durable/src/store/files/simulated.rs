//! A disk in memory that behaves like real ones: it keeps unsynced writes to itself, loses them with the power, in
//! any part and order, fails calls, and after a sync that failed shows bytes that it does not have.
//!
//! Names are kept as journals keep them: after a loss of power a prefix of what was done to them is there. What is
//! written into files is kept sector by sector, each or not.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use narrows_testing::Chance;

use super::disk::{Disk, DiskFile, FolderEntry};

/// Bytes that are written whole or not at all.
const SECTOR: usize = 512;

/// A disk. Clones of the handle are the same disk.
#[derive(Clone, Debug, Default)]
pub(crate) struct SimulatedDisk {
    state: Arc<Mutex<State>>,
}

#[derive(Clone, Debug, Default)]
struct State {
    files: Vec<Content>,
    names: BTreeMap<PathBuf, Entry>,
    names_durable: BTreeMap<PathBuf, Entry>,
    journal: Vec<Change>,
    /// Calls that change something, so far.
    calls: u64,
    /// The call that fails, and how.
    trouble: Option<(u64, Trouble)>,
    is_off: bool,
    chance: Chance,
}

/// Outcome of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Trouble {
    /// It fails; its write may be done in part, and its sync is forgotten.
    Fails,
    /// The power goes: it and all that follow fail, until [`SimulatedDisk::lose_power`].
    PowerGoes,
}

#[derive(Clone, Debug, Default)]
struct Content {
    shown: Vec<u8>,
    durable: Vec<u8>,
    unsynced: Vec<Write>,
}

#[derive(Clone, Debug)]
enum Write {
    Bytes(usize, Vec<u8>),
    Length(usize),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Entry {
    Folder,
    File(usize),
}

#[derive(Clone, Debug)]
enum Change {
    Add(PathBuf, Entry),
    Remove(PathBuf),
    Rename(PathBuf, PathBuf),
}

impl Change {
    fn apply(&self, names: &mut BTreeMap<PathBuf, Entry>) {
        match self {
            Self::Add(path, entry) => drop(names.insert(path.clone(), *entry)),
            Self::Remove(path) => drop(names.remove(path)),
            Self::Rename(from, to) => {
                if let Some(entry) = names.remove(from) {
                    names.insert(to.clone(), entry);
                }
            }
        }
    }

    fn touches(&self, folder: &Path) -> bool {
        match self {
            Self::Add(path, _) | Self::Remove(path) => path.parent() == Some(folder),
            Self::Rename(from, to) => from.parent() == Some(folder) || to.parent() == Some(folder),
        }
    }
}

impl Write {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Length(length) => bytes.resize(*length, 0),
            Self::Bytes(at, written) => {
                let end = at + written.len();
                if bytes.len() < end {
                    bytes.resize(end, 0);
                }
                bytes[*at..end].copy_from_slice(written);
            }
        }
    }

    /// The same in pieces that are kept or lost each on their own.
    fn sectors(&self) -> Vec<Self> {
        let Self::Bytes(at, written) = self else { return vec![self.clone()] };
        let mut pieces = Vec::new();
        let mut done = 0;
        while done < written.len() {
            let length = (SECTOR - (at + done) % SECTOR).min(written.len() - done);
            pieces.push(Self::Bytes(at + done, written[done..done + length].to_vec()));
            done += length;
        }
        pieces
    }
}

impl State {
    fn file(&self, path: &Path) -> io::Result<usize> {
        match self.names.get(path) {
            Some(Entry::File(file)) => Ok(*file),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Counts a call that changes something; whether it goes through.
    fn call(&mut self) -> io::Result<()> {
        if self.is_off {
            return Err(io::Error::other("the power is off"));
        }
        self.calls += 1;
        match self.trouble {
            Some((at, trouble)) if at <= self.calls => {
                self.trouble = None;
                self.is_off = trouble == Trouble::PowerGoes;
                Err(io::Error::other("Input/output error (made to happen)"))
            }
            _ => Ok(()),
        }
    }

    fn change(&mut self, change: Change) -> io::Result<()> {
        self.call()?;
        change.apply(&mut self.names);
        self.journal.push(change);
        Ok(())
    }

    /// Keeps some of the writes that were not synced: of each sector, all or nothing.
    fn keep_some(&mut self, file: usize) {
        let writes = std::mem::take(&mut self.files[file].unsynced);
        let share = 1 + self.chance.below(4);
        for piece in writes.iter().flat_map(Write::sectors) {
            if self.chance.below(4) < share {
                piece.apply(&mut self.files[file].durable);
            }
        }
    }

    fn write(&mut self, file: usize, write: &Write) -> io::Result<()> {
        if let Err(error) = self.call() {
            if self.is_off || self.chance.below(2) == 0 {
                return Err(error);
            }
            let pieces = write.sectors();
            let kept = self.chance.below(pieces.len() + 1);
            pieces[..kept].iter().for_each(|piece| self.put(file, piece));
            return Err(error);
        }
        self.put(file, write);
        Ok(())
    }

    fn put(&mut self, file: usize, write: &Write) {
        write.apply(&mut self.files[file].shown);
        self.files[file].unsynced.push(write.clone());
    }

    fn sync(&mut self, file: usize) -> io::Result<()> {
        if let Err(error) = self.call() {
            if !self.is_off {
                // The kernel has given the bytes up, still shows them, and will not try again.
                self.keep_some(file);
            }
            return Err(error);
        }
        for write in std::mem::take(&mut self.files[file].unsynced) {
            write.apply(&mut self.files[file].durable);
        }
        Ok(())
    }
}

impl SimulatedDisk {
    pub(crate) fn new(seed: u64) -> Self {
        let disk = Self::default();
        disk.state().chance = Chance::new(seed);
        disk
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("one thread")
    }

    /// Lets the call after `calls` more of them fail.
    pub(crate) fn trouble_after(&self, calls: u64, trouble: Trouble) {
        let state = &mut *self.state();
        state.trouble = Some((state.calls + calls + 1, trouble));
    }

    /// Cancels planned failures that have not happened.
    pub(crate) fn no_trouble(&self) {
        self.state().trouble = None;
    }

    /// Whether the power has gone.
    pub(crate) fn is_off(&self) -> bool {
        self.state().is_off
    }

    /// The power goes, and comes back: unsynced writes are there in part.
    pub(crate) fn lose_power(&self) {
        let state = &mut *self.state();
        let kept = {
            let most = state.journal.len();
            state.chance.below(most + 1)
        };
        for change in std::mem::take(&mut state.journal).iter().take(kept) {
            change.apply(&mut state.names_durable);
        }
        state.names = state.names_durable.clone();
        for file in 0..state.files.len() {
            state.keep_some(file);
            state.files[file].shown = state.files[file].durable.clone();
        }
        (state.is_off, state.trouble) = (false, None);
    }

    /// Another disk that holds the same at this moment.
    pub(crate) fn copy(&self) -> Self {
        Self { state: Arc::new(Mutex::new(self.state().clone())) }
    }

    /// All files, in order of their names.
    pub(crate) fn all_files(&self) -> Vec<PathBuf> {
        let state = self.state();
        state.names.iter().filter(|(_, entry)| matches!(entry, Entry::File(_))).map(|(path, _)| path.clone()).collect()
    }

    /// Changes the bytes of a file unnoticed. Gives the result of `change`.
    pub(crate) fn damage<T>(&self, path: &Path, damage: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        let state = &mut *self.state();
        let file = state.file(path).expect("a file");
        let content = &mut state.files[file];
        content.unsynced.clear();
        let done = damage(&mut content.shown);
        content.durable = content.shown.clone();
        done
    }

    /// Removes a file or a folder with all in it, behind the back of everybody.
    pub(crate) fn take_away(&self, path: &Path) {
        let state = &mut *self.state();
        state.journal.clear();
        state.names.retain(|found, _| !found.starts_with(path));
        state.names_durable = state.names.clone();
    }
}

impl Disk for SimulatedDisk {
    fn make_folder(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        if state.names.contains_key(path) {
            return Ok(());
        }
        state.change(Change::Add(path.to_owned(), Entry::Folder))
    }

    fn is_folder(&self, path: &Path) -> bool {
        path == Path::new("/") || self.state().names.get(path) == Some(&Entry::Folder)
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<FolderEntry>> {
        if !self.is_folder(folder) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let state = self.state();
        let inside = state.names.iter().filter(|(path, _)| path.parent() == Some(folder));
        let listed = inside.map(|(path, entry)| FolderEntry {
            name: path.file_name().expect("a name").to_string_lossy().into_owned(),
            is_folder: *entry == Entry::Folder,
        });
        Ok(listed.collect())
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let state = self.state();
        state.file(path).map(|file| state.files[file].shown.clone())
    }

    fn bytes(&self, path: &Path) -> io::Result<u64> {
        let state = self.state();
        state.file(path).map(|file| state.files[file].shown.len() as u64)
    }

    fn identity(&self, path: &Path) -> io::Result<(u64, i64)> {
        self.state().file(path).map(|file| (file as u64, 0))
    }

    fn create(&self, path: &Path, bytes: u64) -> io::Result<Box<dyn DiskFile>> {
        let state = &mut *self.state();
        let file = state.files.len();
        state.change(Change::Add(path.to_owned(), Entry::File(file)))?;
        state.files.push(Content::default());
        state.put(file, &Write::Length(bytes as usize));
        Ok(Box::new(SimulatedFile { disk: self.clone(), file }))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let file = self.state().file(path)?;
        Ok(Box::new(SimulatedFile { disk: self.clone(), file }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.state().change(Change::Rename(from.to_owned(), to.to_owned()))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let state = &mut *self.state();
        state.file(path)?;
        state.change(Change::Remove(path.to_owned()))
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        let state = &mut *self.state();
        state.call()?;
        let last = state.journal.iter().rposition(|change| change.touches(path));
        for change in state.journal.drain(..last.map_or(0, |last| last + 1)) {
            change.apply(&mut state.names_durable);
        }
        Ok(())
    }
}

#[derive(Debug)]
struct SimulatedFile {
    disk: SimulatedDisk,
    file: usize,
}

impl DiskFile for SimulatedFile {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.disk.state().write(self.file, &Write::Bytes(offset as usize, bytes.to_vec()))
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.state().sync(self.file)
    }

    fn bytes(&self) -> io::Result<u64> {
        Ok(self.disk.state().files[self.file].shown.len() as u64)
    }
}
