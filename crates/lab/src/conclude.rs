//! From what a run file recorded to what it means: findings, comparison, objectives, one sentence.

use std::path::Path;

use narrows_model::comparison::{ObjectiveResult, Outcome};
use narrows_model::evidence::RunEvidence;
use narrows_telemetry::run_file::{Reader, Recorder, TraceLimit};

use crate::experiment::{self, Objective};
use crate::{Error, judging};

/// Reads a run file and concludes from it. Works on unfinished runs too: on what they have.
pub fn outcome(path: &Path) -> Result<Outcome, Error> {
    let evidence = Reader::open(path)?.evidence(TraceLimit::default())?;
    let objectives = experiment::objectives(&evidence.run.experiment_source);
    Ok(conclude(evidence, &objectives))
}

/// Concludes and keeps the findings in the run file, which is still open for writing.
pub(crate) fn write(path: &Path, recorder: &Recorder, objectives: &[Objective]) -> Result<(), Error> {
    let evidence = Reader::open(path)?.evidence(TraceLimit::default())?;
    let outcome = conclude(evidence, objectives);
    for (trial, findings) in outcome.evidence.trials.iter().zip(&outcome.findings) {
        recorder.put_findings(trial.trial.id, findings)?;
    }
    recorder.put_conclusion("comparison", &serde_json::json!(outcome.comparison))?;
    recorder.put_conclusion("objectives", &serde_json::json!(outcome.objectives))?;
    recorder.put_conclusion("sentence", &serde_json::json!(outcome.sentence))?;
    Ok(())
}

fn conclude(evidence: RunEvidence, objectives: &[Objective]) -> Outcome {
    let judged: Vec<Vec<ObjectiveResult>> =
        evidence.trials.iter().map(|trial| judging::of_trial(objectives, trial)).collect();
    let notes = experiment::notes(&evidence.run.experiment_source);
    narrows_diagnose::conclude(evidence, judged, notes)
}
