//! Which finding asks for which change: the only place that maps the one to the other.

use narrows_model::finding::evidence::cpu::CpuLimit;
use narrows_model::finding::evidence::database_saturation::SaturationSign;
use narrows_model::finding::{Evidence, Finding, FindingKind};
use narrows_model::prediction::{Change, ChangeKind};

use crate::changes::add_cpu::MACHINE;

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

/// The change that a finding asks for by itself.
pub(crate) fn change(finding: &Finding) -> Option<Change> {
    let of = |kind, target: &str| Some(Change { kind, target: target.to_owned(), amount: None });
    let resource = finding.resource.as_str();
    let operation = || finding.operation.as_ref().map(|operation| format!("{resource} {operation}"));
    let of_operation = |kind| of(kind, &operation()?);
    match &finding.evidence {
        Evidence::SerialFanOut(_) => of_operation(ChangeKind::Parallelize),
        Evidence::NPlusOne(_) | Evidence::ChattyHttp(_) | Evidence::DuplicateQuery(_) => {
            of_operation(ChangeKind::JoinQueries)
        }
        Evidence::CrossPartitionQuery(_) => of_operation(ChangeKind::RouteQuery),
        Evidence::Throttling(_) | Evidence::ProvisionedRate(_) => of(ChangeKind::RaiseRate, resource),
        Evidence::CpuSaturation(cpu) => of_limit(cpu.limit, resource),
        Evidence::DatabaseSaturation(database) => match &database.sign {
            SaturationSign::Cpu { cpu, .. } => of_limit(cpu.limit, resource),
            SaturationSign::Queries { .. } => None,
        },
        Evidence::DiskBound(_) => of(ChangeKind::BatchCommits, resource),
        Evidence::PoolWait(wait) => wait.pool.size.and_then(|_| of(ChangeKind::ResizePool, resource)),
        Evidence::SidecarCost(_) => of(ChangeKind::RemoveSidecar, ""),
        Evidence::SlowDependency(_) | Evidence::SlowQuery(_) => of(ChangeKind::SpeedUp, resource),
        _ => None,
    }
}

fn of_limit(limit: CpuLimit, service: &str) -> Option<Change> {
    let (kind, target) = match limit {
        CpuLimit::Cap { .. } => (ChangeKind::AddCpu, service),
        CpuLimit::Thread => (ChangeKind::AddReplicas, service),
        CpuLimit::Machine | CpuLimit::Host => (ChangeKind::AddCpu, MACHINE),
    };
    Some(Change { kind, target: target.to_owned(), amount: None })
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
