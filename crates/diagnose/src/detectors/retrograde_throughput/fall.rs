//! Falling throughput under growing load: its detection, its size, and the exclusion of other causes.
//!
//! The levels before the heaviest steady level are the way up. The best of the lighter ones is compared with the
//! heaviest, with an interval for noise that is wider because it is the best of several. The fall must hold in the
//! second half of the heaviest level, which excludes the start of a step. There is no fall if the generator may have
//! caused it, if an open load was not given, if throughput falls within the levels as it does between them (a drift
//! over time), or if a later level with the load of the peak does not restore the throughput.

use narrows_model::run::Verdict;
use narrows_model::scalability::{self, Fit};
use narrows_model::series::names;

use crate::read::Reading;
use crate::read::cpu::Cpu;
use crate::read::intervals::Interval;
use crate::read::levels::{Level, levels};
use crate::read::seconds::Change;

/// Minimum growth factor of the load from the peak to the fall.
const DEMAND_GROWTH_MIN: f64 = 1.25;
/// Maximum factor between two loads that count as the same.
const SAME_DEMAND: f64 = 1.25;
/// Share of a fall that must come back, and share of it within levels from which it is a drift.
const HALF: f64 = 0.5;
/// Minimum share of the requests sent at the peak that must be sent at the fall, for an open load to count as given.
const SENT_SHARE: f64 = 0.95;

/// A fall and its evidence.
#[derive(Debug)]
pub(crate) struct Fall<'a> {
    /// Levels with less load before the heaviest, in order of time.
    pub(crate) way_up: Vec<Level<'a>>,
    /// The level of these with the highest throughput.
    pub(crate) peak: Level<'a>,
    /// The heaviest level.
    pub(crate) last: Level<'a>,
    /// Change of throughput from the peak to the heaviest level.
    pub(crate) change: Change,
    /// A later level with the load of the peak that restored the throughput.
    pub(crate) back: Option<Level<'a>>,
    /// The universal scalability law fitted to the way up and the heaviest level, and κ's interval.
    pub(crate) law: Option<(Fit, Option<(f64, f64)>)>,
}

impl<'a> Fall<'a> {
    /// Returns `None` without a fall, or if the system may not be its cause.
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
        let share = required_share(reading, law.as_ref());
        let is_shown = is_large(reading, &way_up, &change, share)
            && holds_at_its_end(&peak, &last, share)
            && was_given(peak.interval, last.interval)
            && is_not_the_generators(reading, last.interval)
            && !is_drift(&way_up, &peak, &last)
            && later.iter().all(has_come_back);
        let back = later.into_iter().next();
        is_shown.then_some(Self { way_up, peak, last, change, back, law })
    }
}

/// (requests under way, seconds per request).
fn point(level: &Level<'_>) -> (f64, f64) {
    (level.interval.in_flight(), level.interval.service_ns / 1e9)
}

fn lost(peak: &Level<'_>, last: &Level<'_>) -> f64 {
    peak.interval.rate - last.interval.rate
}

fn is_same_demand(one: &Interval, other: &Interval) -> bool {
    one.demand_over(other).is_some_and(|ratio| (1.0 / SAME_DEMAND..=SAME_DEMAND).contains(&ratio))
}

/// Share of the best throughput that must be lost: half of the threshold if the whole way follows the universal scalability law
/// with a peak, so that each level confirms the fall.
fn required_share(reading: &Reading<'_>, law: Option<&(Fit, Option<(f64, f64)>)>) -> f64 {
    let has_peak =
        |(fit, kappa): &(Fit, Option<(f64, f64)>)| fit.poor.is_none() && kappa.is_some_and(|(low, _)| low > 0.0);
    let threshold = reading.thresholds.retrograde_throughput.fall_share;
    if law.is_some_and(has_peak) { threshold / 2.0 } else { threshold }
}

fn is_large(reading: &Reading<'_>, way_up: &[Level<'_>], change: &Change, share: f64) -> bool {
    let mut demands: Vec<&Interval> = way_up.iter().map(|level| level.interval).collect();
    demands.sort_by(|a, b| a.by_demand(b));
    demands.dedup_by(|a, b| a.by_demand(b).is_eq());
    let thresholds = &reading.thresholds.retrograde_throughput;
    demands.len() + 1 >= thresholds.fall_steps && -change.ratio >= share && change.high < 0.0
}

/// Whether the second half of the heaviest level is still below the peak by the required share.
fn holds_at_its_end(peak: &Level<'_>, last: &Level<'_>, share: f64) -> bool {
    last.halves().1.rate() <= (1.0 - share) * peak.interval.rate
}

/// Whether the load was given. A closed load is, by its users. An open load is if no fewer requests were sent, or no
/// fewer are under way: requests held back before sending are not the system's fall.
fn was_given(peak: &Interval, last: &Interval) -> bool {
    last.offered.is_none() || last.sent >= SENT_SHARE * peak.sent || last.in_flight() >= peak.in_flight()
}

fn is_not_the_generators(reading: &Reading<'_>, last: &Interval) -> bool {
    let (trial, thresholds) = (reading.trial, reading.thresholds);
    let of = |name: &str, service: &str| last.median_of(trial, (name, service, 0), thresholds);
    let has_full_thread = of(names::BUSIEST_THREAD_CORES, names::GENERATOR)
        .is_some_and(|cores| cores >= thresholds.generator_limited.generator_thread_doubtful);
    let machine = Cpu::new(reading).machine(last);
    let full = machine.filter(|machine| machine.used_share() >= thresholds.cpu_host_share);
    let takes_much = full.is_some_and(|machine| {
        machine.is_mostly_foreign()
            || machine.narrows >= thresholds.generator_limited.generator_host_share * machine.used()
    });
    let rows = trial.seconds.iter().filter(|row| last.contains(row.middle_ns()));
    let (late, sent) = rows.fold((0.0, 0.0), |(late, sent), row| {
        (late + row.lateness.sum_ns() as f64, sent + row.lateness.count() as f64)
    });
    let late_ns = if sent > 0.0 { late / sent } else { 0.0 };
    // In an open model, lateness includes the wait for a free user, which the fall causes.
    let is_late =
        last.offered.is_none() && late_ns >= thresholds.generator_limited.generator_lateness_doubtful * last.latency_ns;
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
