//! Parameters with a reason, and published figures beside the measured ones, as text.

use narrows_model::comparison::Outcome;
use narrows_model::published::{Beside, BesideCell};

use super::paint::{Paint, clean, hanging, wrap};
use super::table::{Align, render};
use crate::figures::plural;
use crate::measures;

/// The most parameters reported.
const PARAMETERS_MAX: usize = 10;
/// The most variants reported; the page has more.
const VARIANTS_MAX: usize = 24;

/// The parameters that have a reason; empty when none has.
pub(super) fn parameters(outcome: &Outcome, paint: Paint, width: usize) -> String {
    let parameters = &outcome.notes.parameters;
    let mut out = String::new();
    for note in parameters.iter().take(PARAMETERS_MAX) {
        let lead = format!("{} {}", clean(&note.name), clean(&note.value));
        let lines = wrap(&format!("{lead}: {}", clean(&note.reason)), width.saturating_sub(2));
        let first = lines.first().map_or(String::new(), |line| line.replacen(&lead, &paint.bold(&lead), 1));
        out += &format!("{first}\n");
        lines.iter().skip(1).for_each(|line| out += &format!("  {line}\n"));
    }
    if parameters.len() > PARAMETERS_MAX {
        let rest = plural(parameters.len() - PARAMETERS_MAX, "more parameter", "more parameters");
        out += &format!("{}\n", paint.dim(&format!("{rest} with a reason in the page")));
    }
    out
}

/// The figures, `published → measured` in each cell; empty when none are published, and without the variants of which none
/// is. As many variants stand beside each
/// other as the width has room for.
pub(super) fn beside(outcome: &Outcome, paint: Paint, width: usize) -> String {
    let mut out = figures(outcome, paint, width);
    for row in outcome.beside.iter().filter(|row| !row.remark.is_empty()) {
        let text = format!("{}: {}", clean(&measures::name(row)), row.remark);
        out += &hanging("remark", &paint.dim("remark"), &text, 0, width);
    }
    out
}

/// The same without remarks.
pub(super) fn figures(outcome: &Outcome, paint: Paint, width: usize) -> String {
    let Some(first) = outcome.beside.first() else { return String::new() };
    let source = match measures::source(outcome) {
        "" => "elsewhere",
        source => source,
    };
    let mut lead = format!("Published: {}. Measured: this run.", source.trim_end_matches('.'));
    lead += &measures::operation(outcome).map_or_else(
        || format!(" {}", measures::OF_CLIENTS),
        |operation| format!(" Durations and calls are those of {operation}."),
    );
    let mut out: String = wrap(&clean(&lead), width).iter().map(|line| format!("{}\n", paint.dim(line))).collect();
    let is_published = |at: &usize| outcome.beside.iter().any(|row| published_at(row, *at).is_some());
    let variants: Vec<usize> = (0..first.cells.len()).filter(is_published).take(VARIANTS_MAX).collect();
    let fits = |columns: &usize| {
        let tables = variants.chunks(*columns).map(|group| table(outcome, group, Paint(super::Color::Never), UNBOUND));
        tables.collect::<String>().lines().all(|line| line.chars().count() <= width)
    };
    let columns = (1..=variants.len()).rev().find(fits).unwrap_or(1);
    let tables: Vec<String> = variants.chunks(columns).map(|group| table(outcome, group, paint, width)).collect();
    out += &tables.join("\n");
    if let Some(bases) = measures::bases(&outcome.beside) {
        out += &wrap(&clean(&bases), width).iter().map(|line| format!("{}\n", paint.dim(line))).collect::<String>();
    }
    out + &fitted(outcome, paint, width)
}

/// The parameters that were fitted to reproduce the marked figures; empty if there are none.
fn fitted(outcome: &Outcome, paint: Paint, width: usize) -> String {
    let mut by: Vec<&str> =
        outcome.beside.iter().flat_map(|row| &row.cells).filter_map(|cell| cell.fitted.as_deref()).collect();
    by.sort_unstable();
    by.dedup();
    if by.is_empty() {
        return String::new();
    }
    let text = format!("* made to come out by what was chosen for it: {}", clean(&by.join(", ")));
    wrap(&text, width).iter().map(|line| format!("{}\n", paint.dim(line))).collect()
}

/// Wider than any table.
const UNBOUND: usize = u16::MAX as usize;

fn published_at(row: &Beside, at: usize) -> Option<f64> {
    row.cells.get(at)?.published
}

fn table(outcome: &Outcome, group: &[usize], paint: Paint, width: usize) -> String {
    let Some(first) = outcome.beside.first() else { return String::new() };
    let mut header = vec![("published → measured".to_owned(), Align::Left)];
    header.extend(group.iter().map(|at| (clean(&first.cells[*at].variant), Align::Right)));
    let mut rows = Vec::new();
    for row in &outcome.beside {
        let cell = |index: usize| {
            let of = |value: fn(&BesideCell) -> Option<f64>| row.cells.get(index).and_then(value);
            let [published, measured] = [of(|cell| cell.published), of(|cell| cell.measured)];
            let mark = if row.cells.get(index).is_some_and(|cell| cell.fitted.is_some()) { "*" } else { "" };
            pair(measures::value(row.measure, published), measures::value(row.measure, measured) + mark)
        };
        let mut cells = vec![clean(&measures::name(row))];
        cells.extend(group.iter().copied().map(cell));
        rows.push(cells);
        rows.extend(ratios(row, group));
    }
    render(&header, &rows, paint, width)
}

/// The row of ratios under a row that has them.
fn ratios(row: &Beside, group: &[usize]) -> Option<Vec<String>> {
    let ratio = |index: usize| {
        let of = |value: fn(&BesideCell) -> Option<f64>| measures::ratio(row, index, value);
        match [of(|cell| cell.published), of(|cell| cell.measured)] {
            [None, None] => String::new(),
            [published, measured] => {
                pair(published.unwrap_or_else(|| "–".to_owned()), measured.unwrap_or_else(|| "–".to_owned()))
            }
        }
    };
    let cells: Vec<String> = group.iter().copied().map(ratio).collect();
    let is_told = measures::has_ratio(row.measure) && cells.iter().any(|cell| !cell.is_empty());
    let first = row.cells.first().map_or("", |cell| &cell.variant);
    let is_to_first = row.cells.iter().all(|cell| cell.ratio_to.is_none());
    let head = if is_to_first { format!("  vs {}", clean(first)) } else { "  ratio".to_owned() };
    is_told.then(|| [vec![head], cells].concat())
}

fn pair(published: String, measured: String) -> String {
    format!("{published} → {measured}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::drones;
    use crate::text::Color;

    #[test]
    fn variants_that_do_not_fit_follow_below() {
        insta::assert_snapshot!(beside(&drones::outcome(), Paint(Color::Never), 60), @r"
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
        let text = beside(&outcome, Paint(Color::Never), 200);
        assert!(text.contains("this run. Durations are those that clients saw."), "{text}");
    }

    #[test]
    fn a_variant_of_which_nothing_is_published_has_no_column() {
        let mut outcome = drones::outcome();
        outcome.beside.iter_mut().for_each(|row| row.cells[3].published = None);
        let text = figures(&outcome, Paint(Color::Never), 200);
        assert!(text.contains("parallel") && !text.contains("partition-key"), "{text}");
    }

    #[test]
    fn what_was_made_to_come_out_is_marked() {
        let mut outcome = drones::outcome();
        outcome.beside[0].cells[1].fitted = Some("store_delay_ms".to_owned());
        let text = figures(&outcome, Paint(Color::Never), 200);
        assert!(text.contains("23.0/s → 45.0/s*"), "{text}");
        assert!(text.ends_with("* made to come out by what was chosen for it: store_delay_ms\n"), "{text}");
    }

    #[test]
    fn many_parameters_are_cut() {
        let mut outcome = drones::outcome();
        let note = outcome.notes.parameters[0].clone();
        outcome.notes.parameters = vec![note; PARAMETERS_MAX + 3];
        let text = parameters(&outcome, Paint(Color::Never), 100);
        assert!(text.ends_with("3 more parameters with a reason in the page\n"), "{text}");
    }
}
