//! Objectives over a load: each is judged by the requests that it is about, over the time of all.

use narrows_model::comparison::ObjectiveResult;
use narrows_model::counting::{self, Phase};
use narrows_model::evidence::TrialEvidence;
use narrows_model::load::LoadSecond;

use crate::experiment::Objective;

/// How an objective did on these rows.
pub(crate) fn judged<'a>(
    objective: &Objective,
    rows: impl IntoIterator<Item = (&'a LoadSecond, Phase)>,
) -> ObjectiveResult {
    objective.evaluate(&counting::totals(rows, |row| objective.covers(row)))
}

/// How objectives did on what counts of a trial.
pub(crate) fn of_trial(objectives: &[Objective], trial: &TrialEvidence) -> Vec<ObjectiveResult> {
    objectives.iter().map(|objective| judged(objective, trial.counted_rows())).collect()
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
        let rows = [row("login", 0, 1_000_000), row("pay", 0, 9_000_000), row("pay", 1_000_000_000, 9_000_000)];
        let rows = || rows.iter().map(|row| (row, Phase::Sending));
        let of = |request: &str| {
            let source = format!("objectives: [{{ objective: \"max < 5ms\", scenario: shop{request} }}]");
            judged(&crate::experiment::Recorded::read(&source).objectives[0], rows()).kept
        };
        assert_eq!((of(", request: login"), of(", request: pay"), of("")), (Kept::Yes, Kept::No, Kept::No));
    }
}
