//! Limits of a check.

use std::collections::BTreeSet;

use narrows_model::baseline::Baseline;
use narrows_model::caveat::ComparisonCaveat;

use super::Summary;

pub(super) fn caveats(before: &Baseline, now: &Summary) -> Vec<ComparisonCaveat> {
    let after = &now.baseline;
    [
        other_experiment(before, after),
        other_machine(before, after),
        once(before, after, now.assumed),
        new_variants(before, after),
        gone(before, after),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn other_experiment(before: &Baseline, after: &Baseline) -> Option<ComparisonCaveat> {
    let is_same = (&before.experiment, &before.experiment_digest) == (&after.experiment, &after.experiment_digest);
    (!is_same).then_some(ComparisonCaveat::BaselineOfOtherExperiment)
}

fn other_machine(before: &Baseline, after: &Baseline) -> Option<ComparisonCaveat> {
    let is_same = before.machine == after.machine;
    let (before, after) = (before.machine.clone(), after.machine.clone());
    (!is_same).then_some(ComparisonCaveat::BaselineOfOtherMachine { before, after })
}

fn once(before: &Baseline, after: &Baseline, deviation: f64) -> Option<ComparisonCaveat> {
    let is_once = |baseline: &Baseline| baseline.variants.iter().any(|variant| variant.trials < 2);
    let sides = [(is_once(before), "the baseline"), (is_once(after), "the run")];
    let sides: Vec<String> =
        sides.into_iter().filter(|(is_once, _)| *is_once).map(|(_, side)| side.to_owned()).collect();
    (!sides.is_empty()).then_some(ComparisonCaveat::MeasuredOnce { sides, deviation, is_observed: false })
}

fn new_variants(before: &Baseline, after: &Baseline) -> Option<ComparisonCaveat> {
    let is_new = |name: &&String| !before.variants.iter().any(|variant| variant.variant == **name);
    let variants: Vec<String> = after.variants.iter().map(|variant| &variant.variant).filter(is_new).cloned().collect();
    (!variants.is_empty()).then_some(ComparisonCaveat::NotInBaseline { variants })
}

/// Operations that the run no longer has.
fn gone(before: &Baseline, after: &Baseline) -> Option<ComparisonCaveat> {
    let mut gone: BTreeSet<&String> = BTreeSet::new();
    for old in &before.variants {
        let Some(new) = after.variants.iter().find(|variant| variant.variant == old.variant) else { continue };
        let has = |service: &str, operation: &str| {
            new.operations.iter().any(|one| one.service == service && one.operation == operation)
        };
        let missing = old.operations.iter().filter(|one| !has(&one.service, &one.operation));
        gone.extend(missing.map(|one| &one.operation));
    }
    let operations: Vec<String> = gone.into_iter().cloned().collect();
    (!operations.is_empty()).then_some(ComparisonCaveat::TooRareNow { operations })
}
