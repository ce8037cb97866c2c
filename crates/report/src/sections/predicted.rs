//! Predicted beside measured, for each change that a later variant made to an earlier one.

use narrows_model::prediction::{Prediction, Scored};

use super::{Context, prediction_cells};
use crate::section::{Block, Cell, Column, Figure, Medium, Phrase, Row, Section, SmallPrint, Table};

/// Changes at most.
const ROWS_MAX: usize = 100;
/// Changes in the terminal at most.
const TERMINAL_MAX: usize = 12;

/// The table; without blocks if no variant made a change that was predicted.
pub(super) fn section(context: &Context<'_>) -> Section {
    let rows: Vec<Row> = context.outcome.scored.iter().take(ROWS_MAX).filter_map(row).collect();
    if rows.is_empty() {
        return Section::default();
    }
    let columns = [vec![Column::left("variants"), Column::left("change")], prediction_cells::columns()].concat();
    let note = Phrase::default()
        .slanted("Predicted")
        .plain(" from the first variant alone, with its 90 % interval; ✗ if a figure is outside of it. ")
        .strong("Measured")
        .plain(": the second variant, which made the change.");
    let table = Table::new(columns, rows).small(SmallPrint::Dropped).terminal_rows(TERMINAL_MAX);
    let blocks = vec![Block::Only(Medium::Page, vec![Block::Note(note)]), Block::Table(table)];
    Section::new("predicted", "Predicted and measured", blocks)
}

fn row(scored: &Scored) -> Option<Row> {
    let run = scored.earlier_run.as_ref().map_or_else(String::new, |run| format!("{run}:"));
    let name = Figure::new(format!("{run}{} → {}", scored.before, scored.after));
    let cells: Vec<Cell> = vec![name.into(), changes(scored).into()];
    Some(Row::new([cells, prediction_cells::cells(scored)?.to_vec()].concat()))
}

/// The names of the changes, and whether the model should be trusted.
pub(crate) fn changes(scored: &Scored) -> String {
    let trust = if scored.prediction.is_trusted() { "" } else { " (not to be trusted)" };
    format!("{}{trust}", names(&scored.prediction))
}

/// The names of a change and of those that are made with it.
pub(crate) fn names(prediction: &Prediction) -> String {
    let all = std::iter::once(&prediction.change).chain(&prediction.with).map(|change| change.kind.name());
    all.collect::<Vec<_>>().join(" + ")
}

#[cfg(test)]
mod tests {
    use super::super::{in_page, in_terminal};
    use super::*;
    use crate::fixture;

    #[test]
    fn predicted_and_measured_figures_stand_beside_each_other() {
        let mut outcome = fixture::outcome();
        assert_eq!(in_terminal(section, &outcome, 120), "");
        outcome.scored = vec![fixture::scored("as-is", "fixed")];
        insta::assert_snapshot!(in_terminal(section, &outcome, 120), @r"
        predicted → measured  change                 rate   error               mean    error
        ─────────────────────────────────────────────────────────────────────────────────────
        as-is → fixed         join-queries  700/s → 720/s  −2.8 %  9.00 ms → 12.0 ms  −25 % ✗
        ");
        outcome.scored = vec![fixture::scored("<img src=x>", "fixed"); TERMINAL_MAX + 2];
        let text = in_terminal(section, &outcome, 120);
        assert!(text.ends_with("2 more rows in the page and the JSON\n"), "{text}");
        let page = in_page(section, &outcome);
        assert!(page.contains("&lt;img src=x&gt; → fixed") && page.contains("<td>join-queries</td>"), "{page}");
    }
}
