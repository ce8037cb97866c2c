//! `unequal-rates`: two variants are compared that answered at different rates, so differences of CPU and latency are not
//! what one of them costs.
//!
//! A finding on the experiment. A closed load without pauses asks as fast as it is answered: the slower variant is asked
//! less, uses less CPU and memory in all, and its requests wait behind fewer others. What each request costs can still be
//! compared; what an addition costs in latency cannot. It is said only where somebody would read a cost: one variant has
//! sidecars or services more than the other, or answers less and spends more on each request. A variant that answers more
//! for less is a gain, and the table says that already.

use narrows_model::comparison::{Comparison, VariantSummary};
use narrows_model::evidence::RunEvidence;
use narrows_model::finding::{Confidence, Figure, Finding, FindingKind};
use narrows_model::units;

use crate::Detector;
use crate::reading::Reading;
use crate::sidecars::{counterpart, first_of_variants, is_open, with_sidecars, without_sidecars};
use crate::thresholds::Thresholds;

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

    fn detect(&self, _reading: &Reading<'_>) -> Vec<Finding> {
        Vec::new()
    }

    fn detect_run(&self, run: &RunEvidence, comparison: &Comparison, thresholds: &Thresholds) -> Vec<(usize, Finding)> {
        let trials = first_of_variants(run);
        let of = |at: &usize| {
            let first = compared_with(run, &trials, *at)?;
            let pair = Pair::of(run, comparison, (first, *at), thresholds)?;
            pair.is_worth_saying().then(|| (*at, pair.finding(self)))
        };
        trials.iter().filter_map(of).collect()
    }
}

/// What a reader compares a variant with: the same without sidecars, else the first variant; none for the first.
fn compared_with(run: &RunEvidence, trials: &[usize], at: usize) -> Option<usize> {
    let first = trials.first().copied().filter(|first| *first != at);
    if with_sidecars(&run.trials[at]).is_empty() { first } else { counterpart(run, at).or(first) }
}

/// How much the throughput of two variants differs, as a share of the smaller; infinite when one answers nothing.
pub(crate) fn apart(first: f64, other: f64) -> f64 {
    first.max(other) / first.min(other).max(f64::MIN_POSITIVE) - 1.0
}

/// A variant beside the one it is compared with.
struct Pair<'a> {
    first: &'a VariantSummary,
    other: &'a VariantSummary,
    /// What the other has more, in words; empty when it has the same.
    more: Vec<String>,
    is_open: bool,
    thresholds: &'a Thresholds,
}

impl<'a> Pair<'a> {
    fn of(
        run: &RunEvidence,
        comparison: &'a Comparison,
        (first, other): (usize, usize),
        thresholds: &'a Thresholds,
    ) -> Option<Self> {
        let summary = |at: usize| {
            let name = &run.trials[at].trial.variant;
            comparison.variants.iter().find(|variant| variant.variant == *name && variant.rate > 0.0)
        };
        let (a, b) = (&run.trials[first], &run.trials[other]);
        let added = without_sidecars(b).difference(&without_sidecars(a)).map(|name| (*name).to_owned()).collect();
        let sidecars = with_sidecars(b).difference(&with_sidecars(a)).next().map(|_| "sidecars".to_owned());
        let more: Vec<String> = sidecars.into_iter().chain::<Vec<String>>(added).collect();
        Some(Self {
            first: summary(first)?,
            other: summary(other)?,
            more,
            is_open: is_open(a) || is_open(b),
            thresholds,
        })
    }

    fn is_worth_saying(&self) -> bool {
        let is_apart = apart(self.first.rate, self.other.rate) > self.thresholds.unequal_rate_share;
        let noise = self.other.against_first.as_ref().filter(|_| self.first.against_first.is_none());
        let is_sure = noise.is_none_or(|against| against.rate.low > 0.0 || against.rate.high < 0.0);
        is_apart && is_sure && (!self.more.is_empty() || self.is_dearer())
    }

    /// Whether a closed load got fewer answers, each of which cost more.
    fn is_dearer(&self) -> bool {
        let cpu = self.first.cpu_seconds_per_request.zip(self.other.cpu_seconds_per_request);
        let is_dearer = cpu.is_some_and(|(a, b)| b >= (1.0 + self.thresholds.unequal_cpu_share) * a);
        !self.is_open && self.other.rate < self.first.rate && is_dearer
    }

    fn finding(&self, detector: &UnequalRates) -> Finding {
        let (first, other) = (&self.first.variant, &self.other.variant);
        let what = if self.more.is_empty() { "it costs".to_owned() } else { format!("{} cost", listed(&self.more)) };
        Finding {
            title: format!(
                "{other} completes {} and {first} {}, so their total CPU and latency do not show what {what}",
                units::rate(self.other.rate),
                units::rate(self.first.rate)
            ),
            resource: "experiment".into(),
            cost_share: 1.0 - self.first.rate.min(self.other.rate) / self.first.rate.max(self.other.rate),
            cost_of: "of the larger throughput: the difference between the two".into(),
            confidence: Confidence::High,
            reasons: self.reasons(),
            numbers: self.numbers(),
            ruled_out: vec!["Noise: the throughputs are further apart than noise explains.".into()],
            falsified_by: format!("With one rate for both, {other} and {first} differ as much in latency and in CPU."),
            advice: "Compare them at one rate that both can carry, such as 60 % of the throughput of the slower one \
                     here (`constant-arrival-rate`, or a `pace` for each user). Until then only CPU for each request \
                     can be compared."
                .to_owned(),
            ..detector.finding()
        }
    }

    fn reasons(&self) -> Vec<String> {
        let (first, other) = (&self.first.variant, &self.other.variant);
        let mut reasons = vec![if self.is_open {
            "The load has a fixed rate, and not both complete all of it.".to_owned()
        } else {
            "The load is closed: faster responses lead to more requests, so each variant sets its own rate.".into()
        }];
        let cpu = self.first.cpu_seconds_per_request.zip(self.other.cpu_seconds_per_request);
        reasons.extend(cpu.map(|(a, b)| {
            format!(
                "What can be compared: CPU for each request is {} in {first} and {} in {other}.",
                units::duration(a * 1e9),
                units::duration(b * 1e9)
            )
        }));
        reasons
    }

    fn numbers(&self) -> Vec<Figure> {
        let sides = [self.first, self.other];
        let of = |variant: &VariantSummary| {
            let cpu = variant.cpu_seconds_per_request;
            let cpu =
                cpu.map(|seconds| Figure::new(format!("CPU for each request, {}", variant.variant), seconds, "s"));
            [Some(Figure::new(format!("throughput, {}", variant.variant), variant.rate, "/s")), cpu]
        };
        sides.into_iter().flat_map(of).flatten().collect()
    }
}

/// `a`, `a and b`, `a, b and c`.
fn listed(names: &[String]) -> String {
    match names {
        [all @ .., last] if !all.is_empty() => format!("{} and {last}", all.join(", ")),
        names => names.concat(),
    }
}
