//! At which CPU limit a service stands, in which part of the load, and whether that limit is what holds the load back.
//!
//! Read by every detector that judges CPU, so that two of them never disagree about it. The rule and its reasons are
//! described in `detectors/cpu_saturation/mod.rs` and on its page.

use narrows_model::evidence::TrialEvidence;
use narrows_model::finding::evidence::cpu::{CpuConsumer, CpuConsumers, CpuLimit, Proof, ProofSign};
use narrows_model::run::{Machine, ServiceInstance};
use narrows_model::series::{Series, names};

use crate::read::Reading;
use crate::read::intervals::Interval;
use crate::read::threads::mean;
use crate::stats::finite;
use crate::thresholds::Thresholds;

/// A thread that is ready to run and waits for a processor is as busy as one that runs. No more than this share of the
/// time counts so: a thread that waits for longer is held by the machine.
const WAITING_SHARE_MAX: f64 = 0.15;
/// Another interval refutes a limit when it carried as much with less than this share of the threshold.
const REFUTING_SHARE: f64 = 0.9;
/// A limit that is reached in two intervals holds neither back when throughput grew from one to the other by this share
/// of what the load grew by.
const CARRIED_SHARE: f64 = 0.75;
/// A replica is limited by one thread when all others together use no more than this share of its CPU.
const OTHER_THREADS_SHARE: f64 = 0.25;
/// Users or the rate offered must have grown by this factor between two intervals before these are compared.
const DEMAND_GROWTH_MIN: f64 = 1.25;
const CONSUMERS_MAX: usize = 3;
/// Nothing uses more of a limit than all of it.
const FULL: f64 = 1.0;
/// The resource of a finding about the machine as a whole.
pub(crate) const HOST: &str = "host";

/// A service at a limit.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Saturation<'a> {
    /// The service, or [`HOST`].
    pub(crate) service: &'a str,
    pub(crate) limit: CpuLimit,
    /// Share of the limit, 0 to 1: a sample may lie above, because a quota is kept only from period to period.
    pub(crate) level: f64,
    /// The interval, by its place among all.
    pub(crate) at: usize,
    /// Replicas at the limit, and all.
    pub(crate) replicas: (usize, usize),
    /// The replica that stands closest to its limit.
    pub(crate) replica: u32,
}

/// Throttling of a replica's control group in an interval, medians; each `None` if not sampled.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct CpuThrottling {
    /// Periods in which its quota was used up, as a share of those in which something was runnable.
    pub(crate) throttled: Option<f64>,
    /// Share of the time when a task waited for a processor.
    pub(crate) waiting: Option<f64>,
}

/// A trial with the data to judge its CPU use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cpu<'a> {
    pub(crate) trial: &'a TrialEvidence,
    pub(crate) thresholds: &'a Thresholds,
    pub(crate) intervals: &'a [Interval],
    pub(crate) reading: Reading<'a>,
}

impl<'a> Cpu<'a> {
    pub(crate) fn new(reading: &Reading<'a>) -> Self {
        let Reading { trial, thresholds, intervals, .. } = *reading;
        Self { trial, thresholds, intervals, reading: *reading }
    }

    /// The median of a replica's series in an interval.
    pub(crate) fn cores_of(&self, name: &str, service: &str, replica: u32, interval: &Interval) -> Option<f64> {
        interval.median_of(self.trial, (name, service, replica), self.thresholds)
    }

    /// Cores in use by all replicas together; `None` if one was not sampled.
    pub(crate) fn service_cores(&self, service: &str, interval: &Interval) -> Option<f64> {
        let replicas = self.trial.services.iter().filter(|instance| instance.service == service);
        replicas.map(|instance| self.cores_of(names::CPU_CORES, service, instance.replica, interval)).sum()
    }

    /// Share of a service's CPU time that the kernel used in an interval, 0 to 1; `None` if not sampled.
    pub(crate) fn system_share(&self, service: &str, interval: &Interval) -> Option<f64> {
        let time = |mode: &str| {
            mean(self.trial, interval, |key| {
                (key.name.as_str(), key.service.as_str()) == (names::CPU_TIME, service)
                    && key.labels.get(names::CPU_MODE).is_some_and(|its| its == mode)
            })
        };
        let (user, system) = (time("user")?, time("system")?);
        Some(system / (user + system)).filter(|share| share.is_finite())
    }

    /// CPU use of a service's busiest replica as a share of its limit, 0 to 1; `None` if not sampled.
    pub(crate) fn busy_share(&self, service: &str, interval: &Interval) -> Option<f64> {
        let replicas = self.trial.services.iter().filter(|instance| instance.service == service);
        let share = |instance: &ServiceInstance| {
            let cores = self.cores_of(names::CPU_CORES, service, instance.replica, interval)?;
            let limit = self.cap_of(instance, interval).or_else(|| self.machine_cores(instance, interval))?;
            let thread = self.cores_of(names::BUSIEST_THREAD_CORES, service, instance.replica, interval);
            Some((cores / limit).max(thread.unwrap_or(0.0)).min(FULL))
        };
        replicas.filter_map(share).max_by(f64::total_cmp)
    }

    /// Cores of the machine that a replica runs on; `None` if it was not sampled.
    fn machine_cores(&self, instance: &ServiceInstance, interval: &Interval) -> Option<f64> {
        match instance.machine {
            Machine::Here => Some(f64::from(self.trial.cores.max(1))),
            Machine::Unknown => self.cores_of(names::HOST_CPU_COUNT, &instance.service, instance.replica, interval),
        }
    }

    /// The machine's CPU that the hypervisor took, as a share, where a replica runs.
    pub(crate) fn stolen(&self, service: &str, replica: u32, interval: &Interval) -> Option<f64> {
        let service = if self.is_here(service) { "" } else { service };
        self.cores_of(names::HOST_CPU_STEAL, service, if service.is_empty() { 0 } else { replica }, interval)
    }

    /// Whether a service runs on the machine that measured, as a whole.
    pub(crate) fn is_here(&self, service: &str) -> bool {
        let mut instances = self.trial.services.iter().filter(|instance| instance.service == service);
        instances.all(|instance| instance.machine == Machine::Here)
    }

    /// The cap that Narrows set, else the one that the sampler found.
    pub(crate) fn cap_of(&self, instance: &ServiceInstance, interval: &Interval) -> Option<f64> {
        let found = || self.cores_of(names::CGROUP_CPU_LIMIT, &instance.service, instance.replica, interval);
        instance.cpu_limit_cores.or_else(found).filter(|cap| *cap > 0.0)
    }

    /// Throttling of a replica's control group.
    pub(crate) fn held(&self, service: &str, replica: u32, interval: &Interval) -> CpuThrottling {
        let of = |name: &str| self.cores_of(name, service, replica, interval);
        let periods = of(names::CGROUP_PERIODS).filter(|periods| *periods > 0.0);
        let throttled = periods.and_then(|periods| Some(of(names::CGROUP_THROTTLED_PERIODS)? / periods));
        let is_meant = |series: &&Series| {
            let key = &series.key;
            (key.name.as_str(), key.service.as_str(), key.replica) == (names::CGROUP_PRESSURE_AVERAGE, service, replica)
                && key.labels.get(names::PRESSURE_RESOURCE).is_some_and(|resource| resource == "cpu")
        };
        let pressure = self.trial.series.iter().find(is_meant);
        CpuThrottling {
            throttled: throttled.map(|share| share.clamp(0.0, 1.0)),
            waiting: pressure.and_then(|series| interval.median_in(series, self.thresholds)),
        }
    }

    /// Share of the requests under way in an interval that wait for a processor in a service, 0 to 1: as many as its
    /// threads that wait for one, and no more than its sockets show there. `None` if no socket shows requests there.
    pub(crate) fn requests_held(&self, service: &str, at: usize) -> Option<f64> {
        let interval = self.intervals.get(at).filter(|interval| interval.in_flight() > 0.0)?;
        let place = self.reading.intervals.iter().position(|read| read == interval)?;
        let of = |name: &str| mean(self.trial, interval, |key| key.name == name && key.service == service);
        let waiting = of(names::CPU_WAIT)?.max(of(names::CGROUP_THROTTLED_TIME).unwrap_or(0.0));
        let at_work = self.reading.conversations().at_work(service, place)?.low;
        Some((waiting.min(at_work) / interval.in_flight()).clamp(0.0, 1.0))
    }

    /// The replica closest to its limit speaks for the service.
    pub(crate) fn of_service(&self, service: &'a str) -> Option<Saturation<'a>> {
        let replicas: Vec<&ServiceInstance> = self.trial.services.iter().filter(|i| i.service == service).collect();
        let mut found: Vec<Saturation<'a>> = replicas.iter().filter_map(|i| self.of_replica(service, i)).collect();
        let count = found.len();
        found.sort_by(|a, b| b.level.total_cmp(&a.level));
        let worst = found.into_iter().next().map(|worst| Saturation {
            replicas: (count, replicas.len()),
            level: worst.level.min(FULL),
            ..worst
        });
        worst.or_else(|| self.of_machine(service, replicas.len()))
    }

    fn of_replica(&self, service: &'a str, instance: &ServiceInstance) -> Option<Saturation<'a>> {
        let of = |name: &str, interval: &Interval| self.cores_of(name, service, instance.replica, interval);
        let cap = self.intervals.iter().filter_map(|interval| self.cap_of(instance, interval)).next_back();
        let level = |interval: &Interval| Some(of(names::CPU_CORES, interval)? / cap?);
        let by_cap = self
            .saturated(level, self.thresholds.cpu_saturation.cpu_limit_share)
            .or_else(|| self.throttled(instance, level));
        let busy = |interval: &Interval| {
            // Under a cap, it is the cap that a thread waits for.
            let wait = of(names::BUSIEST_THREAD_WAIT, interval).filter(|_| cap.is_none()).unwrap_or(0.0);
            Some(of(names::BUSIEST_THREAD_CORES, interval)? + wait.min(WAITING_SHARE_MAX))
        };
        let by_thread = self.saturated(busy, self.thresholds.cpu_saturation.cpu_thread_share);
        let thread = |at: usize| of(names::BUSIEST_THREAD_CORES, &self.intervals[at]);
        let by_thread = by_thread.map(|(at, level)| (at, thread(at).unwrap_or(level)));
        let is_one_thread = |at: usize, level: f64| {
            of(names::CPU_CORES, &self.intervals[at]).is_none_or(|cores| cores - level <= OTHER_THREADS_SHARE * cores)
        };
        let by_thread = by_thread.filter(|(at, level)| {
            let is_machine = cap.is_none() && self.fills_machine(instance, &self.intervals[*at]);
            !is_machine || is_one_thread(*at, *level)
        });
        let (limit, at, level) = match (by_cap, by_thread, cap) {
            (Some(_), Some((at, level)), _) if is_one_thread(at, level) => (CpuLimit::Thread, at, level),
            (Some((at, level)), _, Some(cap)) => (CpuLimit::Cap { cores: cap }, at, level),
            (_, Some((at, level)), _) => (CpuLimit::Thread, at, level),
            _ => return None,
        };
        Some(Saturation { service, limit, level, at, replicas: (1, 1), replica: instance.replica })
    }

    /// Bursts use up a quota long before the mean does. That counts as a limit only where it is shown that the load waits:
    /// by its throughput or latency, or by the requests that are held.
    fn throttled(&self, instance: &ServiceInstance, level: impl Fn(&Interval) -> Option<f64>) -> Option<(usize, f64)> {
        let least = self.thresholds.cpu_saturation.cpu_throttled_limit_share;
        let of_held = |interval: &Interval| {
            let held = self.held(&instance.service, instance.replica, interval);
            let is_held =
                held.throttled.is_some_and(|share| share >= self.thresholds.cpu_saturation.cpu_throttled_share)
                    || held.waiting.is_some_and(|share| share >= self.thresholds.cpu_saturation.cpu_pressure_share);
            // One that is not held can still refute another.
            level(interval).map(|level| if is_held { level } else { level.min(least * (1.0 - f64::EPSILON)) })
        };
        let enough = self.thresholds.cpu_saturation.cpu_held_requests_share;
        let holds_requests = |at: usize| self.requests_held(&instance.service, at).is_some_and(|share| share >= enough);
        self.saturated(of_held, least).filter(|(at, _)| self.proof(*at).is_some() || holds_requests(*at))
    }

    fn of_machine(&self, service: &'a str, replicas: usize) -> Option<Saturation<'a>> {
        if !self.is_here(service) {
            return self.of_other_machine(service, replicas);
        }
        let share = |interval: &Interval| self.share_of_machine(service, interval);
        let (at, level) = self.saturated(share, self.thresholds.cpu_saturation.cpu_limit_share)?;
        Some(Saturation {
            service,
            limit: CpuLimit::Machine,
            level: level.min(FULL),
            at,
            replicas: (replicas, replicas),
            replica: 0,
        })
    }

    /// The fullest of the machines elsewhere on which a service's replicas run.
    fn of_other_machine(&self, service: &'a str, replicas: usize) -> Option<Saturation<'a>> {
        let there = |instance: &&ServiceInstance| instance.service == service && instance.machine == Machine::Unknown;
        let full = self.trial.services.iter().filter(there).filter_map(|instance| {
            let of = |name: &str, interval: &Interval| self.cores_of(name, service, instance.replica, interval);
            let share = |interval: &Interval| of(names::HOST_CPU_UTILIZATION, interval);
            let (at, level) = self.saturated(share, self.thresholds.cpu_host_share)?;
            let interval = &self.intervals[at];
            let cores = self.machine_cores(instance, interval)?;
            let used = of(names::CPU_CORES, interval)?.min(cores);
            Some(Saturation {
                service,
                limit: CpuLimit::OtherMachine { cores: finite(cores), used: finite(used) },
                level: level.min(FULL),
                at,
                replicas: (1, replicas),
                replica: instance.replica,
            })
        });
        full.max_by(|a, b| a.level.total_cmp(&b.level))
    }

    fn share_of_machine(&self, service: &str, interval: &Interval) -> Option<f64> {
        Some(self.service_cores(service, interval)? / f64::from(self.trial.cores.max(1)))
    }

    fn fills_machine(&self, instance: &ServiceInstance, interval: &Interval) -> bool {
        let service = instance.service.as_str();
        let share = match instance.machine {
            Machine::Here => self.share_of_machine(service, interval),
            Machine::Unknown => self
                .cores_of(names::CPU_CORES, service, instance.replica, interval)
                .zip(self.machine_cores(instance, interval))
                .map(|(used, cores)| used / cores),
        };
        share.is_some_and(|share| share >= self.thresholds.cpu_saturation.cpu_limit_share)
    }

    /// The machine as a whole, when the run itself fills it.
    pub(crate) fn of_host(&self) -> Option<Saturation<'a>> {
        let foreign_max = self.thresholds.cpu_saturation.cpu_foreign_share * f64::from(self.trial.cores.max(1));
        let own = |interval: &Interval| self.machine(interval).filter(|machine| machine.foreign() <= foreign_max);
        let share = |interval: &Interval| own(interval).map(|machine| machine.used_share());
        let (at, level) = self.saturated(share, self.thresholds.cpu_host_share)?;
        Some(Saturation {
            service: HOST,
            limit: CpuLimit::Host,
            level: level.min(FULL),
            at,
            replicas: (1, 1),
            replica: 0,
        })
    }

    /// The saturated interval that demands most, the later of equals, unless another interval refutes it.
    fn saturated(&self, level: impl Fn(&Interval) -> Option<f64>, threshold: f64) -> Option<(usize, f64)> {
        let levels: Vec<Option<f64>> = self.intervals.iter().map(level).collect();
        let known = || levels.iter().enumerate().filter_map(|(at, level)| Some((at, (*level)?)));
        let is_refuted = |at: usize| {
            let here = &self.intervals[at];
            known().any(|(other, level)| {
                let there = &self.intervals[other];
                let carried_as_much = level < REFUTING_SHARE * threshold && there.rate >= here.rate;
                carried_as_much || level >= threshold && (carries_on(here, there) || carries_on(there, here))
            })
        };
        known()
            .filter(|(at, level)| *level >= threshold && !is_refuted(*at))
            .max_by(|(a, _), (b, _)| self.intervals[*a].by_demand(&self.intervals[*b]).then(a.cmp(b)))
    }

    /// The steady intervals with a load that this one clearly exceeds.
    pub(crate) fn lighter_than(&self, here: &Interval) -> impl Iterator<Item = &'a Interval> {
        self.intervals.iter().filter(move |other| {
            let growth = here.demand_over(other).filter(|_| other.is_steady && other.rate > 0.0);
            growth.is_some_and(|growth| growth >= DEMAND_GROWTH_MIN)
        })
    }

    /// The steady interval with the least load, where the load here clearly exceeds it.
    pub(crate) fn lightest_below(&self, here: &Interval) -> Option<&'a Interval> {
        self.lighter_than(here).min_by(|a, b| a.by_demand(b))
    }

    /// The largest consumers in an interval, the load generator included.
    pub(crate) fn consumers(&self, interval: &Interval) -> CpuConsumers {
        let generator = self.cores_of(names::CPU_CORES, names::GENERATOR, 0, interval);
        let services = self.trial.service_names().into_iter();
        let mut consumers: Vec<CpuConsumer> = services
            .filter_map(|service| Some((Some(service.to_owned()), self.service_cores(service, interval)?)))
            .chain(generator.map(|cores| (None, cores)))
            .map(|(service, cores)| CpuConsumer { service, cores: finite(cores) })
            .collect();
        consumers.sort_by(|a, b| b.cores.total_cmp(&a.cores));
        consumers.truncate(CONSUMERS_MAX);
        CpuConsumers(consumers)
    }
}

/// True if a heavier load was carried as the lighter one was, though both find the same resource used up: then it is
/// used by something else, or used up only because there is no other work.
pub(crate) fn carries_on(here: &Interval, lighter: &Interval) -> bool {
    let is_steady = here.is_steady && lighter.is_steady && lighter.rate > 0.0;
    let growth = here.demand_over(lighter).filter(|growth| is_steady && *growth >= DEMAND_GROWTH_MIN);
    growth.is_some_and(|growth| here.rate / lighter.rate - 1.0 >= CARRIED_SHARE * (growth - 1.0))
}

/// Proofs that requests wait.
impl Cpu<'_> {
    /// Proof that throughput stopped growing in this interval, or that requests queue.
    pub(crate) fn proof(&self, at: usize) -> Option<Proof> {
        let here = self.intervals.get(at).filter(|interval| interval.is_steady)?;
        let below = self.lighter_than(here).max_by(|a, b| a.by_demand(b))?;
        let lightest = self.lightest_below(here)?;
        if here.offered.is_some() {
            return self.flat_against_offered(here, below).or_else(|| self.slower_once_sent(here, lightest));
        }
        self.flat_against(here, below).or_else(|| self.queueing_against(here, lightest))
    }

    /// The lightest load from which on throughput did not follow the users up to this interval.
    pub(crate) fn flat_since(&self, at: usize) -> Option<Proof> {
        let here = self.intervals.get(at).filter(|interval| interval.is_steady && interval.offered.is_none())?;
        let flat = self.lighter_than(here).filter_map(|other| Some((other, self.flat_against(here, other)?)));
        flat.min_by(|(a, _), (b, _)| a.by_demand(b)).map(|(_, proof)| proof)
    }

    /// Proof that throughput did not follow the load between two steady intervals, the second under heavier load.
    pub(crate) fn flat_between(&self, here: &Interval, lighter: &Interval) -> Option<Proof> {
        let is_open = here.offered.is_some();
        if is_open { self.flat_against_offered(here, lighter) } else { self.flat_against(here, lighter) }
    }

    fn flat_against(&self, here: &Interval, below: &Interval) -> Option<Proof> {
        let users = here.demand_over(below)? - 1.0;
        let rate = here.rate / below.rate - 1.0;
        (rate < self.thresholds.cpu_saturation.flat_growth_share * users)
            .then(|| proof(ProofSign::FlatThroughput, below, here))
    }

    /// Requests that the generator held back prove nothing, so the requests sent must have grown too.
    fn flat_against_offered(&self, here: &Interval, below: &Interval) -> Option<Proof> {
        let demanded = here.demand_over(below)?.min(here.sent / below.sent) - 1.0;
        let completed = here.rate / below.rate - 1.0;
        let is_flat = demanded >= DEMAND_GROWTH_MIN - 1.0
            && completed < self.thresholds.cpu_saturation.flat_growth_share * demanded;
        is_flat.then(|| proof(ProofSign::FlatThroughput, below, here))
    }

    /// With a rate given, the requests under way follow from the time each takes (Little's law). That time would not
    /// depend on the rate if none had to queue.
    fn slower_once_sent(&self, here: &Interval, lightest: &Interval) -> Option<Proof> {
        let is_longer = here.service_ns >= self.thresholds.cpu_saturation.queueing_latency_factor * lightest.service_ns;
        (is_longer && lightest.service_ns > 0.0).then(|| proof(ProofSign::Queueing, lightest, here))
    }

    /// Little's law: users = throughput × latency while nobody thinks.
    fn queueing_against(&self, here: &Interval, lightest: &Interval) -> Option<Proof> {
        let in_flight = here.rate * here.latency_ns / 1e9;
        let is_little =
            (in_flight / f64::from(here.vus.max(1)) - 1.0).abs() <= self.thresholds.cpu_saturation.little_tolerance;
        self.slower_than(here, lightest).filter(|_| is_little)
    }

    /// That requests of users take much longer under one load than under a lighter one. Where they queue is not shown.
    pub(crate) fn slower_than(&self, here: &Interval, lighter: &Interval) -> Option<Proof> {
        let is_longer = here.latency_ns >= self.thresholds.cpu_saturation.queueing_latency_factor * lighter.latency_ns;
        (is_longer && lighter.latency_ns > 0.0).then(|| proof(ProofSign::Queueing, lighter, here))
    }

    /// That throughput fell behind a growing number of users, who think between requests, while latency grew. Throughput
    /// still grows then, so it is no proof of one resource. The lightest load need not be the fastest: a program may not
    /// be warm yet, or do work in the background that fewer requests pay for.
    pub(crate) fn falls_behind(&self, at: usize) -> Option<Proof> {
        let here = self.intervals.get(at).filter(|interval| interval.is_steady && interval.offered.is_none())?;
        let behind = self.lighter_than(here).filter(|lighter| !carries_on(here, lighter));
        let slower = behind.filter_map(|lighter| Some((lighter, self.slower_than(here, lighter)?)));
        slower.min_by(|(a, _), (b, _)| a.by_demand(b)).map(|(_, proof)| proof)
    }
}

fn proof(sign: ProofSign, lighter: &Interval, heavier: &Interval) -> Proof {
    Proof { sign, lighter: lighter.load_point(), heavier: heavier.load_point() }
}
