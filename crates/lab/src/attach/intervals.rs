//! When there was something to see: instants gathered into intervals without a long pause.
//!
//! Files hold what someone collected: an hour, or ten minutes on each of three days, or a trace of 1970 among those of
//! today. Rates over the pauses between would be wrong, so each interval is a window of its own.

use std::collections::BTreeMap;

use narrows_model::run::{Window, WindowKind};

const SECOND_NS: i64 = 1_000_000_000;
/// A pause that parts intervals, in seconds.
const PAUSE_S: i64 = 60;
/// A pause between samples, in steps of theirs.
const STEPS_OF_PAUSE: i64 = 3;
/// Seconds that are remembered; instants in further ones do not count.
const SECONDS_MAX: usize = 1_000_000;
/// The most windows; of more intervals those with the most records count.
const WINDOWS_MAX: usize = 50;
/// The longest that one span can extend an interval, in nanoseconds: an hour.
const LENGTH_NS_MAX: i64 = 3_600 * SECOND_NS;

/// See the module.
#[derive(Debug, Clone, Default)]
pub(super) struct Intervals {
    seconds: BTreeMap<i64, Second>,
    /// Usual time between samples, seconds; 0 unless it is known.
    step_s: i64,
}

#[derive(Debug, Clone, Copy)]
struct Second {
    first_ns: i64,
    last_ns: i64,
    records: u64,
}

impl Intervals {
    /// Takes up something that began and ended.
    pub(super) fn add(&mut self, start_ns: i64, end_ns: i64) {
        let second = start_ns.div_euclid(SECOND_NS);
        if self.seconds.len() >= SECONDS_MAX && !self.seconds.contains_key(&second) {
            return;
        }
        let end_ns = end_ns.clamp(start_ns, start_ns.saturating_add(LENGTH_NS_MAX));
        let at = self.seconds.entry(second).or_insert(Second { first_ns: start_ns, last_ns: end_ns, records: 0 });
        at.first_ns = at.first_ns.min(start_ns);
        at.last_ns = at.last_ns.max(end_ns);
        at.records += 1;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.seconds.is_empty()
    }

    /// The same of samples: a pause is several times as long as the usual time between them.
    pub(super) fn of_samples(mut self) -> Self {
        let seconds: Vec<i64> = self.seconds.keys().copied().collect();
        let mut gaps: Vec<i64> = seconds.windows(2).map(|pair| pair[1] - pair[0]).collect();
        gaps.sort_unstable();
        self.step_s = gaps.get(gaps.len() / 2).copied().unwrap_or(0);
        self
    }

    /// The windows in order of time, and how many intervals there are besides.
    pub(super) fn windows(&self) -> (Vec<Window>, usize) {
        let pause_ns = PAUSE_S.max(self.step_s.saturating_mul(STEPS_OF_PAUSE)).saturating_mul(SECOND_NS);
        let mut intervals: Vec<Second> = Vec::new();
        for second in self.seconds.values() {
            match intervals.last_mut() {
                Some(last) if second.first_ns.saturating_sub(last.last_ns) <= pause_ns => {
                    last.last_ns = last.last_ns.max(second.last_ns);
                    last.records += second.records;
                }
                _ => intervals.push(*second),
            }
        }
        let left_out = intervals.len().saturating_sub(WINDOWS_MAX);
        if left_out > 0 {
            intervals.sort_by_key(|interval| (std::cmp::Reverse(interval.records), interval.first_ns));
            intervals.truncate(WINDOWS_MAX);
            intervals.sort_by_key(|interval| interval.first_ns);
        }
        let is_one = intervals.len() == 1;
        let label = |index| if is_one { "all of it".to_owned() } else { format!("interval {}", index + 1) };
        let windows = (0..).zip(&intervals).map(|(index, interval)| interval.window(index, label(index)));
        (windows.collect(), left_out)
    }
}

impl Second {
    /// The window of an interval.
    fn window(&self, index: u32, label: String) -> Window {
        Window {
            index,
            kind: WindowKind::Steady,
            label,
            start_ns: self.first_ns,
            end_ns: self.last_ns.saturating_add(1),
            drained_ns: None,
            vus: 0,
            rate: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn windows(spans: &[(i64, i64)]) -> Vec<(i64, i64)> {
        let mut intervals = Intervals::default();
        spans.iter().for_each(|(start, end)| intervals.add(start * SECOND_NS, end * SECOND_NS));
        let (windows, _) = intervals.windows();
        windows.iter().map(|window| (window.start_ns / SECOND_NS, (window.end_ns - 1) / SECOND_NS)).collect()
    }

    #[test]
    fn a_pause_between_samples_is_several_steps_long() {
        let mut samples = Intervals::default();
        let times = (0..4).map(|at| at * 300).chain((0..4).map(|at| 10_000 + at * 300));
        times.for_each(|second| samples.add(second * SECOND_NS, second * SECOND_NS));
        assert_eq!(samples.windows().0.len(), 8);
        assert_eq!(samples.of_samples().windows().0.len(), 2);
    }

    #[test]
    fn a_long_pause_parts_intervals() {
        assert_eq!(windows(&[(100, 101), (159, 160), (10, 20), (80, 80)]), [(10, 160)]);
        assert_eq!(windows(&[(1000, 1001), (10, 20), (81, 82)]), [(10, 20), (81, 82), (1000, 1001)]);
        assert_eq!(windows(&[]), []);
        assert_eq!(windows(&[(10, 5)]), [(10, 10)], "a clock that ran backwards");
        assert_eq!(windows(&[(10, 1_000_000)]), [(10, 3_610)], "a span that never ended");
    }

    #[test]
    fn of_too_many_intervals_the_fullest_count() {
        let mut intervals = Intervals::default();
        for n in 0..WINDOWS_MAX as i64 + 5 {
            (0..=(n % 7)).for_each(|_| intervals.add(n * 1000 * SECOND_NS, n * 1000 * SECOND_NS));
        }
        let (windows, left_out) = intervals.windows();
        assert_eq!((windows.len(), left_out), (WINDOWS_MAX, 5));
        assert!(windows.windows(2).all(|pair| pair[0].end_ns <= pair[1].start_ns));
        assert!(windows.iter().zip(0..).all(|(window, index)| window.index == index));
    }
}
