//! The log of one partition: its segments, its epoch, and who may write.
//!
//! An append is one write and one sync. The next one begins only after it, so of all that can be read after a crash
//! only the last batch may be missing on the disk: a sync that failed leaves it in the kernel's memory, and a second
//! sync then succeeds without writing anything. So unless a mark says that its sync succeeded, the last batch is written
//! into a fresh segment before anyone acts on it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::disk::{self, Disk, DiskFile};
use super::sealed::{self, Sort};
use super::segment::{self, End, FRAME_HEAD, HEAD};
use super::spare::Spares;
use crate::ids::{Epoch, PartitionId, Position};
use crate::store::{FrameBatch, Location, StoreError, Visit};

/// Position and file of the next append.
#[derive(Debug)]
struct Tail {
    file: Box<dyn DiskFile>,
    path: PathBuf,
    /// The size of the file.
    size: u64,
    /// Behind the last frame.
    offset: u64,
}

/// An epoch that this process has begun, and the file that says so.
#[derive(Clone, Copy, Debug)]
struct OwnedEpoch {
    epoch: u64,
    file: (u64, i64),
}

/// A partition's log.
#[derive(Debug)]
pub(super) struct Log {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) partition: PartitionId,
    pub(super) folder: PathBuf,
    owned: Option<OwnedEpoch>,
    /// Known once the log has been read.
    end: Option<End>,
    tail: Option<Tail>,
    /// The error of a failed append: how much of it is durable is unknown.
    broken: Option<StoreError>,
    buffer: Vec<u8>,
}

/// Source of a new segment.
#[derive(Clone, Copy)]
pub(super) struct Supply<'a> {
    pub(super) spares: &'a Spares,
    pub(super) segment_bytes: u64,
}

/// The file that says how often a partition changed hands.
const EPOCH: &str = "epoch";
/// A segment that is being written anew.
const REWRITTEN: &str = "rewritten";

impl Log {
    pub(super) fn new(disk: Arc<dyn Disk>, partition: PartitionId, hub: &Path) -> Self {
        let folder = hub.join(format!("p{partition}"));
        Self { disk, partition, folder, owned: None, end: None, tail: None, broken: None, buffer: Vec::new() }
    }

    /// Makes the folder of a partition that has never had an owner.
    pub(super) fn create(&self) -> Result<(), StoreError> {
        disk::make_folder(&*self.disk, &self.folder)?;
        sealed::write_number(&*self.disk, &self.epoch_path(), Sort::Epoch, 0)
    }

    /// Whether there ever was an owner, or anything that one has written.
    pub(super) fn was_used(&self) -> Result<bool, StoreError> {
        let epoch = sealed::read_number(&*self.disk, &self.epoch_path(), Sort::Epoch)?;
        Ok(epoch > Some(0) || !self.segments()?.is_empty())
    }

    pub(super) fn epoch_path(&self) -> PathBuf {
        self.folder.join(EPOCH)
    }

    pub(super) fn end_path(&self) -> PathBuf {
        self.folder.join("end")
    }

    /// The epoch as the disk has it. Every partition of a hub has one.
    pub(super) fn epoch(&self) -> Result<u64, StoreError> {
        sealed::read_number(&*self.disk, &self.epoch_path(), Sort::Epoch)?.ok_or_else(|| {
            let what = format!("it is missing, and partition {} of the hub with it", self.partition);
            disk::missing(&self.epoch_path(), what)
        })
    }

    /// Begins a new epoch.
    pub(super) fn acquire(&mut self) -> Result<Epoch, StoreError> {
        let (path, epoch) = (self.epoch_path(), self.epoch()? + 1);
        sealed::write_number(&*self.disk, &path, Sort::Epoch, epoch)?;
        let file = self.identity()?;
        // Two who begin at once both read the file of the one that came last.
        if self.epoch()? != epoch {
            return Err(StoreError::Fenced { partition: self.partition, ours: epoch, theirs: self.epoch()? });
        }
        (self.owned, self.end, self.tail, self.broken) = (Some(OwnedEpoch { epoch, file }), None, None, None);
        Ok(Epoch(epoch))
    }

    fn identity(&self) -> Result<(u64, i64), StoreError> {
        let path = self.epoch_path();
        self.disk.identity(&path).map_err(|error| disk::failed("find", &path, None, &error))
    }

    /// Ends the epoch, and notes where the log ends so that a loss is noticed.
    pub(super) fn release(&mut self, epoch: Epoch) -> Result<(), StoreError> {
        self.check(epoch)?;
        self.owned = None;
        self.tail = None;
        match (&self.broken, self.end) {
            (None, Some(end)) => {
                let newest = self.segments()?.pop().map_or(0, |(first, _)| first);
                self.note_end(newest, end.next)
            }
            _ => Ok(()),
        }
    }

    /// Notes that the log has had a segment that begins with frame `newest`, and frames up to `next`.
    pub(super) fn note_end(&self, newest: u64, next: u64) -> Result<(), StoreError> {
        let bytes = [newest.to_le_bytes(), next.to_le_bytes()].concat();
        sealed::write(&*self.disk, &self.end_path(), Sort::End, &bytes)
    }

    /// The last note: the first frame of the newest segment, and where the log ended.
    pub(super) fn noted_end(&self) -> Result<(u64, u64), StoreError> {
        let path = self.end_path();
        let Some(bytes) = sealed::read(&*self.disk, &path, Sort::End)? else { return Ok((0, 0)) };
        let (numbers, []) = bytes.as_chunks::<8>() else {
            return Err(disk::damaged(&path, 0, format!("{} bytes, expected 16", bytes.len())));
        };
        match *numbers {
            [newest, next] => Ok((u64::from_le_bytes(newest), u64::from_le_bytes(next))),
            _ => Err(disk::damaged(&path, 0, format!("{} bytes, expected 16", bytes.len()))),
        }
    }

    /// Checks that this is still the owner: no process has begun another epoch since.
    fn check(&self, epoch: Epoch) -> Result<(), StoreError> {
        let ours = self.owned.filter(|owned| owned.epoch == epoch.0);
        match ours {
            Some(owned) if self.identity()? == owned.file => Ok(()),
            _ => Err(StoreError::Fenced { partition: self.partition, ours: epoch.0, theirs: self.epoch()? }),
        }
    }

    /// The first positions and paths of the segments, in order.
    pub(super) fn segments(&self) -> Result<Vec<(u64, PathBuf)>, StoreError> {
        let first = |name: &str| name.strip_prefix("log-").and_then(|first| first.parse().ok());
        let listed = disk::list(&*self.disk, &self.folder)?;
        let mut segments: Vec<(u64, PathBuf)> =
            listed.iter().filter_map(|found| Some((first(&found.name)?, self.folder.join(&found.name)))).collect();
        segments.sort();
        Ok(segments)
    }

    pub(super) fn segment_path(&self, first: u64) -> PathBuf {
        self.folder.join(format!("log-{first:020}"))
    }

    /// Gives the frames from `from` on to `visit`, and goes on behind them. What an owner reads is on the disk.
    pub(super) fn read(
        &mut self,
        from: Position,
        supply: Supply<'_>,
        visit: &mut Visit<'_>,
    ) -> Result<Position, StoreError> {
        let (mut end, last) = self.scan(from, visit)?;
        if let Some(path) = last.filter(|_| self.owned.is_some() && self.tail.is_none() && !end.is_marked) {
            end = self.rewrite(end, &path, supply)?;
        }
        self.end = Some(end);
        Ok(Position(end.next))
    }

    /// Gives the frames from `from` on to `visit` and changes nothing. Says where the log ends, and in which segment.
    pub(super) fn scan(&self, from: Position, visit: &mut Visit<'_>) -> Result<(End, Option<PathBuf>), StoreError> {
        let mut segments = self.segments()?;
        let begins = segments.first().map_or(0, |(first, _)| *first);
        if from.0 < begins {
            return Err(StoreError::Missing { partition: self.partition, begins, wanted: from.0 });
        }
        let mut end = End::empty(begins, 0);
        for (number, (first, path)) in segments.iter().enumerate() {
            let next = segments.get(number + 1).map(|(next, _)| *next);
            if let Some(next) = next.filter(|next| *next <= from.0) {
                end = End::empty(next, 0);
                continue;
            }
            end = self.read_segment(*first, path, next, end, &mut |position, frame| {
                if position.0 >= from.0 { visit(position, frame) } else { Ok(()) }
            })?;
        }
        self.check_end(end, segments.last())?;
        Ok((end, segments.pop().map(|(_, path)| path)))
    }

    /// Gives the frames of one segment to `visit`. `before` is where the one before it ends.
    pub(super) fn read_segment(
        &self,
        first: u64,
        path: &Path,
        next: Option<u64>,
        before: End,
        visit: &mut Visit<'_>,
    ) -> Result<End, StoreError> {
        if first != before.next {
            let what = format!("it begins with frame {first}, expected {}", before.next);
            return Err(disk::damaged(path, 0, what));
        }
        let bytes = disk::read(&*self.disk, path)?.unwrap_or_default();
        let Some(size) = segment::size(&bytes, self.partition, Position(first)) else {
            // It was being made when the power went: nothing was acknowledged in it yet, and nothing comes after it.
            let was_begun = next.is_none() && segment::holds_no_frame(&bytes, self.partition, Position(first));
            if was_begun {
                return Ok(End::empty(first, before.epoch));
            }
            let what = format!("it does not begin as a segment of partition {} from {first} on does", self.partition);
            return Err(disk::damaged(path, 0, what));
        };
        if (bytes.len() as u64) < size {
            let what = format!("the file ends there, it was made with {size} bytes");
            return Err(disk::damaged(path, bytes.len() as u64, what));
        }
        let range = first..next.unwrap_or(u64::MAX);
        segment::walk(&bytes, path, self.partition, range, before.epoch, visit)
    }

    /// Writes the last batch into a fresh segment and waits until it is on the disk.
    fn rewrite(&mut self, end: End, last: &Path, supply: Supply<'_>) -> Result<End, StoreError> {
        let Some(batch) = end.batch else { return Ok(end) };
        let bytes = disk::read(&*self.disk, last)?.unwrap_or_default();
        let frames = &bytes[batch.offset as usize..end.offset as usize];
        let (path, temporary) = (self.segment_path(batch.first), self.folder.join(REWRITTEN));
        let size = supply.segment_bytes.max((HEAD + frames.len() + FRAME_HEAD) as u64);
        let failed = |action, error: std::io::Error| disk::failed(action, &temporary, None, &error);
        let file = supply.spares.take(&temporary, size).map_err(|error| failed("create", error))?;
        let mut written = segment::head(self.partition, Position(batch.first), size).to_vec();
        written.extend_from_slice(frames);
        file.write_at(&written, 0).and_then(|()| file.sync()).map_err(|error| failed("write", error))?;
        self.disk.rename(&temporary, &path).map_err(|error| failed("rename", error))?;
        disk::sync_folder(&*self.disk, &self.folder)?;
        self.note_end(batch.first, end.next)?;
        let tail = Tail { file, path, size, offset: written.len() as u64 };
        tail.mark(self.partition, end.next, batch.first, end.epoch);
        let moved = segment::Batch { first: batch.first, offset: HEAD as u64 };
        let end = End { offset: tail.offset, batch: Some(moved), is_marked: true, ..end };
        self.tail = Some(tail);
        Ok(end)
    }

    /// An orderly end, and each new segment, leaves a note of how far the log went.
    pub(super) fn check_end(&self, end: End, last: Option<&(u64, PathBuf)>) -> Result<(), StoreError> {
        let (newest, noted) = self.noted_end()?;
        if last.map_or(0, |(first, _)| *first) < newest {
            return Err(disk::missing(&self.segment_path(newest), "it is missing"));
        }
        if noted <= end.next {
            return Ok(());
        }
        let path = last.map_or(self.folder.as_path(), |(_, path)| path.as_path());
        let what = format!("the log ends before frame {}, expected at least {noted} frames", end.next);
        Err(disk::damaged(path, end.offset, what))
    }

    /// Writes frames behind the last one and waits until they are on the disk.
    pub(super) fn append(
        &mut self,
        epoch: Epoch,
        at: Position,
        batch: &FrameBatch,
        supply: Supply<'_>,
    ) -> Result<(), StoreError> {
        self.check(epoch)?;
        if let Some(error) = &self.broken {
            return Err(error.clone());
        }
        if self.end.is_none() {
            self.find_end(supply)?;
        }
        let ends = self.end.map_or(0, |end| end.next);
        if at.0 != ends {
            return Err(StoreError::Conflict { partition: self.partition, ends, at: at.0 });
        }
        batch.check(|| Location::File { path: self.folder.clone(), offset: None })?;
        let written = self.write(epoch, at, batch, supply);
        if let Err(error) = &written {
            self.broken = Some(error.clone());
        }
        written
    }

    fn write(&mut self, epoch: Epoch, at: Position, batch: &FrameBatch, supply: Supply<'_>) -> Result<(), StoreError> {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        let needed = (batch.bytes() + batch.len() * FRAME_HEAD + FRAME_HEAD) as u64;
        let (mut tail, is_new) = match self.open_tail()? {
            Some(tail) if tail.offset + needed <= tail.size => (tail, false),
            _ => (self.new_tail(at, needed, supply)?, true),
        };
        if is_new {
            buffer.extend_from_slice(&segment::head(self.partition, at, tail.size));
        }
        for (position, frame) in (at.0..).zip(batch.frames()) {
            segment::put_frame(&mut buffer, self.partition, frame, position, at.0, epoch.0);
        }
        let failed = |error| disk::failed("write", &tail.path, Some(tail.offset), &error);
        tail.file.write_at(&buffer, tail.offset).and_then(|()| tail.file.sync()).map_err(failed)?;
        let next = at.0 + batch.len() as u64;
        if is_new {
            // The note shows that the segment existed, should it be removed.
            disk::sync_folder(&*self.disk, &self.folder)?;
            self.note_end(at.0, next)?;
        }
        let first = segment::Batch { first: at.0, offset: tail.offset };
        tail.offset += buffer.len() as u64;
        tail.mark(self.partition, next, at.0, epoch.0);
        self.end = Some(End { offset: tail.offset, next, epoch: epoch.0, batch: Some(first), is_marked: true });
        if tail.size - tail.offset < tail.size / 2 {
            supply.spares.wish();
        }
        self.buffer = buffer;
        self.tail = Some(tail);
        Ok(())
    }

    fn new_tail(&self, at: Position, needed: u64, supply: Supply<'_>) -> Result<Tail, StoreError> {
        let path = self.segment_path(at.0);
        let size = supply.segment_bytes.max(HEAD as u64 + needed);
        let file = supply.spares.take(&path, size).map_err(|error| disk::failed("create", &path, None, &error))?;
        Ok(Tail { file, path, size, offset: 0 })
    }

    /// The last segment, unless the next position would begin it: then it is made anew.
    fn open_tail(&mut self) -> Result<Option<Tail>, StoreError> {
        if let Some(tail) = self.tail.take() {
            return Ok(Some(tail));
        }
        let Some((end, (first, path))) = self.end.zip(self.segments()?.pop()) else { return Ok(None) };
        if first == end.next {
            return Ok(None);
        }
        let failed = |error| disk::failed("open", &path, None, &error);
        let file = self.disk.open(&path).map_err(failed)?;
        let size = file.bytes().map_err(failed)?;
        Ok(Some(Tail { file, path, size, offset: end.offset }))
    }

    fn find_end(&mut self, supply: Supply<'_>) -> Result<(), StoreError> {
        let last = self.segments()?.pop().map_or(0, |(first, _)| first);
        self.read(Position(last), supply, &mut |_, _| Ok(())).map(drop)
    }

    /// Gives up the segments that end before a position.
    pub(super) fn truncate(&mut self, epoch: Epoch, before: Position, spares: &Spares) -> Result<(), StoreError> {
        self.check(epoch)?;
        let segments = self.segments()?;
        let ended = segments.iter().zip(segments.iter().skip(1)).filter(|(_, (next, _))| *next <= before.0);
        for ((_, path), _) in ended {
            spares.give(path)?;
        }
        disk::sync_folder(&*self.disk, &self.folder)
    }
}

impl Tail {
    /// Notes behind the last frame that it is on the disk. A mark that cannot be written takes nothing from that.
    fn mark(&self, partition: PartitionId, next: u64, batch: u64, epoch: u64) {
        let _ = self.file.write_at(&segment::mark(partition, next, batch, epoch), self.offset);
    }
}
