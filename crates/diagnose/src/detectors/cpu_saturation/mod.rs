//! `cpu-saturation`: a service that uses all the CPU it may or can use.
//!
//! Four limits are looked at, per replica and interval of load: the cap in force; a cap that bursts use up, so that the
//! kernel holds the service again and again while its mean is lower; one core for the busiest thread (an event loop, an
//! interpreter lock; for one without a cap, waiting for a processor counts as being busy); and, for a service without a
//! cap, the whole machine. When no single service is at a limit but the host is, the host is named with its largest
//! consumers. Medians over intervals count, so a peak or a start does not; where programs outside the run use most of it,
//! that is a caveat and not a finding; and where another interval carried as much load with clearly less CPU, or throughput
//! follows the load from one interval to another in which the CPU is used up alike, the CPU was not the limit.
//!
//! Use of CPU alone does not prove that CPU is what holds the throughput back: confidence is high only when throughput
//! stopped growing with users or with the rate offered, or when requests queue: by Little's law where users are given,
//! by the time that requests take once sent where a rate is. Of a cap that only bursts use up, nothing is said without
//! such a proof. The reading is in `cpu.rs`, the words are here.

use narrows_model::finding::{Confidence, Figure, Finding, FindingKind};
use narrows_model::series::names;
use narrows_model::units;

use crate::Detector;
use crate::cpu::{Cpu, Held, Limit, Saturation};
use crate::intervals::Interval;
use crate::periods::period_of;
use crate::reading::Reading;

pub(crate) use crate::cpu::HOST;

/// See the module.
#[derive(Debug)]
pub struct CpuSaturation;

impl Detector for CpuSaturation {
    fn kind(&self) -> FindingKind {
        FindingKind::CpuSaturation
    }

    fn version(&self) -> u32 {
        6
    }

    fn detect(&self, reading: &Reading<'_>) -> Vec<Finding> {
        let cpu = Cpu::of(reading);
        let services = reading.trial.service_names().into_iter().filter_map(|service| cpu.of_service(service));
        let found: Vec<Saturation<'_>> = services.collect();
        let host = cpu.of_host().filter(|_| found.is_empty());
        found.into_iter().chain(host).map(|saturation| finding(self, &cpu, &saturation)).collect()
    }
}

fn finding(detector: &CpuSaturation, cpu: &Cpu<'_>, saturation: &Saturation<'_>) -> Finding {
    let interval = &cpu.intervals[saturation.at];
    let proof = cpu.proof(saturation.at);
    let confidence = if proof.is_some() { Confidence::High } else { Confidence::Medium };
    let held = cpu.held(saturation.service, saturation.replica, interval);
    let words = Words { scene: cpu, saturation, interval, held };
    let mut reasons = vec![words.observation()];
    reasons.push(proof.unwrap_or_else(|| {
        "It is not shown whether more CPU would carry more load: no lighter steady load was measured.".into()
    }));
    reasons.extend(words.standstill());
    Finding {
        title: words.title(),
        resource: saturation.service.into(),
        operation: None,
        cost_share: saturation.level.min(1.0),
        cost_of: words.cost_of(),
        confidence,
        reasons,
        numbers: words.numbers(),
        evidence_text: None,
        exemplars: Vec::new(),
        ruled_out: words.ruled_out(),
        falsified_by: words.falsified_by(),
        advice: words.advice(),
        caveats: words.caveats().into_iter().map(Into::into).collect(),
        period: period_of(cpu.trial, interval.start_ns, interval.end_ns),
        ..detector.finding()
    }
}

struct Words<'a> {
    scene: &'a Cpu<'a>,
    saturation: &'a Saturation<'a>,
    interval: &'a Interval,
    held: Held,
}

impl Words<'_> {
    fn title(&self) -> String {
        let (service, level) = (self.saturation.service, units::percent(self.saturation.level));
        match self.saturation.limit {
            Limit::Cap(cap) => format!("{service} uses up its CPU limit: {level} of {}", units::cores(cap)),
            Limit::Thread => {
                let is_waiting = self.saturation.level < self.scene.thresholds.cpu_thread_share;
                let waiting = if is_waiting { " and waits for a core the rest of the time" } else { "" };
                format!("{service} is limited by one thread, which uses {level} of a core{waiting}")
            }
            Limit::Machine => format!("{service} fills the machine: {level} of {}", self.machine()),
            Limit::Host => format!("the machine's CPU is full: {level} of {}", self.machine()),
        }
    }

    fn machine(&self) -> String {
        units::cores(f64::from(self.scene.trial.cores))
    }

    fn cost_of(&self) -> String {
        let service = self.saturation.service;
        match self.saturation.limit {
            Limit::Cap(cap) => format!("of the CPU limit of {service} ({})", units::cores(cap)),
            Limit::Thread => format!("of one core, by the busiest thread of {service}"),
            Limit::Machine | Limit::Host => format!("of the machine's {}", self.machine()),
        }
    }

    fn observation(&self) -> String {
        let (hot, all) = self.saturation.replicas;
        let replicas = if all > 1 { format!(" ({hot} of {all} replicas)") } else { String::new() };
        format!(
            "Half of the time or more in {} it stood at {} or above{replicas}.",
            self.interval.label,
            units::percent(self.saturation.level)
        )
    }

    /// How often the kernel held the service, when it did.
    fn standstill(&self) -> Option<String> {
        let Limit::Cap(_) = self.saturation.limit else { return None };
        let thresholds = self.scene.thresholds;
        let throttled = self.held.throttled.filter(|share| *share >= thresholds.cpu_throttled_share);
        let waiting = self.held.waiting.filter(|share| *share >= thresholds.cpu_pressure_share);
        let throttled =
            throttled.map(|share| format!("its quota was used up in {} of the periods", units::percent(share)));
        let waiting = waiting
            .map(|share| format!("at least one of its tasks waited for CPU {} of the time", units::percent(share)));
        let said: Vec<String> = throttled.into_iter().chain(waiting).collect();
        (!said.is_empty()).then(|| format!("The kernel held it back: {}.", said.join(", and ")))
    }

    fn numbers(&self) -> Vec<Figure> {
        let mut numbers = vec![
            Figure::new("share of the limit, median", self.saturation.level * 100.0, "%"),
            match self.interval.offered {
                Some(offered) => Figure::new("arrivals offered at that time", offered, "/s"),
                None => Figure::new("users at that time", f64::from(self.interval.vus), ""),
            },
            Figure::new("throughput at that time", self.interval.rate, "/s"),
            Figure::new("mean latency at that time", self.interval.latency_ns, "ns"),
        ];
        if let Some(cores) = self.scene.service_cores(self.saturation.service, self.interval).filter(|c| *c > 0.0) {
            numbers.push(Figure::new("CPU, all replicas, median", cores, "{cores}"));
            if self.interval.rate > 0.0 {
                numbers.push(Figure::new("CPU for each request", cores / self.interval.rate, "s"));
            }
        }
        let held = [
            ("periods in which the quota was used up", self.held.throttled),
            ("time in which a task waited for CPU", self.held.waiting),
        ];
        let known = held.into_iter().filter_map(|(name, share)| Some(Figure::new(name, share? * 100.0, "%")));
        numbers.extend(known);
        if self.saturation.limit == Limit::Host {
            let consumers = self.scene.consumers(self.interval).into_iter();
            numbers
                .extend(consumers.map(|(name, cores)| Figure::new(format!("CPU of {name}, median"), cores, "{cores}")));
        }
        numbers
    }

    fn ruled_out(&self) -> Vec<String> {
        let generator = self.scene.cores_of(names::CPU_CORES, names::GENERATOR, 0, self.interval);
        let mut ruled_out = vec![
            "A peak or a start: this is the median over an interval of counted load, not the largest value.".to_owned(),
            "Idle CPU at the same load: no other interval carried as much load with clearly less CPU.".to_owned(),
        ];
        if let Some(cores) = generator.filter(|_| self.saturation.limit != Limit::Host) {
            ruled_out.push(format!("The load generator: it used {}.", units::cores(cores)));
        }
        ruled_out
    }

    fn falsified_by(&self) -> String {
        let service = self.saturation.service;
        match self.saturation.limit {
            Limit::Cap(_) => format!("A higher CPU limit for {service} does not raise throughput."),
            Limit::Thread => format!("Another worker process or replica of {service} does not raise throughput."),
            Limit::Machine => format!("A machine with more cores does not raise the throughput of {service}."),
            Limit::Host => "The same load on a larger machine is no faster.".into(),
        }
    }

    fn advice(&self) -> String {
        let service = self.saturation.service;
        match self.saturation.limit {
            Limit::Cap(cap) => format!(
                "Take work out of the request in {service} first; then raise its limit of {} or add a replica.",
                units::cores(cap)
            ),
            Limit::Thread => format!(
                "Take work out of the request in {service} first; then spread it over more threads: more worker processes or \
                 replicas, and no long computation on an event loop or under an interpreter lock. A larger machine or a \
                 higher limit will not help."
            ),
            Limit::Machine => {
                format!("Take work out of the request in {service} first; then give it more cores or machines.")
            }
            Limit::Host => format!(
                "Give the services more cores, or move one of the largest consumers elsewhere: {}.",
                self.consumer_list()
            ),
        }
    }

    fn consumer_list(&self) -> String {
        let consumers = self.scene.consumers(self.interval);
        if consumers.is_empty() {
            return "they were not sampled".into();
        }
        let each = consumers.iter().map(|(name, cores)| format!("{name} ({})", units::cores(*cores)));
        each.collect::<Vec<_>>().join(", ")
    }

    fn caveats(&self) -> Vec<String> {
        let host =
            self.scene.host_use(self.interval).map(|used| used.share).filter(|_| self.saturation.limit != Limit::Host);
        let crowded = host.filter(|share| *share >= self.scene.thresholds.cpu_host_share).map(|share| {
            format!(
                "The machine itself was {} busy, so CPU that one process gains, another may lose: {}.",
                units::percent(share),
                self.consumer_list()
            )
        });
        let steal = self.scene.cores_of(names::HOST_CPU_STEAL, "", 0, self.interval);
        let stolen = steal.filter(|share| *share >= self.scene.thresholds.cpu_steal_share).map(|share| {
            format!(
                "The hypervisor took {} of the machine's CPU time for others, so a part of this limit is not the \
                 service's own.",
                units::percent(share)
            )
        });
        crowded.into_iter().chain(stolen).collect()
    }
}

#[cfg(test)]
mod tests;
