//! A batch of frames as one value, a row or a message: the lengths of the frames (u32, little-endian), then their bytes. The checksum also
//! covers where the row belongs, so that a row in the place of another is found out.

use narrows_durable::PartitionId;
use narrows_durable::store::FrameBatch;

/// The largest number of frames in a row.
pub(crate) const FRAMES_MAX: usize = 1 << 20;
const LENGTH_BYTES: usize = 4;

/// Where a row belongs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    pub(crate) partition: PartitionId,
    pub(crate) position: u64,
    pub(crate) epoch: u64,
}

/// The bytes of a row.
pub(crate) fn encode(batch: &FrameBatch) -> Vec<u8> {
    let mut row = Vec::with_capacity(batch.len() * LENGTH_BYTES + batch.bytes());
    for frame in batch.frames() {
        row.extend_from_slice(&u32::try_from(frame.len()).unwrap_or(u32::MAX).to_le_bytes());
    }
    batch.frames().for_each(|frame| row.extend_from_slice(frame));
    row
}

/// The checksum of a row's bytes.
pub(crate) fn checksum(key: Key, frames: u64, row: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&key.partition.0.to_le_bytes());
    for number in [key.position, key.epoch, frames] {
        hasher.update(&number.to_le_bytes());
    }
    hasher.update(row);
    hasher.finalize()
}

/// The frames of a row.
pub(crate) fn decode(frames: u64, row: &[u8]) -> Result<Vec<&[u8]>, String> {
    let count = usize::try_from(frames).ok().filter(|count| (1..=FRAMES_MAX).contains(count));
    let lengths = count.and_then(|count| row.get(..count * LENGTH_BYTES));
    let lengths = lengths.ok_or_else(|| format!("{} bytes cannot hold {frames} frames", row.len()))?;
    let mut rest = &row[lengths.len()..];
    let mut found = Vec::with_capacity(lengths.len() / LENGTH_BYTES);
    for length in lengths.chunks_exact(LENGTH_BYTES) {
        let length = u32::from_le_bytes([length[0], length[1], length[2], length[3]]) as usize;
        let (frame, behind) = rest
            .split_at_checked(length)
            .ok_or_else(|| format!("a frame of {length} bytes, {} are left", rest.len()))?;
        found.push(frame);
        rest = behind;
    }
    if rest.is_empty() { Ok(found) } else { Err(format!("{} bytes follow the last frame", rest.len())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_back_and_rows_cut_anywhere_are_refused() {
        let mut batch = FrameBatch::default();
        [&b"one"[..], b"2", b"three"].iter().for_each(|frame| batch.push(frame));
        let row = encode(&batch);
        assert_eq!(decode(3, &row).expect("whole"), [&b"one"[..], b"2", b"three"]);
        for at in 0..row.len() {
            assert!(decode(3, &row[..at]).is_err(), "cut at {at}");
        }
        assert!(decode(3, &[&row[..], b"x"].concat()).is_err());
        for frames in [0, 1, 2, 4, u64::MAX] {
            assert!(decode(frames, &row).is_err(), "{frames} frames");
        }
    }

    #[test]
    fn the_checksum_tells_rows_apart_that_hold_the_same() {
        let key = Key { partition: PartitionId(1), position: 2, epoch: 3 };
        let sum = checksum(key, 1, b"row");
        assert_ne!(sum, checksum(Key { partition: PartitionId(2), ..key }, 1, b"row"));
        assert_ne!(sum, checksum(Key { position: 3, ..key }, 1, b"row"));
        assert_ne!(sum, checksum(Key { epoch: 4, ..key }, 1, b"row"));
        assert_ne!(sum, checksum(key, 2, b"row"));
        assert_ne!(sum, checksum(key, 1, b"raw"));
    }
}
