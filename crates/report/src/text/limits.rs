//! The levels of a load beside each other, and the verdict on what limits each trial.

use narrows_model::comparison::Outcome;

use super::paint::{Paint, clean, hanging};
use super::table::{Align, render};
use crate::limits::{COLUMNS, OfTrial, cells, limits, sentence};

/// Rows of all tables together, about.
const ROWS_MAX: usize = 60;

/// A table for each trial with several levels, then a line for each trial; empty without a load.
pub(super) fn all(outcome: &Outcome, paint: Paint, width: usize) -> String {
    let limits = limits(outcome);
    let mut left = ROWS_MAX;
    let mut parts = Vec::new();
    for one in limits.iter().filter(|one| one.limit.levels.len() > 1) {
        let rows = one.limit.levels.len();
        if rows <= left {
            left -= rows;
            parts.push(table(one, paint, width));
        }
    }
    let line = |(labels, sentence): (Vec<&str>, String)| {
        let verb = if labels.len() > 1 { "are" } else { "is" };
        let text = clean(&format!("{} {verb} {sentence}", labels.join(", ")));
        hanging("limit", &paint.dim("limit"), &text, 0, width)
    };
    parts.push(sentences(&limits).into_iter().map(line).collect());
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

/// Each sentence once, with the labels of the trials that it holds for.
fn sentences<'a>(limits: &'a [OfTrial<'_>]) -> Vec<(Vec<&'a str>, String)> {
    let mut sentences: Vec<(Vec<&str>, String)> = Vec::new();
    for one in limits {
        let text = sentence(one.limit);
        match sentences.iter_mut().find(|(_, known)| *known == text) {
            Some((labels, _)) => labels.push(&one.label),
            None => sentences.push((vec![&one.label], text)),
        }
    }
    sentences
}

fn table(one: &OfTrial<'_>, paint: Paint, width: usize) -> String {
    let columns = COLUMNS.iter().enumerate();
    let header: Vec<(String, Align)> = std::iter::once((one.label.clone(), Align::Left))
        .chain(columns.skip(1).map(|(_, name)| ((*name).to_owned(), Align::Right)))
        .collect();
    let row = |(at, level)| {
        let mut cells = cells(level).map(|cell| clean(&cell));
        if one.limit.knee == Some(at) {
            cells[0] += " ◂ knee";
        }
        cells.to_vec()
    };
    let rows: Vec<_> = one.limit.levels.iter().enumerate().map(row).collect();
    render(&header, &rows, paint, width)
}

#[cfg(test)]
mod tests {
    use super::super::Color;
    use super::*;
    use crate::fixture;

    #[test]
    fn levels_are_a_table_and_verdicts_are_lines() {
        insta::assert_snapshot!(all(&fixture::stepped_outcome(), Paint(Color::Never), 100), @r"
        as-is          throughput     mean      p50      p95  errors    busiest service  machine
        ────────────────────────────────────────────────────────────────────────────────────────
        1 user ◂ knee       176/s  5.70 ms  5.13 ms  9.12 ms       0  orders 0.10 cores     30 %
        4 users             177/s  22.6 ms  20.3 ms  36.2 ms       0  orders 0.10 cores     30 %
        16 users            176/s  91.0 ms  81.9 ms   146 ms   0.4 %  orders 0.11 cores     30 %

        limit       as-is is limited by something at orders that is not CPU: 176/s with 1 user and with 16
                    users, so it handles one request at a time; it uses 0.11 cores. Look for a lock.
        limit       fixed is limited by the CPU of orders: 98 % of it is in use (services 49 %, Narrows 10
                    %).
        ");
    }

    #[test]
    fn trials_of_which_the_same_is_true_share_a_line() {
        let mut outcome = fixture::stepped_outcome();
        outcome.limits.iter_mut().for_each(|limit| limit.levels.truncate(1));
        outcome.limits[0] = outcome.limits[1].clone();
        let text = all(&outcome, Paint(Color::Never), 100);
        assert!(text.starts_with("limit       as-is, fixed are limited by the CPU of orders: 98 %"), "{text}");
    }

    #[test]
    fn nothing_is_printed_without_a_load() {
        let mut outcome = fixture::stepped_outcome();
        outcome.limits.iter_mut().for_each(|limit| limit.levels.clear());
        assert_eq!(all(&outcome, Paint(Color::Never), 100), "");
    }
}
