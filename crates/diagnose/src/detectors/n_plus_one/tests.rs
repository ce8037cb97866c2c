//! Tests of `n-plus-one`: evidence that must make it fire, and evidence that must not.

use narrows_model::finding::Evidence;
use narrows_model::trace::Trace;
use narrows_testkit::spans::{Beat, SpanBuilder, client, database, document_query, internal, query, run_of, server};
use narrows_testkit::trial::TrialBuilder;

use super::*;
use crate::words::InWords;

const ROW: &str = "SELECT name FROM customer WHERE id = $1";
const BEAT: Beat = Beat { first_ms: 5.0, step_ms: 5.0, length_ms: 3.0 };

fn evidence_of(finding: &Finding) -> &evidence::NPlusOne {
    let Evidence::NPlusOne(evidence) = &finding.evidence else { panic!("{finding:?}") };
    evidence
}

fn orders(children: Vec<SpanBuilder>) -> SpanBuilder {
    let source = query("SELECT id, customer_id FROM orders LIMIT 50").at(1.0, 2.0);
    server("shop", "GET /orders").at(0.0, 100.0).child(source).children(children)
}

fn detect(traces: impl IntoIterator<Item = Trace>) -> Vec<Finding> {
    crate::detect(&NPlusOne, &TrialBuilder::new("a").traces(traces).build(), &Thresholds::default())
}

fn detect_in_each(children: Vec<SpanBuilder>) -> Vec<Finding> {
    detect((0..10).map(|number| orders(children.clone()).trace(number)))
}

fn with_noise_between(noise: SpanBuilder) -> Vec<SpanBuilder> {
    let mut children = run_of(10, BEAT, |_| query(ROW));
    children.extend(run_of(10, Beat { first_ms: 8.5, length_ms: 0.5, ..BEAT }, |_| noise.clone()));
    children
}

#[test]
fn one_query_per_row_is_named_with_its_evidence() {
    let findings = detect_in_each(run_of(10, BEAT, |_| query(ROW)));
    let [finding] = &findings[..] else { panic!("one finding, not {findings:?}") };
    assert_eq!(finding.title(), "GET /orders fetches rows one at a time: 10 similar queries in each request");
    assert_eq!((finding.resource.as_str(), finding.operation.as_deref()), ("shop", Some("GET /orders")));
    assert_eq!(finding.cost_share, 0.48);
    assert_eq!(finding.confidence, Confidence::High);
    assert_eq!(
        finding.reasons(),
        [
            "100 % of the traces of GET /orders that query a database show it (10 traces): after another query, 10 \
             queries of one shape follow under one parent.",
            "They are 91 % of all queries in the traces of this trial.",
        ]
    );
    assert_eq!(finding.caveats[1], Caveat::QueryValuesNotRecorded);
    assert_eq!(finding.exemplars.len(), 3);
    assert_eq!(finding.exemplars[0].span_ids.len(), 5);
    let text = finding.evidence_text().unwrap();
    assert!(
        text.starts_with("SELECT name FROM customer WHERE id = ?\n\nas sent: SELECT name FROM customer WHERE id = $1")
    );
    assert!(finding.advice().contains("selectinload") && finding.advice().contains("GET /orders"));
}

#[test]
fn it_fires_through_what_stands_between() {
    let doubled = |scope: &str| {
        let mut children = run_of(10, BEAT, |_| query(ROW).scope("sqlalchemy"));
        children.extend(run_of(10, Beat { first_ms: 5.1, length_ms: 2.8, ..BEAT }, |_| query(ROW).scope(scope)));
        children
    };
    let wrapped = |i: usize| internal("CustomerRepository.findById").child(query(ROW).at(5.5 + 5.0 * i as f64, 2.0));
    let cases = [
        ("pool connects", with_noise_between(database("pg-pool.connect")), 10),
        ("transactions", with_noise_between(query("BEGIN")), 10),
        ("sent pieces", with_noise_between(internal("GET /orders http send")), 10),
        ("middleware", with_noise_between(internal("middleware - json")), 10),
        ("a call to another service", with_noise_between(client("GET")), 10),
        ("a second library", doubled("psycopg2"), 10),
        ("a repository per row", run_of(10, BEAT, wrapped), 10),
        ("literal values", run_of(10, BEAT, |i| query(&format!("SELECT a FROM t WHERE id = {i}"))), 10),
        ("the least number", run_of(5, BEAT, |_| query(ROW)), 5),
        ("parallel queries", run_of(10, Beat { step_ms: 0.1, ..BEAT }, |_| query(ROW)), 10),
        ("writes", run_of(10, BEAT, |_| query("INSERT INTO line (a) VALUES ($1)")), 10),
    ];
    for (name, children, count) in cases {
        let findings = detect_in_each(children);
        assert_eq!(findings.len(), 1, "with {name}: {findings:#?}");
        assert_eq!(evidence_of(&findings[0]).queries.median, count, "with {name}");
    }
}

#[test]
fn requests_served_by_a_cache_are_no_sign_against_it() {
    let asking = |number| orders(run_of(10, BEAT, |_| query(ROW))).trace(number);
    let cached = |number| server("shop", "GET /orders").at(0.0, 1.0).trace(number);
    let mixed = |asking_of_ten: u32| {
        detect((0..100).map(|number| if number % 10 < asking_of_ten { asking(number) } else { cached(number) }))
    };
    assert_eq!((mixed(1).len(), mixed(10).len()), (1, 1));
    assert_eq!(evidence_of(&mixed(1)[0]).trace_share, 1.0);
    let rare = detect((0..100).map(|number| if number % 33 == 0 { asking(number) } else { cached(number) }));
    assert_eq!(rare, [], "few enough do not matter");
}

#[test]
fn double_instrumentation_is_said() {
    let mut children = run_of(10, BEAT, |_| query(ROW).scope("sqlalchemy"));
    children.extend(run_of(10, Beat { first_ms: 5.1, length_ms: 2.8, ..BEAT }, |_| query(ROW).scope("psycopg2")));
    let findings = detect_in_each(children);
    let evidence = evidence_of(&findings[0]);
    assert_eq!((evidence.spans_per_query, &evidence.scopes[..]), (2.0, &["sqlalchemy".into(), "psycopg2".into()][..]));
    let said = "Double instrumentation: 2 spans for each query (sqlalchemy, psycopg2), counted once.";
    assert_eq!(findings[0].ruled_out()[0], said);
}

#[test]
fn healthy_programs_are_left_alone() {
    let prefetch = vec![query("SELECT name FROM customer WHERE id IN ($1, $2, $3, $4, $5, $6)").at(5.0, 30.0)];
    let mut different = Vec::new();
    for (i, table) in ["a", "b", "c", "d", "e", "f", "g"].iter().enumerate() {
        different.push(query(&format!("SELECT x FROM {table} WHERE id = $1")).at(5.0 + 5.0 * i as f64, 4.0));
    }
    let four_twice = ["sqlalchemy", "psycopg2"].map(|scope| run_of(4, BEAT, |_| query(ROW).scope(scope))).concat();
    let cases = [
        ("nothing else", vec![]),
        ("four queries", run_of(4, BEAT, |_| query(ROW))),
        ("four queries of two libraries", four_twice),
        ("a prefetch", prefetch),
        ("different queries", different),
        ("batches", run_of(8, BEAT, |_| query("SELECT name FROM customer WHERE id IN ($1, $2, $3)"))),
        ("pages", run_of(8, BEAT, |_| query("SELECT id FROM orders ORDER BY id LIMIT 10 OFFSET $1"))),
        ("polling", run_of(8, BEAT, |_| query("SELECT count(*) FROM job"))),
        ("connects only", run_of(12, BEAT, |_| database("connect"))),
        ("pings", run_of(12, BEAT, |_| query("SELECT 1"))),
        ("calls that are no queries", run_of(12, BEAT, |_| client("GET"))),
    ];
    for (name, children) in cases {
        assert_eq!(detect_in_each(children), [], "with {name}");
    }
}

#[test]
fn one_question_to_every_partition_is_another_cause() {
    let text = "SELECT VALUE SUM(c.hours) FROM c WHERE c.owner = @owner";
    let partition = |i: usize| document_query(text, &i.to_string());
    assert_eq!(detect_in_each(run_of(9, BEAT, partition)), []);
    let mut refused = run_of(9, BEAT, partition);
    refused.push(partition(9).throttled(Some(1.0)).at(50.0, 1.0));
    refused.push(partition(9).at(53.0, 1.0));
    assert_eq!(detect_in_each(refused), [], "a partition that is asked again after a refusal");
    let row = |i: usize| partition(i).attribute("db.query.parameter.owner", i as u64);
    assert_eq!(detect_in_each(run_of(9, BEAT, row)).len(), 1, "another row in each partition");
    assert_eq!(detect_in_each(run_of(9, BEAT, |i| partition(i % 4))).len(), 1, "partitions that come again");
}

#[test]
fn reads_need_a_query_before_them_and_writes_do_not() {
    let bare = |text: &str| {
        let root = server("shop", "POST /orders").at(0.0, 100.0).children(run_of(10, BEAT, |_| query(text)));
        detect((0..10).map(|number| root.clone().trace(number)))
    };
    assert_eq!(bare(ROW), []);
    let findings = bare("INSERT INTO line (a) VALUES ($1)");
    assert_eq!((findings.len(), evidence_of(&findings[0]).after.clone()), (1, None));
    assert_eq!(findings[0].title(), "POST /orders writes rows one at a time: 10 similar queries in each request");
    assert!(findings[0].reasons()[0].ends_with("(10 traces): 10 queries of one shape follow under one parent."));
    assert!(findings[0].advice().contains("a multi-row INSERT"), "{}", findings[0].advice());
}

#[test]
fn advice_speaks_the_language_of_the_store() {
    for (system, text, word) in [
        ("redis", "GET product:$", "MGET"),
        ("mongodb", "{\"find\":\"users\",\"filter\":{\"_id\":$}}", "$in"),
        ("elasticsearch", "{\"query\":{\"term\":{\"sku\":$}}}", "_msearch"),
    ] {
        let of_store =
            |i: usize| query(&text.replace('$', &i.to_string())).facts(|f| f.db_system = Some(system.into()));
        let findings = detect_in_each(run_of(10, BEAT, of_store));
        assert_eq!(findings.len(), 1, "{system}: {findings:#?}");
        assert!(findings[0].advice().contains(word), "{}", findings[0].advice());
    }
}

#[test]
fn what_outlasts_its_request_is_cut_and_flagged() {
    let mut children = run_of(10, BEAT, |_| query(ROW));
    children[9] = query(ROW).at(50.0, 1e11);
    let findings = detect_in_each(children);
    assert_eq!(evidence_of(&findings[0]).busy_ns, 9.0 * 3e6 + 50e6);
    assert!(findings[0].caveats.contains(&Caveat::CallsOutlastRequest { spans: 10 }), "{:?}", findings[0].caveats);
}

#[test]
fn few_traces_or_a_small_share_of_them_are_not_enough() {
    let narrow = || orders(run_of(10, BEAT, |_| query(ROW)));
    let mixed =
        |bad: u32, all: u32| detect((0..all).map(|n| if n >= all - bad { narrow() } else { orders(vec![]) }.trace(n)));
    for (bad, all, fires) in [(2, 2, false), (3, 3, true), (3, 20, false), (4, 20, true), (19, 100, false)] {
        assert_eq!(mixed(bad, all).len(), usize::from(fires), "{bad} of {all}");
    }
    let weighted =
        (0..6).map(|n| if n < 3 { narrow() } else { orders(vec![]) }.weighted_trace(n, if n < 3 { 1.0 } else { 50.0 }));
    assert_eq!(detect(weighted), []);
}

#[test]
fn what_fills_a_cache_in_the_beginning_is_left_alone() {
    let filling = |n: u32| orders(if n < 8 { run_of(10, BEAT, |_| query(ROW)) } else { vec![] }).trace(n);
    assert_eq!(detect((0..20).map(filling)), []);
}

#[test]
fn a_cheap_repetition_beside_much_other_work_is_silent() {
    let tiny = Beat { first_ms: 5.0, step_ms: 0.2, length_ms: 0.1 };
    let other = Beat { first_ms: 20.0, step_ms: 1.0, length_ms: 0.5 };
    let mut children = run_of(5, tiny, |_| query(ROW));
    children.extend((0..30).map(|i| query(&format!("SELECT a FROM t{i}")).at(20.0 + f64::from(i), other.length_ms)));
    assert_eq!(detect_in_each(children), []);
}

#[test]
fn a_fast_repetition_that_is_most_of_the_database_load_fires() {
    let tiny = Beat { first_ms: 5.0, step_ms: 0.2, length_ms: 0.1 };
    let findings = detect_in_each(run_of(20, tiny, |_| query(ROW)));
    assert_eq!(findings.len(), 1);
    assert!(findings[0].cost_share < 0.05);
}

#[test]
fn growth_with_the_result_is_said() {
    let traces = (0..10).map(|n| orders(run_of(6 + n as usize, BEAT, |_| query(ROW))).trace(n));
    let findings = detect(traces);
    assert_eq!(evidence_of(&findings[0]).queries, Counts { least: 6, median: 10, most: 15 });
    assert!(findings[0].reasons()[1].contains("request to request, from 6 to 15"), "{:?}", findings[0].reasons());
}
