//! Verdicts over simulated trials: how often they are wrong, and whether what is there is found.

use std::collections::BTreeMap;

use narrows_model::caveat::ComparisonCaveat;
use narrows_model::evidence::TrialEvidence;
use narrows_model::run::TrialState;
use narrows_testkit::trial::{Load, TrialBuilder};

use super::*;
use crate::stats::normal::Normal;

/// The standard deviation of the logarithm between trials of one variant: of trials of ten seconds on a machine of their
/// own, and beside builds (`bench/aa.py`).
const QUIET: f64 = 0.03;
const BUSY: f64 = 0.18;

fn measured(trial: &TrialEvidence) -> Measured {
    Measured::of(trial).unwrap()
}

/// A trial of a closed load whose latency is so large, as a logarithm.
fn of_latency(variant: &str, repetition: u32, logarithm: f64) -> Measured {
    let level = Level { vus: 8, rate: None };
    let values = [10.0 - logarithm, 16.0 + logarithm, 16.0 + logarithm, 17.0 + logarithm, 18.0 + logarithm];
    let mut one = Measured {
        label: if repetition > 1 { format!("{variant}#{repetition}") } else { variant.to_owned() },
        repetition,
        requests: 1000,
        failed: 0,
        doubt: None,
        levels: vec![level],
        values: [None; Quantity::ALL.len()],
    };
    for (value, logarithm) in one.values.iter_mut().zip(values) {
        *value = Some(logarithm.exp());
    }
    one
}

const MEAN: Question = Question { by: Quantity::Mean, margin: MARGIN };

fn sides<'a>(old: &'a [Measured], new: &'a [Measured]) -> (Side<'a>, Side<'a>) {
    (Side { label: "before", trials: old }, Side { label: "after", trials: new })
}

fn proof(old: &[Measured], new: &[Measured], plan: Plan<'_>) -> Proof {
    let (before, after) = sides(old, new);
    prove(before, after, plan, MEAN).unwrap()
}

/// A comparison as it runs: pair by pair until it is clear, or until all are made. Trials beside one another have part of
/// their noise in common.
fn run(seed: u64, rules: &Rules, noise: f64, slowdown: f64) -> Proof {
    let mut normal = Normal::new(seed);
    let (mut old, mut new) = (Vec::new(), Vec::new());
    for repetition in 1..=rules.planned {
        let common = noise * normal.draw();
        let mut latency = || common + noise * normal.draw();
        old.push(of_latency("before", repetition, latency()));
        new.push(of_latency("after", repetition, latency() + slowdown.ln_1p()));
        if repetition == rules.planned || (rules.is_look(repetition) && repetition >= 2) {
            let proof = proof(&old, &new, Plan::Sequential { seed, rules });
            if proof.verdict.is_clear() || repetition == rules.planned {
                return proof;
            }
        }
    }
    unreachable!("the last pair is a look")
}

fn seeds(count: u64) -> impl Iterator<Item = u64> {
    (1..=count).map(|n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// True if a difference is claimed that is not there. Within the margin, none is.
fn is_claim(proof: &Proof) -> bool {
    matches!(proof.verdict, Ruling::Faster | Ruling::Slower)
}

#[test]
fn equal_variants_are_called_different_as_seldom_as_stated() {
    for (planned, noise) in [(5, QUIET), (10, QUIET), (10, BUSY), (25, 0.08)] {
        let rules = Rules::new(planned);
        let claims = seeds(1000).filter(|seed| is_claim(&run(*seed, &rules, noise, 0.0))).count();
        // Five in a hundred, and two standard errors of a thousand runs.
        assert!(claims <= 64, "{planned} pairs, noise {noise}: {claims} of 1000");
    }
}

#[test]
fn equal_variants_on_a_quiet_machine_end_early_without_a_difference() {
    let rules = Rules::new(40);
    let proofs: Vec<Proof> = seeds(100).map(|seed| run(seed, &rules, QUIET, 0.0)).collect();
    let clear = proofs.iter().filter(|proof| proof.verdict == Ruling::NoDifference).count();
    let early = proofs.iter().filter(|proof| proof.design.trials.0 < 40).count();
    assert!(clear >= 90 && early >= 90, "{clear} clear, {early} early, of 100");
}

/// With the repeats that a first comparison of five suggests.
#[test]
fn a_slowdown_of_five_percent_is_found_with_the_suggested_repeats() {
    for noise in [QUIET, 0.06] {
        let first = Rules::new(5);
        let mut known: BTreeMap<u32, Rules> = BTreeMap::new();
        let (mut found, mut wrong) = (0, 0);
        for seed in seeds(50) {
            let mut proof = run(seed, &first, noise, 0.05);
            if let Some(repeats) = proof.repeats_wanted {
                let rules = known.entry(repeats).or_insert_with(|| Rules::new(repeats));
                proof = run(seed ^ 0xabcd, rules, noise, 0.05);
            }
            found += usize::from(proof.verdict == Ruling::Slower);
            wrong += usize::from(proof.verdict == Ruling::Faster);
        }
        assert!(found >= 45 && wrong == 0, "noise {noise}: {found} of 50, {wrong} the wrong way round");
    }
}

#[test]
fn a_large_difference_ends_the_comparison_at_once() {
    let rules = Rules::new(20);
    let pairs: Vec<u32> = seeds(50)
        .map(|seed| run(seed, &rules, QUIET, 0.5))
        .map(|proof| {
            assert_eq!(proof.verdict, Ruling::Slower);
            proof.design.trials.0
        })
        .collect();
    assert!(pairs.iter().sum::<u32>() <= 5 * 50, "{pairs:?}");
}

#[test]
fn the_intervals_of_all_looks_hold_the_true_change() {
    let rules = Rules::new(10);
    let holds = |seed: &u64| {
        let proof = run(*seed, &rules, 0.06, 0.1);
        let interval = proof.quantities[1].interval.unwrap();
        interval.low <= 0.1 && 0.1 <= interval.high
    };
    let held = seeds(1000).filter(holds).count();
    assert!(held >= 936, "{held} of 1000");
}

#[test]
fn pairs_cancel_what_both_have_in_common() {
    let drift = |at: u32| f64::from(at) * 0.05;
    let wobble = |at: u32| if at.is_multiple_of(2) { 0.002 } else { 0.0 };
    let old: Vec<Measured> = (1..=4).map(|at| of_latency("before", at, drift(at))).collect();
    let new: Vec<Measured> = (1..=4).map(|at| of_latency("after", at, drift(at) + 0.1 + wobble(at))).collect();
    assert_eq!(proof(&old, &new, Plan::InTurn).verdict, Ruling::Slower);
    let apart = proof(&old, &new, Plan::Apart);
    assert_eq!(apart.verdict, Ruling::CannotTell);
    assert!(
        apart.caveats.iter().any(|caveat| matches!(caveat, ComparisonCaveat::NotInterleaved { .. })),
        "{:?}",
        apart.caveats
    );
    assert!(apart.repeats_wanted.is_some_and(|repeats| repeats > 4));
    assert!(apart.sentence.contains("trials of each would show a difference of 5.0 %"), "{}", apart.sentence);
}

#[test]
fn higher_throughput_is_faster_and_more_cpu_is_more() {
    let noise = |at: u32| f64::from(at) * 1e-3;
    let old: Vec<Measured> = (1..=3).map(|at| of_latency("before", at, noise(at))).collect();
    let new: Vec<Measured> = (1..=3).map(|at| of_latency("after", at, -0.5 - noise(at))).collect();
    let (before, after) = sides(&old, &new);
    for by in [Quantity::Rate, Quantity::Mean, Quantity::P99] {
        let proof = prove(before, after, Plan::InTurn, Question { by, margin: MARGIN }).unwrap();
        assert_eq!(proof.verdict, Ruling::Faster, "{by:?}");
        assert!(proof.sentence.starts_with("after is faster than before: "), "{}", proof.sentence);
    }
    let by_cpu = prove(before, after, Plan::InTurn, Question { by: Quantity::Cpu, margin: MARGIN });
    assert_eq!(by_cpu, Err(Refusal::NotMeasured { quantity: Quantity::Cpu, trial: "before".into() }));
}

#[test]
fn what_cannot_be_compared_is_refused_with_one_clause() {
    let good = |variant: &str| -> Vec<Measured> { (1..=2).map(|at| of_latency(variant, at, 0.0)).collect() };
    let (old, new) = (good("before"), good("after"));
    let refused = |old: &[Measured], new: &[Measured], plan: Plan<'_>| {
        let (before, after) = sides(old, new);
        prove(before, after, plan, MEAN).unwrap_err().to_string()
    };
    assert_eq!(refused(&[], &new, Plan::Apart), "before has no finished trial");
    assert_eq!(refused(&old, &new[..1], Plan::Apart), "after was measured once, expected at least 2 trials");
    let others = [of_latency("after", 5, 0.0), of_latency("after", 6, 0.0)];
    assert_eq!(refused(&old, &others, Plan::InTurn), "fewer than 2 pairs of trials are complete");
    let nothing = [measured(&TrialBuilder::new("after").build()), measured(&TrialBuilder::new("after").build())];
    assert_eq!(refused(&old, &nothing, Plan::Apart), "after has no load that Narrows sent");
    let invalid = |verdict| {
        let trial = TrialBuilder::new("after").verdict(verdict, "The generator was late.");
        measured(&trial.steady(5, Load { vus: 8, rate: 9.0, latency_ms: 9.0 }).build())
    };
    let bad = [invalid(Verdict::Invalid), invalid(Verdict::Invalid)];
    assert_eq!(refused(&old, &bad, Plan::Apart), "the figures of after are invalid: The generator was late");
    let (before, after) = (Side { label: "one", trials: &old }, Side { label: "one", trials: &new });
    assert_eq!(prove(before, after, Plan::Apart, MEAN), Err(Refusal::Same { label: "one".into() }));
    let doubtful = [invalid(Verdict::Doubtful), invalid(Verdict::Doubtful)];
    let caveats = proof(&old, &doubtful, Plan::Apart).caveats;
    assert!(caveats.iter().any(|caveat| matches!(caveat, ComparisonCaveat::DoubtfulTrials { .. })), "{caveats:?}");
}

#[test]
fn arrivals_at_different_rates_are_refused_and_users_are_not() {
    let open = |variant: &str, offered: f64| -> Vec<Measured> {
        let load = Load { vus: 0, rate: 90.0, latency_ms: 9.0 };
        let one = |at| measured(&TrialBuilder::new(variant).repetition(at).arrivals(5, offered, load).build());
        (1..=2).map(one).collect()
    };
    let (before, after) = (open("before", 100.0), open("after", 200.0));
    let (old, new) = sides(&before, &after);
    let refusal = prove(old, new, Plan::Apart, MEAN).unwrap_err();
    assert_eq!(refusal.to_string(), "the rates of arrivals differ: before 100/s, after 200/s");
    let same = open("after", 100.0);
    let equal = proof(&before, &same, Plan::Apart);
    assert_eq!((equal.design.load, equal.verdict), (LoadShape::Open, Ruling::NoDifference));
    let closed: Vec<Measured> = (1..=2).map(|at| of_latency("after", at, 0.0)).collect();
    assert!(prove(old, sides(&closed, &closed).1, Plan::Apart, MEAN).is_err(), "one open, one closed");
    let closed = proof(&closed, &closed, Plan::Apart);
    assert!(
        closed.caveats.iter().any(|caveat| matches!(caveat, ComparisonCaveat::ClosedLoad { .. })),
        "{:?}",
        closed.caveats
    );
}

#[test]
fn trials_that_are_not_finished_do_not_count() {
    let cut = TrialBuilder::new("a").state(TrialState::Interrupted).build();
    assert_eq!(Measured::of(&cut), None);
}
