//! `cpu-saturation`: a service that uses all the CPU it may or can use.
//!
//! Four limits are looked at, per replica and interval of load: the cap in force; a cap that bursts use up, so that the
//! kernel holds the service again and again while its mean is lower; one core for the busiest thread (an event loop, an
//! interpreter lock; for one without a cap, waiting for a processor counts as being busy); and, for a service without a
//! cap, the whole machine, also where several of its threads use a core each. When no single service is at a limit but
//! the host is, the host is named with its largest consumers. Medians over intervals count, so a peak or a start does
//! not; where programs outside the run use most of it, that is a caveat and not a finding; and where another interval
//! carried as much load with clearly less CPU, or throughput follows the load from one interval to another in which the
//! CPU is used up alike, the CPU was not the limit.
//!
//! Use of CPU alone does not prove that CPU is what holds the throughput back: confidence is high only when throughput
//! stopped growing with users or with the rate offered, or when requests queue: by Little's law where users are given,
//! by the time that requests take once sent where a rate is. Of a cap that only bursts use up, nothing is said without
//! such a proof. The reading is in `cpu.rs`.

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

pub(crate) use crate::read::cpu::HOST;

mod words;

/// See the module.
#[derive(Debug)]
pub struct CpuSaturation;

impl Detector for CpuSaturation {
    fn kind(&self) -> FindingKind {
        FindingKind::CpuSaturation
    }

    fn version(&self) -> u32 {
        7
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
        waits_for_core: limit == CpuLimit::Thread && saturation.level < cpu.thresholds.cpu_thread_share,
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
            throttled_share_min: cpu.thresholds.cpu_throttled_share,
            waiting_share_min: cpu.thresholds.cpu_pressure_share,
        },
        proof: cpu.proof(saturation.at),
        generator_cores: cpu.cores_of(names::CPU_CORES, names::GENERATOR, 0, interval).map(finite),
        consumers: if is_host { cpu.consumers(interval) } else { CpuConsumers::default() },
        machine: cpu.machine(interval).filter(|_| is_host),
    }
}

fn caveats(cpu: &Cpu<'_>, saturation: &Saturation<'_>, interval: &Interval) -> Vec<Caveat> {
    let machine = cpu.machine(interval).filter(|_| saturation.limit != CpuLimit::Host);
    let busy = machine
        .map(|machine| machine.used_share())
        .filter(|share| *share >= cpu.thresholds.cpu_host_share)
        .map(|share| Caveat::MachineBusy { share: finite(share), consumers: cpu.consumers(interval) });
    let steal = cpu.cores_of(names::HOST_CPU_STEAL, "", 0, interval);
    let stolen = steal
        .filter(|share| *share >= cpu.thresholds.cpu_steal_share)
        .map(|share| Caveat::CpuStolen { share: finite(share) });
    busy.into_iter().chain(stolen).collect()
}

#[cfg(test)]
mod tests;
