//! How a load came through a fault: what failed, and when requests succeeded again as before.
//!
//! Counted in the load's own seconds, so a time is good to a second. The seconds before the fault are the measure: a
//! second is well when nine tenths of their median of successes succeeded in it and no more failed in it than in the
//! worst of them; the load has recovered with the first of two seconds in a row that are well. A load whose plan is to
//! fall in that time is not seen through.

use std::collections::BTreeMap;
use std::time::Duration;

use narrows_model::load::{ErrorCounts, ErrorKind, LoadSecond};
use narrows_model::units;

const SECOND_NS: i64 = 1_000_000_000;
/// So many seconds before a fault are the measure.
const BEFORE: usize = 5;
/// The share of the successes before that a second needs to be well.
const WELL: f64 = 0.9;

/// What is counted of a second, over all scenarios.
#[derive(Debug, Clone, Copy, Default)]
struct Counted {
    succeeded: u64,
    errors: ErrorCounts,
}

/// The seconds of a load so far.
#[derive(Debug, Default)]
pub(super) struct Seconds {
    by_start: BTreeMap<i64, Counted>,
}

/// The measure that the seconds before a fault give.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Before {
    succeeded: f64,
    failed_max: u64,
}

impl Before {
    fn is_well(self, second: &Counted) -> bool {
        second.succeeded as f64 >= WELL * self.succeeded && second.errors.total() <= self.failed_max
    }
}

impl Seconds {
    /// Takes in seconds that are over.
    pub(super) fn see(&mut self, rows: &[LoadSecond]) {
        for row in rows {
            let counted = self.by_start.entry(row.start_ns).or_default();
            counted.succeeded += row.succeeded;
            counted.errors.add(row.errors);
        }
    }

    /// What came of a fault at a time, in a sentence that goes on from what it was.
    pub(super) fn told_since(&self, at_ns: i64) -> String {
        let after: Vec<(i64, Counted)> =
            self.by_start.range(at_ns - SECOND_NS + 1..).map(|(start, counted)| (*start, *counted)).collect();
        let Some(before) = self.before(at_ns) else {
            let failed = failed(after.iter().map(|(_, second)| second.errors));
            return format!("no whole second before it says what was usual, and {failed} until the load's end.");
        };
        let recovered = recovered_at(&after, before);
        let lasted = &after[..recovered.unwrap_or(after.len())];
        let failed = failed(lasted.iter().map(|(_, second)| second.errors));
        let rate = units::rate(before.succeeded);
        let silence = silence(lasted, at_ns);
        match recovered {
            Some(0) => format!("the load did not feel it: {rate} succeeded as before."),
            Some(index) => {
                let time = since(after[index].0, at_ns);
                format!("{failed}{silence} until, {time} later, {rate} succeeded again as before.")
            }
            None => {
                let end = after.last().map_or(at_ns, |(start, _)| start + SECOND_NS);
                let time = since(end, at_ns);
                format!("{failed}{silence} in the {time} to the load's end, without {rate} succeeding again as before.")
            }
        }
    }

    fn before(&self, at_ns: i64) -> Option<Before> {
        let seconds: Vec<&Counted> =
            self.by_start.range(..=at_ns - SECOND_NS).rev().take(BEFORE).map(|(_, counted)| counted).collect();
        let failed_max = seconds.iter().map(|second| second.errors.total()).max()?;
        let mut succeeded: Vec<u64> = seconds.iter().map(|second| second.succeeded).collect();
        succeeded.sort_unstable();
        Some(Before { succeeded: succeeded[succeeded.len() / 2] as f64, failed_max })
    }
}

/// The first second that is well and followed by another; the last one of a load may stand alone.
fn recovered_at(after: &[(i64, Counted)], before: Before) -> Option<usize> {
    let is_well = |index: usize| after.get(index).is_none_or(|(_, second)| before.is_well(second));
    (0..after.len()).find(|index| is_well(*index) && is_well(index + 1))
}

fn failed(errors: impl Iterator<Item = ErrorCounts>) -> String {
    let mut all = ErrorCounts::default();
    errors.for_each(|errors| all.add(errors));
    let kinds: Vec<String> = ErrorKind::ALL
        .into_iter()
        .filter(|kind| all.of(*kind) > 0)
        .map(|kind| format!("{} {}", kind.as_str(), units::count(all.of(kind))))
        .collect();
    match all.total() {
        0 => "no request failed".to_owned(),
        1 => format!("1 request failed ({})", kinds.join(", ")),
        n => format!("{} requests failed ({})", units::count(n), kinds.join(", ")),
    }
}

/// Whole seconds after the fault in which nothing succeeded.
fn silence(lasted: &[(i64, Counted)], at_ns: i64) -> String {
    match lasted.iter().filter(|(start, second)| *start >= at_ns && second.succeeded == 0).count() {
        0 => String::new(),
        1 => " and none succeeded in 1 whole second".to_owned(),
        n => format!(" and none succeeded in {n} whole seconds"),
    }
}

fn since(later_ns: i64, at_ns: i64) -> String {
    let time = Duration::from_nanos((later_ns - at_ns).max(0).unsigned_abs());
    units::duration(time.as_nanos() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds with so many successes and failed connections each, from the load's beginning on.
    fn seconds(counts: &[(u64, u64)]) -> Seconds {
        let mut seconds = Seconds::default();
        for ((succeeded, connect), at) in counts.iter().zip(0..) {
            let errors = ErrorCounts { connect: *connect, ..ErrorCounts::default() };
            // Two scenarios, of which the second stands still.
            let row = LoadSecond { start_ns: at * SECOND_NS, succeeded: *succeeded, errors, ..LoadSecond::default() };
            seconds.see(&[row, LoadSecond { start_ns: at * SECOND_NS, ..LoadSecond::default() }]);
        }
        seconds
    }

    #[test]
    fn what_came_of_a_fault_is_told() {
        let at_ns = 3 * SECOND_NS + SECOND_NS / 2;
        let usual = [(100, 0), (98, 0), (102, 0)];
        let cases: [(&[(u64, u64)], &str); 6] = [
            (&[(99, 0), (100, 0)], "the load did not feel it: 100/s succeeded as before."),
            (
                &[(50, 2000), (0, 5000), (10, 30), (95, 0), (100, 0)],
                "7,030 requests failed (connect 7,030) and none succeeded in 1 whole second until, 2.50 s later, 100/s \
                 succeeded again as before.",
            ),
            (
                &[(60, 0), (0, 0), (0, 0), (100, 0)],
                "no request failed and none succeeded in 2 whole seconds until, 2.50 s later, 100/s succeeded again as \
                 before.",
            ),
            (
                &[(100, 1), (100, 0), (100, 0)],
                "1 request failed (connect 1) until, 500 ms later, 100/s succeeded again as before.",
            ),
            (
                &[(80, 0), (100, 0), (40, 0), (100, 0), (100, 0)],
                "no request failed until, 2.50 s later, 100/s succeeded again as before.",
            ),
            (
                &[(60, 3), (0, 9)],
                "12 requests failed (connect 12) and none succeeded in 1 whole second in the 1.50 s to the load's end, \
                 without 100/s succeeding again as before.",
            ),
        ];
        for (after, expected) in cases {
            assert_eq!(seconds(&[&usual[..], after].concat()).told_since(at_ns), expected, "{after:?}");
        }
    }

    #[test]
    fn errors_that_were_usual_before_are_no_sign_of_the_fault() {
        let shown = seconds(&[(90, 10), (90, 8), (90, 10), (90, 10)]).told_since(2 * SECOND_NS);
        assert_eq!(shown, "the load did not feel it: 90.0/s succeeded as before.");
    }

    #[test]
    fn a_fault_in_the_first_second_has_nothing_to_be_compared_with() {
        let shown = seconds(&[(0, 4), (100, 0)]).told_since(SECOND_NS / 2);
        assert!(shown.starts_with("no whole second before it") && shown.contains("4 requests failed"), "{shown}");
        assert!(seconds(&[]).told_since(0).contains("no request failed"));
    }
}
