//! Names the narrow place: detectors over evidence, the comparison of variants, and the sentence that sums a run up.
//!
//! Everything here is a pure function of the evidence: no input or output, no clock, no randomness, no failure. What is
//! missing becomes silence of a detector and a caveat of the trial, never an error. A detector judges one
//! cause; what several causes have to do with each other is decided once, after all have run. [`words`] turns findings into
//! sentences at the end.

pub mod baseline;
mod caveats;
mod compare;
pub mod critical_path;
mod culprit;
pub mod detectors;
mod exemplars;
mod instrumentation;
mod laws;
mod limit;
pub mod pages;
pub mod proof;
mod rank;
mod read;
mod sentence;
mod stats;
pub mod thresholds;
pub mod words;

use narrows_model::caveat::TrialCaveat;
use narrows_model::comparison::{Comparison, ObjectiveResult, Outcome};
use narrows_model::evidence::{RunEvidence, TrialEvidence};
use narrows_model::finding::{Finding, FindingKind, Role};
use narrows_model::published::Notes;

pub use compare::{compare, diff};
pub use read::Reading;
use read::one_request;
pub use read::programs::knows_program;
pub use read::sql_shape::statement_shape;
use sentence::Story;
use thresholds::Thresholds;

/// Looks for one cause.
///
/// An implementation MUST be a pure function of its arguments, MUST say nothing when the evidence does not suffice, and
/// MUST raise its version when its rule changes. It MAY return several findings, one for each place it sees the cause in.
pub trait Detector: Sync {
    /// Kind of its findings. Its id, with underscores, is the name of the detector's folder.
    fn kind(&self) -> FindingKind;
    /// The version of the rule, from 1.
    fn version(&self) -> u32;
    /// The id of what it finds.
    fn id(&self) -> &'static str {
        self.kind().id()
    }
    /// A finding of this detector, to be filled in.
    fn finding(&self) -> Finding {
        Finding::new(self.kind(), self.version())
    }
    /// The cause wherever it is seen in this trial, in any order.
    fn detect(&self, reading: &Reading<'_>) -> Vec<Finding>;
    /// Role of a finding whose cost matters.
    fn role(&self, _finding: &Finding) -> Role {
        Role::InTheWay
    }
    /// Time that the finding costs one request, nanoseconds; `None` if it is no cost of single requests.
    fn request_cost_ns(&self, _finding: &Finding) -> Option<f64> {
        None
    }
    /// True if its findings say where an operation's time goes, so that a gap in the spans of that operation hides nothing.
    fn explains_gaps(&self) -> bool {
        true
    }
    /// True if its findings say why calls to a dependency take long.
    fn explains_slow_calls(&self) -> bool {
        true
    }
    /// True if every request of the service or machine may wait because of its findings, without a span that shows it.
    fn holds_all_requests(&self) -> bool {
        false
    }
    /// True if its findings are about a service that is late to read quick responses, so that its calls seem to take long.
    fn delays_reading_of_responses(&self) -> bool {
        false
    }
    /// Findings that only the comparison of variants shows, each with the position of its trial: about the experiment, or
    /// about the additional cost of a variant.
    fn detect_run(
        &self,
        _run: &RunEvidence,
        _comparison: &Comparison,
        _thresholds: &Thresholds,
    ) -> Vec<(usize, Finding)> {
        Vec::new()
    }
}

/// Findings of all detectors in a trial: first what makes its figures invalid, then by cost, causes before their effects.
pub fn diagnose(trial: &TrialEvidence, thresholds: &Thresholds) -> Vec<Finding> {
    Reading::with(trial, thresholds, findings)
}

fn findings(reading: &Reading<'_>) -> Vec<Finding> {
    let findings = detectors::ALL.iter().flat_map(|detector| detector.detect(reading));
    let findings = findings.map(|finding| one_request::marked(finding, reading));
    rank::ranked(findings.collect(), reading)
}

/// Findings of each trial of a run, in order: those of [`conclude`], without what else it concludes.
pub fn diagnose_run(evidence: &RunEvidence, thresholds: &Thresholds) -> Vec<Vec<Finding>> {
    let found = evidence.trials.iter().map(|trial| diagnose(trial, thresholds)).collect();
    with_those_of_run(found, evidence, &compare(evidence, thresholds), thresholds)
}

/// Adds findings that need all trials of a run to those of each trial.
fn with_those_of_run(
    mut found: Vec<Vec<Finding>>,
    evidence: &RunEvidence,
    comparison: &Comparison,
    thresholds: &Thresholds,
) -> Vec<Vec<Finding>> {
    let of_run = detectors::ALL.iter().flat_map(|detector| detector.detect_run(evidence, comparison, thresholds));
    for (at, finding) in of_run {
        rank::of_run::join(&mut found[at], finding, rank::Least::of(thresholds));
    }
    found
}

/// Limits of the reading of a trial; empty if there are none.
pub fn caveats(trial: &TrialEvidence, thresholds: &Thresholds) -> Vec<TrialCaveat> {
    Reading::with(trial, thresholds, |reading| caveats::caveats(reading, &findings(reading)))
}

/// Findings of one detector in a trial.
pub fn detect(detector: &dyn Detector, trial: &TrialEvidence, thresholds: &Thresholds) -> Vec<Finding> {
    Reading::with(trial, thresholds, |reading| detector.detect(reading))
}

/// Everything that is to be concluded from a run. `objectives` are the results for each trial, in order, `notes` what
/// the experiment says for its readers. What limits the reading of a trial joins its caveats. Predictions and costs are not made here.
pub fn conclude(
    mut evidence: RunEvidence,
    objectives: Vec<Vec<ObjectiveResult>>,
    notes: Notes,
    thresholds: &Thresholds,
) -> Outcome {
    let (mut found, mut limits, mut breakdowns, mut call_graphs) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for trial in &mut evidence.trials {
        let (findings, caveats, limit, breakdown, graph) = Reading::with(trial, thresholds, |reading| {
            let findings = findings(reading);
            let caveats = caveats::caveats(reading, &findings);
            let limit = limit::limit(reading, &findings);
            (findings, caveats, limit, reading.spent().breakdowns.clone(), reading.conversations().graph.clone())
        });
        trial.trial.caveats.extend(caveats);
        found.push(findings);
        limits.push(limit);
        breakdowns.push(breakdown);
        call_graphs.push(graph);
    }
    let comparison = compare(&evidence, thresholds);
    let findings = with_those_of_run(found, &evidence, &comparison, thresholds);
    let story = Story {
        evidence: &evidence,
        findings: &findings,
        limits: &limits,
        breakdowns: &breakdowns,
        objectives: &objectives,
        comparison: &comparison,
        thresholds,
    };
    let sentence = story.sentence();
    let beside = compare::beside::beside(&notes, &evidence);
    let (scored, ladders, costs) = (Vec::new(), Vec::new(), Vec::new());
    Outcome {
        evidence,
        findings,
        limits,
        breakdowns,
        call_graphs,
        comparison,
        objectives,
        scored,
        ladders,
        notes,
        beside,
        costs,
        sentence,
    }
}

#[cfg(test)]
mod tests {
    use narrows_testkit::trial::{TrialBuilder, run_of_trials};

    use super::*;

    #[test]
    fn an_outcome_has_findings_for_each_trial() {
        let run = run_of_trials([TrialBuilder::new("a").build(), TrialBuilder::new("b").build()]);
        let outcome = conclude(run, vec![Vec::new(), Vec::new()], Notes::default(), &Thresholds::default());
        assert_eq!(outcome.findings, [vec![], vec![]]);
        assert_eq!(outcome.comparison.variants.len(), 2);
        assert!(!outcome.sentence.is_empty());
    }
}
