//! How a load came through something that befell the system at an instant: what failed, and when requests succeeded
//! again as before.
//!
//! Counted in the load's own seconds, so a time is good to a second. The seconds before are the measure: a second is
//! well when nine tenths of their median of successes succeeded in it and no more failed in it than in the worst of
//! them; the load has recovered with the first of two seconds in a row that are well. A load whose plan is to fall in
//! that time is not seen through.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{ErrorCounts, LoadSecond};

const SECOND_NS: i64 = 1_000_000_000;
/// So many seconds before are the measure.
const BEFORE: usize = 5;
/// The share of the successes before that a second needs to be well.
const WELL: f64 = 0.9;

/// Recovery of a load.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Recovery {
    /// Successes per second before; `None` if no whole second came before.
    pub usual: Option<f64>,
    /// Requests that failed until the load had recovered or, if it did not, until its end.
    pub errors: ErrorCounts,
    /// Requests that ended in that time, well or not.
    pub ended: u64,
    /// Whole seconds of that time in which nothing succeeded.
    pub silent_seconds: usize,
    /// When the load had recovered, or when it ended.
    pub until_ns: i64,
    /// How it came to an end.
    pub end: RecoveryEnd,
}

/// How the time in which a load felt something came to an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecoveryEnd {
    /// It did not begin: every second was well.
    Unfelt,
    /// As many requests succeeded as before.
    Recovered,
    /// The load ended before that.
    LoadEnded,
}

/// Counts of a second, over all scenarios.
#[derive(Debug, Clone, Copy, Default)]
struct SecondCounts {
    succeeded: u64,
    errors: ErrorCounts,
}

/// The measure that the seconds before give.
#[derive(Debug, Clone, Copy)]
struct Before {
    succeeded: f64,
    failed_max: u64,
}

impl Before {
    fn is_well(self, second: &SecondCounts) -> bool {
        second.succeeded as f64 >= WELL * self.succeeded && second.errors.total() <= self.failed_max
    }
}

/// How a load with these rows came through what befell the system at an instant.
pub fn recovery<'a>(rows: impl IntoIterator<Item = &'a LoadSecond>, at_ns: i64) -> Recovery {
    let mut seconds: BTreeMap<i64, SecondCounts> = BTreeMap::new();
    for row in rows {
        let counted = seconds.entry(row.start_ns).or_default();
        counted.succeeded += row.succeeded;
        counted.errors.add(row.errors);
    }
    let after: Vec<(i64, SecondCounts)> =
        seconds.range(at_ns - SECOND_NS + 1..).map(|(start, counted)| (*start, *counted)).collect();
    let before = before(&seconds, at_ns);
    let recovered = before.and_then(|before| recovered_at(&after, before));
    let lasted = &after[..recovered.unwrap_or(after.len())];
    let mut errors = ErrorCounts::default();
    lasted.iter().for_each(|(_, second)| errors.add(second.errors));
    let is_silent = |(start, second): &&(i64, SecondCounts)| *start >= at_ns && second.succeeded == 0;
    Recovery {
        usual: before.map(|before| before.succeeded),
        errors,
        ended: errors.total() + lasted.iter().map(|(_, second)| second.succeeded).sum::<u64>(),
        silent_seconds: lasted.iter().filter(is_silent).count(),
        until_ns: match recovered {
            Some(index) => after[index].0.max(at_ns),
            None => after.last().map_or(at_ns, |(start, _)| start + SECOND_NS),
        },
        end: match recovered {
            Some(0) => RecoveryEnd::Unfelt,
            Some(_) => RecoveryEnd::Recovered,
            None => RecoveryEnd::LoadEnded,
        },
    }
}

fn before(seconds: &BTreeMap<i64, SecondCounts>, at_ns: i64) -> Option<Before> {
    let seconds: Vec<&SecondCounts> =
        seconds.range(..=at_ns - SECOND_NS).rev().take(BEFORE).map(|(_, counted)| counted).collect();
    let failed_max = seconds.iter().map(|second| second.errors.total()).max()?;
    let mut succeeded: Vec<u64> = seconds.iter().map(|second| second.succeeded).collect();
    succeeded.sort_unstable();
    Some(Before { succeeded: succeeded[succeeded.len() / 2] as f64, failed_max })
}

/// The first second that is well and followed by another; the last one of a load may stand alone.
fn recovered_at(after: &[(i64, SecondCounts)], before: Before) -> Option<usize> {
    let is_well = |index: usize| after.get(index).is_none_or(|(_, second)| before.is_well(second));
    (0..after.len()).find(|index| is_well(*index) && is_well(index + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recovery from a fault half a second into the fourth second of a load with these successes and failed
    /// connections: how it ended, after how many milliseconds, how many failed and ended, and silent seconds.
    fn came(counts: &[(u64, u64)]) -> (RecoveryEnd, i64, u64, u64, usize) {
        let mut rows = Vec::new();
        for ((succeeded, connect), at) in counts.iter().zip(0..) {
            let errors = ErrorCounts { connect: *connect, ..ErrorCounts::default() };
            // Two scenarios, of which the second stands still.
            rows.push(LoadSecond { start_ns: at * SECOND_NS, succeeded: *succeeded, errors, ..LoadSecond::default() });
            rows.push(LoadSecond { start_ns: at * SECOND_NS, ..LoadSecond::default() });
        }
        let at_ns = 3 * SECOND_NS + SECOND_NS / 2;
        let came = recovery(&rows, at_ns);
        (came.end, (came.until_ns - at_ns) / 1_000_000, came.errors.total(), came.ended, came.silent_seconds)
    }

    #[test]
    fn a_load_has_recovered_with_two_seconds_that_are_well() {
        use RecoveryEnd::{LoadEnded, Recovered, Unfelt};
        let usual = [(100, 0), (98, 0), (102, 0)];
        for (after, expected) in [
            (&[(99, 0), (100, 0)][..], (Unfelt, 0, 0, 0, 0)),
            (&[(50, 2000), (0, 5000), (10, 30), (95, 0), (100, 0)], (Recovered, 2500, 7030, 7090, 1)),
            (&[(60, 0), (0, 0), (0, 0), (100, 0)], (Recovered, 2500, 0, 60, 2)),
            (&[(100, 1), (100, 0), (100, 0)], (Recovered, 500, 1, 101, 0)),
            (&[(80, 0), (100, 0), (40, 0), (100, 0), (100, 0)], (Recovered, 2500, 0, 220, 0)),
            (&[(60, 3), (0, 9)], (LoadEnded, 1500, 12, 72, 1)),
        ] {
            assert_eq!(came(&[&usual[..], after].concat()), expected, "{after:?}");
        }
    }

    #[test]
    fn errors_that_were_usual_before_are_no_sign() {
        let usual = [(90, 10), (90, 8), (90, 10), (90, 10), (90, 9)];
        assert_eq!(came(&usual).0, RecoveryEnd::Unfelt);
    }

    #[test]
    fn without_a_second_before_there_is_nothing_to_compare_with() {
        let row = LoadSecond { errors: ErrorCounts { reset: 4, ..ErrorCounts::default() }, ..LoadSecond::default() };
        let came = recovery([&row], SECOND_NS / 2);
        assert_eq!((came.usual, came.errors.total(), came.end), (None, 4, RecoveryEnd::LoadEnded));
        assert_eq!(recovery([], 7).until_ns, 7);
    }
}
