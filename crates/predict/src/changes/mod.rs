//! Effect of each change on a system and on its requests: one file each, listed in [`ALL`].

mod add_cpu;
mod add_replicas;
mod add_sidecar;
mod balance_replicas;
mod batch_commits;
mod cache;
mod cache_names;
mod drop_call;
mod fan_out;
mod join_queries;
pub(crate) mod more_load;
mod one_call;
mod parallelize;
pub(crate) mod raise_limit;
mod raise_memory;
mod raise_rate;
mod release_before;
mod remove_sidecar;
mod remove_stall;
mod replica_caches;
mod resize_pool;
mod reuse_connections;
mod route_query;
mod save_cpu;
mod sections;
mod sharing;
mod shorten_section;
mod speed_up;
mod split_lock;
mod spread_database;
mod unmade;
mod waits;

use std::fmt;
use std::rc::Rc;

use narrows_model::finding::Finding;
use narrows_model::finding::evidence::load::LoadLevel;
use narrows_model::prediction::{Assumption, Change, ChangeKind, Doubt, Resource, ResourceKind};

use crate::recognition::ReadTrial;
use crate::retime::{Edit, Group, RetimedTrace, Sample, SampledTrace, Treatment, groups};
use crate::rules::Part;
use crate::system::System;
use crate::{Cannot, DiagnosedTrial};

/// Every change that can be predicted, in the order of their names.
pub(crate) const ALL: [&dyn Method; 25] = [
    &add_cpu::AddCpu,
    &add_replicas::AddReplicas,
    &add_sidecar::AddSidecar,
    &balance_replicas::BalanceReplicas,
    &batch_commits::BatchCommits,
    &cache::Cache,
    &cache_names::CacheNames,
    &drop_call::DropCall,
    &join_queries::JoinQueries,
    &more_load::MoreLoad,
    &parallelize::Parallelize,
    &raise_limit::RaiseLimit,
    &raise_memory::RaiseMemory,
    &raise_rate::RaiseRate,
    &release_before::ReleaseBefore,
    &remove_sidecar::RemoveSidecar,
    &remove_stall::RemoveStall,
    &resize_pool::ResizePool,
    &reuse_connections::ReuseConnections,
    &route_query::RouteQuery,
    &save_cpu::SaveCpu,
    &shorten_section::ShortenSection,
    &speed_up::SpeedUp,
    &split_lock::SplitLock,
    &spread_database::SpreadDatabase,
];

/// How a change is predicted.
///
/// An implementation MUST be a pure function of its arguments and MUST NOT use anything that the run did not record.
pub(crate) trait Method: Sync {
    /// The change.
    fn kind(&self) -> ChangeKind;
    /// Syntax after its name, such as `SERVICE[,FACTOR]`.
    fn usage(&self) -> &'static str;
    /// Target that it is written with.
    fn target(&self) -> Target {
        Target::One
    }
    /// Largest amount; `None` if any number above 0 is one.
    fn amount_max(&self) -> Option<f64> {
        None
    }
    /// The change as the subject of a sentence.
    fn description(&self, change: &Change) -> String;
    /// The change that a finding suggests. Each finding suggests one change at most.
    fn suggested_by(&self, _finding: &Finding) -> Option<Change> {
        None
    }
    /// The change that moves the limit of a resource.
    fn against(&self, _limit: &Resource) -> Option<Change> {
        None
    }
    /// A suggested change, with its measured size, if the requests of a later trial show that it was made.
    fn made_in_requests(&self, _change: &Change, _before: &ReadTrial<'_>, _after: &ReadTrial<'_>) -> Option<Change> {
        None
    }
    /// The change, with its measured size, if a later trial shows that it was made at a place where another is suggested and
    /// was not made.
    fn made_instead(&self, _place: &str, _before: &ReadTrial<'_>, _after: &ReadTrial<'_>) -> Option<Change> {
        None
    }
    /// Changes, each with its measured size, that the services of a later trial show.
    fn made_in_services(&self, _before: &ReadTrial<'_>, _after: &ReadTrial<'_>) -> Vec<Change> {
        Vec::new()
    }
    /// The part of the latency that it concerns, for the simple rules; `None` if they say nothing of it.
    fn part(&self, _change: &Change, _scene: &Scene<'_>) -> Option<Part> {
        None
    }
    /// Effect on this system.
    fn effect<'s>(&self, change: &Change, scene: &'s Scene<'s>) -> Result<Effect<'s>, Cannot>;
}

/// Target of a change as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// One service, operation, store or dependency.
    One,
    /// One service or store, or all of them if none is named.
    OneOrAll,
    /// The load, which is not named; an amount is required.
    Load,
}

/// The method of a kind of change.
pub(crate) fn method(kind: ChangeKind) -> &'static dyn Method {
    let found = ALL.iter().find(|method| method.kind() == kind);
    *found.expect("every kind of change has its method, which a test checks")
}

/// A system as a change finds it.
#[derive(Debug)]
pub(crate) struct Scene<'s> {
    pub(crate) diagnosed: &'s DiagnosedTrial<'s>,
    pub(crate) system: &'s System,
    /// Traces without the waits that depend on the load.
    pub(crate) sample: &'s Sample<'s>,
}

/// Effect of a change.
#[derive(Debug, Default)]
pub(crate) struct Effect<'s> {
    /// One case; two where it is only known that the truth lies between them. Bounds follow.
    pub(crate) cases: Vec<Case<'s>>,
    /// The load under which it is predicted; `None` for that of the trial.
    pub(crate) loads: Option<Vec<LoadLevel>>,
    pub(crate) assumptions: Vec<Assumption>,
    pub(crate) doubts: Vec<Doubt>,
}

/// One way a change may turn out.
pub(crate) struct Case<'s> {
    /// Effect on stations and stores.
    pub(crate) adjust: Box<dyn Fn(&mut System) + 's>,
    /// Effect on the spans of a trace; `None` if it has none.
    pub(crate) edit: Option<Box<Edit<'s>>>,
    /// The requests with this edit; empty without.
    pub(crate) retimed: Vec<RetimedTrace>,
    /// Of the time that refused calls take, the share that is left; `None` if what happens to the spans says it.
    pub(crate) refusals_left: Option<f64>,
    /// Whether it is only an end of the interval: it may turn out that way, but nothing speaks for it.
    pub(crate) is_bound: bool,
    /// Whether CPU of a request is known under the load that it leads to.
    pub(crate) is_cpu_given: bool,
}

impl<'s> Effect<'s> {
    /// Both changes made at once. Of the cases of each only those count that say what happens to the spans.
    pub(crate) fn and(self, other: Self, sample: &Sample<'_>) -> Self {
        let certain = |cases: Vec<Case<'s>>| -> Vec<Rc<Case<'s>>> {
            cases.into_iter().filter(|case| case.is_certain()).map(Rc::new).collect()
        };
        let (ours, theirs) = (certain(self.cases), certain(other.cases));
        let pairs = ours.iter().flat_map(|one| theirs.iter().map(move |other| (one, other)));
        let mut assumptions = self.assumptions;
        assumptions.extend(other.assumptions);
        let mut doubts = self.doubts;
        doubts.extend(other.doubts);
        Self {
            cases: pairs.map(|(one, other)| Case::of_both(one, other, sample)).collect(),
            loads: other.loads.or(self.loads),
            assumptions,
            doubts,
        }
    }
}

impl fmt::Debug for Case<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Case").field("retimed", &self.retimed.len()).finish_non_exhaustive()
    }
}

impl<'s> Case<'s> {
    /// It changes stations and stores alone.
    pub(crate) fn new(adjust: impl Fn(&mut System) + 's) -> Self {
        Self {
            adjust: Box::new(adjust),
            edit: None,
            retimed: Vec::new(),
            refusals_left: None,
            is_bound: false,
            is_cpu_given: false,
        }
    }

    /// It changes single requests too.
    pub(crate) fn with_edit(
        adjust: impl Fn(&mut System) + 's,
        edit: impl Fn(&SampledTrace<'_>, &[f64]) -> Vec<Treatment> + 's,
        sample: &Sample<'_>,
    ) -> Self {
        let retimed = sample.retimed(&edit);
        Self { edit: Some(Box::new(edit)), retimed, ..Self::new(adjust) }
    }

    /// Whether what it does to requests is what it does to their spans, and not a guess at what they wait for.
    fn is_certain(&self) -> bool {
        self.edit.is_some() || self.retimed.is_empty() || self.refusals_left.is_some()
    }

    fn of_both(one: &Rc<Self>, other: &Rc<Self>, sample: &Sample<'_>) -> Self {
        let refusals_left = [one, other].into_iter().filter_map(|case| case.refusals_left).reduce(f64::min);
        let is_bound = one.is_bound || other.is_bound;
        let is_cpu_given = one.is_cpu_given || other.is_cpu_given;
        let both = (one.clone(), other.clone());
        let adjust = move |system: &mut System| {
            (both.0.adjust)(system);
            (both.1.adjust)(system);
        };
        if one.edit.is_none() && other.edit.is_none() {
            let changed = [one, other].into_iter().find(|case| !case.retimed.is_empty());
            let retimed = changed.map_or_else(Vec::new, |case| case.retimed.clone());
            return Self { refusals_left, is_bound, is_cpu_given, retimed, ..Self::new(adjust) };
        }
        let both = (one.clone(), other.clone());
        let edit = move |traced: &SampledTrace<'_>, lengths: &[f64]| {
            let of = |case: &Self| case.edit.as_ref().map(|edit| edit(traced, lengths));
            match (of(&both.0), of(&both.1)) {
                (Some(one), Some(other)) => one.into_iter().zip(other).map(|(one, other)| one.and(other)).collect(),
                (Some(edited), None) | (None, Some(edited)) => edited,
                (None, None) => traced.untreated(),
            }
        };
        Self { refusals_left, is_bound, is_cpu_given, ..Self::with_edit(adjust, edit, sample) }
    }
}

/// Share that is left at least of a limit that nothing explains.
const UNEXPLAINED_LEFT_MIN: f64 = 0.01;

/// Multiplies all CPU of a service: that of requests under every load and under single ones, and that which it uses without
/// them. A limit that nothing explains holds the CPU of requests, as far as it is long enough.
fn scale_all_cpu(system: &mut System, service: &str, factor: f64) {
    let demand_s: f64 = system.programs.iter().map(|program| program.demand_s).sum();
    let own_s = system.program(service).map_or(0.0, |program| program.demand_s);
    if demand_s > 0.0 {
        let left = 1.0 - (1.0 - factor) * own_s / demand_s;
        system.warming_s.iter_mut().for_each(|warming_s| *warming_s *= left);
    }
    for section in system.sections.iter_mut().filter(|section| section.kind == ResourceKind::Unexplained) {
        section.held_s = (section.held_s - (1.0 - factor) * own_s).max(UNEXPLAINED_LEFT_MIN * section.held_s);
    }
    system.scale_cpu(service, factor);
    for program in system.programs.iter_mut().filter(|program| program.service == service) {
        system.fixed_cores -= program.fixed_cores * (1.0 - factor);
        program.fixed_cores *= factor;
    }
}

impl Scene<'_> {
    /// Without traces there is nothing to edit.
    fn require_traces(&self, kind: ChangeKind) -> Result<(), Cannot> {
        if self.sample.traces.is_empty() { Err(Cannot::NoTraces { change: kind }) } else { Ok(()) }
    }

    /// All calls of a trace that server spans made.
    fn calls<'a>(&'a self, traced: &'a SampledTrace<'a>) -> Vec<Group<'a>> {
        let entries = traced.tree.entries();
        entries.into_iter().flat_map(|entry| groups(&traced.tree, entry, &self.sample.names)).collect()
    }

    /// Attempts to call something over all traces, weighted, as far as `counts` says how much each counts.
    pub(crate) fn attempts(
        &self,
        is_meant: impl Fn(&Group<'_>) -> bool,
        counts: impl Fn(&SampledTrace<'_>, usize) -> f64,
    ) -> f64 {
        let of = |traced: &SampledTrace<'_>| {
            let groups = self.calls(traced);
            let attempts = groups.iter().filter(|group| is_meant(group)).flat_map(|group| group.attempts());
            traced.weight * attempts.map(|at| counts(traced, at)).sum::<f64>()
        };
        self.sample.traces.iter().map(of).sum()
    }

    /// Targets that a user may have meant: services and callees.
    fn places(&self) -> Vec<String> {
        let mut known: Vec<String> = self.system.programs.iter().map(|program| program.service.clone()).collect();
        for traced in self.sample.traces.iter().take(NAMED_TRACES_MAX) {
            for group in self.calls(traced) {
                if !known.iter().any(|name| name == group.callee) {
                    known.push(group.callee.to_owned());
                }
            }
        }
        known
    }

    /// A target that the run does not have.
    fn unknown(&self, change: &Change, known: Vec<String>) -> Cannot {
        Cannot::Unknown { change: change.kind, target: change.target.clone(), known }
    }
}

/// Traces that are read to name what there is.
const NAMED_TRACES_MAX: usize = 50;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_change_has_its_method() {
        assert!(ALL.iter().map(|method| method.kind()).eq(ChangeKind::ALL.iter().copied()));
        for kind in ChangeKind::ALL {
            assert_eq!(method(*kind).kind(), *kind);
        }
    }
}
