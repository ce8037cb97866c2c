//! Operations and services in short: those that call a database, or else the slowest; the rest is in the page and the
//! JSON.

use narrows_model::comparison::{Outcome, ServiceSummary, VariantSummary};
use narrows_model::operation::OperationSummary;
use narrows_model::units;

use super::Color;
use super::paint::{Paint, clean, hanging, wrap};
use super::table::{Align, render};
use super::used::VARIANTS_MAX;
use crate::figures::{known, number};
use crate::operations::{Compared, calls, compared};

/// The most operations reported.
const OPERATIONS_MAX: usize = 2;
/// Columns reported for an operation.
const COLUMNS: [&str; 10] = ["variant", "completed", "mean", "p50", "p95", "p99", CALLS, ATTEMPTS, REFUSALS, CHARGE];
/// The columns about its calls.
const CALLS: &str = "calls/op";
const ATTEMPTS: &str = "attempts/op";
const REFUSALS: &str = "429";
const CHARGE: &str = "RU/op";
/// The columns left out first where there is no room.
const SPARED: [&str; 4] = ["p50", "p99", "completed", "p95"];
/// Wider than any table.
const UNBOUND: usize = u16::MAX as usize;

/// A small table for each operation reported, then, of many variants, the busiest service of each; empty when nothing
/// is known.
pub(super) fn all(outcome: &Outcome, paint: Paint, width: usize) -> String {
    let mut sections: Vec<String> =
        selected(compared(&outcome.comparison)).iter().map(|operation| one(operation, paint, width)).collect();
    // Elsewhere what each service used has a table of its own.
    if outcome.comparison.variants.len() > VARIANTS_MAX {
        sections.push(busiest(&outcome.comparison.variants, paint, width));
    }
    sections.retain(|section| !section.is_empty());
    sections.join("\n")
}

fn selected(mut operations: Vec<Compared<'_>>) -> Vec<Compared<'_>> {
    if operations.iter().any(Compared::calls_database) {
        operations.retain(Compared::calls_database);
    }
    operations.truncate(OPERATIONS_MAX);
    operations
}

fn one(operation: &Compared<'_>, paint: Paint, width: usize) -> String {
    let mut title = format!("{} {}", operation.service, operation.name);
    let targets = operation.targets();
    if !targets.is_empty() {
        title += &format!(", calls to {}", targets.join(", "));
    }
    let out: String = wrap(&clean(&title), width).iter().map(|line| format!("{}\n", paint.bold(line))).collect();
    let known = operation.known();
    let of_calls =
        [(CALLS, known.calls), (ATTEMPTS, known.attempts), (REFUSALS, known.refusals), (CHARGE, known.charges)];
    let is_told = |name: &&str| !of_calls.iter().any(|(column, is_known)| column == name && !is_known);
    let mut columns: Vec<&str> = COLUMNS.into_iter().filter(is_told).collect();
    for spared in SPARED {
        if table(operation, &columns, Paint(Color::Never), UNBOUND).lines().all(|line| line.chars().count() <= width) {
            break;
        }
        columns.retain(|name| *name != spared);
    }
    out + &table(operation, &columns, paint, width)
}

fn table(operation: &Compared<'_>, columns: &[&str], paint: Paint, width: usize) -> String {
    let align = |name: &&str| (name.to_string(), if *name == COLUMNS[0] { Align::Left } else { Align::Right });
    let header: Vec<_> = columns.iter().map(align).collect();
    let rows: Vec<Vec<String>> = operation
        .variants
        .iter()
        .map(|(variant, operation)| {
            let cells = COLUMNS.iter().zip(row(variant, operation));
            cells.filter(|(name, _)| columns.contains(name)).map(|(_, cell)| cell).collect()
        })
        .collect();
    render(&header, &rows, paint, width)
}

/// The cells of all [`COLUMNS`].
fn row(variant: &str, operation: &OperationSummary) -> Vec<String> {
    let count = |n: f64| units::count(n.max(0.0).round() as u64);
    let dash = || "–".to_owned();
    let mut row = vec![clean(variant), count(operation.completed)];
    let durations = [operation.mean_ns, operation.p50_ns, operation.p95_ns, operation.p99_ns];
    row.extend(durations.map(|ns| known(operation.if_completed(ns), units::duration)));
    let calls = calls(operation);
    let cell = |text: Option<String>| text.unwrap_or_else(dash);
    row.push(cell(calls.as_ref().map(|calls| number(calls.succeeded_per_operation))));
    row.push(cell(calls.as_ref().map(|calls| number(calls.attempts_per_operation))));
    row.push(cell(calls.as_ref().map(|calls| count(calls.throttled))));
    row.push(cell(calls.as_ref().and_then(|calls| calls.charge_per_operation).map(number)));
    row
}

/// The service of each variant that used most CPU, mean and most cores; named once where it is the same.
fn busiest(variants: &[VariantSummary], paint: Paint, width: usize) -> String {
    let of_variant = |variant: &VariantSummary| {
        let by_cpu = |a: &&ServiceSummary, b: &&ServiceSummary| a.cpu_mean.total_cmp(&b.cpu_mean);
        variant.services.iter().max_by(by_cpu).map(|service| (variant.variant.clone(), service.clone()))
    };
    let busiest: Vec<(String, ServiceSummary)> = variants.iter().filter_map(of_variant).collect();
    let Some((_, first)) = busiest.first() else { return String::new() };
    let is_one = busiest.iter().all(|(_, service)| service.service == first.service);
    let parts = busiest.iter().map(|(variant, service)| {
        let name = if is_one { variant.clone() } else { format!("{variant} {}", service.service) };
        format!("{name} {:.2} ({:.2})", service.cpu_mean, service.cpu_max)
    });
    let lead = if is_one { format!("busiest is {}", first.service) } else { "busiest services".to_owned() };
    let text = format!("{lead}, mean (and most) cores: {}", parts.collect::<Vec<_>>().join(", "));
    hanging("CPU", &paint.dim("CPU"), &text, 0, width)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::drones;

    #[test]
    fn operations_that_ask_a_database_go_before_the_slowest() {
        let mut outcome = drones::outcome();
        let names = |outcome: &Outcome| -> Vec<String> {
            selected(compared(&outcome.comparison)).iter().map(|operation| operation.service.to_owned()).collect()
        };
        assert_eq!(names(&outcome), ["drone-scheduler"]);
        let all_calls =
            outcome.comparison.variants.iter_mut().flat_map(|v| &mut v.operations).flat_map(|o| &mut o.calls);
        all_calls.for_each(|call| call.is_database = false);
        assert_eq!(names(&outcome), ["gateway", "drone-scheduler"]);
    }

    #[test]
    fn the_busiest_service_is_named_once_where_it_is_the_same() {
        let mut variants = drones::outcome().comparison.variants;
        variants.truncate(2);
        let text = |variants: &[VariantSummary]| busiest(variants, Paint(Color::Never), 120);
        let one = "CPU         busiest is drone-scheduler, mean (and most) cores: baseline 0.45 (0.85), \
                   more-throughput 0.60 (1.14)\n";
        assert_eq!(text(&variants), one);
        variants[1].services[0].cpu_mean = 0.9;
        let each = "baseline drone-scheduler 0.45 (0.85), more-throughput gateway 0.90";
        assert!(text(&variants).contains(each), "{}", text(&variants));
    }

    #[test]
    fn columns_are_left_out_rather_than_broken() {
        let comparison = drones::outcome().comparison;
        let shown = selected(compared(&comparison));
        let header = |width| one(&shown[0], Paint(Color::Never), width).lines().nth(1).map(str::to_owned).unwrap();
        assert!(header(98).contains("p50") && !header(97).contains("p50"));
        assert!(header(92).contains("p99") && !header(80).contains("p99") && header(80).contains("RU/op"));
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
        outcome.comparison.variants.truncate(1);
        insta::assert_snapshot!(all(&outcome, Paint(Color::Never), 100), @r"
        drone-scheduler GET /api/dronedeliveries/utilization, calls to azure.cosmosdb
        variant   completed    mean     p50     p95     p99  calls/op
        ─────────────────────────────────────────────────────────────
        baseline      2,860  669 ms  268 ms  1.47 s  2.74 s         9
        ");
    }

    #[test]
    fn an_operation_without_calls_has_no_columns_for_them() {
        let mut outcome = drones::outcome();
        outcome.comparison.variants.iter_mut().flat_map(|v| &mut v.operations).for_each(|o| o.calls.clear());
        outcome.comparison.variants.iter_mut().for_each(|variant| variant.services.clear());
        outcome.comparison.variants.truncate(1);
        insta::assert_snapshot!(all(&outcome, Paint(Color::Never), 100), @r"
        gateway GET /api/invoices
        variant   completed    mean     p50     p95     p99
        ───────────────────────────────────────────────────
        baseline      2,860  672 ms  269 ms  1.48 s  2.76 s

        drone-scheduler GET /api/dronedeliveries/utilization
        variant   completed    mean     p50     p95     p99
        ───────────────────────────────────────────────────
        baseline      2,860  669 ms  268 ms  1.47 s  2.74 s
        ");
    }
}
