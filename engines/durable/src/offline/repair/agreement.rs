//! Partitions that lost messages take over the numbers that the others have seen.
//!
//! The rule is that of opening a hub (`hub/agreement.rs`): no partition may know of more than the other one remembers. The
//! one that remembers less has lost messages; their numbers are passed over.

use super::Part;
use crate::ids::PartitionId;

/// Messages that a partition has lost, and knows nothing of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Gap {
    /// Sent to another partition, which has taken them.
    pub(super) sent: u64,
    /// Taken from another partition, which was told so.
    pub(super) taken: u64,
}

/// Makes all partitions agree, and returns the loss of each.
pub(super) fn reach(parts: &mut [Part]) -> Vec<Gap> {
    let known: Vec<_> = parts.iter().map(|part| part.partition.lane_progress()).collect();
    let mut gaps = vec![Gap::default(); parts.len()];
    for (ours, part) in parts.iter_mut().enumerate() {
        for theirs in (0..known.len()).filter(|theirs| *theirs != ours) {
            let (own, other) = (known[ours][theirs], known[theirs][ours]);
            gaps[ours].sent += other.taken.saturating_sub(own.sent);
            gaps[ours].taken += other.arrived.saturating_sub(own.taken);
            let with = PartitionId(u16::try_from(theirs).unwrap_or(u16::MAX));
            part.partition.agree(with, other.taken, other.arrived);
        }
    }
    gaps
}
