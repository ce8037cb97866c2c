//! Tests of `event-loop-lag`: evidence that must make it fire, and evidence that must not.

use narrows_model::finding::{Caveat, Evidence};
use narrows_testkit::spans::server;
use narrows_testkit::trial::{Load, TrialBuilder};

use super::*;
use crate::thresholds::Thresholds;
use crate::words::InWords;

fn trial() -> TrialBuilder {
    let trial = TrialBuilder::new("a").service("shop", None).cpu("shop", 0, |_| 0.8).host_cpu(|_| 0.3);
    trial.busiest_thread("shop", 0, |_| 0.78).steady(20, Load { vus: 8, rate: 80.0, latency_ms: 100.0 })
}

/// Delays of a loop by mean and standard deviation, in milliseconds.
fn delays(trial: TrialBuilder, mean_ms: f64, deviation_ms: f64) -> TrialBuilder {
    let of = |part: &str| format!("nodejs.eventloop.delay.{part}");
    trial
        .series(&of("mean"), "shop", 0, move |_| mean_ms / 1e3)
        .series(&of("stddev"), "shop", 0, move |_| deviation_ms / 1e3)
        .series(&of("min"), "shop", 0, |_| 0.010)
        .series(&of("p99"), "shop", 0, move |_| (mean_ms + 2.0 * deviation_ms) / 1e3)
}

fn active(trial: TrialBuilder, share: f64) -> TrialBuilder {
    trial.series("nodejs.eventloop.utilization", "shop", 0, move |_| share)
}

fn detect(trial: TrialBuilder) -> Vec<Finding> {
    crate::detect(&EventLoopLag, &trial.build(), &Thresholds::default())
}

fn evidence_of(finding: &Finding) -> &evidence::EventLoopLag {
    let Evidence::EventLoopLag(evidence) = &finding.evidence else { panic!("{finding:?}") };
    evidence
}

#[test]
fn a_loop_that_lags_while_requests_wait_is_named() {
    let findings = detect(active(delays(trial(), 50.0, 60.0), 0.85));
    let [finding] = &findings[..] else { panic!("{findings:?}") };
    // (40² + 60²) ÷ (2 × 50)
    assert_eq!(finding.title(), "callbacks block the event loop of shop: an event waits 52.0 ms for it");
    assert!((finding.cost_share - 0.52).abs() < 0.01, "{}", finding.cost_share);
    assert_eq!((finding.resource.as_str(), finding.confidence), ("shop", Confidence::Medium));
    let evidence = evidence_of(finding);
    assert!((evidence.blocked_share - 0.8).abs() < 1e-9 && !evidence.is_waiting(), "{evidence:?}");
    assert!(finding.advice().starts_with("Find the longest callbacks of shop"), "{}", finding.advice());
}

#[test]
fn callbacks_that_wait_are_told_from_those_that_compute() {
    let trial = TrialBuilder::new("a").service("shop", None).busiest_thread("shop", 0, |_| 0.1);
    let trial = trial.steady(20, Load { vus: 8, rate: 80.0, latency_ms: 100.0 });
    let findings = detect(active(delays(trial, 50.0, 60.0), 0.85));
    assert!(evidence_of(&findings[0]).is_waiting());
    assert!(findings[0].advice().contains("readFileSync"), "{}", findings[0].advice());
}

#[test]
fn milliseconds_of_older_libraries_are_read() {
    let mut trial = delays(trial(), 50e3, 60e3).build();
    for series in trial.series.iter_mut().filter(|series| series.key.name.starts_with("nodejs.")) {
        series.key.unit = "ms".into();
        let is_least = series.key.name.ends_with("min");
        series.points.iter_mut().filter(|_| is_least).for_each(|point| point.value = 10.0);
    }
    let findings = crate::detect(&EventLoopLag, &trial, &Thresholds::default());
    assert!((evidence_of(&findings[0]).wait_ns / 1e6 - 52.0).abs() < 0.01, "{findings:?}");
}

#[test]
fn a_loop_that_turns_quickly_is_left_alone() {
    assert_eq!(detect(active(delays(trial(), 10.6, 0.9), 0.2)), [], "idle");
    assert_eq!(detect(active(delays(trial(), 13.0, 4.0), 0.98)), [], "in full use, with short callbacks");
    assert_eq!(detect(active(trial(), 0.98)), [], "no delays");
    let slow = TrialBuilder::new("a").service("shop", None).steady(20, Load { vus: 80, rate: 80.0, latency_ms: 1e3 });
    assert_eq!(detect(delays(slow, 50.0, 60.0)), [], "the latency has another cause");
}

#[test]
fn one_long_turn_is_left_alone() {
    let once = |usual: f64, long: f64| move |s: u32| if s == 7 { long } else { usual };
    let trial = trial()
        .series("nodejs.eventloop.delay.mean", "shop", 0, once(0.0106, 0.08))
        .series("nodejs.eventloop.delay.stddev", "shop", 0, once(0.001, 0.4))
        .series("nodejs.eventloop.delay.min", "shop", 0, |_| 0.010)
        .series("nodejs.eventloop.delay.max", "shop", 0, once(0.02, 4.0));
    assert_eq!(detect(trial), []);
    let few = TrialBuilder::new("a").service("shop", None).steady(2, Load { vus: 8, rate: 80.0, latency_ms: 100.0 });
    assert_eq!(detect(delays(few, 50.0, 60.0)), [], "two readings");
}

#[test]
fn a_thread_that_is_kept_from_running_is_left_alone() {
    let lagging = || delays(trial(), 50.0, 60.0);
    assert_eq!(detect(lagging().busiest_thread_wait("shop", 0, |_| 0.4)), [], "it waits for a processor");
    assert_eq!(detect(active(lagging(), 0.1)), [], "the loop is idle");
    let throttled = lagging().series(names::CGROUP_PERIODS, "shop", 0, |_| 10.0);
    let throttled = throttled.series(names::CGROUP_THROTTLED_PERIODS, "shop", 0, |_| 3.0);
    assert_eq!(detect(throttled), [], "its quota is used up");
    let crowded = TrialBuilder::new("a").service("shop", None).cpu("shop", 0, |_| 0.8).host_cpu(|_| 0.97);
    let crowded = crowded.steady(20, Load { vus: 8, rate: 80.0, latency_ms: 100.0 });
    assert_eq!(detect(delays(crowded, 50.0, 60.0)), [], "other programs fill the machine");
    let stolen = detect(lagging().series(names::HOST_CPU_STEAL, "", 0, |_| 0.1));
    assert!(matches!(stolen[0].caveats[..], [Caveat::CpuStolen { .. }]), "{stolen:?}");
}

#[test]
fn services_that_no_request_passes_are_left_alone() {
    let request = |n: u32| server("gate", "GET /").at(0.0, 80.0).trace(n);
    let trial = trial().service("gate", None).traces((0..20).map(request));
    assert_eq!(detect(delays(trial, 50.0, 60.0)), []);
}
