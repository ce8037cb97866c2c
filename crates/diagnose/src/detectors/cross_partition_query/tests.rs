//! Tests of `cross-partition-query`: evidence that must make it fire, and evidence that must not.

use narrows_model::finding::Evidence;
use narrows_testkit::spans::{Beat, SpanBuilder, document_query, run_of, server};
use narrows_testkit::trial::{Load, TrialBuilder};

use super::*;
use crate::words::InWords;

const TEXT: &str = "SELECT VALUE SUM(c.hours) FROM c WHERE c.owner = @owner";
const BEAT: Beat = Beat { first_ms: 10.0, step_ms: 0.5, length_ms: 50.0 };

fn evidence_of(finding: &Finding) -> &evidence::CrossPartitionQuery {
    let Evidence::CrossPartitionQuery(evidence) = &finding.evidence else { panic!("{finding:?}") };
    evidence
}

/// Response of partition `i` to a query whose rows are in partition `home`.
fn response(i: usize, home: usize) -> SpanBuilder {
    let rows = u64::from(i == home);
    document_query(TEXT, &i.to_string()).rows(rows).charge(if rows > 0 { 3.0 } else { 3.25 })
}

fn everywhere(home: usize) -> Vec<SpanBuilder> {
    run_of(9, BEAT, |i| response(i, home))
}

fn trial(each: impl Fn(usize) -> Vec<SpanBuilder>) -> TrialBuilder {
    let request = |n: usize| server("drones", "GET /utilization").at(0.0, 120.0).children(each(n));
    TrialBuilder::new("a")
        .service("drones", None)
        .steady(10, Load { vus: 4, rate: 10.0, latency_ms: 120.0 })
        .traces((0..10).map(|n| request(n).trace(n as u32)))
}

fn with_readings(trial: TrialBuilder) -> TrialBuilder {
    (0..9).fold(trial, |trial, partition| {
        trial.throughput("store", &partition.to_string(), 277.0, |second| if second == 8 { 240.0 } else { 150.0 })
    })
}

fn detect(trial: TrialBuilder) -> Vec<Finding> {
    crate::detect(&CrossPartitionQuery, &trial.build(), &Thresholds::default())
}

#[test]
fn a_query_for_one_partition_that_all_are_asked_is_named() {
    let findings = detect(with_readings(trial(|n| everywhere(n % 9))));
    let [finding] = &findings[..] else { panic!("one finding, not {findings:?}") };
    assert_eq!(finding.title(), "GET /utilization queries 9 partitions, and 8 of them have no rows");
    assert!((finding.cost_share - 26.0 / 29.0).abs() < 1e-9, "{}", finding.cost_share);
    assert_eq!(finding.cost_of(), "of the request units of GET /utilization");
    assert_eq!((finding.resource.as_str(), finding.confidence), ("drones", Confidence::High));
    assert_eq!(finding.evidence_text().as_deref(), Some(TEXT));
    let evidence = evidence_of(finding);
    assert_eq!((evidence.touched, evidence.partitions, evidence.empty), (9, 9, Some(8)));
    assert_eq!((evidence.charge, evidence.useful_charge), (Some(29.0), Some(3.0)));
    assert_eq!(evidence.peak_share, Some(240.0 / 277.0));
    assert_eq!(
        finding.reasons(),
        [
            "One query of GET /utilization reaches 9 of the 9 partitions of store, in 100 % of its traces (10 traces).",
            "The number is the same in 100 % of them, whatever the query's values.",
            "8 of these partitions returned no rows.",
            "Each operation costs 29 request units, 3 of them in partitions that had rows.",
            "A partition of store used up to 87 % of its provisioned throughput: queries that return no rows waste \
             part of it.",
        ]
    );
    assert!(finding.caveats.is_empty() && finding.advice().contains("so that store queries only the partition"));
}

#[test]
fn it_fires_through_what_stands_between() {
    let again = |_: usize| {
        let mut children = everywhere(2);
        children[4] = children[4].clone().throttled(Some(5.0)).at(12.0, 1.0);
        children.push(response(4, 2).at(19.0, 5.0).resent(1));
        children
    };
    let paged = |_: usize| [everywhere(2), vec![response(2, 2).at(70.0, 5.0)]].concat();
    let serial = |_: usize| run_of(9, Beat { step_ms: 10.0, length_ms: 9.0, ..BEAT }, |i| response(i, 2));
    let eight = |_: usize| run_of(8, BEAT, |i| response(i, 2));
    assert_eq!(detect(trial(again)).len(), 1, "with a refusal");
    assert_eq!(detect(trial(paged)).len(), 1, "with a second page");
    assert_eq!(detect(trial(serial)).len(), 1, "in turn");
    assert_eq!(detect(with_readings(trial(eight))).len(), 1, "all but one");
}

#[test]
fn what_is_not_recorded_is_said() {
    let bare = |_: usize| run_of(9, BEAT, |i| document_query(TEXT, &i.to_string()));
    let findings = detect(trial(bare));
    assert_eq!((findings.len(), findings[0].confidence), (1, Confidence::Medium));
    let store = "azure.cosmosdb".into();
    let counted = Caveat::PartitionsCountedInTraces { store };
    assert_eq!(findings[0].caveats, [counted, Caveat::RowsNotRecorded, Caveat::ChargeNotRecorded]);
    assert_eq!(findings[0].title(), "GET /utilization queries 9 of 9 partitions for each result");
    let all = format!("{:?}", findings[0]);
    assert!(!all.contains("request units"), "none are recorded: {all}");
    let uncharged = |_: usize| run_of(9, BEAT, |i| document_query(TEXT, &i.to_string()).rows(u64::from(i == 0)));
    let findings = detect(trial(uncharged));
    assert_eq!(
        (findings[0].cost_share, &*findings[0].cost_of()),
        (8.0 / 9.0, "of the partitions that GET /utilization queries")
    );
}

#[test]
fn a_partition_that_was_split_is_not_missed() {
    let mut evidence = with_readings(trial(|n| everywhere(n % 9))).throughput("store", "old", 277.0, |_| 9.0).build();
    let old =
        |series: &&mut narrows_model::series::Series| series.key.labels.values().any(|partition| partition == "old");
    evidence.series.iter_mut().filter(old).for_each(|series| series.points.truncate(3));
    let findings = crate::detect(&CrossPartitionQuery, &evidence, &Thresholds::default());
    assert_eq!((findings.len(), evidence_of(&findings[0]).partitions), (1, 9));
}

#[test]
fn as_many_rows_from_each_tell_nothing() {
    let findings = detect(with_readings(trial(|_| run_of(9, BEAT, |i| response(i, i)))));
    assert_eq!((findings.len(), findings[0].confidence), (1, Confidence::Medium));
    assert_eq!(findings[0].caveats, [Caveat::RowsAlikeInPartitions]);
}

#[test]
fn queries_that_need_what_they_ask_are_left_alone() {
    let keyed = |n: usize| vec![response(n % 9, n % 9).at(10.0, 20.0)];
    let full = |_: usize| run_of(9, BEAT, |i| response(i, i).rows(3 + i as u64));
    let total = |_: usize| run_of(9, BEAT, |i| document_query("SELECT VALUE COUNT(1) FROM c", &i.to_string()).rows(1));
    let rows = |n: usize| run_of(9, BEAT, |i| response(i, i).attribute("db.query.parameter.owner", (n * 9 + i) as u64));
    let empty_rows =
        |n: usize| run_of(9, BEAT, |i| response(i, 99).attribute("db.query.parameter.owner", (n * 9 + i) as u64));
    let varying = |n: usize| run_of(if n.is_multiple_of(2) { 9 } else { 8 }, BEAT, |i| response(i, 2));
    let two = |_: usize| run_of(2, BEAT, |i| response(i, 0));
    let half = |_: usize| run_of(5, BEAT, |i| response(i, 0));
    let refused =
        |_: usize| run_of(9, BEAT, |i| if i == 0 { response(0, 0) } else { response(i, 0).throttled(Some(1.0)) });
    assert_eq!(detect(with_readings(trial(keyed))), [], "one partition");
    assert_eq!(detect(with_readings(trial(full))), [], "rows everywhere");
    assert_eq!(detect(with_readings(trial(total))), [], "a total of all");
    assert_eq!(detect(with_readings(trial(rows))), [], "one look-up each");
    assert_eq!(detect(with_readings(trial(empty_rows))), [], "look-ups of what is not there");
    assert_eq!(detect(with_readings(trial(varying))), [], "now more, now less");
    assert_eq!(detect(trial(two)), [], "a store of two partitions");
    assert_eq!(detect(with_readings(trial(half))), [], "half of the partitions");
    assert_eq!(detect(with_readings(trial(refused))), [], "refused by all but one");
    assert_eq!(detect(TrialBuilder::new("a")), [], "no traces");
}
