//! Four variants of one operation against a partitioned store, as short runs show them: which cause is named first in
//! each, what is no longer named once it is fixed, and how the sentence reports it.
//!
//! The figures are those of a step load from 1 to 40 users in eleven steps of two seconds. In each variant another
//! thing is narrow: the store's throughput, calls in turn, a query that goes to all partitions, one thread.

use narrows_diagnose::thresholds::Thresholds;
use narrows_diagnose::words::InWords;
use narrows_diagnose::{conclude, diagnose};
use narrows_model::comparison::Outcome;
use narrows_model::evidence::TrialEvidence;
use narrows_model::finding::{Confidence, Finding};
use narrows_model::published::{Measure, Notes, Published, PublishedFigure};
use narrows_model::trace::Trace;
use narrows_testkit::operations::{operation, store_calls};
use narrows_testkit::spans::{Beat, SpanBuilder, client, document_query, run_of, server};
use narrows_testkit::trial::{FIRST_PORT, Load, TrialBuilder, run_of_trials};

const TEXT: &str = "SELECT VALUE SUM(c.hours) FROM c WHERE c.owner = @owner AND c.year = @year AND c.month = @month";
const OPERATION: &str = "GET /api/dronedeliveries/utilization";
const STEPS: u32 = 11;
const SECONDS: u32 = 2 * STEPS;
const PARTITIONS: usize = 9;
const STORE_PORT: u16 = FIRST_PORT + 1;

fn users(step: u32) -> u32 {
    (1 + 4 * step).min(40)
}

fn attempt(partition: usize, home: usize) -> SpanBuilder {
    let (rows, charge) = if partition == home { (1, 3.2) } else { (0, 3.225) };
    document_query(TEXT, &partition.to_string()).to_port(STORE_PORT).rows(rows).charge(charge)
}

/// One after another; with a wait, the fifth is refused once.
fn in_turn(home: usize, wait_ms: Option<f64>) -> Vec<SpanBuilder> {
    let mut children = Vec::new();
    let mut now_ms = 20.0;
    for partition in 0..PARTITIONS {
        if let Some(wait_ms) = wait_ms.filter(|_| partition == 4) {
            let refused = document_query(TEXT, "4").to_port(STORE_PORT).throttled(Some(wait_ms));
            children.push(refused.at(now_ms, 3.0));
            now_ms += 3.0 + wait_ms + 1.0;
        }
        children.push(attempt(partition, home).at(now_ms, 47.0));
        now_ms += 48.0;
    }
    children
}

fn at_once(home: usize) -> Vec<SpanBuilder> {
    run_of(PARTITIONS, Beat { first_ms: 20.0, step_ms: 0.3, length_ms: 150.0 }, |partition| attempt(partition, home))
}

/// The gateway calls three services at the same time; only one of them takes long.
fn request(number: u32, length_ms: f64, children: Vec<SpanBuilder>) -> Trace {
    let drones = server("dronescheduler", OPERATION).at(5.0, length_ms - 10.0).children(children);
    let beside = |port: u16| client("GET").url("http://127.0.0.1/count").to_port(port).at(2.0, 15.0);
    server("gateway", "GET /api/invoices")
        .at(0.0, length_ms)
        .child(client("GET").url("http://127.0.0.1/drones").to_port(FIRST_PORT).at(2.0, length_ms - 4.0).child(drones))
        .child(beside(FIRST_PORT + 3))
        .child(beside(FIRST_PORT + 4))
        .trace(number)
}

struct Variant {
    name: &'static str,
    rates: fn(u32) -> f64,
    latency_ms: f64,
    provisioned: f64,
    /// Successful and refused attempts and request units for each operation, the refused from the seventh step on.
    calls: (f64, f64, f64),
    thread: fn(u32) -> f64,
    trace: fn(u32) -> Trace,
}

const VARIANTS: [Variant; 4] = [
    Variant {
        name: "test-1",
        rates: |step| (2.0 * f64::from(users(step))).min(20.0),
        latency_ms: 669.0,
        provisioned: 100.0,
        calls: (9.0, 0.8, 29.0),
        thread: |step| 0.05 + 0.03 * f64::from(step),
        trace: |n| {
            let wait = (n % 3 == 0).then_some(f64::from(200 + 40 * (n % 7)));
            request(n, 560.0 + wait.unwrap_or(0.0), in_turn(n as usize % PARTITIONS, wait))
        },
    },
    Variant {
        name: "test-2",
        rates: |step| (2.0 * f64::from(users(step))).min(30.0),
        latency_ms: 569.0,
        provisioned: 277.0,
        calls: (9.0, 0.0, 29.0),
        thread: |step| 0.05 + 0.04 * f64::from(step),
        trace: |n| request(n, 570.0, in_turn(n as usize % PARTITIONS, None)),
    },
    Variant {
        name: "test-3",
        rates: |step| 2.0 * f64::from(users(step)),
        latency_ms: 225.0,
        provisioned: 277.0,
        calls: (9.0, 0.0, 29.0),
        thread: |step| 0.09 + 0.075 * f64::from(step),
        trace: |n| request(n, 225.0, at_once(n as usize % PARTITIONS)),
    },
    Variant {
        name: "test-4",
        rates: |step| (3.0 * f64::from(users(step))).min(96.0),
        latency_ms: 150.0,
        provisioned: 277.0,
        calls: (1.0, 0.0, 3.4),
        thread: |step| [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.95, 0.98, 0.99][step as usize],
        trace: |n| {
            let home = n as usize % PARTITIONS;
            request(n, 150.0, vec![attempt(home, home).at(20.0, 45.0)])
        },
    },
];

fn trial(variant: &'static Variant) -> TrialEvidence {
    let rate = |second: u32| (variant.rates)(second / 2);
    let (succeeded, refused, charge) = variant.calls;
    let of_second = |second: u32| {
        let refused = if second >= 14 { refused * rate(second) } else { 0.0 };
        (succeeded * rate(second), refused, charge * rate(second))
    };
    let mean = (0..SECONDS).map(rate).sum::<f64>() / f64::from(SECONDS);
    let mut counted = operation("dronescheduler", OPERATION, SECONDS, mean, variant.latency_ms);
    counted.calls = vec![store_calls("query utilization", (0..SECONDS).map(of_second))];
    let mut trial = TrialBuilder::new(variant.name)
        .service("dronescheduler", None)
        .service("store", None)
        .service("gateway", None)
        .warmup(2, Load { vus: 1, rate: 2.0, latency_ms: 600.0 });
    for step in 0..STEPS {
        trial = trial.steady(2, Load { vus: users(step), rate: (variant.rates)(step), latency_ms: variant.latency_ms });
    }
    for partition in 0..PARTITIONS {
        let spent = move |second: u32| {
            let step = second.saturating_sub(2) / 2;
            let burst = if second.is_multiple_of(4) { 1.3 } else { 0.9 };
            ((variant.rates)(step) * charge / PARTITIONS as f64 * burst).min(variant.provisioned)
        };
        trial = trial.throughput("store", &partition.to_string(), variant.provisioned, spent);
    }
    let thread = |second: u32| (variant.thread)(second.saturating_sub(2) / 2);
    trial
        .busiest_thread("dronescheduler", 0, thread)
        .cpu("dronescheduler", 0, move |second| thread(second) + 0.03)
        .cpu("store", 0, |_| 0.3)
        .cpu("gateway", 0, |_| 0.2)
        .operation(counted)
        .traces((0..60).map(|n| (variant.trace)(n * 40)))
        .build()
}

fn found(at: usize) -> Vec<Finding> {
    diagnose(&trial(&VARIANTS[at]), &Thresholds::default())
}

fn outcome() -> Outcome {
    let trials: Vec<TrialEvidence> = VARIANTS.iter().map(trial).collect();
    let none = vec![Vec::new(); trials.len()];
    let figure = PublishedFigure {
        measure: Measure::CallsPerOperation,
        metric: None,
        part: None,
        values: vec![("test-1".into(), 11.0)],
        fitted: vec![("test-1".into(), "store_delay_ms".into())],
        given: Vec::new(),
        restates: None,
        remark: String::new(),
    };
    let published = Published {
        ratio_to: Vec::new(),
        source: "An article".into(),
        service: Some("dronescheduler".into()),
        operation: Some(OPERATION.into()),
        found: String::new(),
        figures: vec![figure],
        conclusions: Vec::new(),
    };
    conclude(
        run_of_trials(trials),
        none,
        Notes { published: Some(published), ..Notes::default() },
        &Thresholds::default(),
    )
}

#[test]
fn each_variant_is_narrow_in_its_own_place() {
    let names = |at: usize| found(at).into_iter().map(|finding| finding.kind().id()).collect::<Vec<_>>();
    assert_eq!(names(0), ["throttling", "serial-fan-out", "cross-partition-query"]);
    assert_eq!(names(1), ["serial-fan-out", "cross-partition-query"]);
    assert_eq!(names(2), ["cross-partition-query"]);
    assert_eq!(names(3), ["cpu-saturation"]);
}

#[test]
fn the_findings_carry_the_figures_of_their_cause() {
    let first = |at: usize| found(at).remove(0);
    let throttling = first(0);
    assert_eq!((throttling.resource.as_str(), throttling.confidence), ("store", Confidence::High));
    assert!(throttling.reasons()[2].contains("up to 83.8 of its 100 units"), "{:?}", throttling.reasons());
    let fan_out = first(1);
    assert!((fan_out.cost_share - 8.0 * 47.0 / 560.0).abs() < 0.01, "{}", fan_out.cost_share);
    let query = first(2);
    assert!((query.cost_share - 25.8 / 29.0).abs() < 0.01, "{}", query.cost_share);
    assert_eq!(query.evidence_text().as_deref(), Some(TEXT));
    assert_eq!(first(3).resource, "dronescheduler");
}

#[test]
fn what_comes_later_says_what_it_waits_for() {
    let findings = found(0);
    for (at, words) in [(1, "While the store rejects calls"), (2, "It lowers the load on a store")] {
        let reasons = findings[at].wording(&findings).reasons;
        let last = reasons.last().map(String::as_str).unwrap_or_default();
        assert!(last.starts_with(words), "{last}");
    }
}

#[test]
fn the_sentence_tells_the_four_steps() {
    let expected = [
        "In test-1, store rejects 3.6 % of the calls of GET /api/dronedeliveries/utilization, which then wait and retry \
         (28 % of the time of the slower half of these requests)",
        "test-2 raised throughput by 40 % (17.3/s to 24.2/s), and there \
         GET /api/dronedeliveries/utilization queries 9 partitions one after another",
        "test-3 raised throughput by 142 % (17.3/s to 41.8/s) and lowered mean latency by 66 % (669 ms to 225 ms) against \
         test-1, and there GET /api/dronedeliveries/utilization queries 9 partitions, and 8 of them have no rows",
        "test-4 raised throughput 3.41 times (17.3/s to 58.9/s) and lowered mean latency by 78 % (669 ms to 150 ms) against \
         test-1, and there dronescheduler is limited by one thread, which uses 98 % of a core.",
    ];
    let outcome = outcome();
    assert_eq!(outcome.sentence.split("; ").collect::<Vec<_>>(), expected);
}

#[test]
fn published_figures_stand_beside_the_measured_ones() {
    let beside = outcome().beside;
    let measured: Vec<f64> = beside[0].cells.iter().filter_map(|cell| cell.measured).map(f64::round).collect();
    assert_eq!(measured, [9.0, 9.0, 9.0, 1.0]);
    assert_eq!(beside[0].cells[0].published, Some(11.0));
}

#[test]
fn nothing_is_said_to_be_missing() {
    for trial in outcome().evidence.trials {
        assert_eq!(trial.trial.caveats, [], "{}", trial.trial.variant);
    }
}
