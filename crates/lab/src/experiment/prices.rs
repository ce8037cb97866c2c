//! `prices`: the price list of the resources that a variant needs, for the cost of its requests.
//!
//! A resource is paid for by the hour, as providers bill provisioned throughput and machines. What a request uses of it makes
//! no difference to the bill.

use std::collections::BTreeMap;

use narrows_model::comparison::{Outcome, VariantSummary};
use narrows_model::prices::{PricedResource, Prices, VariantCost};

use super::document::at::At;
use super::error::Report;
use super::grammar::check::{self, Pass};
use super::grammar::complete::complete;
use super::grammar::key::{Key, optional, parameter, required};
use super::grammar::kind::{self, Kind};
use super::grammar::shape::{Field, Map, NamedMap, Shape};
use super::grammar::values::{AMOUNT, MANY, TEXT};
use super::placeholders::names::Values;
use super::placeholders::syntax::{filled, trial_pieces};

const CURRENCY: Key<String> = Key::required("currency", TEXT, "The currency of all prices, such as `USD`.");

const SOURCE: Key<String> =
    Key::required("source", TEXT, "Source of the prices: a provider's price list, its region and its date.");

const RESOURCES: Field = required(
    "resources",
    Shape::Named(NamedMap { what: "resource", name: &kind::NAME, value: &RESOURCE, least: 1, most: MANY }),
    "The resources that are paid for by the hour, by name.",
);

const UNITS: Key<f64> = Key::required(
    "amount",
    parameter(&kind::AMOUNT),
    "Number of units that a variant needs, such as `${throughput}` or `${replicas}`.",
);

const PER_HOUR: Key<f64> = Key::required("per_hour", AMOUNT, "The price of a unit for an hour.");

static RESOURCE: Shape = Shape::Map(Map::new(&[UNITS.field, PER_HOUR.field]));

const SHAPE: Shape = Shape::Map(Map::new(&[CURRENCY.field, SOURCE.field, RESOURCES]));

pub(super) const PRICES: Field = optional(
    "prices",
    SHAPE,
    "Prices of what a variant needs. Reports show what a million requests cost with each variant.",
);

/// The price list, as far as it can be read.
pub(super) fn prices(root: At<'_>) -> Option<Prices> {
    let section = root.get(&PRICES)?;
    let resources = section.get(&RESOURCES);
    let resources = resources.iter().flat_map(At::entries).filter_map(|(name, at)| {
        let amount = at.get(&UNITS)?.text()?.to_owned();
        Some(PricedResource { name: name.to_owned(), amount, per_hour: at.read(&PER_HOUR)? })
    });
    let resources: Vec<PricedResource> = resources.collect();
    let (currency, source) = (section.read(&CURRENCY)?, section.read(&SOURCE)?);
    (!resources.is_empty()).then_some(Prices { currency, source, resources })
}

/// Judges the amounts of a variant.
pub(super) fn check(root: At<'_>, values: &Values<'_>, report: &mut Report) {
    let Some(section) = root.get(&PRICES) else { return };
    let node = complete(section.node, &SHAPE, values);
    check::check(section.with(&node), &SHAPE, Pass::Bound, report);
}

/// Costs of the variants of a run, in the order of its comparison. A variant with an unknown amount has none.
pub(crate) fn costs(prices: &Prices, outcome: &Outcome) -> Vec<VariantCost> {
    let of_variant = |summary: &VariantSummary| {
        let mut trials = outcome.evidence.trials.iter().map(|one| &one.trial);
        let trial = trials.find(|trial| trial.variant == summary.variant)?;
        Some(VariantCost::new(&summary.variant, per_hour(prices, &trial.parameters)?, summary.rate))
    };
    outcome.comparison.variants.iter().filter_map(of_variant).collect()
}

/// Cost of each resource for an hour with these parameters; `None` if an amount is unknown.
fn per_hour(prices: &Prices, parameters: &BTreeMap<String, String>) -> Option<Vec<f64>> {
    prices.resources.iter().map(|one| Some(amount(one, parameters)? * one.per_hour)).collect()
}

/// Number of units with these parameters; `None` if it is no number of 0 or more.
fn amount(resource: &PricedResource, parameters: &BTreeMap<String, String>) -> Option<f64> {
    let values = Values::of(parameters);
    let text = filled(trial_pieces(&resource.amount).ok()?, &values)?;
    kind::AMOUNT.read(&text).ok()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::experiment::RecordedExperiment;

    fn experiment(resources: &str) -> String {
        format!(
            "experiment: e\nparameters: {{ units: 900, nodes: 2 }}\nload:\n  target: http://localhost\n  scenarios: {{ main: {{ \
             model: constant-vus, vus: 1, duration: 1s, request: GET / }} }}\nvariants: [{{ name: a }}, {{ name: b, units: \
             2500 }}]\nprices:\n  currency: USD\n  source: a list\n  resources:\n{resources}"
        )
    }

    #[test]
    fn amounts_follow_the_parameters_of_the_variant() {
        let source = experiment(
            "    units: { amount: \"${units}\", per_hour: 0.00008 }\n    nodes: { amount: \"${nodes}\", per_hour: 0.146 }\n",
        );
        assert!(crate::language().parse(&source, "e.yaml", Path::new("/")).is_ok());
        let prices = RecordedExperiment::read(&source).notes.prices.unwrap();
        let of = |units: &str| {
            let parameters = [("units".to_owned(), units.to_owned()), ("nodes".to_owned(), "2".to_owned())];
            per_hour(&prices, &parameters.into())
        };
        assert_eq!(of("900"), Some(vec![900.0 * 0.00008, 2.0 * 0.146]));
        assert_eq!((of("many"), per_hour(&prices, &BTreeMap::new())), (None, None));
    }

    #[test]
    fn a_price_list_that_does_not_read_is_reported_with_its_place() {
        let source = experiment(
            "    units: { amount: \"${unit}\", per_hour: cheap }\n    nodes: { amount: \"-${nodes}\", per_hour: 1 }\n    a b: {}\n",
        );
        let errors = crate::language().parse(&source, "e.yaml", Path::new("/")).unwrap_err();
        let reported: Vec<String> = errors.iter().map(ToString::to_string).collect();
        insta::assert_snapshot!(reported.join("\n"), @r#"
        e.yaml:11:22: prices.resources.units.amount: unknown name in `${unit}`
        e.yaml:11:43: prices.resources.units.per_hour: expected a number of 0 or more, found "cheap"
        e.yaml:12:22: prices.resources.nodes.amount: expected a number of 0 or more, found "-2"
        e.yaml:13:5: prices.resources: expected a name of letters, digits, `_` and `-`, found "a b"
        e.yaml:13:5: prices.resources.a b: `amount` is missing
        e.yaml:13:5: prices.resources.a b: `per_hour` is missing
        "#);
        assert_eq!(RecordedExperiment::read("prices: { currency: USD, source: x, resources: {} }").notes.prices, None);
    }
}
