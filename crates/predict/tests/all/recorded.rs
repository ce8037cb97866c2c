//! Predictions from recorded runs of the reference systems, beside what the next variant then measured.
//!
//! The recordings are those of `crates/diagnose/corpus/recorded/`; each holds a few traces of each trial only. The bounds hold
//! the accuracy that was reached, with some room, so that it cannot get worse unnoticed. They are not goals.

use std::path::Path;

use narrows_model::evidence::{RunEvidence, TrialEvidence};
use narrows_model::prediction::{Prediction, ResourceKind};
use narrows_predict::{DiagnosedTrial, predict, read_change, score};
use narrows_testkit::recorded;

fn recording(name: &str) -> RunEvidence {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../diagnose/corpus/recorded");
    let file = folder.join(format!("{name}.json.gz"));
    recorded::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

fn trial<'a>(run: &'a RunEvidence, variant: &str) -> &'a TrialEvidence {
    run.trials.iter().find(|trial| trial.trial.variant == variant).unwrap()
}

/// A change, the variants before and after it, and how far throughput and mean latency may be off.
type Case<'c> = (&'c str, &'c str, &'c str, f64, f64);

fn check(run: &RunEvidence, (before, change, after, rate_max, mean_max): Case<'_>) -> Prediction {
    let mut prediction = predict(&DiagnosedTrial::new(trial(run, before), &[]), &[read_change(change).unwrap()])
        .unwrap()
        .predictions
        .swap_remove(0);
    score(&mut prediction, trial(run, after)).unwrap();
    let measured = prediction.measured.as_ref().unwrap().figures;
    let rate = prediction.after.rate.value / measured.rate - 1.0;
    let mean = prediction.after.mean_ns.value / measured.mean_ns - 1.0;
    assert!(
        rate.abs() <= rate_max && mean.abs() <= mean_max,
        "{before} {change}: {rate:+.3} {mean:+.3} {prediction:#?}"
    );
    prediction
}

#[test]
fn the_fixes_of_drone_delivery_are_predicted() {
    let run = recording("drone-delivery");
    let operation = "GET /api/dronedeliveries/utilization";
    let raised = check(&run, ("test-1", "raise-rate=docstore,2.78", "test-2", 0.06, 0.15));
    assert!(raised.is_trusted(), "{:?}", raised.doubts);
    let parallel = check(&run, ("test-2", &format!("parallelize={operation}"), "test-3", 0.08, 0.15));
    let limit = parallel.limit_after.unwrap();
    // Both are nearly used up then.
    let limits = [(ResourceKind::RequestUnits, "docstore"), (ResourceKind::Cpu, "dronescheduler")];
    assert!(limits.contains(&(limit.kind, limit.name.as_str())), "{limit:?}");
    check(&run, ("test-2", &format!("route-query={operation}"), "test-4", 0.10, 0.22));
    check(&run, ("test-3", &format!("route-query={operation}"), "test-4", 0.09, 0.17));
}

#[test]
fn joined_queries_of_micron_are_predicted() {
    let run = recording("micron");
    // Close to the limit of its database, a few per cent of CPU are much of the latency.
    check(&run, ("initial", "join-queries=GET /owners", "rewritten", 0.03, 1.10));
    check(&run, ("demultiplexer", "spread-database=database", "three-nodes", 0.02, 0.30));
}

#[test]
fn customer_360_without_its_sidecars_is_predicted() {
    let run = recording("customer-360");
    let prediction = check(&run, ("sidecar-unthrottled", "remove-sidecar", "plain-unthrottled", 0.20, 0.20));
    assert_eq!(prediction.limit_after.map(|limit| limit.kind), Some(ResourceKind::Machine));
    check(&run, ("envoy-unthrottled", "remove-sidecar", "plain-unthrottled", 0.45, 0.80));
}

#[test]
fn requests_that_arrive_together_wait_for_each_other_with_and_without_sidecars() {
    let run = recording("customer-360");
    check(&run, ("sidecar-equal-rate", "remove-sidecar", "plain-equal-rate", 0.01, 0.17));
    check(&run, ("plain-equal-rate", "add-sidecar=,72", "sidecar-equal-rate", 0.01, 0.15));
    check(&run, ("envoy-equal-rate", "remove-sidecar", "plain-equal-rate", 0.01, 0.20));
}
