//! Tests of `memory-growth`: evidence that must make it fire, and evidence that must not.

use narrows_model::evidence::TrialEvidence;
use narrows_model::finding::Evidence;
use narrows_model::series::{Series, SeriesKey, names};
use narrows_testkit::TRIAL_START_NS;
use narrows_testkit::trial::{Load, TrialBuilder};

use super::*;
use crate::thresholds::Thresholds;
use crate::words::InWords;

const MIB: f64 = 1048576.0;

fn load(vus: u32, rate: f64) -> Load {
    Load { vus, rate, latency_ms: 10.0 }
}

/// Ten seconds of warm-up and two minutes of a shop with 256 MiB. `memory` gives its resident memory in MiB by second.
fn shop(memory: impl Fn(f64) -> f64 + 'static) -> TrialBuilder {
    let trial = TrialBuilder::new("a").service("shop", None).warmup(10, load(4, 100.0)).steady(120, load(4, 100.0));
    capped(trial).series(names::MEMORY_BYTES, "shop", 0, move |s| memory(f64::from(s)) * MIB)
}

fn capped(trial: TrialBuilder) -> TrialBuilder {
    trial.series(names::CGROUP_MEMORY_LIMIT, "shop", 0, |_| 256.0 * MIB)
}

fn detect(trial: TrialBuilder) -> Vec<Finding> {
    detect_in(&trial.build())
}

fn detect_in(trial: &TrialEvidence) -> Vec<Finding> {
    crate::detect(&MemoryGrowth, trial, &Thresholds::default())
}

fn read(findings: &[Finding]) -> &evidence::MemoryGrowth {
    let [Finding { evidence: Evidence::MemoryGrowth(evidence), .. }] = findings else { panic!("{findings:?}") };
    evidence
}

#[test]
fn memory_that_grows_by_the_request_is_named_with_the_time_that_is_left() {
    let found = detect(shop(|s| 70.0 + s));
    let growth = read(&found).growth.clone().unwrap();
    assert_eq!(found[0].title(), "the memory of shop grows by 1.00 MiB/s and reaches its limit of 256 MiB in 57.0 s");
    assert_eq!((growth.start_bytes, growth.end_bytes), (80.0 * MIB, 199.0 * MIB));
    assert_eq!((growth.bytes_per_second, growth.bytes_per_request), (MIB, Some(MIB / 100.0)));
    assert!((found[0].cost_share - 199.0 / 256.0).abs() < 1e-9, "{}", found[0].cost_share);
    assert_eq!((found[0].confidence, &found[0].caveats[..]), (Confidence::Medium, &[Caveat::GrowthMayLevelOff][..]));
    assert_eq!(
        found[0].reasons()[0],
        "In “4 users” (4 users), it goes from 80.0 MiB to 199 MiB within 2 min 0 s, 78 % of its limit: 1.00 MiB/s, \
         10.2 KiB for each request, and each quarter of that time begins above the one before."
    );
}

#[test]
fn a_small_saw_tooth_does_not_hide_growth() {
    let found = detect(shop(|s| 70.0 + s + 20.0 * (s % 7.0) / 7.0));
    let per_second = read(&found).growth.as_ref().unwrap().bytes_per_second;
    assert!((0.9..1.1).contains(&(per_second / MIB)), "{per_second}");
}

#[test]
fn a_heap_that_grows_with_it_makes_it_sure() {
    let with = |grows: f64| {
        let heap = move |s: u32| (20.0 + grows * f64::from(s)) * MIB;
        detect(shop(|s| 70.0 + s).series("jvm.memory.used_after_last_gc", "shop", 0, heap))
    };
    assert_eq!((with(0.9)[0].confidence, &with(0.9)[0].caveats[..]), (Confidence::High, &[][..]));
    assert_eq!(with(0.1), [], "a heap that is not collected yet");
}

#[test]
fn a_cap_that_was_set_and_the_machine_are_limits_too() {
    let grows = |trial: TrialBuilder| trial.series(names::MEMORY_BYTES, "shop", 0, |s| (70.0 + f64::from(s)) * MIB);
    let trial = || grows(TrialBuilder::new("a").service("shop", None).steady(120, load(4, 100.0)));
    let mut capped = trial().build();
    capped.services[0].memory_limit_bytes = Some(512 << 20);
    assert_eq!(read(&detect_in(&capped)).limit, Some(Limit { of: LimitOf::Replica, bytes: 512.0 * MIB }));
    let left = trial().series(names::HOST_MEMORY_AVAILABLE, "", 0, |s| (930.0 - f64::from(s)) * MIB);
    assert_eq!(read(&detect(left)).limit, Some(Limit { of: LimitOf::Machine, bytes: 1000.0 * MIB }));
    assert_eq!(detect(trial()), [], "no limit is known");
}

#[test]
fn the_fullest_replica_speaks_for_all() {
    let trial = shop(|s| 70.0 + s).service("shop", None).service("shop", None);
    let trial = trial.series(names::CGROUP_MEMORY_LIMIT, "shop", 1, |_| 256.0 * MIB);
    let found = detect(trial.series(names::MEMORY_BYTES, "shop", 1, |s| (80.0 + f64::from(s)) * MIB));
    let evidence = read(&found);
    assert_eq!((evidence.replica, evidence.affected_replicas, evidence.replicas), (1, 2, 3));
    assert!(found[0].title().starts_with("the memory of shop[1] grows "), "{}", found[0].title());
}

/// Notes a kill at each of these seconds.
fn noted(mut trial: TrialEvidence, seconds: &[i64]) -> TrialEvidence {
    let key = SeriesKey { name: names::REPLICA_OUT_OF_MEMORY.into(), service: "shop".into(), ..SeriesKey::default() };
    let at = |second: &i64| Point { time_ns: TRIAL_START_NS + second * 1_000_000_000, value: 1.0 };
    trial.series.push(Series { key, points: seconds.iter().map(at).collect() });
    trial
}

#[test]
fn a_kill_is_named_whatever_the_readings_say() {
    let found = detect_in(&noted(shop(|s| 100.0 + s % 60.0 * 2.5).build(), &[70]));
    assert_eq!(found[0].title(), "shop was killed when its memory reached its limit of 256 MiB");
    assert_eq!(
        found[0].reasons()[0],
        "The kernel killed a process of shop for lack of memory 1 min 10 s into the load. Its highest reading is 248 MiB."
    );
    assert_eq!((found[0].confidence, read(&found).growth.is_none()), (Confidence::High, true));
    let sampled =
        shop(|_| 100.0).series(names::CGROUP_MEMORY_OOM_KILLS, "shop", 0, |s| f64::from(u8::from(s % 50 == 49)));
    let found = detect_in(&noted(sampled.build(), &[70]));
    assert_eq!(found[0].title(), "shop was killed 2 times when its memory reached its limit of 256 MiB");
    let unknown = TrialBuilder::new("a").service("shop", None).steady(30, load(4, 100.0)).build();
    let found = detect_in(&noted(unknown, &[20]));
    assert_eq!(
        (found[0].title().as_str(), found[0].cost_share),
        ("shop was killed when its memory reached its limit", 1.0)
    );
}

#[test]
fn memory_that_is_not_its_own_or_levels_off_is_none() {
    let open = |rate: f64| {
        let trial = capped(TrialBuilder::new("a").service("shop", None).arrivals(120, 100.0, load(4, rate)));
        trial.series(names::MEMORY_BYTES, "shop", 0, |s| (70.0 + f64::from(s)) * MIB)
    };
    assert_eq!(detect(open(99.0)).len(), 1);
    let steps = |memory: [f64; 3]| {
        let trial = TrialBuilder::new("a").service("shop", None).steady(60, load(2, 50.0)).steady(60, load(4, 100.0));
        let trial = capped(trial.steady(60, load(8, 200.0)));
        trial.series(names::MEMORY_BYTES, "shop", 0, move |s| memory[s as usize / 60] * MIB)
    };
    let short = TrialBuilder::new("a").service("shop", None).steady(30, load(2, 50.0)).steady(30, load(4, 100.0));
    let ramp = (0..120).map(|s| (f64::from(s), 10.0));
    let ramp = TrialBuilder::new("a").service("shop", None).window(narrows_model::run::WindowKind::Ramp, 40, ramp);
    let grows =
        |trial: TrialBuilder| capped(trial).series(names::MEMORY_BYTES, "shop", 0, |s| (70.0 + f64::from(s)) * MIB);
    let database = TrialBuilder::new("a").service("postgres", None).steady(120, load(4, 100.0));
    let database = database.series(names::CGROUP_MEMORY_LIMIT, "postgres", 0, |_| 256.0 * MIB);
    let cases = [
        ("a flat one", shop(|_| 200.0)),
        ("one that fills a cache", shop(|s| 70.0 + 120.0 * (1.0 - (-s / 60.0).exp()))),
        ("a cache that is filled and then full", shop(|s| 70.0 + s.min(90.0))),
        ("a saw-tooth", shop(|s| 70.0 + 4.0 * (s % 25.0))),
        ("one long tooth", shop(|s| 70.0 + 2.0 * (s % 80.0))),
        ("noise", shop(|s| 70.0 + (s * 37.0) % 11.0)),
        ("little growth", shop(|s| 70.0 + 0.05 * s)),
        ("one that shrinks", shop(|s| 250.0 - s)),
        ("steps of users", steps([60.0, 100.0, 180.0])),
        ("a short trial", grows(short)),
        ("a ramp", grows(ramp)),
        ("requests that queue", open(70.0)),
        ("shared pages", shop(|s| 70.0 + s).series(names::MEMORY_PSS_BYTES, "shop", 0, |_| 60.0 * MIB)),
        (
            "few readings of the shared pages",
            shop(|s| 70.0 + s)
                .series(names::MEMORY_PSS_BYTES, "shop", 0, |s| if s % 20 == 0 { 60.0 * MIB } else { f64::NAN }),
        ),
        ("the page cache", shop(|_| 70.0).series(names::CGROUP_MEMORY_USAGE, "shop", 0, |s| f64::from(s) * 2.0 * MIB)),
        ("a database", database.series(names::MEMORY_BYTES, "postgres", 0, |s| (70.0 + f64::from(s)) * MIB)),
        ("no process killed", shop(|_| 70.0).series(names::CGROUP_MEMORY_OOM_KILLS, "shop", 0, |_| 0.0)),
        (
            "a kill before the load",
            shop(|_| 70.0).series(names::CGROUP_MEMORY_OOM_KILLS, "shop", 0, |s| f64::from(u8::from(s == 5))),
        ),
        ("no readings", capped(TrialBuilder::new("a").service("shop", None).steady(120, load(4, 100.0)))),
        ("no windows", TrialBuilder::new("a").service("shop", None)),
    ];
    for (name, trial) in cases {
        assert_eq!(detect(trial), [], "with {name}");
    }
}

#[test]
fn readings_that_are_no_numbers_are_passed_over() {
    for bad in [f64::NAN, f64::INFINITY, -1.0, 0.0] {
        assert_eq!(detect(shop(move |_| bad)), [], "{bad}");
        let limit = TrialBuilder::new("a").service("shop", None).steady(120, load(4, 100.0));
        let limit = limit.series(names::CGROUP_MEMORY_LIMIT, "shop", 0, move |_| bad);
        assert_eq!(detect(limit.series(names::MEMORY_BYTES, "shop", 0, |s| f64::from(s) * MIB)), [], "{bad}");
    }
}

/// A shop of 256 MiB whose control group is full from a second on, with the time in which tasks wait for memory.
fn short(full_from: u32, seconds: u32, waiting: f64) -> TrialBuilder {
    let is_full = move |s: u32| (full_from..full_from + seconds).contains(&s);
    let memory = [(names::PRESSURE_RESOURCE, "memory")];
    shop(|_| 200.0)
        .series(names::CGROUP_MEMORY_USAGE, "shop", 0, move |s| if is_full(s) { 255.0 * MIB } else { 190.0 * MIB })
        .labelled_series(
            names::HOST_PRESSURE_STALLED,
            ("", 0),
            &memory,
            move |s| if is_full(s) { waiting } else { 0.0 },
        )
        .labelled_series(names::DISK_IO, ("shop", 0), &[(names::DISK_DIRECTION, "read")], |_| 80.0 * MIB)
}

#[test]
fn a_service_that_hangs_at_its_limit_is_named() {
    let found = detect(short(60, 31, 0.7));
    assert_eq!(found[0].title(), "shop is short of memory: it is at its limit of 256 MiB for 30.0 s");
    assert_eq!((found[0].confidence, found[0].role), (Confidence::High, Role::InTheWay));
    assert_eq!(
        found[0].reasons(),
        [
            "At the limit for 30.0 s, a task waits for memory or for a page of it 70 % of the time, and shop reads 80.0 MiB/s \
          from disks: pages that it needs and that have no room."
        ]
    );
    assert_eq!(detect(short(60, 31, 0.05)), [], "the page cache fills the control group");
    assert_eq!(detect(short(60, 3, 0.7)), [], "for a moment");
    let disk = [(names::PRESSURE_RESOURCE, "io")];
    let paging = |resident: f64| {
        let trial = short(60, 31, 0.05).labelled_series(names::HOST_PRESSURE_STALLED, ("", 0), &disk, |_| 0.4);
        let mut trial = trial.build();
        let is_resident = |series: &&mut Series| series.key.name == names::MEMORY_BYTES;
        let points = trial.series.iter_mut().filter(is_resident).flat_map(|series| &mut series.points);
        points.for_each(|point| point.value = resident * MIB);
        detect_in(&trial)
    };
    assert!(read(&paging(250.0)).shortage.is_some_and(|shortage| (shortage.waiting - 0.4).abs() < 1e-9));
    assert_eq!(paging(100.0), [], "files that it reads and does not map");
}

#[test]
fn fast_growth_shows_in_less_than_a_minute() {
    let brief = |command: &str, memory: fn(f64) -> f64| {
        let trial = TrialBuilder::new("a").service("shop", None).steady(30, load(4, 100.0));
        let trial = trial.series(names::MEMORY_BYTES, "shop", 0, move |s| memory(f64::from(s)) * MIB);
        let mut trial = trial.series(names::HOST_MEMORY_AVAILABLE, "", 0, |_| 20_000.0 * MIB).build();
        trial.services[0].command = vec![command.to_owned()];
        detect_in(&trial)
    };
    let found = brief("build/shop", |s| 100.0 + 20.0 * s);
    assert_eq!(found[0].confidence, Confidence::Low);
    assert!(found[0].title().starts_with("the memory of shop grows by 19.6 MiB/s and reaches"), "{}", found[0].title());
    assert_eq!(brief("java", |s| 100.0 + 20.0 * s), [], "its heap may not have been collected");
    assert_eq!(brief("build/shop", |s| 1000.0 + 20.0 * s), [], "less than twice as much");
    assert_eq!(brief("build/shop", |s| 10.0 + s), [], "hours are left");
}
