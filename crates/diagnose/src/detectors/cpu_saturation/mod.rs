//! `cpu-saturation`: a service uses all the CPU that it may or can use.
//!
//! Four limits are checked per replica and load interval. The first is the cap in force. The second is a cap that
//! bursts use up: the kernel throttles the service repeatedly although its mean is lower. The third is one core for the
//! busiest thread (an event loop, an interpreter lock); without a cap, waiting for a processor counts as busy. The
//! fourth, for a service without a cap, is the whole machine, also if several of its threads use a core each. If the
//! host is at its limit but no single service is, the finding names the host and its largest consumers. A service elsewhere
//! is compared with the machine that it runs on, where an agent looked at it. Medians over
//! intervals count, so peaks and starts do not. Heavy use by programs outside the run is a caveat, not a finding. The
//! CPU was not the limit if another interval carried as much load with clearly less CPU, or if throughput follows the
//! load between intervals that use up the CPU alike.
//!
//! CPU use alone does not prove that CPU limits the throughput. Confidence is high only if throughput stopped growing
//! with users or with the offered rate, or if requests queue: by Little's law for a given number of users, by the time
//! from sending to response for a given rate. A cap that only bursts use up is reported only with such a proof, or if a
//! good part of the requests under way wait for a processor in the service, as its threads and sockets show.
//! `cpu.rs` reads the CPU series.

use narrows_model::finding::evidence::cpu::{CpuConsumers, CpuLimit};
use narrows_model::finding::evidence::cpu_saturation as evidence;
use narrows_model::finding::{Caveat, Confidence, Finding, FindingKind};
use narrows_model::series::names;

use crate::Detector;
use crate::read::Reading;
use crate::read::cpu::{Cpu, Saturation};
use crate::read::intervals::Interval;
use crate::read::periods::period_of;
use crate::stats::finite;
use crate::thresholds::rule_thresholds;

pub(crate) use crate::read::cpu::HOST;

mod words;

rule_thresholds! {
    /// Share of a service's CPU limit.
    cpu_limit_share: f64 = 0.85;
    /// Share of one core that a replica's busiest thread uses. Higher than for a cap: an event loop at 85 % makes its
    /// requests wait but still takes on more of them; a cap that is used up takes on none.
    cpu_thread_share: f64 = 0.90;
    /// Largest share of the host's CPU that other programs use where the host is named. With more, they may also be why
    /// a load does not fit.
    cpu_foreign_share: f64 = 0.25;
    /// Share of periods in which a control group used up its quota, from which bursts count.
    cpu_throttled_share: f64 = 0.05;
    /// Share of the time in which a task of the group waited for CPU, from which bursts count.
    cpu_pressure_share: f64 = 0.10;
    /// Share of the limit that a service limited by bursts must use, median.
    cpu_throttled_limit_share: f64 = 0.70;
    /// Share of the requests under way that must wait for a processor in a service limited by bursts, unless throughput
    /// shows that the load waits. Other waits count from the same share of the latency.
    cpu_held_requests_share: f64 = 0.20;
    /// Throughput has stopped growing when it grows by less than this share of the growth of users or of the offered
    /// rate.
    flat_growth_share: f64 = 0.25;
    /// Requests queue when latency is this many times that of the lightest load.
    queueing_latency_factor: f64 = 1.5;
    /// Little's law holds when users ÷ (rate × latency) is within this share of 1.
    little_tolerance: f64 = 0.15;
}

/// See the module.
#[derive(Debug)]
pub struct CpuSaturation;

impl Detector for CpuSaturation {
    fn kind(&self) -> FindingKind {
        FindingKind::CpuSaturation
    }

    fn version(&self) -> u32 {
        8
    }

    fn holds_all_requests(&self) -> bool {
        true
    }

    fn detect(&self, reading: &Reading<'_>) -> Vec<Finding> {
        let cpu = Cpu::new(reading);
        let services = reading.trial.service_names().into_iter().filter_map(|service| cpu.of_service(service));
        let found: Vec<Saturation<'_>> = services.collect();
        let host = cpu.of_host().filter(|_| found.is_empty());
        found.into_iter().chain(host).map(|saturation| finding(self, &cpu, &saturation)).collect()
    }
}

fn finding(detector: &CpuSaturation, cpu: &Cpu<'_>, saturation: &Saturation<'_>) -> Finding {
    let interval = &cpu.intervals[saturation.at];
    let evidence = evidence_of(cpu, saturation, interval);
    Finding {
        resource: saturation.service.into(),
        cost_share: saturation.level.min(1.0),
        confidence: if evidence.proof.is_some() { Confidence::High } else { Confidence::Medium },
        caveats: caveats(cpu, saturation, interval),
        period: period_of(cpu.trial, interval.start_ns, interval.end_ns),
        ..Finding::new(evidence, detector.version())
    }
}

fn evidence_of(cpu: &Cpu<'_>, saturation: &Saturation<'_>, interval: &Interval) -> evidence::CpuSaturation {
    let (service, limit) = (saturation.service, saturation.limit);
    let held = cpu.held(service, saturation.replica, interval);
    let is_host = limit == CpuLimit::Host;
    evidence::CpuSaturation {
        limit,
        level: finite(saturation.level),
        waits_for_core: limit == CpuLimit::Thread && saturation.level < cpu.thresholds.cpu_saturation.cpu_thread_share,
        machine_cores: cpu.trial.cores,
        hot_replicas: saturation.replicas.0,
        replicas: saturation.replicas.1,
        interval: interval.label.clone(),
        load: interval.load_level(),
        rate: finite(interval.rate),
        latency_ns: finite(interval.latency_ns),
        cores: cpu.service_cores(service, interval).filter(|cores| *cores > 0.0).map(finite),
        held: evidence::Held {
            throttled_share: held.throttled.map(finite),
            waiting_share: held.waiting.map(finite),
            requests_share: cpu.requests_held(service, saturation.at).map(finite),
            throttled_share_min: cpu.thresholds.cpu_saturation.cpu_throttled_share,
            waiting_share_min: cpu.thresholds.cpu_saturation.cpu_pressure_share,
            requests_share_min: cpu.thresholds.cpu_saturation.cpu_held_requests_share,
        },
        proof: cpu.proof(saturation.at),
        generator_cores: cpu.cores_of(names::CPU_CORES, names::GENERATOR, 0, interval).map(finite),
        consumers: if is_host { cpu.consumers(interval) } else { CpuConsumers::default() },
        machine: cpu.machine(interval).filter(|_| is_host),
    }
}

fn caveats(cpu: &Cpu<'_>, saturation: &Saturation<'_>, interval: &Interval) -> Vec<Caveat> {
    let is_beside = saturation.limit != CpuLimit::Host && cpu.is_here(saturation.service);
    let busy = cpu
        .machine(interval)
        .filter(|_| is_beside)
        .map(|machine| machine.used_share())
        .filter(|share| *share >= cpu.thresholds.cpu_host_share)
        .map(|share| Caveat::MachineBusy { share: finite(share), consumers: cpu.consumers(interval) });
    let steal = cpu.stolen(saturation.service, saturation.replica, interval);
    let stolen = steal
        .filter(|share| *share >= cpu.thresholds.cpu_steal_share)
        .map(|share| Caveat::CpuStolen { share: finite(share) });
    busy.into_iter().chain(stolen).collect()
}

#[cfg(test)]
mod tests;
