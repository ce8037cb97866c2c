//! The tables: variants beside each other, and objectives.
//!
//! Only the header is ruled; numbers stand right-aligned. The change against the first variant joins the main table
//! when that fits the width, and follows as a second table when it does not.

use comfy_table::{Cell, CellAlignment, ContentArrangement, LineStyle, Table, presets};
use narrows_model::comparison::{Change, Comparison, Difference, Kept, NoiseFloor, Outcome, VariantSummary};
use narrows_model::units;

use super::paint::{Paint, clean, wrap};
use crate::figures::{MEASURED_ONCE, change, cpu_per_request, interval, known, measured_once};

/// Character of the line under the header.
const RULE: char = '─';
/// Columns between two columns of a table.
const GAP: u16 = 2;

/// Columns of measured numbers.
const MEASURED: usize = 7;

/// Alignment of a column's text.
#[derive(Clone, Copy)]
pub(crate) enum Align {
    Left,
    Right,
}

/// The variants with their numbers, the changes against the first, and what noise they know.
pub(super) fn variants(comparison: &Comparison, paint: Paint, width: usize) -> String {
    let Some(first) = comparison.variants.first() else { return String::new() };
    let repeated = comparison.variants.iter().any(|variant| variant.repetitions > 1);
    let numbers: Vec<Vec<String>> = comparison.variants.iter().map(|variant| number_row(variant, repeated)).collect();
    let changes: Vec<Vec<String>> = comparison.variants.iter().map(change_row).collect();
    let number_header = number_header(repeated);
    let change_header = [("rate".to_owned(), Align::Left), ("mean".to_owned(), Align::Left)]
        .map(|(name, align)| (format!("{name} vs {}", clean(&first.variant)), align));
    let mut out = if comparison.variants.len() < 2 {
        render(&number_header, &numbers, paint, width)
    } else {
        let header = [&number_header[..], &change_header[..]].concat();
        let rows: Vec<_> = numbers.iter().zip(&changes).map(|(a, b)| [&a[..], &b[..]].concat()).collect();
        let together = render(&header, &rows, Paint(super::Color::Never), usize::from(u16::MAX));
        if together.lines().all(|line| line.chars().count() <= width) {
            render(&header, &rows, paint, width)
        } else {
            let header = [&number_header[..1], &change_header[..]].concat();
            let rows: Vec<_> = numbers.iter().zip(&changes).skip(1).map(|(a, b)| [&a[..1], &b[..]].concat()).collect();
            format!("{}\n{}", render(&number_header, &numbers, paint, width), render(&header, &rows, paint, width))
        }
    };
    let once = measured_once(comparison).map(|names| format!("measured once: {names}. {MEASURED_ONCE}"));
    for note in [once, comparison.noise.map(noise_line)].into_iter().flatten() {
        out.push('\n');
        wrap(&clean(&note), width).iter().for_each(|line| out += &format!("{}\n", paint.dim(line)));
    }
    out
}

fn number_header(repeated: bool) -> Vec<(String, Align)> {
    let mut header = vec![("variant", Align::Left)];
    if repeated {
        header.push(("reps", Align::Right));
    }
    header.extend(["rate", "mean", "p50", "p95", "p99", "errors", "CPU/req"].map(|name| (name, Align::Right)));
    header.into_iter().map(|(name, align)| (name.to_owned(), align)).collect()
}

fn number_row(variant: &VariantSummary, repeated: bool) -> Vec<String> {
    let mut row = vec![clean(&variant.variant)];
    if repeated {
        row.push(variant.repetitions.to_string());
    }
    if variant.repetitions == 0 {
        // Nothing was measured to the end: a zero would be a lie.
        row.extend(std::iter::repeat_n("–".to_owned(), MEASURED));
        return row;
    }
    row.push(known(variant.rate, units::rate));
    let latencies = [variant.mean_ns, variant.p50_ns, variant.p95_ns, variant.p99_ns];
    row.extend(latencies.map(|latency| known(latency, units::duration)));
    row.push(units::count(variant.errors));
    row.push(cpu_per_request(variant.cpu_seconds_per_request));
    row
}

fn change_row(variant: &VariantSummary) -> Vec<String> {
    let text = |of: fn(&Difference) -> &Change| {
        variant.against_first.as_ref().map_or(String::new(), |difference| {
            let of = of(difference);
            format!("{} ({})", change(of), interval(of))
        })
    };
    vec![text(|difference| &difference.rate), text(|difference| &difference.mean)]
}

fn noise_line(noise: NoiseFloor) -> String {
    format!(
        "noise floor: repetitions of one variant lie apart by up to rate {}, mean {}, p95 {}, p99 {}",
        units::percent(noise.rate),
        units::percent(noise.mean),
        units::percent(noise.p95),
        units::percent(noise.p99)
    )
}

/// Each objective of each variant, a mark for each repetition.
pub(super) fn objectives(outcome: &Outcome, paint: Paint, width: usize) -> String {
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (evidence, results) in outcome.evidence.trials.iter().zip(&outcome.objectives) {
        for result in results {
            let key = [clean(&evidence.trial.variant), clean(&result.text)];
            let (measured, mark) = (clean(&result.measured), mark(result.kept));
            match rows.iter_mut().find(|row| row[..2] == key) {
                Some(row) => {
                    row[2] += &format!(", {measured}");
                    row[3] += &format!(" {mark}");
                }
                None => rows.push([&key[..], &[measured, mark.to_owned()]].concat()),
            }
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    let header = ["variant", "objective", "measured", "kept"].map(|name| (name.to_owned(), Align::Left));
    let text = render(&header, &rows, paint, width);
    text.replace('✓', &paint.green("✓")).replace('✗', &paint.red("✗"))
}

fn mark(kept: Kept) -> &'static str {
    match kept {
        Kept::Yes => "✓",
        Kept::No => "✗",
        Kept::Unknown => "?",
    }
}

/// A table with a ruled header. Cells are broken rather than that a line exceeds the width.
pub(crate) fn render(header: &[(String, Align)], rows: &[Vec<String>], paint: Paint, width: usize) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING.header_separator(LineStyle::none().fill(RULE)))
        .set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(width.min(usize::from(u16::MAX)) as u16);
    let cell = |text: &String, align: Align| {
        Cell::new(text).set_alignment(match align {
            Align::Left => CellAlignment::Left,
            Align::Right => CellAlignment::Right,
        })
    };
    table.set_header(header.iter().map(|(name, align)| cell(name, *align)));
    for row in rows {
        table.add_row(row.iter().zip(header).map(|(text, (_, align))| cell(text, *align)));
    }
    let last = header.len().saturating_sub(1);
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, if index == last { 0 } else { GAP }));
    }
    let mut in_header = true;
    let mut out = String::new();
    for line in table.lines() {
        let line = line.trim_end();
        let is_rule = in_header && !line.is_empty() && line.chars().all(|c| c == RULE);
        out += &match (is_rule, in_header) {
            (true, _) => paint.dim(line),
            (false, true) => paint.bold(line),
            (false, false) => line.to_owned(),
        };
        out.push('\n');
        in_header &= !is_rule;
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_variant_without_a_finished_trial_has_no_numbers() {
        let row = super::number_row(&narrows_model::comparison::VariantSummary::default(), false);
        assert_eq!(row.len(), super::number_header(false).len());
        assert!(row[1..].iter().all(|cell| cell == "–"), "{row:?}");
    }

    #[test]
    fn figures_that_are_not_known_are_dashes() {
        let variant = VariantSummary {
            repetitions: 1,
            rate: Some(90.0),
            mean_ns: Some(1e6),
            p95_ns: Some(3e6),
            ..VariantSummary::default()
        };
        assert_eq!(number_row(&variant, false)[1..6], ["90.0/s", "1.00 ms", "–", "3.00 ms", "–"]);
    }

    use narrows_model::comparison::Basis;

    use super::*;
    use crate::fixture;
    use crate::text::Color;

    #[test]
    fn what_was_measured_once_is_named() {
        let mut comparison = fixture::outcome().comparison;
        let line = |comparison: &Comparison| {
            let text = variants(comparison, Paint(Color::Never), 132);
            text.lines().find(|line| line.starts_with("measured once")).map(str::to_owned)
        };
        assert!(line(&comparison).is_some_and(|line| line.starts_with("measured once: every variant. ")));
        comparison.variants[0].repetitions = 3;
        assert!(line(&comparison).is_some_and(|line| line.starts_with("measured once: fixed. ")));
        comparison.variants.truncate(1);
        assert_eq!(line(&comparison), None);
    }

    #[test]
    fn changes_join_the_table_where_there_is_room() {
        let mut comparison = fixture::outcome().comparison;
        comparison.noise = Some(NoiseFloor { rate: 0.021, mean: 0.034, p95: 0.05, p99: 0.112 });
        for variant in &mut comparison.variants {
            variant.repetitions = 3;
            variant.against_first.iter_mut().for_each(|difference| difference.basis = Basis::Repeated);
        }
        insta::assert_snapshot!(variants(&comparison, Paint(Color::Never), 132), @r"
        variant  reps     rate     mean      p50      p95      p99  errors  CPU/req  rate vs as-is            mean vs as-is
        ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
        as-is       3    245/s  32.1 ms  31.0 ms  54.2 ms  88.0 ms       8  7.43 ms
        fixed       3  1,020/s  7.89 ms  7.60 ms  13.9 ms  21.6 ms       0  1.49 ms  +316 % (+298 to +334 %)  −75 % (−77 to −74 %)

        noise floor: repetitions of one variant lie apart by up to rate 2.1 %, mean 3.4 %, p95 5.0 %, p99 11 %
        ");
    }
}
