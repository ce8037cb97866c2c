//! Tests of `hot-partition`: evidence that must make it fire, and evidence that must not.

use narrows_model::finding::Evidence;
use narrows_model::trace::Trace;
use narrows_testkit::spans::{SpanBuilder, client, document_query, server};
use narrows_testkit::trial::{FIRST_PORT, Load, TrialBuilder};

use super::*;
use crate::words::InWords;

const LOAD: Load = Load { vus: 40, rate: 50.0, latency_ms: 20.0 };

/// A look-up of an owner in a partition, with this length in milliseconds.
fn look_up(partition: usize, key: usize, ms: f64) -> SpanBuilder {
    document_query(&format!("SELECT * FROM c WHERE c.owner = {key}"), &partition.to_string()).at(2.0, ms)
}

fn traces(count: u32, call: impl Fn(usize) -> SpanBuilder) -> Vec<Trace> {
    let request = |n: u32| server("shop", "GET /owner").at(0.0, 50.0).child(call(n as usize));
    (0..count).map(|n| request(n).trace(n * 10)).collect()
}

/// Partition of request `n`: of ten requests, six go to partition 0 and one to each of the others.
fn uneven(n: usize) -> usize {
    (n % 10).saturating_sub(5)
}

fn trial(traces: Vec<Trace>) -> TrialBuilder {
    TrialBuilder::new("a").service("shop", None).service("store", None).steady(20, LOAD).traces(traces)
}

fn with_readings(trial: TrialBuilder, spent: impl Fn(usize) -> f64) -> TrialBuilder {
    (0..5).fold(trial, |trial, partition| {
        let spent = spent(partition);
        trial.throughput("store", &partition.to_string(), 100.0, move |_| spent)
    })
}

fn hot(partition: usize) -> f64 {
    if partition == 0 { 85.0 } else { 15.0 }
}

fn detect(trial: TrialBuilder) -> Vec<Finding> {
    crate::detect(&HotPartition, &trial.build(), &Thresholds::default())
}

fn evidence_of(finding: &Finding) -> &evidence::HotPartition {
    let Evidence::HotPartition(evidence) = &finding.evidence else { panic!("{finding:?}") };
    evidence
}

#[test]
fn a_partition_with_most_of_the_calls_is_named() {
    let findings = detect(with_readings(trial(traces(200, |n| look_up(uneven(n), n, 5.0))), hot));
    let [finding] = &findings[..] else { panic!("one finding, not {findings:?}") };
    assert_eq!(finding.title(), "partition 0 of store takes 60 % of the calls, 3 times the mean of 5");
    assert_eq!((finding.resource.as_str(), finding.operation.as_deref()), ("store", Some("GET /owner")));
    assert!((finding.cost_share - 2.0 / 3.0).abs() < 1e-9, "{}", finding.cost_share);
    assert_eq!((finding.confidence, finding.exemplars.len()), (Confidence::High, 3));
    assert_eq!(finding.reasons()[1], "It uses 85 % of its limit on average, the others 15 %.");
}

#[test]
fn slower_responses_are_a_sign_as_well() {
    let slow = |n: usize| look_up(uneven(n), n, if uneven(n) == 0 { 20.0 } else { 5.0 });
    let findings = detect(trial(traces(200, slow)));
    assert_eq!((findings.len(), findings[0].confidence), (1, Confidence::Medium));
    assert_eq!(evidence_of(&findings[0]).latency.map(|latency| (latency.hot_ns, latency.others_ns)), Some((20e6, 5e6)));
    assert!(findings[0].reasons()[1].starts_with("A call there takes 20.0 ms"), "{:?}", findings[0].reasons());
}

#[test]
fn replicas_are_reported_by_their_ports() {
    let to = |n: usize| client("GET").to_port(FIRST_PORT + 1 + (n % 10).saturating_sub(7) as u16).at(2.0, 9.0);
    let trial = TrialBuilder::new("a").service("shop", None);
    let trial = (0..3).fold(trial, |trial, _| trial.service("stock", Some(1.0))).steady(20, LOAD);
    let cpu = |trial: TrialBuilder, first: f64| {
        (0..3)
            .fold(trial, |trial, replica| trial.cpu("stock", replica, move |_| if replica == 0 { first } else { 0.2 }))
    };
    let findings = detect(cpu(trial.traces(traces(200, to)), 0.9));
    assert_eq!((findings.len(), findings[0].resource.as_str()), (1, "stock"));
    assert!(findings[0].title().starts_with("replica 0 of stock takes 80 % of the calls"), "{}", findings[0].title());
    assert!(findings[0].advice().starts_with("Balance stock by request"));
}

#[test]
fn what_partitions_spend_speaks_where_spans_do_not() {
    let findings = detect(with_readings(trial(Vec::new()), hot));
    assert_eq!((findings.len(), findings[0].confidence), (1, Confidence::Medium));
    assert!(findings[0].title().contains("takes 59 % of what all spend"), "{}", findings[0].title());
    assert_eq!(evidence_of(&findings[0]).counted, Counted::Consumption);
    assert_eq!(findings[0].caveats[1..], [Caveat::KeysNotRecorded, Caveat::ConsumptionCounted]);
}

#[test]
fn few_keys_are_an_artefact() {
    let one = detect(with_readings(trial(traces(200, |_| look_up(0, 7, 5.0))), hot));
    assert_eq!((one.len(), one[0].confidence), (1, Confidence::Low));
    assert!(one[0].title().ends_with("; the load has 1 key only"), "{}", one[0].title());
    let few = detect(with_readings(trial(traces(200, |n| look_up(uneven(n), uneven(n), 5.0))), hot));
    assert_eq!((few.len(), few[0].confidence), (1, Confidence::Low));
    assert_eq!(few[0].caveats[1..], [Caveat::FewKeysByChance { place: PlaceKind::Partition, places: 5 }]);
    assert!(few[0].advice().contains("let the load use as many different keys"));
}

#[test]
fn one_key_of_many_is_reported() {
    let call = |n: usize| look_up(uneven(n), if uneven(n) == 0 { 0 } else { n }, 5.0);
    let findings = detect(with_readings(trial(traces(200, call)), hot));
    assert_eq!(findings[0].confidence, Confidence::High);
    assert!(findings[0].advice().starts_with("One key makes partition 0 of store full"), "{}", findings[0].advice());
}

#[test]
fn few_clients_of_several_replicas_are_an_artefact() {
    let to = |n: usize| client("GET").to_port(FIRST_PORT + 1 + u16::from(n.is_multiple_of(4))).at(2.0, 9.0);
    let load = Load { vus: 4, ..LOAD };
    let trial = TrialBuilder::new("a").service("shop", None).service("stock", Some(1.0)).service("stock", Some(1.0));
    let trial = trial.steady(20, load).traces(traces(200, to));
    let trial = trial.cpu("stock", 0, |_| 0.9).cpu("stock", 1, |_| 0.3);
    let findings = detect(trial);
    assert_eq!((findings.len(), findings[0].confidence), (1, Confidence::Low));
    assert!(findings[0].title().ends_with("the load has 4 clients only"), "{}", findings[0].title());
}

#[test]
fn even_or_harmless_loads_are_left_alone() {
    let even = |n: usize| look_up(n % 5, n, 5.0);
    let all = |_: usize| client("query").children((0..5).map(|partition| look_up(partition, 1, 5.0)));
    let early = |n: usize| look_up(if n < 90 { 0 } else { n % 5 }, n, 5.0);
    let cases = [
        ("evenly spread", with_readings(trial(traces(200, even)), hot)),
        ("all are asked", with_readings(trial(traces(200, all)), hot)),
        ("few calls", with_readings(trial(traces(10, |n| look_up(uneven(n), n, 5.0))), hot)),
        ("no request waits for it", with_readings(trial(traces(200, |n| look_up(uneven(n), n, 5.0))), |_| 20.0)),
        (
            "much room",
            with_readings(trial(traces(200, |n| look_up(uneven(n), n, 5.0))), |p| if p == 0 { 9.0 } else { 2.0 }),
        ),
        ("only at first", with_readings(trial(traces(200, early)), hot)),
        ("without readings", trial(traces(200, |n| look_up(uneven(n), n, 5.0)))),
        ("one partition", trial(traces(200, |n| look_up(0, n, 5.0)))),
        ("even readings alone", with_readings(trial(Vec::new()), |_| 60.0)),
    ];
    for (name, trial) in cases {
        assert_eq!(detect(trial), [], "with {name}");
    }
}

#[test]
fn a_hot_key_of_another_partition_is_not_taken_for_this_ones() {
    // Half of the calls go to partition 0, each with a different key; all calls to partition 1 have the same key.
    let partition = |n: usize| [0, 0, 0, 0, 0, 1, 1, 1, 2, 3][n % 10];
    let key = |n: usize| if partition(n) == 1 { 7777 } else { n };
    let findings = detect(with_readings(trial(traces(200, |n| look_up(partition(n), key(n), 5.0))), hot));
    let [finding] = &findings[..] else { panic!("one finding, not {findings:?}") };
    assert!(finding.title().starts_with("partition 0 of store takes 50 %"), "{}", finding.title());
    assert!(evidence_of(finding).keys.is_some_and(|keys| keys.hot_key_share.is_none()), "{:?}", finding.evidence);
}

#[test]
fn a_request_that_caller_and_replica_both_show_counts_once() {
    let port = |n: usize| FIRST_PORT + 1 + (n % 10).saturating_sub(7) as u16;
    let to = |n: usize| {
        let callee = server("stock", "GET /part").to_port(port(n)).at(3.0, 7.0);
        client("GET").to_port(port(n)).at(2.0, 9.0).child(callee)
    };
    let services = TrialBuilder::new("a").service("shop", None);
    let services = (0..3).fold(services, |trial, _| trial.service("stock", Some(1.0))).steady(20, LOAD);
    let cpu = (0..3).fold(services.traces(traces(200, to)), |trial, replica| {
        trial.cpu("stock", replica, move |_| if replica == 0 { 0.9 } else { 0.2 })
    });
    let findings = detect(cpu);
    assert_eq!(evidence_of(&findings[0]).calls, 200.0);
}
