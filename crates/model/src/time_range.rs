//! A part of a trial between two moments, as people name it: `09:10..09:20`, `5m..10m`.

use std::ops::Range;

use crate::run::Window;

const DAY_NS: i64 = 86_400_000_000_000;

/// A moment in or near a trial. All are nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// Since the Unix epoch.
    At(i64),
    /// Since the trial's start, 0 or more.
    SinceStart(i64),
    /// Since midnight in UTC, 0 or more and less than a day: the first such moment that is not a whole hour or more before
    /// the trial's start.
    TimeOfDay(i64),
}

/// From one moment to before another; a missing one is the trial's start or end. The default is all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TimeRange {
    /// The first moment.
    pub from: Option<Moment>,
    /// The first moment after.
    pub until: Option<Moment>,
}

impl TimeRange {
    /// All of a trial.
    pub fn is_all(&self) -> bool {
        *self == Self::default()
    }

    /// The range in nanoseconds since the epoch, of a trial that started at an instant.
    pub fn of_trial(&self, started_ns: i64) -> Range<i64> {
        let instant = |moment: Moment| moment.instant(started_ns);
        self.from.map_or(i64::MIN, instant)..self.until.map_or(i64::MAX, instant)
    }

    /// Parts of windows that lie in the range. Windows keep their positions.
    pub fn cut(&self, windows: Vec<Window>, started_ns: i64) -> Vec<Window> {
        let within = self.of_trial(started_ns);
        let cut = windows.into_iter().map(|window| Window {
            start_ns: window.start_ns.max(within.start),
            end_ns: window.end_ns.min(within.end),
            drained_ns: window.drained_ns.filter(|_| window.end_ns <= within.end),
            ..window
        });
        cut.filter(|window| window.start_ns < window.end_ns).collect()
    }
}

impl Moment {
    fn instant(self, started_ns: i64) -> i64 {
        match self {
            Moment::At(instant) => instant,
            Moment::SinceStart(length) => started_ns.saturating_add(length),
            Moment::TimeOfDay(time) => {
                let midnight = started_ns.saturating_sub(started_ns.rem_euclid(DAY_NS));
                let today = midnight.saturating_add(time);
                if today.saturating_add(EARLIER_NS_MAX) > started_ns { today } else { today.saturating_add(DAY_NS) }
            }
        }
    }
}

/// A time of day so long before the start is the next day's.
const EARLIER_NS_MAX: i64 = 3_600_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::WindowKind;

    const HOUR_NS: i64 = 3_600_000_000_000;
    /// Half past ten in the evening of a day.
    const STARTED: i64 = 20_000 * DAY_NS + 22 * HOUR_NS + HOUR_NS / 2;

    fn range(from: Moment, until: Moment) -> TimeRange {
        TimeRange { from: Some(from), until: Some(until) }
    }

    #[test]
    fn moments_are_of_the_trial() {
        let of_trial = |from, until| {
            let within = range(from, until).of_trial(STARTED);
            (within.start - STARTED, within.end - STARTED)
        };
        assert_eq!(of_trial(Moment::SinceStart(5), Moment::At(STARTED + 9)), (5, 9));
        let hours = |from: i64, until: i64| {
            of_trial(Moment::TimeOfDay(from * HOUR_NS), Moment::TimeOfDay(until * HOUR_NS)).1 / HOUR_NS
        };
        assert_eq!(hours(22, 23), 0, "23:00 on the same day");
        assert_eq!(hours(23, 1), 2, "1:00 on the next day");
        let within = range(Moment::TimeOfDay(22 * HOUR_NS), Moment::TimeOfDay(HOUR_NS)).of_trial(STARTED);
        assert_eq!(within.start, STARTED - HOUR_NS / 2, "a little before the start");
        assert_eq!(TimeRange::default().of_trial(STARTED), i64::MIN..i64::MAX);
    }

    #[test]
    fn windows_are_cut() {
        let window = |index: u32, start: i64, end: i64| Window {
            index,
            kind: WindowKind::Steady,
            label: String::new(),
            start_ns: STARTED + start,
            end_ns: STARTED + end,
            drained_ns: None,
            vus: 0,
            rate: None,
        };
        let cut = |from, until| {
            let windows = vec![window(0, 0, 10), window(1, 10, 20)];
            let cut = range(Moment::SinceStart(from), Moment::SinceStart(until)).cut(windows, STARTED);
            cut.iter().map(|one| (one.index, one.start_ns - STARTED, one.end_ns - STARTED)).collect::<Vec<_>>()
        };
        assert_eq!(cut(5, 12), [(0, 5, 10), (1, 10, 12)]);
        assert_eq!(cut(10, 100), [(1, 10, 20)]);
        assert_eq!(cut(20, 30), []);
        assert_eq!(cut(15, 5), []);
        let last = Window { drained_ns: Some(STARTED + 25), ..window(1, 10, 20) };
        let drained = |until| {
            range(Moment::SinceStart(0), Moment::SinceStart(until)).cut(vec![last.clone()], STARTED)[0].drained_ns
        };
        assert_eq!((drained(20), drained(19)), (Some(STARTED + 25), None), "what came after belongs to the load's end");
    }
}
