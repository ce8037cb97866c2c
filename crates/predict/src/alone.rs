//! Whether a recognised change is all that one trial changed of another.
//!
//! Not every change is recognised. Where two trials differ in the parameters of a smaller difference with the same changes,
//! and in more of them, something else was changed besides, and what came of both proves nothing about the one. And whether it is one
//! step, as far as the trials between them tell.

use std::collections::BTreeSet;

use narrows_model::prediction::{ChangeKind, Prediction, Scored};
use narrows_model::run::Trial;

/// A trial and one that made changes to it.
pub(crate) struct Pair {
    pub(crate) scored: Scored,
    /// In which parameters they differ.
    pub(crate) parameters: BTreeSet<String>,
}

impl Pair {
    /// Its changes, whatever their size.
    fn changes(&self) -> BTreeSet<(ChangeKind, &str)> {
        let Prediction { change, with, .. } = &self.scored.prediction;
        std::iter::once(change).chain(with).map(|change| (change.kind, change.target.as_str())).collect()
    }

    /// Whether something was changed here besides the changes of another pair, which are recognised here too.
    fn has_more_than(&self, other: &Self) -> bool {
        other.parameters.len() < self.parameters.len()
            && other.parameters.is_subset(&self.parameters)
            && other.changes() == self.changes()
    }
}

/// Whether one pair's later trial is another's earlier one.
fn is_before(one: &Pair, other: &Pair) -> bool {
    one.scored.after == other.scored.before
}

/// The pairs of one step: without those between whose trials another one lies that took each of two parts of the way.
pub(crate) fn steps(pairs: Vec<Pair>) -> Vec<Pair> {
    let is_part = |part: &Pair, of: &Pair| {
        part.parameters.len() < of.parameters.len() && part.parameters.is_subset(&of.parameters)
    };
    let is_two_steps = |pair: &Pair| {
        let parts = || pairs.iter().filter(|part| is_part(part, pair));
        let firsts = parts().filter(|first| first.scored.before == pair.scored.before);
        firsts
            .flat_map(|first| parts().filter(move |second| is_before(first, second)))
            .any(|second| second.scored.after == pair.scored.after)
    };
    let is_step: Vec<bool> = pairs.iter().map(|pair| !is_two_steps(pair)).collect();
    pairs.into_iter().zip(is_step).filter(|(_, is_step)| *is_step).map(|(pair, _)| pair).collect()
}

/// The parameters that two trials bind to different values.
pub(crate) fn differing(one: &Trial, other: &Trial) -> BTreeSet<String> {
    let all = one.parameters.keys().chain(other.parameters.keys());
    all.filter(|name| one.parameters.get(*name) != other.parameters.get(*name)).cloned().collect()
}

/// The pairs in which nothing else is known to be changed.
pub(crate) fn alone(pairs: Vec<Pair>) -> Vec<Scored> {
    let is_alone: Vec<bool> = pairs.iter().map(|pair| !pairs.iter().any(|other| pair.has_more_than(other))).collect();
    pairs.into_iter().zip(is_alone).filter(|(_, is_alone)| *is_alone).map(|(pair, _)| pair.scored).collect()
}
