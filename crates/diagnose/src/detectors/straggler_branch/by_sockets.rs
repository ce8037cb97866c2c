//! A slow call among parallel ones, of a service without spans, as its sockets show it.
//!
//! A service makes calls at once if it keeps more connections than there are users. If the calls of a request took equally
//! long, as many would be under way as it makes, all the time that it waits. If fewer than two are under way on average, one
//! is alone for a part of that time: with u the share of its time that a request waits and c the calls under way, for
//! 2u − c at least, because two or more account for the rest. The request waits whenever no other part of its time is known,
//! so a wait inside the service that neither its threads nor its sockets show makes this bound too high.

use narrows_model::breakdown::OwnTime;
use narrows_model::call_graph::{Bounds, CallEdge, NAME_SERVER};
use narrows_model::finding::evidence::sockets::SocketReading;
use narrows_model::finding::evidence::straggler_branch as evidence;
use narrows_model::finding::{Caveat, Confidence, Finding};

use super::StragglerBranch;
use crate::Detector;
use crate::read::Reading;
use crate::read::cpu::Cpu;
use crate::read::intervals::heaviest_steady;
use crate::read::periods::period_of;
use crate::read::programs::{is_store_program, keeps_transactions};
use crate::stats::finite;

/// Calls for each request, of which one may be slower than the others.
const BRANCHES_MIN: f64 = 2.0;
/// Calls under way for each request at work, at least, so that requests wait for the peer nearly all the time.
const UNDER_WAY_MIN: f64 = 0.8;
/// Connections for each user under the lightest load, from which some must be used at once.
const CONNECTIONS_PER_USER_MIN: f64 = 1.5;
/// Factor by which connections must grow to the heaviest load: a pool that is opened in advance stays as it is.
const CONNECTIONS_GROWTH_MIN: f64 = 1.5;
/// Connections opened per call, at most; with more, connections are not kept and their number shows nothing.
const OPENED_SHARE_MAX: f64 = 0.25;

pub(super) fn findings(reading: &Reading<'_>) -> Vec<Finding> {
    let Some(at) = heaviest_steady(reading.intervals) else { return Vec::new() };
    let Some(lightest) = Cpu::new(reading).lightest_below(&reading.intervals[at]) else { return Vec::new() };
    let Some(lightest) = reading.intervals.iter().position(|one| one == lightest) else { return Vec::new() };
    let reached = reading.conversations().reached();
    let is_candidate = |edge: &&CallEdge| {
        let is_store = is_store_program(reading.trial, &edge.callee) || keeps_transactions(reading.trial, &edge.callee);
        let is_of_load = reached.contains(edge.caller.as_str()) && edge.callee != edge.caller;
        is_of_load && edge.callee != NAME_SERVER && !is_store && !reading.has_spans_of(&edge.caller)
    };
    let candidates = reading.conversations().graph.edges.iter().filter(is_candidate);
    candidates.filter_map(|edge| Branches { reading, edge, at, lightest }.finding()).collect()
}

/// Calls of a service to one peer.
struct Branches<'r> {
    reading: &'r Reading<'r>,
    edge: &'r CallEdge,
    /// Places of the heaviest and of the lightest load.
    at: usize,
    lightest: usize,
}

impl Branches<'_> {
    fn finding(&self) -> Option<Finding> {
        let conversations = self.reading.conversations();
        let thresholds = &self.reading.thresholds.straggler_branch;
        let interval = &self.reading.intervals[self.at];
        let level = &self.edge.levels[self.at];
        let at_work = conversations.at_work(&self.edge.caller, self.at)?.middle();
        let served = conversations.taken_on(&self.edge.caller, self.at)?;
        let per_request = level.all.rate / served;
        let at_once = level.all.requests().middle() / at_work;
        let waits_share = 1.0 - self.elsewhere() / at_work;
        let alone_share = 2.0 * waits_share.min(at_once) - at_once;
        let request_ns = at_work / served * 1e9;
        let drag_ns = alone_share * request_ns;
        let is_parallel = !level.is_background && per_request >= BRANCHES_MIN && at_once >= UNDER_WAY_MIN;
        let is_worth_saying =
            alone_share >= thresholds.straggler_drag_share && drag_ns >= thresholds.straggler_socket_drag_ns;
        if !(is_parallel && is_worth_saying && drag_ns.is_finite()) {
            return None;
        }
        let connections_per_user = self.connections_per_user()?;
        let calls = evidence::ParallelCalls {
            per_request: finite(per_request),
            at_once: finite(at_once),
            connections_per_user,
            reading: SocketReading {
                interval: interval.label.clone(),
                load: interval.load_level(),
                waiting: Bounds { low: finite(at_once.min(1.0) * at_work), high: finite(at_once.min(1.0) * at_work) },
                in_flight: finite(interval.in_flight()),
            },
        };
        let peer = self.edge.callee.clone();
        let evidence = evidence::StragglerBranch {
            branch: evidence::Branch::Call { callee: peer.clone(), partition: None, request: None },
            branches: per_request.round() as usize,
            latency_ns: finite(request_ns),
            drag_ns: finite(drag_ns),
            sockets: Some(calls),
            ..evidence::StragglerBranch::default()
        };
        Some(Finding {
            resource: self.edge.caller.clone(),
            cost_share: finite(alone_share.min(1.0) * at_work / interval.in_flight()).min(1.0),
            confidence: Confidence::Low,
            caveats: vec![Caveat::SlowCallNotNamed { peer }, Caveat::NextBranchRemains],
            period: period_of(self.reading.trial, interval.start_ns, interval.end_ns),
            ..Finding::new(evidence, StragglerBranch.version())
        })
    }

    /// Requests at work in the service that neither wait for a peer nor do something unseen.
    fn elsewhere(&self) -> f64 {
        let threads = self.reading.spent().threads.get(self.at).into_iter().flatten();
        let own = threads.filter(|one| one.service == self.edge.caller).flat_map(|one| &one.own);
        let known = own.filter(|part| !matches!(part.what, OwnTime::Network(_) | OwnTime::Unseen));
        known.map(|part| part.requests).sum()
    }

    /// Connections for each user under the lightest load, if some are used at once and none is opened in advance.
    fn connections_per_user(&self) -> Option<f64> {
        let (light, heavy) = (&self.edge.levels[self.lightest].all, &self.edge.levels[self.at].all);
        let users = Some(&self.reading.intervals[self.lightest]).filter(|one| one.offered.is_none())?.vus;
        let each = finite(light.connections / f64::from(users));
        let is_kept = heavy.opened <= OPENED_SHARE_MAX * heavy.rate;
        let is_on_demand = heavy.connections >= CONNECTIONS_GROWTH_MIN * light.connections;
        (users > 0 && each >= CONNECTIONS_PER_USER_MIN && is_kept && is_on_demand).then_some(each)
    }
}
