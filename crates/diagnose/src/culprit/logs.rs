//! Error messages that are new or became more frequent, at the service that logs them.
//!
//! They make no service a cause by themselves: a service may log for another, and many errors are handled. They are
//! evidence at a service, and settle which of two nearly equal causes comes first.
//!
//! Counts are compared for the same number of requests; where requests were not counted, for the same time. As with
//! failures, the square root of twice the logarithm of the likelihood ratio of two Poisson counts says how certain a
//! growth is.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use narrows_model::diff::{Fate, LogDiff, ServiceDiff, ServiceRole};
use narrows_model::evidence::{ErrorLog, TrialEvidence};
use narrows_model::finding::Confidence;

/// Records from which a kind of message appeared.
const NEW_MIN: u64 = 5;
/// Standard errors from which it did, and from which one became more frequent.
const ERRORS_MIN_NEW: f64 = 3.0;
const ERRORS_MIN: f64 = 4.0;
/// Times as many from which one became more frequent: errors come in bursts.
const GROWTH_MIN: f64 = 2.0;
/// Kinds reported for each service.
const KINDS_MAX: usize = 5;

/// Puts new and growing kinds of error messages to their services. A service without spans is added.
pub(super) fn put_to(services: &mut Vec<ServiceDiff>, before: &[&TrialEvidence], after: &[&TrialEvidence]) {
    let (old, new) = (counts(before), counts(after));
    let exposures = exposures(before, after);
    let mut grown: BTreeMap<&str, Vec<LogDiff>> = BTreeMap::new();
    for ((service, template), count) in &new {
        let known = old.get(&(*service, *template)).copied().unwrap_or(0);
        if let Some(diff) = growth(template, known, *count, exposures) {
            grown.entry(service).or_default().push(diff);
        }
    }
    for (service, mut kinds) in grown {
        kinds.sort_by_key(|kind| (Reverse(kind.after.saturating_sub(kind.before)), kind.template.clone()));
        kinds.truncate(KINDS_MAX);
        match services.iter_mut().find(|known| known.service == service) {
            Some(known) => known.logs = kinds,
            None => services.push(without_spans(service, kinds)),
        }
    }
}

/// Records by service and kind.
fn counts<'a>(trials: &[&'a TrialEvidence]) -> BTreeMap<(&'a str, &'a str), u64> {
    let mut counts: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for ErrorLog { service, template, count } in trials.iter().flat_map(|trial| &trial.error_logs) {
        let known = counts.entry((service, template)).or_default();
        *known = known.saturating_add(*count);
    }
    counts
}

/// Denominators of the counts of both sides: requests, or seconds if a side has no requests.
fn exposures(before: &[&TrialEvidence], after: &[&TrialEvidence]) -> (f64, f64) {
    let sum = |side: &[&TrialEvidence], of: fn(&TrialEvidence) -> f64| side.iter().map(|trial| of(trial)).sum::<f64>();
    let requests = |side| sum(side, |trial| trial.counted_load().sent as f64);
    let seconds = |side| {
        sum(side, |trial| trial.counted_windows().map(|window| (window.end_ns - window.start_ns) as f64 / 1e9).sum())
    };
    match (requests(before), requests(after)) {
        (old, new) if old > 0.0 && new > 0.0 => (old, new),
        _ => (seconds(before), seconds(after)),
    }
}

fn growth(template: &str, before: u64, after: u64, exposures: (f64, f64)) -> Option<LogDiff> {
    let errors = certainty(
        Events { count: before as f64, exposure: exposures.0 },
        Events { count: after as f64, exposure: exposures.1 },
    )?;
    let growth = (before > 0).then(|| (after as f64 / exposures.1) / (before as f64 / exposures.0));
    let is_more = match growth {
        None => after >= NEW_MIN && errors >= ERRORS_MIN_NEW,
        Some(growth) => growth >= GROWTH_MIN && errors >= ERRORS_MIN,
    };
    let fate = if before == 0 { Fate::Appeared } else { Fate::Changed };
    is_more.then(|| LogDiff { template: template.to_owned(), fate, before, after, growth })
}

/// Events of one side, and the requests or seconds in which they occurred.
struct Events {
    count: f64,
    exposure: f64,
}

/// Growth of the rate of events, in standard errors; `None` if nothing could be counted.
fn certainty(before: Events, after: Events) -> Option<f64> {
    let (old, new) = (before.count, after.count);
    let (before, after) = (before.exposure, after.exposure);
    let is_countable = before > 0.0 && after > 0.0 && old + new > 0.0;
    let rate = is_countable.then(|| (old + new) / (before + after))?;
    let surplus = |count: f64, of: f64| if count > 0.0 { count * (count / (rate * of)).ln() } else { 0.0 };
    let root = (2.0 * (surplus(old, before) + surplus(new, after))).max(0.0).sqrt();
    Some(root.copysign(new / after - old / before))
}

pub(super) fn without_spans(service: &str, logs: Vec<LogDiff>) -> ServiceDiff {
    ServiceDiff {
        service: service.to_owned(),
        role: ServiceRole::Unchanged,
        confidence: Confidence::Low,
        before_ns: 0.0,
        after_ns: 0.0,
        change_ns: 0.0,
        share: None,
        latency_share: 0.0,
        calls: None,
        errors: (0.0, 0.0),
        requests: None,
        cpu: None,
        cpu_limit: None,
        memory: None,
        reached: None,
        call_ns: None,
        spans: Vec::new(),
        logs,
        example: None,
    }
}

#[cfg(test)]
mod tests {
    use narrows_testkit::trial::{Load, TrialBuilder};

    use super::*;

    /// A trial of 500 requests in ten seconds, and the errors that were logged.
    fn trial(errors: &[(&str, &str, u64)]) -> TrialEvidence {
        let mut trial = TrialBuilder::new("a").steady(10, Load { vus: 4, rate: 50.0, latency_ms: 5.0 }).build();
        let log = |(service, template, count): &(&str, &str, u64)| ErrorLog {
            service: (*service).to_owned(),
            template: (*template).to_owned(),
            count: *count,
        };
        trial.error_logs = errors.iter().map(log).collect();
        trial
    }

    /// Service, kind of message and whether it is new, of all that is put to services.
    fn found(before: &[(&str, &str, u64)], after: &[(&str, &str, u64)]) -> Vec<(String, String, Fate)> {
        let mut services = Vec::new();
        put_to(&mut services, &[&trial(before)], &[&trial(after)]);
        let kinds =
            services.into_iter().flat_map(|one| one.logs.into_iter().map(move |kind| (one.service.clone(), kind)));
        kinds.map(|(service, kind)| (service, kind.template, kind.fate)).collect()
    }

    #[test]
    fn new_and_growing_kinds_are_found_and_others_are_not() {
        let before = [("pay", "card * declined", 10), ("pay", "slow *", 3), ("cart", "no stock", 40)];
        let after =
            [("pay", "card * declined", 60), ("pay", "slow *", 9), ("pay", "queue full", 7), ("cart", "no stock", 55)];
        assert_eq!(
            found(&before, &after),
            [
                ("pay".to_owned(), "card * declined".to_owned(), Fate::Changed),
                ("pay".to_owned(), "queue full".to_owned(), Fate::Appeared),
            ]
        );
        assert_eq!(found(&after, &before), []);
        assert_eq!(found(&[], &[("pay", "queue full", 4)]), [], "too few to have appeared");
    }

    #[test]
    fn counts_are_of_as_many_requests() {
        let half = |rate: f64| TrialBuilder::new("a").steady(10, Load { vus: 4, rate, latency_ms: 5.0 }).build();
        let (mut few, mut many) = (half(50.0), half(500.0));
        let log = |count| vec![ErrorLog { service: "pay".into(), template: "declined".into(), count }];
        (few.error_logs, many.error_logs) = (log(10), log(100));
        let mut services = Vec::new();
        put_to(&mut services, &[&few], &[&many]);
        assert_eq!(services, []);
    }
}
