//! Limit of each trial: the verdict, the levels of its load beside each other, and who used the machine.

use narrows_diagnose::words::limit_text;
use narrows_model::comparison::Outcome;
use narrows_model::limit::{LevelSummary, Limit, MachineCpu};
use narrows_model::units;

use super::Context;
use crate::section::{Block, Column, Figure, Group, Line, Medium, Phrase, Row, Section, Table};

/// Levels of all trials together, about.
const ROWS_TOTAL: usize = 200;
/// Levels in the terminal, about.
const TERMINAL_MAX: usize = 60;

/// The verdicts and the table; without blocks if no trial had a load.
pub(super) fn section(context: &Context<'_>) -> Section {
    let limits = limits(context.outcome);
    if limits.is_empty() {
        return Section::default();
    }
    let mut left = ROWS_TOTAL;
    let groups = limits.iter().map(|one| group(one, &mut left)).collect();
    let [load, figures @ ..] = COLUMNS;
    let columns = std::iter::once(Column::left(load)).chain(figures.map(Column::right)).collect();
    let table = Table::grouped(columns, groups).terminal_rows(TERMINAL_MAX);
    let lines: Vec<Line> = verdicts(&limits).into_iter().chain(next(context)).collect();
    let mut blocks = vec![Block::Lines(lines), Block::Table(table)];
    let machine = limits.iter().flat_map(|one| &one.limit.levels).find_map(|level| level.machine);
    blocks.extend(machine.map(|machine| Block::Only(Medium::Page, vec![Block::Drawing(legend(&machine))])));
    Section::new("limits", "What limits it", blocks)
}

/// Each verdict once, with the labels of the trials that it holds for.
fn verdicts(limits: &[TrialLimit<'_>]) -> Vec<Line> {
    let mut sentences: Vec<(Vec<&str>, String)> = Vec::new();
    for one in limits {
        let text = limit_text(&one.limit.verdict);
        match sentences.iter_mut().find(|(_, known)| *known == text) {
            Some((labels, _)) => labels.push(&one.label),
            None => sentences.push((vec![&one.label], text)),
        }
    }
    let line = |(labels, text): (Vec<&str>, String)| {
        let verb = if labels.len() > 1 { "are" } else { "is" };
        Line::new("limit", "", format!("{} {verb} {text}", labels.join(", ")))
    };
    sentences.into_iter().map(line).collect()
}

/// Order of the changes that gain most together, if one does not gain all: of each variant in the page, of the last one in the
/// terminal, since earlier ones have been changed already. Of a variant's repetitions the first that has an order counts.
fn next(context: &Context<'_>) -> Vec<Line> {
    let variants = &context.outcome.comparison.variants;
    let skipped = if context.medium == Medium::Terminal { variants.len().saturating_sub(1) } else { 0 };
    variants.iter().skip(skipped).filter_map(|one| next_of(context.outcome, &one.variant)).collect()
}

fn next_of(outcome: &Outcome, variant: &str) -> Option<Line> {
    let mut trials = outcome.evidence.trials.iter().zip(&outcome.ladders);
    let (_, ladder) = trials.find(|(trial, ladder)| trial.trial.variant == variant && !ladder.is_empty())?;
    Some(Line::new("next", "", format!("{variant}: {}", ladder.sentence)))
}

/// The levels of a trial; one with a single level stands in the page only.
fn group(one: &TrialLimit<'_>, left: &mut usize) -> Group {
    let shown = one.limit.levels.len().min(*left);
    *left -= shown;
    let rows = one.limit.levels.iter().take(shown).enumerate();
    Group {
        title: Some(Phrase::default().strong(&one.label)),
        rows: rows.map(|(at, level)| row(level, one.limit.knee == Some(at))).collect(),
        is_for_page: one.limit.levels.len() < 2,
    }
}

fn row(level: &LevelSummary, is_knee: bool) -> Row {
    let mut figures = cells(level).map(Figure::new);
    if is_knee {
        figures[0].text += " ◂ knee";
    }
    if let (Some(last), Some(machine)) = (figures.last_mut(), &level.machine) {
        last.parts = pieces(machine);
    }
    Row::new(figures)
}

/// Use of the machine, as shares.
fn pieces(machine: &MachineCpu) -> Vec<(&'static str, f64, String)> {
    let piece = |(name, cores, class): (&str, f64, &'static str)| {
        let share = (cores / machine.all.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0);
        (class, share, format!("{name}: {} of {}", units::cores(cores), units::number(machine.all)))
    };
    parts(machine).map(piece).to_vec()
}

fn legend(machine: &MachineCpu) -> maud::Markup {
    maud::html! {
        ul.legend.machine { @for (name, _, class) in parts(machine) { li class=(class) { span { (name) } } } }
    }
}

/// A trial's limit.
#[derive(Debug)]
struct TrialLimit<'a> {
    label: String,
    limit: &'a Limit,
}

/// The limits of all trials that have a level of load, in order.
fn limits(outcome: &Outcome) -> Vec<TrialLimit<'_>> {
    let all = outcome.evidence.trials.iter().zip(&outcome.limits);
    all.map(|(evidence, limit)| TrialLimit { label: evidence.trial.label(), limit })
        .filter(|one| !one.limit.levels.is_empty())
        .collect()
}

/// The cells of a level: load, throughput, mean, p50, p95, errors, busiest service, machine.
const COLUMNS: [&str; 8] = ["load", "throughput", "mean", "p50", "p95", "errors", "busiest service", "machine"];

/// The cells of a level in the order of [`COLUMNS`].
fn cells(level: &LevelSummary) -> [String; COLUMNS.len()] {
    let time = |ns: f64| if ns > 0.0 { units::duration(ns) } else { "–".to_owned() };
    let errors = if level.error_rate > 0.0 { units::percent(level.error_rate) } else { "0".to_owned() };
    [
        level.label.trim_matches(['“', '”']).to_owned(),
        // A dash stands for successes without a rate: they came too close together, or after the load.
        if level.rate > 0.0 || level.mean_ns <= 0.0 { units::rate(level.rate) } else { "–".to_owned() },
        time(level.mean_ns),
        time(level.p50_ns),
        time(level.p95_ns),
        errors,
        busiest(level),
        level.machine.map_or_else(|| "–".to_owned(), |machine| units::percent(machine.used_share())),
    ]
}

/// The service that uses the largest share of its CPU, with its cores.
fn busiest(level: &LevelSummary) -> String {
    let busiest = level.services.iter().max_by(|a, b| a.busy_share.total_cmp(&b.busy_share));
    busiest.map_or_else(|| "–".to_owned(), |one| format!("{} {:.2} cores", one.service, one.cores))
}

/// A part of the machine's CPU: who had it, cores, and its CSS class.
fn parts(machine: &MachineCpu) -> [(&'static str, f64, &'static str); 4] {
    [
        ("services", machine.services, "services"),
        ("Narrows", machine.narrows, "narrows"),
        ("other programs", machine.others, "others"),
        ("hypervisor", machine.stolen, "stolen"),
    ]
}

#[cfg(test)]
mod tests {
    use narrows_model::prediction::Ladder;

    use super::super::{in_page, in_terminal};
    use super::*;
    use crate::fixture;

    #[test]
    fn verdicts_are_lines_and_levels_are_a_table() {
        insta::assert_snapshot!(in_terminal(section, &fixture::stepped_outcome(), 100), @r"
        limit       as-is is limited by something at orders that is not CPU: 176/s with 1 user and with 16
                    users, so latency grows in proportion to the requests in flight; it uses 0.11 cores.
                    Look for a lock, a pool, a single connection, a sleep, a disk, or calls that send no
                    spans.
        limit       fixed is limited by the CPU of orders: 98 % of it is in use (services 49 %, Narrows 10
                    %). Add a lighter level, which proves whether throughput follows the CPU.

        as-is
        load           throughput     mean      p50      p95  errors    busiest service  machine
        ────────────────────────────────────────────────────────────────────────────────────────
        1 user ◂ knee       176/s  5.70 ms  5.13 ms  9.12 ms       0  orders 0.10 cores     30 %
        4 users             177/s  22.6 ms  20.3 ms  36.2 ms       0  orders 0.10 cores     30 %
        16 users            176/s  91.0 ms  81.9 ms   146 ms   0.4 %  orders 0.11 cores     30 %
        ");
        let page = in_page(section, &fixture::stepped_outcome());
        assert_eq!(page.matches("class=\"divided\"").count(), 4, "{page}");
    }

    #[test]
    fn trials_with_one_verdict_share_a_line() {
        let mut outcome = fixture::stepped_outcome();
        outcome.limits.iter_mut().for_each(|limit| limit.levels.truncate(1));
        outcome.limits[0] = outcome.limits[1].clone();
        let text = in_terminal(section, &outcome, 100);
        assert!(text.starts_with("limit       as-is, fixed are limited by the CPU of orders: 98 %"), "{text}");
    }

    #[test]
    fn changes_in_their_order_are_those_of_each_variant_in_the_page() {
        let mut outcome = fixture::stepped_outcome();
        let step = fixture::scored("as-is", "fixed").prediction;
        let ladder =
            |name: &str| Ladder { steps: vec![step.clone(); 2], sentence: format!("First {name}; then more.") };
        outcome.ladders = vec![ladder("queries"), ladder("CPU")];
        let text = in_terminal(section, &outcome, 100);
        assert!(text.contains("next        fixed: First CPU; then more.") && !text.contains("First queries"), "{text}");
        let page = in_page(section, &outcome);
        assert!(page.contains("as-is: First queries; then more.") && page.contains("fixed: First CPU"), "{page}");
    }

    #[test]
    fn nothing_is_printed_without_a_load() {
        let mut outcome = fixture::stepped_outcome();
        outcome.limits.iter_mut().for_each(|limit| limit.levels.clear());
        assert_eq!(in_terminal(section, &outcome, 100), "");
    }
}
