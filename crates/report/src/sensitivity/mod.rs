//! Effects of scaled parameters on the figures and bottlenecks of experiments: one table, and whether the conclusions hold.
//!
//! The conclusions of an experiment are the bottleneck of each variant and the order of the variants. They are those of its
//! runs without a change, of which there are two: what differs between those is noise, and no effect of a parameter.

mod conclusion;
mod judged;
mod point;
mod table;

pub use point::point;

use narrows_model::sensitivity::{Examined, LeftOut, Sensitivity};

use self::conclusion::{Conclusion, conclusion};
use self::table::{MARKS, Row, header, rows};
use crate::section::{Block, Column, Figure, Phrase, Row as TableRow, Section, Table, Tone};
use crate::text::paint::Paint;
use crate::text::{Style, sections};

/// Narrower than this nothing is laid out.
const WIDTH_MIN: usize = 80;
/// Subject of the page.
const LEAD: &str = "Fitted parameters were chosen so that figures come out as published. Here, one parameter at a time is lower \
                    and higher than its value, and all else stays.";

/// The table, what was not scaled, and whether the conclusions hold. Ends with a line feed.
pub fn text(sensitivity: &Sensitivity, style: Style) -> String {
    let marks = Block::Note(Phrase::coded(MARKS));
    let mut all = vec![Section::untitled(vec![Block::Table(table(sensitivity)), marks])];
    all[0].blocks.extend(left_out(sensitivity, "not scaled in ").into_iter().map(Block::Note));
    all.push(Section::untitled(verdict(&conclusion(sensitivity))));
    sections(&all, Paint(style.color), style.width.max(WIDTH_MIN))
}

/// The page as Markdown, for a repository. `command` is the one that makes it again. Ends with a line feed.
pub fn markdown(sensitivity: &Sensitivity, command: &str) -> String {
    let made = Phrase::from("Made by ").code(command);
    let made = made.plain(format!("; nothing here is written by hand. Machine: {}.", machines(sensitivity)));
    let mut blocks = vec![Block::Note(made), Block::Note(Phrase::from(LEAD))];
    blocks.extend(verdict(&conclusion(sensitivity)));
    blocks.extend([Block::Note(Phrase::coded(MARKS)), Block::Table(table(sensitivity))]);
    let measured = sensitivity.experiments.iter().map(|one| Phrase::from(format!("{}: {}", one.experiment, ran(one))));
    blocks.extend([Block::Note(Phrase::from("Measured:")), Block::Items(measured.collect())]);
    let left_out = left_out(sensitivity, "");
    if !left_out.is_empty() {
        blocks.extend([Block::Note(Phrase::from("Not scaled:")), Block::Items(left_out)]);
    }
    crate::markdown::sections(&[Section::new("", "Sensitivity", blocks)], 1)
}

fn verdict(conclusion: &Conclusion) -> Vec<Block> {
    let mut blocks = vec![Block::Paragraph(Phrase::from(&conclusion.sentence), Tone::Plain)];
    let places: Vec<Phrase> = conclusion.places.iter().map(Phrase::from).collect();
    blocks.extend((!places.is_empty()).then_some(Block::Items(places)));
    blocks
}

fn table(sensitivity: &Sensitivity) -> Table {
    let row = |row: Row| {
        let subject = Figure { is_strong: row.is_experiment, ..Figure::new(row.subject) };
        TableRow::new([subject, Figure::new(row.what)].into_iter().chain(row.cells.map(Figure::new)))
    };
    let columns = header(sensitivity).map(Column::left).to_vec();
    Table::new(columns, rows(sensitivity).into_iter().map(row).collect())
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

/// When the experiment ran, and how long its load was beside the experiment's.
fn ran(examined: &Examined) -> String {
    let Some(first) = examined.as_is.first() else { return "did not run as it is".to_owned() };
    let length = match examined.time_scale {
        1.0 => String::new(),
        scale => format!(", load × {scale} of its length"),
    };
    format!("{}{length}", crate::figures::instant(first.started_ns))
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
mod text_tests {
    use super::fixture::sensitivity;
    use super::*;
    use crate::text::Color;

    #[test]
    fn the_table_ends_with_what_holds() {
        insta::assert_snapshot!(text(&sensitivity(), Style { width: 100, color: Color::Never }), @r"
        parameter                            −20 %                 as it is              +20 %
        ────────────────────────────────────────────────────────────────────────────────────────────────────
        shop            bottlenecks                                first: throttling at
                                                                   store; second:
                                                                   throttling at store;
                                                                   third: throttling at
                                                                   store
                        order by throughput                        third > second >
                                                                   first
        store_delay_ms  value                20                    25                    30
                        throughput           ×1.00↓ ×1.77↓         ×1.30* ×2.30          ×1.35 ×3.00↑
                        order                throughput: second                          same
                                             no longer above
                                             first
                        bottlenecks          same                                        second:
                                                                                         cpu-saturation at
                                                                                         shop
        Ratios compare each variant with the first one, or with the one that ratio_to names, in the order of
        the variants. * marks a fitted value, which was made to come out as published. Each experiment ran
        twice as it is: where the two ratios differ by more than 5 %, both are given, and ↑ and ↓ mark a
        ratio that is more than 5 % above or below both. > stands between variants that both of these runs
        set more than 10 % apart, ≈ between others; an order is lost where less than 5 % is left. Several
        values of a parameter are those of the variants.
        not scaled in shop: prices of the store (names no parameter)

        The conclusions hold in 0 of 2 runs with a parameter 20 % lower or higher; where they do not is
        listed here.

        - shop with store_delay_ms 20 (−20 %): throughput: second no longer above first
        - shop with store_delay_ms 30 (+20 %): second has cpu-saturation at shop in place of throttling at
          store
        ");
    }
}

#[cfg(test)]
mod tests {
    use super::fixture::sensitivity;
    use super::*;

    #[test]
    fn the_page_has_what_holds_before_the_table() {
        insta::assert_snapshot!(markdown(&sensitivity(), "narrows sensitivity shop"), @r"
        # Sensitivity

        Made by `narrows sensitivity shop`; nothing here is written by hand. Machine: A Processor, 2 cores, 4.00 GiB, Linux 6.1.

        Fitted parameters were chosen so that figures come out as published. Here, one parameter at a time is lower and higher than its value, and all else stays.

        The conclusions hold in 0 of 2 runs with a parameter 20 % lower or higher; where they do not is listed here.

        - shop with store\_delay\_ms 20 (−20 %): throughput: second no longer above first
        - shop with store\_delay\_ms 30 (+20 %): second has cpu-saturation at shop in place of throttling at store

        Ratios compare each variant with the first one, or with the one that `ratio_to` names, in the order of the variants. `*` marks a fitted value, which was made to come out as published. Each experiment ran twice as it is: where the two ratios differ by more than 5 %, both are given, and `↑` and `↓` mark a ratio that is more than 5 % above or below both. `>` stands between variants that both of these runs set more than 10 % apart, `≈` between others; an order is lost where less than 5 % is left. Several values of a parameter are those of the variants.

        | parameter |  | −20 % | as it is | +20 % |
        |---|---|---|---|---|
        | **shop** | bottlenecks |  | first: throttling at store; second: throttling at store; third: throttling at store |  |
        |  | order by throughput |  | third > second > first |  |
        | store\_delay\_ms | value | 20 | 25 | 30 |
        |  | throughput | ×1.00↓ ×1.77↓ | ×1.30\* ×2.30 | ×1.35 ×3.00↑ |
        |  | order | throughput: second no longer above first |  | same |
        |  | bottlenecks | same |  | second: cpu-saturation at shop |

        Measured:

        - shop: 2025-11-21 12:30 UTC, load × 0.1 of its length

        Not scaled:

        - shop: prices of the store (names no parameter)
        ");
    }
}
