//! Published figures beside the measured ones.

use narrows_model::comparison::Outcome;
use narrows_model::published::{Beside, BesideCell, Standing};

use super::Context;
use crate::conclusions;
use crate::html::pairs;
use crate::measures;
use crate::section::{Block, Cell, Column, Figure, Medium, Phrase, Row, Section, SmallPrint, Table};

/// Variants in the terminal at most; the page has more.
const VARIANTS_MAX: usize = 24;
/// Names of the two figures of a cell.
const PAIR: [&str; 2] = ["published", "measured"];

/// The table with bars; without blocks if no figure is published.
pub(super) fn section(context: &Context<'_>) -> Section {
    let mut section = with_remarks(context);
    if !section.blocks.is_empty() {
        section.blocks.push(Block::Only(Medium::Page, drawings(context.outcome)));
    }
    section
}

/// Bars of the figures that have a shape.
pub(crate) fn drawings(outcome: &Outcome) -> Vec<Block> {
    outcome.beside.iter().filter_map(pairs::figure).map(Block::Drawing).collect()
}

/// The table alone, without remarks.
pub(super) fn figures(context: &Context<'_>) -> Section {
    let mut section = with_remarks(context);
    for block in &mut section.blocks {
        if let Block::Table(table) = block {
            table.groups.iter_mut().flat_map(|group| &mut group.rows).for_each(|row| row.remark.clear());
        }
    }
    section
}

fn with_remarks(context: &Context<'_>) -> Section {
    let outcome = context.outcome;
    if outcome.beside.is_empty() {
        return Section::default();
    }
    let source = match measures::source(outcome) {
        "" => "elsewhere",
        source => source.trim_end_matches('.'),
    };
    let lead = Phrase::default().slanted("Published").plain(format!(": {source}. ")).strong("Measured");
    let lead = match measures::operation(outcome) {
        None => lead.plain(format!(": this run. {}", measures::OF_CLIENTS)),
        Some(name) => lead.plain(": this run. Durations and calls are those of ").strong(name).plain("."),
    };
    let mut blocks = vec![Block::Note(lead)];
    blocks.extend(conclusions::table(&conclusions::judged(outcome)).map(Block::Table));
    match context.medium {
        Medium::Page => blocks.push(Block::Table(table(outcome))),
        Medium::Terminal => blocks.push(Block::Table(in_terminal(outcome))),
    }
    blocks.extend(measures::bases(&outcome.beside).map(|bases| Block::Note(Phrase::from(bases))));
    Section::new("published", "Published and measured", blocks)
}

/// A row for each figure, a column for each variant.
pub(crate) fn table(outcome: &Outcome) -> Table {
    let count = outcome.beside.first().map_or(0, |row| row.cells.len());
    of_variants(outcome, &(0..count).collect::<Vec<_>>())
}

/// Without the variants for which nothing is published.
fn in_terminal(outcome: &Outcome) -> Table {
    let count = outcome.beside.first().map_or(0, |row| row.cells.len());
    let is_published = |at: &usize| outcome.beside.iter().any(|row| row.cells.get(*at).is_some_and(has_published));
    of_variants(outcome, &(0..count).filter(is_published).take(VARIANTS_MAX).collect::<Vec<_>>())
}

fn has_published(cell: &BesideCell) -> bool {
    cell.published.is_some()
}

fn of_variants(outcome: &Outcome, variants: &[usize]) -> Table {
    let Some(first) = outcome.beside.first() else { return Table::default() };
    let names = variants.iter().map(|at| Column::pair(&first.cells[*at].variant, PAIR));
    let columns = std::iter::once(Column::left("")).chain(names).collect();
    let is_to_first = outcome.beside.iter().flat_map(|row| &row.cells).all(|cell| cell.ratio_to.is_none());
    let base = first.cells.first().map_or("", |cell| cell.variant.as_str());
    let label = if is_to_first { format!("vs {base}") } else { "ratio".to_owned() };
    let rows = outcome.beside.iter().map(|row| of_row(row, variants)).collect();
    Table::new(columns, rows).small(SmallPrint::Below(label)).continued()
}

fn of_row(row: &Beside, variants: &[usize]) -> Row {
    let name = Cell::from(measures::name(row));
    let cells = variants.iter().map(|at| cell(row, *at));
    Row { cells: std::iter::once(name).chain(cells).collect(), remark: row.remark.clone(), stands_out: false }
}

fn cell(row: &Beside, at: usize) -> Cell {
    let figure = |of: fn(&BesideCell) -> Option<f64>| {
        let ratio = measures::ratio(row, at, of).filter(|_| measures::has_ratio(row.measure));
        Figure::new(measures::value(row.measure, row.cells.get(at).and_then(of))).small(ratio.unwrap_or_default())
    };
    let measured = figure(|cell| cell.measured);
    let standing = row.cells.get(at).map_or_else(Standing::default, |cell| cell.standing.clone());
    let range = row.cells.get(at).and_then(|cell| cell.range).map_or_else(String::new, |[low, high]| {
        let [low, high] = [low, high].map(|bound| measures::value(row.measure, Some(bound)));
        format!("{low} to {high}")
    });
    Cell::Pair(figure(|cell| cell.published), Figure { standing, range, ..measured })
}

#[cfg(test)]
mod tests {
    use super::super::{in_page, in_terminal};
    use super::*;
    use crate::fixture::{self, drones};

    #[test]
    fn variants_that_do_not_fit_follow_below() {
        insta::assert_snapshot!(in_terminal(section, &drones::outcome(), 60), @r"
        Published: Performance tuning: multiple backend services,
        Azure Architecture Center. Measured: this run. Durations and
        calls are those of drone-scheduler GET
        /api/dronedeliveries/utilization.
        published → measured         baseline  more-throughput
        ──────────────────────────────────────────────────────
        throughput            19.0/s → 26.0/s  23.0/s → 45.0/s
          vs baseline                            ×1.21 → ×1.73
        mean duration         669 ms → 669 ms  569 ms → 569 ms
          vs baseline                            ×0.85 → ×0.85
        completed               9,800 → 2,860   11,000 → 4,950
        throttled              16,071 → 4,661            0 → 0
        calls per operation            11 → 9            9 → 9
        RU per operation              29 → 29          29 → 29

        published → measured         parallel     partition-key
        ───────────────────────────────────────────────────────
        throughput            42.0/s → 74.0/s   59.0/s → 99.0/s
          vs baseline           ×2.21 → ×2.85     ×3.11 → ×3.81
        mean duration         215 ms → 215 ms  176 ms → 37.0 ms
          vs baseline           ×0.32 → ×0.32     ×0.26 → ×0.06
        completed              20,000 → 8,140   29,000 → 10,890
        throttled                       0 → 0             0 → 0
        calls per operation            10 → 9             1 → 1
        RU per operation               – → 29       3.40 → 3.40
        remark      throughput: The article counts four minutes of
                    one user too.
        remark      throttled: The article says 2.72 K, the data
                    behind it 16,071.
        ");
    }

    #[test]
    fn without_an_operation_durations_are_those_of_clients() {
        let mut outcome = drones::outcome();
        outcome.notes.published.as_mut().unwrap().operation = None;
        let text = in_terminal(section, &outcome, 200);
        assert!(text.contains("this run. Durations are those that clients saw."), "{text}");
    }

    #[test]
    fn a_terminal_has_no_column_for_a_variant_without_published_figures() {
        let mut outcome = drones::outcome();
        outcome.beside.iter_mut().for_each(|row| row.cells[3].published = None);
        let text = in_terminal(section, &outcome, 200);
        assert!(text.contains("parallel") && !text.contains("partition-key"), "{text}");
    }

    #[test]
    fn fitted_figures_are_marked() {
        let mut outcome = drones::outcome();
        outcome.beside[0].cells[1].standing = Standing::Fitted("store_delay_ms".to_owned());
        let text = in_terminal(section, &outcome, 200);
        assert!(text.contains("23.0/s → 45.0/s*"), "{text}");
        assert!(text.ends_with("* made to come out by what was chosen for it: store_delay_ms\n"), "{text}");
        assert!(in_page(section, &outcome).contains("<small class=\"standing\">fitted: store_delay_ms</small></td>"));
    }

    #[test]
    fn published_and_measured_never_share_a_cell() {
        let page = in_page(section, &drones::outcome());
        let cells = "<td class=\"n\"><i>42.0/s</i> <small>×2.21</small></td><td class=\"n\"><b>74.0/s</b> <small>×2.85</small></td>";
        assert!(page.contains(cells), "{page}");
        assert!(page.contains("<i>–</i></td><td class=\"n\"><b>29</b>"), "{page}");
        assert_eq!(page.matches("class=\"remark\"").count(), 2);
        assert_eq!(in_page(section, &fixture::outcome()), "");
    }
}
