//! Predictions beside simulations of the changed system: the simulation knows nothing of the formulas.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

use narrows_model::evidence::TrialEvidence;
use narrows_model::finding::Finding;
use narrows_model::finding::evidence::pool_wait::{PoolMetrics, PoolWait};
use narrows_model::prediction::{Doubt, Estimate, Prediction};
use narrows_predict::{Cannot, predict, read_change, score};
use narrows_testkit::simulator::System;

/// Users that rise from hardly any load to a heavy one.
fn steps() -> Vec<(u32, u32)> {
    vec![(2, 18), (8, 15), (16, 15), (24, 15)]
}

fn system() -> System {
    System { steps: steps(), think_ms: 50.0, ..System::default() }
}

fn predicted(trial: &TrialEvidence, change: &str) -> Prediction {
    predict(trial, &[], &[read_change(change).unwrap()]).unwrap().predictions.swap_remove(0)
}

/// Predicted ÷ simulated − 1, of throughput and of mean latency.
fn errors(prediction: &Prediction, after: &TrialEvidence) -> (f64, f64) {
    let load = after.counted_load();
    let rate = prediction.after.rate.value / load.rate() - 1.0;
    (rate, prediction.after.mean_ns.value / load.latency.mean_ns() - 1.0)
}

#[test]
fn predictions_come_close_to_simulations_of_the_change() {
    let fan_out = System { peer_calls: 5, ..system() };
    let slow = System { web_ms: 12.0, ..system() };
    let one_core = System { web_cores: 1, web_ms: 6.0, ..system() };
    let store = System { partitions: 3, provisioned: 300.0, charge: 3.0, ..system() };
    for (name, before, change, after, rate_max, mean_max) in [
        (
            "parallel",
            &fan_out,
            "parallelize=web GET /orders",
            System { is_serial: false, ..fan_out.clone() },
            0.05,
            0.10,
        ),
        ("faster", &slow, "speed-up=web,2", System { web_ms: 6.0, ..slow.clone() }, 0.05, 0.10),
        ("dropped", &fan_out, "drop-call=peer", System { peer_calls: 0, ..fan_out.clone() }, 0.05, 0.12),
        ("more CPU", &one_core, "add-cpu=web,2", System { web_cores: 2, ..one_core.clone() }, 0.08, 0.15),
        ("more units", &store, "raise-rate=store,10", System { provisioned: 1200.0, ..store.clone() }, 0.08, 0.15),
    ] {
        let prediction = predicted(&before.run("before"), change);
        let (rate, mean) = errors(&prediction, &after.run("after"));
        assert!(rate.abs() <= rate_max && mean.abs() <= mean_max, "{name}: {rate:+.3} {mean:+.3} {prediction:#?}");
        assert!(prediction.is_trusted(), "{name}: {:?}", prediction.doubts);
    }
}

#[test]
fn a_system_that_the_model_does_not_reproduce_is_not_trusted() {
    // Most calls are refused again and again, and wait twice as long each time.
    let store = System { partitions: 3, provisioned: 120.0, charge: 3.0, ..system() };
    let prediction = predicted(&store.run("before"), "raise-rate=store,10");
    assert!(!prediction.is_trusted(), "{:?}", prediction.doubts);
}

#[test]
fn the_interval_of_joined_queries_holds_what_one_cheap_query_gains() {
    let before = System { rows_one_by_one: 12, query_ms: 1.0, ..system() };
    let prediction = predicted(&before.run("before"), "join-queries=GET /orders");
    let after = System { rows_one_by_one: 1, ..before }.run("after").counted_load();
    let is_in = |estimate: Estimate, value: f64| (estimate.low..=estimate.high).contains(&value);
    assert!(is_in(prediction.after.rate, after.rate()), "{prediction:#?}");
    assert!(is_in(prediction.after.mean_ns, after.latency.mean_ns()), "{prediction:#?}");
}

#[test]
fn a_larger_pool_is_predicted() {
    // Two queries, during which a request keeps its connection.
    let steps = vec![(2, 18), (8, 15), (24, 15), (40, 15)];
    let before = System { steps, pool: 4, query_ms: 6.0, database_cores: 8, web_ms: 1.0, ..system() };
    let wait = PoolWait {
        query_ns: 12.4e6,
        pool: PoolMetrics { size: Some(4.0), ..PoolMetrics::default() },
        ..PoolWait::default()
    };
    let finding = Finding { resource: "web".into(), ..Finding::new(wait, 1) };
    let change = [read_change("resize-pool=web,12").unwrap()];
    let mut found = predict(&before.run("before"), &[finding], &change).unwrap();
    let after = System { pool: 12, ..before.clone() }.run("after");
    let prediction = &mut found.predictions[0];
    let (rate, mean) = errors(prediction, &after);
    assert!(rate.abs() <= 0.08 && mean.abs() <= 0.15, "{rate:+.3} {mean:+.3} {prediction:#?}");
    score(prediction, &after).unwrap();
    let measured = prediction.measured.clone().unwrap();
    assert_eq!((measured.trial.as_str(), measured.figures.rate), ("after", after.counted_load().rate()));
    let other = System { steps: vec![(3, 20)], ..before }.run("other");
    assert_eq!(score(prediction, &other), Err(Cannot::OtherLoad { trial: "other".into() }));
    let unknown = [read_change("resize-pool=shop").unwrap()];
    assert!(matches!(predict(&after, &[], &unknown), Err(Cannot::Unknown { .. })));
}

#[test]
fn more_load_is_predicted_and_doubted_far_beyond_what_was_tested() {
    let before = System { web_cores: 1, ..system() };
    let trial = before.run("before");
    let change = read_change("more-load=32").unwrap();
    let found = predict(&trial, &[], &[change]).unwrap();
    assert!(found.sentence.starts_with("In before, a load of 32 users would reach "), "{}", found.sentence);
    let prediction = &found.predictions[0];
    let after = System { steps: vec![(32, 30)], ..before.clone() }.run("after");
    let (rate, mean) = errors(prediction, &after);
    assert!(rate.abs() <= 0.05 && mean.abs() <= 0.10, "{rate:+.3} {mean:+.3} {prediction:#?}");
    assert_eq!(prediction.levels.iter().map(|level| level.load.users).collect::<Vec<_>>(), [8, 16, 24, 32]);
    let is_beyond =
        |change| predicted(&trial, change).doubts.iter().any(|doubt| matches!(doubt, Doubt::BeyondTested { .. }));
    assert!(!is_beyond("more-load=36") && is_beyond("more-load=40"));
}

#[test]
fn a_prediction_is_the_same_each_time_and_its_interval_holds_it() {
    let trial = System { peer_calls: 4, ..system() }.run("before");
    let one = predicted(&trial, "parallelize=GET /orders");
    assert_eq!(one, predicted(&trial, "parallelize=GET /orders"));
    for estimate in [one.after.rate, one.after.mean_ns, one.after.p95_ns] {
        assert!(estimate.low < estimate.value && estimate.value < estimate.high, "{estimate:?}");
    }
    assert!(one.limit_after.is_some(), "CPU limits every system");
}
