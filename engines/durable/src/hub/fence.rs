//! Permission of this process to act for its partitions, by its lease.
//!
//! A node whose beats do not reach the store loses its partitions to others after a while. It must have stopped by then,
//! without hearing from anybody: it goes by its own clock since its last beat. The clock also counts while the machine
//! sleeps. What a node writes later is refused by the store; this keeps it from sending and from starting anything.
//!
//! A lease that has run out can be renewed, but by then others may have taken any partition, or be about to. So what began
//! before that does not go on.

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
    /// How often it was renewed after it had run out.
    terms: AtomicU64,
}

/// An interval in which the lease did not run out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Term(u64);

/// Effect of a renewal on what runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Renewal {
    InTime,
    /// The lease had run out.
    TooLate,
}

/// A moment of the clock that leases go by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tick(pub(crate) u64);

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
        Self { lease, until_ns: AtomicU64::new(0), terms: AtomicU64::new(0) }
    }

    /// The lease runs from `begun` on, which was before others could see that it was renewed. It is `now`.
    pub(crate) fn renew(&self, begun: Tick, now: Tick) -> Renewal {
        let renewed = if self.left_at(now).is_some() { Renewal::InTime } else { Renewal::TooLate };
        if renewed == Renewal::TooLate {
            self.terms.fetch_add(1, Ordering::SeqCst);
        }
        let lease = u64::try_from(self.lease.as_nanos()).unwrap_or(u64::MAX);
        self.until_ns.fetch_max(begun.0.saturating_add(lease), Ordering::SeqCst);
        renewed
    }

    /// The present term.
    pub(crate) fn term(&self) -> Term {
        Term(self.terms.load(Ordering::SeqCst))
    }

    /// Whether what began in a term may act at a moment.
    pub(crate) fn admits(&self, term: Term, now: Tick) -> bool {
        self.left_at(now).is_some() && self.term() == term
    }

    /// How long the lease still runs; `None` if it has run out.
    pub(crate) fn left(&self) -> Option<Duration> {
        self.left_at(Tick::now())
    }

    /// How long it still runs at a moment.
    pub(crate) fn left_at(&self, now: Tick) -> Option<Duration> {
        let left = self.until_ns.load(Ordering::SeqCst).checked_sub(now.0)?;
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
        let second = |second: u64| Tick(second * 1_000_000_000);
        let fence = Fence::new(Duration::from_secs(10));
        assert_eq!(fence.left_at(second(1)), None);
        assert_eq!(fence.renew(second(5), second(6)), Renewal::TooLate, "it had not begun");
        let term = fence.term();
        assert_eq!(fence.left_at(second(12)), Some(Duration::from_secs(3)), "since before it was renewed");
        assert_eq!(fence.left_at(second(15)), None);
        assert_eq!(fence.renew(second(14), second(14)), Renewal::InTime);
        assert_eq!(fence.renew(second(2), second(14)), Renewal::InTime);
        assert!(fence.admits(term, second(15)));
        assert_eq!(fence.left_at(second(15)), Some(Duration::from_secs(9)), "an older beat takes nothing away");
        assert_eq!(fence.renew(second(23), second(24)), Renewal::TooLate);
        assert!(fence.left_at(second(25)).is_some());
        assert!(!fence.admits(term, second(25)), "what began before does not go on");
        assert!(!Fence::new(Duration::from_secs(10)).holds());
    }
}
