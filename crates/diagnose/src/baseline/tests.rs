//! Summaries of runs, and what a check says of runs that are equal, worse, or of something else.

use narrows_model::caveat::ComparisonCaveat;
use narrows_model::comparison::Outcome;
use narrows_model::evidence::TrialEvidence;
use narrows_model::finding::{Finding, FindingKind};
use narrows_model::published::Notes;
use narrows_testkit::operations::operation;
use narrows_testkit::trial::{Load, TrialBuilder, run_of_trials};

use super::*;
use crate::conclude;
use crate::proof::MARGIN;
use crate::stats::normal::Normal;
use crate::words::InWords;
use crate::words::comparison_caveat;
use narrows_model::baseline::{Check, Grade, Measure};
use narrows_model::diff::Fate;

/// Latency in milliseconds, and how much the operation takes.
fn trial(variant: &str, repetition: u32, latency_ms: f64) -> TrialEvidence {
    let load = Load { vus: 8, rate: 8000.0 / latency_ms, latency_ms };
    let orders = operation("orders", "GET /orders", 100, 20.0, latency_ms * 0.9);
    TrialBuilder::new(variant).repetition(repetition).steady(5, load).operation(orders).build()
}

fn outcome(trials: impl IntoIterator<Item = TrialEvidence>) -> Outcome {
    let run = run_of_trials(trials);
    let objectives = vec![Vec::new(); run.trials.len()];
    conclude(run, objectives, Notes::default(), &Thresholds::default())
}

/// Five trials of a variant whose latency differs from trial to trial by so much.
fn run(seed: u64, latency_ms: f64, noise: f64) -> Summary {
    let mut normal = Normal::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let trials = (1..=5).map(|at| trial("a", at, latency_ms * (noise * normal.draw()).exp()));
    summary(&outcome(trials), &Thresholds::default()).unwrap()
}

fn checked(before: &Summary, now: &Summary) -> Check {
    check(&before.baseline, now, ("now", MARGIN), Accepted::default()).unwrap()
}

fn found(kind: FindingKind, operation: &str) -> Finding {
    let mut finding = Finding::new(kind, 1);
    finding.resource = "orders".into();
    finding.operation = Some(operation.into());
    finding
}

#[test]
fn a_baseline_holds_figures_with_their_spread_and_nothing_of_the_clock() {
    let one = run(1, 10.0, 0.05);
    let variant = &one.baseline.variants[0];
    assert_eq!((variant.variant.as_str(), variant.trials), ("a", 5));
    let mean = variant.figures.iter().find(|figure| figure.quantity == Quantity::Mean).unwrap();
    assert!((9e6..11e6).contains(&mean.value) && mean.spread.is_some_and(|spread| (0.01..0.1).contains(&spread)));
    assert_eq!(variant.operations.len(), 1);
    assert_eq!(
        variant.figures.iter().filter(|figure| figure.quantity == Quantity::Cpu).count(),
        0,
        "it was not sampled"
    );
    assert_eq!(one.baseline, run(1, 10.0, 0.05).baseline);
}

#[test]
fn figures_are_rounded_to_significant_digits() {
    for (value, digits, expected) in
        [(4_552_123.0, 4, 4_552_000.0), (0.012_345, 2, 0.012), (99.996, 4, 100.0), (0.0, 4, 0.0), (-1.234_5, 3, -1.23)]
    {
        assert_eq!(rounded(value, digits), expected, "{value}");
    }
}

#[test]
fn equal_runs_are_not_worse() {
    let worse = (0..40).filter(|seed| checked(&run(2 * seed, 10.0, 0.08), &run(2 * seed + 1, 10.0, 0.08)).is_worse());
    let worse = worse.count();
    assert!(worse <= 2, "{worse} of 40");
}

#[test]
fn a_run_that_is_slower_is_worse_and_one_that_is_faster_is_better() {
    let before = run(1, 10.0, 0.03);
    let slower = checked(&before, &run(2, 15.0, 0.03));
    assert!(slower.is_worse());
    let worse: Vec<&Measure> = slower.variants[0].worse().map(|figure| &figure.measure).collect();
    assert!(worse.contains(&&Measure::Load { quantity: Quantity::Mean }), "{worse:?}");
    let of_operation = Measure::Operation { service: "orders".into(), operation: "GET /orders".into() };
    assert!(
        worse.contains(&&of_operation) && worse.contains(&&Measure::Load { quantity: Quantity::Rate }),
        "{worse:?}"
    );
    assert!(slower.sentence.contains("is worse than its baseline: throughput of a −"), "{}", slower.sentence);
    let faster = checked(&before, &run(3, 6.0, 0.03));
    assert!(
        !faster.is_worse() && faster.variants[0].figures[0].grade == Grade::Better,
        "{:?}",
        faster.variants[0].figures
    );
}

#[test]
fn more_failed_requests_are_worse() {
    let before = run(1, 10.0, 0.03);
    let mut now = run(2, 10.0, 0.03);
    now.baseline.variants[0].failed = now.baseline.variants[0].requests / 20;
    let check = checked(&before, &now);
    let errors = check.variants[0].worse().find(|figure| figure.measure == Measure::Errors);
    assert!(errors.is_some_and(|errors| (errors.after - 0.05).abs() < 0.001), "{:?}", check.variants[0].figures);
    assert!(check.sentence.contains("of the requests of a fail instead of 0 %"), "{}", check.sentence);
    now.baseline.variants[0].failed = now.baseline.variants[0].requests / 500;
    assert!(!checked(&before, &now).is_worse(), "a share of 0.2 % is too little to fail");
}

#[test]
fn findings_count_as_new_when_most_trials_have_them() {
    let with = |findings: [&[Finding]; 3]| {
        let mut outcome = outcome((1..=3).map(|at| trial("a", at, 10.0)));
        outcome.findings = findings.iter().map(|of_trial| of_trial.to_vec()).collect();
        summary(&outcome, &Thresholds::default()).unwrap()
    };
    let slow = [found(FindingKind::SlowQuery, "GET /orders")];
    let (none, all) = (with([&[], &[], &[]]), with([&slow, &slow, &[]]));
    let once = with([&slow, &[], &[]]);
    let fates = |before: &Summary, now: &Summary| -> Vec<Fate> {
        checked(before, now).variants[0].findings.iter().map(|one| one.fate).collect()
    };
    assert_eq!(fates(&none, &all), [Fate::Appeared]);
    assert_eq!(fates(&none, &once), []);
    assert_eq!(fates(&once, &all), [], "it was seen before");
    assert_eq!(fates(&all, &none), [Fate::Vanished]);
    assert_eq!(checked(&none, &all).variants[0].findings[0].title, Some(slow[0].title()));
}

#[test]
fn services_come_by_the_change_of_their_part() {
    let part = |service: &str, mean_ns| ServiceTime { service: service.into(), share: 0.5, mean_ns };
    let (mut before, mut now) = (run(1, 10.0, 0.03), run(2, 10.0, 0.03));
    before.baseline.variants[0].critical_path = vec![part("a", 5e6), part("b", 4e6), part("gone", 1e6)];
    now.baseline.variants[0].critical_path = vec![part("a", 5e6), part("b", 9e6)];
    let check = checked(&before, &now);
    let names: Vec<&str> = check.variants[0].services.iter().map(|service| service.service.as_str()).collect();
    assert_eq!(names, ["b", "gone", "a"]);
}

#[test]
fn another_experiment_machine_or_variant_is_refused_unless_accepted() {
    let (before, now) = (run(1, 10.0, 0.03), run(2, 10.0, 0.03));
    let refused = |change: &dyn Fn(&mut Baseline), accepted| {
        let mut before = before.baseline.clone();
        change(&mut before);
        check(&before, &now, ("now", MARGIN), accepted).map(|check| check.caveats)
    };
    let none = Accepted::default();
    let text_changed: &dyn Fn(&mut Baseline) = &|baseline| baseline.experiment_digest = "0".into();
    let said = refused(text_changed, none).unwrap_err();
    assert!(said.to_string().ends_with("its text has changed"), "{said}");
    let accepted = refused(text_changed, Accepted { experiment: true, machine: false }).unwrap();
    assert!(accepted.contains(&ComparisonCaveat::BaselineOfOtherExperiment), "{accepted:?}");
    let renamed: &dyn Fn(&mut Baseline) = &|baseline| baseline.experiment = "shop".into();
    assert!(refused(renamed, none).unwrap_err().to_string().starts_with("the baseline is of the experiment `shop`"));
    let moved: &dyn Fn(&mut Baseline) = &|baseline| baseline.machine.cores = 64;
    let said = refused(moved, none).unwrap_err();
    assert!(said.to_string().contains("64 cores") && said.hint().is_some(), "{said}");
    assert!(refused(moved, Accepted { experiment: false, machine: true }).is_ok());
    let other: &dyn Fn(&mut Baseline) = &|baseline| baseline.variants[0].variant = "b".into();
    let said = refused(other, none).unwrap_err().to_string();
    assert_eq!(said, "the run has no finished trial of the baseline's variant `b`; it has a");
}

#[test]
fn runs_without_figures_are_refused() {
    let refused =
        |trials: Vec<TrialEvidence>| summary(&outcome(trials), &Thresholds::default()).unwrap_err().to_string();
    assert!(refused(Vec::new()).ends_with("has no finished trial"));
    assert_eq!(refused(vec![TrialBuilder::new("a").build()]), "a has no load that Narrows sent");
    let load = Load { vus: 1, rate: 9.0, latency_ms: 9.0 };
    let invalid = TrialBuilder::new("a").verdict(Verdict::Invalid, "The generator was late.").steady(5, load).build();
    assert_eq!(refused(vec![invalid]), "the figures of a are invalid: The generator was late");
}

#[test]
fn what_was_measured_once_is_named() {
    let once = summary(&outcome([trial("a", 1, 10.0)]), &Thresholds::default()).unwrap();
    let check = checked(&once, &once);
    let text = comparison_caveat(&check.caveats[0]);
    assert!(text.starts_with("Measured once: the baseline and the run."), "{text}");
    assert!(!check.is_worse());
}
