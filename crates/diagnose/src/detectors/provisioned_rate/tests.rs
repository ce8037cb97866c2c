//! Tests of `provisioned-rate`: evidence that must make it fire, and evidence that must not.

use narrows_model::finding::Evidence;
use narrows_model::series::{Point, Series, names};
use narrows_testkit::TRIAL_START_NS;
use narrows_testkit::operations::{operation, store_calls};
use narrows_testkit::trial::{Load, TrialBuilder};

use super::*;
use crate::thresholds::Thresholds;
use crate::words::InWords;

const LOAD: Load = Load { vus: 8, rate: 50.0, latency_ms: 20.0 };

fn trial(seconds: usize, spent: impl Fn(u32) -> f64 + 'static) -> TrialBuilder {
    TrialBuilder::new("a")
        .service("store", None)
        .steady(seconds, LOAD)
        .throughput("store", "0", 100.0, |_| 40.0)
        .throughput("store", "1", 100.0, spent)
}

fn detect(trial: &TrialEvidence) -> Vec<Finding> {
    crate::detect(&ProvisionedRate, trial, &Thresholds::default())
}

fn evidence_of(finding: &Finding) -> &evidence::ProvisionedRate {
    let Evidence::ProvisionedRate(evidence) = &finding.evidence else { panic!("{finding:?}") };
    evidence
}

/// Thirty seconds, the last ten of them full.
fn full(second: u32) -> f64 {
    if second >= 20 { 92.0 } else { 45.0 }
}

#[test]
fn a_full_partition_is_named_before_it_refuses() {
    let findings = detect(&trial(30, full).build());
    let [finding] = &findings[..] else { panic!("one finding, not {findings:?}") };
    assert_eq!(finding.title(), "store has no headroom: 92 % of the provisioned rate at the top");
    assert_eq!((finding.resource.as_str(), finding.confidence), ("store", Confidence::High));
    assert!((finding.cost_share - 10.0 / 29.0).abs() < 0.01, "{}", finding.cost_share);
    assert_eq!(
        finding.reasons()[1..],
        [
            "Its mean over the run, 61 %, hides that. 1 of 2 partitions are as full.",
            "No calls are rejected yet: more users, or another burst, will reach the limit."
        ]
    );
    let evidence = evidence_of(finding);
    assert_eq!((evidence.partition.as_str(), evidence.full_seconds), ("1", 10.0));
    assert!(finding.advice().contains("a partition key that spreads the load"), "{}", finding.advice());
    let period = finding.period.as_ref().unwrap();
    assert_eq!((period.end_ns - period.start_ns) / SECOND_NS, 10);
}

#[test]
fn a_minute_of_peaks_is_not_hidden_by_its_mean() {
    let findings = detect(&trial(60, |second| if second % 6 == 0 { 95.0 } else { 20.0 }).build());
    assert_eq!(findings.len(), 1);
    assert!(evidence_of(&findings[0]).mean_share < 0.4, "{:?}", findings[0].evidence);
}

#[test]
fn readings_closer_than_a_second_are_joined() {
    let mut evidence = trial(30, full).build();
    let halves = |series: &Series, burst: bool| {
        let mut total = 0.0;
        let point = |i: i64| {
            total += if burst && i % 2 == 0 { 90.0 } else { 5.0 };
            Point { time_ns: TRIAL_START_NS + i * SECOND_NS / 2, value: total }
        };
        Series { key: series.key.clone(), points: (1..60).map(point).collect() }
    };
    for burst in [true, false] {
        let series = evidence.series.iter_mut().rfind(|series| series.key.name == names::THROUGHPUT_CONSUMED).unwrap();
        *series = halves(series, burst);
        // 180 units a second for half of one, 10 for the other: 95 in a second.
        let findings = detect(&evidence);
        assert_eq!(findings.len(), usize::from(burst));
        assert!(findings.iter().all(|finding| evidence_of(finding).peak_share < 1.0), "{findings:?}");
    }
}

#[test]
fn readings_far_apart_are_less_sure() {
    let mut evidence = trial(120, |_| 90.0).build();
    for series in &mut evidence.series {
        series.points = series.points.iter().copied().step_by(30).collect();
    }
    let findings = detect(&evidence);
    assert_eq!((findings.len(), findings[0].confidence), (1, Confidence::Medium));
    let [_, Caveat::ReadingsFarApart { step_ns }] = findings[0].caveats[..] else { panic!("{findings:?}") };
    assert!((step_ns - 30e9).abs() < 1.0, "{step_ns}");
}

#[test]
fn headroom_and_single_seconds_are_left_alone() {
    assert_eq!(detect(&trial(30, |_| 60.0).build()), [], "room");
    assert_eq!(detect(&trial(30, |second| if second == 9 { 100.0 } else { 50.0 }).build()), [], "one second");
    let two = |second| if second == 9 || second == 10 { 85.0 } else { 50.0 };
    assert_eq!(detect(&trial(30, two).build()), [], "a second that two readings share");
    let rare = |second: u32| if second.is_multiple_of(150) { 99.0 } else { 50.0 };
    assert_eq!(detect(&trial(600, rare).build()), [], "four seconds of ten minutes");
    let warmup = TrialBuilder::new("a").warmup(10, LOAD).steady(20, LOAD);
    let warmup = warmup.throughput("store", "0", 100.0, |second| if second < 10 { 99.0 } else { 30.0 });
    assert_eq!(detect(&warmup.build()), [], "warm-up");
}

#[test]
fn refused_seconds_are_another_matter() {
    let mut counted = operation("shop", "GET /", 30, 50.0, 20.0);
    counted.calls = vec![store_calls("query", (0..30).map(|s| (50.0, if s > 25 { 2.0 } else { 0.0 }, 99.0)))];
    assert_eq!(detect(&trial(30, full).operation(counted).build()), []);
}

#[test]
fn a_rate_that_follows_the_load_is_compared_with_its_most() {
    let scaled = |most: f64| {
        let mut evidence = trial(30, full).build();
        let series = evidence.series.iter_mut().filter(|series| series.key.name == names::THROUGHPUT_PROVISIONED);
        series.for_each(|series| series.points[25..].iter_mut().for_each(|point| point.value = most));
        detect(&evidence)
    };
    assert_eq!(scaled(1000.0), []);
    let findings = scaled(108.0);
    assert_eq!((findings.len(), findings[0].confidence), (1, Confidence::Low));
    assert_eq!(findings[0].caveats, [Caveat::BudgetMayBeIntended, Caveat::ProvisionedChanged]);
}

#[test]
fn a_store_that_does_not_say_what_it_may_is_left_alone() {
    let mut evidence = trial(30, full).build();
    evidence.series.retain(|series| series.key.name != names::THROUGHPUT_PROVISIONED);
    assert_eq!(detect(&evidence), []);
}
