//! Tests of `serialised-section`: evidence that must make it fire, and evidence that must not.

use narrows_model::finding::Evidence;
use narrows_model::series::{ThreadState, names};
use narrows_testkit::trial::{Load, TrialBuilder};

use super::*;
use crate::thresholds::Thresholds;
use crate::words::InWords;

/// Steps of (users, rate), for a service with this CPU use.
fn trial(steps: &[(u32, f64)], cores: f64) -> TrialBuilder {
    let load = |(vus, rate): &(u32, f64)| Load { vus: *vus, rate: *rate, latency_ms: 1e3 * f64::from(*vus) / rate };
    let trial = TrialBuilder::new("a").cores(4).service("shop", None).cpu("shop", 0, move |_| cores).host_cpu(|_| 0.3);
    steps.iter().fold(trial, |trial, step| trial.steady(20, load(step)))
}

const FLAT: [(u32, f64); 3] = [(1, 176.0), (4, 177.0), (16, 176.0)];

/// Threads that wait for a lock in each step of a trial.
fn locked(trial: TrialBuilder, threads: &'static [f64]) -> TrialBuilder {
    let state = [(names::THREAD_STATE, ThreadState::Lock.as_str())];
    let of_step = |second: u32| threads[second as usize / 20];
    trial.threads("shop", 0, &[]).labelled_series(names::THREAD_STATES, ("shop", 0), &state, of_step)
}

fn detect(trial: TrialBuilder) -> Vec<Finding> {
    crate::detect(&SerialisedSection, &trial.build(), &Thresholds::default())
}

fn evidence_of(findings: &[Finding]) -> &evidence::SerialisedSection {
    let [Finding { evidence: Evidence::SerialisedSection(evidence), .. }] = findings else { panic!("{findings:?}") };
    evidence
}

#[test]
fn threads_that_wait_for_a_lock_are_named() {
    let findings = detect(locked(trial(&FLAT, 0.2), &[0.0, 3.0, 15.0]));
    let evidence = evidence_of(&findings);
    assert!(evidence.by_threads && (evidence.at_work - 1.0).abs() < 0.3, "{evidence:?}");
    assert_eq!(findings[0].title(), "shop: requests wait for a lock, one at a time is at work");
    assert_eq!(findings[0].confidence, Confidence::High);
    let late = detect(locked(trial(&FLAT[1..], 0.2), &[3.0, 15.0]));
    assert!(evidence_of(&late).by_threads, "no level of one user is needed");
}

#[test]
fn the_peer_that_is_called_in_turn_is_named() {
    let states = [(ThreadState::Lock, "", 15.0), (ThreadState::Network, "10.0.0.5:443", 0.7)];
    let findings = detect(trial(&FLAT, 0.1).threads("shop", 0, &states));
    assert_eq!(evidence_of(&findings).peer.as_deref(), Some("10.0.0.5:443"));
}

#[test]
fn turns_without_threads_are_named_by_the_latency_of_one_user() {
    let findings = detect(trial(&FLAT, 0.2).threads("shop", 0, &[(ThreadState::Events, "", 4.0)]));
    assert!(!evidence_of(&findings).by_threads);
    assert_eq!(
        findings[0].title(),
        "shop: latency grows in proportion to the requests in flight, as where they take turns"
    );
}

#[test]
fn anything_else_is_left_alone() {
    let locked = [(ThreadState::Lock, "", 15.0)];
    let silent =
        |trial: TrialBuilder, states: &[(ThreadState, &str, f64)]| detect(trial.threads("shop", 0, states)).is_empty();
    assert!(silent(trial(&[(1, 176.0), (4, 700.0), (16, 2700.0)], 0.2), &locked), "throughput follows the load");
    let two = [(1, 23.0), (6, 47.7), (16, 48.7)];
    assert!(silent(trial(&two, 0.1), &locked), "two threads that sleep, as the JVM does, where others wait for locks");
    assert!(silent(trial(&[(1, 176.0), (16, 176.0)], 0.9), &locked), "a thread computes all the time");
    assert!(silent(trial(&FLAT, 0.2), &[(ThreadState::Disk, "", 0.95), (ThreadState::Lock, "", 14.0)]), "the disk");
    assert!(silent(trial(&[(4, 700.0), (16, 704.0)], 0.2), &[(ThreadState::Lock, "", 12.0)]), "four at work");
    assert!(silent(trial(&[(1, 176.0), (2, 176.0)], 0.2), &[(ThreadState::Lock, "", 1.0)]), "two users");
    assert_eq!(detect(trial(&FLAT, 0.2)), [], "not sampled");
}
