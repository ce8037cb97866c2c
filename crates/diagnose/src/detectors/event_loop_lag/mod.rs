//! `event-loop-lag`: callbacks block a service's event loop, and every request waits for it.
//!
//! The input is the loop delays of Node.js (`read/event_loops.rs`), per replica and load interval. Medians of the
//! readings count, so a single long turn does not. They give an estimate of an event's mean wait for the loop, which is
//! compared with the latency of the load. A request waits at least once, so this is a lower limit.
//!
//! A fully used loop that turns quickly does not lag: that is one thread at its limit, which `cpu-saturation` reports.
//! A loop that lags because its thread is full is listed below that finding. A thread that the machine, its quota or
//! the hypervisor keeps from running looks blocked too, so there is no finding if the thread waits for a processor, its
//! control group is throttled, other programs fill the machine, or the loop itself reports that it is idle.

use narrows_model::finding::evidence::event_loop_lag as evidence;
use narrows_model::finding::{Confidence, Finding, FindingKind};
use narrows_model::series::names;

use crate::Detector;
use crate::read::Reading;
use crate::read::cpu::Cpu;
use crate::read::event_loops::LoopDelay;
use crate::read::intervals::Interval;
use crate::read::periods::period_of;
use crate::read::runtimes::{machine_caveats, serves};
use crate::read::worst_replica::worst_replica;
use crate::stats::finite;
use crate::thresholds::rule_thresholds;

mod words;

rule_thresholds! {
    /// Mean wait of an event for the loop, nanoseconds.
    loop_wait_ns: f64 = 2e7;
    /// The same as a share of the mean latency.
    loop_latency_share: f64 = 0.2;
}

/// See the module.
#[derive(Debug)]
pub struct EventLoopLag;

/// Share of time waiting for a processor from which the thread counts as kept from running.
const THREAD_WAIT_MAX: f64 = 0.15;
/// Minimum ratio of the time a loop runs callbacks to the time it is blocked.
const ACTIVE_PART: f64 = 0.5;

/// A replica with a lagging loop, in one interval.
struct Lag {
    replica: u32,
    at: usize,
    delay: LoopDelay,
}

impl Detector for EventLoopLag {
    fn kind(&self) -> FindingKind {
        FindingKind::EventLoopLag
    }

    fn version(&self) -> u32 {
        1
    }

    fn delays_reading_of_responses(&self) -> bool {
        true
    }

    fn holds_all_requests(&self) -> bool {
        true
    }

    fn detect(&self, reading: &Reading<'_>) -> Vec<Finding> {
        let services = reading.trial.service_names().into_iter().filter(|service| serves(reading, service));
        services.filter_map(|service| of_service(self, reading, service)).collect()
    }
}

fn of_service(detector: &EventLoopLag, reading: &Reading<'_>, service: &str) -> Option<Finding> {
    let cpu = Cpu::new(reading);
    let worst =
        worst_replica(reading, service, |replica, at| lag(&cpu, service, replica, at), |lag| lag.delay.wait_ns)?;
    Some(finding(detector, &cpu, (service, worst.replicas), &worst.shown))
}

fn lag(cpu: &Cpu<'_>, service: &str, replica: u32, at: usize) -> Option<Lag> {
    let (thresholds, interval) = (cpu.thresholds, &cpu.intervals[at]);
    let delay = LoopDelay::of(cpu.trial, service, replica, interval, thresholds.runtime_readings)?;
    let is_long = delay.wait_ns >= thresholds.event_loop_lag.loop_wait_ns
        && delay.wait_ns >= thresholds.event_loop_lag.loop_latency_share * interval.latency_ns;
    let is_own = !is_kept_from_running(cpu, service, replica, interval) && runs_meanwhile(&delay);
    (is_long && interval.rate > 0.0 && is_own).then_some(Lag { replica, at, delay })
}

/// Whether the thread is ready but cannot run, because of other threads or its quota.
fn is_kept_from_running(cpu: &Cpu<'_>, service: &str, replica: u32, interval: &Interval) -> bool {
    let waiting = cpu.cores_of(names::BUSIEST_THREAD_WAIT, service, replica, interval);
    let throttled = cpu.held(service, replica, interval).throttled;
    waiting.is_some_and(|share| share >= THREAD_WAIT_MAX)
        || throttled.is_some_and(|share| share >= cpu.thresholds.cpu_saturation.cpu_throttled_share)
}

/// Whether the loop runs callbacks for about as long as it is blocked.
fn runs_meanwhile(delay: &LoopDelay) -> bool {
    delay.utilization.is_none_or(|active| active >= ACTIVE_PART * delay.blocked_share)
}

fn finding(
    detector: &EventLoopLag,
    cpu: &Cpu<'_>,
    (service, (hot_replicas, replicas)): (&str, (usize, usize)),
    lag: &Lag,
) -> Finding {
    let (interval, delay) = (&cpu.intervals[lag.at], lag.delay);
    let evidence = evidence::EventLoopLag {
        hot_replicas,
        replicas,
        interval: interval.label.clone(),
        load: interval.load_level(),
        rate: finite(interval.rate),
        latency_ns: finite(interval.latency_ns),
        readings: delay.readings,
        wait_ns: finite(delay.wait_ns),
        mean_ns: finite(delay.mean_ns),
        least_ns: finite(delay.least_ns),
        p99_ns: delay.p99_ns.map(finite),
        blocked_share: finite(delay.blocked_share),
        utilization: delay.utilization.map(finite),
        thread_cores: cpu.cores_of(names::BUSIEST_THREAD_CORES, service, lag.replica, interval).map(finite),
        proof: cpu.proof(lag.at),
    };
    Finding {
        resource: service.into(),
        cost_share: finite(delay.wait_ns / interval.latency_ns.max(1.0)).min(1.0),
        confidence: if evidence.proof.is_some() { Confidence::High } else { Confidence::Medium },
        caveats: machine_caveats(cpu, interval),
        period: period_of(cpu.trial, interval.start_ns, interval.end_ns),
        ..Finding::new(evidence, detector.version())
    }
}

#[cfg(test)]
mod tests;
