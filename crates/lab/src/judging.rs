//! Objectives over seconds of load: each is judged on the seconds of the requests that it is about.

use std::collections::BTreeSet;

use narrows_model::comparison::ObjectiveResult;
use narrows_model::evidence::{LoadTotals, TrialEvidence};
use narrows_model::load::LoadSecond;

use crate::experiment::Objective;

/// From a second's first instant to its middle, which says whether it belongs to a window.
pub(crate) const MIDDLE_NS: i64 = 500_000_000;

/// What seconds came to together; side by side, several rows of one second last one second.
pub(crate) fn totals<'a>(rows: impl IntoIterator<Item = &'a LoadSecond>) -> LoadTotals {
    let mut totals = LoadTotals::default();
    let mut starts = BTreeSet::new();
    for row in rows {
        totals.add(row);
        starts.insert(row.start_ns);
    }
    totals.seconds = starts.len() as f64;
    totals
}

/// How an objective did on these seconds.
pub(crate) fn judged<'a>(objective: &Objective, rows: impl IntoIterator<Item = &'a LoadSecond>) -> ObjectiveResult {
    objective.evaluate(&totals(rows.into_iter().filter(|row| objective.covers(row))))
}

/// How objectives did on what counts of a trial.
pub(crate) fn of_trial(objectives: &[Objective], trial: &TrialEvidence) -> Vec<ObjectiveResult> {
    let counted: Vec<&LoadSecond> =
        trial.seconds.iter().filter(|row| trial.is_counted(row.start_ns + MIDDLE_NS)).collect();
    objectives.iter().map(|objective| judged(objective, counted.iter().copied())).collect()
}

#[cfg(test)]
mod tests {
    use narrows_model::comparison::Kept;

    use super::*;

    #[test]
    fn an_objective_sees_only_what_it_is_about() {
        let row = |request: &str, at: i64, latency_ns| {
            let mut row = LoadSecond {
                scenario: "shop".into(),
                request: request.into(),
                start_ns: at,
                succeeded: 10,
                ..LoadSecond::default()
            };
            row.latency.record_n(latency_ns, 10);
            row
        };
        let rows = [row("login", 0, 1_000_000), row("pay", 0, 9_000_000), row("pay", 1, 9_000_000)];
        assert_eq!((totals(&rows).seconds, totals(&rows).succeeded), (2.0, 30));
        let of = |request: &str| {
            let source = format!("objectives: [{{ objective: \"max < 5ms\", scenario: shop{request} }}]");
            judged(&crate::experiment::Recorded::read(&source).objectives[0], &rows).kept
        };
        assert_eq!((of(", request: login"), of(", request: pay"), of("")), (Kept::Yes, Kept::No, Kept::No));
    }
}
