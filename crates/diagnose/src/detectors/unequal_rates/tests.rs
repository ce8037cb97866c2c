//! Tests of `unequal-rates`: evidence that must make it fire, and evidence that must not.

use narrows_model::finding::Evidence;
use narrows_testkit::trial::{Load, TrialBuilder, run_of_trials};

use super::*;
use crate::compare;
use crate::words::InWords;

/// A variant with these services, each of which uses a quarter of a core.
fn variant(name: &str, services: &[&str], rate: f64) -> TrialBuilder {
    let trial = TrialBuilder::new(name).steady(20, Load { vus: 8, rate, latency_ms: 8e3 / rate });
    services.iter().fold(trial, |trial, service| trial.service(service, None).cpu(service, 0, |_| 0.25))
}

fn detect(trials: [TrialBuilder; 2]) -> Vec<(usize, Finding)> {
    let run = run_of_trials(trials.map(TrialBuilder::build));
    let thresholds = Thresholds::default();
    UnequalRates.detect_run(&run, &compare(&run, &thresholds), &thresholds)
}

#[test]
fn a_variant_with_more_services_at_another_rate_is_reported() {
    let with_more = variant("all", &["shop", "shop.sidecar", "cache", "gateway"], 50.0);
    let found = detect([variant("plain", &["shop"], 100.0), with_more]);
    let [(1, finding)] = &found[..] else { panic!("one finding in the second trial, not {found:?}") };
    assert_eq!(
        finding.title(),
        "all completes 50.0/s and plain 100/s, so their total CPU and latency do not show what sidecars, cache and \
         gateway cost"
    );
    assert_eq!(
        finding.reasons(),
        [
            "The load is closed: faster responses lead to more requests, so each variant sets its own rate.",
            "What can be compared: CPU for each request is 2.50 ms in plain and 20.0 ms in all."
        ]
    );
    let Evidence::UnequalRates(evidence) = &finding.evidence else { panic!("{finding:?}") };
    assert!(evidence.adds_sidecars && !evidence.is_open, "{evidence:?}");
    assert_eq!(evidence.added_services, ["cache", "gateway"]);
    assert_eq!(finding.cost_share, 0.5);
}

#[test]
fn one_service_costs_and_several_cost() {
    for (services, end) in
        [(&["shop", "cache"][..], "what cache costs"), (&["shop", "shop.sidecar"], "what sidecars cost")]
    {
        let found = detect([variant("plain", &["shop"], 100.0), variant("more", services, 50.0)]);
        assert!(found[0].1.title().ends_with(end), "{}", found[0].1.title());
    }
}

#[test]
fn a_variant_that_costs_more_for_each_request_is_reported() {
    let found = detect([variant("old", &["shop"], 100.0), variant("new", &["shop"], 50.0)]);
    let [(1, finding)] = &found[..] else { panic!("one finding in the second trial, not {found:?}") };
    assert!(finding.title().ends_with("do not show what it costs"), "{}", finding.title());
}

#[test]
fn gains_and_equal_rates_are_silent() {
    assert_eq!(detect([variant("old", &["shop"], 100.0), variant("new", &["shop"], 200.0)]), [], "a gain");
    assert_eq!(detect([variant("old", &["shop"], 100.0), variant("new", &["shop", "cache"], 100.0)]), [], "one rate");
}
