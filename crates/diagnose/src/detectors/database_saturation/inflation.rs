//! Queries that slow down under load: the time of each query shape under the lightest and the heaviest load, and checks
//! for causes outside the database.

use narrows_model::series::{SeriesKey, names};

use crate::read::cpu::Cpu;
use crate::read::databases::{Database, QueryTimes};
use crate::read::intervals::Interval;
use crate::read::machine::RUNNABLE_MIN;
use crate::read::threads::mean;

/// Ratio of waiting for a processor to running from which other threads hold a service up.
const WAITING_PER_RUNNING: f64 = 0.5;

/// A query shape's times under both loads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grown<'a> {
    pub(crate) shape: &'a str,
    pub(crate) light: QueryTimes,
    pub(crate) heavy: QueryTimes,
}

impl Grown<'_> {
    fn factor(&self) -> f64 {
        if self.light.median_ns > 0.0 { self.heavy.median_ns / self.light.median_ns } else { 1.0 }
    }

    fn heavy_ns(&self) -> f64 {
        self.heavy.count * self.heavy.median_ns
    }

    /// Time that the heavy load's queries would take at the light load's median, nanoseconds.
    fn alone_ns(&self) -> f64 {
        self.heavy.count * self.light.median_ns
    }
}

/// The queries of a database under two loads.
#[derive(Debug)]
pub(crate) struct Inflation<'a> {
    pub(crate) light: &'a Interval,
    pub(crate) heavy: &'a Interval,
    /// Shapes with enough queries under both loads, most time first; at least one.
    pub(crate) grown: Vec<Grown<'a>>,
}

impl<'a> Inflation<'a> {
    /// Ratio of the queries' time under the heavy load to their time at the light load's medians.
    pub(crate) fn factor(&self) -> f64 {
        let alone: f64 = self.grown.iter().map(Grown::alone_ns).sum();
        let heavy: f64 = self.grown.iter().map(Grown::heavy_ns).sum();
        if alone > 0.0 { heavy / alone } else { 1.0 }
    }

    /// The shape with the most time.
    pub(crate) fn worst(&self) -> &Grown<'a> {
        &self.grown[0]
    }

    /// Whether spans show that the numbers of rows are the same under both loads.
    pub(crate) fn has_rows(&self) -> bool {
        self.grown.iter().all(|grown| grown.heavy.rows.is_some() && grown.light.rows.is_some())
    }
}

/// Growth of a database's query times with the load; `None` if they do not grow, or if something else explains it.
pub(crate) fn inflation<'a>(cpu: &Cpu<'a>, database: &Database<'a>) -> Option<Inflation<'a>> {
    let thresholds = cpu.thresholds;
    let steady = || cpu.intervals.iter().filter(|interval| interval.is_steady && interval.rate > 0.0);
    let heavy = steady().max_by(|a, b| a.by_demand(b))?;
    let light = steady().min_by(|a, b| a.by_demand(b))?;
    heavy.demand_over(light).filter(|growth| *growth >= thresholds.database_saturation.database_demand_growth)?;
    let (before, now) = (database.taken(light), database.taken(heavy));
    let least = thresholds.database_saturation.database_queries;
    let is_same_work = |grown: &Grown<'_>| {
        let rows = grown.light.rows.zip(grown.heavy.rows);
        rows.is_none_or(|(light, heavy)| {
            (heavy - light).abs() <= thresholds.database_saturation.database_rows_share * light.max(1.0)
        })
    };
    let mut grown: Vec<Grown<'a>> = now
        .into_iter()
        .filter_map(|(shape, heavy)| Some(Grown { shape, light: *before.get(shape)?, heavy }))
        .filter(|grown| grown.light.spans >= least && grown.heavy.spans >= least && is_same_work(grown))
        .collect();
    grown.sort_by(|a, b| b.heavy_ns().total_cmp(&a.heavy_ns()));
    let reads_grow = grown
        .iter()
        .any(|grown| reads(grown.shape) && grown.factor() >= thresholds.database_saturation.database_inflation);
    let found = Inflation { light, heavy, grown };
    let is_shown = reads_grow
        && found.factor() >= thresholds.database_saturation.database_inflation
        && database.refused_share < thresholds.throttling.throttled_share
        && clients_are_idle(cpu, database, heavy)
        && is_not_idle_itself(cpu, database, heavy)
        && !is_crowded(cpu, heavy);
    is_shown.then_some(found)
}

/// Whether a query takes no locks that others wait for.
fn reads(shape: &str) -> bool {
    let text = shape.trim_start().to_ascii_lowercase();
    let writes = ["insert", "update", "delete", "merge", "replace", "upsert", "lock", "call", "exec", "set "];
    !writes.iter().any(|word| text.starts_with(word)) && !text.contains(" for update") && !text.contains(" for share")
}

/// Whether all callers are known to have spare CPU; otherwise a span may be long because its own program waits for a
/// processor.
fn clients_are_idle(cpu: &Cpu<'_>, database: &Database<'_>, heavy: &Interval) -> bool {
    let has_cpu = |client: &str| {
        cpu.busy_share(client, heavy)
            .is_some_and(|share| share <= cpu.thresholds.database_saturation.database_client_share)
    };
    let is_idle = |client: &str| has_cpu(client) && !waits_for_cpu(cpu, client, heavy);
    let mut clients: Vec<&str> = database.queries.iter().map(|sent| sent.client).collect();
    clients.sort_unstable();
    clients.dedup();
    !clients.is_empty() && clients.into_iter().all(is_idle)
}

/// Whether a service's threads wait for a processor so often that one of them, such as an event loop, may read every
/// response late.
fn waits_for_cpu(cpu: &Cpu<'_>, service: &str, interval: &Interval) -> bool {
    let Some(running) = cpu.service_cores(service, interval) else { return false };
    let is_wait = |key: &SeriesKey| key.name == names::CPU_WAIT && key.service == service;
    let waiting = mean(cpu.trial, interval, is_wait).unwrap_or(0.0);
    waiting >= WAITING_PER_RUNNING * running && running + waiting >= RUNNABLE_MIN
}

/// Whether the database is not known to have spare CPU. With spare CPU, it waits for locks, disks or its own clients.
fn is_not_idle_itself(cpu: &Cpu<'_>, database: &Database<'_>, heavy: &Interval) -> bool {
    let share = cpu.busy_share(database.name, heavy).filter(|_| database.is_service);
    share.is_none_or(|share| share >= cpu.thresholds.database_saturation.database_busy_share)
}

/// Whether the machine is full or the hypervisor takes much of its CPU, which slows everything down.
fn is_crowded(cpu: &Cpu<'_>, heavy: &Interval) -> bool {
    let steal = cpu.cores_of(names::HOST_CPU_STEAL, "", 0, heavy).unwrap_or(0.0);
    let is_full = cpu.machine(heavy).is_some_and(|machine| machine.used_share() >= cpu.thresholds.cpu_host_share);
    is_full || steal >= cpu.thresholds.cpu_steal_share
}
