//! Tests of `sequential-calls`: evidence that must make it fire, and evidence that must not.

use narrows_model::call_graph::CallFigures;
use narrows_model::finding::Evidence;
use narrows_model::series::names;
use narrows_testkit::trial::{Load, TrialBuilder};

use super::*;
use crate::thresholds::Thresholds;
use crate::words::InWords;

/// Ports of the services that the shop calls.
const PEERS: [&str; 3] = ["10.0.0.7:80", "10.0.0.8:80", "10.0.0.9:80"];

/// A shop at 80 requests a second of 100 ms; each pair is the calls outstanding to a peer and their rate.
fn detect(calls: &[(f64, f64)]) -> Vec<Finding> {
    let load = Load { vus: 8, rate: 80.0, latency_ms: 100.0 };
    let figures = |outstanding, rate| CallFigures { connections: 8.0, outstanding, rate, ..CallFigures::default() };
    let users = figures(8.0, 80.0);
    let mut trial = TrialBuilder::new("a").service("shop", None).steady(20, load).cpu("shop", 0, |_| 0.4);
    trial = trial.calls(names::GENERATOR, 0, "127.0.0.1:9000", move |_| users);
    for ((outstanding, rate), peer) in calls.iter().zip(PEERS) {
        let of_peer = figures(*outstanding, *rate);
        trial = trial.calls("shop", 0, peer, move |_| of_peer);
    }
    crate::detect(&SequentialCalls, &trial.build(), &Thresholds::default())
}

fn titles(findings: &[Finding]) -> Vec<String> {
    findings.iter().map(InWords::title).collect()
}

#[test]
fn many_calls_to_one_peer_are_found() {
    let findings = detect(&[(6.0, 800.0)]);
    let Evidence::SequentialCalls(evidence) = &findings[0].evidence else { panic!("{findings:?}") };
    assert_eq!((evidence.per_request(), evidence.at_once, evidence.request_ns), (10.0, 0.75, 75e6));
    assert_eq!(titles(&findings), ["shop calls 10.0.0.7:80 10 times for each request, one call after another"]);
    assert_eq!(findings[0].cost_share, 0.75);
}

#[test]
fn calls_to_several_peers_in_turn_are_found() {
    let findings = detect(&[(2.5, 80.0), (2.4, 80.0), (2.0, 80.0)]);
    let said = "shop calls 10.0.0.7:80, 10.0.0.8:80 and 10.0.0.9:80 one after another: 86.2 ms of each request";
    assert_eq!(titles(&findings), [said]);
}

#[test]
fn few_calls_calls_at_once_and_one_slow_peer_are_left_alone() {
    assert_eq!(detect(&[(6.0, 160.0)]), [], "two calls for each request");
    assert_eq!(detect(&[(1.0, 800.0)]), [], "ten quick ones");
    assert_eq!(detect(&[(20.0, 800.0)]), [], "ten, of which two or three run at a time");
    assert_eq!(detect(&[(7.0, 80.0), (6.5, 80.0), (6.0, 80.0)]), [], "three at once");
    assert_eq!(detect(&[(6.0, 80.0), (0.8, 80.0), (0.8, 80.0)]), [], "one takes nearly all of the time");
    assert_eq!(detect(&[(3.0, 80.0), (3.0, 80.0)]), [], "two peers");
}
