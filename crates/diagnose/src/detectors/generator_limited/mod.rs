//! `generator-limited`: the load generator, not the system, shaped the numbers.
//!
//! This finding is about the experiment. It reads five signs: the generator's own verdict; iterations of an open model
//! that never began or had to wait because all `max_vus` users were busy; the share of the mean latency that requests
//! spent waiting to be sent; the CPU of the busiest load thread; and the generator's share of a full machine.
//! Confidence is high if a sign makes the figures invalid, medium if it makes them doubtful; the ranking relies on it.
//!
//! Busy users mean too few users only if the system responds as fast as under less load. If it responds later, it is
//! beyond its capacity, and more users would only wait with the others. If every request fails, or none ended for a
//! while although many were under way, only the CPU signs
//! count: failing requests cause the other signs in any generator.

use narrows_model::evidence::{LoadTotals, TrialEvidence};
use narrows_model::finding::evidence::generator_limited::{self as evidence, Sign, SignKind, share_of};
use narrows_model::finding::{Confidence, Finding, FindingKind, Role};
use narrows_model::run::Verdict;
use narrows_model::series::names;

use crate::Detector;
use crate::read::Reading;
use crate::read::intervals::{Interval, intervals};
use crate::read::seconds::seconds_of;
use crate::stats::finite;
use crate::thresholds::{Thresholds, rule_thresholds};

mod words;

rule_thresholds! {
    /// Delay before sending as a share of the mean latency, from which figures are doubtful.
    generator_lateness_doubtful: f64 = 0.10;
    /// The same, from which they are invalid.
    generator_lateness_invalid: f64 = 0.50;
    /// Mean delay below which it does not count, whatever its share, nanoseconds.
    generator_lateness_ns_min: f64 = 500_000.0;
    /// Share of the due iterations that never started, from which figures are doubtful.
    generator_dropped_doubtful: f64 = 0.001;
    /// The same, from which they are invalid.
    generator_dropped_invalid: f64 = 0.01;
    /// Share of the due iterations that waited for a free user, from which figures are doubtful.
    generator_waited_doubtful: f64 = 0.10;
    /// The same, from which that wait explains the delay before sending.
    generator_waited_share: f64 = 0.01;
    /// Share of one core used by the busiest load thread, from which figures are doubtful.
    generator_thread_doubtful: f64 = 0.80;
    /// The same, from which they are invalid.
    generator_thread_invalid: f64 = 0.95;
    /// The generator's share of the CPU in use on a full host.
    generator_host_share: f64 = 0.30;
    /// Time in which requests were under way and none ended, from which the system hung, nanoseconds.
    generator_hung_ns: f64 = 5e9;
    /// The same time as a multiple of the median time of a response.
    generator_hung_responses: f64 = 10.0;
}

/// See the module.
#[derive(Debug)]
pub struct GeneratorLimited;

impl Detector for GeneratorLimited {
    fn kind(&self) -> FindingKind {
        FindingKind::GeneratorLimited
    }

    fn version(&self) -> u32 {
        6
    }

    fn role(&self, finding: &Finding) -> Role {
        if finding.confidence == Confidence::High { Role::Invalidates } else { Role::LimitsReading }
    }

    fn detect(&self, reading: &Reading<'_>) -> Vec<Finding> {
        let (trial, thresholds, intervals) = (reading.trial, reading.thresholds, reading.intervals);
        let of_cpu = [busiest_thread(trial, intervals, thresholds), full_host(trial, intervals, thresholds)];
        let of_requests =
            || [verdict(trial), held_back(trial, intervals, thresholds), lateness(trial, intervals, thresholds)];
        let of_requests = if is_of_system(trial, thresholds) { [None, None, None] } else { of_requests() };
        let signs: Vec<Sign> = of_requests.into_iter().chain(of_cpu).flatten().collect();
        if signs.is_empty() { Vec::new() } else { vec![finding(self, signs, trial, thresholds)] }
    }
}

/// Whether every request failed. The figures are then invalid and users wait because of the system, whatever the
/// generator does; only its CPU use is still a sign.
pub(crate) fn all_failed(trial: &TrialEvidence) -> bool {
    let load = trial.counted_load();
    load.succeeded == 0 && load.errors.total() > 0
}

/// Whether late sends, busy users and the generator's own verdict are the system's fault.
pub(crate) fn is_of_system(trial: &TrialEvidence, thresholds: &Thresholds) -> bool {
    all_failed(trial) || has_hung(trial, thresholds)
}

/// Whether the system stopped responding for a while. Users are then busy and requests late because of the system.
fn has_hung(trial: &TrialEvidence, thresholds: &Thresholds) -> bool {
    let thresholds = &thresholds.generator_limited;
    let (mut under_way, mut hung_ns, mut longest_ns) = (0.0, 0.0_f64, 0.0_f64);
    let counted = trial.counted_windows().next().zip(trial.windows.last());
    let Some((start_ns, end_ns)) = counted.map(|(first, last)| (first.start_ns, last.end_ns)) else { return false };
    for second in seconds_of(trial, start_ns, end_ns) {
        let ended = second.succeeded + second.failed;
        under_way += second.sent - ended;
        hung_ns = if ended == 0.0 && under_way > 0.0 { hung_ns + second.seconds * 1e9 } else { 0.0 };
        longest_ns = longest_ns.max(hung_ns);
    }
    let response_ns = trial.counted_load().service.quantile_ns(0.5) as f64;
    longest_ns >= thresholds.generator_hung_ns.max(thresholds.generator_hung_responses * response_ns)
}

/// The generator's own verdict, if it is invalid. A doubtful verdict is only printed next to the figures.
fn verdict(trial: &TrialEvidence) -> Option<Sign> {
    let validity = &trial.trial.validity;
    (validity.verdict == Verdict::Invalid)
        .then(|| Sign { verdict: Verdict::Invalid, kind: SignKind::OwnVerdict { reasons: validity.reasons.clone() } })
}

fn judged(value: f64, doubtful: f64, invalid: f64) -> Option<Verdict> {
    match value {
        v if v >= invalid => Some(Verdict::Invalid),
        v if v >= doubtful => Some(Verdict::Doubtful),
        _ => None,
    }
}

/// Share of due iterations that never began, 0 to 1; 0 in closed models.
fn dropped_share(load: &LoadTotals) -> f64 {
    share_of(load.dropped, load.due)
}

/// Share of due iterations that found every user busy, 0 to 1; 0 in closed models.
fn waited_share(load: &LoadTotals) -> f64 {
    share_of(load.late, load.due)
}

/// Whether the system did not get an open load, because too many iterations never began although the generator had
/// spare CPU. With a full thread, users are busy because of the generator itself.
pub(crate) fn is_held_back(trial: &TrialEvidence, thresholds: &Thresholds) -> bool {
    dropped_share(&trial.counted_load()) >= thresholds.generator_limited.generator_dropped_invalid
        && !is_of_system(trial, thresholds)
        && !is_slow_system(&intervals(trial, thresholds), thresholds)
        && !has_full_thread(trial, thresholds)
}

/// Whether users were busy because the system responds later: from sending to response, requests under the heaviest
/// load take several times as long as under the lightest. More users would only wait too, so the throughput is the
/// system's own.
fn is_slow_system(intervals: &[Interval], thresholds: &Thresholds) -> bool {
    let completed = || intervals.iter().filter(|interval| interval.service_ns > 0.0);
    let heavy = completed().max_by(|a, b| a.by_demand(b));
    let light = completed().min_by(|a, b| a.by_demand(b));
    heavy.zip(light).is_some_and(|(heavy, light)| {
        light.by_demand(heavy).is_lt()
            && heavy.service_ns >= thresholds.cpu_saturation.queueing_latency_factor * light.service_ns
    })
}

fn has_full_thread(trial: &TrialEvidence, thresholds: &Thresholds) -> bool {
    let sign = busiest_thread(trial, &intervals(trial, thresholds), thresholds);
    sign.is_some_and(|sign| sign.verdict == Verdict::Invalid)
}

/// Iterations that waited or were dropped. In an open model this happens only if all permitted users are busy.
fn held_back(trial: &TrialEvidence, intervals: &[Interval], thresholds: &Thresholds) -> Option<Sign> {
    if is_slow_system(intervals, thresholds) {
        return None;
    }
    let load = trial.counted_load();
    let (dropped, waited) = (dropped_share(&load), waited_share(&load));
    let verdict = judged(
        dropped,
        thresholds.generator_limited.generator_dropped_doubtful,
        thresholds.generator_limited.generator_dropped_invalid,
    )
    .or_else(|| (waited >= thresholds.generator_limited.generator_waited_doubtful).then_some(Verdict::Doubtful))?;
    let kind = SignKind::UsersBusy {
        due: load.due,
        waited: load.late,
        dropped: load.dropped,
        offered: load.offered(),
        given: load.achieved(),
    };
    Some(Sign { verdict, kind })
}

/// Share of the mean latency that passed before sending, 0 to 1; 0 without load.
fn late_share(trial: &TrialEvidence) -> f64 {
    let load = trial.counted_load();
    if load.latency.mean_ns() > 0.0 { (load.lateness.mean_ns() / load.latency.mean_ns()).min(1.0) } else { 0.0 }
}

fn lateness(trial: &TrialEvidence, intervals: &[Interval], thresholds: &Thresholds) -> Option<Sign> {
    let load = trial.counted_load();
    let (late_ns, latency_ns) = (load.lateness.mean_ns(), load.latency.mean_ns());
    let includes_wait = waited_share(&load) >= thresholds.generator_limited.generator_waited_share;
    let is_wait = includes_wait && is_slow_system(intervals, thresholds);
    if late_ns < thresholds.generator_limited.generator_lateness_ns_min || latency_ns <= 0.0 || is_wait {
        return None;
    }
    let verdict = judged(
        late_ns / latency_ns,
        thresholds.generator_limited.generator_lateness_doubtful,
        thresholds.generator_limited.generator_lateness_invalid,
    )?;
    Some(Sign { verdict, kind: SignKind::Lateness { late_ns, latency_ns, includes_wait } })
}

fn busiest_thread(trial: &TrialEvidence, intervals: &[Interval], thresholds: &Thresholds) -> Option<Sign> {
    let key = (names::BUSIEST_THREAD_CORES, names::GENERATOR, 0);
    let busy = intervals.iter().filter_map(|s| Some((s, s.median_of(trial, key, thresholds)?)));
    let (interval, cores) = busy.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let verdict = judged(
        cores,
        thresholds.generator_limited.generator_thread_doubtful,
        thresholds.generator_limited.generator_thread_invalid,
    )?;
    Some(Sign { verdict, kind: SignKind::BusyThread { cores: finite(cores), window: interval.label.clone() } })
}

fn full_host(trial: &TrialEvidence, intervals: &[Interval], thresholds: &Thresholds) -> Option<Sign> {
    let shares = intervals.iter().filter_map(|interval| {
        let host = interval.median_of(trial, (names::HOST_CPU_UTILIZATION, "", 0), thresholds)?;
        let cores = interval.median_of(trial, (names::CPU_CORES, names::GENERATOR, 0), thresholds)?;
        let share = cores / (host * f64::from(trial.cores.max(1)));
        (host >= thresholds.cpu_host_share && share >= thresholds.generator_limited.generator_host_share)
            .then_some((interval, share))
    });
    let (interval, share) = shares.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let kind = SignKind::FullHost { share: finite(share), window: interval.label.clone() };
    Some(Sign { verdict: Verdict::Doubtful, kind })
}

fn finding(detector: &GeneratorLimited, signs: Vec<Sign>, trial: &TrialEvidence, thresholds: &Thresholds) -> Finding {
    let load = trial.counted_load();
    let has_waited = dropped_share(&load) >= thresholds.generator_limited.generator_dropped_doubtful
        || waited_share(&load) >= thresholds.generator_limited.generator_waited_doubtful;
    let evidence = evidence::GeneratorLimited {
        signs,
        needs_users: has_waited && !has_full_thread(trial, thresholds),
        is_held_back: is_held_back(trial, thresholds),
    };
    Finding {
        resource: names::GENERATOR.into(),
        cost_share: evidence.dearest().map_or_else(|| late_share(trial), |(_, share)| share),
        confidence: if evidence.verdict() == Verdict::Invalid { Confidence::High } else { Confidence::Medium },
        ..Finding::new(evidence, detector.version())
    }
}

#[cfg(test)]
mod tests;
