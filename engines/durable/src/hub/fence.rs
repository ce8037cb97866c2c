//! Whether this process may still act for its partitions.
//!
//! A node whose beats do not reach the store loses its partitions to others after a while. It must have stopped by then,
//! without hearing from anybody: it goes by its own clock since its last beat. The clock also counts while the machine
//! sleeps. What a node writes later is refused by the store; this keeps it from sending and from starting anything.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::ids::PartitionId;
use crate::store::{Location, StoreError};

/// A lease that runs out unless it is renewed.
#[derive(Debug)]
pub(crate) struct Fence {
    lease: Duration,
    /// Nanoseconds of the clock.
    until_ns: AtomicU64,
}

/// A moment of the clock that leases go by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tick(u64);

impl Tick {
    /// The present one.
    pub(crate) fn now() -> Self {
        let now = clock_gettime(ClockId::Boottime);
        let (seconds, ns) = (u64::try_from(now.tv_sec).unwrap_or(0), u64::try_from(now.tv_nsec).unwrap_or(0));
        Self(seconds.saturating_mul(1_000_000_000).saturating_add(ns))
    }
}

impl Fence {
    /// One that has run out.
    pub(crate) fn new(lease: Duration) -> Self {
        Self { lease, until_ns: AtomicU64::new(0) }
    }

    /// The lease runs from `begun` on, which was before others could see that it was renewed.
    pub(crate) fn renew(&self, begun: Tick) {
        let lease = u64::try_from(self.lease.as_nanos()).unwrap_or(u64::MAX);
        self.until_ns.fetch_max(begun.0.saturating_add(lease), Ordering::Relaxed);
    }

    /// How long the lease still runs; `None` if it has run out.
    pub(crate) fn left(&self) -> Option<Duration> {
        let left = self.until_ns.load(Ordering::Relaxed).checked_sub(Tick::now().0)?;
        (left > 0).then(|| Duration::from_nanos(left))
    }

    /// The reason why a partition stops that finds it run out.
    pub(crate) fn error(partition: PartitionId) -> StoreError {
        let (place, reason) = (Location::Partition { partition }, "the lease of this node has run out".to_owned());
        StoreError::Io { action: "go on with", place, reason, is_full: false }
    }

    /// Whether the lease runs.
    pub(crate) fn holds(&self) -> bool {
        self.left().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_runs_from_the_moment_before_it_was_renewed() {
        let fence = Fence::new(Duration::from_secs(3600));
        assert!(!fence.holds());
        let hour = 3_600_000_000_000;
        fence.renew(Tick(Tick::now().0.saturating_sub(hour)));
        assert!(!fence.holds(), "it was renewed an hour ago");
        fence.renew(Tick::now());
        assert!(fence.holds());
        fence.renew(Tick(0));
        assert!(fence.holds(), "an older beat takes nothing away");
    }
}
