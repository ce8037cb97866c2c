//! Which trials a run has, and in what order: repetition by repetition, so that slow drift of the machine meets all
//! variants alike.

use narrows_model::run::{Trial, TrialState, Validity};

use crate::Error;
use crate::experiment::{Experiment, Variant};

/// The variants to run: all, or those named, in the experiment's order.
/// Errors when a name is unknown.
pub fn select<'a>(experiment: &'a Experiment, names: &[String]) -> Result<Vec<&'a Variant>, Error> {
    for name in names {
        if !experiment.variants.iter().any(|variant| variant.name == *name) {
            let known: Vec<_> = experiment.variants.iter().map(|variant| format!("`{}`", variant.name)).collect();
            return Err(Error::UnknownVariant { name: name.clone(), known: known.join(", ") });
        }
    }
    Ok(experiment.variants.iter().filter(|variant| names.is_empty() || names.contains(&variant.name)).collect())
}

/// The trials of a run, all planned, numbered from 1.
pub fn trials(variants: &[&Variant], repetitions: u32) -> Vec<Trial> {
    let pairs = (1..=repetitions).flat_map(|repetition| variants.iter().map(move |variant| (repetition, variant)));
    pairs
        .zip(1..)
        .map(|((repetition, variant), id)| Trial {
            id,
            variant: variant.name.clone(),
            repetition,
            state: TrialState::Planned,
            started_ns: None,
            ended_ns: None,
            parameters: variant.parameters.clone(),
            validity: Validity::default(),
            error: None,
            caveats: Vec::new(),
        })
        .collect()
}
