//! `disk-bound`: requests wait for a disk, and either more load brings no more throughput, or a single user waits for
//! each response.
//!
//! Threads blocked at a disk are sampled; Little's law turns them into requests in the service's own time
//! (`read/threads.rs`). If one thread is at the disk nearly all the time, requests that wait for a lock wait for that
//! thread: for example, a log that one thread writes and syncs. On a fast disk, a sync takes as long in the kernel and
//! for its wake-ups as at the disk, and threads need not wait with their requests. Then the kernel's pressure, writes of
//! a page for each response and CPU time in the kernel show the syncs (`fsync`). A used-up CPU is another explanation of the throughput,
//! and a disk that is busy in the background limits nothing while throughput follows the load. Under a single user,
//! nothing distinguishes such a disk from one that requests wait for, so confidence is lower.

use narrows_model::breakdown::OwnTime;
use narrows_model::evidence::TrialEvidence;
use narrows_model::finding::evidence::disk_bound as evidence;
use narrows_model::finding::{Confidence, Finding, FindingKind};
use narrows_model::series::{SeriesKey, names};

use crate::Detector;
use crate::read::Reading;
use crate::read::cpu::Cpu;
use crate::read::intervals::Interval;
use crate::read::periods::period_of;
use crate::read::threads::{LoadedService, loaded, may_wait_for_lock, mean};
use crate::stats::finite;
use crate::thresholds::rule_thresholds;

mod words;

rule_thresholds! {
    /// Share of the requests in a service's own time that must wait for the disk.
    disk_request_share: f64 = 0.5;
    /// Share of all requests in progress that they must be.
    disk_latency_share: f64 = 0.3;
    /// Threads at the disk at any moment from which those that wait for a lock count as waiting for it.
    disk_threads: f64 = 0.8;
    /// Bytes that a service must write per response for its syncs to count: half a page.
    disk_synced_bytes: f64 = 2048.0;
    /// Share of its CPU time that the kernel must use for them to count.
    disk_synced_system_share: f64 = 0.5;
}

/// Share of time with tasks waiting for a disk that confirms the finding.
const PRESSURE_MIN: f64 = 0.2;

/// With one user: busy share above which latency alone sets throughput. In an interval with few requests, those cut off
/// at its ends are a tenth of it.
const UNDER_WAY_MIN: f64 = 0.8;

/// See the module.
#[derive(Debug)]
pub struct DiskBound;

impl Detector for DiskBound {
    fn kind(&self) -> FindingKind {
        FindingKind::DiskBound
    }

    fn version(&self) -> u32 {
        3
    }

    fn holds_all_requests(&self) -> bool {
        true
    }

    fn detect(&self, reading: &Reading<'_>) -> Vec<Finding> {
        loaded(reading).iter().filter_map(|service| of_service(self, reading, service)).collect()
    }
}

/// Requests that wait for the disk.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Waiting {
    /// Requests at the disk.
    at_disk: f64,
    /// Requests that wait behind them.
    behind: f64,
    /// Signs of syncs, if these show the requests rather than threads at the disk.
    synced: Option<evidence::SyncedWrites>,
}

/// Requests of a service that wait for the disk; `None` if they are too few.
pub(crate) fn waiting(reading: &Reading<'_>, service: &LoadedService<'_>) -> Option<Waiting> {
    let thresholds = &reading.thresholds.disk_bound;
    let at_disk = service.doing(&OwnTime::Disk);
    let is_always = service.threads.threads.disk >= thresholds.disk_threads;
    let behind = if is_always { may_wait_for_lock(service.threads) } else { 0.0 };
    // A single user waits for everything that its request does.
    let own_share = if is_one_user(service.interval) { 0.0 } else { thresholds.disk_request_share };
    let is_most = |waiting: &Waiting| {
        let requests = waiting.at_disk + waiting.behind;
        requests >= own_share * service.requests
            && requests >= thresholds.disk_latency_share * service.interval.in_flight()
    };
    let by_threads = |behind: f64| (at_disk > 0.0).then_some(Waiting { at_disk, behind, synced: None });
    let all = [by_threads(0.0), by_threads(behind), behind_syncs(reading, service)];
    all.into_iter().flatten().find(is_most)
}

/// Requests without a thread of their own or in a lock, in a service that syncs what it writes for each response.
fn behind_syncs(reading: &Reading<'_>, service: &LoadedService<'_>) -> Option<Waiting> {
    let thresholds = &reading.thresholds.disk_bound;
    let least = PRESSURE_MIN * left_by_others(reading, service.interval);
    let at_disk = pressure(reading.trial, service).filter(|share| *share >= least)?;
    let bytes_each = transfer(reading.trial, service, "write")? / service.interval.rate;
    let system_share = Cpu::new(reading).system_share(service.service, service.interval)?;
    let is_synced = bytes_each >= thresholds.disk_synced_bytes && system_share >= thresholds.disk_synced_system_share;
    let synced = evidence::SyncedWrites { bytes_each: finite(bytes_each), system_share: finite(system_share) };
    let waiting = service.doing(&OwnTime::Unseen) + service.doing(&OwnTime::Lock) + service.doing(&OwnTime::Disk);
    let at_disk = at_disk.min(waiting);
    is_synced.then_some(Waiting { at_disk, behind: waiting - at_disk, synced: Some(synced) })
}

/// Share of the machine's CPU that programs outside the run leave, 0 to 1. They delay what a service does between two
/// syncs, so that the disk is waited for in less of the time; 1 if the machine was not sampled.
fn left_by_others(reading: &Reading<'_>, interval: &Interval) -> f64 {
    let machine = Cpu::new(reading).machine(interval);
    machine.map_or(1.0, |machine| (1.0 - machine.foreign() / machine.all).clamp(0.0, 1.0))
}

/// Whether this is a closed load of one user whose requests take nearly all of the time.
fn is_one_user(interval: &Interval) -> bool {
    interval.vus == 1 && interval.offered.is_none() && interval.share_under_way() >= UNDER_WAY_MIN
}

fn of_service(detector: &DiskBound, reading: &Reading<'_>, service: &LoadedService<'_>) -> Option<Finding> {
    let Waiting { at_disk, behind, synced } = waiting(reading, service)?;
    let interval = service.interval;
    let proof = Cpu::new(reading).proof(service.at);
    if proof.is_none() && (synced.is_some() || !is_one_user(interval)) {
        return None;
    }
    let evidence = evidence::DiskBound {
        interval: interval.label.clone(),
        load: interval.load_level(),
        rate: finite(interval.rate),
        in_flight: finite(interval.in_flight()),
        requests: finite(service.requests),
        at_disk: finite(at_disk),
        behind: finite(behind),
        written: transfer(reading.trial, service, "write"),
        read: transfer(reading.trial, service, "read"),
        pressure: pressure(reading.trial, service).map(finite),
        synced,
        proof,
    };
    let is_confirmed = synced.is_none() && evidence.pressure.is_some_and(|share| share >= PRESSURE_MIN);
    Some(Finding {
        resource: service.service.to_owned(),
        cost_share: finite((at_disk + behind) / interval.in_flight()).min(1.0),
        confidence: match (is_confirmed, proof) {
            (true, Some(_)) => Confidence::High,
            (false, None) => Confidence::Low,
            _ => Confidence::Medium,
        },
        period: period_of(reading.trial, interval.start_ns, interval.end_ns),
        ..Finding::new(evidence, detector.version())
    })
}

/// Bytes per second that a service transfers to or from disks; `None` if they were not sampled.
fn transfer(trial: &TrialEvidence, service: &LoadedService<'_>, direction: &str) -> Option<f64> {
    let is_meant = |key: &SeriesKey| {
        let its = key.labels.get(names::DISK_DIRECTION).map(String::as_str);
        (key.name.as_str(), key.service.as_str(), its) == (names::DISK_IO, service.service, Some(direction))
    };
    mean(trial, service.interval, is_meant).map(finite)
}

/// Share of time with a task waiting for a disk: in the service's own control group, else on the host.
fn pressure(trial: &TrialEvidence, service: &LoadedService<'_>) -> Option<f64> {
    let of = |name: &str, whose: &str| {
        let is_meant = |key: &SeriesKey| {
            let resource = key.labels.get(names::PRESSURE_RESOURCE).map(String::as_str);
            (key.name.as_str(), key.service.as_str(), resource) == (name, whose, Some("io"))
        };
        mean(trial, service.interval, is_meant).map(|share| share.min(1.0))
    };
    of(names::CGROUP_PRESSURE_STALLED, service.service).or_else(|| of(names::HOST_PRESSURE_STALLED, ""))
}

#[cfg(test)]
mod tests;
