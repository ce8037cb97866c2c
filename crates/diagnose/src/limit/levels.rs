//! The levels of a load beside each other, and its knee.

use std::collections::BTreeSet;

use narrows_model::limit::{LevelSummary, ServiceCpu};

use crate::read::Reading;
use crate::read::cpu::Cpu;
use crate::read::intervals::Interval;
use crate::stats::finite;

/// With fewer different loads there is no curve to have a knee.
const KNEE_LOADS_MIN: usize = 3;

/// All parts of the load that counts, in order of time.
pub(super) fn summaries(reading: &Reading<'_>) -> Vec<LevelSummary> {
    let threads = |at: usize| reading.spent().threads.get(at).cloned().unwrap_or_default();
    let all = reading.intervals.iter().enumerate();
    all.map(|(at, interval)| LevelSummary { threads: threads(at), ..summary(reading, interval) }).collect()
}

fn summary(reading: &Reading<'_>, interval: &Interval) -> LevelSummary {
    let cpu = Cpu::new(reading);
    let load = reading.trial.load_between(interval.start_ns, interval.end_ns);
    let latency = load.latency();
    let of_service = |service: &str| {
        let (cores, busy_share) = (cpu.service_cores(service, interval)?, cpu.busy_share(service, interval)?);
        Some(ServiceCpu { service: service.to_owned(), cores: finite(cores), busy_share: finite(busy_share) })
    };
    LevelSummary {
        label: interval.label.clone(),
        load: interval.load_level(),
        is_steady: interval.is_steady,
        seconds: interval.seconds(),
        rate: finite(interval.rate),
        mean_ns: finite(latency.mean_ns),
        p50_ns: latency.p50_ns as f64,
        p95_ns: latency.p95_ns as f64,
        error_rate: load.error_rate(),
        services: reading.trial.service_names().into_iter().filter_map(of_service).collect(),
        threads: Vec::new(),
        machine: cpu.machine(interval),
    }
}

/// The level with the greatest throughput ÷ mean latency; `None` if that is the heaviest, beyond which the curve may go
/// on.
pub(super) fn knee(levels: &[LevelSummary]) -> Option<usize> {
    let steady = || levels.iter().enumerate().filter(|(_, level)| level.is_steady && level.mean_ns > 0.0);
    let load_of = |level: &LevelSummary| (level.load.users, level.load.arrivals.map(f64::to_bits));
    let loads: BTreeSet<_> = steady().map(|(_, level)| load_of(level)).collect();
    let power = |level: &LevelSummary| level.rate / level.mean_ns;
    let best = steady().max_by(|(_, a), (_, b)| power(a).total_cmp(&power(b)));
    let demand = |level: &LevelSummary| (level.load.arrivals.unwrap_or(0.0), level.load.users);
    let is_passed = |best: &LevelSummary| steady().any(|(_, level)| demand(level) > demand(best));
    best.filter(|(_, best)| loads.len() >= KNEE_LOADS_MIN && is_passed(best)).map(|(at, _)| at)
}
