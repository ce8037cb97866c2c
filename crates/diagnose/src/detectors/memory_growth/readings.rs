//! The series of one replica's memory, and its kills.

use narrows_model::evidence::TrialEvidence;
use narrows_model::run::ServiceInstance;
use narrows_model::series::{Point, Series, names};

use crate::read::intervals::series_of;

/// Runtimes' series of heap size after the last collection, or at any time (V8): bytes, by pool, generation or space.
const HEAPS: [&str; 3] =
    ["jvm.memory.used_after_last_gc", "dotnet.gc.last_collection.heap.size", "v8js.memory.heap.used"];

/// The series of one replica's memory; `None` for those not sampled.
pub(super) struct Readings<'a> {
    trial: &'a TrialEvidence,
    instance: &'a ServiceInstance,
    pub(super) resident: Option<&'a [Point]>,
    pub(super) proportional: Option<&'a [Point]>,
    /// Available memory of the machine.
    pub(super) available: Option<&'a [Point]>,
}

/// Processes of a replica that the kernel killed for lack of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Kills {
    pub(super) count: u64,
    /// Time from the start of the load to the first kill, nanoseconds, from 0.
    pub(super) first_ns: Option<i64>,
}

impl<'a> Readings<'a> {
    pub(super) fn new(trial: &'a TrialEvidence, instance: &'a ServiceInstance) -> Self {
        let of = |name: &str| points(trial, name, &instance.service, instance.replica);
        Self {
            trial,
            instance,
            resident: of(names::MEMORY_BYTES),
            proportional: of(names::MEMORY_PSS_BYTES),
            available: points(trial, names::HOST_MEMORY_AVAILABLE, "", 0),
        }
    }

    fn of(&self, name: &str) -> &'a [Point] {
        points(self.trial, name, &self.instance.service, self.instance.replica).unwrap_or_default()
    }

    /// The finite points in counted time of one of its series, the one with this label if several have the name.
    pub(super) fn counted_points(&self, name: &str, label: Option<(&str, &str)>) -> Vec<Point> {
        self.counted_of((&self.instance.service, self.instance.replica), name, label)
    }

    fn counted_of(&self, of: (&str, u32), name: &str, label: Option<(&str, &str)>) -> Vec<Point> {
        let Some((from_ns, until_ns)) = self.counted() else { return Vec::new() };
        let is_meant = |series: &&Series| {
            let key = &series.key;
            (key.name.as_str(), (key.service.as_str(), key.replica)) == (name, of)
                && label.is_none_or(|(label, value)| key.labels.get(label).is_some_and(|its| its == value))
        };
        let points = self.trial.series.iter().find(is_meant).map_or(&[][..], |series| &series.points);
        let is_counted = |point: &&Point| (from_ns..until_ns).contains(&point.time_ns) && point.value.is_finite();
        points.iter().filter(is_counted).copied().collect()
    }

    /// Share of the time in which some task waited for a resource: in its own control group, else on the host.
    pub(super) fn pressure(&self, resource: &str) -> Vec<Point> {
        let label = Some((names::PRESSURE_RESOURCE, resource));
        let own = self.counted_points(names::CGROUP_PRESSURE_STALLED, label);
        if own.is_empty() { self.counted_of(("", 0), names::HOST_PRESSURE_STALLED, label) } else { own }
    }

    /// The last reading of its control group's limit.
    pub(super) fn limit(&self) -> Option<f64> {
        self.of(names::CGROUP_MEMORY_LIMIT).last().map(|point| point.value)
    }

    /// Highest reading in counted time.
    pub(super) fn most(&self) -> Option<f64> {
        let (from_ns, until_ns) = self.counted()?;
        let points = self.proportional.or(self.resident).unwrap_or_default().iter();
        let counted = points.filter(|point| (from_ns..until_ns).contains(&point.time_ns) && point.value.is_finite());
        counted.map(|point| point.value).max_by(f64::total_cmp)
    }

    /// Series of the parts of its runtime's heap.
    pub(super) fn heap(&self) -> impl Iterator<Item = &'a Series> {
        let (service, replica) = (&self.instance.service, self.instance.replica);
        let is_its = move |series: &&Series| series.key.service == *service && series.key.replica == replica;
        self.trial.series.iter().filter(is_its).filter(|series| HEAPS.contains(&series.key.name.as_str()))
    }

    /// Kills that the control group counted or the run noted, whichever are more, because both may have seen the same
    /// kill.
    pub(super) fn kills(&self) -> Kills {
        let Some((from_ns, _)) = self.counted() else { return Kills::default() };
        let load_ns = self.trial.windows.first().map_or(from_ns, |window| window.start_ns);
        let sampled = counts(self.of(names::CGROUP_MEMORY_OOM_KILLS));
        let noted = self.of(names::REPLICA_OUT_OF_MEMORY).iter().map(|point| (point.time_ns, point.value));
        let of = |events: Vec<(i64, f64)>| {
            // The last kill may end the trial, and is then noted after it.
            let is_counted = |(time_ns, count): &(i64, f64)| *time_ns >= from_ns && *count > 0.0;
            let counted: Vec<(i64, f64)> = events.into_iter().filter(is_counted).collect();
            let count = counted.iter().map(|(_, count)| count).sum::<f64>().round() as u64;
            Kills { count, first_ns: counted.first().map(|(at, _)| (at - load_ns).max(0)).filter(|_| count > 0) }
        };
        let (sampled, noted) = (of(sampled), of(noted.collect()));
        if noted.count > sampled.count { noted } else { sampled }
    }

    /// Start and end of the counted load.
    fn counted(&self) -> Option<(i64, i64)> {
        let from_ns = self.trial.counted_windows().next()?.start_ns;
        Some((from_ns, self.trial.windows.last()?.end_ns))
    }
}

fn points<'a>(trial: &'a TrialEvidence, name: &str, service: &str, replica: u32) -> Option<&'a [Point]> {
    series_of(trial, name, service, replica).map(|series| &series.points[..])
}

/// Events between each point of a per-second rate and the point before; the first point has none before it.
fn counts(rate: &[Point]) -> Vec<(i64, f64)> {
    let pairs = rate.windows(2).filter(|pair| pair[1].value.is_finite());
    pairs
        .map(|pair| {
            let seconds = pair[1].time_ns.saturating_sub(pair[0].time_ns).max(0) as f64 / 1e9;
            (pair[1].time_ns, pair[1].value * seconds)
        })
        .collect()
}
