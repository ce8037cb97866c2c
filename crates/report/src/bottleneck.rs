//! The bottleneck of each variant in one line, for readers who see many variants at a glance.

use narrows_diagnose::words::{InWords, limit_name, limit_text};
use narrows_model::comparison::Outcome;
use narrows_model::finding::{FindingKind, Role};

use crate::recurring::{self, VariantFindings};

/// The bottleneck of a variant.
pub(crate) struct Bottleneck<'a> {
    pub(crate) variant: &'a str,
    /// The narrow place, or what else was found of the system, or else the verdict on the limit.
    pub(crate) what: String,
    /// The same without figures, which differ from run to run: `throttling at docstore`.
    pub(crate) name: String,
    /// Kind of the finding; `None` for a verdict.
    pub(crate) kind: Option<FindingKind>,
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
            what: finding.title(),
            name: format!("{} at {}", finding.kind().id(), finding.resource),
            kind: Some(finding.kind()),
        },
        None => of_limit(variant.variant, outcome),
    }
}

/// The verdict on the variant's first trial.
fn of_limit<'a>(variant: &'a str, outcome: &Outcome) -> Bottleneck<'a> {
    let trials = outcome.evidence.trials.iter().zip(&outcome.limits);
    let limit = trials.into_iter().find(|(trial, _)| trial.trial.variant == variant).map(|(_, limit)| limit);
    let name = limit.map_or_else(String::new, |limit| limit_name(&limit.verdict));
    let what = limit.map_or_else(String::new, |limit| limit_text(&limit.verdict));
    Bottleneck { variant, what, name, kind: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_variant_without_a_finding_has_its_limit() {
        let mut outcome = fixture::stepped_outcome();
        assert_eq!(bottlenecks(&outcome)[0].what, outcome.findings[0][0].title());
        assert_eq!(bottlenecks(&outcome)[0].name, "n-plus-one at orders");
        outcome.findings[0].clear();
        let found = &bottlenecks(&outcome)[0];
        assert!(found.what.starts_with("limited by something at orders that is not CPU"), "{}", found.what);
        assert_eq!(found.name, "something at orders that is not CPU");
    }
}
