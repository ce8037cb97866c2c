//! Effects of scaled parameters on the figures and conclusions of experiments: whether the conclusions are kept, and the ratios.

mod claims;
mod noise;
mod point;
mod table;
mod verdict;

pub use point::point;

use narrows_model::sensitivity::{Examined, LeftOut, Sensitivity};

use self::table::{MARKS, Row, conclusions, header_of_conclusions, header_of_ratios, ratios};
use self::verdict::verdict;
use crate::figures::{instant, plural};
use crate::section::{Block, Column, Figure, Phrase, Row as TableRow, Section, Table, Tone};
use crate::text::paint::Paint;
use crate::text::{Style, sections};

/// Narrower than this nothing is laid out.
const WIDTH_MIN: usize = 80;
/// Subject of the page.
const LEAD: &str = "Fitted parameters were chosen so that figures come out as published. Here, one parameter at a time is lower \
                    and higher than its value, and all else stays.";

/// The ratios, what was not scaled, and the conclusions. Ends with a line feed.
pub fn text(sensitivity: &Sensitivity, style: Style) -> String {
    let mut blocks = vec![Block::Table(ratio_table(sensitivity)), Block::Note(Phrase::coded(MARKS))];
    blocks.extend(left_out(sensitivity, "not scaled in ").into_iter().map(Block::Note));
    let conclusions = Section::untitled(vec![Block::Table(conclusion_table(sensitivity))]);
    let all = [Section::untitled(blocks), conclusions, Section::untitled(judged(sensitivity))];
    sections(&all, Paint(style.color), style.width.max(WIDTH_MIN))
}

/// The page as Markdown, for a repository. `command` is the one that makes it again. Ends with a line feed.
pub fn markdown(sensitivity: &Sensitivity, command: &str) -> String {
    let made = Phrase::from("Made by ").code(command);
    let made = made.plain(format!("; nothing here is written by hand. Machine: {}.", machines(sensitivity)));
    let mut blocks = vec![Block::Note(made), Block::Note(Phrase::from(LEAD))];
    blocks.extend(judged(sensitivity));
    blocks.push(Block::Table(conclusion_table(sensitivity)));
    blocks.extend([Block::Note(Phrase::coded(MARKS)), Block::Table(ratio_table(sensitivity))]);
    let measured = sensitivity.experiments.iter().map(|one| Phrase::from(format!("{}: {}", one.experiment, ran(one))));
    blocks.extend([Block::Note(Phrase::from("Measured:")), Block::Items(measured.collect())]);
    let left_out = left_out(sensitivity, "");
    if !left_out.is_empty() {
        blocks.extend([Block::Note(Phrase::from("Not scaled:")), Block::Items(left_out)]);
    }
    crate::markdown::sections(&[Section::new("", "Sensitivity", blocks)], 1)
}

fn judged(sensitivity: &Sensitivity) -> Vec<Block> {
    let verdict = verdict(sensitivity);
    let mut blocks = vec![Block::Paragraph(Phrase::from(verdict.sentence), Tone::Plain)];
    let limits: Vec<Phrase> = verdict.limits.into_iter().map(Phrase::from).collect();
    blocks.extend((!limits.is_empty()).then_some(Block::Items(limits)));
    blocks
}

fn conclusion_table(sensitivity: &Sensitivity) -> Table {
    table_of(header_of_conclusions(sensitivity), conclusions(sensitivity))
}

fn ratio_table(sensitivity: &Sensitivity) -> Table {
    table_of(header_of_ratios(sensitivity), ratios(sensitivity))
}

fn table_of(header: [String; 5], rows: Vec<Row>) -> Table {
    let row = |row: Row| {
        let mut cells = row.cells.map(Figure::new);
        cells[0].is_strong = row.is_experiment;
        TableRow::new(cells)
    };
    Table::new(header.map(Column::left).to_vec(), rows.into_iter().map(row).collect())
}

/// Parameters that were not scaled, with the reason; `lead` begins each line.
fn left_out(sensitivity: &Sensitivity, lead: &str) -> Vec<Phrase> {
    let line = |examined: &Examined, left: &LeftOut| {
        Phrase::from(format!("{lead}{}: {} ({})", examined.experiment, left.what, left.reason))
    };
    sensitivity.experiments.iter().flat_map(|one| one.left_out.iter().map(move |left| line(one, left))).collect()
}

/// `−20 %`, `+20 %`.
fn changes(sensitivity: &Sensitivity) -> [String; 2] {
    [-sensitivity.change, sensitivity.change].map(crate::figures::ratio)
}

/// When the experiment first ran, how often without a change, and the length of its load beside the experiment's.
fn ran(examined: &Examined) -> String {
    let Some(first) = examined.as_is.first() else { return "did not run unchanged".to_owned() };
    let length = match examined.time_scale {
        1.0 => String::new(),
        scale => format!(", load × {scale} of its length"),
    };
    let unchanged = plural(examined.as_is.len(), "unchanged run", "unchanged runs");
    format!("{}, {unchanged}{length}", instant(first.started_ns))
}

/// The machines of all runs, each once.
fn machines(sensitivity: &Sensitivity) -> String {
    let scaled = |one: &Examined| {
        let sides = one.parameters.iter().flat_map(|parameter| [&parameter.lower, &parameter.higher]);
        one.as_is.iter().chain(sides.filter_map(|side| side.point.as_ref())).cloned().collect::<Vec<_>>()
    };
    let mut all: Vec<String> = Vec::new();
    for point in sensitivity.experiments.iter().flat_map(scaled) {
        let machine = crate::figures::machine(&point.machine);
        if !all.contains(&machine) {
            all.push(machine);
        }
    }
    all.join("; ")
}

#[cfg(test)]
mod fixture;

#[cfg(test)]
mod tests {
    use super::fixture::sensitivity;
    use super::*;
    use crate::text::Color;

    #[test]
    fn the_text_ends_with_the_conclusions() {
        insta::assert_snapshot!(text(&sensitivity(), Style { width: 100, color: Color::Never }), @r"
        parameter                    −20 %          unchanged     +20 %
        ──────────────────────────────────────────────────────────────────────
        shop            conclusions                 2 of 3
        store_delay_ms  value        20             25            30
                        conclusions  1 of 2                       2 of 2
                        throughput   ×1.00↓ ×1.77↓  ×1.30* ×2.30  ×1.35 ×3.00↑
        No parameter is judged by a conclusion that an unchanged run does not come to. Ratios compare each
        variant with the first one, or with the one that ratio_to names, in the order of the variants. *
        marks a fitted value, which was made to come out as published. Where the ratios of unchanged runs
        differ by more than 5 %, the least and the largest are given. ↑ and ↓ mark a ratio that is further
        outside this range than the range is wide. A parameter is noise if no ratio differs more between its
        lower and its higher value than between unchanged runs. Several values of a parameter are those of
        the variants.
        not scaled in shop: prices of the store (names no parameter)

        experiment  conclusion                 unchanged  20 % lower or higher  not with
        ────────────────────────────────────────────────────────────────────────────────────────────────────
        shop        The third is the fastest.  2 of 2     2 of 2
                    The second gains a tenth.  2 of 2     1 of 2                store_delay_ms 20 (−20 %):
                                                                                throughput of second to
                                                                                first ×1.00, not at least
                                                                                ×1.10
                    The third is beyond 47/s.  1 of 2     –

        2 of 3 conclusions come back in every unchanged run, and 1 of these also in every run with a
        parameter 20 % lower or higher.
        ");
    }

    #[test]
    fn the_page_begins_with_the_conclusions() {
        insta::assert_snapshot!(markdown(&sensitivity(), "narrows sensitivity shop"), @r"
        # Sensitivity

        Made by `narrows sensitivity shop`; nothing here is written by hand. Machine: A Processor, 2 cores, 4.00 GiB, Linux 6.1.

        Fitted parameters were chosen so that figures come out as published. Here, one parameter at a time is lower and higher than its value, and all else stays.

        2 of 3 conclusions come back in every unchanged run, and 1 of these also in every run with a parameter 20 % lower or higher.

        | experiment | conclusion | unchanged | 20 % lower or higher | not with |
        |---|---|---|---|---|
        | **shop** | The third is the fastest. | 2 of 2 | 2 of 2 |  |
        |  | The second gains a tenth. | 2 of 2 | 1 of 2 | store\_delay\_ms 20 (−20 %): throughput of second to first ×1.00, not at least ×1.10 |
        |  | The third is beyond 47/s. | 1 of 2 | – |  |

        No parameter is judged by a conclusion that an unchanged run does not come to. Ratios compare each variant with the first one, or with the one that `ratio_to` names, in the order of the variants. `*` marks a fitted value, which was made to come out as published. Where the ratios of unchanged runs differ by more than 5 %, the least and the largest are given. `↑` and `↓` mark a ratio that is further outside this range than the range is wide. A parameter is noise if no ratio differs more between its lower and its higher value than between unchanged runs. Several values of a parameter are those of the variants.

        | parameter |  | −20 % | unchanged | +20 % |
        |---|---|---|---|---|
        | **shop** | conclusions |  | 2 of 3 |  |
        | store\_delay\_ms | value | 20 | 25 | 30 |
        |  | conclusions | 1 of 2 |  | 2 of 2 |
        |  | throughput | ×1.00↓ ×1.77↓ | ×1.30\* ×2.30 | ×1.35 ×3.00↑ |

        Measured:

        - shop: 2025-11-21 12:30 UTC, 2 unchanged runs, load × 0.1 of its length

        Not scaled:

        - shop: prices of the store (names no parameter)
        ");
    }
}
