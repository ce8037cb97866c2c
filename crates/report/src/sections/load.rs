//! The load: what open models offered and achieved, each request of a load that has several, and errors by kind.

use narrows_model::comparison::Outcome;
use narrows_model::evidence::LoadTotals;
use narrows_model::units;

use super::Context;
use crate::load::{
    ComparedRequest, arrivals, compared_requests, errors_by_kind, rate, repeated_and_cut, share_of_due, totals,
};
use crate::section::{Block, Column, Figure, Group, Line, Medium, Phrase, Row, Section, Table, Tone};

/// Variants of one request at most.
const VARIANTS_MAX: usize = 24;
/// Rows of all requests together, about.
const ROWS_TOTAL: usize = 200;
/// Rows of the table of requests in the terminal at most.
const TERMINAL_MAX: usize = 40;

/// The tables; without blocks if the table of variants shows everything.
pub(super) fn section(context: &Context<'_>) -> Section {
    let outcome = context.outcome;
    let mut blocks = arrivals_table(outcome);
    let requests = compared_requests(outcome);
    let has_requests = !requests.is_empty();
    if has_requests {
        blocks.extend(requests_table(&requests, outcome.comparison.variants.len() > 1));
    }
    let errors = if has_requests { Vec::new() } else { errors(outcome) };
    let lines = [errors, notes(outcome)].concat();
    blocks.extend((!lines.is_empty()).then_some(Block::Lines(lines)));
    Section::new("load", "Load", blocks)
}

/// Offered and achieved load of the variants with an open model.
fn arrivals_table(outcome: &Outcome) -> Vec<Block> {
    let row = |one: (String, LoadTotals)| {
        let (variant, load) = one;
        let tone = if load.dropped > 0 { Tone::Bad } else { Tone::Plain };
        Row::new([
            Figure::new(variant),
            Figure::new(units::rate(load.offered())),
            Figure::new(units::rate(load.achieved())),
            Figure::new(units::count(load.due)),
            Figure::new(share_of_due(load.late, load.due)),
            Figure::new(share_of_due(load.dropped, load.due)).tone(tone),
        ])
    };
    let rows: Vec<Row> = arrivals(outcome).into_iter().take(VARIANTS_MAX).map(row).collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let figures = ["offered", "achieved", "due", "late", "dropped"].map(Column::right);
    let columns = std::iter::once(Column::left("variant")).chain(figures).collect();
    let note = "Iterations that were due each second against those that began. Late ones found every user busy and had to \
                wait; dropped ones never began.";
    vec![Block::Table(Table::new(columns, rows)), Block::Only(Medium::Page, vec![Block::Note(Phrase::from(note))])]
}

/// A group for each request where several variants sent it, otherwise a row.
fn requests_table(requests: &[ComparedRequest], is_compared: bool) -> Vec<Block> {
    let most = requests.iter().map(|request| request.variants.len()).max().unwrap_or(1).clamp(1, VARIANTS_MAX);
    let shown = &requests[..(ROWS_TOTAL / most).max(1).min(requests.len())];
    let first = Column::left(if is_compared { "variant" } else { "request" });
    let figures = ["mean", "p50", "p95", "p99", "errors"].map(Column::right);
    let columns = [first, Column::right("requests"), Column::right("throughput").short("rate")];
    let columns = columns.into_iter().chain(figures).collect();
    if !is_compared {
        let slowest = shown.iter().map(slowest_ns).fold(0.0, f64::max);
        let rows = shown.iter().flat_map(|one| one.variants.iter().map(|(_, load)| row(&one.name, load, slowest)));
        return vec![Block::Table(Table::new(columns, rows.collect()).terminal_rows(TERMINAL_MAX))];
    }
    let group = |request: &ComparedRequest| {
        let slowest = slowest_ns(request);
        let rows = request.variants.iter().take(VARIANTS_MAX).map(|(variant, load)| row(variant, load, slowest));
        Group { title: Some(Phrase::default().code(&request.name)), rows: rows.collect(), is_for_page: false }
    };
    let groups = shown.iter().map(group).collect();
    let mut blocks = vec![Block::Table(Table::grouped(columns, groups).terminal_rows(TERMINAL_MAX))];
    if requests.len() > shown.len() {
        let note = Phrase::from(format!("{} more are in the JSON.", requests.len() - shown.len()));
        blocks.push(Block::Only(Medium::Page, vec![Block::Note(note)]));
    }
    blocks
}

fn slowest_ns(request: &ComparedRequest) -> f64 {
    request.variants.iter().map(|(_, load)| load.latency.mean_ns()).fold(0.0, f64::max)
}

fn row(name: &str, load: &LoadTotals, slowest_ns: f64) -> Row {
    let latency = load.latency();
    let time = |ns: f64| if latency.count == 0 { Figure::unknown() } else { Figure::new(units::duration(ns)) };
    let errors = match load.errors.total() {
        0 => Figure::new("0"),
        _ => Figure::new(errors_by_kind(load.errors)).tone(Tone::Bad),
    };
    let quantiles = [latency.p50_ns, latency.p95_ns, latency.p99_ns].map(|ns| time(ns as f64));
    let mut cells = vec![Figure::new(name), Figure::new(units::count(load.ended())), Figure::new(rate(load))];
    cells.push(time(latency.mean_ns).bar(latency.mean_ns, slowest_ns));
    cells.extend(quantiles);
    cells.push(errors);
    Row::new(cells)
}

/// The kinds of errors of each variant that has some.
fn errors(outcome: &Outcome) -> Vec<Line> {
    let with_errors = totals(outcome).into_iter().filter(|(_, load)| load.errors.total() > 0).take(VARIANTS_MAX);
    with_errors.map(|(variant, load)| Line::new("errors", variant, errors_by_kind(load.errors))).collect()
}

/// Notes on repeated and cut requests of each variant.
fn notes(outcome: &Outcome) -> Vec<Line> {
    let mut lines = Vec::new();
    for (variant, load) in totals(outcome).into_iter().take(VARIANTS_MAX) {
        let notes = repeated_and_cut(&load).into_iter();
        lines.extend(notes.map(|(label, text)| Line::new(label, variant.clone(), text)));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::{in_page, in_terminal};
    use super::*;
    use crate::fixture::{self, drones};

    #[test]
    fn an_open_load_of_two_steps() {
        insta::assert_snapshot!(in_terminal(section, &fixture::open_outcome(), 100), @r"
        variant  offered  achieved     due         late        dropped
        ──────────────────────────────────────────────────────────────
        as-is    1,100/s     244/s  66,000  180 (0.3 %)  51,356 (78 %)
        fixed    1,100/s   1,017/s  66,000  180 (0.3 %)  4,979 (7.5 %)

        variant  requests     rate     mean      p50      p95      p99     errors
        ─────────────────────────────────────────────────────────────────────────
        list
        as-is      14,644    244/s  35.6 ms  31.1 ms  64.2 ms   110 ms   8 status
        fixed      61,021  1,017/s  8.73 ms  7.57 ms  15.8 ms  26.9 ms          0
        pay
        as-is      14,756    244/s  35.6 ms  31.1 ms  64.2 ms   110 ms  120 check
        fixed      61,602  1,017/s  8.73 ms  7.57 ms  15.8 ms  26.9 ms  581 check
        ");
        let page = in_page(section, &fixture::open_outcome());
        assert_eq!(page.matches("class=\"group\"").count(), 2);
        assert!(
            page.contains("<td class=\"n\">1,100/s</td>") && page.contains("<td class=\"n bad\">120 check</td>"),
            "{page}"
        );
    }

    #[test]
    fn errors_of_a_single_request_are_reported_by_kind() {
        assert_eq!(in_terminal(section, &fixture::outcome(), 100), "errors      as-is: 8 status\n");
        assert_eq!(in_page(section, &drones::outcome()), "");
    }

    #[test]
    fn requests_that_were_sent_twice_or_cut_off_are_reported() {
        let mut outcome = fixture::outcome();
        let row = &mut outcome.evidence.trials[0].seconds[60];
        (row.repeated, row.cut) = (1_200, 3);
        insta::assert_snapshot!(in_terminal(section, &outcome, 120), @r"
        errors      as-is: 8 status
        repeated    as-is: 1,200 (sent again, because a kept connection broke before the response)
        cut         as-is: 3 (no response when the load was stopped; neither successes nor errors)
        ");
    }

    #[test]
    fn many_requests_are_cut_and_counted() {
        let mut outcome = fixture::open_outcome();
        let row = outcome.evidence.trials[0].seconds[60].clone();
        let more = (0..500).map(|n| {
            let mut row = row.clone();
            row.request = format!("<script>{n}\x1b[2J");
            row
        });
        outcome.evidence.trials[0].seconds.extend(more);
        let text = in_terminal(section, &outcome, 100);
        assert!(text.ends_with("more rows in the page and the JSON\n") && !text.contains('\x1b'), "{text}");
        let page = in_page(section, &outcome);
        assert!(page.matches("<tr>").count() <= ROWS_TOTAL + 8 && page.contains("more are in the JSON"), "{page}");
        assert!(!page.contains("<script>"));
    }
}
