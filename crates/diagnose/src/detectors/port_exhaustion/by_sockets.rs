//! Local ports that run short without an error.
//!
//! For a new connection, Linux looks through every second port first, and only then through the others
//! (`__inet_hash_connect`). So once closed connections to a peer hold half of the ports, each connection walks past
//! thousands that are taken. That is CPU of the service that connects, and throughput falls long before an error. All
//! three are required: held ports, lower throughput under no lower load, and more CPU per request.

use std::collections::BTreeMap;

use narrows_model::evidence::TrialEvidence;
use narrows_model::finding::evidence::port_exhaustion::PortSearch;
use narrows_model::run::ServiceInstance;
use narrows_model::series::{Series, names};

use crate::read::Reading;
use crate::read::seconds::{Second, seconds_of, total};
use crate::stats::{finite, mean_and_variance};

/// Length of the time before that is compared, and the least length of the time after.
const BEFORE_NS: i64 = 10_000_000_000;
const AFTER_NS_MIN: i64 = 3_000_000_000;
/// Share of the connections that it opens from which an address counts as a peer.
const PEER_SHARE: f64 = 0.05;
/// Share of the requests under way before that must be under way after: the load is no lower.
const SAME_LOAD: f64 = 0.8;

/// A replica that is short of ports.
#[derive(Debug)]
pub(super) struct Shortage<'a> {
    pub(super) service: &'a str,
    /// Most connections in TIME_WAIT, and the ports for one peer.
    pub(super) held: f64,
    pub(super) ports: f64,
    pub(super) search: PortSearch,
    /// From when on the ports were held, to the last reading in which they were.
    pub(super) start_ns: i64,
    pub(super) end_ns: i64,
}

/// The services that are short of ports, each by the replica whose throughput fell most.
pub(super) fn shortages<'a>(reading: &Reading<'a>) -> Vec<Shortage<'a>> {
    let mut by_service: BTreeMap<&str, Shortage<'a>> = BTreeMap::new();
    for found in reading.trial.services.iter().filter_map(|instance| shortage(reading, instance)) {
        by_service.entry(found.service).or_insert(found);
    }
    by_service.into_values().collect()
}

fn shortage<'a>(reading: &Reading<'a>, instance: &'a ServiceInstance) -> Option<Shortage<'a>> {
    let (trial, thresholds) = (reading.trial, &reading.thresholds.port_exhaustion);
    let ports = of(trial, instance, names::EPHEMERAL_PORTS)?.points.last()?.value;
    let peers = peers(trial, instance);
    let places = ports * peers as f64;
    let mut held = of(trial, instance, names::TIME_WAIT)?.points.iter().filter(|point| {
        places > 0.0 && trial.is_counted(point.time_ns) && point.value >= thresholds.port_search_share * places
    });
    let first = held.next()?;
    let (start_ns, end_ns, most) = held.fold((first.time_ns, first.time_ns, first.value), |(start, _, most), point| {
        (start, point.time_ns, point.value.max(most))
    });
    if end_ns - start_ns < AFTER_NS_MIN {
        return None;
    }
    let before = counted(trial, start_ns - BEFORE_NS, start_ns);
    let after = counted(trial, start_ns, end_ns);
    let is_no_lower = after.latency_sum_ns / after.seconds >= SAME_LOAD * before.latency_sum_ns / before.seconds;
    let rates = (before.rate(), after.rate());
    let cpu_ms = |start_ns, end_ns, rate: f64| Some(1e3 * cores(trial, instance, start_ns, end_ns)? / rate);
    let cpu_ms = (cpu_ms(start_ns - BEFORE_NS, start_ns, rates.0)?, cpu_ms(start_ns, end_ns, rates.1)?);
    let is_found = is_no_lower
        && rates.1 > 0.0
        && rates.1 <= (1.0 - thresholds.port_search_loss) * rates.0
        && cpu_ms.1 >= thresholds.port_search_cpu * cpu_ms.0;
    let finite_pair = |(a, b): (f64, f64)| (finite(a), finite(b));
    let search = PortSearch { peers, rates: finite_pair(rates), cpu_ms: finite_pair(cpu_ms) };
    is_found.then_some(Shortage { service: &instance.service, held: most, ports, search, start_ns, end_ns })
}

/// Addresses that a replica opens a good part of its connections to.
fn peers(trial: &TrialEvidence, instance: &ServiceInstance) -> usize {
    let opened = all_of(trial, instance, names::CONNECTIONS_OPENED);
    let opened: Vec<f64> = opened.map(|series| series.points.iter().map(|point| finite(point.value)).sum()).collect();
    let all: f64 = opened.iter().sum();
    opened.iter().filter(|one| **one > 0.0 && **one >= PEER_SHARE * all).count()
}

/// The counted load between two instants.
fn counted(trial: &TrialEvidence, start_ns: i64, end_ns: i64) -> Second {
    let mut seconds = seconds_of(trial, start_ns, end_ns);
    seconds.retain(|second| trial.is_counted(second.start_ns));
    total(&seconds)
}

/// Mean CPU of a replica in the counted part of a time.
fn cores(trial: &TrialEvidence, instance: &ServiceInstance, start_ns: i64, end_ns: i64) -> Option<f64> {
    let points = &of(trial, instance, names::CPU_CORES)?.points;
    let here = points.iter().filter(|one| (start_ns..=end_ns).contains(&one.time_ns) && trial.is_counted(one.time_ns));
    let values: Vec<f64> = here.map(|point| point.value).collect();
    mean_and_variance(&values).map(|(mean, _)| mean)
}

fn all_of<'a>(
    trial: &'a TrialEvidence,
    instance: &'a ServiceInstance,
    name: &'a str,
) -> impl Iterator<Item = &'a Series> {
    let is_of = |series: &&Series| series.key.service == instance.service && series.key.replica == instance.replica;
    trial.series.iter().filter(move |series| series.key.name == name).filter(is_of)
}

fn of<'a>(trial: &'a TrialEvidence, instance: &'a ServiceInstance, name: &'a str) -> Option<&'a Series> {
    all_of(trial, instance, name).next()
}
