//! The figures of services and of their calls in intervals of equal length.

use std::collections::{BTreeMap, BTreeSet};

use narrows_model::evidence::TrialEvidence;
use narrows_model::series::{Point, Series, SeriesKey, names, services};

/// The shortest interval, nanoseconds.
const STEP_NS_MIN: i64 = 1_000_000_000;
/// The length to which shorter intervals are joined where a side has enough of them, nanoseconds.
const STEP_NS_ENOUGH: i64 = 15 * STEP_NS_MIN;
/// Intervals that the shorter side keeps when intervals are joined.
const INTERVALS_KEPT: i64 = 8;
/// Intervals of one subject on one side; later ones are left out.
const INTERVALS_MAX: usize = 100_000;

/// Figures of a service, or of its calls to another, in one interval.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Interval {
    pub(super) time_ns: i64,
    /// Requests per second.
    pub(super) requests: Option<f64>,
    /// Failed requests per second.
    pub(super) errors: Option<f64>,
    /// Mean latency, seconds.
    pub(super) latency_s: Option<f64>,
    /// CPU of all replicas, in cores.
    pub(super) cpu: Option<f64>,
}

impl Interval {
    /// Failed requests ÷ requests, 0 to 1; no count of errors means that there was none.
    pub(super) fn error_share(&self) -> Option<f64> {
        let requests = self.requests.filter(|requests| *requests > 0.0)?;
        Some((self.errors.unwrap_or(0.0) / requests).clamp(0.0, 1.0))
    }
}

/// Both sides of a comparison.
#[derive(Debug, Default)]
pub(super) struct Figures {
    /// By service: the requests that it responds to, and its CPU.
    pub(super) services: BTreeMap<String, Sides>,
    /// By caller and callee, as the caller sees the calls.
    pub(super) calls: BTreeMap<(String, String), Sides>,
    /// Callers and callees of a call graph that was given.
    pub(super) edges: BTreeSet<(String, String)>,
    /// Length of an interval, seconds.
    pub(super) step_s: f64,
}

/// The intervals of one subject, in order of time.
#[derive(Debug, Default)]
pub(super) struct Sides {
    pub(super) before: Vec<Interval>,
    pub(super) after: Vec<Interval>,
}

impl Figures {
    pub(super) fn of(before: &[&TrialEvidence], after: &[&TrialEvidence]) -> Self {
        let step_ns = step_ns(before, after);
        let mut figures = Self { step_s: step_ns as f64 / 1e9, ..Self::default() };
        for (side, trials) in [before, after].into_iter().enumerate() {
            for (key, intervals) in Sums::of(trials, step_ns, &mut figures.edges) {
                let sides = match key.callee {
                    None => figures.services.entry(key.service).or_default(),
                    Some(callee) => figures.calls.entry((key.service, callee)).or_default(),
                };
                *(if side == 0 { &mut sides.before } else { &mut sides.after }) = intervals;
            }
        }
        figures.add_callees();
        figures
    }

    /// Adds callees that report nothing about themselves, such as databases, as their callers see them.
    fn add_callees(&mut self) {
        let mut seen: BTreeMap<String, Sides> = BTreeMap::new();
        for ((_, callee), sides) in &self.calls {
            let has_requests = |service: &Sides| service.after.iter().any(|one| one.requests.is_some());
            if !self.services.get(callee).is_some_and(has_requests) {
                let known = seen.entry(callee.clone()).or_default();
                known.before = joined(&known.before, &sides.before);
                known.after = joined(&known.after, &sides.after);
            }
        }
        for (callee, sides) in seen {
            let known = self.services.entry(callee).or_default();
            known.before = with_cpu(sides.before, &known.before);
            known.after = with_cpu(sides.after, &known.after);
        }
    }
}

/// The requests of two callers together.
fn joined(one: &[Interval], other: &[Interval]) -> Vec<Interval> {
    let mut by_time: BTreeMap<i64, Interval> = one.iter().map(|one| (one.time_ns, *one)).collect();
    for other in other {
        let known = by_time.entry(other.time_ns).or_insert(Interval { time_ns: other.time_ns, ..Interval::default() });
        let weight = |one: &Interval| one.latency_s.map_or(0.0, |_| one.requests.unwrap_or(1.0));
        let (own, new) = (weight(known), weight(other));
        let sum = known.latency_s.unwrap_or(0.0) * own + other.latency_s.unwrap_or(0.0) * new;
        known.latency_s = (own + new > 0.0).then(|| sum / (own + new));
        known.requests = plus(known.requests, other.requests);
        known.errors = plus(known.errors, other.errors);
    }
    by_time.into_values().collect()
}

fn plus(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    match (one, other) {
        (None, None) => None,
        (one, other) => Some(one.unwrap_or(0.0) + other.unwrap_or(0.0)),
    }
}

fn with_cpu(mut intervals: Vec<Interval>, cpu: &[Interval]) -> Vec<Interval> {
    let by_time: BTreeMap<i64, f64> = cpu.iter().filter_map(|one| Some((one.time_ns, one.cpu?))).collect();
    intervals.iter_mut().for_each(|one| one.cpu = by_time.get(&one.time_ns).copied());
    intervals
}

/// The median distance of points, in whole seconds; longer where points are frequent and the sides long enough.
fn step_ns(before: &[&TrialEvidence], after: &[&TrialEvidence]) -> i64 {
    let counted = |trials: &[&TrialEvidence]| -> Vec<Vec<i64>> {
        let mut times = Vec::new();
        for trial in trials {
            let told = trial.series.iter().filter(|series| is_told(&series.key));
            times.extend(told.map(|series| counted_points(trial, series).map(|point| point.time_ns).collect()));
        }
        times
    };
    let sides = [counted(before), counted(after)];
    let gaps = sides.iter().flatten().flat_map(|times| times.windows(2).map(|pair| pair[1] - pair[0]));
    let mut gaps: Vec<i64> = gaps.filter(|gap| *gap > 0).collect();
    gaps.sort_unstable();
    let median = gaps.get(gaps.len() / 2).copied().unwrap_or(STEP_NS_MIN).max(STEP_NS_MIN);
    let length = |side: &Vec<Vec<i64>>| {
        let of = |times: &Vec<i64>| times.last().zip(times.first()).map_or(0, |(last, first)| last - first);
        side.iter().map(of).max().unwrap_or(0)
    };
    let shorter = sides.iter().map(length).min().unwrap_or(0);
    // Joined intervals hold whole numbers of points, so that none has one more than its neighbour.
    let joined = (shorter / INTERVALS_KEPT).min(STEP_NS_ENOUGH) / median;
    let step = median.saturating_mul(joined.max(1));
    (step + STEP_NS_MIN / 2) / STEP_NS_MIN * STEP_NS_MIN
}

fn is_told(key: &SeriesKey) -> bool {
    [services::REQUESTS, services::LATENCY].contains(&key.name.as_str())
}

fn counted_points<'a>(trial: &'a TrialEvidence, series: &'a Series) -> impl Iterator<Item = &'a Point> {
    series.points.iter().filter(|point| trial.is_counted(point.time_ns) && point.value.is_finite())
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Subject {
    service: String,
    callee: Option<String>,
}

/// Means of the points in one interval.
#[derive(Debug, Default, Clone, Copy)]
struct Sums {
    requests: Mean,
    errors: Mean,
    latency: Mean,
    cpu: Option<f64>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Mean {
    sum: f64,
    weight: f64,
}

impl Mean {
    fn add(&mut self, value: f64, weight: f64) {
        self.sum += value * weight;
        self.weight += weight;
    }

    fn value(self) -> Option<f64> {
        (self.weight > 0.0).then(|| self.sum / self.weight)
    }
}

impl Sums {
    /// The intervals of all subjects of one side; adds what a call graph says to `edges`.
    fn of(
        trials: &[&TrialEvidence],
        step_ns: i64,
        edges: &mut BTreeSet<(String, String)>,
    ) -> Vec<(Subject, Vec<Interval>)> {
        let mut subjects: BTreeMap<Subject, BTreeMap<i64, Sums>> = BTreeMap::new();
        for trial in trials {
            let rates = request_rates(trial);
            for series in trial.series.iter().filter(|series| is_of_service(&series.key)) {
                let subject = subject_of(&series.key);
                if series.key.name == services::CALLS {
                    edges.extend(subject.callee.map(|callee| (subject.service, callee)));
                    continue;
                }
                let sums = subjects.entry(subject.clone()).or_default();
                match series.key.name.as_str() {
                    names::CPU_CORES => add_cpu(sums, trial, series, step_ns),
                    name => {
                        for point in counted_points(trial, series) {
                            let weight = match name {
                                services::LATENCY => {
                                    rates.get(&subject).and_then(|rates| rates.get(&point.time_ns)).copied()
                                }
                                _ => None,
                            };
                            let sums = sums.entry(point.time_ns.div_euclid(step_ns)).or_default();
                            match name {
                                services::REQUESTS => sums.requests.add(point.value, 1.0),
                                services::ERRORS => sums.errors.add(point.value, 1.0),
                                _ => sums.latency.add(point.value, weight.unwrap_or(1.0)),
                            }
                        }
                    }
                }
            }
        }
        let intervals = |steps: BTreeMap<i64, Sums>| {
            let interval = |(step, sums): (i64, Sums)| Interval {
                time_ns: step.saturating_mul(step_ns),
                requests: sums.requests.value(),
                errors: sums.errors.value(),
                latency_s: sums.latency.value(),
                cpu: sums.cpu,
            };
            steps.into_iter().take(INTERVALS_MAX).map(interval).collect()
        };
        subjects.into_iter().map(|(subject, steps)| (subject, intervals(steps))).collect()
    }
}

fn is_of_service(key: &SeriesKey) -> bool {
    const READ: [&str; 5] =
        [services::REQUESTS, services::ERRORS, services::LATENCY, services::CALLS, names::CPU_CORES];
    READ.contains(&key.name.as_str()) && !key.service.is_empty() && key.service != names::GENERATOR
}

fn subject_of(key: &SeriesKey) -> Subject {
    Subject { service: key.service.clone(), callee: key.labels.get(services::PEER).cloned() }
}

/// Requests per second by time, to weigh latencies with.
fn request_rates(trial: &TrialEvidence) -> BTreeMap<Subject, BTreeMap<i64, f64>> {
    let requests = trial.series.iter().filter(|series| series.key.name == services::REQUESTS);
    let by_time = |series: &Series| counted_points(trial, series).map(|point| (point.time_ns, point.value)).collect();
    requests.map(|series| (subject_of(&series.key), by_time(series))).collect()
}

/// Adds the CPU of one replica to that of the others.
fn add_cpu(sums: &mut BTreeMap<i64, Sums>, trial: &TrialEvidence, series: &Series, step_ns: i64) {
    let mut means: BTreeMap<i64, Mean> = BTreeMap::new();
    for point in counted_points(trial, series) {
        means.entry(point.time_ns.div_euclid(step_ns)).or_default().add(point.value, 1.0);
    }
    for (step, mean) in means {
        let sums = sums.entry(step).or_default();
        sums.cpu = plus(sums.cpu, mean.value());
    }
}
