//! Where the threads of each service were under the heaviest load.

use narrows_model::comparison::Outcome;

use super::paint::{Paint, clean, hanging};
use super::table::{Align, render};
use crate::threads::{COLUMNS, NOTE, rows};

/// The most rows.
const ROWS_MAX: usize = 24;

/// A table; empty when no threads were sampled.
pub(super) fn all(outcome: &Outcome, paint: Paint, width: usize) -> String {
    let rows = rows(outcome);
    if rows.is_empty() {
        return String::new();
    }
    let first = [("where threads are".to_owned(), Align::Left), ("load".to_owned(), Align::Left)];
    let header: Vec<(String, Align)> =
        first.into_iter().chain(COLUMNS.map(|name| (name.to_owned(), Align::Right))).collect();
    let cells = rows.iter().take(ROWS_MAX).map(|row| {
        [clean(&row.place), clean(row.load)].into_iter().chain(row.cells.iter().cloned()).collect::<Vec<_>>()
    });
    let table = render(&header, &cells.collect::<Vec<_>>(), paint, width);
    table + &hanging("note", &paint.dim("note"), NOTE, 0, width)
}

#[cfg(test)]
mod tests {
    use super::super::Color;
    use super::*;
    use crate::fixture;

    #[test]
    fn each_service_is_a_row() {
        insta::assert_snapshot!(all(&fixture::stepped_outcome(), Paint(Color::Never), 110), @r"
        where threads are  load      own requests  on CPU  wait for CPU  lock  disk  network  sleep  idle
        ─────────────────────────────────────────────────────────────────────────────────────────────────
        as-is orders       16 users            16    0.11             0    15  0.20        0      0     3
        fixed orders       8 users              8    0.98             0     7  0.20        0      0     3
        note        Mean numbers of threads, and of requests in the service's own time, which are what those threads
                    serve. Idle threads of a pool wait for a lock too.
        ");
        assert_eq!(all(&fixture::outcome(), Paint(Color::Never), 110), "");
    }
}
