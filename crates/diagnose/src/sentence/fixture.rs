//! Trials and findings, and the sentences about them.

use narrows_model::evidence::TrialEvidence;
use narrows_model::finding::{Finding, FindingKind, Role};
use narrows_model::limit::Limit;
use narrows_testkit::spans::{Beat, query, run_of, server};
use narrows_testkit::trial::{Load, TrialBuilder, run_of_trials};

use super::Story;
use crate::limit::limit;
use crate::thresholds::Thresholds;
use crate::{Reading, conclude};

pub(super) fn trial(variant: &str, rate: f64, latency_ms: f64) -> TrialBuilder {
    TrialBuilder::new(variant).service("shop", Some(0.5)).steady(30, Load { vus: 8, rate, latency_ms })
}

pub(super) fn narrow(trial: TrialBuilder) -> TrialBuilder {
    let beat = Beat { first_ms: 5.0, step_ms: 5.0, length_ms: 3.0 };
    let orders = server("shop", "GET /orders")
        .at(0.0, 100.0)
        .child(query("SELECT * FROM orders").at(1.0, 2.0))
        .children(run_of(10, beat, |_| query("SELECT name FROM customer WHERE id = ?")));
    trial.traces((0..5).map(|number| orders.clone().trace(number)))
}

/// The sentence for these trials.
pub(super) fn said(trials: impl IntoIterator<Item = TrialBuilder>) -> String {
    said_of(trials.into_iter().map(TrialBuilder::build).collect())
}

/// The sentence for trials that are built.
pub(super) fn said_of(trials: Vec<TrialEvidence>) -> String {
    let none = vec![Vec::new(); trials.len()];
    conclude(run_of_trials(trials), none, Default::default(), &Thresholds::default()).sentence
}

pub(super) const NARROW: &str = "In as-is, GET /orders fetches rows one at a time: 10 similar queries in each request (48 % of \
                      the latency of GET /orders)";

/// The verdict on the limit of a healthy trial, whose users all wait.
pub(super) const WAITS: &str = "a is limited by something at shop that is not CPU: 8 users wait 80.0 ms for each response; 94 % of \
                     the latency passes before its spans begin or after they end, and it uses 0.10 cores";

/// A complete trial without any fault.
pub(super) fn healthy(variant: &str, rate: f64) -> TrialBuilder {
    trial(variant, rate, 80.0).cpu("shop", 0, |_| 0.1).traces([server("shop", "GET /").at(0.0, 5.0).trace(0)])
}

/// The sentence for healthy trials, one for each of these lists of findings.
pub(super) fn reported(findings: &[Vec<Finding>]) -> String {
    let variants = ["a", "b", "c", "d", "e", "f"];
    let trials: Vec<TrialEvidence> =
        variants.iter().zip(findings).map(|(variant, _)| healthy(variant, 100.0).build()).collect();
    let (evidence, thresholds) = (run_of_trials(trials), Thresholds::default());
    let of_trial = |(trial, findings): (&TrialEvidence, &Vec<Finding>)| {
        Reading::with(trial, &thresholds, |reading| limit(reading, findings))
    };
    let limits: Vec<Limit> = evidence.trials.iter().zip(findings).map(of_trial).collect();
    let comparison = &crate::compare(&evidence, &thresholds);
    let (breakdowns, objectives) = (&[], &[]);
    let (evidence, limits, thresholds) = (&evidence, &limits, &thresholds);
    Story { evidence, findings, limits, breakdowns, objectives, comparison, thresholds }.sentence()
}

pub(super) fn finding(detector: &str, role: Role) -> Finding {
    Finding { role, cost_share: 0.5, ..Finding::new(detector.parse::<FindingKind>().unwrap(), 1) }
}
