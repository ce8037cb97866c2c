//! Predictions beside simulations of the changed system: the simulation knows nothing of the formulas.

use std::collections::BTreeSet;

use narrows_model::call_graph::{CallEdge, CallFigures, CallGraph, CallLevel};
use narrows_model::evidence::TrialEvidence;
use narrows_model::finding::evidence::disk_bound::DiskBound;
use narrows_model::finding::evidence::pool_wait::{PoolMetrics, PoolWait};
use narrows_model::finding::{Finding, FindingKind};
use narrows_model::prediction::{ChangeKind, Doubt, Estimate, Prediction, ResourceKind};
use narrows_predict::{Cannot, DiagnosedTrial, Order, predict, read_change, score, score_run};
use narrows_testkit::simulator::System;

/// Users that rise from hardly any load to a heavy one.
fn steps() -> Vec<(u32, u32)> {
    vec![(2, 18), (8, 15), (16, 15), (24, 15)]
}

fn system() -> System {
    System { steps: steps(), think_ms: 50.0, ..System::default() }
}

fn predicted(trial: &TrialEvidence, change: &str) -> Prediction {
    predict(&DiagnosedTrial::new(trial, &[]), &[read_change(change).unwrap()]).unwrap().predictions.swap_remove(0)
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
fn waits_under_one_level_are_not_taken_for_a_delay() {
    let steps = vec![(12, 40)];
    let before = System { steps, web_cores: 1, web_ms: 8.0, think_ms: 60.0, ..System::default() };
    let prediction = predicted(&before.run("before"), "add-cpu=web,2");
    let (rate, mean) = errors(&prediction, &System { web_cores: 2, ..before }.run("after"));
    assert!(rate.abs() <= 0.05 && mean.abs() <= 0.12, "{rate:+.3} {mean:+.3} {prediction:#?}");
}

#[test]
fn a_system_that_the_model_does_not_reproduce_is_not_trusted() {
    // Most calls are refused again and again, and wait twice as long each time.
    let store = System { partitions: 3, provisioned: 120.0, charge: 3.0, ..system() };
    let prediction = predicted(&store.run("before"), "raise-rate=store,10");
    assert!(!prediction.is_trusted(), "{:?}", prediction.doubts);
}

#[test]
fn a_store_gives_requests_less_than_it_provides_while_it_refuses_calls() {
    // With 16 users calls begin to be refused: units are left over in one second and missing in the next.
    let store = System { partitions: 3, provisioned: 190.0, charge: 3.0, ..system() };
    let prediction = predicted(&store.run("before"), "raise-rate=store,10");
    assert!(prediction.is_trusted(), "{:?}", prediction.doubts);
    let (rate, mean) = errors(&prediction, &System { provisioned: 1200.0, ..store }.run("after"));
    assert!(rate.abs() <= 0.05 && mean.abs() <= 0.10, "{rate:+.3} {mean:+.3} {prediction:#?}");
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
fn a_single_user_shares_no_commit() {
    // The time at the peer stands for the disk: no service computes in it.
    let steps = vec![(1, 30)];
    let trial = System { steps, web_ms: 20.0, peer_ms: 40.0, think_ms: 0.0, ..system() }.run("before");
    let disk = DiskBound { at_disk: 0.5, in_flight: 1.0, requests: 1.0, rate: 20.0, ..DiskBound::default() };
    let finding = Finding { resource: "web".into(), ..Finding::new(disk, 1) };
    let change = [read_change("batch-commits=web").unwrap()];
    let refused = predict(&DiagnosedTrial::new(&trial, &[finding]), &change).unwrap_err();
    assert_eq!(refused, Cannot::OneUser { change: ChangeKind::BatchCommits });
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
    let mut found = predict(&DiagnosedTrial::new(&before.run("before"), &[finding]), &change).unwrap();
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
    assert!(matches!(predict(&DiagnosedTrial::new(&after, &[]), &unknown), Err(Cannot::Unknown { .. })));
}

#[test]
fn more_load_is_predicted_and_doubted_far_beyond_what_was_tested() {
    let before = System { web_cores: 1, ..system() };
    let trial = before.run("before");
    let change = read_change("more-load=32").unwrap();
    let found = predict(&DiagnosedTrial::new(&trial, &[]), &[change]).unwrap();
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

#[test]
fn a_cache_is_predicted_and_needs_a_hit_rate() {
    let before = System { peer_calls: 5, ..system() };
    let trial = before.run("before");
    let all = predicted(&trial, "cache=peer,1");
    let dropped = predicted(&trial, "drop-call=peer");
    assert_eq!(all.after, dropped.after, "a cache that always hits makes no call");
    let half = predicted(&trial, "cache=peer,0.4");
    // Five calls with three misses in the mean take about as long as three calls.
    let (rate, mean) = errors(&half, &System { peer_calls: 3, ..before }.run("after"));
    assert!(rate.abs() <= 0.05 && mean.abs() <= 0.12, "{rate:+.3} {mean:+.3} {half:#?}");
    let without = predict(&DiagnosedTrial::new(&trial, &[]), &[read_change("cache=peer").unwrap()]).unwrap_err();
    assert_eq!(without.to_string(), "`cache` needs an amount");
}

#[test]
fn bounded_calls_at_once_lie_between_all_and_one() {
    let trial = System { peer_calls: 6, ..system() }.run("before");
    let mean = |change: &str| predicted(&trial, change).after.mean_ns.value;
    let (one, two, all) =
        (mean("parallelize=GET /orders,1"), mean("parallelize=GET /orders,2"), mean("parallelize=GET /orders"));
    assert!(all < 0.95 * two && two < 0.95 * one, "{all} {two} {one}");
    let now = trial.counted_load().latency.mean_ns();
    assert!((one / now - 1.0).abs() < 0.05, "one at a time changes nothing: {one} {now}");
}

#[test]
fn calls_at_once_may_find_no_more_connections_than_were_open() {
    let trial = System { peer_calls: 5, ..system() }.run("before");
    let all = CallFigures { connections: 3.0, ..CallFigures::default() };
    let levels = vec![CallLevel { all, ..CallLevel::default() }];
    let edge = CallEdge { caller: "web".into(), callee: "peer".into(), levels };
    let graph = CallGraph { edges: vec![edge], ..CallGraph::default() };
    let with_sockets = DiagnosedTrial { calls: Some(&graph), ..DiagnosedTrial::new(&trial, &[]) };
    let change = [read_change("parallelize=GET /orders").unwrap()];
    let bounded = predict(&with_sockets, &change).unwrap().predictions.swap_remove(0).after.mean_ns;
    let free = predicted(&trial, "parallelize=GET /orders").after.mean_ns;
    assert_eq!((bounded.value, bounded.low), (free.value, free.low));
    assert!(bounded.high > 1.5 * free.high, "{bounded:?} {free:?}");
}

#[test]
fn a_database_of_reads_scales_with_its_nodes() {
    let before = System { database_cores: 1, query_ms: 9.0, queries: 2, web_ms: 1.0, ..system() };
    let trial = before.run("before");
    let prediction = predicted(&trial, "spread-database=database,3");
    let after = System { database_cores: 3, ..before }.run("after");
    let (rate, _) = errors(&prediction, &after);
    // Three queues of one core each wait longer than the one queue of three that is simulated.
    assert!((-0.20..=0.02).contains(&rate), "{rate:+.3} {prediction:#?}");
    assert!(prediction.after.rate.value > 1.5 * prediction.now.rate, "{prediction:#?}");
}

#[test]
fn a_sidecar_costs_the_cpu_that_is_given() {
    let before = System { web_cores: 1, web_ms: 6.0, ..system() };
    let trial = before.run("before");
    let free = predicted(&trial, "add-sidecar=web,0.001");
    assert!((free.after.mean_ns.value / free.now.mean_ns - 1.0).abs() < 0.01, "{free:#?}");
    let dear = predicted(&trial, "add-sidecar=web,2000");
    assert!(dear.after.mean_ns.value > free.after.mean_ns.value + 2e6, "each pass takes its CPU: {dear:#?}");
    assert!(matches!(
        predict(&DiagnosedTrial::new(&trial, &[]), &[read_change("add-sidecar=shop,10").unwrap()]),
        Err(Cannot::Unknown { .. })
    ));
}

#[test]
fn commits_that_requests_share_no_longer_limit() {
    let before = system();
    let trial = before.run("before");
    let top = trial.counted_load().rate() * 1.6;
    let disk = DiskBound { rate: top, at_disk: 0.95, behind: 8.0, ..DiskBound::default() };
    let finding = Finding { resource: "web".into(), ..Finding::new(disk, 1) };
    let of = |change: &str| {
        predict(&DiagnosedTrial::new(&trial, std::slice::from_ref(&finding)), &[read_change(change).unwrap()])
            .unwrap()
            .predictions
            .swap_remove(0)
    };
    let shared = of("batch-commits=web");
    let limit = shared.limit_now.clone().unwrap();
    assert_eq!((limit.kind, limit.name.as_str()), (ResourceKind::Commits, "web"));
    assert!(shared.limit_after.clone().unwrap().kind != ResourceKind::Commits, "{shared:#?}");
    let by_four = of("batch-commits=web,4");
    let commits = |one: &Prediction| one.limit_after.clone().filter(|limit| limit.kind == ResourceKind::Commits);
    assert!(commits(&by_four).is_none_or(|after| (after.rate_max / limit.rate_max - 4.0).abs() < 1e-6), "{by_four:#?}");
    assert!(matches!(
        predict(&DiagnosedTrial::new(&trial, &[]), &[read_change("batch-commits=web").unwrap()]),
        Err(Cannot::Unknown { .. })
    ));
}

#[test]
fn variants_that_differ_in_more_than_was_recognised_are_not_scored() {
    let rows = System { rows_one_by_one: 12, peer_calls: 0, ..system() };
    let joined = System { rows_one_by_one: 1, ..rows.clone() };
    let variant = |system: &System, name: &str, parameters: &[(&str, &str)]| {
        let mut trial = system.run(name);
        trial.trial.variant = name.to_owned();
        trial.trial.parameters =
            parameters.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        trial
    };
    let finding = Finding {
        resource: "web".into(),
        operation: Some("GET /orders".into()),
        ..Finding::new(FindingKind::NPlusOne, 1)
    };
    let scored = |trials: &[TrialEvidence]| {
        let findings = [finding.clone()];
        let diagnosed: Vec<DiagnosedTrial<'_>> =
            trials.iter().map(|trial| DiagnosedTrial::new(trial, &findings)).collect();
        let request_parameters = BTreeSet::from(["page".to_owned()]);
        let pairs = score_run(&diagnosed, &request_parameters, Order::Later);
        pairs.into_iter().map(|pair| format!("{} {}", pair.before, pair.after)).collect::<Vec<_>>()
    };
    let before = variant(&rows, "rows", &[("queries", "single"), ("page", "1")]);
    let after = variant(&joined, "joined", &[("queries", "joined"), ("page", "1")]);
    let with_cache = variant(&joined, "cached", &[("queries", "joined"), ("page", "1"), ("cache", "on")]);
    let of_other_pages = variant(&joined, "other", &[("queries", "joined"), ("page", "2")]);
    assert_eq!(scored(&[before.clone(), with_cache.clone()]), ["rows cached"], "nothing shows that it is more");
    assert_eq!(scored(&[before, after, with_cache, of_other_pages]), ["rows joined"]);
}
