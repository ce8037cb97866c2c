//! Limits of a comparison of whole trials.

use narrows_model::caveat::ComparisonCaveat;
use narrows_model::proof::{LoadShape, Order, Proof, Quantity};
use narrows_model::run::Verdict;

use super::Trials;

/// Difference of the shares of failed requests from which it is a caveat.
const ERRORS_APART: f64 = 0.01;

pub(super) fn caveats(proof: &Proof, old: &Trials<'_>, new: &Trials<'_>) -> Vec<ComparisonCaveat> {
    [order(proof), closed(proof), users(old, new), failed(proof), doubtful(old, new)].into_iter().flatten().collect()
}

fn order(proof: &Proof) -> Option<ComparisonCaveat> {
    let (before, after) = (proof.before.clone(), proof.after.clone());
    match proof.design.order {
        Order::Randomised { .. } => None,
        Order::InTurn => Some(ComparisonCaveat::MeasuredInTurn { before, after }),
        Order::Apart => Some(ComparisonCaveat::NotInterleaved { before, after }),
    }
}

fn closed(proof: &Proof) -> Option<ComparisonCaveat> {
    let rate = proof.quantities.iter().find(|change| change.quantity == Quantity::Rate)?;
    let (before, after) = ((proof.before.clone(), rate.before), (proof.after.clone(), rate.after));
    (proof.design.load != LoadShape::Open).then_some(ComparisonCaveat::ClosedLoad { before, after })
}

/// Closed loads with different numbers of users.
fn users(old: &Trials<'_>, new: &Trials<'_>) -> Option<ComparisonCaveat> {
    let most = |trials: &Trials<'_>| trials.iter().flat_map(|trial| &trial.levels).map(|level| level.vus).max();
    let (before, after) = (most(old)?, most(new)?);
    (before != after).then_some(ComparisonCaveat::DifferentUsers { before, after })
}

fn failed(proof: &Proof) -> Option<ComparisonCaveat> {
    let (before, after) = proof.errors;
    let is_apart = (before - after).abs() >= ERRORS_APART;
    let (before, after) = ((proof.before.clone(), before), (proof.after.clone(), after));
    is_apart.then_some(ComparisonCaveat::DifferentErrors { before, after })
}

fn doubtful(old: &Trials<'_>, new: &Trials<'_>) -> Option<ComparisonCaveat> {
    let doubts = old.iter().chain(new).filter_map(|trial| Some((&trial.label, trial.doubt.as_ref()?)));
    let (trials, reasons): (Vec<String>, Vec<&String>) = doubts
        .filter(|(_, (verdict, _))| *verdict == Verdict::Doubtful)
        .map(|(label, (_, reason))| (label.clone(), reason))
        .unzip();
    let reason = (*reasons.first()?).clone();
    Some(ComparisonCaveat::DoubtfulTrials { trials, reason })
}
