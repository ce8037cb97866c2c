//! Effects of a parameter on ratios, told apart from what ratios do by themselves.
//!
//! Single short runs are compared here, and runs without a change differ too. A ratio has moved if it is outside the range of
//! those runs by more than the range is wide. A parameter has an effect if its lower and its higher value differ by more than
//! that: where both have moved the same way, the machine is the likelier cause.

use narrows_model::sensitivity::{Examined, Point, PointFigure, ScaledParameter};

/// Ratios of runs without a change that are no further apart than this, as a share, count as equal: a smaller difference is
/// never an effect, however alike two of these runs happen to be.
const NEAR: f64 = 0.05;

/// The ratios of a variant to its base in the runs without a change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Range {
    pub(super) least: f64,
    pub(super) largest: f64,
}

impl Range {
    /// Of one variant in a figure; `None` if no run without a change has both of its values.
    pub(super) fn of(examined: &Examined, figure: &str, variant: usize) -> Option<Self> {
        let ratios = examined.as_is.iter().filter_map(|point| point.figure(figure)?.ratio_to_base(variant));
        ratios.fold(None, |range: Option<Self>, ratio| {
            let range = range.unwrap_or(Self { least: ratio, largest: ratio });
            Some(Self { least: range.least.min(ratio), largest: range.largest.max(ratio) })
        })
    }

    /// True if its ratios count as equal.
    pub(super) fn is_narrow(self) -> bool {
        self.largest <= self.least * (1.0 + NEAR)
    }

    /// Factor by which ratios may differ without an effect.
    fn width(self) -> f64 {
        (self.largest / self.least).max(1.0 + NEAR)
    }

    /// Direction in which a ratio has moved: `↑`, `↓`, or empty.
    pub(super) fn moved(self, ratio: f64) -> &'static str {
        if ratio > self.largest * self.width() {
            "↑"
        } else if ratio * self.width() < self.least {
            "↓"
        } else {
            ""
        }
    }

    /// True if two ratios differ by more than those of the range.
    fn is_exceeded_by(self, a: f64, b: f64) -> bool {
        a.max(b) > a.min(b) * self.width()
    }
}

/// True if the runs with the lower and with the higher value differ no more than those without a change. False if one of
/// them is missing.
pub(super) fn is_noise(examined: &Examined, parameter: &ScaledParameter) -> bool {
    let (Some(lower), Some(higher)) = (&parameter.lower.point, &parameter.higher.point) else { return false };
    let effects: Vec<bool> = lower.figures.iter().flat_map(|figure| effects(examined, figure, higher)).collect();
    !effects.is_empty() && !effects.contains(&true)
}

/// Whether each ratio of a figure differs by more between two values than without a change.
fn effects(examined: &Examined, lower: &PointFigure, higher: &Point) -> Vec<bool> {
    let is_compared = |at: &usize| lower.bases.get(*at).is_some_and(|base| base != at);
    let effect = |at: usize| {
        let higher = higher.figure(&lower.name)?.ratio_to_base(at)?;
        Some(Range::of(examined, &lower.name, at)?.is_exceeded_by(lower.ratio_to_base(at)?, higher))
    };
    (0..lower.values.len()).filter(is_compared).filter_map(effect).collect()
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{examined, point};
    use super::*;

    #[test]
    fn a_ratio_has_moved_where_it_is_further_outside_than_the_range_is_wide() {
        let wide = Range { least: 1.25, largest: 1.50 };
        for (ratio, expected) in [(1.40, ""), (1.79, ""), (1.81, "↑"), (1.05, ""), (1.04, "↓")] {
            assert_eq!(wide.moved(ratio), expected, "{ratio}");
        }
        let narrow = Range { least: 1.30, largest: 1.31 };
        for (ratio, expected) in [(1.37, ""), (1.38, "↑"), (1.24, ""), (1.23, "↓")] {
            assert_eq!(narrow.moved(ratio), expected, "{ratio}");
        }
        assert!(narrow.is_narrow() && !wide.is_narrow());
    }

    #[test]
    fn the_range_is_that_of_the_runs_without_a_change() {
        assert_eq!(Range::of(&examined(), "throughput", 2), Some(Range { least: 2.3, largest: 2.4 }));
        assert_eq!(Range::of(&examined(), "p95", 2), None);
    }

    #[test]
    fn a_parameter_is_noise_where_its_values_differ_as_little_as_unchanged_runs() {
        let mut examined = examined();
        let mut parameter = examined.parameters[0].clone();
        assert!(!is_noise(&examined, &parameter));
        examined.as_is[0] = point([20.0, 22.0, 40.0]);
        assert!(!is_noise(&examined, &parameter), "the third goes from ×1.77 to ×3.00, unchanged from ×2.00 to ×2.40");
        examined.as_is[1] = point([20.0, 32.5, 72.0]);
        assert!(is_noise(&examined, &parameter));
        parameter.higher.point = Some(point([20.0, 60.0, 80.0]));
        parameter.lower.point = Some(point([20.0, 58.0, 84.0]));
        assert!(is_noise(&examined, &parameter), "both are higher");
        parameter.lower.point = None;
        assert!(!is_noise(&examined, &parameter));
    }
}
