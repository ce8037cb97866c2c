//! `sidecar-cost`: CPU and time that the services' sidecar proxies take each time a request passes one.
//!
//! One trial gives the sidecars' share of all CPU and their CPU per traversal and, if they send spans, the time of one
//! hop. The latency that they add shows only in comparison with the same system without them, and only at the same
//! rate: at another rate the services' own cost differs. So unequal rates are rejected here, and `unequal-rates`
//! reports them.

use narrows_model::comparison::{Comparison, SidecarSummary, TraversalCount};
use narrows_model::evidence::{RunEvidence, TrialEvidence};
use narrows_model::finding::evidence::sidecar_cost::{self as evidence, Compared};
use narrows_model::finding::evidence::variant::VariantFigures;
use narrows_model::finding::{Caveat, Confidence, Finding, FindingKind, Role};

use crate::Detector;
use crate::detectors::unequal_rates::apart;
use crate::read::Reading;
use crate::read::sidecars::{counterpart, first_of_variants, hop_ns, of_trial, with_sidecars};
use crate::thresholds::{Thresholds, rule_thresholds};

mod words;

rule_thresholds! {
    /// Share of the CPU of all services that sidecars must use.
    sidecar_cpu_share: f64 = 0.05;
    /// Share by which they must make the median latency longer, if they use less CPU.
    sidecar_latency_share: f64 = 0.05;
}

/// See the module.
#[derive(Debug)]
pub struct SidecarCost;

/// Resource of the finding.
const SIDECARS: &str = "sidecars";

impl Detector for SidecarCost {
    fn kind(&self) -> FindingKind {
        FindingKind::SidecarCost
    }

    fn version(&self) -> u32 {
        1
    }

    fn explains_slow_calls(&self) -> bool {
        false
    }

    fn role(&self, _finding: &Finding) -> Role {
        Role::CostsMore
    }

    fn detect(&self, reading: &Reading<'_>) -> Vec<Finding> {
        let (trial, thresholds) = (reading.trial, reading.thresholds);
        let seen = of_trial(trial).filter(|seen| seen.cpu_share >= thresholds.sidecar_cost.sidecar_cpu_share);
        seen.map(|seen| of_one(self, trial, seen)).into_iter().collect()
    }

    fn detect_run(&self, run: &RunEvidence, comparison: &Comparison, thresholds: &Thresholds) -> Vec<(usize, Finding)> {
        let of = |at: usize| {
            let other = counterpart(run, at).filter(|_| !with_sidecars(&run.trials[at]).is_empty())?;
            let pair = Pair::new(run, comparison, other, at, thresholds)?;
            pair.is_worth_saying().then(|| (at, pair.finding(self)))
        };
        first_of_variants(run).into_iter().filter_map(of).collect()
    }
}

/// The finding of a single trial.
fn of_one(detector: &SidecarCost, trial: &TrialEvidence, seen: SidecarSummary) -> Finding {
    Finding {
        resource: SIDECARS.into(),
        cost_share: seen.cpu_share,
        confidence: Confidence::Medium,
        caveats: vec![Caveat::SidecarLatencyNotCompared],
        ..Finding::new(
            evidence::SidecarCost { sidecars: seen, hop_ns: hop_ns(trial), compared: None },
            detector.version(),
        )
    }
}

/// A variant with sidecars and the same variant without them, at the same rate.
struct Pair<'a> {
    without: VariantFigures,
    with: VariantFigures,
    seen: &'a SidecarSummary,
    hop_ns: Option<f64>,
    thresholds: &'a Thresholds,
}

impl<'a> Pair<'a> {
    /// Returns `None` if the two responded at different rates.
    fn new(
        run: &RunEvidence,
        comparison: &'a Comparison,
        without: usize,
        with: usize,
        thresholds: &'a Thresholds,
    ) -> Option<Self> {
        let summary = |at: usize| {
            let name = &run.trials[at].trial.variant;
            comparison.variants.iter().find(|variant| variant.variant == *name)
        };
        let hop_ns = hop_ns(&run.trials[with]);
        let seen = summary(with)?.sidecars.as_ref()?;
        let (without, with) = (VariantFigures::of(summary(without)?)?, VariantFigures::of(summary(with)?)?);
        let is_equal = apart(without.rate, with.rate) <= thresholds.unequal_rate_share;
        Some(Self { without, with, seen, hop_ns, thresholds }).filter(|_| is_equal)
    }

    /// Relative increase of the median latency and of the 95th percentile.
    fn added(&self) -> (f64, f64) {
        let share = |a: f64, b: f64| if a > 0.0 { b / a - 1.0 } else { 0.0 };
        (share(self.without.p50_ns, self.with.p50_ns), share(self.without.p95_ns, self.with.p95_ns))
    }

    fn is_worth_saying(&self) -> bool {
        let is_slower = self.added().0 >= self.thresholds.sidecar_cost.sidecar_latency_share;
        self.seen.cpu_share >= self.thresholds.sidecar_cost.sidecar_cpu_share || is_slower && self.seen.cpu_share > 0.01
    }

    fn finding(&self, detector: &SidecarCost) -> Finding {
        let compared = Compared {
            without: self.without.clone(),
            with: self.with.clone(),
            rate_share_max: self.thresholds.unequal_rate_share,
        };
        let cpu = compared.cpu_seconds_per_request();
        let confidence = match self.seen.counted_from {
            TraversalCount::Services => Confidence::Medium,
            TraversalCount::Hops | TraversalCount::Calls => Confidence::High,
        };
        let evidence =
            evidence::SidecarCost { sidecars: self.seen.clone(), hop_ns: self.hop_ns, compared: Some(compared) };
        Finding {
            resource: SIDECARS.into(),
            cost_share: cpu.map_or(self.seen.cpu_share, |(without, with)| (1.0 - without / with).clamp(0.0, 1.0)),
            confidence,
            caveats: vec![Caveat::SidecarsShareMachine],
            ..Finding::new(evidence, detector.version())
        }
    }
}

#[cfg(test)]
mod tests;
