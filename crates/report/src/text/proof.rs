//! Two variants compared trial by trial, as text: how they were measured, the figures, what limits them, the verdict.

use narrows_model::proof::{LoadShape, Order, Proof, QuantityChange, Ruling};
use narrows_model::units;

use super::paint::Paint;
use super::{Style, WIDTH_MIN, sections};
use crate::checked::caveats;
use crate::figures::{range, ratio};
use crate::section::{Block, Column, Phrase, Row, Section, Table, Tone};

/// An interval whose ends lie apart by a larger factor says nothing, and is not shown.
const WIDE_FROM: f64 = 100.0;

/// The text of `narrows compare`. Ends with a line feed.
pub fn proof(proof: &Proof, style: Style) -> String {
    let title = Block::Heading(Phrase::from(format!("{} → {}", proof.before, proof.after)));
    let all = [
        Section::untitled(vec![title, Block::Note(Phrase::from(design(proof)))]),
        Section::untitled(vec![Block::Table(figures(proof))]),
        caveats(&proof.caveats),
        Section::untitled(vec![Block::Paragraph(Phrase::from(&proof.sentence), tone(proof.verdict))]),
    ];
    sections(&all, Paint(style.color), style.width.max(WIDTH_MIN))
}

/// The design of the measurement, and the certainty of the verdict.
fn design(proof: &Proof) -> String {
    let (before, after) = proof.design.trials;
    let mut facts = vec![match (proof.design.order, proof.design.planned) {
        (Order::Apart, _) if before == after => format!("{before} trials each"),
        (Order::Apart, _) => format!("{before} trials and {after} trials"),
        (_, Some(planned)) => format!("{before} of at most {planned} pairs of trials"),
        _ => format!("{before} pairs of trials"),
    }];
    facts.push(match proof.design.order {
        Order::Randomised { seed } => format!("random order, seed {seed}"),
        Order::InTurn => "in turn".to_owned(),
        Order::Apart => "not interleaved".to_owned(),
    });
    facts.push(match proof.design.load {
        LoadShape::Open => "open load at an equal rate".to_owned(),
        LoadShape::Closed => "closed load".to_owned(),
    });
    let claims = units::percent(proof.error_rate);
    facts.push(format!("at most {claims} of verdicts claim a difference that is not there"));
    facts.join(" · ")
}

fn figures(proof: &Proof) -> Table {
    let short = |label: &str| label.rsplit(':').next().unwrap_or(label).to_owned();
    let (mut before, mut after) = (short(&proof.before), short(&proof.after));
    if before == after {
        (before, after) = ("before".to_owned(), "after".to_owned());
    }
    let columns = vec![
        Column::left(""),
        Column::right(before),
        Column::right(after),
        Column::right("change"),
        Column::left("interval"),
        Column::left(""),
    ];
    let row = |change: &QuantityChange| {
        let shown = match change.interval {
            Some(one) if (1.0 + one.high) / (1.0 + one.low) <= WIDE_FROM => range(one.low, one.high, change.ratio),
            Some(_) => "too wide".to_owned(),
            None => "–".to_owned(),
        };
        Row::new([
            change.quantity.words().to_owned(),
            change.quantity.shown(change.before),
            change.quantity.shown(change.after),
            ratio(change.ratio),
            shown,
            remark(change, proof),
        ])
    };
    Table::new(columns, proof.quantities.iter().map(row).collect())
}

/// Remark on a row: the deciding one has the verdict.
fn remark(change: &QuantityChange, proof: &Proof) -> String {
    if change.quantity == proof.by {
        return "▶ decides".to_owned();
    }
    match (change.is_change(), change.is_better()) {
        (false, _) => String::new(),
        (true, true) => "better".to_owned(),
        (true, false) => "worse".to_owned(),
    }
}

fn tone(ruling: Ruling) -> Tone {
    match ruling {
        Ruling::Slower => Tone::Bad,
        Ruling::Faster => Tone::Good,
        Ruling::NoDifference | Ruling::CannotTell => Tone::Strong,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::text::Color;

    #[test]
    fn it_reads_from_top_to_bottom() {
        let style = Style { width: 90, color: Color::Never };
        insta::assert_snapshot!(proof(&fixture::proof(), style), @r#"
        orders:as-is → orders:fixed
        4 of at most 10 pairs of trials · random order, seed 7 · closed load · at most 5.0 % of
        verdicts claim a difference that is not there

                           as-is    fixed  change  interval
        ───────────────────────────────────────────────────────────────────
        throughput         200/s    390/s   +95 %  +60 to +140 %  better
        mean latency     32.0 ms  16.3 ms   −49 %  −55 to −42 %   ▶ decides
        99 % latency     80.0 ms  88.0 ms   +10 %  −20 to +50 %
        CPU per request  2.50 ms  2.75 ms   +10 %  –

        caveat      The load is closed, so the rates are not equal: orders:as-is completed 80.0/s,
                    orders:fixed 120/s. Latency at an equal rate needs an open load.

        orders:fixed is faster than orders:as-is.
        "#);
    }
}
