//! Clauses on failed requests and missed objectives.

use narrows_model::comparison::{Kept, Subject};
use narrows_model::evidence::TrialEvidence;
use narrows_model::finding::narrow_place;
use narrows_model::load::ErrorCounts;
use narrows_model::run::TrialState;
use narrows_model::units;

use super::missed::missed;
use super::{Story, few};
use crate::detectors::generator_limited::all_failed;

/// Failed ÷ ended from which failures are reported: below, the 99 % latency is still that of a successful request.
const FAILED_MIN: f64 = 0.01;

impl<'a> Story<'a> {
    /// Clause on the trials without a successful request; `None` if every trial has one.
    pub(super) fn failures(&self) -> Option<String> {
        let failed: Vec<&TrialEvidence> =
            self.finished().map(|(trial, _)| trial).filter(|trial| all_failed(trial)).collect();
        let labels: Vec<String> = failed.iter().map(|trial| trial.trial.label()).collect();
        let mut errors = ErrorCounts::default();
        failed.iter().for_each(|trial| errors.add(trial.counted_load().errors));
        let what = match errors.total() {
            0 => return None,
            1 => "the only request".to_owned(),
            all => format!("all {} requests", units::count(all)),
        };
        Some(format!("in {} the system failed {what} ({})", few(&labels), errors.by_kind()))
    }

    /// True if every finished trial failed every request, and no finding explains more.
    pub(super) fn has_nothing_else(&self) -> bool {
        self.finished().all(|(trial, findings)| all_failed(trial) && findings.is_empty())
    }

    /// Clauses on objectives that trials without a narrow place missed, each with what explains it.
    pub(super) fn missed(&self) -> String {
        let trials = self.evidence.trials.iter().zip(self.objectives).enumerate();
        let clauses = trials.filter_map(|(at, (trial, objectives))| {
            let is_explained = self.findings.get(at).and_then(|findings| narrow_place(findings)).is_some();
            let is_told = is_explained || trial.trial.state != TrialState::Done || all_failed(trial);
            let breakdowns = self.breakdowns.get(at).map_or(&[][..], Vec::as_slice);
            (!is_told).then(|| missed(trial, objectives, breakdowns))?
        });
        clauses.map(|clause| format!("; {clause}")).collect()
    }

    /// Clause on trials in which requests failed, without those that [`Self::missed`] or [`Self::failures`] has.
    pub(super) fn some_failed(&self) -> String {
        let is_told = |at: usize| {
            let objectives = self.objectives.get(at).into_iter().flatten();
            let is_explained = self.findings.get(at).and_then(|findings| narrow_place(findings)).is_some();
            !is_explained && objectives.into_iter().any(|one| one.kept == Kept::No && one.subject == Subject::Errors)
        };
        let (mut labels, mut errors, mut ended) = (Vec::new(), ErrorCounts::default(), 0);
        for (at, trial) in self.evidence.trials.iter().enumerate() {
            let load = trial.counted_load();
            let failed_share = load.errors.total() as f64 / load.ended().max(1) as f64;
            let is_notable = failed_share >= FAILED_MIN && load.succeeded > 0 && trial.trial.state == TrialState::Done;
            if is_notable && !is_told(at) {
                labels.push(trial.trial.label());
                errors.add(load.errors);
                ended += load.ended();
            }
        }
        match errors.total() {
            0 => String::new(),
            failed => format!(
                "; in {} {} of {} requests failed ({})",
                few(&labels),
                units::count(failed),
                units::count(ended),
                errors.by_kind()
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use narrows_model::run::Verdict;

    use super::super::fixture::{narrow, said_of, trial};

    #[test]
    fn a_system_that_fails_every_request_is_reported_and_the_generator_is_not_blamed() {
        let failing = |variant: &str| {
            let mut trial = trial(variant, 100.0, 80.0).verdict(Verdict::Invalid, "All 3,000 requests failed.").build();
            for second in &mut trial.seconds {
                second.errors.status += std::mem::take(&mut second.succeeded);
                second.latency = Default::default();
            }
            trial
        };
        assert_eq!(said_of(vec![failing("a")]), "In a the system failed all 3,000 requests (status 3,000).");
        let both = said_of(vec![failing("a"), failing("b")]);
        assert_eq!(both, "In a and b the system failed all 6,000 requests (status 6,000).");
        let sentence = said_of(vec![failing("a"), trial("b", 100.0, 80.0).build()]);
        assert!(sentence.starts_with("In a the system failed all 3,000 requests (status 3,000); no "), "{sentence}");
        assert!(!sentence.contains("generator"), "{sentence}");
    }

    #[test]
    fn failed_requests_of_a_variant_are_reported_beside_what_another_gained() {
        let failing = |failed: u64| {
            let mut trial = narrow(trial("as-is", 100.0, 80.0)).build();
            trial.seconds[0].errors.timeout = failed;
            trial
        };
        let fixed = || trial("fixed", 200.0, 40.0).build();
        let sentence = said_of(vec![failing(100), fixed()]);
        assert!(sentence.ends_with("; in as-is 100 of 3,100 requests failed (timeout 100)."), "{sentence}");
        let sentence = said_of(vec![failing(10), fixed()]);
        assert!(!sentence.contains("failed"), "{sentence}");
    }
}
