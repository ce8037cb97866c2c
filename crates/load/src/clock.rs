//! The clock of a run: Unix time that never jumps.
//!
//! The wall clock is read once; from then on time is that reading plus what has passed on the monotonic clock.
//! Two timestamps of one `Clock` can therefore be subtracted, whatever time synchronisation does meanwhile.
//! Copies share the anchor, so everything that is stamped with copies of one clock lies on one axis.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Unix time in nanoseconds on a monotonic axis.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    anchor: Instant,
    anchor_unix_ns: i64,
}

impl Clock {
    /// A clock anchored to the wall clock's present reading.
    pub fn new() -> Self {
        let anchor = Instant::now();
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { anchor, anchor_unix_ns: nanos(since_epoch) }
    }

    /// Now, in nanoseconds since the Unix epoch.
    pub fn now_ns(&self) -> i64 {
        self.at(Instant::now())
    }

    /// An instant, in nanoseconds since the Unix epoch. Instants before the clock was made are fine.
    pub fn at(&self, instant: Instant) -> i64 {
        match instant.checked_duration_since(self.anchor) {
            Some(after) => self.anchor_unix_ns.saturating_add(nanos(after)),
            None => self.anchor_unix_ns.saturating_sub(nanos(self.anchor - instant)),
        }
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

/// A duration in nanoseconds, cut off at a quarter of the range so that sums of a few stay within it.
pub(crate) fn nanos(duration: Duration) -> i64 {
    const NANOS_MAX: u64 = i64::MAX as u64 / 4;
    const SECONDS_MAX: u64 = NANOS_MAX / 1_000_000_000;
    if duration.as_secs() >= SECONDS_MAX {
        return NANOS_MAX as i64;
    }
    (duration.as_secs() * 1_000_000_000 + u64::from(duration.subsec_nanos())) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_keep_their_distance() {
        let clock = Clock::new();
        let instant = Instant::now();
        for distance in [Duration::ZERO, Duration::from_nanos(1), Duration::from_secs(3600)] {
            assert_eq!(clock.at(instant + distance) - clock.at(instant), distance.as_nanos() as i64);
        }
        let before = instant.checked_sub(Duration::from_millis(5)).unwrap();
        assert_eq!(clock.at(instant) - clock.at(before), 5_000_000);
    }

    #[test]
    fn the_anchor_is_the_wall_clock() {
        let wall = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as i64;
        let before = wall();
        let clock = Clock::new();
        let after = wall();
        assert!((before..=after).contains(&clock.anchor_unix_ns));
    }

    #[test]
    fn an_endless_duration_is_cut_off() {
        let seconds_max = (i64::MAX / 4 / 1_000_000_000) as u64;
        for endless in [Duration::MAX, Duration::from_secs(seconds_max)] {
            assert_eq!(nanos(endless), i64::MAX / 4);
        }
        let last = Duration::from_secs(seconds_max) - Duration::from_nanos(1);
        assert_eq!(i128::from(nanos(last)), last.as_nanos() as i128);
        assert_eq!(nanos(Duration::from_millis(1)), 1_000_000);
    }
}
