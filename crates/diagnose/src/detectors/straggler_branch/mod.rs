//! `straggler-branch`: one of a request's parallel branches nearly always ends last, and by far.
//!
//! The branch that ended last is on the critical path. The time that the request would gain without it is its drag: its
//! lead over the branch that ended next, as far as the request waits for either. So a child that outlives its parent,
//! for which the request does not wait, is not a branch. Nor are sequential calls, whatever the clocks say of their
//! ends.
//!
//! A branch is identified by its call: the call's kind and partition, or the name of a span of the program's own work.
//! If all concurrent calls send the same to the same callee, branches cannot be distinguished.
//!
//! Without spans, sockets show that one of several parallel calls is alone for long (`by_sockets.rs`).

use std::collections::{BTreeMap, HashMap, HashSet};

use narrows_model::finding::evidence::straggler_branch as evidence;
use narrows_model::finding::{Caveat, Confidence, Exemplar, Finding, FindingKind};
use narrows_model::trace::{Span, Trace};

use crate::Detector;
use crate::critical_path::category::{Names, is_work};
use crate::critical_path::{CriticalPath, PathPosition, TimedForest, by_trace};
use crate::exemplars::{EXEMPLARS_MAX, TEXT_CHARS_MAX, clipped, exemplar};
use crate::read::Reading;
use crate::read::calls::{Handled, median_of};
use crate::thresholds::{Thresholds, rule_thresholds};
use branch::{Branch, key, kinds};

mod branch;
mod by_sockets;
mod words;

rule_thresholds! {
    /// Share of the operation's requests in which the same branch must be the last to end.
    straggler_last_share: f64 = 0.60;
    /// How much later than the next branch it must end, as a share of the operation's median latency.
    straggler_drag_share: f64 = 0.20;
    /// The same, nanoseconds.
    straggler_drag_ns: f64 = 5e6;
    /// How long two branches must be in progress together, nanoseconds; shorter overlaps come from clocks that
    /// disagree.
    straggler_overlap_ns: f64 = 1e6;
    /// The same as a share of the branch that ends first.
    straggler_overlap_share: f64 = 0.5;
    /// Requests that must show it.
    straggler_requests: usize = 5;
    /// Without spans: how long one call must be alone, nanoseconds. Kernels count the times of sockets in steps of up to 10 ms.
    straggler_socket_drag_ns: f64 = 20e6;
}

/// See the module.
#[derive(Debug)]
pub struct StragglerBranch;

impl Detector for StragglerBranch {
    fn kind(&self) -> FindingKind {
        FindingKind::StragglerBranch
    }

    fn version(&self) -> u32 {
        2
    }

    fn explains_gaps(&self) -> bool {
        false
    }

    fn detect(&self, reading: &Reading<'_>) -> Vec<Finding> {
        let names = Names::new(reading.trial);
        let mut operations: BTreeMap<(&str, &str), Operation<'_>> = BTreeMap::new();
        for (forest, requests) in by_trace(reading) {
            let tree = TimedForest::new(forest);
            for (service, operation, handled) in requests {
                let known = operations.entry((service, operation)).or_default();
                known.requests.push(handled);
                for sighting in sightings(&tree, handled, &names, reading.thresholds) {
                    known.branches.entry(sighting.branch.key.clone()).or_default().push(sighting);
                }
            }
        }
        let candidates = operations.into_iter().flat_map(|((service, name), operation)| {
            let Operation { requests, branches } = operation;
            let candidate = move |seen| Candidate::new(service, name, seen, &requests);
            branches.into_values().map(candidate).collect::<Vec<_>>()
        });
        let by_spans = candidates
            .filter(|candidate| candidate.is_worth_saying(reading.thresholds))
            .map(|candidate| candidate.finding(self));
        by_spans.chain(by_sockets::findings(reading)).collect()
    }
}

/// Requests and branches of one operation.
#[derive(Default)]
struct Operation<'r> {
    requests: Vec<&'r Handled<'r>>,
    /// Requests where each branch was the last, by the branch's key.
    branches: BTreeMap<String, Vec<Sighting<'r>>>,
}

/// A request with several branches, where this one was the last.
struct Sighting<'r> {
    handled: &'r Handled<'r>,
    trace: &'r Trace,
    branch: Branch,
    /// Spans of the branch and of those that ended before it.
    spans: Vec<&'r Span>,
    drag_ns: f64,
    length_ns: f64,
}

/// The branches that ended last in this request, each once.
fn sightings<'r>(
    tree: &TimedForest<'r>,
    handled: &'r Handled<'r>,
    names: &Names,
    thresholds: &Thresholds,
) -> Vec<Sighting<'r>> {
    let Some(entry) = tree.find(handled.request.entry.span_id) else { return Vec::new() };
    let path = tree.path(entry);
    let beside = beside(tree, &path, entry, thresholds);
    let kinds = kinds(handled);
    let mut found: BTreeMap<String, Sighting<'_>> = BTreeMap::new();
    for (last, drag_ns) in on_path(&path) {
        let Some(others) = beside.get(&last) else { continue };
        let mut branch = Branch::new(tree, last, &kinds, names);
        let is_other = |other: &&usize| key(tree, **other, &kinds, names) != branch.key;
        let others: Vec<usize> = others.iter().filter(is_other).copied().collect();
        let is_longer = found.get(&branch.key).is_none_or(|known| known.drag_ns < drag_ns as f64);
        if others.is_empty() || !is_longer {
            continue;
        }
        if others.iter().any(|other| names.callee(tree, *other) == names.callee(tree, last)) {
            branch.add_request(tree.span(last));
        }
        let spans = std::iter::once(last).chain(others).map(|at| tree.span(at)).collect();
        let length_ns = tree.placed(last).length_ns() as f64;
        let sighting =
            Sighting { handled, trace: handled.request.trace, branch, spans, drag_ns: drag_ns as f64, length_ns };
        found.insert(sighting.branch.key.clone(), sighting);
    }
    found.into_values().collect()
}

fn on_path(path: &CriticalPath) -> impl Iterator<Item = (usize, i64)> {
    path.standings.iter().filter_map(|standing| match standing.place {
        PathPosition::OnPath { drag_ns } => Some((standing.span, drag_ns)),
        PathPosition::Beside { .. } => None,
    })
}

/// Spans concurrent with each span on the path, among those that the request's own service began.
fn beside(
    tree: &TimedForest<'_>,
    path: &CriticalPath,
    entry: usize,
    thresholds: &Thresholds,
) -> HashMap<usize, Vec<usize>> {
    let service = &tree.span(entry).service;
    let is_own = |at: usize| tree.span(at).service == *service && is_work(tree.span(at));
    let mut own: HashSet<usize> = HashSet::from([entry]);
    for (at, _) in on_path(path) {
        if is_own(at) && tree.parent(at).is_some_and(|parent| own.contains(&parent)) {
            own.insert(at);
        }
    }
    let mut beside: HashMap<usize, Vec<usize>> = HashMap::new();
    for standing in &path.standings {
        let PathPosition::Beside { waited_for, .. } = standing.place else { continue };
        let parent = tree.parent(standing.span);
        let are_siblings = parent == tree.parent(waited_for) && parent.is_some_and(|parent| own.contains(&parent));
        if are_siblings && is_together(tree, standing.span, waited_for, thresholds) {
            beside.entry(waited_for).or_default().push(standing.span);
        }
    }
    beside
}

fn is_together(tree: &TimedForest<'_>, first: usize, last: usize, thresholds: &Thresholds) -> bool {
    let (first, last) = (tree.placed(first), tree.placed(last));
    let together_ns = (first.end_ns.min(last.end_ns) - first.start_ns.max(last.start_ns)) as f64;
    let share_ns = thresholds.straggler_branch.straggler_overlap_share * first.length_ns() as f64;
    together_ns >= thresholds.straggler_branch.straggler_overlap_ns && together_ns >= share_ns
}

/// One branch of one operation, over all requests.
struct Candidate<'r> {
    service: &'r str,
    operation: &'r str,
    /// Sightings, the longest drag first; at least one.
    seen: Vec<Sighting<'r>>,
    last_share: f64,
    cost_share: f64,
    latency_ns: f64,
}

impl<'r> Candidate<'r> {
    fn new(service: &'r str, operation: &'r str, mut seen: Vec<Sighting<'r>>, all: &[&Handled<'_>]) -> Self {
        seen.sort_by(|a, b| b.drag_ns.total_cmp(&a.drag_ns));
        let whole: f64 = all.iter().map(|handled| handled.weight()).sum();
        let time: f64 = all.iter().map(|handled| handled.weight() * handled.latency_ns()).sum();
        let last_share = seen.iter().map(|sighting| sighting.handled.weight()).sum::<f64>() / whole;
        let cost_share = seen.iter().map(|s| s.handled.weight() * s.drag_ns).sum::<f64>() / time;
        let latency_ns = median_of(all, |handled| (handled.latency_ns(), handled.weight()));
        Self { service, operation, seen, last_share, cost_share: cost_share.min(1.0), latency_ns }
    }

    fn median(&self, value: impl Fn(&Sighting<'r>) -> f64) -> f64 {
        median_of(&self.seen, |sighting| (value(sighting), sighting.handled.weight()))
    }

    fn drag_ns(&self) -> f64 {
        self.median(|sighting| sighting.drag_ns)
    }

    fn is_worth_saying(&self, thresholds: &Thresholds) -> bool {
        self.seen.len() >= thresholds.straggler_branch.straggler_requests
            && self.last_share >= thresholds.straggler_branch.straggler_last_share
            && self.drag_ns() >= thresholds.straggler_branch.straggler_drag_ns
            && self.drag_ns() >= thresholds.straggler_branch.straggler_drag_share * self.latency_ns
    }

    fn finding(&self, detector: &StragglerBranch) -> Finding {
        Finding {
            resource: self.service.into(),
            operation: Some(self.operation.into()),
            cost_share: self.cost_share,
            confidence: Confidence::Medium,
            exemplars: self.seen.iter().take(EXEMPLARS_MAX).map(shown).collect(),
            caveats: vec![Caveat::NextBranchRemains],
            ..Finding::new(self.evidence(), detector.version())
        }
    }

    fn evidence(&self) -> evidence::StragglerBranch {
        let branch = &self.seen[0].branch;
        evidence::StragglerBranch {
            branch: branch.does.clone(),
            requests: self.seen.len(),
            last_share: self.last_share,
            branches: self.median(|sighting| sighting.spans.len() as f64) as usize,
            latency_ns: self.latency_ns,
            length_ns: self.median(|sighting| sighting.length_ns),
            drag_ns: self.drag_ns(),
            text: clipped(&branch.text, TEXT_CHARS_MAX),
            sockets: None,
        }
    }
}

fn shown(sighting: &Sighting<'_>) -> Exemplar {
    exemplar(sighting.trace, sighting.spans.iter().copied())
}

#[cfg(test)]
mod tests;
