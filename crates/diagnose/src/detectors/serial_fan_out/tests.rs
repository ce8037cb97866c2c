//! Tests of `serial-fan-out`: evidence that must make it fire, and evidence that must not.

use narrows_model::finding::Evidence;
use narrows_testkit::spans::{Beat, SpanBuilder, client, document_query, query, run_of, server};
use narrows_testkit::trial::TrialBuilder;

use super::*;
use crate::words::InWords;

const TEXT: &str = "SELECT VALUE SUM(c.hours) FROM c WHERE c.owner = @owner";
const BEAT: Beat = Beat { first_ms: 10.0, step_ms: 10.0, length_ms: 9.0 };

fn evidence_of(finding: &Finding) -> &evidence::SerialFanOut {
    let Evidence::SerialFanOut(evidence) = &finding.evidence else { panic!("{finding:?}") };
    evidence
}

fn partition(i: usize) -> SpanBuilder {
    document_query(TEXT, &i.to_string())
}

fn unnamed() -> SpanBuilder {
    query("SELECT sum(hours) FROM trip")
}

fn detect(roots: impl IntoIterator<Item = SpanBuilder>) -> Vec<Finding> {
    detect_with(roots, &Thresholds::default())
}

fn detect_with(roots: impl IntoIterator<Item = SpanBuilder>, thresholds: &Thresholds) -> Vec<Finding> {
    let traces = roots.into_iter().zip(0..).map(|(root, number)| root.trace(number));
    crate::detect(&SerialFanOut, &TrialBuilder::new("a").traces(traces).build(), thresholds)
}

fn request(children: Vec<SpanBuilder>) -> SpanBuilder {
    server("drones", "GET /utilization").at(0.0, 120.0).children(children)
}

fn detect_in_each(children: Vec<SpanBuilder>) -> Vec<Finding> {
    detect((0..10).map(|_| request(children.clone())))
}

#[test]
fn partitions_asked_in_turn_are_named_with_the_saving() {
    let findings = detect_in_each(run_of(9, BEAT, partition));
    let [finding] = &findings[..] else { panic!("one finding, not {findings:?}") };
    assert_eq!(finding.title(), "GET /utilization queries 9 partitions one after another");
    assert_eq!((finding.resource.as_str(), finding.operation.as_deref()), ("drones", Some("GET /utilization")));
    assert!((finding.cost_share - 72.0 / 120.0).abs() < 1e-9, "{}", finding.cost_share);
    assert_eq!(finding.cost_of(), "of the latency of GET /utilization");
    assert_eq!(finding.confidence, Confidence::High);
    assert_eq!(finding.evidence_text().as_deref(), Some(TEXT));
    assert_eq!(evidence_of(finding).saving_ns, 72e6);
    assert_eq!(
        finding.reasons(),
        [
            "100 % of the traces of GET /utilization show it (10 traces): 9 similar calls under one parent, no two of \
             them at the same time.",
            "Together they take 81.0 ms, the longest of them 9.00 ms: in parallel they would save 72.0 ms.",
            "Each sends the same request to a different partition.",
            "Their number is the same in 100 % of these traces, as it is when it depends on the program and not on a \
             response.",
        ]
    );
    assert_eq!(finding.exemplars.len(), 3);
}

#[test]
fn it_fires_through_what_stands_between() {
    let mut after_a_plan = run_of(9, BEAT, partition);
    after_a_plan.push(document_query("SELECT * FROM c WHERE c.id = @id", "0").at(1.0, 2.0));
    let mut again = run_of(9, BEAT, partition);
    again[3] = again[3].clone().throttled(Some(1.0)).at(40.0, 1.0);
    again.push(partition(3).at(42.0, 7.0).resent(1));
    let own_url = |i: usize| client("GET").url(&format!("http://parts/part/{i}"));
    for (name, children, count) in [
        ("a query before it", after_a_plan, 9),
        ("a refusal", again, 9),
        ("three calls", run_of(3, Beat { step_ms: 30.0, length_ms: 29.0, ..BEAT }, partition), 3),
        (
            "shards",
            {
                let shard = |i: usize| unnamed().facts(|facts| facts.server_address = Some(format!("shard-{i}")));
                run_of(9, BEAT, shard)
            },
            9,
        ),
        ("unnamed destinations", run_of(9, BEAT, |_| unnamed()), 9),
        ("calls to another service", run_of(9, BEAT, own_url), 9),
    ] {
        let findings = detect_in_each(children);
        assert_eq!(findings.len(), 1, "with {name}");
        assert_eq!(evidence_of(&findings[0]).calls, count, "with {name}");
    }
}

#[test]
fn destinations_that_are_not_recorded_make_it_less_sure() {
    assert_eq!(detect_in_each(run_of(9, BEAT, |_| unnamed()))[0].confidence, Confidence::Medium);
    let varying = (0..10).map(|n| request(run_of(4 + n, BEAT, |_| unnamed())));
    assert_eq!(detect(varying), [], "as many as there are rows");
    let spread = (0..10).map(|n| request(run_of(if n < 5 { 8 } else { 9 }, BEAT, partition)));
    assert_eq!(detect(spread).len(), 1, "another partition came along");
}

#[test]
fn the_share_that_an_experiment_sets_is_the_one_that_is_reported() {
    let varying = (0..10).map(|n| request(run_of(4 + n, BEAT, |_| unnamed())));
    let findings = detect_with(varying, &Thresholds { same_count_share: 0.05, ..Thresholds::default() });
    assert_eq!(evidence_of(&findings[0]).same_count_share_min, 0.05);
}

#[test]
fn items_with_names_are_of_one_endpoint_as_its_service_says() {
    let named = |route: &'static str| {
        move |i: usize| {
            let callee = server("carriers", "GET").facts(|facts| facts.http_route = Some(route.into()));
            let (at, name) = (10.0 * i as f64, ["bike", "post", "truck", "drone", "ship"][i % 5]);
            let call = client("GET").url(&format!("http://carriers/carriers/{name}/quote")).at(at, 9.0);
            call.child(callee.at(at + 1.0, 7.0))
        }
    };
    let detect = |route| detect_in_each((1..5).map(named(route)).collect());
    for route in ["/carriers/:name/quote", "/carriers/{name}/quote", "/carriers/<name>/quote"] {
        let findings = detect(route);
        assert_eq!(findings.len(), 1, "{route}");
        assert_eq!((evidence_of(&findings[0]).calls, evidence_of(&findings[0]).target), (4, Target::Service));
        assert!(findings[0].title().ends_with("makes 4 similar calls one after another"), "{}", findings[0].title());
    }
    for route in ["/carriers/*", "/{controller}/{action}", "/carriers/{*rest}", "/carriers/{rest:path}", "/carriers"] {
        let findings = detect(route);
        assert_eq!(evidence_of(&findings[0]).destinations, Destinations::Addresses, "{route}: known beforehand");
    }
}

#[test]
fn reads_from_addresses_that_are_known_beforehand_may_run_at_once() {
    let request = |n: usize, of: &dyn Fn(usize) -> String| {
        let call = |i: usize, service: &str| {
            let url = format!("http://{service}/{service}/{}", of(i));
            client("GET")
                .url(&url)
                .facts(|facts| facts.http_method = Some("GET".into()))
                .at(10.0 + 20.0 * i as f64, 18.0)
        };
        let calls = ["prices", "stock", "ratings", "offers", "prices"].iter().enumerate().map(|(i, to)| call(i, to));
        let root = server("shop", "GET /products").at(0.0, 120.0).children(calls);
        root.facts(|facts| facts.url = Some(format!("/products/{n}")))
    };
    let findings = detect((0..10).map(|n| request(n, &|_| n.to_string())));
    let [finding] = &findings[..] else { panic!("one finding, not {findings:?}") };
    assert_eq!(finding.title(), "GET /products calls 3 addresses one after another");
    assert_eq!((evidence_of(finding).saving_ns, finding.confidence), (36e6, Confidence::Medium));
    assert_eq!(detect((0..10).map(|n| request(n, &|i| format!("{}", 100 * n + i)))), [], "values of responses");
}

#[test]
fn what_hangs_together_is_left_alone() {
    let row = |i: usize| partition(i).attribute("db.query.parameter.owner", i as u64);
    let with = |first: SpanBuilder, rest: Vec<SpanBuilder>| [vec![first.at(1.0, 2.0)], rest].concat();
    let together = Beat { step_ms: 0.5, length_ms: 90.0, ..BEAT };
    let url = |text: &'static str| move |i: usize| client("GET").url(&format!("http://parts/list?{text}={i}"));
    let tries = |i: usize| if i < 8 { partition(0).throttled(Some(1.0)) } else { partition(0) };
    let cases = [
        ("rows of an earlier result", with(query("SELECT id FROM trip"), run_of(9, BEAT, row))),
        (
            "rows without values",
            with(query("SELECT id FROM trip"), run_of(9, BEAT, |_| query("SELECT a FROM t WHERE id = ?"))),
        ),
        ("pages of one partition", run_of(9, BEAT, |_| partition(0))),
        ("pages of each partition", run_of(9, BEAT, |i| partition(i / 3))),
        ("pages of a statement", run_of(9, BEAT, |_| query("SELECT a FROM t ORDER BY a LIMIT 10 OFFSET ?"))),
        ("pages of a service", run_of(9, BEAT, url("page"))),
        ("a cursor", run_of(9, BEAT, url("continuation"))),
        ("polling of a service", run_of(9, BEAT, |_| client("GET").url("http://parts/state"))),
        ("tries", run_of(9, BEAT, tries)),
        ("a transaction", with(query("BEGIN"), run_of(9, BEAT, |_| unnamed()))),
        ("calls at once", run_of(9, together, partition)),
        ("two calls", run_of(2, Beat { step_ms: 50.0, length_ms: 49.0, ..BEAT }, partition)),
        ("different calls", (0..9).map(|i| query(&format!("SELECT a FROM t{i}")).at(10.0 * i as f64, 9.0)).collect()),
        ("writes", run_of(9, BEAT, |_| query("INSERT INTO t (a) VALUES (?)"))),
        ("short calls", run_of(9, Beat { length_ms: 2.0, ..BEAT }, partition)),
        (
            "a longer call beside them",
            with(client("GET"), run_of(9, BEAT, partition))
                .into_iter()
                .enumerate()
                .map(|(i, span)| if i == 0 { span.at(1.0, 118.0) } else { span })
                .collect(),
        ),
    ];
    for (name, children) in cases {
        assert_eq!(detect_in_each(children), [], "with {name}");
    }
}

#[test]
fn items_of_an_earlier_response_are_another_cause() {
    let each = |first: fn(usize) -> usize| {
        (0..10).map(move |n| {
            let item = |i: usize| client("GET").url(&format!("http://parts/part/{}", first(n) + i));
            let list = client("GET").url("http://parts/list").at(1.0, 2.0);
            request([vec![list], run_of(9, BEAT, item)].concat())
        })
    };
    assert_eq!(detect(each(|n| 100 * n)), [], "others in each request");
    assert_eq!(detect(each(|_| 100)).len(), 1, "the same in each");
}

#[test]
fn it_must_be_how_the_operation_works() {
    let mixed = |bad: usize, all: usize| {
        detect((0..all).map(|n| request(if n < bad { run_of(9, BEAT, partition) } else { vec![partition(0)] })))
    };
    for (bad, all, fires) in [(2, 2, false), (3, 3, true), (7, 10, false), (8, 10, true)] {
        assert_eq!(mixed(bad, all).len(), usize::from(fires), "{bad} of {all}");
    }
}
