//! `thread-pool`: all threads of a pool are busy, and requests wait for one.
//!
//! The input is the metrics of pools that handle requests (`read/thread_pools.rs`), per replica and load interval, as
//! medians of the readings. A pool is full if nearly all its threads are busy. The number of waiting requests is the
//! pool's reported queue. Tomcat reports none: there it is the requests under way beyond its threads, if all requests
//! of the load pass this pool. .NET adds threads as long as items wait, so a lasting queue is enough.
//!
//! Where a service reports no pool, its sampled threads may show that all work (`by_threads.rs`).
//!
//! A JVM executor may also do work that no request waits for. It counts only if the load itself shows that requests
//! wait, the queue grew with the load, and no more wait in it than requests are under way.

use narrows_model::finding::evidence::thread_pool::{self as evidence, PoolRuntime};
use narrows_model::finding::{Confidence, Finding, FindingKind};
use narrows_model::run::ServiceInstance;

use crate::Detector;
use crate::read::Reading;
use crate::read::cpu::Cpu;
use crate::read::intervals::Interval;
use crate::read::machine::is_crowded_out;
use crate::read::periods::period_of;
use crate::read::runtimes::{machine_caveats, serves};
use crate::read::thread_pools::{Pool, State};
use crate::stats::finite;
use crate::thresholds::rule_thresholds;

mod by_threads;
mod words;

rule_thresholds! {
    /// Share of its threads that must work.
    thread_pool_full_share: f64 = 0.95;
    /// Share of the requests under way that must wait for a thread.
    thread_pool_share: f64 = 0.10;
}

/// See the module.
#[derive(Debug)]
pub struct ThreadPool;

/// Minimum growth factor of an executor's queue from the lightest load.
const GROWTH: f64 = 2.0;

impl Detector for ThreadPool {
    fn kind(&self) -> FindingKind {
        FindingKind::ThreadPool
    }

    fn version(&self) -> u32 {
        2
    }

    fn holds_all_requests(&self) -> bool {
        true
    }

    fn detect(&self, reading: &Reading<'_>) -> Vec<Finding> {
        let services = reading.trial.service_names().into_iter().filter(|service| serves(reading, service));
        let mut found: Vec<Finding> = services.filter_map(|service| of_service(self, reading, service)).collect();
        let is_reported = |one: &Finding| found.iter().any(|reported| reported.resource == one.resource);
        let sampled: Vec<Finding> = by_threads::findings(reading).into_iter().filter(|one| !is_reported(one)).collect();
        found.extend(sampled);
        found
    }
}

/// A full pool, in one interval.
struct Full<'a> {
    runtime: PoolRuntime,
    pool: Option<&'a str>,
    metric: &'a str,
    at: usize,
    state: State,
    waiting: f64,
}

/// The finding for the interval with the heaviest load among those with a full pool, with the pool where most requests
/// wait.
fn of_service(detector: &ThreadPool, reading: &Reading<'_>, service: &str) -> Option<Finding> {
    let cpu = Cpu::new(reading);
    let instances: Vec<&ServiceInstance> =
        reading.trial.services.iter().filter(|instance| instance.service == service).collect();
    let pools: Vec<Vec<Pool<'_>>> =
        instances.iter().map(|instance| Pool::of(reading.trial, service, instance.replica)).collect();
    let is_lone = instances.len() == 1 && is_entrance(reading, service);
    let full_in = |at: usize| -> Vec<Full<'_>> {
        if is_crowded_out(reading, at) {
            return Vec::new();
        }
        pools.iter().filter_map(|of_replica| fullest(reading, &cpu, of_replica, at, is_lone)).collect()
    };
    let found = (0..reading.intervals.len()).map(full_in).filter(|full| !full.is_empty());
    let heaviest = found.max_by(|a, b| reading.intervals[a[0].at].by_demand(&reading.intervals[b[0].at]))?;
    let counts = (heaviest.len(), instances.len());
    let worst = heaviest.into_iter().max_by(|a, b| a.waiting.total_cmp(&b.waiting))?;
    Some(finding(detector, &cpu, (service, counts), &worst))
}

/// Whether this service is the first to handle every request of the load.
fn is_entrance(reading: &Reading<'_>, service: &str) -> bool {
    let mut roots = reading.trial.traces.iter().filter_map(|trace| trace.root());
    reading.trial.traces.is_empty() || roots.all(|root| root.service == service)
}

fn fullest<'a>(reading: &Reading<'_>, cpu: &Cpu<'_>, pools: &[Pool<'a>], at: usize, is_lone: bool) -> Option<Full<'a>> {
    let full = pools.iter().filter_map(|pool| {
        let interval = &reading.intervals[at];
        let state = pool.during(interval, reading.thresholds.runtime_readings)?;
        let beyond = state.size.filter(|_| is_lone).map(|size| interval.in_flight() - size);
        let waiting = state.queued.or(beyond)?;
        let least = reading.thresholds.thread_pool.thread_pool_share * interval.in_flight();
        let is_long = interval.rate > 0.0 && waiting >= least.max(1.0);
        let is_in_the_way = pool.runtime != PoolRuntime::Executor || holds_requests(reading, cpu, pool, at, waiting);
        let is_full = is_full(pool.runtime, &state, reading.thresholds.thread_pool.thread_pool_full_share);
        let full = Full { runtime: pool.runtime, pool: pool.name, metric: pool.metric(), at, state, waiting };
        (is_full && is_long && is_in_the_way).then_some(full)
    });
    full.max_by(|a, b| a.waiting.total_cmp(&b.waiting))
}

fn is_full(runtime: PoolRuntime, state: &State, full_share: f64) -> bool {
    match (state.busy, state.size) {
        (Some(busy), Some(size)) => size > 0.0 && busy >= full_share * size,
        // A pool with requests waiting for a thread has no free thread.
        _ => matches!(runtime, PoolRuntime::DotNet | PoolRuntime::Puma),
    }
}

/// Whether the items waiting for an executor are requests of the load.
fn holds_requests(reading: &Reading<'_>, cpu: &Cpu<'_>, pool: &Pool<'_>, at: usize, waiting: f64) -> bool {
    let here = &reading.intervals[at];
    let lightest = cpu.lightest_below(here);
    let before = lightest.and_then(|lightest| pool.during(lightest, reading.thresholds.runtime_readings)?.queued);
    let has_grown = before.is_some_and(|before| waiting >= GROWTH * before.max(1.0));
    has_grown && waiting <= here.in_flight() && cpu.proof(at).is_some()
}

fn finding(
    detector: &ThreadPool,
    cpu: &Cpu<'_>,
    (service, (hot_replicas, replicas)): (&str, (usize, usize)),
    full: &Full<'_>,
) -> Finding {
    let interval = &cpu.intervals[full.at];
    let evidence = evidence::ThreadPool {
        runtime: full.runtime,
        pool: full.pool.map(str::to_owned),
        metric: full.metric.to_owned(),
        hot_replicas,
        replicas,
        interval: interval.label.clone(),
        load: interval.load_level(),
        readings: full.state.readings,
        under_way: finite(interval.in_flight()),
        busy: full.state.busy.map(finite),
        size: full.state.size.map(finite),
        waiting: finite(full.waiting),
        is_reported: full.state.queued.is_some(),
        cpu_share: cpu.busy_share(service, interval).map(finite),
        proof: cpu.proof(full.at),
    };
    let is_sure = evidence.proof.is_some() && evidence.is_reported;
    Finding {
        resource: service.into(),
        cost_share: share(full.waiting, interval),
        confidence: if is_sure { Confidence::High } else { Confidence::Medium },
        caveats: machine_caveats(cpu, interval),
        period: period_of(cpu.trial, interval.start_ns, interval.end_ns),
        ..Finding::new(evidence, detector.version())
    }
}

/// Share of the users' time spent waiting, by Little's law.
fn share(waiting: f64, interval: &Interval) -> f64 {
    finite(waiting / interval.in_flight().max(f64::MIN_POSITIVE)).min(1.0)
}

#[cfg(test)]
mod tests;
