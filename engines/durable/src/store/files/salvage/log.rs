//! A damaged log: the frames in front of the first damage, and traces of those behind it.

use std::ops::Range;
use std::path::{Path, PathBuf};

use super::super::disk;
use super::super::log::Log;
use super::super::sealed::{self, Sort};
use super::super::segment::{self, End};
use crate::ids::Position;
use crate::store::{StoreError, Visit};

/// The size of a segment that begins a log anew. Nothing is ever appended to it: a segment without a frame is replaced.
const SEGMENT_BYTES: u64 = 4096;

/// The result of reading a log.
#[derive(Debug, Default)]
pub(crate) struct SalvagedLog {
    /// Damaged and missing files; empty if the log is sound.
    pub(crate) found: Vec<StoreError>,
    /// The position after the last frame that was given to `visit`.
    pub(crate) end: u64,
    /// One more than the greatest position that the log is known to have had.
    pub(crate) reached: u64,
    /// Which bytes of which files are lost.
    pub(crate) bytes: Vec<(PathBuf, Range<u64>)>,
    /// The epoch of the partition, or the greatest that its frames show.
    pub(crate) epoch: u64,
}

/// Consumers of the frames of a damaged log.
pub(crate) struct Frames<'a> {
    /// Gets the frames that follow one another.
    pub(crate) visit: &'a mut Visit<'a>,
    /// Gets the frames behind the first damage, with their positions.
    pub(crate) stray: &'a mut (dyn FnMut(u64, &[u8]) + 'a),
}

/// Reads a log. See [`Salvage::read_log`](super::Salvage::read_log).
pub(super) fn read(log: &Log, from: Position, mut frames: Frames<'_>) -> Result<SalvagedLog, StoreError> {
    let mut reading =
        SalvageReader { log, from: from.0, end: End::empty(from.0, 0), is_broken: false, out: SalvagedLog::default() };
    let epoch = reading.note(log.epoch())?;
    let segments = log.segments()?;
    for (number, (first, path)) in segments.iter().enumerate() {
        let next = segments.get(number + 1).map(|(next, _)| *next);
        if next.is_none_or(|next| next > from.0) {
            reading.segment(*first, path, next, &mut frames)?;
        }
    }
    let noted = reading.note(log.noted_end())?.unwrap_or_default();
    if reading.out.found.is_empty() {
        reading.note(log.check_end(reading.end, segments.last()))?;
    }
    let SalvageReader { end, mut out, .. } = reading;
    if end.next < from.0 || (segments.is_empty() && from.0 > 0 && out.found.is_empty()) {
        let what = format!("it has no frame {} or later, where the last snapshot ends", from.0);
        out.found.push(disk::missing(&log.folder, what));
    }
    out.end = end.next.max(from.0);
    out.reached = out.reached.max(end.next).max(noted.0).max(noted.1);
    out.epoch = epoch.unwrap_or(0).max(end.epoch);
    Ok(out)
}

struct SalvageReader<'a> {
    log: &'a Log,
    from: u64,
    end: End,
    /// Whether a frame is missing: none that comes later can be applied.
    is_broken: bool,
    out: SalvagedLog,
}

impl SalvageReader<'_> {
    /// Takes note of damage; other errors end the reading.
    fn note<T>(&mut self, found: Result<T, StoreError>) -> Result<Option<T>, StoreError> {
        match found {
            Ok(found) => Ok(Some(found)),
            Err(error @ StoreError::Io { .. }) => Err(error),
            Err(error) => {
                self.out.found.push(error);
                Ok(None)
            }
        }
    }

    fn segment(
        &mut self,
        first: u64,
        path: &Path,
        next: Option<u64>,
        frames: &mut Frames<'_>,
    ) -> Result<(), StoreError> {
        let bytes = disk::read(&*self.log.disk, path)?.unwrap_or_default();
        if !self.is_broken && first > self.end.next {
            let what = format!("it begins with frame {first}, expected {}", self.end.next);
            self.out.found.push(disk::damaged(path, 0, what));
            self.is_broken = true;
        }
        if self.is_broken {
            self.lost(path, &bytes, End::empty(self.end.next, self.end.epoch), frames.stray);
            return Ok(());
        }
        let before = End::empty(first, self.end.epoch);
        let strict = self.log.read_segment(first, path, next, before, &mut |_, _| Ok(()));
        let is_damaged = self.note(strict)?.is_none();
        let (from, partition) = (self.from, self.log.partition);
        let mut refused = None;
        let range = first..next.unwrap_or(u64::MAX);
        let read = segment::prefix(&bytes, partition, range, before.epoch, &mut |position, frame| {
            if position.0 < from {
                return Ok(());
            }
            (frames.visit)(position, frame).inspect_err(|error| refused = Some((position.0, error.clone())))
        });
        if let (Some((position, error)), Err(_)) = (refused, &read) {
            // The bytes are those that were written, and mean nothing here: no later frame can be applied either.
            self.note::<()>(Err(error))?;
            self.is_broken = true;
            let end = segment::prefix(&bytes, partition, first..position, before.epoch, &mut |_, _| Ok(()))?;
            self.end = end;
            self.lost(path, &bytes, end, frames.stray);
            return Ok(());
        }
        self.end = read?;
        if is_damaged && next != Some(self.end.next) {
            self.is_broken = true;
            self.lost(path, &bytes, self.end, frames.stray);
        }
        Ok(())
    }

    /// Takes note of the part of a segment behind `end`, which is lost.
    fn lost(&mut self, path: &Path, bytes: &[u8], end: End, stray: &mut dyn FnMut(u64, &[u8])) {
        let reached = segment::strays(bytes, self.log.partition, end, stray);
        self.out.reached = self.out.reached.max(reached);
        // A file that was cut short has lost the frames behind its end.
        let cut = segment::size_of(bytes).filter(|size| (bytes.len() as u64) < *size);
        let written = segment::written(bytes) as u64;
        let until = cut.unwrap_or(written);
        if end.offset < until && (cut.is_some() || reached > end.next) {
            self.out.bytes.push((path.to_owned(), end.offset..until));
        }
    }
}

/// Begins a log anew. See [`Salvage::restart`](super::Salvage::restart).
pub(super) fn restart(log: &Log, at: Position, epoch: u64) -> Result<(), StoreError> {
    let old = log.segments()?;
    let (path, mut bytes) = (log.segment_path(at.0), segment::head(log.partition, at, SEGMENT_BYTES).to_vec());
    bytes.resize(SEGMENT_BYTES as usize, 0);
    disk::replace(&*log.disk, &path, &bytes)?;
    log.note_end(at.0, at.0)?;
    sealed::write_number(&*log.disk, &log.epoch_path(), Sort::Epoch, epoch)?;
    for (_, path) in old.iter().filter(|(first, _)| *first != at.0) {
        disk::remove(&*log.disk, path)?;
    }
    disk::sync_folder(&*log.disk, &log.folder)
}
