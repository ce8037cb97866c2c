//! Ends a load once an objective that breaks off is broken beyond repair.
//!
//! When that is so is the objective's own arithmetic; here the counted seconds so far are summed up for each of them, as
//! the objectives of the whole trial are judged.

use std::collections::BTreeSet;
use std::time::Duration;

use narrows_load::PlannedWindow;
use narrows_model::evidence::LoadTotals;
use narrows_model::load::LoadSecond;
use narrows_model::run::WindowKind;
use narrows_model::units;

use super::under_load::Onward;
use crate::experiment::{Abort, Objective};
use crate::judging::MIDDLE_NS;

/// See the module.
pub(super) struct EarlyEnd<'a> {
    /// Those that break off, with what they cover so far; often none.
    watched: Vec<(&'a Objective, LoadTotals)>,
    /// The windows that count, in nanoseconds since the load's start.
    counted: Vec<(i64, i64)>,
    first_ns: Option<i64>,
    starts: BTreeSet<i64>,
    /// What ended the load, and how long after its start.
    ended: Option<(String, Duration)>,
}

impl<'a> EarlyEnd<'a> {
    /// Watches a load with these windows.
    pub(super) fn new(objectives: &'a [Objective], windows: &[PlannedWindow]) -> Self {
        let ns = |offset: Duration| i64::try_from(offset.as_nanos()).unwrap_or(i64::MAX);
        let counted = windows.iter().filter(|window| window.kind != WindowKind::Warmup);
        let watched = objectives.iter().filter(|objective| objective.abort == Abort::WhenBroken);
        Self {
            watched: watched.map(|objective| (objective, LoadTotals::default())).collect(),
            counted: counted.map(|window| (ns(window.start), ns(window.end))).collect(),
            first_ns: None,
            starts: BTreeSet::new(),
            ended: None,
        }
    }

    /// Takes in the seconds that are over.
    pub(super) fn see(&mut self, rows: &[LoadSecond]) -> Onward {
        let Some(last_ns) = rows.iter().map(|row| row.start_ns).max() else { return Onward::GoOn };
        let first_ns = *self.first_ns.get_or_insert(rows[0].start_ns);
        rows.iter().for_each(|row| self.count(row, row.start_ns - first_ns + MIDDLE_NS));
        let counted = Duration::from_secs(self.starts.len() as u64);
        if self.ended.is_none() {
            let mut watched = self.watched.iter();
            let broken = watched.find(|(objective, totals)| objective.is_broken_beyond_repair(totals, counted));
            let after = Duration::from_nanos((last_ns - first_ns).max(0) as u64 + 1_000_000_000);
            self.ended = broken.map(|(objective, totals)| {
                (format!("\"{}\", which stood at {}", objective.text, objective.evaluate(totals).measured), after)
            });
        }
        if self.ended.is_some() { Onward::Enough } else { Onward::GoOn }
    }

    fn count(&mut self, row: &LoadSecond, middle_ns: i64) {
        if !self.counted.iter().any(|(start, end)| (*start..*end).contains(&middle_ns)) {
            return;
        }
        self.starts.insert(row.start_ns);
        for (_, totals) in self.watched.iter_mut().filter(|(objective, _)| objective.covers(row)) {
            totals.add(row);
        }
        let seconds = self.starts.len() as f64;
        self.watched.iter_mut().for_each(|(_, totals)| totals.seconds = seconds);
    }

    /// What ended the load early, for people; none when nothing did.
    pub(super) fn caveat(&self) -> Option<String> {
        let (what, after) = self.ended.as_ref()?;
        let after = units::duration(after.as_nanos() as f64);
        Some(format!("The load was ended early, {after} after it began, because an objective was broken: {what}."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(kind: WindowKind, from_s: u64, to_s: u64) -> PlannedWindow {
        let (start, end) = (Duration::from_secs(from_s), Duration::from_secs(to_s));
        PlannedWindow { kind, label: String::new(), start, end, vus: 1, rate: None }
    }

    fn second(at: i64, succeeded: u64) -> LoadSecond {
        LoadSecond { start_ns: 7_000_000_000 + at * 1_000_000_000, succeeded, ..LoadSecond::default() }
    }

    /// A second in which so many requests took 50 ms.
    fn slow(at: i64, n: u64) -> LoadSecond {
        let mut row = second(at, n);
        row.latency.record_n(50_000_000, n);
        row
    }

    #[test]
    fn a_load_ends_with_the_first_objective_that_is_broken_in_counted_seconds() {
        let source =
            "objectives: [p50 < 1ms, { objective: p95 < 10ms, abort: true }, { objective: max < 1h, abort: true }]";
        let objectives = crate::experiment::Recorded::read(source).objectives;
        let windows = [window(WindowKind::Warmup, 0, 5), window(WindowKind::Steady, 5, 60)];
        let mut early = EarlyEnd::new(&objectives, &windows);
        assert_eq!(early.see(&[]), Onward::GoOn);
        let ended = (0..60).find(|at| early.see(&[slow(*at, 1_000)]) == Onward::Enough);
        assert!(ended.is_some_and(|at| at >= 5), "{ended:?}");
        let caveat = early.caveat().unwrap();
        assert!(
            caveat.contains("\"p95 < 10ms\", which stood at 50") && caveat.contains("s after it began"),
            "{caveat}"
        );
        assert_eq!(early.see(&[slow(60, 1)]), Onward::Enough);
    }

    #[test]
    fn without_an_objective_that_breaks_off_a_load_goes_on() {
        let objectives = crate::experiment::Recorded::read("objectives: [p95 < 10ms]").objectives;
        let mut early = EarlyEnd::new(&objectives, &[window(WindowKind::Steady, 0, 60)]);
        assert!((0..60).all(|at| early.see(&[slow(at, 1_000)]) == Onward::GoOn));
        assert_eq!(early.caveat(), None);
    }
}
