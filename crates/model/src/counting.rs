//! Which requests of a load count, and over how much time. Tables, objectives, findings, exports and the search for the
//! capacity all use this module, during and after the load, so that they show the same figures.
//!
//! A request is counted in the row of the load ([`LoadSecond`]) in which it ended. The row belongs to the window that
//! contains its middle. Rows are cut at window boundaries, so each lies in one window or between two. Requests that end
//! after the load, during the wait for the last responses, belong to the last window. They are in all counts and
//! distributions, but in no rate, because a rate is over the time in which load was sent. Warm-up windows and rows
//! between windows do not count.

use std::collections::BTreeMap;

use crate::evidence::LoadTotals;
use crate::load::LoadSecond;
use crate::run::{Window, WindowKind};

/// The part of a window in which the requests of a row ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// While load was sent.
    Sending,
    /// After the load, while the last responses were awaited.
    Draining,
}

impl Window {
    /// Whether its requests count: all windows but the warm-up.
    pub fn is_counted(&self) -> bool {
        self.kind != WindowKind::Warmup
    }

    /// The phase of a row in this window; `None` if the row is not in it.
    pub fn holds(&self, row: &LoadSecond) -> Option<Phase> {
        let middle_ns = row.middle_ns();
        if (self.start_ns..self.end_ns).contains(&middle_ns) {
            return Some(Phase::Sending);
        }
        let is_awaited = middle_ns >= self.end_ns && self.drained_ns.is_some_and(|last_ns| row.start_ns <= last_ns);
        is_awaited.then_some(Phase::Draining)
    }
}

/// The phase of a row in the windows that count; `None` if it does not count.
pub fn counts<'a>(windows: impl IntoIterator<Item = &'a Window>, row: &LoadSecond) -> Option<Phase> {
    let held = windows.into_iter().filter(|window| window.is_counted()).filter_map(|window| window.holds(row));
    held.min_by_key(|phase| *phase != Phase::Sending)
}

/// A running sum of rows: the selected requests, over the time of all rows.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    totals: LoadTotals,
    /// The length of each row by its start. Rows of the same time count once.
    lengths_ns: BTreeMap<i64, i64>,
    length_ns: i64,
}

impl Tally {
    /// Counts the requests of a row, and its time.
    pub fn add(&mut self, row: &LoadSecond, phase: Phase) {
        self.pass(row, phase);
        self.totals.add(row, phase);
    }

    /// Counts only the time of a row whose requests are not selected.
    pub fn pass(&mut self, row: &LoadSecond, phase: Phase) {
        if phase == Phase::Draining {
            return;
        }
        let known_ns = self.lengths_ns.entry(row.start_ns).or_default();
        self.length_ns = self.length_ns.saturating_add((row.length_ns - *known_ns).max(0));
        *known_ns = row.length_ns.max(*known_ns);
        self.totals.seconds = self.length_ns as f64 / 1e9;
    }

    /// The sum so far.
    pub fn totals(&self) -> &LoadTotals {
        &self.totals
    }

    /// The sum.
    pub fn into_totals(self) -> LoadTotals {
        self.totals
    }
}

/// The load of these rows: the requests that `covers` accepts, over the time of all rows.
pub fn totals<'a>(
    rows: impl IntoIterator<Item = (&'a LoadSecond, Phase)>,
    covers: impl Fn(&LoadSecond) -> bool,
) -> LoadTotals {
    let mut tally = Tally::default();
    for (row, phase) in rows {
        if covers(row) { tally.add(row, phase) } else { tally.pass(row, phase) }
    }
    tally.into_totals()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: i64 = 1_000_000_000;

    fn window(kind: WindowKind, start_s: f64, end_s: f64, drained_s: Option<f64>) -> Window {
        let ns = |s: f64| (s * 1e9) as i64;
        Window {
            index: 0,
            kind,
            label: String::new(),
            start_ns: ns(start_s),
            end_ns: ns(end_s),
            drained_ns: drained_s.map(ns),
            vus: 0,
            rate: None,
        }
    }

    fn row(start_s: f64, length_s: f64) -> LoadSecond {
        let mut row = LoadSecond {
            start_ns: (start_s * 1e9) as i64,
            length_ns: (length_s * 1e9) as i64,
            succeeded: 10,
            ..LoadSecond::default()
        };
        row.latency.record_n(5, 10);
        row
    }

    #[test]
    fn each_row_belongs_to_the_window_that_holds_it_or_to_none() {
        use Phase::{Draining, Sending};
        use WindowKind::{Steady, Warmup};
        let windows =
            [window(Warmup, 0.0, 1.5, None), window(Steady, 1.5, 4.0, None), window(Steady, 5.0, 5.4, Some(6.2))];
        for (start_s, length_s, expected) in [
            (0.0, 1.0, None),
            (1.0, 0.5, None),
            (1.5, 0.5, Some(Sending)),
            (3.0, 1.0, Some(Sending)),
            (4.0, 1.0, None),
            (5.0, 0.4, Some(Sending)),
            (5.4, 0.6, Some(Draining)),
            (6.0, 0.2, Some(Draining)),
            (6.2, 0.0, Some(Draining)),
            (6.3, 0.7, None),
        ] {
            assert_eq!(counts(&windows, &row(start_s, length_s)), expected, "{start_s} s for {length_s} s");
        }
    }

    #[test]
    fn what_drains_after_a_warm_up_does_not_count() {
        let windows = [window(WindowKind::Warmup, 0.0, 1.0, Some(3.0))];
        assert_eq!(counts(&windows, &row(1.0, 1.0)), None);
    }

    #[test]
    fn rows_side_by_side_last_as_long_as_one_and_all_give_the_time() {
        let mut tally = Tally::default();
        tally.add(&row(0.0, 1.0), Phase::Sending);
        tally.add(&row(0.0, 1.0), Phase::Sending);
        tally.pass(&row(1.0, 0.4), Phase::Sending);
        tally.add(&row(1.4, 0.6), Phase::Draining);
        let totals = tally.totals();
        assert_eq!((totals.seconds, totals.succeeded, totals.untimed, totals.latency.count()), (1.4, 30, 10, 30));
        assert_eq!(totals.known_rate(), Some(20.0 / 1.4));
    }

    #[test]
    fn a_rate_over_no_known_time_is_none() {
        let of = |rows: &[(LoadSecond, Phase)]| totals(rows.iter().map(|(row, phase)| (row, *phase)), |_| true);
        assert_eq!(of(&[(row(0.0, 0.0), Phase::Sending)]).known_rate(), None);
        let silent = LoadSecond { length_ns: 3 * SECOND_NS, ..LoadSecond::default() };
        assert_eq!(of(&[(silent.clone(), Phase::Sending)]).known_rate(), Some(0.0));
        let late = of(&[(silent, Phase::Sending), (row(40.0, 1.0), Phase::Draining)]);
        assert_eq!((late.known_rate(), late.succeeded, late.seconds), (None, 10, 3.0));
    }
}
