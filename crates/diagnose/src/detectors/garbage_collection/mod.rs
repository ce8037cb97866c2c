//! `garbage-collection`: a runtime's collector stops a service for much of the time, or for so long that the slowest
//! requests are those that meet a pause.
//!
//! The input is the times that runtimes report (`read/runtimes.rs`) for collections that stop the program, per replica
//! and load interval. Concurrent collection does not count. The share of time must hold without the largest reading, so
//! that one full collection does not count. A share of long pauses counts only if the latency of the load shows it: the
//! 99th percentile is about as long as a pause, and half of the requests are much faster.
//!
//! Without a metric, the threads of a JVM that collect show how long they stop the program, and those of Node.js that its
//! heap is too full (`by_helpers.rs`).
//!
//! A pause of a service that handles no request of the load delays nothing. If programs outside the run fill the
//! machine, they decide how long a pause lasts, so there is no finding.

use std::collections::BTreeMap;

use narrows_model::finding::evidence::garbage_collection as evidence;
use narrows_model::finding::evidence::garbage_collection::{LongPauses, PauseSign, Runtime};
use narrows_model::finding::{Caveat, Confidence, Finding, FindingKind};
use narrows_model::run::ServiceInstance;
use narrows_model::series::names;

use crate::Detector;
use crate::read::Reading;
use crate::read::cpu::Cpu;
use crate::read::intervals::Interval;
use crate::read::periods::period_of;
use crate::read::runtimes::{Collections, Collector, machine_caveats, serves};
use crate::read::worst_replica::{Worst, worst_replica};
use crate::stats::finite;
use crate::thresholds::{Thresholds, rule_thresholds};
use by_helpers::HelpedReplica;

mod by_helpers;
mod words;

rule_thresholds! {
    /// Share of the time in which collections stop a replica.
    gc_share: f64 = 0.08;
    /// Mean length from which pauses count as long, nanoseconds.
    gc_pause_ns: f64 = 1e8;
    /// Share of the time that long pauses must take.
    gc_pause_share: f64 = 0.02;
    /// Long pauses in a window.
    gc_pauses: usize = 3;
    /// Share of its limit in use after a collection, from which a heap is nearly full.
    gc_heap_share: f64 = 0.85;
    /// Share of the CPU time of Node.js that its helper threads must take: more than the program itself.
    gc_helper_share: f64 = 0.5;
    /// Cores that they must use, so that a service with little work does not count.
    gc_helper_cores: f64 = 0.25;
}

/// See the module.
#[derive(Debug)]
pub struct GarbageCollection;

/// Fraction of the required time share that must remain without the largest reading.
const LEFT_WITHOUT_MOST: f64 = 0.5;
/// Fraction of a pause from which a latency counts as about as long.
const AS_LONG: f64 = 0.5;
/// Maximum plausible share of time that a program is stopped; a metric with more does not measure that.
const SHARE_MAX: f64 = 1.05;

/// A replica that its collector stops, in one interval.
struct PausedReplica<'a> {
    collector: &'a Collector<'a>,
    at: usize,
    sign: PauseSign,
    collections: Collections,
}

impl Detector for GarbageCollection {
    fn kind(&self) -> FindingKind {
        FindingKind::GarbageCollection
    }

    fn version(&self) -> u32 {
        3
    }

    fn delays_reading_of_responses(&self) -> bool {
        true
    }

    fn holds_all_requests(&self) -> bool {
        true
    }

    fn detect(&self, reading: &Reading<'_>) -> Vec<Finding> {
        let services = reading.trial.service_names().into_iter().filter(|service| serves(reading, service));
        let of_service = |service| by_pauses(self, reading, service).or_else(|| by_helpers(self, reading, service));
        services.filter_map(of_service).collect()
    }
}

fn by_pauses(detector: &GarbageCollection, reading: &Reading<'_>, service: &str) -> Option<Finding> {
    let cpu = Cpu::new(reading);
    let instances = reading.trial.services.iter().filter(|instance| instance.service == service);
    let of_replica = |replica: u32| Some((replica, Collector::of(reading.trial, service, replica)?));
    let collectors: BTreeMap<u32, Collector<'_>> =
        instances.filter_map(|instance| of_replica(instance.replica)).collect();
    let shows = |replica: u32, at: usize| stopped(reading, collectors.get(&replica)?, at);
    let worst = worst_replica(reading, service, shows, |stopped| stopped.collections.share)?;
    Some(finding(detector, &cpu, service, worst.shown.at, evidence_of(&cpu, service, &worst)))
}

/// Collections of Node.js that no metric shows.
fn by_helpers(detector: &GarbageCollection, reading: &Reading<'_>, service: &str) -> Option<Finding> {
    let cpu = Cpu::new(reading);
    let shows = |replica: u32, at: usize| {
        let is_it = |one: &&ServiceInstance| (one.service.as_str(), one.replica) == (service, replica);
        let instance = reading.trial.services.iter().find(is_it)?;
        let is_reported = Collector::of(reading.trial, service, replica).is_some();
        HelpedReplica::of(&cpu, instance, at).filter(|_| !is_reported)
    };
    let worst = worst_replica(reading, service, shows, |helped| helped.helper_cores)?;
    let helped = worst.shown;
    let evidence = evidence::GarbageCollection {
        sign: PauseSign::Helpers,
        runtime: Runtime::V8,
        metric: names::CPU_CORES.to_owned(),
        share: finite(helped.share),
        helper_cores: Some(finite(helped.helper_cores)),
        heap: Some(helped.heap),
        ..in_interval(&cpu, service, helped.at, worst.replicas)
    };
    Some(finding(detector, &cpu, service, helped.at, evidence))
}

fn stopped<'a>(reading: &Reading<'_>, collector: &'a Collector<'a>, at: usize) -> Option<PausedReplica<'a>> {
    let interval = &reading.intervals[at];
    let collections = collector.during(interval, reading.thresholds.garbage_collection.gc_pause_ns);
    let is_shown = collections.readings >= reading.thresholds.runtime_readings && collections.share <= SHARE_MAX;
    let sign = Some(PauseSign::Share).filter(|_| is_large(&collections, reading.thresholds));
    let sign = sign.or_else(|| is_felt(reading, interval, &collections).then_some(PauseSign::Length))?;
    is_shown.then_some(PausedReplica { collector, at, sign, collections })
}

fn is_large(collections: &Collections, thresholds: &Thresholds) -> bool {
    collections.share >= thresholds.garbage_collection.gc_share
        && collections.share_without_most >= LEFT_WITHOUT_MOST * thresholds.garbage_collection.gc_share
}

/// Whether long pauses recur, and the slowest requests take about as long as one.
fn is_felt(reading: &Reading<'_>, interval: &Interval, collections: &Collections) -> bool {
    let thresholds = &reading.thresholds.garbage_collection;
    let is_frequent =
        |long: &LongPauses| long.count >= thresholds.gc_pauses as f64 && long.share >= thresholds.gc_pause_share;
    let Some(long) = collections.long.filter(is_frequent) else { return false };
    let latency = reading.trial.load_between(interval.start_ns, interval.end_ns).latency();
    latency.p99_ns as f64 >= AS_LONG * long.mean_ns && latency.p50_ns as f64 <= AS_LONG * long.mean_ns
}

fn evidence_of(cpu: &Cpu<'_>, service: &str, worst: &Worst<PausedReplica<'_>>) -> evidence::GarbageCollection {
    let stopped = &worst.shown;
    let collections = &stopped.collections;
    evidence::GarbageCollection {
        sign: stopped.sign,
        runtime: stopped.collector.runtime(),
        metric: stopped.collector.metric().to_owned(),
        share: finite(collections.share.min(1.0)),
        collections: collections.rate.map(finite),
        pause_ns: collections.pause_ns.map(finite),
        long: collections.long,
        concurrent: finite(collections.concurrent),
        heap: stopped.collector.heap(&cpu.intervals[stopped.at]),
        ..in_interval(cpu, service, stopped.at, worst.replicas)
    }
}

/// Load and responses of the interval at this index. `replicas` are how many are stopped, and how many there are.
fn in_interval(cpu: &Cpu<'_>, service: &str, at: usize, replicas: (usize, usize)) -> evidence::GarbageCollection {
    let interval = &cpu.intervals[at];
    evidence::GarbageCollection {
        hot_replicas: replicas.0,
        replicas: replicas.1,
        interval: interval.label.clone(),
        load: interval.load_level(),
        rate: finite(interval.rate),
        latency_ns: finite(interval.latency_ns),
        p99_ns: cpu.trial.load_between(interval.start_ns, interval.end_ns).latency().p99_ns as f64,
        heap_share_min: cpu.thresholds.garbage_collection.gc_heap_share,
        cores: cpu.service_cores(service, interval).filter(|cores| *cores > 0.0).map(finite),
        proof: cpu.proof(at),
        ..evidence::GarbageCollection::default()
    }
}

fn finding(
    detector: &GarbageCollection,
    cpu: &Cpu<'_>,
    service: &str,
    at: usize,
    evidence: evidence::GarbageCollection,
) -> Finding {
    let interval = &cpu.intervals[at];
    let is_sure = evidence.sign == PauseSign::Share && (evidence.proof.is_some() || evidence.is_heap_full());
    let mut caveats = machine_caveats(cpu, interval);
    caveats.extend((evidence.sign == PauseSign::Helpers).then_some(Caveat::HelpersNotNamed));
    Finding {
        resource: service.into(),
        cost_share: cost(&evidence, interval),
        confidence: if is_sure { Confidence::High } else { Confidence::Medium },
        caveats,
        period: period_of(cpu.trial, interval.start_ns, interval.end_ns),
        ..Finding::new(evidence, detector.version())
    }
}

/// Share of the load's latency that pauses cost. For users who wait for a response, it is the share of time, since they
/// send nothing during a pause. For arrivals, long pauses add share × (P ÷ 2 + latency without pauses) to the mean
/// latency: a request under way waits for the whole pause P, one that arrives during it waits for half on average.
/// Where only helper threads show them, it is their share of the CPU time.
fn cost(evidence: &evidence::GarbageCollection, interval: &Interval) -> f64 {
    let is_length = evidence.sign == PauseSign::Length && interval.offered.is_some();
    let long = evidence.long.filter(|_| is_length);
    let of_latency = long.map_or(0.0, |long| {
        let added_ns = long.share * (long.mean_ns / 2.0 + interval.latency_ns) / (1.0 + long.share);
        added_ns / interval.latency_ns.max(1.0)
    });
    finite(of_latency.max(evidence.share).min(1.0))
}

#[cfg(test)]
mod tests;
