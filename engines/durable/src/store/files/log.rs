//! The log of one partition: its segments, its epoch, and who may write.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::sealed::{self, Sort};
use super::segment::{self, End, FRAME_BYTES_MAX, FRAME_HEAD, HEAD};
use super::spare::Spares;
use super::{FileStoreOptions, disk};
use crate::ids::{Epoch, PartitionId, Position};
use crate::store::{FrameBatch, StoreError, Visit};

/// What has to be known to append.
#[derive(Debug)]
struct Tail {
    file: File,
    path: PathBuf,
    /// The size of the file.
    size: u64,
    /// Behind the last frame.
    offset: u64,
    /// The position after it.
    next: u64,
}

/// A partition's log.
#[derive(Debug)]
pub(super) struct Log {
    partition: PartitionId,
    folder: PathBuf,
    epoch: Option<u64>,
    /// Known once the log has been read.
    end: Option<End>,
    tail: Option<Tail>,
    /// What went wrong with an append, after which nobody knows what is durable.
    broken: Option<StoreError>,
    buffer: Vec<u8>,
}

impl Log {
    pub(super) fn new(partition: PartitionId, hub: &Path) -> Self {
        let folder = hub.join(format!("p{partition}"));
        Self { partition, folder, epoch: None, end: None, tail: None, broken: None, buffer: Vec::new() }
    }

    /// Begins a new epoch.
    pub(super) fn acquire(&mut self) -> Result<Epoch, StoreError> {
        disk::make_folder(&self.folder)?;
        let path = self.folder.join("epoch");
        let epoch = sealed::read_number(&path, Sort::Epoch)?.unwrap_or(0) + 1;
        sealed::write_number(&path, Sort::Epoch, epoch)?;
        (self.epoch, self.end, self.tail, self.broken) = (Some(epoch), None, None, None);
        Ok(Epoch(epoch))
    }

    /// Ends the epoch, and notes where the log ends so that a loss is noticed.
    pub(super) fn release(&mut self, epoch: Epoch) -> Result<(), StoreError> {
        self.check(epoch)?;
        self.epoch = None;
        self.tail = None;
        match (&self.broken, self.end) {
            (None, Some(end)) => sealed::write_number(&self.end_path(), Sort::End, end.next),
            _ => Ok(()),
        }
    }

    fn end_path(&self) -> PathBuf {
        self.folder.join("end")
    }

    fn check(&self, epoch: Epoch) -> Result<(), StoreError> {
        if self.epoch == Some(epoch.0) {
            return Ok(());
        }
        let theirs = match self.epoch {
            Some(theirs) => theirs,
            None => sealed::read_number(&self.folder.join("epoch"), Sort::Epoch)?.unwrap_or(0),
        };
        Err(StoreError::Fenced { partition: self.partition, ours: epoch.0, theirs })
    }

    /// The first positions and paths of the segments, in order.
    fn segments(&self) -> Result<Vec<(u64, PathBuf)>, StoreError> {
        let failed = |error: std::io::Error| disk::failed("list", &self.folder, None, &error);
        let entries = match std::fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(error)),
        };
        let mut segments = Vec::new();
        for entry in entries {
            let path = entry.map_err(failed)?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if let Some(first) = name.strip_prefix("log-").and_then(|first| first.parse().ok()) {
                segments.push((first, path));
            }
        }
        segments.sort();
        Ok(segments)
    }

    fn segment_path(&self, first: u64) -> PathBuf {
        self.folder.join(format!("log-{first:020}"))
    }

    /// Gives the frames from `from` on to `visit`, and goes on behind them.
    pub(super) fn read(&mut self, from: Position, visit: &mut Visit<'_>) -> Result<Position, StoreError> {
        let (end, last) = self.scan(from, visit)?;
        if let Some(path) = last {
            self.harden(&path)?;
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
        let mut end = End { offset: 0, next: begins, epoch: 0 };
        for (number, (first, path)) in segments.iter().enumerate() {
            let is_last = number + 1 == segments.len();
            if segments.get(number + 1).is_some_and(|(next, _)| *next <= from.0) {
                end.next = segments[number + 1].0;
                continue;
            }
            end = self.read_segment(*first, path, is_last, end, &mut |position, frame| {
                if position.0 >= from.0 { visit(position, frame) } else { Ok(()) }
            })?;
        }
        self.check_end(end, segments.last())?;
        Ok((end, segments.pop().map(|(_, path)| path)))
    }

    fn read_segment(
        &self,
        first: u64,
        path: &Path,
        is_last: bool,
        before: End,
        visit: &mut Visit<'_>,
    ) -> Result<End, StoreError> {
        if first != before.next {
            let what = format!("it begins with frame {first}, expected {}", before.next);
            return Err(disk::damaged(path, 0, what));
        }
        let bytes = disk::read(path)?.unwrap_or_default();
        if !segment::is_segment(&bytes, self.partition, Position(first)) {
            // It was being made when the power went: nothing was acknowledged in it yet, and nothing comes after it.
            let was_begun = is_last && segment::holds_no_frame(&bytes, self.partition, Position(first));
            if was_begun {
                return Ok(End { offset: HEAD as u64, ..before });
            }
            let what = format!("it does not begin as a segment of partition {} from {first} on does", self.partition);
            return Err(disk::damaged(path, 0, what));
        }
        segment::walk(&bytes, path, self.partition, Position(first), before.epoch, visit)
    }

    /// Waits until what was read is on the disk. A process that was killed in an append leaves whole frames that only
    /// the kernel's memory holds; whoever reads them acts on them, and then the power may go.
    fn harden(&self, last: &Path) -> Result<(), StoreError> {
        let failed = |error| disk::failed("sync", last, None, &error);
        File::open(last).and_then(|file| file.sync_data()).map_err(failed)?;
        disk::sync_folder(&self.folder)
    }

    /// An orderly end leaves a note where it was.
    fn check_end(&self, end: End, last: Option<&(u64, PathBuf)>) -> Result<(), StoreError> {
        let noted = sealed::read_number(&self.end_path(), Sort::End)?.unwrap_or(0);
        if noted <= end.next {
            return Ok(());
        }
        let path = last.map_or(self.folder.as_path(), |(_, path)| path.as_path());
        Err(disk::damaged(path, end.offset, format!("the log ends before frame {}, expected {noted}", end.next)))
    }

    /// Writes frames behind the last one and waits until they are on the disk.
    pub(super) fn append(
        &mut self,
        epoch: Epoch,
        at: Position,
        batch: &FrameBatch,
        spares: &Spares,
        options: &FileStoreOptions,
    ) -> Result<(), StoreError> {
        self.check(epoch)?;
        if let Some(error) = &self.broken {
            return Err(error.clone());
        }
        if self.end.is_none() {
            self.find_end()?;
        }
        let ends = self.end.map_or(0, |end| end.next);
        if at.0 != ends {
            return Err(StoreError::Conflict { partition: self.partition, ends, at: at.0 });
        }
        check_frames(&self.folder, batch)?;
        let written = self.write(epoch, at, batch, spares, options);
        if let Err(error) = &written {
            self.broken = Some(error.clone());
        }
        written
    }

    fn write(
        &mut self,
        epoch: Epoch,
        at: Position,
        batch: &FrameBatch,
        spares: &Spares,
        options: &FileStoreOptions,
    ) -> Result<(), StoreError> {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        let needed = (batch.bytes() + batch.len() * FRAME_HEAD) as u64;
        let is_new = self.tail(at, needed, &mut buffer, spares, options)?;
        let Some(tail) = &mut self.tail else { return Ok(()) };
        for (position, frame) in (at.0..).zip(batch.frames()) {
            segment::put_frame(&mut buffer, self.partition, frame, position, at.0, epoch.0);
        }
        let failed = |error| disk::failed("write", &tail.path, Some(tail.offset), &error);
        tail.file.write_all_at(&buffer, tail.offset).and_then(|()| tail.file.sync_data()).map_err(failed)?;
        if is_new {
            disk::sync_folder(&self.folder)?;
        }
        tail.offset += buffer.len() as u64;
        tail.next = at.0 + batch.len() as u64;
        self.end = Some(End { offset: tail.offset, next: tail.next, epoch: epoch.0 });
        self.buffer = buffer;
        if tail.size - tail.offset < tail.size / 2 {
            spares.wish();
        }
        Ok(())
    }

    /// Makes sure that there is a file to write to with room for `needed` bytes; whether it is a new one, whose head
    /// has been put into the buffer.
    fn tail(
        &mut self,
        at: Position,
        needed: u64,
        buffer: &mut Vec<u8>,
        spares: &Spares,
        options: &FileStoreOptions,
    ) -> Result<bool, StoreError> {
        if self.tail.is_none() {
            self.open_tail()?;
        }
        if self.tail.as_ref().is_some_and(|tail| tail.offset + needed <= tail.size) {
            return Ok(false);
        }
        let path = self.segment_path(at.0);
        let size = options.segment_bytes.max(HEAD as u64 + needed);
        let file = spares.take(&path, size).map_err(|error| disk::failed("create", &path, None, &error))?;
        buffer.extend_from_slice(&segment::head(self.partition, at));
        self.tail = Some(Tail { file, path, size, offset: 0, next: at.0 });
        Ok(true)
    }

    /// Goes on in the last segment, unless the next position would begin it: then it is made anew.
    fn open_tail(&mut self) -> Result<(), StoreError> {
        let Some(end) = self.end else { return Ok(()) };
        let Some((first, path)) = self.segments()?.pop() else { return Ok(()) };
        if first == end.next {
            return Ok(());
        }
        let failed = |error| disk::failed("open", &path, None, &error);
        let file = File::options().read(true).write(true).open(&path).map_err(failed)?;
        let size = file.metadata().map_err(failed)?.len();
        self.tail = Some(Tail { file, path, size, offset: end.offset, next: end.next });
        Ok(())
    }

    fn find_end(&mut self) -> Result<(), StoreError> {
        let last = self.segments()?.pop().map_or(0, |(first, _)| first);
        self.read(Position(last), &mut |_, _| Ok(())).map(drop)
    }

    /// Gives up the segments that end before a position.
    pub(super) fn truncate(&mut self, epoch: Epoch, before: Position, spares: &Spares) -> Result<(), StoreError> {
        self.check(epoch)?;
        let segments = self.segments()?;
        let ended = segments.iter().zip(segments.iter().skip(1)).filter(|(_, (next, _))| *next <= before.0);
        for ((_, path), _) in ended {
            spares.give(path)?;
        }
        disk::sync_folder(&self.folder)
    }
}

fn check_frames(folder: &Path, batch: &FrameBatch) -> Result<(), StoreError> {
    match batch.frames().map(<[u8]>::len).find(|length| !(1..=FRAME_BYTES_MAX).contains(length)) {
        None => Ok(()),
        Some(length) => {
            let error = std::io::Error::other(format!("a frame of {length} bytes, expected 1 to {FRAME_BYTES_MAX}"));
            Err(disk::failed("append to", folder, None, &error))
        }
    }
}
