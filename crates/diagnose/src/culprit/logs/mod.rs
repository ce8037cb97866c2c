//! Messages that are new, gone, or more or less frequent, at the service that logs them.
//!
//! They make no service a cause where traces show one: a service may log for another, and many errors are handled. They
//! settle which of two nearly equal causes comes first. Where traces show no cause, the service that logs something new
//! is one, and of several the deepest: those that call it log that it failed.
//!
//! `kinds.rs` judges the kinds of messages of a service, `order.rs` knows who calls whom.

mod kinds;
mod order;

use std::collections::{BTreeMap, BTreeSet};

use narrows_model::diff::{LogDiff, ServiceDiff, ServiceRole};
use narrows_model::evidence::TrialEvidence;
use narrows_model::finding::Confidence;

use self::kinds::{JudgedKind, Side};
use self::order::CallOrder;
use super::order::weight_of;
use crate::thresholds::Thresholds;

/// Kinds reported for each service.
const KINDS_MAX: usize = 5;
/// Ranks of services whose logs differ: above all that only wait. Below changes that traces show, but for new errors, which
/// leave calls out and make requests shorter: only causes are above these.
const RANK_MIN: f64 = 4.05;
const RANK_OF_ORIGIN: f64 = 6.0;
const RANK_OF_ERRORS: f64 = 18.0;
/// Share of the way to the next rank that the most certain message goes, and certainty in standard errors that goes half of it.
const RANK_SHARE: f64 = 0.4;
const ERRORS_HALF: f64 = 10.0;
/// Standard errors from which a message is beyond doubt.
const ERRORS_SURE: f64 = 8.0;

/// Puts the messages that differ to their services, and gives the weights by which these are ranked, as
/// [`weight_of`]. A service without spans is added. `calls` are the calls that traces show.
pub(super) fn put_to(
    services: &mut Vec<ServiceDiff>,
    calls: &BTreeSet<(String, String)>,
    before: &[&TrialEvidence],
    after: &[&TrialEvidence],
    thresholds: &Thresholds,
) -> BTreeMap<String, f64> {
    let found = kinds::differing(&Side::of(before), &Side::of(after), thresholds);
    let traced: BTreeSet<String> = services.iter().map(|one| one.service.clone()).collect();
    let causes: Vec<(String, f64)> = services.iter().filter_map(cause).collect();
    let order = CallOrder::new(calls, &found, before, after);
    let mut weights = BTreeMap::new();
    for (service, kinds) in &found {
        let is_consequence = found.iter().any(|other| follows((service, kinds), other, &order))
            || causes.iter().any(|(cause, _)| order.is_caller(service, cause));
        let errors = kinds.iter().map(|kind| kind.errors).fold(0.0, f64::max);
        let is_failing = kinds.iter().any(|kind| kind.diff.is_error && !kind.is_loss());
        let base = match (is_consequence, is_failing) {
            (true, _) => RANK_MIN,
            (false, false) => RANK_OF_ORIGIN,
            (false, true) => RANK_OF_ERRORS,
        };
        let weight = base + RANK_SHARE * errors / (errors + ERRORS_HALF);
        // An error of a service without spans shows in traces at a service that calls it.
        let above = causes.iter().filter(|(cause, _)| order.is_caller(cause, service) && !traced.contains(service));
        let weight = above.map(|(_, weight)| weight + 0.01).filter(|_| !is_consequence).fold(weight, f64::max);
        weights.insert(service.clone(), weight);
        put(services, service, kinds, errors);
    }
    weights
}

/// A service and its messages that differ.
type Evidence<'a> = (&'a String, &'a Vec<JudgedKind>);

/// True if the messages of a service differ because of another that it calls; or of one that calls it, if all that is
/// known is that both write less, for it may be called less often.
fn follows(service: Evidence<'_>, other: Evidence<'_>, order: &CallOrder<'_>) -> bool {
    let only_lose = [service, other].iter().all(|one| one.1.iter().all(JudgedKind::is_loss));
    let is_of_calls = |one: Evidence<'_>| one.1.iter().any(|kind| kind.diff.operation.is_some());
    match only_lose && ![service, other].into_iter().any(is_of_calls) {
        true => order.is_caller(other.0, service.0),
        false => order.is_caller(service.0, other.0),
    }
}

/// The name and weight of a service that traces show as a cause.
fn cause(service: &ServiceDiff) -> Option<(String, f64)> {
    service.role.is_cause().then(|| (service.service.clone(), weight_of(service, 0.0)))
}

fn put(services: &mut Vec<ServiceDiff>, service: &str, kinds: &[JudgedKind], errors: f64) {
    let logs: Vec<LogDiff> = kinds.iter().map(|kind| kind.diff.clone()).take(KINDS_MAX).collect();
    let at = services.iter().position(|known| known.service == service).unwrap_or_else(|| {
        services.push(ServiceDiff::unchanged(service));
        services.len() - 1
    });
    services[at].logs = logs;
    if services[at].role == ServiceRole::Unchanged {
        services[at].confidence = if errors >= ERRORS_SURE { Confidence::High } else { Confidence::Medium };
    }
}
