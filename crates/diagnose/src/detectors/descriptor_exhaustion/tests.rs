//! Tests of `descriptor-exhaustion`: evidence that must make it fire, and evidence that must not.

use narrows_model::finding::{Caveat, Confidence, Evidence, Finding, Role};
use narrows_model::series::names;
use narrows_testkit::spans::{client, server};
use narrows_testkit::trial::{Load, TrialBuilder};

use super::*;
use crate::exemplars::EXEMPLARS_MAX;
use crate::thresholds::Thresholds;
use crate::words::InWords;

const LOAD: Load = Load { vus: 8, rate: 80.0, latency_ms: 100.0 };

fn trial(seconds: usize) -> TrialBuilder {
    TrialBuilder::new("a").service("shop", None).steady(seconds, LOAD)
}

/// Open descriptors as a share of 1,000.
fn used(trial: TrialBuilder, share: impl Fn(u32) -> f64 + 'static) -> TrialBuilder {
    trial.series(names::DESCRIPTORS_LIMIT, "shop", 0, |_| 1000.0).series(
        names::DESCRIPTORS_UTILIZATION,
        "shop",
        0,
        share,
    )
}

fn failing(trial: TrialBuilder, timeouts: u64) -> narrows_model::evidence::TrialEvidence {
    let mut evidence = trial.build();
    evidence.seconds.iter_mut().for_each(|row| row.errors.timeout = timeouts);
    evidence
}

/// Requests of which `failed` in ten fail with this text.
fn requests(trial: TrialBuilder, failed: u32, text: &'static str) -> TrialBuilder {
    let request = move |n: u32| {
        let call = client("GET").at(1.0, 5.0);
        let is_failed = n % 10 < failed;
        let call = if is_failed { call.failed_with(text) } else { call };
        server("shop", "GET /").at(0.0, 80.0).child(call).trace(n)
    };
    trial.traces((0..100).map(request))
}

fn detect(trial: TrialBuilder) -> Vec<Finding> {
    crate::detect(&DescriptorExhaustion, &trial.build(), &Thresholds::default())
}

fn evidence_of(finding: &Finding) -> &evidence::DescriptorExhaustion {
    let Evidence::DescriptorExhaustion(evidence) = &finding.evidence else { panic!("{finding:?}") };
    evidence
}

#[test]
fn errors_that_say_so_and_readings_at_the_limit_are_sure() {
    let findings = detect(requests(used(trial(20), |_| 1.0), 2, "dial tcp: socket: too many open files"));
    let evidence = evidence_of(&findings[0]);
    assert_eq!(evidence.descriptors, Some(evidence::Descriptors { open: 1000.0, limit: 1000.0 }));
    let failures = evidence.failures.as_ref().unwrap();
    assert_eq!((failures.name.as_deref(), failures.traces), (Some("too many open files"), 20));
    assert!((findings[0].cost_share - 0.2).abs() < 0.01, "{findings:?}");
    assert_eq!((findings[0].confidence, findings[0].exemplars.len()), (Confidence::High, EXEMPLARS_MAX));
    assert_eq!(findings[0].title(), "shop has no descriptor left (1,000 of 1,000): 20 % of requests fail");
}

#[test]
fn errors_alone_are_less_sure() {
    let findings = detect(requests(trial(20), 1, "EMFILE: too many open files, open '/x'"));
    assert_eq!(findings[0].confidence, Confidence::Medium);
    assert_eq!(evidence_of(&findings[0]).descriptors, None);
}

#[test]
fn requests_that_time_out_at_the_limit_are_explained_by_it() {
    let findings =
        crate::detect(&DescriptorExhaustion, &failing(used(trial(20), |_| 0.99), 20), &Thresholds::default());
    let failures = evidence_of(&findings[0]).failures.as_ref().unwrap();
    assert!((failures.share - 0.2).abs() < 0.01 && failures.name.is_none(), "{findings:?}");
    assert_eq!(findings[0].confidence, Confidence::Medium);
    let far = crate::detect(&DescriptorExhaustion, &failing(used(trial(20), |_| 0.9), 20), &Thresholds::default());
    assert_eq!(far, [], "not at the limit");
}

#[test]
fn steady_growth_is_a_forecast() {
    let trial = || used(trial(80), |s| 0.1 + 0.002 * f64::from(s));
    let findings = detect(trial());
    let growth = evidence_of(&findings[0]).growth.clone().unwrap();
    assert!((growth.per_second - 2.0).abs() < 0.2, "{growth:?}");
    // From 258 to 1,000.
    assert!((growth.until_limit_ns / 1e9 - 371.0).abs() < 40.0, "{growth:?}");
    assert_eq!(findings[0].caveats, [Caveat::GrowthMayLevelOff]);
    let ranked = crate::diagnose(&trial().build(), &Thresholds::default());
    let of_kind: Vec<Role> =
        ranked.iter().filter(|one| one.kind() == FindingKind::DescriptorExhaustion).map(|one| one.role).collect();
    assert_eq!(of_kind, [Role::NarrowPlace], "nothing else is found");
    let sure = crate::diagnose(&trial().cpu("shop", 0, |_| 4.0).build(), &Thresholds::default());
    let roles: Vec<(FindingKind, Role)> = sure.iter().map(|one| (one.kind(), one.role)).collect();
    let expected =
        [(FindingKind::CpuSaturation, Role::NarrowPlace), (FindingKind::DescriptorExhaustion, Role::CostsMore)];
    assert_eq!(roles, expected, "nothing waits for it yet");
}

#[test]
fn what_is_full_or_fails_by_itself_is_left_alone() {
    assert_eq!(detect(used(trial(80), |_| 0.99)), [], "a cache that is sized by the limit");
    assert_eq!(
        detect(used(trial(80), |s| if s < 20 { 0.3 + 0.01 * f64::from(s) } else { 0.5 })),
        [],
        "a pool that fills"
    );
    assert_eq!(detect(used(trial(40), |s| 0.1 + 0.002 * f64::from(s))), [], "too short");
    assert_eq!(detect(used(trial(80), |s| 0.1 + 0.0001 * f64::from(s))), [], "too little");
    assert_eq!(detect(requests(trial(20), 2, "connection refused")), [], "another error");
    let one = server("shop", "GET /").at(0.0, 80.0).child(client("GET").failed_with("too many open files"));
    let rare =
        trial(20).traces((1..200).map(|n| server("shop", "GET /").at(0.0, 80.0).trace(n))).traces([one.trace(0)]);
    assert_eq!(detect(rare), [], "one in two hundred requests");
}
