//! Tests of `dns`: evidence that must make it fire, and evidence that must not.

use narrows_model::call_graph::CallFigures;
use narrows_model::finding::{Confidence, Evidence, Finding};
use narrows_testkit::spans::{SpanBuilder, client, internal, server};
use narrows_testkit::trial::{Load, TrialBuilder};

use super::*;
use crate::thresholds::Thresholds;
use crate::words::InWords;

fn trial() -> TrialBuilder {
    TrialBuilder::new("a").service("shop", None).steady(20, Load { vus: 8, rate: 80.0, latency_ms: 100.0 })
}

/// Ten requests of 100 ms with these spans under their entry.
fn requests(below: impl Fn(u32) -> Vec<SpanBuilder>) -> TrialBuilder {
    trial().traces((0..10).map(|n| server("shop", "GET /").at(0.0, 100.0).children(below(n)).trace(n)))
}

fn detect(trial: TrialBuilder) -> Vec<Finding> {
    crate::detect(&Dns, &trial.build(), &Thresholds::default())
}

fn evidence_of(finding: &Finding) -> &evidence::Dns {
    let Evidence::Dns(evidence) = &finding.evidence else { panic!("{finding:?}") };
    evidence
}

fn lookup(name: &str) -> SpanBuilder {
    client(name).at(10.0, 40.0).attribute(QUESTION, "stock.internal")
}

#[test]
fn look_ups_that_requests_wait_for_are_found() {
    let findings = detect(requests(|_| vec![lookup("DNS lookup stock.internal"), client("GET").at(50.0, 40.0)]));
    let evidence = evidence_of(&findings[0]);
    assert_eq!((evidence.names.as_slice(), evidence.requests), (["stock.internal".to_owned()].as_slice(), 10));
    assert!((evidence.request_ns - 40e6).abs() < 1e3 && (evidence.per_request - 1.0).abs() < 1e-9, "{evidence:?}");
    assert!((findings[0].cost_share - 0.4).abs() < 1e-6, "{findings:?}");
    assert_eq!(findings[0].confidence, Confidence::High);
    assert_eq!(findings[0].title(), "shop: name look-ups take 40.0 ms of GET /");
}

#[test]
fn spans_of_node_and_go_are_known_by_their_names() {
    for name in ["dns.lookup", "http.dns"] {
        assert_eq!(detect(requests(|_| vec![internal(name).at(10.0, 40.0)])).len(), 1, "{name}");
    }
}

#[test]
fn the_metric_alone_is_a_guess() {
    let name = |part: &str| format!("{METRIC}{part}");
    // 80 look-ups of 30 ms each second.
    let trial =
        trial()
            .series(&name(".sum"), "shop", 0, |s| 2.4 * f64::from(s + 1))
            .series(&name(".count"), "shop", 0, |s| 80.0 * f64::from(s + 1));
    let findings = detect(trial);
    assert_eq!((findings[0].confidence, evidence_of(&findings[0]).sign), (Confidence::Low, DnsSign::Metric));
    assert!((evidence_of(&findings[0]).lookup_ns - 30e6).abs() < 1e3, "{findings:?}");
}

#[test]
fn look_ups_that_delay_nothing_are_left_alone() {
    let quick = |_| vec![client("dns.lookup").at(10.0, 1.0), client("GET").at(11.0, 80.0)];
    assert_eq!(detect(requests(quick)), [], "1 ms of 100");
    let beside = |_| vec![client("dns.lookup").at(10.0, 40.0), client("GET").at(5.0, 90.0)];
    assert_eq!(detect(requests(beside)), [], "another call takes longer");
    let rare = |n| if n < 3 { vec![client("dns.lookup").at(10.0, 40.0)] } else { Vec::new() };
    assert_eq!(detect(requests(rare)), [], "three requests");
    assert_eq!(detect(requests(|_| vec![client("GET").at(10.0, 80.0)])), []);
}

#[test]
fn sockets_that_wait_for_a_name_server_count_under_the_heaviest_load_repeatedly_or_if_they_wait_for_long() {
    let waiting = |latency_ms: f64, waits: [f64; 3]| {
        let load = |vus| Load { vus, rate: f64::from(vus) * 1000.0 / latency_ms, latency_ms };
        let trial =
            TrialBuilder::new("a").service("shop", None).steady(5, load(2)).steady(5, load(4)).steady(5, load(8));
        let figures =
            move |second: u32| CallFigures { outstanding: waits[second as usize / 5], ..CallFigures::default() };
        detect(trial.calls("shop", 0, "10.0.0.2:53", figures)).len()
    };
    for waits in [[0.0, 0.0, 2.0], [0.5, 1.0, 0.0], [1.0, 7.0, 0.0], [1.9, 3.9, 7.9]] {
        assert_eq!(waiting(20.0, waits), 1, "{waits:?}");
    }
    assert_eq!(waiting(20.0, [0.0, 1.0, 0.0]), 0, "5 ms, which a full machine takes for a moment");
    assert_eq!(waiting(200.0, [0.0, 1.0, 0.0]), 1, "50 ms");
}
