//! Points of several series at common instants, so that they can be added up.
//!
//! Reporters send every few seconds, each at its own times. The grid has steps as long as the usual distance of two points;
//! a step that a series has no point in keeps the value before, for a while.

use std::collections::BTreeMap;

use narrows_model::series::Point;

/// The shortest step, nanoseconds.
const STEP_NS_MIN: i64 = 1_000_000_000;
/// The longest step: reporters that send less often are not kept between their points.
const STEP_NS_MAX: i64 = 60 * STEP_NS_MIN;
/// Steps for which a value is kept when a point is missing.
const KEPT_STEPS: i64 = 2;

/// Common instants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Grid {
    step_ns: i64,
}

impl Grid {
    /// Steps of the median distance between the points of these series.
    pub(super) fn of<'a>(series: impl Iterator<Item = &'a Vec<Point>>) -> Self {
        let gap = |pair: &[Point]| pair[1].time_ns.saturating_sub(pair[0].time_ns);
        let mut gaps: Vec<i64> = series.flat_map(|points| points.windows(2).map(gap)).filter(|gap| *gap > 0).collect();
        gaps.sort_unstable();
        let median = gaps.get(gaps.len() / 2).copied().unwrap_or(STEP_NS_MIN);
        Self { step_ns: median.clamp(STEP_NS_MIN, STEP_NS_MAX) }
    }

    /// The sum of series that belong together, at the middle of each step in which one of them has a value.
    pub(super) fn sum(self, series: &[Vec<Point>]) -> Vec<Point> {
        let mut sums: BTreeMap<i64, f64> = BTreeMap::new();
        for points in series {
            self.steps(points).into_iter().for_each(|(step, value)| *sums.entry(step).or_default() += value);
        }
        let time_ns = |step: i64| step.saturating_mul(self.step_ns).saturating_add(self.step_ns / 2);
        sums.into_iter().map(|(step, value)| Point { time_ns: time_ns(step), value }).collect()
    }

    /// The mean of the points in each step, with what is kept of a step before.
    fn steps(self, points: &[Point]) -> BTreeMap<i64, f64> {
        let mut means: BTreeMap<i64, (f64, f64)> = BTreeMap::new();
        for point in points {
            let (sum, count) = means.entry(point.time_ns.div_euclid(self.step_ns)).or_default();
            (*sum, *count) = (*sum + point.value, *count + 1.0);
        }
        let mut steps = BTreeMap::new();
        let mut before: Option<(i64, f64)> = None;
        for (step, (sum, count)) in means {
            if let Some((known, value)) = before {
                let is_short = step - known <= KEPT_STEPS + 1;
                (known + 1..step).filter(|_| is_short).for_each(|missing| {
                    steps.insert(missing, value);
                });
            }
            before = Some((step, sum / count));
            steps.insert(step, sum / count);
        }
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    fn points(of: &[(i64, f64)]) -> Vec<Point> {
        of.iter().map(|(second, value)| Point { time_ns: second * SECOND, value: *value }).collect()
    }

    #[test]
    fn series_that_are_sent_at_other_times_are_added_up() {
        let (one, other) = (points(&[(3, 1.0), (13, 2.0), (23, 3.0)]), points(&[(8, 10.0), (18, 20.0), (28, 30.0)]));
        let grid = Grid::of([&one, &other].into_iter());
        assert_eq!(grid.sum(&[one, other]), points(&[(5, 11.0), (15, 22.0), (25, 33.0)]));
    }

    #[test]
    fn a_missing_point_is_bridged_and_a_long_pause_is_not() {
        let grid = Grid { step_ns: 10 * SECOND };
        let sum = grid.sum(&[points(&[(5, 1.0), (25, 2.0), (95, 3.0)])]);
        assert_eq!(sum, points(&[(5, 1.0), (15, 1.0), (25, 2.0), (95, 3.0)]));
        assert_eq!(grid.sum(&[]), []);
        assert_eq!(Grid::of(std::iter::empty()), Grid { step_ns: SECOND });
    }

    #[test]
    fn instants_at_the_end_of_time_do_not_overflow() {
        let grid = Grid { step_ns: STEP_NS_MAX };
        let late = Point { time_ns: i64::MAX, value: 1.0 };
        assert_eq!(grid.sum(&[vec![late]]).len(), 1);
    }
}
