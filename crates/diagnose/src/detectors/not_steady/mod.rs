//! `not-steady`: a window that is called steady and is not, so that its mean depends on when one looks.
//!
//! A finding on the experiment. The tests are in `steadiness.rs`: a trend, a start that has not settled, a wave of which
//! the window holds too few. Of several windows the worst speaks. An open load that brings more than is answered has no
//! steady state at all; then that is what is said.
//!
//! Confidence is high, which makes the trial's figures invalid, only when the change is large and windows with one make
//! up most of the counted time; never for a load beyond the capacity, whose throughput is right as it is.

use narrows_model::finding::{Confidence, Figure, Finding, FindingKind};
use narrows_model::units;

use crate::Detector;
use crate::intervals::Interval;
use crate::periods::period_of;
use crate::reading::Reading;
use crate::seconds::Quantity;
use crate::steadiness::{Unrest, Unsteady, unsteady};

/// See the module.
#[derive(Debug)]
pub struct NotSteady;

/// What the finding is about.
const EXPERIMENT: &str = "experiment";
/// Share of the counted time from which its windows are most of the trial.
const MOST: f64 = 0.5;
/// An open load brings more than is answered when no more than this share of what it offers is.
const ANSWERED_SHARE: f64 = 0.95;

impl Detector for NotSteady {
    fn kind(&self) -> FindingKind {
        FindingKind::NotSteady
    }

    fn version(&self) -> u32 {
        1
    }

    fn detect(&self, reading: &Reading<'_>) -> Vec<Finding> {
        let found = unsteady(reading.trial, reading.intervals, reading.thresholds);
        let worst = found.iter().max_by(|a, b| a.share.total_cmp(&b.share));
        worst.map(|worst| finding(self, reading, &found, worst)).into_iter().collect()
    }
}

fn finding(detector: &NotSteady, reading: &Reading<'_>, found: &[Unsteady<'_>], worst: &Unsteady<'_>) -> Finding {
    let interval = worst.interval;
    let of_window = found.iter().filter(|other| std::ptr::eq(other.interval, interval));
    let mut reasons: Vec<String> = of_window.clone().map(told).collect();
    reasons.extend(others(found, worst));
    let is_beyond = is_beyond_capacity(worst);
    if is_beyond {
        reasons.push(format!(
            "More requests are offered than completed ({} offered, {} completed), so the queue grows for as long as \
             the load lasts.",
            units::rate(interval.offered.unwrap_or(0.0)),
            units::rate(interval.rate)
        ));
    }
    let is_invalid = !is_beyond && worst.share >= reading.thresholds.unsteady_invalid_share && are_most(reading, found);
    Finding {
        title: title(worst),
        resource: EXPERIMENT.into(),
        cost_share: worst.share.min(1.0),
        cost_of: format!("of the {} in {}: the size of the change", name(worst.quantity), interval.label),
        confidence: if is_invalid { Confidence::High } else { Confidence::Medium },
        reasons,
        numbers: of_window.flat_map(figures).collect(),
        ruled_out: vec![
            "Noise: the confidence interval of the change, widened for the number of windows, does not include zero."
                .to_owned(),
            "A single peak: a trend must go one way over ten blocks, and a wave must repeat.".to_owned(),
        ],
        falsified_by: "The same load for twice as long gives the same means in its first and its second half.".into(),
        advice: advice(worst, is_beyond),
        period: period_of(reading.trial, interval.start_ns, interval.end_ns),
        ..detector.finding()
    }
}

fn name(quantity: Quantity) -> &'static str {
    match quantity {
        Quantity::Rate => "throughput",
        Quantity::Latency => "mean latency",
    }
}

fn shown(quantity: Quantity, value: f64) -> String {
    match quantity {
        Quantity::Rate => units::rate(value),
        Quantity::Latency => units::duration(value),
    }
}

fn title(worst: &Unsteady<'_>) -> String {
    let (what, label) = (name(worst.quantity), &worst.interval.label);
    match worst.unrest {
        Unrest::Trend { first, second, .. } => {
            let way = if second > first { "rises" } else { "falls" };
            format!(
                "{label} is not steady: {what} {way} by {} from its first half to its second",
                units::percent(worst.share)
            )
        }
        Unrest::Start { seconds, .. } => {
            format!("{label} begins too soon: its first {seconds} s are not like the rest")
        }
        Unrest::Wave { seconds, .. } => {
            format!("{label} is short for a system whose {what} goes up and down every {seconds} s")
        }
    }
}

fn told(one: &Unsteady<'_>) -> String {
    let (what, label) = (name(one.quantity), &one.interval.label);
    let shown = |value| shown(one.quantity, value);
    match one.unrest {
        Unrest::Trend { first, second, z } => format!(
            "In {label} {what} goes from {} in the first half to {} in the second; the Mann-Kendall test shows the \
             trend at {} standard deviations.",
            shown(first),
            shown(second),
            units::number(z.abs())
        ),
        Unrest::Start { start, rest, seconds } => format!(
            "In {label} {what} is {} over the first {seconds} s and {} after, and stays there.",
            shown(start),
            shown(rest)
        ),
        Unrest::Wave { seconds, spread } => format!(
            "In {label} {what} repeats itself every {seconds} s, with a standard deviation of {} of its mean.",
            units::percent(spread)
        ),
    }
}

fn others(found: &[Unsteady<'_>], worst: &Unsteady<'_>) -> Option<String> {
    let mut labels: Vec<&str> = found
        .iter()
        .filter(|other| !std::ptr::eq(other.interval, worst.interval))
        .map(|other| other.interval.label.as_str())
        .collect();
    labels.dedup();
    (!labels.is_empty()).then(|| format!("It also shows, less strongly, in {}.", labels.join(", ")))
}

fn is_beyond_capacity(worst: &Unsteady<'_>) -> bool {
    let offered = worst.interval.offered.filter(|_| worst.quantity == Quantity::Latency);
    offered.is_some_and(|offered| worst.interval.rate <= ANSWERED_SHARE * offered)
}

/// Whether the windows found make up most of the counted time.
fn are_most(reading: &Reading<'_>, found: &[Unsteady<'_>]) -> bool {
    let is_found = |interval: &&Interval| found.iter().any(|one| std::ptr::eq(one.interval, *interval));
    let unsteady: f64 = reading.intervals.iter().filter(is_found).map(Interval::seconds).sum();
    let all: f64 = reading.intervals.iter().map(Interval::seconds).sum();
    unsteady >= MOST * all
}

fn figures(one: &Unsteady<'_>) -> Vec<Figure> {
    let (what, unit) = (name(one.quantity), if one.quantity == Quantity::Rate { "/s" } else { "ns" });
    match one.unrest {
        Unrest::Trend { first, second, .. } => vec![
            Figure::new(format!("{what}, first half"), first, unit),
            Figure::new(format!("{what}, second half"), second, unit),
        ],
        Unrest::Start { start, rest, seconds } => vec![
            Figure::new(format!("{what}, first {seconds} s"), start, unit),
            Figure::new(format!("{what}, after that"), rest, unit),
        ],
        Unrest::Wave { seconds, spread } => vec![
            Figure::new(format!("{what}, period"), seconds as f64, "s"),
            Figure::new(format!("{what}, standard deviation"), spread * 100.0, "%"),
        ],
    }
}

fn advice(worst: &Unsteady<'_>, is_beyond: bool) -> String {
    match worst.unrest {
        _ if is_beyond => "Read its throughput, which is what the system carries, and not its latency, which grows \
                           with the length of the load; offer less load to measure a meaningful latency."
            .into(),
        Unrest::Start { seconds, .. } => {
            format!("Make the warm-up at least {seconds} s longer, or the step, if its start is part of each step.")
        }
        Unrest::Trend { .. } => {
            "Find out what keeps changing (caches that fill, data that grows, memory that leaks, a queue that builds \
             up), make the warm-up and the window longer, and compare only windows that have settled."
                .into()
        }
        Unrest::Wave { seconds, .. } => format!(
            "Make the window ten times that long ({} s), and look for periodic work every {seconds} s: garbage \
             collection, checkpoints, scheduled work, autoscaling.",
            10 * seconds
        ),
    }
}

#[cfg(test)]
mod tests;
