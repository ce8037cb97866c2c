//! Sections that only so many requests at a time may enter: locks, pools, commits, and limits that show by their throughput
//! alone.
//!
//! A finding names the section and its places. Where more load got no more throughput, the time that a request holds a place is
//! places ÷ that throughput; elsewhere it is what the finding measured.

use narrows_model::finding::evidence::disk_bound::DiskBound;
use narrows_model::finding::evidence::hot_partition::PlaceKind;
use narrows_model::finding::evidence::pool_wait::PoolWait;
use narrows_model::finding::{Evidence, Finding};
use narrows_model::limit::LimitVerdict;
use narrows_model::prediction::ResourceKind;

use super::capacity::Capacity;
use super::waits::within;
use super::{Program, Wait, WaitCause};
use crate::DiagnosedTrial;
use crate::queueing::Station;

/// A section with a limit on how many requests are in it. Its time is part of the delay or of CPU; what it adds is the wait.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Section {
    pub(crate) kind: ResourceKind,
    /// The service or store.
    pub(crate) name: String,
    /// Time of a request in it, seconds.
    pub(crate) held_s: f64,
    /// Requests in it at most.
    pub(crate) places: u32,
    /// Share of the requests that enter the fullest of several equal ones, above 0 up to 1.
    pub(crate) share: f64,
    /// Whether requests compute in it, so that they do not queue for the service's CPU as well.
    pub(crate) computes: bool,
    /// Calls made while a place is held.
    pub(crate) held_for: Vec<Wait>,
}

impl Section {
    pub(crate) fn new(kind: ResourceKind, name: impl Into<String>, held_s: f64, places: u32) -> Self {
        Self { kind, name: name.into(), held_s, places, share: 1.0, computes: false, held_for: Vec::new() }
    }

    pub(crate) fn station(&self) -> Station {
        let copies = (1.0 / self.share).round().max(1.0) as u32;
        Station { copies, ..Station::of_waits(self.held_s * self.share, self.places) }
    }
}

/// The sections that findings name, and the one that the verdict on the limit shows, each resource once.
pub(super) fn sections(
    diagnosed: &DiagnosedTrial<'_>,
    programs: &[Program],
    capacity: Option<&Capacity>,
    waits: &[Wait],
) -> Vec<Section> {
    let reached = capacity.filter(|capacity| capacity.is_reached);
    let mut sections: Vec<Section> = Vec::new();
    let named = diagnosed.findings.iter().filter_map(|finding| of_finding(finding, programs, reached));
    // A queue in front of a section is known by the section.
    let (queues, others): (Vec<Section>, Vec<Section>) =
        named.partition(|section| section.kind == ResourceKind::Requests);
    for section in others.into_iter().chain(queues).chain(of_verdict(diagnosed, reached)) {
        if !sections.iter().any(|known| known.name == section.name) {
            sections.push(section);
        }
    }
    if let Some(capacity) = reached {
        // Of a pool, the finding says what is called beside its connections.
        for section in sections.iter_mut().filter(|section| section.kind != ResourceKind::Connections) {
            let others: Vec<Wait> = waits.iter().filter(|wait| wait.callee != section.name).cloned().collect();
            section.held_for = within(&others, section.held_s, capacity.alone_s);
        }
    }
    sections
}

/// A limit that no resource explains.
pub(super) fn unexplained(capacity: &Capacity) -> Section {
    let places = capacity.places();
    Section::new(ResourceKind::Unexplained, places.to_string(), f64::from(places) / capacity.rate, places)
}

fn of_verdict(diagnosed: &DiagnosedTrial<'_>, reached: Option<&Capacity>) -> Option<Section> {
    let LimitVerdict::NotCpu { place: Some(place), .. } = &diagnosed.limit?.verdict else { return None };
    let capacity = reached?;
    let places = capacity.places();
    Some(Section::new(ResourceKind::Requests, &place.name, f64::from(places) / capacity.rate, places))
}

fn of_finding(finding: &Finding, programs: &[Program], reached: Option<&Capacity>) -> Option<Section> {
    let section = |kind, places: u32, held_s: f64| {
        let held_s = reached.map_or(held_s, |capacity| f64::from(places) / capacity.rate);
        Section::new(kind, &finding.resource, held_s, places)
    };
    let section = match &finding.evidence {
        Evidence::SerialisedSection(found) if found.rate > 0.0 => Section {
            computes: found.computing.is_some(),
            ..section(ResourceKind::OneAtATime, 1, found.at_work.min(1.0) / found.rate)
        },
        Evidence::DiskBound(disk) => commits(disk, section)?,
        Evidence::PoolWait(wait) if !wait.is_of_calls_at_once() => {
            let places = connections(wait).or(reached.map(Capacity::places))?;
            Section {
                held_for: calls_while_held(&finding.resource, wait),
                ..section(ResourceKind::Connections, places, (wait.query_ns + wait.other_calls_ns) / 1e9)
            }
        }
        Evidence::LockWait(_) => section(ResourceKind::Lock, 1, 0.0),
        Evidence::ThreadPool(pool) => section(ResourceKind::Threads, pool.size.or(pool.busy)? as u32, 0.0),
        Evidence::AcceptQueue(_) => section(ResourceKind::Requests, reached?.places(), 0.0),
        Evidence::HotPartition(hot) if hot.kind == PlaceKind::Replica => {
            let is_of_cpu = programs.iter().any(|one| one.service == finding.resource && one.limit().is_some());
            let capacity = reached.filter(|_| !is_of_cpu && hot.share > 0.0)?;
            // The fullest replica gets its share of the rate.
            let fullest = Capacity { rate: capacity.rate * hot.share, ..*capacity };
            let places = fullest.places();
            let held_s = f64::from(places) / fullest.rate;
            Section {
                share: hot.share,
                ..Section::new(ResourceKind::FullestReplica, &finding.resource, held_s, places)
            }
        }
        _ => return None,
    };
    (section.held_s > 0.0 && section.places > 0).then_some(section)
}

/// Commits of a service whose requests wait for a disk. Where requests wait for a lock while one is at the disk, they commit
/// one at a time.
fn commits(disk: &DiskBound, section: impl Fn(ResourceKind, u32, f64) -> Section) -> Option<Section> {
    let places = if disk.behind > 0.0 { 1 } else { disk.at_disk.ceil().max(1.0) as u32 };
    match disk.synced {
        // Of a turn that syncs on a fast disk, the kernel's part and that of wake-ups are known by the throughput alone.
        Some(_) => Some(section(ResourceKind::SyncedWrites, places, 0.0)),
        None if disk.rate > 0.0 => {
            Some(section(ResourceKind::Commits, places, disk.at_disk.min(f64::from(places)) / disk.rate))
        }
        None => None,
    }
}

/// Connections of a pool; `None` if neither the pool nor its sockets tell.
fn connections(wait: &PoolWait) -> Option<u32> {
    let seen = wait.sockets.as_ref().map(|sockets| sockets.connections);
    wait.pool.size.or(seen).map(|connections| connections.round() as u32).filter(|connections| *connections > 0)
}

/// Calls to others while a request has a connection.
fn calls_while_held(service: &str, wait: &PoolWait) -> Vec<Wait> {
    let callee = wait.sockets.as_ref().and_then(|sockets| sockets.held_for.clone()).unwrap_or_default();
    let request_s = wait.other_calls_ns / 1e9;
    let calls = Wait { cause: WaitCause::Callee, service: service.to_owned(), callee, request_s };
    (request_s > 0.0).then_some(calls).into_iter().collect()
}
