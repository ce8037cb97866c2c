//! Where the threads of each service were under the heaviest load.

use narrows_model::breakdown::ServiceThreads;
use narrows_model::comparison::Outcome;
use narrows_model::limit::{LevelSummary, Limit};
use narrows_model::units;

use super::Context;
use crate::section::{Block, Column, Phrase, Row, Section, Table};

/// Rows at most.
const ROWS_MAX: usize = 100;
/// Rows in the terminal at most.
const TERMINAL_MAX: usize = 24;

/// Fewer threads than this are written as 0: samples are not so exact.
const SHOWN_MIN: f64 = 0.05;

/// The figures of a row, after its service and its load.
const COLUMNS: [&str; 8] = ["own requests", "on CPU", "wait for CPU", "lock", "disk", "network", "sleep", "idle"];

/// Meaning of the table, and its limits.
const NOTE: &str = "Mean numbers of threads, and of requests in the service's own time, which are what those \
                               threads serve. Idle threads of a pool wait for a lock too.";

/// The table; without blocks if no threads were sampled.
pub(super) fn section(context: &Context<'_>) -> Section {
    let rows: Vec<Row> = rows(context.outcome)
        .into_iter()
        .take(ROWS_MAX)
        .map(|row| Row::new([row.place, row.load.to_owned()].into_iter().chain(row.cells)))
        .collect();
    if rows.is_empty() {
        return Section::default();
    }
    let mut columns = vec![Column::left("service").short("where threads are"), Column::left("load")];
    columns.extend(COLUMNS.map(Column::right));
    let table = Table::new(columns, rows).terminal_rows(TERMINAL_MAX);
    Section::new("threads", "Where the threads are", vec![Block::Table(table), Block::Note(Phrase::from(NOTE))])
}

/// One service of a trial.
#[derive(Debug)]
struct ThreadRow<'a> {
    /// The service, with the trial's label where there are several trials.
    place: String,
    load: &'a str,
    cells: [String; COLUMNS.len()],
}

/// The services of all trials whose threads were sampled.
fn rows(outcome: &Outcome) -> Vec<ThreadRow<'_>> {
    let is_only = outcome.evidence.trials.len() == 1;
    let mut rows = Vec::new();
    for (evidence, limit) in outcome.evidence.trials.iter().zip(&outcome.limits) {
        let Some(at) = heaviest(limit, |level| !level.threads.is_empty()) else { continue };
        let level = &limit.levels[at];
        let label = evidence.trial.label();
        let place = |service: &str| if is_only { service.to_owned() } else { format!("{label} {service}") };
        let load = level.label.trim_matches(['“', '”']);
        rows.extend(level.threads.iter().map(|one| ThreadRow { place: place(&one.service), load, cells: cells(one) }));
    }
    rows
}

/// Place of the level with most arrivals or users among those that are meant, the last of equals.
pub(super) fn heaviest(limit: &Limit, is_meant: fn(&LevelSummary) -> bool) -> Option<usize> {
    let arrivals = |at: usize| limit.levels[at].load.arrivals.unwrap_or(0.0);
    let users = |at: usize| limit.levels[at].load.users;
    let meant = (0..limit.levels.len()).filter(|at| is_meant(&limit.levels[*at]));
    meant.max_by(|a, b| arrivals(*a).total_cmp(&arrivals(*b)).then(users(*a).cmp(&users(*b))))
}

fn cells(one: &ServiceThreads) -> [String; COLUMNS.len()] {
    let shown = |value: f64| if value < SHOWN_MIN { "0".to_owned() } else { units::number(value) };
    let by = &one.threads;
    let requests = one.requests.map_or_else(|| "–".to_owned(), shown);
    let [cpu, wait, lock, disk, network, sleep, idle] =
        [by.on_cpu, by.waiting_for_cpu, by.lock, by.disk, by.network, by.sleep, by.idle].map(shown);
    [requests, cpu, wait, lock, disk, network, sleep, idle]
}

#[cfg(test)]
mod tests {
    use super::super::{in_page, in_terminal};
    use super::*;
    use crate::fixture;

    #[test]
    fn each_service_is_a_row() {
        let mut outcome = fixture::stepped_outcome();
        insta::assert_snapshot!(in_terminal(section, &outcome, 110), @r"
        where threads are  load      own requests  on CPU  wait for CPU  lock  disk  network  sleep  idle
        ─────────────────────────────────────────────────────────────────────────────────────────────────
        as-is orders       16 users            16    0.11             0    15  0.20        0      0     3
        fixed orders       8 users              8    0.98             0     7  0.20        0      0     3
        Mean numbers of threads, and of requests in the service's own time, which are what those threads serve. Idle
        threads of a pool wait for a lock too.
        ");
        outcome.limits[0].levels[2].threads[0].service = "<b>".to_owned();
        let page = in_page(section, &outcome);
        assert!(page.contains("&lt;b&gt;") && !page.contains("<b>") && page.contains("16 users"), "{page}");
        assert_eq!(in_terminal(section, &fixture::outcome(), 110), "");
    }
}
