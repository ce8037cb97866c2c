//! Tests of `offered-load-limited`: evidence that must make it fire, and evidence that must not.

use narrows_model::finding::Evidence;
use narrows_model::finding::evidence::offered_load_limited::RoomOf;
use narrows_testkit::trial::{Load, TrialBuilder, run_of_trials};

use super::*;
use crate::compare;
use crate::words::InWords;

fn detect(trials: [TrialBuilder; 2]) -> Vec<(usize, Finding)> {
    let run = run_of_trials(trials.map(TrialBuilder::build));
    let thresholds = Thresholds::default();
    OfferedLoadLimited.detect_run(&run, &compare(&run, &thresholds), &thresholds)
}

fn closed(name: &str, vus: u32, rate: f64, latency_ms: f64) -> TrialBuilder {
    TrialBuilder::new(name).service("shop", None).steady(60, Load { vus, rate, latency_ms })
}

fn open(name: &str, offered: f64, latency_ms: f64) -> TrialBuilder {
    TrialBuilder::new(name).service("shop", None).arrivals(60, offered, Load { vus: 4, rate: 200.0, latency_ms })
}

#[test]
fn users_that_think_hide_a_gain() {
    let found = detect([closed("one", 3810, 1885.0, 67.66), closed("two", 3810, 1887.0, 30.51)]);
    let [(0, of_first), (1, finding)] = &found[..] else { panic!("one finding in each trial, not {found:?}") };
    assert_eq!(
        of_first.reasons()[0],
        "Throughput is 1,885/s here and the same in two, because it is what the load asks for."
    );
    assert_eq!(finding.title(), "one completes the whole offered load, so throughput cannot show what two changes");
    assert!(finding.reasons()[1].contains("at least 97 % of the users think"), "{:?}", finding.reasons());
    assert_eq!(
        finding.reasons()[2],
        "Mean latency goes from 67.7 ms to 30.5 ms, and with it the requests under way from 128 to 57.6."
    );
}

#[test]
fn arrivals_that_all_complete_hide_a_gain() {
    let found = detect([open("one", 200.0, 20.0), open("two", 200.0, 10.0)]);
    let Evidence::OfferedLoadLimited(evidence) = &found[1].1.evidence else { panic!("{found:?}") };
    assert_eq!(evidence.room, Room { of: RoomOf::Completed, share: 1.0 });
    let Hidden::Variant(pair) = &evidence.hidden else { panic!("{evidence:?}") };
    assert_eq!((pair.latency_differs, pair.cpu_differs), (true, false));
    assert_eq!((pair.first.under_way(), pair.other.under_way()), (4.0, 2.0));
    assert!(found.iter().all(|(_, one)| one.reasons()[1].starts_with("At least 100 % of the arrivals")), "{found:?}");
    let cpu = |name, cores| open(name, 200.0, 20.0).cpu("shop", 0, move |_| cores);
    let found = detect([cpu("one", 0.3), cpu("two", 0.6)]);
    assert_eq!(found[1].1.reasons()[2], "CPU for each request goes from 1.50 ms to 3.00 ms.");
}

#[test]
fn the_outcome_of_a_run_tells_it_where_it_belongs() {
    let run = run_of_trials([open("one", 200.0, 20.0).build(), open("two", 200.0, 10.0).build()]);
    let outcome = crate::conclude(run, vec![vec![], vec![]], Default::default(), &Thresholds::default());
    for findings in &outcome.findings {
        assert_eq!(findings[0].kind(), FindingKind::OfferedLoadLimited);
        assert!(findings[0].role.is_about_experiment());
    }
}

#[test]
fn healthy_runs_and_real_gains_are_silent() {
    for (name, trials) in [
        ("nothing to show", [closed("one", 100, 50.0, 20.0), closed("two", 100, 50.0, 20.0)]),
        ("a gain that throughput shows", [closed("one", 8, 100.0, 80.0), closed("two", 8, 200.0, 40.0)]),
        ("users that wait", [closed("one", 8, 100.0, 80.0), closed("two", 8, 100.0, 60.0)]),
        ("a rate that is not served", [open("one", 260.0, 900.0), open("two", 260.0, 500.0)]),
        ("two kinds of load", [closed("one", 100, 200.0, 20.0), open("two", 200.0, 10.0)]),
        ("an unknown load", [closed("one", 0, 50.0, 20.0), closed("two", 0, 50.0, 9.0)]),
        ("one variant", [closed("one", 100, 50.0, 20.0), closed("one", 100, 50.0, 9.0).repetition(2)]),
    ] {
        assert_eq!(detect(trials), [], "with {name}");
    }
}

fn in_trial(trial: TrialBuilder) -> Vec<Finding> {
    crate::detect(&OfferedLoadLimited, &trial.build(), &Thresholds::default())
}

/// Two steps: (users, throughput per second, latency in milliseconds).
fn steps(levels: [(u32, f64, f64); 2]) -> TrialBuilder {
    let trial = TrialBuilder::new("a").service("shop", Some(1.0)).cpu("shop", 0, |_| 0.2);
    levels.into_iter().fold(trial, |trial, (vus, rate, latency_ms)| trial.steady(20, Load { vus, rate, latency_ms }))
}

#[test]
fn steps_that_find_no_limit_are_reported() {
    let findings = in_trial(steps([(100, 10.0, 90.0), (200, 20.0, 91.0)]));
    let [finding] = &findings[..] else { panic!("one finding, not {findings:?}") };
    assert_eq!(finding.title(), "the offered load ended at 200 users, below any limit, so the capacity is unknown");
    assert_eq!(finding.reasons()[2], "The busiest service, shop, used 20 % of the CPU available to it.");
    let open = [50.0, 100.0, 200.0]
        .into_iter()
        .fold(TrialBuilder::new("a"), |trial, rate| trial.arrivals(20, rate, Load { vus: 1, rate, latency_ms: 10.0 }));
    let findings = in_trial(open.service("shop", Some(1.0)).cpu("shop", 0, |_| 0.2));
    assert!(findings[0].reasons()[0].starts_with("From 50.0/s to 200/s throughput went from 50.0/s to 200/s"));
}

#[test]
fn other_trials_are_silent() {
    for (name, trial) in [
        ("one step", open("a", 200.0, 20.0).cpu("shop", 0, |_| 0.2)),
        ("users that do not think", steps([(4, 100.0, 40.0), (8, 200.0, 40.0)])),
        ("latency that grows", steps([(100, 10.0, 90.0), (200, 20.0, 190.0)])),
        ("throughput that does not follow", steps([(100, 10.0, 90.0), (200, 14.0, 91.0)])),
        ("steps that are alike", steps([(100, 10.0, 90.0), (120, 12.0, 91.0)])),
        ("a service at work", busy()),
        ("nothing sampled", TrialBuilder::new("a").arrivals(9, 9.0, Load { vus: 1, rate: 9.0, latency_ms: 1.0 })),
    ] {
        assert_eq!(in_trial(trial), [], "with {name}");
    }
}

fn busy() -> TrialBuilder {
    let at = |vus, rate| Load { vus, rate, latency_ms: 90.0 };
    let trial = TrialBuilder::new("a").service("shop", Some(1.0)).cpu("shop", 0, |_| 0.8);
    trial.steady(20, at(100, 10.0)).steady(20, at(200, 20.0))
}
