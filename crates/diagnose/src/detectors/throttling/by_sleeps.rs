//! Refused calls of a service without spans, as its threads and sockets show them.
//!
//! A fixed sleep is equally long under each load. If the sleep of a request grows with the load and throughput does not, the
//! program waits until a rate limit lets it continue. If requests also call one peer more than once and quickly, that peer's
//! rate is the limit. Sockets show no status.
//!
//! Programs whose threads do not sleep with their requests (Node.js, Go, async Rust) show nothing of this.

use narrows_model::breakdown::OwnTime;
use narrows_model::call_graph::{Bounds, CallEdge, NAME_SERVER};
use narrows_model::finding::evidence::sockets::SocketReading;
use narrows_model::finding::evidence::throttling as evidence;
use narrows_model::finding::{Caveat, Confidence, Finding};

use super::Throttling;
use crate::Detector;
use crate::read::Reading;
use crate::read::cpu::Cpu;
use crate::read::intervals::heaviest_steady;
use crate::read::periods::period_of;
use crate::stats::finite;

/// Share of the requests at work that may wait for the peer, at most; beyond, its calls are slow and not refused.
const CALLING_SHARE_MAX: f64 = 0.5;

pub(super) fn findings(reading: &Reading<'_>) -> Vec<Finding> {
    let Some(at) = heaviest_steady(reading.intervals) else { return Vec::new() };
    let mut reached: Vec<&str> = reading.conversations().reached().into_iter().collect();
    reached.sort_unstable();
    let callers = reached.into_iter().filter(|caller| !reading.has_spans_of(caller));
    callers.filter_map(|caller| Sleeper { reading, caller, at }.finding()).collect()
}

/// A service under the heaviest load.
struct Sleeper<'r> {
    reading: &'r Reading<'r>,
    caller: &'r str,
    at: usize,
}

impl<'r> Sleeper<'r> {
    fn finding(&self) -> Option<Finding> {
        let thresholds = &self.reading.thresholds.throttling;
        let interval = &self.reading.intervals[self.at];
        let at_work = self.reading.conversations().at_work(self.caller, self.at)?.middle();
        let sleeping = self.sleeping(self.at)?;
        if sleeping <= 0.0 || sleeping < thresholds.throttled_sleep_share * at_work {
            return None;
        }
        let cpu = Cpu::new(self.reading);
        cpu.proof(self.at)?;
        let lightest = cpu.lightest_below(interval)?;
        let lightest = self.reading.intervals.iter().position(|one| one == lightest)?;
        let (sleep_ns, lighter_sleep_ns) = (self.sleep_ns(self.at)?, self.sleep_ns(lightest)?);
        if sleep_ns < thresholds.throttled_sleep_growth * lighter_sleep_ns {
            return None;
        }
        let (edge, calls_per_request) = self.repeated(at_work)?;
        let evidence = evidence::SleepsBetweenCalls {
            caller: self.caller.to_owned(),
            calls_per_request,
            call_ns: edge.levels[self.at].all.wait_ns().map_or(0.0, |wait| finite(wait.middle())),
            sleep_ns,
            lighter_sleep_ns,
            reading: SocketReading {
                interval: interval.label.clone(),
                load: interval.load_level(),
                waiting: Bounds { low: finite(sleeping), high: finite(sleeping) },
                in_flight: finite(interval.in_flight()),
            },
        };
        let share = finite(evidence.reading.share());
        let evidence =
            evidence::Throttling { wait_share: share, sleeps: Some(evidence), ..evidence::Throttling::default() };
        Some(Finding {
            resource: edge.callee.clone(),
            cost_share: share,
            confidence: Confidence::Medium,
            caveats: vec![Caveat::StatusNotInSockets { peer: edge.callee.clone(), caller: self.caller.to_owned() }],
            period: period_of(self.reading.trial, interval.start_ns, interval.end_ns),
            ..Finding::new(evidence, Throttling.version())
        })
    }

    /// Requests that sleep; `None` if the threads were not sampled.
    fn sleeping(&self, at: usize) -> Option<f64> {
        let threads = self.reading.spent().threads.get(at)?.iter().find(|one| one.service == self.caller)?;
        Some(threads.own.iter().filter(|part| part.what == OwnTime::Sleep).map(|part| part.requests).sum())
    }

    /// Sleep of a request, mean; `None` if the service takes none on.
    fn sleep_ns(&self, at: usize) -> Option<f64> {
        let rate = self.taken_on(at);
        (rate > 0.0).then_some(finite(self.sleeping(at)? / rate * 1e9))
    }

    /// Requests per second. Sockets may miss short connections of the load, whose rate is known.
    fn taken_on(&self, at: usize) -> f64 {
        self.reading.conversations().taken_on(self.caller, at).unwrap_or(self.reading.intervals[at].rate)
    }

    /// The peer that each request calls most often, and how often, if it is called again and is quick.
    fn repeated(&self, at_work: f64) -> Option<(&'r CallEdge, f64)> {
        let edges = self.reading.conversations().graph.from(self.caller);
        let peers = edges.filter(|edge| edge.callee != self.caller && edge.callee != NAME_SERVER);
        let edge = peers.max_by(|a, b| a.levels[self.at].all.rate.total_cmp(&b.levels[self.at].all.rate))?;
        let calls = &edge.levels[self.at].all;
        let each = finite(calls.rate / self.taken_on(self.at));
        let is_quick = calls.requests().middle() <= CALLING_SHARE_MAX * at_work;
        (is_quick && each >= self.reading.thresholds.throttling.throttled_calls).then_some((edge, each))
    }
}
