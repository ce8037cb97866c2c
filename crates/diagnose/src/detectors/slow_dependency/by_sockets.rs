//! Dependencies that callers wait for without spans that show it, as their sockets do.
//!
//! The heaviest load decides: a dependency that takes long under a light load holds nothing back where requests wait in
//! front of it for something else. A service of the trial that passes the wait on to others counts only for its part.

use std::collections::BTreeSet;

use narrows_model::breakdown::OwnTime;
use narrows_model::call_graph::{Bounds, CallEdge};
use narrows_model::finding::evidence::slow_dependency as evidence;
use narrows_model::finding::evidence::slow_dependency::{DependencyGrowth, DependencyLevel};
use narrows_model::finding::evidence::sockets::SocketReading;
use narrows_model::finding::{Caveat, Confidence, Finding};

use super::{LEVELS_MAX, SlowDependency, growth};
use crate::Detector;
use crate::read::Reading;
use crate::read::cpu::Cpu;
use crate::read::intervals::{Interval, heaviest_level};
use crate::read::periods::period_of;
use crate::stats::finite;

/// Distance of the bounds of the requests that wait, as a share of them, up to which their number counts as known.
pub(crate) const NARROW_SHARE: f64 = 0.2;

/// Share of the requests that wait for a peer which no span may explain, so that its sockets are judged.
const UNEXPLAINED_SHARE: f64 = 0.5;

pub(super) fn findings(reading: &Reading<'_>) -> Vec<Finding> {
    let Some(at) = heaviest_level(reading.intervals) else { return Vec::new() };
    let reached = reading.conversations().reached();
    let edges = reading.conversations().graph.edges.iter();
    let is_candidate = |edge: &&CallEdge| reached.contains(edge.caller.as_str()) && is_unexplained(reading, edge, at);
    let unexplained = edges.filter(is_candidate);
    let found = unexplained.filter_map(|edge| Waiting { reading, edge, at }.finding());
    found.max_by(|a, b| a.cost_share.total_cmp(&b.cost_share)).into_iter().collect()
}

/// Whether no span explains most requests that wait for a peer. Spans from inside the caller explain all; those of an eBPF
/// instrumentation only calls by the protocols that it knows.
fn is_unexplained(reading: &Reading<'_>, edge: &CallEdge, at: usize) -> bool {
    if !reading.has_spans_of(&edge.caller) {
        return true;
    }
    let of_caller = reading.operations.iter().filter(|((service, _), _)| *service == edge.caller);
    let mut requests = of_caller.flat_map(|(_, requests)| requests);
    let threads = reading.spent().threads.get(at).into_iter().flatten().filter(|one| one.service == edge.caller);
    let waits = threads.flat_map(|one| &one.own).filter(|part| part.what == OwnTime::Network(edge.callee.clone()));
    let unexplained: f64 = waits.map(|part| part.requests).sum();
    requests.all(|handled| handled.request.entry.is_from_outside())
        && unexplained >= UNEXPLAINED_SHARE * edge.levels[at].all.requests().middle()
}

/// Requests of a service that wait for a peer under the heaviest load.
struct Waiting<'r> {
    reading: &'r Reading<'r>,
    edge: &'r CallEdge,
    at: usize,
}

impl<'r> Waiting<'r> {
    fn finding(&self) -> Option<Finding> {
        let thresholds = &self.reading.thresholds.slow_dependency;
        let interval = &self.reading.intervals[self.at];
        let calls = &self.edge.levels[self.at].all;
        let sockets = SocketReading {
            interval: interval.label.clone(),
            load: interval.load_level(),
            waiting: self.waiting()?,
            in_flight: finite(interval.in_flight()),
        };
        let levels = self.levels();
        let ((light, from_ns), (heavy, call_ns)) = (*levels.first()?, *levels.last()?);
        let callers = BTreeSet::from([self.edge.caller.as_str()]);
        let growth = growth(self.reading, &callers, Some((light, heavy)), call_ns / from_ns.max(1.0));
        let is_slow = from_ns.min(call_ns) >= thresholds.dependency_slow_ns;
        let is_full = growth == DependencyGrowth::Grows && call_ns >= thresholds.dependency_full_ns;
        if sockets.share() < thresholds.dependency_share || !(is_slow || is_full) {
            return None;
        }
        let proof = Cpu::new(self.reading).proof(self.at).filter(|_| is_full);
        let is_known = growth == DependencyGrowth::Constant || proof.is_some();
        let is_narrow = sockets.waiting.is_narrow(NARROW_SHARE);
        let trial = self.reading.trial;
        let evidence = evidence::SlowDependency {
            callers: vec![self.edge.caller.clone()],
            is_in_experiment: trial.service_names().contains(&self.edge.callee.as_str()),
            request_ns: finite(sockets.waiting.middle() / interval.rate * 1e9),
            call_ns: finite(call_ns),
            calls_per_request: finite(calls.rate / interval.rate),
            growth,
            levels: levels.iter().map(|(interval, call_ns)| level(interval, *call_ns)).take(LEVELS_MAX).collect(),
            proof,
            sockets: Some(sockets.clone()),
            ..evidence::SlowDependency::default()
        };
        Some(Finding {
            resource: self.edge.callee.clone(),
            cost_share: finite(sockets.share()),
            confidence: if is_known && is_narrow { Confidence::High } else { Confidence::Medium },
            caveats: vec![Caveat::DependencySendsNoSpans { dependency: self.edge.callee.clone() }],
            period: period_of(trial, interval.start_ns, interval.end_ns),
            ..Finding::new(evidence, SlowDependency.version())
        })
    }

    /// Requests that wait for the peer itself; `None` if they wait for nothing there.
    fn waiting(&self) -> Option<Bounds> {
        let conversations = self.reading.conversations();
        let behind = conversations.behind(&self.edge.caller, self.at);
        let (_, waiting) = behind.into_iter().find(|(peer, _)| *peer == self.edge.callee)?;
        let passed_on: f64 = conversations.behind(&self.edge.callee, self.at).iter().map(|(_, b)| b.middle()).sum();
        let at_work = conversations.at_work(&self.edge.callee, self.at).map_or(0.0, Bounds::middle);
        let own = if at_work > 0.0 { (1.0 - passed_on / at_work).max(0.0) } else { 1.0 };
        (waiting.high > 0.0).then(|| Bounds { low: finite(waiting.low * own), high: finite(waiting.high * own) })
    }

    /// Wait per call under each level of the load, the lightest first.
    fn levels(&self) -> Vec<(&'r Interval, f64)> {
        let levels = self.reading.intervals.iter().zip(&self.edge.levels).filter(|(interval, _)| interval.is_level);
        let waits = levels.filter_map(|(interval, level)| Some((interval, level.all.wait_ns()?.middle())));
        let mut waits: Vec<(&Interval, f64)> = waits.collect();
        waits.sort_by(|(a, _), (b, _)| a.by_demand(b));
        waits
    }
}

fn level(interval: &Interval, call_ns: f64) -> DependencyLevel {
    DependencyLevel { load: interval.load_level(), rate: finite(interval.rate), call_ns: finite(call_ns) }
}
