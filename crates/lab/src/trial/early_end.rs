//! Ends a load once an objective that breaks off can no longer be met; see [`crate::outlook`] for the rule.

use narrows_model::caveat::TrialCaveat;
use narrows_model::load::{LoadPlan, LoadSecond};

use crate::experiment::{Abort, Objective};
use crate::outlook::Outlook;
use crate::trial::under_load::Onward;

/// See the module.
pub(super) struct EarlyEnd<'a> {
    /// Of the objectives that break off, often none.
    outlook: Outlook<'a>,
    first_ns: Option<i64>,
    /// Early end of the load.
    ended: Option<TrialCaveat>,
}

impl<'a> EarlyEnd<'a> {
    /// Watches a load that follows this plan.
    pub(super) fn new(objectives: &'a [Objective], plan: &LoadPlan) -> Self {
        let watched = objectives.iter().filter(|objective| objective.abort == Abort::WhenLost);
        Self { outlook: Outlook::new(watched, plan), first_ns: None, ended: None }
    }

    /// Takes in the seconds that are over.
    pub(super) fn see(&mut self, rows: &[LoadSecond]) -> Onward {
        let Some(last_ns) = rows.iter().map(LoadSecond::end_ns).max() else { return Onward::GoOn };
        let first_ns = *self.first_ns.get_or_insert(rows[0].start_ns);
        self.outlook.add(rows);
        if self.ended.is_none() && !self.outlook.is_over() {
            let after_ns = (last_ns - first_ns).max(0) as f64;
            self.ended = self.outlook.first_lost().map(|(objective, totals)| TrialCaveat::LoadEndedEarly {
                objective: objective.text.clone(),
                measured: objective.evaluate(totals).measured.to_string(),
                after_ns,
            });
        }
        if self.ended.is_some() { Onward::Enough } else { Onward::GoOn }
    }

    /// Early end of the load; `None` without one.
    pub(super) fn caveat(&self) -> Option<TrialCaveat> {
        self.ended.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use narrows_diagnose::words::trial_caveat;
    use narrows_model::load::LoadModel;

    use super::*;
    use crate::outlook::tests::plan;

    /// One user for 55 s, after a warm-up.
    fn one_user(warmup_s: u64) -> LoadPlan {
        plan(&[(warmup_s, LoadModel::ConstantVus { vus: 1, duration: Duration::from_secs(55) })])
    }

    /// A second in which so many requests took 50 ms.
    fn slow(at: i64, n: u64) -> LoadSecond {
        let start_ns = 7_000_000_000 + at * 1_000_000_000;
        let mut row = LoadSecond { scenario: "a".into(), start_ns, succeeded: n, vus: 1, ..LoadSecond::default() };
        row.latency.record_n(50_000_000, n);
        row
    }

    fn objectives(list: &str) -> Vec<Objective> {
        crate::experiment::RecordedExperiment::read(&format!("objectives: [{list}]")).objectives
    }

    #[test]
    fn a_load_ends_with_the_first_objective_that_is_broken_in_counted_seconds() {
        let objectives =
            objectives("p50 < 1ms, { objective: p95 < 10ms, abort: true }, { objective: max < 1h, abort: true }");
        let mut early = EarlyEnd::new(&objectives, &one_user(5));
        assert_eq!(early.see(&[]), Onward::GoOn);
        let ended = (0..60).find(|at| early.see(&[slow(*at, 1_000)]) == Onward::Enough);
        assert!(ended.is_some_and(|at| at >= 5), "{ended:?}");
        let caveat = trial_caveat(&early.caveat().unwrap());
        assert!(
            caveat.contains("\"p95 < 10ms\", which stood at 50") && caveat.contains("s after it began"),
            "{caveat}"
        );
        assert_eq!(early.see(&[slow(60, 1)]), Onward::Enough);
    }

    #[test]
    fn a_load_goes_on_while_an_objective_that_is_missed_so_far_can_still_be_met() {
        let objectives = objectives("{ objective: p50 < 10ms, abort: true }");
        let mut early = EarlyEnd::new(&objectives, &one_user(0));
        assert!((0..20).all(|at| early.see(&[slow(at, 1_000)]) == Onward::GoOn), "35 s are left to be fast in");
    }

    #[test]
    fn a_load_that_is_over_was_not_ended_early() {
        let objectives = objectives("{ objective: max < 10ms, abort: true }");
        let mut early = EarlyEnd::new(&objectives, &one_user(0));
        let mut rows: Vec<LoadSecond> = (0..54).map(|at| slow(at, 0)).collect();
        rows.push(slow(54, 1));
        assert_eq!((early.see(&rows), early.caveat()), (Onward::GoOn, None));
    }

    #[test]
    fn without_an_objective_that_breaks_off_a_load_goes_on() {
        let objectives = objectives("p95 < 10ms");
        let mut early = EarlyEnd::new(&objectives, &one_user(5));
        assert!((0..60).all(|at| early.see(&[slow(at, 1_000)]) == Onward::GoOn));
        assert_eq!(early.caveat(), None);
    }
}
