//! Tests of `disk-full`: evidence that must make it fire, and evidence that must not.

use narrows_model::finding::Evidence;
use narrows_model::operation::OperationEvidence;
use narrows_testkit::TRIAL_START_NS;
use narrows_testkit::operations::operation;
use narrows_testkit::spans::{SpanBuilder, client, internal, query, server};
use narrows_testkit::trial::{FIRST_PORT, Load as Step, TrialBuilder};

use super::*;
use crate::thresholds::Thresholds;
use crate::words::InWords;

const NO_SPACE: &str = "write /data/7.jpg: no space left on device";

/// Ten seconds of a gateway (port 9000), a media service (9001) and its database (9002).
fn trial() -> TrialBuilder {
    let trial = TrialBuilder::new("a").service("gateway", None).service("media", None).service("db", None);
    trial.steady(10, Step { vus: 2, rate: 10.0, latency_ms: 40.0 })
}

fn detect(trial: TrialBuilder) -> Vec<Finding> {
    crate::detect(&DiskFull, &trial.build(), &Thresholds::default())
}

/// `all` requests through the gateway, 10 ms apart; the last `failing` fail in the media service with `failed`.
fn requests(all: u32, failing: u32, failed: &SpanBuilder) -> Vec<Trace> {
    let handled = |child: SpanBuilder| client("POST").at(1.0, 30.0).child(child.at(2.0, 28.0));
    let fine = server("gateway", "POST /photos").at(0.0, 32.0).child(handled(server("media", "POST /photos")));
    let media = server("media", "POST /photos").failed().child(failed.clone().at(3.0, 20.0));
    let bad = server("gateway", "POST /photos").at(0.0, 32.0).failed_with(NO_SPACE).child(handled(media).failed());
    (0..all).map(|n| if n < all - failing { fine.clone().trace(n) } else { bad.clone().trace(n) }).collect()
}

fn no_space() -> SpanBuilder {
    internal("store").failed_with(NO_SPACE)
}

fn insert() -> SpanBuilder {
    query("INSERT INTO photos VALUES (?)").failed().to_port(FIRST_PORT + 2)
}

fn evidence_of(finding: &Finding) -> &evidence::DiskFull {
    let Evidence::DiskFull(evidence) = &finding.evidence else { panic!("{:?}", finding.evidence) };
    evidence
}

#[test]
fn a_service_that_cannot_write_has_a_full_disk() {
    let counted = operation("media", "POST /photos", 10, 7.0, 20.0);
    let counted = OperationEvidence { failed: 10.0, ..counted };
    let findings = detect(trial().operation(counted).traces(requests(40, 10, &no_space())));
    let [finding] = &findings[..] else { panic!("one finding, not {findings:?}") };
    assert_eq!(finding.title(), "media has a full disk: 10 operations failed");
    assert_eq!((finding.resource.as_str(), finding.operation.as_deref()), ("media", Some("POST /photos")));
    assert_eq!((finding.cost_share, finding.confidence), (0.25, Confidence::High));
    assert_eq!(
        finding.reasons(),
        [
            "The errors in 10 of the sampled traces report it (no space left on device), first seen 303 ms into the \
             load.",
            "25 % of all requests met such an error, and 25 % failed.",
            "Operations that met it: POST /photos of media (10)."
        ]
    );
    assert_eq!(finding.evidence_text().as_deref(), Some(NO_SPACE));
    let evidence = evidence_of(finding);
    assert_eq!((evidence.owner, evidence.failed, evidence.traces), (Owner::Service, 10.0, 10));
    assert_eq!(evidence.first_ns, TRIAL_START_NS + 303_000_000);
    assert_eq!(finding.exemplars.len(), EXEMPLARS_MAX);
    assert!(finding.period.as_ref().is_some_and(|period| period.start_ns == evidence.first_ns));
}

#[test]
fn a_database_that_cannot_write_has_a_full_disk() {
    let postgresql = insert().facts(|facts| facts.db_status = Some("53100".into()));
    let findings = detect(trial().traces(requests(40, 10, &postgresql)));
    let [finding] = &findings[..] else { panic!("one finding, not {findings:?}") };
    assert_eq!(finding.title(), "db has a full disk: 10 operations failed");
    assert_eq!((evidence_of(finding).owner, finding.confidence), (Owner::Server, Confidence::Medium));
    assert_eq!(evidence_of(finding).reports[0].name, "53100");
}

#[test]
fn a_full_table_and_a_failed_storage_are_less_sure() {
    let mysql = insert().facts(|facts| {
        facts.db_system = Some("mysql".into());
        facts.db_status = Some("1114".into());
    });
    let findings = detect(trial().traces(requests(40, 10, &mysql)));
    assert_eq!(findings[0].title(), "db has a full table or disk: 10 operations failed");
    assert_eq!(findings[0].confidence, Confidence::Low);
    assert_eq!(findings[0].caveats, [Caveat::TableMayHaveLimit { database: "db".into() }]);
    let kafka = SpanBuilder::of_kind(narrows_model::trace::SpanKind::Producer, "send photos").failed();
    let kafka = kafka.facts(|facts| {
        facts.messaging_system = Some("kafka".into());
        facts.error_type = Some("org.apache.kafka.common.errors.KafkaStorageException".into());
    });
    let findings = detect(trial().traces(requests(40, 10, &kafka)));
    assert_eq!(findings[0].title(), "kafka has a full or failed disk: 10 operations failed");
    assert_eq!(findings[0].caveats, [Caveat::DiskMayHaveFailed { broker: "kafka".into() }]);
}

#[test]
fn a_quota_is_told_from_a_disk() {
    let quota = internal("store").failed_with("write /home/media/7.jpg: disk quota exceeded");
    let findings = detect(trial().traces(requests(40, 10, &quota)));
    assert_eq!(findings[0].title(), "media has used up its disk quota: 10 operations failed");
    assert!(findings[0].advice().contains("quota"));
}

#[test]
fn the_only_reason_for_failures_is_worth_saying() {
    let findings = detect(trial().traces(requests(900, 3, &no_space())));
    assert_eq!(findings.len(), 1, "0.3 % of the requests, and all that fail");
    let mut traces = requests(900, 3, &no_space());
    traces.extend((900..910).map(|n| server("gateway", "GET /").failed_with("timeout").trace(n)));
    assert_eq!(detect(trial().traces(traces)), [], "10 others fail");
}

#[test]
fn one_error_among_many_requests_is_not_enough() {
    assert_eq!(detect(trial().traces(requests(40, 2, &no_space()))), []);
    assert_eq!(detect(trial().traces(requests(40, 0, &no_space()))), []);
}

#[test]
fn each_trace_stands_for_its_weight() {
    let fine = |n| server("media", "POST /").at(0.0, 9.0).weighted_trace(n, 10.0);
    let bad = |n| server("media", "POST /").at(0.0, 9.0).failed_with(NO_SPACE).weighted_trace(n, 1.0);
    let findings = detect(trial().traces((0..9).map(fine).chain((9..19).map(bad))));
    let evidence = evidence_of(&findings[0]);
    assert_eq!((evidence.failed, evidence.requests, evidence.affected), (10.0, 100.0, 10.0));
}

#[test]
fn what_no_request_meets_is_not_reported() {
    let job = |n| internal("clean up").service("media").failed_with(NO_SPACE).trace(n);
    assert_eq!(detect(trial().traces((0..20).map(job))), []);
}

#[test]
fn words_elsewhere_are_no_errors() {
    let text = "SELECT * FROM lines WHERE text = 'No space left on device' OR code = 'ENOSPC'";
    let other = |span: SpanBuilder| detect(trial().traces(requests(40, 10, &span))).len();
    let gateway_repeats = 1;
    assert_eq!(other(query(text).failed()), gateway_repeats, "the gateway's own text remains");
    let silent = |span: SpanBuilder| {
        let root = server("media", "GET /lines").at(0.0, 30.0).failed();
        let root = root.facts(|facts| facts.url = Some("/lines?q=ENOSPC no space left on device".into()));
        detect(trial().traces((0..20).map(|n| root.clone().child(span.clone()).trace(n))))
    };
    assert_eq!(silent(query(text).failed()), []);
    assert_eq!(silent(internal("offer").failed_with("the queue is full")), []);
    assert_eq!(silent(query("SELECT 1").failed_with("statement timeout: table full scan")), []);
}
