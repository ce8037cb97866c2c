//! Bounds of a partition's turn, so that no turn takes long and no frame grows too large.
//!
//! A turn looks at its frame before it takes up anything: a message, a start, a timer, a batch of operations. Into the
//! frame it counts inputs that would have to be put off if the turn ended. An input that it then takes up takes one
//! step, or two if an execution is ended or continues as new first. A step adds at most [`Bounds::step_bytes`] to a
//! history and as much again to what is sent; ending an execution adds as much once. [`Bounds::frame_bytes_max`] is
//! their sum.

use crate::store::{Batching, FRAME_BYTES_MAX};

/// Bounds of one turn. Simulations make them small, to meet each of them often.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Messages within the partition that a turn deals with; the rest go on in the next.
    pub(super) local_messages: usize,
    /// Bytes of a frame after which a turn takes up nothing more; the rest goes on in the next.
    pub(super) frame_bytes: usize,
    /// Bytes that one step adds to a history at most, and again to what is sent; large payloads apart.
    pub(super) step_bytes: usize,
    /// Bytes without a separate bound: the message that a step is taken for, headers of frames, how
    /// far the ways to other partitions have come.
    pub(super) rest_bytes: usize,
    /// Messages that are handed to a partition as one input.
    pub(super) lot: usize,
    /// Timers that fire.
    pub(super) due: usize,
}

/// Steps whose bytes come into one frame after it was found to have room.
const STEPS_PER_FRAME_MAX: usize = 3;

impl Bounds {
    const WHOLE: Self = Self {
        local_messages: 16_384,
        frame_bytes: 4 << 20,
        step_bytes: 8 << 20,
        rest_bytes: 4 << 20,
        lot: 256,
        due: 16_384,
    };

    pub(super) fn new(batching: Batching) -> Self {
        let due = if batching == Batching::EachStep { 1 } else { Self::WHOLE.due };
        Self { due, ..Self::WHOLE }
    }

    /// The longest frame that a turn can come to.
    pub(super) const fn frame_bytes_max(&self) -> usize {
        self.frame_bytes + STEPS_PER_FRAME_MAX * self.step_bytes + self.rest_bytes
    }
}

const _: () = assert!(Bounds::WHOLE.frame_bytes_max() == FRAME_BYTES_MAX, "stores take every frame");
