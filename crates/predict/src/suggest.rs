//! The changes that findings suggest. Each change says in its own file which findings these are.

use narrows_model::finding::evidence::cpu::CpuLimit;
use narrows_model::finding::evidence::database_saturation::SaturationSign;
use narrows_model::finding::{Evidence, Finding, FindingKind};
use narrows_model::prediction::{Change, ChangeKind};

use crate::changes::ALL;

/// Said of a finding for which no change is known.
pub(crate) const NO_CHANGE: &str = "what its repair would gain cannot be predicted yet";

/// The findings about the system and the change that each asks for. Of findings that another brings about, only those
/// that ask for a change of their own: the others go away with their cause.
pub(crate) fn all(findings: &[Finding]) -> Vec<(FindingKind, Option<Change>)> {
    let of_system = findings.iter().filter(|finding| !finding.role.is_about_experiment());
    let mut found: Vec<(FindingKind, Option<Change>)> = Vec::new();
    let mut add = |one: (FindingKind, Option<Change>)| {
        if !found.contains(&one) {
            found.push(one);
        }
    };
    for finding in of_system {
        add((finding.kind(), change(finding)));
        let effects = finding.effects.iter().map(|effect| (effect.kind(), change(effect)));
        effects.filter(|(_, change)| change.is_some()).for_each(&mut add);
    }
    found
}

/// Change that a finding alone suggests.
pub(crate) fn change(finding: &Finding) -> Option<Change> {
    ALL.iter().find_map(|method| method.suggested_by(finding))
}

/// A change to the operation of a finding; `None` if the finding names no operation.
pub(crate) fn of_operation(kind: ChangeKind, finding: &Finding) -> Option<Change> {
    let operation = finding.operation.as_ref()?;
    Some(Change::new(kind, format!("{} {operation}", finding.resource)))
}

/// The limit of CPU that a finding names.
pub(crate) fn cpu_limit(finding: &Finding) -> Option<CpuLimit> {
    match &finding.evidence {
        Evidence::CpuSaturation(cpu) => Some(cpu.limit),
        Evidence::DatabaseSaturation(database) => match &database.sign {
            SaturationSign::Cpu { cpu, .. } => Some(cpu.limit),
            SaturationSign::Queries { .. } => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use narrows_model::finding::Role;

    use super::*;

    fn finding(evidence: impl Into<Evidence>) -> Finding {
        let operation = Some("GET /orders".to_owned());
        Finding { resource: "shop".into(), operation, ..Finding::new(evidence, 1) }
    }

    #[test]
    fn findings_ask_for_changes() {
        let fan_out = Finding { effects: vec![finding(FindingKind::Throttling)], ..finding(FindingKind::SerialFanOut) };
        let invalid = Finding { role: Role::Invalidates, ..finding(FindingKind::GeneratorLimited) };
        let found = all(&[invalid, fan_out, finding(FindingKind::Outage), finding(FindingKind::SerialFanOut)]);
        let texts: Vec<String> =
            found.iter().map(|(_, change)| change.as_ref().map_or("none".into(), ToString::to_string)).collect();
        assert_eq!(texts, ["parallelize=shop GET /orders", "raise-rate=shop", "none"]);
    }
}
