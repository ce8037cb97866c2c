//! The variants beside each other: throughput, latency, errors, CPU, and the change against the first.

use narrows_model::comparison::{Change, Comparison, Difference, Meaning, NoiseFloor, VariantSummary};
use narrows_model::units;

use super::Context;
use crate::figures::{MEASURED_ONCE, change, cpu_per_request, interval, measured_once};
use crate::section::{Block, Column, Figure, Medium, Phrase, Row, Section, Table, Tone};

/// A figure of a variant; `None` if it was not measured.
type Measured = fn(&VariantSummary) -> Option<f64>;

pub(super) fn section(context: &Context<'_>) -> Section {
    let comparison = &context.outcome.comparison;
    let Some(first) = comparison.variants.first() else { return Section::default() };
    let has_repetitions = comparison.variants.iter().any(|variant| variant.repetitions > 1);
    let mut columns = vec![Column::left("variant")];
    if has_repetitions {
        columns.push(Column::right("repetitions").short("reps"));
    }
    columns.push(Column::right("throughput").short("rate"));
    columns.extend(["mean", "p50", "p95", "p99", "errors"].map(Column::right));
    columns.push(Column::right("CPU per request").short("CPU/req"));
    if comparison.variants.len() > 1 {
        let first = &first.variant;
        columns.push(Column::left(format!("throughput vs {first}")).short(format!("rate vs {first}")).beginning_part());
        columns.push(Column::left(format!("mean latency vs {first}")).short(format!("mean vs {first}")));
    }
    let rows = comparison.variants.iter().map(|variant| row(variant, context, has_repetitions)).collect();
    let mut blocks = vec![Block::Table(Table::new(columns, rows).continued())];
    blocks.extend(once(comparison).map(Block::Note));
    blocks.extend(comparison.noise.map(|noise| Block::Note(noise_line(noise))));
    Section::new("variants", "Variants", blocks)
}

fn row(variant: &VariantSummary, context: &Context<'_>, has_repetitions: bool) -> Row {
    let comparison = &context.outcome.comparison;
    let mut cells = vec![Figure::new(&variant.variant)];
    if has_repetitions {
        cells.push(Figure::new(variant.repetitions.to_string()));
    }
    let figure = |of: Measured, written: fn(f64) -> String| {
        let Some(value) = of(variant) else { return Figure::unknown() };
        let largest = comparison.variants.iter().filter_map(of).fold(0.0, f64::max);
        Figure::new(written(value)).bar(value, largest)
    };
    // A zero would be a lie where nothing was measured to the end.
    let is_measured = variant.repetitions > 0;
    cells.push(figure(|v| v.rate, units::rate));
    let latencies: [Measured; 4] = [|v| v.mean_ns, |v| v.p50_ns, |v| v.p95_ns, |v| v.p99_ns];
    cells.extend(latencies.map(|of| figure(of, units::duration)));
    cells.push(if is_measured { errors(variant, context.medium) } else { Figure::unknown() });
    cells.push(figure(|v| v.cpu_seconds_per_request, |seconds| cpu_per_request(Some(seconds))));
    if comparison.variants.len() > 1 {
        cells.push(compared(variant, |difference| &difference.rate, Meaning::Higher));
        cells.push(compared(variant, |difference| &difference.mean, Meaning::Lower));
    }
    Row::new(cells)
}

/// Number of errors; their share has room in a page.
fn errors(variant: &VariantSummary, medium: Medium) -> Figure {
    let figure = Figure::new(units::count(variant.errors));
    match (variant.errors, medium) {
        (0, _) => figure,
        (_, Medium::Page) => figure.small(share_of_errors(variant.error_rate)).tone(Tone::Bad),
        (_, Medium::Terminal) => figure.tone(Tone::Bad),
    }
}

/// A small share keeps a digit that means something.
fn share_of_errors(share: f64) -> String {
    match share * 100.0 {
        v if v > 0.0 && v < 0.1 => format!("{} %", format!("{v:.4}").trim_end_matches('0')),
        _ => units::percent(share),
    }
}

fn compared(variant: &VariantSummary, of: fn(&Difference) -> &Change, good: Meaning) -> Figure {
    let Some(difference) = &variant.against_first else { return Figure::default() };
    let of = of(difference);
    let tone = match of.meaning {
        Meaning::Same | Meaning::Unclear => Tone::Soft,
        meaning if meaning == good => Tone::Good,
        _ => Tone::Bad,
    };
    Figure::new(change(of)).small(interval(of)).tone(tone)
}

fn once(comparison: &Comparison) -> Option<Phrase> {
    measured_once(comparison)
        .map(|names| Phrase::from(format!("measured once: {names}. ")).and(&Phrase::coded(MEASURED_ONCE)))
}

fn noise_line(noise: NoiseFloor) -> Phrase {
    Phrase::from(format!(
        "noise floor: repetitions of one variant lie apart by up to rate {}, mean {}, p95 {}, p99 {}",
        units::percent(noise.rate),
        units::percent(noise.mean),
        units::percent(noise.p95),
        units::percent(noise.p99)
    ))
}

#[cfg(test)]
mod tests {
    use narrows_model::comparison::Basis;

    use super::super::{in_page, in_terminal};
    use super::*;
    use crate::fixture;

    #[test]
    fn a_variant_without_a_finished_trial_has_no_numbers() {
        let mut outcome = fixture::outcome();
        outcome.comparison.variants = vec![VariantSummary::default()];
        let row = row(&outcome.comparison.variants[0], &Context::for_page(&outcome), false);
        assert!(row.cells[1..].iter().all(|cell| *cell == Figure::unknown().into()), "{row:?}");
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
        let mut outcome = fixture::outcome();
        outcome.comparison.variants = vec![variant];
        let text = in_terminal(section, &outcome, 100);
        let cells: Vec<&str> = text.lines().nth(2).unwrap_or_default().split_whitespace().collect();
        assert_eq!(cells[..6], ["90.0/s", "1.00", "ms", "–", "3.00", "ms"], "{text}");
    }

    #[test]
    fn variants_that_were_measured_once_are_named() {
        let mut outcome = fixture::outcome();
        let line = |outcome: &narrows_model::comparison::Outcome| {
            let text = in_terminal(section, outcome, 132);
            text.lines().find(|line| line.starts_with("measured once")).map(str::to_owned)
        };
        assert!(line(&outcome).is_some_and(|line| line.starts_with("measured once: every variant. ")));
        outcome.comparison.variants[0].repetitions = 3;
        assert!(line(&outcome).is_some_and(|line| line.starts_with("measured once: fixed. ")));
        outcome.comparison.variants.truncate(1);
        assert_eq!(line(&outcome), None);
    }

    #[test]
    fn changes_join_the_table_where_there_is_room() {
        let mut outcome = fixture::outcome();
        outcome.comparison.noise = Some(NoiseFloor { rate: 0.021, mean: 0.034, p95: 0.05, p99: 0.112 });
        for variant in &mut outcome.comparison.variants {
            variant.repetitions = 3;
            variant.against_first.iter_mut().for_each(|difference| difference.basis = Basis::Repeated);
        }
        insta::assert_snapshot!(in_terminal(section, &outcome, 140), @r"
        variant  reps     rate     mean      p50      p95      p99  errors  CPU/req  rate vs as-is            mean vs as-is
        ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
        as-is       3    245/s  32.1 ms  31.0 ms  54.2 ms  88.0 ms       8  7.43 ms
        fixed       3  1,020/s  7.89 ms  7.60 ms  13.9 ms  21.6 ms       0  1.49 ms  +316 % (+298 to +334 %)  −75 % (−77 to −74 %)
        noise floor: repetitions of one variant lie apart by up to rate 2.1 %, mean 3.4 %, p95 5.0 %, p99 11 %
        ");
    }

    #[test]
    fn a_change_is_better_or_worse_by_its_direction() {
        let tone = |meaning, good| {
            let mut variant = fixture::outcome().comparison.variants.remove(1);
            variant.against_first.as_mut().unwrap().rate.meaning = meaning;
            compared(&variant, |difference| &difference.rate, good).tone
        };
        assert_eq!(tone(Meaning::Higher, Meaning::Higher), Tone::Good);
        assert_eq!(tone(Meaning::Higher, Meaning::Lower), Tone::Bad);
        assert_eq!(tone(Meaning::Same, Meaning::Lower), Tone::Soft);
    }

    #[test]
    fn few_errors_are_not_rounded_away() {
        assert!(in_page(section, &fixture::outcome()).contains("<td class=\"n bad\">8 <small>0.05 %</small></td>"));
    }
}
