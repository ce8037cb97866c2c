//! Tests of `time-outside-spans`: evidence that must make it fire, and evidence that must not.

use narrows_model::call_graph::CallFigures;
use narrows_model::finding::Evidence;
use narrows_model::histogram::Histogram;
use narrows_model::operation::OperationEvidence;
use narrows_model::trace::Trace;
use narrows_testkit::TRIAL_START_NS;
use narrows_testkit::operations::operation;
use narrows_testkit::spans::server;
use narrows_testkit::trial::{FIRST_PORT, Load, TrialBuilder};

use super::*;
use crate::thresholds::Thresholds;
use crate::words::InWords;

const SECONDS: u32 = 20;

fn detect(trial: TrialBuilder) -> Vec<Finding> {
    crate::detect(&TimeOutsideSpans, &trial.build(), &Thresholds::default())
}

fn evidence_of(finding: &Finding) -> &evidence::TimeOutsideSpans {
    let Evidence::TimeOutsideSpans(evidence) = &finding.evidence else { panic!("{finding:?}") };
    evidence
}

/// (users, mean latency at the users, mean span length), times in milliseconds.
type Level = (u32, f64, f64);

fn rate((vus, client_ms, _): Level) -> f64 {
    f64::from(vus) * 1000.0 / client_ms
}

/// The spans of `GET /` of shop, `share` of them received.
fn spans(levels: &[Level], share: f64) -> OperationEvidence {
    let mut all = operation("shop", "GET /", 0, 0.0, 1.0);
    for (index, level) in levels.iter().enumerate() {
        let part = operation("shop", "GET /", SECONDS, rate(*level) * share, level.2);
        all.completed += part.completed;
        let later_ns = i64::from(SECONDS) * 1_000_000_000 * index as i64;
        all.seconds.extend(part.seconds.into_iter().map(|mut second| {
            second.start_ns += later_ns;
            second
        }));
    }
    all
}

fn traces(weight: f64) -> Vec<Trace> {
    let at = |number: u32| TRIAL_START_NS + i64::from(number) * 1_000_000_000;
    let trace = |number| {
        let mut trace = server("shop", "GET /").at(0.0, 5.0).trace_from(number, at(number));
        trace.spans[0].weight = weight;
        trace
    };
    (0..30).map(trace).collect()
}

fn without_spans(levels: &[Level]) -> TrialBuilder {
    let trial = TrialBuilder::new("a").service("shop", Some(2.0)).cpu("shop", 0, |_| 0.2).host_cpu(|_| 0.2);
    levels.iter().fold(trial, |trial, level| {
        trial.steady(SECONDS as usize, Load { vus: level.0, rate: rate(*level), latency_ms: level.1 })
    })
}

fn shop(levels: &[Level]) -> TrialBuilder {
    without_spans(levels).operation(spans(levels, 1.0)).traces(traces(1.0))
}

const QUEUE: [Level; 2] = [(1, 42.0, 40.0), (16, 320.0, 40.0)];

#[test]
fn a_queue_before_the_service_is_named_with_its_evidence() {
    let findings = detect(shop(&QUEUE));
    let [finding] = &findings[..] else { panic!("one finding, not {findings:?}") };
    assert_eq!(finding.title(), "280 ms of the 320 ms that users wait for GET / pass outside the spans of shop");
    assert_eq!((finding.resource.as_str(), finding.operation.as_deref()), ("shop", Some("GET /")));
    assert!((finding.cost_share - 0.875).abs() < 0.01, "{}", finding.cost_share);
    assert_eq!((finding.confidence, finding.exemplars.len()), (Confidence::High, 3));
    let evidence = evidence_of(finding);
    assert_eq!((evidence.pattern, evidence.heaviest.load.users), (GapPattern::Grows, 16));
    assert_eq!(evidence.lightest.map(|lightest| lightest.load.users), Some(1));
    assert!(finding.advice().contains("ss -lnt"), "{}", finding.advice());
}

#[test]
fn a_gap_that_the_services_cpu_explains_is_not_reported() {
    // 10 ms of 20 ms are outside the span, at 100 requests per second: each core is 10 ms of CPU per request.
    let level = [(2, 20.0, 10.0)];
    let with_cores = |cores: f64| {
        let trial = TrialBuilder::new("a").service("shop", Some(2.0)).cpu("shop", 0, move |_| cores).host_cpu(|_| 0.5);
        let trial = trial.steady(SECONDS as usize, Load { vus: 2, rate: rate(level[0]), latency_ms: 20.0 });
        detect(trial.operation(spans(&level, 1.0)).traces(traces(1.0))).len()
    };
    assert_eq!([with_cores(0.2), with_cores(0.9)], [1, 0]);
}

#[test]
fn the_pattern_follows_the_gaps() {
    let pattern = |levels: &[Level]| {
        let findings = detect(shop(levels));
        let evidence = evidence_of(&findings[0]);
        (evidence.pattern, findings[0].confidence)
    };
    assert_eq!(
        pattern(&[(1, 43.0, 2.5), (4, 43.2, 2.6), (8, 43.5, 2.6)]),
        (GapPattern::DelayedAcknowledgement, Confidence::High)
    );
    assert_eq!(pattern(&[(1, 30.0, 10.0), (4, 31.0, 10.0)]), (GapPattern::Constant, Confidence::High));
    assert_eq!(pattern(&[(1, 30.0, 10.0), (4, 41.0, 10.0)]), (GapPattern::Unknown, Confidence::Medium));
    assert_eq!(pattern(&[(4, 43.0, 2.5)]), (GapPattern::Unknown, Confidence::Medium), "one load");
}

#[test]
fn a_service_without_spans_in_front_is_named() {
    let findings = detect(shop(&QUEUE).service("edge", None));
    assert_eq!(
        (&*evidence_of(&findings[0]).in_front, findings[0].confidence),
        (&["edge".to_owned()][..], Confidence::Medium)
    );
    assert!(findings[0].advice().starts_with("Switch on tracing in edge"), "{}", findings[0].advice());
}

#[test]
fn time_that_the_spans_cover_is_silent() {
    assert_eq!(detect(shop(&[(1, 42.0, 40.0), (16, 320.0, 318.0)])), []);
    assert_eq!(detect(shop(&[(1, 0.9, 0.4), (4, 1.2, 0.4)])), [], "short");
    assert_eq!(detect(shop(&[(1, 100.0, 92.0), (4, 104.0, 94.0)])), [], "a small share");
}

#[test]
fn a_full_processor_delays_everything_and_is_silent() {
    let levels = |host: f64, shop: f64, steal: f64| {
        let trial = TrialBuilder::new("a").service("shop", Some(2.0));
        let trial = trial.cpu("shop", 0, move |_| shop).host_cpu(move |_| host);
        let trial = trial.series(names::HOST_CPU_STEAL, "", 0, move |_| steal);
        let trial = QUEUE.iter().fold(trial, |trial, level| {
            trial.steady(SECONDS as usize, Load { vus: level.0, rate: rate(*level), latency_ms: level.1 })
        });
        detect(trial.operation(spans(&QUEUE, 1.0)).traces(traces(1.0))).len()
    };
    assert_eq!(levels(0.3, 0.4, 0.0), 1);
    assert_eq!(levels(0.97, 0.4, 0.0), 0, "the machine");
    assert_eq!(levels(0.5, 1.9, 0.0), 0, "the service");
    assert_eq!(levels(0.5, 0.4, 0.2), 0, "the hypervisor");
    let thread = shop(&QUEUE).busiest_thread("shop", 0, |_| 0.99);
    assert_eq!(detect(thread), [], "its only thread");
}

#[test]
fn a_load_or_spans_that_do_not_tell_are_silent() {
    assert_eq!(detect(shop(&QUEUE).second_step("POST /", 300.0)), [], "two requests");
    assert_eq!(detect(without_spans(&QUEUE).traces(traces(1.0))), [], "uncounted spans");
    assert_eq!(detect(without_spans(&QUEUE).operation(spans(&QUEUE, 0.3)).traces(traces(1.0))), [], "lost spans");
    assert_eq!(detect(without_spans(&QUEUE).operation(spans(&QUEUE, 2.0)).traces(traces(1.0))), [], "called by others");
    let sampled = |weight| detect(without_spans(&QUEUE).operation(spans(&QUEUE, 1.0)).traces(traces(weight)));
    assert_eq!((sampled(4.0).len(), sampled(50.0).len()), (1, 0), "few spans for many requests");
    assert_eq!(detect(shop(&QUEUE).verdict(Verdict::Invalid, "The generator was busy.")), []);
}

#[test]
fn the_wait_for_a_free_user_is_not_outside() {
    let open = |latency_ms| {
        let load = Load { vus: 8, rate: 50.0, latency_ms };
        let trial = TrialBuilder::new("a").service("shop", Some(2.0)).cpu("shop", 0, |_| 0.2).host_cpu(|_| 0.2);
        let trial =
            trial.arrivals(SECONDS as usize, 50.0, load).operation(operation("shop", "GET /", SECONDS, 50.0, 10.0));
        let mut trial = trial.traces(traces(1.0)).build();
        for row in &mut trial.seconds {
            row.service = Histogram::new();
            row.service.record_n(11_000_000, row.succeeded);
        }
        crate::detect(&TimeOutsideSpans, &trial, &Thresholds::default())
    };
    assert_eq!(open(400.0), []);
}

/// How responses of a shop without spans come.
#[derive(Debug, Clone, Copy)]
struct Responses {
    /// Time from send to response, milliseconds.
    client_ms: f64,
    /// Time from send to acknowledgement, milliseconds.
    acknowledged_ms: f64,
    /// Connections opened per request.
    opened: f64,
}

const DELAYED: Responses = Responses { client_ms: 43.0, acknowledged_ms: 0.1, opened: 0.0 };

fn without_telemetry(responses: Responses) -> Vec<Finding> {
    let users = [1, 16];
    let rate = |vus: u32| f64::from(vus) * 15.0;
    let trial = TrialBuilder::new("a").service("shop", None).cpu("shop", 0, |_| 0.05).host_cpu(|_| 0.1);
    let load = |vus| Load { vus, rate: rate(vus), latency_ms: responses.client_ms };
    let trial = users.iter().fold(trial, |trial, vus| trial.steady(SECONDS as usize, load(*vus)));
    let rate_at = move |second: u32| rate(users[(second / SECONDS) as usize]);
    let shop = format!("127.0.0.1:{FIRST_PORT}");
    let trial = trial.calls(names::GENERATOR, 0, &shop, move |second| {
        let opened = responses.opened * rate_at(second);
        let busy = rate_at(second) * responses.acknowledged_ms / 1e3;
        CallFigures { rate: rate_at(second), connections: 16.0, opened, busy, ..CallFigures::default() }
    });
    detect(trial)
}

#[test]
fn sockets_show_delayed_acknowledgements_without_spans() {
    let findings = without_telemetry(DELAYED);
    let [finding] = &findings[..] else { panic!("{findings:?}") };
    assert_eq!(finding.title(), "shop: responses wait 40 ms for an acknowledgement (Nagle's algorithm)");
    assert_eq!((finding.resource.as_str(), finding.confidence), ("shop", Confidence::High));
    assert!(finding.advice().contains("TCP_NODELAY"), "{}", finding.advice());
    let silent = |responses| assert_eq!(without_telemetry(responses), [], "{responses:?}");
    silent(Responses { acknowledged_ms: 40.0, ..DELAYED });
    silent(Responses { client_ms: 30.0, ..DELAYED });
    silent(Responses { client_ms: 80.0, ..DELAYED });
    silent(Responses { opened: 1.0, ..DELAYED });
}
