//! `uneven-assignment`: the replicas of a service share partitions unevenly; those with more are full, and the others
//! have room.
//!
//! The input is the number of partitions that each replica reports (`assignment.rs`), and its mean use of its CPU limit
//! over an interval. Every replica must have both. The interval with the heaviest load decides, because a heavier load
//! that fills all replicas leaves nothing idle.
//!
//! The replicas with the most partitions must be busy, and busier than those with the fewest by a ratio that their
//! partitions explain: a smaller ratio costs nothing yet, a larger one has another cause. The median of each group
//! counts, so one replica with other work decides nothing. The cost is the measured idle CPU, because part of a
//! replica's work does not depend on its partitions.

use narrows_model::finding::evidence::cpu::CpuLimit;
use narrows_model::finding::evidence::uneven_assignment::{self as evidence, Group};
use narrows_model::finding::{Caveat, Confidence, Finding, FindingKind};
use narrows_model::run::ServiceInstance;
use narrows_model::series::{SeriesKey, names};

use crate::Detector;
use crate::read::Reading;
use crate::read::cpu::Cpu;
use crate::read::intervals::Interval;
use crate::read::periods::period_of;
use crate::read::runtimes::machine_caveats;
use crate::stats::{finite, median};
use crate::thresholds::rule_thresholds;
use assignment::Assignment;

mod assignment;
mod words;

rule_thresholds! {
    /// Readings of a replica's partitions in an interval.
    assignment_readings: usize = 3;
    /// Share of these readings that must report the same number.
    assignment_held_share: f64 = 0.8;
    /// Share of its CPU limit that a replica with the most partitions must use.
    assignment_busy_share: f64 = 0.7;
    /// CPU that such a replica must use, as a multiple of what one with the fewest partitions uses.
    assignment_busy_ratio: f64 = 1.2;
    /// Largest such multiple, as a multiple of that of their partitions. With more, something else than the number of
    /// partitions makes them busier.
    assignment_excess: f64 = 1.5;
}

/// See the module.
#[derive(Debug)]
pub struct UnevenAssignment;

/// Minimum replicas per group, so that none of them is an exception.
const GROUP_MIN: usize = 2;

/// A replica in an interval.
#[derive(Debug, Clone, Copy)]
struct Replica {
    partitions: usize,
    /// Mean use of its CPU limit, as a share.
    busy: f64,
    limit: CpuLimit,
}

impl Detector for UnevenAssignment {
    fn kind(&self) -> FindingKind {
        FindingKind::UnevenAssignment
    }

    fn version(&self) -> u32 {
        1
    }

    fn detect(&self, reading: &Reading<'_>) -> Vec<Finding> {
        let cpu = Cpu::new(reading);
        reading.trial.service_names().into_iter().filter_map(|service| of_service(self, &cpu, service)).collect()
    }
}

fn of_service(detector: &UnevenAssignment, cpu: &Cpu<'_>, service: &str) -> Option<Finding> {
    let assigned = Assignment::of(cpu.trial, service)?;
    let known = (0..cpu.intervals.len()).filter_map(|at| Some((at, replicas(cpu, &assigned, service, at)?)));
    let (at, replicas) = known.max_by(|(a, _), (b, _)| cpu.intervals[*a].by_demand(&cpu.intervals[*b]))?;
    let most = group(&replicas, replicas.iter().map(|replica| replica.partitions).max()?)?;
    let fewest = group(&replicas, replicas.iter().map(|replica| replica.partitions).min()?)?;
    is_felt(cpu, most, fewest)
        .then(|| finding(detector, cpu, &Uneven { metric: assigned.metric, service, at, replicas, most, fewest }))
}

/// Returns `None` unless the partitions and the CPU of every replica are known.
fn replicas(cpu: &Cpu<'_>, assigned: &Assignment<'_>, service: &str, at: usize) -> Option<Vec<Replica>> {
    let interval = &cpu.intervals[at];
    let instances = cpu.trial.services.iter().filter(|instance| instance.service == service);
    let replica = |instance: &ServiceInstance| {
        let partitions = assigned.to(instance.replica, interval, cpu.thresholds)?;
        let (busy, limit) = busy(cpu, instance, interval)?;
        Some(Replica { partitions, busy, limit })
    };
    instances.map(replica).collect()
}

/// CPU use of a replica as a share of its cap or of one core, whichever is higher.
fn busy(cpu: &Cpu<'_>, instance: &ServiceInstance, interval: &Interval) -> Option<(f64, CpuLimit)> {
    let of_cap = |cores: f64| Some((mean(cpu, names::CPU_CORES, instance, interval)? / cores, CpuLimit::Cap { cores }));
    let by_cap = cpu.cap_of(instance, interval).and_then(of_cap);
    let by_thread = mean(cpu, names::BUSIEST_THREAD_CORES, instance, interval).map(|cores| (cores, CpuLimit::Thread));
    // The last of equals counts: a cap of one core says more than its thread.
    by_thread.into_iter().chain(by_cap).max_by(|(a, _), (b, _)| a.total_cmp(b))
}

/// Mean of a replica's series in an interval. A small cap needs the mean, because it is used up in few clock ticks.
/// `None` if there are too few points for a median.
fn mean(cpu: &Cpu<'_>, name: &str, instance: &ServiceInstance, interval: &Interval) -> Option<f64> {
    cpu.cores_of(name, &instance.service, instance.replica, interval)?;
    let is_its = |key: &SeriesKey| {
        (key.name.as_str(), key.service.as_str(), key.replica) == (name, instance.service.as_str(), instance.replica)
    };
    let series = cpu.trial.series.iter().find(|series| is_its(&series.key))?;
    let values = series.points.iter().filter(|point| interval.contains(point.time_ns)).map(|point| point.value);
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    Some(sum / count)
}

fn group(replicas: &[Replica], partitions: usize) -> Option<Group> {
    let busy: Vec<f64> = of_group(replicas, partitions).map(|replica| replica.busy).collect();
    Some(Group { partitions, replicas: busy.len(), busy: finite(median(busy)?) })
}

fn of_group(replicas: &[Replica], partitions: usize) -> impl Iterator<Item = &Replica> {
    replicas.iter().filter(move |replica| replica.partitions == partitions)
}

/// Whether CPU limits the replicas with the most partitions but not the others, because of their partitions.
fn is_felt(cpu: &Cpu<'_>, most: Group, fewest: Group) -> bool {
    let thresholds = &cpu.thresholds.uneven_assignment;
    // Replicas without a partition have no work to compare with.
    let explained = thresholds.assignment_excess * most.partitions as f64 * fewest.busy;
    most.partitions > fewest.partitions
        && most.busy >= thresholds.assignment_busy_share
        && most.busy >= thresholds.assignment_busy_ratio * fewest.busy
        && (fewest.partitions == 0 || most.busy * fewest.partitions as f64 <= explained)
}

/// The replicas of a service with uneven partitions, in one interval.
struct Uneven<'a> {
    metric: &'a str,
    service: &'a str,
    /// The interval, by its place among all.
    at: usize,
    replicas: Vec<Replica>,
    most: Group,
    fewest: Group,
}

fn finding(detector: &UnevenAssignment, cpu: &Cpu<'_>, uneven: &Uneven<'_>) -> Finding {
    let Uneven { metric, service, at, replicas, most, fewest } = uneven;
    let (at, most, fewest) = (*at, *most, *fewest);
    let interval = &cpu.intervals[at];
    let partitions: usize = replicas.iter().map(|replica| replica.partitions).sum();
    let of_most = of_group(replicas, most.partitions).map(|replica| replica.limit).next();
    let idle_by_count = 1.0 - partitions as f64 / (replicas.len() * most.partitions).max(1) as f64;
    let evidence = evidence::UnevenAssignment {
        metric: (*metric).to_owned(),
        partitions,
        replicas: replicas.len(),
        most,
        fewest,
        limit: of_most.unwrap_or_default(),
        idle_by_count: finite(idle_by_count),
        interval: interval.label.clone(),
        load: interval.load_level(),
        rate: finite(interval.rate),
        proof: cpu.proof(at),
    };
    let is_sure = evidence.proof.is_some() && are_apart(replicas, most, fewest);
    Finding {
        resource: (*service).into(),
        cost_share: finite(idle(replicas, most).min(idle_by_count)),
        confidence: if is_sure { Confidence::High } else { Confidence::Medium },
        caveats: caveats(cpu, interval, fewest),
        period: period_of(cpu.trial, interval.start_ns, interval.end_ns),
        ..Finding::new(evidence, detector.version())
    }
}

/// Share of the CPU of all replicas that is idle when those with the most partitions are full.
fn idle(replicas: &[Replica], most: Group) -> f64 {
    let busy: f64 = replicas.iter().map(|replica| replica.busy.min(most.busy)).sum();
    (1.0 - busy / (replicas.len() as f64 * most.busy)).clamp(0.0, 1.0)
}

/// Whether each replica with the most partitions is busier than each with the fewest, and each group has several
/// replicas.
fn are_apart(replicas: &[Replica], most: Group, fewest: Group) -> bool {
    let busy = |group: Group| of_group(replicas, group.partitions).map(|replica| replica.busy);
    let (least, highest) = (busy(most).fold(f64::INFINITY, f64::min), busy(fewest).fold(0.0, f64::max));
    most.replicas.min(fewest.replicas) >= GROUP_MIN && least > highest
}

fn caveats(cpu: &Cpu<'_>, interval: &Interval, fewest: Group) -> Vec<Caveat> {
    let by_partitions =
        if fewest.partitions == 0 { Caveat::SpareReplicasMayBeIntended } else { Caveat::PartitionLoadNotMeasured };
    [by_partitions].into_iter().chain(machine_caveats(cpu, interval)).collect()
}

#[cfg(test)]
mod tests;
