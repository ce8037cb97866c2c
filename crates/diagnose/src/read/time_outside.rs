//! Time that users wait and that no span of their request covers: before the first begins, or after the last ends.
//!
//! Only a load of a single request tells, for then its latency and that of the operation are the same thing. Durations
//! are compared with durations, so clocks need not agree. The counts over all spans are exact where they show as many
//! requests as there were responses; without them the traces say roughly how long an operation takes.

use narrows_model::operation::{OperationEvidence, OperationSecond};
use narrows_model::trace::{Span, SpanKind, Trace};

use crate::read::Reading;
use crate::read::intervals::Interval;
use crate::read::requests::operation_of;
use crate::stats::median;

/// How far the number of spans may be from the number of responses, as a share of these: requests under way at either
/// end of an interval count in one of them only.
const COUNT_TOLERANCE: f64 = 0.1;

/// The operation that every request of the load arrives at, counted over all spans.
#[derive(Debug)]
pub(crate) struct Front<'a> {
    pub(crate) counted: &'a OperationEvidence,
    /// Its name as findings give it: method and route.
    pub(crate) operation: String,
    /// Traces that begin with it, in order of time.
    pub(crate) traces: Vec<&'a Trace>,
    /// Spans that each of those stands for, from 1; the median.
    weight: f64,
}

/// One interval, timed at both ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outside<'a> {
    pub(crate) interval: &'a Interval,
    /// From a request's send to its response, mean, nanoseconds.
    pub(crate) client_ns: f64,
    /// From the start to the end of the first span, mean, nanoseconds.
    pub(crate) span_ns: f64,
}

impl Outside<'_> {
    /// Mean time that no span covers, nanoseconds, at least 0.
    pub(crate) fn gap_ns(&self) -> f64 {
        (self.client_ns - self.span_ns).max(0.0)
    }

    /// The same as a share of the time that the user waits, 0 to 1.
    pub(crate) fn share(&self) -> f64 {
        if self.client_ns > 0.0 { self.gap_ns() / self.client_ns } else { 0.0 }
    }
}

/// True if the load consists of one request, over and over.
fn is_single(reading: &Reading<'_>) -> bool {
    reading.trial.requests_of_load().len() == 1
}

/// The operation where the load's requests arrive; `None` if the load has several requests or spans are not counted.
pub(crate) fn front<'a>(reading: &Reading<'a>) -> Option<Front<'a>> {
    if !is_single(reading) {
        return None;
    }
    let trial = reading.trial;
    let is_of = |root: &Span, one: &OperationEvidence| {
        root.kind == SpanKind::Server
            && root.service == one.service
            && (root.name == one.name || operation_of(root) == one.name)
    };
    let of = |counted: &'a OperationEvidence| {
        let begins = |trace: &&Trace| trace.root().is_some_and(|root| is_of(root, counted));
        let traces: Vec<&Trace> = trial.traces.iter().filter(begins).collect();
        let root = traces.first().and_then(|trace| trace.root())?;
        let weights = traces.iter().filter_map(|trace| Some(trace.root()?.weight)).collect();
        let weight = median(weights).unwrap_or(1.0).max(1.0);
        Some(Front { counted, operation: operation_of(root), traces, weight })
    };
    let fronts = trial.operations.iter().filter_map(of);
    fronts.max_by(|a, b| a.counted.completed.total_cmp(&b.counted.completed))
}

impl Front<'_> {
    /// An interval at both ends; `None` if the spans are too few, or not those of the responses.
    pub(crate) fn at<'i>(&self, interval: &'i Interval, requests_min: f64) -> Option<Outside<'i>> {
        let is_in = |second: &&OperationSecond| interval.contains(second.start_ns + 500_000_000);
        let (mut completed, mut sum_ns) = (0.0, 0.0);
        for second in self.counted.seconds.iter().filter(is_in) {
            completed += second.completed;
            sum_ns += second.duration_sum_ns;
        }
        let responses = interval.rate * interval.seconds();
        let are_those = (completed - responses).abs() <= COUNT_TOLERANCE * responses;
        let are_enough = completed / self.weight >= requests_min;
        let is_known = completed > 0.0 && interval.service_ns > 0.0 && are_those && are_enough;
        is_known.then(|| Outside { interval, client_ns: interval.service_ns, span_ns: sum_ns / completed })
    }
}

/// The share of the users' wait that no span covers, by the counts over all spans or, without them, by this mean time
/// of the operation over the whole trial, nanoseconds; `None` if the load has several requests.
pub(crate) fn share(reading: &Reading<'_>, mean_ns: f64, at: &Interval) -> Option<f64> {
    let counted = front(reading).and_then(|front| front.at(at, 1.0)).map(|outside| outside.span_ns);
    let share = 1.0 - counted.unwrap_or(mean_ns) / at.service_ns;
    (is_single(reading) && share.is_finite()).then_some(share)
}
