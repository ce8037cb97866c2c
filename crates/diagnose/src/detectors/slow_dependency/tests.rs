//! Tests of `slow-dependency`: evidence that must make it fire, and evidence that must not.

use narrows_model::breakdown::OwnTime;
use narrows_model::call_graph::CallFigures;
use narrows_model::finding::Evidence;
use narrows_model::series::names;
use narrows_model::trace::{SpanKind, Trace};
use narrows_testkit::spans::{SpanBuilder, client, database, query, server};
use narrows_testkit::trial::{FIRST_PORT, Load, TrialBuilder};

use super::*;
use crate::thresholds::Thresholds;
use crate::words::InWords;

fn load(vus: u32, rate: f64, latency_ms: f64) -> Load {
    Load { vus, rate, latency_ms }
}

/// Ten seconds of one user and ten of eight, with about the same throughput.
fn steps() -> TrialBuilder {
    let trial = TrialBuilder::new("a").service("shop", Some(2.0)).cpu("shop", 0, |_| 0.2).host_cpu(|_| 0.2);
    trial.steady(10, load(1, 25.0, 40.0)).steady(10, load(8, 26.0, 307.0))
}

fn detect(trial: TrialBuilder) -> Vec<Finding> {
    crate::detect(&SlowDependency, &trial.build(), &Thresholds::default())
}

fn read(finding: &Finding) -> &evidence::SlowDependency {
    let Evidence::SlowDependency(evidence) = &finding.evidence else { panic!("{finding:?}") };
    evidence
}

fn call(at_ms: f64, length_ms: f64) -> SpanBuilder {
    client("GET").url("https://partner.example/stock").at(at_ms, length_ms)
}

/// Six requests in each of the two steps, with calls of these lengths and 10 ms of other time.
fn traces(lengths_ms: [f64; 2], call: impl Fn(f64, f64) -> SpanBuilder) -> Vec<Trace> {
    let request = |number: u32, length_ms: f64| {
        let at_ms = if number < 6 { 1_000.0 } else { 11_000.0 } + 100.0 * f64::from(number);
        let entry = server("shop", "GET /offers").at(at_ms, length_ms + 10.0);
        entry.child(call(at_ms + 5.0, length_ms)).trace(number)
    };
    (0..12).map(|number| request(number, lengths_ms[usize::from(number >= 6)])).collect()
}

#[test]
fn a_dependency_that_is_slow_at_any_load_is_named() {
    let findings = detect(steps().traces(traces([190.0, 200.0], call)));
    let [finding] = &findings[..] else { panic!("one finding, not {findings:?}") };
    assert_eq!(finding.title(), "partner.example takes 190 ms per call, 95 % of GET /offers");
    assert_eq!((finding.resource.as_str(), finding.operation.as_deref()), ("partner.example", Some("GET /offers")));
    assert_eq!((finding.confidence, finding.cost_share), (Confidence::High, 0.95));
    let evidence = read(finding);
    assert_eq!((evidence.growth, evidence.levels.len(), evidence.proof), (DependencyGrowth::Constant, 2, None));
    assert_eq!((evidence.callers.as_slice(), evidence.calls_per_request), (&["shop".to_owned()][..], 1.0));
    assert_eq!(finding.caveats, [Caveat::DependencySendsNoSpans { dependency: "partner.example".into() }]);
}

#[test]
fn a_dependency_without_capacity_is_read_under_the_heaviest_load() {
    let findings = detect(steps().traces(traces([30.0, 290.0], call)));
    let [finding] = &findings[..] else { panic!("one finding, not {findings:?}") };
    assert_eq!(finding.title(), "partner.example takes 290 ms at 8 users and 30.0 ms at 1 user, 97 % of GET /offers");
    assert_eq!(finding.confidence, Confidence::High);
    assert_eq!(read(finding).growth, DependencyGrowth::Grows);
    assert!(read(finding).proof.is_some());
    assert_eq!(finding.period.as_ref().map(|period| period.label.as_str()), Some("“8 users”"));
}

#[test]
fn short_waits_and_small_shares_are_silent() {
    assert_eq!(detect(steps().traces(traces([60.0, 70.0], call))), [], "quick at any load");
    assert_eq!(detect(steps().traces(traces([10.0, 45.0], call))), [], "it grows, and is still quick");
    let beside = |at_ms: f64, length_ms: f64| server_work(at_ms, length_ms).child(call(at_ms, 0.2 * length_ms));
    assert_eq!(detect(steps().traces(traces([600.0, 600.0], beside))), [], "a fifth of the time");
    assert_eq!(detect(steps().traces(traces([190.0, 200.0], call).into_iter().take(4))), [], "four requests");
    let pages = |at_ms: f64, length_ms: f64| {
        let page = length_ms / 4.0;
        let calls = (0..4).map(|number| call(at_ms + page * f64::from(number), page));
        server_work(at_ms, length_ms).children(calls)
    };
    assert_eq!(detect(steps().traces(traces([190.0, 200.0], pages))), [], "many quick calls");
}

/// Work of the service itself.
fn server_work(at_ms: f64, length_ms: f64) -> SpanBuilder {
    SpanBuilder::of_kind(SpanKind::Internal, "render").at(at_ms, length_ms)
}

#[test]
fn what_explains_its_time_is_not_a_dependency() {
    let with_span = |at_ms: f64, ms: f64| call(at_ms, ms).child(server("partner", "GET /stock").at(at_ms, ms));
    assert_eq!(detect(steps().traces(traces([190.0, 200.0], with_span))), [], "a service with spans");
    let sql = |at_ms: f64, ms: f64| query("SELECT a FROM t").at(at_ms, ms);
    assert_eq!(detect(steps().traces(traces([190.0, 200.0], sql))), [], "a query");
    let carried = |at_ms: f64, ms: f64| sql(at_ms, ms).child(call(at_ms, ms));
    assert_eq!(detect(steps().traces(traces([190.0, 200.0], carried))), [], "what carries a query");
    let pool = |at_ms: f64, ms: f64| client("pool.acquire").at(at_ms, ms);
    assert_eq!(detect(steps().traces(traces([190.0, 200.0], pool))), [], "a wait for a connection");
    let message = |at_ms: f64, ms: f64| call(at_ms, ms).facts(|facts| facts.messaging_system = Some("kafka".into()));
    assert_eq!(detect(steps().traces(traces([190.0, 200.0], message))), [], "a message");
}

#[test]
fn a_database_without_a_query_and_a_service_without_spans_count() {
    let store = |at_ms: f64, ms: f64| database("GET").at(at_ms, ms);
    assert_eq!(detect(steps().traces(traces([190.0, 200.0], store)))[0].resource, "postgresql");
    let silent = |at_ms: f64, ms: f64| call(at_ms, ms).to_port(FIRST_PORT + 1);
    let findings = detect(steps().service("engine", None).traces(traces([190.0, 200.0], silent)));
    assert_eq!(findings[0].resource, "engine");
    assert!(read(&findings[0]).is_in_experiment);
    assert!(findings[0].advice().ends_with("Let engine send spans, to see what it does."), "{}", findings[0].advice());
}

#[test]
fn a_call_outside_the_critical_path_is_silent() {
    let beside = |at_ms: f64, ms: f64| {
        let stream = call(at_ms, 5_000.0);
        server_work(at_ms, ms).child(stream)
    };
    assert_eq!(detect(steps().traces(traces([190.0, 200.0], beside))), []);
}

#[test]
fn growth_at_a_caller_that_is_short_of_cpu_is_silent() {
    let trial =
        TrialBuilder::new("a").service("shop", Some(1.0)).cpu("shop", 0, |second| if second < 10 { 0.3 } else { 0.99 });
    let trial = trial.steady(10, load(1, 25.0, 40.0)).steady(10, load(8, 26.0, 307.0));
    assert_eq!(detect(trial.traces(traces([30.0, 290.0], call))), []);
}

#[test]
fn how_calls_end_is_shown() {
    let ended = |at_ms: f64, ms: f64| {
        let is_heavy = ms > 195.0;
        call(at_ms, ms).facts(|facts| facts.http_status = Some(if is_heavy { 500 } else { 200 }))
    };
    let all = TrialBuilder::new("a").service("shop", None).traces(traces([190.0, 200.0], ended));
    let findings = detect(all);
    let evidence = read(&findings[0]);
    assert_eq!((evidence.failed_share, evidence.growth), (0.5, DependencyGrowth::Unknown));
    let statuses: Vec<(&str, f64)> = evidence.statuses.iter().map(|one| (one.status.as_str(), one.share)).collect();
    assert_eq!(statuses, [("200", 0.5), ("500", 0.5)]);
}

#[test]
fn spans_from_outside_of_a_process_leave_unknown_protocols_to_its_sockets() {
    const PARTNER: &str = "10.0.0.9:9042";
    let with = |scope: &'static str| {
        let request = |number: u32| {
            let at_ms = if number < 6 { 1_000.0 } else { 11_000.0 } + 100.0 * f64::from(number);
            server("shop", "GET /offers").scope(scope).at(at_ms, if number < 6 { 40.0 } else { 307.0 }).trace(number)
        };
        let (load, behind) = (format!("127.0.0.1:{FIRST_PORT}"), |second| if second < 10 { 0.9 } else { 7.5 });
        let calls = |outstanding: f64| CallFigures { connections: 8.0, outstanding, rate: 25.0, ..Default::default() };
        let trial = steps().traces((0..12).map(request));
        let trial = trial.calls(names::GENERATOR, 0, &load, move |second| calls(if second < 10 { 1.0 } else { 8.0 }));
        let running = [(names::THREAD_STATE, "running")];
        let trial = trial.labelled_series(names::THREAD_STATES, ("shop", 0), &running, |_| 0.2);
        trial.calls("shop", 0, PARTNER, move |second| calls(behind(second)))
    };
    let findings = detect(with("opentelemetry-ebpf-instrumentation"));
    assert_eq!(findings.iter().map(|finding| finding.resource.as_str()).collect::<Vec<_>>(), [PARTNER]);
    assert_eq!(detect(with("express")), [], "spans from inside show all calls");
    let trial = with("opentelemetry-ebpf-instrumentation").build();
    crate::Reading::with(&trial, &Thresholds::default(), |reading| {
        let own = &reading.spent().threads[1][0].own;
        let waits = own.iter().find(|part| part.what == OwnTime::Network(PARTNER.to_owned()));
        assert!(waits.is_some_and(|part| part.requests > 7.0), "{own:?}");
    });
}
