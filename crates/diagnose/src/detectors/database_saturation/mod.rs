//! `database-saturation`: a database has no capacity left, and every query waits for others.
//!
//! There are two signs. The first: a database that is a service of the trial is at a CPU limit (the rule of `cpu.rs`)
//! while it receives queries. Its CPU time per request then gives, by the utilisation law U = X · D, the highest
//! request rate it can carry. The second, wherever the database runs: the same queries with the same rows take several
//! times as long under more load, while the callers have spare CPU. They then wait inside the database.
//!
//! Other causes of long queries are ruled out first: refusals, clients without CPU, more rows, a machine full of other
//! programs, locks (the server says that sessions wait for them, or only writing queries slow down), and a database with
//! idle CPU, which waits for something else. A wait for a connection ends before a query's span begins.

use narrows_model::finding::evidence::cpu::CpuLimit;
use narrows_model::finding::evidence::database_saturation as evidence;
use narrows_model::finding::{Caveat, Confidence, Finding, FindingKind};

use crate::Detector;
use crate::detectors::database_saturation::inflation::{Grown, Inflation, inflation};
use crate::exemplars::{EXEMPLARS_MAX, TEXT_CHARS_MAX, clipped, exemplar};
use crate::read::Reading;
use crate::read::cpu::{Cpu, Saturation};
use crate::read::databases::{Database, QueryTimes, SentQuery, databases};
use crate::read::intervals::Interval;
use crate::read::periods::period_of;
use crate::read::servers::{servers, sessions};
use crate::stats::finite;
use crate::thresholds::rule_thresholds;

mod inflation;
mod words;

rule_thresholds! {
    /// Factor by which the same queries must take longer under the heaviest load.
    database_inflation: f64 = 3.0;
    /// Factor by which that load must exceed the lightest.
    database_demand_growth: f64 = 2.0;
    /// Queries of a shape in each of the two loads.
    database_queries: usize = 10;
    /// Share by which their rows may differ.
    database_rows_share: f64 = 0.25;
    /// Share of their CPU that the calling services may use at most.
    database_client_share: f64 = 0.70;
    /// Share of its CPU below which a database waits for something else.
    database_busy_share: f64 = 0.50;
}

/// See the module.
#[derive(Debug)]
pub struct DatabaseSaturation;

/// Share of the sessions with a statement from which on their waits for locks are why queries take longer.
const LOCKS_SHARE_MIN: f64 = 0.5;

/// Systems whose clients obtain a connection before the span of a query begins.
const CONNECTED: [&str; 6] = ["postgresql", "mysql", "mariadb", "microsoft.sql_server", "mssql", "oracle.db"];

impl Detector for DatabaseSaturation {
    fn kind(&self) -> FindingKind {
        FindingKind::DatabaseSaturation
    }

    fn version(&self) -> u32 {
        1
    }

    fn holds_all_requests(&self) -> bool {
        true
    }

    fn detect(&self, reading: &Reading<'_>) -> Vec<Finding> {
        let cpu = Cpu::new(reading);
        databases(reading).iter().filter_map(|database| Self::finding(&cpu, database)).collect()
    }
}

impl DatabaseSaturation {
    fn finding(cpu: &Cpu<'_>, database: &Database<'_>) -> Option<Finding> {
        let grown = inflation(cpu, database);
        let full = if database.is_service { cpu.of_service(database.name) } else { None };
        match (full, grown) {
            (Some(saturation), grown) => Some(by_cpu(cpu, database, &saturation, grown.as_ref())),
            (None, Some(grown)) if !waits_for_locks(cpu, database, &grown) => Some(by_inflation(cpu, database, &grown)),
            (None, _) => None,
        }
    }
}

/// True if the database reports that most sessions with a statement wait for locks: `lock-wait` then says why queries take
/// longer.
fn waits_for_locks(cpu: &Cpu<'_>, database: &Database<'_>, grown: &Inflation<'_>) -> bool {
    let of_database = servers(cpu.trial).into_iter().filter(|(service, _)| *service == database.name);
    let mut shares = of_database.filter_map(|server| sessions(cpu.trial, server, grown.heavy)?.waiting_share());
    shares.any(|share| share >= LOCKS_SHARE_MIN)
}

fn by_cpu(cpu: &Cpu<'_>, database: &Database<'_>, full: &Saturation<'_>, grown: Option<&Inflation<'_>>) -> Finding {
    let interval = &cpu.intervals[full.at];
    let proof = cpu.proof(full.at);
    let of_cpu = evidence::FullCpu {
        limit: full.limit,
        level: finite(full.level),
        interval: interval.label.clone(),
        rate: finite(interval.rate),
        latency_ns: finite(interval.latency_ns),
        demand: demand(cpu, full, interval),
        proof,
    };
    let sign = evidence::SaturationSign::Cpu { cpu: of_cpu, slowed: grown.map(slowed) };
    Finding {
        cost_share: full.level.min(1.0),
        confidence: if proof.is_some() { Confidence::High } else { Confidence::Medium },
        ..finding(cpu, database, interval, sign, &dearest(database, interval))
    }
}

fn by_inflation(cpu: &Cpu<'_>, database: &Database<'_>, grown: &Inflation<'_>) -> Finding {
    let cpu_share = cpu.busy_share(database.name, grown.heavy).filter(|_| database.is_service);
    let is_connected_first = database.system.is_some_and(|system| CONNECTED.contains(&system));
    let sign = evidence::SaturationSign::Queries {
        slowed: slowed(grown),
        cpu_share: cpu_share.map(finite),
        is_connected_first,
    };
    let name = || database.name.to_owned();
    let caveats = [
        (!is_connected_first).then(|| Caveat::SpanMayWaitForConnection { database: name() }),
        (!grown.has_rows()).then_some(Caveat::RowsNotShown),
        cpu_share.is_none().then(|| Caveat::DatabaseNotSampled { database: name() }),
    ];
    Finding {
        cost_share: 1.0 - 1.0 / grown.factor(),
        confidence: if grown.has_rows() { Confidence::Medium } else { Confidence::Low },
        caveats: caveats.into_iter().flatten().collect(),
        ..finding(cpu, database, grown.heavy, sign, &database.longest(grown.worst().shape, grown.heavy))
    }
}

/// The parts of a finding that both signs share. `shown` are example queries, the longest first.
fn finding(
    cpu: &Cpu<'_>,
    database: &Database<'_>,
    interval: &Interval,
    sign: evidence::SaturationSign,
    shown: &[SentQuery<'_>],
) -> Finding {
    let evidence = evidence::DatabaseSaturation {
        sign,
        idle_clients: idle_clients(cpu, database, interval).unwrap_or_default(),
        costliest: costliest(database, interval),
        query: shown.first().map(|sent| clipped(sent.query.text, TEXT_CHARS_MAX)),
    };
    Finding {
        resource: database.name.into(),
        exemplars: shown.iter().take(EXEMPLARS_MAX).map(|sent| exemplar(sent.trace, [sent.query.span])).collect(),
        period: period_of(cpu.trial, interval.start_ns, interval.end_ns),
        ..Finding::new(evidence, DatabaseSaturation.version())
    }
}

fn demand(cpu: &Cpu<'_>, full: &Saturation<'_>, interval: &Interval) -> Option<evidence::CpuDemand> {
    let cores = cpu.service_cores(full.service, interval).filter(|cores| *cores > 0.0)?;
    let limit_cores = match full.limit {
        CpuLimit::Cap { cores } => cores * full.replicas.1 as f64,
        CpuLimit::Thread => full.replicas.1 as f64,
        CpuLimit::Machine | CpuLimit::Host => f64::from(cpu.trial.cores.max(1)),
        CpuLimit::OtherMachine { cores, .. } => cores,
    };
    let (cores, rate) = (finite(cores), finite(interval.rate));
    (rate > 0.0).then_some(evidence::CpuDemand { cores, rate, limit_cores: finite(limit_cores) })
}

fn slowed(grown: &Inflation<'_>) -> evidence::SlowedQueries {
    let shape = |grown: &Grown<'_>| evidence::SlowedShape {
        shape: clipped(grown.shape, TEXT_CHARS_MAX),
        light_median_ns: finite(grown.light.median_ns),
        heavy_median_ns: finite(grown.heavy.median_ns),
        rows: grown.heavy.rows.map(finite),
    };
    evidence::SlowedQueries {
        light: grown.light.load_level(),
        heavy: grown.heavy.load_level(),
        factor: finite(grown.factor()),
        has_rows: grown.has_rows(),
        shapes: grown.grown.iter().take(EXEMPLARS_MAX).map(shape).collect(),
    }
}

/// The callers with their CPU use; `None` if it was not sampled or a caller is busy.
fn idle_clients(cpu: &Cpu<'_>, database: &Database<'_>, interval: &Interval) -> Option<Vec<evidence::ClientCpu>> {
    let mut clients: Vec<&str> = database.queries.iter().map(|sent| sent.client).collect();
    clients.sort_unstable();
    clients.dedup();
    let known = clients.into_iter().map(|client| {
        let cpu_share = cpu
            .busy_share(client, interval)
            .filter(|share| *share <= cpu.thresholds.database_saturation.database_client_share);
        Some(evidence::ClientCpu { service: client.to_owned(), cpu_share: finite(cpu_share?) })
    });
    known.collect()
}

/// Queries of the shape that takes most of the database's time, the longest first.
fn dearest<'a>(database: &Database<'a>, interval: &Interval) -> Vec<SentQuery<'a>> {
    let shapes = database.taken(interval);
    let most = shapes.iter().max_by(|a, b| time(a.1).total_cmp(&time(b.1)));
    most.map_or_else(Vec::new, |(shape, _)| database.longest(shape, interval))
}

fn costliest(database: &Database<'_>, interval: &Interval) -> Option<evidence::CostliestShape> {
    let shapes = database.taken(interval);
    let all: f64 = shapes.values().map(time).sum();
    let (shape, taken) = shapes.iter().max_by(|a, b| time(a.1).total_cmp(&time(b.1))).filter(|_| all > 0.0)?;
    let shape = clipped(shape, TEXT_CHARS_MAX);
    Some(evidence::CostliestShape { shape, time_share: finite(time(taken) / all) })
}

fn time(taken: &QueryTimes) -> f64 {
    taken.count * taken.median_ns
}

#[cfg(test)]
mod tests;
