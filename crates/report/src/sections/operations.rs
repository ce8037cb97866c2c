//! The table of operations: duration and calls of each, variant by variant. The terminal shows those that call a database, or
//! else the slowest.

use narrows_model::operation::OperationSummary;
use narrows_model::units;

use super::Context;
use crate::figures::{known as known_figure, number};
use crate::operations::{CallColumns, Calls, ComparedOperation, calls, compared};
use crate::section::{Block, Column, Figure, Group, Medium, Phrase, Row, Section, Table, Tone};

/// Operations in the table at most: the slowest.
const OPERATIONS_MAX: usize = 20;
/// Operations in the terminal.
const TERMINAL_MAX: usize = 2;
/// Variants of one operation at most.
const VARIANTS_MAX: usize = 24;
/// Rows of all operations together, about.
const ROWS_TOTAL: usize = 200;
/// Targets named at most.
const TARGETS_MAX: usize = 4;

/// A column about calls.
struct CallColumn {
    name: &'static str,
    short: &'static str,
    is_in: fn(CallColumns) -> bool,
    figure: fn(&Calls) -> Option<Figure>,
}

static OF_CALLS: [CallColumn; 4] = [
    CallColumn {
        name: "calls per op",
        short: "calls/op",
        is_in: |known| known.calls,
        figure: |calls| Some(Figure::new(number(calls.succeeded_per_operation))),
    },
    CallColumn {
        name: "attempts per op",
        short: "attempts/op",
        is_in: |known| known.attempts,
        figure: |calls| Some(Figure::new(number(calls.attempts_per_operation))),
    },
    CallColumn {
        name: "throttled",
        short: "429",
        is_in: |known| known.refusals,
        figure: |calls| {
            let tone = if calls.throttled > 0.0 { Tone::Bad } else { Tone::Plain };
            Some(Figure::new(count(calls.throttled)).tone(tone))
        },
    },
    CallColumn {
        name: "RU per op",
        short: "RU/op",
        is_in: |known| known.charges,
        figure: |calls| calls.charge_per_operation.map(|charge| Figure::new(number(charge))),
    },
];

/// The operations, slowest first; without blocks if there are none.
pub(super) fn section(context: &Context<'_>) -> Section {
    let all = compared(&context.outcome.comparison);
    if all.is_empty() {
        return Section::default();
    }
    let most = all.iter().map(|operation| operation.variants.len()).max().unwrap_or(1).clamp(1, VARIANTS_MAX);
    let shown: Vec<&ComparedOperation<'_>> = match context.medium {
        Medium::Page => all.iter().take((ROWS_TOTAL / most).clamp(1, OPERATIONS_MAX)).collect(),
        Medium::Terminal => {
            let has_database = all.iter().any(ComparedOperation::calls_database);
            all.iter().filter(|one| one.calls_database() || !has_database).take(TERMINAL_MAX).collect()
        }
    };
    let known = shown.iter().fold(CallColumns::default(), |known, operation| known.and(operation.known()));
    let columns = [
        Column::left("variant"),
        Column::right("completed").spared(2),
        Column::right("mean"),
        Column::right("p50").spared(0),
        Column::right("p95").spared(3),
        Column::right("p99").spared(1),
    ];
    let of_calls = OF_CALLS.iter().filter(|column| (column.is_in)(known));
    let of_calls = of_calls.map(|column| Column::right(column.name).short(column.short));
    let groups = shown.iter().map(|operation| group(operation, known)).collect();
    let table = Table::grouped(columns.into_iter().chain(of_calls).collect(), groups);
    let mut notes = Vec::new();
    if all.len() > shown.len() {
        notes.push(Block::Note(Phrase::from(format!("{} faster ones are in the JSON.", all.len() - shown.len()))));
    }
    notes.extend(note(known).map(|note| Block::Note(Phrase::from(note))));
    let blocks = vec![Block::Table(table), Block::Only(Medium::Page, notes)];
    Section::new("operations", "Operations", blocks)
}

/// Explains the columns about calls; `None` without such columns.
fn note(known: CallColumns) -> Option<String> {
    let counted = match (known.calls, known.attempts) {
        (false, _) => return None,
        (true, false) => "Calls per op are those that succeeded",
        (true, true) => "Calls per op are those that succeeded, attempts per op include repeated and refused ones",
    };
    Some(format!("{counted}; of an operation that queries a database, only calls to databases count."))
}

fn group(operation: &ComparedOperation<'_>, known: CallColumns) -> Group {
    let targets = operation.targets();
    let mut named = targets.iter().take(TARGETS_MAX).copied().collect::<Vec<_>>().join(", ");
    if targets.len() > TARGETS_MAX {
        named += &format!(" and {} more", targets.len() - TARGETS_MAX);
    }
    let calls = if named.is_empty() { named } else { format!(", calls to {named}") };
    let slowest = operation.variants.iter().map(|(_, one)| one.mean_ns).fold(0.0, f64::max);
    let own = operation.known();
    let rows = operation.variants.iter().take(VARIANTS_MAX).map(|(variant, one)| {
        let all = calls_of(one, known, own);
        row(variant, one, slowest, all)
    });
    let title = Phrase::from(operation.service).plain(" ").code(operation.name).small(calls);
    Group { title: Some(title), rows: rows.collect(), is_for_page: false }
}

fn row(variant: &str, operation: &OperationSummary, slowest_ns: f64, of_calls: Vec<Figure>) -> Row {
    let failed = match operation.failed {
        n if n > 0.0 => format!("{} failed", count(n)),
        _ => String::new(),
    };
    let time = |ns: f64| Figure::new(known_figure(operation.if_completed(ns), units::duration));
    let mut cells = vec![Figure::new(variant), Figure::new(count(operation.completed)).small(failed)];
    cells.push(time(operation.mean_ns).bar(operation.mean_ns, slowest_ns));
    cells.extend([operation.p50_ns, operation.p95_ns, operation.p99_ns].map(time));
    cells.extend(of_calls);
    Row::new(cells)
}

/// The figures about calls in the columns of `known`; a dash for those that the operation itself has not, see `own`.
fn calls_of(operation: &OperationSummary, known: CallColumns, own: CallColumns) -> Vec<Figure> {
    let all = calls(operation);
    let figure = |column: &CallColumn| {
        let figure = all.as_ref().filter(|_| (column.is_in)(own)).and_then(column.figure);
        figure.unwrap_or_else(Figure::unknown)
    };
    OF_CALLS.iter().filter(|column| (column.is_in)(known)).map(figure).collect()
}

fn count(n: f64) -> String {
    units::count(n.max(0.0).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::super::{in_page, in_terminal};
    use super::*;
    use crate::fixture::{self, drones};
    use narrows_model::comparison::Outcome;

    fn without_costs() -> Outcome {
        let mut outcome = drones::outcome();
        let operations = outcome.comparison.variants.iter_mut().flat_map(|variant| &mut variant.operations);
        operations.flat_map(|operation| &mut operation.calls).for_each(|call| {
            call.attempts_per_operation = call.succeeded_per_operation;
            call.throttled = 0.0;
            call.charge_per_operation = None;
        });
        outcome
    }

    fn without_calls() -> Outcome {
        let mut outcome = drones::outcome();
        let operations = outcome.comparison.variants.iter_mut().flat_map(|variant| &mut variant.operations);
        operations.for_each(|operation| operation.calls.clear());
        outcome
    }

    #[test]
    fn a_terminal_shows_operations_that_query_a_database_or_else_the_slowest() {
        let text = in_terminal(section, &drones::outcome(), 120);
        assert!(text.starts_with("drone-scheduler GET") && !text.contains("gateway"), "{text}");
        insta::assert_snapshot!(in_terminal(section, &without_calls(), 100), @r"
        variant          completed     mean      p50      p95     p99
        ─────────────────────────────────────────────────────────────
        gateway GET /api/invoices
        baseline             2,860   672 ms   269 ms   1.48 s  2.76 s
        more-throughput      4,950   572 ms   229 ms   1.26 s  2.35 s
        parallel             8,140   218 ms  87.2 ms   480 ms  894 ms
        partition-key       10,890  40.0 ms  16.0 ms  88.0 ms  164 ms
        drone-scheduler GET /api/dronedeliveries/utilization
        baseline             2,860   669 ms   268 ms   1.47 s  2.74 s
        more-throughput      4,950   569 ms   228 ms   1.25 s  2.33 s
        parallel             8,140   215 ms  86.0 ms   473 ms  882 ms
        partition-key       10,890  37.0 ms  14.8 ms  81.4 ms  152 ms
        ");
    }

    #[test]
    fn columns_are_left_out_rather_than_broken() {
        let header = |width| in_terminal(section, &drones::outcome(), width).lines().nth(1).map(str::to_owned).unwrap();
        assert!(header(98).contains("p50") && !header(97).contains("p50"));
        assert!(header(92).contains("p99") && !header(80).contains("p99") && header(80).contains("RU/op"));
    }

    #[test]
    fn a_database_call_is_reported_with_what_it_costs() {
        let page = in_page(section, &drones::outcome());
        let cells =
            "<td class=\"n\">9</td><td class=\"n\">10.6</td><td class=\"n bad\">4,661</td><td class=\"n\">29</td>";
        assert_eq!(page.matches(cells).count(), 1, "{page}");
        assert!(page.contains("calls to azure.cosmosdb"));
        let plain = "<td class=\"n\">3</td><td class=\"n\">–</td><td class=\"n\">–</td><td class=\"n\">–</td>";
        assert_eq!(page.matches(plain).count(), 4, "the gateway's calls are neither refused nor charged: {page}");
        assert_eq!(in_page(section, &fixture::outcome()), "");
    }

    #[test]
    fn a_store_that_neither_refuses_nor_charges_has_no_columns_for_it() {
        let page = in_page(section, &without_costs());
        assert!(page.contains("calls per op</th></tr>") && page.contains("colspan=\"7\""), "{page}");
        for absent in ["attempts", "throttled", "RU per op"] {
            assert!(!page.contains(absent), "{absent}: {page}");
        }
        let page = in_page(section, &without_calls());
        assert!(page.contains("p99</th></tr>") && !page.contains("alls per op"), "{page}");
    }

    #[test]
    fn the_slowest_operations_are_shown_and_the_rest_counted() {
        let mut outcome = drones::outcome();
        let many = (0..60).map(|n| OperationSummary { name: format!("GET /<{n}>"), ..OperationSummary::default() });
        outcome.comparison.variants[0].operations.extend(many);
        let page = in_page(section, &outcome);
        assert_eq!(page.matches("class=\"group\"").count(), 20);
        assert!(page.contains("44 faster ones are in the JSON") && !page.contains("GET /<"), "{page}");
    }
}
