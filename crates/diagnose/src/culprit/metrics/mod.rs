//! Attributes a change to services where a side has no traces: from latency, errors, requests and CPU over time.
//!
//! `figures.rs` puts the series of services into intervals, `shift.rs` says which levels changed, `callees.rs` who calls
//! whom. A service is charged with the growth of its mean latency that the growth of its callees × its calls for each
//! request does not explain, with failed requests that are more than its callees', with more CPU for each request, and
//! with calls that it makes more or less often.
//!
//! Without a call graph, a service may wait for any other whose responses take less time and grew by a larger factor:
//! the delay that a callee adds is a larger share of the callee's latency than of the caller's.

mod callees;
mod figures;
mod shift;

use std::collections::{BTreeMap, BTreeSet};

use narrows_model::diff::{ServiceDiff, ServiceRole};
use narrows_model::evidence::TrialEvidence;
use narrows_model::finding::Confidence;

use self::callees::Callees;
use self::figures::{Figures, Interval, Sides};
use self::shift::{Sample, Shift};
use super::usage;
use crate::stats::median;
use crate::thresholds::Thresholds;

/// Part of a growth that must be a service's own for a cause without doubt, and its standard errors.
const OWN_SHARE_SURE: f64 = 0.6;
const ERRORS_SURE: f64 = 8.0;
/// Standard errors from which the change of a callee explains that of its callers.
const ERRORS_EXPLAINING: f64 = 2.0;
/// Cores by which the CPU of a service must grow.
const CORES_MIN: f64 = 0.01;
/// Least standard errors of the logarithm of a latency, of CPU and of requests.
const FLOOR: f64 = 0.02;
/// Part of the largest change of requests from which another is as large, where nobody knows who calls whom.
const AS_LARGE: f64 = 0.85;

/// The change of each service that both sides have figures of, in no order.
pub(super) fn changes(
    before: &[&TrialEvidence],
    after: &[&TrialEvidence],
    thresholds: &Thresholds,
) -> Vec<ServiceDiff> {
    let figures = Figures::of(before, after);
    let changes = Changes::of(&figures, thresholds);
    let mut diffs: Vec<ServiceDiff> = changes.services.keys().map(|service| changes.diff(service)).collect();
    changes.put_calls(&mut diffs);
    diffs.iter_mut().for_each(|diff| usage::judge_memory(diff, before, after));
    diffs
}

/// Changes of all services.
struct Changes<'f> {
    thresholds: &'f Thresholds,
    callees: Callees<'f>,
    services: BTreeMap<&'f str, Change>,
    /// The latency of calls as callers see it.
    calls: BTreeMap<(&'f str, &'f str), Change>,
    /// Requests of each service beyond those that its callers' explain, on a logarithmic scale.
    requests: BTreeMap<&'f str, Shift>,
    /// The same of the calls of each caller for each of its requests, where callers count them.
    rates: BTreeMap<(&'f str, &'f str), Shift>,
}

/// Changes of one service, or of one's calls to another.
#[derive(Debug, Clone, Copy, Default)]
struct Change {
    /// Of the mean latency's logarithm.
    latency: Option<Shift>,
    /// Of the share of failed requests.
    errors: Option<Shift>,
    /// Of the logarithm of CPU ÷ that expected for so many requests.
    cpu: Option<Shift>,
    /// CPU for each request, seconds, before and after.
    cpu_s: Option<(f64, f64)>,
    /// Cores after.
    cores: f64,
    /// Requests per second, before and after.
    requests: Option<(f64, f64)>,
}

impl Change {
    fn of(sides: &Sides, step_s: f64) -> Self {
        let requests = rates(sides);
        let latency = |one: &Interval| one.latency_s.filter(|latency| *latency > 0.0).map(f64::ln);
        let cpu = Cpu::of(&sides.before);
        let cpu_of = |one: &Interval| cpu.as_ref().and_then(|cpu| cpu.factor(one)).map(f64::ln);
        let cpu_s = |side: &[Interval]| middle(side, |one| one.cpu.zip(one.requests).map(|(cpu, of)| cpu / of));
        Self {
            latency: shift(sides, latency, FLOOR),
            errors: shift(sides, Interval::error_share, counting_error(sides, step_s)),
            cpu: shift(sides, cpu_of, FLOOR),
            cpu_s: cpu_s(&sides.before)
                .zip(cpu_s(&sides.after))
                .filter(|(old, new)| old.is_finite() && new.is_finite()),
            cores: middle(&sides.after, |one| one.cpu).unwrap_or(0.0),
            requests,
        }
    }

    /// Mean latency before and after, seconds.
    fn latency_s(&self) -> (f64, f64) {
        let of = |shift: Shift| (shift.expected.exp(), (shift.expected + shift.change).exp());
        self.latency.map_or((0.0, 0.0), of)
    }

    fn growth_s(&self) -> f64 {
        let (before, after) = self.latency_s();
        after - before
    }

    /// The same if it is likely enough to explain what callers see, else 0.
    fn explaining_s(&self) -> f64 {
        let is_likely = self.latency.is_some_and(|latency| latency.errors.abs() >= ERRORS_EXPLAINING);
        if is_likely { self.growth_s() } else { 0.0 }
    }

    /// Additional failed requests per second.
    fn failures(&self) -> f64 {
        let likely = self.errors.filter(|errors| errors.errors >= ERRORS_EXPLAINING);
        likely.map_or(0.0, |errors| errors.change) * self.requests.map_or(0.0, |(_, after)| after)
    }
}

/// Requests per second on both sides.
fn rates(sides: &Sides) -> Option<(f64, f64)> {
    let shift = shift(sides, |one| one.requests.filter(|rate| *rate > 0.0).map(f64::ln), FLOOR)?;
    Some((shift.expected.exp(), (shift.expected + shift.change).exp()))
}

fn shift(sides: &Sides, value: impl Fn(&Interval) -> Option<f64>, floor: f64) -> Option<Shift> {
    let samples = |side: &[Interval]| -> Vec<Sample> {
        let sample = |one: &Interval| Some(Sample { time_ns: one.time_ns, value: value(one)? });
        side.iter().filter_map(sample).collect()
    };
    Shift::of(&samples(&sides.before), &samples(&sides.after), floor)
}

fn middle(side: &[Interval], value: impl Fn(&Interval) -> Option<f64>) -> Option<f64> {
    median(side.iter().filter_map(value).collect())
}

/// Standard error of the share of failed requests after: that of a count, with one failure more than there were before.
fn counting_error(sides: &Sides, step_s: f64) -> f64 {
    let requests = |side: &[Interval]| side.iter().filter_map(|one| one.requests).sum::<f64>() * step_s;
    let failed = sides.before.iter().filter_map(|one| one.errors).sum::<f64>() * step_s;
    let share = ((failed + 1.0) / (requests(&sides.before) + 1.0)).min(0.5);
    (share * (1.0 - share) / requests(&sides.after).max(1.0)).sqrt()
}

/// CPU of a service by its requests: a line through the means of its quiet and its busy intervals.
struct Cpu {
    idle: f64,
    each: f64,
}

impl Cpu {
    fn of(side: &[Interval]) -> Option<Self> {
        let mut pairs: Vec<(f64, f64)> = side.iter().filter_map(|one| one.requests.zip(one.cpu)).collect();
        pairs.retain(|(requests, _)| *requests > 0.0);
        pairs.sort_by(|one, other| one.0.total_cmp(&other.0));
        let third = pairs.len().div_ceil(3);
        let middle = |of: &[(f64, f64)]| {
            Some((
                median(of.iter().map(|(requests, _)| *requests).collect())?,
                median(of.iter().map(|(_, cpu)| *cpu).collect())?,
            ))
        };
        let (quiet, busy) = (middle(&pairs[..third])?, middle(&pairs[pairs.len() - third..])?);
        let each = if busy.0 >= 1.2 * quiet.0 { ((busy.1 - quiet.1) / (busy.0 - quiet.0)).max(0.0) } else { 0.0 };
        let idle = quiet.1 - each * quiet.0;
        // Without a range of rates, and where busy times cost no more, all of it is for requests.
        Some(if each > 0.0 && idle >= 0.0 { Self { idle, each } } else { Self { idle: 0.0, each: quiet.1 / quiet.0 } })
    }

    /// CPU of an interval ÷ that expected for its requests.
    fn factor(&self, one: &Interval) -> Option<f64> {
        let expected = self.idle + self.each * one.requests?;
        one.cpu.map(|cpu| cpu / expected).filter(|factor| factor.is_finite() && *factor > 0.0)
    }
}

impl<'f> Changes<'f> {
    fn of(figures: &'f Figures, thresholds: &'f Thresholds) -> Self {
        let callees = Callees::of(figures);
        let change = |sides: &Sides| Change::of(sides, figures.step_s);
        let is_known = |sides: &&Sides| !sides.before.is_empty() && !sides.after.is_empty();
        let services: BTreeMap<&str, Change> = figures
            .services
            .iter()
            .filter(|(_, sides)| is_known(sides))
            .map(|(service, sides)| (service.as_str(), change(sides)))
            .collect();
        let calls = figures.calls.iter().filter(|(_, sides)| is_known(sides));
        let calls =
            calls.map(|((caller, callee), sides)| ((caller.as_str(), callee.as_str()), change(sides))).collect();
        let (requests, rates) = (BTreeMap::new(), callees.rates(figures));
        let mut changes = Self { thresholds, requests, rates, callees, services, calls };
        changes.requests = changes.callees.unexplained_requests(figures);
        changes
    }

    /// The change of a service as its callers see it, if that is worse than what it reports itself, as with a slow network
    /// or a queue in front of it.
    fn seen_by_callers(&self, service: &str) -> Option<&Change> {
        let own_s = self.services.get(service).map_or(0.0, Change::growth_s);
        let seen: Vec<(&str, &Change)> = self
            .calls
            .iter()
            .filter(|((_, callee), _)| *callee == service)
            .map(|((caller, _), call)| (*caller, call))
            .collect();
        let is_worse = |call: &Change| {
            call.growth_s() > own_s.max(0.0) / self.thresholds.culprit_own_share
                && call.latency.is_some_and(|latency| latency.is_certain())
        };
        // A caller to which all callees seem slower is slow itself.
        let is_all = !seen.is_empty() && seen.iter().all(|(caller, call)| is_worse(call) && !self.is_starved(caller));
        seen.into_iter().map(|(_, call)| call).filter(|_| is_all).max_by(|a, b| a.growth_s().total_cmp(&b.growth_s()))
    }

    /// True if all of several callees take longer for this caller by more than they say themselves.
    fn is_starved(&self, caller: &str) -> bool {
        let calls: Vec<(&str, &Change)> = self
            .calls
            .iter()
            .filter(|((from, _), _)| *from == caller)
            .map(|((_, callee), call)| (*callee, call))
            .collect();
        let has_gap = |callee: &str, call: &Change| {
            let own_s = self.services.get(callee).map_or(0.0, |service| service.explaining_s().max(0.0));
            call.explaining_s() > own_s / self.thresholds.culprit_own_share
        };
        calls.len() > 1 && calls.iter().all(|(callee, call)| has_gap(callee, call))
    }

    fn change(&self, service: &str) -> Change {
        let own = self.services[service];
        let seen = self.seen_by_callers(service).and_then(|call| call.latency);
        Change { latency: seen.or(own.latency), ..own }
    }

    /// The growth of a callee's latency for a caller, seconds.
    fn growth_for(&self, caller: &str, callee: &str) -> f64 {
        let own = self.services.get(callee).map_or(0.0, Change::explaining_s);
        match self.calls.get(&(caller, callee)) {
            Some(call) if call.latency.is_some() && !self.is_starved(caller) => call.explaining_s(),
            _ => own,
        }
    }

    /// Growth of a service's latency that its callees do not explain, seconds; never of the other sign.
    fn own_growth_s(&self, service: &str, change: &Change) -> f64 {
        let growth = change.growth_s();
        let of_callee = |callee: &str| {
            let each = self.callees.calls_for_each(service, callee, &self.services, &self.calls);
            (each * self.growth_for(service, callee) * growth.signum()).max(0.0)
        };
        let explained = match self.callees.is_known() {
            true => self.callees.of_service(service).map(of_callee).sum(),
            false => self.possible_callees(service).map(of_callee).fold(0.0, f64::max),
        };
        (growth.abs() - explained).max(0.0).copysign(growth)
    }

    /// Services that this one may wait for, as far as levels of latency tell.
    fn possible_callees<'c>(&'c self, service: &'c str) -> impl Iterator<Item = &'c str> {
        let own = self.services.get(service).and_then(|service| service.latency).unwrap_or_default();
        let may_be = move |other: &Shift| other.expected < own.expected && other.change.abs() > own.change.abs();
        let others = self.services.iter().filter(move |(name, _)| **name != service);
        others.filter(move |(_, change)| change.latency.as_ref().is_some_and(may_be)).map(|(name, _)| *name)
    }

    /// Share of a service's requests that fail in addition and not because of its callees.
    fn own_failures(&self, service: &str, change: &Change) -> f64 {
        let Some(errors) = change.errors.filter(Shift::is_certain) else { return 0.0 };
        let of_callee = |callee: &str| match self.calls.get(&(service, callee)) {
            Some(call) if call.errors.is_some() => call.failures(),
            _ => self.services.get(callee).map_or(0.0, Change::failures),
        };
        let latency = |change: &Change| change.latency.map_or(f64::INFINITY, |latency| latency.expected);
        let may_be = |other: &&&str| **other != service && latency(&self.services[**other]) < latency(change);
        let explained: f64 = match self.callees.is_known() {
            true => self.callees.of_service(service).map(of_callee).sum(),
            false => self.services.keys().filter(may_be).map(|callee| of_callee(callee)).fold(0.0, f64::max),
        };
        let requests = change.requests.map_or(1.0, |(_, after)| after.max(f64::MIN_POSITIVE));
        (errors.change - explained / requests).max(0.0)
    }

    fn diff(&self, service: &str) -> ServiceDiff {
        let change = self.change(service);
        let (before_s, after_s) = change.latency_s();
        let own_s = self.own_growth_s(service, &change);
        let failures = self.own_failures(service, &change);
        let latency_share = own_s / before_s.max(after_s).max(f64::MIN_POSITIVE);
        let errors_before = change.errors.map_or(0.0, |errors| errors.expected.max(0.0));
        let mut diff = ServiceDiff {
            confidence: Confidence::Medium,
            before_ns: before_s * 1e9,
            after_ns: after_s * 1e9,
            change_ns: own_s * 1e9,
            latency_share,
            errors: (errors_before, errors_before + failures),
            requests: change.requests,
            cpu: change.cpu_s.map(|(before, after)| (before * 1e9, after * 1e9)),
            ..ServiceDiff::unchanged(service)
        };
        diff.role = self.role(service, &change, &diff);
        let growth_s = change.growth_s();
        let is_sure = match diff.role {
            ServiceRole::Failing => change
                .errors
                .is_some_and(|errors| failures >= OWN_SHARE_SURE * errors.change && errors.errors >= ERRORS_SURE),
            ServiceRole::Heavier => change.cpu.is_some_and(|cpu| cpu.errors >= ERRORS_SURE),
            _ => {
                change.latency.is_some_and(|latency| latency.errors.abs() >= ERRORS_SURE)
                    && own_s.abs() >= OWN_SHARE_SURE * growth_s.abs()
            }
        };
        diff.confidence = if is_sure { Confidence::High } else { Confidence::Medium };
        if !matches!(diff.role, ServiceRole::Slower | ServiceRole::Faster) {
            (diff.change_ns, diff.latency_share) = (0.0, 0.0);
        }
        diff
    }

    fn role(&self, service: &str, change: &Change, diff: &ServiceDiff) -> ServiceRole {
        let thresholds = self.thresholds;
        let failures = diff.errors.1 - diff.errors.0;
        let is_failing = failures >= thresholds.culprit_error_share
            && change.errors.is_some_and(|errors| failures >= thresholds.culprit_own_share * errors.change);
        let has_changed = change
            .latency
            .filter(Shift::is_certain)
            .is_some_and(|latency| 1.0 - (-latency.change.abs()).exp() >= thresholds.culprit_share);
        let is_own = diff.latency_share.abs() >= thresholds.culprit_share
            && diff.change_ns.abs() >= thresholds.culprit_own_share * change.growth_s().abs() * 1e9;
        let is_heavier = change.cpu.filter(Shift::is_certain).is_some_and(|cpu| {
            cpu.change >= thresholds.culprit_metric_growth.ln()
                && change.cores * (1.0 - (-cpu.change).exp()) >= CORES_MIN
        });
        match () {
            () if is_failing && failures > diff.latency_share => ServiceRole::Failing,
            () if has_changed && is_own && diff.latency_share > 0.0 => ServiceRole::Slower,
            () if is_heavier => ServiceRole::Heavier,
            () if has_changed && is_own && !self.has_failed_more(service) => ServiceRole::Faster,
            () if has_changed && diff.after_ns > diff.before_ns => ServiceRole::Waiting,
            () if change
                .errors
                .filter(Shift::is_certain)
                .is_some_and(|e| e.change >= thresholds.culprit_error_share) =>
            {
                ServiceRole::Waiting
            }
            () => ServiceRole::Unchanged,
        }
    }

    /// Requests that fail end early: they make a service faster and its calls fewer.
    fn has_failed_more(&self, service: &str) -> bool {
        self.services[service].errors.is_some_and(|errors| errors.errors >= ERRORS_EXPLAINING && errors.change > 0.0)
    }

    /// Puts changed calls to those that make them, and requests that no caller explains to those that receive them.
    fn put_calls(&self, diffs: &mut [ServiceDiff]) {
        let growth_min = self.thresholds.culprit_metric_growth.ln();
        let is_changed = |shift: &Shift| shift.is_certain() && shift.change.abs() >= growth_min;
        let mut explained: BTreeSet<&str> = BTreeSet::new();
        for ((caller, callee), shift) in self.rates.iter().filter(|(_, shift)| is_changed(shift)) {
            explained.insert(callee);
            self.put_calling(diffs, caller, callee, shift);
        }
        let changed: BTreeMap<&str, &Shift> =
            self.requests.iter().filter(|(_, shift)| is_changed(shift)).map(|(name, shift)| (*name, shift)).collect();
        for (service, shift) in changed.iter().filter(|(service, _)| !explained.contains(**service)) {
            match self.callees.responsible_caller(service, &changed).filter(|_| self.rates.is_empty()) {
                Some(caller) => self.put_calling(diffs, caller, service, shift),
                None if self.is_first_of(service, shift, &changed) => self.put_called(diffs, service),
                None => {}
            }
        }
    }

    fn put_calling(&self, diffs: &mut [ServiceDiff], caller: &str, callee: &str, shift: &Shift) {
        let Some(diff) = diffs.iter_mut().find(|diff| diff.service == caller) else { return };
        let failed = self.services[caller].errors.map_or(0.0, |errors| errors.change.max(0.0));
        // A request that fails makes no further calls.
        let by_failures = -(1.0 - 2.0 * failed).max(0.05).ln();
        if shift.change < 0.0 && -shift.change <= by_failures {
            return;
        }
        let each = (shift.expected.exp(), (shift.expected + shift.change).exp());
        let is_larger = |known: &(String, f64, f64)| (known.2 / known.1).ln().abs() >= shift.change.abs();
        if !diff.calls.as_ref().is_some_and(is_larger) {
            diff.calls = Some((callee.to_owned(), each.0, each.1));
        }
        if matches!(diff.role, ServiceRole::Unchanged | ServiceRole::Waiting | ServiceRole::Faster) {
            diff.role = ServiceRole::Calling;
        }
    }

    fn put_called(&self, diffs: &mut [ServiceDiff], service: &str) {
        let Some(diff) = diffs.iter_mut().find(|diff| diff.service == service) else { return };
        if matches!(diff.role, ServiceRole::Unchanged | ServiceRole::Waiting) && !self.has_failed_more(service) {
            diff.role = ServiceRole::Called;
        }
    }

    /// Without a call graph: whether no other service that may call this one received as many more requests.
    fn is_first_of(&self, service: &str, shift: &Shift, changed: &BTreeMap<&str, &Shift>) -> bool {
        let latency = |name: &str| self.services.get(name).and_then(|one| one.latency).map_or(0.0, |one| one.expected);
        let may_call = |other: &str, its: &Shift| {
            latency(other) > latency(service) && its.change * shift.change.signum() >= AS_LARGE * shift.change.abs()
        };
        self.callees.is_known() || !changed.iter().any(|(other, its)| *other != service && may_call(other, its))
    }
}
