//! `retrograde-throughput`: throughput falls under more load.
//!
//! Throughput peaks and falls while users, or the offered rate, keep growing. The rule is in `fall.rs`; this module
//! lists the quantities that grow at the fall: failed requests, refusals, CPU at its limit, CPU per request, waiting.
//! It does not decide which of them is the cause: if another detector names one, the ranking puts this finding below
//! it.
//!
//! Confidence is high if the throughput came back when the load went down again, or if the universal scalability law
//! fits and the whole interval of its κ, the cost that requests impose on each other, is above zero.

use narrows_model::finding::evidence::retrograde_throughput::{
    self as evidence, CpuPerRequest, Growing, Law, Recovered,
};
use narrows_model::finding::{Caveat, Confidence, Finding, FindingKind};
use narrows_model::scalability::Fit;

use crate::Detector;
use crate::detectors::retrograde_throughput::fall::Fall;
use crate::read::Reading;
use crate::read::cpu::Cpu;
use crate::read::intervals::Interval;
use crate::read::levels::Level;
use crate::read::periods::period_of;
use crate::stats::finite;
use crate::thresholds::rule_thresholds;

mod fall;
mod words;

rule_thresholds! {
    /// Levels of load, including the heaviest.
    fall_steps: usize = 3;
    /// Share of the best throughput that must be lost at the heaviest level.
    fall_share: f64 = 0.10;
}

/// See the module.
#[derive(Debug)]
pub struct RetrogradeThroughput;

/// Minimum growth of the share of failed or refused requests that counts as growth.
const SHARE_GROWTH_MIN: f64 = 0.01;
/// Minimum growth factor of a request's time, and of its CPU, that counts as growth.
const GROWTH_MIN: f64 = 1.25;
/// Resource of the finding if the service that receives the load is unknown.
const WHOLE: &str = "the system";

impl Detector for RetrogradeThroughput {
    fn kind(&self) -> FindingKind {
        FindingKind::RetrogradeThroughput
    }

    fn version(&self) -> u32 {
        1
    }

    fn explains_slow_calls(&self) -> bool {
        false
    }

    fn detect(&self, reading: &Reading<'_>) -> Vec<Finding> {
        Fall::find(reading).map(|fall| finding(self, reading, &fall)).into_iter().collect()
    }
}

fn finding(detector: &RetrogradeThroughput, reading: &Reading<'_>, fall: &Fall<'_>) -> Finding {
    let evidence = evidence(reading, fall);
    let is_lawful = evidence.law.as_ref().is_some_and(Law::shows_a_peak);
    let full = evidence.growing.iter().find_map(|growing| match growing {
        Growing::Cpu { service, .. } => Some(service.clone()),
        _ => None,
    });
    Finding {
        resource: full.unwrap_or_else(|| entry(reading)),
        cost_share: evidence.lost_share,
        confidence: if evidence.recovered.is_some() || is_lawful { Confidence::High } else { Confidence::Medium },
        caveats: caveats(fall),
        period: period_of(reading.trial, fall.last.interval.start_ns, fall.last.interval.end_ns),
        ..Finding::new(evidence, detector.version())
    }
}

fn evidence(reading: &Reading<'_>, fall: &Fall<'_>) -> evidence::RetrogradeThroughput {
    let recovered = |back: &Level<'_>| Recovered { load: back.interval.load_level(), rate: back.interval.rate };
    let law = |(fit, kappa_interval): &(Fit, Option<(f64, f64)>)| Law {
        lambda: finite(fit.lambda),
        sigma: finite(fit.sigma),
        kappa: finite(fit.kappa),
        kappa_interval: kappa_interval.map(|(low, high)| (finite(low), finite(high))),
        misfit: fit.poor,
    };
    evidence::RetrogradeThroughput {
        peak: level(&fall.peak),
        fall: level(&fall.last),
        lost_share: -fall.change.ratio,
        lost_share_low: -fall.change.high,
        lost_share_high: -fall.change.low,
        recovered: fall.back.as_ref().map(recovered),
        growing: growing(reading, fall),
        law: fall.law.as_ref().map(law),
    }
}

fn level(level: &Level<'_>) -> evidence::Level {
    evidence::Level {
        load: level.interval.load_level(),
        rate: level.interval.rate,
        latency_ns: level.interval.latency_ns,
        service_ns: level.interval.service_ns,
        error_share: level.error_rate(),
    }
}

fn growing(reading: &Reading<'_>, fall: &Fall<'_>) -> Vec<Growing> {
    let mut growing: Vec<Growing> = refusals(reading, fall).into_iter().collect();
    growing.extend(processors(reading, fall));
    growing.extend(errors(fall));
    growing.extend(waiting(fall));
    growing
}

fn errors(fall: &Fall<'_>) -> Option<Growing> {
    let (before, now) = (fall.peak.error_rate(), fall.last.error_rate());
    (now - before >= SHARE_GROWTH_MIN).then_some(Growing::Errors { before, now })
}

/// The store or service that refuses the largest share of its attempts.
fn refusals(reading: &Reading<'_>, fall: &Fall<'_>) -> Option<Growing> {
    let share = |target: &str, interval: &Interval| {
        let calls = reading.trial.operations.iter().flat_map(|operation| &operation.calls);
        let seconds = calls.filter(|call| call.target == target).flat_map(|call| &call.seconds);
        let within = seconds.filter(|second| interval.contains(second.start_ns.saturating_add(500_000_000)));
        let (refused, all) = within.fold((0.0, 0.0), |(refused, all), second| {
            (refused + second.throttled, all + second.succeeded + second.throttled + second.failed)
        });
        if all > 0.0 { refused / all } else { 0.0 }
    };
    let mut targets: Vec<&str> = reading
        .trial
        .operations
        .iter()
        .flat_map(|operation| &operation.calls)
        .filter(|call| call.throttled > 0.0)
        .map(|call| call.target.as_str())
        .collect();
    targets.sort_unstable();
    targets.dedup();
    let (peak, last) = (fall.peak.interval, fall.last.interval);
    let worst = targets.into_iter().max_by(|a, b| share(a, last).total_cmp(&share(b, last)))?;
    let (before, now) = (share(worst, peak), share(worst, last));
    (now - before >= SHARE_GROWTH_MIN).then(|| Growing::Rejections { target: worst.to_owned(), before, now })
}

/// Services at their CPU limit at the fall, the fullest first.
fn processors(reading: &Reading<'_>, fall: &Fall<'_>) -> Vec<Growing> {
    let cpu = Cpu::new(reading);
    let (peak, last) = (fall.peak.interval, fall.last.interval);
    let services = reading.trial.service_names().into_iter();
    let mut full: Vec<(f64, Growing)> = services
        .filter_map(|service| {
            let share = cpu
                .busy_share(service, last)
                .filter(|share| *share >= reading.thresholds.cpu_saturation.cpu_limit_share)?;
            let each = |interval: &Interval| Some(cpu.service_cores(service, interval)? / interval.rate * 1e9);
            let dearer = each(peak).zip(each(last)).filter(|(before, now)| *now >= GROWTH_MIN * before);
            let per_request = dearer
                .map(|(before_ns, now_ns)| CpuPerRequest { before_ns: finite(before_ns), now_ns: finite(now_ns) });
            Some((share, Growing::Cpu { service: service.to_owned(), share: finite(share), per_request }))
        })
        .collect();
    full.sort_by(|a, b| b.0.total_cmp(&a.0));
    full.into_iter().map(|(_, growing)| growing).collect()
}

fn waiting(fall: &Fall<'_>) -> Option<Growing> {
    let (peak, last) = (fall.peak.interval, fall.last.interval);
    (last.service_ns >= GROWTH_MIN * peak.service_ns && peak.service_ns > 0.0).then_some(Growing::Waiting)
}

fn caveats(fall: &Fall<'_>) -> Vec<Caveat> {
    let only_grew = fall.back.is_none().then_some(Caveat::LoadOnlyGrew);
    let of_law = match &fall.law {
        Some((fit, _)) => fit.poor.map(|misfit| Caveat::ScalabilityLawFitsPoorly { misfit }),
        None => Some(Caveat::FewLevelsForScalabilityLaw { levels: fall.way_up.len() + 1 }),
    };
    only_grew.into_iter().chain(of_law).collect()
}

/// The service where most traces begin.
fn entry(reading: &Reading<'_>) -> String {
    let mut counts: std::collections::BTreeMap<&str, f64> = std::collections::BTreeMap::new();
    for trace in &reading.trial.traces {
        if let Some(root) = trace.spans.iter().find(|span| span.parent_id.is_none()) {
            *counts.entry(root.service.as_str()).or_default() += trace.weight;
        }
    }
    let most = counts.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
    most.map_or_else(|| WHOLE.to_owned(), |(service, _)| service.to_owned())
}

#[cfg(test)]
mod tests;
