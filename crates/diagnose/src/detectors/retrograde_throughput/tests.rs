//! Tests of `retrograde-throughput`: evidence that must make it fire, and evidence that must not.

use narrows_model::finding::Evidence;
use narrows_model::run::{Verdict, WindowKind};
use narrows_model::series::names;
use narrows_testkit::operations::{operation, store_calls};
use narrows_testkit::trial::{Load, TrialBuilder};

use super::*;
use crate::thresholds::Thresholds;
use crate::words::InWords;

fn detect(trial: TrialBuilder) -> Vec<Finding> {
    crate::detect(&RetrogradeThroughput, &trial.build(), &Thresholds::default())
}

fn evidence(finding: &Finding) -> &evidence::RetrogradeThroughput {
    let Evidence::RetrogradeThroughput(evidence) = &finding.evidence else { panic!("{:?}", finding.evidence) };
    evidence
}

/// Ten seconds with a little noise and `vus` users, whose latency follows from `rate` by Little's law.
fn level(trial: TrialBuilder, vus: u32, rate: f64) -> TrialBuilder {
    let latency_ms = 1e3 * f64::from(vus) / rate;
    let noise = [1.0, 0.98, 1.02, 0.99, 1.01];
    trial.window(WindowKind::Steady, vus, (0..10).map(move |s| (rate * noise[s % 5], latency_ms)))
}

fn levels(rates: &[(u32, f64)]) -> TrialBuilder {
    let trial = TrialBuilder::new("a").warmup(5, Load { vus: 1, rate: 50.0, latency_ms: 20.0 });
    rates.iter().fold(trial, |trial, (vus, rate)| level(trial, *vus, *rate))
}

/// Gunther's law with a peak near 22 users.
fn lawful() -> Vec<(u32, f64)> {
    let law = |n: f64| 1000.0 * n / (1.0 + 0.02 * (n - 1.0) + 0.002 * n * (n - 1.0));
    [1, 2, 4, 8, 16, 32, 64].map(|vus| (vus, law(f64::from(vus)))).into()
}

#[test]
fn a_curve_with_a_peak_is_named_with_its_law() {
    let findings = detect(levels(&lawful()).service("shop", None));
    let [finding] = &findings[..] else { panic!("one finding, not {findings:?}") };
    assert_eq!(finding.confidence, Confidence::High, "{:?}", finding.reasons());
    assert!(
        finding.title().starts_with("throughput falls under more load, from 8,989/s at 16 users to"),
        "{}",
        finding.title()
    );
    assert!(finding.reasons().iter().any(|reason| reason.contains("best with 22.1 requests under way")), "{finding:?}");
    let law = evidence(finding).law.as_ref().unwrap();
    assert!((law.kappa - 0.002).abs() < 2e-4 && law.shows_a_peak(), "{law:?}");
    assert!((finding.cost_share - 0.3).abs() < 0.15, "{}", finding.cost_share);
    assert_eq!(finding.period.as_ref().unwrap().label, "“64 users”");
}

#[test]
fn what_grows_is_said() {
    let full = levels(&[(4, 100.0), (8, 120.0), (16, 80.0)]).service("shop", Some(1.0));
    let findings = detect(full.cpu("shop", 0, |second| if second < 25 { 0.6 } else { 0.99 }));
    assert_eq!(findings[0].resource, "shop");
    assert!(
        matches!(&evidence(&findings[0]).growing[..], [Growing::Cpu { service, .. }, Growing::Waiting] if service == "shop")
    );
    assert_eq!(findings[0].caveats, [Caveat::LoadOnlyGrew, Caveat::FewLevelsForScalabilityLaw { levels: 3 }]);
    assert!(
        findings[0].reasons()[1]
            .starts_with("shop uses 99 % of the CPU available to it, and each request costs it 12.4 ms of CPU"),
        "{:?}",
        findings[0].reasons()
    );
    assert_eq!(findings[0].confidence, Confidence::Medium);
    let mut counted = operation("shop", "GET /", 35, 80.0, 50.0);
    let refused = |second: u32| if second >= 25 { 40.0 } else { 0.0 };
    counted.calls = vec![store_calls("query", (0..35).map(|second| (100.0, refused(second), 100.0)))];
    let findings = detect(levels(&[(4, 100.0), (8, 120.0), (16, 80.0)]).operation(counted));
    assert!(findings[0].reasons()[1].contains("Rejections (status 429) by azure.cosmosdb grow from 0 % to 29 %"));
    assert_eq!(findings[0].resource, WHOLE);
}

#[test]
fn throughput_that_comes_back_is_proof() {
    let findings = detect(levels(&[(4, 100.0), (8, 120.0), (16, 80.0), (8, 118.0)]));
    assert_eq!(findings[0].confidence, Confidence::High);
    assert!(findings[0].reasons().iter().any(|reason| reason.contains("returned to 118/s at 8 users")));
}

#[test]
fn an_open_load_falls_too() {
    let open = |last: (f64, f64), dropped| {
        let at = |rate: f64, latency_ms| Load { vus: 4, rate, latency_ms };
        let trial = TrialBuilder::new("a").arrivals(10, 50.0, at(50.0, 20.0)).arrivals(10, 100.0, at(100.0, 20.0));
        detect(trial.arrivals(10, 200.0, at(last.0, last.1)).held_back(0, dropped))
    };
    let findings = open((70.0, 400.0), 0);
    assert!(findings[0].title().ends_with("from 100/s at 100/s to 70.0/s at 200/s"), "{}", findings[0].title());
    assert_eq!(open((70.0, 20.0), 130), [], "what was not sent is not lost by the system");
}

#[test]
fn what_only_looks_like_it_is_silent() {
    let falling = || levels(&[(4, 100.0), (8, 120.0), (16, 80.0)]);
    assert_eq!(detect(falling()).len(), 1);
    let noisy = |vus: u32, rate: f64| {
        (0..10).map(move |s| (rate * [1.4, 0.6, 1.5, 0.5, 1.0][s % 5], 1e3 * f64::from(vus) / rate))
    };
    let noise = [(4, 100.0), (8, 120.0), (16, 105.0)]
        .into_iter()
        .fold(TrialBuilder::new("a"), |trial, (vus, rate)| trial.window(WindowKind::Steady, vus, noisy(vus, rate)));
    let drift = [4, 8, 16].into_iter().zip(0_i32..).fold(TrialBuilder::new("a"), |trial, (vus, at)| {
        trial.window(WindowKind::Steady, vus, (0..10).map(move |s| (120.0 * 0.98_f64.powi(10 * at + s), 50.0)))
    });
    let start = falling().window(WindowKind::Steady, 32, (0..10).map(|s| (if s < 5 { 60.0 } else { 119.0 }, 300.0)));
    let start = start.build();
    for (name, trial) in [
        ("flat", levels(&[(4, 100.0), (8, 120.0), (16, 121.0), (32, 119.0)])),
        ("growing", levels(&[(4, 100.0), (8, 200.0), (16, 390.0)])),
        ("less than a tenth", levels(&[(4, 100.0), (8, 120.0), (16, 110.0)])),
        ("two levels", levels(&[(8, 120.0), (16, 80.0)])),
        ("noise", noise),
        ("a drift", drift),
        ("a load that falls and warms caches", levels(&[(16, 80.0), (8, 120.0), (4, 100.0)])),
        ("throughput that stays away", levels(&[(4, 100.0), (8, 120.0), (16, 80.0), (8, 82.0)])),
        ("a full generator", falling().busiest_thread(names::GENERATOR, 0, |_| 0.97)),
        ("a late generator", falling().lateness_ms(60.0)),
        ("an invalid trial", falling().verdict(Verdict::Invalid, "Late.")),
        ("a machine full of others", falling().host_cpu(|_| 1.0)),
        ("nothing", TrialBuilder::new("a")),
    ] {
        assert_eq!(detect(trial), [], "with {name}");
    }
    assert_eq!(crate::detect(&RetrogradeThroughput, &start, &Thresholds::default()), [], "with the start of a step");
}
