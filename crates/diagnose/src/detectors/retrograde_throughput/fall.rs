//! Throughput that falls while the load grows: whether it does, by how much, and what else could make it look so.
//!
//! Judged on the way up to the heaviest steady level: the best of the lighter levels before it against it, with the
//! interval that noise leaves, wider for the choice of the best of several. The fall must hold in the second half of the
//! heaviest level, so that the start of a step is none. Nothing is said when the generator may have made it, when an
//! open load was not given, when throughput falls within the levels as it does between them (a drift over time), or when
//! a later level with the load of the peak does not bring the throughput back.

use narrows_model::run::Verdict;
use narrows_model::scalability::{self, Fit};
use narrows_model::series::names;

use crate::read::Reading;
use crate::read::cpu::Cpu;
use crate::read::intervals::Interval;
use crate::read::levels::{Level, levels};
use crate::read::seconds::Change;

/// The load must grow by this factor from the peak to the fall.
const DEMAND_GROWTH_MIN: f64 = 1.25;
/// A later level has the load of the peak when it is within this factor of it.
const SAME_DEMAND: f64 = 1.25;
/// The share of a fall that must come back, and the share of it within levels that makes it a drift.
const HALF: f64 = 0.5;
/// Requests sent at the fall, as a share of those at the peak, from which an open load was given.
const SENT_SHARE: f64 = 0.95;

/// A fall with what it was read from.
#[derive(Debug)]
pub(crate) struct Fall<'a> {
    /// Levels with less load before the heaviest, in order of time.
    pub(crate) way_up: Vec<Level<'a>>,
    /// The best of them.
    pub(crate) peak: Level<'a>,
    /// The heaviest.
    pub(crate) last: Level<'a>,
    /// From the peak to it.
    pub(crate) change: Change,
    /// A later level with the load of the peak that brought the throughput back.
    pub(crate) back: Option<Level<'a>>,
    /// The universal scalability law through the way up and the heaviest, and κ's interval.
    pub(crate) law: Option<(Fit, Option<(f64, f64)>)>,
}

impl<'a> Fall<'a> {
    /// None when there is none, or when it may not be the system's.
    pub(crate) fn find(reading: &Reading<'a>) -> Option<Self> {
        let all = levels(reading);
        let last_at = (0..all.len()).max_by(|a, b| all[*a].interval.by_demand(all[*b].interval).then(a.cmp(b)))?;
        let last = all[last_at].clone();
        let is_lighter = |level: &&Level<'a>| {
            last.interval.demand_over(level.interval).is_some_and(|growth| growth >= DEMAND_GROWTH_MIN)
        };
        let way_up: Vec<Level<'a>> = all[..last_at].iter().filter(is_lighter).cloned().collect();
        let peak = way_up.iter().max_by(|a, b| a.interval.rate.total_cmp(&b.interval.rate))?.clone();
        let change = peak.rate.change_to(&last.rate, way_up.len());
        let later = all[last_at + 1..].iter().filter(|level| is_same_demand(level.interval, peak.interval));
        let later: Vec<Level<'a>> = later.cloned().collect();
        let has_come_back = |level: &Level<'_>| level.interval.rate - last.interval.rate >= HALF * lost(&peak, &last);
        let points: Vec<(f64, f64)> = way_up.iter().chain([&last]).map(point).collect();
        let law = scalability::fit(&points).map(|fit| (fit, scalability::kappa_interval(&points)));
        let is_shown = is_large(reading, &way_up, &change)
            && holds_at_its_end(reading, &peak, &last)
            && was_given(peak.interval, last.interval)
            && is_not_the_generators(reading, last.interval)
            && !is_drift(&way_up, &peak, &last)
            && later.iter().all(has_come_back);
        let back = later.into_iter().next();
        is_shown.then_some(Self { way_up, peak, last, change, back, law })
    }
}

/// Requests under way and the time each takes, seconds.
fn point(level: &Level<'_>) -> (f64, f64) {
    (level.interval.in_flight(), level.interval.service_ns / 1e9)
}

fn lost(peak: &Level<'_>, last: &Level<'_>) -> f64 {
    peak.interval.rate - last.interval.rate
}

fn is_same_demand(one: &Interval, other: &Interval) -> bool {
    one.demand_over(other).is_some_and(|ratio| (1.0 / SAME_DEMAND..=SAME_DEMAND).contains(&ratio))
}

fn is_large(reading: &Reading<'_>, way_up: &[Level<'_>], change: &Change) -> bool {
    let mut demands: Vec<&Interval> = way_up.iter().map(|level| level.interval).collect();
    demands.sort_by(|a, b| a.by_demand(b));
    demands.dedup_by(|a, b| a.by_demand(b).is_eq());
    let thresholds = reading.thresholds;
    demands.len() + 1 >= thresholds.fall_steps && -change.ratio >= thresholds.fall_share && change.high < 0.0
}

/// In its second half, the heaviest level is still that much below the peak.
fn holds_at_its_end(reading: &Reading<'_>, peak: &Level<'_>, last: &Level<'_>) -> bool {
    last.halves().1.rate() <= (1.0 - reading.thresholds.fall_share) * peak.interval.rate
}

/// A closed load is given by its users. Of an open one, no fewer requests must have been sent, or no fewer be under way:
/// what was held back before it was sent is no fall of the system's.
fn was_given(peak: &Interval, last: &Interval) -> bool {
    last.offered.is_none() || last.sent >= SENT_SHARE * peak.sent || last.in_flight() >= peak.in_flight()
}

fn is_not_the_generators(reading: &Reading<'_>, last: &Interval) -> bool {
    let (trial, thresholds) = (reading.trial, reading.thresholds);
    let of = |name: &str, service: &str| last.median_of(trial, (name, service, 0), thresholds);
    let has_full_thread = of(names::BUSIEST_THREAD_CORES, names::GENERATOR)
        .is_some_and(|cores| cores >= thresholds.generator_thread_doubtful);
    let machine = Cpu::new(reading).machine(last);
    let full = machine.filter(|machine| machine.used_share() >= thresholds.cpu_host_share);
    let takes_much = full.is_some_and(|machine| {
        machine.is_mostly_foreign() || machine.narrows >= thresholds.generator_host_share * machine.used()
    });
    let rows = trial.seconds.iter().filter(|row| last.contains(row.middle_ns()));
    let (late, sent) = rows.fold((0.0, 0.0), |(late, sent), row| {
        (late + row.lateness.sum_ns() as f64, sent + row.lateness.count() as f64)
    });
    let late_ns = if sent > 0.0 { late / sent } else { 0.0 };
    // In an open model the wait for a free user counts as lateness too, and follows from the fall.
    let is_late = last.offered.is_none() && late_ns >= thresholds.generator_lateness_doubtful * last.latency_ns;
    trial.trial.validity.verdict != Verdict::Invalid && !has_full_thread && !takes_much && !is_late
}

/// Whether throughput falls within the peak and the levels after it as it does between them.
fn is_drift(way_up: &[Level<'_>], peak: &Level<'_>, last: &Level<'_>) -> bool {
    let within = |level: &Level<'_>| {
        let (first, second) = level.halves();
        (second.rate().max(f64::MIN_POSITIVE) / first.rate().max(f64::MIN_POSITIVE)).ln()
    };
    let after: Vec<&Level<'_>> =
        way_up.iter().filter(|level| level.interval.start_ns > peak.interval.start_ns).chain([last]).collect();
    let steps = after.len() as f64;
    let of_drift = (last.interval.rate / peak.interval.rate).ln() / steps / 2.0;
    let mean = after.iter().map(|level| within(level)).sum::<f64>() / steps;
    within(peak) <= HALF * of_drift && mean <= HALF * of_drift
}
