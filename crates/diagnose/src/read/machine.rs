//! The machine's CPU, divided among those who used it, and whether the services had to wait for it.
//!
//! Other programs on a full machine hold a system back only as far as its threads wait for a processor. Where they do
//! not, its figures are its own, however busy the machine is: one that mostly sleeps hardly needs a processor.

use narrows_model::breakdown::ThreadsBy;
use narrows_model::evidence::TrialEvidence;
use narrows_model::limit::MachineCpu;
use narrows_model::run::Machine;
use narrows_model::series::names;

use crate::read::Reading;
use crate::read::cpu::Cpu;
use crate::read::intervals::Interval;
use crate::stats::finite;

/// Threads of a service that run or wait for a processor, a mean, from which on one of them may do so nearly always.
pub(crate) const RUNNABLE_MIN: f64 = 0.7;

/// The share of the machine's CPU that went to other programs and the hypervisor in the counted windows, 0 to 1; none
/// when
/// it was not sampled.
pub(crate) fn foreign_share(trial: &TrialEvidence) -> Option<f64> {
    let mean = |name: &str, service: &str| trial.counted_usage(name, service);
    let host = Some(mean(names::HOST_CPU_UTILIZATION, "")).filter(|host| host.points > 0)?;
    let services = names_here(trial).filter(|service| *service != names::GENERATOR);
    let own: f64 = services.chain([names::GENERATOR]).map(|service| mean(names::CPU_CORES, service).mean).sum();
    Some((host.mean - own / f64::from(trial.cores.max(1))).clamp(0.0, 1.0))
}

/// The services on this machine.
fn names_here(trial: &TrialEvidence) -> impl Iterator<Item = &str> {
    let is_here = |service: &&str| {
        let mut instances = trial.services.iter().filter(|instance| instance.service == *service);
        instances.all(|instance| instance.machine == Machine::Here)
    };
    trial.service_names().into_iter().filter(is_here)
}

impl Cpu<'_> {
    /// `None` if the machine was not sampled. The parts are medians of points that need not agree: one that is left out
    /// would be taken for that of other programs. What the parts add up to beyond the machine's own figure is measuring
    /// error and taken off nothing: other programs then have 0.
    pub(crate) fn machine(&self, interval: &Interval) -> Option<MachineCpu> {
        let all = f64::from(self.trial.cores.max(1));
        let of_host = |name: &str| self.cores_of(name, "", 0, interval);
        let used = of_host(names::HOST_CPU_UTILIZATION)? * all;
        let stolen = of_host(names::HOST_CPU_STEAL).unwrap_or(0.0) * all;
        let part = |service: &str, replica| interval.rough_median_of(self.trial, (names::CPU_CORES, service, replica));
        let here = self.trial.services.iter().filter(|instance| instance.machine == Machine::Here);
        let services: f64 = here.filter_map(|instance| part(&instance.service, instance.replica)).sum();
        let narrows = part(names::GENERATOR, 0).unwrap_or(0.0);
        let others = (used - stolen - services - narrows).max(0.0);
        Some(MachineCpu {
            all,
            services: finite(services),
            narrows: finite(narrows),
            others: finite(others),
            stolen: finite(stolen),
        })
    }
}

/// True if programs outside the run fill the machine in an interval, by its place among all, so that the services wait
/// for
/// processors and everything takes longer than it would.
pub(crate) fn is_crowded_out(reading: &Reading<'_>, at: usize) -> bool {
    full(reading, at).is_some_and(|machine| machine.is_mostly_foreign()) && waits_for_cpu(reading, at)
}

/// True if the machine's CPU may be what holds the load back: the run uses it up, or is crowded out.
pub(crate) fn is_short_of_cpu(reading: &Reading<'_>, at: usize) -> bool {
    full(reading, at).is_some_and(|machine| !machine.is_mostly_foreign() || waits_for_cpu(reading, at))
}

fn full(reading: &Reading<'_>, at: usize) -> Option<MachineCpu> {
    let machine = Cpu::new(reading).machine(&reading.intervals[at]);
    machine.filter(|machine| machine.used_share() >= reading.thresholds.cpu_host_share)
}

/// True if threads of the services wait for a processor for a notable part of the requests' time, or one of them that
/// all
/// requests may depend on, such as an event loop. Where they were not sampled they may.
pub(crate) fn waits_for_cpu(reading: &Reading<'_>, at: usize) -> bool {
    let Some(services) = reading.spent().threads.get(at) else { return true };
    let notable = reading.thresholds.cpu_wait_share * reading.intervals[at].in_flight();
    let may_be_one_thread =
        |threads: &ThreadsBy| threads.waiting_for_cpu > 0.0 && threads.on_cpu + threads.waiting_for_cpu >= RUNNABLE_MIN;
    threads_waiting(reading, at).is_none_or(|threads| threads >= notable)
        || services.iter().any(|service| may_be_one_thread(&service.threads))
}

/// Threads of the services that wait for a processor in an interval, a mean; `None` if they were not sampled.
pub(crate) fn threads_waiting(reading: &Reading<'_>, at: usize) -> Option<f64> {
    let services = reading.spent().threads.get(at).filter(|services| !services.is_empty())?;
    Some(services.iter().map(|service| service.threads.waiting_for_cpu).sum())
}
