//! Waits in front of the service where requests begin: the time of users that no trace shows, as when a service is stopped, or
//! is too late to read requests from its sockets.

use narrows_model::diff::{ServiceDiff, ServiceRole};
use narrows_model::evidence::TrialEvidence;
use narrows_model::finding::Confidence;
use narrows_model::run::Verdict;

use super::change::Comparison;
use crate::thresholds::Thresholds;

/// Times as long a wait as before: networks and the load generator take a part of it, which varies.
const GROWTH_MIN: f64 = 2.0;

/// Names the service where requests begin if users wait notably longer in front of it, and this is more than it changed
/// otherwise. Nothing is said of requests that begin at several services, nor of a load that could not be sent in time.
pub(super) fn judge(
    services: &mut [ServiceDiff],
    comparison: &Comparison,
    before: &[&TrialEvidence],
    after: &[&TrialEvidence],
    thresholds: &Thresholds,
) {
    let Some(service) = comparison.entry().and_then(|entry| services.iter_mut().find(|one| one.service == entry))
    else {
        return;
    };
    let Some(users) = users_ns(before).zip(users_ns(after)) else { return };
    let (traced_before, traced_after) = comparison.requests().latency_ns;
    let outside = ((users.0 - traced_before).max(0.0), (users.1 - traced_after).max(0.0));
    let growth = outside.1 - outside.0;
    let is_certain = (users.1 / users.0).ln() >= comparison.between_trials;
    let is_notable = growth >= thresholds.culprit_share * users.0 && outside.1 >= GROWTH_MIN * outside.0;
    if is_certain && is_notable && growth > service.change_ns && service.role != ServiceRole::Failing {
        (service.role, service.confidence) = (ServiceRole::Slower, Confidence::Medium);
        (service.change_ns, service.latency_share) = (growth, growth / users.1);
        service.share = Some(growth / (users.1 - users.0));
        service.outside_ns = Some(outside);
    }
}

/// Mean time from sending a request of the load to its response, nanoseconds; `None` if Narrows sent no load, or was too
/// late to be trusted.
fn users_ns(trials: &[&TrialEvidence]) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0.0);
    for trial in trials {
        if trial.trial.validity.verdict == Verdict::Invalid {
            return None;
        }
        let times = trial.counted_load().service;
        sum += times.mean_ns() * times.count() as f64;
        count += times.count() as f64;
    }
    (count > 0.0).then(|| sum / count)
}

#[cfg(test)]
mod tests {
    use narrows_testkit::spans::server;
    use narrows_testkit::trial::{Load, TrialBuilder};

    use super::super::{NamedTrials, ranking};
    use super::*;

    /// A shop whose requests take 20 ms by their spans, and this long for users.
    fn trial(latency_ms: f64) -> TrialEvidence {
        let load = Load { vus: 4, rate: 50.0, latency_ms };
        let requests = (0..200).map(|n| server("shop", "GET /").at(f64::from(n) * 50.0, 20.0).trace(n));
        TrialBuilder::new("a").service("shop", None).steady(20, load).traces(requests).build()
    }

    fn ranked(before: &TrialEvidence, after: &TrialEvidence) -> ServiceDiff {
        let named = |label, trials| NamedTrials { label, trials };
        let (before, after) = ([before], [after]);
        let mut found = ranking(named("before", &before), named("after", &after), &Thresholds::default());
        found.services.swap_remove(0)
    }

    #[test]
    fn a_longer_wait_of_users_that_no_span_shows_is_the_first_services() {
        let found = ranked(&trial(21.0), &trial(50.0));
        assert_eq!((found.role, found.service.as_str()), (ServiceRole::Slower, "shop"));
        let (old, new) = found.outside_ns.expect("a wait");
        assert!((old - 1e6).abs() < 2e5 && (new - 30e6).abs() < 1e6, "{old} {new}");
        assert!(super::super::sentence(&[found]).is_some_and(|text| text.starts_with("requests wait 30")));
    }

    #[test]
    fn a_little_more_and_a_wait_that_was_there_are_no_change() {
        for (before, after) in [(21.0, 22.0), (50.0, 55.0), (50.0, 21.0)] {
            assert_ne!(ranked(&trial(before), &trial(after)).role, ServiceRole::Slower, "{before} {after}");
        }
    }
}
