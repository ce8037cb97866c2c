//! Tests of `uneven-assignment`: evidence that must make it fire, and evidence that must not.

use narrows_model::evidence::TrialEvidence;
use narrows_model::finding::{Evidence, Role};
use narrows_testkit::trial::{Load, TrialBuilder};

use super::*;
use crate::thresholds::Thresholds;
use crate::words::InWords;

const NODE: &str = "durable.node.partitions";
const KAFKA: &str = "kafka.consumer.assigned_partitions";
const SECONDS: usize = 20;
const LOAD: Load = Load { vus: 20, rate: 100.0, latency_ms: 200.0 };

/// A hub whose replicas have these (partitions, shares of their limit in use).
fn hub(replicas: &[(f64, f64)]) -> TrialBuilder {
    let trial = TrialBuilder::new("a").cores(16).steady(SECONDS, LOAD).host_cpu(|_| 0.4);
    replicas.iter().zip(0..).fold(trial, |trial, ((partitions, busy), replica)| {
        let (partitions, cores) = (*partitions, 0.5 * busy);
        trial
            .service("hub", Some(0.5))
            .cpu("hub", replica, move |_| cores)
            .series(NODE, "hub", replica, move |_| partitions)
    })
}

/// Twelve partitions over eight replicas, as measured.
fn twelve_over_eight() -> TrialBuilder {
    hub(&[(2.0, 0.93), (2.0, 0.83), (2.0, 0.81), (2.0, 0.83), (1.0, 0.63), (1.0, 0.6), (1.0, 0.6), (1.0, 0.67)])
}

fn detect(trial: &TrialEvidence) -> Vec<Finding> {
    crate::detect(&UnevenAssignment, trial, &Thresholds::default())
}

fn one(trial: TrialBuilder) -> Finding {
    let mut findings = detect(&trial.build());
    assert_eq!(findings.len(), 1, "{findings:?}");
    findings.remove(0)
}

fn evidence_of(finding: &Finding) -> &evidence::UnevenAssignment {
    let Evidence::UnevenAssignment(evidence) = &finding.evidence else { panic!("{finding:?}") };
    evidence
}

#[test]
fn a_number_of_replicas_that_does_not_divide_is_named() {
    let finding = one(twelve_over_eight());
    assert_eq!(finding.title(), "4 of 8 replicas of hub have 2 of its 12 partitions each, the others 1");
    assert_eq!((finding.resource.as_str(), finding.confidence), ("hub", Confidence::Medium));
    let evidence = evidence_of(&finding);
    assert_eq!((evidence.partitions, evidence.replicas, evidence.limit), (12, 8, CpuLimit::Cap { cores: 0.5 }));
    assert!((evidence.idle_by_count - 0.25).abs() < 1e-9, "{evidence:?}");
    assert!((finding.cost_share - 0.13).abs() < 0.01, "the CPU that is idle: {}", finding.cost_share);
    assert_eq!(
        finding.reasons()[1],
        "A replica with the most partitions uses 83 % of its CPU limit of 0.50 cores, one with the fewest 62 %."
    );
    assert!(
        finding.advice().starts_with(
            "Choose a number of replicas of hub that divides its 12 partitions: 6 carry about as much as these 8, 12 carry \
             more. Or give hub more partitions: 16"
        ),
        "{}",
        finding.advice()
    );
    assert_eq!(finding.falsified_by(), "With 12 replicas of hub, some still use much more CPU than others.");
    assert_eq!(finding.caveats, [Caveat::PartitionLoadNotMeasured]);
}

#[test]
fn throughput_that_no_longer_follows_the_load_makes_it_sure() {
    let trial = twelve_over_eight().steady(SECONDS, Load { vus: 60, rate: 101.0, latency_ms: 590.0 });
    assert_eq!(one(trial).confidence, Confidence::High);
    let mixed = [(2.0, 1.0), (2.0, 0.8), (2.0, 0.55), (1.0, 0.6), (1.0, 0.6), (1.0, 0.5)];
    let trial = hub(&mixed).steady(SECONDS, Load { vus: 60, rate: 101.0, latency_ms: 590.0 });
    assert_eq!(one(trial).confidence, Confidence::Medium, "one with two partitions is less busy");
}

#[test]
fn spare_replicas_are_named() {
    let finding = one(hub(&[(1.0, 0.9), (0.0, 0.02), (1.0, 0.95), (0.0, 0.02), (1.0, 0.9)]));
    assert_eq!(finding.title(), "3 of 5 replicas of hub have 1 of its 3 partitions each, the others none");
    assert!((finding.cost_share - 0.4).abs() < 0.01, "{}", finding.cost_share);
    assert_eq!(finding.caveats, [Caveat::SpareReplicasMayBeIntended]);
    assert!(
        finding.advice().contains("3 carry about as much as these 5. Or give hub more partitions: 5"),
        "{finding:?}"
    );
    let finding = one(hub(&[(1.0, 0.9), (0.0, 0.02)]));
    assert_eq!(finding.title(), "1 of 2 replicas of hub has the only partition, the other none");
}

#[test]
fn an_assignment_that_could_be_more_even_is_named() {
    let finding = one(hub(&[(4.0, 0.95), (2.0, 0.5), (2.0, 0.5)]));
    assert_eq!(finding.title(), "1 of 3 replicas of hub has 4 of its 8 partitions, the others 2");
    assert!(
        finding.advice().starts_with("Share the partitions of hub out evenly first: none of its 3 replicas needs more")
    );
    let finding = one(hub(&[(5.0, 0.95), (4.0, 0.75), (3.0, 0.6)]));
    assert_eq!(finding.title(), "1 of 3 replicas of hub has 5 of its 12 partitions, the others fewer");
}

#[test]
fn consumers_of_a_replica_are_added() {
    let trial = TrialBuilder::new("a").cores(16).steady(SECONDS, LOAD);
    let trial =
        [(2.0, 0.9), (1.0, 0.5), (1.0, 0.5)].into_iter().zip(0..).fold(trial, |trial, ((each, busy), replica)| {
            let consumer = |trial: TrialBuilder, client: &str| {
                trial.labelled_series(KAFKA, ("orders", replica), &[("client-id", client)], move |_| each)
            };
            let trial = trial.service("orders", Some(1.0)).cpu("orders", replica, move |_| busy);
            consumer(consumer(trial, "consumer-1"), "consumer-2")
        });
    let finding = one(trial);
    assert_eq!(finding.title(), "1 of 3 replicas of orders has 4 of its 8 partitions, the others 2");
    assert_eq!(evidence_of(&finding).metric, KAFKA);
}

#[test]
fn each_name_of_the_metric_is_read() {
    for name in [
        "kafka.consumer.assigned.partitions",
        "kafka.consumer.coordinator.assigned.partitions",
        "kafka_consumer_coordinator_assigned_partitions",
        "kafka_consumer_consumer_coordinator_metrics_assigned_partitions",
        "org.apache.kafka.consumer.coordinator.assigned.partitions",
    ] {
        let mut trial = twelve_over_eight().build();
        trial.series.iter_mut().filter(|one| one.key.name == NODE).for_each(|one| one.key.name = name.into());
        assert_eq!(detect(&trial).len(), 1, "{name}");
        trial.series.iter_mut().filter(|one| one.key.name == name).for_each(|one| one.key.name.push('x'));
        assert_eq!(detect(&trial).len(), 0, "{name}x");
    }
}

#[test]
fn one_thread_is_a_limit_too() {
    let trial = TrialBuilder::new("a").cores(16).steady(SECONDS, LOAD);
    let trial = [(2.0, 0.95), (1.0, 0.5)].into_iter().zip(0..).fold(trial, |trial, ((partitions, busy), replica)| {
        let trial = trial.service("hub", None).cpu("hub", replica, move |_| busy + 0.1);
        trial.busiest_thread("hub", replica, move |_| busy).series(NODE, "hub", replica, move |_| partitions)
    });
    let finding = one(trial);
    assert_eq!(evidence_of(&finding).limit, CpuLimit::Thread);
    assert_eq!(
        finding.reasons()[1],
        "A replica with the most partitions uses 95 % of one core in its busiest thread, one with the fewest 50 %."
    );
}

#[test]
fn what_is_even_or_costs_nothing_is_left_alone() {
    let cases = [
        ("three each, all busy", hub(&[(3.0, 0.94), (3.0, 0.86), (3.0, 0.87), (3.0, 0.86)])),
        ("one each", hub(&[(1.0, 0.92), (1.0, 0.7), (1.0, 0.72)])),
        ("uneven CPU with even partitions", hub(&[(2.0, 0.95), (2.0, 0.3), (2.0, 0.3)])),
        ("idle", hub(&[(2.0, 0.3), (2.0, 0.3), (1.0, 0.15)])),
        ("all are full", hub(&[(2.0, 0.98), (2.0, 0.97), (1.0, 0.95)])),
        ("those with fewer are busier", hub(&[(2.0, 0.7), (1.0, 0.9)])),
        ("one hot partition among them", hub(&[(2.0, 0.95), (1.0, 0.2), (1.0, 0.2)])),
        ("one replica with other work", hub(&[(2.0, 1.0), (2.0, 0.5), (2.0, 0.5), (1.0, 0.4), (1.0, 0.4)])),
        ("a single replica", hub(&[(12.0, 0.95)])),
        ("no partition at all", hub(&[(0.0, 0.95), (0.0, 0.1)])),
        ("no whole numbers", hub(&[(1.5, 0.95), (0.5, 0.1)])),
        ("negative numbers", hub(&[(-1.0, 0.1), (2.0, 0.95)])),
        ("no partitions, but something else", hub(&[(2e9, 0.95), (1e9, 0.5)])),
    ];
    for (name, trial) in cases {
        assert_eq!(detect(&trial.build()), [], "with {name}");
    }
}

#[test]
fn nothing_is_said_while_a_replica_is_not_known() {
    let without = |name: &str| {
        let mut trial = twelve_over_eight().build();
        trial.series.retain(|series| series.key.replica != 7 || series.key.name != name);
        detect(&trial)
    };
    assert_eq!(without(NODE), [], "one does not report its partitions");
    assert_eq!(without(names::CPU_CORES), [], "the CPU of one was not sampled");
    let moving = |replica: u32| {
        let mut trial = twelve_over_eight().build();
        let is_meant =
            |series: &&mut narrows_model::series::Series| series.key.name == NODE && series.key.replica == replica;
        let points = trial.series.iter_mut().filter(is_meant).flat_map(|series| &mut series.points);
        points.enumerate().filter(|(second, _)| second % 3 == 0).for_each(|(_, point)| point.value += 1.0);
        detect(&trial)
    };
    assert_eq!(moving(0), [], "partitions move");
    let mut late = twelve_over_eight().build();
    let is_new = |key: &SeriesKey| key.name == NODE && key.replica == 7;
    late.series.iter_mut().filter(|one| is_new(&one.key)).for_each(|one| drop(one.points.drain(..18)));
    assert_eq!(detect(&late), [], "a replica joins at the end");
}

#[test]
fn consumers_that_were_closed_before_do_not_count() {
    let mut trial = twelve_over_eight().build();
    let mut closed = trial.series.iter().find(|one| one.key.name == NODE).cloned().expect("a replica");
    closed.key.labels.insert("client-id".into(), "before".into());
    closed.points.iter_mut().for_each(|point| point.time_ns -= 60_000_000_000);
    trial.series.push(closed);
    assert_eq!(detect(&trial).len(), 1);
}

#[test]
fn the_heaviest_load_decides() {
    let lighter = Load { vus: 4, rate: 60.0, latency_ms: 66.0 };
    let uneven_first = |heavy: [f64; 2]| {
        let trial = [(2.0, heavy[0]), (1.0, heavy[1])].into_iter().zip(0..);
        trial.fold(
            TrialBuilder::new("a").cores(16).steady(SECONDS, lighter).steady(SECONDS, LOAD),
            |trial, ((partitions, heavy), replica)| {
                let light = 0.45 * partitions;
                let busy = move |second: u32| if second < SECONDS as u32 { light } else { heavy };
                trial
                    .service("hub", Some(1.0))
                    .cpu("hub", replica, busy)
                    .series(NODE, "hub", replica, move |_| partitions)
            },
        )
    };
    assert_eq!(detect(&uneven_first([1.0, 0.98]).build()), [], "more load fills the others too");
    assert_eq!(evidence_of(&one(uneven_first([1.0, 0.6]))).load.users, 20);
}

#[test]
fn it_comes_before_the_full_processor() {
    let trial = twelve_over_eight().steady(SECONDS, Load { vus: 60, rate: 101.0, latency_ms: 590.0 });
    let findings = crate::diagnose(&trial.build(), &Thresholds::default());
    let kinds: Vec<(FindingKind, Role)> = findings.iter().map(|finding| (finding.kind(), finding.role)).collect();
    let expected = [(FindingKind::UnevenAssignment, Role::NarrowPlace), (FindingKind::CpuSaturation, Role::InTheWay)];
    assert_eq!(kinds, expected);
    let reasons = findings[1].wording(&findings).reasons;
    let why = reasons.last().expect("a reason");
    assert!(why.starts_with("Replicas with fewer partitions have CPU left: 4 of 8 replicas of hub have 2"), "{why}");
}
