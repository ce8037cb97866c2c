//! `retrograde-throughput`: more load, less done.
//!
//! Throughput peaks and falls while users, or the rate offered, go on growing. The rule is in `fall.rs`; here it is said
//! what grows at the fall: failed requests, refusals, CPU at its limit, CPU for each request, waiting. Which of these is
//! the cause is not decided here: where another detector names one, the ranking puts this finding below it.
//!
//! Confidence is high when the throughput came back as the load went down again, or when the universal scalability law
//! fits and its κ, what requests cost each other, is above zero with its whole interval.

use narrows_model::finding::{Confidence, Figure, Finding, FindingKind};
use narrows_model::units;

use crate::Detector;
use crate::cpu::Cpu;
use crate::fall::Fall;
use crate::intervals::Interval;
use crate::levels::Level;
use crate::periods::period_of;
use crate::reading::Reading;

/// See the module.
#[derive(Debug)]
pub struct RetrogradeThroughput;

/// A share of failed or refused requests grows when it grows by this much.
const SHARE_GROWTH_MIN: f64 = 0.01;
/// The time of a request and its CPU grow when they grow by this factor.
const GROWTH_MIN: f64 = 1.25;
/// The resource when nothing says which service the load is sent to.
const WHOLE: &str = "the system";

impl Detector for RetrogradeThroughput {
    fn kind(&self) -> FindingKind {
        FindingKind::RetrogradeThroughput
    }

    fn version(&self) -> u32 {
        1
    }

    fn detect(&self, reading: &Reading<'_>) -> Vec<Finding> {
        Fall::of(reading).map(|fall| finding(self, reading, &fall)).into_iter().collect()
    }
}

fn finding(detector: &RetrogradeThroughput, reading: &Reading<'_>, fall: &Fall<'_>) -> Finding {
    let growing = growing(reading, fall);
    let mut reasons = vec![drop(fall)];
    reasons.extend(growing.iter().map(|grown| grown.text.clone()));
    reasons.extend(fall.back.as_ref().map(|back| {
        format!("The cause is the load, not time: later, with less load again, throughput returned to {}.", back.told())
    }));
    reasons.extend(law(fall));
    let resource = growing.iter().find_map(|grown| grown.resource.clone()).unwrap_or_else(|| entry(reading));
    Finding {
        title: format!("throughput falls under more load, from {} to {}", fall.peak.told(), fall.last.told()),
        resource,
        cost_share: -fall.change.ratio,
        cost_of: format!("of the throughput at {}", fall.peak.interval.demand()),
        confidence: if fall.back.is_some() || is_lawful(fall) { Confidence::High } else { Confidence::Medium },
        reasons,
        numbers: numbers(fall),
        ruled_out: ruled_out(fall),
        falsified_by: format!(
            "A trial that begins at {} carries as much there as at {}.",
            fall.last.interval.demand(),
            fall.peak.interval.demand()
        ),
        advice: advice(fall, &growing),
        caveats: caveats(fall).into_iter().map(Into::into).collect(),
        period: period_of(reading.trial, fall.last.interval.start_ns, fall.last.interval.end_ns),
        ..detector.finding()
    }
}

fn drop(fall: &Fall<'_>) -> String {
    format!(
        "Of the best throughput, {} at {}, {} is lost at {} (95 % interval {} to {}).",
        units::rate(fall.peak.interval.rate),
        fall.peak.interval.demand(),
        units::percent(-fall.change.ratio),
        fall.last.interval.demand(),
        units::percent(-fall.change.high),
        units::percent(-fall.change.low)
    )
}

/// Something that grows from the peak to the fall.
struct Grown {
    text: String,
    /// The service that it is about, if it is about one.
    resource: Option<String>,
    advice: String,
}

fn growing(reading: &Reading<'_>, fall: &Fall<'_>) -> Vec<Grown> {
    let mut grown: Vec<Grown> = refusals(reading, fall).into_iter().collect();
    grown.extend(processors(reading, fall));
    grown.extend(errors(fall));
    grown.extend(waiting(fall));
    grown
}

fn errors(fall: &Fall<'_>) -> Option<Grown> {
    let (before, now) = (fall.peak.error_rate(), fall.last.error_rate());
    (now - before >= SHARE_GROWTH_MIN).then(|| Grown {
        text: format!("Failed requests grow from {} to {}.", units::percent(before), units::percent(now)),
        resource: None,
        advice: "Find out which call fails first; work that ends in a failure is wasted.".into(),
    })
}

/// The store or service that refuses most of its attempts.
fn refusals(reading: &Reading<'_>, fall: &Fall<'_>) -> Option<Grown> {
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
    (now - before >= SHARE_GROWTH_MIN).then(|| Grown {
        text: format!(
            "Rejections (status 429) by {worst} grow from {} to {} of its calls.",
            units::percent(before),
            units::percent(now)
        ),
        resource: None,
        advice: format!("Send less to {worst} for each request, or provision more; a rejected call is retried."),
    })
}

fn processors(reading: &Reading<'_>, fall: &Fall<'_>) -> Vec<Grown> {
    let cpu = Cpu::of(reading);
    let (peak, last) = (fall.peak.interval, fall.last.interval);
    let services = reading.trial.service_names().into_iter();
    let mut full: Vec<(f64, Grown)> = services
        .filter_map(|service| {
            let share = cpu.busy_share(service, last).filter(|share| *share >= reading.thresholds.cpu_limit_share)?;
            let each = |interval: &Interval| Some(cpu.service_cores(service, interval)? / interval.rate * 1e9);
            let dearer = each(peak).zip(each(last)).filter(|(before, now)| *now >= GROWTH_MIN * before);
            let cost = dearer.map_or_else(String::new, |(before, now)| {
                format!(", and each request costs it {} of CPU, not {}", units::duration(now), units::duration(before))
            });
            let text = format!("{service} uses {} of the CPU available to it{cost}.", units::percent(share));
            let advice = format!(
                "Take work out of the request in {service}, above all what grows with the requests under way: locks, \
                 garbage collection, retries, context switches."
            );
            Some((share, Grown { text, resource: Some(service.to_owned()), advice }))
        })
        .collect();
    full.sort_by(|a, b| b.0.total_cmp(&a.0));
    full.into_iter().map(|(_, grown)| grown).collect()
}

fn waiting(fall: &Fall<'_>) -> Option<Grown> {
    let (peak, last) = (fall.peak.interval, fall.last.interval);
    (last.service_ns >= GROWTH_MIN * peak.service_ns && peak.service_ns > 0.0).then(|| Grown {
        text: format!(
            "Requests take {} instead of {}: {} of them are in progress at any time instead of {}.",
            units::duration(last.service_ns),
            units::duration(peak.service_ns),
            units::number(last.in_flight()),
            units::number(peak.in_flight())
        ),
        resource: None,
        advice: "Compare where the slowest traces of the two loads spend their time.".into(),
    })
}

/// Whether the law fits and says that requests cost each other.
fn is_lawful(fall: &Fall<'_>) -> bool {
    fall.law.as_ref().is_some_and(|(fit, kappa)| fit.poor.is_none() && kappa.is_some_and(|(low, _)| low > 0.0))
}

fn law(fall: &Fall<'_>) -> Option<String> {
    let (fit, kappa) = fall.law.as_ref().filter(|(fit, _)| fit.poor.is_none() && fit.kappa > 0.0)?;
    let best = (fit.sigma < 1.0).then(|| ((1.0 - fit.sigma) / fit.kappa).sqrt());
    let interval = kappa.map_or_else(String::new, |(low, high)| format!(" (95 % interval {low:.2e} to {high:.2e})"));
    let best = best.map_or_else(String::new, |n| format!(", best with {} requests under way", units::number(n)));
    Some(format!(
        "The universal scalability law fits with σ = {:.2e} and κ = {:.2e}{interval}{best}.",
        fit.sigma, fit.kappa
    ))
}

fn numbers(fall: &Fall<'_>) -> Vec<Figure> {
    let level = |level: &Level<'_>, when: &str| {
        let interval = level.interval;
        let load = match interval.offered {
            Some(offered) => Figure::new(format!("arrivals offered {when}"), offered, "/s"),
            None => Figure::new(format!("users {when}"), f64::from(interval.vus), ""),
        };
        [
            load,
            Figure::new(format!("throughput {when}"), interval.rate, "/s"),
            Figure::new(format!("mean latency {when}"), interval.latency_ns, "ns"),
            Figure::new(format!("failed requests {when}"), level.error_rate() * 100.0, "%"),
        ]
    };
    let mut numbers: Vec<Figure> =
        level(&fall.peak, "at the peak").into_iter().chain(level(&fall.last, "at the fall")).collect();
    numbers.push(Figure::new("throughput lost, at least", -fall.change.high * 100.0, "%"));
    numbers.push(Figure::new("throughput lost, at most", -fall.change.low * 100.0, "%"));
    let fit = fall.law.as_ref().map(|(fit, _)| fit).filter(|fit| fit.poor.is_none());
    numbers.extend(fit.into_iter().flat_map(|fit| {
        [("λ", fit.lambda, "/s"), ("σ", fit.sigma, ""), ("κ", fit.kappa, "")]
            .map(|(name, value, unit)| Figure::new(format!("{name} of the scalability law"), value, unit))
    }));
    numbers
}

fn ruled_out(fall: &Fall<'_>) -> Vec<String> {
    let mut ruled_out = vec![
        "Noise: the confidence interval of the loss, widened for the choice of the best level, does not include zero."
            .to_owned(),
        "The start of a step: the loss holds in the second half of the heaviest one.".to_owned(),
        "The load generator: it had CPU to spare, and its requests left in time.".to_owned(),
        "A drift over time: within the levels throughput does not fall as it does between them.".to_owned(),
    ];
    if fall.last.interval.offered.is_some() {
        ruled_out.push("Arrivals held back: no fewer requests were sent, or under way, than at the peak.".to_owned());
    }
    ruled_out
}

fn advice(fall: &Fall<'_>, growing: &[Grown]) -> String {
    let bound = format!(
        "Admit no more than about {} requests to the system at a time (a bounded pool, or a limit at the entrance), so \
         that more load waits outside instead of costing throughput.",
        units::number(fall.peak.interval.in_flight().max(1.0).ceil())
    );
    let first = growing.first().map_or_else(String::new, |grown| format!("{} ", grown.advice));
    format!("{first}{bound}")
}

fn caveats(fall: &Fall<'_>) -> Vec<String> {
    let mut caveats = Vec::new();
    if fall.back.is_none() {
        caveats.push(
            "The load only grew: a level with fewer users after the heaviest would show whether throughput recovers."
                .to_owned(),
        );
    }
    if let Some(why) = fall.law.as_ref().and_then(|(fit, _)| fit.poor.as_ref()) {
        caveats.push(format!("The universal scalability law does not describe these levels: {why}."));
    }
    let few = fall.law.is_none();
    if few {
        caveats.push(format!("{} levels are too few for the universal scalability law.", fall.way_up.len() + 1));
    }
    caveats
}

/// The service that most traces begin in.
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
