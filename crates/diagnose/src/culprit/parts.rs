//! Part of each service in the requests that begin traces: its time on the critical path, the calls that it makes, and
//! the errors that begin in it.
//!
//! The time of a call before the called service begins and after it ends is the callee's: it queues there, or is on the
//! way. A call that two stacked libraries report counts once. An error counts where it began: at the deepest span that
//! failed. A call that failed although its callee recorded no failure, or recorded nothing at all, counts as the callee's.
//!
//! An error cuts short what callers would have done next, so that calls are also counted over the requests without one.
//!
//! Everything that is compared is collected in one pass over the spans (`visits.rs`), as sums (`values.rs`).

use std::collections::{BTreeMap, HashMap};

use narrows_model::caveat::Skew;
use narrows_model::evidence::TrialEvidence;
use narrows_model::trace::{Span, SpanId, SpanKind, Trace, TraceId};

use super::shapes::Shapes;
use super::values::{BLOCKS, Sample, Values};
use super::visits::{Below, Pair, has_server_span, place_of};
use crate::critical_path::category::Names;
use crate::critical_path::{TimedForest, by_trace};
use crate::instrumentation::skews;
use crate::read::Reading;
use crate::read::errors::deepest;
use crate::thresholds::Thresholds;

/// Floor of the time of a service in a call, nanoseconds: below it, times count as equal.
const TIME_MIN_NS: f64 = 1_000.0;
/// Maximum number of names of internal spans of a service that are counted separately.
const INTERNAL_MAX: usize = 64;

/// Service and name of an operation that begins traces.
pub(super) type Operation = (String, String);

/// The requests of one side by operation.
#[derive(Debug, Default)]
pub(super) struct Parts {
    pub(super) operations: BTreeMap<Operation, Shapes>,
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
    /// The calls of each service.
    pub(super) visits: BTreeMap<String, Visits>,
    /// The time of calls before the callee's span begins and after it ends.
    pub(super) gaps: BTreeMap<Pair, Gaps>,
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

/// Single calls of a service.
#[derive(Debug, Default, Clone)]
pub(super) struct Visits {
    /// Logarithms of the service's own time in each call, in nanoseconds.
    pub(super) logarithms: Values,
    /// The service's own time in each call, nanoseconds.
    pub(super) times: Values,
    /// Latencies of the requests that reach it, nanoseconds.
    pub(super) latency: Values,
}

/// Nanoseconds of each request between caller and callee.
#[derive(Debug, Default, Clone)]
pub(super) struct Gaps {
    /// Whether waited for or not.
    pub(super) own: Values,
    /// On the critical path.
    pub(super) path: Values,
}

/// Calls and internal spans for each of some requests.
#[derive(Debug, Default, Clone)]
pub(super) struct Calls {
    /// The requests.
    pub(super) requests: Values,
    /// By caller and callee.
    pub(super) by_pair: BTreeMap<Pair, Values>,
    /// Internal spans by service and name.
    pub(super) internal: BTreeMap<String, BTreeMap<String, Values>>,
}

impl Calls {
    fn add(&mut self, below: &Below<'_>, sample: Sample) {
        self.requests.add(1.0, sample);
        for (call, count) in &below.calls {
            self.by_pair.entry(call.clone()).or_default().add(f64::from(*count), sample);
        }
        for ((service, name), count) in &below.internal {
            if !self.internal.contains_key(*service) {
                self.internal.insert((*service).to_owned(), BTreeMap::new());
            }
            let Some(names) = self.internal.get_mut(*service) else { continue };
            if !names.contains_key(*name) && names.len() < INTERNAL_MAX {
                names.insert((*name).to_owned(), Values::default());
            }
            if let Some(values) = names.get_mut(*name) {
                values.add(f64::from(*count), sample);
            }
        }
    }

    fn absorb(&mut self, other: Self) {
        self.requests.absorb(&other.requests);
        absorb_all(&mut self.by_pair, other.by_pair, |known, new| known.absorb(&new));
        absorb_all(&mut self.internal, other.internal, |known, new| {
            absorb_all(known, new, |known, new| known.absorb(&new));
        });
    }
}

/// Adds the values of one map to those of another.
fn absorb_all<K: Ord, V: Default>(known: &mut BTreeMap<K, V>, new: BTreeMap<K, V>, absorb: impl Fn(&mut V, V)) {
    for (key, value) in new {
        absorb(known.entry(key).or_default(), value);
    }
}

impl Parts {
    pub(super) fn of(trials: &[&TrialEvidence], thresholds: &Thresholds) -> Self {
        let mut parts = Self { trials: trials.len(), ..Self::default() };
        for (position, trial) in trials.iter().enumerate() {
            let blocks = Blocks::of(trial, position, trials.len());
            Reading::with(trial, thresholds, |reading| parts.add(reading, blocks));
        }
        parts
    }

    fn add(&mut self, reading: &Reading<'_>, blocks: Blocks) {
        let names = Names::new(reading.trial);
        self.add_skews(skews(reading));
        for (forest, requests) in by_trace(reading) {
            let tree = TimedForest::new(forest);
            let entries: HashMap<SpanId, (&str, &str)> =
                requests.iter().map(|(service, name, one)| (one.request.entry.span_id, (*service, *name))).collect();
            let first = requests.iter().filter_map(|(.., one)| tree.find(one.request.entry.span_id));
            for at in first.filter(|at| is_first(&tree, *at, &entries)) {
                let (service, name) = entries[&tree.span(at).span_id];
                let shapes = self.operations.entry((service.to_owned(), name.to_owned())).or_default();
                let below = Below::new(&tree, at, &names);
                let sample = Sample { weight: forest.trace().weight, block: blocks.at(tree.span(at).start_ns) };
                let request = Request { tree: &tree, entry: at, trace: forest.trace(), sample };
                shapes.of(&callees_of(service, &below)).add(&request, &below, &names);
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

/// The blocks of time of one trial.
#[derive(Debug, Clone, Copy)]
struct Blocks {
    first: usize,
    count: usize,
    start_ns: i64,
    length_ns: f64,
}

impl Blocks {
    /// Those of the trial at this position of so many.
    fn of(trial: &TrialEvidence, position: usize, trials: usize) -> Self {
        let starts = || trial.traces.iter().filter_map(|trace| trace.spans.first()).map(|span| span.start_ns);
        let (start_ns, end_ns) = (starts().min().unwrap_or(0), starts().max().unwrap_or(0));
        let count = (BLOCKS / trials).max(1);
        Self { first: position * count, count, start_ns, length_ns: (end_ns - start_ns) as f64 / count as f64 }
    }

    fn at(self, time_ns: i64) -> usize {
        let within = (time_ns - self.start_ns) as f64 / self.length_ns.max(1.0);
        (self.first + (within.max(0.0) as usize).min(self.count - 1)) % BLOCKS
    }
}

/// The services that a request's first service calls, each once.
fn callees_of(service: &str, below: &Below<'_>) -> String {
    let callees = below.calls.keys().filter(|(caller, _)| caller == service).map(|(_, callee)| callee.as_str());
    callees.collect::<Vec<&str>>().join("\n")
}

/// One request in its trace.
#[derive(Debug, Clone, Copy)]
struct Request<'t> {
    tree: &'t TimedForest<'t>,
    entry: usize,
    trace: &'t Trace,
    sample: Sample,
}

/// True if no request of the trace stands above this one.
fn is_first(tree: &TimedForest<'_>, at: usize, entries: &HashMap<SpanId, (&str, &str)>) -> bool {
    let mut above = std::iter::successors(tree.parent(at), |at| tree.parent(*at));
    !above.any(|at| entries.contains_key(&tree.span(at).span_id))
}

impl OfOperation {
    fn add(&mut self, request: &Request<'_>, below: &Below<'_>, names: &Names) {
        let Request { tree, entry, trace, sample } = *request;
        let latency_ns = tree.placed(entry).length_ns() as f64;
        self.latency.add(latency_ns, sample);
        self.add_path(request, names);
        for (pair, ns) in &below.gaps {
            self.gaps.entry(pair.clone()).or_default().own.add(*ns, sample);
        }
        for (service, ns) in &below.own {
            let slowest = self.slowest.entry(service.clone()).or_insert((*ns, trace.id));
            if *ns > slowest.0 {
                *slowest = (*ns, trace.id);
            }
            self.own.entry(service.clone()).or_default().add(*ns, sample);
            self.visits.entry(service.clone()).or_default().latency.add(latency_ns, sample);
        }
        for visit in &below.visits {
            if let Some(visits) = self.visits.get_mut(&visit.service) {
                visits.times.add(visit.own_ns, sample);
                visits.logarithms.add(visit.own_ns.max(TIME_MIN_NS).ln(), sample);
            }
        }
        let failed = error_places(tree, entry, names, trace);
        self.calls.add(below, sample);
        if failed.is_empty() {
            self.calls_without_errors.add(below, sample);
        }
        for service in failed {
            self.failed.entry(service.clone()).or_insert(trace.id);
            self.errors.entry(service).or_default().add(1.0, sample);
        }
    }

    /// Adds the times on the critical path.
    fn add_path(&mut self, request: &Request<'_>, names: &Names) {
        let Request { tree, entry, sample, .. } = *request;
        let mut time: BTreeMap<String, f64> = BTreeMap::new();
        let mut gaps: BTreeMap<Pair, f64> = BTreeMap::new();
        for section in tree.path(entry).sections {
            let ns = (section.end_ns - section.start_ns) as f64;
            let (span, place) = (tree.span(section.span), place_of(tree, section.span, names));
            if span.kind == SpanKind::Client && has_server_span(tree, section.span) {
                *gaps.entry((span.service.clone(), place.clone())).or_default() += ns;
            }
            *time.entry(place).or_default() += ns;
        }
        for (service, ns) in time {
            self.time.entry(service).or_default().add(ns, sample);
        }
        for (pair, ns) in gaps {
            self.gaps.entry(pair).or_default().path.add(ns, sample);
        }
    }

    pub(super) fn absorb(&mut self, other: Self) {
        self.latency.absorb(&other.latency);
        absorb_all(&mut self.time, other.time, |known, new| known.absorb(&new));
        absorb_all(&mut self.own, other.own, |known, new| known.absorb(&new));
        absorb_all(&mut self.errors, other.errors, |known, new| known.absorb(&new));
        absorb_all(&mut self.visits, other.visits, |known, new| {
            known.logarithms.absorb(&new.logarithms);
            known.times.absorb(&new.times);
            known.latency.absorb(&new.latency);
        });
        absorb_all(&mut self.gaps, other.gaps, |known, new| {
            known.own.absorb(&new.own);
            known.path.absorb(&new.path);
        });
        self.calls.absorb(other.calls);
        self.calls_without_errors.absorb(other.calls_without_errors);
        for (service, slowest) in other.slowest {
            let known = self.slowest.entry(service).or_insert(slowest);
            if slowest.0 > known.0 {
                *known = slowest;
            }
        }
        for (service, trace) in other.failed {
            self.failed.entry(service).or_insert(trace);
        }
    }
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
