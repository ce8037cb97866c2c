//! Tests of `lock-wait`: evidence that must make it fire, and evidence that must not.

use narrows_model::series::ThreadState;
use narrows_model::series::servers::{
    HOLDER_AGE, HOLDER_QUERY_TEXT, HOLDER_STATE, LOCK_TYPE, LOCK_WAITS, QUERY_TEXT, SESSION_STATE, SESSIONS,
    SessionState,
};
use narrows_testkit::trial::{FIRST_PORT, Load as Step, TrialBuilder};

use super::*;
use crate::thresholds::Thresholds;
use crate::words::InWords;

const UPDATE: &str = "UPDATE counters SET n = n + ? WHERE id = ?";

/// Sixteen requests under way in a service and its database (port 9001), of which the server samples `sessions`.
fn trial(sessions: [f64; 3]) -> TrialBuilder {
    let trial = TrialBuilder::new("a").service("orders", None).service("db", None);
    let trial = trial.steady(10, Step { vus: 16, rate: 100.0, latency_ms: 160.0 });
    SessionState::ALL.into_iter().zip(sessions).fold(trial, |trial, (state, sessions)| {
        trial.labelled_series(SESSIONS, ("db", 0), &[(SESSION_STATE, state.as_str())], move |_| sessions)
    })
}

/// With `sessions` that wait for a row, and the age of a holder in that state.
fn waiting(trial: TrialBuilder, holder: (SessionState, &'static str), sessions: f64, age_ms: f64) -> TrialBuilder {
    let labels =
        [(QUERY_TEXT, UPDATE), (LOCK_TYPE, "row"), (HOLDER_STATE, holder.0.as_str()), (HOLDER_QUERY_TEXT, holder.1)];
    let trial = trial.labelled_series(LOCK_WAITS, ("db", 0), &labels, move |_| sessions);
    trial.labelled_series(HOLDER_AGE, ("db", 0), &labels, move |_| age_ms / 1e3)
}

fn detect(trial: TrialBuilder) -> Vec<Finding> {
    crate::detect(&LockWait, &trial.build(), &Thresholds::default())
}

#[test]
fn a_statement_that_waits_for_an_idle_transaction_is_named_with_it() {
    let trial = waiting(trial([1.0, 14.0, 1.0]), (SessionState::IdleInTransaction, UPDATE), 12.0, 5.0);
    let trial = waiting(trial, (SessionState::Active, "COMMIT"), 2.0, 0.2);
    let peer = format!("127.0.0.1:{}", FIRST_PORT + 1);
    let trial = trial.threads("orders", 0, &[(ThreadState::Running, "", 0.1), (ThreadState::Network, &peer, 15.0)]);
    let findings = detect(trial);
    let [finding] = &findings[..] else { panic!("one finding, not {findings:?}") };
    assert_eq!(finding.title(), "db: UPDATE counters waits for a row lock of transactions that are idle for 10.0 ms");
    assert_eq!((finding.resource.as_str(), finding.confidence), ("db", Confidence::High));
    assert!((finding.cost_share - 14.0 / 16.0).abs() < 1e-9, "{}", finding.cost_share);
    assert_eq!(LockWait.request_cost_ns(finding), Some(14.0 / 100.0 * 1e9));
    let reasons = finding.reasons();
    assert!(reasons.iter().any(|reason| reason.starts_with("For 86 % of them, the holder is idle")), "{reasons:?}");
    assert!(reasons.contains(&"Only orders connects to db.".to_owned()), "{reasons:?}");
}

#[test]
fn a_figure_without_statements_is_enough_for_the_place() {
    let label = ("postgresql.wait_event.type", "Lock");
    let trial = TrialBuilder::new("a").service("orders", None).service("db", None);
    let trial = trial.steady(10, Step { vus: 16, rate: 100.0, latency_ms: 160.0 });
    let findings = detect(trial.labelled_series("postgresql.backends.waiting", ("db", 0), &[label], |_| 14.0));
    let [finding] = &findings[..] else { panic!("one finding, not {findings:?}") };
    assert_eq!((finding.title().as_str(), finding.confidence), ("db: 14 sessions wait for locks", Confidence::Medium));
}

#[test]
fn a_wait_beside_the_load_is_no_finding() {
    let trial = waiting(trial([12.0, 2.0, 1.0]), (SessionState::IdleInTransaction, UPDATE), 2.0, 900.0);
    assert_eq!(detect(trial), [], "two sessions of sixteen requests");
}

#[test]
fn sessions_at_work_are_no_finding() {
    assert_eq!(detect(trial([14.0, 0.2, 3.0])), []);
}

#[test]
fn a_statement_is_told_by_its_beginning() {
    let text = |statement: &str| {
        let (statement, lock_type) = (statement.to_owned(), "row".to_owned());
        let waiting = evidence::WaitingStatement { statement, lock_type, sessions: 2.0, ..Default::default() };
        let evidence = evidence::LockWait { statements: vec![waiting], ..Default::default() };
        Finding { resource: "db".to_owned(), ..Finding::new(evidence, 1) }.title()
    };
    assert_eq!(text("insert into a (b) VALUES (?)"), "db: insert into a waits for a row lock of another session");
    assert_eq!(
        text("SELECT stock FROM products WHERE id = ? AND warehouse = ? FOR UPDATE"),
        "db: SELECT … FROM products FOR UPDATE waits for a row lock of another session"
    );
    assert_eq!(text(""), "db: a statement waits for a row lock of another session");
}
