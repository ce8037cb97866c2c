//! The table and its conclusion as a page in Markdown, for a repository.

use narrows_model::sensitivity::{Examined, LeftOut, Sensitivity};

use super::conclusion::conclusion;
use super::table::{MARKS, Row, header, rows};
use super::{machines, ran};
use crate::results::markdown::text;

/// The page. `command` is the one that makes it again. Ends with a line feed.
pub fn markdown(sensitivity: &Sensitivity, command: &str) -> String {
    let conclusion = conclusion(sensitivity);
    let places: String = conclusion.places.iter().map(|place| format!("- {}\n", text(place))).collect();
    let measured: String = sensitivity.experiments.iter().map(measured).collect();
    let left_out: String = sensitivity.experiments.iter().flat_map(left_out).collect();
    format!(
        "# Sensitivity\n\nMade by `{command}`; nothing here is written by hand.\nMachine: {}.\n\n\
         Fitted parameters were chosen so that figures come out as published. Here, one parameter at a time is lower and higher \
         than its value, and all else stays.\n\n{}\n{}\n{MARKS}\n\n{}{}{}",
        text(&machines(sensitivity)),
        text(&conclusion.sentence),
        if places.is_empty() { places } else { format!("\n{places}") },
        table(sensitivity),
        list("Measured", &measured),
        list("Not scaled", &left_out),
    )
}

fn list(title: &str, lines: &str) -> String {
    if lines.is_empty() { String::new() } else { format!("\n{title}:\n\n{lines}") }
}

fn table(sensitivity: &Sensitivity) -> String {
    let line = |cells: [String; 5]| format!("| {} |\n", cells.join(" | "));
    let rows: String = rows(sensitivity).iter().map(|row| line(cells(row))).collect();
    format!("{}|---|---|---|---|---|\n{rows}", line(header(sensitivity).map(|name| text(&name))))
}

fn cells(row: &Row) -> [String; 5] {
    let subject = match (row.is_experiment, text(&row.subject)) {
        (true, name) => format!("**{name}**"),
        (false, name) => name,
    };
    let [lower, as_is, higher] = &row.cells;
    [subject, text(&row.what), text(lower), text(as_is), text(higher)]
}

fn measured(examined: &Examined) -> String {
    format!("- {}: {}\n", text(&examined.experiment), ran(examined))
}

fn left_out(examined: &Examined) -> Vec<String> {
    let name = text(&examined.experiment);
    let line = |left: &LeftOut| format!("- {name}: {} ({})\n", text(&left.what), text(&left.reason));
    examined.left_out.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::super::fixture::sensitivity;
    use super::*;

    #[test]
    fn the_page_has_what_holds_before_the_table() {
        insta::assert_snapshot!(markdown(&sensitivity(), "narrows sensitivity shop"), @r"
        # Sensitivity

        Made by `narrows sensitivity shop`; nothing here is written by hand.
        Machine: A Processor, 2 cores, 4.00 GiB, Linux 6.1.

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
