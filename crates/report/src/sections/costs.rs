//! Cost of each variant by the prices of the experiment: for an hour, and for a million requests.

use narrows_model::prices::{Prices, VariantCost};
use narrows_model::units;

use super::Context;
use crate::section::{Block, Column, Figure, Phrase, Row, Section, Table};

/// The table; without blocks if the experiment has no prices.
pub(super) fn section(context: &Context<'_>) -> Section {
    let outcome = context.outcome;
    let (Some(prices), Some(first)) = (&outcome.notes.prices, outcome.costs.first()) else { return Section::default() };
    let rows = outcome.costs.iter().map(|cost| row(cost, &outcome.costs)).collect();
    let mut blocks = vec![Block::Table(Table::new(columns(prices, first), rows).continued())];
    blocks.extend(cheapest(&outcome.costs).map(|text| Block::Note(Phrase::from(text))));
    let source = prices.source.trim_end_matches('.');
    let note = format!(
        "Prices: {source}. A million requests: at the throughput of the variant, of what succeeded. Resources are paid for \
         by the hour, used or not."
    );
    blocks.push(Block::Note(Phrase::from(note)));
    Section::new("costs", "Cost", blocks)
}

fn columns(prices: &Prices, first: &VariantCost) -> Vec<Column> {
    let currency = &prices.currency;
    let resources = prices.resources.iter().map(|one| Column::right(format!("{} an hour", one.name)).short(&one.name));
    let mut columns = vec![Column::left("variant").short(format!("cost, {currency}"))];
    columns.extend(resources);
    columns.push(Column::right(format!("{currency} an hour")).short("an hour"));
    columns.push(Column::right(format!("{currency} for a million requests")).short("million requests").with_bars());
    columns.push(Column::right(format!("vs {}", first.variant)));
    columns
}

fn row(cost: &VariantCost, all: &[VariantCost]) -> Row {
    let largest = all.iter().filter_map(|one| one.per_million).fold(0.0, f64::max);
    let resources = cost.resources.iter().map(|resource| money(*resource));
    let mut cells = vec![cost.variant.clone()];
    cells.extend(resources.chain([money(cost.per_hour())]));
    let per_million = cost.per_million.map_or_else(Figure::unknown, |one| Figure::new(money(one)).bar(one, largest));
    let ratio = all[0].per_million.zip(cost.per_million).filter(|(base, _)| *base > 0.0);
    let ratio = ratio.map_or_else(Figure::unknown, |(base, one)| Figure::new(units::percent(one / base)));
    Row::new(cells.into_iter().map(Figure::new).chain([per_million, ratio]))
}

/// The cheapest variant beside the dearest: `test-4 costs 41 % of test-2 per million requests.` `None` if they cost the same.
fn cheapest(costs: &[VariantCost]) -> Option<String> {
    let known = || costs.iter().filter_map(|cost| Some((cost.variant.as_str(), cost.per_million?)));
    let (cheapest, least) = known().min_by(|a, b| a.1.total_cmp(&b.1))?;
    let (dearest, most) = known().max_by(|a, b| a.1.total_cmp(&b.1))?;
    (least < most)
        .then(|| format!("{cheapest} costs {} of {dearest} per million requests.", units::percent(least / most)))
}

/// An amount of money in three digits; of less than one, the thousandths.
fn money(value: f64) -> String {
    if value < 0.9995 { format!("{value:.3}") } else { units::three(value) }
}

#[cfg(test)]
mod tests {
    use narrows_model::comparison::Outcome;
    use narrows_model::prices::PricedResource;

    use super::super::{in_page, in_terminal};
    use super::*;
    use crate::fixture::{self, drones};

    /// The drones' run with prices, and its second variant without throughput.
    fn outcome() -> Outcome {
        let mut outcome = drones::outcome();
        let resource = |name: &str, amount: &str, per_hour| PricedResource {
            name: name.to_owned(),
            amount: amount.to_owned(),
            per_hour,
        };
        outcome.notes.prices = Some(Prices {
            currency: "USD".to_owned(),
            source: "a price list.".to_owned(),
            resources: vec![resource("request-units", "${throughput}", 0.00008), resource("nodes", "2", 0.146)],
        });
        let variants = outcome.comparison.variants.iter().enumerate();
        let costs = variants.map(|(at, one)| {
            let units = if at == 0 { 0.072 } else { 0.2 };
            VariantCost::new(&one.variant, vec![units, 0.292], one.rate.filter(|_| at != 1))
        });
        outcome.costs = costs.collect();
        outcome
    }

    #[test]
    fn each_variant_has_its_cost() {
        insta::assert_snapshot!(in_terminal(section, &outcome(), 100), @r"
        cost, USD        request-units  nodes  an hour  million requests  vs baseline
        ─────────────────────────────────────────────────────────────────────────────
        baseline                 0.072  0.292    0.364  3.89 ████████           100 %
        more-throughput          0.200  0.292    0.492     –                        –
        parallel                 0.200  0.292    0.492  1.85 ███▊                47 %
        partition-key            0.200  0.292    0.492  1.38 ██▉                 35 %
        partition-key costs 35 % of baseline per million requests.
        Prices: a price list. A million requests: at the throughput of the variant, of what succeeded.
        Resources are paid for by the hour, used or not.
        ");
    }

    #[test]
    fn without_prices_nothing_is_shown() {
        assert_eq!(in_page(section, &fixture::outcome()), "");
    }

    #[test]
    fn variants_that_cost_the_same_are_not_compared() {
        let cost = |name: &str, rate| VariantCost::new(name, vec![0.1], rate);
        assert_eq!(cheapest(&[cost("a", Some(10.0)), cost("b", Some(10.0)), cost("c", None)]), None);
        let costs = [cost("a", Some(10.0)), cost("b", Some(40.0))];
        assert_eq!(cheapest(&costs).as_deref(), Some("b costs 25 % of a per million requests."));
    }

    #[test]
    fn small_amounts_keep_their_digits() {
        let cases = [(0.0, "0.000"), (0.0724, "0.072"), (1.0, "1.00"), (12.34, "12.3"), (1234.0, "1234")];
        for (value, expected) in cases {
            assert_eq!(money(value), expected);
        }
    }
}
