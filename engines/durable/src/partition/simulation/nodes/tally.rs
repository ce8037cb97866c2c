//! Counts of what schedules met, so that a change of the simulation cannot leave out an event unnoticed.

/// Events that schedules met.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) steps: u64,
    pub(super) crashed: u64,
    pub(super) closed: u64,
    pub(super) paused: u64,
    /// Number of nodes that ended because another one was opened under their name.
    pub(super) replaced: u64,
    /// Number of these that were paused meanwhile.
    pub(super) replaced_asleep: u64,
    /// Times that a partition was taken.
    pub(super) moves: u64,
    /// Partitions that found the lease of their node run out.
    pub(super) lapsed: u64,
    /// Appends that were refused, since another node had taken the partition.
    pub(super) fenced: u64,
    /// Appends that arrived after their node was gone, and were taken.
    pub(super) late: u64,
    pub(super) lost: u64,
    pub(super) doubled: u64,
    pub(super) frames: u64,
    pub(super) snapshots: u64,
    pub(super) orchestrations: u64,
    pub(super) notes: u64,
    pub(super) acknowledged: u64,
    pub(super) left_unknown: u64,
}

impl Tally {
    fn counts(&mut self) -> [&mut u64; 18] {
        let Self { steps, crashed, closed, paused, moves, lapsed, fenced, late, lost, doubled, frames, .. } = self;
        let Self { replaced, replaced_asleep, snapshots, orchestrations, notes, acknowledged, left_unknown, .. } = self;
        [
            steps,
            crashed,
            closed,
            paused,
            replaced,
            replaced_asleep,
            moves,
            lapsed,
            fenced,
            late,
            lost,
            doubled,
            frames,
            snapshots,
            orchestrations,
            notes,
            acknowledged,
            left_unknown,
        ]
    }

    pub(super) fn and(mut self, mut other: Self) -> Self {
        for (sum, more) in self.counts().into_iter().zip(other.counts()) {
            *sum += *more;
        }
        self
    }

    pub(super) fn has_met_everything(mut self) -> bool {
        self.counts().into_iter().all(|count| *count > 0)
    }
}
