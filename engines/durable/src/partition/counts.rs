//! A partition in figures.

use crate::client::Status;
use crate::partition::Partition;

/// Counts since the partition began, and how much it holds now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Events: 2 per activity, sub-orchestration and operation called, 1 per signal, raised event and timer.
    pub events: u64,
    /// Orchestrations started.
    pub started: u64,
    /// Orchestrations ended.
    pub ended: u64,
    /// Operations of entities that ran.
    pub operations: u64,
    /// Frames written.
    pub frames: u64,
    /// Bytes of frames written.
    pub frame_bytes: u64,
    /// How often an orchestration was found in memory, ready to go on.
    pub cursor_hits: u64,
    /// How often it had to be replayed.
    pub cursor_misses: u64,
    /// Instances held.
    pub instances: u64,
    /// How many of them are in each state, in the order of [`Status::ALL`].
    pub instances_by_status: [u64; Status::ALL.len()],
    /// About how many bytes they hold.
    pub instance_bytes: u64,
    /// Bytes of orchestrations ready to go on.
    pub cursor_bytes: u64,
    /// Activities under way and waiting.
    pub activities_open: u64,
    /// Timers and messages that wait for their moment.
    pub timers: u64,
    /// Messages sent to partitions and not known to have arrived.
    pub outbox: u64,
    /// About how many bytes those messages take.
    pub outbox_bytes: u64,
    /// About how many bytes the partition holds that count against
    /// [`HubOptions::instance_bytes_max`](crate::HubOptions::instance_bytes_max).
    pub held_bytes: u64,
    /// Records that wait for the log.
    pub gated: u64,
    /// Instances for whose end clients wait.
    pub awaited: u64,
}

impl Partition {
    /// Counts, for people and metrics.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts {
            cursor_hits: self.code.cursors.hits,
            cursor_misses: self.code.cursors.misses,
            instances: self.table.len() as u64,
            instances_by_status: self.table.statuses(),
            instance_bytes: self.table.bytes,
            cursor_bytes: self.code.cursors.bytes() as u64,
            activities_open: self.activities.open() as u64,
            timers: self.timers.len() as u64,
            outbox: self.outbox.open() as u64,
            outbox_bytes: self.outbox.bytes(),
            held_bytes: self.held_bytes(),
            gated: self.output.gate.len() as u64,
            awaited: self.waits.len() as u64,
            ..self.counts
        }
    }
}
