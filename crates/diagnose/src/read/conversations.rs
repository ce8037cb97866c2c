//! Calls between processes as their sockets show them: who waits for whom, under each load, without spans.
//!
//! The sampler says for each connection whether a request is outstanding. By Little's law, the mean number of requests
//! outstanding ÷ their rate is the wait of each. Where samples do not decide, figures are bounds. Several requests at once
//! on one connection count as one, so figures are lower bounds for HTTP/2 and pipelines.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use narrows_model::call_graph::{
    Bounds, CLIENTS, CallEdge, CallFigures, CallGraph, CallLevel, CallNode, NAME_SERVER, NodeKind,
};
use narrows_model::evidence::TrialEvidence;
use narrows_model::run::{ServiceInstance, sidecar_of};
use narrows_model::series::{Series, names};

use crate::read::intervals::Interval;
use crate::read::peers::{Peer, peer};
use crate::read::programs::is_store_program;
use crate::stats::finite;

/// Series of connections that a replica made.
const OF_CALLER: [&str; 9] = [
    names::CONNECTIONS,
    names::CONNECTIONS_ONE_WAY,
    names::CONNECTIONS_OPENED,
    names::REQUESTS_OUTSTANDING,
    names::REQUESTS_UNDECIDED,
    names::RESPONSES_UNREAD,
    names::REQUEST_RATE,
    names::CONNECTION_BUSY,
    names::CONNECTION_IO,
];
/// Series of connections that a replica accepted.
const OF_CLIENTS: [&str; 3] = [names::CLIENT_CONNECTIONS, names::CLIENT_CONNECTIONS_OPENED, names::CLIENT_REQUESTS];

/// Wait of a call in the background ÷ the time of the slowest request, at least. Under a lone user, few samples meet a call,
/// and their mean may be half as much again as the true wait.
const BACKGROUND_FACTOR: f64 = 1.5;

/// The call graph of a trial, and what its load says about it.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Conversations {
    pub(crate) graph: CallGraph,
    /// Requests of the load under way in each interval.
    in_flight: Vec<f64>,
}

impl Conversations {
    /// Reads the sockets of a trial in these intervals.
    pub(crate) fn of(trial: &TrialEvidence, intervals: &[Interval]) -> Self {
        let mut graph = graph(trial, intervals);
        if graph.edges.is_empty() {
            return Self::default();
        }
        let slowest = |one: &Interval| trial.load_between(one.start_ns, one.end_ns).service.max_ns() as f64;
        mark_background(&mut graph, intervals.iter().map(slowest));
        let in_flight = intervals.iter().map(Interval::in_flight).collect();
        know_rate_of_load(&mut graph, intervals);
        let mut conversations = Self { graph, in_flight };
        conversations.graph.nodes = conversations.nodes(trial);
        conversations
    }

    fn nodes(&self, trial: &TrialEvidence) -> Vec<CallNode> {
        let services = trial.service_names();
        let ends = self.graph.edges.iter().flat_map(|edge| [edge.caller.as_str(), edge.callee.as_str()]);
        let names: BTreeSet<&str> = ends.collect();
        let node = |name: &str| {
            let kind = match name {
                names::GENERATOR | CLIENTS => NodeKind::Client,
                _ if is_store_program(trial, name) => NodeKind::Store,
                _ if services.contains(&name) => NodeKind::Service,
                _ => NodeKind::Outside,
            };
            let levels = 0..self.in_flight.len();
            let requests = levels.filter_map(|at| Some(finite(self.own_requests(name, at)?.max(0.0)))).collect();
            CallNode { name: name.to_owned(), kind, requests }
        };
        names.into_iter().map(node).collect()
    }

    /// Requests that a service has taken on and not responded to in an interval; `None` if no socket shows a call to it.
    pub(crate) fn at_work(&self, service: &str, at: usize) -> Option<Bounds> {
        let callers = self.graph.to(service).filter(|edge| sidecar_of(&edge.caller) != Some(service));
        let requests = callers.map(|edge| match edge.caller.as_str() {
            names::GENERATOR => self.of_load(edge, at),
            _ => edge.levels[at].all.requests(),
        });
        requests.reduce(|sum, more| Bounds { low: sum.low + more.low, high: sum.high + more.high })
    }

    /// Requests that a service takes on per second, of all its callers. If the load calls no other service, its rate is
    /// that of the load. `None` if no socket shows a call.
    pub(crate) fn taken_on(&self, service: &str, at: usize) -> Option<f64> {
        let all: f64 = self.graph.to(service).map(|edge| edge.levels[at].all.rate).sum();
        (all > 0.0).then_some(all)
    }

    /// The part of the requests under way that the load has at one of the services that it calls. Their number is known
    /// from the load itself.
    fn of_load(&self, edge: &CallEdge, at: usize) -> Bounds {
        let weight = |edge: &CallEdge| {
            let figures = &edge.levels[at].all;
            (figures.requests().middle(), figures.rate)
        };
        let all = || self.graph.from(names::GENERATOR).map(weight);
        let (requests, rate) = weight(edge);
        let (sum, rates) = all().fold((0.0, 0.0), |(sum, rates), (requests, rate)| (sum + requests, rates + rate));
        let share = match (sum > 0.0, rates > 0.0) {
            _ if all().count() == 1 => 1.0,
            (true, _) => requests / sum,
            (false, true) => rate / rates,
            (false, false) => 0.0,
        };
        let requests = self.in_flight[at] * share;
        Bounds { low: requests, high: requests }
    }

    /// Requests that a service waits for in an interval, by peer, most first. Calls that take longer than any request of
    /// the load, such as a consumer's wait for messages, are in the background and count as none.
    pub(crate) fn behind<'c>(&'c self, service: &str, at: usize) -> Vec<(&'c str, Bounds)> {
        let peers = self.graph.from(service).filter(|edge| edge.callee != service);
        let mut behind: Vec<(&'c str, Bounds)> = peers
            .map(|edge| {
                let level = &edge.levels[at];
                let requests = if level.is_background { Bounds::default() } else { level.all.requests() };
                (edge.callee.as_str(), requests)
            })
            .collect();
        behind.sort_by(|(_, a), (_, b)| b.middle().total_cmp(&a.middle()));
        behind
    }

    /// Requests in an interval that are at a service and wait for no peer, or that wait for a peer that is no service; below
    /// 0 by the error of samples. `None` if no socket shows a call to it.
    fn own_requests(&self, place: &str, at: usize) -> Option<f64> {
        let at_work = self.at_work(place, at)?.middle();
        Some(at_work - self.behind(place, at).iter().map(|(_, requests)| requests.middle()).sum::<f64>())
    }

    /// The place where most requests are in an interval, and how many.
    pub(crate) fn most_requests(&self, at: usize) -> Option<(&str, f64)> {
        let reached = self.reached();
        let requests = reached.iter().filter_map(|place| Some((*place, self.own_requests(place, at)?)));
        requests.filter(|(_, requests)| *requests > 0.0).max_by(|(_, a), (_, b)| a.total_cmp(b))
    }

    /// Services that the load's requests reach, directly or through others.
    pub(crate) fn reached(&self) -> HashSet<&str> {
        let mut reached: HashSet<&str> = HashSet::new();
        let mut open: Vec<&str> = vec![names::GENERATOR, CLIENTS];
        while let Some(caller) = open.pop() {
            let callees = self.graph.from(caller).map(|edge| edge.callee.as_str());
            open.extend(callees.filter(|callee| reached.insert(callee)));
        }
        reached
    }
}

/// Figures of a replica's series that name one end, by replica and that end.
type Ends<'t> = BTreeMap<(&'t str, u32, &'t str), Vec<&'t Series>>;

fn graph(trial: &TrialEvidence, intervals: &[Interval]) -> CallGraph {
    let mut edges = Edges { trial, intervals, levels: BTreeMap::new() };
    for ((service, replica, label), series) in ends(trial, &OF_CALLER, names::NETWORK_PEER) {
        let called = peer(trial, label);
        // The load is HTTP: Narrows asks a store for its own figures.
        let is_load = |callee: &Peer<'_>| service != names::GENERATOR || !is_store_program(trial, callee.name());
        if let Some(callee) = called.filter(is_load) {
            edges.add(service, &callee, (service, replica), &series);
        }
    }
    for ((service, replica, port), series) in ends(trial, &OF_CLIENTS, names::SERVER_PORT) {
        let is_it = |one: &&ServiceInstance| (one.service.as_str(), one.replica) == (service, replica);
        let called = trial.services.iter().find(is_it);
        if let Some(called) = called.filter(|one| port.parse().is_ok_and(|port| one.is_reached_at(port))) {
            edges.add(CLIENTS, &Peer::Replica(called), (service, replica), &series);
        }
    }
    let edges = edges.levels.into_iter().map(|((caller, callee), levels)| CallEdge { caller, callee, levels });
    CallGraph { nodes: Vec::new(), edges: edges.collect() }
}

/// Sets the rate of the load's calls to that of its responses, if it calls one service only: sockets estimate it.
fn know_rate_of_load(graph: &mut CallGraph, intervals: &[Interval]) {
    let mut of_load = graph.edges.iter_mut().filter(|edge| edge.caller == names::GENERATOR);
    if let (Some(edge), None) = (of_load.next(), of_load.next()) {
        edge.levels.iter_mut().zip(intervals).for_each(|(level, interval)| level.all.rate = interval.rate);
    }
}

/// Marks calls that take longer than the slowest request of the load in each interval.
fn mark_background(graph: &mut CallGraph, slowest_ns: impl Iterator<Item = f64> + Clone) {
    let clients = [names::GENERATOR, CLIENTS];
    let may_be = |edge: &&mut CallEdge| !clients.contains(&edge.caller.as_str()) && edge.callee != NAME_SERVER;
    for edge in graph.edges.iter_mut().filter(may_be) {
        for (level, slowest_ns) in edge.levels.iter_mut().zip(slowest_ns.clone()) {
            level.is_background =
                level.all.wait_ns().is_none_or(|wait_ns| wait_ns.low > BACKGROUND_FACTOR * slowest_ns);
        }
    }
}

fn ends<'t>(trial: &'t TrialEvidence, of: &[&str], label: &str) -> Ends<'t> {
    let mut ends = Ends::new();
    for series in trial.series.iter().filter(|series| of.contains(&series.key.name.as_str())) {
        let Some(end) = series.key.labels.get(label) else { continue };
        ends.entry((&series.key.service, series.key.replica, end)).or_default().push(series);
    }
    ends
}

/// Edges while they are added up over replicas.
struct Edges<'t> {
    trial: &'t TrialEvidence,
    intervals: &'t [Interval],
    levels: BTreeMap<(String, String), Vec<CallLevel>>,
}

impl Edges<'_> {
    fn add(&mut self, caller: &str, callee: &Peer<'_>, sampled: (&str, u32), series: &[&Series]) {
        let key = (caller.to_owned(), callee.name().to_owned());
        if !self.levels.contains_key(&key) {
            let replicas = match callee {
                Peer::Replica(one) => self.trial.services.iter().filter(|other| other.service == one.service).count(),
                Peer::Outside(_) => 0,
            };
            let replicas = vec![CallFigures::default(); if replicas > 1 { replicas } else { 0 }];
            let level = CallLevel { replicas, ..CallLevel::default() };
            self.levels.insert(key.clone(), vec![level; self.intervals.len()]);
        }
        for (level, interval) in self.levels.get_mut(&key).into_iter().flatten().zip(self.intervals) {
            let figures = figures(self.trial, sampled, series, interval);
            level.all.add(&figures);
            if let Peer::Replica(instance) = callee
                && let Some(replica) = level.replicas.get_mut(instance.replica as usize)
            {
                replica.add(&figures);
            }
        }
    }
}

/// Means of series in an interval. A peer without connections has no points, so all are divided by the number of points
/// that the replica has.
fn figures(trial: &TrialEvidence, replica: (&str, u32), series: &[&Series], interval: &Interval) -> CallFigures {
    let count = |series: &Series| series.points.iter().filter(|point| interval.contains(point.time_ns)).count();
    let is_of_replica = |series: &&Series| (series.key.service.as_str(), series.key.replica) == replica;
    let counted = [names::CONNECTIONS, names::CLIENT_CONNECTIONS, names::THREAD_STATES];
    let sampled = trial.series.iter().filter(is_of_replica).filter(|one| counted.contains(&one.key.name.as_str()));
    let Some(points) = sampled.map(count).max().filter(|points| *points > 0) else { return CallFigures::default() };
    let mean_of = |series: &Series| {
        let here = series.points.iter().filter(|point| interval.contains(point.time_ns));
        here.map(|point| point.value).reduce(|sum, value| sum + value).map(|sum| finite(sum / points as f64))
    };
    let mean = |name: &str| series.iter().find(|series| series.key.name == name).and_then(|series| mean_of(series));
    let bytes = |direction: &str| {
        let of_direction = |series: &&&Series| {
            let label = series.key.labels.get(names::NETWORK_DIRECTION);
            series.key.name == names::CONNECTION_IO && label.is_some_and(|label| label == direction)
        };
        series.iter().find(of_direction).and_then(|series| mean_of(series)).unwrap_or(0.0)
    };
    let either = |a: &str, b: &str| mean(a).or_else(|| mean(b)).unwrap_or(0.0);
    CallFigures {
        outstanding: either(names::REQUESTS_OUTSTANDING, names::CLIENT_REQUESTS),
        undecided: mean(names::REQUESTS_UNDECIDED).unwrap_or(0.0),
        unread: mean(names::RESPONSES_UNREAD).unwrap_or(0.0),
        rate: mean(names::REQUEST_RATE).unwrap_or(0.0),
        connections: either(names::CONNECTIONS, names::CLIENT_CONNECTIONS),
        one_way: mean(names::CONNECTIONS_ONE_WAY).unwrap_or(0.0),
        opened: either(names::CONNECTIONS_OPENED, names::CLIENT_CONNECTIONS_OPENED),
        busy: mean(names::CONNECTION_BUSY).unwrap_or(0.0),
        sent_bytes: bytes(names::TRANSMIT),
        received_bytes: bytes(names::RECEIVE),
    }
}

#[cfg(test)]
mod tests;
