//! A prediction beside what was measured once the change was made: of a change that is named, or of those that are
//! recognised in another trial.

use std::collections::BTreeSet;

use narrows_model::evidence::TrialEvidence;
use narrows_model::finding::Role;
use narrows_model::finding::evidence::load::LoadLevel;
use narrows_model::histogram::Histogram;
use narrows_model::prediction::{Change, Doubt, Figures, Measured, Prediction, Scored};

use crate::alone::{Pair, alone, differing};
use crate::forecast::Ground;
use crate::recognition::made_changes;
use crate::rules::rules;
use crate::suggest;
use crate::system::{Level, levels};
use crate::{Cannot, DiagnosedTrial};

/// Which trials may have made a change to which.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// A later one to an earlier one.
    Later,
    /// Any to any other, as where the fixed variant is measured first.
    Any,
}

/// Of all trials of a run, those that made a recognised change to another one under the same load, and as far as can be told
/// no other: what was predicted from the one and measured in the other. Repetitions of a variant change nothing, and are
/// compared with their like. `request_parameters` are those that the requests of the load are written with.
pub fn score_run(trials: &[DiagnosedTrial<'_>], request_parameters: &BTreeSet<String>, order: Order) -> Vec<Scored> {
    let of_trial = |(at, diagnosed): (usize, &DiagnosedTrial<'_>)| {
        let trial = diagnosed.trial;
        let is_meant = |(other_at, other): &(usize, &TrialEvidence)| {
            (order == Order::Any || *other_at > at)
                && other.trial.variant != trial.trial.variant
                && other.trial.repetition == trial.trial.repetition
                && differing(&trial.trial, &other.trial).is_disjoint(request_parameters)
                && is_same_load(trial, other)
        };
        let others: Vec<&TrialEvidence> =
            trials.iter().map(|other| other.trial).enumerate().filter(is_meant).map(|(_, other)| other).collect();
        score_trial(diagnosed, &others)
    };
    alone(trials.iter().enumerate().flat_map(of_trial).collect())
}

fn score_trial(diagnosed: &DiagnosedTrial<'_>, others: &[&TrialEvidence]) -> Vec<Pair> {
    if others.is_empty() {
        return Vec::new();
    }
    let Ok(ground) = Ground::new(diagnosed) else { return Vec::new() };
    let pair = |after: &&TrialEvidence| {
        let scored = scored(&ground, diagnosed, after)?;
        Some(Pair { scored, parameters: differing(&diagnosed.trial.trial, &after.trial) })
    };
    others.iter().filter_map(pair).collect()
}

fn scored(ground: &Ground<'_>, diagnosed: &DiagnosedTrial<'_>, after: &TrialEvidence) -> Option<Scored> {
    let DiagnosedTrial { trial, findings, .. } = *diagnosed;
    let changes = made_changes(&ground.scene(), trial, findings, after).ok()?;
    let (first, with) = changes.split_first()?;
    let because = suggest::all(findings)
        .into_iter()
        .find(|(_, suggested)| suggested.as_ref().is_some_and(|one| is_like(one, first)));
    let mut prediction = ground.together(first, with, because.map(|(kind, _)| kind)).ok()?;
    let invalid = findings.iter().find(|finding| finding.role == Role::Invalidates);
    prediction.doubts.splice(0..0, invalid.map(|finding| Doubt::Invalid { finding: finding.kind() }));
    score(&mut prediction, after).ok()?;
    // Each rule is for one change.
    let (share_removed, amdahl) = with.is_empty().then(|| rules(trial, ground.scene().system, first)).flatten().unzip();
    Some(Scored { before: trial.trial.label(), after: after.trial.label(), prediction, share_removed, amdahl })
}

/// Whether both are the same change, whatever their size.
fn is_like(one: &Change, other: &Change) -> bool {
    (one.kind, &one.target) == (other.kind, &other.target)
}

fn is_same_load(one: &TrialEvidence, other: &TrialEvidence) -> bool {
    let loads = |trial: &TrialEvidence| {
        levels(trial).map(|levels| levels.iter().map(|level| key(level.load)).collect::<BTreeSet<_>>()).ok()
    };
    loads(one).is_some_and(|old| loads(other).is_some_and(|new| old.is_subset(&new)))
}

/// Puts what a trial with the change measured beside a prediction.
///
/// # Errors
/// When the trial recorded no load, or another one than the prediction is for: then neither would prove anything.
pub fn score(prediction: &mut Prediction, after: &TrialEvidence) -> Result<(), Cannot> {
    let loads: BTreeSet<(u32, u64)> = prediction.levels.iter().map(|level| key(level.load)).collect();
    let measured: Vec<Level> = levels(after)?.into_iter().filter(|level| loads.contains(&key(level.load))).collect();
    if measured.len() < loads.len() {
        return Err(Cannot::OtherLoad { trial: after.trial.label() });
    }
    prediction.measured = Some(Measured { trial: after.trial.label(), figures: together(&measured) });
    Ok(())
}

fn key(load: LoadLevel) -> (u32, u64) {
    (load.users, load.arrivals.map_or(0, f64::to_bits))
}

fn together(levels: &[Level]) -> Figures {
    let seconds: f64 = levels.iter().map(|level| level.seconds).sum();
    let requests: u64 = levels.iter().map(|level| level.requests).sum();
    let mut latency = Histogram::new();
    levels.iter().for_each(|level| latency.merge(&level.latency));
    Figures { rate: requests as f64 / seconds, mean_ns: latency.mean_ns(), p95_ns: latency.quantile_ns(0.95) as f64 }
}
