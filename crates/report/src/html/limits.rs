//! Limit of each trial: the verdict, the levels of its load beside each other, and who used the machine.

use narrows_model::comparison::Outcome;
use narrows_model::limit::{LevelSummary, MachineCpu};
use narrows_model::units;

use super::escape::{Esc, cut};
use crate::limits::{COLUMNS, OfTrial, cells, limits, parts, sentence};

/// Levels of all trials together, about.
const ROWS_TOTAL: usize = 200;
/// Characters of a name at most.
const NAME_CHARS_MAX: usize = 120;

/// The section; empty without a load.
pub(super) fn section(outcome: &Outcome) -> String {
    let limits = limits(outcome);
    if limits.is_empty() {
        return String::new();
    }
    let mut left = ROWS_TOTAL;
    let bodies: String = limits.iter().map(|one| body(one, &mut left)).collect();
    let [load, figures @ ..] = COLUMNS;
    let head: String = figures.iter().map(|name| format!("<th class=\"n\">{name}</th>")).collect();
    let head = format!("<th>{load}</th>{head}");
    format!(
        "<section id=\"limits\"><h2>What limits it</h2><div class=\"scroll\"><table class=\"limits\"><thead><tr>{head}\
         </tr></thead>{bodies}</table></div>{}</section>\n",
        legend(&limits)
    )
}

fn body(one: &OfTrial<'_>, left: &mut usize) -> String {
    let verdict = format!(
        "<tr class=\"verdict\"><th colspan=\"{}\"><b>{}</b> is {}</th></tr>",
        COLUMNS.len(),
        Esc(cut(&one.label, NAME_CHARS_MAX)),
        Esc(sentence(one.limit))
    );
    let rows = one.limit.levels.len().min(*left);
    *left -= rows;
    let rows = one.limit.levels.iter().take(rows).enumerate();
    let rows: String = rows.map(|(at, level)| row(level, one.limit.knee == Some(at))).collect();
    format!("<tbody>{verdict}{rows}</tbody>")
}

fn row(level: &LevelSummary, is_knee: bool) -> String {
    let [load, others @ .., machine] = cells(level);
    let knee = if is_knee { " <small>knee</small>" } else { "" };
    let others: String =
        others.iter().map(|cell| format!("<td class=\"n\">{}</td>", Esc(cut(cell, NAME_CHARS_MAX)))).collect();
    let bar = level.machine.as_ref().map(divided).unwrap_or_default();
    format!("<tr><td>{}{knee}</td>{others}<td class=\"n\">{machine}{bar}</td></tr>", Esc(load))
}

/// A bar as long as the machine, with a piece for each who used it.
fn divided(machine: &MachineCpu) -> String {
    let piece = |(name, cores, class): (&str, f64, &str)| {
        let share = (cores / machine.all.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0);
        let title = format!("{name}: {} of {}", units::cores(cores), units::number(machine.all));
        format!("<i class=\"{class}\" style=\"width:{:.1}%\" title=\"{title}\"></i>", share * 100.0)
    };
    format!("<span class=\"divided\">{}</span>", parts(machine).map(piece).concat())
}

fn legend(limits: &[OfTrial<'_>]) -> String {
    let levels = || limits.iter().flat_map(|one| &one.limit.levels);
    let Some(any) = levels().find_map(|level| level.machine) else { return String::new() };
    let entry = |(name, _, class): (&str, f64, &str)| format!("<li class=\"{class}\"><span>{name}</span></li>");
    format!("<ul class=\"legend machine\">{}</ul>", parts(&any).map(entry).concat())
}
