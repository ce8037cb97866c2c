//! The table of operations: what each took and called, variant by variant.

use narrows_model::comparison::Outcome;
use narrows_model::operation::OperationSummary;
use narrows_model::units;

use super::escape::{Esc, cut};
use crate::figures::number;
use crate::operations::{Calls, Compared, calls, compared};

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

/// The operations, slowest first; empty when there are none.
pub(super) fn section(outcome: &Outcome) -> String {
    let all = compared(&outcome.comparison);
    if all.is_empty() {
        return String::new();
    }
    let most = all.iter().map(|operation| operation.variants.len()).max().unwrap_or(1).clamp(1, VARIANTS_MAX);
    let shown = (ROWS_TOTAL / most).clamp(1, OPERATIONS_MAX).min(all.len());
    let head: String =
        ["completed", "mean", "p50", "p95", "p99", "calls per op", "attempts per op", "throttled", "RU per op"]
            .map(|name| format!("<th class=\"n\">{name}</th>"))
            .concat();
    let groups: String = all[..shown].iter().map(group).collect();
    let rest = match all.len() - shown {
        0 => String::new(),
        n => format!("<p class=\"note\">{n} faster ones are in the JSON.</p>"),
    };
    format!(
        "<section id=\"operations\"><h2>Operations</h2><div class=\"scroll\"><table class=\"wide\"><thead><tr>\
         <th>variant</th>{head}</tr></thead>{groups}</table></div>{rest}<p class=\"note\">Calls per op are those that \
         succeeded, attempts per op include repeated and refused ones; of an operation that queries a database, only \
         calls to databases count.</p></section>\n"
    )
}

fn group(operation: &Compared<'_>) -> String {
    let targets = operation.targets();
    let mut named = targets.iter().take(TARGETS_MAX).copied().collect::<Vec<_>>().join(", ");
    if targets.len() > TARGETS_MAX {
        named += &format!(" and {} more", targets.len() - TARGETS_MAX);
    }
    let calls =
        if named.is_empty() { named } else { format!(" <small>calls {}</small>", Esc(cut(&named, NAME_CHARS_MAX))) };
    let slowest = operation.variants.iter().map(|(_, o)| o.mean_ns).fold(0.0, f64::max);
    let rows: String = operation
        .variants
        .iter()
        .take(VARIANTS_MAX)
        .map(|(variant, operation)| row(variant, operation, slowest))
        .collect();
    format!(
        "<tbody><tr class=\"group\"><th colspan=\"10\">{} <code>{}</code>{calls}</th></tr>{rows}</tbody>",
        Esc(operation.service),
        Esc(cut(operation.name, NAME_CHARS_MAX))
    )
}

fn row(variant: &str, operation: &OperationSummary, slowest_ns: f64) -> String {
    let count = |n: f64| units::count(n.max(0.0).round() as u64);
    let failed = match operation.failed {
        n if n > 0.0 => format!(" <small class=\"bad\">{} failed</small>", count(n)),
        _ => String::new(),
    };
    let share = if slowest_ns > 0.0 { operation.mean_ns / slowest_ns * 100.0 } else { 0.0 };
    let quantiles = [operation.p50_ns, operation.p95_ns, operation.p99_ns]
        .map(|ns| format!("<td class=\"n\">{}</td>", units::duration(ns)))
        .concat();
    let all = calls(operation);
    let cell = |of: &dyn Fn(&Calls) -> Option<String>| {
        format!("<td class=\"n\">{}</td>", all.as_ref().and_then(of).unwrap_or_else(|| "–".to_owned()))
    };
    let refused = all.as_ref().is_some_and(|calls| calls.throttled > 0.0);
    format!(
        "<tr><th scope=\"row\">{}</th><td class=\"n\">{}{failed}</td><td class=\"n\">{}<span class=\"bar\">\
         <i style=\"width:{share:.1}%\"></i></span></td>{quantiles}{}{}{}{}</tr>",
        Esc(variant),
        count(operation.completed),
        units::duration(operation.mean_ns),
        cell(&|calls| Some(number(calls.succeeded_per_operation))),
        cell(&|calls| Some(number(calls.attempts_per_operation))),
        cell(&|calls| Some(count(calls.throttled))).replace("\"n\"", if refused { "\"n bad\"" } else { "\"n\"" }),
        cell(&|calls| calls.charge_per_operation.map(number)),
    )
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
        assert_eq!(section(&fixture::outcome()), "");
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
