//! How accurate predictions are, over many runs, as a Markdown page: the output of `narrows predict --score`, which is also in
//! `docs/benchmarks/predictions.md`.

use std::collections::BTreeSet;

use narrows_model::prediction::{Accuracy, LevelAccuracy, ScoreCard, Scored};
use narrows_model::units;

use crate::figures::plural;
use crate::markdown;
use crate::section::{Block, Cell, Column, Figure, Phrase, Row, Section, Table, Tone};
use crate::sections::{changes, prediction_cells};

/// Prediction beside what was measured, of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct ScoredRun {
    /// Name of the run.
    pub run: String,
    /// Prediction and measurement.
    pub scored: Scored,
    /// Whether the trial that it is predicted from has spans.
    pub has_spans: bool,
    /// Whether the run judges the model, rather than having tuned it; `None` if runs are not told apart.
    pub judges: Option<bool>,
}

/// Every prediction beside what was measured, and the accuracy of all. Ends with a line feed.
pub fn score(runs: &[ScoredRun]) -> String {
    let all: Vec<Scored> = runs.iter().map(|one| one.scored.clone()).collect();
    let card = ScoreCard::of(&all);
    let rows = runs.iter().filter_map(row).collect();
    let held = card.all.held.map_or_else(|| "–".to_owned(), units::percent);
    let meaning =
        format!("{}. ✗ marks a figure outside of its 90 % interval; the intervals hold {held} of them.", counts(runs));
    let blocks = vec![
        Block::Table(Table::new(columns(), rows)),
        Block::Paragraph(Phrase::from(meaning), Tone::Plain),
        Block::Table(summary(&card)),
        Block::Table(by_level(runs)),
    ];
    markdown::sections(&[Section::untitled(blocks)], 1)
}

/// How many predictions there are, of how many kinds of change, and how many without spans.
fn counts(runs: &[ScoredRun]) -> String {
    let measured: Vec<&ScoredRun> = runs.iter().filter(|one| one.scored.prediction.measured.is_some()).collect();
    let kinds = measured.iter().flat_map(|one| one.scored.prediction.changes()).map(|change| change.kind.name());
    let kinds: BTreeSet<&str> = kinds.collect();
    format!(
        "{} of {}, {} without spans",
        plural(measured.len(), "prediction", "predictions"),
        plural(kinds.len(), "kind of change", "kinds of change"),
        measured.iter().filter(|one| !one.has_spans).count()
    )
}

fn columns() -> Vec<Column> {
    [vec![Column::left("run"), Column::left("change")], prediction_cells::columns()].concat()
}

fn row(ScoredRun { run, scored, .. }: &ScoredRun) -> Option<Row> {
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

/// Throughput at each level of the load.
fn by_level(runs: &[ScoredRun]) -> Table {
    let columns = vec![
        Column::left("throughput at each level"),
        Column::right("predictions"),
        Column::right("levels"),
        Column::right("median error"),
        Column::right("within 10 %"),
        Column::right("within 25 %"),
        Column::right("in 90 % interval"),
    ];
    let of = |judges: Option<bool>| runs.iter().filter(move |one| judges.is_none() || one.judges == judges);
    let rows = [("all", None), ("runs that tuned the model", Some(false)), ("runs that judge it", Some(true))];
    let rows = rows.into_iter().filter(|(_, judges)| judges.is_none() || of(*judges).next().is_some());
    let row = |(name, judges)| level_row(name, LevelAccuracy::of(of(judges).map(|one| &one.scored)));
    Table::new(columns, rows.map(row).collect())
}

fn level_row(name: &str, accuracy: LevelAccuracy) -> Row {
    let share = |share: f64| if accuracy.levels == 0 { "–".to_owned() } else { units::percent(share) };
    Row::new([
        name.to_owned(),
        accuracy.pairs.to_string(),
        accuracy.levels.to_string(),
        share(accuracy.rate_error),
        share(accuracy.within_10),
        share(accuracy.within_25),
        share(accuracy.held),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_score_is_a_table_with_its_summary() {
        let scored = fixture::scored("as-is", "fixed");
        let run = ScoredRun { run: "shop".to_owned(), scored, has_spans: true, judges: Some(true) };
        insta::assert_snapshot!(score(&[run]), @r"
        | run | change | throughput, predicted → measured | error | mean latency, predicted → measured | error |
        |---|---|---:|---:|---:|---:|
        | shop as-is → fixed | join-queries | 700/s → 720/s | −2.8 % | 9.00 ms → 12.0 ms | −25 % ✗ |

        1 prediction of 1 kind of change, 0 without spans. ✗ marks a figure outside of its 90 % interval; the intervals hold 50 % of them.

        | over | predictions | median error of throughput | median error of mean latency |
        |---|---:|---:|---:|
        | all | 1 | 2.8 % | 25 % |
        | those to be trusted | 1 | 2.8 % | 25 % |
        | those that simple rules make too: Narrows | 1 | 2.8 % | 25 % |
        | – the rule “a fix removes its share of the latency” | 1 | 25 % | 75 % |
        | – Amdahl's law | 1 | 18 % | 58 % |

        | throughput at each level | predictions | levels | median error | within 10 % | within 25 % | in 90 % interval |
        |---|---:|---:|---:|---:|---:|---:|
        | all | 0 | 0 | – | – | – | – |
        | runs that judge it | 0 | 0 | – | – | – | – |
        ");
        assert!(score(&[]).contains("| all | 0 | – | – |"));
    }
}
