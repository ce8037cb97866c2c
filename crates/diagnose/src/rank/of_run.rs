//! How what only variants beside each other show joins the findings of a trial.
//!
//! It takes the place of what the same detector says of that trial by itself, because it says more. A limit of the
//! reading comes last; what costs more than needed comes before the limits and, where nothing was found to be narrow,
//! is what to deal with first. Variants with unequal rates say nothing of a cost.

use narrows_model::finding::{Finding, FindingKind, Role};

use super::{Least, mark_narrow_place};
use crate::detectors::detector_of;

/// Adds a finding of the run to those of its trial, which are ranked. `least` is the cost below which nothing is narrow.
pub(crate) fn join(findings: &mut Vec<Finding>, finding: Finding, least: Least) {
    let is_refused =
        |known: &Finding| finding.kind() == FindingKind::UnequalRates && known.kind() == FindingKind::SidecarCost;
    findings.retain(|known| known.kind() != finding.kind() && !is_refused(known));
    let role = detector_of(finding.kind()).role(&finding);
    let finding = Finding { role, number: free_number(findings), ..finding };
    let is_later = |known: &Finding| {
        known.role > role || role == Role::CostsMore && known.role == role && known.cost_share < finding.cost_share
    };
    let at = findings.iter().position(is_later).unwrap_or(findings.len());
    findings.insert(at, finding);
    if findings.iter().all(|known| known.role != Role::NarrowPlace) {
        mark_narrow_place(findings, least);
    }
}

fn free_number(findings: &[Finding]) -> u32 {
    let taken = findings.iter().map(|finding| free_number(&finding.effects).max(finding.number + 1));
    taken.max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use narrows_model::finding::Confidence;
    use narrows_model::finding::FindingKind::{CpuSaturation, OfferedLoadLimited, SidecarCost, UnequalRates};

    use super::*;
    use crate::thresholds::Thresholds;

    fn least() -> Least {
        Least::of(&Thresholds::default())
    }

    fn finding(kind: FindingKind, role: Role, cost_share: f64) -> Finding {
        Finding { role, cost_share, confidence: Confidence::High, ..Finding::new(kind, 1) }
    }

    fn reported(findings: &[Finding]) -> Vec<(FindingKind, Role)> {
        findings.iter().map(|finding| (finding.kind(), finding.role)).collect()
    }

    #[test]
    fn a_cost_comes_before_the_limits_and_may_be_the_narrow_place() {
        let mut findings = vec![finding(OfferedLoadLimited, Role::LimitsReading, 0.9)];
        join(&mut findings, finding(SidecarCost, Role::default(), 0.5), least());
        assert_eq!(reported(&findings), [(SidecarCost, Role::NarrowPlace), (OfferedLoadLimited, Role::LimitsReading)]);
    }

    #[test]
    fn what_was_found_to_be_narrow_stays_so() {
        let mut findings =
            vec![finding(CpuSaturation, Role::NarrowPlace, 0.9), finding(SidecarCost, Role::CostsMore, 0.2)];
        join(&mut findings, finding(SidecarCost, Role::default(), 0.5), least());
        assert_eq!(reported(&findings), [(CpuSaturation, Role::NarrowPlace), (SidecarCost, Role::CostsMore)]);
        assert_eq!(findings[1].cost_share, 0.5, "the run's takes the trial's place");
    }

    #[test]
    fn unequal_rates_refuse_a_cost() {
        let mut findings = vec![finding(SidecarCost, Role::NarrowPlace, 0.2)];
        join(&mut findings, finding(UnequalRates, Role::default(), 0.3), least());
        assert_eq!(reported(&findings), [(UnequalRates, Role::LimitsReading)]);
    }
}
