//! Tests of `accept-queue`: evidence that must make it fire, and evidence that must not.

use narrows_model::finding::{Confidence, Evidence, Finding};
use narrows_model::series::names;
use narrows_testkit::trial::{FIRST_PORT, Load, TrialBuilder};

use super::*;
use crate::thresholds::Thresholds;
use crate::words::InWords;

/// Sixteen users, two of whom are served at any time.
fn trial() -> TrialBuilder {
    TrialBuilder::new("a").service("shop", None).steady(20, Load { vus: 16, rate: 40.0, latency_ms: 400.0 })
}

fn with(trial: TrialBuilder, name: &str, port: u16, value: impl Fn(u32) -> f64 + 'static) -> TrialBuilder {
    trial.labelled_series(name, ("shop", 0), &[(names::SERVER_PORT, &port.to_string())], value)
}

fn queue(queued: f64) -> TrialBuilder {
    with(trial(), names::ACCEPT_QUEUE, FIRST_PORT, move |_| queued)
}

fn detect(trial: TrialBuilder) -> Vec<Finding> {
    crate::detect(&AcceptQueue, &trial.build(), &Thresholds::default())
}

fn evidence_of(finding: &Finding) -> &evidence::AcceptQueue {
    let Evidence::AcceptQueue(evidence) = &finding.evidence else { panic!("{finding:?}") };
    evidence
}

#[test]
fn connections_that_wait_are_a_share_of_the_requests_under_way() {
    let findings = detect(with(queue(14.0), names::ACCEPT_QUEUE_LIMIT, FIRST_PORT, |_| 128.0));
    let evidence = evidence_of(&findings[0]);
    assert_eq!((evidence.port, evidence.queued, evidence.limit), (FIRST_PORT, 14.0, Some(128.0)));
    assert!(!evidence.is_full() && evidence.drops.is_none());
    assert!((findings[0].cost_share - 14.0 / 16.0).abs() < 0.01, "{findings:?}");
    assert_eq!(findings[0].confidence, Confidence::High);
    assert_eq!(findings[0].title(), "shop accepts too slowly: 14 connections wait for it");
}

#[test]
fn drops_count_a_second_each() {
    let findings = detect(with(queue(0.0), names::ACCEPT_QUEUE_DROPS, FIRST_PORT, |_| 8.0));
    assert_eq!(evidence_of(&findings[0]).drops.map(|drops| drops.readings), Some(20));
    assert!((findings[0].cost_share - 0.5).abs() < 0.01, "{findings:?}");
    assert!(findings[0].advice().contains("somaxconn"), "{}", findings[0].advice());
}

#[test]
fn overflows_of_a_network_of_its_own_are_less_sure() {
    let overflowing = queue(0.0).series(names::LISTEN_OVERFLOWS, "shop", 0, |_| 8.0);
    let findings = detect(overflowing);
    assert_eq!(findings[0].confidence, Confidence::Medium);
    let quiet = with(queue(0.0), names::ACCEPT_QUEUE_DROPS, FIRST_PORT, |_| 0.0);
    assert_eq!(detect(quiet.series(names::LISTEN_OVERFLOWS, "shop", 0, |_| 8.0)), [], "the socket itself drops none");
}

#[test]
fn what_passes_or_is_short_is_left_alone() {
    let once = |s: u32| if s == 3 { 90.0 } else { 0.0 };
    assert_eq!(detect(with(trial(), names::ACCEPT_QUEUE, FIRST_PORT, once)), [], "a burst waits");
    assert_eq!(detect(with(queue(0.0), names::ACCEPT_QUEUE_DROPS, FIRST_PORT, once)), [], "a burst is dropped");
    assert_eq!(detect(queue(1.0)), [], "one of sixteen");
    assert_eq!(detect(queue(0.0)), []);
    assert_eq!(detect(trial()), [], "nothing was sampled");
}

#[test]
fn a_port_without_calls_is_ignored() {
    assert_eq!(detect(with(trial(), names::ACCEPT_QUEUE, 5005, |_| 14.0)), []);
    let mut unknown = with(trial(), names::ACCEPT_QUEUE, 5005, |_| 14.0).build();
    unknown.services[0].port = 0;
    let findings = crate::detect(&AcceptQueue, &unknown, &Thresholds::default());
    assert_eq!(findings[0].confidence, Confidence::Medium, "no port is known");
}

#[test]
fn a_program_that_others_keep_from_running_is_left_alone() {
    let crowded = TrialBuilder::new("a").service("shop", None).cpu("shop", 0, |_| 0.8).host_cpu(|_| 0.97);
    let crowded = crowded.steady(20, Load { vus: 16, rate: 40.0, latency_ms: 400.0 });
    assert_eq!(detect(with(crowded, names::ACCEPT_QUEUE, FIRST_PORT, |_| 14.0)), []);
}
