//! Which changes one trial made to another of the same load: of those that findings suggest, the ones that the requests
//! show; and what differs in the services themselves, such as replicas, CPU limits and sidecars.
//!
//! Only what was recorded is compared, never the parameters of the experiment. Where a change has a size, the size is
//! measured: how many replicas, how much more CPU, how many times as fast. No size is read from throughput or latency, which
//! the prediction is held against: sizes come from limits, connections, CPU of a request, spans, and waits of sockets.

use std::collections::BTreeMap;

use narrows_model::evidence::TrialEvidence;
use narrows_model::finding::{Finding, FindingKind, narrow_place};
use narrows_model::prediction::{Change, ChangeKind};
use narrows_model::run::sidecar_of;
use narrows_model::series::{Series, ThreadState, names};

use crate::call_waits::calls;
use crate::changes::{ALL, Scene, method};
use crate::retime::Sample;
use crate::suggest;
use crate::system::{Level, System};
use crate::{Cannot, DiagnosedTrial};

/// A size that grew by less is no change.
pub(crate) const GROWTH_MIN: f64 = 1.25;
/// Work of a request that is saved is a change from this share of the lightest load's mean latency on: CPU is sampled in
/// hundredths of a second, so that little of it is noise.
const SAVED_SHARE_MIN: f64 = 0.1;

/// Change that a later trial made.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MadeChange {
    /// With its size.
    pub(crate) change: Change,
    /// The finding that it repairs; `None` if no finding suggests it.
    pub(crate) because: Option<FindingKind>,
}

/// The changes that a later trial made; empty when none is recognised, and when it also took something away, of which no change
/// says what it costs.
///
/// # Errors
/// When the later trial does not show enough to be read.
pub(crate) fn made_changes(scene: &Scene<'_>, after: &DiagnosedTrial<'_>) -> Result<Vec<MadeChange>, Cannot> {
    let system = System::read(after)?;
    let sample = Sample::new(after.trial, &system.levels);
    let changed = Scene { diagnosed: after, system: &system, sample: &sample };
    let (old, new) = (ReadTrial::new(scene), ReadTrial::new(&changed));
    if old.services.have_shrunk(&new.services) {
        return Ok(Vec::new());
    }
    let mut all: Vec<MadeChange> = Vec::new();
    for suggestion in suggest::all(scene.diagnosed) {
        let Ok(change) = &suggestion.change else { continue };
        let instead = || ALL.iter().find_map(|method| method.made_instead(&suggestion.place, &old, &new));
        let made = method(change.kind)
            .made_in_requests(change, &old, &new)
            .or_else(|| instead().filter(|_| !new.has_new_fault(&old) && !new.suggests(change)));
        let is_new = |made: &Change| all.iter().all(|known| known.change.target != made.target);
        let made = made.filter(is_new).map(|change| MadeChange { change, because: suggestion.finding });
        all.extend(made);
    }
    let of_services: Vec<Change> = ALL.iter().flat_map(|method| method.made_in_services(&old, &new)).collect();
    // Changes that a service reports itself have a size, and explain other signs of its requests.
    let is_other = |known: &MadeChange| of_services.iter().all(|one| one.target != known.change.target);
    all.retain(is_other);
    let suggested = suggest::all(scene.diagnosed);
    let because = |change: &Change| suggested.iter().find(|one| one.is_for(change)).and_then(|one| one.finding);
    all.extend(of_services.into_iter().map(|change| MadeChange { because: because(&change), change }));
    Ok(all)
}

fn is_same_fault(one: &Finding, other: &Finding) -> bool {
    (one.kind(), &one.resource) == (other.kind(), &other.resource)
}

/// A trial as changes are recognised in it.
pub(crate) struct ReadTrial<'s> {
    pub(crate) trial: &'s TrialEvidence,
    pub(crate) scene: &'s Scene<'s>,
    pub(crate) services: Services,
}

impl<'s> ReadTrial<'s> {
    fn new(scene: &'s Scene<'s>) -> Self {
        let trial = scene.diagnosed.trial;
        Self { trial, scene, services: Services::of(trial, scene) }
    }

    /// Whether this trial still suggests a change, of whatever size.
    pub(crate) fn suggests(&self, change: &Change) -> bool {
        suggest::all(self.scene.diagnosed).iter().any(|one| one.is_for(change))
    }

    /// Whether it has a narrow place that an earlier trial does not have. Its services may need less of everything, or make
    /// fewer calls at a time, because of that.
    pub(crate) fn has_new_fault(&self, before: &Self) -> bool {
        let old = before.scene.diagnosed.findings;
        let narrow = narrow_place(self.scene.diagnosed.findings);
        narrow.is_some_and(|new| !old.iter().any(|old| is_same_fault(old, new)))
    }

    /// Time that a request takes under the lightest load, seconds.
    fn alone_s(&self) -> f64 {
        self.scene.system.levels.first().map_or(0.0, Level::mean_s)
    }

    /// Time that threads of a service are at the disk for a request, seconds; `None` if they were not sampled.
    pub(crate) fn disk_s(&self, service: &str) -> Option<f64> {
        disk_s(self.trial, service, &self.scene.system.levels)
    }

    /// CPU of a request in some services, core-seconds; `None` if it was not sampled.
    fn cpu_s(&self, is_meant: impl Fn(&str) -> bool) -> Option<f64> {
        let sampled = || self.scene.system.levels.iter().filter(|level| !level.cpu.is_empty());
        let used = sampled().flat_map(|level| &level.cpu).filter(|(service, _)| is_meant(service));
        let used: f64 = used.map(|(_, used)| used).sum();
        let requests: f64 = sampled().map(|level| level.requests as f64).sum();
        (requests > 0.0 && used > 0.0).then(|| used / requests)
    }
}

/// How many times less CPU a request needs in some services of a later trial, if it saves a notable time.
pub(crate) fn cpu_factor(
    before: &ReadTrial<'_>,
    after: &ReadTrial<'_>,
    is_meant: impl Fn(&str) -> bool + Copy,
) -> Option<f64> {
    factor(before, before.cpu_s(is_meant)?, after.cpu_s(is_meant)?)
}

/// How many times less time a service works or is at the disk for a request in a later trial, if it saves a notable time.
pub(crate) fn own_time_factor(before: &ReadTrial<'_>, after: &ReadTrial<'_>, service: &str) -> Option<f64> {
    let own_s =
        |trial: &ReadTrial<'_>| Some(trial.cpu_s(|name| name == service)? + trial.disk_s(service).unwrap_or(0.0));
    factor(before, own_s(before)?, own_s(after)?)
}

/// How many times less a request waits for calls to something in a later trial, if it saves a notable time.
pub(crate) fn wait_factor(before: &ReadTrial<'_>, after: &ReadTrial<'_>, callee: &str) -> Option<f64> {
    let call_s = |trial: &ReadTrial<'_>| calls(trial.scene.diagnosed, None, Some(callee)).and_then(|all| all.call_s());
    factor(before, call_s(before)?, call_s(after)?)
}

fn factor(before: &ReadTrial<'_>, old_s: f64, new_s: f64) -> Option<f64> {
    let factor = old_s / new_s;
    (factor >= GROWTH_MIN && old_s - new_s >= SAVED_SHARE_MIN * before.alone_s()).then_some(factor)
}

/// True if requests do the same work in a later trial: no service uses much less CPU for each, and no call that sockets show
/// is much shorter.
pub(crate) fn is_same_work(before: &ReadTrial<'_>, after: &ReadTrial<'_>) -> bool {
    let mut services = before.services.replicas.keys();
    let callees = before.scene.diagnosed.calls.into_iter().flat_map(|graph| &graph.nodes);
    services.all(|service| cpu_factor(before, after, |name| name == service).is_none())
        && callees.into_iter().all(|node| wait_factor(before, after, &node.name).is_none())
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

    /// Whether some service of a later trial has fewer replicas, or less CPU for each.
    fn have_shrunk(&self, later: &Self) -> bool {
        is_smaller(&self.replicas, &later.replicas) || is_smaller(&self.cores, &later.cores)
    }
}

/// Whether a size is notably smaller than it was.
fn is_smaller<N: Copy + Into<f64>>(old: &BTreeMap<String, N>, new: &BTreeMap<String, N>) -> bool {
    old.iter().any(|(name, old)| new.get(name).is_some_and(|new| (*old).into() >= GROWTH_MIN * (*new).into()))
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
    use narrows_model::finding::Finding;
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
        let diagnosed = DiagnosedTrial::new(&before, &findings);
        let system = System::read(&diagnosed).expect("a system");
        let sample = Sample::new(&before, &system.levels);
        let scene = Scene { diagnosed: &diagnosed, system: &system, sample: &sample };
        let made = made_changes(&scene, &DiagnosedTrial::new(&after, &[])).expect("a system");
        made.iter().map(|made| made.change.to_string()).collect()
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
        let parallel_with_less = simulator::System { web_cores: one.web_cores / 2, ..parallel.clone() };
        assert_eq!(changes(&one, &parallel_with_less, &fan_out), Vec::<String>::new(), "less CPU too");
        let busy = simulator::System { web_ms: 12.0, peer_calls: 0, ..one.clone() };
        let cheap = simulator::System { web_ms: 3.0, ..busy.clone() };
        let queue = [FindingKind::AcceptQueue];
        assert_eq!(changes(&busy, &busy, &queue), ["raise-limit=web"], "the queue is gone and the work is the same");
        let saved = changes(&busy, &cheap, &queue);
        assert!(saved.len() == 1 && saved[0].starts_with("save-cpu=web,"), "{saved:?}");
        let rows = simulator::System { rows_one_by_one: 12, peer_calls: 0, ..one.clone() };
        let joined = simulator::System { rows_one_by_one: 1, ..rows.clone() };
        assert_eq!(changes(&rows, &joined, &[FindingKind::NPlusOne]), ["join-queries=web GET /orders"]);
    }
}
