//! Tests of `conflict-retry`: evidence that must make it fire, and evidence that must not.

use narrows_model::finding::Evidence;
use narrows_model::trace::Trace;
use narrows_testkit::spans::{SpanBuilder, query, server};
use narrows_testkit::trial::{FIRST_PORT, Load, TrialBuilder};

use super::*;
use crate::thresholds::Thresholds;
use crate::words::InWords;

const ADD: &str = "UPDATE stock SET left = left - ? WHERE item = ?";

fn detect(trial: TrialBuilder) -> Vec<Finding> {
    crate::detect(&ConflictRetry, &trial.build(), &Thresholds::default())
}

/// Ten seconds of a shop (port 9000) and its database (9001).
fn trial() -> TrialBuilder {
    let trial = TrialBuilder::new("a").service("shop", None).service("store", None);
    trial.steady(10, Load { vus: 2, rate: 10.0, latency_ms: 40.0 })
}

fn add(start_ms: f64) -> SpanBuilder {
    query(ADD).to_port(FIRST_PORT + 1).at(start_ms, 8.0)
}

fn conflict(start_ms: f64) -> SpanBuilder {
    add(start_ms).failed().facts(|facts| facts.db_status = Some("40001".into()))
}

/// Forty requests; every other one is `met`.
fn traces(met: &SpanBuilder) -> Vec<Trace> {
    let fine = server("shop", "POST /order").at(0.0, 10.0).child(add(1.0));
    (0..40).map(|n| if n % 2 == 0 { met.clone().trace(50 * n) } else { fine.clone().trace(50 * n) }).collect()
}

fn requests(finding: &Finding) -> &Requests {
    let Evidence::ConflictRetry(evidence) = &finding.evidence else { panic!("{:?}", finding.evidence) };
    evidence.requests.as_ref().unwrap()
}

#[test]
fn conflicts_that_are_retried_cost_time() {
    let again = server("shop", "POST /order").at(0.0, 30.0).child(conflict(1.0)).child(add(20.0));
    let findings = detect(trial().traces(traces(&again)));
    let [finding] = &findings[..] else { panic!("one finding, not {findings:?}") };
    let title = "50 % of the requests of POST /order conflict with another transaction in store, and repeat their work";
    assert_eq!(finding.title(), title);
    assert_eq!(
        finding.reasons(),
        [
            "store reports it (40001) in 20 of the sampled requests, once each on average.",
            "Those that are retried lose 19.0 ms (median) between their first attempt and their last, 48 % of the \
             operation's time."
        ]
    );
    assert_eq!(finding.cost_of(), "of the time of POST /order, in failed attempts");
    let requests = requests(finding);
    assert_eq!((requests.all, requests.conflicting, requests.retried_well), (40.0, 20.0, 20.0));
    assert_eq!((requests.failed, requests.retry_lost_ns), (0.0, Some(19e6)));
    assert_eq!(finding.evidence_text().as_deref(), Some(ADD));
}

#[test]
fn conflicts_that_are_not_retried_cost_requests() {
    let failed = server("shop", "POST /order").at(0.0, 10.0).failed().child(conflict(1.0));
    let findings = detect(trial().traces(traces(&failed)));
    let [finding] = &findings[..] else { panic!("one finding, not {findings:?}") };
    assert!(finding.title().ends_with("conflict with another transaction in store, and fail without a retry"));
    assert_eq!(finding.reasons()[1], "50 % of the requests fail after it: 100 % of all that fail in this operation.");
    assert_eq!(requests(finding).conflicting_failed, 20.0);
}

#[test]
fn where_no_span_tells_the_store_does() {
    let counted = trial().series("db.deadlocks", "store", 0, |second| f64::from(second) * 5.0);
    let findings = detect(counted);
    let [finding] = &findings[..] else { panic!("one finding, not {findings:?}") };
    assert_eq!(finding.title(), "store ended 45 conflicting transactions");
    assert_eq!(finding.reasons(), ["db.deadlocks grew by 45."]);
    assert_eq!(finding.caveats, [Caveat::ConflictsNotInSpans]);
}

#[test]
fn few_conflicts_are_named_where_as_many_requests_fail() {
    let counted = |deadlocks: f64, failed: u64| {
        let trial = TrialBuilder::new("a").service("store", None);
        let trial = trial.steady(10, Load { vus: 2, rate: 200.0, latency_ms: 10.0 });
        let trial = trial.series("db.deadlocks", "store", 0, move |second| f64::from(second) * deadlocks / 9.0);
        let mut trial = trial.build();
        trial.seconds[4].errors.status = failed;
        crate::detect(&ConflictRetry, &trial, &Thresholds::default())
    };
    let findings = counted(4.0, 5);
    let [finding] = &findings[..] else { panic!("one finding, not {findings:?}") };
    assert_eq!(finding.title(), "store ended 4 conflicting transactions, and 5 requests failed");
    assert_eq!(finding.reasons()[1], "About as many requests failed: 5 with an error status.");
    assert_eq!(finding.confidence, Confidence::Medium);
    assert_eq!(counted(2.0, 5), [], "most failures have another reason");
    assert_eq!(counted(4.0, 1), [], "one failure");
    assert_eq!(counted(4.0, 0), [], "all were retried");
}

#[test]
fn counters_are_known_by_their_own_names() {
    for name in ["wsrep_local_bf_aborts", "mysql.wsrep_local_cert_failures", "postgresql.deadlocks", "db.deadlocks"] {
        assert!(is_counter(name), "{name}");
    }
    for name in ["wsrep_local_commits", "process.cpu.cores", "deadlocks_checked"] {
        assert!(!is_counter(name), "{name}");
    }
}
