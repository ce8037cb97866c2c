//! Which changes one trial made to another of the same load: of those that findings suggest, the ones that the requests
//! show; and what differs in the services themselves, such as replicas, CPU limits and sidecars.
//!
//! Only what was recorded is compared, never the parameters of the experiment. Where a change has a size, the size is
//! measured: how many replicas, how much more CPU, how many times as fast.

use std::collections::BTreeMap;

use narrows_model::evidence::TrialEvidence;
use narrows_model::finding::Finding;
use narrows_model::prediction::{Change, ChangeKind};
use narrows_model::run::sidecar_of;

use crate::changes::{ALL, Scene, method};
use crate::retime::Sample;
use crate::suggest;
use crate::system::System;
use crate::{Cannot, DiagnosedTrial};

/// A size that grew by less is no change.
pub(crate) const GROWTH_MIN: f64 = 1.25;

/// The changes that a later trial made, each with its size; empty when none is recognised.
///
/// # Errors
/// When one of the trials does not show enough to be read.
pub(crate) fn made_changes(
    scene: &Scene<'_>,
    before: &TrialEvidence,
    findings: &[Finding],
    after: &TrialEvidence,
) -> Result<Vec<Change>, Cannot> {
    let system = System::read(&DiagnosedTrial::new(after, &[]))?;
    let sample = Sample::new(after, &system.levels);
    let changed = Scene { system: &system, sample: &sample };
    let (old, new) = (ReadTrial::new(before, scene), ReadTrial::new(after, &changed));
    let mut all: Vec<Change> = Vec::new();
    for change in suggest::all(findings).into_iter().filter_map(|(_, change)| change) {
        let made = method(change.kind).made_in_requests(&change, &old, &new);
        let is_new = |made: &Change| all.iter().all(|known| known.target != made.target);
        all.extend(made.filter(is_new));
    }
    let of_services: Vec<Change> = ALL.iter().flat_map(|method| method.made_in_services(&old, &new)).collect();
    // A change that a service reports itself has a size, which refused calls alone do not show.
    all.retain(|known| of_services.iter().all(|one| (one.kind, &one.target) != (known.kind, &known.target)));
    all.extend(of_services);
    Ok(all)
}

/// A trial as changes are recognised in it.
pub(crate) struct ReadTrial<'s> {
    pub(crate) trial: &'s TrialEvidence,
    pub(crate) scene: &'s Scene<'s>,
    pub(crate) services: Services,
}

impl<'s> ReadTrial<'s> {
    fn new(trial: &'s TrialEvidence, scene: &'s Scene<'s>) -> Self {
        Self { trial, scene, services: Services::of(trial, scene) }
    }
}

/// Resources of the services of a trial.
#[derive(Default)]
pub(crate) struct Services {
    pub(crate) replicas: BTreeMap<String, u32>,
    /// Cores that a replica may use; the machine's if nothing else limits it.
    pub(crate) cores: BTreeMap<String, f64>,
    pub(crate) sidecars: usize,
    /// Request units that a partition provides per second.
    pub(crate) provisioned: BTreeMap<String, f64>,
}

impl Services {
    fn of(trial: &TrialEvidence, scene: &Scene<'_>) -> Self {
        let mut services = Self::default();
        for instance in &trial.services {
            if sidecar_of(&instance.service).is_some() {
                services.sidecars += 1;
                continue;
            }
            *services.replicas.entry(instance.service.clone()).or_default() += 1;
            let cores = instance.cpu_limit_cores.unwrap_or(f64::from(trial.cores));
            services.cores.insert(instance.service.clone(), cores);
        }
        for store in &scene.system.stores {
            services.provisioned.extend(store.provisioned.map(|provisioned| (store.name.clone(), provisioned)));
        }
        services
    }
}

/// A change for each size that grew, with its factor.
pub(crate) fn grown(kind: ChangeKind, old: &BTreeMap<String, f64>, new: &BTreeMap<String, f64>) -> Vec<Change> {
    let change = |(name, old): (&String, &f64)| {
        let factor = new.get(name)? / old;
        (factor >= GROWTH_MIN).then(|| Change { amount: Some(factor), ..Change::new(kind, name) })
    };
    old.iter().filter_map(change).collect()
}

#[cfg(test)]
mod tests {
    use narrows_model::finding::FindingKind;
    use narrows_testkit::simulator;

    use super::*;

    fn run(system: &simulator::System) -> TrialEvidence {
        system.run("a")
    }

    /// The changes from one system to another, as they are written, when findings of these kinds name the operation.
    fn changes(before: &simulator::System, after: &simulator::System, kinds: &[FindingKind]) -> Vec<String> {
        let (before, after) = (run(before), run(after));
        let finding = |kind: &FindingKind| Finding {
            resource: simulator::WEB.into(),
            operation: Some(simulator::OPERATION.into()),
            ..Finding::new(*kind, 1)
        };
        let findings: Vec<Finding> = kinds.iter().map(finding).collect();
        let system = System::read(&DiagnosedTrial::new(&before, &[])).expect("a system");
        let sample = Sample::new(&before, &system.levels);
        let made =
            made_changes(&Scene { system: &system, sample: &sample }, &before, &findings, &after).expect("a system");
        made.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_change_is_recognised_by_what_requests_and_services_show() {
        let steps = vec![(1, 12), (2, 12)];
        let one = simulator::System { steps, peer_calls: 5, think_ms: 50.0, ..simulator::System::default() };
        let parallel = simulator::System { is_serial: false, ..one.clone() };
        let more_cpu = simulator::System { web_cores: one.web_cores * 2, ..one.clone() };
        let fan_out = [FindingKind::SerialFanOut];
        assert_eq!(changes(&one, &parallel, &fan_out), ["parallelize=web GET /orders"]);
        assert_eq!(changes(&one, &one, &fan_out), Vec::<String>::new(), "nothing was changed");
        assert_eq!(changes(&one, &parallel, &[]), Vec::<String>::new(), "nothing suggests it");
        assert_eq!(changes(&one, &more_cpu, &fan_out), ["add-cpu=web,2"]);
        let rows = simulator::System { rows_one_by_one: 12, peer_calls: 0, ..one.clone() };
        let joined = simulator::System { rows_one_by_one: 1, ..rows.clone() };
        assert_eq!(changes(&rows, &joined, &[FindingKind::NPlusOne]), ["join-queries=web GET /orders"]);
    }
}
