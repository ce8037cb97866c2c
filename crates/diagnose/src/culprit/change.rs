//! How the parts of two sides differ, who changed them, and which changes are more than noise.
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
//! service's own time differs by more than it does between trials of equal variants; a change of errors alike, as a share
//! of the requests. Many services are looked at, so that with fewer standard errors some would stand out between two
//! healthy sides.

use std::collections::{BTreeMap, BTreeSet};

use narrows_model::diff::{ServiceDiff, ServiceRole};
use narrows_model::finding::Confidence;

use super::parts::{OfOperation, Operation, Parts, Values};
use crate::thresholds::Thresholds;

/// Standard errors from which a change is more than noise.
const ERRORS_MIN: f64 = 4.0;
/// Standard errors from which one is the cause without doubt, if it has this share of all changes too.
const ERRORS_SURE: f64 = 8.0;
const SHARE_SURE: f64 = 0.6;
/// Standard deviations between trials from which a service's own time differs by more than chance.
const DEVIATIONS: f64 = 2.0;
/// Requests that each side must have of an operation.
const REQUESTS_MIN: f64 = 10.0;
/// Times as many calls from which calls that also take longer or shorter each are of another kind.
const OTHER_KIND_FACTOR: f64 = 2.0;
/// How far down the cost of additional calls is followed.
const DEPTH_MAX: usize = 16;

/// Two sides, by the operations that begin traces on both.
pub(super) struct Comparison {
    /// Both sides of each operation, and its share of the later side's requests.
    operations: Vec<(OfOperation, OfOperation, f64)>,
    /// The service in which requests begin, by how many of them do.
    entries: BTreeMap<String, f64>,
    /// How far a service's own time may differ from trial to trial by chance, on a logarithmic scale.
    between_trials: f64,
    /// Mean latency of the requests on the slower side, nanoseconds.
    latency_ns: f64,
    /// All services that requests lead through.
    pub(super) services: BTreeSet<String>,
    /// Mean calls for each request, by caller and callee.
    calls: BTreeMap<(String, String), Difference>,
    /// The change that each service makes.
    made: BTreeMap<String, Made>,
}

/// What a service changed.
#[derive(Debug, Clone, Copy, Default)]
struct Made {
    /// Nanoseconds for each request, of its own time and of the calls that it makes.
    ns: f64,
    /// Standard errors from 0, of the larger of the two.
    errors: f64,
}

/// A mean on both sides.
#[derive(Debug, Clone, Copy, Default)]
struct Difference {
    before: f64,
    after: f64,
    squared_error: f64,
}

impl Difference {
    fn change(&self) -> f64 {
        self.after - self.before
    }

    fn middle(&self) -> f64 {
        f64::midpoint(self.before, self.after)
    }

    /// How many standard errors a change is from 0, with its sign; without any spread, beyond all doubt.
    fn errors(&self, change: f64) -> f64 {
        if change == 0.0 { 0.0 } else { change / self.squared_error.sqrt().max(f64::MIN_POSITIVE) }
    }
}

impl Comparison {
    /// None when no operation begins traces on both sides often enough. `spread` is the standard deviation between trials.
    pub(super) fn new(before: Parts, mut after: Parts, spread: f64) -> Option<Self> {
        let shares = 1.0 / before.trials.max(1) as f64 + 1.0 / after.trials.max(1) as f64;
        let is_enough = |one: &OfOperation| one.latency.count() >= REQUESTS_MIN;
        let before = before.operations.into_iter().filter(|(_, one)| is_enough(one));
        let pairs: Vec<(Operation, OfOperation, OfOperation)> = before
            .filter_map(|(key, old)| after.operations.remove(&key).filter(is_enough).map(|new| (key, old, new)))
            .collect();
        let whole: f64 = pairs.iter().map(|(.., after)| after.latency.weight).sum();
        if pairs.is_empty() || whole <= 0.0 {
            return None;
        }
        let mut entries: BTreeMap<String, f64> = BTreeMap::new();
        for ((service, _), _, after) in &pairs {
            *entries.entry(service.clone()).or_default() += after.latency.weight / whole;
        }
        let shared = |(_, old, new): (Operation, OfOperation, OfOperation)| {
            let share = new.latency.weight / whole;
            (old, new, share)
        };
        let mut comparison = Self {
            operations: pairs.into_iter().map(shared).collect(),
            entries,
            between_trials: DEVIATIONS * spread * shares.sqrt(),
            latency_ns: 0.0,
            services: BTreeSet::new(),
            calls: BTreeMap::new(),
            made: BTreeMap::new(),
        };
        comparison.compare();
        Some(comparison)
    }

    fn compare(&mut self) {
        let latency = self.difference(|one| Some(&one.latency));
        self.latency_ns = latency.before.max(latency.after).max(1.0);
        let sides = || self.operations.iter().flat_map(|(before, after, _)| [before, after]);
        self.services = sides().flat_map(|side| side.time.keys().chain(side.errors.keys())).cloned().collect();
        let pairs: BTreeSet<(String, String)> = sides().flat_map(|side| side.calls.keys()).cloned().collect();
        self.calls = pairs
            .into_iter()
            .map(|pair| {
                let calls = self.difference(|one| one.calls.get(&pair));
                (pair, calls)
            })
            .collect();
        self.made = self.services.iter().map(|service| (service.clone(), self.made_by(service))).collect();
    }

    /// The change of one service.
    pub(super) fn service(&self, service: &str, thresholds: &Thresholds) -> ServiceDiff {
        let time = self.time(service);
        let made = self.made[service];
        let moved_ns: f64 = self.made.values().map(|made| made.ns.abs()).sum();
        let share = if moved_ns > 0.0 { made.ns / moved_ns } else { 0.0 };
        let failed = self.difference(|one| one.errors.get(service));
        let least_ns = thresholds.culprit_share * self.latency_ns;
        let is_slower = made.errors >= ERRORS_MIN && made.ns >= least_ns;
        let is_faster = made.errors <= -ERRORS_MIN && -made.ns >= least_ns;
        let is_failing =
            failed.errors(failed.change()) >= ERRORS_MIN && failed.change() >= thresholds.culprit_error_share;
        let is_sure = is_failing || made.errors.abs() >= ERRORS_SURE && share.abs() >= SHARE_SURE;
        ServiceDiff {
            service: service.to_owned(),
            role: match () {
                () if is_failing && failed.change() > made.ns / self.latency_ns => ServiceRole::Failing,
                () if is_slower => ServiceRole::Slower,
                () if is_faster => ServiceRole::Faster,
                () => ServiceRole::Unchanged,
            },
            confidence: if is_sure { Confidence::High } else { Confidence::Medium },
            before_ns: time.before,
            after_ns: time.after,
            change_ns: made.ns,
            share,
            latency_share: made.ns / self.latency_ns,
            calls: self.calls_changed(service),
            errors: (failed.before, failed.after),
            cpu: None,
        }
    }

    /// What a service changed itself: its time for each call, and how often it calls others.
    fn made_by(&self, service: &str) -> Made {
        let own_ns = self.for_each_visit(service, &self.time(service));
        let own = self.difference(|one| one.own.get(service));
        // Of calls at the same time, another may now be the one that is waited for: its own time is as before.
        let errors = own.errors(self.for_each_visit(service, &own));
        let is_its_doing = !self.is_of_other_kind(service)
            && errors.abs() >= ERRORS_MIN
            && errors.is_sign_positive() == own_ns.is_sign_positive()
            && self.is_beyond_chance(service, &own);
        let own_ns = if is_its_doing { own_ns } else { 0.0 };
        let mut made = Made { ns: own_ns, errors };
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

    /// Whether a service's own time for each call differs by more than it does between trials of equal variants.
    fn is_beyond_chance(&self, service: &str, own: &Difference) -> bool {
        let visits = self.visits(service);
        let ratio = own.after * visits.before / (own.before * visits.after);
        ratio.is_nan() || ratio.ln().abs() >= self.between_trials
    }

    /// How much a mean changed because it is another for each call of the service, not because of more calls.
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
        let visits = self.visits(service);
        let of_service = self.calls.iter().filter(|((caller, callee), _)| caller == service && callee != service);
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
    fn calls_changed(&self, service: &str) -> Option<(String, f64, f64)> {
        let visits = self.visits(service);
        let cost = |(callee, additional, _): &(&str, f64, &Difference)| additional.abs() * self.cost_of_call(callee, 0);
        let all = self.additional_calls(service).into_iter();
        let (callee, _, calls) = all
            .filter(|(_, additional, calls)| calls.errors(*additional).abs() >= ERRORS_MIN)
            .max_by(|a, b| cost(a).total_cmp(&cost(b)))?;
        Some((callee.to_owned(), calls.before / visits.before, calls.after / visits.after))
    }

    /// What a call of a service costs on the critical path, with all that it calls in turn, nanoseconds.
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

    /// Whether many calls of a service became few that take longer each, or few became many that take less.
    fn is_of_other_kind(&self, service: &str) -> bool {
        let (visits, time) = (self.visits(service), self.time(service));
        let factor = visits.before.max(visits.after) / visits.before.min(visits.after);
        let (before, after) = (time.before / visits.before, time.after / visits.after);
        factor.is_finite() && factor >= OTHER_KIND_FACTOR && (after > before) == (visits.after < visits.before)
    }

    /// How often a service is called for each request.
    fn visits(&self, service: &str) -> Difference {
        let begun = self.entries.get(service).copied().unwrap_or(0.0);
        let mut visits = Difference { before: begun, after: begun, squared_error: 0.0 };
        for (_, calls) in self.calls.iter().filter(|((caller, callee), _)| callee == service && caller != service) {
            visits.before += calls.before;
            visits.after += calls.after;
            visits.squared_error += calls.squared_error;
        }
        visits
    }

    fn time(&self, service: &str) -> Difference {
        self.difference(|one| one.time.get(service))
    }

    /// A mean over all requests on both sides, each operation with the share that it has on the later side.
    fn difference<'c>(&'c self, values: impl Fn(&'c OfOperation) -> Option<&'c Values>) -> Difference {
        let mut sum = Difference::default();
        for (before, after, share) in &self.operations {
            let mean =
                |side: &'c OfOperation| values(side).map_or((0.0, 0.0), |values| values.mean_over(&side.latency));
            let ((old, old_error), (new, new_error)) = (mean(before), mean(after));
            sum.before += share * old;
            sum.after += share * new;
            sum.squared_error += share * share * (old_error + new_error);
        }
        sum
    }
}

/// By what services are ranked: causes first, by the share of requests that fail because of it or of the latency that it
/// adds; then those that became faster or call others more or less often, then victims, then the rest by how much they changed.
pub(super) fn weight_of(service: &ServiceDiff) -> f64 {
    let failed = service.errors.1 - service.errors.0;
    match service.role {
        ServiceRole::Failing | ServiceRole::Slower => 10.0 + failed.max(service.latency_share),
        ServiceRole::Faster => 5.0 - service.latency_share,
        ServiceRole::Unchanged if service.calls.is_some() => 4.0,
        ServiceRole::Waiting => 2.0 + service.latency_share,
        ServiceRole::Unchanged => service.latency_share.abs().min(1.0),
    }
}
