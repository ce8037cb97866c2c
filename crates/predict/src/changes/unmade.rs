//! Calls that are no longer made, or only some of them: shared by `drop-call` and `cache`.
//!
//! The time that the caller takes before a call stays. The callee's CPU follows the number of calls to it.

use std::collections::BTreeMap;

use narrows_model::prediction::{Assumption, Change};

use super::{Case, Effect, Scene};
use crate::Cannot;
use crate::random::Random;
use crate::retime::{SampledTrace, Treatment};
use crate::system::System;

/// The effect when this share of the calls that a change names is no longer made. Which of them is drawn for each call, in
/// the same way each time.
pub(super) fn unmade<'s>(change: &Change, share: f64, scene: &'s Scene<'s>) -> Result<Effect<'s>, Cannot> {
    scene.require_traces(change.kind)?;
    let attempts_left = attempts_left(change, share, scene)?;
    let callees = attempts_left.iter().map(|(callee, _)| callee.clone());
    let assumptions = callees.map(|callee| Assumption::CpuFollowsCalls { callee }).collect();
    let target = change.target.clone();
    let edit = move |traced: &SampledTrace<'_>, _: &[f64]| {
        let mut treatments = traced.untreated();
        let mut random = Random::of_trace(traced.tree.trace);
        for (_, attempts) in calls_to(&target, traced, scene) {
            if random.unit() < share {
                attempts.iter().for_each(|at| treatments[*at] = Treatment::gone());
            }
        }
        treatments
    };
    let adjust = move |system: &mut System| {
        attempts_left.iter().for_each(|(callee, left)| system.scale_cpu(callee, *left));
    };
    Ok(Effect { cases: vec![Case::with_edit(adjust, edit, scene.sample)], assumptions, ..Effect::default() })
}

/// The calls that a name means, each as its callee and its attempts: all to a callee, or those whose span has the name.
fn calls_to(target: &str, traced: &SampledTrace<'_>, scene: &Scene<'_>) -> Vec<(String, Vec<usize>)> {
    let mut found = Vec::new();
    for group in scene.calls(traced) {
        for attempts in &group.calls {
            if group.callee == target || attempts.iter().any(|at| traced.tree.span(*at).name == target) {
                found.push((group.callee.to_owned(), attempts.clone()));
            }
        }
    }
    found
}

/// For each callee whose calls are meant, the share of all attempts to call it that is left.
fn attempts_left(change: &Change, share: f64, scene: &Scene<'_>) -> Result<Vec<(String, f64)>, Cannot> {
    let mut gone: BTreeMap<String, f64> = BTreeMap::new();
    for traced in &scene.sample.traces {
        for (callee, attempts) in calls_to(&change.target, traced, scene) {
            *gone.entry(callee).or_default() += share * traced.weight * attempts.len() as f64;
        }
    }
    if gone.is_empty() {
        return Err(scene.unknown(change, scene.places()));
    }
    let left = |(callee, gone): (&String, &f64)| {
        let all = scene.attempts(|group| group.callee == callee.as_str(), |_, _| 1.0);
        (callee.clone(), (1.0 - gone / all).clamp(0.0, 1.0))
    };
    Ok(gone.iter().map(left).collect())
}
