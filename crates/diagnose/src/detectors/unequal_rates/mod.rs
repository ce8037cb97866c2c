//! `unequal-rates`: two compared variants responded at different rates, so their differences in CPU and latency are not
//! the cost of either.
//!
//! This finding is about the experiment. A closed load without pauses calls as fast as it gets responses: the slower
//! variant gets fewer calls, uses less CPU and memory in total, and its requests wait behind fewer others. The cost per
//! request can still be compared; the latency that an addition costs cannot. It is reported only if a reader would see
//! a cost: one variant has more sidecars or services than the other, or completes fewer requests and spends more on
//! each. A variant that completes more for less is a gain, which the table already shows.

use narrows_model::comparison::{Comparison, Difference};
use narrows_model::evidence::RunEvidence;
use narrows_model::finding::evidence::unequal_rates as evidence;
use narrows_model::finding::evidence::variant::VariantFigures;
use narrows_model::finding::{Confidence, Finding, FindingKind, Role};

use crate::Detector;
use crate::read::Reading;
use crate::read::sidecars::{counterpart, first_of_variants, is_open, with_sidecars, without_sidecars};
use crate::thresholds::{Thresholds, rule_thresholds};

mod words;

rule_thresholds! {
    /// Share by which a slower variant must use more CPU per request.
    unequal_cpu_share: f64 = 0.10;
}

/// See the module.
#[derive(Debug)]
pub struct UnequalRates;

impl Detector for UnequalRates {
    fn kind(&self) -> FindingKind {
        FindingKind::UnequalRates
    }

    fn version(&self) -> u32 {
        1
    }

    fn role(&self, _finding: &Finding) -> Role {
        Role::LimitsReading
    }

    fn detect(&self, _reading: &Reading<'_>) -> Vec<Finding> {
        Vec::new()
    }

    fn detect_run(&self, run: &RunEvidence, comparison: &Comparison, thresholds: &Thresholds) -> Vec<(usize, Finding)> {
        let trials = first_of_variants(run);
        let of = |at: &usize| {
            let first = compared_with(run, &trials, *at)?;
            let pair = Pair::new(run, comparison, first, *at, thresholds)?;
            pair.is_worth_saying().then(|| (*at, pair.finding(self)))
        };
        trials.iter().filter_map(of).collect()
    }
}

/// The trial that a reader compares a variant with: the same variant without sidecars, else the first variant; `None`
/// for the first.
fn compared_with(run: &RunEvidence, trials: &[usize], at: usize) -> Option<usize> {
    let first = trials.first().copied().filter(|first| *first != at);
    if with_sidecars(&run.trials[at]).is_empty() { first } else { counterpart(run, at).or(first) }
}

/// Relative difference of two throughputs, as a share of the smaller; effectively infinite if one completes nothing.
pub(crate) fn apart(first: f64, other: f64) -> f64 {
    first.max(other) / first.min(other).max(f64::MIN_POSITIVE) - 1.0
}

/// A variant and the one it is compared with.
struct Pair<'a> {
    first: VariantFigures,
    other: VariantFigures,
    /// The difference to the first of all variants, if this variant is compared with that one.
    against_first: Option<&'a Difference>,
    /// Whether the other has sidecars that the first does not have.
    adds_sidecars: bool,
    /// Services that only the other has.
    added_services: Vec<String>,
    is_open: bool,
    thresholds: &'a Thresholds,
}

impl<'a> Pair<'a> {
    fn new(
        run: &RunEvidence,
        comparison: &'a Comparison,
        first: usize,
        other: usize,
        thresholds: &'a Thresholds,
    ) -> Option<Self> {
        let summary = |at: usize| {
            let name = &run.trials[at].trial.variant;
            comparison.variants.iter().find(|variant| variant.variant == *name)
        };
        let (a, b) = (&run.trials[first], &run.trials[other]);
        let (first, other) = (summary(first)?, summary(other)?);
        let added_services =
            without_sidecars(b).difference(&without_sidecars(a)).map(|name| (*name).to_owned()).collect();
        Some(Self {
            first: VariantFigures::of(first)?,
            other: VariantFigures::of(other)?,
            against_first: other.against_first.as_ref().filter(|_| first.against_first.is_none()),
            adds_sidecars: !with_sidecars(b).is_subset(&with_sidecars(a)),
            added_services,
            is_open: is_open(a) || is_open(b),
            thresholds,
        })
    }

    fn is_worth_saying(&self) -> bool {
        let is_apart = apart(self.first.rate, self.other.rate) > self.thresholds.unequal_rate_share;
        let is_sure =
            self.against_first.is_none_or(|against| against.rate_within.low > 0.0 || against.rate_within.high < 0.0);
        let has_more = self.adds_sidecars || !self.added_services.is_empty();
        is_apart && is_sure && (has_more || self.is_dearer())
    }

    /// Whether a closed load got fewer responses, each at a higher cost.
    fn is_dearer(&self) -> bool {
        let cpu = self.first.cpu_seconds_per_request.zip(self.other.cpu_seconds_per_request);
        let is_dearer = cpu.is_some_and(|(a, b)| b >= (1.0 + self.thresholds.unequal_rates.unequal_cpu_share) * a);
        !self.is_open && self.other.rate < self.first.rate && is_dearer
    }

    fn finding(&self, detector: &UnequalRates) -> Finding {
        let evidence = evidence::UnequalRates {
            first: self.first.clone(),
            other: self.other.clone(),
            adds_sidecars: self.adds_sidecars,
            added_services: self.added_services.clone(),
            is_open: self.is_open,
        };
        Finding {
            resource: "experiment".into(),
            cost_share: 1.0 - self.first.rate.min(self.other.rate) / self.first.rate.max(self.other.rate),
            confidence: Confidence::High,
            ..Finding::new(evidence, detector.version())
        }
    }
}

#[cfg(test)]
mod tests;
