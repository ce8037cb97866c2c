//! Texts of `cpu-saturation` findings.

use narrows_model::finding::evidence::cpu::CpuLimit;
use narrows_model::finding::evidence::cpu_saturation::{CpuSaturation, Held};
use narrows_model::finding::{Figure, Finding};
use narrows_model::limit::MachineCpu;
use narrows_model::units;

use crate::detectors::words::{Words, proof};
use crate::sentence::list;
use crate::words::consumers;

/// Share of the machine from which programs outside the run come before any other advice.
const FOREIGN_SHARE_MIN: f64 = 0.1;

/// Share of another machine from which a service there needs more cores, whatever else runs beside it.
const OWN_SHARE_MIN: f64 = 0.7;

/// Mean use, as a share of the limit, below which only bursts use the limit up.
const BURSTS_BELOW: f64 = 0.85;

impl Words for CpuSaturation {
    fn title(&self, finding: &Finding) -> String {
        let (service, level) = (&finding.resource, units::percent(self.level));
        match self.limit {
            CpuLimit::Cap { cores } => match throttled_in_bursts(self) {
                Some(share) => format!(
                    "{service} is throttled at its CPU limit of {}, in {} of the periods",
                    units::cores(cores),
                    units::percent(share)
                ),
                None => format!("{service} uses up its CPU limit: {level} of {}", units::cores(cores)),
            },
            CpuLimit::Thread => {
                let waiting = if self.waits_for_core { " and waits for a core the rest of the time" } else { "" };
                format!("{service} is limited by one thread, which uses {level} of a core{waiting}")
            }
            CpuLimit::Machine => format!("{service} fills the machine: {level} of {}", machine(self)),
            CpuLimit::Host => format!("the machine's CPU is full: {level} of {}", machine(self)),
            CpuLimit::OtherMachine { cores, used } => {
                format!(
                    "the machine of {service} is full: {level} of {}, {used:.1} of them by {service}",
                    units::cores(cores)
                )
            }
        }
    }

    fn cost_of(&self, finding: &Finding) -> String {
        let service = &finding.resource;
        match self.limit {
            CpuLimit::Cap { cores } => format!("of the CPU limit of {service} ({})", units::cores(cores)),
            CpuLimit::Thread => format!("of one core, by the busiest thread of {service}"),
            CpuLimit::Machine | CpuLimit::Host => format!("of the machine's {}", machine(self)),
            CpuLimit::OtherMachine { cores, .. } => {
                format!("of the {} of the machine of {service}", units::cores(cores))
            }
        }
    }

    fn reasons(&self, _finding: &Finding) -> Vec<String> {
        let replicas = if self.replicas > 1 {
            format!(" ({} of {} replicas)", self.hot_replicas, self.replicas)
        } else {
            String::new()
        };
        let mut reasons = vec![
            format!(
                "Half of the time or more in {} it stood at {} or above{replicas}.",
                self.interval,
                units::percent(self.level)
            ),
            proof(self.proof.as_ref()),
        ];
        if matches!(self.limit, CpuLimit::Cap { .. }) {
            reasons.extend(held_back(&self.held));
        }
        reasons
    }

    fn figures(&self, _finding: &Finding) -> Vec<Figure> {
        let mut figures = vec![
            Figure::new("share of the limit, median", self.level * 100.0, "%"),
            match self.load.arrivals {
                Some(arrivals) => Figure::new("arrivals offered at that time", arrivals, "/s"),
                None => Figure::new("users at that time", f64::from(self.load.users), ""),
            },
            Figure::new("throughput at that time", self.rate, "/s"),
            Figure::new("mean latency at that time", self.latency_ns, "ns"),
        ];
        if let Some(cores) = self.cores {
            figures.push(Figure::new("CPU, all replicas, median", cores, "{cores}"));
            if self.rate > 0.0 {
                figures.push(Figure::new("CPU for each request", cores / self.rate, "s"));
            }
        }
        let held = [
            ("periods in which the quota was used up", self.held.throttled_share),
            ("time in which a task waited for CPU", self.held.waiting_share),
            ("requests under way that waited for CPU in it", self.held.requests_share),
        ];
        figures.extend(held.into_iter().filter_map(|(name, share)| Some(Figure::new(name, share? * 100.0, "%"))));
        let consumers = self.consumers.0.iter();
        figures.extend(
            consumers.map(|each| Figure::new(format!("CPU of {}, median", each.name()), each.cores, "{cores}")),
        );
        figures
    }

    fn ruled_out(&self, _finding: &Finding) -> Vec<String> {
        let mut ruled_out = vec![
            "A peak or a start: this is the median over an interval of counted load, not the largest value.".to_owned(),
            "Idle CPU at the same load: no other interval carried as much load with clearly less CPU.".to_owned(),
        ];
        let is_beside = !matches!(self.limit, CpuLimit::Host | CpuLimit::OtherMachine { .. });
        if let Some(cores) = self.generator_cores.filter(|_| is_beside) {
            ruled_out.push(format!("The load generator: it used {}.", units::cores(cores)));
        }
        ruled_out
    }

    fn falsified_by(&self, finding: &Finding) -> String {
        let service = &finding.resource;
        match self.limit {
            CpuLimit::Cap { .. } => format!("A higher CPU limit for {service} does not raise throughput."),
            CpuLimit::Thread => format!("Another worker process or replica of {service} does not raise throughput."),
            CpuLimit::Machine => format!("A machine with more cores does not raise the throughput of {service}."),
            CpuLimit::Host => "The same load on a larger machine is no faster.".into(),
            CpuLimit::OtherMachine { .. } => {
                format!("With more cores, or less beside it, the machine of {service} does not carry more.")
            }
        }
    }

    fn advice(&self, finding: &Finding) -> String {
        let service = &finding.resource;
        match self.limit {
            CpuLimit::Cap { cores } if throttled_in_bursts(self).is_some() => format!(
                "Raise the quota of {service} ({}; `cpu.max` of its control group, `--cpus`, `limits.cpu`): bursts use it up \
                 before its period ends, and all its threads then stand still. Or let fewer threads run at once: as many as \
                 its limit has cores.",
                units::cores(cores)
            ),
            CpuLimit::Cap { cores } => format!(
                "Take work out of the request in {service} first; then raise its limit of {} or add a replica.",
                units::cores(cores)
            ),
            CpuLimit::Thread => format!(
                "Take work out of the request in {service} first; then spread it over more threads: more worker processes or \
                 replicas, and no long computation on an event loop or under an interpreter lock. A larger machine or a \
                 higher limit will not help."
            ),
            CpuLimit::Machine => {
                format!("Take work out of the request in {service} first; then give it more cores or machines.")
            }
            CpuLimit::OtherMachine { cores, used } if used >= OWN_SHARE_MIN * cores => {
                format!("Take work out of the request in {service} first; then give it more cores or machines.")
            }
            CpuLimit::OtherMachine { cores, used } => format!(
                "Look at what else runs on the machine of {service}: it uses {} of CPU. Move it or {service} elsewhere, or give \
                 that machine more cores.",
                units::cores((cores * self.level - used).max(0.0))
            ),
            CpuLimit::Host => match foreign(self) {
                Some(machine) => format!(
                    "Measure again on a machine that does nothing else: other programs used {} of its {}, the hypervisor took {}. \
                     More cores for the services would only make up for that.",
                    units::number(machine.others),
                    units::cores(machine.all),
                    units::number(machine.stolen)
                ),
                None => format!(
                    "Give the services more cores, or move one of the largest consumers elsewhere: {}.",
                    consumers(&self.consumers)
                ),
            },
        }
    }
}

/// Share of throttled periods, if bursts use up the quota of a service with a lower mean; `None` if the mean is at the
/// limit or the kernel does not throttle.
fn throttled_in_bursts(evidence: &CpuSaturation) -> Option<f64> {
    let held = &evidence.held;
    let throttled = held.throttled_share.filter(|share| *share >= held.throttled_share_min);
    throttled.filter(|_| evidence.level < BURSTS_BELOW)
}

fn machine(evidence: &CpuSaturation) -> String {
    units::cores(f64::from(evidence.machine_cores))
}

/// The machine's CPU, if programs outside the run used a good part of it.
fn foreign(evidence: &CpuSaturation) -> Option<&MachineCpu> {
    evidence.machine.as_ref().filter(|machine| machine.foreign() >= FOREIGN_SHARE_MIN * machine.all)
}

/// Sentence on how often the kernel throttled the service or made it wait; `None` if it did so rarely.
fn held_back(held: &Held) -> Option<String> {
    let throttled = held
        .throttled_share
        .filter(|share| *share >= held.throttled_share_min)
        .map(|share| format!("its quota was used up in {} of the periods", units::percent(share)));
    let waiting = held
        .waiting_share
        .filter(|share| *share >= held.waiting_share_min)
        .map(|share| format!("at least one of its tasks waited for CPU {} of the time", units::percent(share)));
    let requests = held
        .requests_share
        .filter(|share| *share >= held.requests_share_min)
        .map(|share| format!("{} of the requests under way waited for CPU in it", units::percent(share)));
    let said: Vec<String> = throttled.into_iter().chain(waiting).chain(requests).collect();
    (!said.is_empty()).then(|| format!("The kernel held it back: {}.", list(&said)))
}
