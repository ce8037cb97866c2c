//! How what only variants beside each other show joins the findings of a trial.
//!
//! It takes the place of what the same detector says of that trial by itself, because it says more. A limit of the
//! reading comes last; what costs more than needed comes before the limits and, where nothing was found to be narrow, is
//! what to deal with first. Variants that were asked at unequal rates say nothing of a cost.

use narrows_model::finding::{Finding, Role};

use super::rules::are_of;
use super::{COSTLY, mark_narrow_place};
use crate::Detector;
use crate::detectors::sidecar_cost::SidecarCost;
use crate::detectors::unequal_rates::UnequalRates;

/// Adds a finding of the run to those of its trial, which are ranked. `least` is the cost below which nothing is narrow.
pub(crate) fn join(findings: &mut Vec<Finding>, finding: Finding, least: f64) {
    let is_refused = |known: &Finding| finding.detector == UnequalRates.id() && known.detector == SidecarCost.id();
    findings.retain(|known| known.detector != finding.detector && !is_refused(known));
    let is_costly = are_of(COSTLY, &finding.detector);
    let role = if is_costly { Role::CostsMore } else { Role::LimitsReading };
    let finding = Finding { role, ..finding };
    let is_later =
        |known: &Finding| known.role > role || is_costly && known.role == role && known.cost_share < finding.cost_share;
    let at = findings.iter().position(is_later).unwrap_or(findings.len());
    findings.insert(at, finding);
    if findings.iter().all(|known| known.role != Role::NarrowPlace) {
        mark_narrow_place(findings, least);
    }
}

#[cfg(test)]
mod tests {
    use narrows_model::finding::Confidence;

    use super::*;

    fn finding(detector: &dyn Detector, role: Role, cost_share: f64) -> Finding {
        Finding { detector: detector.id().into(), role, cost_share, confidence: Confidence::High, ..Finding::default() }
    }

    fn told(findings: &[Finding]) -> Vec<(&str, Role)> {
        findings.iter().map(|finding| (finding.detector.as_str(), finding.role)).collect()
    }

    #[test]
    fn a_cost_comes_before_the_limits_and_may_be_the_narrow_place() {
        let limit = crate::detectors::offered_load_limited::OfferedLoadLimited;
        let mut findings = vec![finding(&limit, Role::LimitsReading, 0.9)];
        join(&mut findings, finding(&SidecarCost, Role::default(), 0.5), 0.05);
        assert_eq!(told(&findings), [("sidecar-cost", Role::NarrowPlace), (limit.id(), Role::LimitsReading)]);
    }

    #[test]
    fn what_was_found_to_be_narrow_stays_so() {
        let cpu = crate::detectors::cpu_saturation::CpuSaturation;
        let mut findings = vec![finding(&cpu, Role::NarrowPlace, 0.9), finding(&SidecarCost, Role::CostsMore, 0.2)];
        join(&mut findings, finding(&SidecarCost, Role::default(), 0.5), 0.05);
        assert_eq!(told(&findings), [(cpu.id(), Role::NarrowPlace), ("sidecar-cost", Role::CostsMore)]);
        assert_eq!(findings[1].cost_share, 0.5, "the run's takes the trial's place");
    }

    #[test]
    fn unequal_rates_refuse_a_cost() {
        let mut findings = vec![finding(&SidecarCost, Role::NarrowPlace, 0.2)];
        join(&mut findings, finding(&UnequalRates, Role::default(), 0.3), 0.05);
        assert_eq!(told(&findings), [("unequal-rates", Role::LimitsReading)]);
    }
}
