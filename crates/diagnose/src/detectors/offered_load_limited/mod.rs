//! `offered-load-limited`: the load is too small to show the system's capacity.
//!
//! This finding is about the experiment, and has two cases. In the first, a trial's load rises in steps, as in a search
//! for the limit, and every step completes in full, takes as long as the first, and leaves no service near a limit. In
//! the second, a variant changes the latency or the CPU per request, but the throughput is the same because each
//! variant completes the whole offered load: a reader of the throughput would see "no gain". A trial of one step that
//! completes all requests is healthy and not reported. Nor is a closed load without think times, because its throughput
//! follows from the latency.
//!
//! A closed load leaves room if nearly all its users think at any time (Little's law): throughput would hardly grow
//! even if requests took no time. An open load leaves room if nearly every arrival completes. This must hold in all
//! intervals.

use narrows_model::comparison::{Comparison, VariantSummary};
use narrows_model::evidence::{RunEvidence, TrialEvidence};
use narrows_model::finding::evidence::offered_load_limited::{self as evidence, Hidden, Pair, Room, Step, Steps};
use narrows_model::finding::evidence::variant::VariantFigures;
use narrows_model::finding::{Confidence, Finding, FindingKind, Role};
use narrows_model::run::TrialState;

use crate::Detector;
use crate::read::Reading;
use crate::read::cpu::Cpu;
use crate::read::headroom::{least, room_in};
use crate::read::intervals::Interval;
use crate::stats::finite;
use crate::thresholds::{Thresholds, rule_thresholds};

mod words;

rule_thresholds! {
    /// Share by which the throughput of two variants may differ, including its whole interval, and by which responses
    /// may fall behind arrivals.
    offered_rate_share: f64 = 0.05;
    /// Share of a closed load's users that must be thinking at any time.
    offered_thinking_share: f64 = 0.9;
    /// Share of the requests that may fail.
    offered_error_share: f64 = 0.01;
    /// Change of the CPU per request that throughput does not show.
    offered_cpu_share: f64 = 0.10;
    /// Factor by which the heaviest step must exceed the lightest.
    offered_growth: f64 = 1.5;
    /// Factor by which a request may take longer under the heaviest step than under the lightest.
    offered_latency_factor: f64 = 1.2;
    /// Share by which throughput may fall behind the growth of the load.
    offered_follow_share: f64 = 0.10;
    /// Share of its CPU that the busiest service may use under the heaviest step.
    offered_busy_share: f64 = 0.7;
}

/// See the module.
#[derive(Debug)]
pub struct OfferedLoadLimited;

/// Resource of the finding.
const EXPERIMENT: &str = "experiment";

impl Detector for OfferedLoadLimited {
    fn kind(&self) -> FindingKind {
        FindingKind::OfferedLoadLimited
    }

    fn version(&self) -> u32 {
        2
    }

    fn role(&self, _finding: &Finding) -> Role {
        Role::LimitsReading
    }

    fn detect(&self, reading: &Reading<'_>) -> Vec<Finding> {
        of_steps(self, reading).into_iter().collect()
    }

    fn detect_run(&self, run: &RunEvidence, comparison: &Comparison, thresholds: &Thresholds) -> Vec<(usize, Finding)> {
        let Some((first, later)) = comparison.variants.split_first() else { return Vec::new() };
        let finished = |variant: &VariantSummary| {
            let is_meant =
                |trial: &TrialEvidence| trial.trial.variant == variant.variant && trial.trial.state == TrialState::Done;
            run.trials.iter().position(is_meant)
        };
        let room_of = |at: usize| Some((at, room_in(&run.trials[at], thresholds)?));
        let Some((first_at, room)) = finished(first).and_then(room_of) else { return Vec::new() };
        let of = |variant| {
            let (at, its) = finished(variant).and_then(room_of)?;
            Some((at, of_later(self, first, variant, least(room, its)?, thresholds)?, variant))
        };
        let found: Vec<(usize, Finding, &VariantSummary)> = later.iter().filter_map(of).collect();
        let hidden: Vec<&VariantSummary> = found.iter().map(|(_, _, variant)| *variant).collect();
        let of_first = of_first(self, first, &hidden, room).map(|finding| (first_at, finding));
        of_first.into_iter().chain(found.into_iter().map(|(at, finding, _)| (at, finding))).collect()
    }
}

/// The finding for steps without a limit.
fn of_steps(detector: &OfferedLoadLimited, reading: &Reading<'_>) -> Option<Finding> {
    let thresholds = reading.thresholds;
    let room = room_in(reading.trial, thresholds)?;
    let steady = || reading.intervals.iter().filter(|interval| interval.is_steady);
    let heaviest = steady().max_by(|a, b| a.by_demand(b))?;
    let lightest = steady().min_by(|a, b| a.by_demand(b))?;
    let growth =
        heaviest.demand_over(lightest).filter(|growth| *growth >= thresholds.offered_load_limited.offered_growth)?;
    let is_flat = heaviest.service_ns <= thresholds.offered_load_limited.offered_latency_factor * lightest.service_ns;
    let follows =
        (heaviest.rate / lightest.rate / growth - 1.0).abs() <= thresholds.offered_load_limited.offered_follow_share;
    let cpu = Cpu::new(reading);
    let services = reading.trial.service_names().into_iter();
    let busiest = services
        .filter_map(|service| Some((service, cpu.busy_share(service, heaviest)?)))
        .max_by(|a, b| a.1.total_cmp(&b.1))?;
    if !(is_flat && follows && busiest.1 <= thresholds.offered_load_limited.offered_busy_share) {
        return None;
    }
    let step = |interval: &Interval| Step {
        load: interval.load_level(),
        rate: interval.rate,
        service_ns: interval.service_ns,
    };
    let steps = Steps {
        lightest: step(lightest),
        heaviest: step(heaviest),
        busiest_service: busiest.0.into(),
        busiest_share: finite(busiest.1),
    };
    Some(finding(detector, room, Hidden::Capacity(steps)))
}

/// The finding of the first variant: its throughput hides differences from the `hidden` variants. `None` without any.
fn of_first(
    detector: &OfferedLoadLimited,
    first: &VariantSummary,
    hidden: &[&VariantSummary],
    room: Room,
) -> Option<Finding> {
    let others: Vec<String> = hidden.iter().map(|variant| variant.variant.clone()).collect();
    let first = VariantFigures::of(first).filter(|_| !others.is_empty())?;
    Some(finding(detector, room, Hidden::Others { first, others }))
}

/// The finding of a later variant compared with the first, with the smaller room of the two. `None` if its throughput
/// differs or nothing else does.
fn of_later(
    detector: &OfferedLoadLimited,
    first: &VariantSummary,
    variant: &VariantSummary,
    room: Room,
    thresholds: &Thresholds,
) -> Option<Finding> {
    let against = variant.against_first.as_ref()?;
    let least = thresholds.offered_load_limited.offered_rate_share;
    let is_same = against.rate_within.low >= -least && against.rate_within.high <= least;
    let latency_differs = against.mean.meaning.is_change();
    let cpu = first.cpu_seconds_per_request.zip(variant.cpu_seconds_per_request);
    let cpu_differs = cpu
        .is_some_and(|(before, now)| (now / before - 1.0).abs() >= thresholds.offered_load_limited.offered_cpu_share);
    let (first, other) = (VariantFigures::of(first)?, VariantFigures::of(variant)?);
    let pair = Pair { first, other, latency_differs, cpu_differs };
    (is_same && (latency_differs || cpu_differs)).then(|| finding(detector, room, Hidden::Variant(pair)))
}

fn finding(detector: &OfferedLoadLimited, room: Room, hidden: Hidden) -> Finding {
    Finding {
        resource: EXPERIMENT.into(),
        cost_share: room.share.min(1.0),
        confidence: Confidence::High,
        ..Finding::new(evidence::OfferedLoadLimited { room, hidden }, detector.version())
    }
}

#[cfg(test)]
mod tests;
