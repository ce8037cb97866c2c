//! Where the threads of each service were under the heaviest load, as rows for the text and the page.

use narrows_model::breakdown::ServiceThreads;
use narrows_model::comparison::Outcome;
use narrows_model::limit::{LevelSummary, Limit};
use narrows_model::units;

/// Fewer threads than this are written as 0: samples are not so exact.
const SHOWN_MIN: f64 = 0.05;

/// The figures of a row, after its service and its load.
pub(crate) const COLUMNS: [&str; 8] =
    ["own requests", "on CPU", "wait for CPU", "lock", "disk", "network", "sleep", "idle"];

/// Meaning of the table, and its limits.
pub(crate) const NOTE: &str = "Mean numbers of threads, and of requests in the service's own time, which are what those \
                               threads serve. Idle threads of a pool wait for a lock too.";

/// One service of a trial.
#[derive(Debug)]
pub(crate) struct Row<'a> {
    /// The service, with the trial's label where there are several trials.
    pub(crate) place: String,
    pub(crate) load: &'a str,
    pub(crate) cells: [String; COLUMNS.len()],
}

/// The services of all trials whose threads were sampled.
pub(crate) fn rows(outcome: &Outcome) -> Vec<Row<'_>> {
    let is_only = outcome.evidence.trials.len() == 1;
    let mut rows = Vec::new();
    for (evidence, limit) in outcome.evidence.trials.iter().zip(&outcome.limits) {
        let Some(level) = heaviest(limit) else { continue };
        let label = evidence.trial.label();
        let place = |service: &str| if is_only { service.to_owned() } else { format!("{label} {service}") };
        let load = level.label.trim_matches(['“', '”']);
        rows.extend(level.threads.iter().map(|one| Row { place: place(&one.service), load, cells: cells(one) }));
    }
    rows
}

/// The level with most arrivals or users, the last of equals.
fn heaviest(limit: &Limit) -> Option<&LevelSummary> {
    let arrivals = |level: &LevelSummary| level.load.arrivals.unwrap_or(0.0);
    let by_demand = |a: &&LevelSummary, b: &&LevelSummary| {
        arrivals(a).total_cmp(&arrivals(b)).then(a.load.users.cmp(&b.load.users))
    };
    limit.levels.iter().filter(|level| !level.threads.is_empty()).max_by(by_demand)
}

fn cells(one: &ServiceThreads) -> [String; COLUMNS.len()] {
    let shown = |value: f64| if value < SHOWN_MIN { "0".to_owned() } else { units::number(value) };
    let by = &one.threads;
    let requests = one.requests.map_or_else(|| "–".to_owned(), shown);
    let [cpu, wait, lock, disk, network, sleep, idle] =
        [by.on_cpu, by.waiting_for_cpu, by.lock, by.disk, by.network, by.sleep, by.idle].map(shown);
    [requests, cpu, wait, lock, disk, network, sleep, idle]
}
