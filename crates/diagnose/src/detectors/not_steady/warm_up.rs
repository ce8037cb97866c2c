//! Services that still become cheaper: CPU per request falls from level to level, as with code that is compiled while it
//! runs and with caches that fill.
//!
//! CPU that a service uses without requests makes the first levels dear too, but it is the same all through a level, so
//! CPU per request must also fall within one.

use narrows_model::finding::evidence::not_steady::{WarmLevel, WarmUp};
use narrows_model::series::{SeriesKey, names};

use crate::read::Reading;
use crate::read::intervals::Interval;
use crate::read::seconds::{seconds_of, total};
use crate::read::threads::mean;
use crate::stats::finite;

/// The service whose CPU per request falls most; `None` if that of no service falls by much.
pub(in crate::detectors) fn warm_up(reading: &Reading<'_>) -> Option<WarmUp> {
    let services = reading.trial.service_names().into_iter();
    let found = services.filter_map(|service| of_service(reading, service));
    found.max_by(|a, b| a.fall().total_cmp(&b.fall()))
}

fn of_service(reading: &Reading<'_>, service: &str) -> Option<WarmUp> {
    let thresholds = &reading.thresholds.not_steady;
    let steady: Vec<&Interval> = reading.intervals.iter().filter(|one| one.is_steady && one.rate > 0.0).collect();
    let costs: Vec<f64> = steady.iter().map(|one| cost_ns(reading, service, one)).collect::<Option<_>>()?;
    let (first, last) = (*costs.first()?, *costs.last()?);
    let is_warm = |cost: &f64| *cost <= last * (1.0 + thresholds.warm_up_settled_share);
    let settled = costs.iter().rposition(|cost| !is_warm(cost)).map_or(0, |cold| cold + 1);
    let cores = first * steady.first()?.rate / 1e9;
    let falls = first >= thresholds.warm_up_factor * last
        && first >= thresholds.warm_up_cost_ns
        && cores >= thresholds.warm_up_cores
        && steady[..settled].iter().any(|level| falls_within(reading, service, level));
    let level = |(level, cost): (&&Interval, &f64)| WarmLevel { label: level.label.clone(), cost_ns: finite(*cost) };
    // The last level alone settles nothing: it may be followed by a cheaper one.
    let warm = steady.get(settled).filter(|_| settled + 1 < steady.len());
    falls.then(|| WarmUp {
        service: service.to_owned(),
        levels: steady.iter().zip(&costs).map(level).collect(),
        warm_from: warm.map(|level| level.label.clone()),
        length_ns: steady.get(settled).map_or(0, |level| level.start_ns - steady[0].start_ns),
    })
}

/// CPU per successful response, nanoseconds; `None` if it was not sampled.
fn cost_ns(reading: &Reading<'_>, service: &str, interval: &Interval) -> Option<f64> {
    let is_meant = |key: &SeriesKey| (key.name.as_str(), key.service.as_str()) == (names::CPU_CORES, service);
    mean(reading.trial, interval, is_meant).map(|cores| cores / interval.rate * 1e9)
}

/// Whether CPU per request falls from the first half of a level to the second.
fn falls_within(reading: &Reading<'_>, service: &str, level: &Interval) -> bool {
    let middle_ns = level.start_ns + (level.end_ns - level.start_ns) / 2;
    let half = |start_ns: i64, end_ns: i64| {
        let rate = total(&seconds_of(reading.trial, start_ns, end_ns)).rate();
        let mut part = level.clone();
        (part.start_ns, part.end_ns, part.rate) = (start_ns, end_ns, rate);
        cost_ns(reading, service, &part).filter(|_| rate > 0.0)
    };
    let halves = half(level.start_ns, middle_ns).zip(half(middle_ns, level.end_ns));
    let share = reading.thresholds.not_steady.warm_up_settled_share;
    halves.is_some_and(|(first, second)| first >= (1.0 + share) * second)
}
