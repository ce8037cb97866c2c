//! The load on the page: what open models offered and achieved, and the table of its requests.

use narrows_model::comparison::Outcome;
use narrows_model::evidence::LoadTotals;
use narrows_model::load::ErrorKind;
use narrows_model::units;

use super::escape::{Esc, cut};
use crate::load::{ComparedRequest, arrivals, compared_requests, rate, repeated_and_cut, share_of_due, totals};

/// Variants of one request at most.
const VARIANTS_MAX: usize = 24;
/// Rows of all requests together, about.
const ROWS_TOTAL: usize = 200;
/// Characters of a name at most.
const NAME_CHARS_MAX: usize = 120;

/// The section; empty when the table of variants shows it all.
pub(super) fn section(outcome: &Outcome) -> String {
    let requests = compared_requests(outcome);
    let errors = if requests.is_empty() { errors_table(outcome) } else { String::new() };
    let body = [arrivals_table(outcome), requests_table(&requests), errors, notes(outcome)].concat();
    if body.is_empty() { body } else { format!("<section id=\"load\"><h2>Load</h2>{body}</section>\n") }
}

fn head(names: &[&str]) -> String {
    names.iter().map(|name| format!("<th class=\"n\">{name}</th>")).collect()
}

fn cells(values: &[String]) -> String {
    values.iter().map(|value| format!("<td class=\"n\">{value}</td>")).collect()
}

fn arrivals_table(outcome: &Outcome) -> String {
    let row = |(variant, load): &(String, LoadTotals)| {
        let values = [
            units::rate(load.offered()),
            units::rate(load.achieved()),
            units::count(load.due),
            share_of_due(load.late, load.due),
        ];
        let bad = if load.dropped > 0 { " bad" } else { "" };
        format!(
            "<tr><th scope=\"row\">{}</th>{}<td class=\"n{bad}\">{}</td></tr>",
            Esc(cut(variant, NAME_CHARS_MAX)),
            cells(&values),
            share_of_due(load.dropped, load.due)
        )
    };
    let rows: String = arrivals(outcome).iter().take(VARIANTS_MAX).map(row).collect();
    if rows.is_empty() {
        return rows;
    }
    format!(
        "<div class=\"scroll\"><table class=\"wide\"><thead><tr><th>variant</th>{}</tr></thead><tbody>{rows}</tbody>\
         </table></div><p class=\"note\">Iterations that were due each second against those that began. Late ones found \
         every user busy and had to wait; dropped ones never began.</p>",
        head(&["offered", "achieved", "due", "late", "dropped"])
    )
}

fn requests_table(requests: &[ComparedRequest]) -> String {
    if requests.is_empty() {
        return String::new();
    }
    let most = requests.iter().map(|request| request.variants.len()).max().unwrap_or(1).clamp(1, VARIANTS_MAX);
    let shown = (ROWS_TOTAL / most).max(1).min(requests.len());
    let groups: String = requests[..shown].iter().map(group).collect();
    let rest = match requests.len() - shown {
        0 => String::new(),
        n => format!("<p class=\"note\">{n} more are in the JSON.</p>"),
    };
    format!(
        "<div class=\"scroll\"><table class=\"wide\"><thead><tr><th>variant</th>{}</tr></thead>{groups}</table></div>{rest}",
        head(&["requests", "throughput", "mean", "p50", "p95", "p99", "errors"])
    )
}

fn group(request: &ComparedRequest) -> String {
    let slowest = request.variants.iter().map(|(_, load)| load.latency.mean_ns()).fold(0.0, f64::max);
    let rows: String =
        request.variants.iter().take(VARIANTS_MAX).map(|(variant, load)| row(variant, load, slowest)).collect();
    format!(
        "<tbody><tr class=\"group\"><th colspan=\"8\"><code>{}</code></th></tr>{rows}</tbody>",
        Esc(cut(&request.name, NAME_CHARS_MAX))
    )
}

fn row(variant: &str, load: &LoadTotals, slowest_ns: f64) -> String {
    let latency = load.latency();
    let time = |ns: f64| if latency.count == 0 { "–".to_owned() } else { units::duration(ns) };
    let share = if slowest_ns > 0.0 { latency.mean_ns / slowest_ns * 100.0 } else { 0.0 };
    let quantiles = [latency.p50_ns, latency.p95_ns, latency.p99_ns].map(|ns| time(ns as f64));
    format!(
        "<tr><th scope=\"row\">{}</th>{}<td class=\"n\">{}<span class=\"bar\"><i style=\"width:{share:.1}%\"></i></span>\
         </td>{}{}</tr>",
        Esc(cut(variant, NAME_CHARS_MAX)),
        cells(&[units::count(load.ended()), rate(load)]),
        time(latency.mean_ns),
        cells(&quantiles),
        errors(load)
    )
}

/// The cell with all errors and their kinds.
fn errors(load: &LoadTotals) -> String {
    if load.errors.total() == 0 {
        return "<td class=\"n\">0</td>".to_owned();
    }
    let kinds = crate::load::errors_by_kind(load.errors);
    format!("<td class=\"n bad\">{} <small>{kinds}</small></td>", units::count(load.errors.total()))
}

/// The kinds of errors of variants whose load has one request; empty without errors.
fn errors_table(outcome: &Outcome) -> String {
    let all: Vec<(String, LoadTotals)> =
        totals(outcome).into_iter().filter(|(_, load)| load.errors.total() > 0).take(VARIANTS_MAX).collect();
    if all.is_empty() {
        return String::new();
    }
    let row = |(variant, load): &(String, LoadTotals)| {
        let counts = ErrorKind::ALL.map(|kind| units::count(load.errors.of(kind)));
        format!("<tr><th scope=\"row\">{}</th>{}</tr>", Esc(cut(variant, NAME_CHARS_MAX)), cells(&counts))
    };
    let kinds = ErrorKind::ALL.map(ErrorKind::as_str);
    format!(
        "<div class=\"scroll\"><table class=\"wide\"><thead><tr><th>errors by kind</th>{}</tr></thead><tbody>{}</tbody>\
         </table></div>",
        head(&kinds),
        all.iter().map(row).collect::<String>()
    )
}

/// Notes on repeated and cut requests of each variant; empty if there were none.
fn notes(outcome: &Outcome) -> String {
    let mut out = String::new();
    for (variant, load) in totals(outcome).iter().take(VARIANTS_MAX) {
        for (label, text) in repeated_and_cut(load) {
            let variant = Esc(cut(variant, NAME_CHARS_MAX));
            out += &format!("<p class=\"note\">{variant}: {label} {text}</p>");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, drones};

    #[test]
    fn steps_stand_with_their_variants_and_errors() {
        let html = section(&fixture::open_outcome());
        assert_eq!(html.matches("class=\"group\"").count(), 2);
        assert_eq!(html.matches("<th scope=\"row\">as-is</th>").count(), 3, "{html}");
        assert!(html.contains("<td class=\"n\">1,100/s</td>") && html.contains(" check</small>"), "{html}");
    }

    #[test]
    fn requests_that_were_sent_twice_or_cut_off_are_reported() {
        let mut outcome = fixture::outcome();
        let row = &mut outcome.evidence.trials[0].seconds[60];
        (row.repeated, row.cut) = (1_200, 3);
        let html = section(&outcome);
        assert!(html.contains("<p class=\"note\">as-is: repeated 1,200 (sent again,"), "{html}");
        assert!(html.contains("<p class=\"note\">as-is: cut 3 (no response when"), "{html}");
    }

    #[test]
    fn one_step_tells_its_errors_only_and_no_errors_nothing() {
        let html = section(&fixture::outcome());
        let row = "<th scope=\"row\">as-is</th><td class=\"n\">0</td><td class=\"n\">0</td><td class=\"n\">0</td>\
                   <td class=\"n\">0</td><td class=\"n\">8</td><td class=\"n\">0</td>";
        assert!(html.contains(row) && !html.contains("class=\"group\""), "{html}");
        assert_eq!(section(&drones::outcome()), "");
    }

    #[test]
    fn many_requests_are_bounded_and_stay_text() {
        let mut outcome = fixture::open_outcome();
        let row = outcome.evidence.trials[0].seconds[60].clone();
        let more = (0..500).map(|n| {
            let mut row = row.clone();
            row.request = format!("<script>{n}");
            row
        });
        outcome.evidence.trials[0].seconds.extend(more);
        let html = section(&outcome);
        assert!(html.matches("<tr>").count() <= ROWS_TOTAL + 8 && html.contains("more are in the JSON"));
        assert!(!html.contains("<script>"));
    }
}
