//! `time-outside-spans`: users wait much longer than the service's own spans last.
//!
//! Such time passes in the queue of a socket whose service accepts too slowly, in a proxy without spans, in new
//! connections, between small packets that wait for acknowledgements, or while a body is sent after its span ended. Its
//! change with the load distinguishes some of these. It is computed from the means at both ends over all requests of
//! one kind, from their actual sending on: neither the wait for a free user of an open load nor the sampling of traces
//! distorts it. If the generator, the machine or the service is short of CPU, everything waits, also outside spans;
//! that is not a finding here. Without spans, sockets show one of these, delayed acknowledgements (`by_sockets.rs`). Not a
//! finding either is time that the service's own CPU per request can explain.

use narrows_model::finding::evidence::time_outside_spans::{self as evidence, EndToEnd, GapPattern};
use narrows_model::finding::{Caveat, Confidence, Finding, FindingKind};
use narrows_model::run::{Verdict, sidecar_of};
use narrows_model::series::{SeriesKey, names};

use crate::Detector;
use crate::detectors::generator_limited::GeneratorLimited;
use crate::detectors::time_outside_spans::by_sockets::delayed_acknowledgement;
use crate::exemplars::{EXEMPLARS_MAX, exemplar};
use crate::read::Reading;
use crate::read::cpu::Cpu;
use crate::read::intervals::Interval;
use crate::read::programs::is_store_program;
use crate::read::silent_services::Callers;
use crate::read::threads::mean;
use crate::read::time_outside::{Front, Outside, front};
use crate::stats::finite;
use crate::thresholds::rule_thresholds;

mod by_sockets;
mod words;

rule_thresholds! {
    /// Share of the users' mean wait that neither a span covers nor the service's CPU explains, under the heaviest
    /// load.
    outside_share: f64 = 0.3;
    /// The same time, mean, nanoseconds.
    outside_ns: f64 = 5e6;
    /// Spans that were received in an interval.
    outside_requests: f64 = 100.0;
}

/// See the module.
#[derive(Debug)]
pub struct TimeOutsideSpans;

/// Minimum growth factor of the gap from the lightest to the heaviest load that indicates a queue.
const GROWTH: f64 = 2.0;
/// Maximum ratio of the largest gap to the smallest for the gap to be constant.
const SAMENESS: f64 = 1.25;
/// Range of Linux's delayed acknowledgements, nanoseconds: 40 ms at the soonest, and a little later by its clock's
/// ticks.
const DELAYED_ACKNOWLEDGEMENT_NS: std::ops::RangeInclusive<f64> = 38e6..=46e6;

impl Detector for TimeOutsideSpans {
    fn kind(&self) -> FindingKind {
        FindingKind::TimeOutsideSpans
    }

    fn version(&self) -> u32 {
        2
    }

    fn explains_slow_calls(&self) -> bool {
        false
    }

    fn explains_gaps(&self) -> bool {
        false
    }

    fn detect(&self, reading: &Reading<'_>) -> Vec<Finding> {
        let is_trusted =
            reading.trial.trial.validity.verdict == Verdict::Valid && GeneratorLimited.detect(reading).is_empty();
        let front = front(reading).filter(|_| is_trusted);
        let candidate = front.and_then(|front| Candidate::new(reading, front));
        let by_spans = candidate.filter(Candidate::is_worth_saying).map(|candidate| candidate.finding(self));
        by_spans.or_else(|| delayed_acknowledgement(self, reading)).into_iter().collect()
    }
}

/// The loads without a shortage of CPU, timed at both ends.
struct Candidate<'r, 'a> {
    reading: &'r Reading<'a>,
    front: Front<'a>,
    lightest: Outside<'a>,
    heaviest: Outside<'a>,
    pattern: GapPattern,
    cpu_unknown: bool,
}

impl<'r, 'a> Candidate<'r, 'a> {
    fn new(reading: &'r Reading<'a>, front: Front<'a>) -> Option<Self> {
        let (trial, thresholds) = (reading.trial, reading.thresholds);
        let service = front.counted.service.as_str();
        let is_fit = |interval: &&Interval| {
            let errors = trial.load_between(interval.start_ns, interval.end_ns).error_rate();
            interval.is_steady && errors <= thresholds.law_error_share && has_cpu(reading, service, interval)
        };
        let read = reading.intervals.iter().filter(is_fit);
        let mut read: Vec<Outside<'a>> =
            read.filter_map(|interval| front.at(interval, thresholds.time_outside_spans.outside_requests)).collect();
        read.sort_by(|a, b| a.interval.by_demand(b.interval));
        let (lightest, heaviest) = (*read.first()?, *read.last()?);
        let is_known = |one: &Outside<'_>| is_cpu_known(reading, service, one.interval);
        let cpu_unknown = !read.iter().all(is_known);
        Some(Self { pattern: pattern(&read), reading, front, lightest, heaviest, cpu_unknown })
    }

    fn is_worth_saying(&self) -> bool {
        let thresholds = &self.reading.thresholds.time_outside_spans;
        let waited_ns = self.heaviest.gap_ns() - self.service_cpu_ns();
        waited_ns / self.heaviest.client_ns >= thresholds.outside_share && waited_ns >= thresholds.outside_ns
    }

    /// CPU that the service uses per request, nanoseconds. All of it may pass outside the span: in reading requests, in
    /// middleware, in exporting the span.
    fn service_cpu_ns(&self) -> f64 {
        let interval = self.heaviest.interval;
        let service = &self.front.counted.service;
        let is_meant = |key: &SeriesKey| key.name == names::CPU_CORES && key.service == *service;
        let cores = mean(self.reading.trial, interval, is_meant);
        cores.map_or(0.0, |cores| cores / interval.rate * 1e9)
    }

    /// Services that may be in front of the first one with spans.
    fn in_front(&self) -> Vec<String> {
        let trial = self.reading.trial;
        let callers = Callers::new(self.reading);
        let has_spans =
            |service: &str| trial.traces.iter().any(|trace| trace.spans.iter().any(|span| span.service == service));
        let serves_another = |service: &str| sidecar_of(service).is_some_and(|of| of != self.front.counted.service);
        let is_in_front = |service: &&str| {
            !has_spans(service)
                && !callers.have_called(service)
                && !is_store_program(trial, service)
                && !serves_another(service)
        };
        trial.service_names().into_iter().filter(is_in_front).map(str::to_owned).collect()
    }

    fn finding(&self, detector: &TimeOutsideSpans) -> Finding {
        let in_front = self.in_front();
        let is_sure = in_front.is_empty() && !self.cpu_unknown && self.pattern != GapPattern::Unknown;
        let roots = self.front.traces.iter().filter_map(|trace| Some((*trace, trace.root()?)));
        let shown = roots.filter(|(_, root)| self.heaviest.interval.contains(root.start_ns)).take(EXEMPLARS_MAX);
        Finding {
            resource: self.front.counted.service.clone(),
            operation: Some(self.front.operation.clone()),
            cost_share: self.heaviest.share(),
            confidence: if is_sure { Confidence::High } else { Confidence::Medium },
            exemplars: shown.map(|(trace, root)| exemplar(trace, [root])).collect(),
            caveats: vec![Caveat::NetworkAndProxiesOutside],
            ..Finding::new(self.evidence(in_front), detector.version())
        }
    }

    fn evidence(&self, in_front: Vec<String>) -> evidence::TimeOutsideSpans {
        let load = self.reading.trial.counted_load();
        let has_other = self.lightest.interval.by_demand(self.heaviest.interval).is_lt();
        evidence::TimeOutsideSpans {
            heaviest: end_to_end(&self.heaviest),
            lightest: has_other.then(|| end_to_end(&self.lightest)),
            pattern: self.pattern,
            in_front,
            response_bytes: finite(load.bytes as f64 / load.succeeded as f64),
            cpu_unknown: self.cpu_unknown,
            acknowledged_ns: None,
        }
    }
}

fn end_to_end(outside: &Outside<'_>) -> EndToEnd {
    EndToEnd {
        load: outside.interval.load_level(),
        client_ns: finite(outside.client_ns),
        span_ns: finite(outside.span_ns),
    }
}

/// Pattern of the gap over these loads, given lightest first.
fn pattern(read: &[Outside<'_>]) -> GapPattern {
    let gaps = || read.iter().map(Outside::gap_ns);
    let (least, most) = (gaps().fold(f64::INFINITY, f64::min), gaps().fold(0.0, f64::max));
    let (Some(lightest), Some(heaviest)) = (read.first(), read.last()) else { return GapPattern::Unknown };
    let is_delay = gaps().all(|gap_ns| DELAYED_ACKNOWLEDGEMENT_NS.contains(&gap_ns));
    match lightest.interval.by_demand(heaviest.interval).is_lt() {
        true if is_delay => GapPattern::DelayedAcknowledgement,
        true if heaviest.gap_ns() >= GROWTH * lightest.gap_ns() => GapPattern::Grows,
        true if most <= SAMENESS * least => GapPattern::Constant,
        _ => GapPattern::Unknown,
    }
}

/// Whether none of the machine, the service and its threads is known to be short of CPU.
fn has_cpu(reading: &Reading<'_>, service: &str, interval: &Interval) -> bool {
    let thresholds = reading.thresholds;
    let cpu = Cpu::new(reading);
    let is_full = |share: Option<f64>, most: f64| share.is_some_and(|share| share >= most);
    let steal = cpu.stolen(service, 0, interval);
    !is_full(cpu.machine(interval).map(|machine| machine.used_share()), thresholds.cpu_host_share)
        && !is_full(steal, thresholds.cpu_steal_share)
        && !is_full(cpu.busy_share(service, interval), thresholds.cpu_saturation.cpu_limit_share)
}

fn is_cpu_known(reading: &Reading<'_>, service: &str, interval: &Interval) -> bool {
    let cpu = Cpu::new(reading);
    cpu.machine(interval).is_some() && cpu.service_cores(service, interval).is_some()
}

#[cfg(test)]
mod tests;
