//! Where the threads of each service were under the heaviest load.

use super::Context;
use crate::section::{Block, Column, Phrase, Row, Section, Table};
use crate::threads::{COLUMNS, NOTE, rows};

/// Rows at most.
const ROWS_MAX: usize = 100;
/// Rows in the terminal at most.
const TERMINAL_MAX: usize = 24;

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
