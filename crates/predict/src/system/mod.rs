//! A system as one trial shows it: the levels of its load, what a request needs of each resource, and the rest as delay.
//!
//! Only what was recorded is used: load, CPU samples, limits of CPU, what stores report, and what was concluded of it:
//! findings, the verdict on the limit, and calls between processes. Of the experiment, only how its iterations arrive is
//! read, for the system under test need not be one whose delays are known.

mod capacity;
mod demands;
mod levels;
mod loaded_cpu;
mod other_load;
mod sections;
mod stores;
mod waits;

use narrows_model::evidence::TrialEvidence;
use narrows_model::load::Arrivals;
use narrows_model::prediction::{Resource, ResourceKind};
use narrows_model::run::Verdict;
use narrows_model::series::names;

pub(crate) use demands::{Demands, Program};
pub(crate) use levels::{Level, levels};
pub(crate) use loaded_cpu::{LoadGrowth, LoadedCpu};
pub(crate) use other_load::other_load;
pub(crate) use sections::Section;
pub(crate) use stores::Store;
pub(crate) use waits::{Wait, WaitCause};

use capacity::Capacity;

use crate::queueing::{Burst, Network, Station, bounds};
use crate::{Cannot, DiagnosedTrial};

/// Least error of a known part of a request's time, a share: of sampled CPU, of a wait that sockets show, of a timer of the
/// kernel.
const PART_ERROR: f64 = 0.1;
/// Time of services that a request uses ÷ its latency from which several work on it at once.
const BATCH_MIN: f64 = 1.25;
/// CPU of a level from which its samples tell that of a request, core-seconds: the kernel counts hundredths.
const SAMPLED_CPU_MIN_S: f64 = 0.2;

/// Bounds of the time of a request that waits for nothing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct QuietTime {
    pub(crate) least_s: f64,
    pub(crate) most_s: f64,
}

impl QuietTime {
    /// The shorter ones of both.
    pub(crate) fn shorter(self, other: Option<Self>) -> Self {
        let Some(other) = other else { return self };
        Self { least_s: self.least_s.min(other.least_s), most_s: self.most_s.min(other.most_s) }
    }
}

/// A system and its load.
#[derive(Debug, Clone)]
pub(crate) struct System {
    /// The levels of its load, lightest first, at least one.
    pub(crate) levels: Vec<Level>,
    /// CPU cost of a request in each service, and how much of it the service may use.
    pub(crate) programs: Vec<Program>,
    /// CPU of a request in all processes of the run, the load generator included, core-seconds.
    pub(crate) machine_s: f64,
    /// CPU that they use without requests, cores.
    pub(crate) fixed_cores: f64,
    /// The machine's cores that the run may use.
    pub(crate) cores: f64,
    /// Processors that a request uses at the same time where no limit holds it to one, from 1: a query with several
    /// workers, a collection of garbage beside it. Its CPU takes a request no longer than the request itself.
    pub(crate) processors: f64,
    /// Whether the only user's request is a batch, on whose items replicas and services work at the same time.
    pub(crate) is_batch: bool,
    /// Level of another trial in which the same programs had another load.
    pub(crate) other_load: Option<Level>,
    /// Sections that so many requests at a time may enter.
    pub(crate) sections: Vec<Section>,
    /// Stores with a provisioned rate.
    pub(crate) stores: Vec<Store>,
    /// Parts of the delay whose cause is known; one may be part of another, as a callee's own calls are.
    pub(crate) waits: Vec<Wait>,
    /// Think time of closed loads, seconds.
    pub(crate) think_s: f64,
    /// Time that no queue explains, seconds; fitted by `baseline.rs`.
    pub(crate) delay_s: f64,
    /// The least that is fitted, seconds: what traces show where one level has reached its limit.
    pub(crate) delay_least_s: f64,
    /// Whether its only level has reached its limit, so that little tells the delay from waiting.
    pub(crate) is_at_limit: bool,
    /// Time of a request in the load generator, its delay and its CPU, seconds: the part of the delay that no change to the
    /// system removes.
    pub(crate) generator_s: f64,
    /// Variability of its queues, see [`Network::variability`]; fitted by `baseline.rs`.
    pub(crate) variability: f64,
    /// Drift of its speed, see [`Network::drift`]; fitted by `baseline.rs`.
    pub(crate) drift: f64,
    /// Requests that arrive together, as the experiment declares; [`Burst::ONE`] if it declares nothing.
    pub(crate) burst: Burst,
    /// Time of a request that waits for nothing, by its traces; `None` where several levels tell it, or without traces.
    pub(crate) quiet: Option<QuietTime>,
    /// Time that a request takes longer at each level because of CPU that it needs under no other load, such as that of a
    /// compiler while the service warms up, seconds; fitted by `baseline.rs`.
    pub(crate) warming_s: Vec<f64>,
    /// Levels left out because a service was still warming up.
    pub(crate) levels_left_out: usize,
}

impl System {
    /// The system that a trial shows, its delay still 0.
    pub(crate) fn read(diagnosed: &DiagnosedTrial<'_>) -> Result<Self, Cannot> {
        let trial = diagnosed.trial;
        if trial.trial.validity.verdict == Verdict::Invalid {
            return Err(Cannot::InvalidTrial { reason: trial.trial.validity.reasons.first().cloned() });
        }
        let mut levels = levels::levels(trial)?;
        let all = levels.len();
        levels::without_warm_up(&mut levels, diagnosed.findings);
        let other_load = other_load(trial, diagnosed.run, &levels);
        let demands =
            Demands::of(levels.iter().chain(other_load.as_ref().map(|other| &other.level))).ok_or(Cannot::NoCpu)?;
        let mut system = Self {
            programs: demands::programs(trial, diagnosed.findings),
            machine_s: 0.0,
            fixed_cores: 0.0,
            cores: demands::cores(trial),
            processors: 1.0,
            is_batch: false,
            other_load: other_load.map(|other| other.level),
            sections: Vec::new(),
            stores: stores::stores(trial),
            waits: Vec::new(),
            think_s: levels::think_s(&levels),
            delay_s: 0.0,
            delay_least_s: 0.0,
            is_at_limit: false,
            generator_s: levels::generator_s(&levels) + demands.request_s(names::GENERATOR),
            variability: 1.0,
            drift: 0.0,
            burst: match trial.arrivals {
                Some(Arrivals::Bursts(requests)) => Burst::Of(f64::from(requests)),
                Some(Arrivals::BurstsEvery(tick_ns)) => Burst::Every(tick_ns as f64 / 1e9),
                Some(Arrivals::Uniform | Arrivals::Poisson) | None => Burst::ONE,
            },
            quiet: None,
            warming_s: vec![0.0; levels.len()],
            levels_left_out: all - levels.len(),
            levels,
        };
        system.set_demands(&demands);
        if system.is_one_user() {
            let (rate, pause_s) = (system.rate_top(), system.think_s);
            system.programs.iter_mut().for_each(|program| program.set_held_share(trial, rate, pause_s));
            system.is_batch = system.works_at_once() || waiting_threads(trial) > 1.0;
        }
        system.waits = waits::waits(diagnosed, &system.levels);
        let capacity = Capacity::of(&system.levels);
        system.sections = sections::sections(diagnosed, &system.programs, capacity.as_ref(), &system.waits);
        Ok(system)
    }

    /// System with the demands and the think time of other levels, and its own levels; `None` if either has no CPU samples.
    pub(crate) fn with_demands_of(&self, levels: &[Level]) -> Option<Self> {
        let (own, other) = (
            Demands::of(self.levels.iter().chain(&self.other_load))?,
            Demands::of(levels.iter().chain(&self.other_load))?,
        );
        let ratio = |other: f64, own: f64| if own > 0.0 && other > 0.0 { other / own } else { 1.0 };
        let mut system = self.clone();
        for program in &mut system.programs {
            program.demand_s *= ratio(other.request_s(&program.service), own.request_s(&program.service));
            program.fixed_cores = other.fixed_cores(&program.service);
        }
        system.machine_s *= ratio(other.all_request_s(), own.all_request_s());
        system.fixed_cores = other.all_fixed_cores();
        system.think_s = levels::think_s(levels);
        Some(system)
    }

    fn set_demands(&mut self, demands: &Demands) {
        for program in &mut self.programs {
            program.demand_s = demands.request_s(&program.service);
            program.fixed_cores = demands.fixed_cores(&program.service);
        }
        self.machine_s = demands.all_request_s();
        self.fixed_cores = demands.all_fixed_cores();
        let unlimited = self.programs.iter().filter(|program| program.limit().is_none());
        let cpu_s: f64 = unlimited.map(|program| program.demand_s).sum();
        let shortest_s = self.levels.iter().map(Level::mean_s).fold(f64::INFINITY, f64::min);
        self.processors = if shortest_s > 0.0 { (cpu_s / shortest_s).clamp(1.0, self.cores.max(1.0)) } else { 1.0 };
    }

    /// Whether a request uses more time of services than it takes.
    fn works_at_once(&self) -> bool {
        let own_s: f64 = self.programs.iter().map(|program| self.own_s(program)).sum();
        let shortest_s = self.levels.iter().map(Level::mean_s).fold(f64::INFINITY, f64::min);
        own_s > BATCH_MIN * shortest_s
    }

    /// The rest of a batch's time with a change, seconds: what the delay of the changed system is, if `self` is the system without.
    ///
    /// Some items wait while others compute, so that the two times do not add up: the whole is as long as the hypotenuse of both,
    /// between their sum, as for one item, and the longer of them, as for very many.
    pub(crate) fn batch_rest_s(&self, changed: &Self) -> f64 {
        let own_s = |system: &Self| system.network().unloaded_s() - system.delay_s;
        let (whole_s, old_s, new_s) = (self.network().unloaded_s(), own_s(self), own_s(changed));
        let waits_squared = (whole_s * whole_s - old_s * old_s).max(0.0);
        (waits_squared + new_s * new_s).sqrt() - new_s
    }

    /// The stations in the order of [`Self::resources`].
    pub(crate) fn network(&self) -> Network {
        let programs = self.programs.iter().map(|program| self.program_station(program));
        let sections = self.sections.iter().map(Section::station);
        let mut stations: Vec<Station> = programs.chain([self.machine_station()]).chain(sections).collect();
        if self.is_batch {
            only_longest(&mut stations);
        }
        Network {
            stations,
            delay_s: self.delay_s,
            think_s: self.think_s,
            variability: self.variability,
            drift: self.drift,
            burst: self.burst,
        }
    }

    /// A program's CPU. Requests that compute in a section queue in front of it.
    fn program_station(&self, program: &Program) -> Station {
        let pause_s = self.is_one_user().then_some(self.think_s);
        let station = program.station(self.processors, self.rate_top(), pause_s);
        // Several levels tell how much passes at once, by how much times vary there.
        let station = if self.levels.len() > 1 { Station { credit_s: 0.0, ..station } } else { station };
        let is_in_section = self.sections.iter().any(|section| section.computes && section.name == program.service);
        if is_in_section { Station { servers: None, demand_s: station.own_s, ..station } } else { station }
    }

    fn machine_station(&self) -> Station {
        let free = demands::free_cores(self.cores, self.fixed_cores, self.machine_s * self.rate_top());
        // Requests that use several processors at once find fewer of them free, each for a shorter time.
        let servers = (self.cores / self.processors).floor().max(1.0);
        Station { is_shared: true, ..Station::of_waits(self.machine_s / free * servers, servers as u32) }
    }

    /// The highest rate that was measured, of all levels together that come near it.
    pub(crate) fn rate_top(&self) -> f64 {
        Capacity::of(&self.levels).map_or(0.0, |capacity| capacity.rate)
    }

    /// Unexplained time that disappears when this much explained time does, seconds. Known parts of a request's time have an
    /// error. A rest no larger than that error disappears with them; a rest twice as large stays.
    pub(crate) fn unexplained_with(&self, removed_s: f64) -> f64 {
        let unloaded_s = self.network().unloaded_s();
        let of_waits: f64 = self.waits.iter().map(|wait| wait.request_s).sum();
        let of_sections = self.sections.iter().map(|section| section.held_s).fold(0.0, f64::max);
        let known_s = (unloaded_s - self.delay_s + of_waits).max(of_sections).max(removed_s).min(unloaded_s);
        let rest_s = (unloaded_s - known_s - self.generator_s).max(0.0);
        if known_s <= 0.0 {
            return 0.0;
        }
        let is_error = (2.0 - rest_s / (self.part_error() * known_s)).clamp(0.0, 1.0);
        removed_s.max(0.0) / known_s * is_error * rest_s
    }

    /// Error of a known part of a request's time, a share: at least that by which the CPU of a request differs between levels
    /// whose samples tell it.
    fn part_error(&self) -> f64 {
        let cpu = |level: &Level| level.services_cpu_s() * level.requests as f64;
        let known = || self.levels.iter().filter(|level| cpu(level) >= SAMPLED_CPU_MIN_S);
        let least_s = known().map(Level::services_cpu_s).fold(f64::INFINITY, f64::min);
        let most_s = known().map(Level::services_cpu_s).fold(0.0, f64::max);
        if most_s > 0.0 { (most_s / least_s - 1.0).max(PART_ERROR) } else { PART_ERROR }
    }

    /// The least delay: that which traces show, and that which the longest section needs, whose time passes in it or in CPU.
    pub(crate) fn delay_min_s(&self) -> f64 {
        let longest_s = self.sections.iter().map(|section| section.held_s).fold(0.0, f64::max);
        let network = self.network();
        (longest_s - (network.unloaded_s() - network.delay_s)).max(self.delay_least_s).max(0.0)
    }

    /// Multiplies the demand of what limits throughput first, which the throughput at the limit tells better than samples of
    /// CPU. Without effect where a store is the limit.
    pub(crate) fn correct_limit(&mut self, factor: f64) {
        let rates: Vec<f64> = self.network().stations.iter().map(Station::rate_max).collect();
        let Some(limit) = (0..rates.len()).min_by(|a, b| rates[*a].total_cmp(&rates[*b])) else { return };
        let machine = self.programs.len();
        if limit < machine {
            let service = self.programs[limit].service.clone();
            self.scale_cpu(&service, factor);
        } else if limit == machine {
            self.cores = self.fixed_cores + (self.cores - self.fixed_cores) / factor;
        } else {
            self.sections[limit - machine - 1].held_s *= factor;
        }
    }

    /// The system with a limit that no resource explains, if its levels show one.
    pub(crate) fn with_unexplained_limit(&self) -> Option<Self> {
        let capacity = Capacity::of(&self.levels).filter(|capacity| capacity.is_reached)?;
        let mut section = sections::unexplained(&capacity);
        section.held_for = waits::within(&self.waits, section.held_s, capacity.alone_s);
        let mut system = self.clone();
        system.sections.push(section);
        Some(system)
    }

    /// CPU that a request takes at each level beyond what it takes under every load, core-seconds.
    pub(crate) fn warming_cpu_s(&self) -> Vec<f64> {
        let usual_s: f64 = self.programs.iter().map(|program| program.demand_s).sum();
        self.levels.iter().map(|level| (level.services_cpu_s() - usual_s).max(0.0)).collect()
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
            .map(|program| resource(program.kind(), &program.service, self.program_station(program).rate_max()));
        let machine = resource(ResourceKind::Machine, "", self.machine_station().rate_max());
        let sections = self.sections.iter().map(|one| resource(one.kind, &one.name, one.station().rate_max()));
        let stores =
            self.stores.iter().map(|store| resource(ResourceKind::RequestUnits, &store.name, store.rate_max()));
        programs.chain([machine]).chain(sections).chain(stores).filter(|one| one.rate_max.is_finite()).collect()
    }

    /// The resource that is used up first.
    pub(crate) fn limit(&self, rate: f64) -> Option<Resource> {
        self.resources(rate).into_iter().min_by(|a, b| a.rate_max.total_cmp(&b.rate_max))
    }

    /// The highest rate that stations and stores allow.
    pub(crate) fn rate_max(&self) -> f64 {
        bounds::rate_max(&self.network()).min(self.stores_rate_max())
    }

    /// The highest rate that the stores allow.
    pub(crate) fn stores_rate_max(&self) -> f64 {
        self.stores.iter().map(Store::rate_max).fold(f64::INFINITY, f64::min)
    }

    /// The system with stores of which requests get a share while calls are refused.
    pub(crate) fn with_used_share(&self, used_share: f64) -> Self {
        let mut system = self.clone();
        system.stores.iter_mut().for_each(|store| store.used_share = used_share);
        system
    }

    /// Multiplies the CPU that a request costs a service; without effect for what is no service of the trial.
    pub(crate) fn scale_cpu(&mut self, service: &str, factor: f64) {
        for program in self.programs.iter_mut().filter(|program| program.service == service) {
            self.machine_s -= program.demand_s * (1.0 - factor);
            program.demand_s *= factor;
        }
    }

    /// Takes a program away, with the CPU that it uses without requests.
    pub(crate) fn remove(&mut self, service: &str) {
        self.scale_cpu(service, 0.0);
        for program in self.programs.iter_mut().filter(|program| program.service == service) {
            self.fixed_cores -= program.fixed_cores;
            program.fixed_cores = 0.0;
        }
    }

    /// CPU of a request in all processes with its part of what they use without requests, at the highest rate, core-seconds.
    pub(crate) fn cpu_s(&self) -> f64 {
        self.machine_s + self.fixed_cores / self.rate_top()
    }

    /// Whether no request ever meets another: one user, who waits for each response.
    pub(crate) fn is_one_user(&self) -> bool {
        self.levels.iter().all(|level| level.load.arrivals.is_none() && level.load.users <= 1)
    }

    /// Time of a request in the CPU of a program, without waits, seconds.
    pub(crate) fn own_s(&self, program: &Program) -> f64 {
        self.program_station(program).own_time_s()
    }

    /// The program of a service.
    pub(crate) fn program(&self, service: &str) -> Option<&Program> {
        self.programs.iter().find(|program| program.service == service)
    }
}

/// Threads of all services that wait for a processor at a time, mean. Those of one user's request are at most one as long as it does
/// one thing after another.
fn waiting_threads(trial: &TrialEvidence) -> f64 {
    trial.service_names().into_iter().map(|service| trial.counted_usage(names::CPU_WAIT, service).mean).sum()
}

/// Of stations that work on a batch at the same time, as their copies do, leaves the time of the one that takes longest.
fn only_longest(stations: &mut [Station]) {
    let longest_s = stations.iter().map(|station| station.own_s).fold(0.0, f64::max);
    let longest = stations.iter().position(|station| station.own_s == longest_s);
    for (at, station) in stations.iter_mut().enumerate() {
        station.own_s = if Some(at) == longest { longest_s / f64::from(station.copies) } else { 0.0 };
    }
}

#[cfg(test)]
mod tests {
    use narrows_testkit::simulator;

    use super::*;

    #[test]
    fn a_batch_takes_as_long_as_the_station_that_works_longest() {
        let copies = Station { copies: 4, ..Station::new(0.5, 1) };
        let mut stations = [Station::new(0.4, 1), copies, Station::of_waits(0.9, 1)];
        only_longest(&mut stations);
        assert_eq!(stations.map(|station| station.own_time_s()), [0.0, 0.5, 0.0]);
    }

    #[test]
    fn items_of_a_batch_wait_while_others_compute() {
        let steps = vec![(1, 15)];
        let trial = simulator::System { steps, think_ms: 50.0, ..simulator::System::default() }.run("a");
        let mut system = System::read(&DiagnosedTrial::new(&trial, &[])).expect("a system");
        assert!(!system.is_batch, "one request after another");
        let own_s = system.network().unloaded_s() - system.delay_s;
        system.delay_s = own_s * (5.0 / 4.0 - 1.0);
        let mut changed = system.clone();
        let services: Vec<String> = system.programs.iter().map(|program| program.service.clone()).collect();
        services.iter().for_each(|service| changed.scale_cpu(service, 0.0));
        assert!((system.batch_rest_s(&changed) - own_s * 3.0 / 4.0).abs() < 1e-9, "3² + 4² = 5²");
        assert!((system.batch_rest_s(&system) - system.delay_s).abs() < 1e-9, "nothing was changed");
    }

    #[test]
    fn a_rest_within_the_error_of_what_is_known_goes_with_it() {
        let steps = vec![(1, 15), (2, 15)];
        let trial = simulator::System { steps, think_ms: 50.0, ..simulator::System::default() }.run("a");
        let mut system = System::read(&DiagnosedTrial::new(&trial, &[])).expect("a system");
        (system.generator_s, system.delay_s) = (0.0, 0.0);
        let known_s = system.network().unloaded_s();
        let with = |rest: f64| System { delay_s: rest * known_s, ..system.clone() }.unexplained_with(0.5 * known_s);
        assert!((with(0.05) - 0.025 * known_s).abs() < 1e-9, "half of it: {} {known_s}", with(0.05));
        assert_eq!(with(0.9), 0.0, "a part of its own");
    }

    #[test]
    fn cpu_beyond_the_latency_is_used_by_several_processors_at_once() {
        let steps = vec![(1, 15), (2, 15)];
        let trial = simulator::System { steps, think_ms: 50.0, ..simulator::System::default() }.run("a");
        let mut system = System::read(&DiagnosedTrial::new(&trial, &[])).expect("a system");
        assert_eq!(system.processors, 1.0);
        let alone_s = system.levels.iter().map(Level::mean_s).fold(f64::INFINITY, f64::min);
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
