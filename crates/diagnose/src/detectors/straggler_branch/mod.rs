//! `straggler-branch`: of what a request does at the same time, one branch is nearly always the last, and by far.
//!
//! The branch that ended last is the one on the critical path, and what the request would gain without it is its drag:
//! its lead over the branch that ended next, as far as the request waits for either. So a child that goes on after its
//! parent, which nobody waits for, is no branch; nor are calls in turn, whatever clocks say of their ends.
//!
//! A branch is known by what it asks: the kind of its call and the partition, or the name of a span of the program's
//! own. Where all that is under way together asks the same of the same, no branch can be told from another.

use std::collections::{BTreeMap, HashMap, HashSet};

use narrows_model::finding::{Confidence, Exemplar, Figure, Finding, FindingKind};
use narrows_model::trace::{Span, SpanId, Trace};
use narrows_model::units;

use crate::Detector;
use crate::calls::{Handled, endpoint, median_of};
use crate::critical_path::category::{Names, is_work};
use crate::critical_path::{CriticalPath, Place, Tree, by_trace};
use crate::reading::Reading;
use crate::thresholds::Thresholds;
use crate::words::{EXEMPLARS_MAX, TEXT_CHARS_MAX, clipped, exemplar};

/// Characters of a branch's name in a title.
const NAME_CHARS_MAX: usize = 80;

/// See the module.
#[derive(Debug)]
pub struct StragglerBranch;

impl Detector for StragglerBranch {
    fn kind(&self) -> FindingKind {
        FindingKind::StragglerBranch
    }

    fn version(&self) -> u32 {
        1
    }

    fn detect(&self, reading: &Reading<'_>) -> Vec<Finding> {
        let names = Names::of(reading.trial);
        let mut operations: BTreeMap<(&str, &str), Operation<'_>> = BTreeMap::new();
        for (trace, requests) in by_trace(reading) {
            let tree = Tree::of(trace);
            for (service, operation, handled) in requests {
                let known = operations.entry((service, operation)).or_default();
                known.requests.push(handled);
                for sighting in sightings(&tree, handled, &names, reading.thresholds) {
                    known.branches.entry(sighting.branch.key.clone()).or_default().push(sighting);
                }
            }
        }
        let cases = operations.into_iter().flat_map(|((service, name), operation)| {
            let Operation { requests, branches } = operation;
            let case = move |seen| Case::new((service, name), seen, &requests);
            branches.into_values().map(case).collect::<Vec<_>>()
        });
        cases.filter(|case| case.is_worth_saying(reading.thresholds)).map(|case| case.finding(self)).collect()
    }
}

/// What is known of one operation.
#[derive(Default)]
struct Operation<'r> {
    requests: Vec<&'r Handled<'r>>,
    /// Where each branch was the last.
    branches: BTreeMap<String, Vec<Sighting<'r>>>,
}

/// A branch: what tells it from others, and how people call it.
struct Branch {
    key: String,
    name: String,
    text: String,
}

/// A request in which a branch was the last of several.
struct Sighting<'r> {
    handled: &'r Handled<'r>,
    trace: &'r Trace,
    branch: Branch,
    /// The branch and those that ended before it.
    spans: Vec<&'r Span>,
    drag_ns: f64,
    length_ns: f64,
}

/// The branches that were the last in this request, each once.
fn sightings<'r>(
    tree: &Tree<'r>,
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
        let mut branch = branch(tree, last, &kinds, names);
        let is_other = |other: &&usize| key(tree, **other, &kinds, names) != branch.key;
        let others: Vec<usize> = others.iter().filter(is_other).copied().collect();
        let is_longer = found.get(&branch.key).is_none_or(|known| known.drag_ns < drag_ns as f64);
        if others.is_empty() || !is_longer {
            continue;
        }
        if others.iter().any(|other| names.callee(tree, *other) == names.callee(tree, last)) {
            branch.name += &address(tree.span(last));
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
        Place::OnPath { drag_ns } => Some((standing.span, drag_ns)),
        Place::Beside { .. } => None,
    })
}

/// What was under way together with each span on the path that the request's own service began.
fn beside(tree: &Tree<'_>, path: &CriticalPath, entry: usize, thresholds: &Thresholds) -> HashMap<usize, Vec<usize>> {
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
        let Place::Beside { waited_for, .. } = standing.place else { continue };
        let parent = tree.parent(standing.span);
        let are_siblings = parent == tree.parent(waited_for) && parent.is_some_and(|parent| own.contains(&parent));
        if are_siblings && is_together(tree, standing.span, waited_for, thresholds) {
            beside.entry(waited_for).or_default().push(standing.span);
        }
    }
    beside
}

fn is_together(tree: &Tree<'_>, first: usize, last: usize, thresholds: &Thresholds) -> bool {
    let (first, last) = (tree.placed(first), tree.placed(last));
    let together_ns = (first.end_ns.min(last.end_ns) - first.start_ns.max(last.start_ns)) as f64;
    let share_ns = thresholds.straggler_overlap_share * first.length_ns() as f64;
    together_ns >= thresholds.straggler_overlap_ns && together_ns >= share_ns
}

/// What the calls of a request ask, by their spans.
fn kinds<'r>(handled: &'r Handled<'r>) -> HashMap<SpanId, String> {
    let calls = handled.calls.iter();
    let of_call = |call: &'r crate::calls::Call<'r>| {
        let partition = call.partition().map(|partition| format!(" partition {partition}"));
        let kind = format!("{}{}", call.kind.trim(), partition.unwrap_or_default());
        call.attempts.iter().map(move |span| (span.span_id, kind.clone()))
    };
    calls.flat_map(of_call).collect()
}

fn key(tree: &Tree<'_>, at: usize, kinds: &HashMap<SpanId, String>, names: &Names) -> String {
    let span = tree.span(at);
    match kinds.get(&span.span_id) {
        Some(kind) => format!("{} {kind}", names.callee(tree, at)),
        None => span.name.clone(),
    }
}

fn branch(tree: &Tree<'_>, at: usize, kinds: &HashMap<SpanId, String>, names: &Names) -> Branch {
    let span = tree.span(at);
    let partition = span.facts.db_partition.as_ref().map(|partition| format!(", partition {partition}"));
    let name = if is_work(span) {
        format!("“{}”", clipped(&span.name, NAME_CHARS_MAX))
    } else {
        format!("the call to {}{}", names.callee(tree, at), partition.unwrap_or_default())
    };
    let key = key(tree, at, kinds, names);
    let text = span.facts.db_query.as_ref().unwrap_or(&key).clone();
    Branch { name, text, key }
}

/// What a call asks for, in brackets, where its callee alone does not tell it from the others.
fn address(span: &Span) -> String {
    let asked = span.facts.url.as_deref().map(endpoint).filter(|path| !path.is_empty() && !is_work(span));
    let method = span.facts.http_method.as_deref().unwrap_or("");
    asked.map_or_else(String::new, |path| format!(" ({})", clipped(format!("{method} {path}").trim(), NAME_CHARS_MAX)))
}

/// One branch of one operation, over all requests.
struct Case<'r> {
    service: &'r str,
    operation: &'r str,
    /// Longest drag first; at least one.
    seen: Vec<Sighting<'r>>,
    last_share: f64,
    cost_share: f64,
    latency_ns: f64,
}

impl<'r> Case<'r> {
    fn new((service, operation): (&'r str, &'r str), mut seen: Vec<Sighting<'r>>, all: &[&Handled<'_>]) -> Self {
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
        self.seen.len() >= thresholds.straggler_requests
            && self.last_share >= thresholds.straggler_last_share
            && self.drag_ns() >= thresholds.straggler_drag_ns
            && self.drag_ns() >= thresholds.straggler_drag_share * self.latency_ns
    }

    fn finding(&self, detector: &StragglerBranch) -> Finding {
        let branch = &self.seen[0].branch;
        let operation = self.operation;
        Finding {
            title: format!("{operation} waits for {} after its parallel work is done", branch.name),
            resource: self.service.into(),
            operation: Some(operation.into()),
            cost_share: self.cost_share,
            cost_of: format!("of the latency of {operation}"),
            confidence: Confidence::Medium,
            reasons: self.reasons(),
            numbers: self.numbers(),
            evidence_text: Some(clipped(&branch.text, TEXT_CHARS_MAX)),
            exemplars: self.seen.iter().take(EXEMPLARS_MAX).map(shown).collect(),
            ruled_out: vec![
                "Work in the background: each of these branches ended before the span it is below.".into(),
                "Sequential calls and clocks that disagree: the branches overlapped for most of the shorter one."
                    .into(),
                format!("Chance: one branch was the last in {} of the requests.", units::percent(self.last_share)),
            ],
            falsified_by: format!(
                "{} responds as fast as the branch that ends next, and {operation} is as slow as before.",
                capitalised(&branch.name)
            ),
            advice: self.advice(),
            caveats: vec![
                "A fix saves no more than this time: after that, the request waits for the branch that ends next."
                    .into(),
            ],
            ..detector.finding()
        }
    }

    fn reasons(&self) -> Vec<String> {
        let branch = &self.seen[0].branch;
        vec![
            format!(
                "{} is the last of {} parallel branches in {} of the requests of {} ({} requests).",
                capitalised(&branch.name),
                self.branches(),
                units::percent(self.last_share),
                self.operation,
                self.seen.len()
            ),
            format!(
                "It takes {} and ends {} after the branch that ends next, which is the time that the request would \
                 save if it took no time.",
                units::duration(self.median(|sighting| sighting.length_ns)),
                units::duration(self.drag_ns())
            ),
        ]
    }

    fn branches(&self) -> usize {
        self.median(|sighting| sighting.spans.len() as f64) as usize
    }

    fn numbers(&self) -> Vec<Figure> {
        vec![
            Figure::new("requests in which it is the last", self.last_share * 100.0, "%"),
            Figure::new("time after the second-last branch, median", self.drag_ns(), "ns"),
            Figure::new("time of the last branch, median", self.median(|sighting| sighting.length_ns), "ns"),
            Figure::new("parallel branches, median", self.branches() as f64, ""),
            Figure::new("latency of the operation, median", self.latency_ns, "ns"),
        ]
    }

    fn advice(&self) -> String {
        format!(
            "Make {} faster, or wait for it less: start it first, respond without it after a deadline, cache its response, \
             or fetch it once the rest is shown. Making the other branches of {} in {} faster gains nothing.",
            self.seen[0].branch.name, self.operation, self.service
        )
    }
}

fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(|first| first.to_uppercase().collect::<String>()).unwrap_or_default();
    first + characters.as_str()
}

fn shown(sighting: &Sighting<'_>) -> Exemplar {
    exemplar(sighting.trace, sighting.spans.iter().copied())
}

#[cfg(test)]
mod tests;
