//! Slow queries of services without spans, as their database reports them.
//!
//! A database counts the executions of a statement and their time, or its sessions are sampled. Under the lightest load, a
//! statement that executes for most of the time of the requests under way is what they wait for. Where executions are not
//! counted, each message to the database counts as one, so that the time of one is a lower bound.

use narrows_model::call_graph::CallEdge;
use narrows_model::finding::evidence::slow_query as evidence;
use narrows_model::finding::evidence::slow_query::QuerySource;
use narrows_model::finding::{Caveat, Confidence, Finding};

use super::SlowQuery;
use crate::Detector;
use crate::exemplars::{TEXT_CHARS_MAX, clipped};
use crate::read::Reading;
use crate::read::cpu::Cpu;
use crate::read::intervals::Interval;
use crate::read::servers::{servers, sessions, statements};
use crate::stats::finite;

/// Sessions that may wait for a lock, at most, as a share of those with the statement; beyond, the lock takes the time.
const WAITING_SHARE_MAX: f64 = 0.5;

pub(super) fn findings(reading: &Reading<'_>) -> Vec<Finding> {
    let steady = || reading.intervals.iter().enumerate().filter(|(_, interval)| interval.is_steady);
    let Some((at, _)) = steady().min_by(|(_, a), (_, b)| a.by_demand(b)) else { return Vec::new() };
    let databases = servers(reading.trial).into_iter();
    let found = databases.filter_map(|server| Database::new(reading, server, at)?.finding(steady().count() > 1));
    found.collect()
}

/// A database that services without spans call, under the lightest load.
struct Database<'r> {
    reading: &'r Reading<'r>,
    /// Name and replica.
    server: (&'r str, u32),
    interval: &'r Interval,
    /// The caller whose requests wait most.
    caller: &'r str,
    /// Messages of all callers per second.
    messages: f64,
}

impl<'r> Database<'r> {
    /// `None` if no request of the load reaches it, or spans show its callers.
    fn new(reading: &'r Reading<'r>, server: (&'r str, u32), at: usize) -> Option<Self> {
        let conversations = reading.conversations();
        let reached = conversations.reached();
        let callers = || conversations.graph.to(server.0).filter(|edge| reached.contains(edge.caller.as_str()));
        let waiting = |edge: &CallEdge| edge.levels[at].all.requests().middle();
        let most = callers().max_by(|a, b| waiting(a).total_cmp(&waiting(b)))?;
        let messages = callers().map(|edge| edge.levels[at].all.rate).sum();
        let has_spans = callers().any(|edge| reading.has_spans_of(&edge.caller));
        let interval = &reading.intervals[at];
        (!has_spans).then_some(Self { reading, server, interval, caller: &most.caller, messages })
    }

    fn finding(&self, has_heavier_loads: bool) -> Option<Finding> {
        let thresholds = &self.reading.thresholds.slow_query;
        let all = statements(self.reading.trial, self.server.0, self.interval);
        let statement = all.into_iter().max_by(|a, b| a.sessions.total_cmp(&b.sessions))?;
        let calls = statement.calls.unwrap_or(self.messages);
        let share = (statement.sessions / self.interval.in_flight()).min(1.0);
        let each = calls / self.interval.rate;
        let query_ns = statement.sessions / calls * 1e9;
        let is_often = calls * self.interval.seconds() >= thresholds.slow_query_traces as f64;
        let is_few = statement.calls.is_none() || each <= thresholds.slow_query_times;
        let is_slow = query_ns.is_finite() && query_ns >= thresholds.slow_query_ns;
        if !(is_often && is_few && is_slow)
            || share < thresholds.slow_query_share
            || self.waits_for_lock(statement.sessions)
        {
            return None;
        }
        let database = self.server.0;
        let busy = Cpu::new(self.reading).busy_share(database, self.interval);
        let text = clipped(statement.text, TEXT_CHARS_MAX);
        let source = if statement.calls.is_some() { QuerySource::Counts } else { QuerySource::Samples };
        let evidence = evidence::SlowQuery {
            service: self.caller.to_owned(),
            shape: text.clone(),
            query: text,
            source,
            query_ns: finite(query_ns),
            queries_per_request: finite(each),
            rows: None,
            load: Some(self.interval.load_level()),
            is_lightest_load: has_heavier_loads,
            database_cpu_share: busy.map(finite),
            others: Vec::new(),
        };
        let is_sure = source == QuerySource::Counts && busy.is_some();
        Some(Finding {
            resource: database.to_owned(),
            cost_share: finite(share),
            confidence: if is_sure { Confidence::High } else { Confidence::Medium },
            caveats: busy
                .is_none()
                .then(|| Caveat::DatabaseCpuNotSampled { database: database.to_owned() })
                .into_iter()
                .collect(),
            ..Finding::new(evidence, SlowQuery.version())
        })
    }

    /// True if locks explain most of the sessions with a statement.
    fn waits_for_lock(&self, executing: f64) -> bool {
        let all = sessions(self.reading.trial, self.server, self.interval);
        all.is_some_and(|all| all.waiting > WAITING_SHARE_MAX * executing)
    }
}
