//! A prediction beside what was measured once the change was made: of a change that is named, or of those that are
//! recognised in another trial.

use std::collections::BTreeSet;

use narrows_model::evidence::TrialEvidence;
use narrows_model::finding::Role;
use narrows_model::finding::evidence::load::LoadLevel;
use narrows_model::histogram::Histogram;
use narrows_model::prediction::{Change, Doubt, Figures, Measured, Prediction, Scored};

use crate::alone::{Pair, alone, differing, steps};
use crate::forecast::Ground;
use crate::recognition::made_changes;
use crate::rules::rules;
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
/// compared with their like. In order of time, two trials with another one between them that took part of the way are left out: both
/// parts say more. `request_parameters` are those that the requests of the load are written with.
pub fn score_run(trials: &[DiagnosedTrial<'_>], request_parameters: &BTreeSet<String>, order: Order) -> Vec<Scored> {
    let of_trial = |(at, diagnosed): (usize, &DiagnosedTrial<'_>)| {
        let trial = diagnosed.trial;
        let is_meant = |(other_at, other): &(usize, &DiagnosedTrial<'_>)| {
            let other = other.trial;
            (order == Order::Any || *other_at > at)
                && other.trial.variant != trial.trial.variant
                && other.trial.repetition == trial.trial.repetition
                && differing(&trial.trial, &other.trial).is_disjoint(request_parameters)
                && is_same_load(trial, other)
        };
        let others: Vec<&DiagnosedTrial<'_>> =
            trials.iter().enumerate().filter(is_meant).map(|(_, other)| other).collect();
        score_trial(diagnosed, &others)
    };
    let pairs = trials.iter().enumerate().flat_map(of_trial).collect();
    alone(if order == Order::Later { steps(pairs) } else { pairs })
}

fn score_trial(diagnosed: &DiagnosedTrial<'_>, others: &[&DiagnosedTrial<'_>]) -> Vec<Pair> {
    if others.is_empty() {
        return Vec::new();
    }
    let Ok(ground) = Ground::new(diagnosed) else { return Vec::new() };
    let pair = |after: &&DiagnosedTrial<'_>| {
        let scored = scored(&ground, diagnosed, after)?;
        Some(Pair { scored, parameters: differing(&diagnosed.trial.trial, &after.trial.trial) })
    };
    others.iter().filter_map(pair).collect()
}

fn scored(ground: &Ground<'_>, diagnosed: &DiagnosedTrial<'_>, after: &DiagnosedTrial<'_>) -> Option<Scored> {
    let DiagnosedTrial { trial, findings, .. } = *diagnosed;
    let made = made_changes(&ground.scene(), after).ok()?;
    let because = made.first()?.because;
    let changes: Vec<Change> = made.into_iter().map(|made| made.change).collect();
    let (first, with) = changes.split_first()?;
    let mut prediction = ground.together(first, with, because).ok()?;
    let invalid = findings.iter().find(|finding| finding.role == Role::Invalidates);
    prediction.doubts.splice(0..0, invalid.map(|finding| Doubt::Invalid { finding: finding.kind() }));
    score(&mut prediction, after.trial).ok()?;
    // Each rule is for one change.
    let (share_removed, amdahl) =
        with.is_empty().then(|| rules(diagnosed, ground.scene().system, first)).flatten().unzip();
    let (before, after) = (trial.trial.label(), after.trial.trial.label());
    Some(Scored { earlier_run: None, before, after, prediction, share_removed, amdahl })
}

fn is_same_load(one: &TrialEvidence, other: &TrialEvidence) -> bool {
    let loads = |trial: &TrialEvidence| {
        levels(trial).map(|levels| levels.iter().map(|level| key(level.load)).collect::<BTreeSet<_>>()).ok()
    };
    let is_subset = loads(one).is_some_and(|old| loads(other).is_some_and(|new| old.is_subset(&new)));
    is_subset && one.arrivals == other.arrivals
}

/// Puts what a trial with the change measured beside a prediction.
///
/// # Errors
/// When the trial recorded no load, or another one than the prediction is for: then neither would prove anything.
pub fn score(prediction: &mut Prediction, after: &TrialEvidence) -> Result<(), Cannot> {
    score_repeated(prediction, &[after])
}

/// As [`score`], with all repetitions of a trial together. The first gives its name.
///
/// # Errors
/// As [`score`], and without a trial.
pub fn score_repeated(prediction: &mut Prediction, after: &[&TrialEvidence]) -> Result<(), Cannot> {
    let first = after.first().ok_or(Cannot::NoLoad)?;
    let trials: Vec<Vec<Level>> = after.iter().map(|trial| levels(trial)).collect::<Result<_, _>>()?;
    let mut measured: Vec<Vec<&Level>> = Vec::new();
    for level in &prediction.levels {
        let at_load = |levels: &'_ Vec<Level>| levels.iter().position(|one| key(one.load) == key(level.load));
        let places = trials.iter().map(at_load).collect::<Option<Vec<usize>>>();
        let places = places.ok_or_else(|| Cannot::OtherLoad { trial: first.trial.label() })?;
        measured.push(trials.iter().zip(places).map(|(levels, at)| &levels[at]).collect());
    }
    prediction.measured = Some(Measured {
        trial: first.trial.label(),
        figures: together(&measured.concat()),
        levels: measured.iter().map(|of_load| together(of_load)).collect(),
    });
    Ok(())
}

fn key(load: LoadLevel) -> (u32, u64) {
    (load.users, load.arrivals.map_or(0, f64::to_bits))
}

fn together(levels: &[&Level]) -> Figures {
    let seconds: f64 = levels.iter().map(|level| level.seconds).sum();
    let requests: u64 = levels.iter().map(|level| level.requests).sum();
    let mut latency = Histogram::new();
    levels.iter().for_each(|level| latency.merge(&level.latency));
    Figures { rate: requests as f64 / seconds, mean_ns: latency.mean_ns(), p95_ns: latency.quantile_ns(0.95) as f64 }
}
