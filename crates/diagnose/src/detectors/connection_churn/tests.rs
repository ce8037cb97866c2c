//! Tests of `connection-churn`: evidence that must make it fire, and evidence that must not.

use narrows_model::call_graph::CallFigures;
use narrows_model::finding::Evidence;
use narrows_testkit::trial::{Load, TrialBuilder};

use super::*;
use crate::thresholds::Thresholds;
use crate::words::InWords;

const PARTNER: &str = "10.0.0.9:443";

/// A shop at 80 requests a second, whose calls to a partner are these.
fn detect(opened: f64, rate: f64) -> Vec<Finding> {
    let load = Load { vus: 8, rate: 80.0, latency_ms: 100.0 };
    let trial = TrialBuilder::new("a").service("shop", None).steady(20, load).cpu("shop", 0, |_| 0.4);
    let users = CallFigures { connections: 8.0, outstanding: 8.0, rate: 80.0, ..CallFigures::default() };
    let calls = CallFigures { connections: 4.0, outstanding: 3.0, rate, opened, ..CallFigures::default() };
    let trial = trial.calls(names::GENERATOR, 0, "127.0.0.1:9000", move |_| users);
    crate::detect(&ConnectionChurn, &trial.calls("shop", 0, PARTNER, move |_| calls).build(), &Thresholds::default())
}

#[test]
fn a_connection_for_each_call_is_found() {
    let findings = detect(80.0, 160.0);
    let Evidence::ConnectionChurn(evidence) = &findings[0].evidence else { panic!("{findings:?}") };
    assert_eq!((evidence.per_request, evidence.exchanges, evidence.is_tls_likely), (1.0, 2.0, true));
    assert_eq!(evidence.ends.len(), 1, "the CPU of the partner is not known");
    assert!((findings[0].cost_share - 0.2).abs() < 0.01, "with TLS");
    assert_eq!(findings[0].title(), "shop opens a connection to 10.0.0.9:443 for each request");
    let plain = detect(400.0, 400.0);
    assert!((plain[0].cost_share - 0.1).abs() < 0.01, "without TLS");
    let full = detect(700.0, 1_400.0);
    assert_eq!(full[0].cost_share, 1.0, "no more than is used");
    let quick = detect(2_000.0, 4_000.0);
    assert!((quick[0].cost_share - 0.5).abs() < 0.01, "TLS would take more than the service uses");
}

#[test]
fn connections_that_are_kept_are_left_alone() {
    assert_eq!(detect(0.0, 80.0), [], "none is opened");
    assert_eq!(detect(20.0, 80.0), [], "one for four requests");
    assert_eq!(detect(80.0, 800.0), [], "ten calls over each");
    assert_eq!(detect(80.0, 80.0), [], "they take 2 % of the CPU");
}
