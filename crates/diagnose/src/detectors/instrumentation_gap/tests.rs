//! Tests of `instrumentation-gap`: evidence that must make it fire, and evidence that must not.

use narrows_model::call_graph::CallFigures;
use narrows_model::series::names;
use narrows_testkit::TRIAL_START_NS;
use narrows_testkit::operations::operation;
use narrows_testkit::spans::{SpanBuilder, client, query, server};
use narrows_testkit::trial::{FIRST_PORT, Load, TrialBuilder};

use super::*;
use crate::thresholds::Thresholds;
use crate::words::InWords;

fn orders(length_ms: f64) -> SpanBuilder {
    server("shop", "GET /orders").at(0.0, length_ms)
}

/// Ten seconds with 2 users, then ten with 20; thirty traces in each.
fn trial(light: &SpanBuilder, heavy: &SpanBuilder, cores: f64) -> TrialBuilder {
    let load = |vus| Load { vus, rate: 10.0, latency_ms: 40.0 };
    let at = |second: u32| TRIAL_START_NS + i64::from(second) * 1_000_000_000;
    let few = (0..30).map(|n| light.clone().trace_from(n, at(n / 4)));
    let many = (0..30).map(|n| heavy.clone().trace_from(100 + n, at(10 + n / 4)));
    let trial = TrialBuilder::new("a").steady(10, load(2)).steady(10, load(20)).service("shop", None);
    let trial = trial.operation(operation("shop", "GET /orders", 20, 10.0, 40.0));
    trial.cpu("shop", 0, move |_| cores).traces(few).traces(many)
}

fn steady(root: &SpanBuilder) -> TrialBuilder {
    trial(root, root, 0.02)
}

fn with_pool(trial: TrialBuilder) -> TrialBuilder {
    trial.series("db.client.connection.count", "shop", 0, |_| 3.0)
}

fn detect(trial: TrialBuilder) -> Vec<Finding> {
    crate::detect(&InstrumentationGap, &trial.build(), &Thresholds::default())
}

#[track_caller]
fn only(trial: TrialBuilder) -> Finding {
    let mut found = detect(trial);
    assert_eq!(found.len(), 1, "{found:#?}");
    found.remove(0)
}

fn sign(finding: &Finding) -> &GapSign {
    let Evidence::InstrumentationGap(evidence) = &finding.evidence else { panic!("{finding:?}") };
    &evidence.sign
}

#[test]
fn a_database_that_no_span_of_the_operation_shows() {
    let by_metric = only(with_pool(steady(&orders(40.0))));
    assert_eq!(by_metric.title(), "GET /orders of shop spends 100 % of its time where no span shows what it does");
    assert!(by_metric.reasons()[1].contains("reports db.client.connection.count"), "{:?}", by_metric.reasons());
    assert_eq!(*sign(&by_metric), GapSign::ClientMetric { name: "db.client.connection.count".into() });
    assert_eq!((by_metric.resource.as_str(), by_metric.period, by_metric.exemplars.len()), ("shop", None, 3));
    let other = server("shop", "GET /carts").at(0.0, 9.0).child(query("SELECT a FROM t"));
    let beside = steady(&orders(40.0)).traces((201..230).map(|n| other.clone().trace(n)));
    assert_eq!(*sign(&only(beside)), GapSign::OtherOperation { name: "GET /carts".into() });
    let beside_a_server = steady(&orders(40.0)).service("postgres", None);
    assert_eq!(*sign(&only(beside_a_server)), GapSign::Database { service: "postgres".into() });
}

#[test]
fn a_time_that_grows_with_the_load() {
    let found = only(trial(&orders(8.0), &orders(120.0), 0.02));
    let grown = "It grows with the load, as a wait in a queue does: 8.00 ms with 2 users, 120 ms with 20 users.";
    assert_eq!(found.reasons()[1], grown);
    assert!(found.period.as_ref().is_some_and(|period| period.label.contains("20 users")));
    assert!(found.advice().contains("a connection of a pool, a lock"), "{}", found.advice());
}

#[test]
fn a_time_that_grows_because_others_fill_the_machine_is_silent() {
    let beside = |share: f64| trial(&orders(8.0), &orders(120.0), 0.02).host_cpu(move |_| share);
    assert_eq!(detect(beside(0.3)).len(), 1);
    assert_eq!(detect(beside(1.0)), []);
}

fn calling(ms: f64) -> SpanBuilder {
    orders(ms + 4.0).child(client("GET").to_port(FIRST_PORT + 1).at(2.0, ms))
}

#[test]
fn a_service_of_the_trial_that_never_speaks() {
    let silent = |cores| steady(&calling(80.0)).service("stock", None).cpu("stock", 0, move |_| cores);
    let found = only(silent(0.05));
    assert_eq!(found.title(), "GET /orders spends 95 % of its time in stock, which sends no spans");
    assert_eq!(found.resource, "stock");
    assert!(is_missed_by(&found, "stock") && !is_missed_by(&found, "shop"));
    assert_eq!(detect(silent(0.7)), [], "70 ms of its processor in each call");
    assert_eq!(detect(steady(&calling(80.0))), [], "a service of somebody else");
}

#[test]
fn a_service_whose_spans_are_torn_from_their_callers() {
    let stock = |trial: TrialBuilder| trial.service("stock", None).cpu("stock", 0, |_| 0.05);
    let own = server("stock", "GET /stock").at(0.0, 78.0);
    let torn = stock(steady(&calling(80.0))).traces((300..330).map(|n| own.clone().trace(n)));
    let found = only(torn);
    assert_eq!(found.title(), "GET /orders spends 95 % of its time in stock, whose spans are in traces of their own");
    assert_eq!(*sign(&found), GapSign::SeparateTraces);
    assert!(found.advice().contains("traceparent"), "{}", found.advice());
    let call = client("GET").to_port(FIRST_PORT + 1).at(2.0, 80.0).child(own.at(3.0, 78.0));
    assert_eq!(detect(stock(steady(&orders(84.0).child(call)))), []);
}

#[test]
fn a_service_that_works_and_that_nobody_shows_a_call_to() {
    let beside = |cores| steady(&orders(40.0)).service("db", None).cpu("db", 0, move |_| cores);
    let found = only(beside(0.12));
    let busy = "db ran and used 12.0 ms of processor time for each of these requests, and no span shows a call to it.";
    assert_eq!((found.resource.as_str(), found.reasons()[1].as_str()), ("shop", busy));
    assert!(is_missed_by(&found, "db"));
    assert_eq!(detect(beside(0.001)), [], "an idle neighbour");
}

#[test]
fn a_pause_without_a_sign_is_in_order() {
    assert_eq!(detect(steady(&orders(40.0))), []);
    assert_eq!(detect(with_pool(steady(&orders(4.0)))), [], "too short to matter");
    let asking = orders(40.0).child(query("SELECT a FROM t").at(2.0, 3.0));
    assert_eq!(detect(with_pool(steady(&asking))), [], "its database is to be seen");
}

#[test]
fn calls_work_and_parts_explain_the_time() {
    let call = |ms: f64| orders(ms).child(client("GET").at(2.0, ms - 4.0));
    assert_eq!(detect(with_pool(trial(&call(10.0), &call(90.0), 0.02))), []);
    let part = orders(40.0).child(narrows_testkit::spans::internal("render").at(2.0, 30.0));
    assert_eq!(detect(with_pool(steady(&part))), []);
    assert_eq!(detect(with_pool(trial(&orders(40.0), &orders(40.0), 0.35))), [], "35 ms of work in each request");
    let waits = steady(&orders(40.0)).series(narrows_model::series::names::CPU_WAIT, "shop", 0, |_| 0.3);
    assert_eq!(detect(with_pool(waits)), [], "30 ms of waiting for a processor");
}

#[test]
fn a_few_requests_and_an_unsampled_processor_decide_nothing() {
    let few = TrialBuilder::new("a").steady(10, Load { vus: 2, rate: 10.0, latency_ms: 40.0 }).service("shop", None);
    let few = few.cpu("shop", 0, |_| 0.02).traces((0..10).map(|n| orders(40.0).trace(n)));
    assert_eq!(detect(with_pool(few)), []);
    let mut unsampled = with_pool(steady(&orders(40.0))).build();
    unsampled.series.retain(|series| series.key.name.starts_with("db."));
    assert_eq!(crate::detect(&InstrumentationGap, &unsampled, &Thresholds::default()), []);
}

#[test]
fn a_call_that_two_libraries_report_has_its_server_span_below_the_inner_one() {
    let callee = || server("stock", "GET /stock").at(4.0, 77.0);
    let inner = client("GET").scope("inner").url("http://stock/stock").to_port(FIRST_PORT + 1).at(2.5, 79.0);
    let outer = client("GET").scope("outer").url("http://stock/stock").to_port(FIRST_PORT + 1).at(2.0, 80.0);
    let stacked = steady(&orders(84.0).child(outer.child(inner.child(callee()))));
    // Occasional health checks.
    let checks = (300..310).map(|n| server("stock", "GET /healthz").at(0.0, 1.0).trace(n));
    assert_eq!(detect(stacked.service("stock", None).cpu("stock", 0, |_| 0.05).traces(checks)), []);
}

/// Requests of 40 ms without a span of a part, and sockets to a partner with which so many of 20 wait.
fn with_sockets(root: &SpanBuilder, waiting: f64) -> TrialBuilder {
    let calls = |outstanding| CallFigures { connections: 20.0, outstanding, rate: 500.0, ..CallFigures::default() };
    let load = Load { vus: 20, rate: 500.0, latency_ms: 40.0 };
    let traces = (0..40).map(|n| root.clone().trace_from(n, TRIAL_START_NS + i64::from(n) * 200_000_000));
    let trial = TrialBuilder::new("a").steady(10, load).service("shop", None).cpu("shop", 0, |_| 0.2).traces(traces);
    let trial = trial.operation(operation("shop", "GET /orders", 20, 10.0, 40.0));
    let running = [(names::THREAD_STATE, "running")];
    let trial = trial.labelled_series(names::THREAD_STATES, ("shop", 0), &running, |_| 0.2);
    let trial = trial.calls(names::GENERATOR, 0, &format!("127.0.0.1:{FIRST_PORT}"), move |_| calls(20.0));
    trial.calls("shop", 0, "10.0.0.9:443", move |_| calls(waiting))
}

#[test]
fn sockets_show_what_spans_do_not() {
    let gap = only(with_sockets(&orders(40.0), 17.0));
    let GapSign::Sockets { peer, unseen, waiting } = sign(&gap) else { panic!("{gap:?}") };
    assert_eq!((peer.as_str(), *waiting), ("10.0.0.9:443", 17.0));
    assert!((16.0..=17.0).contains(unseen), "{unseen}");
    assert!(gap.advice().contains("with which shop calls 10.0.0.9:443"), "{}", gap.advice());
    assert_eq!(detect(with_sockets(&orders(40.0), 3.0)), [], "the time is elsewhere");
    let seen = orders(40.0).child(client("GET").url("https://partner.example/stock").at(1.0, 38.0));
    assert_eq!(detect(with_sockets(&seen, 17.0)), [], "a span shows the calls");
}
