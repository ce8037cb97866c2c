//! Predicts what a change to a system would gain, from one trial of it: throughput, latency, and what limits it next.
//!
//! Two methods are joined. Sampled traces say what a change does to a single request (`retime/`); a closed queueing
//! network says what many of them make of it (`queueing/`), once it has reproduced what was measured (`baseline.rs`).
//! `system/` reads the network from the run. `changes/` has a file for each change: its effect, the findings that suggest it,
//! the limits that it moves, and how it is recognised in another trial.
//!
//! - `suggest.rs` collects the changes that findings and the verdict suggest;
//! - `forecast.rs` computes what they gain, `intervals.rs` how far that may be off, `ladder.rs` in which order they gain most;
//! - `gains.rs` puts the result beside the finding, `sentence.rs` sums it up;
//! - `recognition.rs` recognises changes that another trial made, with the waits that `call_waits.rs` reads from sockets, and
//!   `alone.rs` says whether that trial made others too;
//! - `score.rs` compares predictions with measurements, `rules.rs` has the simple rules that they have to beat.
//!
//! The page is `docs/reference/predict.md`.
//!
//! Everything is a pure function of the evidence: no input or output, no clock, and chance from a fixed seed. What the
//! evidence does not allow is said as a [`Cannot`]; what it allows with reservations, as doubts of the prediction.
//!
//! Not here: what a change costs, whether it is possible, and other systems than the one that was measured.

mod alone;
mod baseline;
mod call_waits;
mod cannot;
mod changes;
mod forecast;
mod gains;
mod intervals;
mod ladder;
pub mod queueing;
mod random;
mod recognition;
mod refusals;
mod retime;
mod rules;
mod score;
mod sentence;
mod suggest;
mod syntax;
mod system;
mod tail;

use narrows_model::call_graph::CallGraph;
use narrows_model::comparison::Outcome;
use narrows_model::evidence::TrialEvidence;
use narrows_model::finding::{Finding, Role};
use narrows_model::limit::Limit;
use narrows_model::prediction::{Change, ChangeKind, Doubt, Figures, Ladder, NotPredicted, Prediction, Predictions};

pub use cannot::Cannot;
pub use gains::add_gains;
pub use score::{Order, score, score_repeated, score_run};
pub use syntax::{Unreadable, read_change};

use changes::raise_limit::under_way;
use forecast::Ground;
use suggest::Suggestion;
use system::System;

/// A trial with what was concluded of it.
#[derive(Debug, Clone, Copy)]
pub struct DiagnosedTrial<'a> {
    /// Evidence.
    pub trial: &'a TrialEvidence,
    /// All trials of its run; empty if only this one is known.
    pub run: &'a [TrialEvidence],
    /// Findings, dearest first.
    pub findings: &'a [Finding],
    /// Limit of its throughput; `None` if it was not judged.
    pub limit: Option<&'a Limit>,
    /// Calls that sockets show; `None` if they were not read.
    pub calls: Option<&'a CallGraph>,
}

impl<'a> DiagnosedTrial<'a> {
    /// Without a verdict on the limit, without calls and other trials.
    pub fn new(trial: &'a TrialEvidence, findings: &'a [Finding]) -> Self {
        Self { trial, run: &[], findings, limit: None, calls: None }
    }
}

/// The trials of a run with what was concluded of them.
pub fn diagnosed_trials(outcome: &Outcome) -> Vec<DiagnosedTrial<'_>> {
    let of = |(at, trial)| DiagnosedTrial {
        trial,
        run: &outcome.evidence.trials,
        findings: outcome.findings.get(at).map_or(&[][..], Vec::as_slice),
        limit: outcome.limits.get(at),
        calls: outcome.call_graphs.get(at),
    };
    outcome.evidence.trials.iter().enumerate().map(of).collect()
}

/// How a kind of change is written after its name and `=`: `SERVICE[,FACTOR]`.
pub fn usage(kind: ChangeKind) -> &'static str {
    changes::method(kind).usage()
}

/// The change as the subject of a sentence, such as `twice the replicas of shop`.
pub fn description(change: &Change) -> String {
    changes::method(change.kind).description(change)
}

/// One sentence about a change that was tried in an experiment: its prediction beside what was measured, before and with it.
pub fn tried_sentence(prediction: &Prediction, before: &Figures) -> String {
    sentence::of_tried(prediction, before, None, false)
}

/// One sentence about a prediction from an earlier run, beside what this one measured. `is_same` says that nothing else was
/// measured than before.
pub fn kept_sentence(prediction: &Prediction, source: &str, is_same: bool) -> String {
    sentence::of_tried(prediction, &prediction.now, Some(source), is_same)
}

/// Requests or connections that a service or store of the trial serves at a time; `None` if nothing shows such a limit.
pub fn places(diagnosed: &DiagnosedTrial<'_>, target: &str) -> Option<u32> {
    let system = System::read(diagnosed).ok()?;
    system.sections.iter().find(|section| section.name == target).map(|section| section.places)
}

/// Amount of a change that is written without one, if it depends on the trial.
pub fn usual_amount(diagnosed: &DiagnosedTrial<'_>, kind: ChangeKind) -> Option<f64> {
    let system = System::read(diagnosed).ok()?;
    (kind == ChangeKind::RaiseLimit).then(|| under_way(&system.levels).ceil())
}

/// Gains of these changes.
///
/// # Errors
/// When the trial does not show enough, or has nothing that a change names.
pub fn predict(diagnosed: &DiagnosedTrial<'_>, asked: &[Change]) -> Result<Predictions, Cannot> {
    let ground = Ground::new(diagnosed)?;
    let predictions = asked.iter().map(|change| ground.prediction(change, None)).collect::<Result<_, _>>()?;
    Ok(summed_up(diagnosed, &ground, predictions, Vec::new()))
}

/// Gain of every change that a finding suggests, those that gain most first, and the order in which several gain most.
///
/// # Errors
/// When the trial does not show enough.
pub fn predict_suggested(diagnosed: &DiagnosedTrial<'_>) -> Result<Predictions, Cannot> {
    let ground = Ground::new(diagnosed)?;
    let (mut predictions, mut not_predicted): (Vec<Prediction>, Vec<NotPredicted>) = (Vec::new(), Vec::new());
    for Suggestion { finding, change, .. } in suggest::all(diagnosed) {
        let predicted = match change {
            Ok(change) if predictions.iter().any(|known| known.change == change) => continue,
            Ok(change) => ground.prediction(&change, finding).map_err(|cannot| cannot.to_string()),
            Err(because) => Err(because.to_owned()),
        };
        match (predicted, finding) {
            (Ok(prediction), _) => predictions.push(prediction),
            (Err(because), Some(finding)) => not_predicted.push(NotPredicted { finding, because }),
            (Err(_), None) => {}
        }
    }
    predictions.sort_by(|a, b| a.mean_change().total_cmp(&b.mean_change()));
    let mut all = summed_up(diagnosed, &ground, predictions, not_predicted);
    all.ladder = ladder::ladder(&ground, &all.predictions);
    Ok(all)
}

fn summed_up(
    diagnosed: &DiagnosedTrial<'_>,
    ground: &Ground<'_>,
    mut predictions: Vec<Prediction>,
    not_predicted: Vec<NotPredicted>,
) -> Predictions {
    let invalid = diagnosed.findings.iter().find(|finding| finding.role == Role::Invalidates);
    if let Some(finding) = invalid {
        predictions.iter_mut().for_each(|one| one.doubts.insert(0, Doubt::Invalid { finding: finding.kind() }));
    }
    let label = diagnosed.trial.trial.label();
    let sentence = sentence::sentence(&label, &predictions);
    Predictions {
        trial: label,
        baseline: ground.baseline.clone(),
        predictions,
        ladder: Ladder::default(),
        not_predicted,
        sentence,
    }
}
