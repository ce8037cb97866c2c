//! `descriptor-exhaustion`: a process has nearly as many open files and connections as its limit allows.
//!
//! A process without a free descriptor can neither accept nor open a connection or a file. Two cases are found. In the
//! first, a service is short of descriptors now: its errors report it (`reports.rs`), or its open descriptors are at
//! the limit while requests fail. In the second, it will be: under one load the number grows steadily over four
//! quarters (`read/trend.rs`) and would reach the limit before it levels off.
//!
//! Many open descriptors alone are not a finding. Servers size their pools and caches by the limit, and stay below it.

use narrows_model::finding::evidence::descriptor_exhaustion as evidence;
use narrows_model::finding::{Caveat, Confidence, Evidence, Finding, FindingKind, Role};
use narrows_model::run::ServiceInstance;
use narrows_model::series::{Point, Series, names};

use crate::Detector;
use crate::exemplars::{TEXT_CHARS_MAX, clipped};
use crate::read::Reading;
use crate::read::error_reports::{ErrorReports, Least};
use crate::read::intervals::Interval;
use crate::read::periods::period_of;
use crate::read::programs::is_store_program;
use crate::read::trend::{Quarters, quarters_of};
use crate::stats::finite;
use crate::thresholds::rule_thresholds;

mod reports;
mod words;

rule_thresholds! {
    /// Share of its limit from which a process has no descriptor left.
    descriptor_full_share: f64 = 0.95;
    /// Readings in an interval that must show it.
    descriptor_readings: usize = 3;
    /// Traces that must show an error that says so.
    descriptor_traces: usize = 3;
    /// Share of all requests that must meet such an error.
    descriptor_error_share: f64 = 0.005;
    /// Growth under one load, as a share of the limit.
    descriptor_growth_share: f64 = 0.05;
}

/// See the module.
#[derive(Debug)]
pub struct DescriptorExhaustion;

impl Detector for DescriptorExhaustion {
    fn kind(&self) -> FindingKind {
        FindingKind::DescriptorExhaustion
    }

    fn version(&self) -> u32 {
        1
    }

    fn role(&self, finding: &Finding) -> Role {
        let Evidence::DescriptorExhaustion(evidence) = &finding.evidence else { return Role::InTheWay };
        if evidence.failures.is_some() { Role::InTheWay } else { Role::CostsMore }
    }

    fn detect(&self, reading: &Reading<'_>) -> Vec<Finding> {
        let thresholds = &reading.thresholds.descriptor_exhaustion;
        let least = Least { traces: thresholds.descriptor_traces, share: thresholds.descriptor_error_share };
        let reported = ErrorReports::by_service(reading, reports::reported, least);
        let services = reading.trial.service_names().into_iter();
        services.filter_map(|service| of_service(self, reading, service, reported.get(service))).collect()
    }
}

/// The readings of a replica.
#[derive(Clone, Copy)]
struct Replica<'a> {
    reading: &'a Reading<'a>,
    instance: &'a ServiceInstance,
    utilization: &'a [Point],
    limits: &'a [Point],
}

/// A replica that is short of descriptors, or will be.
struct AffectedReplica<'a> {
    replica: Replica<'a>,
    interval: &'a Interval,
    descriptors: evidence::Descriptors,
    /// Share of the load's requests that fail meanwhile; `None` if the number only grows.
    failing: Option<f64>,
    growth: Option<evidence::Growth>,
}

impl<'a> Replica<'a> {
    fn new(reading: &'a Reading<'a>, instance: &'a ServiceInstance) -> Self {
        let points = |name: &str| -> &'a [Point] {
            let is_it = |series: &&Series| {
                let key = &series.key;
                key.name == name && key.service == instance.service && key.replica == instance.replica
            };
            reading.trial.series.iter().find(is_it).map_or(&[], |series| &series.points)
        };
        Self {
            reading,
            instance,
            utilization: points(names::DESCRIPTORS_UTILIZATION),
            limits: points(names::DESCRIPTORS_LIMIT),
        }
    }

    fn shares(&self, interval: &Interval) -> Vec<Point> {
        let is_in = |point: &&Point| interval.contains(point.time_ns) && point.value.is_finite();
        self.utilization.iter().filter(is_in).copied().collect()
    }

    /// Last reading of the limit in an interval.
    fn limit(&self, interval: &Interval) -> Option<f64> {
        let here = self.limits.iter().rev().find(|point| interval.contains(point.time_ns));
        here.map(|point| point.value).filter(|limit| limit.is_finite() && *limit >= 1.0)
    }

    fn most(&self, interval: &Interval) -> Option<evidence::Descriptors> {
        let limit = self.limit(interval)?;
        let share = self.shares(interval).iter().map(|point| point.value).max_by(f64::total_cmp)?;
        Some(evidence::Descriptors { open: finite(share * limit), limit: finite(limit) })
    }

    /// The interval with the most descriptors relative to the limit; `None` if they were not sampled.
    fn fullest(&self) -> Option<(&'a Interval, evidence::Descriptors)> {
        let all = self.reading.intervals.iter().filter_map(|interval| Some((interval, self.most(interval)?)));
        all.max_by(|(_, a), (_, b)| (a.open / a.limit).total_cmp(&(b.open / b.limit)))
    }

    /// The interval where the replica is at its limit while requests fail, or while the service's errors report it; the
    /// one with most failures.
    fn short(&self, is_reported: bool) -> Option<AffectedReplica<'a>> {
        let thresholds = self.reading.thresholds;
        let at_limit = |interval: &&'a Interval| {
            let full = self
                .shares(interval)
                .into_iter()
                .filter(|point| point.value >= thresholds.descriptor_exhaustion.descriptor_full_share);
            full.count() >= thresholds.descriptor_exhaustion.descriptor_readings
        };
        let all = self.reading.intervals.iter().filter(at_limit).filter_map(|interval| {
            let failing = self.failing(interval);
            let is_short = is_reported || failing >= thresholds.law_error_share;
            let descriptors = self.most(interval).filter(|_| is_short)?;
            Some(AffectedReplica {
                replica: *self,
                interval,
                descriptors,
                failing: Some(failing),
                growth: self.growth_in(interval),
            })
        });
        all.max_by(|a, b| a.failing.unwrap_or(0.0).total_cmp(&b.failing.unwrap_or(0.0)))
    }

    /// Share of requests that fail. Statuses count too, because a service without a descriptor cannot open connections
    /// of its own. If there are spans, failed server spans count instead, which excludes statuses below 500; or broken
    /// connections, if they are more.
    fn failing(&self, interval: &Interval) -> f64 {
        let load = self.reading.trial.load_between(interval.start_ns, interval.end_ns);
        let broken = load.errors.connect + load.errors.reset + load.errors.timeout;
        let broken = broken as f64 / (load.succeeded + load.errors.total()).max(1) as f64;
        self.failed_operations().map_or_else(|| load.error_rate(), |failed| failed.max(broken))
    }

    /// Share of the service's server spans that failed; `None` without spans.
    fn failed_operations(&self) -> Option<f64> {
        let operations = self.reading.trial.operations.iter();
        let of_service = operations.filter(|operation| operation.service == self.instance.service);
        let (failed, all) = of_service.fold((0.0, 0.0), |(failed, all), operation| {
            (failed + operation.failed, all + operation.failed + operation.completed)
        });
        (all > 0.0).then(|| failed / all)
    }

    fn growing(&self) -> Option<AffectedReplica<'a>> {
        let thresholds = self.reading.thresholds;
        let is_long = |one: &&Interval| one.is_steady && one.end_ns - one.start_ns >= thresholds.memory_span_ns;
        let interval = self.reading.intervals.iter().rfind(is_long)?;
        let growth = self.growth_in(interval)?;
        let descriptors = self.most(interval)?;
        Some(AffectedReplica { replica: *self, interval, descriptors, failing: None, growth: Some(growth) })
    }

    /// Steady growth towards the limit. Databases manage their own descriptors and are skipped, as are overloaded
    /// services, where each waiting request keeps its connection open.
    fn growth_in(&self, interval: &Interval) -> Option<evidence::Growth> {
        let (trial, thresholds) = (self.reading.trial, self.reading.thresholds);
        let is_long = interval.is_steady && interval.end_ns - interval.start_ns >= thresholds.memory_span_ns;
        if !is_long || is_store_program(trial, &self.instance.service) || self.is_behind(interval) {
            return None;
        }
        let limit = self.limit(interval)?;
        let open: Vec<Point> =
            self.shares(interval).iter().map(|point| Point { value: point.value * limit, ..*point }).collect();
        let quarters = Quarters::new(&open, interval, thresholds.memory_quarter_readings)?;
        let ended = quarters_of(interval).map(|(start_ns, end_ns)| self.ended(start_ns, end_ns));
        let per_second = quarters.gain() / (0.75 * interval.seconds());
        let is_much =
            per_second * interval.seconds() >= thresholds.descriptor_exhaustion.descriptor_growth_share * limit;
        if !quarters.rise_steadily() || !is_much || quarters.level(ended) < limit {
            return None;
        }
        let requests: f64 = ended.iter().sum();
        Some(evidence::Growth {
            length_ns: interval.end_ns - interval.start_ns,
            start: finite(quarters.start()),
            end: finite(quarters.end),
            per_second: finite(per_second),
            per_request: (requests > 0.0).then(|| finite(per_second * interval.seconds() / requests)),
            until_limit_ns: finite(((limit - quarters.end) / per_second * 1e9).max(0.0)),
        })
    }

    /// Whether an open load offers more requests than complete.
    fn is_behind(&self, interval: &Interval) -> bool {
        let least = 1.0 - self.reading.thresholds.offered_load_limited.offered_rate_share;
        let ended = self.ended(interval.start_ns, interval.end_ns) / interval.seconds().max(1.0);
        interval.offered.is_some_and(|offered| ended < least * offered)
    }

    /// Number of the load's requests that ended between two instants, counted in whole seconds.
    fn ended(&self, start_ns: i64, end_ns: i64) -> f64 {
        let rows = self.reading.trial.seconds.iter().filter(|row| (start_ns..end_ns).contains(&row.start_ns));
        rows.map(|row| (row.succeeded + row.errors.total()) as f64).sum()
    }
}

/// Replicas of a service, and those that are short of descriptors.
struct ReplicaCounts {
    affected: usize,
    all: usize,
}

/// The finding for a service. The replica closest to its limit represents the service.
fn of_service<'a>(
    detector: &DescriptorExhaustion,
    reading: &'a Reading<'a>,
    service: &str,
    reported: Option<&ErrorReports<'a>>,
) -> Option<Finding> {
    let instances = reading.trial.services.iter().filter(|instance| instance.service == service);
    let replicas: Vec<Replica<'_>> = instances.map(|instance| Replica::new(reading, instance)).collect();
    let short: Vec<AffectedReplica<'_>> = replicas.iter().filter_map(|one| one.short(reported.is_some())).collect();
    let affected = if short.is_empty() && reported.is_none() {
        replicas.iter().filter_map(Replica::growing).collect()
    } else {
        short
    };
    let counts = ReplicaCounts { affected: affected.len().max(1), all: replicas.len() };
    let used = |one: &AffectedReplica<'_>| one.descriptors.open / one.descriptors.limit;
    let worst = affected.into_iter().max_by(|a, b| used(a).total_cmp(&used(b)));
    match (worst, reported) {
        (None, None) => None,
        (None, Some(reported)) => Some(only_reported(detector, service, reported, &replicas)),
        (Some(worst), reported) => Some(finding(detector, service, counts, worst, reported)),
    }
}

/// The finding for reported errors without readings at the limit: the peaks fell between two readings, or nothing was
/// sampled.
fn only_reported(
    detector: &DescriptorExhaustion,
    service: &str,
    reported: &ErrorReports<'_>,
    replicas: &[Replica<'_>],
) -> Finding {
    let fullest = replicas.iter().filter_map(Replica::fullest);
    let fullest = fullest.max_by(|(_, a), (_, b)| (a.open / a.limit).total_cmp(&(b.open / b.limit)));
    let evidence = evidence::DescriptorExhaustion {
        affected_replicas: 1,
        replicas: replicas.len(),
        interval: fullest.map_or(String::new(), |(interval, _)| interval.label.clone()),
        load: fullest.map(|(interval, _)| interval.load_level()).unwrap_or_default(),
        descriptors: fullest.map(|(_, descriptors)| descriptors),
        failures: Some(failures(reported)),
        ..evidence::DescriptorExhaustion::default()
    };
    Finding {
        resource: service.into(),
        cost_share: finite(reported.share).min(1.0),
        confidence: Confidence::Medium,
        exemplars: reported.exemplars(reports::reported),
        ..Finding::new(evidence, detector.version())
    }
}

fn finding(
    detector: &DescriptorExhaustion,
    service: &str,
    counts: ReplicaCounts,
    worst: AffectedReplica<'_>,
    reported: Option<&ErrorReports<'_>>,
) -> Finding {
    let unexplained = || worst.failing.map(|share| evidence::Failures { share: finite(share), ..Default::default() });
    let failures = reported.map(failures).or_else(unexplained);
    let evidence = evidence::DescriptorExhaustion {
        replica: worst.replica.instance.replica,
        affected_replicas: counts.affected,
        replicas: counts.all,
        interval: worst.interval.label.clone(),
        load: worst.interval.load_level(),
        descriptors: Some(worst.descriptors),
        failures,
        growth: worst.growth,
    };
    let is_only_growing = evidence.failures.is_none();
    let used = evidence.used_share().unwrap_or(0.0);
    Finding {
        resource: service.into(),
        cost_share: evidence
            .failures
            .as_ref()
            .map_or(used, |failures| failures.share.max(worst.failing.unwrap_or(0.0)))
            .min(1.0),
        confidence: if reported.is_some() { Confidence::High } else { Confidence::Medium },
        caveats: is_only_growing.then_some(Caveat::GrowthMayLevelOff).into_iter().collect(),
        exemplars: reported.map(|reported| reported.exemplars(reports::reported)).unwrap_or_default(),
        period: period_of(worst.replica.reading.trial, worst.interval.start_ns, worst.interval.end_ns),
        ..Finding::new(evidence, detector.version())
    }
}

fn failures(reported: &ErrorReports<'_>) -> evidence::Failures {
    evidence::Failures {
        share: finite(reported.share),
        name: Some(reported.name.to_owned()),
        text: reported.text.map(|text| clipped(text, TEXT_CHARS_MAX)),
        traces: reported.count(),
    }
}

#[cfg(test)]
mod tests;
