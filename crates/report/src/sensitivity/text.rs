//! The table and its conclusion as text.

use narrows_model::sensitivity::{LeftOut, Sensitivity};

use super::conclusion::conclusion;
use super::table::{MARKS, Row, header, rows};
use crate::text::Style;
use crate::text::paint::{Paint, clean, wrap};
use crate::text::table::{Align, render};

/// Narrower than this nothing is laid out.
const WIDTH_MIN: usize = 80;

/// The table, what was not scaled, and whether the conclusions hold. Ends with a line feed.
pub fn text(sensitivity: &Sensitivity, style: Style) -> String {
    let (width, paint) = (style.width.max(WIDTH_MIN), Paint(style.color));
    let header = header(sensitivity).map(|name| (name, Align::Left));
    let cells = |row: &Row| [&row.subject, &row.what].into_iter().chain(&row.cells).map(|cell| clean(cell)).collect();
    let rows: Vec<Vec<String>> = rows(sensitivity).iter().map(cells).collect();
    let mut out = render(&header, &rows, paint, width);
    let dim =
        |text: &str| wrap(&clean(text), width).iter().map(|line| format!("{}\n", paint.dim(line))).collect::<String>();
    out += &dim(&MARKS.replace('`', ""));
    for examined in &sensitivity.experiments {
        let name = &examined.experiment;
        let line = |left: &LeftOut| dim(&format!("not scaled in {name}: {} ({})", left.what, left.reason));
        out += &examined.left_out.iter().map(line).collect::<String>();
    }
    let conclusion = conclusion(sensitivity);
    out += &format!("\n{}\n", wrap(&conclusion.sentence, width).join("\n"));
    let place = |place: &String| format!("- {}\n", wrap(&clean(place), width - 2).join("\n  "));
    out + &conclusion.places.iter().map(place).collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::super::fixture::sensitivity;
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
