//! The table of operations: what each took and called, variant by variant.

use narrows_model::comparison::Outcome;
use narrows_model::operation::OperationSummary;
use narrows_model::units;

use super::escape::{Esc, cut};
use crate::figures::number;
use crate::operations::{Calls, Compared, Known, calls, compared};

/// Operations in the table at most: the slowest.
const OPERATIONS_MAX: usize = 20;
/// Variants of one operation at most.
const VARIANTS_MAX: usize = 24;
/// Rows of all operations together, about.
const ROWS_TOTAL: usize = 200;
/// Characters of a name at most.
const NAME_CHARS_MAX: usize = 120;
/// Targets named at most.
const TARGETS_MAX: usize = 4;
/// Columns that every operation has.
const COLUMNS_OF_ALL: usize = 6;

/// A column about calls.
struct Column {
    name: &'static str,
    is_in: fn(Known) -> bool,
    cell: fn(&Calls) -> Option<String>,
    is_bad: fn(&Calls) -> bool,
}

static OF_CALLS: [Column; 4] = [
    Column {
        name: "calls per op",
        is_in: |known| known.calls,
        cell: |calls| Some(number(calls.succeeded_per_operation)),
        is_bad: |_| false,
    },
    Column {
        name: "attempts per op",
        is_in: |known| known.attempts,
        cell: |calls| Some(number(calls.attempts_per_operation)),
        is_bad: |_| false,
    },
    Column {
        name: "throttled",
        is_in: |known| known.refusals,
        cell: |calls| Some(count(calls.throttled)),
        is_bad: |calls| calls.throttled > 0.0,
    },
    Column {
        name: "RU per op",
        is_in: |known| known.charges,
        cell: |calls| calls.charge_per_operation.map(number),
        is_bad: |_| false,
    },
];

/// The operations, slowest first; empty when there are none.
pub(super) fn section(outcome: &Outcome) -> String {
    let all = compared(&outcome.comparison);
    if all.is_empty() {
        return String::new();
    }
    let most = all.iter().map(|operation| operation.variants.len()).max().unwrap_or(1).clamp(1, VARIANTS_MAX);
    let shown = (ROWS_TOTAL / most).clamp(1, OPERATIONS_MAX).min(all.len());
    let known = all[..shown].iter().fold(Known::default(), |known, operation| known.and(operation.known()));
    let of_calls = OF_CALLS.iter().filter(|column| (column.is_in)(known)).map(|column| column.name);
    let head: String = ["completed", "mean", "p50", "p95", "p99"]
        .into_iter()
        .chain(of_calls)
        .map(|name| format!("<th class=\"n\">{name}</th>"))
        .collect();
    let groups: String = all[..shown].iter().map(|operation| group(operation, known)).collect();
    let rest = match all.len() - shown {
        0 => String::new(),
        n => format!("<p class=\"note\">{n} faster ones are in the JSON.</p>"),
    };
    format!(
        "<section id=\"operations\"><h2>Operations</h2><div class=\"scroll\"><table class=\"wide\"><thead><tr>\
         <th>variant</th>{head}</tr></thead>{groups}</table></div>{rest}{}</section>\n",
        note(known)
    )
}

/// Explains what the columns about calls count.
fn note(known: Known) -> String {
    let counted = match (known.calls, known.attempts) {
        (false, _) => return String::new(),
        (true, false) => "Calls per op are those that succeeded",
        (true, true) => "Calls per op are those that succeeded, attempts per op include repeated and refused ones",
    };
    format!("<p class=\"note\">{counted}; of an operation that queries a database, only calls to databases count.</p>")
}

fn group(operation: &Compared<'_>, known: Known) -> String {
    let targets = operation.targets();
    let mut named = targets.iter().take(TARGETS_MAX).copied().collect::<Vec<_>>().join(", ");
    if targets.len() > TARGETS_MAX {
        named += &format!(" and {} more", targets.len() - TARGETS_MAX);
    }
    let calls =
        if named.is_empty() { named } else { format!(" <small>calls {}</small>", Esc(cut(&named, NAME_CHARS_MAX))) };
    let own = operation.known();
    let slowest = operation.variants.iter().map(|(_, o)| o.mean_ns).fold(0.0, f64::max);
    let rows: String = operation
        .variants
        .iter()
        .take(VARIANTS_MAX)
        .map(|(variant, operation)| row(variant, operation, slowest, (known, own)))
        .collect();
    format!(
        "<tbody><tr class=\"group\"><th colspan=\"{}\">{} <code>{}</code>{calls}</th></tr>{rows}</tbody>",
        COLUMNS_OF_ALL + OF_CALLS.iter().filter(|column| (column.is_in)(known)).count(),
        Esc(operation.service),
        Esc(cut(operation.name, NAME_CHARS_MAX))
    )
}

/// `known` is what the table has columns for, `own` what there is to report of this operation.
fn row(variant: &str, operation: &OperationSummary, slowest_ns: f64, (known, own): (Known, Known)) -> String {
    let failed = match operation.failed {
        n if n > 0.0 => format!(" <small class=\"bad\">{} failed</small>", count(n)),
        _ => String::new(),
    };
    let share = if slowest_ns > 0.0 { operation.mean_ns / slowest_ns * 100.0 } else { 0.0 };
    let quantiles = [operation.p50_ns, operation.p95_ns, operation.p99_ns]
        .map(|ns| {
            format!("<td class=\"n\">{}</td>", crate::figures::known(operation.if_completed(ns), units::duration))
        })
        .concat();
    let all = calls(operation);
    let cell = |column: &Column| {
        let class = if all.as_ref().is_some_and(column.is_bad) { "n bad" } else { "n" };
        let text = all.as_ref().filter(|_| (column.is_in)(own)).and_then(column.cell);
        let text = text.unwrap_or_else(|| "–".to_owned());
        format!("<td class=\"{class}\">{text}</td>")
    };
    let of_calls: String = OF_CALLS.iter().filter(|column| (column.is_in)(known)).map(cell).collect();
    format!(
        "<tr><th scope=\"row\">{}</th><td class=\"n\">{}{failed}</td><td class=\"n\">{}<span class=\"bar\">\
         <i style=\"width:{share:.1}%\"></i></span></td>{quantiles}{of_calls}</tr>",
        Esc(variant),
        count(operation.completed),
        crate::figures::known(operation.if_completed(operation.mean_ns), units::duration),
    )
}

fn count(n: f64) -> String {
    units::count(n.max(0.0).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, drones};

    #[test]
    fn a_database_call_is_reported_with_what_it_costs() {
        let html = section(&drones::outcome());
        let cells =
            "<td class=\"n\">9</td><td class=\"n\">10.6</td><td class=\"n bad\">4,661</td><td class=\"n\">29</td>";
        assert_eq!(html.matches(cells).count(), 1, "{html}");
        assert!(
            html.contains(
                "<td class=\"n\">1</td><td class=\"n\">1</td><td class=\"n\">0</td><td class=\"n\">3.40</td>"
            )
        );
        assert!(html.contains("<small>calls azure.cosmosdb</small>"));
        let plain = "<td class=\"n\">3</td><td class=\"n\">–</td><td class=\"n\">–</td><td class=\"n\">–</td>";
        assert_eq!(html.matches(plain).count(), 4, "the gateway's calls are neither refused nor charged");
        assert_eq!(section(&fixture::outcome()), "");
    }

    #[test]
    fn a_store_that_neither_refuses_nor_charges_has_no_columns_for_it() {
        let mut outcome = drones::outcome();
        let all_calls =
            outcome.comparison.variants.iter_mut().flat_map(|v| &mut v.operations).flat_map(|o| &mut o.calls);
        all_calls.for_each(|call| {
            call.attempts_per_operation = call.succeeded_per_operation;
            call.throttled = 0.0;
            call.charge_per_operation = None;
        });
        let html = section(&outcome);
        assert!(html.contains("calls per op</th></tr>") && html.contains("colspan=\"7\""), "{html}");
        for absent in ["attempts", "throttled", "RU per op"] {
            assert!(!html.contains(absent), "{absent}: {html}");
        }
        outcome.comparison.variants.iter_mut().flat_map(|v| &mut v.operations).for_each(|o| o.calls.clear());
        let html = section(&outcome);
        assert!(html.contains("p99</th></tr>") && html.contains("colspan=\"6\""), "{html}");
        assert!(!html.contains("alls per op"), "{html}");
    }

    #[test]
    fn the_slowest_operations_are_shown_and_the_rest_counted() {
        let mut outcome = drones::outcome();
        let many = (0..60).map(|n| OperationSummary { name: format!("GET /<{n}>"), ..OperationSummary::default() });
        outcome.comparison.variants[0].operations.extend(many);
        let html = section(&outcome);
        assert_eq!(html.matches("class=\"group\"").count(), 20);
        assert!(html.contains("44 faster ones are in the JSON") && !html.contains("GET /<"));
    }
}
