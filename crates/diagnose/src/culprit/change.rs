//! Differences between the parts of two sides, who caused them, and which exceed noise.
//!
//! A service's part of the requests is how often it is called × its time for each call. That the time for each call grew
//! is its own doing. That it is called more often is the doing of the service that calls it more often for each of its
//! own requests, and counts there, with all that the additional calls cost further down. So the changes of all services
//! together are, to first order, the change of the requests' latency.
//!
//! Where one call takes the place of many, or many that of one, the calls before and after are of different kinds, and
//! their times for each call say nothing about the called service. All of its change counts at those that call it.
//!
//! A change counts when it is [`ERRORS_MIN`] standard errors from 0 and a notable share of the latency, and when the
//! service's own time differs by more than it does between trials of equal variants. Many services are looked at, so that
//! with fewer standard errors some would stand out between two healthy sides. Failures are counts, of which few are
//! certain where there were none before: `failures.rs`.
//!
//! A service that calls others more or less often for each of its requests did so itself, even where no request becomes
//! faster or slower by it, as beside other calls that take longer. One that omits calls in some of its requests returns
//! early, which makes requests faster and is no improvement. Only requests without an error count there: one that
//! fails makes no further calls, whichever service caused the error.

use std::collections::{BTreeMap, BTreeSet};

use narrows_model::diff::{RequestsDiff, ServiceDiff, ServiceRole, SpanDiff};
use narrows_model::finding::Confidence;
use narrows_model::trace::{TraceId, hex};

use super::failures::Failures;
use super::internal::internal_spans;
use super::parts::{Calls, OfOperation, Operation, Parts};
use super::rare::PerCall;
use super::shapes::{Shapes, alike};
use super::starved::starved;
use super::values::Values;
use super::visits::Pair;
use crate::thresholds::Thresholds;

/// Standard errors from which a change is more than noise.
pub(super) const ERRORS_MIN: f64 = 4.0;
/// Standard errors from which one is the cause without doubt, if it has this share of all changes too.
pub(super) const ERRORS_SURE: f64 = 8.0;
const SHARE_SURE: f64 = 0.6;
/// Standard deviations between trials from which a service's own time differs by more than chance.
const DEVIATIONS: f64 = 2.0;
/// Requests that each side must have of an operation.
const REQUESTS_MIN: f64 = 10.0;
/// Times as many calls from which calls that also take longer or shorter each are of another kind.
const OTHER_KIND_FACTOR: f64 = 2.0;
/// Maximum depth to which the cost of additional calls is followed.
const DEPTH_MAX: usize = 16;
/// Two sides, by the operations that begin traces on both.
pub(super) struct Comparison {
    /// Both sides of each kind of request of each operation, and its share of the later side's requests.
    pub(super) operations: Vec<(OfOperation, OfOperation, f64)>,
    /// The service where requests begin, by how many of them do.
    entries: BTreeMap<String, f64>,
    /// Chance variation of a service's own time from trial to trial, on a logarithmic scale.
    pub(super) between_trials: f64,
    /// Mean latency of the requests, nanoseconds.
    latency: Difference,
    /// All services that requests lead through.
    pub(super) services: BTreeSet<String>,
    /// Mean calls for each request.
    pub(super) calls: CallsDifference,
    /// The same of requests without an error, where there are enough; else of all.
    intended: CallsDifference,
    /// Mean time on the critical path for each request, nanoseconds.
    times: BTreeMap<String, Difference>,
    /// The same of the time in a service and in none that it calls, whether waited for or not.
    owns: BTreeMap<String, Difference>,
    /// The change that each service makes.
    made: BTreeMap<String, ServiceChange>,
    /// Share of all calls before because of which a request failed, above 0.
    usual_failures: f64,
}

/// The changes that a service made.
#[derive(Debug, Clone, Copy, Default)]
struct ServiceChange {
    /// Nanoseconds for each request, of its own time and of the calls that it makes.
    ns: f64,
    /// Standard errors from 0, of the larger of the two.
    errors: f64,
}

/// Mean calls for each request, by caller and callee.
type CallsDifference = BTreeMap<Pair, Difference>;

/// A mean on both sides.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Difference {
    pub(super) before: f64,
    pub(super) after: f64,
    pub(super) squared_error: f64,
}

impl Difference {
    pub(super) fn change(&self) -> f64 {
        self.after - self.before
    }

    pub(super) fn middle(&self) -> f64 {
        f64::midpoint(self.before, self.after)
    }

    /// A change in standard errors, signed; without any spread, beyond all doubt.
    pub(super) fn errors(&self, change: f64) -> f64 {
        if change == 0.0 { 0.0 } else { change / self.squared_error.sqrt().max(f64::MIN_POSITIVE) }
    }

    /// Adds another mean, so many times.
    fn add(&mut self, other: &Self, times: f64) {
        self.before += times * other.before;
        self.after += times * other.after;
        self.squared_error += times * times * other.squared_error;
    }
}

impl Comparison {
    /// `None` if no operation begins traces on both sides often enough. `spread` is the standard deviation between trials.
    pub(super) fn new(before: Parts, mut after: Parts, spread: f64) -> Option<Self> {
        let shares = 1.0 / before.trials.max(1) as f64 + 1.0 / after.trials.max(1) as f64;
        let of_both = |(key, old): (Operation, Shapes)| {
            let new = after.operations.remove(&key)?;
            Some(alike(old, new).into_iter().map(move |(old, new)| (key.clone(), old, new)))
        };
        let pairs: Vec<(Operation, OfOperation, OfOperation)> = before
            .operations
            .into_iter()
            .filter_map(of_both)
            .flatten()
            .filter(|(_, old, new)| [old, new].iter().all(|side| side.latency.count() >= REQUESTS_MIN))
            .collect();
        let whole: f64 = pairs.iter().map(|(.., after)| after.latency.weight).sum();
        if pairs.is_empty() || whole <= 0.0 {
            return None;
        }
        let mut entries: BTreeMap<String, f64> = BTreeMap::new();
        for ((service, _), _, after) in &pairs {
            *entries.entry(service.clone()).or_default() += after.latency.weight / whole;
        }
        let shared = |(_, mut old, mut new): (Operation, OfOperation, OfOperation)| {
            let share = new.latency.weight / whole;
            if [&old, &new].iter().any(|side| side.calls_without_errors.requests.count() < REQUESTS_MIN) {
                [&mut old, &mut new].into_iter().for_each(|side| side.calls_without_errors = side.calls.clone());
            }
            (old, new, share)
        };
        let mut comparison = Self {
            operations: pairs.into_iter().map(shared).collect(),
            entries,
            between_trials: DEVIATIONS * spread * shares.sqrt(),
            latency: Difference::default(),
            services: BTreeSet::new(),
            calls: CallsDifference::new(),
            intended: CallsDifference::new(),
            times: BTreeMap::new(),
            owns: BTreeMap::new(),
            made: BTreeMap::new(),
            usual_failures: 1.0,
        };
        comparison.compare();
        Some(comparison)
    }

    fn compare(&mut self) {
        self.latency = self.difference(|one| Some(&one.latency));
        let sides = || self.operations.iter().flat_map(|(before, after, _)| [before, after]);
        let names = |side: &OfOperation| [&side.time, &side.own, &side.errors].map(|by| by.keys().cloned().collect());
        self.services = sides().flat_map(names).flat_map(|names: Vec<String>| names).collect();
        self.calls = self.calls_of(|one| &one.calls);
        self.intended = self.calls_of(|one| &one.calls_without_errors);
        self.times = self.of_services(|one| &one.time);
        self.owns = self.of_services(|one| &one.own);
        for caller in starved(self) {
            self.charge_gaps(&caller);
        }
        self.usual_failures = self.usual_failures();
        self.made = self.services.iter().map(|service| (service.clone(), self.made_by(service))).collect();
    }

    fn of_services(&self, of: fn(&OfOperation) -> &BTreeMap<String, Values>) -> BTreeMap<String, Difference> {
        self.services.iter().map(|service| (service.clone(), self.difference(|one| of(one).get(service)))).collect()
    }

    /// Counts the time between a caller and its callees as the caller's.
    fn charge_gaps(&mut self, caller: &str) {
        let of_caller: Vec<Pair> = self.calls.keys().filter(|(from, _)| from == caller).cloned().collect();
        for pair in of_caller {
            let own = self.difference(|one| one.gaps.get(&pair).map(|gaps| &gaps.own));
            let path = self.difference(|one| one.gaps.get(&pair).map(|gaps| &gaps.path));
            for (service, times) in [(&pair.0, 1.0), (&pair.1, -1.0)] {
                self.owns.entry(service.clone()).or_default().add(&own, times);
                self.times.entry(service.clone()).or_default().add(&path, times);
            }
        }
    }

    fn calls_of(&self, of: impl Fn(&OfOperation) -> &Calls) -> CallsDifference {
        let sides = self.operations.iter().flat_map(|(before, after, _)| [before, after]);
        let pairs: BTreeSet<&Pair> = sides.flat_map(|side| of(side).by_pair.keys()).collect();
        let difference = |pair: &Pair| self.difference_over(|one| (of(one).by_pair.get(pair), &of(one).requests));
        pairs.into_iter().map(|pair| (pair.clone(), difference(pair))).collect()
    }

    /// Caller and callee of all calls.
    pub(super) fn call_pairs(&self) -> BTreeSet<(String, String)> {
        self.calls.keys().cloned().collect()
    }

    /// The requests that were compared.
    pub(super) fn requests(&self) -> RequestsDiff {
        let count = |side: fn(&(OfOperation, OfOperation, f64)) -> &OfOperation| {
            self.operations.iter().map(|one| side(one).latency.count()).sum()
        };
        RequestsDiff {
            count: (count(|(before, ..)| before), count(|(_, after, _)| after)),
            latency_ns: (self.latency.before, self.latency.after),
        }
    }

    /// The service where all requests begin; `None` if they begin at several.
    pub(super) fn entry(&self) -> Option<&str> {
        let mut entries = self.entries.keys();
        entries.next().filter(|_| entries.next().is_none()).map(String::as_str)
    }

    /// Mean latency of the requests on the slower side, nanoseconds.
    pub(super) fn latency_ns(&self) -> f64 {
        self.latency.before.max(self.latency.after).max(1.0)
    }

    /// The change of one service.
    pub(super) fn service(&self, service: &str, thresholds: &Thresholds) -> ServiceDiff {
        let time = self.time(service);
        let made = self.made[service];
        let failures = self.failures(service);
        let calls = PerCall::of(self, service);
        let of_reached = calls.map_or(failures, |calls| failures.of_those_reached(calls.reached));
        let role = self.role(service, [failures, of_reached], thresholds);
        let (before, after) = failures.shares();
        ServiceDiff {
            service: service.to_owned(),
            role,
            confidence: self.confidence(role, made, failures),
            before_ns: time.before,
            after_ns: time.after,
            change_ns: made.ns,
            share: self.share_of_change(made.ns, thresholds),
            latency_share: made.ns / self.latency_ns(),
            calls: self.calls_changed(service, thresholds),
            errors: (before, after),
            requests: None,
            cpu: None,
            cpu_limit: None,
            memory: None,
            reached: calls.map(|calls| calls.reached),
            call_ns: calls.map(|calls| calls.call_ns),
            outside_ns: None,
            spans: self.spans_changed(service),
            logs: Vec::new(),
            example: self.example_of(service, role),
        }
    }

    /// Share of a change in that of the mean latency; `None` if the latency did not change notably.
    pub(super) fn share_of_change(&self, ns: f64, thresholds: &Thresholds) -> Option<f64> {
        let change_ns = self.latency.change();
        (change_ns.abs() >= thresholds.culprit_share * self.latency_ns()).then(|| ns / change_ns)
    }

    fn role(&self, service: &str, failures: [Failures; 2], thresholds: &Thresholds) -> ServiceRole {
        let made = self.made[service];
        let least_ns = thresholds.culprit_share * self.latency_ns();
        let [of_all, of_reached] = failures;
        let is_failing = of_all.are_more(thresholds.culprit_error_share)
            || of_reached.are_more_of_those_reached(self.usual_failures);
        let is_slower = made.errors >= ERRORS_MIN && made.ns >= least_ns;
        match () {
            () if is_failing && !(is_slower && made.ns / self.latency_ns() >= of_all.change()) => ServiceRole::Failing,
            () if is_slower => ServiceRole::Slower,
            () if self.omits_calls(service, thresholds) => ServiceRole::Calling,
            () if made.errors <= -ERRORS_MIN && -made.ns >= least_ns => ServiceRole::Faster,
            () if self.calls_changed(service, thresholds).is_some() => ServiceRole::Calling,
            () if !self.spans_changed(service).is_empty() => ServiceRole::Calling,
            () => ServiceRole::Unchanged,
        }
    }

    fn confidence(&self, role: ServiceRole, made: ServiceChange, failures: Failures) -> Confidence {
        let moved_ns: f64 = self.made.values().map(|made| made.ns.abs()).sum();
        let is_sure = match role {
            ServiceRole::Failing => failures.errors() >= ERRORS_MIN,
            _ => made.errors.abs() >= ERRORS_SURE && made.ns.abs() >= SHARE_SURE * moved_ns && moved_ns > 0.0,
        };
        if is_sure { Confidence::High } else { Confidence::Medium }
    }

    /// At least one failure in all calls that were compared.
    fn usual_failures(&self) -> f64 {
        let failed: f64 = self.services.iter().map(|service| self.failures(service).before.0).sum();
        let calls: f64 = self.services.iter().map(|service| self.visits(service).before).sum();
        let RequestsDiff { count, .. } = self.requests();
        failed.max(1.0 / count.0) / calls.max(1.0)
    }

    fn failures(&self, service: &str) -> Failures {
        let shares = self.difference(|one| one.errors.get(service));
        let RequestsDiff { count, .. } = self.requests();
        Failures { before: (shares.before, count.0), after: (shares.after, count.1) }
    }

    /// Trace of the later side that shows what a service does, in hexadecimal.
    pub(super) fn example_of(&self, service: &str, role: ServiceRole) -> Option<String> {
        self.example(service, role).map(|trace| hex(trace))
    }

    fn example(&self, service: &str, role: ServiceRole) -> Option<&TraceId> {
        let sides = self.operations.iter().map(|(_, after, _)| after);
        match role {
            ServiceRole::Failing => sides.filter_map(|after| after.failed.get(service)).next(),
            ServiceRole::Slower => {
                let slowest = sides.filter_map(|after| after.slowest.get(service));
                slowest.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, trace)| trace)
            }
            _ => None,
        }
    }

    /// The changes that a service made itself: its time for each call, and how often it calls others.
    fn made_by(&self, service: &str) -> ServiceChange {
        let own_ns = self.for_each_visit(service, &self.time(service));
        let own = self.owns[service];
        // Of calls at the same time, another may now be the one that is waited for: its own time is as before.
        let errors = own.errors(self.for_each_visit(service, &own));
        let is_its_doing = !self.is_of_other_kind(service)
            && errors.abs() >= ERRORS_MIN
            && errors.is_sign_positive() == own_ns.is_sign_positive()
            && self.is_beyond_chance(service, &own);
        let own_ns = if is_its_doing { own_ns } else { 0.0 };
        let mut made = ServiceChange { ns: own_ns, errors };
        for (callee, additional, calls) in self.additional_calls(service) {
            let ns = additional * self.cost_of_call(callee, 0);
            let errors = calls.errors(additional);
            made.ns += ns;
            if ns.abs() > own_ns.abs() {
                made.errors = errors.abs().copysign(ns);
            }
        }
        made
    }

    /// True if a service's own time for each call differs by more than it does between trials of equal variants.
    fn is_beyond_chance(&self, service: &str, own: &Difference) -> bool {
        let visits = self.visits(service);
        let ratio = own.after * visits.before / (own.before * visits.after);
        ratio.is_nan() || ratio.ln().abs() >= self.between_trials
    }

    /// Change of a mean due to a different mean for each call of the service, not to more calls.
    fn for_each_visit(&self, service: &str, mean: &Difference) -> f64 {
        let visits = self.visits(service);
        match (visits.before > 0.0, visits.after > 0.0) {
            (true, true) => (mean.after / visits.after - mean.before / visits.before) * visits.middle(),
            _ => 0.0,
        }
    }

    /// The callees that a service calls more or less often for each of its own requests: by how many calls for each
    /// request of the load, and the calls themselves.
    fn additional_calls<'c>(&'c self, service: &str) -> Vec<(&'c str, f64, &'c Difference)> {
        let visits = self.visits_in(&self.intended, service);
        let of_service = self.intended.iter().filter(|((caller, callee), _)| caller == service && callee != service);
        let additional = of_service.map(|((_, callee), calls)| {
            let each = |calls: f64, visits: f64| if visits > 0.0 { calls / visits } else { 0.0 };
            let (before, after) = (each(calls.before, visits.before), each(calls.after, visits.after));
            let is_called = visits.before > 0.0 && visits.after > 0.0;
            (callee.as_str(), if is_called { (after - before) * visits.middle() } else { 0.0 }, calls)
        });
        additional.collect()
    }

    /// The calls of a service whose number changed most in time, if that is more than noise: the callee, and calls for
    /// each of its requests before and after.
    fn calls_changed(&self, service: &str, thresholds: &Thresholds) -> Option<(String, f64, f64)> {
        let visits = self.visits_in(&self.intended, service);
        let each = |calls: &Difference| (calls.before / visits.before, calls.after / visits.after);
        let is_notable = |calls: &Difference| {
            let (before, after) = each(calls);
            (after - before).abs() > thresholds.change_min * before.max(after)
        };
        let cost = |(callee, additional, _): &(&str, f64, &Difference)| additional.abs() * self.cost_of_call(callee, 0);
        let all = self.additional_calls(service).into_iter();
        let (callee, _, calls) = all
            .filter(|(_, additional, calls)| calls.errors(*additional).abs() >= ERRORS_MIN && is_notable(calls))
            .max_by(|a, b| cost(a).total_cmp(&cost(b)))?;
        let (before, after) = each(calls);
        Some((callee.to_owned(), before, after))
    }

    /// True if a service makes calls in some of its requests only that it made in more of them before: it returns early.
    fn omits_calls(&self, service: &str, thresholds: &Thresholds) -> bool {
        self.calls_changed(service, thresholds).is_some_and(|(_, before, after)| after < before.min(1.0))
    }

    /// The internal spans of a service that vanished or appeared, by name.
    fn spans_changed(&self, service: &str) -> Vec<SpanDiff> {
        let visits = self.visits_in(&self.intended, service);
        internal_spans(self, service, visits)
    }

    /// Cost of a call to a service on the critical path, including its downstream calls, nanoseconds.
    fn cost_of_call(&self, service: &str, depth: usize) -> f64 {
        let visits = self.visits(service);
        if visits.middle() <= 0.0 || depth >= DEPTH_MAX {
            return 0.0;
        }
        let below = self.calls.iter().filter(|((caller, callee), _)| caller == service && callee != service);
        let below: f64 = below.map(|((_, callee), calls)| calls.middle() * self.cost_of_call(callee, depth + 1)).sum();
        let own = match self.time(service) {
            time if self.is_of_other_kind(service) => time.change() / visits.change(),
            time => time.middle() / visits.middle(),
        };
        own + below / visits.middle()
    }

    /// True if many calls of a service became few that take longer each, or few became many that take less.
    pub(super) fn is_of_other_kind(&self, service: &str) -> bool {
        let (visits, time) = (self.visits(service), self.time(service));
        let factor = visits.before.max(visits.after) / visits.before.min(visits.after);
        let (before, after) = (time.before / visits.before, time.after / visits.after);
        let is_certain = visits.errors(visits.change()).abs() >= ERRORS_MIN;
        factor.is_finite()
            && factor >= OTHER_KIND_FACTOR
            && is_certain
            && (after > before) == (visits.after < visits.before)
    }

    /// Number of calls to a service for each request.
    pub(super) fn visits(&self, service: &str) -> Difference {
        self.visits_in(&self.calls, service)
    }

    fn visits_in(&self, calls: &CallsDifference, service: &str) -> Difference {
        let begun = self.entries.get(service).copied().unwrap_or(0.0);
        let mut visits = Difference { before: begun, after: begun, squared_error: 0.0 };
        for (_, calls) in calls.iter().filter(|((caller, callee), _)| callee == service && caller != service) {
            visits.before += calls.before;
            visits.after += calls.after;
            visits.squared_error += calls.squared_error;
        }
        visits
    }

    fn time(&self, service: &str) -> Difference {
        self.times.get(service).copied().unwrap_or_default()
    }

    /// A mean over all requests on both sides, each operation with the share that it has on the later side.
    pub(super) fn difference<'c>(&'c self, values: impl Fn(&'c OfOperation) -> Option<&'c Values>) -> Difference {
        self.difference_over(|one| (values(one), &one.latency))
    }

    /// The same over some of the requests.
    pub(super) fn difference_over<'c>(
        &'c self,
        values: impl Fn(&'c OfOperation) -> (Option<&'c Values>, &'c Values),
    ) -> Difference {
        let mut sum = Difference::default();
        for (before, after, share) in &self.operations {
            let mean = |side: &'c OfOperation| match values(side) {
                (Some(values), requests) => values.mean_over(requests),
                (None, _) => (0.0, 0.0),
            };
            let ((old, old_error), (new, new_error)) = (mean(before), mean(after));
            sum.before += share * old;
            sum.after += share * new;
            sum.squared_error += share * share * (old_error + new_error);
        }
        sum
    }
}
