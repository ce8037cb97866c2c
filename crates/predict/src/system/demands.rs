//! CPU that a request costs, by the utilisation law: demand = cores in use ÷ throughput.

use std::collections::BTreeMap;

use narrows_model::evidence::TrialEvidence;
use narrows_model::prediction::ResourceKind;
use narrows_model::series::names;

use super::Level;
use crate::queueing::{Adds, Station};

/// A service is one thread's work when its busiest thread uses this share of all its CPU.
const ONE_THREAD_SHARE: f64 = 0.75;
/// With less CPU than this, in cores, the threads of a service say nothing.
const CORES_MIN: f64 = 0.05;

/// CPU of a request, core-seconds.
#[derive(Debug, Clone)]
pub(crate) struct Demands {
    by_service: BTreeMap<String, f64>,
    /// In all of them, the load generator included.
    pub(crate) all_s: f64,
}

impl Demands {
    #[cfg(test)]
    pub(super) fn new(by_service: BTreeMap<String, f64>) -> Self {
        Self { all_s: by_service.values().sum(), by_service }
    }

    /// Of all these levels together; `None` if no CPU was sampled in any.
    pub(crate) fn of(levels: &[Level]) -> Option<Self> {
        let sampled = || levels.iter().filter(|level| !level.cpu.is_empty());
        let requests: f64 = sampled().map(|level| level.requests as f64).sum();
        let mut by_service: BTreeMap<String, f64> = BTreeMap::new();
        for (service, used) in sampled().flat_map(|level| &level.cpu) {
            *by_service.entry(service.clone()).or_default() += used / requests;
        }
        let all_s = by_service.values().sum();
        let has_services = by_service.keys().any(|service| service != names::GENERATOR);
        (requests > 0.0 && has_services && all_s > 0.0).then_some(Self { by_service, all_s })
    }

    /// Of one service; 0 when it was not sampled.
    pub(crate) fn of_service(&self, service: &str) -> f64 {
        self.by_service.get(service).copied().unwrap_or(0.0)
    }
}

/// A service with what a request costs it and how much CPU it may use.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Program {
    pub(crate) service: String,
    /// CPU of a request in all replicas, core-seconds.
    pub(crate) demand_s: f64,
    /// At least 1.
    pub(crate) replicas: u32,
    /// CPU that each replica may use, cores; `None` if nothing but the machine limits it.
    pub(crate) cap: Option<f64>,
    /// Whether one thread of each replica does its work.
    pub(crate) is_one_thread: bool,
}

impl Program {
    /// Its CPU as requests queue for it. Without a limit of its own it has as many servers as it needs: requests queue
    /// for the machine, and use so many processors at the same time.
    pub(crate) fn station(&self, processors: f64) -> Station {
        let each_s = self.demand_s / f64::from(self.replicas);
        let one = match self.limit() {
            // Several servers that together have the cap.
            Some(limit) if limit >= 1.0 => {
                Station::new(each_s * limit.floor() / limit, limit.floor() as u32, Adds::Residence)
            }
            Some(limit) => Station::new(each_s / limit, 1, Adds::Residence),
            None => Station::without_queue(each_s / processors),
        };
        Station { copies: self.replicas, ..one }
    }

    /// Cores that a replica can use.
    pub(super) fn limit(&self) -> Option<f64> {
        let thread = self.is_one_thread.then_some(1.0);
        [self.cap, thread].into_iter().flatten().reduce(f64::min)
    }

    /// Limit.
    pub(crate) fn kind(&self) -> ResourceKind {
        let is_by_thread = self.is_one_thread && self.cap.is_none_or(|cap| cap >= 1.0);
        if is_by_thread { ResourceKind::Thread } else { ResourceKind::Cpu }
    }
}

/// The services of a trial, their demands still 0.
pub(super) fn programs(trial: &TrialEvidence) -> Vec<Program> {
    let program = |service: &str| {
        let replicas = trial.services.iter().filter(|instance| instance.service == service);
        Program {
            service: service.to_owned(),
            demand_s: 0.0,
            replicas: (replicas.clone().count() as u32).max(1),
            cap: replicas.filter_map(|instance| instance.cpu_limit_cores).filter(|cap| *cap > 0.0).reduce(f64::min),
            is_one_thread: is_one_thread(trial, service),
        }
    };
    trial.service_names().into_iter().map(program).collect()
}

fn is_one_thread(trial: &TrialEvidence, service: &str) -> bool {
    let cores = trial.counted_usage(names::CPU_CORES, service).mean;
    let busiest = trial.counted_usage(names::BUSIEST_THREAD_CORES, service).mean;
    cores >= CORES_MIN && busiest >= ONE_THREAD_SHARE * cores
}

/// The cores that other programs and the hypervisor leave, at least half of one.
pub(super) fn cores(trial: &TrialEvidence) -> f64 {
    let all = f64::from(trial.cores.max(1));
    let host = trial.counted_usage(names::HOST_CPU_UTILIZATION, "");
    let services = trial.service_names().into_iter().chain([names::GENERATOR]);
    let own: f64 = services.map(|service| trial.counted_usage(names::CPU_CORES, service).mean).sum();
    let foreign = if host.points > 0 { (host.mean * all - own).max(0.0) } else { 0.0 };
    (all - foreign).max(0.5)
}
