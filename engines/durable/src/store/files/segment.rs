//! A file of a log: a head, then frames one behind another, then whatever was there before.
//!
//! Segments are written into files that hold zeros, or an older segment, maybe of another partition, so that the disk
//! need not find room while someone waits. What follows the last frame is therefore no proof of anything; a frame proves
//! itself, by a checksum over its partition, its bytes, its position and its epoch, which only ever grow. Each frame also says which batch it came in: if
//! one is missing and a frame of a *later* batch follows, what is missing had been acknowledged, and that is damage;
//! else an append was cut short, and its rest is no part of the log.

use std::path::Path;

use super::disk::damaged;
use crate::ids::{PartitionId, Position};
use crate::store::{StoreError, Visit};

/// Sort, partition, first position, checksum over these.
pub(super) const HEAD: usize = 32;
const MAGIC: &[u8; 8] = b"NRWlog01";

/// Length, checksum, position, position of the first frame of its batch, epoch.
pub(super) const FRAME_HEAD: usize = 32;

/// The longest frame, in bytes.
pub(super) const FRAME_BYTES_MAX: usize = 32 << 20;

pub(super) fn head(partition: PartitionId, first: Position) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    head[..8].copy_from_slice(MAGIC);
    head[8..16].copy_from_slice(&u64::from(partition.0).to_le_bytes());
    head[16..24].copy_from_slice(&first.0.to_le_bytes());
    let crc = crc32fast::hash(&head[..24]);
    head[24..28].copy_from_slice(&crc.to_le_bytes());
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

/// A frame as it stands in a segment.
#[derive(Clone, Copy, Debug)]
struct Found<'a> {
    position: u64,
    batch: u64,
    epoch: u64,
    bytes: &'a [u8],
}

/// The frame of this partition that begins at `at`, if its checksum fits.
fn frame_at(bytes: &[u8], partition: PartitionId, at: usize) -> Option<Found<'_>> {
    let head = bytes.get(at..at + FRAME_HEAD)?;
    let length = number(&head[..4]) as usize;
    if length == 0 || length > FRAME_BYTES_MAX {
        return None;
    }
    let frame = bytes.get(at + FRAME_HEAD..at + FRAME_HEAD + length)?;
    let sum = checksum(partition, &bytes[at + 8..at + FRAME_HEAD + length]);
    let is_whole = u64::from(sum) == number(&head[4..8]);
    is_whole.then(|| Found {
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
    /// The epoch of the last frame, or what was given.
    pub(super) epoch: u64,
}

/// Whether the file was ever made a segment of this log that begins here. One whose head is not whole was being made
/// when the power went.
pub(super) fn is_segment(bytes: &[u8], partition: PartitionId, first: Position) -> bool {
    bytes.get(..HEAD) == Some(head(partition, first).as_slice())
}

/// Whether no frame of this segment is in the bytes, whatever their head: of a file that is only about to become one.
pub(super) fn holds_no_frame(bytes: &[u8], partition: PartitionId, first: Position) -> bool {
    let is_other = bytes.get(8..16) != Some(u64::from(partition.0).to_le_bytes().as_slice());
    let next = frame_at(bytes, partition, HEAD).is_none_or(|found| found.position != first.0);
    next && (is_other
        || acknowledged_later(bytes, partition, End { offset: HEAD as u64, next: first.0, epoch: 0 }).is_none())
}

/// Gives each frame to `visit`. `epoch` is that of the frame before the segment.
pub(super) fn walk(
    bytes: &[u8],
    path: &Path,
    partition: PartitionId,
    first: Position,
    epoch: u64,
    visit: &mut Visit<'_>,
) -> Result<End, StoreError> {
    let mut end = End { offset: HEAD as u64, next: first.0, epoch };
    while let Some(found) = frame_at(bytes, partition, end.offset as usize) {
        if found.position != end.next || found.epoch < end.epoch {
            break;
        }
        visit(Position(found.position), found.bytes)?;
        end.offset += (FRAME_HEAD + found.bytes.len()) as u64;
        end.next += 1;
        end.epoch = found.epoch;
    }
    match acknowledged_later(bytes, partition, end) {
        None => Ok(end),
        Some(later) => Err(damaged(
            path,
            end.offset,
            format!("no whole frame {} stands there, but frame {later} of a later append follows", end.next),
        )),
    }
}

/// The position of a frame behind the end that came in a later batch than what should stand at the end.
fn acknowledged_later(bytes: &[u8], partition: PartitionId, end: End) -> Option<u64> {
    let rest = bytes.get(end.offset as usize..)?;
    if rest.iter().all(|byte| *byte == 0) {
        return None;
    }
    let last = bytes.len().checked_sub(FRAME_HEAD)?;
    (end.offset as usize..=last).find_map(|at| {
        // Most places fail the cheap part: a position and a batch that could follow.
        let position = number(&bytes[at + 8..at + 16]);
        let batch = number(&bytes[at + 16..at + 24]);
        let could_be = batch > end.next && position >= batch && position - end.next <= bytes.len() as u64;
        let found = if could_be { frame_at(bytes, partition, at)? } else { return None };
        (found.epoch >= end.epoch && found.batch > end.next).then_some(found.position)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: PartitionId = PartitionId(3);

    /// Two frames in the first batch, one in the second.
    fn segment() -> Vec<u8> {
        let mut bytes = head(OURS, Position(10)).to_vec();
        put_frame(&mut bytes, OURS, b"first", 10, 10, 1);
        put_frame(&mut bytes, OURS, b"second", 11, 10, 1);
        put_frame(&mut bytes, OURS, b"third", 12, 12, 1);
        bytes.resize(1000, 0);
        bytes
    }

    fn read(bytes: &[u8]) -> Result<(End, Vec<Vec<u8>>), StoreError> {
        let mut frames = Vec::new();
        let end = walk(bytes, Path::new("log"), OURS, Position(10), 0, &mut |_, frame| {
            frames.push(frame.to_vec());
            Ok(())
        })?;
        Ok((end, frames))
    }

    #[test]
    fn frames_come_back() {
        let (end, frames) = read(&segment()).unwrap();
        assert_eq!(frames, [b"first".as_slice(), b"second", b"third"]);
        assert_eq!((end.next, end.epoch), (13, 1));
        assert!(is_segment(&segment(), OURS, Position(10)));
        assert!(!is_segment(&segment(), OURS, Position(11)));
    }

    #[test]
    fn what_a_later_append_follows_was_acknowledged() {
        let mut bytes = segment();
        bytes[HEAD + FRAME_HEAD] ^= 1;
        let error = read(&bytes).unwrap_err().to_string();
        assert_eq!(
            error,
            "log at byte 32 is damaged: no whole frame 10 stands there, but frame 12 of a later append follows"
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
    fn frames_of_an_older_use_of_the_file_are_not_met() {
        let mut bytes = head(OURS, Position(10)).to_vec();
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
        let mut bytes = head(OURS, Position(10)).to_vec();
        put_frame(&mut bytes, OURS, b"first", 10, 10, 1);
        put_frame(&mut bytes, theirs, b"next", 11, 11, 1);
        put_frame(&mut bytes, theirs, b"later", 17, 15, 1);
        let (end, frames) = read(&bytes).unwrap();
        assert_eq!((end.next, frames), (11, vec![b"first".to_vec()]));
    }
}
