//! The store that is simulated: the real one, on a disk that loses, fails and lies.
//!
//! Beside it stands an archive of all frames that were acknowledged, also those that were cut off. What the store gives
//! back after a crash is held against it, and a partition recovered from a snapshot against one that is built from the
//! whole log.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use narrows_testing::Chance;

use crate::codec::{BlobRef, CodecError, Entry, FORMAT, Fetch, Skip, read_frame};
use crate::ids::{Epoch, PartitionId, Position};
use crate::partition::spill::blob_name;
use crate::payload::Payload;
use crate::store::files::simulated::SimulatedDisk;
use crate::store::{Batching, FileStore, FrameBatch, HubShape, Location, Store, StoreError, Visit};

/// Bytes of a segment: few frames fill one.
const SEGMENT_BYTES: u64 = 8 << 10;
const FOLDER: &str = "/hub";

/// Logs and blobs.
pub(super) struct Disk {
    batching: Batching,
    shape: HubShape,
    /// The longest frame that it takes.
    frame_bytes_max: usize,
    pub(super) machine: SimulatedDisk,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    files: Option<Arc<FileStore>>,
    epochs: Vec<Epoch>,
    archive: Vec<Vec<Vec<u8>>>,
    refuses_reads: bool,
}

impl Disk {
    pub(super) fn new(partitions: u16, batching: Batching, frame_bytes_max: usize, seed: u64) -> Self {
        let shape = HubShape { partitions, format: FORMAT };
        let state = State { archive: vec![Vec::new(); partitions.into()], ..State::default() };
        Self { batching, shape, frame_bytes_max, machine: SimulatedDisk::new(seed), state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("one thread")
    }

    fn files(&self) -> Arc<FileStore> {
        Arc::clone(self.state().files.as_ref().expect("it is open"))
    }

    fn frames(&self, partition: PartitionId) -> Vec<Vec<u8>> {
        self.state().archive[usize::from(partition.0)].clone()
    }

    /// Opens the store, as a process does that begins.
    pub(super) fn open(&self) {
        self.try_open().expect("what the disk holds is a hub");
    }

    /// Archives the frames of a log that were not acknowledged, and gives them. All acknowledged ones must be there.
    pub(super) fn take_up(&self, partition: PartitionId) -> Result<Vec<Vec<u8>>, StoreError> {
        let (known, mut found) = (self.end(partition), Vec::new());
        let end = self.files().read(partition, known, &mut |_, frame| {
            found.push(frame.to_vec());
            Ok(())
        })?;
        assert!(end >= known, "the log of {partition} ends at {}, {} frames were relied on", end.0, known.0);
        self.state().archive[usize::from(partition.0)].extend(found.iter().cloned());
        Ok(found)
    }

    /// Writes frames behind the last one.
    pub(super) fn write(&self, partition: PartitionId, batch: &FrameBatch) -> Result<(), StoreError> {
        let epoch = self.state().epochs[usize::from(partition.0)];
        self.append(partition, epoch, self.end(partition), batch)
    }

    /// Where a log ends, as far as was acknowledged.
    pub(super) fn end(&self, partition: PartitionId) -> Position {
        Position(self.state().archive[usize::from(partition.0)].len() as u64)
    }

    /// Whether reads of blobs fail from now on.
    pub(super) fn refuse_reads(&self, refuses: bool) {
        self.state().refuses_reads = refuses;
    }

    pub(super) fn cut(&self, partition: PartitionId, before: Position) -> Result<(), StoreError> {
        assert!(before <= self.end(partition), "the log of {partition} was cut behind its end");
        let epoch = self.state().epochs[usize::from(partition.0)];
        self.truncate(partition, epoch, before)
    }

    /// A damaged copy, and a description of the damage: a flipped bit, a file cut short or removed, the newest segment cut or
    /// removed, or a partition's folder removed. Large payloads are left alone: they are read only when they are needed.
    pub(super) fn damaged(&self, chance: &mut Chance) -> (Self, String) {
        let copy = self.copy();
        let needed = |path: &PathBuf| !path.starts_with("/hub/spare") && !path.to_string_lossy().contains("/payload/");
        let files: Vec<PathBuf> = self.machine.all_files().into_iter().filter(needed).collect();
        let folder = Path::new(FOLDER).join(format!("p{}", chance.below(self.shape.partitions.into())));
        let begin = folder.join("log-").to_string_lossy().into_owned();
        let newest = files.iter().rfind(|path| path.to_string_lossy().starts_with(&begin));
        let path = match newest {
            Some(newest) if chance.one_in(2) => newest,
            _ => &files[chance.below(files.len())],
        };
        let (gone, what) = match chance.below(6) {
            0 => (Some(path.clone()), "is gone".to_owned()),
            1 => (Some(folder), "is gone".to_owned()),
            2 => (Some(Path::new(FOLDER).join("hub")), "is gone".to_owned()),
            3 | 4 => (None, copy.machine.damage(path, |bytes| cut(bytes, chance))),
            _ => (None, copy.machine.damage(path, |bytes| flip(bytes, chance))),
        };
        if let Some(gone) = &gone {
            copy.machine.take_away(gone);
        }
        (copy, format!("{} {what}", gone.as_ref().unwrap_or(path).display()))
    }

    /// A copy on which the end of the log of a partition is lost, and which partition that is: its newest segment holds
    /// nothing from some place on, as after a disk that forgets confirmed writes.
    pub(super) fn without_an_end(&self, chance: &mut Chance) -> (Self, PartitionId) {
        let partition = PartitionId(chance.below(self.shape.partitions.into()) as u16);
        let copy = self.copy();
        let begin = Path::new(FOLDER).join(format!("p{partition}")).join("log-").to_string_lossy().into_owned();
        let files = self.machine.all_files();
        if let Some(newest) = files.iter().rfind(|path| path.to_string_lossy().starts_with(&begin)) {
            copy.machine.damage(newest, |bytes| {
                let place = used_place(bytes, chance);
                bytes[place..].fill(0);
                String::new()
            });
        }
        (copy, partition)
    }

    /// Whether another partition has taken messages that a log ending here did not send, or knows of more taken here.
    pub(super) fn is_missed(&self, partition: PartitionId, end: Position) -> bool {
        let ends = usize::try_from(end.0).expect("a short log");
        let own = self.frames(partition).into_iter().take(ends);
        let (mut sent, mut taken) = (BTreeMap::new(), BTreeMap::new());
        each_entry(own, &mut |entry| match entry {
            Entry::Sent { to, sequence, .. } => drop(sent.insert(to, sequence)),
            Entry::Consumed { from, up_to } => drop(taken.insert(from, up_to)),
            _ => {}
        });
        let mut is_missed = false;
        for other in (0..self.shape.partitions).map(PartitionId).filter(|other| *other != partition) {
            let most = |of: &BTreeMap<PartitionId, u64>| of.get(&other).copied().unwrap_or(0);
            each_entry(self.frames(other).into_iter(), &mut |entry| match entry {
                Entry::Consumed { from, up_to } if from == partition => is_missed |= up_to > most(&sent),
                Entry::Acknowledged { to, up_to } if to == partition => is_missed |= up_to > most(&taken),
                _ => {}
            });
        }
        is_missed
    }

    fn copy(&self) -> Self {
        Self {
            machine: self.machine.copy(),
            state: Mutex::new(State { archive: self.state().archive.clone(), ..State::default() }),
            ..Self::new(self.shape.partitions, self.batching, self.frame_bytes_max, 0)
        }
    }

    /// Opens a store that may be damaged.
    pub(super) fn try_open(&self) -> Result<(), StoreError> {
        self.state().files = None;
        let files = FileStore::simulated(Arc::new(self.machine.clone()), Path::new(FOLDER), SEGMENT_BYTES)?;
        files.open_or_create(self.shape)?;
        let epochs = (0..self.shape.partitions).map(|id| files.acquire(PartitionId(id), "it"));
        let epochs = epochs.collect::<Result<Vec<Epoch>, StoreError>>()?;
        let mut state = self.state();
        (state.files, state.epochs) = (Some(Arc::new(files)), epochs);
        Ok(())
    }
}

fn each_entry(frames: impl Iterator<Item = Vec<u8>>, each: &mut dyn FnMut(Entry<'_>)) {
    for frame in frames {
        let read = read_frame(&frame, &mut Skip, &mut |_, entry| {
            each(entry);
            Ok(())
        });
        read.expect("a frame of our own");
    }
}

/// Cuts a file somewhere before its last byte that is not 0, and says where.
fn cut(bytes: &mut Vec<u8>, chance: &mut Chance) -> String {
    let at = used_place(bytes, chance);
    bytes.truncate(at);
    format!("is cut at {at}")
}

/// Changes a bit of a file before its last byte that is not 0, and says where.
fn flip(bytes: &mut [u8], chance: &mut Chance) -> String {
    let at = used_place(bytes, chance);
    if let Some(byte) = bytes.get_mut(at) {
        *byte ^= 1 << chance.below(8);
    }
    format!("is changed at {at}")
}

fn used_place(bytes: &[u8], chance: &mut Chance) -> usize {
    let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    chance.below(used.max(1))
}

fn refused() -> StoreError {
    let place = Location::File { path: "disk".into(), offset: None };
    StoreError::Io { action: "read", place, reason: "it was made to fail".to_owned(), is_full: false }
}

impl Store for Disk {
    fn describe(&self) -> String {
        "a simulated disk".to_owned()
    }

    fn batching(&self) -> Batching {
        self.batching
    }

    fn open_or_create(&self, wanted: HubShape) -> Result<HubShape, StoreError> {
        Ok(wanted)
    }

    fn acquire(&self, partition: PartitionId, owner: &str) -> Result<Epoch, StoreError> {
        self.files().acquire(partition, owner)
    }

    fn release(&self, partition: PartitionId, epoch: Epoch) -> Result<(), StoreError> {
        self.files().release(partition, epoch)
    }

    fn append(&self, partition: PartitionId, epoch: Epoch, at: Position, batch: &FrameBatch) -> Result<(), StoreError> {
        let longest = batch.frames().map(<[u8]>::len).max().unwrap_or(0);
        assert!(longest <= self.frame_bytes_max, "a frame of {longest} bytes, at most {} fit", self.frame_bytes_max);
        self.files().append(partition, epoch, at, batch)?;
        self.state().archive[usize::from(partition.0)].extend(batch.frames().map(<[u8]>::to_vec));
        Ok(())
    }

    fn read(&self, partition: PartitionId, from: Position, visit: &mut Visit<'_>) -> Result<Position, StoreError> {
        self.files().read(partition, from, visit)
    }

    fn truncate(&self, partition: PartitionId, epoch: Epoch, before: Position) -> Result<(), StoreError> {
        self.files().truncate(partition, epoch, before)
    }

    fn put_blob(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        self.files().put_blob(name, bytes)
    }

    fn get_blob(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let refuses = self.state().refuses_reads;
        if refuses { Err(refused()) } else { self.files().get_blob(name) }
    }

    fn delete_blob(&self, name: &str) -> Result<(), StoreError> {
        self.files().delete_blob(name)
    }

    fn list_blobs(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        self.files().list_blobs(prefix)
    }
}

/// The disk as it would be had no snapshot ever been taken. It has no blobs.
pub(super) struct Archive(pub(super) Arc<Disk>);

impl Store for Archive {
    fn describe(&self) -> String {
        self.0.describe()
    }

    fn batching(&self) -> Batching {
        self.0.batching()
    }

    fn open_or_create(&self, wanted: HubShape) -> Result<HubShape, StoreError> {
        self.0.open_or_create(wanted)
    }

    fn acquire(&self, partition: PartitionId, owner: &str) -> Result<Epoch, StoreError> {
        self.0.acquire(partition, owner)
    }

    fn release(&self, partition: PartitionId, epoch: Epoch) -> Result<(), StoreError> {
        self.0.release(partition, epoch)
    }

    fn append(&self, _: PartitionId, _: Epoch, _: Position, _: &FrameBatch) -> Result<(), StoreError> {
        Err(refused())
    }

    fn read(&self, partition: PartitionId, from: Position, visit: &mut Visit<'_>) -> Result<Position, StoreError> {
        let frames = self.0.frames(partition);
        for (position, frame) in (0..).zip(&frames).skip(from.0 as usize) {
            visit(Position(position), frame)?;
        }
        Ok(Position(frames.len() as u64))
    }

    fn truncate(&self, _: PartitionId, _: Epoch, _: Position) -> Result<(), StoreError> {
        Err(refused())
    }

    fn put_blob(&self, _: &str, _: &[u8]) -> Result<(), StoreError> {
        Err(refused())
    }

    fn get_blob(&self, _: &str) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(None)
    }

    fn delete_blob(&self, _: &str) -> Result<(), StoreError> {
        Err(refused())
    }

    fn list_blobs(&self, _: &str) -> Result<Vec<String>, StoreError> {
        Ok(Vec::new())
    }
}

/// Payloads as a store has them, for who reads frames.
pub(super) struct Payloads<'a>(pub(super) &'a dyn Store);

impl Fetch for Payloads<'_> {
    fn fetch(&mut self, blob: BlobRef) -> Result<Payload, CodecError> {
        let bytes = self.0.get_blob(&blob_name(blob)).ok().flatten();
        let bytes = bytes.filter(|bytes| bytes.len() as u64 == blob.bytes);
        let missing = || CodecError { at: 0, what: format!("{} is not on the disk", blob_name(blob)) };
        bytes.map(Payload::from_bytes).ok_or_else(missing)
    }
}
