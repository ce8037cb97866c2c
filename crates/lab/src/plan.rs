//! Which trials a run has, and in what order: repetition by repetition, so that slow drift of the machine meets all
//! variants alike. Within a repetition the variants come in the experiment's order, or in random order, so that drift
//! favours none of them.

use std::collections::BTreeMap;

use narrows_model::random::SplitMix64;
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

/// The order of the variants within a repetition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// That of the experiment.
    InTurn,
    /// Drawn anew for each repetition. Such a run may end before its last planned trial.
    Drawn {
        /// Seed.
        seed: u64,
    },
}

/// The variants in the order of a repetition.
fn ordered<'v, 'a>(variants: &'v [&'a Variant], repetition: u32, order: Order) -> Vec<&'v &'a Variant> {
    let mut ordered: Vec<(usize, &&Variant)> = variants.iter().enumerate().collect();
    if let Order::Drawn { seed } = order {
        ordered.sort_by_key(|(at, _)| SplitMix64::bits_at(seed, u64::from(repetition) << 32 | *at as u64));
    }
    ordered.into_iter().map(|(_, variant)| variant).collect()
}

/// The trials of a run, all planned, numbered from 1. `shown` gives a variant's parameters as they may be shown.
pub(crate) fn trials(
    variants: &[&Variant],
    repetitions: u32,
    order: Order,
    shown: impl Fn(&Variant) -> BTreeMap<String, String>,
) -> Vec<Trial> {
    let pairs = (1..=repetitions).flat_map(|repetition| {
        ordered(variants, repetition, order).into_iter().map(move |variant| (repetition, variant))
    });
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
        load_program: None,
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
        let trials = |variants: &[&Variant]| trials(variants, 2, Order::InTurn, |variant| variant.parameters.clone());
        assert_eq!(varied(&trials(&[&small, &large])), ["pool"]);
        assert_eq!(varied(&trials(&[&small])), [""; 0]);
        assert_eq!(varied(&[]), [""; 0]);
    }

    #[test]
    fn a_drawn_order_has_each_variant_once_and_favours_none() {
        let variant = |name: &str| Variant { name: name.to_owned(), parameters: BTreeMap::new() };
        let (a, b) = (variant("a"), variant("b"));
        let names = |order| -> Vec<String> {
            trials(&[&a, &b], 200, order, |_| BTreeMap::new()).into_iter().map(|trial| trial.label()).collect()
        };
        let drawn = names(Order::Drawn { seed: 7 });
        assert_eq!(drawn, names(Order::Drawn { seed: 7 }));
        assert_ne!(drawn, names(Order::Drawn { seed: 8 }));
        assert_eq!(names(Order::InTurn)[..4], ["a", "b", "a#2", "b#2"]);
        let first = drawn.chunks(2).filter(|pair| pair[0].starts_with('a')).count();
        assert!((75..=125).contains(&first), "a is first in {first} of 200");
        for (pair, repetition) in drawn.chunks(2).zip(1..) {
            let mut pair = pair.to_vec();
            pair.sort();
            let number = if repetition > 1 { format!("#{repetition}") } else { String::new() };
            assert_eq!(pair, [format!("a{number}"), format!("b{number}")]);
        }
    }
}
