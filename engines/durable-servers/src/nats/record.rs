//! The bytes of a message: a head with its kind and place and a checksum over all, and a body.
//!
//! Numbers are little-endian. A batch of frames that is too long for one message is cut into parts.

use narrows_durable::PartitionId;

const VERSION: u8 = 1;
pub(super) const HEAD_BYTES: usize = 36;

/// Kind of message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Sort {
    /// A batch of frames, or a part of one.
    Frames = 1,
    /// Who has the partition from here on.
    Owner = 2,
    /// A blob, or where its parts are.
    Blob = 4,
    /// Record of a node.
    Said = 5,
}

/// The head of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Head {
    pub(super) sort: Sort,
    pub(super) partition: PartitionId,
    pub(super) epoch: u64,
    pub(super) position: u64,
    /// How many frames the batch has.
    pub(super) frames: u32,
    /// Which part it is, and of how many.
    pub(super) part: u32,
    pub(super) parts: u32,
}

impl Head {
    /// A head of a message that is whole and without frames.
    pub(super) fn new(sort: Sort, partition: PartitionId, epoch: u64) -> Self {
        Self { sort, partition, epoch, position: 0, frames: 0, part: 0, parts: 1 }
    }
}

/// The bytes of a message.
pub(super) fn encode(head: Head, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEAD_BYTES + body.len());
    bytes.extend_from_slice(&[VERSION, head.sort as u8]);
    bytes.extend_from_slice(&head.partition.0.to_le_bytes());
    bytes.extend_from_slice(&head.epoch.to_le_bytes());
    bytes.extend_from_slice(&head.position.to_le_bytes());
    for number in [head.frames, head.part, head.parts] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&bytes);
    hasher.update(body);
    bytes.extend_from_slice(&hasher.finalize().to_le_bytes());
    bytes.extend_from_slice(body);
    bytes
}

/// Head and body of a message.
pub(super) fn decode(bytes: &[u8]) -> Result<(Head, &[u8]), String> {
    let (head, body) = bytes
        .split_at_checked(HEAD_BYTES)
        .ok_or_else(|| format!("a message of {} bytes, expected at least {HEAD_BYTES}", bytes.len()))?;
    let (head, crc) = head.split_at(HEAD_BYTES - 4);
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(head);
    hasher.update(body);
    if hasher.finalize().to_le_bytes() != crc {
        return Err("its checksum does not fit its bytes".to_owned());
    }
    if head[0] != VERSION {
        return Err(format!("its version is {}, expected {VERSION}", head[0]));
    }
    let sorts = [Sort::Frames, Sort::Owner, Sort::Blob, Sort::Said];
    let sort = sorts.into_iter().find(|sort| *sort as u8 == head[1]);
    let sort = sort.ok_or_else(|| format!("it is of an unknown sort, {}", head[1]))?;
    let number = |at: usize, length: usize| {
        head[at..at + length].iter().rev().fold(0_u64, |number, byte| number << 8 | u64::from(*byte))
    };
    let short = |at| u32::try_from(number(at, 4)).unwrap_or(u32::MAX);
    let partition = PartitionId(u16::try_from(number(2, 2)).unwrap_or(u16::MAX));
    let (epoch, position) = (number(4, 8), number(12, 8));
    Ok((Head { sort, partition, epoch, position, frames: short(20), part: short(24), parts: short(28) }, body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_back_and_changed_or_cut_ones_are_refused() {
        let head = Head {
            sort: Sort::Frames,
            partition: PartitionId(3),
            epoch: 1 << 40,
            position: u64::MAX,
            frames: 7,
            part: 1,
            parts: 2,
        };
        let bytes = encode(head, b"body");
        assert_eq!(decode(&bytes).expect("whole"), (head, &b"body"[..]));
        for at in 0..bytes.len() {
            assert!(decode(&bytes[..at]).is_err(), "cut at {at}");
            let mut changed = bytes.clone();
            changed[at] ^= 4;
            assert!(decode(&changed).is_err(), "changed at {at}");
        }
    }
}
