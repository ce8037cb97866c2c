//! Part of each service in the requests that begin traces: its time on the critical path, the calls that it makes, and
//! the errors that begin in it.
//!
//! The time of a call before the called service begins and after it ends is the callee's: it queues there, or is on the
//! way. A call that two stacked libraries report counts once. An error counts where it began: at the deepest span that
//! failed. A call that failed although its callee recorded no failure, or recorded nothing at all, counts as the callee's.
//!
//! An error cuts short what callers would have done next, so that calls are also counted over the requests without one.

use std::collections::{BTreeMap, HashMap};

use narrows_model::caveat::Skew;
use narrows_model::evidence::TrialEvidence;
use narrows_model::trace::{Span, SpanId, SpanKind, Trace, TraceId};

use crate::critical_path::category::{Names, is_connecting};
use crate::critical_path::{TimedForest, by_trace};
use crate::instrumentation::skews;
use crate::read::Reading;
use crate::read::calls::Times;
use crate::read::errors::deepest;
use crate::thresholds::Thresholds;

/// Service and name of an operation that begins traces.
pub(super) type Operation = (String, String);

/// The requests of one side by operation.
#[derive(Debug, Default)]
pub(super) struct Parts {
    pub(super) operations: BTreeMap<Operation, OfOperation>,
    /// Number of trials.
    pub(super) trials: usize,
    /// The clocks that differ, those furthest apart first.
    pub(super) skews: Vec<Skew>,
}

/// Parts of the requests of one operation.
#[derive(Debug, Default)]
pub(super) struct OfOperation {
    /// Requests, and their latencies in nanoseconds.
    pub(super) latency: Values,
    /// Nanoseconds on the critical path, by service; requests that do not lead through it are missing.
    pub(super) time: BTreeMap<String, Values>,
    /// Nanoseconds in a service and in none that it calls, whether waited for or not, by service.
    pub(super) own: BTreeMap<String, Values>,
    /// Calls from one service to another.
    pub(super) calls: Calls,
    /// The same for requests where no error began.
    pub(super) calls_without_errors: Calls,
    /// Whether an error began there, 1 each, by service.
    pub(super) errors: BTreeMap<String, Values>,
    /// The trace in which a service took longest itself, and how long.
    pub(super) slowest: BTreeMap<String, (f64, TraceId)>,
    /// The first trace with an error that began there.
    pub(super) failed: BTreeMap<String, TraceId>,
}

/// Calls for each of some requests.
#[derive(Debug, Default, Clone)]
pub(super) struct Calls {
    /// The requests.
    pub(super) requests: Values,
    /// By caller and callee.
    pub(super) by_pair: BTreeMap<(String, String), Values>,
}

impl Calls {
    fn add(&mut self, of_request: &BTreeMap<(String, String), u32>, weight: f64) {
        self.requests.add(1.0, weight);
        for (call, count) in of_request {
            self.by_pair.entry(call.clone()).or_default().add(f64::from(*count), weight);
        }
    }
}

/// Values with weights, added up.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Values {
    pub(super) weight: f64,
    squared_weights: f64,
    sum: f64,
    squares: f64,
}

impl Values {
    fn add(&mut self, value: f64, weight: f64) {
        self.weight += weight;
        self.squared_weights += weight * weight;
        self.sum += weight * value;
        self.squares += weight * value * value;
    }

    /// As many values as would be as certain if all had the same weight.
    pub(super) fn count(&self) -> f64 {
        if self.squared_weights > 0.0 { self.weight * self.weight / self.squared_weights } else { 0.0 }
    }

    /// The mean over these requests, to which requests without a value count 0, and the square of its standard error.
    pub(super) fn mean_over(&self, requests: &Values) -> (f64, f64) {
        let mean = self.sum / requests.weight;
        let variance = (self.squares / requests.weight - mean * mean).max(0.0);
        (mean, variance / (requests.count() - 1.0).max(1.0))
    }
}

impl Parts {
    pub(super) fn of(trials: &[&TrialEvidence], thresholds: &Thresholds) -> Self {
        let mut parts = Self { trials: trials.len(), ..Self::default() };
        for trial in trials {
            Reading::with(trial, thresholds, |reading| parts.add(reading));
        }
        parts
    }

    fn add(&mut self, reading: &Reading<'_>) {
        let names = Names::new(reading.trial);
        self.add_skews(skews(reading));
        for (forest, requests) in by_trace(reading) {
            let tree = TimedForest::new(forest);
            let entries: HashMap<SpanId, (&str, &str)> =
                requests.iter().map(|(service, name, one)| (one.request.entry.span_id, (*service, *name))).collect();
            let first = requests.iter().filter_map(|(.., one)| tree.find(one.request.entry.span_id));
            for at in first.filter(|at| is_first(&tree, *at, &entries)) {
                let (service, name) = entries[&tree.span(at).span_id];
                let of_operation = self.operations.entry((service.to_owned(), name.to_owned())).or_default();
                of_operation.add(&tree, at, &names, forest.trace());
            }
        }
    }
}

impl Parts {
    /// Of several trials, the largest of each pair.
    fn add_skews(&mut self, skews: Vec<Skew>) {
        for skew in skews {
            let is_pair = |known: &&mut Skew| (&known.caller, &known.callee) == (&skew.caller, &skew.callee);
            match self.skews.iter_mut().find(is_pair) {
                Some(known) if known.ahead_ns.abs() < skew.ahead_ns.abs() => *known = skew,
                Some(_) => {}
                None => self.skews.push(skew),
            }
        }
    }
}

/// True if no request of the trace stands above this one.
fn is_first(tree: &TimedForest<'_>, at: usize, entries: &HashMap<SpanId, (&str, &str)>) -> bool {
    let mut above = std::iter::successors(tree.parent(at), |at| tree.parent(*at));
    !above.any(|at| entries.contains_key(&tree.span(at).span_id))
}

impl OfOperation {
    fn add(&mut self, tree: &TimedForest<'_>, entry: usize, names: &Names, trace: &Trace) {
        let mut time: BTreeMap<String, f64> = BTreeMap::new();
        for section in tree.path(entry).sections {
            let ns = (section.end_ns - section.start_ns) as f64;
            *time.entry(place_of(tree, section.span, names)).or_default() += ns;
        }
        self.latency.add(tree.placed(entry).length_ns() as f64, trace.weight);
        for (service, ns) in time {
            self.time.entry(service).or_default().add(ns, trace.weight);
        }
        let below = Below::new(tree, entry, names);
        for (service, ns) in below.own {
            let slowest = self.slowest.entry(service.clone()).or_insert((ns, trace.id));
            if ns > slowest.0 {
                *slowest = (ns, trace.id);
            }
            self.own.entry(service).or_default().add(ns, trace.weight);
        }
        let failed = error_places(tree, entry, names, trace);
        self.calls.add(&below.calls, trace.weight);
        if failed.is_empty() {
            self.calls_without_errors.add(&below.calls, trace.weight);
        }
        for service in failed {
            self.failed.entry(service.clone()).or_insert(trace.id);
            self.errors.entry(service).or_default().add(1.0, trace.weight);
        }
    }
}

/// The service that a span's own time is spent at: of a call, the callee.
fn place_of(tree: &TimedForest<'_>, at: usize, names: &Names) -> String {
    let span = tree.span(at);
    if span.kind == SpanKind::Client { names.callee(tree, at) } else { span.service.clone() }
}

/// All that happens below the first span of a request, whether it is waited for or not.
#[derive(Default)]
struct Below {
    own: BTreeMap<String, f64>,
    calls: BTreeMap<(String, String), u32>,
}

impl Below {
    fn new(tree: &TimedForest<'_>, entry: usize, names: &Names) -> Self {
        let mut below = Self::default();
        let mut spans: Vec<usize> = vec![entry];
        while let Some(at) = spans.pop() {
            *below.own.entry(place_of(tree, at, names)).or_default() += own_ns(tree, at);
            for child in tree.children(at).iter().map(|child| *child as usize) {
                if is_call_of(tree.span(at), tree.span(child)) {
                    let call = (tree.span(at).service.clone(), place_of(tree, child, names));
                    *below.calls.entry(call).or_default() += 1;
                }
                spans.push(child);
            }
        }
        below
    }
}

/// True if a span is a call to another service: by a client, but not the second of two stacked ones, or without one.
fn is_call_of(caller: &Span, span: &Span) -> bool {
    match (span.kind, caller.kind) {
        (SpanKind::Client, SpanKind::Client) => caller.service != span.service,
        (SpanKind::Client, _) => !is_connecting(span),
        (_, SpanKind::Client) => false,
        _ => caller.service != span.service,
    }
}

/// The time of a span when no span below it is under way, nanoseconds.
fn own_ns(tree: &TimedForest<'_>, at: usize) -> f64 {
    let times = |at: usize| (tree.placed(at).start_ns, tree.placed(at).end_ns);
    let children = Times::union_of(tree.children(at).iter().map(|child| times(*child as usize)));
    Times::union_of([times(at)]).without(&children).length_ns()
}

/// Services where errors of this request began, each once.
fn error_places(tree: &TimedForest<'_>, entry: usize, names: &Names, trace: &Trace) -> Vec<String> {
    let is_below = |at: usize| std::iter::successors(Some(at), |at| tree.parent(*at)).any(|at| at == entry);
    let found = deepest(trace, Span::has_failed).into_iter().filter_map(|span| tree.find(span.span_id));
    let mut places: Vec<String> = found.filter(|at| is_below(*at)).map(|at| place_of(tree, at, names)).collect();
    places.sort();
    places.dedup();
    places
}
