//! `serialised-section`: requests of a service take turns, with only one at work at a time, however many there are.
//!
//! Throughput must be flat from a lighter load on, with spare CPU on all services and on the machine. In addition,
//! either the threads of most requests wait for a lock and about one request remains at work (`read/threads.rs`), or
//! throughput × latency of a single user is about one and no thread waits: an asynchronous program's lock, or a single
//! worker.
//!
//! A lock around computing shows in the use of the processor: the threads use one core together, as those of an interpreter
//! do (`interpreter_lock`). That is concluded because nothing else explains the throughput: the ranking drops the finding
//! if any other one names a bottleneck. CPU time in the kernel is no computing.
//!
//! A semaphore or a pool of several is left to the verdict on the limit, because several requests are at work. A lock
//! whose holder is at a disk is `disk-bound`; one thread that computes is `cpu-saturation`.

use narrows_model::breakdown::OwnTime;
use narrows_model::finding::evidence::cpu::Proof;
use narrows_model::finding::evidence::serialised_section as evidence;
use narrows_model::finding::{Caveat, Confidence, Finding, FindingKind};

use crate::Detector;
use crate::detectors::disk_bound;
use crate::detectors::interpreter_lock::{TakenTurns, taken_turns};
use crate::read::Reading;
use crate::read::cpu::Cpu;
use crate::read::periods::period_of;
use crate::read::threads::{LoadedService, loaded};
use crate::stats::finite;
use crate::thresholds::rule_thresholds;

mod words;

rule_thresholds! {
    /// Share of all requests in progress that must wait for their turn in one service.
    serial_waiting_share: f64 = 0.5;
    /// Requests that are at work at any moment, at most.
    serial_at_work: f64 = 1.5;
    /// Requests in progress at any moment, at least.
    serial_requests: f64 = 3.0;
}

/// Cores in use from which the request at work may be computing all the time.
const CORES_MAX: f64 = 0.8;
/// Maximum share of its CPU time that the kernel may use for a service to be computing.
const SYSTEM_SHARE_MAX: f64 = 0.5;
/// Range of throughput × latency of a single user that counts as one request.
const ONE_REQUEST: std::ops::RangeInclusive<f64> = 0.75..=1.25;
/// Minimum share of time that the request at work must wait for a peer, for the finding to name the peer.
const PEER_MIN: f64 = 0.5;

/// See the module.
#[derive(Debug)]
pub struct SerialisedSection;

/// Numbers of requests that wait for their turn and that are at work.
struct Turns {
    waiting: f64,
    at_work: f64,
    by_threads: bool,
}

impl Detector for SerialisedSection {
    fn kind(&self) -> FindingKind {
        FindingKind::SerialisedSection
    }

    fn version(&self) -> u32 {
        2
    }

    fn holds_all_requests(&self) -> bool {
        true
    }

    fn detect(&self, reading: &Reading<'_>) -> Vec<Finding> {
        let found = loaded(reading).into_iter().filter_map(|service| of_service(self, reading, &service));
        // Requests wait for one place at a time.
        let dearest = found.max_by(|a, b| a.cost_share.total_cmp(&b.cost_share));
        let computing = || taken_turns(reading).iter().find_map(|turns| computing(self, reading, turns));
        dearest.or_else(computing).into_iter().collect()
    }
}

/// Requests that take turns at computing; `None` for an interpreter, and if the kernel used most of the CPU time.
fn computing(detector: &SerialisedSection, reading: &Reading<'_>, turns: &TakenTurns<'_>) -> Option<Finding> {
    let interval = turns.interval;
    let system_share = Cpu::new(reading).system_share(turns.service, interval);
    if turns.interpreter.is_some() || system_share.is_some_and(|share| share > SYSTEM_SHARE_MAX) {
        return None;
    }
    let in_flight = interval.in_flight();
    let waiting = turns.locked.map_or_else(|| (in_flight - 1.0).max(0.0), |locked| locked.waiting_for_lock);
    let evidence = evidence::SerialisedSection {
        interval: interval.label.clone(),
        load: interval.load_level(),
        rate: finite(interval.rate),
        latency_ns: finite(interval.latency_ns),
        in_flight: finite(in_flight),
        waiting: finite(waiting),
        at_work: finite(in_flight - waiting),
        by_threads: turns.locked.is_some(),
        cores: turns.one_core.cores,
        peer: None,
        computing: Some(turns.one_core.clone()),
        proof: turns.one_core.proof,
    };
    Some(Finding {
        resource: turns.service.to_owned(),
        cost_share: finite(waiting / in_flight).min(1.0),
        confidence: Confidence::Medium,
        caveats: vec![Caveat::ProcessesCountTogether],
        period: period_of(reading.trial, interval.start_ns, interval.end_ns),
        ..Finding::new(evidence, detector.version())
    })
}

fn of_service(detector: &SerialisedSection, reading: &Reading<'_>, service: &LoadedService<'_>) -> Option<Finding> {
    let proof = Cpu::new(reading).flat_since(service.at)?;
    let cores = service.threads.threads.on_cpu;
    if cores >= CORES_MAX || disk_bound::waiting(reading, service).is_some() {
        return None;
    }
    let turns = turns(reading, service, &proof)?;
    let interval = service.interval;
    let peer = service.threads.own.iter().filter(|part| part.requests >= PEER_MIN).find_map(|part| match &part.what {
        OwnTime::Network(peer) => Some(peer.clone()),
        _ => None,
    });
    let evidence = evidence::SerialisedSection {
        interval: interval.label.clone(),
        load: interval.load_level(),
        rate: finite(interval.rate),
        latency_ns: finite(interval.latency_ns),
        in_flight: finite(interval.in_flight()),
        waiting: finite(turns.waiting),
        at_work: finite(turns.at_work),
        by_threads: turns.by_threads,
        cores: finite(cores),
        peer,
        computing: None,
        proof,
    };
    Some(Finding {
        resource: service.service.to_owned(),
        cost_share: finite(turns.waiting / interval.in_flight()).min(1.0),
        confidence: if turns.by_threads { Confidence::High } else { Confidence::Medium },
        period: period_of(reading.trial, interval.start_ns, interval.end_ns),
        ..Finding::new(evidence, detector.version())
    })
}

fn turns(reading: &Reading<'_>, service: &LoadedService<'_>, proof: &Proof) -> Option<Turns> {
    let thresholds = &reading.thresholds.serialised_section;
    let in_flight = service.interval.in_flight();
    let is_most = |waiting: f64| {
        in_flight >= thresholds.serial_requests && waiting >= thresholds.serial_waiting_share * in_flight
    };
    // Little's law without waiting: as many requests as a single user has under way.
    let by_law = proof.heavier.rate * proof.lighter.request_ns / 1e9;
    let has_single_user = proof.lighter.level.users == 1;
    let locked = service.doing(&OwnTime::Lock);
    let at_work = in_flight - locked;
    // Some runtimes sleep instead of waiting for a lock, so threads alone may show too few requests at work.
    let are_several = has_single_user && by_law > *ONE_REQUEST.end();
    if is_most(locked) && at_work <= thresholds.serial_at_work && !are_several {
        return Some(Turns { waiting: locked, at_work, by_threads: true });
    }
    let waiting = locked + service.doing(&OwnTime::Unseen);
    let is_one = has_single_user && ONE_REQUEST.contains(&by_law);
    (is_one && is_most(waiting)).then_some(Turns { waiting, at_work: by_law, by_threads: false })
}

#[cfg(test)]
mod tests;
