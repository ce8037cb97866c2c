//! Effects that wait at the durability watermark: the engine may run ahead, but nothing of it shows outside.

use std::collections::VecDeque;

use crate::error::Error;
use crate::ids::{PartitionId, Position};
use crate::partition::input::{Reply, Response, TaskKey};
use crate::partition::outbox::Gap;
use crate::program::ActivityCall;

/// Something that leaves the partition once the step that caused it is durable.
#[derive(Debug)]
pub(super) enum GatedEffect {
    Run(TaskKey, ActivityCall),
    /// Hand the outbox over up to this number.
    Send(PartitionId, u64),
    Acknowledge(PartitionId, u64),
    /// Report that messages from there have not come.
    Missing(PartitionId, Gap),
    Respond(Reply, Result<Response, Error>),
    /// Blobs below this number are in the store.
    Kept(u64),
    /// The parts of a snapshot describe nothing that could be lost.
    Snapshot,
}

/// The queue at the watermark, in order of positions.
#[derive(Debug, Default)]
pub(super) struct Gate {
    /// Of the frame being written.
    staged: Vec<GatedEffect>,
    waiting: VecDeque<(Position, GatedEffect)>,
}

impl Gate {
    pub(super) fn stage(&mut self, gated: GatedEffect) {
        self.staged.push(gated);
    }

    /// Everything staged leaves once the log is durable up to `position`.
    pub(super) fn close(&mut self, position: Position) {
        self.waiting.extend(self.staged.drain(..).map(|gated| (position, gated)));
    }

    /// The next thing that may leave.
    pub(super) fn pass(&mut self, durable: Position) -> Option<GatedEffect> {
        if self.waiting.front()?.0 > durable {
            return None;
        }
        self.waiting.pop_front().map(|(_, gated)| gated)
    }

    /// Everything, whether it may leave or not: the partition has stopped.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = GatedEffect> + '_ {
        self.waiting.drain(..).map(|(_, gated)| gated).chain(self.staged.drain(..))
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_passes_before_its_position() {
        let mut gate = Gate::default();
        gate.stage(GatedEffect::Kept(1));
        gate.close(Position(1));
        gate.stage(GatedEffect::Kept(2));
        gate.close(Position(3));
        assert!(gate.pass(Position(0)).is_none());
        assert!(matches!(gate.pass(Position(2)), Some(GatedEffect::Kept(1))));
        assert!(gate.pass(Position(2)).is_none());
        assert!(matches!(gate.pass(Position(3)), Some(GatedEffect::Kept(2))));
    }
}
