//! Tests of `connection-limit`: evidence that must make it fire, and evidence that must not.

use narrows_model::finding::{Confidence, Evidence, Finding};
use narrows_testkit::spans::{SpanBuilder, query, server};
use narrows_testkit::trial::{FIRST_PORT, Load, TrialBuilder};

use super::*;
use crate::thresholds::Thresholds;
use crate::words::InWords;

/// Requests of `shop`, of which `refused` in ten fail in this request.
fn trial(refused: u32, failing: impl Fn() -> SpanBuilder) -> TrialBuilder {
    let fine = || server("shop", "GET /").at(0.0, 9.0).child(select().at(1.0, 5.0));
    let traces: Vec<_> = (0..100).map(|n| if n % 10 < refused { failing() } else { fine() }.trace(n)).collect();
    let trial = TrialBuilder::new("a").service("shop", None).service("db", None);
    trial.steady(20, Load { vus: 8, rate: 80.0, latency_ms: 100.0 }).traces(traces)
}

fn select() -> SpanBuilder {
    query("SELECT * FROM orders WHERE id = $1").to_port(FIRST_PORT + 1)
}

fn detect(trial: TrialBuilder) -> Vec<Finding> {
    crate::detect(&ConnectionLimit, &trial.build(), &Thresholds::default())
}

fn evidence_of(finding: &Finding) -> &evidence::ConnectionLimit {
    let Evidence::ConnectionLimit(evidence) = &finding.evidence else { panic!("{:?}", finding.evidence) };
    evidence
}

#[test]
fn refused_connections_name_the_database() {
    let refused = || select().failed_with("FATAL: sorry, too many clients already").at(1.0, 1.0);
    let findings = detect(trial(2, || server("shop", "GET /").failed().at(0.0, 3.0).child(refused())));
    let [finding] = &findings[..] else { panic!("one finding, not {findings:?}") };
    assert_eq!(finding.title(), "db refuses connections beyond a limit: 20 % of requests fail");
    assert_eq!((finding.confidence, finding.cost_share), (Confidence::High, 0.2));
    let evidence = evidence_of(finding);
    assert_eq!((evidence.traces, evidence.replicas, &evidence.callers[..]), (20, 1, &["shop".to_owned()][..]));
    assert_eq!(finding.evidence_text().as_deref(), Some("FATAL: sorry, too many clients already"));
}

#[test]
fn a_caller_without_a_span_of_the_call_names_the_only_database_of_that_kind() {
    let failing = |text: &'static str| trial(2, move || server("shop", "GET /").failed_with(text).at(0.0, 3.0));
    let findings = detect(failing("FATAL: too many connections for role \"shop\""));
    assert_eq!(findings[0].title(), "db refuses connections of a role beyond a limit: 20 % of requests fail");
    let findings = detect(failing("(1040, 'Too many connections')"));
    assert_eq!(findings[0].title(), "shop: its database refuses connections: 20 % of requests fail");
    assert_eq!(findings[0].confidence, Confidence::Medium, "it queries no MySQL");
}

#[test]
fn few_refusals_and_other_errors_are_left_alone() {
    let failing = |text: &'static str| move || server("shop", "GET /").failed_with(text).at(0.0, 3.0);
    assert_eq!(detect(trial(0, failing("FATAL: sorry, too many clients already"))), []);
    assert_eq!(detect(trial(2, failing("connection pool exhausted"))), []);
    assert_eq!(detect(trial(2, failing("too many connections"))), [], "not said by MySQL");
}
