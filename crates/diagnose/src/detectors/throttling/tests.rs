//! Tests of `throttling`: evidence that must make it fire, and evidence that must not.

use narrows_model::call_graph::CallFigures;
use narrows_model::operation::CallEvidence;
use narrows_model::series::{ThreadState, names};
use narrows_model::trace::Trace;
use narrows_testkit::operations::{operation, store_calls};
use narrows_testkit::spans::{SpanBuilder, client, document_query, server};
use narrows_testkit::trial::{FIRST_PORT, Load, TrialBuilder};

use super::*;
use crate::words::{InWords, caveat};

const TEXT: &str = "SELECT VALUE SUM(c.hours) FROM c WHERE c.owner = @owner";
const OPERATION: &str = "GET /utilization";

fn attempt(partition: &str, start_ms: f64) -> SpanBuilder {
    document_query(TEXT, partition).charge(3.0).to_port(FIRST_PORT + 1).at(start_ms, 40.0)
}

/// Calls of a request that is refused once, waits `waits_ms`, and calls again.
fn refused(told_ms: Option<f64>, waits_ms: f64) -> Vec<SpanBuilder> {
    let no = document_query(TEXT, "1").throttled(told_ms).to_port(FIRST_PORT + 1).at(50.0, 4.0);
    vec![attempt("0", 5.0), no, attempt("1", 54.0 + waits_ms).resent(1)]
}

fn request(children: Vec<SpanBuilder>) -> SpanBuilder {
    let length_ms = if children.len() > 2 { 600.0 } else { 100.0 };
    server("drones", OPERATION).at(0.0, length_ms).children(children)
}

/// Traces; half of them have these calls, the others have no refusal.
fn half(children: &[SpanBuilder]) -> Vec<Trace> {
    let fine = || vec![attempt("0", 5.0), attempt("1", 50.0)];
    (0..20).map(|n| request(if n % 2 == 0 { children.to_vec() } else { fine() }).trace(n * 50)).collect()
}

/// Ten seconds, two of them full; about 10 % of all attempts are refused there.
fn busy() -> CallEvidence {
    store_calls("query", (0..10).map(|s| if s % 5 == 0 { (36.0, 20.0, 108.0) } else { (36.0, 0.0, 108.0) }))
}

fn trial(calls: CallEvidence, traces: Vec<Trace>) -> TrialBuilder {
    let mut counted = operation("drones", OPERATION, 10, 18.0, 350.0);
    counted.calls = vec![calls];
    TrialBuilder::new("a")
        .service("drones", None)
        .service("store", None)
        .steady(10, Load { vus: 9, rate: 18.0, latency_ms: 350.0 })
        .operation(counted)
        .traces(traces)
}

fn with_readings(trial: TrialBuilder) -> TrialBuilder {
    trial
        .throughput("store", "0", 100.0, |_| 54.0)
        .throughput("store", "1", 100.0, |second| if second % 5 == 0 { 96.0 } else { 54.0 })
}

fn detect(trial: TrialBuilder) -> Vec<Finding> {
    crate::detect(&Throttling, &trial.build(), &Thresholds::default())
}

#[test]
fn hot_seconds_are_named_beside_the_mean_that_hides_them() {
    let findings = detect(with_readings(trial(busy(), half(&refused(Some(400.0), 401.0)))));
    let [finding] = &findings[..] else { panic!("one finding, not {findings:?}") };
    assert_eq!(finding.title(), "store rejects 10 % of the calls of GET /utilization, which then wait and retry");
    assert_eq!((finding.resource.as_str(), finding.operation.as_deref()), ("store", Some(OPERATION)));
    assert!((finding.cost_share - 401.0 / 600.0).abs() < 0.01, "{}", finding.cost_share);
    assert_eq!(finding.confidence, Confidence::High);
    assert_eq!(finding.reasons()[1], "Attempts were rejected in 2 of the 10 seconds with attempts.");
    assert_eq!(
        finding.reasons()[2],
        "In those seconds a partition consumed up to 96 of its 100 units; the mean over the run, 56.3 of 100, \
         hides that."
    );
    let number = |name: &str| finding.numbers().iter().find(|n| n.name == name).map(|n| n.value);
    assert_eq!(number("rejected attempts"), Some(40.0));
    assert_eq!(number("attempts per success"), Some(400.0 / 360.0));
    // 96 spent and one call of 3 refused there, as far as the traces show: less than is provisioned, so no amount.
    assert_eq!(number("demand on a partition in its busiest second"), Some(99.0));
    assert!(finding.advice().starts_with("Provision more throughput for store; or spend"), "{}", finding.advice());
}

#[test]
fn how_much_to_provision_follows_the_hottest_second() {
    let many = |trace: Trace| Trace { weight: 6.0, ..trace };
    let traces = half(&refused(Some(400.0), 401.0)).into_iter().map(many).collect();
    let findings = detect(with_readings(trial(busy(), traces)));
    // 96 spent and 6 calls of 3 refused.
    let expected = "Provision more throughput for store: the demand on its busiest partition was 114 units in one \
                    second, so at least 228 for all 2; or spend";
    assert!(findings[0].advice().starts_with(expected), "{}", findings[0].advice());
}

#[test]
fn without_readings_or_times_told_it_is_less_sure() {
    let told = refused(Some(400.0), 401.0);
    let silent = refused(None, 401.0);
    let confidence = |trial| detect(trial)[0].confidence;
    assert_eq!(confidence(trial(busy(), half(&told))), Confidence::Medium);
    assert_eq!(confidence(with_readings(trial(busy(), half(&silent)))), Confidence::Medium);
    let unsure = detect(trial(busy(), half(&silent)));
    assert_eq!(unsure[0].confidence, Confidence::Low);
    assert!(unsure[0].ruled_out()[0].contains("is not ruled out"));
    assert!(caveat(&unsure[0].caveats[1]).starts_with("store reports neither"), "{:?}", unsure[0].caveats);
}

#[test]
fn a_gap_counts_as_far_as_the_refusal_explains_it() {
    // 400 ms pass, 20 were requested: twice that and the slack of 50 count.
    let long = detect(trial(busy(), half(&refused(Some(20.0), 400.0))));
    assert!((long[0].cost_share - 90.0 / 600.0).abs() < 0.01, "{}", long[0].cost_share);
    assert_eq!(long[0].confidence, Confidence::Low);
    assert_eq!(detect(trial(busy(), half(&refused(Some(2000.0), 400.0)))), [], "far too short");
}

#[test]
fn services_that_put_callers_off_throttle_too() {
    let get = |at_ms: f64| client("GET").url("http://store/x").at(at_ms, 40.0);
    let no = |word: fn(&mut narrows_model::trace::SpanFacts)| {
        let refused = get(50.0).at(50.0, 4.0).facts(|facts| facts.retry_after_ns = Some(400_000_000)).failed();
        vec![get(5.0), refused.facts(word), get(455.0)]
    };
    let mut calls = CallEvidence { target: String::new(), is_database: false, ..busy() };
    let trial_of = |calls: CallEvidence, children: Vec<SpanBuilder>| {
        let fine = || vec![get(5.0), get(50.0)];
        let each = (0..20).map(|n| request(if n % 2 == 0 { children.clone() } else { fine() }).trace(n * 50));
        trial(calls, each.collect())
    };
    let rpc = |facts: &mut narrows_model::trace::SpanFacts| facts.rpc_status = Some("RESOURCE_EXHAUSTED".into());
    assert_eq!(detect(trial_of(calls.clone(), no(rpc))).len(), 1);
    for second in &mut calls.seconds {
        (second.failed, second.throttled) = (second.throttled, 0.0);
    }
    (calls.failed, calls.throttled) = (calls.throttled, 0.0);
    assert_eq!(detect(trial_of(calls.clone(), no(|facts| facts.http_status = Some(503)))).len(), 1, "put off");
    let down = |facts: &mut narrows_model::trace::SpanFacts| {
        (facts.http_status, facts.retry_after_ns) = (Some(503), None);
    };
    assert_eq!(detect(trial_of(calls, no(down))), [], "it is down");
}

#[test]
fn tries_below_one_span_are_seen() {
    let hidden = |n: u32| {
        let post = |at_ms: f64| client("POST").url("http://store/docs").at(at_ms, 9.0);
        let tries = [post(50.5).throttled(Some(400.0)), post(460.0)];
        let logical = document_query(TEXT, "1").at(50.0, 420.0).children(tries);
        request(vec![attempt("0", 5.0), logical, attempt("1", 500.0)]).trace(n * 50)
    };
    let calls = CallEvidence { target: String::new(), is_database: false, ..busy() };
    let findings = detect(trial(calls, (0..20).map(hidden).collect()));
    assert_eq!(findings.len(), 1);
    assert!((findings[0].cost_share - 400.5 / 600.0).abs() < 0.01, "{}", findings[0].cost_share);
}

#[test]
fn two_operations_of_one_store_are_one_finding() {
    let other =
        |n: u32| server("drones", "GET /other").at(0.0, 900.0).children(refused(Some(500.0), 700.0)).trace(n + 1000);
    let mut counted = operation("drones", "GET /other", 10, 18.0, 900.0);
    counted.calls = vec![busy()];
    let findings =
        detect(trial(busy(), half(&refused(Some(400.0), 401.0))).operation(counted).traces((0..5).map(other)));
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].operation.as_deref(), Some("GET /other"));
    assert!(
        findings[0].reasons().contains(&"It also delays GET /utilization.".to_owned()),
        "{:?}",
        findings[0].reasons()
    );
}

#[test]
fn healthy_refusals_are_left_alone() {
    let told = refused(Some(400.0), 401.0);
    let beside = |mut children: Vec<SpanBuilder>| {
        children.push(client("GET").url("http://other/long").at(2.0, 590.0));
        children
    };
    let few = store_calls("query", (0..10).map(|s| (36.0, if s == 0 { 19.0 } else { 0.0 }, 108.0)));
    let rare = store_calls("query", (0..10).map(|_| (3600.0, 30.0, 10_800.0)));
    let cases = [
        ("few refusals", trial(few, half(&told))),
        ("rare refusals", trial(rare, half(&told))),
        ("waits after the response", {
            let late = refused(Some(400.0), 401.0).into_iter().enumerate();
            let late = late.map(|(i, span)| span.at(if i < 2 { 602.0 + 40.0 * i as f64 } else { 1100.0 }, 4.0));
            trial(busy(), half(&late.collect::<Vec<_>>()))
        }),
        ("short waits", trial(busy(), half(&refused(Some(10.0), 11.0)))),
        ("another call all the while", trial(busy(), half(&beside(told.clone())))),
        ("nothing refused in the traces", trial(busy(), half(&[]))),
        ("two traces only", trial(busy(), half(&told).into_iter().take(3).collect())),
        ("nothing counted", trial(CallEvidence::default(), half(&told))),
    ];
    for (name, trial) in cases {
        assert_eq!(detect(with_readings(trial)), [], "with {name}");
    }
}

/// A service whose requests sleep for so many at a time under one and ten users, and calls a quick partner this often.
fn sleeping(sleeping: (f64, f64), calls_per_request: f64) -> Vec<Finding> {
    let load = |vus: u32, rate: f64| Load { vus, rate, latency_ms: 1e3 * f64::from(vus) / rate };
    let trial = TrialBuilder::new("a").service("weather", None).cpu("weather", 0, |_| 0.05).host_cpu(|_| 0.1);
    let trial = trial.steady(20, load(1, 4.5)).steady(20, load(10, 5.0)).threads("weather", 0, &[]);
    let state = [(names::THREAD_STATE, ThreadState::Sleep.as_str())];
    let trial = trial.labelled_series(names::THREAD_STATES, ("weather", 0), &state, move |second| {
        if second < 20 { sleeping.0 } else { sleeping.1 }
    });
    let figures = |outstanding, rate| CallFigures { connections: 10.0, outstanding, rate, ..CallFigures::default() };
    let weather = format!("127.0.0.1:{FIRST_PORT}");
    let trial = trial.calls(names::GENERATOR, 0, &weather, move |_| figures(10.0, 5.0));
    let trial = trial.calls("weather", 0, "10.0.0.9:443", move |_| figures(0.1, 5.0 * calls_per_request));
    crate::detect(&Throttling, &trial.build(), &Thresholds::default())
}

#[test]
fn sleeps_that_grow_with_the_load_show_refused_calls() {
    let findings = sleeping((0.4, 9.5), 2.0);
    let [finding] = &findings[..] else { panic!("{findings:?}") };
    assert_eq!(
        finding.title(),
        "10.0.0.9:443 limits the rate of calls: weather sleeps for 1.90 s of each request and calls again"
    );
    assert_eq!((finding.resource.as_str(), finding.confidence), ("10.0.0.9:443", Confidence::Medium));
    assert!(caveat(&finding.caveats[0]).starts_with("Sockets do not show what 10.0.0.9:443 responds"), "{finding:?}");
    assert_eq!(sleeping((0.9, 1.0), 2.0), [], "a pause of one length, of one worker");
    assert_eq!(sleeping((0.4, 9.5), 1.0), [], "a limit of its own");
}
