//! `not-steady`: a window that is declared steady but is not, so its mean depends on when it is measured.
//!
//! This finding is about the experiment. The tests are in `steadiness.rs`: a trend, a start that has not settled, and a
//! wave that fits into the window too few times. Of several windows, the worst one is reported. An open load that
//! offers more than the system completes has no steady state; the finding then reports that instead.
//!
//! Warm-up, CPU per request that falls from level to level (`warm_up.rs`), is a finding of its own, because
//! each window may look steady.
//!
//! A change that the hypervisor, other programs or the generator explain is named as such (`disturbance.rs`). If a part
//! of the window is free of the disturbance and steady, so is the system.
//!
//! Confidence is high, which makes the trial's figures invalid, only if the change is large and such windows make up
//! most of the counted time. It is never high for a load beyond the capacity, whose throughput is correct, nor for
//! windows that are steady apart from a disturbance.

use narrows_model::finding::evidence::not_steady::{self as evidence, Change};
use narrows_model::finding::{Confidence, Finding, FindingKind, Role};

use crate::Detector;
use crate::detectors::not_steady::steadiness::{Unsteady, unsteady};
use crate::detectors::not_steady::warm_up::warm_up;
use crate::read::Reading;
use crate::read::intervals::Interval;
use crate::read::periods::period_of;
use crate::read::seconds::Quantity;
use crate::stats::finite;
use crate::thresholds::rule_thresholds;

mod disturbance;
mod steadiness;
pub(super) mod warm_up;
mod words;

rule_thresholds! {
    /// Seconds that a window must have.
    unsteady_seconds: usize = 20;
    /// Change from the first half to the second, or standard deviation of a wave, as a share of the mean.
    unsteady_share: f64 = 0.15;
    /// Change from the first fifth to the rest, as a share.
    unsteady_start_share: f64 = 0.30;
    /// Standard deviations at which the Mann–Kendall test finds a trend.
    unsteady_trend: f64 = 1.96;
    /// Correlation of the seconds with those one period later.
    unsteady_wave_correlation: f64 = 0.60;
    /// Change from which the figures are invalid, if most of the counted time shows one.
    unsteady_invalid_share: f64 = 0.50;
    /// Difference in the share of the machine's CPU that the hypervisor or other programs take in the tenths of a
    /// window, from which they may explain a change.
    unsteady_disturbed_share: f64 = 0.05;
    /// CPU per request of the first level as a multiple of that of the last, from which a service warms up.
    warm_up_factor: f64 = 2.0;
    /// CPU per request of the first level, nanoseconds, at least.
    warm_up_cost_ns: f64 = 1e6;
    /// Cores that the service must use at the first level.
    warm_up_cores: f64 = 0.2;
    /// Share above the last level's CPU per request up to which a level is warm.
    warm_up_settled_share: f64 = 0.2;
    /// Rank correlation of what disturbs with the quantity, from which it explains a change.
    unsteady_disturbed_correlation: f64 = 0.60;
}

/// See the module.
#[derive(Debug)]
pub struct NotSteady;

/// Resource of the finding.
const EXPERIMENT: &str = "experiment";
/// Share of the counted time from which unsteady windows count as most of the trial.
const MOST: f64 = 0.5;
/// An open load is beyond the capacity if at most this share of it completes.
const COMPLETED_SHARE: f64 = 0.95;

impl Detector for NotSteady {
    fn kind(&self) -> FindingKind {
        FindingKind::NotSteady
    }

    fn version(&self) -> u32 {
        3
    }

    fn role(&self, finding: &Finding) -> Role {
        if finding.confidence == Confidence::High { Role::Invalidates } else { Role::LimitsReading }
    }

    fn detect(&self, reading: &Reading<'_>) -> Vec<Finding> {
        let found = unsteady(reading.trial, reading.intervals, reading.thresholds);
        let order = |one: &Unsteady<'_>| (one.disturbance.is_none(), one.is_unreliable());
        let worst = found.iter().max_by(|a, b| order(a).cmp(&order(b)).then(a.share.total_cmp(&b.share)));
        let of_window = worst.map(|worst| finding(self, reading, &found, worst));
        let of_service = warm_up(reading).map(|warm_up| warming(self, warm_up));
        of_window.into_iter().chain(of_service).collect()
    }
}

fn warming(detector: &NotSteady, warm_up: evidence::WarmUp) -> Finding {
    Finding {
        resource: warm_up.service.clone(),
        cost_share: finite(warm_up.fall()),
        confidence: Confidence::Medium,
        ..Finding::new(evidence::NotSteady { warm_up: Some(warm_up), ..Default::default() }, detector.version())
    }
}

fn finding(detector: &NotSteady, reading: &Reading<'_>, found: &[Unsteady<'_>], worst: &Unsteady<'_>) -> Finding {
    let interval = worst.interval;
    let is_beyond = is_beyond_capacity(worst);
    let is_large = worst.share >= reading.thresholds.not_steady.unsteady_invalid_share;
    let is_invalid = !is_beyond && worst.is_unreliable() && is_large && are_most(reading, found);
    Finding {
        resource: EXPERIMENT.into(),
        cost_share: worst.share.min(1.0),
        confidence: if is_invalid { Confidence::High } else { Confidence::Medium },
        period: period_of(reading.trial, interval.start_ns, interval.end_ns),
        ..Finding::new(evidence(found, worst, is_beyond), detector.version())
    }
}

fn evidence(found: &[Unsteady<'_>], worst: &Unsteady<'_>, is_beyond_capacity: bool) -> evidence::NotSteady {
    let interval = worst.interval;
    let (mut of_window, of_others): (Vec<&Unsteady<'_>>, Vec<&Unsteady<'_>>) =
        found.iter().partition(|one| std::ptr::eq(one.interval, interval));
    // The change that the finding is about comes first.
    of_window.sort_by_key(|one| one.quantity != worst.quantity);
    let mut other_windows: Vec<String> = of_others.into_iter().map(|other| other.interval.label.clone()).collect();
    other_windows.dedup();
    evidence::NotSteady {
        window: interval.label.clone(),
        changes: of_window.into_iter().map(change).collect(),
        other_windows,
        offered: interval.offered,
        completed: interval.rate,
        is_beyond_capacity,
        disturbance: worst.disturbance.clone().filter(|_| !is_beyond_capacity),
        warm_up: None,
    }
}

fn change(one: &Unsteady<'_>) -> Change {
    let quantity = match one.quantity {
        Quantity::Rate => evidence::Quantity::Throughput,
        Quantity::Latency => evidence::Quantity::Latency,
    };
    Change { quantity, unrest: one.unrest, share: one.share }
}

fn is_beyond_capacity(worst: &Unsteady<'_>) -> bool {
    let offered = worst.interval.offered.filter(|_| worst.quantity == Quantity::Latency);
    offered.is_some_and(|offered| worst.interval.rate <= COMPLETED_SHARE * offered)
}

/// Whether the windows without a steady part make up most of the counted time.
fn are_most(reading: &Reading<'_>, found: &[Unsteady<'_>]) -> bool {
    let unreliable = || found.iter().filter(|one| one.is_unreliable());
    let is_found = |interval: &&Interval| unreliable().any(|one| std::ptr::eq(one.interval, *interval));
    let unsteady: f64 = reading.intervals.iter().filter(is_found).map(Interval::seconds).sum();
    let all: f64 = reading.intervals.iter().map(Interval::seconds).sum();
    unsteady >= MOST * all
}

#[cfg(test)]
mod tests;
