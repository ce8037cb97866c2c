//! The calls of one kind that cost the requests of an operation most while they are made one after another.

use std::collections::BTreeMap;

use narrows_model::prediction::Change;

use super::Scene;
use crate::Cannot;
use crate::retime::{Group, Traced, groups, is_entry_of};

/// Requests that have to show the calls.
const TRACES_MIN: usize = 3;

/// One kind of call of one operation.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FanOut {
    /// As the change names it.
    pub(super) operation: String,
    /// What is called.
    pub(super) callee: String,
    kind: String,
    /// Calls in a request that makes several, mean.
    pub(super) calls: f64,
    /// Traces that show it.
    pub(super) traces: usize,
}

impl FanOut {
    /// Of the operation that a change names, the kind whose calls take longest beyond their longest.
    pub(super) fn of(change: &Change, scene: &Scene<'_>) -> Result<Self, Cannot> {
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
    pub(super) fn groups<'a>(&self, traced: &'a Traced<'a>, scene: &'a Scene<'a>) -> Vec<Group<'a>> {
        let all = of_operation(traced, scene, &self.operation);
        all.into_iter().filter(|group| group.callee == self.callee && group.kind == self.kind).collect()
    }

    /// Of all calls to the callee, the share that is left when each group of calls becomes one.
    pub(super) fn calls_left(&self, scene: &Scene<'_>) -> f64 {
        let all = scene.attempts(|group| group.callee == self.callee, |_, _| 1.0);
        let gone = |traced: &Traced<'_>| {
            let groups = self.groups(traced, scene);
            traced.weight * groups.iter().map(|group| group.attempts().count() as f64 - 1.0).sum::<f64>()
        };
        let gone: f64 = scene.sample.traces.iter().map(gone).sum();
        if all > 0.0 { (1.0 - gone / all).clamp(0.0, 1.0) } else { 1.0 }
    }
}

/// The requests of an operation in a trace.
fn entries(traced: &Traced<'_>, operation: &str) -> Vec<usize> {
    let tree = &traced.tree;
    tree.entries().into_iter().filter(|at| is_entry_of(tree.span(*at), operation)).collect()
}

/// Their calls of which there are several of one kind.
fn of_operation<'a>(traced: &'a Traced<'a>, scene: &'a Scene<'a>, operation: &str) -> Vec<Group<'a>> {
    let entries = entries(traced, operation).into_iter();
    let all = entries.flat_map(|entry| groups(&traced.tree, entry, &scene.sample.names));
    all.filter(|group| group.calls.len() > 1).collect()
}

/// Time from the first start to the last end that is not the longest call's.
fn saving_ns(traced: &Traced<'_>, group: &Group<'_>) -> f64 {
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
