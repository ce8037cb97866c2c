//! A full pool of threads of a service that reports none, as its sampled threads show it.
//!
//! Where a thread works for each request, as many work as requests are under way. If the same number works under two loads
//! and the heavier one has more requests under way, the others wait. Those that wait for a lock, a semaphore or a free
//! connection have a thread, which is blocked. So if there are fewer threads in a lock than requests that wait, the rest has
//! none.
//!
//! The threads at work must wait for a peer or sleep for most of their time: programs that run many tasks on few threads
//! (Go, Node.js, async Rust) compute and write with these and wait without them. A thread that waits in a way that looks like
//! idleness, as `Thread.sleep` of Java does, is not seen at work, and nothing is found.

use narrows_model::finding::evidence::thread_pool::{self as evidence, PoolRuntime};
use narrows_model::finding::{Confidence, Finding};
use narrows_model::series::names;

use super::ThreadPool;
use crate::Detector;
use crate::read::Reading;
use crate::read::cpu::Cpu;
use crate::read::full_pools::virtual_machine_threads;
use crate::read::intervals::Interval;
use crate::read::periods::period_of;
use crate::read::programs::{is_store_program, only_service};
use crate::read::runtimes::machine_caveats;
use crate::read::threads::{LoadedService, loaded};
use crate::stats::finite;

/// Threads at work, at least; with one, requests take turns (`serialised-section`).
const WORKING_MIN: f64 = 1.5;
/// Difference of the threads at work between the two loads that still counts as the same number: a share of them.
const SAME_SHARE: f64 = 0.1;
/// The same as a number of threads, for small pools.
const SAME_THREADS: f64 = 0.25;
/// Factor by which the requests at work must grow between the two loads.
const REQUESTS_GROWTH_MIN: f64 = 1.5;
/// Threads at work under the lightest load, as a share of its requests, from which threads carry requests.
const CARRYING_SHARE: f64 = 0.5;
/// Share of the threads at work that must sleep or wait for a peer.
const HELD_SHARE_MIN: f64 = 0.5;

pub(super) fn findings(reading: &Reading<'_>) -> Vec<Finding> {
    let services = loaded(reading).into_iter();
    let own =
        services.filter(|one| !is_store_program(reading.trial, one.service) && !reading.has_spans_of(one.service));
    own.filter_map(|service| finding(reading, &service)).collect()
}

/// Threads and requests of a service under one load.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Level {
    /// Threads that run, wait for a processor, a disk or a peer, or sleep.
    working: f64,
    /// Those of them that wait for a peer or sleep.
    held: f64,
    /// Threads in a lock, idle or not, without those of a virtual machine.
    in_lock: f64,
    /// Requests that the service has taken on.
    requests: f64,
}

impl Level {
    /// `None` if the threads were not sampled, or it is not known how many requests are at the service.
    fn of(reading: &Reading<'_>, service: &str, at: usize) -> Option<Self> {
        let threads = reading.spent().threads.get(at)?.iter().find(|one| one.service == service)?.threads;
        let by_sockets = reading.conversations().at_work(service, at).map(|requests| requests.middle());
        let is_entrance = only_service(reading.trial) == Some(service);
        let requests = by_sockets.or_else(|| is_entrance.then(|| reading.intervals[at].in_flight()))?;
        let held = threads.network + threads.sleep;
        let working = threads.on_cpu + threads.waiting_for_cpu + threads.disk + held;
        let in_lock = (threads.lock - virtual_machine_threads(reading.trial, service)).max(0.0);
        Some(Self { working, held, in_lock, requests })
    }

    /// True if as many threads work under a lighter load, where fewer requests are under way.
    fn is_full_since(&self, lighter: &Self) -> bool {
        (self.working - lighter.working).abs() <= (SAME_SHARE * self.working).max(SAME_THREADS)
            && self.requests >= REQUESTS_GROWTH_MIN * lighter.requests
    }
}

fn finding(reading: &Reading<'_>, service: &LoadedService<'_>) -> Option<Finding> {
    let cpu = Cpu::new(reading);
    let interval = service.interval;
    let proof = cpu.proof(service.at)?;
    let here = Level::of(reading, service.service, service.at)?;
    let level_at = |other: &Interval| {
        let at = reading.intervals.iter().position(|one| one == other)?;
        Level::of(reading, service.service, at)
    };
    let lightest = cpu.lightest_below(interval).and_then(level_at)?;
    let waiting = here.requests - here.working;
    let least = (reading.thresholds.thread_pool.thread_pool_share * interval.in_flight()).max(1.0);
    let is_long = waiting - here.in_lock >= least;
    let is_held = here.working >= WORKING_MIN && here.held >= HELD_SHARE_MIN * here.working;
    let carries = is_held && lightest.working >= CARRYING_SHARE * lightest.requests;
    let is_full = cpu.lighter_than(interval).filter_map(level_at).any(|lighter| here.is_full_since(&lighter));
    if !(is_long && carries && is_full) {
        return None;
    }
    let evidence = evidence::ThreadPool {
        runtime: PoolRuntime::Sampled,
        pool: None,
        metric: names::THREAD_STATES.to_owned(),
        hot_replicas: 1,
        replicas: reading.trial.services.iter().filter(|one| one.service == service.service).count(),
        interval: interval.label.clone(),
        load: interval.load_level(),
        readings: interval.seconds() as usize,
        under_way: finite(interval.in_flight()),
        busy: Some(finite(here.working)),
        size: Some(here.working.round()),
        waiting: finite(waiting),
        is_reported: false,
        cpu_share: cpu.busy_share(service.service, interval).map(finite),
        proof: Some(proof),
    };
    Some(Finding {
        resource: service.service.to_owned(),
        cost_share: super::share(waiting, interval),
        confidence: Confidence::Medium,
        caveats: machine_caveats(&cpu, interval),
        period: period_of(reading.trial, interval.start_ns, interval.end_ns),
        ..Finding::new(evidence, ThreadPool.version())
    })
}
