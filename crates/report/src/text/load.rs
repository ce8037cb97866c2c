//! The load in the text of a run: what open models offered and achieved, each request of a load that has several, and
//! errors by kind.

use narrows_model::comparison::Outcome;
use narrows_model::evidence::LoadTotals;
use narrows_model::units;

use super::paint::{Paint, clean, hanging, wrap};
use super::table::{Align, render};
use crate::load::{arrivals, compared_requests, errors_by_kind, rate, repeated_and_cut, share_of_due, totals};

/// Rows of the table of requests at most.
const ROWS_MAX: usize = 40;

/// Up to four parts; empty if the table of variants already shows everything.
pub(super) fn all(outcome: &Outcome, paint: Paint, width: usize) -> String {
    let requests = requests(outcome, paint, width);
    let errors = if requests.is_empty() { errors(outcome, paint, width) } else { String::new() };
    let mut parts = vec![arrivals_table(outcome, paint, width), requests, errors + &notes(outcome, paint, width)];
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

fn header(left: &[&str], right: &[&str]) -> Vec<(String, Align)> {
    let of = |names: &[&str], align| names.iter().map(|name| (name.to_string(), align)).collect::<Vec<_>>();
    [of(left, Align::Left), of(right, Align::Right)].concat()
}

/// Offered and achieved load of the variants with an open model.
fn arrivals_table(outcome: &Outcome, paint: Paint, width: usize) -> String {
    let row = |(variant, load): (String, LoadTotals)| {
        vec![
            clean(&variant),
            units::rate(load.offered()),
            units::rate(load.achieved()),
            units::count(load.due),
            share_of_due(load.late, load.due),
            share_of_due(load.dropped, load.due),
        ]
    };
    let rows: Vec<_> = arrivals(outcome).into_iter().map(row).collect();
    if rows.is_empty() {
        return String::new();
    }
    render(&header(&["variant"], &["offered", "achieved", "due", "late", "dropped"]), &rows, paint, width)
}

fn requests(outcome: &Outcome, paint: Paint, width: usize) -> String {
    let all = compared_requests(outcome);
    let compared = outcome.comparison.variants.len() > 1;
    let row = |name: &str, variant: &str, load: &LoadTotals| {
        let latency = load.latency();
        let mut row = vec![clean(name)];
        row.extend(compared.then(|| clean(variant)));
        row.extend([units::count(load.ended()), rate(load)]);
        let quantiles = [latency.mean_ns, latency.p50_ns as f64, latency.p95_ns as f64, latency.p99_ns as f64];
        row.extend(quantiles.map(|ns| if latency.count == 0 { "–".to_owned() } else { units::duration(ns) }));
        row.push(if load.errors.total() == 0 { "0".to_owned() } else { errors_by_kind(load.errors) });
        row
    };
    let of_request = all.iter().flat_map(|r| r.variants.iter().map(|(variant, load)| row(&r.name, variant, load)));
    let mut rows: Vec<Vec<String>> = of_request.collect();
    if rows.is_empty() {
        return String::new();
    }
    let more = rows.len().saturating_sub(ROWS_MAX);
    rows.truncate(ROWS_MAX);
    let left: &[&str] = if compared { &["request", "variant"] } else { &["request"] };
    let header = header(left, &["requests", "rate", "mean", "p50", "p95", "p99", "errors"]);
    let out = render(&header, &rows, paint, width);
    if more == 0 {
        return out;
    }
    let rest = format!("{more} more rows in the page and the JSON");
    out + &wrap(&rest, width).iter().map(|line| format!("{}\n", paint.dim(line))).collect::<String>()
}

/// The kinds of errors of each variant that has some.
fn errors(outcome: &Outcome, paint: Paint, width: usize) -> String {
    let with_errors = totals(outcome).into_iter().filter(|(_, load)| load.errors.total() > 0);
    with_errors
        .map(|(variant, load)| {
            let text = format!("{variant}: {}", errors_by_kind(load.errors));
            hanging("errors", &paint.dim("errors"), &text, 0, width)
        })
        .collect()
}

/// Notes on repeated and cut requests of each variant.
fn notes(outcome: &Outcome, paint: Paint, width: usize) -> String {
    let mut out = String::new();
    for (variant, load) in totals(outcome) {
        for (label, text) in repeated_and_cut(&load) {
            out += &hanging(label, &paint.dim(label), &format!("{variant}: {text}"), 0, width);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::text::Color;

    #[test]
    fn an_open_load_of_two_steps() {
        insta::assert_snapshot!(all(&fixture::open_outcome(), Paint(Color::Never), 100), @r"
        variant  offered  achieved     due         late        dropped
        ──────────────────────────────────────────────────────────────
        as-is    1,100/s     244/s  66,000  180 (0.3 %)  51,356 (78 %)
        fixed    1,100/s   1,017/s  66,000  180 (0.3 %)  4,979 (7.5 %)

        request  variant  requests     rate     mean      p50      p95      p99     errors
        ──────────────────────────────────────────────────────────────────────────────────
        list     as-is      14,644    244/s  35.6 ms  31.1 ms  64.2 ms   110 ms   8 status
        list     fixed      61,021  1,017/s  8.73 ms  7.57 ms  15.8 ms  26.9 ms          0
        pay      as-is      14,756    244/s  35.6 ms  31.1 ms  64.2 ms   110 ms  120 check
        pay      fixed      61,602  1,017/s  8.73 ms  7.57 ms  15.8 ms  26.9 ms  581 check
        ");
    }

    #[test]
    fn errors_of_a_single_request_are_reported_by_kind() {
        let text = all(&fixture::outcome(), Paint(Color::Never), 100);
        assert_eq!(text, "errors      as-is: 8 status\n");
    }

    #[test]
    fn requests_that_were_sent_twice_or_cut_off_are_reported() {
        let mut outcome = fixture::outcome();
        let row = &mut outcome.evidence.trials[0].seconds[60];
        (row.repeated, row.cut) = (1_200, 3);
        insta::assert_snapshot!(all(&outcome, Paint(Color::Never), 120), @r"
        errors      as-is: 8 status
        repeated    as-is: 1,200 (sent again, because a kept connection broke before the response)
        cut         as-is: 3 (no response when the load was stopped; neither successes nor errors)
        ");
    }

    #[test]
    fn many_requests_are_cut_and_counted() {
        let mut outcome = fixture::open_outcome();
        let row = outcome.evidence.trials[0].seconds[60].clone();
        let more = (0..50).map(|n| {
            let mut row = row.clone();
            row.request = format!("step-{n}\x1b[2J");
            row
        });
        outcome.evidence.trials[0].seconds.extend(more);
        let text = all(&outcome, Paint(Color::Never), 100);
        assert!(text.ends_with("14 more rows in the page and the JSON\n") && !text.contains('\x1b'), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    }
}
