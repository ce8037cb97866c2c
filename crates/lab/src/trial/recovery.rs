//! Seconds of a load that show how it came through a fault. The arithmetic is the model's ([`recovery`]).

use std::collections::VecDeque;

use narrows_model::load::{LoadSecond, Recovery, RecoveryEnd, recovery};

/// Time before a fault whose seconds are kept; the model looks at the last few.
const BEFORE_NS: i64 = 60_000_000_000;
/// Time that a load must be back to normal before the effect of a fault is settled.
const SETTLED_NS: i64 = 3_000_000_000;

/// Successes and errors in the last seconds of a load, over all requests.
#[derive(Debug, Default)]
pub(super) struct Seconds(VecDeque<LoadSecond>);

impl Seconds {
    /// Takes in seconds that are over.
    pub(super) fn see(&mut self, rows: &[LoadSecond]) {
        for row in rows {
            match self.0.back_mut().filter(|last| last.start_ns == row.start_ns) {
                Some(last) => {
                    last.succeeded += row.succeeded;
                    last.errors.add(row.errors);
                }
                None => self.0.push_back(LoadSecond {
                    start_ns: row.start_ns,
                    succeeded: row.succeeded,
                    errors: row.errors,
                    ..LoadSecond::default()
                }),
            }
        }
    }

    /// As [`Self::since`]; `None` until no later second can change it.
    pub(super) fn settled_since(&self, at_ns: i64) -> Option<Recovery> {
        let recovery = self.since(at_ns);
        let last_ns = self.0.back()?.start_ns;
        let is_settled =
            recovery.end != RecoveryEnd::LoadEnded && last_ns >= recovery.until_ns.saturating_add(SETTLED_NS);
        is_settled.then_some(recovery)
    }

    /// Drops seconds that are not needed for faults from this time on; `None` means future faults only.
    pub(super) fn forget_before(&mut self, fault_ns: Option<i64>) {
        let Some(last_ns) = self.0.back().map(|last| last.start_ns) else { return };
        let from_ns = fault_ns.unwrap_or(last_ns).saturating_sub(BEFORE_NS);
        while self.0.front().is_some_and(|first| first.start_ns < from_ns) {
            self.0.pop_front();
        }
    }

    /// Recovery from a fault at a time.
    pub(super) fn since(&self, at_ns: i64) -> Recovery {
        recovery(&self.0, at_ns)
    }
}

#[cfg(test)]
mod tests {
    use narrows_diagnose::words::trial_caveat;
    use narrows_model::caveat::{FaultAction, TrialCaveat};
    use narrows_model::load::ErrorCounts;

    use super::*;

    const SECOND_NS: i64 = 1_000_000_000;

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

    /// Text on the recovery from a fault at a time.
    fn text(seconds: &Seconds, at_ns: i64) -> String {
        let (replica, action, recovery) = ("a".to_owned(), FaultAction::Killed, seconds.since(at_ns));
        let text = trial_caveat(&TrialCaveat::Fault { replica, action, after_ns: 3.5e9, at_ns, recovery });
        text.strip_prefix("a was killed 3.50 s into the load, as the experiment specifies: ").unwrap().to_owned()
    }

    #[test]
    fn what_came_of_a_fault_is_reported() {
        let at_ns = 3 * SECOND_NS + SECOND_NS / 2;
        let usual = [(100, 0), (98, 0), (102, 0)];
        let cases: [(&[(u64, u64)], &str); 6] = [
            (&[(99, 0), (100, 0)], "the load was not affected: 100/s succeeded as before."),
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
            assert_eq!(text(&seconds(&[&usual[..], after].concat()), at_ns), expected, "{after:?}");
        }
    }

    #[test]
    fn errors_that_were_usual_before_are_no_sign_of_the_fault() {
        let shown = text(&seconds(&[(90, 10), (90, 8), (90, 10), (90, 10)]), 2 * SECOND_NS);
        assert_eq!(shown, "the load was not affected: 90.0/s succeeded as before.");
    }

    #[test]
    fn a_fault_in_the_first_second_has_nothing_to_be_compared_with() {
        let shown = text(&seconds(&[(0, 4), (100, 0)]), SECOND_NS / 2);
        assert!(shown.starts_with("no whole second before it") && shown.contains("4 requests failed"), "{shown}");
        assert!(text(&seconds(&[]), 0).contains("no request failed"));
    }

    #[test]
    fn what_came_of_a_fault_in_a_long_load_is_settled_soon_and_little_is_kept() {
        let row = |at: i64| {
            let (succeeded, connect) = if (7_200..7_205).contains(&at) { (10, 90) } else { (100, 0) };
            let errors = ErrorCounts { connect, ..ErrorCounts::default() };
            LoadSecond { start_ns: at * SECOND_NS, succeeded, errors, ..LoadSecond::default() }
        };
        let at_ns = 7_200 * SECOND_NS;
        let (mut all, mut few, mut settled) = (Seconds::default(), Seconds::default(), None);
        for at in 0..28_800 {
            [&mut all, &mut few].into_iter().for_each(|seconds| seconds.see(&[row(at)]));
            if at >= 7_200 && settled.is_none() {
                settled = few.settled_since(at_ns).map(|came| (at, came));
            }
            few.forget_before(Some(at_ns).filter(|_| at >= 7_200 && settled.is_none()));
            assert!(few.0.len() <= 80, "{} at {at}", few.0.len());
        }
        assert_eq!(settled, Some((7_208, all.since(at_ns))));
    }
}
