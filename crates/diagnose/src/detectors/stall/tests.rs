//! Tests of `stall`: evidence that must make it fire, and evidence that must not.

use narrows_model::stalls::Stall as StallTime;
use narrows_testkit::TRIAL_START_NS;
use narrows_testkit::trial::{Load, TrialBuilder};

use super::*;
use crate::thresholds::Thresholds;
use crate::words::InWords;

const MS: i64 = 1_000_000;
const LOAD: Load = Load { vus: 8, rate: 2000.0, latency_ms: 1.0 };

/// Twenty seconds of 8 users, and in each second a stall at which 8 requests wait.
fn trial(length_ms: i64) -> TrialEvidence {
    let mut trial = TrialBuilder::new("a").service("shop", None).steady(20, LOAD).build();
    for row in &mut trial.seconds {
        row.latency.record_n((length_ms * MS) as u64, 8);
        row.succeeded += 8;
    }
    let each = (0..20).map(|second| {
        let start_ns = TRIAL_START_NS + second * 1000 * MS + 300 * MS;
        StallTime { start_ns, end_ns: start_ns + length_ms * MS }
    });
    trial.stalls = Stalls { each: each.collect(), slow_from_ns: 10 * MS, quick_expected: 40.0, quick_seen: 0.0 };
    trial
}

fn detect(trial: &TrialEvidence) -> Vec<Finding> {
    crate::detect(&Stall, trial, &Thresholds::default())
}

#[test]
fn a_system_that_stands_still_is_named_with_times() {
    let findings = detect(&trial(100));
    let [finding] = &findings[..] else { panic!("one finding, not {findings:?}") };
    assert_eq!(finding.title(), "shop stands still for 100 ms, every 1.00 s, and all requests of that time wait");
    assert_eq!((finding.resource.as_str(), finding.confidence), ("shop", Confidence::High));
    assert!((finding.cost_share - 0.286).abs() < 0.01, "{}", finding.cost_share);
    assert!(finding.reasons()[0].ends_with("first 300 ms, 1.30 s, 2.30 s into the load."), "{:?}", finding.reasons());
    assert!(finding.advice().contains("rhythm"), "{}", finding.advice());
}

#[test]
fn a_machine_full_of_other_programs_makes_short_stalls() {
    let crowded = |length_ms| {
        let full = TrialBuilder::new("a").service("shop", None).steady(20, LOAD).cpu("shop", 0, |_| 0.2);
        let full = full.host_cpu(|_| 1.0).build();
        detect(&TrialEvidence { series: full.series, cores: full.cores, ..trial(length_ms) })
    };
    assert_eq!(crowded(60), []);
    assert_eq!(crowded(150).len(), 1);
}

/// Three levels of ten seconds. CPU per request falls to a tenth over the first.
#[test]
fn stalls_of_a_warm_up_are_not_named() {
    let with_stalls = |seconds: std::ops::Range<i64>| {
        let load = Load { vus: 8, rate: 40.0, latency_ms: 1.0 };
        let levels = TrialBuilder::new("a").service("shop", None).steady(10, load).steady(10, load).steady(10, load);
        let warming = levels.cpu("shop", 0, |second| if second < 10 { 2.0 - 0.18 * f64::from(second) } else { 0.2 });
        let mut trial = TrialEvidence { stalls: trial(100).stalls, ..warming.build() };
        trial.seconds.iter_mut().for_each(|row| row.latency.record_n(100 * MS as u64, 8));
        trial.stalls.each.retain(|stall| seconds.contains(&((stall.start_ns - TRIAL_START_NS) / (1000 * MS))));
        detect(&trial)
    };
    assert_eq!(with_stalls(0..8), []);
    assert_eq!(with_stalls(0..15).len(), 1, "it stalls when it is warm too");
}

#[test]
fn other_slow_requests_are_left_alone() {
    let with = |change: fn(&mut TrialEvidence)| {
        let mut trial = trial(100);
        change(&mut trial);
        detect(&trial)
    };
    assert_eq!(with(|trial| trial.stalls.quick_seen = 30.0), [], "others are served meanwhile");
    assert_eq!(with(|trial| trial.stalls.each.truncate(2)), [], "rare ones");
    assert_eq!(with(|trial| trial.stalls.quick_expected = 2.0), [], "too few samples");
    assert_eq!(detect(&trial(15)), [], "short ones");
    assert_eq!(detect(&trial(900)), [], "a system that stands still most of the time is slow");
    assert_eq!(detect(&TrialBuilder::new("a").build()), [], "nothing at all");
}
