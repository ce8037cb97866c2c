//! The bottleneck of each variant in one line, for readers who see many variants at a glance.

use narrows_model::comparison::Outcome;
use narrows_model::finding::Role;

use crate::limits;
use crate::recurring::{self, VariantFindings, gains};

/// What is in the way of a variant.
pub(crate) struct Bottleneck<'a> {
    pub(crate) variant: &'a str,
    /// The narrow place, or what else was found of the system, or else the verdict on the limit.
    pub(crate) what: String,
    /// What its fix would gain; empty where nothing is predicted.
    pub(crate) gain: String,
}

/// One for each variant, in order.
pub(crate) fn bottlenecks(outcome: &Outcome) -> Vec<Bottleneck<'_>> {
    recurring::by_variant(outcome).iter().map(|variant| of(variant, outcome)).collect()
}

fn of<'a>(variant: &VariantFindings<'a>, outcome: &Outcome) -> Bottleneck<'a> {
    let narrow = || variant.findings.iter().find(|one| one.role == Role::NarrowPlace);
    let of_system = || variant.findings.iter().find(|one| !one.role.is_about_experiment());
    match narrow().or_else(of_system).map(|one| one.finding) {
        Some(finding) => Bottleneck {
            variant: variant.variant,
            what: finding.title.clone(),
            gain: gains(finding).into_iter().next().unwrap_or_default(),
        },
        None => Bottleneck { variant: variant.variant, what: limit(variant.variant, outcome), gain: String::new() },
    }
}

/// The verdict on the variant's first trial.
fn limit(variant: &str, outcome: &Outcome) -> String {
    let trials = outcome.evidence.trials.iter().zip(&outcome.limits);
    let first = trials.into_iter().find(|(trial, _)| trial.trial.variant == variant);
    first.map_or(String::new(), |(_, limit)| limits::sentence(limit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_variant_without_a_finding_has_its_limit() {
        let mut outcome = fixture::stepped_outcome();
        assert_eq!(bottlenecks(&outcome)[0].what, outcome.findings[0][0].title);
        outcome.findings[0].clear();
        let found = bottlenecks(&outcome)[0].what.clone();
        assert!(found.starts_with("limited by something at orders that is not CPU"), "{found}");
    }
}
