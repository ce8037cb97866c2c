//! Tests of `pool-wait`: evidence that must make it fire, and evidence that must not.

use narrows_model::finding::Evidence;
use narrows_testkit::spans::{SpanBuilder, client, database, internal, query, server};
use narrows_testkit::trial::{Load, TrialBuilder};

use super::*;
use crate::thresholds::Thresholds;
use crate::words::InWords;

const TEXT: &str = "SELECT a FROM t WHERE b = $1";
const PENDING: &str = "db.client.connection.pending_requests";

fn request(children: Vec<SpanBuilder>) -> SpanBuilder {
    server("shop", "GET /orders").at(0.0, 100.0).children(children)
}

/// A wait of this length, followed by a query of 4 ms.
fn waiting(name: SpanBuilder, wait_ms: f64) -> Vec<SpanBuilder> {
    vec![name.at(5.0, wait_ms), query(TEXT).at(5.0 + wait_ms, 4.0)]
}

fn trial(each: impl Fn(u32) -> Vec<SpanBuilder>) -> TrialBuilder {
    TrialBuilder::new("a")
        .service("shop", None)
        .steady(20, Load { vus: 40, rate: 100.0, latency_ms: 100.0 })
        .traces((0..20).map(|n| request(each(n)).trace(n * 90)))
}

fn detect(trial: TrialBuilder) -> Vec<Finding> {
    crate::detect(&PoolWait, &trial.build(), &Thresholds::default())
}

fn evidence_of(finding: &Finding) -> &evidence::PoolWait {
    let Evidence::PoolWait(evidence) = &finding.evidence else { panic!("{finding:?}") };
    evidence
}

#[test]
fn waits_in_spans_of_the_pool_are_named() {
    let findings = detect(trial(|_| waiting(internal("pg-pool.connect"), 60.0)));
    let [finding] = &findings[..] else { panic!("one finding, not {findings:?}") };
    assert_eq!(finding.title(), "shop waits for a connection: 60.0 ms of each GET /orders, its queries take 4.00 ms");
    assert_eq!((finding.resource.as_str(), finding.confidence), ("shop", Confidence::Medium));
    assert!((finding.cost_share - 0.6).abs() < 0.01, "{}", finding.cost_share);
    assert_eq!(finding.exemplars.len(), 3);
    assert_eq!(finding.caveats, [Caveat::MoreQueriesAtOnce, Caveat::NoPoolMetric]);
    assert_eq!(
        finding.reasons()[0],
        "Spans of the pool take 60 % of the time of GET /orders, with no other call of the request in progress."
    );
    assert!(finding.advice().contains("make the pool of shop larger"), "{}", finding.advice());
}

#[test]
fn metrics_that_agree_make_it_sure() {
    let pending = |second: u32| if second >= 5 { 7.0 } else { 0.0 };
    let both = trial(|_| waiting(internal("pg-pool.connect"), 60.0)).series(PENDING, "shop", 0, pending);
    let findings = detect(both);
    assert_eq!(findings[0].confidence, Confidence::High);
    assert_eq!(evidence_of(&findings[0]).pool.pending.map(|readings| readings.share), Some(0.75));
    assert!(findings[0].reasons()[1].starts_with("Requests wait in 75 % of"), "{:?}", findings[0].reasons());
}

#[test]
fn metrics_explain_a_gap_before_queries() {
    let gap = || trial(|_| vec![query(TEXT).at(70.0, 4.0)]);
    let state = detect(gap().series(PENDING, "shop", 0, |_| 3.0));
    assert_eq!((state.len(), state[0].confidence), (1, Confidence::Low));
    let times = gap().series("db.client.connection.wait_time.sum", "shop", 0, |s| f64::from(s) * 0.5).series(
        "db.client.connection.wait_time.count",
        "shop",
        0,
        |s| f64::from(s) * 10.0,
    );
    let times = detect(times);
    assert_eq!((times.len(), times[0].confidence), (1, Confidence::Medium));
    assert_eq!(evidence_of(&times[0]).sign, PoolSign::ReportedTimes);
    assert!((times[0].cost_share - 0.5).abs() < 0.01, "the pool says 50 ms: {}", times[0].cost_share);
    assert_eq!(detect(gap()), [], "a gap alone");
    assert_eq!(detect(gap().series(PENDING, "other", 0, |_| 3.0)), [], "another service's pool");
    let seldom = |second: u32| if second == 7 { 1.0 } else { 0.0 };
    assert_eq!(detect(gap().series(PENDING, "shop", 0, seldom)), [], "one reading");
}

#[test]
fn a_pool_that_suffices_for_few_is_judged_under_many() {
    let load = |vus| Load { vus, rate: 100.0, latency_ms: 100.0 };
    let wait = |n: u32| if n < 20 { 0.1 } else { 60.0 };
    let traces = (0..30).map(|n| request(waiting(internal("pg-pool.connect"), wait(n))).trace(n * 98));
    let trial = TrialBuilder::new("a").steady(20, load(4)).steady(10, load(40)).traces(traces);
    let findings = detect(trial);
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].period.as_ref().map(|period| period.label.as_str()), Some("“40 users”"));
}

#[test]
fn connections_held_during_calls_are_reported() {
    let held = |_| {
        let mut children = waiting(internal("pg-pool.connect"), 40.0);
        children.push(client("GET").url("http://mail/send").at(50.0, 30.0));
        children.push(query("UPDATE t SET a = $1").at(81.0, 2.0));
        children
    };
    let findings = detect(trial(held));
    assert_eq!(evidence_of(&findings[0]).other_calls_ns, 30e6);
    assert!(
        findings[0].advice().starts_with("Between its queries it calls other services for 30.0 ms"),
        "{findings:?}"
    );
}

#[test]
fn what_only_looks_like_a_wait_is_left_alone() {
    let opening = |_| {
        let opened = internal("tcp.connect").at(5.5, 59.0);
        waiting(internal("pg-pool.connect").child(opened), 60.0)
    };
    let slow = |_| vec![internal("pg-pool.connect").at(2.0, 25.0), query(TEXT).at(27.0, 60.0)];
    let beside = |_| {
        let mut children = waiting(internal("pg-pool.connect"), 60.0);
        children.push(client("GET").url("http://other/").at(1.0, 80.0));
        children
    };
    let few = |n| waiting(internal("pg-pool.connect"), if n < 4 { 60.0 } else { 0.1 });
    assert_eq!(detect(trial(|_| waiting(internal("pg-pool.connect"), 2.0))), [], "short");
    assert_eq!(detect(trial(opening)), [], "opened");
    assert_eq!(detect(trial(slow)), [], "a slow database");
    assert_eq!(detect(trial(beside)), [], "another call meanwhile");
    assert_eq!(detect(trial(few)), [], "few requests");
    assert_eq!(detect(trial(|_| waiting(internal("tcp.connect"), 60.0))), [], "no pool");
}

#[test]
fn a_plain_connect_must_differ_or_be_confirmed() {
    let connect = |wait_ms: f64| waiting(database("connect"), wait_ms);
    assert_eq!(detect(trial(move |_| connect(60.0))), [], "as long each time: opened");
    assert_eq!(detect(trial(move |n| connect(if n % 4 == 0 { 0.2 } else { 60.0 }))).len(), 1, "it differs");
    assert_eq!(detect(trial(move |_| connect(60.0)).series(PENDING, "shop", 0, |_| 3.0)).len(), 1, "confirmed");
}

#[test]
fn what_another_request_of_the_trace_waits_for_is_not_this_ones() {
    // Ten requests to one service in one trace: nine need no connection while the tenth waits for one.
    let quick = |_: u32| server("shop", "GET /stock").at(0.0, 70.0);
    let waits = || server("shop", "POST /orders").at(0.0, 90.0).children(waiting(internal("pg-pool.connect"), 60.0));
    let trace =
        |n: u32| server("gate", "GET /").at(0.0, 100.0).children((0..9).map(quick)).child(waits()).trace(n * 90 + 5);
    let findings = detect(trial(|_| Vec::new()).traces((0..20).map(trace)));
    assert_eq!(findings.iter().map(|f| f.operation.as_deref()).collect::<Vec<_>>(), [Some("POST /orders")]);
}
