//! Tests of `not-steady`: evidence that must make it fire, and evidence that must not.

use narrows_model::finding::Evidence;
use narrows_model::run::WindowKind;
use narrows_testkit::trial::{Load, TrialBuilder};

use super::*;
use crate::thresholds::Thresholds;
use crate::words::InWords;

fn detect(trial: TrialBuilder) -> Vec<Finding> {
    crate::detect(&NotSteady, &trial.build(), &Thresholds::default())
}

/// A window of `seconds` with a rate (per second) and a latency (milliseconds) for each, and a little noise.
fn window(trial: TrialBuilder, seconds: usize, of: impl Fn(f64) -> (f64, f64)) -> TrialBuilder {
    let noise = [1.0, 0.97, 1.04, 0.99, 1.02, 0.98, 1.0];
    let each = (0..seconds).map(move |s| {
        let (rate, latency_ms) = of(s as f64);
        (rate * noise[s % 7], latency_ms * noise[(s * 3) % 7])
    });
    trial.window(WindowKind::Steady, 8, each.collect::<Vec<_>>())
}

fn one(seconds: usize, of: impl Fn(f64) -> (f64, f64)) -> Vec<Finding> {
    detect(window(TrialBuilder::new("a").warmup(5, Load { vus: 8, rate: 100.0, latency_ms: 80.0 }), seconds, of))
}

#[test]
fn a_trend_is_named_with_its_halves() {
    let findings = one(40, |s| (1000.0 * (1.0 - 0.01 * s), 80.0));
    let [finding] = &findings[..] else { panic!("one finding, not {findings:?}") };
    assert!(
        finding.title().starts_with("“8 users” is not steady: throughput falls by 22 % from"),
        "{}",
        finding.title()
    );
    assert_eq!((finding.confidence, finding.resource.as_str()), (Confidence::Medium, "experiment"));
    assert!(finding.reasons()[0].contains("from 905/s in the first half to 706/s"), "{:?}", finding.reasons());
    let both = one(40, |s| (1000.0, 50.0 + 5.0 * s));
    assert!(both[0].title().contains("mean latency rises by"), "{}", both[0].title());
    assert_eq!(both[0].confidence, Confidence::High, "it more than doubles over the whole trial");
}

#[test]
fn a_start_that_has_not_settled_is_named() {
    let findings = one(40, |s| (if s < 8.0 { 500.0 } else { 1000.0 }, 80.0));
    assert_eq!(findings[0].title(), "“8 users” begins too soon: its first 8 s are not like the rest");
    assert!(findings[0].advice().starts_with("Make the warm-up at least 8 s longer"));
}

#[test]
fn a_wave_is_named_where_the_window_holds_few() {
    let wave = |s: f64| (if s % 15.0 < 5.0 { 500.0 } else { 1000.0 }, 80.0);
    let findings = one(60, wave);
    assert!(findings[0].title().ends_with("throughput goes up and down every 15 s"), "{}", findings[0].title());
    assert_eq!(one(180, wave), [], "twelve waves are enough");
    let hourly = one(28_800, |s| (if s % 7_200.0 < 2_400.0 { 500.0 } else { 1000.0 }, 80.0));
    assert!(hourly[0].title().ends_with("throughput goes up and down every 7200 s"), "{}", hourly[0].title());
}

#[test]
fn a_load_beyond_the_capacity_is_reported_as_that() {
    let mut trial = window(TrialBuilder::new("a"), 40, |s| (100.0, 50.0 + 100.0 * s)).build();
    trial.windows[0].rate = Some(130.0);
    let findings = crate::detect(&NotSteady, &trial, &Thresholds::default());
    assert_eq!(findings[0].confidence, Confidence::Medium);
    assert!(findings[0].reasons()[1].contains("130/s offered, 100/s completed"), "{:?}", findings[0].reasons());
    assert!(findings[0].advice().starts_with("Read its throughput"));
}

#[test]
fn steady_windows_and_unknown_ones_are_silent() {
    let mut seed = 7_u32;
    let noise: Vec<f64> = (0..200)
        .map(|_| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            0.7 + 0.6 * f64::from(seed >> 16) / 65536.0
        })
        .collect();
    let noisy = |s: f64| (1000.0 * noise[s as usize], 80.0 * noise[199 - s as usize]);
    let steps = (1..=11).fold(TrialBuilder::new("a"), |trial, step| {
        let rate = 90.0 * f64::from(step);
        window(trial, 40, move |s| (rate * (1.0 + 0.002 * s), 80.0))
    });
    for (name, findings) in [
        ("noise", one(40, |s| (1000.0, 80.0 + 0.01 * s))),
        ("much noise", one(200, noisy)),
        ("a small trend", one(40, |s| (1000.0 * (1.0 - 0.004 * s), 80.0))),
        ("one peak", one(40, |s| (1000.0, if s == 10.0 { 900.0 } else { 80.0 }))),
        ("a window too short to tell", one(19, |s| (1000.0 * (1.0 - 0.03 * s), 80.0))),
        ("steps", detect(steps)),
        ("a ramp", detect(TrialBuilder::new("a").window(WindowKind::Ramp, 8, (1..60).map(|s| (f64::from(s), 5.0))))),
        ("no responses", one(40, |_| (0.0, 0.0))),
        ("nothing", detect(TrialBuilder::new("a"))),
    ] {
        assert_eq!(findings, [], "with {name}");
    }
}

/// Ten minutes with a given CPU steal and a given latency in milliseconds at each second.
fn stolen(steal: impl Fn(f64) -> f64 + Copy + 'static, latency_ms: impl Fn(f64) -> f64) -> Vec<Finding> {
    use narrows_model::series::names;

    let trial = window(TrialBuilder::new("a"), 600, |s| (500.0, latency_ms(s)));
    detect(trial.series(names::HOST_CPU_STEAL, "", 0, move |second| steal(f64::from(second))))
}

#[test]
fn what_the_hypervisor_takes_is_named_and_the_rest_is_judged() {
    let steal = |s: f64| if s < 300.0 { 0.04 } else { 0.10 + 0.04 * (s - 300.0) / 300.0 };
    let findings = stolen(steal, move |s| 0.409 + 4.125 * (steal(s) - 0.04));
    let [finding] = &findings[..] else { panic!("one finding, not {findings:?}") };
    assert_eq!(finding.title(), "“8 users” was disturbed by the hypervisor: mean latency rises by 81 %");
    assert_eq!(finding.confidence, Confidence::Medium, "half of it is free and steady: {:?}", finding.reasons());
    assert!(
        finding.reasons().iter().any(|reason| reason.contains("took 4.0 % to 14 % of the machine's CPU")),
        "{finding:?}"
    );
    assert!(
        finding
            .reasons()
            .iter()
            .any(|reason| reason.contains("In the 300 s with less of it mean latency is steady at"))
    );
    assert!(!finding.advice().contains("caches") && finding.advice().contains("calm part"), "{}", finding.advice());
}

#[test]
fn figures_are_unreliable_when_no_part_is_free() {
    let findings = stolen(|s| 0.30 * s / 600.0, |s| 0.4 + 1.2 * s / 600.0);
    assert_eq!(findings[0].confidence, Confidence::High, "{:?}", findings[0].reasons());
    assert!(findings[0].title().contains("was disturbed by the hypervisor"), "{}", findings[0].title());
    assert!(findings[0].reasons().iter().any(|reason| reason.starts_with("No part of")), "{:?}", findings[0].reasons());
}

#[test]
fn a_system_that_changes_by_itself_is_not_excused() {
    let growing = |s: f64| 0.4 + 0.8 * s / 600.0;
    for (name, findings) in [
        ("no steal", stolen(|_| 0.0, growing)),
        ("constant steal", stolen(|_| 0.10, growing)),
        ("little steal that grows", stolen(|s| 0.03 * s / 600.0, growing)),
        ("steal that comes and goes", stolen(|s| if s % 120.0 < 60.0 { 0.02 } else { 0.12 }, growing)),
        ("steal at the end of a growth that began before", stolen(|s| if s < 540.0 { 0.01 } else { 0.15 }, growing)),
    ] {
        assert!(findings[0].title().contains("is not steady"), "with {name}: {}", findings[0].title());
        assert_eq!(findings[0].confidence, Confidence::High, "with {name}");
    }
}

#[test]
fn other_programs_and_the_generator_are_named_too() {
    let slow = |s: f64| if s < 60.0 { 2.0 } else { 4.0 };
    let steps = || window(TrialBuilder::new("a").cores(2), 120, |s| (500.0, slow(s)));
    let crowded = detect(steps().host_cpu(|second| if second < 60 { 0.2 } else { 0.6 }));
    assert!(crowded[0].title().contains("was disturbed by other programs"), "{}", crowded[0].title());
    let mut late = steps().build();
    for (row, at) in late.seconds.iter_mut().zip(0..) {
        row.lateness.record_n(if at < 60 { 10_000 } else { 1_500_000 }, row.sent);
    }
    let late = crate::detect(&NotSteady, &late, &Thresholds::default());
    assert!(late[0].title().contains("was disturbed by the load generator"), "{}", late[0].title());
    assert!(late[0].reasons().iter().any(|reason| reason.contains("sent requests 10.0 µs to 755 µs late")), "{late:?}");
}

/// Three levels of ten seconds with this CPU per request, milliseconds, by second.
fn levels(cost_ms: fn(f64) -> f64) -> TrialBuilder {
    let rates = [20.0, 60.0, 100.0, 200.0];
    let trial = TrialBuilder::new("a").service("shop", None);
    let trial = rates.iter().enumerate().fold(trial, |trial, (at, rate)| {
        trial.steady(10, Load { vus: 1 + 4 * at as u32, rate: *rate, latency_ms: 20.0 })
    });
    trial.cpu("shop", 0, move |second| rates[second as usize / 10] * cost_ms(f64::from(second)) / 1e3)
}

fn warm_up_of(trial: TrialBuilder) -> Option<evidence::WarmUp> {
    let findings = crate::detect(&NotSteady, &trial.build(), &Thresholds::default());
    let [finding] = &findings[..] else { return None };
    let Evidence::NotSteady(evidence) = &finding.evidence else { return None };
    evidence.warm_up.clone()
}

#[test]
fn a_service_that_becomes_cheaper_from_level_to_level_is_not_warm() {
    let warming = |second: f64| 6.0 + 40.0 * (-second / 5.0).exp();
    let warm_up = warm_up_of(levels(warming)).unwrap();
    assert_eq!(warm_up.warm_from.as_deref(), Some("“9 users”"));
    assert_eq!(warm_up.length_ns, 20_000_000_000);
    assert!(warm_up.fall() > 0.7, "{warm_up:?}");
    let to_the_end = warm_up_of(levels(|second| 40.0 - 0.8 * second)).unwrap();
    assert_eq!(to_the_end.warm_from, None);
    assert_eq!(warm_up_of(levels(|_| 10.0)), None, "the same at each level");
    let background = |second: f64| 5.0 + 400.0 / [20.0, 60.0, 100.0, 200.0][second as usize / 10];
    assert_eq!(warm_up_of(levels(background)), None, "CPU without requests");
}
