//! Conclusions of an experiment that hold, and those that do not, in a run with a scaled parameter.
//!
//! Single short runs are compared here, so the rules have room for noise: variants are in an order only where every run
//! without a change sets them well apart, and a bottleneck that any of those runs names is no other one.

use narrows_model::sensitivity::{Examined, Point, PointFigure};

/// Two variants are in an order where their values are further apart than this, as a share of the lower one, in every run
/// without a change.
const APART: f64 = 0.10;
/// They no longer are where their values are not further apart than this. It is less than [`APART`], so that a difference near
/// that limit is not lost by chance.
const LEVEL: f64 = 0.05;
/// A ratio has moved where it is further than this, as a share of it, from those of all runs without a change.
const MOVED: f64 = 0.05;

/// The conclusions that do not hold.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Difference {
    /// Variants with another bottleneck: variant, the one without a change, the one now.
    pub(super) bottlenecks: Vec<[String; 3]>,
    /// Of each figure, the pairs of variants that changed places or are no longer apart, in words.
    pub(super) order: Vec<String>,
}

impl Difference {
    pub(super) fn is_nothing(&self) -> bool {
        self.bottlenecks.is_empty() && self.order.is_empty()
    }
}

/// Conclusions of an experiment that do not hold at a point; `None` if there is nothing to compare with.
pub(super) fn changed(examined: &Examined, point: &Point) -> Option<Difference> {
    let first = examined.as_is.first()?;
    let bottlenecks = point.variants.iter().filter_map(|now| {
        let before = bottlenecks_of(examined, &now.variant);
        let is_other = !before.is_empty() && !before.contains(&now.bottleneck.as_str());
        is_other.then(|| [now.variant.clone(), before.join(" or "), now.bottleneck.clone()])
    });
    let order = first.figures.iter().filter_map(|figure| Some((figure, point.figure(&figure.name)?)));
    let order = order.filter_map(|(figure, now)| lost(examined, first, figure, now));
    Some(Difference { bottlenecks: bottlenecks.collect(), order: order.collect() })
}

/// The bottlenecks that the runs without a change name for a variant, each once.
pub(super) fn bottlenecks_of<'a>(examined: &'a Examined, variant: &str) -> Vec<&'a str> {
    let mut all: Vec<&str> = Vec::new();
    let variants = examined.as_is.iter().flat_map(|point| &point.variants);
    for of in variants.filter(|of| of.variant == variant) {
        if !all.contains(&of.bottleneck.as_str()) {
            all.push(&of.bottleneck);
        }
    }
    all
}

/// The pairs of a figure's variants that are not in their order now; `None` if all are.
fn lost(examined: &Examined, first: &Point, figure: &PointFigure, now: &PointFigure) -> Option<String> {
    let name = |at: usize| first.variants.get(at).map_or("", |of| of.variant.as_str());
    let how = |(above, below): (usize, usize)| {
        let how = match now.ratio(above, below)? {
            ratio if ratio * (1.0 + LEVEL) < 1.0 => "below",
            ratio if ratio <= 1.0 + LEVEL => "no longer above",
            _ => return None,
        };
        Some(format!("{} {how} {}", name(above), name(below)))
    };
    let all: Vec<String> = pairs(examined, figure).into_iter().filter_map(how).collect();
    (!all.is_empty()).then(|| format!("{}: {}", figure.name, all.join(", ")))
}

/// The pairs of variants, above and below, that a figure sets apart in every run without a change.
fn pairs(examined: &Examined, figure: &PointFigure) -> Vec<(usize, usize)> {
    let all = 0..figure.values.len();
    all.clone()
        .flat_map(|above| all.clone().map(move |below| (above, below)))
        .filter(|(above, below)| is_above(examined, &figure.name, *above, *below))
        .collect()
}

/// True if every run without a change sets one variant well above another.
pub(super) fn is_above(examined: &Examined, figure: &str, above: usize, below: usize) -> bool {
    let ratio = |point: &Point| point.figure(figure).and_then(|figure| figure.ratio(above, below));
    !examined.as_is.is_empty()
        && examined.as_is.iter().all(|point| ratio(point).is_some_and(|ratio| ratio > 1.0 + APART))
}

/// The least and the largest ratio of a variant to its base in the runs without a change.
pub(super) fn as_is(examined: &Examined, figure: &str, variant: usize) -> Option<(f64, f64)> {
    let ratios = examined.as_is.iter().filter_map(|point| point.figure(figure)?.ratio_to_base(variant));
    ratios.fold(None, |range, ratio| {
        let (least, largest) = range.unwrap_or((ratio, ratio));
        Some((ratio.min(least), ratio.max(largest)))
    })
}

/// True if two values are as good as the same.
pub(super) fn are_near(least: f64, largest: f64) -> bool {
    largest <= least * (1.0 + MOVED)
}

/// Direction of a ratio relative to the runs without a change: `↑`, `↓` or empty.
pub(super) fn moved(ratio: f64, least: f64, largest: f64) -> &'static str {
    if ratio > largest * (1.0 + MOVED) {
        "↑"
    } else if ratio * (1.0 + MOVED) < least {
        "↓"
    } else {
        ""
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{examined, point};
    use super::*;

    fn order(throughput: [f64; 3]) -> Vec<String> {
        changed(&examined(), &point(throughput)).unwrap().order
    }

    #[test]
    fn variants_that_change_places_or_meet_are_named() {
        assert_eq!(order([20.0, 27.0, 46.0]), [""; 0]);
        assert_eq!(order([20.0, 21.1, 46.0]), [""; 0], "a smaller gain is a gain");
        assert_eq!(order([20.0, 20.9, 46.0]), ["throughput: second no longer above first"]);
        assert_eq!(order([20.0, 46.0, 27.0]), ["throughput: third below second"]);
        assert_eq!(
            order([27.0, 26.0, 20.0]),
            ["throughput: second no longer above first, third below first, third below second"]
        );
    }

    #[test]
    fn what_is_not_apart_without_a_change_has_no_order() {
        let mut examined = examined();
        examined.as_is[1] = point([20.0, 21.5, 46.0]);
        assert!(changed(&examined, &point([27.0, 20.0, 46.0])).unwrap().is_nothing());
        examined.as_is.clear();
        assert_eq!(changed(&examined, &point([27.0, 20.0, 46.0])), None);
    }

    #[test]
    fn a_bottleneck_is_another_one_when_no_run_without_a_change_names_it() {
        let mut examined = examined();
        let mut now = point([20.0, 27.0, 46.0]);
        now.variants[1].bottleneck = "cpu-saturation at shop".to_owned();
        let changed_to = |examined: &Examined| changed(examined, &now).unwrap().bottlenecks;
        assert_eq!(
            changed_to(&examined),
            [["second", "throttling at store", "cpu-saturation at shop"].map(str::to_owned)]
        );
        examined.as_is[1].variants[1].bottleneck = "cpu-saturation at shop".to_owned();
        assert!(changed_to(&examined).is_empty());
    }

    #[test]
    fn a_ratio_moves_when_it_leaves_the_range_of_the_runs_without_a_change() {
        for (ratio, expected) in [(1.30, ""), (1.40, ""), (1.49, "↑"), (1.20, "↓"), (1.25, "")] {
            assert_eq!(moved(ratio, 1.30, 1.40), expected, "{ratio}");
        }
        assert_eq!(as_is(&examined(), "throughput", 2), Some((2.3, 2.4)));
        assert_eq!(as_is(&examined(), "p95", 2), None);
    }
}
