//! `sequential-calls`: the requests of a service without spans wait for many calls, one after another.
//!
//! Its sockets show how many calls it makes for each request, and how many of its requests wait for one. If a request made
//! several calls at once, more calls than requests would be under way. A database counts its statements, so one that
//! is repeated has a name. A call lasts until its response is read: an interpreter whose threads take turns reads each late.
//!
//! Many calls go to one peer, or one or a few to each of several. Where spans exist, `n-plus-one`, `chatty-http`,
//! `duplicate-query` and `serial-fan-out` say more.

use narrows_model::call_graph::{Bounds, CallEdge, NAME_SERVER};
use narrows_model::finding::evidence::sequential_calls as evidence;
use narrows_model::finding::evidence::sockets::SocketReading;
use narrows_model::finding::{Confidence, Evidence, Finding, FindingKind};
use narrows_model::series::servers::STATEMENT_CALLS;

use crate::Detector;
use crate::detectors::slow_dependency::by_sockets::NARROW_SHARE;
use crate::exemplars::{TEXT_CHARS_MAX, clipped};
use crate::read::Reading;
use crate::read::full_pools::ONE_AT_A_TIME_MAX;
use crate::read::intervals::heaviest_level;
use crate::read::periods::period_of;
use crate::read::servers::{repeated_statement, transactions};
use crate::stats::finite;
use crate::thresholds::rule_thresholds;

mod words;

rule_thresholds! {
    /// Calls to one peer for each request: as many as `n-plus-one` and `chatty-http` demand of spans.
    sequential_calls_to_one: f64 = 5.0;
    /// Share of the requests under way that must wait for these calls.
    sequential_calls_share: f64 = 0.2;
    /// Peers that are called one after another.
    sequential_calls_peers: usize = 3;
    /// Share of the requests under way that must wait for one of several peers.
    sequential_calls_peers_share: f64 = 0.5;
}

/// Calls to each of several peers for each request, from which it is one that requests call.
const CALLS_MIN: f64 = 0.8;
/// Share of the requests that wait for a peer, from which it is one of several.
const PEER_SHARE_MIN: f64 = 0.08;
/// Share of the waiting requests that wait for one of several peers, at most; beyond, that peer alone is slow.
const PEER_SHARE_MAX: f64 = 0.6;
/// Calls under way for each request at work that show calls at once under any load: under a lone user, few samples may make
/// half as many more of them.
const AT_ONCE_MIN: f64 = 2.0;
/// Connections for each request at work, at least; fewer may each carry several calls at once (HTTP/2), which count as one.
const CONNECTIONS_MIN: f64 = 0.5;
/// Connections opened per call, at most; with more, many of the calls are handshakes.
const OPENED_SHARE_MAX: f64 = 0.25;
/// Statements around those of a transaction: one begins it and one ends it.
const STATEMENTS_AROUND: f64 = 2.0;

/// See the module.
#[derive(Debug)]
pub struct SequentialCalls;

impl Detector for SequentialCalls {
    fn kind(&self) -> FindingKind {
        FindingKind::SequentialCalls
    }

    fn version(&self) -> u32 {
        2
    }

    fn request_cost_ns(&self, finding: &Finding) -> Option<f64> {
        let Evidence::SequentialCalls(evidence) = &finding.evidence else { return None };
        Some(evidence.request_ns)
    }

    fn detect(&self, reading: &Reading<'_>) -> Vec<Finding> {
        let Some(at) = heaviest_level(reading.intervals) else { return Vec::new() };
        let mut reached: Vec<&str> = reading.conversations().reached().into_iter().collect();
        reached.sort_unstable();
        let callers = reached.into_iter().filter(|caller| !reading.has_spans_of(caller));
        callers.filter_map(|caller| Caller::new(reading, caller, at)?.finding(self)).collect()
    }
}

/// A service and those it calls under the heaviest load.
struct Caller<'r> {
    reading: &'r Reading<'r>,
    name: &'r str,
    at: usize,
    /// Requests that it has taken on and not responded to.
    at_work: f64,
    /// Requests that it takes on per second.
    served: f64,
    /// Peers, that which requests wait for most first.
    peers: Vec<Peer<'r>>,
}

/// Calls to one peer.
struct Peer<'r> {
    edge: &'r CallEdge,
    /// Calls per second, without those that only begin or end a transaction.
    rate: f64,
    /// Requests that wait for a response or have not read it.
    waiting: Bounds,
    statement: Option<evidence::RepeatedStatement>,
}

impl<'r> Caller<'r> {
    fn new(reading: &'r Reading<'r>, name: &'r str, at: usize) -> Option<Self> {
        let conversations = reading.conversations();
        let at_work = conversations.at_work(name, at)?.middle();
        let served = conversations.taken_on(name, at).unwrap_or(reading.intervals[at].rate);
        let behind = conversations.behind(name, at).into_iter().filter(|(peer, _)| *peer != NAME_SERVER);
        let peers = behind.filter_map(|(peer, waiting)| {
            let edge = conversations.graph.from(name).find(|edge| edge.callee == peer)?;
            let calls = &edge.levels[at].all;
            let unread = if waiting.high > 0.0 { calls.unread } else { 0.0 };
            let waiting = Bounds { low: waiting.low + unread, high: waiting.high + unread };
            let interval = &reading.intervals[at];
            let around = STATEMENTS_AROUND * transactions(reading.trial, peer, interval);
            let repeated = repeated_statement(reading.trial, peer, interval);
            let statement = repeated.map(|(text, rate)| evidence::RepeatedStatement {
                text: clipped(text, TEXT_CHARS_MAX),
                per_request: finite(rate / served),
            });
            let enough = reading.thresholds.sequential_calls.sequential_calls_to_one;
            let statement = statement.filter(|one| one.per_request >= enough);
            Some(Peer { edge, rate: (calls.rate - around).max(0.0), waiting, statement })
        });
        let peers = peers.filter(|peer| peer.waiting.high > 0.0).collect();
        (at_work > 0.0 && served > 0.0).then_some(Self { reading, name, at, at_work, served, peers })
    }

    fn finding(&self, detector: &SequentialCalls) -> Option<Finding> {
        let peers = self.repeated().map(|one| vec![one]).or_else(|| self.several())?;
        let interval = &self.reading.intervals[self.at];
        let sum = |bound: fn(&Bounds) -> f64| finite(peers.iter().map(|peer| bound(&peer.waiting)).sum());
        let waiting = Bounds { low: sum(|bounds| bounds.low), high: sum(|bounds| bounds.high) };
        let at_once = waiting.middle() / self.at_work;
        if at_once > ONE_AT_A_TIME_MAX || self.makes_calls_at_once_under_less(&peers) {
            return None;
        }
        let reading = SocketReading {
            interval: interval.label.clone(),
            load: interval.load_level(),
            waiting,
            in_flight: finite(interval.in_flight()),
        };
        let is_counted = peers.iter().any(|peer| peer.statement.is_some());
        let evidence = evidence::SequentialCalls {
            peers: peers.iter().map(|peer| self.calls(peer)).collect(),
            request_ns: finite(waiting.middle() / interval.rate * 1e9),
            at_once: finite(at_once),
            reading,
        };
        Some(Finding {
            resource: self.name.to_owned(),
            cost_share: finite(evidence.reading.share()),
            confidence: if is_counted && waiting.is_narrow(NARROW_SHARE) {
                Confidence::High
            } else {
                Confidence::Medium
            },
            period: period_of(self.reading.trial, interval.start_ns, interval.end_ns),
            ..Finding::new(evidence, detector.version())
        })
    }

    /// True if clearly more calls to these peers than requests are under way under any level of the load. Where requests
    /// wait for something else too, such as a processor, the heaviest level may not show it.
    fn makes_calls_at_once_under_less(&self, peers: &[&Peer<'_>]) -> bool {
        let levels = (0..self.reading.intervals.len()).filter(|at| self.reading.intervals[*at].is_level);
        let mut ratios = levels.filter_map(|at| {
            let of_requests = peers.iter().map(|peer| &peer.edge.levels[at]).filter(|level| !level.is_background);
            let calls: f64 = of_requests.map(|level| level.all.requests().low).sum();
            let at_work = self.reading.conversations().at_work(self.name, at)?.middle();
            (at_work > 0.0).then(|| calls / at_work)
        });
        ratios.any(|ratio| ratio >= AT_ONCE_MIN)
    }

    /// The peer that gets many calls for each request, if requests wait for them.
    fn repeated(&self) -> Option<&Peer<'r>> {
        let thresholds = &self.reading.thresholds.sequential_calls;
        let is_many = |peer: &&Peer<'_>| {
            let is_counted = is_database(self.reading, &peer.edge.callee);
            let calls = &peer.edge.levels[self.at].all;
            let is_kept = calls.opened <= OPENED_SHARE_MAX * calls.rate;
            let is_one_each = is_kept && calls.connections >= CONNECTIONS_MIN * self.at_work;
            let is_often = peer.rate / self.served >= thresholds.sequential_calls_to_one;
            peer.statement.is_some() || (!is_counted && is_one_each && is_often)
        };
        let is_waited_for = |peer: &&Peer<'_>| self.share(peer.waiting.low) >= thresholds.sequential_calls_share;
        self.peers.iter().filter(is_waited_for).find(is_many)
    }

    /// Several peers that requests call and wait for, none of them the most.
    fn several(&self) -> Option<Vec<&Peer<'r>>> {
        let thresholds = &self.reading.thresholds.sequential_calls;
        let is_called =
            |peer: &&Peer<'_>| peer.rate / self.served >= CALLS_MIN && self.share(peer.waiting.low) >= PEER_SHARE_MIN;
        let called: Vec<&Peer<'_>> = self.peers.iter().filter(is_called).collect();
        let waiting: f64 = called.iter().map(|peer| peer.waiting.low).sum();
        let is_even = called.first().is_some_and(|first| first.waiting.low <= PEER_SHARE_MAX * waiting);
        let is_much = self.share(waiting) >= thresholds.sequential_calls_peers_share;
        (called.len() >= thresholds.sequential_calls_peers && is_even && is_much).then_some(called)
    }

    /// Share of the requests at work, 0 to 1.
    fn share(&self, requests: f64) -> f64 {
        requests / self.at_work
    }

    fn calls(&self, peer: &Peer<'_>) -> evidence::PeerCalls {
        evidence::PeerCalls {
            peer: peer.edge.callee.clone(),
            per_request: finite(peer.rate / self.served),
            call_ns: peer.edge.levels[self.at].all.wait_ns().unwrap_or_default(),
            statement: peer.statement.clone(),
        }
    }
}

/// True if the peer is a database that counts its statements.
fn is_database(reading: &Reading<'_>, peer: &str) -> bool {
    let counts = |name: &str| STATEMENT_CALLS.contains(&name);
    reading.trial.series.iter().any(|series| series.key.service == peer && counts(&series.key.name))
}

#[cfg(test)]
mod tests;
