//! `memory-growth`: a service's memory grows steadily towards its limit, or the service was killed or hangs there.
//!
//! Growth is judged in the last long interval under one load, over four quarters (`read/trend.rs`). The lowest reading
//! of each quarter must be higher than that of the one before, and the last quarter's higher than all readings of the
//! first, which excludes a saw-tooth and growth that follows the users. If growth slows down, it must still reach the
//! limit before it would level off. Memory that is not the service's own data does not count: the page cache, which
//! only the control group's figure includes; pages shared by several processes, excluded by the proportional set size;
//! an uncollected heap, excluded by the runtime's report of its last collection; a database's buffers; requests that an
//! overloaded service has not responded to.
//!
//! Less than a minute shows growth too, if it has enough readings and the memory becomes a multiple of what it was; the
//! finding is then less sure, and nothing is said of runtimes that collect late and do not report their heaps.
//!
//! A kill for lack of memory does not require growth: the kernel counts it (`readings.rs`). Neither does a shortage at
//! the limit, where the kernel drops pages that are soon read from the disk again (`shortage.rs`).

use narrows_model::finding::evidence::memory_growth::{self as evidence, Growth, Limit, LimitOf};
use narrows_model::finding::{Caveat, Confidence, Evidence, Finding, FindingKind, Role};
use narrows_model::run::ServiceInstance;
use narrows_model::series::Point;

use crate::Detector;
use crate::read::Reading;
use crate::read::intervals::Interval;
use crate::read::periods::period_of;
use crate::read::programs::{collects_late, is_store_program};
use crate::read::trend::{Quarters, quarters_of, rise};
use crate::stats::finite;
use crate::thresholds::rule_thresholds;
use readings::{Kills, Readings};

mod readings;
mod shortage;
mod words;

rule_thresholds! {
    /// Growth in that time, as a share of the limit.
    memory_growth_share: f64 = 0.05;
    /// In less time than `memory_span_ns`: memory at the end as a multiple of that at the start.
    memory_growth_factor: f64 = 2.0;
    /// In less time than that: longest time until the limit is reached, nanoseconds.
    memory_until_limit_ns: f64 = 3.6e12;
    /// Share of the growth of resident memory that the proportional set size and the runtime's heap after collections
    /// must show, where they are known.
    memory_confirmed_share: f64 = 0.5;
    /// Share of its limit from which a control group is at it.
    memory_full_share: f64 = 0.95;
    /// Shortest time at the limit that counts as a shortage, nanoseconds.
    memory_shortage_ns: i64 = 4_000_000_000;
    /// Share of that time in which some task must wait for memory.
    memory_pressure_share: f64 = 0.2;
}

/// See the module.
#[derive(Debug)]
pub struct MemoryGrowth;

impl Detector for MemoryGrowth {
    fn kind(&self) -> FindingKind {
        FindingKind::MemoryGrowth
    }

    fn version(&self) -> u32 {
        2
    }

    fn role(&self, finding: &Finding) -> Role {
        if was_killed(finding) || is_short(finding) { Role::InTheWay } else { Role::CostsMore }
    }

    fn detect(&self, reading: &Reading<'_>) -> Vec<Finding> {
        let services = reading.trial.service_names().into_iter();
        services.filter_map(|service| of_service(self, reading, service)).collect()
    }
}

/// True if a finding says that the kernel killed a process for its memory.
pub(crate) fn was_killed(finding: &Finding) -> bool {
    matches!(&finding.evidence, Evidence::MemoryGrowth(growth) if growth.kills > 0)
}

/// True if a finding says that a service ran short of memory at its limit.
pub(crate) fn is_short(finding: &Finding) -> bool {
    matches!(&finding.evidence, Evidence::MemoryGrowth(growth) if growth.shortage.is_some())
}

/// A replica that grows, was killed or ran short of memory.
struct AffectedReplica<'a> {
    replica: &'a Replica<'a>,
    growth: Option<(Growth, &'a Interval)>,
    kills: Kills,
    shortage: Option<evidence::Shortage>,
}

/// The finding for a service. The replica killed most often represents it, else the fullest.
fn of_service(detector: &MemoryGrowth, reading: &Reading<'_>, service: &str) -> Option<Finding> {
    let instances = reading.trial.services.iter().filter(|instance| instance.service == service);
    let replicas: Vec<Replica<'_>> = instances.map(|instance| Replica::new(reading, instance)).collect();
    let affected: Vec<AffectedReplica<'_>> = replicas.iter().filter_map(Replica::affected).collect();
    let affected_replicas = affected.len();
    let all = affected
        .into_iter()
        .map(|one| (one.evidence(affected_replicas, replicas.len()), one.growth.map(|(_, interval)| interval)));
    let (evidence, interval) = all.max_by(|(a, _), (b, _)| {
        a.kills.cmp(&b.kills).then(a.used_share().total_cmp(&b.used_share())).then(b.replica.cmp(&a.replica))
    })?;
    let heap_share = evidence.growth.as_ref().and_then(|growth| growth.heap_share);
    let is_at_limit = evidence.kills > 0 || evidence.shortage.is_some();
    let is_sure = is_at_limit || heap_share.is_some();
    let interval = interval.filter(|_| !is_at_limit);
    let is_brief = interval.is_some_and(|one| one.end_ns - one.start_ns < reading.thresholds.memory_span_ns);
    Some(Finding {
        resource: service.into(),
        cost_share: evidence.used_share(),
        confidence: match (is_sure, is_brief) {
            (true, false) => Confidence::High,
            (true, true) | (false, false) => Confidence::Medium,
            (false, true) => Confidence::Low,
        },
        caveats: if is_sure { Vec::new() } else { vec![Caveat::GrowthMayLevelOff] },
        period: interval.and_then(|interval| period_of(reading.trial, interval.start_ns, interval.end_ns)),
        ..Finding::new(evidence, detector.version())
    })
}

impl AffectedReplica<'_> {
    fn evidence(&self, affected_replicas: usize, replicas: usize) -> evidence::MemoryGrowth {
        let Replica { readings, instance, .. } = self.replica;
        let limit = self.growth.as_ref().and_then(|(growth, interval)| self.replica.limit(growth.end_bytes, interval));
        evidence::MemoryGrowth {
            replica: instance.replica,
            affected_replicas,
            replicas,
            limit: limit.or_else(|| self.replica.own_limit()),
            growth: self.growth.as_ref().map(|(growth, _)| growth.clone()),
            kills: self.kills.count,
            first_kill_ns: self.kills.first_ns,
            shortage: self.shortage,
            most_bytes: readings.most().map(finite),
        }
    }
}

/// A replica and its memory readings.
struct Replica<'a> {
    reading: &'a Reading<'a>,
    instance: &'a ServiceInstance,
    readings: Readings<'a>,
}

impl<'a> Replica<'a> {
    fn new(reading: &'a Reading<'a>, instance: &'a ServiceInstance) -> Self {
        Self { reading, instance, readings: Readings::new(reading.trial, instance) }
    }

    fn affected(&'a self) -> Option<AffectedReplica<'a>> {
        let (growth, kills, shortage) = (self.growth(), self.readings.kills(), self.shortage());
        let is_affected = growth.is_some() || kills.count > 0 || shortage.is_some();
        is_affected.then_some(AffectedReplica { replica: self, growth, kills, shortage })
    }

    /// Returns `None` if the memory does not grow steadily towards a limit.
    fn growth(&self) -> Option<(Growth, &'a Interval)> {
        let thresholds = self.reading.thresholds;
        let is_long = |one: &Interval| one.end_ns - one.start_ns >= thresholds.memory_span_ns;
        let steady = || self.reading.intervals.iter().filter(|one| one.is_steady);
        let longest = || steady().max_by_key(|one| one.end_ns - one.start_ns);
        let interval = steady().rfind(|one| is_long(one)).or_else(longest)?;
        if is_store_program(self.reading.trial, &self.instance.service) || self.is_behind(interval) {
            return None;
        }
        let (points, heap_share) = self.own_points(interval)?;
        let ended = quarters_of(interval).map(|(start_ns, end_ns)| self.ended(start_ns, end_ns));
        let quarters = Quarters::new(&points, interval, thresholds.memory_quarter_readings)?;
        let limit = self.limit(quarters.end, interval)?;
        let seconds = interval.seconds();
        let per_second = quarters.gain() / (0.75 * seconds);
        let until_limit_ns = ((limit.bytes - quarters.end) / per_second * 1e9).max(0.0);
        let is_much = if is_long(interval) {
            per_second * seconds >= thresholds.memory_growth.memory_growth_share * limit.bytes
        } else {
            quarters.end >= thresholds.memory_growth.memory_growth_factor * quarters.start()
                && until_limit_ns <= thresholds.memory_growth.memory_until_limit_ns
                && (heap_share.is_some() || !collects_late(&self.instance.command))
        };
        if !quarters.rise_steadily() || !is_much || quarters.level(ended) < limit.bytes {
            return None;
        }
        let requests: f64 = ended.iter().sum();
        let growth = Growth {
            interval: interval.label.clone(),
            load: interval.load_level(),
            length_ns: interval.end_ns - interval.start_ns,
            start_bytes: finite(quarters.start()),
            end_bytes: finite(quarters.end),
            bytes_per_second: finite(per_second),
            bytes_per_request: (requests > 0.0).then(|| finite(per_second * seconds / requests)),
            until_limit_ns: finite(until_limit_ns),
            heap_share: heap_share.map(finite),
        };
        Some((growth, interval))
    }

    /// Memory readings of an interval and, if the runtime reports it, the heap's growth as a share of theirs. `None`
    /// without readings, or if other readings show that something other than the service's own data grows.
    fn own_points(&self, interval: &Interval) -> Option<(Vec<Point>, Option<f64>)> {
        let least = self.reading.thresholds.memory_growth.memory_confirmed_share;
        let proportional = within(self.readings.proportional, interval);
        let is_enough = proportional.len() >= 4 * self.reading.thresholds.memory_quarter_readings;
        let points = if is_enough { proportional.clone() } else { within(self.readings.resident, interval) };
        let grown = rise(&points, interval).filter(|grown| *grown > 0.0)?;
        if rise(&proportional, interval).is_some_and(|own| own < least * grown) {
            return None;
        }
        let pools = self.readings.heap().filter_map(|pool| rise(&within(Some(&pool.points), interval), interval));
        let heap = pools.reduce(|sum, pool| sum + pool).map(|risen| risen / grown);
        heap.is_none_or(|share| share >= least).then_some((points, heap))
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

    /// The replica's own limit, else its use plus the machine's available memory.
    fn limit(&self, used: f64, interval: &Interval) -> Option<Limit> {
        self.own_limit().or_else(|| {
            let available = within(self.readings.available, interval).last()?.value;
            let bytes = finite(used + available);
            (bytes > 0.0).then_some(Limit { of: LimitOf::Machine, bytes })
        })
    }

    /// The cap that Narrows set, else the cap that the sampler found.
    fn own_limit(&self) -> Option<Limit> {
        let set = self.instance.memory_limit_bytes.map(|bytes| bytes as f64);
        let bytes = set.or_else(|| self.readings.limit()).filter(|bytes| bytes.is_finite() && *bytes > 0.0)?;
        Some(Limit { of: LimitOf::Replica, bytes })
    }
}

/// The finite readings of an interval.
fn within(points: Option<&[Point]>, interval: &Interval) -> Vec<Point> {
    let is_in = |point: &&Point| interval.contains(point.time_ns) && point.value.is_finite();
    points.unwrap_or_default().iter().filter(is_in).copied().collect()
}

#[cfg(test)]
mod tests;
