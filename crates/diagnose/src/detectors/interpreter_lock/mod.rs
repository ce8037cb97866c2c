//! `interpreter-lock`: the threads of a process take turns at one lock, so together they use one core and no more.
//!
//! An interpreter with a global lock (CPython's GIL, Ruby's GVL) runs one thread at a time. Such a process uses about
//! one core over all threads, no thread uses most of it, the threads do not wait for a processor, cores are idle, and
//! throughput no longer grows with the load. Each of these is required. One busy thread is `cpu-saturation`; so is a
//! cap.
//!
//! A machine that other programs fill has no idle cores. There, most requests must wait for a lock while hardly any
//! thread waits for a processor: even without the other programs, they would find the lock taken.
//!
//! Use near one core may be chance if something else limits throughput. So the service's requests must spend time
//! outside their calls, because that is where they wait for the lock, and the use must be the same under two loads.
//! With one load, only a known interpreter counts, and only if it uses very nearly one core or has threads that wait
//! for a lock. There is no finding while any service is at a CPU limit, which would explain the throughput. Any other
//! program with one lock around its work looks the same, which is a `serialised-section`.

use narrows_model::finding::evidence::cpu::Proof;
use narrows_model::finding::evidence::interpreter_lock::{self as evidence, Interpreter};
use narrows_model::finding::evidence::one_core::{LockWaits, OneCore};
use narrows_model::finding::{Caveat, Confidence, Finding, FindingKind};
use narrows_model::run::ServiceInstance;
use narrows_model::series::names;

use crate::Detector;
use crate::read::Reading;
use crate::read::calls::Times;
use crate::read::cpu::Cpu;
use crate::read::intervals::Interval;
use crate::read::periods::period_of;
use crate::read::programs::{has_workers, is_proxy_program, is_store_program, locking_interpreter};
use crate::read::threads::{may_wait_for_lock, mean};
use crate::stats::finite;
use crate::thresholds::rule_thresholds;

pub(crate) mod words;

rule_thresholds! {
    /// Cores that the threads of a replica must use together.
    lock_cores_min: f64 = 0.85;
    /// Cores that they may use together at most.
    lock_cores_max: f64 = 1.15;
    /// Cores that they must use together when no lighter load shows the same use.
    lock_cores_near: f64 = 0.95;
    /// Cores by which their use may differ between the two loads.
    lock_cores_change: f64 = 0.10;
    /// Share of these cores that the busiest thread may use at most.
    lock_thread_share: f64 = 0.75;
    /// Seconds per second that this thread may wait for a processor at most.
    lock_thread_wait: f64 = 0.25;
    /// Cores that a cap on the replica must allow at least.
    lock_cap_cores: f64 = 1.5;
    /// Share of the time of the service's requests that must pass outside their calls.
    lock_own_share: f64 = 0.25;
    /// The same, when the program is not known as an interpreter.
    lock_unknown_own_share: f64 = 0.50;
    /// Cores of the machine that must be idle.
    lock_idle_cores: f64 = 0.5;
}

/// Minimum share of the requests in a service's own time that must wait for a lock, for the lock to be evidence.
const LOCKED_SHARE: f64 = 0.5;
/// Maximum threads waiting for a processor on a full machine: the lock's holder or the next one to take it, and
/// occasionally a thread of the runtime.
const WAITING_FOR_CPU_MAX: f64 = 1.25;
/// An interval does not count if another one carried more by this factor.
const CARRIED_MORE: f64 = 1.25;

/// See the module.
#[derive(Debug)]
pub struct InterpreterLock;

impl Detector for InterpreterLock {
    fn kind(&self) -> FindingKind {
        FindingKind::InterpreterLock
    }

    fn version(&self) -> u32 {
        2
    }

    fn delays_reading_of_responses(&self) -> bool {
        true
    }

    fn holds_all_requests(&self) -> bool {
        true
    }

    fn detect(&self, reading: &Reading<'_>) -> Vec<Finding> {
        taken_turns(reading).into_iter().filter_map(|turns| finding(self, reading, turns)).collect()
    }
}

/// A service whose threads use one core together.
pub(crate) struct TakenTurns<'a> {
    pub(crate) service: &'a str,
    /// The interpreter whose threads take turns; `None` for any other program.
    pub(crate) interpreter: Option<Interpreter>,
    pub(crate) interval: &'a Interval,
    /// Requests that wait for a lock, if that is most of them.
    pub(crate) locked: Option<LockWaits>,
    pub(crate) one_core: OneCore,
}

/// The services whose threads use one core together under the heaviest load; empty if the CPU explains the throughput.
pub(crate) fn taken_turns<'a>(reading: &Reading<'a>) -> Vec<TakenTurns<'a>> {
    let cpu = Cpu::new(reading);
    let is_explained = || reading.trial.service_names().into_iter().any(|service| cpu.of_service(service).is_some());
    let Some(interval) = heaviest(&cpu).filter(|_| !is_explained()) else { return Vec::new() };
    let services = reading.trial.service_names().into_iter();
    let own = services
        .filter(|service| !is_store_program(reading.trial, service) && !is_proxy_program(reading.trial, service));
    own.filter_map(|service| of_service(reading, service, interval)).collect()
}

/// The steady interval with the heaviest load; `None` if a lighter one carried clearly more.
fn heaviest<'a>(cpu: &Cpu<'a>) -> Option<&'a Interval> {
    let steady = || cpu.intervals.iter().filter(|interval| interval.is_steady);
    let heaviest = steady().max_by(|a, b| a.by_demand(b))?;
    let most = steady().map(|interval| interval.rate).fold(0.0, f64::max);
    (most <= CARRIED_MORE * heaviest.rate).then_some(heaviest)
}

fn of_service<'a>(reading: &Reading<'a>, service: &'a str, interval: &'a Interval) -> Option<TakenTurns<'a>> {
    let cpu = Cpu::new(reading);
    let replicas: Vec<&ServiceInstance> = cpu.trial.services.iter().filter(|one| one.service == service).collect();
    let locked = waits_for_lock(reading, service, interval);
    let own = Own { share: own_share(reading, service, interval), locked };
    let found: Vec<OneCore> = replicas.iter().filter_map(|replica| of_replica(&cpu, replica, interval, own)).collect();
    let locked_replicas = found.len();
    let distance = |one: &OneCore| (one.cores - 1.0).abs();
    let closest = found.into_iter().min_by(|a, b| distance(a).total_cmp(&distance(b)))?;
    let one_core = OneCore { locked_replicas, replicas: replicas.len(), ..closest };
    let interpreter = locking_interpreter(&replicas.first()?.command);
    Some(TakenTurns { service, interpreter, interval, locked, one_core })
}

/// `None` for a program that is no known interpreter.
fn finding(detector: &InterpreterLock, reading: &Reading<'_>, turns: TakenTurns<'_>) -> Option<Finding> {
    let TakenTurns { service, interpreter, interval, one_core, .. } = turns;
    let is_seen_twice = one_core.lighter_cores.is_some();
    let evidence = evidence::InterpreterLock { interpreter: interpreter?, one_core };
    Some(Finding {
        resource: service.to_owned(),
        cost_share: evidence.one_core.cores.min(1.0),
        confidence: if is_seen_twice { Confidence::High } else { Confidence::Medium },
        caveats: vec![Caveat::ProcessesCountTogether],
        period: period_of(reading.trial, interval.start_ns, interval.end_ns),
        ..Finding::new(evidence, detector.version())
    })
}

/// Evidence about a service's own time.
#[derive(Debug, Clone, Copy)]
struct Own {
    /// Share of the requests' time, 0 to 1; `None` without spans.
    share: Option<f64>,
    /// Requests in the service's own time, if most of them wait for a lock.
    locked: Option<LockWaits>,
}

fn waits_for_lock(reading: &Reading<'_>, service: &str, interval: &Interval) -> Option<LockWaits> {
    let at = reading.intervals.iter().position(|one| one == interval)?;
    let threads = reading.spent().threads.get(at)?.iter().find(|threads| threads.service == service)?;
    let waits = LockWaits {
        requests: threads.requests.map(finite)?,
        waiting_for_lock: finite(may_wait_for_lock(threads)),
        waiting_for_cpu: finite(threads.threads.waiting_for_cpu),
    };
    (waits.requests > 0.0 && waits.waiting_for_lock >= LOCKED_SHARE * waits.requests).then_some(waits)
}

/// Share of a service's request time without a call under way, 0 to 1; `None` without spans of the service.
fn own_share(reading: &Reading<'_>, service: &str, interval: &Interval) -> Option<f64> {
    let of_service = reading.operations.iter().filter(|((name, _), _)| *name == service);
    let all = of_service.flat_map(|(_, all)| all);
    let (mut own_ns, mut whole_ns) = (0.0, 0.0);
    for handled in all.filter(|handled| interval.contains(handled.request.entry.start_ns)) {
        let entry = handled.request.entry;
        let calls = Times::union_of(handled.calls.iter().map(|call| (call.start_ns(), call.end_ns())));
        own_ns += Times::union_of([(entry.start_ns, entry.end_ns)]).without(&calls).length_ns() * handled.weight();
        whole_ns += handled.latency_ns() * handled.weight();
    }
    (whole_ns > 0.0).then(|| finite(own_ns / whole_ns))
}

fn of_replica(cpu: &Cpu<'_>, replica: &ServiceInstance, interval: &Interval, own: Own) -> Option<OneCore> {
    let thresholds = &cpu.thresholds.interpreter_lock;
    let of = |name: &str, interval: &Interval| cpu.cores_of(name, &replica.service, replica.replica, interval);
    let is_one_core = |cores: &f64| (thresholds.lock_cores_min..=thresholds.lock_cores_max).contains(cores);
    let cores = of(names::CPU_CORES, interval).filter(is_one_core)?;

    let thread_cores = mean_of(cpu, replica, names::BUSIEST_THREAD_CORES, interval)?;
    let threads = of(names::THREADS, interval);
    let thread_wait = mean_of(cpu, replica, names::BUSIEST_THREAD_WAIT, interval);
    let is_shared =
        thread_cores <= thresholds.lock_thread_share * cores && threads.is_none_or(|threads| threads >= 2.0);
    let is_run_at_once = thread_wait.is_none_or(|wait| wait <= thresholds.lock_thread_wait);

    let cap = cpu.cap_of(replica, interval);
    let is_free = cap.is_none_or(|cap| cap >= thresholds.lock_cap_cores);
    if !is_shared || !is_run_at_once || !is_free || has_workers(&replica.command) {
        return None;
    }
    let Room { idle_cores, crowded } = room(cpu, interval, own.locked)?;

    let interpreter = locking_interpreter(&replica.command);
    // Threads in a lock are evidence too, so a rough median is enough for the few samples of a lighter load.
    let rough = |interval: &Interval| {
        let series = (names::CPU_CORES, replica.service.as_str(), replica.replica);
        own.locked.and_then(|_| interval.rough_median_of(cpu.trial, series))
    };
    let lighter = |interval: &Interval| of(names::CPU_CORES, interval).or_else(|| rough(interval)).filter(is_one_core);
    let queued = || own.locked.and_then(|_| Some((cpu.slower_than(interval, cpu.lightest_below(interval)?)?, None)));
    let (proof, lighter_cores) = proven(cpu, interval, cores, lighter).or_else(queued)?;
    let (is_same, is_locked) = (lighter_cores.is_some(), own.locked.is_some());
    let is_near = cores >= thresholds.lock_cores_near;
    let is_likely = match (interpreter, own.share) {
        (Some(_), Some(share)) => share >= thresholds.lock_own_share && (is_same || is_near || is_locked),
        (Some(_), None) => is_same || is_locked,
        (None, Some(share)) => is_same && share >= thresholds.lock_unknown_own_share,
        (None, None) => is_same && is_locked,
    };
    is_likely.then(|| OneCore {
        cores: finite(cores),
        lighter_cores: lighter_cores.map(finite),
        thread_cores: finite(thread_cores),
        thread_wait: thread_wait.map(finite),
        threads: threads.map(finite),
        cap,
        machine_cores: cpu.trial.cores,
        idle_cores: finite(idle_cores),
        own_share: own.share,
        locked_replicas: 1,
        replicas: 1,
        interval: interval.label.clone(),
        switches_each: switches(cpu, replica, interval).map(|each| finite(each / interval.rate)),
        crowded,
        proof,
    })
}

/// Capacity that the threads could have used.
struct Room {
    /// Idle cores of the machine, from 0.
    idle_cores: f64,
    /// Evidence that the threads would not have used more, if other programs filled the machine.
    crowded: Option<LockWaits>,
}

/// Returns `None` if the machine had no room for the threads, and nothing shows that they would not have used it.
fn room(cpu: &Cpu<'_>, interval: &Interval, waits: Option<LockWaits>) -> Option<Room> {
    let (thresholds, machine) = (cpu.thresholds, cpu.machine(interval)?);
    let idle_cores = machine.all * (1.0 - machine.used_share());
    if machine.used_share() < thresholds.cpu_host_share && idle_cores >= thresholds.interpreter_lock.lock_idle_cores {
        return Some(Room { idle_cores, crowded: None });
    }
    let is_full_of_others = machine.foreign() > thresholds.cpu_saturation.cpu_foreign_share * machine.all;
    let crowded = waits.filter(|waits| is_full_of_others && waits.waiting_for_cpu <= WAITING_FOR_CPU_MAX)?;
    Some(Room { idle_cores, crowded: Some(crowded) })
}

/// Mean of a replica's series. The busiest thread changes from reading to reading, and with it the value.
fn mean_of(cpu: &Cpu<'_>, replica: &ServiceInstance, name: &str, interval: &Interval) -> Option<f64> {
    mean(cpu.trial, interval, |key| {
        (key.name.as_str(), key.service.as_str(), key.replica) == (name, replica.service.as_str(), replica.replica)
    })
}

/// The lightest load with the same CPU use from which throughput did not follow the load, with that use; else the
/// heaviest load from which it did not, without a use.
fn proven(
    cpu: &Cpu<'_>,
    interval: &Interval,
    cores: f64,
    lighter: impl Fn(&Interval) -> Option<f64>,
) -> Option<(Proof, Option<f64>)> {
    let mut flat: Vec<(&Interval, Proof)> =
        cpu.lighter_than(interval).filter_map(|other| Some((other, cpu.flat_between(interval, other)?))).collect();
    flat.sort_by(|(a, _), (b, _)| a.by_demand(b));
    let is_same = |other: &f64| (other - cores).abs() <= cpu.thresholds.interpreter_lock.lock_cores_change;
    let same = flat.iter().find_map(|(other, proof)| Some((*proof, Some(lighter(other).filter(is_same)?))));
    same.or_else(|| flat.last().map(|(_, proof)| (*proof, None)))
}

/// Context switches of a replica per second, summed over all types; `None` if not sampled.
fn switches(cpu: &Cpu<'_>, replica: &ServiceInstance, interval: &Interval) -> Option<f64> {
    let is_of_replica = |service: &str, number: u32| (service, number) == (&*replica.service, replica.replica);
    let series = cpu.trial.series.iter().filter(|series| {
        series.key.name == names::CONTEXT_SWITCHES && is_of_replica(&series.key.service, series.key.replica)
    });
    let medians: Vec<f64> = series.filter_map(|series| interval.median_in(series, cpu.thresholds)).collect();
    (!medians.is_empty()).then(|| medians.iter().sum())
}

#[cfg(test)]
mod tests;
