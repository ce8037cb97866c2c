//! The time that a partition goes by: the machine's clock, unless it has just leapt ahead.
//!
//! A timer that fired cannot be taken back, so a clock that is wrong for a moment must not be followed. How much time
//! passes is also read from the monotonic clock: if the wall clock is far ahead of it, the partition uses the monotonic
//! clock, and follows the wall clock only once that has stayed ahead for a minute, as after the machine slept or its
//! clock was corrected. A clock that was set back is followed at once.

use std::time::Duration;

use crate::ids::Time;

/// How far the wall clock may be ahead of the expected time.
pub(crate) const LEAP_MAX: Duration = Duration::from_secs(60);
/// How long a clock that is further ahead is not followed.
pub(crate) const DOUBT: Duration = Duration::from_secs(60);

/// A clock. It is given both readings, and reads nothing itself.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    /// The last reading of the clock, and its moment by the monotonic clock.
    last: Option<(Time, Duration)>,
    /// Since when the wall clock is ahead.
    doubted: Option<Duration>,
    /// How often it leapt, ahead or back.
    leaps: u64,
}

impl Clock {
    /// The time to go by. `wall` is the wall clock's time, `since` the time since the process began.
    pub(crate) fn read(&mut self, wall: Time, since: Duration) -> Time {
        let (last, at) = *self.last.get_or_insert((wall, since));
        let expected = last.plus(since.saturating_sub(at));
        let time = if wall > expected.plus(LEAP_MAX) { self.doubt(wall, expected, since) } else { wall };
        if time == wall {
            self.doubted = None;
            self.leaps += u64::from(wall.plus(LEAP_MAX) < expected);
        }
        self.last = Some((time, since));
        time
    }

    fn doubt(&mut self, wall: Time, expected: Time, since: Duration) -> Time {
        if self.doubted.is_none() {
            self.leaps += 1;
        }
        let doubted = *self.doubted.get_or_insert(since);
        if since.saturating_sub(doubted) < DOUBT { expected } else { wall }
    }

    /// How often the clock leapt.
    pub(crate) fn leaps(&self) -> u64 {
        self.leaps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    #[test]
    fn a_clock_that_is_wrong_for_a_moment_is_not_followed() {
        let (mut clock, right) = (Clock::default(), |after| Time(1_000_000).plus(seconds(after)));
        assert_eq!(clock.read(right(0), seconds(0)), right(0));
        assert_eq!(clock.read(right(1).plus(9_000 * HOUR), seconds(1)), right(1));
        assert_eq!(clock.read(right(50).plus(9_000 * HOUR), seconds(50)), right(50));
        assert_eq!(clock.read(right(51), seconds(51)), right(51));
        assert_eq!(clock.leaps(), 1);
    }

    #[test]
    fn a_clock_that_stands_by_its_word_is_followed() {
        let (mut clock, start) = (Clock::default(), Time(1_000_000));
        clock.read(start, seconds(0));
        let slept = |after| start.plus(8 * HOUR + seconds(after));
        assert_eq!(clock.read(slept(1), seconds(1)), start.plus(seconds(1)));
        assert_eq!(clock.read(slept(61), seconds(61)), slept(61));
        assert_eq!(clock.read(slept(62), seconds(62)), slept(62));
        assert_eq!(clock.leaps(), 1);
    }

    #[test]
    fn a_clock_that_is_set_back_is_followed_at_once() {
        let (mut clock, start) = (Clock::default(), Time(0).plus(9 * HOUR));
        clock.read(start, seconds(0));
        let back = Time(0).plus(HOUR);
        assert_eq!(clock.read(back, seconds(1)), back);
        assert_eq!(clock.read(back.plus(seconds(1)), seconds(2)), back.plus(seconds(1)));
        assert_eq!(clock.leaps(), 1);
    }
}
