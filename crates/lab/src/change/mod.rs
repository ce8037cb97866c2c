//! The parameter of an experiment that a predicted change stands for, and the experiment with the change made.
//!
//! Candidates are the values that the service of the change is started with ([`Tunable`]). They are ranked:
//!
//! 1. the key that is the change itself: `replicas`, `cpus`;
//! 2. a name that says it (`workers`) with the size that the run showed;
//! 3. a name that says it;
//! 4. a vague name (`max`, `limit`) with that size;
//! 5. that size under any name.
//!
//! The candidates are those of the first rank that has any. A variant that differs in this value alone is used instead of a
//! new one: its author chose the value.

mod meaning;

use narrows_model::prediction::{Change, ChangeKind};

use crate::experiment::{Experiment, ExperimentError, Tunable, Variant, scaled_value};
use meaning::{Amount, Meaning, VAGUE, meaning};

/// Smallest size by which alone a value is recognised: 0 and 1 stand for much else.
const TELLING_SIZE_MIN: f64 = 2.0;
/// Values of something that is switched off, and of the same when it is on.
const SWITCHES: [(&str, &str); 5] = [("", "1"), ("0", "1"), ("false", "true"), ("off", "on"), ("no", "yes")];

/// A change that is to be made in an experiment.
#[derive(Debug, Clone, Copy)]
pub struct ChangeRequest<'a> {
    /// The experiment.
    pub experiment: &'a Experiment,
    /// The variant that it is made to.
    pub variant: &'a Variant,
    /// The change.
    pub change: &'a Change,
    /// Requests or connections at a time that the run showed for the change's target; `None` if it showed none.
    pub size_now: Option<u32>,
    /// A parameter, environment variable, flag or key and its new value, if they were chosen.
    pub chosen: Option<(&'a str, &'a str)>,
}

/// A value that the change may stand for.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// The value.
    pub tunable: Tunable,
    /// Its new value; `None` if the change does not say it.
    pub value: Option<String>,
}

/// Part of an experiment that a change stands for.
#[derive(Debug, Clone, PartialEq)]
pub enum Counterpart {
    /// A variant that the experiment has: its name, and the value in which it differs.
    Variant(String, Candidate),
    /// A value to change.
    Value(Candidate),
    /// Several values, of which one has to be chosen; one alone if its new value is not known.
    Several(Vec<Candidate>),
    /// Nothing: the change is in the code.
    Code,
}

/// An experiment with a change made.
#[derive(Debug)]
pub struct ChangedExperiment {
    /// The experiment, which has both variants.
    pub experiment: Experiment,
    /// The variant with the change.
    pub variant: String,
}

/// Finds the part of the experiment that a change stands for.
pub fn counterpart(request: &ChangeRequest<'_>) -> Counterpart {
    let tunables = tunables(request);
    let candidates = match request.chosen {
        Some((name, value)) => chosen(&tunables, name, value),
        None => ranked(request, &tunables),
    };
    if let Some((name, candidate)) = listed(request, &candidates) {
        return Counterpart::Variant(name, candidate);
    }
    match <[Candidate; 1]>::try_from(candidates) {
        Ok([only]) if only.value.is_some() => Counterpart::Value(only),
        Ok(only) => Counterpart::Several(only.into()),
        Err(none) if none.is_empty() => Counterpart::Code,
        Err(several) => Counterpart::Several(several),
    }
}

/// The experiment with a variant that has a candidate's new value.
///
/// # Errors
/// When the value does not fit, and when no variant can be added to the experiment's text.
pub fn changed(request: &ChangeRequest<'_>, candidate: &Candidate) -> Result<ChangedExperiment, ExperimentError> {
    let suffix = request.change.kind.name();
    let value = candidate.value.as_deref().unwrap_or_default();
    let (experiment, variant) = request.experiment.with_variant(request.variant, suffix, &candidate.tunable, value)?;
    Ok(ChangedExperiment { experiment, variant })
}

/// The change with the amount that a new value stands for; an amount that was given stays.
pub fn sized(change: &Change, candidate: &Candidate, size_now: Option<u32>) -> Change {
    let amount = change.amount.or_else(|| {
        let old: f64 = number(&candidate.tunable.value)?;
        let new: f64 = number(candidate.value.as_deref()?)?;
        match meaning(change.kind) {
            Meaning::Key(_, Amount::New) => Some(new),
            Meaning::Size(_, Amount::New) => Some(size_now.map_or(new, |size| (f64::from(size) * new / old).round())),
            Meaning::Key(_, Amount::Factor) | Meaning::Size(_, Amount::Factor) => (old > 0.0).then(|| new / old),
            Meaning::Key(_, Amount::Unrelated)
            | Meaning::Size(_, Amount::Unrelated)
            | Meaning::Switch(_)
            | Meaning::Code(_) => None,
        }
    });
    Change { amount, ..change.clone() }
}

/// The values of the change's service; of all services if it names none of the experiment.
fn tunables(request: &ChangeRequest<'_>) -> Vec<Tunable> {
    let mut all = request.experiment.tunables(request.variant);
    let target = &request.change.target;
    let is_named = |service: &String| service == target || target.starts_with(&format!("{service} "));
    if let Some(service) = request.experiment.services.iter().find(|service| is_named(service)) {
        all.retain(|one| one.service == *service);
    }
    all
}

/// Candidates that were chosen by name.
fn chosen(tunables: &[Tunable], name: &str, value: &str) -> Vec<Candidate> {
    let is_it = |one: &&Tunable| {
        one.parameter.as_deref() == Some(name) || one.name == name || one.name.trim_start_matches('-') == name
    };
    let found = tunables.iter().filter(is_it).cloned();
    distinct(found.map(|tunable| Candidate { tunable, value: Some(value.to_owned()) }))
}

/// Candidates of the first rank that has any.
fn ranked(request: &ChangeRequest<'_>, tunables: &[Tunable]) -> Vec<Candidate> {
    let meaning = meaning(request.change.kind);
    let ranks = tunables.iter().filter_map(|one| Some((rank(meaning, one, request.size_now)?, one)));
    let ranks: Vec<(u8, &Tunable)> = ranks.collect();
    let Some(first) = ranks.iter().map(|(rank, _)| *rank).min() else { return Vec::new() };
    let best = ranks.into_iter().filter(|(rank, _)| *rank == first).map(|(_, one)| one);
    distinct(best.map(|one| Candidate { value: new_value(request, meaning, one), tunable: one.clone() }))
}

/// Rank of a value, 1 for the surest; `None` if it is no candidate.
fn rank(meaning: Meaning, one: &Tunable, size_now: Option<u32>) -> Option<u8> {
    let names = [Some(one.name.as_str()), one.parameter.as_deref()].map(|name| name.map(plain));
    let says = |words: &[&str]| names.iter().flatten().any(|name| words.iter().any(|word| name.contains(&plain(word))));
    let size = size_now.map(f64::from).filter(|size| *size >= TELLING_SIZE_MIN);
    let has_size = number(&one.value).is_some_and(|value| size == Some(value));
    match meaning {
        // A limit that is not written limits nothing.
        Meaning::Key(key, _) => one.is_key(key).then_some(1),
        Meaning::Size(..) if number(&one.value).is_none() => None,
        Meaning::Size(words, _) => match (says(words), says(VAGUE)) {
            (true, _) if has_size => Some(2),
            (true, _) => Some(3),
            (false, true) if has_size => Some(4),
            (false, false) if has_size => Some(5),
            (false, _) => None,
        },
        Meaning::Switch(words) => says(words).then_some(3),
        Meaning::Code(_) => None,
    }
}

/// The value with the change; `None` if the change does not say it.
fn new_value(request: &ChangeRequest<'_>, meaning: Meaning, one: &Tunable) -> Option<String> {
    const USUAL_FACTOR: f64 = 2.0;
    let amount = request.change.amount;
    match meaning {
        Meaning::Key(_, Amount::New) => match (amount, request.change.kind) {
            (Some(amount), _) => Some(amount.round().to_string()),
            (None, ChangeKind::SpreadDatabase) => Some("3".to_owned()),
            (None, _) => scaled_value(&one.value, USUAL_FACTOR),
        },
        Meaning::Key(_, Amount::Factor) | Meaning::Size(_, Amount::Factor) => {
            scaled_value(&one.value, amount.unwrap_or(USUAL_FACTOR))
        }
        Meaning::Key(_, Amount::Unrelated) | Meaning::Size(_, Amount::Unrelated) => {
            scaled_value(&one.value, USUAL_FACTOR)
        }
        Meaning::Size(_, Amount::New) => match (amount, request.size_now) {
            (Some(amount), Some(size)) => scaled_value(&one.value, amount / f64::from(size)),
            (Some(amount), None) => Some(amount.round().to_string()),
            (None, _) => scaled_value(&one.value, USUAL_FACTOR),
        },
        Meaning::Switch(_) => {
            let switch = SWITCHES.iter().find(|(off, _)| *off == one.value.to_ascii_lowercase());
            switch.map(|(_, on)| (*on).to_owned())
        }
        Meaning::Code(_) => None,
    }
}

/// A variant that differs in one parameter only, which is that of a candidate, or whose name says the change.
fn listed(request: &ChangeRequest<'_>, candidates: &[Candidate]) -> Option<(String, Candidate)> {
    let words = match meaning(request.change.kind) {
        Meaning::Switch(words) | Meaning::Code(words) => words,
        Meaning::Key(..) | Meaning::Size(..) => &[],
    };
    let of_variant = |variant: &Variant| {
        let (parameter, value) = only_difference(request.variant, variant)?;
        let candidate = |tunable: &Tunable| Candidate { tunable: tunable.clone(), value: Some(value.to_owned()) };
        let known = candidates.iter().find(|one| one.tunable.parameter.as_deref() == Some(parameter));
        if let Some(known) = known {
            return is_meant(request, known, value).then(|| candidate(&known.tunable));
        }
        let says = [&variant.name, parameter].map(plain);
        let is_said =
            request.chosen.is_none() && words.iter().any(|word| says.iter().any(|name| name.contains(&plain(word))));
        let tunables = request.experiment.tunables(request.variant);
        let tunable = tunables.iter().find(|one| one.parameter.as_deref() == Some(parameter)).filter(|_| is_said)?;
        Some(candidate(tunable))
    };
    let variants = request.experiment.variants.iter();
    variants.into_iter().find_map(|variant| Some((variant.name.clone(), of_variant(variant)?)))
}

/// Whether a variant's value of a candidate is the one that the change asks for: exactly, if it says how much; else any
/// larger one, or any other that is no number.
fn is_meant(request: &ChangeRequest<'_>, candidate: &Candidate, value: &str) -> bool {
    if request.chosen.is_some() || request.change.amount.is_some() {
        return candidate.value.as_deref() == Some(value);
    }
    match (number(&candidate.tunable.value), number(value)) {
        (Some(old), Some(new)) => new > old,
        _ => true,
    }
}

/// The one parameter in which a variant differs from another, and its value there.
fn only_difference<'a>(one: &'a Variant, other: &'a Variant) -> Option<(&'a String, &'a String)> {
    let mut different = other.parameters.iter().filter(|(name, value)| one.parameters.get(*name) != Some(*value));
    let only = different.next()?;
    different.next().is_none().then_some(only)
}

/// Candidates without those of a parameter that an earlier one has.
fn distinct(candidates: impl Iterator<Item = Candidate>) -> Vec<Candidate> {
    let mut all: Vec<Candidate> = Vec::new();
    for candidate in candidates {
        let parameter = &candidate.tunable.parameter;
        if parameter.is_none() || !all.iter().any(|known| known.tunable.parameter == *parameter) {
            all.push(candidate);
        }
    }
    all
}

/// A name in lower case, without what separates its words.
fn plain(name: impl AsRef<str>) -> String {
    name.as_ref().chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// The number that a value is, or begins with before its unit.
fn number(value: &str) -> Option<f64> {
    let end = value.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(value.len());
    value[..end].parse().ok()
}

#[cfg(test)]
mod tests;
