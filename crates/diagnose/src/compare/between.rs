//! Differences between trials of one variant, on a logarithmic scale.
//!
//! The seconds of one trial do not show it: a start may be lucky, and other programs on the machine come and go. Where
//! each of two variants has repetitions, they show it alone, by Welch's interval. Where one of the two was measured
//! once, the standard deviation that the thresholds assume is combined with all repetitions of the run, of whichever
//! variant: as a prior of [`ASSUMED_DEGREES`] degrees of freedom that each repetition outweighs a little more (the
//! scaled inverse chi-squared distribution, Gelman et al., *Bayesian Data Analysis*, section 2.6). A spread seen in few
//! repetitions is itself uncertain, so it neither replaces the assumption nor counts for nothing.
//!
//! The assumption comes from virtual machines with 2 cores: about 10 % from repetitions on a machine of their own, and
//! 20 % of the 24 % that pairs of equal variants showed beside several builds, which hold the noise within trials too
//! (`bench/aa.py`, see the page of benchmarks). So it depends on whether others had a notable part of the machine.

use narrows_model::evidence::TrialEvidence;

use crate::read::machine::foreign_share;
use crate::stats::student::two_sided;
use crate::stats::{mean_and_variance, student_t_975};
use crate::thresholds::Thresholds;

/// Weight of the assumed spread in degrees of freedom: few, because machines differ.
const ASSUMED_DEGREES: f64 = 10.0;

/// The trials of a variant.
pub(crate) type Trials<'a> = [&'a TrialEvidence];

/// Spread between trials of one variant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread {
    variance: f64,
    degrees: f64,
}

/// The standard deviation to assume of these trials: larger when other programs or the hypervisor had a notable part of
/// the machine in any of them.
pub(crate) fn assumed<'a>(variants: impl IntoIterator<Item = &'a Trials<'a>>, thresholds: &Thresholds) -> f64 {
    let shares = variants.into_iter().flatten().filter_map(|trial| foreign_share(trial));
    match shares.fold(0.0, f64::max) >= thresholds.shared_machine_share {
        true => thresholds.trial_spread_shared,
        false => thresholds.trial_spread,
    }
}

impl Spread {
    /// The spread of these variants; `assumed` is a standard deviation.
    pub(crate) fn new<'a>(
        assumed: f64,
        variants: impl IntoIterator<Item = &'a Trials<'a>>,
        value: impl Fn(&TrialEvidence) -> f64,
    ) -> Self {
        Self::of_variances(assumed, variants.into_iter().filter_map(|trials| variance(trials, &value)))
    }

    /// The same from variances of logarithms, each with its degrees of freedom.
    pub(crate) fn of_variances(assumed: f64, seen: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let (mut squares, mut degrees) = (ASSUMED_DEGREES * assumed.powi(2), ASSUMED_DEGREES);
        for (variance, own) in seen {
            squares += own * variance;
            degrees += own;
        }
        Self { variance: squares / degrees, degrees }
    }

    /// The half-width of the 95 % interval of the logarithm of new ÷ old, of so many trials each.
    pub(crate) fn half_width(self, old: usize, new: usize) -> f64 {
        let shares = 1.0 / old.max(1) as f64 + 1.0 / new.max(1) as f64;
        student_t_975(self.degrees) * (self.variance * shares).sqrt()
    }

    /// The same of the interval that leaves out the truth as often as `level` says.
    pub(crate) fn half_width_at(self, level: f64, old: usize, new: usize) -> f64 {
        let shares = 1.0 / old.max(1) as f64 + 1.0 / new.max(1) as f64;
        two_sided(self.degrees, level) * (self.variance * shares).sqrt()
    }
}

/// The half-width of Welch's 95 % interval of the logarithm of new ÷ old over whole repetitions; `None` if a side has one
/// only.
pub(crate) fn between_repetitions(
    old: &Trials<'_>,
    new: &Trials<'_>,
    value: impl Fn(&TrialEvidence) -> f64,
) -> Option<f64> {
    let (mut sum, mut squares) = (0.0_f64, 0.0_f64);
    for side in [old, new] {
        let (variance, degrees) = variance(side, &value)?;
        let part = variance / side.len() as f64;
        sum += part;
        squares += part.powi(2) / degrees;
    }
    Some(if squares > 0.0 { student_t_975(sum.powi(2) / squares) * sum.sqrt() } else { 0.0 })
}

/// Of the logarithm, with its degrees of freedom; none with fewer than two trials.
fn variance(trials: &Trials<'_>, value: impl Fn(&TrialEvidence) -> f64) -> Option<(f64, f64)> {
    let logarithms: Vec<f64> = trials.iter().map(|trial| value(trial).max(f64::MIN_POSITIVE).ln()).collect();
    let (_, variance) = mean_and_variance(&logarithms).filter(|_| logarithms.len() > 1)?;
    Some((variance, (logarithms.len() - 1) as f64))
}

#[cfg(test)]
mod tests {
    use narrows_testkit::trial::{Load, TrialBuilder};

    use super::*;

    fn spread(assumed: f64, variants: &[&[f64]]) -> Spread {
        let trial =
            |rate: &f64| TrialBuilder::new("a").steady(1, Load { vus: 1, rate: *rate, latency_ms: 1.0 }).build();
        let trials: Vec<Vec<TrialEvidence>> = variants.iter().map(|rates| rates.iter().map(trial).collect()).collect();
        let variants: Vec<Vec<&TrialEvidence>> = trials.iter().map(|trials| trials.iter().collect()).collect();
        Spread::new(assumed, variants.iter().map(Vec::as_slice), |trial| trial.counted_load().rate())
    }

    #[test]
    fn without_repetitions_the_spread_is_the_assumed_one() {
        let spread = spread(0.15, &[&[100.0], &[400.0]]);
        assert!((spread.variance.sqrt() - 0.15).abs() < 1e-9, "{spread:?}");
        // Student's t of 10 degrees is 2.23.
        assert!((spread.half_width(1, 1) - 2.23 * 0.15 * 2.0_f64.sqrt()).abs() < 1e-6);
        assert!(spread.half_width(1, 4) < spread.half_width(1, 2));
    }

    #[test]
    fn repetitions_move_it_towards_what_they_show() {
        let deviation = |variants: &[&[f64]]| spread(0.15, variants).variance.sqrt();
        assert!(deviation(&[&[100.0, 100.0], &[100.0]]) > 0.13, "two equal trials show little");
        assert!(deviation(&[&[100.0; 30], &[100.0]]) < 0.08);
        assert!(deviation(&[&[100.0, 200.0], &[100.0]]) > 0.19);
        assert!(deviation(&[&[100.0, 200.0, 100.0, 200.0, 100.0], &[100.0]]) > 0.23);
    }

    #[test]
    fn more_is_assumed_of_a_machine_that_others_used() {
        let trial = |host: f64| {
            let trial =
                TrialBuilder::new("a").service("web", None).steady(5, Load { vus: 1, rate: 9.0, latency_ms: 1.0 });
            trial.cores(2).host_cpu(move |_| host).cpu("web", 0, |_| 0.5).build()
        };
        let (alone, shared) = (trial(0.3), trial(0.4));
        let unsampled = TrialBuilder::new("a").steady(5, Load { vus: 1, rate: 9.0, latency_ms: 1.0 }).build();
        let of = |trials: &[&TrialEvidence]| assumed([trials], &Thresholds::default());
        assert_eq!(of(&[&alone]), 0.10, "of 0.6 cores used, the service has 0.5");
        assert_eq!(of(&[&alone, &shared]), 0.20, "0.3 of 2 cores went to others");
        assert_eq!(of(&[&unsampled]), 0.10);
    }
}
