//! Tests of `straggler-branch`: evidence that must make it fire, and evidence that must not.

use narrows_model::call_graph::CallFigures;
use narrows_model::finding::Evidence;
use narrows_model::series::names;
use narrows_testkit::spans::{SpanBuilder, client, document_query, internal, query, server};
use narrows_testkit::trial::{FIRST_PORT, Load, TrialBuilder};

use super::*;
use crate::words::InWords;

fn call(host: &str, start_ms: f64, length_ms: f64) -> SpanBuilder {
    client("GET").url(&format!("http://{host}/part")).at(start_ms, length_ms)
}

fn request(children: impl IntoIterator<Item = SpanBuilder>) -> SpanBuilder {
    server("shop", "GET /page").at(0.0, 100.0).children(children)
}

fn detect(roots: impl IntoIterator<Item = SpanBuilder>) -> Vec<Finding> {
    let traces = roots.into_iter().zip(0..).map(|(root, number)| root.trace(number));
    crate::detect(&StragglerBranch, &TrialBuilder::new("a").traces(traces).build(), &Thresholds::default())
}

fn detect_in_each(children: &[SpanBuilder]) -> Vec<Finding> {
    detect((0..10).map(|_| request(children.iter().cloned())))
}

#[test]
fn the_branch_that_is_waited_for_alone_is_named_with_its_lead() {
    let findings = detect_in_each(&[call("stock", 5.0, 30.0), call("price", 5.0, 20.0), call("reviews", 5.0, 85.0)]);
    let [finding] = &findings[..] else { panic!("one finding, not {findings:?}") };
    assert_eq!(finding.title(), "GET /page waits for the call to reviews after its parallel work is done");
    assert_eq!((finding.resource.as_str(), finding.operation.as_deref()), ("shop", Some("GET /page")));
    assert!((finding.cost_share - 0.55).abs() < 1e-9, "{}", finding.cost_share);
    let Evidence::StragglerBranch(evidence) = &finding.evidence else { panic!("{finding:?}") };
    assert_eq!((evidence.last_share, evidence.branches), (1.0, 3));
    assert_eq!((evidence.length_ns, evidence.drag_ns), (85e6, 55e6));
    assert_eq!(
        finding.reasons(),
        [
            "The call to reviews is the last of 3 parallel branches in 100 % of the requests of GET /page (10 \
             requests).",
            "It takes 85.0 ms and ends 55.0 ms after the branch that ends next, which is the time that the request \
             would save if it took no time.",
        ]
    );
    assert_eq!(finding.evidence_text().as_deref(), Some("reviews GET /part"));
    assert_eq!((finding.exemplars.len(), finding.exemplars[0].span_ids.len()), (3, 3));
}

#[test]
fn branches_of_every_kind_are_distinguished() {
    let wrapped = |name: &str, length_ms| internal(name).at(5.0, length_ms).child(call("any", 6.0, length_ms - 2.0));
    let partition = |partition: &str, length_ms| document_query("SELECT a FROM t", partition).at(5.0, length_ms);
    let deeper = |children: [SpanBuilder; 2]| vec![internal("gather").at(4.0, 90.0).children(children)];
    let cases = [
        ("wrappers", vec![wrapped("stock", 30.0), wrapped("reviews", 85.0)], "“reviews”"),
        ("a query", vec![call("stock", 5.0, 30.0), query("SELECT b FROM t").at(6.0, 80.0)], "the call to postgresql"),
        (
            "partitions",
            vec![partition("0", 30.0), partition("1", 80.0), partition("2", 31.0)],
            "the call to azure.cosmosdb, partition 1",
        ),
        ("a span between", deeper([call("stock", 5.0, 30.0), call("reviews", 5.0, 85.0)]), "the call to reviews"),
        (
            "work before",
            vec![query("SELECT a FROM t").at(0.0, 5.0), call("stock", 6.0, 20.0), call("reviews", 6.0, 80.0)],
            "the call to reviews",
        ),
    ];
    for (name, children, branch) in cases {
        let findings = detect_in_each(&children);
        assert_eq!(findings.len(), 1, "{name}");
        assert!(
            findings[0].title().contains(&format!("waits for {branch} after its parallel work is done")),
            "{name}: {}",
            findings[0].title()
        );
    }
}

#[test]
fn what_is_no_straggler_is_left_alone() {
    let cases = [
        ("calls in turn", vec![call("stock", 5.0, 30.0), call("reviews", 35.0, 60.0)]),
        ("calls in turn by clocks that disagree", vec![call("stock", 5.0, 30.0), call("reviews", 34.2, 60.0)]),
        ("work in the background", vec![call("stock", 5.0, 30.0), call("audit", 5.0, 600.0)]),
        ("equal branches", vec![call("stock", 5.0, 80.0), call("reviews", 5.0, 85.0)]),
        ("calls that ask the same of the same", vec![call("stock", 5.0, 30.0), call("stock", 5.0, 85.0)]),
        ("one call", vec![call("reviews", 5.0, 85.0)]),
        ("a small part of the request", vec![call("stock", 5.0, 10.0), call("reviews", 5.0, 25.0)]),
        (
            "a longer branch that goes on",
            vec![call("a", 1.0, 6.0), call("b", 1.0, 9.0), internal("work").at(10.0, 90.0)],
        ),
    ];
    for (name, children) in cases {
        assert_eq!(detect_in_each(&children), [], "{name}");
    }
    let short = |_| server("shop", "GET /page").at(0.0, 8.0).children([call("a", 0.0, 2.0), call("b", 0.0, 6.0)]);
    assert_eq!(detect((0..10).map(short)), [], "milliseconds");
}

#[test]
fn the_same_branch_must_be_the_last_again_and_again() {
    let mixed = |slow: usize, all: usize| {
        detect((0..all).map(|n| {
            let (a, b) = if n < slow { (30.0, 85.0) } else { (85.0, 30.0) };
            request([call("stock", 5.0, a), call("reviews", 5.0, b)])
        }))
    };
    for (slow, all, fires) in [(5, 10, false), (6, 10, true), (4, 4, false), (5, 5, true), (11, 20, false)] {
        assert_eq!(mixed(slow, all).len(), usize::from(fires), "{slow} of {all}");
    }
}

#[test]
fn a_fan_out_below_belongs_to_the_service_that_began_it() {
    let below =
        server("parts", "GET /part").at(6.0, 90.0).children([call("stock", 7.0, 20.0), call("reviews", 7.0, 80.0)]);
    let findings = detect((0..10).map(|_| request([call("parts", 5.0, 92.0).child(below.clone())])));
    assert_eq!(findings.iter().map(|finding| finding.resource.as_str()).collect::<Vec<_>>(), ["parts"]);
}

/// A page that makes three calls for each of 5, then 50 requests a second of 100 ms: calls under way for each request, and
/// connections under the two loads.
fn by_sockets(at_once: f64, connections: (f64, f64)) -> Vec<Finding> {
    let load = |vus, rate| Load { vus, rate, latency_ms: 100.0 };
    let trial = TrialBuilder::new("a").service("page", None).cpu("page", 0, |_| 0.1).host_cpu(|_| 0.1);
    let trial = trial.steady(10, load(1, 5.0)).steady(10, load(10, 50.0));
    let figures = |connections, outstanding, rate| CallFigures { connections, outstanding, rate, ..Default::default() };
    let page = format!("127.0.0.1:{FIRST_PORT}");
    let trial =
        trial.calls(
            names::GENERATOR,
            0,
            &page,
            move |s| {
                if s < 10 { figures(1.0, 0.5, 5.0) } else { figures(10.0, 5.0, 50.0) }
            },
        );
    let trial = trial.calls("page", 0, "10.0.0.9:80", move |s| {
        if s < 10 { figures(connections.0, 0.5 * at_once, 15.0) } else { figures(connections.1, 5.0 * at_once, 150.0) }
    });
    crate::detect(&StragglerBranch, &trial.build(), &Thresholds::default())
}

#[test]
fn sockets_show_that_one_of_several_calls_is_alone() {
    let findings = by_sockets(1.2, (3.0, 12.0));
    let [finding] = &findings[..] else { panic!("{findings:?}") };
    assert_eq!(finding.title(), "page waits 80.0 ms for one of 3 calls to 10.0.0.9:80");
    assert_eq!((finding.resource.as_str(), finding.confidence), ("page", Confidence::Low));
    assert_eq!(by_sockets(2.8, (3.0, 16.0)), [], "calls of one length");
    assert_eq!(by_sockets(1.0, (1.0, 9.0)), [], "one after another");
    assert_eq!(by_sockets(1.2, (12.0, 12.0)), [], "connections that are opened in advance");
}
