//! How much longer requests take because calls are refused: refusals of a request × what one costs.
//!
//! How many there are is counted over all spans, second by second. What one costs, the refused attempt and the wait after
//! it, is read from the traces: those of the level where enough show it, else all.

use std::collections::BTreeMap;

use narrows_model::evidence::TrialEvidence;

use crate::changes::Scene;
use crate::retime::{RetimedTrace, is_refused};
use crate::system::Level;

/// Refused attempts in the traces of a level that tell what one costs there.
const REFUSED_MIN: f64 = 10.0;

/// The time at each level, seconds; 0 without refusals.
pub(crate) fn refusals_s(trial: &TrialEvidence, scene: &Scene<'_>) -> Vec<f64> {
    let retimed = scene.sample.retimed(&|traced, _| traced.untreated());
    let everywhere_s = each_s(scene, &retimed, |_| true).unwrap_or(0.0);
    let of_level = |(at, level): (usize, &Level)| {
        let each_s = each_s(scene, &retimed, |one| one.level == Some(at)).unwrap_or(everywhere_s);
        match refused_rate(trial, level) {
            Some(rate) => rate / level.rate() * each_s,
            None => traced_s(&retimed, at),
        }
    };
    scene.system.levels.iter().enumerate().map(of_level).collect()
}

/// Refused attempts per second at a level: the mean over the seconds of calls whose middle lies in it, which together may be
/// shorter or longer than it is. `None` if no call of the trial counts as refused: a 503 that says when to come back is counted in
/// traces alone.
fn refused_rate(trial: &TrialEvidence, level: &Level) -> Option<f64> {
    let mut refused: BTreeMap<i64, f64> = BTreeMap::new();
    let calls = trial.operations.iter().flat_map(|operation| &operation.calls);
    for second in calls.clone().flat_map(|call| &call.seconds) {
        if level.contains(second.start_ns + 500_000_000) {
            *refused.entry(second.start_ns).or_default() += second.throttled;
        }
    }
    let is_counted = calls.flat_map(|call| &call.seconds).any(|second| second.throttled > 0.0);
    is_counted.then(|| refused.values().sum::<f64>() / (refused.len() as f64).max(1.0))
}

/// The time of a request that refusals take in the traces of a level, mean; 0 without traces.
fn traced_s(retimed: &[RetimedTrace], level: usize) -> f64 {
    let of_level = || retimed.iter().filter(|one| one.level == Some(level));
    let weight: f64 = of_level().map(|one| one.weight).sum();
    let taken_ns: f64 = of_level().map(|one| one.weight * one.old_refused_ns).sum();
    if weight > 0.0 { taken_ns / weight / 1e9 } else { 0.0 }
}

/// The time of a request that one refusal takes, mean over these requests; `None` if they show too few.
fn each_s(scene: &Scene<'_>, retimed: &[RetimedTrace], is_meant: impl Fn(&RetimedTrace) -> bool) -> Option<f64> {
    let (mut seen, mut refused, mut taken_ns) = (0.0, 0.0, 0.0);
    for (traced, one) in scene.sample.traces.iter().zip(retimed).filter(|(_, one)| is_meant(one)) {
        let attempts = traced.tree.order.iter().filter(|at| is_refused(traced.tree.span(**at))).count() as f64;
        seen += attempts;
        refused += attempts * one.weight;
        taken_ns += one.old_refused_ns * one.weight;
    }
    (seen >= REFUSED_MIN).then(|| taken_ns / refused / 1e9)
}
