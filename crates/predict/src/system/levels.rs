//! The levels of a load: all steady windows of the same load together.

use std::collections::BTreeMap;

use narrows_model::evidence::{LoadTotals, TrialEvidence};
use narrows_model::finding::evidence::load::LoadLevel;
use narrows_model::histogram::Histogram;
use narrows_model::run::{Window, WindowKind};
use narrows_model::series::{Series, names};

use crate::Cannot;

/// Levels at most; of a load with more, the lightest are left out.
const LEVELS_MAX: usize = 64;

/// The load at one level, what came of it, and the CPU it cost.
#[derive(Debug, Clone)]
pub(crate) struct Level {
    pub(crate) label: String,
    pub(crate) load: LoadLevel,
    /// First instant of each of its windows, and first instant after.
    windows: Vec<(i64, i64)>,
    /// All its windows together.
    pub(crate) seconds: f64,
    /// Successful responses.
    pub(crate) requests: u64,
    /// Failed ÷ ended, 0 to 1.
    pub(crate) error_rate: f64,
    /// From the intended send.
    pub(crate) latency: Histogram,
    /// Core-seconds that each service used, and the load generator under [`names::GENERATOR`]; without those that have
    /// no sample here.
    pub(crate) cpu: BTreeMap<String, f64>,
}

impl Level {
    /// Successful responses per second.
    pub(crate) fn rate(&self) -> f64 {
        self.requests as f64 / self.seconds
    }

    /// Mean latency.
    pub(crate) fn mean_s(&self) -> f64 {
        self.latency.mean_ns() / 1e9
    }

    /// 95 % latency.
    pub(crate) fn p95_s(&self) -> f64 {
        self.latency.quantile_ns(0.95) as f64 / 1e9
    }

    /// Time between a response and the user's next request: users = throughput × (latency + think time), by Little's
    /// law; `None` for arrivals.
    pub(crate) fn think_s(&self) -> Option<f64> {
        let is_closed = self.load.arrivals.is_none();
        is_closed.then(|| (f64::from(self.load.users) / self.rate() - self.mean_s()).max(0.0))
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
        all.errors.add(totals.errors);
        all.latency.merge(&totals.latency);
    }
    Level {
        label: first.label.clone(),
        load: LoadLevel { users: first.vus, arrivals: first.rate },
        seconds: all.seconds,
        requests: all.succeeded,
        error_rate: all.error_rate(),
        latency: all.latency,
        cpu: cpu(trial, &bounds, all.seconds),
        windows: bounds,
    }
}

/// Core-seconds of each program in these windows: its mean cores × their length, replicas added up.
fn cpu(trial: &TrialEvidence, windows: &[(i64, i64)], seconds: f64) -> BTreeMap<String, f64> {
    let mut used: BTreeMap<String, f64> = BTreeMap::new();
    for series in trial.series.iter().filter(|series| series.key.name == names::CPU_CORES) {
        if let Some(cores) = mean_in(series, windows) {
            *used.entry(series.key.service.clone()).or_default() += cores * seconds;
        }
    }
    used
}

/// The mean of a series in these windows; none without a point there.
fn mean_in(series: &Series, windows: &[(i64, i64)]) -> Option<f64> {
    let is_in = |time_ns: i64| windows.iter().any(|(start_ns, end_ns)| (*start_ns..*end_ns).contains(&time_ns));
    let points: Vec<f64> = series.points.iter().filter(|point| is_in(point.time_ns)).map(|point| point.value).collect();
    (!points.is_empty()).then(|| points.iter().sum::<f64>() / points.len() as f64)
}

/// The think time of these levels, each as much as it has requests; 0 without users.
pub(super) fn think_s(levels: &[Level]) -> f64 {
    let known = || levels.iter().filter_map(|level| Some((level.think_s()?, level.requests as f64)));
    let weight: f64 = known().map(|(_, weight)| weight).sum();
    if weight > 0.0 { known().map(|(think_s, weight)| think_s * weight).sum::<f64>() / weight } else { 0.0 }
}
