//! Tests of `retry-storm`: evidence that must make it fire, and evidence that must not.

use narrows_model::finding::Evidence;
use narrows_model::trace::Trace;
use narrows_testkit::TRIAL_START_NS;
use narrows_testkit::operations::operation;
use narrows_testkit::spans::{SpanBuilder, client, server};
use narrows_testkit::trial::{Load, TrialBuilder};

use super::*;
use crate::thresholds::Thresholds;
use crate::words::InWords;

fn evidence_of(finding: &Finding) -> &evidence::RetryStorm {
    let Evidence::RetryStorm(evidence) = &finding.evidence else { panic!("{finding:?}") };
    evidence
}

fn get(start_ms: f64, length_ms: f64) -> SpanBuilder {
    client("GET").url("http://stock/parts").at(start_ms, length_ms)
}

fn unavailable(start_ms: f64) -> SpanBuilder {
    get(start_ms, 20.0).facts(|facts| facts.http_status = Some(503)).failed()
}

/// Tries that fail, and a last one that succeeds.
fn tried(failures: usize) -> Vec<SpanBuilder> {
    let mut tries: Vec<SpanBuilder> = (0..failures).map(|i| unavailable(5.0 + 25.0 * i as f64)).collect();
    tries.push(get(5.0 + 25.0 * failures as f64, 15.0));
    tries
}

/// Sixty seconds with a request every half second; the storm begins at second 40.
fn traces(each: impl Fn(bool) -> SpanBuilder) -> Vec<Trace> {
    (0..120).map(|n| each(n >= 80).trace_from(n, TRIAL_START_NS + i64::from(n) * 500_000_000)).collect()
}

fn request(children: Vec<SpanBuilder>) -> SpanBuilder {
    server("shop", "GET /orders").at(0.0, 200.0).children(children)
}

fn trial(traces: Vec<Trace>) -> TrialBuilder {
    let load = |vus| Load { vus, rate: 50.0, latency_ms: 100.0 };
    TrialBuilder::new("a").steady(40, load(8)).steady(20, load(32)).traces(traces)
}

fn detect(traces: Vec<Trace>) -> Vec<Finding> {
    crate::detect(&RetryStorm, &trial(traces).build(), &Thresholds::default())
}

#[test]
fn attempts_that_grow_with_failures_are_a_storm() {
    let findings = detect(traces(|is_storm| request(tried(if is_storm { 2 } else { 0 }))));
    let [finding] = &findings[..] else { panic!("one finding, not {findings:?}") };
    assert_eq!(finding.title(), "shop calls GET 3 times per request while it fails, and once otherwise");
    assert_eq!(
        finding.reasons(),
        [
            "GET /orders of shop makes 3 attempts for each of these calls, 1 in the calm part of the trial (40 and 80 \
             calls in the traces).",
            "A failed attempt occupies GET and its caller for 20.0 ms (median), one in the calm part for 15.0 ms.",
        ]
    );
    let callee = "GET".into();
    assert_eq!(finding.caveats, [Caveat::FailureNotExplained { callee }, Caveat::CallsOnlySampled]);
    assert_eq!((finding.resource.as_str(), finding.operation.as_deref()), ("shop", Some("GET /orders")));
    assert!((finding.cost_share - 2.0 / 3.0).abs() < 0.01, "{}", finding.cost_share);
    let period = finding.period.as_ref().unwrap();
    assert_eq!((period.label.as_str(), (period.end_ns - period.start_ns) / 1_000_000_000), ("“32 users”", 20));
    assert_eq!((finding.confidence, finding.exemplars.len()), (Confidence::Medium, 3));
}

#[test]
fn counts_over_all_spans_make_it_sure() {
    let mut counted = operation("shop", "GET /orders", 60, 50.0, 100.0);
    let mut calls = narrows_testkit::operations::store_calls("GET", (0..60).map(|_| (50.0, 0.0, 0.0)));
    calls.seconds.iter_mut().skip(40).for_each(|second| second.failed = 100.0);
    counted.calls = vec![calls];
    let storm = traces(|is_storm| request(tried(if is_storm { 2 } else { 0 })));
    let findings = crate::detect(&RetryStorm, &trial(storm).operation(counted).build(), &Thresholds::default());
    assert_eq!(findings[0].confidence, Confidence::High);
    let failed_share = evidence_of(&findings[0]).failed_share.unwrap();
    assert!((failed_share - 2.0 / 3.0).abs() < 1e-9, "{failed_share}");
    assert_eq!(findings[0].reasons()[1], "Over all spans, 67 % of the attempts failed in that time.");
}

#[test]
fn retries_within_retries_multiply() {
    let nested = |is_storm: bool| {
        let failures = if is_storm { 1 } else { 0 };
        let inner = |at_ms: f64| {
            let calls = (0..=failures).map(|i| {
                let call = client("GET").url("http://db/rows").at(at_ms + 2.0 + 9.0 * i as f64, 8.0);
                if i < failures { call.failed() } else { call }
            });
            server("stock", "GET /parts").at(at_ms + 1.0, 19.0).children(calls)
        };
        let outer = tried(failures).into_iter().enumerate();
        request(outer.map(|(i, call)| call.child(inner(5.0 + 25.0 * i as f64))).collect())
    };
    let findings = detect(traces(nested));
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert_eq!(findings[0].resource, "shop");
    let evidence = evidence_of(&findings[0]);
    assert!((evidence.amplification() - 4.0).abs() < 1e-9, "{evidence:?}");
    assert_eq!(evidence.layers.iter().map(|layer| layer.service.as_str()).collect::<Vec<_>>(), ["stock"]);
    assert!(findings[0].advice().starts_with("Retry in one layer only"));
}

#[test]
fn what_a_library_tries_below_one_span_counts_too() {
    let wrapped = |is_storm: bool| {
        let tries: Vec<SpanBuilder> =
            tried(if is_storm { 2 } else { 0 }).into_iter().map(|t| t.scope("http")).collect();
        request(vec![client("GET").url("http://stock/parts").scope("polly").at(4.0, 90.0).children(tries)])
    };
    assert_eq!(detect(traces(wrapped)).len(), 1);
}

#[test]
fn what_is_asked_again_for_another_reason_is_left_alone() {
    let status = |status: u16, at_ms: f64| get(at_ms, 5.0).facts(|facts| facts.http_status = Some(status)).failed();
    let polling = |is_storm: bool| {
        let waits = if is_storm { 4 } else { 0 };
        let mut calls: Vec<SpanBuilder> = (0..waits).map(|i| status(404, 5.0 + 10.0 * i as f64)).collect();
        calls.push(get(100.0, 5.0));
        request(calls)
    };
    let hedged = |is_storm: bool| {
        let count = if is_storm { 3 } else { 1 };
        request((0..count).map(|i| unavailable(5.0 + 2.0 * f64::from(i))).collect())
    };
    let patient = |is_storm: bool| {
        let refused = get(5.0, 2.0).throttled(Some(50.0));
        request(if is_storm { vec![refused, get(58.0, 10.0)] } else { vec![get(5.0, 10.0)] })
    };
    let seldom = |is_storm: bool| request(tried(usize::from(is_storm)).into_iter().chain([get(80.0, 1.0)]).collect());
    assert_eq!(detect(traces(polling)), [], "polling");
    assert_eq!(detect(traces(hedged)), [], "hedged calls");
    assert_eq!(detect(traces(patient)), [], "back-off after a refusal");
    assert_eq!(detect(traces(|_| request(tried(2)))), [], "as many all the time");
    assert_eq!(detect(traces(|_| request(tried(0)))), [], "healthy");
    assert_eq!(detect(traces(seldom)).len(), 1, "one retry in the storm");
    let rare = (0..120)
        .map(|n| request(tried(usize::from(n % 20 == 0))).trace_from(n, TRIAL_START_NS + i64::from(n) * 500_000_000));
    assert_eq!(detect(rare.collect()), [], "few retries, always");
}

#[test]
fn transactions_that_meet_begin_again() {
    let update = || narrows_testkit::spans::query("UPDATE stock SET n = 1 WHERE id = 7");
    let failing = |status: &'static str| {
        move |is_storm: bool| {
            let failed = update().at(5.0, 5.0).failed().facts(|facts| facts.db_status = Some(status.into()));
            request(if is_storm { vec![failed, update().at(11.0, 5.0)] } else { vec![update().at(5.0, 5.0)] })
        }
    };
    let findings = detect(traces(failing("40P01")));
    assert_eq!(findings.len(), 1);
    assert_eq!(evidence_of(&findings[0]).conflict_share, 1.0);
    assert!(findings[0].advice().starts_with("Transactions conflict: lock rows in one"), "{}", findings[0].advice());
}

#[test]
fn a_trial_without_time_is_survived() {
    let empty = TrialBuilder::new("a").traces(traces(|_| request(tried(2)))).build();
    assert_eq!(crate::detect(&RetryStorm, &empty, &Thresholds::default()), []);
}
