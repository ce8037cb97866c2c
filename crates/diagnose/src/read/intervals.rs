//! Intervals of a trial in which a median over a series means something.
//!
//! A steady window is one interval. A ramp is cut into four, because what saturates at its end hides in a median over
//! all of it. A median needs a number of points over a length of time; with fewer the result is none, not a guess.
//!
//! That number follows the steps of the load: where there are several steps of different loads, a shorter one stands by
//! itself, and a median in it needs fewer points; but then they must agree, for two of three points may be a peak.
//!
//! Steady windows that are too short even for that are joined with their neighbours, from the last one backwards: the
//! end of a load that rises in steps is where limits show, so a part that is too short is left at the beginning. An
//! interval of several loads is not a steady one, so nothing is proved by its throughput. Ratios of means hold in it, such
//! as calls per request or the share of requests that wait for a peer: where no interval is steady, each is a level.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use narrows_model::counting::Phase;
use narrows_model::evidence::TrialEvidence;
use narrows_model::finding::evidence::cpu::LoadPoint;
use narrows_model::finding::evidence::load::LoadLevel;
use narrows_model::load::LoadSecond;
use narrows_model::run::{Window, WindowKind};
use narrows_model::series::Series;
use narrows_model::units;

use crate::stats::{finite, mean_and_variance, median};
use crate::thresholds::Thresholds;

const RAMP_PARTS: i64 = 4;
/// Users have no think time when at least this share of them waits for a response at any time.
const WITHOUT_THINK_TIME_SHARE: f64 = 0.95;

/// A part of a trial under one load, or nearly one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Interval {
    /// For people, to stand after a preposition.
    pub(crate) label: String,
    /// True if the load is constant in it.
    pub(crate) is_steady: bool,
    /// True if it is steady, or if no interval of the trial is.
    pub(crate) is_level: bool,
    /// Virtual users of closed models, the most at any second of it.
    pub(crate) vus: u32,
    /// Arrivals per second of open models; `None` if there is none.
    pub(crate) offered: Option<f64>,
    /// Requests sent per second.
    pub(crate) sent: f64,
    /// Successful responses per second.
    pub(crate) rate: f64,
    /// Mean latency from intended send, nanoseconds.
    pub(crate) latency_ns: f64,
    /// Mean time from actual send, nanoseconds: without the wait for a free user of an open model.
    pub(crate) service_ns: f64,
    /// First instant.
    pub(crate) start_ns: i64,
    /// First instant after.
    pub(crate) end_ns: i64,
    /// True if it is one step of several, too short for the usual number of points.
    is_short_step: bool,
}

impl Interval {
    /// True if an instant lies in it.
    pub(crate) fn contains(&self, time_ns: i64) -> bool {
        (self.start_ns..self.end_ns).contains(&time_ns)
    }

    /// Length, seconds.
    pub(crate) fn seconds(&self) -> f64 {
        (self.end_ns - self.start_ns).max(0) as f64 / 1e9
    }

    /// Compares the demand of two intervals.
    pub(crate) fn by_demand(&self, other: &Interval) -> Ordering {
        let offered = |interval: &Interval| interval.offered.unwrap_or(0.0);
        offered(self).total_cmp(&offered(other)).then(self.vus.cmp(&other.vus))
    }

    /// How many times as much as another's this load demands; `None` if that is not known, because one is open and the
    /// other is not, or because users and arrivals both differ.
    pub(crate) fn demand_over(&self, other: &Interval) -> Option<f64> {
        match (self.offered, other.offered) {
            (None, None) => Some(f64::from(self.vus) / f64::from(other.vus.max(1))),
            (Some(here), Some(there)) if there > 0.0 && self.vus == other.vus => Some(here / there),
            _ => None,
        }
    }

    /// The load as it is demanded.
    pub(crate) fn load_level(&self) -> LoadLevel {
        LoadLevel { users: self.vus, arrivals: self.offered.map(finite) }
    }

    /// Requests under way at any time, by Little's law: throughput × time from send to response.
    pub(crate) fn in_flight(&self) -> f64 {
        self.rate * self.service_ns / 1e9
    }

    /// Requests under way, as a share of the users.
    pub(crate) fn share_under_way(&self) -> f64 {
        self.in_flight() / f64::from(self.vus.max(1))
    }

    /// True if the users of a closed load send again as soon as a response arrives.
    pub(crate) fn is_without_think_time(&self) -> bool {
        self.offered.is_none() && self.vus > 0 && self.share_under_way() >= WITHOUT_THINK_TIME_SHARE
    }

    /// The load, and the part of it that was carried.
    pub(crate) fn load_point(&self) -> LoadPoint {
        let request_ns = if self.offered.is_some() { self.service_ns } else { self.latency_ns };
        LoadPoint { level: self.load_level(), rate: finite(self.rate), request_ns: finite(request_ns) }
    }
}

/// The intervals of all counted windows in order of time.
pub(crate) fn intervals(trial: &TrialEvidence, thresholds: &Thresholds) -> Vec<Interval> {
    let span_ns = if has_short_steps(trial, thresholds) {
        thresholds.step_span_ns.min(thresholds.cpu_span_ns)
    } else {
        thresholds.cpu_span_ns
    };
    let is_short = |window: &Window| window.kind == WindowKind::Steady && window.end_ns - window.start_ns < span_ns;
    let mut groups: Vec<Vec<&Window>> = Vec::new();
    for window in trial.counted_windows().collect::<Vec<_>>().into_iter().rev() {
        let open =
            groups.last_mut().filter(|group| is_short(window) && is_short(group[0]) && length_ns(group) < span_ns);
        match open {
            Some(group) => group.push(window),
            None => groups.push(vec![window]),
        }
    }
    let stands_alone = |interval: &Interval| {
        (span_ns..thresholds.cpu_span_ns).contains(&(interval.end_ns - interval.start_ns)) && interval.is_steady
    };
    let found: Vec<Interval> = groups.iter().rev().flat_map(|group| parts_of(trial, group)).collect();
    let has_steady = found.iter().any(|interval| interval.is_steady);
    let mark = |interval: Interval| Interval {
        is_level: interval.is_steady || !has_steady,
        is_short_step: stands_alone(&interval),
        ..interval
    };
    found.into_iter().map(mark).collect()
}

/// The steady interval with the heaviest load, by its place.
pub(crate) fn heaviest_steady(intervals: &[Interval]) -> Option<usize> {
    heaviest(intervals, |interval| interval.is_steady)
}

/// The level with the heaviest load, by its place.
pub(crate) fn heaviest_level(intervals: &[Interval]) -> Option<usize> {
    heaviest(intervals, |interval| interval.is_level)
}

fn heaviest(intervals: &[Interval], is_meant: impl Fn(&Interval) -> bool) -> Option<usize> {
    let meant = intervals.iter().enumerate().filter(|(_, interval)| is_meant(interval));
    meant.max_by(|(_, a), (_, b)| a.by_demand(b)).map(|(at, _)| at)
}

/// The steady windows that count, each by itself: it may be too short for a median.
pub(crate) fn steps(trial: &TrialEvidence) -> Vec<Interval> {
    let steady = trial.counted_windows().filter(|window| window.kind == WindowKind::Steady);
    steady.flat_map(|window| parts_of_one(trial, window)).collect()
}

/// True if the load has several different steps that are too short for the usual number of points, but not for fewer.
fn has_short_steps(trial: &TrialEvidence, thresholds: &Thresholds) -> bool {
    let steady = trial.counted_windows().filter(|window| window.kind == WindowKind::Steady);
    let long_enough = steady.filter(|window| window.end_ns - window.start_ns >= thresholds.step_span_ns);
    let loads: BTreeSet<(u32, u64)> =
        long_enough.map(|window| (window.vus, window.rate.unwrap_or(0.0).to_bits())).collect();
    loads.len() >= thresholds.steps
}

/// Total length of these windows.
fn length_ns(group: &[&Window]) -> i64 {
    group.iter().map(|window| window.end_ns - window.start_ns).sum()
}

/// The intervals of one window, or of several neighbours joined, the latest first.
fn parts_of(trial: &TrialEvidence, group: &[&Window]) -> Vec<Interval> {
    match group {
        [window] => parts_of_one(trial, window),
        [last, .., first] => vec![joined(trial, first, last, group)],
        [] => Vec::new(),
    }
}

fn parts_of_one(trial: &TrialEvidence, window: &Window) -> Vec<Interval> {
    let bounds = bounds_of(window);
    let parts = bounds.len();
    let part = |(i, (start_ns, end_ns)): (usize, (i64, i64))| {
        let of = if parts > 1 { format!("part {} of {parts} of ", i + 1) } else { String::new() };
        let drained_ns = window.drained_ns.filter(|_| end_ns == window.end_ns);
        interval(trial, &Window { start_ns, end_ns, drained_ns, ..window.clone() }, format!("{of}“{}”", window.label))
    };
    bounds.into_iter().enumerate().map(part).collect()
}

fn joined(trial: &TrialEvidence, first: &Window, last: &Window, group: &[&Window]) -> Interval {
    let users = || group.iter().map(|window| window.vus);
    let (least, most) = (users().min().unwrap_or(0), users().max().unwrap_or(0));
    let rates = || group.iter().filter_map(|window| window.rate);
    let (slowest, fastest) = (rates().reduce(f64::min), rates().reduce(f64::max));
    let is_steady = group.iter().all(|window| (window.vus, window.rate) == (last.vus, last.rate));
    let mut levels = Vec::new();
    if most > 0 || fastest.is_none() {
        levels.push(if least == most { format!("{most} users") } else { format!("{least} to {most} users") });
    }
    if let (Some(slowest), Some(fastest)) = (slowest, fastest) {
        let (from, to) = (units::rate(slowest), units::rate(fastest));
        levels.push(if slowest == fastest { to } else { format!("{from} to {to}") });
    }
    let label = if is_steady { format!("“{}”", last.label) } else { format!("“{}”", levels.join(" + ")) };
    let bounds = Window { start_ns: first.start_ns, end_ns: last.end_ns, vus: most, rate: fastest, ..last.clone() };
    Interval { is_steady, ..interval(trial, &bounds, label) }
}

/// First instant, and first instant after, of each interval of a window.
pub(crate) fn bounds_of(window: &Window) -> Vec<(i64, i64)> {
    let parts = if window.kind == WindowKind::Steady { 1 } else { RAMP_PARTS };
    let at = |i: i64| {
        if i == parts { window.end_ns } else { window.start_ns + (window.end_ns - window.start_ns) / parts * i }
    };
    (0..parts).map(|i| (at(i), at(i + 1))).collect()
}

/// The most users of all scenarios together in any second.
fn most_users<'a>(rows: impl Iterator<Item = &'a LoadSecond>) -> Option<u32> {
    let mut users: BTreeMap<i64, u32> = BTreeMap::new();
    for row in rows {
        *users.entry(row.start_ns).or_default() += row.vus;
    }
    users.into_values().max()
}

fn interval(trial: &TrialEvidence, bounds: &Window, label: String) -> Interval {
    let load = trial.window_load(bounds);
    // In an open model the rows count the users at work, which follow from its rate.
    let vus = match bounds.kind {
        WindowKind::Steady => bounds.vus,
        _ if bounds.rate.is_some() => bounds.vus,
        _ => most_users(trial.seconds.iter().filter(|row| bounds.holds(row) == Some(Phase::Sending)))
            .unwrap_or(bounds.vus),
    };
    Interval {
        label,
        is_steady: bounds.kind == WindowKind::Steady,
        is_level: bounds.kind == WindowKind::Steady,
        vus,
        offered: bounds.rate.map(|rate| if bounds.kind == WindowKind::Steady { rate } else { load.offered() }),
        sent: if load.seconds > 0.0 { load.sent as f64 / load.seconds } else { 0.0 },
        rate: load.rate(),
        latency_ns: load.latency.mean_ns(),
        service_ns: load.service.mean_ns(),
        start_ns: bounds.start_ns,
        end_ns: bounds.end_ns,
        is_short_step: false,
    }
}

impl Interval {
    /// The median of one replica's series here; `None` if there are too few points.
    pub(crate) fn median_of(
        &self,
        trial: &TrialEvidence,
        (name, service, replica): (&str, &str, u32),
        thresholds: &Thresholds,
    ) -> Option<f64> {
        self.median_in(series_of(trial, name, service, replica)?, thresholds)
    }

    /// The median of one replica's series here, of however few points, which need not agree; none without a point.
    pub(crate) fn rough_median_of(
        &self,
        trial: &TrialEvidence,
        (name, service, replica): (&str, &str, u32),
    ) -> Option<f64> {
        let points = series_of(trial, name, service, replica)?.points.iter();
        median(points.filter(|point| self.contains(point.time_ns)).map(|point| point.value).collect())
    }

    /// The median of a series here; `None` if there are too few points, or too few that agree.
    pub(crate) fn median_in(&self, series: &Series, thresholds: &Thresholds) -> Option<f64> {
        let points: Vec<_> = series.points.iter().filter(|point| self.contains(point.time_ns)).collect();
        let (first, last) = (points.first()?, points.last()?);
        // n points a step apart stand for n steps of time.
        let gaps = points.len().saturating_sub(1).max(1) as i64;
        let span_ns = (last.time_ns - first.time_ns) / gaps * points.len() as i64;
        let (points_min, span_ns_min) = if self.is_short_step {
            (thresholds.step_points, thresholds.step_span_ns)
        } else {
            (thresholds.cpu_points, thresholds.cpu_span_ns)
        };
        let values: Vec<f64> = points.iter().map(|point| point.value).collect();
        let is_enough = values.len() >= points_min && span_ns >= span_ns_min;
        let is_sound = is_enough && (!self.is_short_step || agree(&values, thresholds.step_error_share));
        median(values).filter(|_| is_sound)
    }
}

/// One replica's series of that name, the first if several differ in their labels.
pub(crate) fn series_of<'t>(trial: &'t TrialEvidence, name: &str, service: &str, replica: u32) -> Option<&'t Series> {
    trial.series.iter().find(|series| {
        let key = &series.key;
        key.name == name && key.service == service && key.replica == replica
    })
}

/// True if the standard error of the mean is no more than this share of it.
fn agree(values: &[f64], share: f64) -> bool {
    mean_and_variance(values)
        .is_some_and(|(mean, variance)| (variance / values.len() as f64).sqrt() <= share * mean.abs())
}

#[cfg(test)]
mod tests {
    #[test]
    fn users_of_scenarios_that_run_side_by_side_are_added() {
        let row = |start_ns, vus| super::LoadSecond { start_ns, vus, ..Default::default() };
        assert_eq!(super::most_users([row(0, 5), row(0, 3), row(1, 6)].iter()), Some(8));
        assert_eq!(super::most_users([].iter()), None);
    }

    use narrows_model::series::names;
    use narrows_testkit::trial::{Load, TrialBuilder};

    use super::*;

    fn intervals(trial: &TrialEvidence) -> Vec<Interval> {
        super::intervals(trial, &Thresholds::default())
    }

    const LOAD: Load = Load { vus: 4, rate: 10.0, latency_ms: 5.0 };

    #[test]
    fn a_ramp_is_cut_and_warm_up_left_out() {
        let trial = TrialBuilder::new("a")
            .warmup(10, LOAD)
            .steady(10, LOAD)
            .window(WindowKind::Ramp, 40, (0..40).map(|s| (f64::from(s), 5.0)))
            .build();
        let rates: Vec<f64> = intervals(&trial).iter().map(|interval| interval.rate).collect();
        assert_eq!(rates, [10.0, 4.5, 14.5, 24.5, 34.5]);
    }

    /// Eleven steps of two seconds, as a short run of a long experiment has.
    fn short_steps() -> TrialBuilder {
        let steps = (0..11).map(|step| Load { vus: 1 + 4 * step, rate: 10.0 + f64::from(step), latency_ms: 5.0 });
        steps.fold(TrialBuilder::new("a").warmup(3, LOAD), |trial, load| trial.steady(2, load))
    }

    #[test]
    fn short_steps_are_joined_from_the_last() {
        let trial = short_steps().cpu("shop", 0, f64::from).build();
        let found = intervals(&trial);
        let shown: Vec<_> = found.iter().map(|s| (s.label.as_str(), s.vus, s.is_steady)).collect();
        let expected =
            [("“1 to 5 users”", 5), ("“9 to 17 users”", 17), ("“21 to 29 users”", 29), ("“33 to 41 users”", 41)];
        assert_eq!(shown, expected.map(|(label, vus)| (label, vus, false)));
        assert_eq!((heaviest_steady(&found), heaviest_level(&found)), (None, Some(3)));
        assert_eq!(found[3].rate, 19.0);
        let key = (names::CPU_CORES, "shop", 0);
        let medians: Vec<_> = found.iter().map(|s| s.median_of(&trial, key, &Thresholds::default())).collect();
        assert_eq!(medians, [None, Some(9.5), Some(15.5), Some(21.5)]);
    }

    #[test]
    fn open_windows_are_distinguished_by_their_rate() {
        let at = |rate| Load { vus: 7, rate, latency_ms: 20.0 };
        let trial = [50.0, 100.0, 200.0].into_iter();
        let trial = trial.fold(TrialBuilder::new("a"), |trial, rate| trial.arrivals(2, rate, at(rate)));
        let found = intervals(&trial.arrivals(9, 400.0, at(390.0)).build());
        let shown: Vec<_> = found.iter().map(|s| (s.label.as_str(), s.offered, s.vus, s.is_steady)).collect();
        assert_eq!(found.iter().map(|interval| interval.is_level).collect::<Vec<_>>(), [false, true]);
        let joined = ("“50.0/s to 200/s”", Some(200.0), 0, false);
        assert_eq!(shown, [joined, ("“400/s”", Some(400.0), 0, true)]);
        let (last, first) = (&found[1], &found[0]);
        assert_eq!((last.in_flight(), last.load_level()), (7.8, LoadLevel { users: 0, arrivals: Some(400.0) }));
        assert_eq!((last.demand_over(first), last.by_demand(first)), (Some(2.0), Ordering::Greater));
        let closed = intervals(&TrialBuilder::new("a").steady(9, at(10.0)).build());
        assert_eq!(
            (last.demand_over(&closed[0]), closed[0].load_level()),
            (None, LoadLevel { users: 7, arrivals: None })
        );
    }

    #[test]
    fn long_steps_and_ramps_stay_apart() {
        let two = TrialBuilder::new("a").steady(2, LOAD).steady(9, LOAD).steady(2, LOAD).steady(3, LOAD);
        let labels = |trial: TrialBuilder| {
            intervals(&trial.build()).into_iter().map(|s| (s.label, s.is_steady)).collect::<Vec<_>>()
        };
        assert_eq!(
            labels(two),
            [("“4 users”".to_owned(), true), ("“4 users”".to_owned(), true), ("“4 users”".to_owned(), true)]
        );
        let ramp = (0..4).map(|s| (f64::from(s), 5.0));
        assert_eq!(
            labels(TrialBuilder::new("a").steady(2, LOAD).window(WindowKind::Ramp, 9, ramp).steady(2, LOAD)).len(),
            6
        );
    }

    #[test]
    fn few_points_have_no_median() {
        for (seconds, expected) in [(4, None), (5, Some(0.5))] {
            let trial = TrialBuilder::new("a").steady(seconds, LOAD).cpu("shop", 0, |_| 0.5).build();
            let key = (names::CPU_CORES, "shop", 0);
            assert_eq!(intervals(&trial)[0].median_of(&trial, key, &Thresholds::default()), expected);
        }
    }

    /// So many steps of so many seconds, one user more in each.
    fn steps_of(count: u32, seconds: usize) -> TrialBuilder {
        let steps = (1..=count).map(|vus| Load { vus, rate: 10.0 * f64::from(vus), latency_ms: 5.0 });
        steps.fold(TrialBuilder::new("a").warmup(3, LOAD), |trial, load| trial.steady(seconds, load))
    }

    #[test]
    fn several_steps_of_three_seconds_stand_alone_where_their_points_agree() {
        let key = (names::CPU_CORES, "shop", 0);
        let medians = |trial: TrialBuilder| {
            let trial = trial.build();
            let found = intervals(&trial);
            found.iter().map(|s| s.median_of(&trial, key, &Thresholds::default())).collect::<Vec<_>>()
        };
        let rising = |second: u32| 0.1 * f64::from(second / 3);
        assert_eq!(medians(steps_of(4, 3).cpu("shop", 0, rising)), [Some(0.1), Some(0.2), Some(0.1 * 3.0), Some(0.4)]);
        let peak = |second: u32| if (12..14).contains(&second) { 0.9 } else { 0.2 };
        assert_eq!(medians(steps_of(4, 3).cpu("shop", 0, peak)), [Some(0.2), Some(0.2), Some(0.2), None]);
        assert_eq!(medians(steps_of(3, 3).cpu("shop", 0, rising)).len(), 2, "three steps are joined");
        assert_eq!(medians(steps_of(6, 2).cpu("shop", 0, rising)).len(), 2, "two seconds are too short");
    }

    #[test]
    fn the_least_length_of_a_step_can_be_set() {
        let mut thresholds = Thresholds::default();
        thresholds.set("steps", 3.0).unwrap();
        thresholds.set("step_span_ns", 2e9).unwrap();
        let trial = steps_of(3, 2).build();
        assert_eq!(super::intervals(&trial, &thresholds).len(), 3);
        assert!(super::intervals(&trial, &thresholds).iter().all(|interval| interval.is_steady));
        assert_eq!(intervals(&trial).len(), 1);
    }
}
