//! Tests of `port-exhaustion`: evidence that must make it fire, and evidence that must not.

use narrows_model::finding::{Confidence, Evidence, Finding};
use narrows_model::series::names;
use narrows_testkit::spans::{client, server};
use narrows_testkit::trial::{Load, TrialBuilder};

use super::*;
use crate::thresholds::Thresholds;
use crate::words::InWords;

/// Requests of which `failed` in ten fail with this text.
fn trial(failed: u32, text: &'static str) -> TrialBuilder {
    let request = move |n: u32| {
        let call = client("GET").at(1.0, 5.0).facts(|facts| {
            facts.server_address = Some("10.0.0.7".into());
            facts.server_port = Some(80);
        });
        let call = if n % 10 < failed { call.failed_with(text) } else { call };
        server("shop", "GET /").at(0.0, 80.0).child(call).trace(n)
    };
    let trial = TrialBuilder::new("a").service("shop", None).steady(20, Load { vus: 8, rate: 80.0, latency_ms: 100.0 });
    trial.traces((0..100).map(request))
}

fn detect(trial: TrialBuilder) -> Vec<Finding> {
    crate::detect(&PortExhaustion, &trial.build(), &Thresholds::default())
}

#[test]
fn errors_that_say_so_are_found_with_what_holds_the_ports() {
    let failing = || trial(2, "dial tcp 10.0.0.7:80: connect: cannot assign requested address");
    let findings = detect(failing());
    let Evidence::PortExhaustion(evidence) = &findings[0].evidence else { panic!("{findings:?}") };
    assert_eq!((evidence.peer.as_deref(), evidence.traces), (Some("10.0.0.7:80"), 20));
    assert_eq!((findings[0].confidence, evidence.held_share()), (Confidence::Medium, None));
    let sampled =
        failing()
            .series(names::HOST_TIME_WAIT, "", 0, |_| 28_000.0)
            .series(names::HOST_EPHEMERAL_PORTS, "", 0, |_| 28_232.0);
    let findings = detect(sampled);
    assert_eq!(findings[0].confidence, Confidence::High);
    assert_eq!(findings[0].title(), "shop has no local port left: 20 % of requests fail");
}

/// A gateway in its own network namespace. It opens a connection for each request to two replicas of the shop. From second 20
/// on, `held` ports belong to closed connections; `rate` and `cores` are its throughput and CPU.
fn searching(held: f64, rate: f64, cores: f64) -> TrialBuilder {
    let load = |rate: f64| Load { vus: 16, rate, latency_ms: 16e3 / rate };
    let mut trial = TrialBuilder::new("a").service("gateway", None).steady(20, load(1000.0)).steady(20, load(rate));
    for peer in ["shop[0]", "shop[1]"] {
        let peer = [(names::NETWORK_PEER, peer)];
        trial = trial.labelled_series(names::CONNECTIONS_OPENED, ("gateway", 0), &peer, |_| 500.0);
    }
    let late = move |early: f64, late: f64| move |second: u32| if second < 20 { early } else { late };
    trial.cpu("gateway", 0, late(0.3, cores)).series(names::EPHEMERAL_PORTS, "gateway", 0, |_| 28_232.0).series(
        names::TIME_WAIT,
        "gateway",
        0,
        move |second| if second < 20 { 1_000.0 } else { held },
    )
}

#[test]
fn a_long_search_for_ports_is_found_without_an_error() {
    let findings = detect(searching(28_400.0, 200.0, 0.8));
    let Evidence::PortExhaustion(evidence) = &findings[0].evidence else { panic!("{findings:?}") };
    let search = evidence.search.as_ref().unwrap();
    assert_eq!((findings.len(), findings[0].confidence, search.peers), (1, Confidence::High, 2));
    assert_eq!(findings[0].title(), "gateway searches for free local ports: throughput falls from 1,000/s to 200/s");
    assert!((findings[0].cost_share - 0.8).abs() < 0.01, "{findings:?}");
}

#[test]
fn a_search_needs_held_ports_a_fall_and_cpu() {
    assert_eq!(detect(searching(14_100.0, 200.0, 0.8)), [], "a quarter of the ports for two peers");
    assert_eq!(detect(searching(28_400.0, 900.0, 0.8)), [], "throughput as before");
    assert_eq!(detect(searching(28_400.0, 200.0, 0.06)), [], "something else holds requests up");
}

#[test]
fn closed_connections_and_other_errors_are_left_alone() {
    let full = trial(0, "").series(names::HOST_TIME_WAIT, "", 0, |_| 28_000.0);
    assert_eq!(detect(full.series(names::HOST_EPHEMERAL_PORTS, "", 0, |_| 28_232.0)), [], "nothing fails");
    assert_eq!(detect(trial(2, "connection refused")), []);
    assert_eq!(detect(trial(2, "listen tcp: bind: cannot assign requested address")), [], "a server");
}
