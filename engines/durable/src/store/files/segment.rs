//! A file of a log: a head, then frames one behind another, then a mark, then whatever was there before.
//!
//! Segments are written into files that hold zeros, or an older segment, maybe of another partition, so that the disk
//! need not find room while someone waits. What follows the last frame is therefore no proof of anything; a frame proves
//! itself, by a checksum over its partition, its bytes, its position and its epoch, which only ever grow. Each frame
//! also says which batch it came in: if one is missing and a frame of a *later* batch follows, what is missing had been
//! acknowledged, and that is damage; else an append was cut short, and its rest is no part of the log.
//!
//! The last batch has none behind it. Once it is on the disk, a *mark* is written where the next one will begin, in the
//! form of a frame's head without a frame. Nothing waits for it: it survives the end of the process, though not always
//! the loss of power. Where it stands, everything before it had been acknowledged.

use std::ops::Range;
use std::path::Path;

use super::disk::damaged;
use crate::ids::{PartitionId, Position};
use crate::store::{StoreError, Visit};

/// Sort, partition, first position, size of the file, checksum over these.
pub(super) const HEAD: usize = 40;
const MAGIC: &[u8; 8] = b"NRWlog02";
/// Where the checksum of a head stands.
const HEAD_SUM: usize = 32;

/// Length, checksum, position, position of the first frame of its batch, epoch.
pub(super) const FRAME_HEAD: usize = 32;
/// The length that a mark has in place of a frame's.
const MARK: u32 = u32::MAX;

/// The longest frame, in bytes.
pub(super) const FRAME_BYTES_MAX: usize = crate::store::FRAME_BYTES_MAX;

/// Header of a segment of `size` bytes.
pub(super) fn head(partition: PartitionId, first: Position, size: u64) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    head[..8].copy_from_slice(MAGIC);
    head[8..16].copy_from_slice(&u64::from(partition.0).to_le_bytes());
    head[16..24].copy_from_slice(&first.0.to_le_bytes());
    head[24..32].copy_from_slice(&size.to_le_bytes());
    let crc = crc32fast::hash(&head[..HEAD_SUM]);
    head[HEAD_SUM..HEAD_SUM + 4].copy_from_slice(&crc.to_le_bytes());
    head
}

/// Adds a frame to what will be written.
pub(super) fn put_frame(
    out: &mut Vec<u8>,
    partition: PartitionId,
    frame: &[u8],
    position: u64,
    batch: u64,
    epoch: u64,
) {
    let began = out.len();
    out.extend_from_slice(&(frame.len() as u32).to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&position.to_le_bytes());
    out.extend_from_slice(&batch.to_le_bytes());
    out.extend_from_slice(&epoch.to_le_bytes());
    out.extend_from_slice(frame);
    let crc = checksum(partition, &out[began + 8..]);
    out[began + 4..began + 8].copy_from_slice(&crc.to_le_bytes());
}

/// Of a frame from its position on. The partition is part of it, as files go from one to another.
fn checksum(partition: PartitionId, rest: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(&partition.0.to_le_bytes());
    sum.update(rest);
    sum.finalize()
}

/// Writes a mark: everything before `position` is on the disk.
pub(super) fn mark(partition: PartitionId, position: u64, batch: u64, epoch: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(FRAME_HEAD);
    put_frame(&mut out, partition, &[], position, batch, epoch);
    out[..4].copy_from_slice(&MARK.to_le_bytes());
    out
}

/// A frame as it stands in a segment, or a mark, which has no bytes.
#[derive(Clone, Copy, Debug)]
struct FrameView<'a> {
    position: u64,
    batch: u64,
    epoch: u64,
    bytes: &'a [u8],
}

/// The frame of this partition that begins at `at`, if its checksum fits.
fn frame_at(bytes: &[u8], partition: PartitionId, at: usize) -> Option<FrameView<'_>> {
    found_at(bytes, partition, at).filter(|found| !found.bytes.is_empty())
}

/// Whether a mark stands at `at` that fits: everything before `next` was acknowledged.
fn is_marked(bytes: &[u8], partition: PartitionId, end: End) -> bool {
    found_at(bytes, partition, end.offset as usize)
        .is_some_and(|found| found.bytes.is_empty() && found.position == end.next && found.epoch == end.epoch)
}

fn found_at(bytes: &[u8], partition: PartitionId, at: usize) -> Option<FrameView<'_>> {
    let head = bytes.get(at..at + FRAME_HEAD)?;
    let length = match number(&head[..4]) {
        length if length == u64::from(MARK) => 0,
        0 => return None,
        length => length as usize,
    };
    if length > FRAME_BYTES_MAX {
        return None;
    }
    let frame = bytes.get(at + FRAME_HEAD..at + FRAME_HEAD + length)?;
    let sum = checksum(partition, &bytes[at + 8..at + FRAME_HEAD + length]);
    let is_whole = u64::from(sum) == number(&head[4..8]);
    is_whole.then(|| FrameView {
        position: number(&head[8..16]),
        batch: number(&head[16..24]),
        epoch: number(&head[24..32]),
        bytes: frame,
    })
}

/// Little-endian.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

/// Where a segment ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct End {
    /// The offset behind the last frame.
    pub(super) offset: u64,
    /// The position after the last frame.
    pub(super) next: u64,
    /// The epoch of the last frame, or the given one if there is no frame.
    pub(super) epoch: u64,
    /// The last batch that has a frame in the segment.
    pub(super) batch: Option<Batch>,
    /// Whether it is known that the last batch is on the disk.
    pub(super) is_marked: bool,
}

/// Where a batch begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Batch {
    /// The position of its first frame.
    pub(super) first: u64,
    /// The offset of it.
    pub(super) offset: u64,
}

impl End {
    /// Of a segment without a frame.
    pub(super) fn empty(next: u64, epoch: u64) -> Self {
        Self { offset: HEAD as u64, next, epoch, batch: None, is_marked: false }
    }
}

/// The size that the file was made with, if it was ever made a segment of this log that begins here. One whose head is
/// not whole was being made when the power went.
pub(super) fn size(bytes: &[u8], partition: PartitionId, first: Position) -> Option<u64> {
    let size = number(bytes.get(24..32)?);
    (bytes.get(..HEAD)? == head(partition, first, size).as_slice()).then_some(size)
}

/// The size that the head states, whatever the partition and position.
pub(super) fn size_of(bytes: &[u8]) -> Option<u64> {
    let sum = bytes.get(HEAD_SUM..HEAD_SUM + 4)?;
    (number(sum) == u64::from(crc32fast::hash(&bytes[..HEAD_SUM]))).then(|| number(&bytes[24..32]))
}

/// Whether no frame of this segment is in the bytes, whatever their head: of a file that is only about to become one.
pub(super) fn holds_no_frame(bytes: &[u8], partition: PartitionId, first: Position) -> bool {
    let is_other = bytes.get(8..16) != Some(u64::from(partition.0).to_le_bytes().as_slice());
    let next = frame_at(bytes, partition, HEAD).is_none_or(|found| found.position != first.0);
    next && (is_other || acknowledged_later(bytes, partition, End::empty(first.0, 0)).is_none())
}

/// Gives each frame of a range to `visit`. `epoch` is that of the frame before the segment.
pub(super) fn walk(
    bytes: &[u8],
    path: &Path,
    partition: PartitionId,
    range: Range<u64>,
    epoch: u64,
    visit: &mut Visit<'_>,
) -> Result<End, StoreError> {
    let until = range.end;
    let end = prefix(bytes, partition, range, epoch, visit)?;
    let behind = frame_at(bytes, partition, end.offset as usize);
    if behind.is_some_and(|found| found.position == until && end.next == until) {
        return Ok(end);
    }
    match acknowledged_later(bytes, partition, end) {
        None => Ok(end),
        Some(later) => Err(damaged(path, end.offset, format!("no whole frame {} stands there, but {later}", end.next))),
    }
}

/// Like [`walk`], whatever follows behind the last frame.
///
/// # Errors
/// The first one of `visit`.
pub(super) fn prefix(
    bytes: &[u8],
    partition: PartitionId,
    range: Range<u64>,
    epoch: u64,
    visit: &mut Visit<'_>,
) -> Result<End, StoreError> {
    let mut end = End::empty(range.start, epoch);
    while let Some(found) = frame_at(bytes, partition, end.offset as usize) {
        if found.position != end.next || found.epoch < end.epoch {
            break;
        }
        if found.position == range.end {
            // The next segment begins with it: it was written there anew.
            return Ok(end);
        }
        visit(Position(found.position), found.bytes)?;
        if end.batch.is_none() || found.position == found.batch {
            end.batch = Some(Batch { first: found.position, offset: end.offset });
        }
        end.offset += (FRAME_HEAD + found.bytes.len()) as u64;
        end.next += 1;
        end.epoch = found.epoch;
    }
    end.is_marked = is_marked(bytes, partition, end);
    Ok(end)
}

/// Gives each whole frame behind `end` to `visit`, wherever it stands, and returns the position after the last frame
/// that the bytes show to have been there.
pub(super) fn strays(bytes: &[u8], partition: PartitionId, end: End, visit: &mut dyn FnMut(u64, &[u8])) -> u64 {
    let (mut at, mut reached) = (end.offset as usize, end.next);
    let until = starts_until(bytes);
    while at < until {
        let is_later = |found: &FrameView<'_>| found.position >= end.next && found.epoch >= end.epoch;
        let length = match found_at(bytes, partition, at).filter(is_later) {
            Some(found) if found.bytes.is_empty() => {
                reached = reached.max(found.position);
                FRAME_HEAD
            }
            Some(found) => {
                reached = reached.max(found.position + 1);
                visit(found.position, found.bytes);
                FRAME_HEAD + found.bytes.len()
            }
            None => 1,
        };
        at += length;
    }
    reached
}

/// Offset from which on no frame begins: there are only zeros, or less than the head of a frame.
fn starts_until(bytes: &[u8]) -> usize {
    written(bytes).min(bytes.len().saturating_sub(FRAME_HEAD - 1))
}

/// Length without the zeros at the end. They are compared in blocks, since most of a segment is not written yet.
pub(super) fn written(bytes: &[u8]) -> usize {
    const ZEROS: [u8; 4096] = [0; 4096];
    let mut blocks = bytes.rchunks(ZEROS.len()).skip_while(|block| **block == ZEROS[..block.len()]).peekable();
    let Some(last) = blocks.peek() else { return 0 };
    let zeros = last.iter().rev().take_while(|byte| **byte == 0).count();
    blocks.map(<[u8]>::len).sum::<usize>() - zeros
}

/// A frame of a later batch, or a mark, behind the end: it shows that missing frames there were acknowledged.
fn acknowledged_later(bytes: &[u8], partition: PartitionId, end: End) -> Option<String> {
    (end.offset as usize..starts_until(bytes)).find_map(|at| {
        // Most places fail the cheap part: a position and a batch that could follow.
        let position = number(&bytes[at + 8..at + 16]);
        let batch = number(&bytes[at + 16..at + 24]);
        let could_be = position > end.next && position >= batch && position - end.next <= bytes.len() as u64;
        let found = if could_be { found_at(bytes, partition, at)? } else { return None };
        let is_later = found.epoch >= end.epoch && (found.batch > end.next || found.bytes.is_empty());
        is_later.then(|| match found.bytes {
            [] => format!("all frames before {} are marked as written", found.position),
            _ => format!("frame {} of a later append follows", found.position),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: PartitionId = PartitionId(3);

    /// Two frames in the first batch, one in the second.
    fn segment() -> Vec<u8> {
        let mut bytes = head(OURS, Position(10), 1000).to_vec();
        put_frame(&mut bytes, OURS, b"first", 10, 10, 1);
        put_frame(&mut bytes, OURS, b"second", 11, 10, 1);
        put_frame(&mut bytes, OURS, b"third", 12, 12, 1);
        bytes.resize(1000, 0);
        bytes
    }

    fn read(bytes: &[u8]) -> Result<(End, Vec<Vec<u8>>), StoreError> {
        let mut frames = Vec::new();
        let end = walk(bytes, Path::new("log"), OURS, 10..u64::MAX, 0, &mut |_, frame| {
            frames.push(frame.to_vec());
            Ok(())
        })?;
        Ok((end, frames))
    }

    #[test]
    fn zeros_at_the_end_are_not_written() {
        for (length, last) in
            [(0, None), (1, None), (9000, None), (9000, Some(0)), (9000, Some(4903)), (9000, Some(4904))]
        {
            let mut bytes = vec![0; length];
            last.into_iter().for_each(|at: usize| bytes[at] = 1);
            assert_eq!(written(&bytes), last.map_or(0, |at| at + 1), "{length} bytes, the last at {last:?}");
        }
    }

    #[test]
    fn frames_come_back() {
        let (end, frames) = read(&segment()).unwrap();
        assert_eq!(frames, [b"first".as_slice(), b"second", b"third"]);
        assert_eq!((end.next, end.epoch), (13, 1));
        assert_eq!(end.batch.map(|batch| batch.first), Some(12));
        assert_eq!(size(&segment(), OURS, Position(10)), Some(1000));
        assert_eq!(size(&segment(), OURS, Position(11)), None);
    }

    #[test]
    fn only_acknowledged_frames_are_followed_by_later_appends() {
        let mut bytes = segment();
        bytes[HEAD + FRAME_HEAD] ^= 1;
        let error = read(&bytes).unwrap_err().to_string();
        assert_eq!(
            error,
            "log at byte 40 is damaged: no whole frame 10 stands there, but frame 12 of a later append follows"
        );
    }

    #[test]
    fn an_append_that_was_cut_short_is_no_part_of_the_log() {
        let mut bytes = segment();
        let third = HEAD + 2 * FRAME_HEAD + 11;
        bytes[third + 5] ^= 1;
        assert_eq!(read(&bytes).unwrap().1.len(), 2);
        bytes.truncate(third + 7);
        assert_eq!(read(&bytes).unwrap().1.len(), 2);
    }

    #[test]
    fn the_last_append_is_known_by_its_mark() {
        let mut bytes = segment();
        let end = read(&bytes).unwrap().0;
        assert!(!end.is_marked);
        let at = end.offset as usize;
        bytes[at..at + FRAME_HEAD].copy_from_slice(&mark(OURS, 13, 12, 1));
        assert!(read(&bytes).unwrap().0.is_marked);
        bytes[at - 1] ^= 1;
        let error = read(&bytes).unwrap_err().to_string();
        assert!(
            error.ends_with("no whole frame 12 stands there, but all frames before 13 are marked as written"),
            "{error}"
        );
    }

    #[test]
    fn frames_that_stand_in_the_next_segment_are_left_to_it() {
        let mut frames = 0;
        let end = walk(&segment(), Path::new("log"), OURS, 10..12, 0, &mut |_, _| {
            frames += 1;
            Ok(())
        });
        assert_eq!((end.unwrap().next, frames), (12, 2));
    }

    #[test]
    fn frames_of_an_older_use_of_the_file_are_not_met() {
        let mut bytes = head(OURS, Position(10), 1000).to_vec();
        put_frame(&mut bytes, OURS, b"first", 10, 10, 4);
        put_frame(&mut bytes, OURS, b"stale", 11, 10, 3);
        put_frame(&mut bytes, OURS, b"older", 4, 4, 1);
        let (end, frames) = read(&bytes).unwrap();
        assert_eq!(frames, [b"first"]);
        assert_eq!(end.next, 11);
    }

    #[test]
    fn frames_of_another_partition_that_had_the_file_are_not_met() {
        let theirs = PartitionId(4);
        let mut bytes = head(OURS, Position(10), 1000).to_vec();
        put_frame(&mut bytes, OURS, b"first", 10, 10, 1);
        put_frame(&mut bytes, theirs, b"next", 11, 11, 1);
        put_frame(&mut bytes, theirs, b"later", 17, 15, 1);
        let (end, frames) = read(&bytes).unwrap();
        assert_eq!((end.next, frames), (11, vec![b"first".to_vec()]));
    }
}
