//! Metrics that runtimes report: how long their garbage collectors stop the program, and how full the heap is. Of a Java
//! virtual machine that reports nothing, the sampled threads that collect show about how long.
//!
//! Nothing is judged here. One runtime is read from one metric: a process that reports the same under two names is not
//! counted twice. Times are cumulative sums; a series that falls again and again is not one (several processes share it,
//! or it reports what is new each time), and nothing is read from it. Where readings are further apart than a window is
//! long, nothing is said about that window.

use std::collections::{BTreeMap, BTreeSet};

use narrows_model::evidence::TrialEvidence;
use narrows_model::finding::Caveat;
use narrows_model::finding::evidence::garbage_collection::{Heap, LongPauses, Runtime};
use narrows_model::series::{Point, Series, names};

use crate::read::Reading;
use crate::read::cpu::Cpu;
use crate::read::intervals::Interval;
use crate::read::programs::only_service;
use crate::stats::{finite, median};

/// Share of its steps in which a cumulative sum may fall, because the process started again.
const FALLS_SHARE_MAX: f64 = 0.1;
/// Labels of this project, which tell no two collections apart.
const OWN_LABELS: &str = "narrows.";

/// A metric that shows the time of collections.
struct Source {
    runtime: Runtime,
    /// Its name, for people.
    metric: &'static str,
    /// The series of the time.
    times: &'static str,
    /// The series that counts collections.
    counts: &'static str,
    /// Seconds, in the unit that it has when it says none.
    unit_seconds: f64,
    /// True if each time has a count with the same labels.
    is_by_kind: bool,
    /// True if the time is a rate since the point before, and not a sum.
    is_rate: bool,
}

/// The metrics: those of today first, and last the series that needs no report of the runtime.
const SOURCES: [Source; 8] = [
    histogram(Runtime::Jvm, "jvm.gc.duration", "jvm.gc.duration.sum", "jvm.gc.duration.count", 1.0),
    histogram(Runtime::Jvm, "jvm.gc.pause", "jvm.gc.pause.sum", "jvm.gc.pause.count", 1e-3),
    histogram(Runtime::V8, "v8js.gc.duration", "v8js.gc.duration.sum", "v8js.gc.duration.count", 1.0),
    counter(Runtime::DotNet, "dotnet.gc.pause.time", "dotnet.gc.collections", 1.0),
    counter(Runtime::DotNet, "process.runtime.dotnet.gc.duration", "process.runtime.dotnet.gc.collections.count", 1e-9),
    counter(Runtime::Go, "process.runtime.go.gc.pause_total_ns", "process.runtime.go.gc.count", 1e-9),
    histogram(
        Runtime::Go,
        "process.runtime.go.gc.pause_ns",
        "process.runtime.go.gc.pause_ns.sum",
        "process.runtime.go.gc.pause_ns.count",
        1e-9,
    ),
    Source { is_rate: true, ..counter(Runtime::Jvm, names::COLLECTOR_THREAD, "", 1.0) },
];

const fn histogram(
    runtime: Runtime,
    metric: &'static str,
    times: &'static str,
    counts: &'static str,
    unit_seconds: f64,
) -> Source {
    Source { runtime, metric, times, counts, unit_seconds, is_by_kind: true, is_rate: false }
}

const fn counter(runtime: Runtime, metric: &'static str, counts: &'static str, unit_seconds: f64) -> Source {
    Source { runtime, metric, times: metric, counts, unit_seconds, is_by_kind: false, is_rate: false }
}

/// A unit of time in seconds; `otherwise` if the unit is unknown.
pub(crate) fn seconds_of_unit(unit: &str, otherwise: f64) -> f64 {
    match unit {
        "s" | "seconds" => 1.0,
        "ms" | "milliseconds" => 1e-3,
        "us" | "µs" | "microseconds" => 1e-6,
        "ns" | "nanoseconds" => 1e-9,
        _ => otherwise,
    }
}

/// The collector of one replica.
pub(crate) struct Collector<'a> {
    source: &'static Source,
    kinds: Vec<Kind<'a>>,
    heap: Option<(&'a str, &'a Series, &'a Series)>,
}

/// Collections that are reported together.
struct Kind<'a> {
    times: Vec<&'a Series>,
    counts: Vec<&'a Series>,
    is_concurrent: bool,
}

/// Collections in an interval.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Collections {
    /// Share of the time when they stopped the program.
    pub(crate) share: f64,
    /// The same without the reading that has most of it.
    pub(crate) share_without_most: f64,
    /// Readings that show any.
    pub(crate) readings: usize,
    /// Number of collections per second that stopped the program.
    pub(crate) rate: Option<f64>,
    /// Mean length of these, nanoseconds.
    pub(crate) pause_ns: Option<f64>,
    pub(crate) long: Option<LongPauses>,
    /// Seconds per second of those beside the program.
    pub(crate) concurrent: f64,
}

impl<'a> Collector<'a> {
    /// `None` if the replica reports no times of collections that can be read.
    pub(crate) fn of(trial: &'a TrialEvidence, service: &str, replica: u32) -> Option<Self> {
        let is_meant = |series: &&Series| (series.key.service.as_str(), series.key.replica) == (service, replica);
        let all: Vec<&Series> = trial.series.iter().filter(is_meant).collect();
        let (source, kinds) = SOURCES.iter().find_map(|source| {
            let kinds = kinds(source, &all);
            (!kinds.is_empty()).then_some((source, kinds))
        })?;
        Some(Self { source, kinds, heap: largest_heap(&all) })
    }

    pub(crate) fn runtime(&self) -> Runtime {
        self.source.runtime
    }

    /// The metric that is read.
    pub(crate) fn metric(&self) -> &'static str {
        self.source.metric
    }

    /// The collections of an interval; `long_ns` is the mean from which those of a kind are long.
    pub(crate) fn during(&self, interval: &Interval, long_ns: f64) -> Collections {
        let length = interval.seconds().max(f64::MIN_POSITIVE);
        let mut paused: BTreeMap<i64, Increase> = BTreeMap::new();
        let (mut counted, mut concurrent, mut long) = (0.0, 0.0, LongPauses::default());
        for kind in &self.kinds {
            let times = kind.times.iter().flat_map(|series| {
                let unit = seconds_of_unit(&series.key.unit, self.source.unit_seconds);
                self.increases(series, interval).map(move |one| Increase { amount: one.amount * unit, ..one })
            });
            let times: Vec<Increase> = times.collect();
            let seconds: f64 = times.iter().map(|one| one.amount).sum();
            if kind.is_concurrent {
                concurrent += seconds / length;
                continue;
            }
            let count: f64 =
                kind.counts.iter().flat_map(|series| self.increases(series, interval)).map(|one| one.amount).sum();
            counted += count;
            if count > 0.0 && seconds / count * 1e9 >= long_ns {
                long.count += count;
                long.share += seconds / length;
            }
            for one in times {
                let known = paused.entry(one.to_ns).or_default();
                *known = Increase { amount: known.amount + one.amount, length: known.length.max(one.length), ..one };
            }
        }
        let seconds: f64 = paused.values().map(|one| one.amount).sum();
        let most = paused.values().copied().max_by(|a, b| a.amount.total_cmp(&b.amount)).unwrap_or_default();
        long.mean_ns = if long.count > 0.0 { long.share * length / long.count * 1e9 } else { 0.0 };
        Collections {
            share: seconds / length,
            share_without_most: (seconds - most.amount) / (length - most.length).max(f64::MIN_POSITIVE),
            readings: paused.values().filter(|one| one.amount > 0.0).count(),
            rate: (counted > 0.0).then_some(counted / length),
            pause_ns: (counted > 0.0).then_some(seconds / counted * 1e9),
            long: (long.count > 0.0).then_some(long),
            concurrent,
        }
    }

    /// Growth of a series in the steps of an interval. A step that lies only partly in it counts by that part.
    fn increases<'s>(&self, series: &'s Series, interval: &'s Interval) -> impl Iterator<Item = Increase> + use<'s> {
        let is_rate = self.source.is_rate;
        series.points.windows(2).filter_map(move |pair| {
            let (from_ns, to_ns) = (pair[0].time_ns, pair[1].time_ns);
            let inside_ns = to_ns.min(interval.end_ns) - from_ns.max(interval.start_ns);
            let is_whole = to_ns - from_ns <= interval.end_ns - interval.start_ns;
            (inside_ns > 0 && is_whole).then(|| {
                let (step_ns, length) = ((to_ns - from_ns) as f64, inside_ns as f64 / 1e9);
                let grown = if is_rate { pair[1].value * step_ns / 1e9 } else { pair[1].value - pair[0].value };
                Increase { to_ns, amount: grown.max(0.0) * inside_ns as f64 / step_ns, length }
            })
        })
    }

    /// Fill level of the largest part of the heap after collections.
    pub(crate) fn heap(&self, interval: &Interval) -> Option<Heap> {
        let (pool, used, limit) = self.heap?;
        let here = |series: &Series| {
            let is_here = |point: &&Point| interval.contains(point.time_ns);
            median(series.points.iter().filter(is_here).map(|point| point.value).collect())
        };
        let limit_bytes = here(limit).filter(|bytes| *bytes > 0.0)?;
        Some(Heap { pool: pool.to_owned(), used_bytes: finite(here(used)?), limit_bytes: finite(limit_bytes) })
    }
}

/// Growth of a sum in one step, as far as the step lies in an interval.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Increase {
    to_ns: i64,
    amount: f64,
    /// Seconds.
    length: f64,
}

fn kinds<'a>(source: &Source, all: &[&'a Series]) -> Vec<Kind<'a>> {
    let times = named(all, source.times);
    let counts = named(all, source.counts);
    let kinds: Vec<Kind<'a>> = if source.is_by_kind {
        let of = |time: &'a Series| Kind {
            times: vec![time],
            counts: counts.iter().copied().filter(|count| labels(count) == labels(time)).collect(),
            is_concurrent: is_concurrent(time),
        };
        times.into_iter().map(of).collect()
    } else {
        vec![Kind { times, counts, is_concurrent: false }]
    };
    let is_readable =
        |kind: &Kind<'_>| !kind.times.is_empty() && (source.is_rate || kind.times.iter().all(|series| is_sum(series)));
    // A kind that is left out would be missing from the whole.
    if kinds.iter().all(is_readable) { kinds } else { Vec::new() }
}

/// The series of that name; those that came under an older name only where there are no others.
fn named<'a>(all: &[&'a Series], name: &str) -> Vec<&'a Series> {
    let of_name = all.iter().copied().filter(|series| series.key.name == name);
    let (renamed, current): (Vec<_>, Vec<_>) =
        of_name.partition(|series| series.key.labels.keys().any(|label| label.starts_with(OWN_LABELS)));
    if current.is_empty() { renamed } else { current }
}

fn labels(series: &Series) -> BTreeSet<(&str, &str)> {
    let labels = series.key.labels.iter().filter(|(label, _)| !label.starts_with(OWN_LABELS));
    labels.map(|(label, value)| (label.as_str(), value.as_str())).collect()
}

fn is_sum(series: &Series) -> bool {
    let falls = series.points.windows(2).filter(|pair| pair[1].value < pair[0].value).count();
    falls as f64 <= FALLS_SHARE_MAX * series.points.len() as f64
}

/// True if a collector of a JVM runs beside the program. The collectors of ZGC, Shenandoah and Zing are reported twice,
/// as cycles and as pauses; ZGC before Java 17 and CMS only as cycles. `G1 Concurrent GC` reports the pauses of a cycle.
fn is_concurrent(series: &Series) -> bool {
    let label = |names: [&str; 2]| names.into_iter().find_map(|name| series.key.labels.get(name)).map(String::as_str);
    let name = label(["jvm.gc.name", "gc"]).unwrap_or_default();
    let action = label(["jvm.gc.action", "action"]).unwrap_or_default();
    let is_cycle = name.starts_with("ZGC") || name.starts_with("GPGC");
    action == "end of GC cycle"
        || name.ends_with("Cycles")
        || name == "ConcurrentMarkSweep"
        || is_cycle && !name.ends_with("Pauses")
}

/// The pool of a JVM's heap that may become largest, with what it uses after collections and its limit.
fn largest_heap<'a>(all: &[&'a Series]) -> Option<(&'a str, &'a Series, &'a Series)> {
    const POOL: &str = "jvm.memory.pool.name";
    let pool = |series: &'a Series| series.key.labels.get(POOL).map(String::as_str);
    let is_heap = |series: &&Series| series.key.labels.get("jvm.memory.type").is_some_and(|kind| kind == "heap");
    let limits = named(all, "jvm.memory.limit").into_iter().filter(is_heap);
    let last = |series: &Series| series.points.last().map_or(0.0, |point| point.value);
    let limit = limits.max_by(|a, b| last(a).total_cmp(&last(b)))?;
    let used = named(all, "jvm.memory.used_after_last_gc").into_iter().find(|used| pool(used) == pool(limit))?;
    Some((pool(limit)?, used, limit))
}

/// True if requests of the load pass a service: by its spans or, without traces, by its sockets, or because no other
/// service can be the load's target.
pub(crate) fn serves(reading: &Reading<'_>, service: &str) -> bool {
    if reading.requests.is_empty() {
        let is_reached = || reading.conversations().reached().contains(service);
        return only_service(reading.trial) == Some(service) || is_reached();
    }
    reading.requests.iter().any(|request| request.entry.service == service)
}

/// Caveats for machine conditions that lengthen the times that a runtime reports.
pub(crate) fn machine_caveats(cpu: &Cpu<'_>, interval: &Interval) -> Vec<Caveat> {
    let share = cpu.machine(interval).map(|machine| machine.used_share());
    let busy = share.filter(|share| *share >= cpu.thresholds.cpu_host_share);
    let busy = busy.map(|share| Caveat::MachineBusy { share: finite(share), consumers: cpu.consumers(interval) });
    let steal = cpu.cores_of(names::HOST_CPU_STEAL, "", 0, interval);
    let stolen = steal.filter(|share| *share >= cpu.thresholds.cpu_steal_share);
    busy.into_iter().chain(stolen.map(|share| Caveat::CpuStolen { share: finite(share) })).collect()
}
