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
use narrows_model::series::{Series, ThreadState, names};

use crate::Cannot;
use crate::changes::Scene;
use crate::changes::fan_out::FanOut;
use crate::retime::{Sample, Traced, is_database, is_refused};
use crate::suggest;
use crate::system::{Level, System};

/// Calls of a request that are left at most when many were made one.
const CALLS_LEFT_MAX: f64 = 0.5;
/// Calls of a request that are left at least when they are only made at other times.
const CALLS_KEPT_MIN: f64 = 0.7;
/// Of the time that calls cost one after another, what is left at most when they are made at once.
const SERIAL_LEFT_MAX: f64 = 0.5;
/// Of the share of refused calls, what is left at most when they are no longer refused.
const REFUSED_LEFT_MAX: f64 = 0.1;
/// Of the time of a request at the disk, what is left at most when its writes share commits.
const AT_DISK_LEFT_MAX: f64 = 0.25;
/// A size that grew by less is no change.
const GROWTH_MIN: f64 = 1.25;

/// The changes that a later trial made, each with its size; empty when none is recognised.
///
/// # Errors
/// When one of the trials does not show enough to be read.
pub(crate) fn made(
    scene: &Scene<'_>,
    (before, findings): (&TrialEvidence, &[Finding]),
    after: &TrialEvidence,
) -> Result<Vec<Change>, Cannot> {
    let system = System::read(after, &[])?;
    let sample = Sample::new(after, &system.levels);
    let changed = Scene { system: &system, sample: &sample };
    let mut all: Vec<Change> = Vec::new();
    for change in suggest::all(findings).into_iter().filter_map(|(_, change)| change) {
        let seen = match change.kind {
            ChangeKind::JoinQueries | ChangeKind::RouteQuery | ChangeKind::Parallelize => {
                calls_changed(&change, scene, &changed)
            }
            ChangeKind::SpeedUp => faster(&change, scene, &changed),
            ChangeKind::RaiseRate => refused_less(&change, scene, &changed),
            ChangeKind::BatchCommits => commits_less(&change, (before, scene), (after, &changed)),
            // These are seen in the services themselves.
            _ => None,
        };
        let is_new = |seen: &Change| all.iter().all(|known| known.target != seen.target);
        all.extend(seen.filter(is_new));
    }
    let (old, new) = (Services::of(before, scene), Services::of(after, &changed));
    let seen = old.differences(&new, scene);
    // What a service reports of itself has a size, which refused calls alone do not show.
    all.retain(|known| seen.iter().all(|one| (one.kind, &one.target) != (known.kind, &known.target)));
    all.extend(seen);
    Ok(all)
}

/// Calls of an operation that became one, or that are made at once now.
fn calls_changed(change: &Change, before: &Scene<'_>, after: &Scene<'_>) -> Option<Change> {
    let calls = FanOut::of(change, before).ok()?;
    let (old, new) = (calls.per_request(before)?, calls.per_request(after)?);
    let is_made = match change.kind {
        ChangeKind::Parallelize => {
            new.calls >= CALLS_KEPT_MIN * old.calls && new.serial_ns <= SERIAL_LEFT_MAX * old.serial_ns
        }
        _ => new.calls <= CALLS_LEFT_MAX * old.calls,
    };
    is_made.then(|| change.clone())
}

/// How many times as fast what a change names has become.
fn faster(change: &Change, before: &Scene<'_>, after: &Scene<'_>) -> Option<Change> {
    let factor = before.own_ns_of(&change.target)? / after.own_ns_of(&change.target)?;
    (factor >= GROWTH_MIN).then(|| Change { amount: Some(factor), ..change.clone() })
}

/// A store that hardly refuses calls any more.
fn refused_less(change: &Change, before: &Scene<'_>, after: &Scene<'_>) -> Option<Change> {
    let (old, new) = (before.refused_share(&change.target), after.refused_share(&change.target));
    (old > 0.0 && new <= REFUSED_LEFT_MAX * old).then(|| change.clone())
}

/// A service of which a request hardly waits for the disk any more.
fn commits_less(
    change: &Change,
    (before, old): (&TrialEvidence, &Scene<'_>),
    (after, new): (&TrialEvidence, &Scene<'_>),
) -> Option<Change> {
    let at_disk_s = |trial: &TrialEvidence, scene: &Scene<'_>| disk_s(trial, &change.target, &scene.system.levels);
    let (old, new) = (at_disk_s(before, old)?, at_disk_s(after, new)?);
    (new <= AT_DISK_LEFT_MAX * old).then(|| change.clone())
}

/// Time that threads of a service are at the disk, per request; `None` if they were not sampled.
fn disk_s(trial: &TrialEvidence, service: &str, levels: &[Level]) -> Option<f64> {
    let in_state = |state: ThreadState| {
        let is_meant = move |series: &&Series| {
            let its = series.key.labels.get(names::THREAD_STATE).map(String::as_str);
            (series.key.name.as_str(), series.key.service.as_str(), its)
                == (names::THREAD_STATES, service, Some(state.as_str()))
        };
        trial.series.iter().filter(is_meant)
    };
    // Each sample of a replica counts its running threads, be there none; other states are there when threads are in them.
    let replicas = in_state(ThreadState::Running).count() as f64;
    let in_level = |level: &Level| {
        let values = |state| {
            let points = in_state(state).flat_map(|series| &series.points);
            points.filter(|point| level.contains(point.time_ns)).map(|point| point.value)
        };
        let samples = values(ThreadState::Running).count() as f64 / replicas;
        (samples > 0.0).then(|| values(ThreadState::Disk).sum::<f64>() / samples * level.seconds)
    };
    let known: Vec<(f64, u64)> = levels.iter().filter_map(|level| Some((in_level(level)?, level.requests))).collect();
    let requests: u64 = known.iter().map(|(_, requests)| requests).sum();
    (requests > 0).then(|| known.iter().map(|(seconds, _)| seconds).sum::<f64>() / requests as f64)
}

impl Scene<'_> {
    /// Of the attempts to call something, those that are refused, 0 to 1.
    fn refused_share(&self, callee: &str) -> f64 {
        let all = self.attempts(|group| group.callee == callee, |_, _| 1.0);
        let refused = |traced: &Traced<'_>, at: usize| if is_refused(traced.tree.span(at)) { 1.0 } else { 0.0 };
        if all > 0.0 { self.attempts(|group| group.callee == callee, refused) / all } else { 0.0 }
    }
}

/// Resources of the services of a trial.
struct Services {
    replicas: BTreeMap<String, u32>,
    /// Cores that a replica may use; the machine's where nothing else limits it.
    cores: BTreeMap<String, f64>,
    sidecars: usize,
    /// CPU of a request in all processes of the run, core-seconds.
    machine_s: f64,
    /// Request units that a partition provides per second.
    provisioned: BTreeMap<String, f64>,
}

impl Services {
    fn of(trial: &TrialEvidence, scene: &Scene<'_>) -> Self {
        let mut services = Self {
            replicas: BTreeMap::new(),
            cores: BTreeMap::new(),
            sidecars: 0,
            machine_s: scene.system.machine_s,
            provisioned: BTreeMap::new(),
        };
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

    fn differences(&self, new: &Self, scene: &Scene<'_>) -> Vec<Change> {
        let change = |kind, target: &str, amount| Change { kind, target: target.to_owned(), amount };
        let mut all = Vec::new();
        for (service, replicas) in &self.replicas {
            if let Some(more) = new.replicas.get(service).filter(|more| *more > replicas) {
                let is_database = scene.attempts(
                    |group| group.callee == service.as_str(),
                    |traced, at| if is_database(traced.tree.span(at)) { 1.0 } else { 0.0 },
                ) > 0.0;
                let kind = if is_database { ChangeKind::SpreadDatabase } else { ChangeKind::AddReplicas };
                all.push(change(kind, service, Some(f64::from(*more))));
            }
        }
        let grown = |kind, old: &BTreeMap<String, f64>, new: &BTreeMap<String, f64>| {
            let one = |(name, old): (&String, &f64)| {
                let factor = new.get(name)? / old;
                (factor >= GROWTH_MIN).then(|| change(kind, name, Some(factor)))
            };
            old.iter().filter_map(one).collect::<Vec<_>>()
        };
        all.extend(grown(ChangeKind::AddCpu, &self.cores, &new.cores));
        all.extend(grown(ChangeKind::RaiseRate, &self.provisioned, &new.provisioned));
        if self.sidecars > 0 && new.sidecars == 0 {
            all.push(change(ChangeKind::RemoveSidecar, "", None));
        }
        if self.sidecars == 0 && new.sidecars > 0 {
            // What a request costs more in each pass of a proxy, the work of its caller to reach it included, microseconds.
            let passes: f64 = self.replicas.keys().map(|service| scene.passes(service)).sum();
            let each = (new.machine_s - self.machine_s) / passes * 1e6;
            all.extend((each.is_finite() && each > 0.0).then(|| change(ChangeKind::AddSidecar, "", Some(each))));
        }
        all
    }
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
        let system = System::read(&before, &[]).expect("a system");
        let sample = Sample::new(&before, &system.levels);
        let made = made(&Scene { system: &system, sample: &sample }, (&before, &findings), &after).expect("a system");
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
