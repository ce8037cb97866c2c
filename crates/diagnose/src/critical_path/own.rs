//! For each level of load: how many requests each service works on itself, and on what it spends that time.
//!
//! Little's law: requests at any moment = requests per second × time of each. Traces are a sample, so their requests are
//! scaled to those that the load completed.

use std::collections::BTreeMap;

use narrows_model::breakdown::{OwnPart, OwnTime, ServiceThreads, TimeCategory};
use narrows_model::call_graph::Bounds;

use super::InTrace;
use super::category::Names;
use super::timed_forest::TimedForest;
use crate::read::Reading;
use crate::read::calls::Handled;
use crate::read::intervals::Interval;
use crate::read::programs::only_service;
use crate::read::threads::{Idle, Shown, Threads};
use crate::stats::finite;

/// Sums over the traces of a trial, by interval; times in nanoseconds, each as often as its request stands for.
pub(super) struct OwnTimes<'r> {
    reading: &'r Reading<'r>,
    /// Requests of the load that began.
    began: Vec<f64>,
    times: BTreeMap<(usize, &'r str), Shown>,
}

impl<'r> OwnTimes<'r> {
    pub(super) fn new(reading: &'r Reading<'r>) -> Self {
        Self { reading, began: vec![0.0; reading.intervals.len()], times: BTreeMap::new() }
    }

    /// A trace, and the interval it began in.
    pub(super) fn begin(&mut self, requests: &InTrace<'r>) -> Option<usize> {
        let first = requests.iter().min_by_key(|(_, _, handled)| handled.request.entry.start_ns)?;
        let start_ns = first.2.request.entry.start_ns;
        let at = self.reading.intervals.iter().position(|interval| interval.contains(start_ns))?;
        self.began[at] += first.2.weight();
        Some(at)
    }

    /// A request of a service, with what its time was spent on.
    pub(super) fn add(
        &mut self,
        at: usize,
        service: &'r str,
        handled: &Handled<'_>,
        spent: &BTreeMap<TimeCategory, f64>,
        tree: &TimedForest<'_>,
        names: &Names,
    ) {
        let shown = self.times.entry((at, service)).or_default();
        for (category, ns) in spent {
            match category {
                TimeCategory::Own(_) => shown.own += ns * handled.weight(),
                TimeCategory::Pool => shown.pool += ns * handled.weight(),
                TimeCategory::BackOff(_) => shown.back_off += ns * handled.weight(),
                TimeCategory::Dependency(_) | TimeCategory::Unknown => {}
            }
        }
        for span in handled.calls.iter().flat_map(|call| &call.attempts) {
            let Some(name) = tree.find(span.span_id).map(|at| names.callee(tree, at)) else { continue };
            *shown.calls.entry(name).or_default() += span.duration_ns() as f64 * handled.weight();
        }
    }

    /// Thread activity of each service in each interval.
    pub(super) fn threads(&self) -> Vec<Vec<ServiceThreads>> {
        let services: Vec<ServiceLevels<'_>> =
            self.reading.trial.service_names().into_iter().map(|service| self.levels_of(service)).collect();
        let of = |at: usize| services.iter().filter_map(|service| service.threads(at)).collect();
        (0..self.reading.intervals.len()).map(of).collect()
    }

    fn levels_of<'s>(&self, service: &'s str) -> ServiceLevels<'s> {
        let intervals = self.reading.intervals;
        let level =
            |at: usize| Some((Threads::of(self.reading, service, at)?, self.shown(service, at, &intervals[at])));
        let levels: Vec<Option<(Threads, Option<Shown>)>> = (0..intervals.len()).map(level).collect();
        let known = |at: &usize| intervals[*at].is_steady && matches!(levels[*at], Some((_, Some(_))));
        let by_demand = |a: &usize, b: &usize| intervals[*a].by_demand(&intervals[*b]);
        let light = (0..intervals.len()).filter(known).min_by(by_demand);
        let heavy = (0..intervals.len()).filter(known).max_by(by_demand);
        let of = |at: usize| levels[at].as_ref().and_then(|(threads, shown)| Some((threads, shown.as_ref()?)));
        let ends = light.and_then(of).zip(heavy.and_then(of));
        let idle = ends.map_or_else(Idle::default, |(light, heavy)| Idle::of(light, heavy));
        ServiceLevels { service, levels, idle }
    }

    /// Mean numbers at any moment. A service without spans has the calls to it that are under way: those that spans show,
    /// else those that sockets show. Without either, all requests are in the only service that is no database.
    fn shown(&self, service: &str, at: usize, interval: &Interval) -> Option<Shown> {
        let ns = (interval.end_ns - interval.start_ns).max(1) as f64;
        let completed = interval.rate * interval.seconds();
        let scale = if completed > 0.0 && self.began[at] > 0.0 { completed / self.began[at] } else { 1.0 };
        let mean = |sum: f64| sum * scale / ns;
        if let Some(sums) = self.times.get(&(at, service)) {
            let calls = sums.calls.iter().map(|(name, sum)| (name.clone(), mean(*sum))).collect();
            let (own, pool, back_off) = (mean(sums.own), mean(sums.pool), mean(sums.back_off));
            return Some(Shown { own, pool, back_off, calls });
        }
        let of_interval = self.times.iter().filter(|((its, _), _)| *its == at);
        let calls: f64 = of_interval.filter_map(|(_, sums)| sums.calls.get(service)).sum();
        let by_spans = Some(mean(calls)).filter(|calls| *calls > 0.0);
        let by_sockets = || self.reading.conversations().at_work(service, at).map(Bounds::middle);
        let is_only = || self.reading.operations.is_empty() && only_service(self.reading.trial) == Some(service);
        let own = by_spans.or_else(by_sockets).or_else(|| is_only().then(|| interval.in_flight()))?;
        Some(Shown { own, ..Shown::default() })
    }
}

/// Threads and requests of a service in each interval; `None` where its threads were not sampled.
struct ServiceLevels<'s> {
    service: &'s str,
    levels: Vec<Option<(Threads, Option<Shown>)>>,
    idle: Idle,
}

impl ServiceLevels<'_> {
    fn threads(&self, at: usize) -> Option<ServiceThreads> {
        let (threads, shown) = self.levels[at].as_ref()?;
        let round = |part: OwnPart| OwnPart { requests: finite(part.requests), ..part };
        let own = shown.as_ref().map(|shown| threads.divide(shown, self.idle)).unwrap_or_default();
        Some(ServiceThreads {
            service: self.service.to_owned(),
            requests: shown.as_ref().map(|shown| finite(shown.own)),
            own: own.into_iter().map(round).collect(),
            threads: threads.by,
        })
    }
}

/// Shares of a service's own time over all intervals, which add up to 1.
pub(super) fn shares(service: &str, levels: &[Vec<ServiceThreads>], intervals: &[Interval]) -> Vec<(OwnTime, f64)> {
    let mut sums: BTreeMap<OwnTime, f64> = BTreeMap::new();
    for (level, interval) in levels.iter().zip(intervals) {
        for part in level.iter().filter(|one| one.service == service).flat_map(|one| &one.own) {
            *sums.entry(part.what.clone()).or_default() += part.requests * interval.seconds();
        }
    }
    let all: f64 = sums.values().sum();
    if all > 0.0 {
        sums.into_iter().map(|(what, sum)| (what, sum / all)).collect()
    } else {
        vec![(OwnTime::NotSampled, 1.0)]
    }
}
