//! `database-saturation`: a database that has no room left, so that every query waits for others.
//!
//! Two readings. A database that is a service of the trial stands at a CPU limit (the rule of `cpu.rs`) while queries are
//! sent to it: then its CPU for each request gives, by the utilisation law U = X · D, the most requests that it can
//! carry. Or, wherever it runs, the same queries with the same rows take several times as long under more load, while
//! those who ask have CPU to spare: then they wait inside the database.
//!
//! What else makes queries long is asked first: refusals, clients without CPU, more rows, a machine full of others; locks
//! when only writing queries grow; a database whose CPU is known to be idle waits for something else. A wait for a
//! connection passes before a query's span begins.

use narrows_model::finding::{Confidence, Figure, Finding, FindingKind};
use narrows_model::units;

use crate::Detector;
use crate::cpu::{Cpu, Limit, Saturation};
use crate::databases::{Asked, Database, databases};
use crate::inflation::{Grown, Inflation, inflation};
use crate::intervals::Interval;
use crate::periods::period_of;
use crate::reading::Reading;
use crate::words::{EXEMPLARS_MAX, TEXT_CHARS_MAX, clipped, exemplar};

/// See the module.
#[derive(Debug)]
pub struct DatabaseSaturation;

/// Systems that a program asks over a connection that it has before the span of a query begins.
const CONNECTED: [&str; 6] = ["postgresql", "mysql", "mariadb", "microsoft.sql_server", "mssql", "oracle.db"];

impl Detector for DatabaseSaturation {
    fn kind(&self) -> FindingKind {
        FindingKind::DatabaseSaturation
    }

    fn version(&self) -> u32 {
        1
    }

    fn detect(&self, reading: &Reading<'_>) -> Vec<Finding> {
        let cpu = Cpu::of(reading);
        databases(reading).iter().filter_map(|database| Self::of(&cpu, database)).collect()
    }
}

impl DatabaseSaturation {
    fn of(cpu: &Cpu<'_>, database: &Database<'_>) -> Option<Finding> {
        let grown = inflation(cpu, database);
        let full = if database.is_service { cpu.of_service(database.name) } else { None };
        match (full, grown) {
            (Some(saturation), grown) => Some(by_cpu(cpu, database, &saturation, grown.as_ref())),
            (None, Some(grown)) => Some(by_inflation(cpu, database, &grown)),
            (None, None) => None,
        }
    }
}

fn by_cpu(cpu: &Cpu<'_>, database: &Database<'_>, full: &Saturation<'_>, grown: Option<&Inflation<'_>>) -> Finding {
    let (name, interval) = (database.name, &cpu.intervals[full.at]);
    let proof = cpu.proof(full.at);
    let law = Demand::of(cpu, full, interval);
    let dearest = dearest(database, interval);
    let mut reasons = vec![format!(
        "Half of the time or more in {} it stood at {} of {} or above.",
        interval.label,
        units::percent(full.level),
        limit(full)
    )];
    reasons.extend(law.as_ref().map(Demand::told));
    reasons.push(proof.clone().unwrap_or_else(|| {
        "It is not shown whether more CPU would carry more load: no lighter steady load was measured.".into()
    }));
    reasons.extend(grown.map(told));
    let mut ruled_out = vec![
        "Waits for locks: a query that waits for another's lock uses no CPU.".to_owned(),
        "Waits for a connection: they happen before a query is sent and cost the database no CPU.".to_owned(),
        "A peak or a start: this is the median over an interval of counted load.".to_owned(),
    ];
    ruled_out
        .extend(idle_clients(cpu, database, interval).map(|clients| format!("The CPU of those who ask: {clients}.")));
    let mut numbers = vec![
        Figure::new("share of the CPU limit, median", full.level * 100.0, "%"),
        Figure::new("throughput at that time", interval.rate, "/s"),
        Figure::new("mean latency at that time", interval.latency_ns, "ns"),
    ];
    numbers.extend(law.iter().flat_map(Demand::figures));
    Finding {
        title: format!("{name} is saturated: {} of {}", units::percent(full.level), limit(full)),
        resource: name.into(),
        cost_share: full.level.min(1.0),
        cost_of: format!("of what {name} can use: {}", limit(full)),
        confidence: if proof.is_some() { Confidence::High } else { Confidence::Medium },
        reasons,
        numbers,
        evidence_text: dearest.first().map(|asked| clipped(asked.query.text, TEXT_CHARS_MAX)),
        exemplars: dearest.iter().take(EXEMPLARS_MAX).map(|a| exemplar(a.trace, [a.query.span])).collect(),
        ruled_out,
        falsified_by: format!("More CPU for {name}, or fewer queries per request, does not raise throughput."),
        advice: advice(database, interval),
        period: period_of(cpu.trial, interval.start_ns, interval.end_ns),
        ..DatabaseSaturation.finding()
    }
}

/// What a request costs a resource, by the utilisation law U = X · D (Denning and Buzen, *The Operational Analysis of
/// Queueing Network Models*, 1978).
struct Demand {
    cores: f64,
    rate: f64,
    limit_cores: f64,
}

impl Demand {
    fn of(cpu: &Cpu<'_>, full: &Saturation<'_>, interval: &Interval) -> Option<Self> {
        let cores = cpu.service_cores(full.service, interval).filter(|cores| *cores > 0.0)?;
        let limit_cores = match full.limit {
            Limit::Cap(cap) => cap * full.replicas.1 as f64,
            Limit::Thread => full.replicas.1 as f64,
            Limit::Machine | Limit::Host => f64::from(cpu.trial.cores.max(1)),
        };
        (interval.rate > 0.0).then_some(Self { cores, rate: interval.rate, limit_cores })
    }

    fn each_ns(&self) -> f64 {
        self.cores / self.rate * 1e9
    }

    fn told(&self) -> String {
        format!(
            "By the utilisation law each request costs it {} of CPU ({} ÷ {}), so {} can carry {} at most.",
            units::duration(self.each_ns()),
            units::cores(self.cores),
            units::rate(self.rate),
            units::cores(self.limit_cores),
            units::rate(self.limit_cores / self.cores * self.rate)
        )
    }

    fn figures(&self) -> [Figure; 2] {
        [
            Figure::new("CPU of the database for each request", self.each_ns() / 1e9, "s"),
            Figure::new("throughput that its CPU allows at most", self.limit_cores / self.cores * self.rate, "/s"),
        ]
    }
}

fn limit(full: &Saturation<'_>) -> String {
    match full.limit {
        Limit::Cap(cap) => format!("its {}", units::cores(cap)),
        Limit::Thread => "the one core that its busiest thread can use".into(),
        Limit::Machine | Limit::Host => "the machine's cores".into(),
    }
}

fn by_inflation(cpu: &Cpu<'_>, database: &Database<'_>, grown: &Inflation<'_>) -> Finding {
    let name = database.name;
    let dearest = database.longest(grown.worst().shape, grown.heavy);
    let waiting = 1.0 - 1.0 / grown.factor();
    let known = cpu.busy_share(name, grown.heavy).filter(|_| database.is_service);
    let mut ruled_out = vec![
        format!(
            "More work for each query: {}.",
            if grown.has_rows() { "the same queries return as many rows" } else { "the queries are the same" }
        ),
        "Waits for locks: read-only queries are slower by as much.".to_owned(),
        "Rejections: the database rejects hardly any query.".to_owned(),
    ];
    ruled_out.extend(
        idle_clients(cpu, database, grown.heavy).map(|clients| format!("The CPU of those who ask: {clients}.")),
    );
    let mut caveats = Vec::new();
    if database.system.is_some_and(|system| CONNECTED.contains(&system)) {
        ruled_out.push(
            "Waits for a connection: they happen before a query's span begins, and the spans themselves are longer."
                .to_owned(),
        );
    } else {
        caveats.push(format!(
            "The span of a call to {name} may begin before it has a connection, so a part may be a wait for one."
        ));
    }
    if !grown.has_rows() {
        caveats.push(
            "The spans do not show how many rows were returned, so a query may have had more work to do.".to_owned(),
        );
    }
    if known.is_none() {
        caveats.push(format!(
            "The CPU and the disks of {name} were not sampled, so it is not known which of them is full."
        ));
    }
    Finding {
        title: format!(
            "{name} is saturated: the same queries take {} times as long at {} as at {}",
            units::number(grown.factor()),
            grown.heavy.demand(),
            grown.light.demand()
        ),
        resource: name.into(),
        cost_share: waiting,
        cost_of: format!("of the time of its queries at {}, spent waiting in the database", grown.heavy.demand()),
        confidence: if grown.has_rows() { Confidence::Medium } else { Confidence::Low },
        reasons: [told(grown)]
            .into_iter()
            .chain(known.map(|share| format!("Its CPU stood at {}.", units::percent(share))))
            .collect(),
        numbers: grown.grown.iter().take(EXEMPLARS_MAX).flat_map(figures).collect(),
        evidence_text: dearest.first().map(|asked| clipped(asked.query.text, TEXT_CHARS_MAX)),
        exemplars: dearest.iter().take(EXEMPLARS_MAX).map(|a| exemplar(a.trace, [a.query.span])).collect(),
        ruled_out,
        falsified_by: format!(
            "{name} responds to the same queries as fast as at {} while they are sent as often as at {}.",
            grown.light.demand(),
            grown.heavy.demand()
        ),
        advice: advice(database, grown.heavy),
        caveats: caveats.into_iter().map(Into::into).collect(),
        period: period_of(cpu.trial, grown.heavy.start_ns, grown.heavy.end_ns),
        ..DatabaseSaturation.finding()
    }
}

fn figures(grown: &Grown<'_>) -> [Figure; 2] {
    let shape = clipped(grown.shape, 60);
    [
        Figure::new(format!("median of “{shape}” under the lightest load"), grown.light.median_ns, "ns"),
        Figure::new(format!("median of “{shape}” under the heaviest load"), grown.heavy.median_ns, "ns"),
    ]
}

fn told(grown: &Inflation<'_>) -> String {
    let worst = grown.worst();
    let rows =
        worst.heavy.rows.map_or_else(String::new, |rows| format!(", with {} rows each time", units::number(rows)));
    format!(
        "Its queries take {} times as long at {} as at {}; “{}” takes {} instead of {}{rows}.",
        units::number(grown.factor()),
        grown.heavy.demand(),
        grown.light.demand(),
        clipped(worst.shape, 80),
        units::duration(worst.heavy.median_ns),
        units::duration(worst.light.median_ns)
    )
}

/// Who asks and how busy they are; none when that was not sampled.
fn idle_clients(cpu: &Cpu<'_>, database: &Database<'_>, interval: &Interval) -> Option<String> {
    let mut clients: Vec<&str> = database.asked.iter().map(|asked| asked.client).collect();
    clients.sort_unstable();
    clients.dedup();
    let known = clients.iter().map(|client| Some((client, cpu.busy_share(client, interval)?)));
    let known: Vec<_> = known.collect::<Option<_>>()?;
    let is_idle = known.iter().all(|(_, share)| *share <= cpu.thresholds.database_client_share);
    let told = known.iter().map(|(client, share)| format!("{client} uses {} of its own", units::percent(*share)));
    (is_idle && !known.is_empty()).then(|| told.collect::<Vec<_>>().join(", "))
}

/// The queries of the shape that most of the database's time goes to, the longest first.
fn dearest<'a>(database: &Database<'a>, interval: &Interval) -> Vec<Asked<'a>> {
    let shapes = database.taken(interval);
    let most = shapes.iter().max_by(|a, b| time(a.1).total_cmp(&time(b.1)));
    most.map_or_else(Vec::new, |(shape, _)| database.longest(shape, interval))
}

fn time(taken: &crate::databases::Taken) -> f64 {
    taken.count * taken.median_ns
}

fn advice(database: &Database<'_>, interval: &Interval) -> String {
    let shapes = database.taken(interval);
    let all: f64 = shapes.values().map(time).sum();
    let most = shapes.iter().max_by(|a, b| time(a.1).total_cmp(&time(b.1)));
    let first = most.filter(|_| all > 0.0).map(|(shape, taken)| {
        format!(
            "Start with “{}”, {} of the time of all its queries: an index, fewer rows, or a cache. ",
            clipped(shape, 120),
            units::percent(time(taken) / all)
        )
    });
    format!(
        "{}Then send {} fewer queries per request; then give it more CPU, or nodes that share the reads.",
        first.unwrap_or_default(),
        database.name
    )
}

#[cfg(test)]
mod tests;
