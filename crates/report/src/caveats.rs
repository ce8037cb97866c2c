//! Caveats on the trials, each once with all the trials it holds for.
//!
//! If all repetitions of a variant have a caveat, only the variant is named. Caveats are neither judged nor shortened, but if
//! several differ only in their numbers, the first is shown for all of them.

use narrows_model::comparison::Outcome;
use narrows_model::run::Trial;

/// A caveat and whom it holds for, as in `as-is, fixed#2`.
pub(crate) struct Caveat<'a> {
    pub(crate) labels: String,
    pub(crate) text: &'a str,
    /// Labels of the trials whose caveat differs from this one only in its numbers; `None` without such trials.
    pub(crate) alike: Option<String>,
}

impl Caveat<'_> {
    /// The text, and the other trials that have it with other numbers.
    pub(crate) fn describe(&self) -> String {
        let text = self.text;
        self.alike.as_ref().map_or_else(|| text.to_owned(), |alike| format!("{text} With other numbers also: {alike}."))
    }
}

/// The caveats of all trials in the order they first appear. Of those that begin alike, the first stands for all.
pub(crate) fn caveats(outcome: &Outcome) -> Vec<Caveat<'_>> {
    let trials: Vec<&Trial> = outcome.evidence.trials.iter().map(|evidence| &evidence.trial).collect();
    let mut kinds: Vec<(String, Vec<&str>)> = Vec::new();
    for text in trials.iter().flat_map(|trial| &trial.caveats) {
        let beginning = beginning(text);
        match kinds.iter_mut().find(|(known, _)| *known == beginning) {
            Some((_, texts)) => texts.push(text),
            None => kinds.push((beginning, vec![text])),
        }
    }
    kinds.into_iter().map(|(_, texts)| of_kind(&trials, &texts)).collect()
}

fn of_kind<'a>(trials: &[&Trial], texts: &[&'a str]) -> Caveat<'a> {
    let text = texts[0];
    let has = |trial: &Trial, is_meant: &dyn Fn(&str) -> bool| trial.caveats.iter().any(|caveat| is_meant(caveat));
    let others = labels(trials, |trial| has(trial, &|other| other != text && texts.contains(&other)));
    Caveat {
        labels: labels(trials, |trial| has(trial, &|other| other == text)),
        text,
        alike: (!others.is_empty()).then_some(others),
    }
}

/// The first clause of a text without its numbers.
fn beginning(text: &str) -> String {
    let end = [". ", "; "].iter().filter_map(|end| text.find(end)).min().unwrap_or(text.len());
    text[..end]
        .split(|c: char| c.is_ascii_digit())
        .filter(|part| !matches!(*part, "" | "." | ","))
        .collect::<Vec<_>>()
        .join("#")
}

fn labels(trials: &[&Trial], has: impl Fn(&Trial) -> bool) -> String {
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

    #[test]
    fn caveats_that_begin_alike_are_told_once() {
        let mut outcome = fixture::outcome();
        let texts =
            ["289 of 292 traces hold no request; 288 of \"a\".", "3 of 3.5 traces hold no request; 1 of \"b\"."];
        for (evidence, text) in outcome.evidence.trials.iter_mut().zip(texts) {
            evidence.trial.caveats = vec![text.to_owned(), "The cap of a is 1.".to_owned()];
        }
        outcome.evidence.trials[0].trial.caveats.push("The cap of b is 1.".to_owned());
        let found: Vec<_> = caveats(&outcome).into_iter().map(|c| (c.labels, c.text, c.alike)).collect();
        let expected = [
            ("as-is", texts[0], Some("fixed")),
            ("as-is, fixed", "The cap of a is 1.", None),
            ("as-is", "The cap of b is 1.", None),
        ];
        assert_eq!(found, expected.map(|(labels, text, alike)| (labels.to_owned(), text, alike.map(str::to_owned))));
    }
}
