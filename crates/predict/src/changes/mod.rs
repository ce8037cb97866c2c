//! What each change does to a system and to its requests: one file each, listed in [`ALL`].

pub(crate) mod add_cpu;
mod add_replicas;
mod drop_call;
mod fan_out;
mod join_queries;
pub(crate) mod more_load;
mod parallelize;
pub(crate) mod raise_rate;
mod remove_sidecar;
mod resize_pool;
mod route_query;
mod sharing;
mod speed_up;

use std::fmt;

use narrows_model::finding::evidence::load::LoadLevel;
use narrows_model::prediction::{Assumption, Change, ChangeKind, Doubt};

use crate::Cannot;
use crate::retime::{Edit, Group, Retimed, Sample, Traced, groups};
use crate::system::System;

/// Every change that can be predicted, in the order of their names.
pub(crate) const ALL: [&dyn Method; 11] = [
    &add_cpu::AddCpu,
    &add_replicas::AddReplicas,
    &drop_call::DropCall,
    &join_queries::JoinQueries,
    &more_load::MoreLoad,
    &parallelize::Parallelize,
    &raise_rate::RaiseRate,
    &remove_sidecar::RemoveSidecar,
    &resize_pool::ResizePool,
    &route_query::RouteQuery,
    &speed_up::SpeedUp,
];

/// How a change is predicted.
///
/// An implementation MUST be a pure function of its arguments and MUST NOT use anything that the run did not record.
pub(crate) trait Method: Sync {
    /// The change.
    fn kind(&self) -> ChangeKind;
    /// How it is written after its name, such as `SERVICE[,FACTOR]`.
    fn usage(&self) -> &'static str;
    /// What it does to this system.
    fn effect<'s>(&self, change: &Change, scene: &'s Scene<'s>) -> Result<Effect<'s>, Cannot>;
}

/// The method of a kind of change.
pub(crate) fn method(kind: ChangeKind) -> &'static dyn Method {
    let found = ALL.iter().find(|method| method.kind() == kind);
    *found.expect("every kind of change has its method, which a test checks")
}

/// A system as a change finds it.
#[derive(Debug)]
pub(crate) struct Scene<'s> {
    pub(crate) system: &'s System,
    /// Traces without the waits that depend on the load.
    pub(crate) sample: &'s Sample<'s>,
}

/// What a change does.
#[derive(Debug, Default)]
pub(crate) struct Effect<'s> {
    /// One case; two where it is only known that the truth lies between them.
    pub(crate) cases: Vec<Case<'s>>,
    /// The load under which it is predicted; none for that of the trial.
    pub(crate) loads: Option<Vec<LoadLevel>>,
    pub(crate) assumptions: Vec<Assumption>,
    pub(crate) doubts: Vec<Doubt>,
}

/// One way a change may turn out.
pub(crate) struct Case<'s> {
    /// What it does to stations and stores.
    pub(crate) adjust: Box<dyn Fn(&mut System) + 's>,
    /// What it does to single requests; empty when nothing.
    pub(crate) retimed: Vec<Retimed>,
    /// Whether calls are no longer refused.
    pub(crate) ends_refusals: bool,
}

impl fmt::Debug for Case<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Case").field("retimed", &self.retimed.len()).finish_non_exhaustive()
    }
}

impl<'s> Case<'s> {
    pub(crate) fn new(adjust: impl Fn(&mut System) + 's, retimed: Vec<Retimed>) -> Self {
        Self { adjust: Box::new(adjust), retimed, ends_refusals: false }
    }
}

impl Scene<'_> {
    /// The requests with this edit; without traces there is nothing to edit.
    fn retimed(&self, kind: ChangeKind, edit: &Edit<'_>) -> Result<Vec<Retimed>, Cannot> {
        if self.sample.traces.is_empty() {
            Err(Cannot::NoTraces { change: kind })
        } else {
            Ok(self.sample.retimed(edit))
        }
    }

    /// All calls of a trace that server spans made.
    fn calls<'a>(&'a self, traced: &'a Traced<'a>) -> Vec<Group<'a>> {
        let entries = traced.tree.entries();
        entries.into_iter().flat_map(|entry| groups(&traced.tree, entry, &self.sample.names)).collect()
    }

    /// Attempts to call something over all traces, weighted, as far as `counts` says how much each counts.
    fn attempts(&self, is_meant: impl Fn(&Group<'_>) -> bool, counts: impl Fn(&Traced<'_>, usize) -> f64) -> f64 {
        let of = |traced: &Traced<'_>| {
            let groups = self.calls(traced);
            let attempts = groups.iter().filter(|group| is_meant(group)).flat_map(|group| group.attempts());
            traced.weight * attempts.map(|at| counts(traced, at)).sum::<f64>()
        };
        self.sample.traces.iter().map(of).sum()
    }

    /// What a user may have meant: services and callees.
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
