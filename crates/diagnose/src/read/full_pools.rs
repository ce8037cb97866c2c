//! Connections that a service keeps to a peer, all in use while more requests wait for one.
//!
//! A pool shows in the sockets as a number of connections that stays the same from load to load. It is full when as many
//! requests as that are past it: on these connections or, where a connection is held meanwhile, at other peers and at
//! work in the service. What the service has taken on beyond these waits in front. Several requests at once on one
//! connection make calls appear shorter under more load; then there is no pool. Where threads make the calls, each with
//! its own connection, a small number of threads looks the same; but then there are no others that wait.
//!
//! A request that makes several calls at once waits for a connection while it has others. Such requests are not counted
//! by the calls under way, but by their time: of what a request takes beyond that under the lightest load, all but one
//! call is a wait in front.

use narrows_model::call_graph::{Bounds, CallEdge, CallFigures};
use narrows_model::evidence::TrialEvidence;
use narrows_model::series::{ThreadState, names};

use crate::read::Reading;
use crate::read::conversations::Conversations;
use crate::read::intervals::Interval;
use crate::read::programs::{keeps_transactions, runs_java};
use crate::read::threads::mean;
use crate::stats::median;

/// Connections opened per request from which there is no pool.
const OPENED_SHARE_MAX: f64 = 0.1;
/// Share of the connections by which their number may differ under another load, and connections that are none.
const SAME_SHARE: f64 = 0.1;
const SAME_CONNECTIONS: f64 = 0.25;
/// Requests past the pool, as a share of its connections, from which it is full.
const FULL_SHARE: f64 = 0.85;
/// Share of the connections that must have a request outstanding; with fewer, they are held for something else.
const BUSY_SHARE: f64 = 0.5;
/// Requests past the pool for connections that are held, as a share of these, at most.
const HELD_SHARE_MAX: f64 = 1.25;
/// Share of the wait under lighter loads, their median, that each call must still have. With less, calls share connections.
const SAME_WAIT_SHARE: f64 = 0.7;
/// Calls under way for each request at work from which requests make several at once: more than the error of samples.
pub(crate) const ONE_AT_A_TIME_MAX: f64 = 1.1;
/// Requests that must wait in front.
const WAITING_MIN: f64 = 1.0;
/// Share of the requests by which those in front must exceed those elsewhere in the service under the lightest load.
const IN_FRONT_SHARE_MIN: f64 = 0.15;

/// Threads that wait at sockets, as a share of the requests at peers, from which threads make the calls.
const CALLING_SHARE: f64 = 0.5;
/// Threads that wait, as a share of the requests in front, that there must be where threads make the calls.
const THREADS_SHARE: f64 = 0.5;
/// Threads of Java's virtual machine itself that wait for work: those of its compilers, its collectors and its clean-up.
const JAVA_THREADS: f64 = 18.0;

/// Threads of a service that wait for work of its virtual machine.
pub(crate) fn virtual_machine_threads(trial: &TrialEvidence, service: &str) -> f64 {
    if runs_java(trial, service) { JAVA_THREADS } else { 0.0 }
}

/// Such connections in an interval.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FullPool {
    /// The peer that they go to.
    pub(crate) peer: String,
    pub(crate) connections: f64,
    /// Of these, connections with a request outstanding.
    pub(crate) in_use: f64,
    /// Calls that each request makes over them, several at once; `None` if it makes one at a time.
    pub(crate) calls_at_once: Option<f64>,
    /// Other peer that most requests past the pool wait for; `None` if that is the peer itself.
    pub(crate) held_for: Option<String>,
    /// Requests that wait in front of it.
    pub(crate) waiting: Bounds,
    /// Requests that the service has taken on.
    pub(crate) at_work: Bounds,
    /// Loads under which their number was the same, this one included.
    pub(crate) loads: usize,
}

impl FullPool {
    /// Of a service in an interval, by its place among all; the one with most requests in front. Connections that are held
    /// for other calls come first: those that carry these calls are as many because of them.
    pub(crate) fn of(reading: &Reading<'_>, service: &str, at: usize) -> Option<Self> {
        let conversations = reading.conversations();
        reading.intervals.get(at).filter(|interval| interval.is_level)?;
        let (at_work, behind) = (conversations.at_work(service, at)?, conversations.behind(service, at));
        let inside = inside(reading, service, at);
        let service = Service { reading, conversations, name: service, at, at_work, inside, behind };
        let pools = conversations.graph.from(service.name).filter_map(|edge| service.pool(edge));
        pools.max_by(|a, b| {
            let key = |pool: &FullPool| (pool.held_for.is_some(), pool.waiting.middle());
            key(a).partial_cmp(&key(b)).unwrap_or(std::cmp::Ordering::Equal)
        })
    }
}

/// Requests of a service at its peers and computing.
fn inside(reading: &Reading<'_>, service: &str, at: usize) -> Bounds {
    let behind = reading.conversations().behind(service, at);
    let computing = computing(reading, service, &reading.intervals[at]);
    Bounds {
        low: behind.iter().map(|(_, requests)| requests.low).sum(),
        high: behind.iter().map(|(_, requests)| requests.high).sum::<f64>() + computing,
    }
}

/// Threads of a service that compute or wait for a processor.
fn computing(reading: &Reading<'_>, service: &str, interval: &Interval) -> f64 {
    let of = |name: &str| mean(reading.trial, interval, |key| key.name == name && key.service == service);
    of(names::CPU_CORES).unwrap_or(0.0) + of(names::CPU_WAIT).unwrap_or(0.0)
}

/// A service under one load.
struct Service<'r> {
    reading: &'r Reading<'r>,
    conversations: &'r Conversations,
    name: &'r str,
    at: usize,
    at_work: Bounds,
    /// Requests at its peers and computing.
    inside: Bounds,
    behind: Vec<(&'r str, Bounds)>,
}

impl Service<'_> {
    fn pool(&self, edge: &CallEdge) -> Option<FullPool> {
        let calls = &edge.levels[self.at].all;
        let connections = calls.connections - calls.one_way;
        let busy = calls.requests();
        let is_kept = connections >= 1.0 - SAME_SHARE && calls.opened <= OPENED_SHARE_MAX * calls.rate;
        let loads = self.loads_with(edge, connections)?;
        let is_at_once = busy.middle() > ONE_AT_A_TIME_MAX * self.at_work.middle();
        if is_at_once && !edge.levels[self.at].is_background {
            return self.pool_of_calls_at_once(edge, connections, loads).filter(|_| is_kept);
        }
        let is_full = self.inside.high >= FULL_SHARE * connections;
        if !is_kept || !is_full {
            return None;
        }
        let elsewhere = self.inside.high - busy.high;
        let (held_for, past) = if busy.high >= BUSY_SHARE * connections {
            (None, connections + elsewhere)
        } else {
            let is_held = loads > 1 && self.inside.low <= HELD_SHARE_MAX * connections;
            let other = self.behind.iter().find(|(peer, _)| *peer != edge.callee).map(|(peer, _)| (*peer).to_owned());
            let other = other.filter(|_| is_held && keeps_transactions(self.reading.trial, &edge.callee))?;
            (Some(other), connections.max(self.inside.high))
        };
        let waiting =
            Bounds { low: (self.at_work.low - past).max(0.0), high: (self.at_work.high - connections).max(0.0) };
        let is_shared = held_for.is_none() && self.shares_connections(edge, connections);
        let is_capped = self.has_more_in_front(waiting);
        let is_found = waiting.middle() >= WAITING_MIN && is_capped && !is_shared && self.has_threads_for(waiting);
        is_found.then(|| FullPool {
            peer: edge.callee.clone(),
            connections,
            in_use: busy.middle().min(connections),
            calls_at_once: None,
            held_for,
            waiting,
            at_work: self.at_work,
            loads,
        })
    }

    /// The pool where each request makes several calls at once: all connections are in use, and as many under another
    /// load.
    fn pool_of_calls_at_once(&self, edge: &CallEdge, connections: f64, loads: usize) -> Option<FullPool> {
        let calls = &edge.levels[self.at].all;
        let in_use = calls.requests().high + calls.unread;
        let is_full = loads > 1 && in_use >= FULL_SHARE * connections;
        let is_shared = self.shares_connections(edge, connections);
        let waiting = self.in_front_of_calls_at_once(edge).filter(|_| is_full && !is_shared)?;
        let is_much = waiting.low >= WAITING_MIN.max(IN_FRONT_SHARE_MIN * self.at_work.middle());
        is_much.then(|| FullPool {
            peer: edge.callee.clone(),
            connections,
            in_use: in_use.min(connections),
            calls_at_once: self.conversations.taken_on(self.name, self.at).map(|served| calls.rate / served),
            held_for: None,
            waiting,
            at_work: self.at_work,
            loads,
        })
    }

    /// Requests that wait in front where each makes several calls at once. At least one call is no wait, nor, for the lower
    /// bound, is the time that a request spends without a call under the lightest load.
    fn in_front_of_calls_at_once(&self, edge: &CallEdge) -> Option<Bounds> {
        let lightest = self.lightest_below()?;
        let calling = |at: usize| {
            let (served, wait_ns) = (self.conversations.taken_on(self.name, at)?, edge.levels[at].all.wait_ns()?);
            Some((served, served * wait_ns.middle() / 1e9))
        };
        let ((few, calling_few), (served, calling)) = (calling(lightest)?, calling(self.at)?);
        let without_call = (self.conversations.at_work(self.name, lightest)?.middle() - calling_few).max(0.0);
        Some(Bounds {
            low: (self.at_work.low - calling - without_call / few * served).max(0.0),
            high: (self.at_work.high - calling).max(0.0),
        })
    }

    /// The level with the least load, by its place; `None` if this load is no heavier.
    fn lightest_below(&self) -> Option<usize> {
        let here = &self.reading.intervals[self.at];
        let all = self.reading.intervals.iter().enumerate();
        let lighter = all.filter(|(_, interval)| interval.is_level && interval.by_demand(here).is_lt());
        lighter.min_by(|(_, a), (_, b)| a.by_demand(b)).map(|(at, _)| at)
    }

    /// False if threads make the calls, and fewer than the requests in front wait: these wait for a thread.
    fn has_threads_for(&self, waiting: Bounds) -> bool {
        let interval = &self.reading.intervals[self.at];
        let in_state = |state: ThreadState| {
            let threads = mean(self.reading.trial, interval, |key| {
                let is_of_service = key.name == names::THREAD_STATES && key.service == self.name;
                is_of_service && key.labels.get(names::THREAD_STATE).is_some_and(|label| label == state.as_str())
            });
            threads.unwrap_or(0.0)
        };
        let at_peers: f64 = self.behind.iter().map(|(_, requests)| requests.middle()).sum();
        let own = virtual_machine_threads(self.reading.trial, self.name);
        let waiting_threads = in_state(ThreadState::Lock) + in_state(ThreadState::Sleep) - own;
        in_state(ThreadState::Network) < CALLING_SHARE * at_peers || waiting_threads >= THREADS_SHARE * waiting.middle()
    }

    /// True if a larger share of the requests waits than is elsewhere in the service under the lightest load, as requests
    /// that sleep are.
    fn has_more_in_front(&self, waiting: Bounds) -> bool {
        let elsewhere = self.lightest_below().and_then(|at| {
            let at_work = self.conversations.at_work(self.name, at)?.middle();
            Some((1.0 - inside(self.reading, self.name, at).middle() / at_work).max(0.0)).filter(|_| at_work > 0.0)
        });
        elsewhere.is_some_and(|share| waiting.middle() / self.at_work.middle() >= share + IN_FRONT_SHARE_MIN)
    }

    /// Number of loads with so many connections; `None` if one with enough requests to need them has another number. A
    /// request needs as many as it makes calls at once, at least.
    fn loads_with(&self, edge: &CallEdge, connections: f64) -> Option<usize> {
        let needs_them = |at: &usize| {
            let at_work = self.conversations.at_work(self.name, *at).map_or(0.0, |requests| requests.low);
            let needed = at_work.max(edge.levels[*at].all.requests().low);
            self.reading.intervals[*at].is_level && needed >= connections
        };
        let open = |at: usize| edge.levels[at].all.connections - edge.levels[at].all.one_way;
        let is_same = |at: usize| (open(at) - connections).abs() <= SAME_SHARE * connections + SAME_CONNECTIONS;
        let mut loads = (0..edge.levels.len()).filter(needs_them);
        let levels = (0..edge.levels.len()).filter(|at| self.reading.intervals[*at].is_level);
        loads.all(is_same).then(|| levels.filter(|at| is_same(*at)).count())
    }

    /// True if calls take less under this load than under lighter ones, or if that is not known of a single connection.
    fn shares_connections(&self, edge: &CallEdge, connections: f64) -> bool {
        let wait_ns = |calls: &CallFigures| calls.wait_ns().map(Bounds::middle).filter(|wait_ns| *wait_ns > 0.0);
        let here = &self.reading.intervals[self.at];
        let levels = self.reading.intervals.iter().zip(&edge.levels);
        let lighter = levels.filter(|(interval, _)| interval.is_level && interval.by_demand(here).is_lt());
        // The median: the wait under a lone user rests on few samples.
        let lighter = median(lighter.filter_map(|(_, level)| wait_ns(&level.all)).collect());
        match (lighter, wait_ns(&edge.levels[self.at].all)) {
            (Some(lighter), Some(now)) => now < SAME_WAIT_SHARE * lighter,
            _ => connections < 2.0 - SAME_SHARE,
        }
    }
}

#[cfg(test)]
mod tests;
