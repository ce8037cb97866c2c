//! A system as one trial shows it: the levels of its load, what a request needs of each resource, and the rest as delay.
//!
//! Only what was recorded is used: load, CPU samples, limits of CPU, and what stores report. The parameters of an
//! experiment are not read, for the system under test need not be one whose delays are known.

mod demands;
mod levels;
mod sections;
mod stores;

use narrows_model::prediction::{Resource, ResourceKind};
use narrows_model::run::Verdict;

pub(crate) use demands::{Demands, Program};
pub(crate) use levels::{Level, levels};
pub(crate) use sections::Section;
pub(crate) use stores::Store;

use crate::queueing::{Adds, Network, Station};
use crate::{Cannot, DiagnosedTrial};

/// A system and its load.
#[derive(Debug, Clone)]
pub(crate) struct System {
    /// The levels of its load, lightest first, at least one.
    pub(crate) levels: Vec<Level>,
    /// CPU cost of a request in each service, and how much of it the service may use.
    pub(crate) programs: Vec<Program>,
    /// CPU of a request in all processes of the run, the load generator included, core-seconds.
    pub(crate) machine_s: f64,
    /// The machine's cores that the run may use.
    pub(crate) cores: f64,
    /// Processors that a request uses at the same time where no limit holds it to one, from 1: a query with several
    /// workers, a collection of garbage beside it. Its CPU takes a request no longer than the request itself.
    pub(crate) processors: f64,
    /// Sections that so many requests at a time may enter.
    pub(crate) sections: Vec<Section>,
    /// Stores with a provisioned rate.
    pub(crate) stores: Vec<Store>,
    /// Think time of closed loads, seconds.
    pub(crate) think_s: f64,
    /// Time that no queue explains, seconds; fitted by `baseline.rs`.
    pub(crate) delay_s: f64,
}

impl System {
    /// The system that a trial shows, its delay still 0.
    pub(crate) fn read(diagnosed: &DiagnosedTrial<'_>) -> Result<Self, Cannot> {
        let trial = diagnosed.trial;
        if trial.trial.validity.verdict == Verdict::Invalid {
            return Err(Cannot::InvalidTrial { reason: trial.trial.validity.reasons.first().cloned() });
        }
        let levels = levels::levels(trial)?;
        let demands = Demands::of(&levels).ok_or(Cannot::NoCpu)?;
        let mut system = Self {
            programs: demands::programs(trial),
            machine_s: 0.0,
            cores: demands::cores(trial),
            processors: 1.0,
            sections: sections::sections(diagnosed.findings),
            stores: stores::stores(trial),
            think_s: levels::think_s(&levels),
            delay_s: 0.0,
            levels,
        };
        system.set_demands(&demands);
        Ok(system)
    }

    /// Takes other levels for its demands and its think time; the levels themselves stay.
    pub(crate) fn with_demands_of(&self, levels: &[Level]) -> Option<Self> {
        let mut system = self.clone();
        system.set_demands(&Demands::of(levels)?);
        system.think_s = levels::think_s(levels);
        Some(system)
    }

    fn set_demands(&mut self, demands: &Demands) {
        for program in &mut self.programs {
            program.demand_s = demands.of_service(&program.service);
        }
        self.machine_s = demands.all_s;
        let unlimited = self.programs.iter().filter(|program| program.limit().is_none());
        let cpu_s: f64 = unlimited.map(|program| program.demand_s).sum();
        let alone_s = self.levels[0].mean_s();
        self.processors = if alone_s > 0.0 { (cpu_s / alone_s).clamp(1.0, self.cores.max(1.0)) } else { 1.0 };
    }

    /// The stations in the order of [`Self::resources`].
    pub(crate) fn network(&self) -> Network {
        let programs = self.programs.iter().map(|program| program.station(self.processors));
        // Requests that use several processors at once find fewer of them free, each for a shorter time.
        let servers = (self.cores / self.processors).floor().max(1.0);
        let machine = Station::new(self.machine_s / self.cores * servers, servers as u32, Adds::Wait);
        let sections = self.sections.iter().map(Section::station);
        Network {
            stations: programs.chain([machine]).chain(sections).collect(),
            delay_s: self.delay_s,
            think_s: self.think_s,
        }
    }

    /// Limits of throughput, each with its highest rate.
    pub(crate) fn resources(&self, rate: f64) -> Vec<Resource> {
        let resource = |kind, name: &str, rate_max: f64| Resource {
            kind,
            name: name.to_owned(),
            used_share: if rate_max.is_finite() { rate / rate_max } else { 0.0 },
            rate_max,
        };
        let programs = self
            .programs
            .iter()
            .map(|program| resource(program.kind(), &program.service, program.station(self.processors).rate_max()));
        let machine = resource(ResourceKind::Machine, "", self.cores / self.machine_s);
        let sections = self.sections.iter().map(|one| resource(one.kind, &one.name, one.station().rate_max()));
        let stores =
            self.stores.iter().map(|store| resource(ResourceKind::RequestUnits, &store.name, store.rate_max()));
        programs.chain([machine]).chain(sections).chain(stores).filter(|one| one.rate_max.is_finite()).collect()
    }

    /// The resource that is used up first.
    pub(crate) fn limit(&self, rate: f64) -> Option<Resource> {
        self.resources(rate).into_iter().min_by(|a, b| a.rate_max.total_cmp(&b.rate_max))
    }

    /// The highest rate that the stores allow.
    pub(crate) fn stores_rate_max(&self) -> f64 {
        self.stores.iter().map(Store::rate_max).fold(f64::INFINITY, f64::min)
    }

    /// Multiplies the CPU that a request costs a service; without effect for what is no service of the trial.
    pub(crate) fn scale_cpu(&mut self, service: &str, factor: f64) {
        for program in self.programs.iter_mut().filter(|program| program.service == service) {
            self.machine_s -= program.demand_s * (1.0 - factor);
            program.demand_s *= factor;
        }
    }

    /// Whether no request ever meets another: one user, who waits for each response.
    pub(crate) fn is_one_user(&self) -> bool {
        self.levels.iter().all(|level| level.load.arrivals.is_none() && level.load.users <= 1)
    }

    /// The program of a service.
    pub(crate) fn program(&self, service: &str) -> Option<&Program> {
        self.programs.iter().find(|program| program.service == service)
    }
}

#[cfg(test)]
mod tests {
    use narrows_testkit::simulator;

    use super::*;

    #[test]
    fn cpu_beyond_the_latency_is_used_by_several_processors_at_once() {
        let steps = vec![(1, 15), (2, 15)];
        let trial = simulator::System { steps, think_ms: 50.0, ..simulator::System::default() }.run("a");
        let mut system = System::read(&DiagnosedTrial::new(&trial, &[])).expect("a system");
        assert_eq!(system.processors, 1.0);
        let alone_s = system.levels[0].mean_s();
        let unlimited: Vec<String> = system.programs.iter().map(|program| program.service.clone()).collect();
        system.programs.iter_mut().for_each(|program| (program.cap, program.is_one_thread) = (None, false));
        let by_service = unlimited.into_iter().map(|service| (service, 3.0 * alone_s)).take(1).collect();
        system.set_demands(&Demands::new(by_service));
        assert!((system.processors - 3.0).abs() < 1e-9, "{}", system.processors);
        let cores = system.cores;
        let network = system.network();
        assert!((network.unloaded_s() - alone_s).abs() < 1e-9, "{network:?}");
        let machine = network.stations[system.programs.len()];
        assert!((machine.rate_max() - cores / (3.0 * alone_s)).abs() < 1e-6, "the same limit: {machine:?}");
    }
}
