//! How much a partition does in one turn, so that no turn takes long and no frame grows too large.
//!
//! A turn looks at its frame before it takes up anything: a message, a start, a timer, a batch of operations. What it
//! then takes up adds at most [`Bounds::step_bytes`] to a history and as much again to what is sent. So a frame stays
//! below `frame_bytes` and twice `step_bytes`: 20 MiB, where stores take 32.

use crate::store::Batching;

/// How much one turn does. Simulations make it little, to come upon every bound often.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Messages within the partition that a turn deals with; the rest go on in the next.
    pub(super) local_messages: usize,
    /// Bytes of a frame after which a turn takes up nothing more; what has come in goes on in the next.
    pub(super) frame_bytes: usize,
    /// Bytes that one step adds to a history at most, and again to what is sent; large payloads apart.
    pub(super) step_bytes: usize,
    /// Messages that are handed to a partition as one input.
    pub(super) lot: usize,
    /// Timers that fire.
    pub(super) due: usize,
}

impl Bounds {
    pub(super) fn new(batching: Batching) -> Self {
        let due = if batching == Batching::EachStep { 1 } else { 16_384 };
        Self { local_messages: 16_384, frame_bytes: 4 << 20, step_bytes: 8 << 20, lot: 256, due }
    }
}
