//! Tests of `chatty-http`: evidence that must make it fire, and evidence that must not.

use narrows_model::finding::Evidence;
use narrows_testkit::spans::{Beat, SpanBuilder, client, internal, query, run_of, server};
use narrows_testkit::trial::TrialBuilder;

use super::*;
use crate::words::InWords;

const BEAT: Beat = Beat { first_ms: 10.0, step_ms: 6.0, length_ms: 5.0 };

fn evidence_of(finding: &Finding) -> &evidence::ChattyHttp {
    let Evidence::ChattyHttp(evidence) = &finding.evidence else { panic!("{finding:?}") };
    evidence
}

fn part(i: usize) -> SpanBuilder {
    client("GET").url(&format!("http://stock:8080/parts/{}", 100 + i))
}

fn request(children: Vec<SpanBuilder>) -> SpanBuilder {
    let list = client("GET").url("http://stock:8080/orders").at(1.0, 8.0);
    bare([vec![list], children].concat())
}

fn bare(children: Vec<SpanBuilder>) -> SpanBuilder {
    server("shop", "GET /orders").at(0.0, 150.0).children(children)
}

fn detect(roots: impl IntoIterator<Item = SpanBuilder>) -> Vec<Finding> {
    let traces = roots.into_iter().zip(0..).map(|(root, number)| {
        let mut trace = root.trace(number);
        for url in trace.spans.iter_mut().filter_map(|span| span.facts.url.as_mut()) {
            // Different parts in each request.
            *url = url.replace("/parts/1", &format!("/parts/{number}1"));
        }
        trace
    });
    crate::detect(&ChattyHttp, &TrialBuilder::new("a").traces(traces).build(), &Thresholds::default())
}

fn detect_in_each(children: Vec<SpanBuilder>) -> Vec<Finding> {
    detect((0..10).map(|_| request(children.clone())))
}

#[test]
fn one_call_for_each_item_is_named() {
    let findings = detect_in_each(run_of(10, BEAT, part));
    let [finding] = &findings[..] else { panic!("one finding, not {findings:?}") };
    assert_eq!(finding.title(), "GET /orders calls stock:8080 once for each item: 10 calls in each request");
    assert_eq!((finding.resource.as_str(), finding.operation.as_deref()), ("shop", Some("GET /orders")));
    assert!((finding.cost_share - 59.0 / 150.0).abs() < 1e-9, "{}", finding.cost_share);
    assert_eq!((finding.confidence, finding.exemplars.len()), (Confidence::High, 3));
    assert!(finding.evidence_text().as_deref().unwrap().ends_with("such as: http://stock:8080/parts/0100"));
    assert_eq!(evidence_of(finding).calls, Counts { least: 10, median: 10, most: 10 });
    assert_eq!(
        finding.reasons(),
        [
            "100 % of the traces of GET /orders show it (10 traces): 10 calls of one endpoint under one parent, each \
             with another id.",
            "Another call of the request ends before the first of them and may have returned the ids.",
            "With short gaps between them they take 59.0 ms of a request, and they are 91 % of all calls to stock:8080 \
             in these traces.",
        ]
    );
    assert_eq!(finding.caveats, [Caveat::ReplacingCallTakesTime, Caveat::CountMayFollowTestData]);
}

#[test]
fn growth_with_the_response_is_reported_even_without_a_call_before() {
    let findings = detect((0..10).map(|n| bare(run_of(5 + n, BEAT, part))));
    assert_eq!(findings.len(), 1);
    assert_eq!(evidence_of(&findings[0]).calls, Counts { least: 5, median: 9, most: 14 });
    assert!(findings[0].reasons()[1].contains("request to request, from 5 to 14"), "{:?}", findings[0].reasons());
}

#[test]
fn it_fires_through_what_stands_between() {
    let wrapped = run_of(8, BEAT, |i| internal("StockClient.find").child(part(i).at(10.0 + 6.0 * i as f64, 5.0)));
    let doubled =
        run_of(8, BEAT, |i| part(i).scope("requests").child(part(i).scope("urllib3").at(10.5 + 6.0 * i as f64, 4.0)));
    let mut queried = run_of(8, BEAT, part);
    queried.push(query("SELECT a FROM t").at(12.0, 1.0));
    let mut again = run_of(8, BEAT, part);
    again.push(part(7).at(52.0 + 1.0, 1.0));
    again[7] = part(7).at(52.0, 0.5).failed();
    for (name, children, count) in [
        ("wrappers", wrapped, 8),
        ("a second library", doubled, 8),
        ("queries", queried, 8),
        ("a retry", again, 8),
        ("partly at once", run_of(8, Beat { step_ms: 3.0, ..BEAT }, part), 8),
        ("the least number", run_of(5, BEAT, part), 5),
    ] {
        let findings = detect_in_each(children);
        assert_eq!(findings.len(), 1, "with {name}: {findings:#?}");
        assert_eq!(evidence_of(&findings[0]).calls.median, count, "with {name}");
    }
}

#[test]
fn remote_methods_count_when_their_number_grows() {
    let get = |_| client("shop.v1.Stock/Get").remote("shop.v1.Stock", "Get");
    let findings = detect((0..10).map(|n| request(run_of(5 + n, BEAT, get))));
    assert_eq!((findings.len(), findings[0].confidence), (1, Confidence::Medium));
    assert_eq!(detect((0..10).map(|_| request(run_of(9, BEAT, get)))), [], "always as many, of what is not known");
    let batch = |_| client("shop.v1.Stock/BatchGet").remote("shop.v1.Stock", "BatchGet");
    assert_eq!(detect((0..10).map(|n| request(run_of(5 + n, BEAT, batch)))), []);
}

#[test]
fn the_same_asked_again_and_again_is_named() {
    let findings = detect((0..10).map(|_| bare(run_of(9, BEAT, |_| client("GET").url("http://settings/tenant/7")))));
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].title(), "GET /orders calls settings 9 times for the same thing in each request");
    assert!(findings[0].advice().ends_with("for as long as a stale one is acceptable."));
}

#[test]
fn other_patterns_are_left_alone() {
    let url = |text: &'static str| move |i: usize| client("GET").url(&text.replace("{}", &(10 + i).to_string()));
    let together = Beat { step_ms: 0.2, length_ms: 40.0, ..BEAT };
    let different = ["users", "prices", "mails", "carts", "ads", "news", "logs"];
    let cases = [
        ("four calls", run_of(4, BEAT, part)),
        ("pages", run_of(9, BEAT, url("http://stock/parts?page={}"))),
        ("a cursor", run_of(9, BEAT, url("http://stock/parts?cursor=a{}"))),
        ("pages in the path", run_of(9, BEAT, url("http://stock/parts/page/{}"))),
        ("polling", run_of(9, Beat { step_ms: 12.0, ..BEAT }, |_| client("GET").url("http://stock/jobs/7"))),
        ("jobs that are not done", {
            let job = |_| client("GET").url("http://stock/jobs/7").facts(|facts| facts.http_status = Some(202));
            run_of(9, BEAT, job)
        }),
        ("tries", run_of(9, BEAT, |i| if i < 8 { part(0).failed() } else { part(0) })),
        ("several hosts", run_of(9, BEAT, url("http://stock-{}/parts/7"))),
        ("batches", run_of(9, BEAT, url("http://stock/parts?ids={},7,8"))),
        ("a batch endpoint", run_of(9, BEAT, url("http://stock/v{}/batch"))),
        ("assets", run_of(9, BEAT, url("http://cdn/img/{}.png"))),
        ("a prefetch", run_of(9, together, part)),
        ("different endpoints", run_of(7, BEAT, |i| client("GET").url(&format!("http://stock/{}", different[i])))),
        ("four of two libraries", ["a", "b"].map(|scope| run_of(4, BEAT, |i| part(i).scope(scope))).concat()),
    ];
    for (name, children) in cases {
        assert_eq!(detect_in_each(children), [], "with {name}");
    }
}

#[test]
fn a_fixed_plan_is_another_cause() {
    assert_eq!(detect((0..10).map(|_| bare(run_of(9, BEAT, part)))), [], "nothing before");
    let region = |i: usize| client("GET").url(&format!("http://stock:8080/regions/{i}"));
    assert_eq!(detect_in_each(run_of(9, BEAT, region)), [], "the same in each request");
}

#[test]
fn few_traces_or_little_time_are_not_enough() {
    let mixed = |bad: usize, all: usize| {
        detect((0..all).map(|n| request(if n < bad { run_of(9, BEAT, part) } else { vec![part(0).at(20.0, 1.0)] })))
    };
    for (bad, all, fires) in [(2, 2, false), (3, 3, true), (3, 20, false)] {
        assert_eq!(mixed(bad, all).len(), usize::from(fires), "{bad} of {all}");
    }
    let tiny = Beat { step_ms: 0.2, length_ms: 0.1, ..BEAT };
    let mut cheap = run_of(5, tiny, part);
    cheap.extend(run_of(9, Beat { first_ms: 20.0, ..BEAT }, |i| {
        client("POST").url(&format!("http://stock:8080/m/{}x", ["a", "b", "c", "d", "e", "f", "g", "h", "i"][i]))
    }));
    assert_eq!(detect_in_each(cheap), []);
}

#[test]
fn calls_that_begin_together_and_run_few_at_a_time_are_named() {
    // The client's span begins when the program makes the call, the callee's when the request arrives.
    let waiting = |i: usize| part(i).at(10.0 + 0.01 * i as f64, 20.0 * (i / 6 + 1) as f64);
    let served = |i: usize| waiting(i).child(server("stock", "GET /parts/{id}").at(11.0 + 20.0 * (i / 6) as f64, 18.0));
    for (name, children) in [
        ("seen by both sides", (0..30).map(served).collect::<Vec<_>>()),
        ("seen by the client alone", (0..30).map(waiting).collect()),
    ] {
        let findings = detect_in_each(children);
        assert_eq!(findings.len(), 1, "{name}: {findings:#?}");
        let evidence = evidence_of(&findings[0]);
        assert_eq!((evidence.calls.median, evidence.at_once, evidence.begin_together), (30, 6, true), "{name}");
        assert!(findings[0].title().ends_with("30 calls in each request, 6 at a time"), "{}", findings[0].title());
        assert!(findings[0].advice().contains("raise the client's limit of connections"), "{}", findings[0].advice());
    }
    let prompt =
        |i: usize| waiting(i).child(server("stock", "GET /parts/{id}").at(11.0, 20.0 * (i / 6 + 1) as f64 - 2.0));
    assert_eq!(detect_in_each((0..30).map(prompt).collect()), [], "the callee serves all at once, some slowly");
}

#[test]
fn first_pages_of_many_lists_are_items() {
    let books = |i: usize| client("GET").url(&format!("http://stock:8080/parts/{}/books?offset=0&limit=5", 100 + i));
    assert_eq!(detect_in_each(run_of(8, BEAT, books)).len(), 1);
}
