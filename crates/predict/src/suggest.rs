//! The changes that a diagnosed trial suggests. Each change says in its own file which findings, and which limits, these are.

use narrows_model::finding::evidence::cpu::CpuLimit;
use narrows_model::finding::evidence::database_saturation::SaturationSign;
use narrows_model::finding::{Evidence, Finding, FindingKind, Role};
use narrows_model::limit::{Limit, LimitVerdict};
use narrows_model::prediction::{Change, ChangeKind};

use crate::DiagnosedTrial;
use crate::changes::ALL;

/// Change that a trial suggests, with the reason.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Suggestion {
    /// The finding; `None` if the verdict on the limit suggests the change.
    pub(crate) finding: Option<FindingKind>,
    /// Where the finding or the limit is.
    pub(crate) place: String,
    /// The change, or the reason why no gain can be predicted: a clause without a full stop.
    pub(crate) change: Result<Change, &'static str>,
}

impl Suggestion {
    /// Whether it suggests a change, of whatever size.
    pub(crate) fn is_for(&self, change: &Change) -> bool {
        self.change.as_ref().is_ok_and(|own| (own.kind, &own.target) == (change.kind, &change.target))
    }
}

/// The findings about the system and the change that each asks for; without one, what the verdict on the limit asks for. Of
/// findings that another brings about, only those that ask for a change of their own: the others go away with their cause.
pub(crate) fn all(diagnosed: &DiagnosedTrial<'_>) -> Vec<Suggestion> {
    let mut found: Vec<Suggestion> = Vec::new();
    let mut add = |one: Suggestion| {
        if !found.contains(&one) {
            found.push(one);
        }
    };
    for finding in diagnosed.findings.iter().filter(|finding| !finding.role.is_about_experiment()) {
        add(of_finding(finding));
        finding.effects.iter().filter_map(of_effect).for_each(&mut add);
    }
    let has_cause = diagnosed.findings.iter().any(|finding| finding.role == Role::NarrowPlace);
    let of_limit = diagnosed.limit.filter(|_| !has_cause).and_then(of_limit);
    of_limit.into_iter().for_each(add);
    found
}

/// The changes that are suggested, each once.
pub(crate) fn changes(diagnosed: &DiagnosedTrial<'_>) -> Vec<Change> {
    let mut changes: Vec<Change> = Vec::new();
    for change in all(diagnosed).into_iter().filter_map(|one| one.change.ok()) {
        if !changes.contains(&change) {
            changes.push(change);
        }
    }
    changes
}

fn of_finding(finding: &Finding) -> Suggestion {
    let change = change(finding).ok_or_else(|| no_change(finding.kind()));
    Suggestion { finding: Some(finding.kind()), place: finding.resource.clone(), change }
}

/// Requests take turns because of the cause, so a section that a finding brings about asks for nothing else.
fn of_effect(effect: &Finding) -> Option<Suggestion> {
    let suggestion = of_finding(effect);
    let is_turn = effect.kind() == FindingKind::SerialisedSection;
    (suggestion.change.is_ok() && !is_turn).then_some(suggestion)
}

fn of_limit(limit: &Limit) -> Option<Suggestion> {
    let LimitVerdict::NotCpu { place: Some(place), .. } = &limit.verdict else { return None };
    let change = Change::new(ChangeKind::RaiseLimit, &place.name);
    Some(Suggestion { finding: None, place: place.name.clone(), change: Ok(change) })
}

/// Change that a finding alone suggests.
pub(crate) fn change(finding: &Finding) -> Option<Change> {
    ALL.iter().find_map(|method| method.suggested_by(finding))
}

/// Why no gain can be said of what a finding asks for: a clause without a full stop.
fn no_change(finding: FindingKind) -> &'static str {
    match finding {
        FindingKind::MemoryGrowth => "memory that grows takes no time of requests until it runs out",
        FindingKind::DescriptorExhaustion
        | FindingKind::ConnectionLimit
        | FindingKind::DiskFull
        | FindingKind::PortExhaustion
        | FindingKind::Outage
        | FindingKind::RetryStorm => {
            "its repair lets requests succeed that fail now, and how long these would take is not measured"
        }
        FindingKind::ConflictRetry => "which transactions touch the same rows is not recorded",
        FindingKind::HotPartition | FindingKind::StragglerBranch | FindingKind::UnevenAssignment => {
            "how keys would be spread over partitions is not recorded"
        }
        FindingKind::InstrumentationGap | FindingKind::TimeOutsideSpans => {
            "nothing recorded says what passes in this time"
        }
        FindingKind::SequentialCalls => "without spans nothing says which of the calls could be made together",
        FindingKind::RetrogradeThroughput => "what requests contend for is not known",
        FindingKind::PoolWait => "the size of the pool is not known, or which calls a request could do without",
        FindingKind::ThreadPool => "the size of the pool is not known",
        FindingKind::FewClients
        | FindingKind::GeneratorLimited
        | FindingKind::NotSteady
        | FindingKind::OfferedLoadLimited
        | FindingKind::UnequalRates => "it is about the experiment, whose repair changes no system",
        _ => "it names no operation that could be changed",
    }
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
    use narrows_testkit::trial::TrialBuilder;

    use super::*;

    fn finding(evidence: impl Into<Evidence>) -> Finding {
        let operation = Some("GET /orders".to_owned());
        Finding { resource: "shop".into(), operation, ..Finding::new(evidence, 1) }
    }

    #[test]
    fn findings_ask_for_changes() {
        let effects = vec![finding(FindingKind::Throttling), finding(FindingKind::SerialisedSection)];
        let fan_out = Finding { effects, ..finding(FindingKind::SerialFanOut) };
        let invalid = Finding { role: Role::Invalidates, ..finding(FindingKind::GeneratorLimited) };
        let findings = [invalid, fan_out, finding(FindingKind::Outage), finding(FindingKind::SerialFanOut)];
        let trial = TrialBuilder::new("a").build();
        let found = all(&DiagnosedTrial::new(&trial, &findings));
        let texts: Vec<String> =
            found.iter().map(|one| one.change.as_ref().map_or_else(ToString::to_string, ToString::to_string)).collect();
        let outage = "its repair lets requests succeed that fail now, and how long these would take is not measured";
        assert_eq!(texts, ["parallelize=shop GET /orders", "raise-rate=shop", outage]);
    }
}
