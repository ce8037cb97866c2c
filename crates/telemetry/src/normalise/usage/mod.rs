//! Replicas of services that Narrows neither started nor samples, from what they or their platform report.
//!
//! Detectors and comparisons read CPU and memory of replicas under the sampler's names. A run that was imported or
//! attached to has such figures under the names of OpenTelemetry instead: of the process itself (`process.*`, `jvm.cpu.*`),
//! of its container (`container.*`) or of its pod (`k8s.pod.*`), often several of them. Of each service the one kind that
//! stands first in `sources.rs` is taken, counters become rates, and all replicas get points at the same instants
//! (`normalise/grid.rs`), so that they can be added up. A series under the sampler's own names, as a run that was exported and
//! imported again has, is left as it is.
//!
//! Which replica a series is of says [`INSTANCE`], which the receiver takes from the resource. The machine of such a
//! replica is not known, so that its CPU is compared with its own limit only.
//!
//! A series of cAdvisor or the kubelet is on one page with those of all other containers: its labels say whose it is. Sums over
//! the containers of a pod count where the pod has no container with this metric, as with limits in control groups that a
//! kubelet keeps for pods only.
//!
//! Services that Narrows started have samples: beside them, only those are added that somebody else has started.

mod sources;

use std::collections::{BTreeMap, BTreeSet};

use narrows_model::caveat::TrialCaveat;
use narrows_model::evidence::TrialEvidence;
use narrows_model::run::{Machine, ServiceInstance};
use narrows_model::series::{Point, Series, SeriesKey, names};

use self::sources::{CPU, CPU_LIMIT, Kind, MEMORY, MEMORY_LIMIT, PERIODS, Source, THROTTLED_PERIODS, THROTTLED_TIME};
use super::grid::Grid;
use super::requests::{container_of, is_sum};

/// The label that says which replica of a service a series is of, where the sender says it: `POD` or `POD/CONTAINER`.
pub const INSTANCE: &str = "service.instance.id";
/// The label of times that no CPU was used in.
const IDLE: [&str; 4] = ["idle", "iowait", "wait", "steal"];
/// Replicas of one service that are told apart.
const REPLICAS_MAX: usize = 200;

/// Whether a metric is about what a replica uses, so that it matters which replica sent it.
pub(crate) fn is_usage(name: &str) -> bool {
    let lists = [CPU, MEMORY, CPU_LIMIT, MEMORY_LIMIT, PERIODS, THROTTLED_PERIODS, THROTTLED_TIME];
    lists.iter().any(|sources| sources.iter().any(|source| source.name == name))
}

/// Adds the replicas that only their own figures show, with these figures under the sampler's names.
pub(crate) fn add_replicas(trial: &mut TrialEvidence) {
    let has_started = trial.services.iter().any(ServiceInstance::is_started);
    let elsewhere = elsewhere_services(trial);
    let has_spans = |service: &str| trial.operations.iter().any(|operation| operation.service == service);
    let is_wanted = |service: &str| match (has_started, elsewhere.is_empty()) {
        (false, true) => true,
        (false, false) => elsewhere.contains_key(service) || has_spans(service),
        (true, _) => elsewhere.contains_key(service),
    };
    let sampled: BTreeSet<String> = sampled_services(trial);
    let wanted: Vec<String> =
        services(trial).difference(&sampled).filter(|service| is_wanted(service)).cloned().collect();
    let mut added = Vec::new();
    for service in wanted {
        let machine = elsewhere.get(&service).copied().unwrap_or(Machine::Unknown);
        add_service(trial, &service, machine, &mut added);
    }
    trial.series.extend(added);
    if !has_started {
        add_sampled(trial);
    }
    set_limits(trial);
}

/// The services of the experiment that somebody else has started, and where they are.
fn elsewhere_services(trial: &TrialEvidence) -> BTreeMap<String, Machine> {
    let elsewhere = trial.trial.caveats.iter().filter_map(|caveat| match caveat {
        TrialCaveat::ServiceElsewhere { service, is_here: true, .. } => Some((service.clone(), Machine::Here)),
        TrialCaveat::ServiceElsewhere { service, .. } => Some((service.clone(), Machine::Unknown)),
        _ => None,
    });
    elsewhere.collect()
}

/// The services that have CPU under the sampler's name.
fn sampled_services(trial: &TrialEvidence) -> BTreeSet<String> {
    let sampled = trial.series.iter().filter(|series| series.key.name == names::CPU_CORES);
    sampled.map(|series| series.key.service.clone()).collect()
}

/// The services that report CPU or memory.
fn services(trial: &TrialEvidence) -> BTreeSet<String> {
    let is_used =
        |series: &&Series| [CPU, MEMORY].iter().any(|sources| sources.iter().any(|source| source.is_of(&series.key)));
    let named = trial.series.iter().filter(is_used).filter_map(|series| Some(owner(&series.key)?.0));
    named.filter(|service| !service.is_empty() && service != names::GENERATOR).collect()
}

fn add_service(trial: &mut TrialEvidence, service: &str, machine: Machine, added: &mut Vec<Series>) {
    let of = |sources: &[Source]| by_replica(trial, service, sources);
    let (cpu, memory) = (of(CPU), of(MEMORY));
    let (cpu_limits, memory_limits) = (of(CPU_LIMIT), of(MEMORY_LIMIT));
    let known: BTreeSet<&String> = if cpu.is_empty() { memory.keys().collect() } else { cpu.keys().collect() };
    let numbers: BTreeMap<&String, u32> = known.into_iter().take(REPLICAS_MAX).zip(0..).collect();
    let put = |name: &str, unit: &str, replicas: &BTreeMap<String, Vec<Point>>, added: &mut Vec<Series>| {
        added.extend(replicas.iter().filter_map(|(replica, points)| {
            let (name, unit, service) = (name.to_owned(), unit.to_owned(), service.to_owned());
            let key = SeriesKey { name, unit, service, replica: *numbers.get(replica)?, labels: BTreeMap::new() };
            Some(Series { key, points: points.clone() })
        }));
    };
    put(names::CPU_CORES, "{cores}", &cpu, added);
    put(names::MEMORY_BYTES, "By", &memory, added);
    put(names::CGROUP_PERIODS, "{period}/s", &of(PERIODS), added);
    put(names::CGROUP_THROTTLED_PERIODS, "{period}/s", &of(THROTTLED_PERIODS), added);
    put(names::CGROUP_THROTTLED_TIME, "s/s", &of(THROTTLED_TIME), added);
    let instances = numbers.iter().map(|(replica, number)| ServiceInstance {
        cpu_limit_cores: limit(&cpu_limits, replica, trial),
        memory_limit_bytes: limit(&memory_limits, replica, trial).map(|bytes| bytes as u64),
        machine,
        ..ServiceInstance::watched(service, *number, 0)
    });
    let instances: Vec<ServiceInstance> = instances.collect();
    trial.services.extend(instances);
}

/// The limit of a replica at the end of the counted windows; where limits are known of other names only, that of all of
/// them, if it is one.
fn limit(limits: &BTreeMap<String, Vec<Point>>, replica: &str, trial: &TrialEvidence) -> Option<f64> {
    let last = |points: &Vec<Point>| {
        let counted = points.iter().rfind(|point| trial.is_counted(point.time_ns));
        counted.or(points.last()).map(|point| point.value).filter(|limit| *limit > 0.0)
    };
    if let Some(points) = limits.get(replica) {
        return last(points);
    }
    let mut all = limits.values().filter_map(last);
    let first = all.next()?;
    all.all(|other| other == first).then_some(first)
}

/// Reports of the replicas of a service by one source: of a pod those of its containers, or the sum over them.
fn of_source(trial: &TrialEvidence, service: &str, source: &Source) -> BTreeMap<String, Vec<Vec<Point>>> {
    let (mut replicas, mut sums) = (BTreeMap::<String, Vec<Vec<Point>>>::new(), BTreeMap::new());
    for series in trial.series.iter().filter(|series| source.is_of(&series.key) && !is_idle(&series.key)) {
        let Some((_, replica)) = owner(&series.key).filter(|(owner, _)| owner == service) else { continue };
        let points = match source.kind {
            Kind::Counter => series.rates(),
            Kind::Gauge => series.points.clone(),
        };
        let scaled = points.into_iter().map(|point| Point { value: point.value * source.factor, ..point });
        let scaled = scaled.filter(|p| p.value.is_finite()).collect();
        if is_sum(&series.key) {
            sums.insert(replica, vec![scaled]);
        } else {
            replicas.entry(replica).or_default().push(scaled);
        }
    }
    for (replica, sum) in sums {
        replicas.entry(replica).or_insert(sum);
    }
    replicas
}

/// Reports of the replicas of a service by the first of these sources that it has.
fn by_replica(trial: &TrialEvidence, service: &str, sources: &[Source]) -> BTreeMap<String, Vec<Point>> {
    let mut reports = sources.iter().map(|source| of_source(trial, service, source));
    let Some(replicas) = reports.find(|replicas| !replicas.is_empty()) else {
        return BTreeMap::new();
    };
    let grid = Grid::of(replicas.values().flatten());
    replicas
        .into_iter()
        .map(|(replica, parts)| (replica, grid.sum(&parts)))
        .filter(|(_, sum)| !sum.is_empty())
        .collect()
}

/// The service and the replica that a series is of.
fn owner(key: &SeriesKey) -> Option<(String, String)> {
    let is_of_page = ["container_", "pod_"].iter().any(|prefix| key.name.starts_with(prefix));
    if is_of_page { container_of(key) } else { Some((key.service.clone(), replica_of(key))) }
}

/// The containers of a pod are one replica.
fn replica_of(key: &SeriesKey) -> String {
    let instance = key.labels.get(INSTANCE).map_or("", String::as_str);
    format!("{}#{:05}", instance.split('/').next().unwrap_or_default(), key.replica)
}

fn is_idle(key: &SeriesKey) -> bool {
    let modes = ["cpu.mode", "state", "cpu.state"].iter().filter_map(|label| key.labels.get(*label));
    modes.into_iter().any(|mode| IDLE.contains(&mode.as_str()))
}

/// Adds replicas that have samples and no entry, as after an export and an import.
fn add_sampled(trial: &mut TrialEvidence) {
    let sampled = trial.series.iter().filter(|series| series.key.name == names::CPU_CORES);
    let sampled = sampled.filter(|series| !series.key.service.is_empty() && series.key.service != names::GENERATOR);
    let keys: BTreeSet<(String, u32)> =
        sampled.map(|series| (series.key.service.clone(), series.key.replica)).collect();
    for (service, replica) in keys {
        if trial.services.iter().any(|known| (&known.service, known.replica) == (&service, replica)) {
            continue;
        }
        let instance = ServiceInstance::watched(&service, replica, 0);
        trial.services.push(ServiceInstance { machine: Machine::Unknown, ..instance });
    }
}

/// Gives replicas that Narrows did not start the limits that their control groups had at the end.
fn set_limits(trial: &mut TrialEvidence) {
    let series = &trial.series;
    for instance in trial.services.iter_mut().filter(|instance| !instance.is_started()) {
        let last = |name: &str| {
            let is_it = |series: &&Series| {
                let key = &series.key;
                (key.name.as_str(), &key.service, key.replica) == (name, &instance.service, instance.replica)
            };
            series.iter().find(is_it)?.points.last().map(|point| point.value).filter(|limit| *limit > 0.0)
        };
        let (cores, bytes) = (last(names::CGROUP_CPU_LIMIT), last(names::CGROUP_MEMORY_LIMIT));
        instance.cpu_limit_cores = instance.cpu_limit_cores.or(cores);
        instance.memory_limit_bytes = instance.memory_limit_bytes.or(bytes.map(|bytes| bytes as u64));
    }
}

#[cfg(test)]
mod tests;
