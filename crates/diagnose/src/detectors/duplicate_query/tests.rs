//! Tests of `duplicate-query`: evidence that must make it fire, and evidence that must not.

use narrows_model::finding::Evidence;
use narrows_model::trace::Trace;
use narrows_testkit::spans::{SpanBuilder, client, database, internal, query, run_of, server};
use narrows_testkit::trial::TrialBuilder;

use super::*;
use crate::words::InWords;

const BOUND: &str = "SELECT * FROM users WHERE id = $1";
const LITERAL: &str = "SELECT * FROM users WHERE id = 7";

fn evidence_of(finding: &Finding) -> &evidence::DuplicateQuery {
    let Evidence::DuplicateQuery(evidence) = &finding.evidence else { panic!("{finding:?}") };
    evidence
}

fn detect(traces: impl IntoIterator<Item = Trace>) -> Vec<Finding> {
    crate::detect(&DuplicateQuery, &TrialBuilder::new("a").traces(traces).build(), &Thresholds::default())
}

fn request(children: Vec<SpanBuilder>) -> SpanBuilder {
    server("shop", "GET /orders").at(0.0, 50.0).children(children)
}

fn detect_in_each(children: Vec<SpanBuilder>) -> Vec<Finding> {
    detect((0..20).map(|number| request(children.clone()).trace(number)))
}

/// A query, another span, and the query again.
fn around(text: &str, between: SpanBuilder) -> Vec<SpanBuilder> {
    vec![query(text).at(2.0, 8.0), between.at(11.0, 4.0), query(text).at(16.0, 8.0)]
}

fn nothing() -> SpanBuilder {
    internal("render")
}

#[test]
fn a_query_that_is_sent_twice_is_named_with_its_evidence() {
    let findings = detect_in_each(around(LITERAL, query("SELECT * FROM orders WHERE user_id = 7")));
    let [finding] = &findings[..] else { panic!("one finding, not {findings:?}") };
    assert_eq!(
        finding.title(),
        "GET /orders sends the same query twice in each request: SELECT * FROM users WHERE id = ?"
    );
    assert_eq!((finding.resource.as_str(), finding.operation.as_deref()), ("shop", Some("GET /orders")));
    assert_eq!((finding.cost_share, finding.confidence), (0.16, Confidence::High));
    assert_eq!(
        finding.reasons(),
        [
            "100 % of the requests of GET /orders that query a database send queries again (20 traces), each once more \
             (median).",
            "The values are the same.",
            "The repeats are 33 % of all queries in the traces of this trial.",
        ]
    );
    let evidence = evidence_of(finding);
    assert_eq!((evidence.sends, evidence.repeats_ns, evidence.statements), (2, 8e6, 1));
    assert_eq!(evidence.database, "postgresql");
    assert_eq!((finding.exemplars.len(), finding.exemplars[0].span_ids.len()), (3, 2));
    assert_eq!(finding.evidence_text().as_deref(), Some(LITERAL));
}

#[test]
fn it_fires_whatever_shows_that_the_values_are_the_same() {
    let user = || query(BOUND).attribute("db.query.parameter.0", 7);
    let recorded = vec![user().at(2.0, 8.0), user().at(12.0, 8.0)];
    let cases = [
        ("no values", around("SELECT name FROM settings", nothing()), Sameness::NoValues),
        ("recorded values", recorded, Sameness::Values),
        ("another table is written", around(LITERAL, query("INSERT INTO audit (a) VALUES (1)")), Sameness::Values),
        (
            "another service is read",
            around(LITERAL, client("GET").url("http://a/").facts(|facts| facts.http_method = Some("GET".into()))),
            Sameness::Values,
        ),
    ];
    for (name, children, sameness) in cases {
        let findings = detect_in_each(children);
        assert_eq!(findings.len(), 1, "with {name}");
        assert_eq!(evidence_of(&findings[0]).sameness, sameness, "with {name}");
    }
}

#[test]
fn several_statements_are_one_finding() {
    let mut children = run_of(3, narrows_testkit::spans::Beat { first_ms: 1.0, step_ms: 4.0, length_ms: 3.0 }, |_| {
        query("SELECT name FROM settings")
    });
    children.extend([query(LITERAL).at(20.0, 5.0), query(LITERAL).at(26.0, 5.0)]);
    let findings = detect_in_each(children);
    let evidence = evidence_of(&findings[0]);
    assert_eq!((findings.len(), evidence.statements, evidence.repeats.median), (1, 2, 3));
    assert_eq!((evidence.shape.as_str(), evidence.sends), ("SELECT name FROM settings", 3));
    assert!(findings[0].title().ends_with("settings and 1 more"), "{}", findings[0].title());
}

#[test]
fn unknown_values_need_rows_that_agree_and_differ_from_request_to_request() {
    let twice = |one: u64, two: u64| vec![query(BOUND).rows(one).at(2.0, 8.0), query(BOUND).rows(two).at(12.0, 8.0)];
    let with = |rows: fn(u32) -> (u64, u64)| {
        detect((0..20).map(|number| {
            let (one, two) = rows(number);
            request(twice(one, two)).trace(number)
        }))
    };
    let found = with(|number| (u64::from(number % 7), u64::from(number % 7)));
    assert_eq!((found.len(), found[0].confidence), (1, Confidence::Medium));
    assert!(found[0].caveats.contains(&Caveat::SameValuesReadFromRows));
    assert_eq!(with(|_| (1, 1)), [], "one row each, as two keys have");
    assert_eq!(with(|number| (u64::from(number % 7), u64::from(number % 5))), []);
    assert_eq!(detect_in_each(around(BOUND, nothing())), [], "nothing is recorded");
}

#[test]
fn a_result_that_may_have_changed_is_no_duplicate() {
    let cases = [
        ("its table is written", query("UPDATE users SET seen = 1 WHERE id = 7")),
        ("a procedure is called", query("CALL refresh(7)")),
        ("something failed", internal("save").failed()),
        ("a transaction was rolled back", database("ROLLBACK")),
        (
            "another service may write",
            client("POST").url("http://a/").facts(|facts| facts.http_method = Some("POST".into())),
        ),
        ("a lock was taken", query("SELECT id FROM users WHERE id = 7 FOR UPDATE")),
    ];
    for (name, between) in cases {
        assert_eq!(detect_in_each(around(LITERAL, between)), [], "{name}");
    }
    let rows = |rows| query(LITERAL).rows(rows);
    assert_eq!(detect_in_each(vec![rows(1).at(2.0, 8.0), rows(2).at(12.0, 8.0)]), [], "it has changed");
}

#[test]
fn other_repetitions_are_silent() {
    let twice = |text: &str| vec![query(text).at(2.0, 8.0), query(text).at(12.0, 8.0)];
    for text in [
        "SELECT nextval('s') FROM dual",
        "SELECT id FROM jobs LIMIT 1 FOR UPDATE SKIP LOCKED",
        "SELECT * FROM users WHERE name = '?'",
        "SELECT * FROM users WHERE name = 'REDACTED'",
        "SELECT * FROM users WHERE id IN (1, 2, 3",
        "INSERT INTO users (id) VALUES (7)",
    ] {
        assert_eq!(detect_in_each(twice(text)), [], "{text}");
    }
    let beside = vec![query(LITERAL).at(2.0, 8.0), query(LITERAL).at(2.5, 7.0)];
    assert_eq!(detect_in_each(beside), [], "at once, as a library that is instrumented twice");
    let polling = vec![query(LITERAL).at(2.0, 5.0), query(LITERAL).at(20.0, 5.0), query(LITERAL).at(40.0, 5.0)];
    assert_eq!(detect_in_each(polling), [], "with pauses");
    let place = |name: &str| query("SELECT count(*) FROM users").facts(|f| f.db_namespace = Some(name.into()));
    assert_eq!(detect_in_each(vec![place("a").at(2.0, 8.0), place("b").at(12.0, 8.0)]), [], "two shards");
    let document = |at| query("SELECT * FROM c").facts(|f| f.db_system = Some("azure.cosmosdb".into())).at(at, 8.0);
    assert_eq!(detect_in_each(vec![document(2.0), document(12.0)]), [], "pages of a document store");
    let beat = narrows_testkit::spans::Beat { first_ms: 1.0, step_ms: 5.0, length_ms: 3.0 };
    let rows = run_of(8, beat, |i| query(&format!("SELECT * FROM users WHERE id = {}", i % 4)));
    assert_eq!(detect_in_each(rows), [], "one for each row");
}

#[test]
fn few_requests_or_little_time_are_not_enough() {
    let mixed = |with: u32, all: u32| {
        let single = || request(vec![query(LITERAL).at(2.0, 8.0)]);
        let double = || request(around(LITERAL, nothing()));
        detect((0..all).map(|n| if n >= all - with { double() } else { single() }.trace(n)))
    };
    for (with, all, fires) in [(4, 4, false), (5, 5, true), (14, 20, true), (8, 20, false)] {
        assert_eq!(mixed(with, all).len(), usize::from(fires), "{with} of {all}");
    }
    let early =
        (0..20).map(|n| request(if n < 12 { around(LITERAL, nothing()) } else { vec![query(LITERAL)] }).trace(n));
    assert_eq!(detect(early), [], "at the beginning only");
    assert_eq!(detect_in_each(vec![query(LITERAL).at(2.0, 2.0), query(LITERAL).at(5.0, 2.0)]), [], "cheap");
}

#[test]
fn ten_times_the_same_text_is_a_finding_in_every_store() {
    let beat = narrows_testkit::spans::Beat { first_ms: 1.0, step_ms: 4.0, length_ms: 3.0 };
    let ten_times = |system: &str, text: &str| {
        let of_store = |_| query(text).facts(|facts| facts.db_system = Some(system.into()));
        detect_in_each(run_of(10, beat, of_store))
    };
    let sql = "SELECT name FROM settings WHERE id = 7";
    let find = "{\"find\":\"settings\",\"filter\":{\"_id\":7}}";
    let search = "{\"query\":{\"term\":{\"id\":7}}}";
    for (system, text) in [
        ("postgresql", sql),
        ("microsoft.sql_server", sql),
        ("clickhouse", sql),
        ("redis", "GET settings:7"),
        ("valkey", "HGETALL settings"),
        ("mongodb", find),
        ("elasticsearch", search),
        ("opensearch", search),
    ] {
        let findings = ten_times(system, text);
        assert_eq!(findings.len(), 1, "{system}");
        assert_eq!(evidence_of(&findings[0]).repeats, Counts { least: 9, median: 9, most: 9 }, "{system}");
    }
    for (system, text) in [
        ("redis", "GET ?"),
        ("redis", "INCR hits"),
        ("redis", "SCAN 0"),
        ("mongodb", "find settings"),
        ("mongodb", "{\"getMore\":7,\"collection\":\"settings\"}"),
        ("elasticsearch", "{\"query\":{\"term\":{\"id\":\"?\"}}}"),
    ] {
        assert_eq!(ten_times(system, text), [], "{system}: {text}");
    }
}
