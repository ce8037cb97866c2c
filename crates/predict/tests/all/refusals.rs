//! Changes that cannot be predicted are refused with one clear clause.

use narrows_model::evidence::TrialEvidence;
use narrows_model::finding::{Finding, FindingKind, Role};
use narrows_model::prediction::Doubt;
use narrows_model::run::{Verdict, WindowKind};
use narrows_model::series::names;
use narrows_predict::{Cannot, DiagnosedTrial, predict, predict_suggested, read_change};
use narrows_testkit::simulator::System;

fn trial() -> TrialEvidence {
    System { steps: vec![(2, 13), (6, 10)], think_ms: 20.0, peer_calls: 3, ..System::default() }.run("as-is")
}

fn refused(trial: &TrialEvidence, change: &str) -> Cannot {
    predict(&DiagnosedTrial::new(trial, &[]), &[read_change(change).unwrap()]).unwrap_err()
}

#[test]
fn what_the_run_does_not_show_is_said() {
    let with = |change: fn(&mut TrialEvidence)| {
        let mut trial = trial();
        change(&mut trial);
        trial
    };
    let no_load = with(|trial| trial.seconds.clear());
    let no_cpu = with(|trial| trial.series.retain(|series| series.key.name != names::CPU_CORES));
    let no_traces = with(|trial| trial.traces.clear());
    let ramp = with(|trial| trial.windows.iter_mut().for_each(|window| window.kind = WindowKind::Ramp));
    let invalid = with(|trial| {
        trial.trial.validity.verdict = Verdict::Invalid;
        trial.trial.validity.reasons = vec!["The generator was late.".into()];
    });
    let failed = with(|trial| trial.seconds.iter_mut().for_each(|row| row.succeeded = 0));
    for (trial, change, clause) in [
        (&no_load, "speed-up=web", "it has no load that Narrows sent"),
        (&no_cpu, "speed-up=web", "the CPU of its services was not sampled"),
        (&no_traces, "parallelize=GET /orders", "it has no traces, which `parallelize` is read from"),
        (&ramp, "speed-up=web", "no window of it has a constant load"),
        (&invalid, "speed-up=web", "its figures are invalid: The generator was late"),
        (&failed, "speed-up=web", "no request of it succeeded under a constant load"),
        (&trial(), "speed-up=wbe", "it has no `wbe` for `speed-up`"),
        (&trial(), "parallelize=GET /order", "it has no `GET /order` for `parallelize`"),
        (&trial(), "add-replicas=shop", "it has no `shop` for `add-replicas`"),
        (&trial(), "drop-call=redis", "it has no `redis` for `drop-call`"),
        (&trial(), "raise-rate=store", "it has no `store` for `raise-rate`"),
        (
            &trial(),
            "parallelize=GET /regions/{id}/items",
            "`GET /regions/{id}/items` makes no calls one after another for `parallelize`",
        ),
        (&trial(), "more-load=1000000", "1000000 users are too many, expected 10000 at most"),
    ] {
        assert_eq!(refused(trial, change).to_string(), clause);
    }
}

#[test]
fn without_traces_cpu_and_load_are_still_predicted() {
    let mut trial = trial();
    trial.traces.clear();
    for change in ["add-cpu=web", "more-load=8", "speed-up=database"] {
        assert!(predict(&DiagnosedTrial::new(&trial, &[]), &[read_change(change).unwrap()]).is_ok(), "{change}");
    }
}

#[test]
fn one_level_and_an_invalidating_finding_are_doubts() {
    let one_level = System { steps: vec![(4, 20)], ..System::default() }.run("as-is");
    let change = read_change("speed-up=web").unwrap();
    let doubts = |trial: &TrialEvidence, findings: &[Finding]| {
        predict(&DiagnosedTrial::new(trial, findings), std::slice::from_ref(&change))
            .unwrap()
            .predictions
            .swap_remove(0)
    };
    let prediction = doubts(&one_level, &[]);
    assert!(prediction.doubts.contains(&Doubt::OneLevel) && prediction.is_trusted(), "{:?}", prediction.doubts);
    let invalid = Finding { role: Role::Invalidates, ..Finding::new(FindingKind::GeneratorLimited, 1) };
    assert!(!doubts(&trial(), &[invalid]).is_trusted());
}

#[test]
fn findings_suggest_changes_and_the_rest_is_left_out_with_a_reason() {
    let finding = |kind, resource: &str| Finding {
        resource: resource.into(),
        operation: Some("GET /orders".into()),
        ..Finding::new(kind, 1)
    };
    let findings = [finding(FindingKind::SerialFanOut, "web"), finding(FindingKind::MemoryGrowth, "web")];
    let found = predict_suggested(&DiagnosedTrial::new(&trial(), &findings)).unwrap();
    assert_eq!(found.predictions.len(), 1);
    assert_eq!(found.predictions[0].because, Some(FindingKind::SerialFanOut));
    assert_eq!(found.not_predicted.len(), 1);
    assert!(found.sentence.starts_with("In as-is, making the calls of web GET /orders"), "{}", found.sentence);
    let none = predict_suggested(&DiagnosedTrial::new(&trial(), &[])).unwrap();
    assert!(none.predictions.is_empty() && none.sentence.starts_with("No finding of as-is"), "{}", none.sentence);
}
