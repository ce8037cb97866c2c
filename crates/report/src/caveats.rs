//! What limits the reading of trials, each caveat once with all the trials it holds for.
//!
//! A variant whose every repetition has a caveat stands by its name alone. It does not judge caveats, nor shorten them.

use narrows_model::comparison::Outcome;
use narrows_model::run::Trial;

/// A caveat and whom it holds for, as in `as-is, fixed#2`.
pub(crate) struct Caveat<'a> {
    pub(crate) labels: String,
    pub(crate) text: &'a str,
}

/// The caveats of all trials in the order they first appear.
pub(crate) fn caveats(outcome: &Outcome) -> Vec<Caveat<'_>> {
    let trials: Vec<&Trial> = outcome.evidence.trials.iter().map(|evidence| &evidence.trial).collect();
    let mut texts: Vec<&str> = Vec::new();
    for text in trials.iter().flat_map(|trial| &trial.caveats) {
        if !texts.contains(&text.as_str()) {
            texts.push(text);
        }
    }
    texts.into_iter().map(|text| Caveat { labels: labels(&trials, text), text }).collect()
}

fn labels(trials: &[&Trial], text: &str) -> String {
    let has = |trial: &Trial| trial.caveats.iter().any(|caveat| caveat == text);
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

    #[test]
    fn a_caveat_stands_once_with_all_it_holds_for() {
        let mut outcome = fixture::outcome();
        let second = outcome.evidence.trials[1].clone();
        outcome.evidence.trials.push(second);
        outcome.evidence.trials[2].trial.repetition = 2;
        let told = [&["cap", "sampled", "cap"][..], &["sampled", "cap", "late"], &["sampled"]];
        for (evidence, caveats) in outcome.evidence.trials.iter_mut().zip(told) {
            evidence.trial.caveats = caveats.iter().map(|text| (*text).to_owned()).collect();
        }
        let found: Vec<(String, &str)> = caveats(&outcome).into_iter().map(|c| (c.labels, c.text)).collect();
        let expected = [("as-is, fixed#1", "cap"), ("as-is, fixed", "sampled"), ("fixed#1", "late")];
        assert_eq!(found, expected.map(|(labels, text)| (labels.to_owned(), text)));
    }
}
