//! Which trials a run has, and in what order: repetition by repetition, so that slow drift of the machine meets all
//! variants alike.

use std::collections::BTreeMap;

use narrows_model::run::{Trial, TrialState, Validity};

use crate::Error;
use crate::experiment::{Experiment, Variant};

/// The variants to run: all, or those named, in the experiment's order.
/// Errors when a name is unknown.
pub(crate) fn select<'a>(experiment: &'a Experiment, names: &[String]) -> Result<Vec<&'a Variant>, Error> {
    for name in names {
        if !experiment.variants.iter().any(|variant| variant.name == *name) {
            let known: Vec<_> = experiment.variants.iter().map(|variant| format!("`{}`", variant.name)).collect();
            return Err(Error::UnknownVariant { name: name.clone(), known: known.join(", ") });
        }
    }
    Ok(experiment.variants.iter().filter(|variant| names.is_empty() || names.contains(&variant.name)).collect())
}

/// The trials of a run, all planned, numbered from 1. `shown` gives a variant's parameters as they may be shown.
pub(crate) fn trials(
    variants: &[&Variant],
    repetitions: u32,
    shown: impl Fn(&Variant) -> BTreeMap<String, String>,
) -> Vec<Trial> {
    let pairs = (1..=repetitions).flat_map(|repetition| variants.iter().map(move |variant| (repetition, variant)));
    pairs.zip(1..).map(|((repetition, variant), id)| planned(id, &variant.name, repetition, &shown(variant))).collect()
}

/// The parameters in which trials differ, by name.
pub(crate) fn varied(trials: &[Trial]) -> Vec<String> {
    let Some((first, others)) = trials.split_first() else { return Vec::new() };
    let is_varied =
        |name: &&String| others.iter().any(|trial| trial.parameters.get(*name) != first.parameters.get(*name));
    first.parameters.keys().filter(is_varied).cloned().collect()
}

/// A trial as it is when it begins, for the first time or again: nothing of an earlier attempt stays.
pub(crate) fn begun(trial: &Trial, now_ns: i64) -> Trial {
    let fresh = planned(trial.id, &trial.variant, trial.repetition, &trial.parameters);
    Trial { state: TrialState::Running, started_ns: Some(now_ns), ..fresh }
}

fn planned(id: i64, variant: &str, repetition: u32, parameters: &BTreeMap<String, String>) -> Trial {
    Trial {
        id,
        variant: variant.to_owned(),
        repetition,
        state: TrialState::Planned,
        started_ns: None,
        ended_ns: None,
        parameters: parameters.clone(),
        validity: Validity::default(),
        error: None,
        caveats: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_parameters_that_differ_are_varied() {
        let variant = |name: &str, pool: &str| Variant {
            name: name.to_owned(),
            parameters: [("cache", "on"), ("pool", pool)].map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
        };
        let (small, large) = (variant("small", "5"), variant("large", "20"));
        let trials = |variants: &[&Variant]| trials(variants, 2, |variant| variant.parameters.clone());
        assert_eq!(varied(&trials(&[&small, &large])), ["pool"]);
        assert_eq!(varied(&trials(&[&small])), [""; 0]);
        assert_eq!(varied(&[]), [""; 0]);
    }
}
