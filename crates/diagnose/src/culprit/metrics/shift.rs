//! Whether a figure over time is at another level than before, by robust statistics over intervals.
//!
//! Neighbouring intervals resemble each other, and a healthy system has bursts, drifts and days. So the level after is
//! compared with the levels of as many successive intervals at any time before (medians, which a burst does not move), and
//! where before covers a day or more, each interval with the same time of other days. It has changed when it lies many
//! deviations from the usual level and beyond nearly all levels that there were.

use std::collections::BTreeMap;

use crate::stats::median;

/// Intervals that each side must have.
const INTERVALS_MIN: usize = 3;
/// Standard deviation of a normal distribution ÷ its median absolute deviation.
const DEVIATION_OF_MEDIAN: f64 = 1.4826;
/// Standard error of a median ÷ that of a mean, for a normal distribution.
const ERROR_OF_MEDIAN: f64 = 1.2533;
/// Deviations from which a level has changed.
const ERRORS_MIN: f64 = 5.0;
/// Levels before are read as often as this over their own length.
const LEVELS_PER_LENGTH: usize = 8;
/// Levels before that may lie beyond the one after, as a share.
const BEYOND_SHARE: f64 = 0.005;
const HOUR_NS: i64 = 3_600_000_000_000;
const DAY_NS: i64 = 24 * HOUR_NS;
/// Length of the earlier side from which the same time of other days is compared.
const DAYS_NS_MIN: i64 = 20 * HOUR_NS;
/// Parts of a day that are compared with each other; neighbours count too.
const PARTS_OF_DAY: i64 = 48;

/// A figure of one interval.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    pub(super) time_ns: i64,
    pub(super) value: f64,
}

/// Change of a level.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Shift {
    /// Level that was to be expected after.
    pub(super) expected: f64,
    /// How much higher the level after is.
    pub(super) change: f64,
    /// The change in standard errors, signed.
    pub(super) errors: f64,
    /// Whether nearly all levels before were nearer to the usual one.
    pub(super) is_beyond: bool,
}

impl Shift {
    /// `floor` is the least standard error of a level. `None` where a side has too few intervals.
    pub(super) fn of(before: &[Sample], after: &[Sample], floor: f64) -> Option<Self> {
        if before.len() < INTERVALS_MIN || after.len() < INTERVALS_MIN {
            return None;
        }
        let usual = Usual::of(before);
        let old: Vec<f64> = before.iter().map(|sample| sample.value - usual.on_other_days(sample.time_ns)).collect();
        let new: Vec<f64> = after.iter().map(|sample| sample.value - usual.at(sample.time_ns)).collect();
        let length = new.len().min((old.len() / 4).max(1));
        let levels: Vec<f64> = old
            .windows(length)
            .step_by((length / LEVELS_PER_LENGTH).max(1))
            .filter_map(|run| median(run.to_vec()))
            .collect();
        let (usual_level, level) = (median(old.clone())?, median(new.clone())?);
        let change = level - usual_level;
        let of_levels = deviation(&levels, usual_level).max(width(&levels));
        let of_intervals = ERROR_OF_MEDIAN * deviation(&old, usual_level) / (length as f64).sqrt();
        let of_after = ERROR_OF_MEDIAN * deviation(&new, level) / (new.len() as f64).sqrt();
        // Few levels say little about how far others may lie.
        let few = (1.0 + 6.0 * length as f64 / old.len() as f64).sqrt();
        let error = few * of_levels.max(of_intervals).hypot(of_after).hypot(floor);
        let distance = |level: &f64| (level - usual_level) * change.signum();
        let further = levels.iter().filter(|level| distance(level) >= change.abs()).count();
        let expected = median(after.iter().map(|sample| usual.at(sample.time_ns)).collect())? + usual_level;
        Some(Self {
            expected,
            change,
            errors: change / error.max(f64::MIN_POSITIVE),
            is_beyond: further as f64 <= BEYOND_SHARE * levels.len() as f64,
        })
    }

    pub(super) fn is_certain(&self) -> bool {
        self.is_beyond && self.errors.abs() >= ERRORS_MIN
    }
}

/// Robust standard deviation.
fn deviation(values: &[f64], middle: f64) -> f64 {
    DEVIATION_OF_MEDIAN * median(values.iter().map(|value| (value - middle).abs()).collect()).unwrap_or(0.0)
}

/// The width of the middle 95 %, as a standard deviation.
fn width(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |share: f64| sorted[((sorted.len() - 1) as f64 * share).round() as usize];
    if sorted.is_empty() { 0.0 } else { (at(0.975) - at(0.025)) / 3.92 }
}

/// Usual level by time of day, or one level where there is no whole day.
struct Usual {
    all: f64,
    /// By day and part of it; empty where there is no whole day.
    parts: BTreeMap<(i64, i64), f64>,
    days: Vec<i64>,
}

impl Usual {
    fn of(samples: &[Sample]) -> Self {
        let all = median(samples.iter().map(|sample| sample.value).collect()).unwrap_or(0.0);
        let length = samples.last().zip(samples.first()).map_or(0, |(last, first)| last.time_ns - first.time_ns);
        let mut values: BTreeMap<(i64, i64), Vec<f64>> = BTreeMap::new();
        for sample in samples.iter().filter(|_| length >= DAYS_NS_MIN) {
            values.entry(part_of(sample.time_ns)).or_default().push(sample.value);
        }
        let mut days: Vec<i64> = values.keys().map(|(day, _)| *day).collect();
        days.dedup();
        let parts = values.into_iter().filter_map(|(part, values)| Some((part, median(values)?))).collect();
        Self { all, parts, days }
    }

    fn at(&self, time_ns: i64) -> f64 {
        self.level(time_ns, None)
    }

    /// The level at the same time of other days, or of the same day where there is no other.
    fn on_other_days(&self, time_ns: i64) -> f64 {
        let (day, _) = part_of(time_ns);
        self.level(time_ns, Some(day).filter(|_| self.days.len() > 2))
    }

    fn level(&self, time_ns: i64, without: Option<i64>) -> f64 {
        let (_, part) = part_of(time_ns);
        let mut near = Vec::new();
        for day in self.days.iter().filter(|day| Some(**day) != without) {
            for neighbour in part - 1..=part + 1 {
                let day = day + neighbour.div_euclid(PARTS_OF_DAY);
                near.extend(self.parts.get(&(day, neighbour.rem_euclid(PARTS_OF_DAY))));
            }
        }
        median(near).unwrap_or(self.all)
    }
}

/// Day and part of it.
fn part_of(time_ns: i64) -> (i64, i64) {
    (time_ns.div_euclid(DAY_NS), time_ns.rem_euclid(DAY_NS) / (DAY_NS / PARTS_OF_DAY))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hourly(values: impl IntoIterator<Item = f64>) -> Vec<Sample> {
        (0..).zip(values).map(|(hour, value)| Sample { time_ns: hour * HOUR_NS, value }).collect()
    }

    #[test]
    fn a_level_is_compared_with_the_same_time_of_other_days() {
        let by_day = |hour: usize| if hour % 24 < 12 { 1.0 } else { 5.0 } + (hour % 5) as f64 / 100.0;
        let days = hourly((0..96).map(by_day));
        let (before, evening) = days.split_at(84);
        let shift = Shift::of(before, evening, 0.02).unwrap();
        assert!(!shift.is_certain() && (shift.expected - 5.02).abs() < 0.02, "{shift:?}");
        let higher: Vec<Sample> = evening.iter().map(|one| Sample { value: one.value + 1.0, ..*one }).collect();
        let shift = Shift::of(before, &higher, 0.02).unwrap();
        assert!(shift.is_certain() && (shift.change - 1.0).abs() < 0.02, "{shift:?}");
    }

    #[test]
    fn a_burst_is_no_change() {
        let before = hourly((0..18).map(|hour| 1.0 + f64::from(hour % 3) / 50.0));
        let after = hourly([1.0, 6.0, 7.0, 1.02, 1.04]);
        assert!(!Shift::of(&before, &after, 0.01).unwrap().is_certain());
        assert_eq!(Shift::of(&before, &after[..2], 0.01), None);
    }
}
