//! The story of a run: a row for each variant with its change, throughput and latency, predicted and measured, and its
//! bottleneck.

use std::collections::BTreeMap;

use narrows_model::comparison::{Outcome, VariantSummary};
use narrows_model::prediction::{Estimate, Prediction, Scored};
use narrows_model::units;

use super::{Context, changes};
use crate::bottleneck::bottlenecks;
use crate::figures::cut;
use crate::section::{Block, Column, Figure, Medium, Phrase, Row, Section, SmallPrint, Table};

/// Characters of a value at most.
const VALUE_CHARS_MAX: usize = 24;

/// The rows; without blocks if there is only one variant.
pub(super) fn section(context: &Context<'_>) -> Section {
    let outcome = context.outcome;
    let variants = &outcome.comparison.variants;
    if variants.len() < 2 {
        return Section::default();
    }
    let columns = vec![
        Column::left("variant"),
        Column::right("throughput").with_bars(),
        Column::right("mean latency").short("mean").with_bars(),
        Column::left("bottleneck"),
    ];
    let found: BTreeMap<&str, String> = bottlenecks(outcome).into_iter().map(|one| (one.variant, one.what)).collect();
    let steps: Vec<Step<'_>> = (0..variants.len()).map(|at| Step::new(outcome, at)).collect();
    let lead = if context.medium == Medium::Page { "predicted " } else { "" };
    let rows = steps.iter().map(|step| step.row(variants, &found, lead)).collect();
    let mut blocks = vec![Block::Table(Table::new(columns, rows).small(SmallPrint::Below(String::new())))];
    if steps.iter().any(|step| step.predicted.is_some()) {
        let note =
            "Below a figure: its prediction from the variant before; ✓ if the 90 % interval holds the measured one.";
        blocks.push(Block::Note(Phrase::from(note)));
    }
    Section::new("steps", "", blocks)
}

/// A variant and the one before it.
struct Step<'a> {
    variant: &'a VariantSummary,
    /// Changes that lead to it.
    change: String,
    /// Prediction of the change, if it was recognised and is to be trusted.
    predicted: Option<&'a Prediction>,
}

impl<'a> Step<'a> {
    fn new(outcome: &'a Outcome, at: usize) -> Self {
        let variants = &outcome.comparison.variants;
        let variant = &variants[at];
        let Some(before) = at.checked_sub(1).map(|at| &variants[at].variant) else {
            return Self { variant, change: String::new(), predicted: None };
        };
        let is_step = |scored: &&Scored| scored.before == *before && scored.after == variant.variant;
        let scored = outcome.scored.iter().find(is_step);
        let parameters = changed_parameters(outcome, before, &variant.variant);
        let change = if parameters.is_empty() { scored.map_or(String::new(), changes) } else { parameters };
        let predicted = scored.map(|scored| &scored.prediction).filter(|one| one.is_trusted());
        Self { variant, change, predicted }
    }

    fn row(&self, variants: &[VariantSummary], found: &BTreeMap<&str, String>, lead: &str) -> Row {
        let name = self.variant.variant.as_str();
        let bottleneck = found.get(name).filter(|bottleneck| !bottleneck.is_empty());
        let bottleneck = bottleneck.map_or_else(Figure::unknown, Figure::new);
        let [rate, mean] = [RATE, MEAN].map(|quantity| self.figure(quantity, variants, lead));
        Row::new([Figure::new(name).small(&self.change), rate, mean, bottleneck])
    }

    /// A figure with its bar, and in small print its prediction behind `lead`.
    fn figure(&self, quantity: Quantity, variants: &[VariantSummary], lead: &str) -> Figure {
        let Some(measured) = (quantity.of)(self.variant) else { return Figure::unknown() };
        let largest = variants.iter().filter_map(quantity.of).fold(0.0, f64::max);
        let figure = Figure::new((quantity.written)(measured)).bar(measured, largest);
        let Some(predicted) = self.predicted.map(quantity.predicted) else { return figure };
        let mark = if predicted.holds(measured) { "✓" } else { "✗" };
        figure.small(format!("{lead}{} {mark}", (quantity.written)(predicted.value)))
    }
}

/// A measured quantity that is predicted too.
#[derive(Clone, Copy)]
struct Quantity {
    of: fn(&VariantSummary) -> Option<f64>,
    predicted: fn(&Prediction) -> Estimate,
    written: fn(f64) -> String,
}

const RATE: Quantity = Quantity { of: |one| one.rate, predicted: |one| one.after.rate, written: units::rate };
const MEAN: Quantity = Quantity { of: |one| one.mean_ns, predicted: |one| one.after.mean_ns, written: units::duration };

/// Parameters that differ between two variants: `pool 5 → 50, 2 more`.
fn changed_parameters(outcome: &Outcome, before: &str, after: &str) -> String {
    let parameters = |variant: &str| {
        let trial = outcome.evidence.trials.iter().map(|evidence| &evidence.trial).find(|one| one.variant == variant);
        trial.map(|trial| &trial.parameters)
    };
    let (Some(old), Some(new)) = (parameters(before), parameters(after)) else { return String::new() };
    let value = |of: &BTreeMap<String, String>, name: &str| {
        of.get(name).map_or_else(|| "–".to_owned(), |value| cut(value, VALUE_CHARS_MAX))
    };
    let names = new.keys().chain(old.keys().filter(|name| !new.contains_key(*name)));
    let changed: Vec<String> = names
        .filter(|name| old.get(*name) != new.get(*name))
        .map(|name| format!("{name} {} → {}", value(old, name), value(new, name)))
        .collect();
    match &changed[..] {
        [] => String::new(),
        [only] => only.clone(),
        [first, more @ ..] => format!("{first}, {} more", more.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, drones};
    use crate::text::plain;

    #[test]
    fn each_variant_has_its_change_and_its_bottleneck() {
        insta::assert_snapshot!(plain(&section(&Context::for_terminal(&drones::outcome())), 100), @r"
        variant                  throughput       mean              bottleneck
        ────────────────────────────────────────────────────────────────────────────────────────────────────
        baseline                 26.0/s ██▏        672 ms ████████  azure.cosmosdb rejects 15 % of the calls
                                                                    of GET /api/dronedeliveries/utilization,
                                                                    which then wait and retry
        more-throughput          45.0/s ███▋       572 ms ██████▊   –
          throughput 900 → 2500
        parallel                 74.0/s ██████     218 ms ██▋       –
        partition-key            99.0/s ████████  40.0 ms ▌         drone-scheduler uses up its CPU limit:
                                                                    92 % of 1 core
        ");
    }

    #[test]
    fn one_variant_is_no_story() {
        let mut outcome = fixture::outcome();
        outcome.comparison.variants.truncate(1);
        assert!(section(&Context::for_terminal(&outcome)).blocks.is_empty());
    }

    #[test]
    fn a_trusted_prediction_stands_below_the_figure() {
        let mut outcome = fixture::outcome();
        outcome.scored = vec![fixture::scored("as-is", "fixed")];
        let section = section(&Context::for_terminal(&outcome));
        let Some(Block::Table(Table { groups, .. })) = section.blocks.first() else { panic!("no table") };
        assert_eq!(groups[0].rows.len(), 2);
        insta::assert_snapshot!(plain(&section, 100), @r"
        variant                throughput        mean              bottleneck
        ────────────────────────────────────────────────────────────────────────────────────────────────────
        as-is                    245/s █▉        32.1 ms ████████  GET /orders fetches rows one at a time:
                                                                   24 similar queries in each request
        fixed                  1,020/s ████████  7.89 ms ██        –
          joined false → true  700/s ✗           9.00 ms ✗
        Below a figure: its prediction from the variant before; ✓ if the 90 % interval holds the measured
        one.
        ");
    }
}
