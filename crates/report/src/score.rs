//! How accurate predictions are, over many runs, as a Markdown page: the output of `narrows predict --score`, which is also in
//! `docs/benchmarks/predictions.md`.

use narrows_model::prediction::{Accuracy, ScoreCard, Scored};
use narrows_model::units;

use crate::figures::plural;
use crate::markdown;
use crate::section::{Block, Cell, Column, Figure, Phrase, Row, Section, Table, Tone};
use crate::sections::{changes, prediction_cells};

/// Every prediction beside what was measured, each with the name of its run, and the accuracy of all. Ends with a line feed.
pub fn score(scored: &[(String, Scored)]) -> String {
    let all: Vec<Scored> = scored.iter().map(|(_, one)| one.clone()).collect();
    let card = ScoreCard::of(&all);
    let rows = scored.iter().filter_map(|(run, one)| row(run, one)).collect();
    let held = card.all.held.map_or_else(|| "–".to_owned(), units::percent);
    let meaning = format!(
        "{}. ✗ marks a figure outside of its 90 % interval; the intervals hold {held} of them.",
        plural(card.all.count, "prediction", "predictions")
    );
    let blocks = vec![
        Block::Table(Table::new(columns(), rows)),
        Block::Paragraph(Phrase::from(meaning), Tone::Plain),
        Block::Table(summary(&card)),
    ];
    markdown::sections(&[Section::untitled(blocks)], 1)
}

fn columns() -> Vec<Column> {
    [vec![Column::left("run"), Column::left("change")], prediction_cells::columns()].concat()
}

fn row(run: &str, scored: &Scored) -> Option<Row> {
    let name = Figure::new(format!("{run} {} → {}", scored.before, scored.after));
    let cells: Vec<Cell> = vec![name.into(), changes(scored).into()];
    Some(Row::new([cells, prediction_cells::cells(scored)?.map(prediction_cells::in_brief).to_vec()].concat()))
}

fn summary(card: &ScoreCard) -> Table {
    let columns = vec![
        Column::left("over"),
        Column::right("predictions"),
        Column::right("median error of throughput"),
        Column::right("median error of mean latency"),
    ];
    let rows = vec![
        line("all", card.all),
        line("those to be trusted", card.trusted),
        line("those that simple rules make too: Narrows", card.comparable),
        line("– the rule “a fix removes its share of the latency”", card.share_removed),
        line("– Amdahl's law", card.amdahl),
    ];
    Table::new(columns, rows)
}

fn line(name: &str, accuracy: Accuracy) -> Row {
    let error = |share: f64| if accuracy.count == 0 { "–".to_owned() } else { units::percent(share) };
    Row::new([name.to_owned(), accuracy.count.to_string(), error(accuracy.rate_error), error(accuracy.mean_error)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_score_is_a_table_with_its_summary() {
        let scored = [("shop".to_owned(), fixture::scored("as-is", "fixed"))];
        insta::assert_snapshot!(score(&scored), @r"
        | run | change | throughput, predicted → measured | error | mean latency, predicted → measured | error |
        |---|---|---:|---:|---:|---:|
        | shop as-is → fixed | join-queries | 700/s → 720/s | −2.8 % | 9.00 ms → 12.0 ms | −25 % ✗ |

        1 prediction. ✗ marks a figure outside of its 90 % interval; the intervals hold 50 % of them.

        | over | predictions | median error of throughput | median error of mean latency |
        |---|---:|---:|---:|
        | all | 1 | 2.8 % | 25 % |
        | those to be trusted | 1 | 2.8 % | 25 % |
        | those that simple rules make too: Narrows | 1 | 2.8 % | 25 % |
        | – the rule “a fix removes its share of the latency” | 1 | 25 % | 75 % |
        | – Amdahl's law | 1 | 18 % | 58 % |
        ");
        assert!(score(&[]).contains("| all | 0 | – | – |"));
    }
}
