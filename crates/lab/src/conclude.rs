//! From what a run file recorded to what it means: findings with what their fixes would gain, comparison, objectives, one
//! sentence.

use std::collections::BTreeSet;
use std::path::Path;

use narrows_diagnose::baseline;
use narrows_diagnose::diff::Side;
use narrows_diagnose::proof::{self, Measured, Plan, Question, Rules};
use narrows_diagnose::words::{InWords, trial_caveat};
use narrows_model::comparison::{ObjectiveResult, Outcome};
use narrows_model::diff::Diff;
use narrows_model::evidence::RunEvidence;
use narrows_model::finding::Finding;
use narrows_model::prediction::Scored;
use narrows_model::proof::Proof;
use narrows_model::published::Notes;
use narrows_model::run::Trial;
use narrows_model::time_range::TimeRange;
use narrows_predict::{Order, diagnosed_trials, score_run};
use narrows_telemetry::exchange::{is_evidence, read_evidence};
use narrows_telemetry::run_file::{Reader, Recorder, TraceLimit};

use crate::comparison_plan::ComparisonPlan;
use crate::experiment::{RecordedExperiment, costs};
use crate::{Error, comparison_plan, judgement, kept_predictions};

/// Part of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selection {
    /// Those of this variant; all when none is named.
    pub variant: Option<String>,
    /// This repetition, from 1; all when none is named.
    pub repetition: Option<u32>,
    /// The part of their time that is concluded from.
    pub within: TimeRange,
}

impl Selection {
    fn is_meant(&self, trial: &Trial) -> bool {
        self.variant.as_ref().is_none_or(|wanted| *wanted == trial.variant)
            && self.repetition.is_none_or(|wanted| wanted == trial.repetition)
    }
}

/// Part of a run file, to compare with another.
#[derive(Debug, Clone, Copy)]
pub struct RunPart<'a> {
    /// The run file.
    pub path: &'a Path,
    /// The trials that are meant.
    pub selection: &'a Selection,
    /// Its name in messages and reports.
    pub label: &'a str,
}

/// Reads a run file and concludes from it. Works on unfinished runs too: on what they have.
pub fn outcome(path: &Path) -> Result<Outcome, Error> {
    outcome_of(path, &Selection::default())
}

/// As [`outcome`], from some trials only, or from a part of their time.
///
/// # Errors
/// When the file cannot be read, when no trial is meant, and when nothing was recorded at that time.
pub fn outcome_of(path: &Path, selection: &Selection) -> Result<Outcome, Error> {
    concluded(path, selection).map(|(outcome, _)| outcome)
}

/// As [`outcome`], with other published figures and reasons of parameters than the run file keeps: `notes_of` gives those of
/// the experiment of that name, for a run that is older than they are.
///
/// # Errors
/// When the file cannot be read, and as `notes_of` does.
pub fn outcome_beside<E: From<Error>>(
    path: &Path,
    notes_of: impl FnOnce(&str) -> Result<Notes, E>,
) -> Result<Outcome, E> {
    let evidence = evidence(path, TraceLimit::default())?;
    let notes = notes_of(&evidence.run.experiment)?;
    let own = RecordedExperiment::read(&evidence.run.experiment_source);
    Ok(conclude(evidence, &RecordedExperiment { notes, ..own }))
}

/// The evidence of a run, as it is concluded from, with so many traces: from a run file, or from a file of evidence with
/// those that it holds.
///
/// # Errors
/// When the file cannot be read.
pub fn evidence(path: &Path, limit: TraceLimit) -> Result<RunEvidence, Error> {
    read(path, limit, &Selection::default())
}

/// All trials; those that are not meant perhaps without operations and traces.
fn read(path: &Path, limit: TraceLimit, selection: &Selection) -> Result<RunEvidence, Error> {
    let is_evidence = is_evidence(path);
    if is_evidence && !selection.within.is_all() {
        return Err(Error::EvidenceIsWhole { path: path.to_owned() });
    }
    let mut evidence = if is_evidence {
        read_evidence(path).map_err(|source| Error::Evidence { path: path.to_owned(), source })?
    } else {
        Reader::open(path)?.evidence_within(limit, &selection.within, |trial| selection.is_meant(trial))?
    };
    let experiment = RecordedExperiment::read(&evidence.run.experiment_source);
    for trial in &mut evidence.trials {
        trial.client_addresses = trial.client_addresses.or(experiment.client_addresses);
        trial.arrivals = trial.arrivals.or_else(|| experiment.arrivals(&trial.trial.parameters));
    }
    Ok(evidence)
}

fn concluded(path: &Path, selection: &Selection) -> Result<(Outcome, RecordedExperiment), Error> {
    let (evidence, experiment) = selected_evidence(path, selection)?;
    let mut outcome = conclude(evidence, &experiment);
    let has_variant = |scored: &Scored| outcome.evidence.trials.iter().any(|one| one.trial.variant == scored.after);
    let kept: Vec<Scored> = kept_predictions::scored(path)?.into_iter().filter(has_variant).collect();
    outcome.scored.extend(kept);
    Ok((outcome, experiment))
}

fn selected_evidence(path: &Path, selection: &Selection) -> Result<(RunEvidence, RecordedExperiment), Error> {
    let evidence = read(path, TraceLimit::default(), selection)?;
    let evidence = selected(evidence, path, selection)?;
    let experiment = RecordedExperiment::read(&evidence.run.experiment_source);
    Ok((evidence, experiment))
}

/// Differences between some trials and others, perhaps of another run file. Compared with the thresholds of the second.
///
/// # Errors
/// When a file cannot be read, when no trial is meant, when nothing was recorded at a time, and when the two have nothing
/// in common.
pub fn diff(before: RunPart<'_>, after: RunPart<'_>) -> Result<Diff, Error> {
    // Reading a run of a million spans takes seconds, so that both are read at the same time.
    let (old, new) = std::thread::scope(|scope| {
        let old = scope.spawn(|| diagnosed(before));
        let new = diagnosed(after);
        (old.join(), new)
    });
    let old = old.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    let new = new?;
    let [old_side, new_side] = [(before, &old), (after, &new)].map(|(part, run)| run.side(part.label));
    narrows_diagnose::diff::check(&old_side, &new_side)?;
    Ok(narrows_diagnose::diff::diff(old_side, new_side, &new.experiment.thresholds))
}

/// Part of a run with its findings: what a comparison with another needs.
struct DiagnosedRun {
    evidence: RunEvidence,
    findings: Vec<Vec<Finding>>,
    experiment: RecordedExperiment,
}

impl DiagnosedRun {
    fn side<'a>(&'a self, label: &'a str) -> Side<'a> {
        Side { label, run: &self.evidence, findings: &self.findings }
    }
}

fn diagnosed(part: RunPart<'_>) -> Result<DiagnosedRun, Error> {
    let (evidence, experiment) = selected_evidence(part.path, part.selection)?;
    let mut findings = narrows_diagnose::diagnose_run(&evidence, &experiment.thresholds);
    for (at, findings) in findings.iter_mut().enumerate().take(evidence.trials.len()) {
        narrows_predict::add_gains(&evidence.trials, at, None, None, findings);
    }
    Ok(DiagnosedRun { evidence, findings, experiment })
}

/// Whether the trials of `after` are faster than those of `before`. In one run, trials are compared in pairs.
///
/// # Errors
/// When a file cannot be read, when no trial is meant, and [`Error::Compare`] when the two cannot be compared.
pub fn compare(before: RunPart<'_>, after: RunPart<'_>, question: Question) -> Result<Proof, Error> {
    let (old, new) = (of_one_variant(before)?, of_one_variant(after)?);
    let is_one_run = old.run.id == new.run.id;
    let comparison = if is_one_run { comparison_plan::kept_plan(before.path)? } else { None };
    let names = |evidence: &RunEvidence| evidence.trials.first().map(|trial| trial.trial.variant.clone());
    let is_meant = |plan: &&ComparisonPlan| {
        let pair = [names(&old), names(&new)];
        pair.iter().flatten().all(|name| *name == plan.before || *name == plan.after)
    };
    let comparison = comparison.as_ref().filter(is_meant);
    let rules = comparison.map(|plan| (plan.seed, Rules::new(plan.planned)));
    let plan = match &rules {
        Some((seed, rules)) => Plan::Sequential { seed: *seed, rules },
        None if is_one_run => Plan::InTurn,
        None => Plan::Apart,
    };
    let measured = |evidence: &RunEvidence| evidence.trials.iter().filter_map(Measured::of).collect::<Vec<_>>();
    let (old, new) = (measured(&old), measured(&new));
    let (before, after) =
        (proof::Side { label: before.label, trials: &old }, proof::Side { label: after.label, trials: &new });
    proof::prove(before, after, plan, question).map_err(Error::Compare)
}

/// The load of the trials that are meant, which are of one variant.
fn of_one_variant(part: RunPart<'_>) -> Result<RunEvidence, Error> {
    let RunPart { path, selection, label } = part;
    let evidence = match is_evidence(path) {
        true => read(path, TraceLimit::default(), selection)?,
        false => Reader::open(path)?.loads_within(&selection.within)?,
    };
    let evidence = selected(evidence, path, selection)?;
    let mut variants: Vec<String> = evidence.trials.iter().map(|trial| trial.trial.variant.clone()).collect();
    variants.sort();
    variants.dedup();
    match variants.len() {
        0 | 1 => Ok(evidence),
        _ => Err(Error::SeveralVariants { label: label.to_owned(), variants }),
    }
}

/// The summary of a run, to keep or to check.
///
/// # Errors
/// When the file cannot be read, when no trial is meant, and [`Error::Baseline`] when its trials cannot be used.
pub fn baseline(path: &Path, selection: &Selection) -> Result<baseline::Summary, Error> {
    let (outcome, experiment) = concluded(path, selection)?;
    baseline::summary(&outcome, &experiment.thresholds).map_err(Error::Baseline)
}

fn selected(mut evidence: RunEvidence, path: &Path, selection: &Selection) -> Result<RunEvidence, Error> {
    let known: Vec<String> = evidence.trials.iter().map(|trial| trial.trial.label()).collect();
    evidence.trials.retain(|trial| selection.is_meant(&trial.trial));
    if evidence.trials.is_empty() && *selection != Selection::default() {
        let variant = selection.variant.clone().unwrap_or_default();
        let repetition = selection.repetition;
        return Err(Error::NoSuchTrial { path: path.to_owned(), variant, repetition, known });
    }
    if !selection.within.is_all() && evidence.trials.iter().all(|trial| trial.windows.is_empty()) {
        let ends = |of: fn(&Trial) -> Option<i64>| evidence.trials.iter().filter_map(move |one| of(&one.trial));
        let started_ns = ends(|trial| trial.started_ns).min();
        let ended_ns = ends(|trial| trial.ended_ns).max();
        return Err(Error::NothingThen { path: path.to_owned(), started_ns, ended_ns });
    }
    Ok(evidence)
}

/// Concludes and keeps the findings in the run file, which is still open for writing.
pub(crate) fn write(path: &Path, recorder: &Recorder) -> Result<(), Error> {
    let outcome = outcome(path)?;
    for (trial, findings) in outcome.evidence.trials.iter().zip(&outcome.findings) {
        let worded = findings.iter().map(|finding| (finding.clone(), finding.wording(findings)));
        recorder.put_findings(trial.trial.id, &worded.collect::<Vec<_>>())?;
    }
    for ((trial, graph), limit) in outcome.evidence.trials.iter().zip(&outcome.call_graphs).zip(&outcome.limits) {
        let labels = limit.levels.iter().map(|level| level.label.clone()).collect();
        recorder.put_call_graph(trial.trial.id, graph, labels)?;
    }
    recorder.put_conclusion("comparison", &serde_json::json!(outcome.comparison))?;
    recorder.put_conclusion("objectives", &serde_json::json!(outcome.objectives))?;
    recorder.put_conclusion("predictions", &serde_json::json!(outcome.scored))?;
    kept_predictions::write(path, &outcome, recorder)?;
    recorder.put_conclusion("sentence", &serde_json::json!(outcome.sentence))?;
    Ok(())
}

fn conclude(evidence: RunEvidence, experiment: &RecordedExperiment) -> Outcome {
    let judged: Vec<Vec<ObjectiveResult>> =
        evidence.trials.iter().map(|trial| judgement::of_trial(&experiment.objectives, trial)).collect();
    let mut outcome = narrows_diagnose::conclude(evidence, judged, experiment.notes.clone(), &experiment.thresholds);
    let run = &outcome.evidence.trials;
    for (at, findings) in outcome.findings.iter_mut().enumerate().take(run.len()) {
        let (limit, calls) = (outcome.limits.get(at), outcome.call_graphs.get(at));
        outcome.ladders.push(narrows_predict::add_gains(run, at, limit, calls, findings));
    }
    outcome.scored = scored(&outcome, &experiment.request_parameters, Order::Later);
    outcome.costs = outcome.notes.prices.as_ref().map_or_else(Vec::new, |prices| costs(prices, &outcome));
    outcome
}

fn scored(outcome: &Outcome, request_parameters: &BTreeSet<String>, order: Order) -> Vec<Scored> {
    score_run(&diagnosed_trials(outcome), request_parameters, order)
}

/// Predictions from each trial, beside those that made the change, in any order.
pub fn scored_in_any_order(outcome: &Outcome) -> Vec<Scored> {
    let experiment = RecordedExperiment::read(&outcome.evidence.run.experiment_source);
    scored(outcome, &experiment.request_parameters, Order::Any)
}

/// Writes a trial and its caveats, in data and in words.
pub(crate) fn put_trial(recorder: &Recorder, trial: &Trial) -> Result<(), Error> {
    let texts: Vec<String> = trial.caveats.iter().map(trial_caveat).collect();
    Ok(recorder.put_worded_trial(trial, &texts)?)
}
