//! The calls of one kind that cost the requests of an operation most while they are made one after another.

use std::collections::BTreeMap;

use narrows_model::prediction::Change;

use super::Scene;
use crate::Cannot;
use crate::retime::{Group, SampledTrace, Treatment, groups, is_entry_of};
use crate::rules::{Part, share_of};

/// Share of the calls of a request that is left at most when many were made one.
pub(super) const CALLS_LEFT_MAX: f64 = 0.5;
/// Requests that have to show the calls.
const TRACES_MIN: usize = 3;

/// One kind of call of one operation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FanOut {
    /// As the change names it.
    pub(super) operation: String,
    /// Callee.
    pub(super) callee: String,
    kind: String,
    /// Calls in a request that makes several, mean.
    pub(crate) calls: f64,
    /// Traces that show it.
    pub(super) traces: usize,
}

impl FanOut {
    /// The call kind of an operation with the most time beyond its slowest call.
    pub(crate) fn of(change: &Change, scene: &Scene<'_>) -> Result<Self, Cannot> {
        if scene.sample.traces.is_empty() {
            return Err(Cannot::NoTraces { change: change.kind });
        }
        if !scene.sample.traces.iter().any(|traced| !entries(traced, &change.target).is_empty()) {
            return Err(scene.unknown(change, operations(scene)));
        }
        let mut found: BTreeMap<(String, String), (f64, f64, usize)> = BTreeMap::new();
        for traced in &scene.sample.traces {
            for group in of_operation(traced, scene, &change.target) {
                let sum = found.entry((group.callee.to_owned(), group.kind.clone())).or_default();
                *sum = (sum.0 + traced.weight * saving_ns(traced, &group), sum.1 + group.calls.len() as f64, sum.2 + 1);
            }
        }
        let enough = found.into_iter().filter(|(_, (saving, _, traces))| *traces >= TRACES_MIN && *saving > 0.0);
        let best = enough.max_by(|a, b| a.1.0.total_cmp(&b.1.0));
        let ((callee, kind), (_, calls, traces)) =
            best.ok_or(Cannot::NotSeveralCalls { change: change.kind, operation: change.target.clone() })?;
        Ok(Self { operation: change.target.clone(), callee, kind, calls: calls / traces as f64, traces })
    }

    /// Its calls in one trace, two or more together.
    pub(crate) fn groups<'a>(&self, traced: &'a SampledTrace<'a>, scene: &'a Scene<'a>) -> Vec<Group<'a>> {
        let all = of_operation(traced, scene, &self.operation);
        all.into_iter().filter(|group| group.callee == self.callee && group.kind == self.kind).collect()
    }

    /// Its calls at a time at most, if more are made in a request; `None` if all are made at once.
    pub(super) fn bound(&self, scene: &Scene<'_>) -> Option<usize> {
        let (mut at_once, mut calls) = (0, 0);
        for traced in &scene.sample.traces {
            for group in self.groups(traced, scene) {
                at_once = at_once.max(group.at_once(&traced.tree));
                calls = calls.max(group.calls.len());
            }
        }
        (at_once > 0 && at_once < calls).then_some(at_once)
    }

    /// Of all calls to the callee, the share that is left when each group of calls becomes one.
    pub(super) fn calls_left(&self, scene: &Scene<'_>) -> f64 {
        let all = scene.attempts(|group| group.callee == self.callee, |_, _| 1.0);
        let gone = |traced: &SampledTrace<'_>| {
            let groups = self.groups(traced, scene);
            traced.weight * groups.iter().map(|group| group.attempts().count() as f64 - 1.0).sum::<f64>()
        };
        let gone: f64 = scene.sample.traces.iter().map(gone).sum();
        if all > 0.0 { (1.0 - gone / all).clamp(0.0, 1.0) } else { 1.0 }
    }

    /// Its calls to the same callee in a trial, perhaps another one; `None` if no trace shows the operation.
    pub(crate) fn per_request(&self, scene: &Scene<'_>) -> Option<PerRequest> {
        let (mut requests, mut calls, mut serial_ns) = (0.0, 0.0, 0.0);
        for traced in &scene.sample.traces {
            for entry in entries(traced, &self.operation) {
                requests += traced.weight;
                let all = groups(&traced.tree, entry, &scene.sample.names);
                for group in all.iter().filter(|group| group.callee == self.callee) {
                    calls += traced.weight * group.attempts().count() as f64;
                    serial_ns += traced.weight * saving_ns(traced, group);
                }
            }
        }
        (requests > 0.0).then(|| PerRequest { calls: calls / requests, serial_ns: serial_ns / requests })
    }

    /// Share of the latency that the calls take.
    pub(super) fn part(&self, scene: &Scene<'_>) -> Option<Part> {
        let without = |traced: &SampledTrace<'_>| {
            let mut treatments = traced.untreated();
            for at in self.groups(traced, scene).iter().flat_map(|group| group.attempts().collect::<Vec<_>>()) {
                treatments[at] = Treatment::gone();
            }
            treatments
        };
        Some(Part { share: share_of(scene, &without)?, factor: self.calls })
    }

    /// The service that makes the calls; empty if no trace shows them.
    pub(super) fn caller(&self, scene: &Scene<'_>) -> String {
        let of_trace = |traced: &SampledTrace<'_>| {
            let groups = self.groups(traced, scene);
            groups.first().map(|group| traced.tree.span(group.calls[0][0]).service.clone())
        };
        scene.sample.traces.iter().find_map(of_trace).unwrap_or_default()
    }

    /// For each service that makes the calls, the share of its CPU that is left when each group becomes one call: its CPU
    /// follows its own time, of which the gaps between the calls of a group are gone.
    pub(super) fn callers_cpu_left(&self, scene: &Scene<'_>) -> Vec<(String, f64)> {
        let mut own: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
        for traced in &scene.sample.traces {
            for at in &traced.tree.order {
                let place = scene.sample.names.place(&traced.tree, *at);
                own.entry(place).or_default().1 += traced.weight * traced.tree.own_ns(*at);
            }
            for group in self.groups(traced, scene) {
                let caller = traced.tree.span(group.calls[0][0]).service.as_str();
                own.entry(caller).or_default().0 += traced.weight * group.gaps_ns(&traced.tree);
            }
        }
        let left = |(service, (gone, all)): (&str, (f64, f64))| {
            (gone > 0.0 && all > 0.0).then(|| (service.to_owned(), (1.0 - gone / all).clamp(0.0, 1.0)))
        };
        own.into_iter().filter_map(left).collect()
    }
}

/// The calls of a request, mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PerRequest {
    /// Attempts.
    pub(crate) calls: f64,
    /// Time of calls of one kind that is not the longest one's.
    pub(crate) serial_ns: f64,
}

/// The requests of an operation in a trace.
fn entries(traced: &SampledTrace<'_>, operation: &str) -> Vec<usize> {
    let tree = &traced.tree;
    tree.entries().into_iter().filter(|at| is_entry_of(tree.span(*at), operation)).collect()
}

/// Their calls of which there are several of one kind.
fn of_operation<'a>(traced: &'a SampledTrace<'a>, scene: &'a Scene<'a>, operation: &str) -> Vec<Group<'a>> {
    let entries = entries(traced, operation).into_iter();
    let all = entries.flat_map(|entry| groups(&traced.tree, entry, &scene.sample.names));
    all.filter(|group| group.calls.len() > 1).collect()
}

/// Time from the first start to the last end that is not the longest call's.
fn saving_ns(traced: &SampledTrace<'_>, group: &Group<'_>) -> f64 {
    group.span_ns(&traced.tree) - group.attempts().map(|at| traced.tree.length_ns(at)).fold(0.0, f64::max)
}

/// The operations that traces show.
fn operations(scene: &Scene<'_>) -> Vec<String> {
    let mut known: Vec<String> = Vec::new();
    for traced in &scene.sample.traces {
        for at in traced.tree.entries() {
            let name = &traced.tree.span(at).name;
            if !known.contains(name) {
                known.push(name.clone());
            }
        }
    }
    known
}
