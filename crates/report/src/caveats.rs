//! Caveats on the trials, each once with all the trials it holds for. Faults that the experiment specifies have a section of
//! their own.
//!
//! If all repetitions of a variant have a caveat, only the variant is named. Caveats are neither judged nor shortened, but of
//! several that are alike except for their numbers, the first is shown for all of them.

use narrows_diagnose::words::trial_caveat;
use narrows_model::caveat::TrialCaveat;
use narrows_model::comparison::Outcome;
use narrows_model::run::Trial;

/// A caveat and whom it holds for, as in `as-is, fixed#2`.
pub(crate) struct Caveat {
    pub(crate) labels: String,
    pub(crate) text: String,
    /// Labels of the trials whose caveat differs from this one only in its numbers; `None` without such trials.
    pub(crate) alike: Option<String>,
}

impl Caveat {
    /// The text, and the other trials that have it with other numbers.
    pub(crate) fn describe(&self) -> String {
        let text = &self.text;
        self.alike.as_ref().map_or_else(|| text.clone(), |alike| format!("{text} With other numbers also: {alike}."))
    }
}

/// The caveats of all trials in the order they first appear. Of those that are alike, the first stands for all.
pub(crate) fn caveats(outcome: &Outcome) -> Vec<Caveat> {
    let trials: Vec<&Trial> = outcome.evidence.trials.iter().map(|evidence| &evidence.trial).collect();
    let mut firsts: Vec<&TrialCaveat> = Vec::new();
    // These have tables of their own.
    let has_table =
        |caveat: &TrialCaveat| matches!(caveat, TrialCaveat::Fault { .. } | TrialCaveat::SentByAgent { .. });
    for caveat in trials.iter().flat_map(|trial| &trial.caveats).filter(|caveat| !has_table(caveat)) {
        if !firsts.iter().any(|first| first.is_alike(caveat)) {
            firsts.push(caveat);
        }
    }
    firsts.into_iter().map(|first| of_kind(&trials, first)).collect()
}

fn of_kind(trials: &[&Trial], first: &TrialCaveat) -> Caveat {
    let text = trial_caveat(first);
    let is_same = |other: &TrialCaveat| trial_caveat(other) == text;
    let others = labels(trials, |other| other.is_alike(first) && !is_same(other));
    Caveat { labels: labels(trials, is_same), alike: (!others.is_empty()).then_some(others), text }
}

/// Labels of the trials with a caveat of which `is_meant` holds.
fn labels(trials: &[&Trial], is_meant: impl Fn(&TrialCaveat) -> bool) -> String {
    let has = |trial: &Trial| trial.caveats.iter().any(&is_meant);
    let mut labels: Vec<String> = Vec::new();
    for trial in trials.iter().filter(|trial| has(trial)) {
        let is_whole = trials.iter().filter(|other| other.variant == trial.variant).all(|other| has(other));
        let label = if is_whole { trial.variant.clone() } else { format!("{}#{}", trial.variant, trial.repetition) };
        if !labels.contains(&label) {
            labels.push(label);
        }
    }
    labels.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn refused(refused: u64) -> TrialCaveat {
        TrialCaveat::SpansRefused { refused, kept: 1 }
    }

    fn silent(service: &str) -> TrialCaveat {
        TrialCaveat::DatabaseNotCalled { database: service.to_owned() }
    }

    #[test]
    fn a_caveat_stands_once_with_all_it_holds_for() {
        let mut outcome = fixture::outcome();
        let second = outcome.evidence.trials[1].clone();
        outcome.evidence.trials.push(second);
        outcome.evidence.trials[2].trial.repetition = 2;
        let (caps, spans, machine) = (silent("a"), TrialCaveat::NoSpans, TrialCaveat::MachineNotKnown);
        let of_trials =
            [vec![caps.clone(), spans.clone(), caps.clone()], vec![spans.clone(), caps, machine], vec![spans]];
        for (evidence, caveats) in outcome.evidence.trials.iter_mut().zip(of_trials) {
            evidence.trial.caveats = caveats;
        }
        let labels: Vec<String> = caveats(&outcome).into_iter().map(|caveat| caveat.labels).collect();
        assert_eq!(labels, ["as-is, fixed#1", "as-is, fixed", "fixed#1"]);
    }

    #[test]
    fn caveats_that_are_alike_stand_once() {
        let mut outcome = fixture::outcome();
        for (evidence, first) in outcome.evidence.trials.iter_mut().zip([refused(289), refused(3)]) {
            evidence.trial.caveats = vec![first, silent("a")];
        }
        outcome.evidence.trials[0].trial.caveats.push(silent("b"));
        let found: Vec<_> = caveats(&outcome).into_iter().map(|c| (c.labels, c.text, c.alike)).collect();
        let expected = [
            ("as-is", refused(289), Some("fixed".to_owned())),
            ("as-is, fixed", silent("a"), None),
            ("as-is", silent("b"), None),
        ];
        assert_eq!(found, expected.map(|(labels, caveat, alike)| (labels.to_owned(), trial_caveat(&caveat), alike)));
    }
}
