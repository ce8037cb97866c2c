//! Services that few requests reach, judged by each of their calls: over all requests, most of which do not call them, even
//! a call that takes a hundred times as long may be lost in the noise.
//!
//! Certainty is that of the mean logarithm of a service's own time in its calls. With few calls a standard error is itself
//! uncertain, so that the number of standard errors is reduced to the number of a normal distribution that is as unlikely
//! (the root of the likelihood ratio of Student's t), and calls are taken to vary by 15 % at least.
//!
//! A part of the calls that take many times as long, as with a smaller CPU limit, makes the times after vary more than
//! before, and their mean uncertain. That they are as before is refuted all the same: the standard error is also
//! estimated as if calls varied after as they did before, with what bursts add.

use narrows_model::diff::{ServiceDiff, ServiceRole};
use narrows_model::finding::Confidence;

use super::change::{Comparison, ERRORS_MIN, ERRORS_SURE};
use super::parts::Visits;
use super::values::Values;
use crate::thresholds::Thresholds;

/// Calls of each side.
const CALLS_MIN: f64 = 5.0;
/// Times as long as before.
const RATIO_MIN: f64 = 1.5;
/// Least standard deviation of the logarithm of a call's time.
const DEVIATION_MIN: f64 = 0.15;

/// The calls of a service on both sides.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PerCall {
    /// Share of the requests that reach it.
    pub(super) reached: (f64, f64),
    /// Its own time in each call, mean, nanoseconds.
    pub(super) call_ns: (f64, f64),
    /// Calls, as many as would be as certain if all had the same weight.
    calls: (f64, f64),
    /// Mean growth of the logarithm of the service's time in a call.
    growth: f64,
    squared_error: f64,
    /// The same if calls vary after as before.
    squared_error_as_before: f64,
    /// Calls for each request that reaches it.
    each: f64,
    /// Mean latency of the requests that reach it on the slower side, nanoseconds.
    latency_ns: f64,
}

impl PerCall {
    /// `None` if the service is not called on both sides by the same operation.
    pub(super) fn of(comparison: &Comparison, service: &str) -> Option<Self> {
        let mut sum = Self::default();
        let (mut calls, mut requests, mut latencies) = (0.0, 0.0, (0.0, 0.0));
        for (before, after, share) in &comparison.operations {
            let reached = |visits: &Visits, all: f64| share * visits.latency.weight / all;
            let (old, new) = (before.visits.get(service), after.visits.get(service));
            sum.reached.0 += old.map_or(0.0, |visits| reached(visits, before.latency.weight));
            sum.reached.1 += new.map_or(0.0, |visits| reached(visits, after.latency.weight));
            let Some((old, new)) = old.zip(new) else { continue };
            if old.logarithms.weight <= 0.0 || new.logarithms.weight <= 0.0 {
                continue;
            }
            let weight = share * new.logarithms.weight / after.latency.weight;
            let ((was, was_error), (is, is_error)) = (old.logarithms.mean(), new.logarithms.mean());
            sum.growth += weight * (is - was);
            sum.squared_error += weight * weight * (was_error + is_error);
            sum.squared_error_as_before += weight * weight * squared_error_as_before(&old.logarithms, &new.logarithms);
            sum.call_ns.0 += weight * old.times.mean().0;
            sum.call_ns.1 += weight * new.times.mean().0;
            sum.calls.0 += old.logarithms.count();
            sum.calls.1 += new.logarithms.count();
            let reaching = reached(new, after.latency.weight);
            latencies.0 += reaching * old.latency.mean().0;
            latencies.1 += reaching * new.latency.mean().0;
            calls += weight;
            requests += reaching;
        }
        (calls > 0.0).then(|| Self {
            call_ns: (sum.call_ns.0 / calls, sum.call_ns.1 / calls),
            growth: sum.growth / calls,
            squared_error: sum.squared_error / (calls * calls),
            squared_error_as_before: sum.squared_error_as_before / (calls * calls),
            each: calls / requests,
            latency_ns: latencies.0.max(latencies.1) / requests,
            ..sum
        })
    }

    /// The growth in standard errors of a normal distribution.
    fn errors(&self) -> f64 {
        let (before, after) = self.calls;
        let least = DEVIATION_MIN * DEVIATION_MIN * (1.0 / before + 1.0 / after);
        let errors = |squared_error: f64, degrees: f64| {
            let errors = self.growth / squared_error.max(least).sqrt();
            (degrees * (1.0 + errors * errors / degrees).ln()).sqrt().copysign(errors)
        };
        let as_before = errors(self.squared_error_as_before, (before - 1.0).max(1.0));
        errors(self.squared_error, (before + after - 2.0).max(1.0)).max(as_before)
    }

    /// Share that the growth has in the latency of the requests that reach the service.
    fn latency_share(&self) -> f64 {
        (self.call_ns.1 - self.call_ns.0) * self.each / self.latency_ns.max(1.0)
    }

    fn is_slower(&self, comparison: &Comparison, thresholds: &Thresholds) -> bool {
        self.calls.0.min(self.calls.1) >= CALLS_MIN
            && self.growth >= comparison.between_trials.max(RATIO_MIN.ln())
            && self.errors() >= ERRORS_MIN
            && self.latency_share() >= thresholds.culprit_share
    }
}

/// Squared standard error of the growth of a mean, if values vary after as they did before.
fn squared_error_as_before(before: &Values, after: &Values) -> f64 {
    let counts = 1.0 / before.count().max(1.0) + 1.0 / after.count().max(1.0);
    before.variance() * counts + before.squared_error_of_time() + after.squared_error_of_time()
}

/// Names services that became slower for the requests that reach them.
pub(super) fn judge(services: &mut [ServiceDiff], comparison: &Comparison, thresholds: &Thresholds) {
    let is_open = |one: &&mut ServiceDiff| matches!(one.role, ServiceRole::Unchanged | ServiceRole::Waiting);
    for service in services.iter_mut().filter(is_open) {
        let Some(calls) = PerCall::of(comparison, &service.service) else { continue };
        if calls.is_slower(comparison, thresholds) && !comparison.is_of_other_kind(&service.service) {
            service.role = ServiceRole::Slower;
            let is_sure = calls.errors() >= ERRORS_SURE;
            service.confidence = if is_sure { Confidence::High } else { Confidence::Medium };
            service.change_ns = (calls.call_ns.1 - calls.call_ns.0) * calls.each * calls.reached.1;
            service.share = comparison.share_of_change(service.change_ns, thresholds);
            service.latency_share = service.change_ns / comparison.latency_ns();
            service.example = comparison.example_of(&service.service, service.role);
        }
    }
}
