//! Tests of `generator-limited`: evidence that must make it fire, and evidence that must not.

use narrows_testkit::trial::{Load, TrialBuilder};

use super::*;
use crate::words::InWords;

const LOAD: Load = Load { vus: 8, rate: 100.0, latency_ms: 20.0 };

fn trial() -> TrialBuilder {
    TrialBuilder::new("a").warmup(10, LOAD).steady(20, LOAD)
}

fn detect(trial: TrialBuilder) -> Vec<Finding> {
    crate::detect(&GeneratorLimited, &trial.build(), &Thresholds::default())
}

#[test]
fn each_sign_fires_as_strongly_as_it_is() {
    let cases = [
        ("its verdict", trial().verdict(Verdict::Invalid, "Sends were late."), Confidence::High, 0.0005),
        ("much lateness", trial().lateness_ms(12.0), Confidence::High, 0.6),
        ("some lateness", trial().lateness_ms(4.0), Confidence::Medium, 0.2),
        ("a full thread", trial().busiest_thread(names::GENERATOR, 0, |_| 0.97), Confidence::High, 0.97),
        ("a busy thread", trial().busiest_thread(names::GENERATOR, 0, |_| 0.84), Confidence::Medium, 0.84),
        ("a full host", trial().host_cpu(|_| 1.0).cpu(names::GENERATOR, 0, |_| 1.6), Confidence::Medium, 0.4),
    ];
    for (name, trial, confidence, cost_share) in cases {
        let findings = detect(trial);
        assert_eq!(findings.len(), 1, "with {name}");
        assert_eq!(findings[0].confidence, confidence, "with {name}");
        assert!((findings[0].cost_share - cost_share).abs() < 1e-9, "with {name}: {}", findings[0].cost_share);
    }
}

fn open(late: u64, dropped: u64) -> TrialBuilder {
    TrialBuilder::new("a").arrivals(20, 1000.0, Load { rate: 900.0, ..LOAD }).held_back(late, dropped)
}

#[test]
fn users_that_were_all_busy_are_reported_as_such() {
    let cases = [
        (open(200, 100), Some((Confidence::High, 0.1, "max_vus held the load back"))),
        (open(200, 2), Some((Confidence::Medium, 0.002, "the load generator had a part"))),
        (open(100, 0), Some((Confidence::Medium, 0.1, "the load generator had a part"))),
        (open(99, 0), None),
        (open(0, 0), None),
    ];
    for (trial, expected) in cases {
        let findings = detect(trial);
        assert_eq!(findings.len(), usize::from(expected.is_some()));
        let (Some(finding), Some((confidence, share, title))) = (findings.first(), expected) else { continue };
        assert_eq!((finding.confidence, finding.cost_share), (confidence, share));
        assert!(finding.title().starts_with(title) && finding.advice().starts_with("Raise max_vus"), "{finding:?}");
    }
    let finding = detect(open(200, 100)).remove(0);
    assert_eq!(
        finding.reasons(),
        ["max_vus was reached: of 20,000 iterations that were due, 4,000 found every user busy and had to wait, and \
          2,000 (10 %) never began, so 1,000/s were offered and 900/s given."]
    );
    let full = detect(open(200, 100).busiest_thread(names::GENERATOR, 0, |_| 0.97)).remove(0);
    assert!(full.title().starts_with("the load generator was") && full.advice().starts_with("Send less"), "{full:?}");
    let late = detect(open(50, 0).lateness_ms(4.0)).remove(0);
    assert!(late.reasons()[0].ends_with("because max_vus was reached."), "{:?}", late.reasons());
    assert!(late.advice().starts_with("Send less"), "the wait is no more than a part");
}

#[test]
fn users_that_are_busy_because_the_system_is_slow_are_enough() {
    let beyond = |latency_ms| {
        let light = TrialBuilder::new("a").arrivals(20, 50.0, Load { vus: 40, rate: 50.0, latency_ms: 10.0 });
        light.arrivals(20, 200.0, Load { vus: 40, rate: 98.0, latency_ms }).held_back(100, 102).lateness_ms(90.0)
    };
    assert_eq!(detect(beyond(400.0)), []);
    let starved = detect(beyond(11.0)).remove(0);
    assert!(starved.title().starts_with("max_vus held the load back"), "{}", starved.title());
}

#[test]
fn several_signs_are_one_finding() {
    let findings = detect(trial().lateness_ms(4.0).busiest_thread(names::GENERATOR, 0, |_| 0.99));
    assert_eq!(findings.len(), 1);
    assert_eq!((findings[0].confidence, findings[0].reasons().len()), (Confidence::High, 2));
}

#[test]
fn a_healthy_generator_is_not_mentioned() {
    let fast = Load { latency_ms: 0.1, ..LOAD };
    let cases = [
        ("nothing", trial()),
        ("a doubt about the tail", trial().verdict(Verdict::Doubtful, "Some sends were late.")),
        ("room to spare", trial().busiest_thread(names::GENERATOR, 0, |_| 0.5).lateness_ms(0.5)),
        ("lateness of a timer", TrialBuilder::new("a").steady(20, fast).lateness_ms(0.06)),
        ("a busy warm-up", trial().busiest_thread(names::GENERATOR, 0, |second| if second < 10 { 1.0 } else { 0.2 })),
        ("a full host of others", trial().host_cpu(|_| 1.0).cpu(names::GENERATOR, 0, |_| 0.4)),
        ("a busy service", trial().service("shop", None).busiest_thread("shop", 0, |_| 1.0)),
        ("no load", TrialBuilder::new("a")),
    ];
    for (name, trial) in cases {
        assert_eq!(detect(trial), [], "with {name}");
    }
}

#[test]
fn when_every_request_fails_only_the_cpu_of_the_generator_speaks() {
    let failing = |trial: TrialBuilder| {
        let mut trial = trial.verdict(Verdict::Invalid, "All 2,000 requests failed.").build();
        for second in &mut trial.seconds {
            second.errors.status += std::mem::take(&mut second.succeeded);
            second.latency = Default::default();
        }
        crate::detect(&GeneratorLimited, &trial, &Thresholds::default())
    };
    assert_eq!(failing(open(200, 100)), []);
    let busy = failing(open(200, 100).busiest_thread(names::GENERATOR, 0, |_| 0.97));
    assert_eq!(busy.len(), 1);
    assert_eq!(busy[0].reasons().len(), 1, "{:?}", busy[0].reasons());
}

#[test]
fn users_that_wait_for_a_system_that_hangs_are_no_sign() {
    let hung = |seconds: i64| {
        let mut trial = open(200, 100).verdict(Verdict::Invalid, "2,000 of 20,000 iterations never began.").build();
        let until_ns = trial.seconds[0].start_ns + 1_000_000_000 * (10 + seconds);
        for row in trial.seconds.iter_mut().skip(10).filter(|row| row.start_ns < until_ns) {
            (row.succeeded, row.latency, row.service) = Default::default();
        }
        crate::detect(&GeneratorLimited, &trial, &Thresholds::default())
    };
    assert_eq!(hung(6), []);
    assert_eq!(hung(3).len(), 1, "a short pause");
}
