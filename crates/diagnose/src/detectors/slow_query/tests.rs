//! Tests of `slow-query`: evidence that must make it fire, and evidence that must not.

use narrows_model::call_graph::CallFigures;
use narrows_model::series::names;
use narrows_model::series::servers::{
    QUERY_TEXT, SESSION_STATE, SESSIONS, STATEMENT_CALLS, STATEMENT_TIMES, SessionState,
};
use narrows_model::trace::Trace;
use narrows_testkit::spans::{SpanBuilder, query, server};
use narrows_testkit::trial::{FIRST_PORT, Load, TrialBuilder};

use super::*;
use crate::thresholds::Thresholds;
use crate::words::InWords;

const FIND: &str = "SELECT name FROM item WHERE title LIKE ?";

fn detect(trial: TrialBuilder) -> Vec<Finding> {
    crate::detect(&SlowQuery, &trial.build(), &Thresholds::default())
}

/// Ten seconds each of 2 and 8 users of a shop (port 9000) and its database (9001).
fn steps() -> TrialBuilder {
    let load = |vus| Load { vus, rate: 20.0, latency_ms: 60.0 };
    let trial = TrialBuilder::new("a").service("shop", None).service("store", Some(1.0));
    trial.steady(10, load(2)).steady(10, load(8)).cpu("store", 0, |_| 0.2)
}

/// A request every half second, with a call of `light_ms` in the first ten seconds and of `heavy_ms` in the others.
fn traces(call: impl Fn(f64) -> SpanBuilder, light_ms: f64, heavy_ms: f64) -> Vec<Trace> {
    let request = |ms: f64| server("shop", "GET /find").at(0.0, ms + 6.0).child(call(ms).at(2.0, ms));
    let light = (0..20).map(|n| request(light_ms).trace(50 * n));
    light.chain((0..20).map(|n| request(heavy_ms).trace(1000 + 50 * n))).collect()
}

fn find(_: f64) -> SpanBuilder {
    query(FIND).to_port(FIRST_PORT + 1).rows(3)
}

#[test]
fn a_query_that_takes_long_by_itself_is_named() {
    let findings = detect(steps().traces(traces(find, 54.0, 54.0)));
    let [finding] = &findings[..] else { panic!("one finding, not {findings:?}") };
    assert_eq!(finding.title(), format!("a query of store takes 54.0 ms, 90 % of GET /find: {FIND}"));
    assert_eq!((finding.resource.as_str(), finding.confidence), ("store", Confidence::High));
    assert_eq!(finding.reasons()[0], "It takes 54.0 ms (median) at 2 users, the lightest load, for 3 rows.");
    assert!(finding.ruled_out()[2].ends_with("the CPU of store stood at 20 %."), "{:?}", finding.ruled_out());
    assert_eq!((finding.evidence_text().as_deref(), finding.exemplars.len()), (Some(FIND), 3));
}

#[test]
fn without_a_known_load_none_is_named() {
    let load = Load { vus: 0, rate: 20.0, latency_ms: 60.0 };
    let trial = TrialBuilder::new("a").service("shop", None).service("store", None).steady(10, load).steady(10, load);
    let findings = detect(trial.traces(traces(find, 54.0, 54.0)));
    assert_eq!(findings[0].reasons()[0], "It takes 54.0 ms (median), for 3 rows.");
}

#[test]
fn behind_a_sidecar_the_database_keeps_its_name() {
    let through = |_: f64| query(FIND).to_port(FIRST_PORT + 7);
    let trial = TrialBuilder::new("a").service("shop", None).service("store", None).stand_in_port(FIRST_PORT + 7);
    let trial = trial.steady(20, Load { vus: 2, rate: 20.0, latency_ms: 60.0 });
    let findings = detect(trial.traces(traces(through, 54.0, 54.0)));
    assert_eq!((findings[0].resource.as_str(), findings[0].confidence), ("store", Confidence::Medium));
}

#[test]
fn other_causes_of_long_requests_are_silent() {
    let many = |ms: f64| {
        let one = |n: usize| query(FIND).to_port(FIRST_PORT + 1).at(n as f64 * ms / 8.0, ms / 8.0);
        (0..8).fold(narrows_testkit::spans::internal("list"), |list, n| list.child(one(n)))
    };
    let beside = |ms: f64| find(ms).at(2.0, 25.0);
    let slow_elsewhere = (0..40).map(|n| {
        let call = beside(25.0);
        server("shop", "GET /find").at(0.0, 90.0).child(call).trace(50 * n)
    });
    for (name, trial) in [
        ("slow under more load only", steps().traces(traces(find, 5.0, 54.0))),
        ("quick ones", steps().traces(traces(find, 12.0, 12.0))),
        ("many of them", steps().traces(traces(many, 200.0, 200.0))),
        ("less than half of the time", steps().traces(slow_elsewhere)),
        ("few traces", steps().traces(traces(find, 54.0, 54.0).into_iter().step_by(11))),
        ("failed ones", steps().traces(traces(|ms| find(ms).failed(), 54.0, 54.0))),
    ] {
        assert_eq!(detect(trial), [], "with {name}");
    }
}

/// Two, then eight users whose service calls its database, which counts this much time for each second of two statements.
fn counted(seconds: f64, waiting_for_lock: f64) -> Vec<Finding> {
    let (shop, db) = (format!("127.0.0.1:{FIRST_PORT}"), format!("127.0.0.1:{}", FIRST_PORT + 1));
    let figures = |outstanding, rate| CallFigures { connections: 8.0, outstanding, rate, ..CallFigures::default() };
    let of_text = [(QUERY_TEXT, "SELECT * FROM items WHERE name = $1")];
    let in_lock = [(SESSION_STATE, SessionState::WaitingForLock.as_str())];
    let trial = steps().calls(names::GENERATOR, 0, &shop, move |_| figures(2.0, 20.0));
    let trial = trial.calls("shop", 0, &db, move |_| figures(1.5, 20.0));
    let trial = trial.labelled_series(STATEMENT_CALLS[0], ("store", 0), &of_text, |second| 15.0 * f64::from(second));
    let trial = trial
        .labelled_series(STATEMENT_TIMES[0], ("store", 0), &of_text, move |second| seconds * f64::from(second))
        .labelled_series(SESSIONS, ("store", 0), &in_lock, move |_| waiting_for_lock);
    detect(trial)
}

#[test]
fn a_database_counts_what_services_without_spans_wait_for() {
    let findings = counted(1.5, 0.0);
    let [finding] = &findings[..] else { panic!("{findings:?}") };
    assert!(finding.title().starts_with("a query of store takes 100 ms"), "{}", finding.title());
    assert!(finding.reasons()[0].contains("(mean, as the server counts)"), "{:?}", finding.reasons());
    assert_eq!(counted(0.3, 0.0), [], "quick ones");
    assert_eq!(counted(1.5, 1.4), [], "it waits for a lock");
}
