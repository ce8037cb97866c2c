//! Names the narrow place: detectors over evidence, the comparison of variants, and the sentence that sums a run up.
//!
//! Everything here is a pure function of the evidence: no input or output, no clock, no randomness, no failure. What is
//! missing becomes silence of a detector and a line of [`caveats()`], never an error. A detector judges and words one
//! cause; what several causes have to do with each other is decided once, after all have run.

mod beside;
mod calls;
mod caveats;
mod compare;
pub mod detectors;
mod instrumentation;
mod rank;
mod reading;
mod refusals;
mod repetition;
mod requests;
mod sentence;
pub mod sql_shape;
mod stats;
mod stores;
mod stretches;
mod summaries;
pub mod thresholds;
mod words;

use narrows_model::comparison::{ObjectiveResult, Outcome};
use narrows_model::evidence::{RunEvidence, TrialEvidence};
use narrows_model::finding::Finding;
use narrows_model::published::Notes;

pub use caveats::caveats;
pub use compare::compare;
pub use reading::Reading;
pub use sentence::sentence;
use thresholds::Thresholds;

/// Looks for one cause.
///
/// An implementation MUST be a pure function of its arguments, MUST say nothing when the evidence does not suffice, and
/// MUST raise its version when its rule changes. It MAY return several findings, one for each place it sees the cause in.
pub trait Detector: Sync {
    /// The id: lower case with dashes, as its file is named.
    fn id(&self) -> &'static str;
    /// The version of the rule, from 1.
    fn version(&self) -> u32;
    /// The cause wherever it is seen in this trial, in any order.
    fn detect(&self, reading: &Reading<'_>) -> Vec<Finding>;
}

/// What all detectors find in a trial: first what makes its figures invalid, then by cost, causes before their effects.
pub fn diagnose(trial: &TrialEvidence) -> Vec<Finding> {
    let thresholds = Thresholds::default();
    Reading::with(trial, &thresholds, |reading| {
        let findings = detectors::ALL.iter().flat_map(|detector| detector.detect(reading)).collect();
        rank::ranked(findings, trial)
    })
}

/// What one detector finds in a trial.
pub fn detect(detector: &dyn Detector, trial: &TrialEvidence, thresholds: &Thresholds) -> Vec<Finding> {
    Reading::with(trial, thresholds, |reading| detector.detect(reading))
}

/// Everything that is to be concluded from a run. `objectives` are the results for each trial, in order, `notes` what
/// the experiment says for its readers. What limits the reading of a trial joins its caveats.
pub fn conclude(mut evidence: RunEvidence, objectives: Vec<Vec<ObjectiveResult>>, notes: Notes) -> Outcome {
    for trial in &mut evidence.trials {
        let found = caveats(trial);
        trial.trial.caveats.extend(found);
    }
    let findings: Vec<Vec<Finding>> = evidence.trials.iter().map(diagnose).collect();
    let comparison = compare(&evidence);
    let sentence = sentence(&evidence, &findings, &comparison);
    let beside = beside::beside(&notes, &comparison);
    Outcome { evidence, findings, comparison, objectives, notes, beside, sentence }
}

#[cfg(test)]
mod tests {
    use narrows_testkit::trial::{TrialBuilder, run_of_trials};

    use super::*;

    #[test]
    fn an_outcome_has_findings_for_each_trial() {
        let run = run_of_trials([TrialBuilder::new("a").build(), TrialBuilder::new("b").build()]);
        let outcome = conclude(run, vec![Vec::new(), Vec::new()], Notes::default());
        assert_eq!(outcome.findings, [vec![], vec![]]);
        assert_eq!(outcome.comparison.variants.len(), 2);
        assert!(!outcome.sentence.is_empty());
    }
}
