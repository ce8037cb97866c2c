//! Delayed acknowledgements without spans.
//!
//! A request that takes a program 40 ms or more is acknowledged after 40 ms, by the delay of the service's own kernel. If
//! requests on kept connections are acknowledged at once, the first part of the response came at once too; if their
//! responses nevertheless take a little more than 40 ms under each load, the rest waited for the client's acknowledgement:
//! or for something else that the program does between two parts of a response, which its threads and calls would show.

use std::ops::RangeInclusive;

use narrows_model::breakdown::OwnTime;
use narrows_model::call_graph::{CallEdge, CallFigures};
use narrows_model::finding::evidence::time_outside_spans::{self as evidence, EndToEnd, GapPattern};
use narrows_model::finding::{Confidence, Finding};
use narrows_model::run::Verdict;
use narrows_model::series::names;

use super::{TimeOutsideSpans, is_cpu_known};
use crate::Detector;
use crate::read::Reading;
use crate::read::intervals::Interval;
use crate::stats::finite;

/// Range of the median time to the end of such a response, nanoseconds: the delay, ticks of the kernel's clock and the
/// service's own time.
const RESPONSE_NS: RangeInclusive<f64> = 40e6..=50e6;
/// The delay itself.
const DELAY_NS: f64 = 40e6;
/// Mean time to the acknowledgement of a request, nanoseconds, at most.
const ACKNOWLEDGED_NS_MAX: f64 = 5e6;
/// Bytes of a response, mean, at most: more than ten segments are not sent at once anyway.
const RESPONSE_BYTES_MAX: f64 = 14_000.0;
/// Connections opened per request, at most: on a new one, the kernel acknowledges at once.
const OPENED_SHARE_MAX: f64 = 0.1;

/// Share of the requests in flight that the service may work on or wait with, by its threads and sockets.
const WAITING_SHARE_MAX: f64 = 0.3;

/// A load under which responses are delayed.
struct Delayed<'a> {
    interval: &'a Interval,
    /// Median time from a request's send to the end of its response, nanoseconds.
    median_ns: f64,
    /// Mean time to the acknowledgement of a request, nanoseconds.
    acknowledged_ns: f64,
}

/// The finding for the service that the load calls; `None` if it calls several, or responses are not delayed.
pub(super) fn delayed_acknowledgement(detector: &TimeOutsideSpans, reading: &Reading<'_>) -> Option<Finding> {
    let graph = &reading.conversations().graph;
    let is_used = |edge: &&CallEdge| edge.levels.iter().any(|level| level.all.rate > 0.0);
    let mut called = graph.from(names::GENERATOR).filter(is_used);
    let edge = called.next().filter(|_| called.next().is_none())?;
    let load = reading.trial.counted_load();
    let response_bytes = load.bytes as f64 / load.succeeded as f64;
    if reading.trial.trial.validity.verdict == Verdict::Invalid || response_bytes > RESPONSE_BYTES_MAX {
        return None;
    }
    let read = reading.intervals.iter().enumerate().filter(|(_, interval)| interval.is_steady);
    let mut read: Vec<Delayed<'_>> =
        read.map(|(at, interval)| delayed(reading, edge, at, interval)).collect::<Option<_>>()?;
    read.sort_by(|a, b| a.interval.by_demand(b.interval));
    let (lightest, heaviest) = (read.first()?, read.last()?);
    let has_other = lightest.interval.by_demand(heaviest.interval).is_lt();
    let end_to_end = |one: &Delayed<'_>| EndToEnd {
        load: one.interval.load_level(),
        client_ns: finite(one.median_ns),
        span_ns: finite(one.median_ns - DELAY_NS),
    };
    let evidence = evidence::TimeOutsideSpans {
        heaviest: end_to_end(heaviest),
        lightest: has_other.then(|| end_to_end(lightest)),
        pattern: GapPattern::DelayedAcknowledgement,
        in_front: Vec::new(),
        response_bytes: finite(response_bytes),
        cpu_unknown: !read.iter().all(|one| is_cpu_known(reading, &edge.callee, one.interval)),
        acknowledged_ns: Some(finite(heaviest.acknowledged_ns)),
    };
    Some(Finding {
        resource: edge.callee.clone(),
        cost_share: finite(DELAY_NS / heaviest.median_ns).min(1.0),
        confidence: if has_other { Confidence::High } else { Confidence::Medium },
        ..Finding::new(evidence, detector.version())
    })
}

/// `None` if the responses of an interval are not delayed, or its sockets do not show it.
fn delayed<'a>(reading: &Reading<'_>, edge: &CallEdge, at: usize, interval: &'a Interval) -> Option<Delayed<'a>> {
    let CallFigures { rate, opened, busy, .. } = edge.levels[at].all;
    let median_ns = reading.trial.load_between(interval.start_ns, interval.end_ns).service.quantile_ns(0.5) as f64;
    let acknowledged_ns = busy / rate * 1e9;
    let is_kept = rate > 0.0 && opened <= OPENED_SHARE_MAX * rate;
    let is_delayed = RESPONSE_NS.contains(&median_ns) && acknowledged_ns <= ACKNOWLEDGED_NS_MAX;
    let is_idle = waiting(reading, &edge.callee, at) <= WAITING_SHARE_MAX * interval.in_flight();
    (is_kept && is_delayed && is_idle).then_some(Delayed { interval, median_ns, acknowledged_ns })
}

/// Requests that a service works on or that wait for something known, a mean.
fn waiting(reading: &Reading<'_>, service: &str, at: usize) -> f64 {
    let threads = reading.spent().threads.get(at).into_iter().flatten().filter(|threads| threads.service == service);
    let is_known = |what: &OwnTime| !matches!(what, OwnTime::Unseen | OwnTime::NotSampled);
    threads.flat_map(|threads| &threads.own).filter(|part| is_known(&part.what)).map(|part| part.requests).sum()
}
