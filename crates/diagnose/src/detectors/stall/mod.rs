//! `stall`: now and then the whole system stops for a while, and all requests of that time wait until it goes on.
//!
//! Stalls are found in the sampled requests (`narrows_model::stalls`): several slow ones get their responses at nearly the
//! same moment, and no quick one is served meanwhile. Requests that are slow by themselves leave others alone. The
//! finding says when, for how long and how often, which no median shows; what the process does meanwhile, a mean over a
//! second does not show either, so causes come from other findings, which the ranking puts first.
//!
//! A system that stands still most of the time is slow, not stalled. Where other programs fill the machine, each process
//! waits for a processor now and then, so stalls must be longer there. Stalls that end once a service is warm are those of
//! code that is being compiled.

use narrows_model::evidence::{LoadTotals, TrialEvidence};
use narrows_model::finding::evidence::stall as evidence;
use narrows_model::finding::{Confidence, Finding, FindingKind};
use narrows_model::stalls::Stalls;

use crate::Detector;
use crate::detectors::not_steady::warm_up::warm_up;
use crate::read::Reading;
use crate::read::machine::is_crowded_out;
use crate::read::target::target;
use crate::stats::finite;
use crate::thresholds::rule_thresholds;

mod words;

rule_thresholds! {
    /// Stalls that must be seen.
    stall_count: usize = 3;
    /// Length of the stall in the middle, nanoseconds.
    stall_ns: f64 = 20e6;
    /// The same where other programs fill the machine.
    stall_crowded_ns: f64 = 100e6;
    /// Quick requests served within stalls, as a share of those at other times, up to which nothing was served.
    stall_served_share: f64 = 0.2;
    /// Sampled quick requests that must be missing.
    stall_missing: f64 = 3.0;
    /// Share of the latency of all requests together that slow ones must have.
    stall_latency_share: f64 = 0.2;
    /// Share of the load's time in stalls above which the system is slow altogether.
    stall_time_share: f64 = 0.5;
}

/// Stalls whose times are listed.
const LISTED_MAX: usize = 3;
/// Stalls follow each other at one distance if this share of them does.
const REGULAR_SHARE: f64 = 0.7;
/// Missing quick requests from which the finding is sure.
const SURE_MISSING: f64 = 10.0;

/// See the module.
#[derive(Debug)]
pub struct Stall;

impl Detector for Stall {
    fn kind(&self) -> FindingKind {
        FindingKind::Stall
    }

    fn version(&self) -> u32 {
        3
    }

    fn holds_all_requests(&self) -> bool {
        true
    }

    fn detect(&self, reading: &Reading<'_>) -> Vec<Finding> {
        let thresholds = &reading.thresholds.stall;
        let stalls = &reading.trial.stalls;
        let load = reading.trial.counted_load();
        let slow = SlowRequests::of(&load, stalls.slow_from_ns);
        let time_share = time_share(reading.trial, stalls);
        let missing = stalls.quick_expected - stalls.quick_seen;
        let is_still = missing >= thresholds.stall_missing
            && stalls.quick_seen <= thresholds.stall_served_share * stalls.quick_expected;
        let is_now_and_then = stalls.each.len() >= thresholds.stall_count && time_share <= thresholds.stall_time_share;
        let is_crowded = (0..reading.intervals.len()).any(|at| is_crowded_out(reading, at));
        let least_ns = if is_crowded { thresholds.stall_crowded_ns } else { thresholds.stall_ns };
        let is_long = stalls.median_ns() as f64 >= least_ns;
        if !(is_still && is_now_and_then && is_long && slow.latency_share >= thresholds.stall_latency_share)
            || are_of_warm_up(reading)
        {
            return Vec::new();
        }
        vec![Finding {
            resource: target(reading).into(),
            cost_share: finite(slow.latency_share),
            confidence: if missing >= SURE_MISSING { Confidence::High } else { Confidence::Medium },
            ..Finding::new(evidence(reading.trial, &load, slow.share, time_share), self.version())
        }]
    }
}

/// True if a service warms up, and no stall begins later than that.
fn are_of_warm_up(reading: &Reading<'_>) -> bool {
    let begun = reading.intervals.iter().find(|one| one.is_steady).map(|one| one.start_ns);
    let ends = begun.zip(warm_up(reading)).map(|(begun_ns, warm_up)| begun_ns + warm_up.length_ns);
    ends.is_some_and(|end_ns| reading.trial.stalls.each.iter().all(|stall| stall.start_ns < end_ns))
}

fn evidence(trial: &TrialEvidence, load: &LoadTotals, slow_share: f64, time_share: f64) -> evidence::Stall {
    let stalls = &trial.stalls;
    let begun_ns = trial.windows.first().map_or(0, |window| window.start_ns);
    let latency = load.latency();
    evidence::Stall {
        stalls: stalls.each.len(),
        length_ns: stalls.median_ns() as f64,
        longest_ns: stalls.each.iter().map(|stall| stall.length_ns()).max().unwrap_or(0) as f64,
        apart_ns: (stalls.each.len() > 1).then(|| stalls.apart_ns() as f64),
        is_regular: stalls.regular_share() >= REGULAR_SHARE,
        first_ns: stalls.each.iter().take(LISTED_MAX).map(|stall| stall.start_ns - begun_ns).collect(),
        time_share: finite(time_share),
        p50_ns: latency.p50_ns as f64,
        p95_ns: latency.p95_ns as f64,
        slow_share: finite(slow_share),
        quick_expected: finite(stalls.quick_expected),
        quick_seen: finite(stalls.quick_seen),
    }
}

/// Share of the counted time in stalls, 0 to 1.
fn time_share(trial: &TrialEvidence, stalls: &Stalls) -> f64 {
    let all_ns: i64 = trial.counted_windows().map(|window| window.end_ns - window.start_ns).sum();
    stalls.each.iter().map(|stall| stall.length_ns()).sum::<i64>() as f64 / all_ns.max(1) as f64
}

/// Requests of a load that took as long as those that waited for the end of a stall.
struct SlowRequests {
    /// Share of all requests, 0 to 1.
    share: f64,
    /// Share of the latency of all requests together, 0 to 1.
    latency_share: f64,
}

impl SlowRequests {
    fn of(load: &LoadTotals, slow_from_ns: i64) -> Self {
        let slow = || load.latency.buckets().filter(|bucket| bucket.lower_ns as i64 >= slow_from_ns);
        let requests: u64 = slow().map(|bucket| bucket.count).sum();
        let latency_ns: f64 = slow().map(|bucket| bucket.lower_ns as f64 * bucket.count as f64).sum();
        let of = |part: f64, whole: f64| if whole > 0.0 { (part / whole).min(1.0) } else { 0.0 };
        Self {
            share: of(requests as f64, load.latency.count() as f64),
            latency_share: of(latency_ns, load.latency.sum_ns() as f64),
        }
    }
}

#[cfg(test)]
mod tests;
