//! Counts of a running partition that other threads may read at any time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::hub::metrics::CommitMetrics;
use crate::ids::InstanceId;
use crate::partition::{Counts, LastInstance};

/// Counts of one partition, kept by its threads.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    counts: Mutex<Counts>,
    commits: AtomicU64,
    commit_frames: AtomicU64,
    commit_bytes: AtomicU64,
    commit_ns: AtomicU64,
    commit_ns_max: AtomicU64,
    snapshots: AtomicU64,
    snapshots_failed: AtomicU64,
    recovery_ns: AtomicU64,
    clock_leaps: AtomicU64,
    /// When the turn that is under way began, in nanoseconds after `begun`, and one more; 0 if none is.
    turn_began: AtomicU64,
    begun: Start,
    last_instance: LastInstance,
    commit_metrics: Option<CommitMetrics>,
}

#[derive(Debug)]
struct Start(Instant);

impl Default for Start {
    fn default() -> Self {
        Self(Instant::now())
    }
}

/// A partition in figures. Everything that counts up does so since the hub was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartitionStats {
    /// Counts of the state machine as of its last turn.
    pub counts: Counts,
    /// Commits: appends to the log that are durable.
    pub commits: u64,
    /// Frames in them.
    pub commit_frames: u64,
    /// Bytes in them.
    pub commit_bytes: u64,
    /// Nanoseconds they took, in all.
    pub commit_ns: u64,
    /// Nanoseconds that the slowest took.
    pub commit_ns_max: u64,
    /// Snapshots finished.
    pub snapshots: u64,
    /// Snapshots given up because the store failed; the log still has everything.
    pub snapshots_failed: u64,
    /// Nanoseconds that recovery took when the hub was opened.
    pub recovery_ns: u64,
    /// How often the machine's clock leapt by more than a minute, ahead or back.
    pub clock_leaps: u64,
}

/// A hub in figures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HubStats {
    /// Its partitions, in order.
    pub partitions: Vec<PartitionStats>,
}

impl Meter {
    /// One that also records each commit, if there is somewhere to record it.
    pub(super) fn new(commit_metrics: Option<CommitMetrics>) -> Self {
        Self { commit_metrics, ..Self::default() }
    }

    pub(super) fn turned(&self, counts: Counts) {
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner) = counts;
    }

    pub(super) fn committed(&self, frames: usize, bytes: usize, took: Duration) {
        let took_ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.commit_frames.fetch_add(frames as u64, Ordering::Relaxed);
        self.commit_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.commit_ns.fetch_add(took_ns, Ordering::Relaxed);
        self.commit_ns_max.fetch_max(took_ns, Ordering::Relaxed);
        if let Some(metrics) = &self.commit_metrics {
            metrics.record(frames, bytes, took);
        }
    }

    pub(super) fn turn_begins(&self) {
        self.turn_began.store(self.ns() + 1, Ordering::Relaxed);
    }

    pub(super) fn turn_ended(&self) {
        self.turn_began.store(0, Ordering::Relaxed);
    }

    fn ns(&self) -> u64 {
        u64::try_from(self.begun.0.elapsed().as_nanos()).unwrap_or(u64::MAX - 1)
    }

    /// How long the turn that is under way has lasted.
    pub(super) fn turn_since(&self) -> Option<Duration> {
        let began = self.turn_began.load(Ordering::Relaxed).checked_sub(1)?;
        Some(Duration::from_nanos(self.ns().saturating_sub(began)))
    }

    /// Where the partition notes whose code it runs.
    pub(super) fn last_instance(&self) -> LastInstance {
        self.last_instance.clone()
    }

    /// Whose code ran last.
    pub(super) fn at_work(&self) -> Option<InstanceId> {
        self.last_instance.last()
    }

    pub(super) fn clock(&self, leaps: u64) {
        self.clock_leaps.store(leaps, Ordering::Relaxed);
    }

    pub(super) fn recovered(&self, took: Duration) {
        self.recovery_ns.store(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(super) fn snapshot(&self) {
        self.snapshots.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn snapshot_failed(&self) {
        self.snapshots_failed.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> PartitionStats {
        PartitionStats {
            counts: *self.counts.lock().unwrap_or_else(PoisonError::into_inner),
            commits: self.commits.load(Ordering::Relaxed),
            commit_frames: self.commit_frames.load(Ordering::Relaxed),
            commit_bytes: self.commit_bytes.load(Ordering::Relaxed),
            commit_ns: self.commit_ns.load(Ordering::Relaxed),
            commit_ns_max: self.commit_ns_max.load(Ordering::Relaxed),
            snapshots: self.snapshots.load(Ordering::Relaxed),
            snapshots_failed: self.snapshots_failed.load(Ordering::Relaxed),
            recovery_ns: self.recovery_ns.load(Ordering::Relaxed),
            clock_leaps: self.clock_leaps.load(Ordering::Relaxed),
        }
    }
}
