//! CPU of services, by the utilisation law: a part that does not depend on the load, and a demand of each request.

use std::collections::{BTreeMap, BTreeSet};

use narrows_model::evidence::TrialEvidence;
use narrows_model::finding::evidence::cpu::CpuLimit;
use narrows_model::finding::evidence::hot_partition::PlaceKind;
use narrows_model::finding::{Evidence, Finding};
use narrows_model::prediction::ResourceKind;
use narrows_model::run::ServiceInstance;
use narrows_model::series::{Series, names, partitions};

use super::Level;
use crate::queueing::Station;

/// A service is one thread's work when its busiest thread uses this share of all its CPU.
const ONE_THREAD_SHARE: f64 = 0.75;
/// With less CPU than this, in cores, the threads of a service say nothing.
const CORES_MIN: f64 = 0.05;
/// Rates that differ by less than this factor do not tell the fixed part of CPU from that of requests.
const RATE_SPREAD_MIN: f64 = 1.2;
/// Requests have at least this share of a limit, however much CPU is used without them.
const FREE_SHARE_MIN: f64 = 0.1;
/// The kernel's period of a quota of CPU, seconds, where it was not measured: the default of control groups, and what every
/// container runtime sets.
const QUOTA_PERIOD_S: f64 = 0.1;

/// CPU of one service.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Cost {
    /// Used without requests, cores.
    fixed_cores: f64,
    /// Of each request, core-seconds.
    request_s: f64,
}

/// CPU of all services under some levels of the load.
#[derive(Debug, Clone)]
pub(crate) struct Demands {
    by_service: BTreeMap<String, Cost>,
}

impl Demands {
    #[cfg(test)]
    pub(super) fn new(by_service: BTreeMap<String, f64>) -> Self {
        let cost = |request_s| Cost { fixed_cores: 0.0, request_s };
        Self { by_service: by_service.into_iter().map(|(service, request_s)| (service, cost(request_s))).collect() }
    }

    /// Those that fit these levels best; `None` if no CPU was sampled in any.
    pub(crate) fn of<'l>(levels: impl IntoIterator<Item = &'l Level>) -> Option<Self> {
        let levels: Vec<&Level> = levels.into_iter().collect();
        let services: BTreeSet<&String> = levels.iter().flat_map(|level| level.cpu.keys()).collect();
        let by_service: BTreeMap<String, Cost> =
            services.into_iter().map(|service| (service.clone(), cost(service, &levels))).collect();
        let has_cpu = by_service.values().any(|cost| cost.fixed_cores + cost.request_s > 0.0);
        let has_services = by_service.keys().any(|service| service != names::GENERATOR);
        (has_services && has_cpu).then_some(Self { by_service })
    }

    /// Core-seconds of a request in one service; 0 when it was not sampled.
    pub(crate) fn request_s(&self, service: &str) -> f64 {
        self.by_service.get(service).map_or(0.0, |cost| cost.request_s)
    }

    /// Cores that a service uses without requests; 0 when it was not sampled.
    pub(crate) fn fixed_cores(&self, service: &str) -> f64 {
        self.by_service.get(service).map_or(0.0, |cost| cost.fixed_cores)
    }

    /// Core-seconds of a request in all of them, the load generator included.
    pub(crate) fn all_request_s(&self) -> f64 {
        self.by_service.values().map(|cost| cost.request_s).sum()
    }

    /// Cores that all of them use without requests.
    pub(crate) fn all_fixed_cores(&self) -> f64 {
        self.by_service.values().map(|cost| cost.fixed_cores).sum()
    }
}

/// The straight line through the cores in use against the rate that is closest in the sum of squares, each second of a level
/// counted once, neither part below 0. Levels whose rates hardly differ say nothing of a fixed part.
fn cost(service: &str, levels: &[&Level]) -> Cost {
    let mut sums = Sums::default();
    let (mut rate_min, mut rate_max) = (f64::INFINITY, 0.0_f64);
    for level in levels {
        let Some(core_s) = level.cpu.get(service) else { continue };
        sums.add(level.rate(), core_s / level.seconds, level.weight * level.seconds);
        (rate_min, rate_max) = (rate_min.min(level.rate()), rate_max.max(level.rate()));
    }
    let through_origin = Cost { fixed_cores: 0.0, request_s: sums.cores_rate / sums.rate_rate };
    if sums.weight <= 0.0 || sums.rate_rate <= 0.0 {
        return Cost::default();
    }
    if rate_max < RATE_SPREAD_MIN * rate_min {
        return through_origin;
    }
    let (rate, cores) = (sums.rate / sums.weight, sums.cores / sums.weight);
    let request_s = (sums.cores_rate - sums.weight * rate * cores) / (sums.rate_rate - sums.weight * rate * rate);
    let fixed_cores = cores - request_s * rate;
    match (fixed_cores < 0.0, request_s < 0.0) {
        (true, _) => through_origin,
        (false, true) => Cost { fixed_cores: cores, request_s: 0.0 },
        (false, false) => Cost { fixed_cores, request_s },
    }
}

/// Weighted sums of rates and cores.
#[derive(Debug, Default)]
struct Sums {
    weight: f64,
    rate: f64,
    cores: f64,
    rate_rate: f64,
    cores_rate: f64,
}

impl Sums {
    fn add(&mut self, rate: f64, cores: f64, weight: f64) {
        self.weight += weight;
        self.rate += weight * rate;
        self.cores += weight * cores;
        self.rate_rate += weight * rate * rate;
        self.cores_rate += weight * cores * rate;
    }
}

/// A service with what a request costs it and how much CPU it may use.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Program {
    pub(crate) service: String,
    /// CPU of a request in all replicas, core-seconds.
    pub(crate) demand_s: f64,
    /// CPU that all replicas use without requests, cores.
    pub(crate) fixed_cores: f64,
    /// At least 1.
    pub(crate) replicas: u32,
    /// Share of the requests that the fullest replica gets, above an even share up to 1; `None` if they are even.
    pub(crate) fullest_share: Option<f64>,
    /// Partitions that its replicas share, each of which one replica has; `None` if they report none.
    pub(crate) partitions: Option<u32>,
    /// CPU that each replica may use, cores; `None` if nothing but the machine limits it.
    pub(crate) cap: Option<f64>,
    /// Period of its quota of CPU, seconds; `None` if it was not measured.
    pub(crate) period_s: Option<f64>,
    /// Whether one thread of each replica does its work.
    pub(crate) is_one_thread: bool,
    /// Whether the threads of each replica take turns, so that they use one core together.
    pub(crate) takes_turns: bool,
    /// How long the kernel held a replica back at its limit, as a share of what its CPU would take if it were used in one piece,
    /// 0 to 1. It is less where a request waits for something else before its quota is used up. `None` if it was not measured.
    pub(crate) held_share: Option<f64>,
}

impl Program {
    /// Its CPU as requests queue for it. Without a limit of its own it has as many servers as it needs: requests queue
    /// for the machine, and use so many processors at the same time. Its limit is no lower than this rate, which was measured.
    /// `pause_s` is the think time of the only user; `None` with several.
    pub(crate) fn station(&self, processors: f64, rate_top: f64, pause_s: Option<f64>) -> Station {
        let copies = self.copies();
        let each_s = self.each_s();
        let one = match self.limit() {
            // Several servers that together have what is free of the limit.
            Some(limit) => {
                let servers = limit.floor().max(1.0);
                let free = free_cores(limit, self.fixed_cores / f64::from(self.replicas.max(1)), rate_top * each_s);
                let held_s = self.cap.map_or(0.0, |cap| self.held_in_one_piece_s(cap, rate_top, pause_s));
                let own_s = each_s + held_s * self.held_share.unwrap_or(1.0);
                let credit_s = self.cap.filter(|cap| *cap < 1.0).map_or(0.0, |_| self.period_s());
                Station { own_s, credit_s, ..Station::new(each_s * servers / free, servers as u32) }
            }
            None => Station::without_queue(each_s / processors),
        };
        Station { copies, is_shared: !self.is_one_thread, ..one }
    }

    /// The same service with so many replicas. Its partitions are spread over them as evenly as whole ones can be.
    pub(crate) fn spread_over(&mut self, replicas: u32) {
        self.replicas = replicas;
        if let Some(partitions) = self.partitions {
            let most = partitions.div_ceil(replicas.max(1));
            self.fullest_share = uneven(most, partitions, replicas);
        }
    }

    /// Replicas that requests are spread over; 1 where they are uneven.
    fn copies(&self) -> u32 {
        if self.fullest_share.is_some() { 1 } else { self.replicas.max(1) }
    }

    /// CPU of a request in a replica, in the fullest one where they are uneven, core-seconds.
    fn each_s(&self) -> f64 {
        self.demand_s * self.fullest_share.unwrap_or(1.0 / f64::from(self.copies()))
    }

    /// Time for which a quota holds a request back in a replica when it uses its CPU there in one piece, seconds.
    fn held_in_one_piece_s(&self, cap: f64, rate_top: f64, pause_s: Option<f64>) -> f64 {
        let each_s = self.each_s();
        let unused_share = match pause_s {
            Some(pause_s) => pause_s / QUOTA_PERIOD_S,
            None => 1.0 - rate_top * each_s / cap,
        };
        throttled_s(each_s, cap, unused_share) - each_s
    }

    fn period_s(&self) -> f64 {
        self.period_s.unwrap_or(QUOTA_PERIOD_S)
    }

    /// Sets [`Self::held_share`] to what the kernel counted under the load of one user, with these requests per second.
    pub(super) fn set_held_share(&mut self, trial: &TrialEvidence, rate: f64, pause_s: f64) {
        let held_s = held(trial, &self.service).map(|held| held / rate);
        let in_one_piece_s = self.cap.map_or(0.0, |cap| self.held_in_one_piece_s(cap, rate, Some(pause_s)));
        self.held_share = held_s.filter(|_| in_one_piece_s > 0.0).map(|held_s| (held_s / in_one_piece_s).min(1.0));
    }

    /// Cores that a replica can use.
    pub(super) fn limit(&self) -> Option<f64> {
        let core = (self.is_one_thread || self.takes_turns).then_some(1.0);
        [self.cap, core].into_iter().flatten().reduce(f64::min)
    }

    /// Limit.
    pub(crate) fn kind(&self) -> ResourceKind {
        match self.cap {
            Some(cap) if cap < 1.0 => ResourceKind::Cpu,
            _ if self.is_one_thread => ResourceKind::Thread,
            _ if self.takes_turns => ResourceKind::OneCore,
            _ => ResourceKind::Cpu,
        }
    }
}

/// Cores of a limit that requests have beside what is used without them, no fewer than were used for them.
pub(super) fn free_cores(limit: f64, fixed_cores: f64, used_cores: f64) -> f64 {
    (limit - fixed_cores).max(used_cores).max(FREE_SHARE_MIN * limit).min(limit)
}

/// Time in which a request gets this CPU under a quota, core-seconds, when it begins with this share of a period's quota. That
/// passes at once, so that a request that needs no more is not slowed down; a longer one gains the rest of a period. One user
/// who sends the next request at once leaves nothing of it. It is that of the usual period with shorter ones too, of whose small quotas
/// the kernel lets a thread use more than there is, to be paid for later.
fn throttled_s(cpu_s: f64, cap: f64, unused_share: f64) -> f64 {
    let quota_s = cap * QUOTA_PERIOD_S;
    if cap >= 1.0 || cpu_s <= quota_s {
        return cpu_s;
    }
    cpu_s / cap - (QUOTA_PERIOD_S - quota_s) * quota_s / cpu_s * unused_share.clamp(0.0, 1.0)
}

/// Period of a service's quota, seconds: the kernel counts those in which it runs, so that a busy second has most; `None` if they were
/// not counted.
fn period_s(trial: &TrialEvidence, service: &str) -> Option<f64> {
    let is_meant = |series: &&Series| series.key.name == names::CGROUP_PERIODS && series.key.service == service;
    let points = trial.series.iter().filter(is_meant).flat_map(|series| &series.points);
    let most = points.filter(|point| trial.is_counted(point.time_ns)).map(|point| point.value).fold(0.0, f64::max);
    (most > 0.0).then(|| (1.0 / most).min(QUOTA_PERIOD_S))
}

/// Share of the counted time for which the kernel held a service back at its limit, of its replicas the one that was held back
/// longest; `None` if it was not measured.
fn held(trial: &TrialEvidence, service: &str) -> Option<f64> {
    let is_meant = |series: &&Series| series.key.name == names::CGROUP_THROTTLED_TIME && series.key.service == service;
    let of_replica = |series: &Series| {
        let counted = series.points.iter().filter(|point| trial.is_counted(point.time_ns)).map(|point| point.value);
        let (sum, count) = counted.fold((0.0, 0_u32), |(sum, count), value| (sum + value, count + 1));
        (count > 0).then(|| sum / f64::from(count))
    };
    trial.series.iter().filter(is_meant).filter_map(of_replica).reduce(f64::max)
}

/// The services of a trial, their demands still 0.
pub(super) fn programs(trial: &TrialEvidence, findings: &[Finding]) -> Vec<Program> {
    let effects = findings.iter().flat_map(|finding| &finding.effects);
    let all: Vec<&Finding> = findings.iter().chain(effects).collect();
    let program = |service: &str| {
        let assigned = assigned(trial, service);
        let replicas = trial.services.iter().filter(|instance| instance.service == service);
        let of_service = || all.iter().filter(|finding| finding.resource == service).map(|finding| &finding.evidence);
        let is_thread =
            |evidence: &Evidence| matches!(evidence, Evidence::CpuSaturation(cpu) if cpu.limit == CpuLimit::Thread);
        Program {
            service: service.to_owned(),
            replicas: (replicas.clone().count() as u32).max(1),
            fullest_share: of_service().find_map(fullest_share).or_else(|| {
                let most = assigned.iter().copied().max()?;
                uneven(most, assigned.iter().sum(), assigned.len() as u32)
            }),
            partitions: Some(assigned.iter().sum()).filter(|sum| *sum > 0),
            cap: replicas.filter_map(|instance| instance.cpu_limit_cores).filter(|cap| *cap > 0.0).reduce(f64::min),
            period_s: period_s(trial, service),
            is_one_thread: is_one_thread(trial, service) || of_service().any(is_thread),
            takes_turns: of_service().any(|evidence| matches!(evidence, Evidence::InterpreterLock(_))),
            ..Program::default()
        }
    };
    trial.service_names().into_iter().map(program).collect()
}

/// Share of the load that the fullest replica gets, if the finding is about replicas.
fn fullest_share(evidence: &Evidence) -> Option<f64> {
    match evidence {
        Evidence::HotPartition(hot) if hot.kind == PlaceKind::Replica => Some(hot.share.min(1.0)),
        _ => None,
    }
}

/// Share of the fullest of these replicas, which has `most` of the partitions; `None` if all have as many.
fn uneven(most: u32, partitions: u32, replicas: u32) -> Option<f64> {
    (partitions > 0 && most * replicas > partitions).then(|| f64::from(most) / f64::from(partitions))
}

/// The partitions of each replica, as they usually were; empty unless all report them.
fn assigned(trial: &TrialEvidence, service: &str) -> Vec<u32> {
    let series = partitions::of(trial, service);
    let of_replica = |instance: &ServiceInstance| {
        let its = series.iter().filter(|series| series.key.replica == instance.replica);
        let usual = its.filter_map(|series| usual(trial, series));
        usual.reduce(|sum, value| sum + value)
    };
    let instances = trial.services.iter().filter(|instance| instance.service == service);
    instances.map(of_replica).collect::<Option<_>>().unwrap_or_default()
}

/// Median of the whole numbers that a series reports while the load is counted.
fn usual(trial: &TrialEvidence, series: &Series) -> Option<u32> {
    let counted = series.points.iter().filter(|point| trial.is_counted(point.time_ns));
    let mut values: Vec<u32> = counted.map(|point| point.value.round().max(0.0) as u32).collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}

fn is_one_thread(trial: &TrialEvidence, service: &str) -> bool {
    let cores = trial.counted_usage(names::CPU_CORES, service).mean;
    let busiest = trial.counted_usage(names::BUSIEST_THREAD_CORES, service).mean;
    cores >= CORES_MIN && busiest >= ONE_THREAD_SHARE * cores
}

/// The cores that other programs and the hypervisor leave. The kernel divides a processor evenly among those who need it,
/// so at least half of them are left beside as many threads of others.
pub(super) fn cores(trial: &TrialEvidence) -> f64 {
    let all = f64::from(trial.cores.max(1));
    let host = trial.counted_usage(names::HOST_CPU_UTILIZATION, "");
    let services = trial.service_names().into_iter().chain([names::GENERATOR]);
    let own: f64 = services.map(|service| trial.counted_usage(names::CPU_CORES, service).mean).sum();
    let foreign = if host.points > 0 { (host.mean * all - own).max(0.0) } else { 0.0 };
    (all - foreign).max(all / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fixed_part_and_that_of_requests_are_told_apart() {
        let level = |rate: f64, cores: f64| Level::of_cpu("shop", rate, cores);
        let fitted = |points: &[(f64, f64)]| {
            let levels: Vec<Level> = points.iter().map(|point| level(point.0, point.1)).collect();
            cost("shop", &levels.iter().collect::<Vec<_>>())
        };
        let close = |one: Cost, fixed_cores: f64, request_s: f64| {
            assert!(
                (one.fixed_cores - fixed_cores).abs() < 1e-9 && (one.request_s - request_s).abs() < 1e-9,
                "{one:?}"
            );
        };
        close(fitted(&[(10.0, 0.22), (100.0, 0.4), (200.0, 0.6)]), 0.2, 0.002);
        close(fitted(&[(100.0, 0.4)]), 0.0, 0.004);
        close(fitted(&[(100.0, 0.4), (110.0, 0.2)]), 0.0, 0.062 / 22.1);
        close(fitted(&[(100.0, 0.1), (200.0, 0.3)]), 0.0, 0.07 / 50.0);
        close(fitted(&[(100.0, 0.3), (200.0, 0.1)]), 0.2, 0.0);
        assert_eq!(cost("shop", &[]), Cost::default());
    }

    #[test]
    fn a_quota_slows_no_request_that_needs_less_than_a_period_has() {
        assert_eq!(throttled_s(0.0016, 0.1, 0.1), 0.0016);
        assert_eq!(throttled_s(0.2, 1.0, 1.0), 0.2);
        assert!((throttled_s(0.05, 0.5, 1.0) - 0.05).abs() < 1e-12, "the quota of one period");
        assert!((throttled_s(0.1, 0.5, 1.0) - 0.175).abs() < 1e-12, "between 150 ms and two periods");
        assert!((throttled_s(0.1, 0.5, 0.0) - 0.2).abs() < 1e-12, "no quota is left when it begins");
    }

    #[test]
    fn one_user_without_pauses_finds_no_unused_quota() {
        let batch = Program { demand_s: 0.06, replicas: 1, cap: Some(0.3), ..Program::default() };
        let own_s = |pause_s| batch.station(1.0, 0.5, pause_s).own_time_s();
        assert!((own_s(Some(0.0)) - 0.2).abs() < 1e-12, "{}", own_s(Some(0.0)));
        assert!((own_s(Some(0.3)) - 0.165).abs() < 1e-12, "{}", own_s(Some(0.3)));
        assert!(own_s(None) < 0.2, "at a low rate some requests begin with a quota");
        let waiting = Program { held_share: Some(0.25), ..batch.clone() };
        let own_s = waiting.station(1.0, 0.5, Some(0.0)).own_time_s();
        assert!((own_s - (0.06 + 0.14 / 4.0)).abs() < 1e-12, "most of its quota came while it waited: {own_s}");
    }

    #[test]
    fn a_limit_is_what_is_free_of_it_and_no_lower_than_what_was_used() {
        let program = Program { demand_s: 0.01, fixed_cores: 0.5, replicas: 1, cap: Some(2.0), ..Program::default() };
        assert!((program.station(1.0, 10.0, None).rate_max() - 150.0).abs() < 1e-9);
        assert!((program.station(1.0, 180.0, None).rate_max() - 180.0).abs() < 1e-9);
        let hot = Program { replicas: 3, fullest_share: Some(1.0), fixed_cores: 0.0, cap: Some(0.5), ..program };
        assert!((hot.station(1.0, 10.0, None).rate_max() - 50.0).abs() < 1e-9, "one of three gets all");
        let even = Program { fullest_share: None, ..hot };
        assert!((even.station(1.0, 10.0, None).rate_max() - 150.0).abs() < 1e-9);
        let mut shared = Program { partitions: Some(12), replicas: 4, ..even.clone() };
        let mut rate_max_over = |replicas| {
            shared.spread_over(replicas);
            shared.station(1.0, 10.0, None).rate_max()
        };
        let found = [8, 12, 24].map(|replicas| rate_max_over(replicas).round());
        assert_eq!(found, [300.0, 600.0, 600.0], "each has two of the twelve, or one; twelve of 24 have none");
        let turns = Program { takes_turns: true, cap: None, ..even };
        assert_eq!(turns.kind(), ResourceKind::OneCore);
        assert!((turns.station(1.0, 10.0, None).rate_max() - 300.0).abs() < 1e-9);
    }
}
