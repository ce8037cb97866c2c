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
mod tests {
    use narrows_model::run::WindowKind;
    use narrows_testkit::trial::{Load, TrialBuilder};

    use super::*;
    use crate::thresholds::Thresholds;

    fn detect(trial: TrialBuilder) -> Vec<Finding> {
        crate::detect(&NotSteady, &trial.build(), &Thresholds::default())
    }

    /// A window of so many seconds with a rate (per second) and a latency (milliseconds) for each, and a little noise.
    fn window(trial: TrialBuilder, seconds: usize, of: impl Fn(f64) -> (f64, f64)) -> TrialBuilder {
        let noise = [1.0, 0.97, 1.04, 0.99, 1.02, 0.98, 1.0];
        let each = (0..seconds).map(move |s| {
            let (rate, latency_ms) = of(s as f64);
            (rate * noise[s % 7], latency_ms * noise[(s * 3) % 7])
        });
        trial.window(WindowKind::Steady, 8, each.collect::<Vec<_>>())
    }

    fn one(seconds: usize, of: impl Fn(f64) -> (f64, f64)) -> Vec<Finding> {
        detect(window(TrialBuilder::new("a").warmup(5, Load { vus: 8, rate: 100.0, latency_ms: 80.0 }), seconds, of))
    }

    #[test]
    fn a_trend_is_named_with_its_halves() {
        let findings = one(40, |s| (1000.0 * (1.0 - 0.01 * s), 80.0));
        let [finding] = &findings[..] else { panic!("one finding, not {findings:?}") };
        assert!(
            finding.title.starts_with("“8 users” is not steady: throughput falls by 22 % from"),
            "{}",
            finding.title
        );
        assert_eq!((finding.confidence, finding.resource.as_str()), (Confidence::Medium, "experiment"));
        assert!(finding.reasons[0].contains("from 905/s in the first half to 706/s"), "{:?}", finding.reasons);
        let both = one(40, |s| (1000.0, 50.0 + 5.0 * s));
        assert!(both[0].title.contains("mean latency rises by"), "{}", both[0].title);
        assert_eq!(both[0].confidence, Confidence::High, "it more than doubles over the whole trial");
    }

    #[test]
    fn a_start_that_has_not_settled_is_named() {
        let findings = one(40, |s| (if s < 8.0 { 500.0 } else { 1000.0 }, 80.0));
        assert_eq!(findings[0].title, "“8 users” begins too soon: its first 8 s are not like the rest");
        assert!(findings[0].advice.starts_with("Make the warm-up at least 8 s longer"));
    }

    #[test]
    fn a_wave_is_named_where_the_window_holds_few() {
        let wave = |s: f64| (if s % 15.0 < 5.0 { 500.0 } else { 1000.0 }, 80.0);
        let findings = one(60, wave);
        assert!(findings[0].title.ends_with("throughput goes up and down every 15 s"), "{}", findings[0].title);
        assert_eq!(one(180, wave), [], "twelve waves are enough");
    }

    #[test]
    fn a_load_beyond_the_capacity_is_told_as_that() {
        let mut trial = window(TrialBuilder::new("a"), 40, |s| (100.0, 50.0 + 100.0 * s)).build();
        trial.windows[0].rate = Some(130.0);
        let findings = crate::detect(&NotSteady, &trial, &Thresholds::default());
        assert_eq!(findings[0].confidence, Confidence::Medium);
        assert!(findings[0].reasons[1].contains("130/s offered, 100/s completed"), "{:?}", findings[0].reasons);
        assert!(findings[0].advice.starts_with("Read its throughput"));
    }

    #[test]
    fn steady_windows_and_unknown_ones_are_silent() {
        let mut seed = 7_u32;
        let noise: Vec<f64> = (0..200)
            .map(|_| {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                0.7 + 0.6 * f64::from(seed >> 16) / 65536.0
            })
            .collect();
        let noisy = |s: f64| (1000.0 * noise[s as usize], 80.0 * noise[199 - s as usize]);
        let steps = (1..=11).fold(TrialBuilder::new("a"), |trial, step| {
            let rate = 90.0 * f64::from(step);
            window(trial, 40, move |s| (rate * (1.0 + 0.002 * s), 80.0))
        });
        for (name, findings) in [
            ("noise", one(40, |s| (1000.0, 80.0 + 0.01 * s))),
            ("much noise", one(200, noisy)),
            ("a small trend", one(40, |s| (1000.0 * (1.0 - 0.004 * s), 80.0))),
            ("one peak", one(40, |s| (1000.0, if s == 10.0 { 900.0 } else { 80.0 }))),
            ("a window too short to tell", one(19, |s| (1000.0 * (1.0 - 0.03 * s), 80.0))),
            ("steps", detect(steps)),
            (
                "a ramp",
                detect(TrialBuilder::new("a").window(WindowKind::Ramp, 8, (1..60).map(|s| (f64::from(s), 5.0)))),
            ),
            ("no answers", one(40, |_| (0.0, 0.0))),
            ("nothing", detect(TrialBuilder::new("a"))),
        ] {
            assert_eq!(findings, [], "with {name}");
        }
    }
}
