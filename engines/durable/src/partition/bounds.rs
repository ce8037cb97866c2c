//! How much a partition does in one turn, so that no turn takes long and no frame grows too large.

use crate::store::Batching;

/// How much one turn does. Simulations make it little, to come upon every bound often.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Messages within the partition that a turn deals with; the rest go on in the next.
    pub(super) local_messages: usize,
    /// Bytes of a frame after which a turn takes up nothing more.
    pub(super) frame_bytes: usize,
    /// Messages that are handed to a partition as one input.
    pub(super) lot: usize,
    /// Timers that fire.
    pub(super) due: usize,
}

impl Bounds {
    pub(super) fn new(batching: Batching) -> Self {
        let due = if batching == Batching::EachStep { 1 } else { 16_384 };
        Self { local_messages: 16_384, frame_bytes: 4 << 20, lot: 256, due }
    }
}
