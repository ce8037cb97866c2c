//! Tests of `disk-bound`: evidence that must make it fire, and evidence that must not.

use narrows_model::finding::Evidence;
use narrows_model::series::{ThreadState, names};
use narrows_testkit::trial::{Load, TrialBuilder};

use super::*;
use crate::thresholds::Thresholds;
use crate::words::InWords;

/// A service with idle CPU under one user, then 16.
fn trial(rates: (f64, f64)) -> TrialBuilder {
    trial_on(0.2, rates)
}

/// The same on a machine with this share of its CPU in use.
fn trial_on(host_share: f64, rates: (f64, f64)) -> TrialBuilder {
    let load = |vus: u32, rate: f64| Load { vus, rate, latency_ms: 1e3 * f64::from(vus) / rate };
    let trial = TrialBuilder::new("a").service("shop", None).cpu("shop", 0, |_| 0.2).host_cpu(move |_| host_share);
    trial.steady(20, load(1, rates.0)).steady(20, load(16, rates.1))
}

fn detect(trial: TrialBuilder) -> Vec<Finding> {
    crate::detect(&DiskBound, &trial.build(), &Thresholds::default())
}

#[test]
fn requests_at_the_disk_are_named() {
    let findings = detect(trial((150.0, 160.0)).threads("shop", 0, &[(ThreadState::Disk, "", 12.0)]));
    let [finding] = &findings[..] else { panic!("{findings:?}") };
    assert_eq!(finding.title(), "shop: 12 of 16 requests wait for the disk");
    assert_eq!((finding.resource.as_str(), finding.confidence), ("shop", Confidence::Medium));
    assert!((finding.cost_share - 0.75).abs() < 0.01, "{}", finding.cost_share);
}

#[test]
fn requests_behind_one_writer_wait_for_the_disk_too() {
    let states = [(ThreadState::Disk, "", 0.95), (ThreadState::Lock, "", 14.0)];
    let findings = detect(trial((150.0, 160.0)).threads("shop", 0, &states));
    let Evidence::DiskBound(evidence) = &findings[0].evidence else { panic!("{findings:?}") };
    assert!(evidence.behind > 13.0, "{evidence:?}");
    assert!(findings[0].advice().contains("group commit"), "{}", findings[0].advice());
    let rare = [(ThreadState::Disk, "", 0.3), (ThreadState::Lock, "", 14.0)];
    assert_eq!(detect(trial((150.0, 160.0)).threads("shop", 0, &rare)), [], "the lock is held by something else");
}

/// Signs of syncs: share of the time with a task at the disk, bytes written per second, share of CPU time in the kernel; and
/// the share of the machine's CPU in use.
#[derive(Debug, Clone, Copy)]
struct Signs {
    host_share: f64,
    pressure: f64,
    written: f64,
    system_share: f64,
}

const SYNCS: Signs = Signs { host_share: 0.2, pressure: 0.4, written: 160.0 * 4096.0, system_share: 0.75 };

/// A service whose requests have no thread, with these signs.
fn writer(rates: (f64, f64), signs: Signs) -> TrialBuilder {
    let shop = ("shop", 0);
    let time = |mode: &'static str| [(names::CPU_MODE, mode)];
    let trial = trial_on(signs.host_share, rates).threads(
        "shop",
        0,
        &[(ThreadState::Lock, "", 3.0), (ThreadState::Disk, "", 0.1)],
    );
    trial
        .labelled_series(names::CPU_TIME, shop, &time("system"), move |_| 0.2 * signs.system_share)
        .labelled_series(names::CPU_TIME, shop, &time("user"), move |_| 0.2 * (1.0 - signs.system_share))
        .labelled_series(names::DISK_IO, shop, &[(names::DISK_DIRECTION, "write")], move |_| signs.written)
        .labelled_series(names::HOST_PRESSURE_STALLED, ("", 0), &[(names::PRESSURE_RESOURCE, "io")], move |_| {
            signs.pressure
        })
}

#[test]
fn syncs_on_a_fast_disk_are_named_without_threads_at_it() {
    let findings = detect(writer((150.0, 160.0), SYNCS));
    let [finding] = &findings[..] else { panic!("{findings:?}") };
    assert_eq!(finding.title(), "shop: requests wait while it syncs its writes to disk, 4.00 KiB for each response");
    assert_eq!(finding.confidence, Confidence::Medium);
    assert!(finding.cost_share > 0.9, "{}", finding.cost_share);
    let silent = |signs: Signs| assert_eq!(detect(writer((150.0, 160.0), signs)), [], "{signs:?}");
    silent(Signs { pressure: 0.1, ..SYNCS });
    silent(Signs { written: 160.0 * 200.0, ..SYNCS });
    silent(Signs { system_share: 0.3, ..SYNCS });
    assert_eq!(detect(writer((150.0, 2300.0), SYNCS)), [], "throughput follows the load");
}

#[test]
fn programs_beside_it_lengthen_the_time_between_syncs() {
    let beside = |pressure: f64| detect(writer((150.0, 160.0), Signs { host_share: 0.8, pressure, ..SYNCS }));
    assert_eq!(beside(0.15).len(), 1, "others use more than half of the CPU");
    assert_eq!(beside(0.04), [], "a disk that is hardly waited for");
}

#[test]
fn a_disk_that_holds_nothing_back_is_left_alone() {
    let at_disk = [(ThreadState::Disk, "", 12.0)];
    assert_eq!(detect(trial((150.0, 2300.0)).threads("shop", 0, &at_disk)), [], "throughput follows the load");
    assert_eq!(detect(trial((150.0, 160.0)).threads("shop", 0, &[(ThreadState::Disk, "", 2.0)])), [], "few requests");
    assert_eq!(detect(trial((150.0, 160.0))), [], "not sampled");
    assert_eq!(
        detect(trial((150.0, 160.0)).threads("shop", 0, &at_disk).service("db", None).cpu("db", 0, |_| 9.0)),
        []
    );
}

#[test]
fn a_single_user_waits_for_all_that_its_request_does() {
    let load = |vus, rate, latency_ms| Load { vus, rate, latency_ms };
    let with = |load, disk| {
        let trial = TrialBuilder::new("a").service("shop", None).cpu("shop", 0, |_| 0.4).host_cpu(|_| 0.3);
        detect(trial.steady(20, load).threads("shop", 0, &[(ThreadState::Disk, "", disk)]))
    };
    let findings = with(load(1, 2.0, 500.0), 0.45);
    let [finding] = &findings[..] else { panic!("{findings:?}") };
    assert_eq!(finding.title(), "shop: a request waits for the disk for 45 % of its time");
    assert_eq!(finding.confidence, Confidence::Low);
    assert_eq!(with(load(1, 2.0, 500.0), 0.2), [], "a small part");
    assert_eq!(with(load(1, 1.0, 500.0), 0.45), [], "the user thinks");
    assert_eq!(with(load(4, 8.0, 500.0), 1.8), [], "several users, and nothing shows that more would not be served");
}
