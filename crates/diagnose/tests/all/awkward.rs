//! Trials that no sound system leaves behind, through everything that is concluded from a run: whatever comes, there is
//! an outcome with a sentence, never a panic.
//!
//! Traces have spans that are their own parents, share their ids, end before they begin or thousands of years later; services
//! share their names and ports; windows are empty, series hold what is no number.

use std::collections::BTreeMap;

use narrows_diagnose::conclude;
use narrows_diagnose::thresholds::Thresholds;
use narrows_model::caveat::TrialCaveat;
use narrows_model::comparison::Outcome;
use narrows_model::evidence::TrialEvidence;
use narrows_model::finding::{Caveat, Evidence, Finding, Role, narrow_place};
use narrows_model::series::{Point, Series, SeriesKey, names};
use narrows_model::trace::{Span, SpanFacts, SpanKind, SpanStatus, Trace};
use narrows_testkit::TRIAL_START_NS;
use narrows_testkit::operations::{operation, store_calls};
use narrows_testkit::spans::{client, query, server};
use narrows_testkit::trial::{FIRST_PORT, Load, TrialBuilder, run_of_trials};
use proptest::prelude::*;

/// Thousands of years off, on either side.
const FAR_NS: i64 = i64::MAX / 8;
const SERVICES: [&str; 4] = ["shop", "store", "shop", ""];

fn instant() -> impl Strategy<Value = i64> {
    prop_oneof![
        12 => (0_i64..20_000).prop_map(|ms| TRIAL_START_NS + ms * 1_000_000),
        1 => prop::sample::select(vec![i64::MIN, -FAR_NS, -1, 0, 1, FAR_NS, i64::MAX]),
    ]
}

fn facts() -> impl Strategy<Value = SpanFacts> {
    let text = |texts: &'static [&'static str]| prop::option::of(prop::sample::select(texts).prop_map(str::to_owned));
    let status = prop::option::of(prop::sample::select(vec![200_u16, 429, 503, 0]));
    let port = prop::option::of(FIRST_PORT..FIRST_PORT + 5);
    let query = text(&["SELECT a FROM t WHERE b = ?", "", "SELECT", "INSERT INTO t VALUES (?)", "BEGIN"]);
    let system = text(&["postgresql", "azure.cosmosdb", ""]);
    let amount = prop::option::of(prop::sample::select(vec![0.0, 3.5, f64::NAN, f64::INFINITY, -1.0]));
    let partition = text(&["0", "1", ""]);
    let wait = prop::option::of(prop::sample::select(vec![0_u64, 50_000_000, u64::MAX]));
    let method = text(&["GET", ""]);
    (status, port, query, system, amount, partition, wait, method).prop_map(
        |(http_status, server_port, db_query, db_system, db_charge, db_partition, retry_after_ns, http_method)| {
            SpanFacts {
                http_status,
                server_port,
                db_query,
                db_system,
                db_charge,
                db_partition,
                retry_after_ns,
                http_route: http_method.clone().map(|_| "/orders".into()),
                http_method,
                ..SpanFacts::default()
            }
        },
    )
}

fn span() -> impl Strategy<Value = Span> {
    const KINDS: [SpanKind; 5] =
        [SpanKind::Internal, SpanKind::Server, SpanKind::Client, SpanKind::Producer, SpanKind::Consumer];
    const NAMES: [&str; 5] = ["GET /orders", "connect", "SELECT", "", "pool.acquire"];
    let ids = (1_u8..12, prop::option::of(1_u8..14));
    let what = (prop::sample::select(&KINDS[..]), prop::sample::select(&NAMES[..]), 0_usize..4, any::<bool>());
    (ids, what, instant(), instant(), facts()).prop_map(|((id, parent), (kind, name, service, failed), a, b, facts)| {
        Span {
            trace_id: [1; 16],
            span_id: [id; 8],
            parent_id: parent.map(|parent| [parent; 8]),
            service: SERVICES[service].into(),
            scope: "test".into(),
            name: name.into(),
            kind,
            start_ns: a,
            end_ns: b,
            status: if failed { SpanStatus::Error } else { SpanStatus::Unset },
            status_message: String::new(),
            facts,
            attributes: serde_json::Map::new(),
            weight: 1.0,
        }
    })
}

fn trace() -> impl Strategy<Value = Trace> {
    let weight = prop::sample::select(vec![1.0, 40.0, 0.0, f64::NAN]);
    (any::<u8>(), prop::collection::vec(span(), 1..24), weight).prop_map(|(id, mut spans, weight)| {
        spans.sort_by_key(|span| span.start_ns);
        Trace { id: [id; 16], spans, weight }
    })
}

fn series() -> impl Strategy<Value = Series> {
    const KNOWN: [&str; 7] = [
        names::CPU_CORES,
        names::BUSIEST_THREAD_CORES,
        names::HOST_CPU_UTILIZATION,
        names::THROUGHPUT_CONSUMED,
        names::THROUGHPUT_PROVISIONED,
        names::CGROUP_CPU_LIMIT,
        "db.client.connection.count",
    ];
    let value = prop_oneof![4 => 0.0_f64..2.0, 1 => prop::sample::select(vec![f64::NAN, f64::INFINITY, -1.0, 0.0])];
    let points = prop::collection::vec((instant(), value), 0..40);
    (prop::sample::select(&KNOWN[..]), 0_usize..4, points).prop_map(|(name, service, points)| Series {
        key: SeriesKey {
            name: name.into(),
            service: SERVICES[service].into(),
            labels: BTreeMap::from([(names::PARTITION.to_owned(), "0".to_owned())]),
            ..SeriesKey::default()
        },
        points: points.into_iter().map(|(time_ns, value)| Point { time_ns, value }).collect(),
    })
}

/// Seconds of each window, its users and its rate.
type Windows = Vec<(usize, u32, f64)>;

fn trial(windows: Windows, services: usize, traces: Vec<Trace>, series: Vec<Series>) -> TrialEvidence {
    let built = SERVICES[..services].iter().fold(TrialBuilder::new("a"), |trial, name| trial.service(name, Some(0.5)));
    let built = windows.into_iter().fold(built, |trial, (seconds, vus, rate)| {
        trial.steady(seconds, Load { vus, rate, latency_ms: if vus % 2 == 0 { 0.0 } else { 40.0 } })
    });
    let mut counted = operation("shop", "GET /orders", 5, 0.0, 0.0);
    counted.calls = vec![store_calls("query", [(0.0, 0.0, 0.0), (9.0, 3.0, 1.0)])];
    let mut trial = built.operation(counted).traces(traces).build();
    trial.series.extend(series);
    // A built machine has cores, a broken reading may not.
    trial.cores = u32::from(services > 0);
    for (at, instance) in trial.services.iter_mut().enumerate() {
        instance.port = FIRST_PORT + (at as u16 / 2);
    }
    trial
}

fn concluded(trials: Vec<TrialEvidence>) -> Outcome {
    let none = vec![Vec::new(); trials.len()];
    conclude(run_of_trials(trials), none, Default::default(), &Thresholds::default())
}

/// Properties of every outcome, whatever it was concluded from.
fn assert_sound(outcome: &Outcome) {
    assert!(!outcome.sentence.is_empty());
    assert_eq!(outcome.findings.len(), outcome.evidence.trials.len());
    for findings in &outcome.findings {
        let narrow = findings.iter().filter(|finding| finding.role == Role::NarrowPlace).count();
        assert!(narrow <= 1);
        assert!(narrow_place(findings).is_none_or(|finding| !finding.role.is_about_experiment()));
        findings.iter().flat_map(|finding| [finding].into_iter().chain(&finding.effects)).for_each(assert_is_read_back);
        assert!(findings.iter().flat_map(|finding| &finding.effects).all(|effect: &Finding| effect.effects.is_empty()));
    }
}

/// A number that is not finite is written as nothing, which is no number when it is read.
fn assert_is_read_back(finding: &Finding) {
    let written = serde_json::to_string(&(&finding.evidence, &finding.caveats)).unwrap_or_default();
    let read = serde_json::from_str::<(Evidence, Vec<Caveat>)>(&written);
    assert!(read.is_ok_and(|(evidence, _)| evidence.kind() == finding.kind()), "{written}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn whatever_comes_there_is_an_outcome(
        windows in prop::collection::vec((0_usize..12, 0_u32..9, 0.0_f64..60.0), 0..4),
        services in 0_usize..=4,
        traces in prop::collection::vec(trace(), 0..30),
        series in prop::collection::vec(series(), 0..6),
    ) {
        let first = trial(windows.clone(), services, traces.clone(), series.clone());
        let again = trial(windows, services, traces.into_iter().rev().collect(), series);
        assert_sound(&concluded(vec![first, again]));
    }
}

fn steady(traces: Vec<Trace>) -> TrialEvidence {
    let load = Load { vus: 4, rate: 10.0, latency_ms: 20.0 };
    TrialBuilder::new("a").steady(10, load).service("shop", None).cpu("shop", 0, |_| 0.1).traces(traces).build()
}

#[test]
fn a_run_without_spans_has_a_caveat() {
    let outcome = concluded(vec![steady(Vec::new())]);
    let caveats = &outcome.evidence.trials[0].trial.caveats;
    assert!(caveats.contains(&TrialCaveat::NoSpans), "{caveats:?}");
    assert!(outcome.sentence.ends_with("within the limits of the caveats."), "{}", outcome.sentence);
}

#[test]
fn traces_without_roots_have_a_caveat() {
    let torn = |number| {
        let mut trace =
            server("shop", "GET /").at(0.0, 20.0).child(query("SELECT a FROM t").at(1.0, 9.0)).trace(number);
        trace.spans.remove(0);
        trace
    };
    let outcome = concluded(vec![steady((0..30).map(torn).collect())]);
    let caveats = &outcome.evidence.trials[0].trial.caveats;
    assert!(caveats.iter().any(|caveat| matches!(caveat, TrialCaveat::TracesWithoutRequest(_))), "{caveats:?}");
}

#[test]
fn two_services_of_one_name_are_read_as_replicas() {
    let two = TrialBuilder::new("a")
        .steady(10, Load { vus: 4, rate: 10.0, latency_ms: 20.0 })
        .service("shop", Some(0.5))
        .service("shop", Some(0.5))
        .cpu("shop", 0, |_| 0.49)
        .cpu("shop", 1, |_| 0.1)
        .traces((0..30).map(|number| server("shop", "GET /").at(0.0, 20.0).trace(number)));
    let outcome = concluded(vec![two.build()]);
    assert_eq!(outcome.findings[0][0].kind().id(), "cpu-saturation");
    assert_sound(&outcome);
}

#[test]
fn one_trace_of_very_many_calls_is_read() {
    const CALLS: u32 = 6_000;
    let failing = |n: u32| query("SELECT a FROM t").at(f64::from(n) * 0.01, 0.005).failed();
    let polite = |n: u32| client("GET").to_port(FIRST_PORT + 1).at(f64::from(n) * 0.01, 0.005);
    let root = || server("shop", "GET /").at(0.0, 500.0);
    let again = root().children((0..CALLS).map(failing)).trace(1);
    let asked = (0..CALLS).map(|n| server("shop", "GET /part").at(f64::from(n) * 0.01, 0.009).child(polite(0)));
    let spread = root().children(asked).trace(2);
    let kinds = (0..CALLS).map(|n| {
        let name = char::from(b'a' + (n / 6 % 26) as u8).to_string().repeat((n / 156) as usize);
        client("GET").url(&format!("http://stock/{name}?id={n}")).at(f64::from(n) * 0.01, 0.005)
    });
    let varied = root().children(kinds).trace(3);
    let two = TrialBuilder::new("a")
        .steady(10, Load { vus: 4, rate: 10.0, latency_ms: 20.0 })
        .service("shop", None)
        .service("stock", None)
        .service("stock", None)
        .traces([again, spread, varied]);
    let outcome = concluded(vec![two.build()]);
    assert_sound(&outcome);
    let of_parts = outcome.breakdowns[0].iter().find(|breakdown| breakdown.operation == "GET /");
    assert!(of_parts.is_some_and(|breakdown| breakdown.requests == 3.0));
}
