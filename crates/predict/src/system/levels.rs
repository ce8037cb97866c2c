//! The levels of a load: all steady windows of the same load together.

use std::collections::BTreeMap;

use narrows_model::evidence::{LoadTotals, TrialEvidence};
use narrows_model::finding::evidence::load::LoadLevel;
use narrows_model::finding::{Evidence, Finding};
use narrows_model::histogram::Histogram;
use narrows_model::run::{Window, WindowKind};
use narrows_model::series::{Point, names};

use crate::Cannot;

/// Levels at most; of a load with more, the lightest are left out.
const LEVELS_MAX: usize = 64;

/// The load at one level, what came of it, and the CPU it cost.
#[derive(Debug, Clone)]
pub(crate) struct Level {
    pub(crate) label: String,
    pub(crate) load: LoadLevel,
    /// How much it counts beside the other levels, above 0; 1 as it was measured.
    pub(crate) weight: f64,
    /// First instant of each of its windows, and first instant after.
    windows: Vec<(i64, i64)>,
    /// All its windows together.
    pub(crate) seconds: f64,
    /// Successful responses.
    pub(crate) requests: u64,
    /// Requests sent, without those that failed; `None` if it was not counted.
    sent: Option<u64>,
    /// Failed ÷ ended, 0 to 1.
    pub(crate) error_rate: f64,
    /// From the intended send.
    pub(crate) latency: Histogram,
    /// Delay of the load generator, part of the latency, mean, seconds.
    late_s: f64,
    /// Core-seconds that each service used, and the load generator under [`names::GENERATOR`]; without those that have
    /// no sample here.
    pub(crate) cpu: BTreeMap<String, f64>,
}

impl Level {
    /// The level with another weight.
    pub(crate) fn weighted(&self, weight: f64) -> Self {
        Self { weight, ..self.clone() }
    }

    /// Successful responses per second.
    pub(crate) fn rate(&self) -> f64 {
        self.requests as f64 / self.seconds
    }

    /// Mean latency.
    pub(crate) fn mean_s(&self) -> f64 {
        self.latency.mean_ns() / 1e9
    }

    /// Coefficient of variation of its latencies: their standard deviation ÷ their mean.
    pub(crate) fn variation(&self) -> f64 {
        let mean_ns = self.latency.mean_ns();
        let (mut squares, mut count) = (0.0, 0.0);
        for bucket in self.latency.buckets() {
            let middle_ns = (bucket.lower_ns as f64 + bucket.upper_ns as f64) / 2.0;
            squares += bucket.count as f64 * (middle_ns - mean_ns).powi(2);
            count += bucket.count as f64;
        }
        if count > 0.0 && mean_ns > 0.0 { (squares / count).sqrt() / mean_ns } else { 1.0 }
    }

    /// Latency that a share of the requests, 0 to 1, does not exceed.
    pub(crate) fn quantile_s(&self, share: f64) -> f64 {
        self.latency.quantile_ns(share) as f64 / 1e9
    }

    /// Time between a response and the user's next request: users = throughput × (latency + think time), by Little's
    /// law; `None` for arrivals.
    pub(crate) fn think_s(&self) -> Option<f64> {
        let is_closed = self.load.arrivals.is_none();
        is_closed.then(|| (f64::from(self.load.users) / self.rate() - self.mean_s()).max(0.0))
    }

    /// As [`Self::think_s`], with the requests that were sent: those that are under way when it ends are of its users too.
    fn think_by_sent_s(&self) -> Option<f64> {
        let is_closed = self.load.arrivals.is_none();
        let sent = self.sent.unwrap_or(self.requests) as f64;
        is_closed.then(|| (f64::from(self.load.users) * self.seconds / sent - self.mean_s()).max(0.0))
    }

    /// Time between a response and the next request that the responses show beyond what the requests sent show, seconds: users
    /// who began in this level have waited for a response longer than they have had one.
    pub(crate) fn beyond_think_s(&self) -> Option<f64> {
        self.think_s().zip(self.think_by_sent_s()).map(|(seen_s, think_s)| (seen_s - think_s).max(0.0))
    }

    /// Whether it has this label; findings quote it.
    fn is_called(&self, label: &str) -> bool {
        label.trim_matches(['“', '”']) == self.label
    }

    /// Core-seconds of a request in all services, and none of the load generator.
    pub(crate) fn services_cpu_s(&self) -> f64 {
        let of_services = self.cpu.iter().filter(|(service, _)| *service != names::GENERATOR);
        of_services.map(|(_, core_s)| core_s).sum::<f64>() / self.requests as f64
    }

    /// Whether an instant lies in it.
    pub(crate) fn contains(&self, time_ns: i64) -> bool {
        self.windows.iter().any(|(start_ns, end_ns)| (*start_ns..*end_ns).contains(&time_ns))
    }
}

/// The levels of a trial, lightest first.
pub(crate) fn levels(trial: &TrialEvidence) -> Result<Vec<Level>, Cannot> {
    // Imported and attached runs count the requests of other programs, whose number of users is unknown.
    let is_known = |window: &Window| window.vus > 0 || window.rate.is_some();
    if trial.seconds.is_empty() || !trial.counted_windows().any(is_known) {
        return Err(Cannot::NoLoad);
    }
    let mut groups: BTreeMap<(u64, u32), Vec<&Window>> = BTreeMap::new();
    for window in trial.counted_windows().filter(|window| window.kind == WindowKind::Steady) {
        let arrivals = window.rate.map_or(0, f64::to_bits);
        groups.entry((arrivals, window.vus)).or_default().push(window);
    }
    if groups.is_empty() {
        return Err(Cannot::NotSteady);
    }
    if groups.keys().any(|(arrivals, users)| *arrivals > 0 && *users > 0) {
        return Err(Cannot::MixedLoad);
    }
    let all = groups.values().map(|windows| level(trial, windows));
    let mut levels: Vec<Level> = all.filter(|level| level.requests > 0 && level.seconds > 0.0).collect();
    if levels.is_empty() {
        return Err(Cannot::NothingCompleted);
    }
    levels.drain(..levels.len().saturating_sub(LEVELS_MAX));
    Ok(levels)
}

fn level(trial: &TrialEvidence, windows: &[&Window]) -> Level {
    let first = windows[0];
    let bounds: Vec<(i64, i64)> = windows.iter().map(|window| (window.start_ns, window.end_ns)).collect();
    let mut all = LoadTotals::default();
    for totals in windows.iter().map(|window| trial.window_load(window)) {
        all.seconds += totals.seconds;
        // Responses after the load count in no rate.
        all.succeeded += totals.succeeded - totals.untimed;
        all.sent += totals.sent;
        all.errors.add(totals.errors);
        all.latency.merge(&totals.latency);
        all.lateness.merge(&totals.lateness);
    }
    Level {
        label: first.label.clone(),
        load: LoadLevel { users: first.vus, arrivals: first.rate },
        weight: 1.0,
        seconds: all.seconds,
        requests: all.succeeded,
        sent: Some(all.sent.saturating_sub(all.errors.total())).filter(|sent| *sent > 0),
        error_rate: all.error_rate(),
        latency: all.latency,
        late_s: all.lateness.mean_ns() / 1e9,
        cpu: cpu(trial, &bounds, all.seconds),
        windows: bounds,
    }
}

/// Core-seconds of each program in these windows: its mean cores × their length, replicas added up. Under a steady load a
/// sample that reaches beyond a window says less than those that lie in it.
fn cpu(trial: &TrialEvidence, windows: &[(i64, i64)], seconds: f64) -> BTreeMap<String, f64> {
    let mut used: BTreeMap<String, f64> = BTreeMap::new();
    for series in trial.series.iter().filter(|series| series.key.name == names::CPU_CORES) {
        if let Some(cores) = mean_in(&series.points, windows) {
            *used.entry(series.key.service.clone()).or_default() += cores * seconds;
        }
    }
    used
}

/// Mean of a series in these windows; `None` without a point there. A point is a mean over the time since the point before. Points
/// whose whole time lies in a window count, weighted by its length; without any, all points in the windows count equally.
fn mean_in(points: &[Point], windows: &[(i64, i64)]) -> Option<f64> {
    let is_in = |time_ns: i64| windows.iter().any(|(start_ns, end_ns)| (*start_ns..*end_ns).contains(&time_ns));
    let is_within = |pair: &&[Point]| {
        windows.iter().any(|(start_ns, end_ns)| pair[0].time_ns >= *start_ns && pair[1].time_ns <= *end_ns)
    };
    let mut sums = (0.0, 0.0);
    for pair in points.windows(2).filter(is_within) {
        let length_ns = (pair[1].time_ns - pair[0].time_ns) as f64;
        sums = (sums.0 + pair[1].value * length_ns, sums.1 + length_ns);
    }
    if sums.1 > 0.0 {
        return Some(sums.0 / sums.1);
    }
    let values: Vec<f64> = points.iter().filter(|point| is_in(point.time_ns)).map(|point| point.value).collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The think time of these levels by the requests that were sent, by the method of least squares: requests that are under way
/// at both ends of a level, and those that were sent under the level before, make a cycle of latency and think time uncertain
/// in proportion to its length, so that the levels with the shortest cycles tell most. 0 without users.
pub(super) fn think_s(levels: &[Level]) -> f64 {
    let (mut sum, mut weight) = (0.0, 0.0);
    for level in levels {
        let Some(think_s) = level.think_by_sent_s() else { continue };
        let cycle_s = f64::from(level.load.users) / level.rate();
        let of_level = level.weight * level.requests as f64 / (cycle_s * cycle_s);
        sum += think_s * of_level;
        weight += of_level;
    }
    if weight > 0.0 { sum / weight } else { 0.0 }
}

/// Delay of the load generator, mean over the requests of these levels, seconds.
pub(super) fn generator_s(levels: &[Level]) -> f64 {
    let requests: f64 = levels.iter().map(|level| level.requests as f64).sum();
    let late_s: f64 = levels.iter().map(|level| level.late_s * level.requests as f64).sum();
    if requests > 0.0 { late_s / requests } else { 0.0 }
}

/// Leaves out the levels under which a service was still warming up, as far as one is left that was not.
pub(super) fn without_warm_up(levels: &mut Vec<Level>, findings: &[Finding]) {
    let warm_up = findings.iter().find_map(|finding| match &finding.evidence {
        Evidence::NotSteady(unsteady) => unsteady.warm_up.as_ref(),
        _ => None,
    });
    let Some(warm_from) = warm_up.and_then(|warm_up| warm_up.warm_from.as_deref()) else { return };
    let first = levels.iter().position(|level| level.is_called(warm_from));
    levels.drain(..first.unwrap_or(0));
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Level {
        /// One second at this rate, in which a service used so many cores.
        pub(in crate::system) fn of_cpu(service: &str, rate: f64, cores: f64) -> Self {
            let cpu = BTreeMap::from([(service.to_owned(), cores)]);
            Self { cpu, ..Self::of_users(1, rate, 0.001) }
        }

        /// One second of so many users, with this rate and this latency.
        pub(in crate::system) fn of_users(users: u32, rate: f64, mean_s: f64) -> Self {
            let mut latency = Histogram::new();
            latency.record_n((mean_s * 1e9) as u64, rate as u64);
            Self {
                label: format!("{users} users"),
                load: LoadLevel { users, arrivals: None },
                weight: 1.0,
                windows: Vec::new(),
                seconds: 1.0,
                requests: rate as u64,
                sent: None,
                error_rate: 0.0,
                latency,
                late_s: 0.0,
                cpu: BTreeMap::new(),
            }
        }
    }

    #[test]
    fn levels_with_short_cycles_tell_the_think_time() {
        // One at a time for 20 ms and no think time: requests of the step before shorten the mean of the heavier levels.
        let levels = [Level::of_users(1, 50.0, 0.02), Level::of_users(16, 50.0, 0.31)];
        assert!(think_s(&levels) < 0.0001, "{}", think_s(&levels));
        assert!((think_s(&[Level::of_users(10, 50.0, 0.05)]) - 0.15).abs() < 1e-9);
        assert_eq!(think_s(&[]), 0.0);
    }

    #[test]
    fn requests_that_are_under_way_at_the_end_of_a_level_are_of_its_users() {
        // Four users of 0.25 s with a think time of 0.25 s: eight requests a second are sent, and the last four have no response yet.
        let level = Level { sent: Some(8), ..Level::of_users(4, 4.0, 0.25) };
        assert!((think_s(std::slice::from_ref(&level)) - 0.25).abs() < 1e-6, "{level:?}");
        assert!((level.beyond_think_s().expect("users") - 0.5).abs() < 1e-6, "{level:?}");
    }

    #[test]
    fn samples_that_reach_beyond_a_window_count_only_without_others() {
        let points = [(1, 9.0), (2, 1.0), (3, 2.0), (4, 9.0)];
        let points = points.map(|(time_ns, value)| Point { time_ns, value });
        assert_eq!(mean_in(&points, &[(1, 3)]), Some(1.5), "from the first instant to the third");
        assert_eq!(mean_in(&points, &[(1, 2)]), Some(1.0));
        assert_eq!(mean_in(&points, &[(0, 1)]), None);
        assert_eq!(mean_in(&[Point { time_ns: 5, value: 3.0 }], &[(4, 6)]), Some(3.0));
    }
}
