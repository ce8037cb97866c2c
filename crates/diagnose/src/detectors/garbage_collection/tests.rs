//! Tests of `garbage-collection`: evidence that must make it fire, and evidence that must not.

use std::collections::BTreeMap;

use narrows_model::evidence::TrialEvidence;
use narrows_model::finding::evidence::garbage_collection::Runtime;
use narrows_model::finding::{Caveat, Evidence};
use narrows_model::series::{Point, Series, SeriesKey, ThreadState, names};
use narrows_testkit::TRIAL_START_NS;
use narrows_testkit::spans::server;
use narrows_testkit::trial::{Load, TrialBuilder};

use super::*;
use crate::words::InWords;

const SECONDS: usize = 40;
const YOUNG: [(&str, &str); 2] = [("jvm.gc.name", "G1 Young Generation"), ("jvm.gc.action", "end of minor GC")];
const FULL: [(&str, &str); 2] = [("jvm.gc.name", "G1 Old Generation"), ("jvm.gc.action", "end of major GC")];

fn trial() -> TrialBuilder {
    let trial = TrialBuilder::new("a").service("shop", None).cpu("shop", 0, |_| 0.5).host_cpu(|_| 0.2);
    trial.steady(SECONDS, Load { vus: 8, rate: 100.0, latency_ms: 80.0 })
}

/// A cumulative series with one point every `step` seconds: the sum of `each` over the seconds so far.
fn sum(name: &str, unit: &str, labels: &[(&str, &str)], step: usize, each: impl Fn(usize) -> f64) -> Series {
    let labels: BTreeMap<String, String> = labels.iter().map(|(l, v)| ((*l).to_owned(), (*v).to_owned())).collect();
    let key =
        SeriesKey { name: name.into(), unit: unit.into(), service: "shop".into(), labels, ..SeriesKey::default() };
    let at = |s: usize| TRIAL_START_NS + s as i64 * 1_000_000_000;
    let value = |s: usize| (0..s).map(&each).sum::<f64>();
    Series { key, points: (0..=SECONDS).step_by(step).map(|s| Point { time_ns: at(s), value: value(s) }).collect() }
}

/// One kind of JVM collection: seconds and number per second.
fn jvm(labels: &[(&str, &str)], seconds: f64, count: f64) -> [Series; 2] {
    [
        sum("jvm.gc.duration.sum", "s", labels, 5, move |_| seconds),
        sum("jvm.gc.duration.count", "", labels, 5, move |_| count),
    ]
}

fn with(trial: TrialBuilder, series: impl IntoIterator<Item = Series>) -> TrialEvidence {
    let mut evidence = trial.build();
    evidence.series.extend(series);
    evidence
}

fn detect(trial: &TrialEvidence) -> Vec<Finding> {
    crate::detect(&GarbageCollection, trial, &Thresholds::default())
}

fn found(series: impl IntoIterator<Item = Series>) -> Option<evidence::GarbageCollection> {
    let findings = detect(&with(trial(), series));
    let evidence = findings.first().map(|finding| match &finding.evidence {
        Evidence::GarbageCollection(evidence) => evidence.clone(),
        _ => panic!("{finding:?}"),
    });
    assert!(findings.len() <= 1, "{findings:?}");
    evidence
}

#[test]
fn a_large_share_of_pauses_is_named() {
    let both = [jvm(&YOUNG, 0.1, 4.0), jvm(&FULL, 0.1, 0.4)].concat();
    let findings = detect(&with(trial(), both));
    let [finding] = &findings[..] else { panic!("{findings:?}") };
    assert_eq!(finding.title(), "garbage collection stops shop for 20 % of the time");
    assert_eq!((finding.resource.as_str(), finding.confidence), ("shop", Confidence::Medium));
    assert!((finding.cost_share - 0.2).abs() < 1e-9, "{}", finding.cost_share);
    assert_eq!(
        finding.reasons(),
        [
            "In “8 users”, `jvm.gc.duration` reports 200 ms of pauses per second: 4.40/s collections with a mean pause of \
          45.5 ms."
        ]
    );
    let Evidence::GarbageCollection(evidence) = &finding.evidence else { panic!("{finding:?}") };
    assert_eq!((evidence.runtime, evidence.sign, evidence.replicas), (Runtime::Jvm, PauseSign::Share, 1));
    assert_eq!(evidence.long.map(|long| (long.count.round(), (long.mean_ns / 1e6).round())), Some((16.0, 250.0)));
}

#[test]
fn a_full_heap_makes_it_sure() {
    let heap = [("jvm.memory.type", "heap"), ("jvm.memory.pool.name", "G1 Old Gen")];
    let level = |name: &str, bytes: f64| sum(name, "By", &heap, 5, move |s| if s == 0 { bytes } else { 0.0 });
    let mut series = jvm(&YOUNG, 0.2, 4.0).to_vec();
    series.push(level("jvm.memory.limit", 100e6));
    series.push(level("jvm.memory.used_after_last_gc", 92e6));
    let findings = detect(&with(trial(), series));
    assert_eq!(findings[0].confidence, Confidence::High);
    assert!(findings[0].reasons()[1].starts_with("After collections 92 % of G1 Old Gen is in use"), "{findings:?}");
    assert!(findings[0].advice().starts_with("Give shop a larger heap (`-Xmx`)"), "{}", findings[0].advice());
}

#[test]
fn each_runtime_is_read_in_its_unit() {
    let shares: Vec<Option<(Runtime, f64)>> = [
        ("v8js.gc.duration.sum", "s", 0.2),
        ("dotnet.gc.pause.time", "s", 0.2),
        ("process.runtime.dotnet.gc.duration", "ns", 0.2e9),
        ("process.runtime.dotnet.gc.duration", "", 0.2e9),
        ("process.runtime.go.gc.pause_total_ns", "", 0.2e9),
        ("process.runtime.go.gc.pause_ns.sum", "ns", 0.2e9),
        ("jvm.gc.pause.sum", "milliseconds", 200.0),
        ("jvm.gc.pause.sum", "", 200.0),
        ("jvm.gc.pause.sum", "s", 0.2),
    ]
    .into_iter()
    .map(|(name, unit, each)| found([sum(name, unit, &[], 5, move |_| each)]).map(|it| (it.runtime, it.share)))
    .collect();
    let expected = [
        Runtime::V8,
        Runtime::DotNet,
        Runtime::DotNet,
        Runtime::DotNet,
        Runtime::Go,
        Runtime::Go,
        Runtime::Jvm,
        Runtime::Jvm,
        Runtime::Jvm,
    ];
    for (share, runtime) in shares.iter().zip(expected) {
        let (found, share) = share.expect("a finding");
        assert!(found == runtime && (share - 0.2).abs() < 1e-6, "{found:?} {share}, expected {runtime:?}");
    }
}

#[test]
fn what_is_reported_under_two_names_counts_once() {
    let old = [YOUNG[0], YOUNG[1], ("narrows.original_name", "process.runtime.jvm.gc.duration")];
    let micrometer = sum("jvm.gc.pause.sum", "ms", &[("gc", "G1 Young Generation")], 5, |_| 60.0);
    let twice = [jvm(&YOUNG, 0.06, 3.0), jvm(&old, 0.06, 3.0)].concat();
    assert_eq!(found(twice.into_iter().chain([micrometer])), None);
    assert!(found(jvm(&old, 0.2, 3.0)).is_some(), "the older name alone");
}

#[test]
fn work_beside_the_program_is_no_pause() {
    for name in ["ZGC Cycles", "ZGC Minor Cycles", "ZGC", "Shenandoah Cycles", "ConcurrentMarkSweep", "GPGC New"] {
        assert_eq!(found(jvm(&[("jvm.gc.name", name)], 0.5, 1.0)), None, "{name}");
    }
    assert_eq!(found(jvm(&[("jvm.gc.action", "end of GC cycle")], 0.5, 1.0)), None);
    let both = [jvm(&[("jvm.gc.name", "ZGC Cycles")], 0.5, 1.0), jvm(&[("jvm.gc.name", "ZGC Pauses")], 0.2, 9.0)];
    let evidence = found(both.concat()).expect("the pauses");
    assert!((evidence.share - 0.2).abs() < 1e-9 && (evidence.concurrent - 0.5).abs() < 1e-9, "{evidence:?}");
}

#[test]
fn few_or_single_pauses_are_left_alone() {
    assert_eq!(found(jvm(&YOUNG, 0.03, 3.0)), None, "a healthy share");
    assert_eq!(found(jvm(&YOUNG, 0.078, 3.0)), None, "a little less than the goal of G1");
    assert!(found(jvm(&YOUNG, 0.082, 3.0)).is_some(), "a little more");
    let once = |seconds: f64| sum("jvm.gc.duration.sum", "s", &FULL, 5, move |s| if s == 12 { seconds } else { 0.0 });
    assert_eq!(found([once(6.0)]), None, "one full collection");
    let mut more = jvm(&YOUNG, 0.03, 3.0).to_vec();
    more.push(once(6.0));
    assert_eq!(found(more), None, "one full collection among young ones");
    let seldom = sum("jvm.gc.duration.sum", "s", &YOUNG, 20, |_| 0.3);
    assert_eq!(found([seldom]), None, "two readings");
}

#[test]
fn series_that_are_no_sums_are_not_read() {
    let mut mixed = sum("jvm.gc.duration.sum", "s", &YOUNG, 1, |_| 0.2);
    mixed.points.iter_mut().step_by(2).for_each(|point| point.value *= 0.5);
    assert_eq!(found([mixed]), None, "two processes in one series");
    assert_eq!(found([sum("jvm.gc.duration.sum", "s", &YOUNG, 5, |_| 4.0)]), None, "more than all of the time");
}

#[test]
fn long_pauses_count_when_the_latency_shows_them() {
    let pauses = || jvm(&FULL, 0.05, 0.1);
    let load = |slow_ms: f64| {
        let seconds = (0..SECONDS).map(move |s| (100.0, if s % 10 == 9 { slow_ms } else { 20.0 }));
        let kind = narrows_model::run::WindowKind::Steady;
        TrialBuilder::new("a").service("shop", None).window(kind, 8, seconds)
    };
    let findings = detect(&with(load(450.0), pauses()));
    let [finding] = &findings[..] else { panic!("{findings:?}") };
    assert_eq!(
        finding.title(),
        "garbage collection stops shop for 500 ms at a time, and the slowest requests wait for it"
    );
    assert!((finding.cost_share - 0.05).abs() < 1e-9, "{}", finding.cost_share);
    assert_eq!(detect(&with(load(60.0), pauses())), [], "no request waits");
    let slow = TrialBuilder::new("a").service("shop", None);
    let slow = slow.steady(SECONDS, Load { vus: 80, rate: 100.0, latency_ms: 800.0 });
    assert_eq!(detect(&with(slow, pauses())), [], "all requests are slow");
    assert_eq!(detect(&with(load(450.0), jvm(&FULL, 0.05, 2.0))), [], "pauses of 25 ms");
    assert_eq!(detect(&with(load(450.0), jvm(&FULL, 0.015, 0.1))), [], "a small share");
}

#[test]
fn services_that_no_request_passes_are_left_alone() {
    let request = |n: u32| server("gate", "GET /").at(0.0, 80.0).trace(n);
    let trial = trial().service("gate", None).traces((0..20).map(request));
    assert_eq!(detect(&with(trial, jvm(&YOUNG, 0.4, 4.0))), []);
}

#[test]
fn the_machine_is_told_apart_from_the_service() {
    let full = |others: bool| {
        let own = if others { 0.4 } else { 3.8 };
        let trial = TrialBuilder::new("a").service("shop", None).cpu("shop", 0, move |_| own).host_cpu(|_| 0.97);
        let trial = trial.series(names::HOST_CPU_STEAL, "", 0, |_| 0.1);
        trial.steady(SECONDS, Load { vus: 8, rate: 100.0, latency_ms: 80.0 })
    };
    assert_eq!(detect(&with(full(true), jvm(&YOUNG, 0.3, 4.0))), [], "other programs fill it");
    let findings = detect(&with(full(false), jvm(&YOUNG, 0.3, 4.0)));
    assert!(
        matches!(findings[0].caveats[..], [Caveat::MachineBusy { .. }, Caveat::CpuStolen { .. }]),
        "{:?}",
        findings[0].caveats
    );
}

/// A Node.js with a heap of 128 MB and without metrics, and a fifth of its CPU in its own thread.
fn node(memory: f64, waiting_for_events: f64) -> Vec<Finding> {
    let trial = TrialBuilder::new("a").service("images", None).cpu("images", 0, |_| 2.0).host_cpu(|_| 0.5);
    let trial = trial.steady(SECONDS, Load { vus: 8, rate: 100.0, latency_ms: 80.0 });
    let trial = trial.busiest_thread("images", 0, |_| 0.4).series(names::MEMORY_BYTES, "images", 0, move |_| memory);
    let mut trial = trial.threads("images", 0, &[(ThreadState::Events, "", waiting_for_events)]).build();
    trial.services[0].command = ["node", "--max-old-space-size=128", "images.js"].map(str::to_owned).to_vec();
    detect(&trial)
}

#[test]
fn helper_threads_and_memory_show_a_full_heap() {
    let findings = node(209e6, 1.0);
    let [finding] = &findings[..] else { panic!("{findings:?}") };
    assert_eq!(finding.title(), "garbage collection takes 80 % of the CPU time of images");
    assert_eq!((finding.confidence, &finding.caveats[..]), (Confidence::Medium, &[Caveat::HelpersNotNamed][..]));
    assert!(finding.advice().starts_with("Give images a larger heap (`--max-old-space-size`"), "{}", finding.advice());
    assert_eq!(node(90e6, 1.0), [], "a heap with room");
    assert_eq!(node(209e6, 2.0), [], "the event loop waits");
}
