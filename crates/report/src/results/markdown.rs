//! The page as Markdown, for a repository.

use narrows_model::printable::is_obeyed;

use super::{Cell, Results, Row, System};
use crate::figures::plural;

/// Meaning of the marks of cells.
pub(super) const MARKS: &str = "Each cell has what was *published* (slanted) above what was **measured** (bold). A measured \
    cell that is marked *fitted* was made to come out: the parameter that it names was chosen for it, so it proves nothing. \
    Ratios are to the first variant, except where another one is named. `narrows sensitivity` shows what they do when a fitted \
    parameter is 20 % lower or higher.";

pub(super) fn page(results: &Results) -> String {
    let systems: String = results.systems.iter().map(system).collect();
    format!(
        "# Published and measured\n\nMade by `{}`; nothing here is written by hand.\nMachine: {}.\n\n{MARKS}\n\n{}\n{systems}",
        results.command,
        text(&results.machine),
        summary(results)
    )
}

/// Number of figures that agree, a line for each system.
fn summary(results: &Results) -> String {
    let line = |system: &System| {
        let agreement = &system.agreement;
        let all = agreement.within + agreement.outside.len();
        format!("| [{0}](#{0}) | {all} | {1} |\n", system.name, agreement.within)
    };
    let lines: String = results.systems.iter().map(line).collect();
    format!("| system | figures that nothing was fitted to | within 20 % of the published |\n|---|---:|---:|\n{lines}")
}

fn system(system: &System) -> String {
    let mut out = format!("\n## {}\n\n", text(&system.name));
    if !system.source.is_empty() {
        out += &format!("Published: {}.\nMeasured: {}.\n\n", text(system.source.trim_end_matches('.')), system.run);
    }
    if !system.team.is_empty() {
        out += &format!("The team found: {}\n\n", text(&system.team));
    }
    out += "| variant | Narrows found |\n|---|---|\n";
    system.found.iter().for_each(|(variant, found)| out += &format!("| {} | {} |\n", text(variant), text(found)));
    out += &figures(system);
    out += &predictions(system);
    out + &outside(system)
}

fn figures(system: &System) -> String {
    if system.rows.is_empty() {
        return String::new();
    }
    let head: String = system.variants.iter().map(|variant| format!(" {} |", text(variant))).collect();
    let mut out = format!("\n| |{head}\n|---|{}\n", "---:|".repeat(system.variants.len()));
    for row in &system.rows {
        let cells: String = row.cells.iter().map(|cell| format!(" {} |", self::cell(cell))).collect();
        out += &format!("| {} |{cells}\n", text(&row.name));
    }
    if let Some(bases) = &system.bases {
        out += &format!("\n{}\n", text(bases));
    }
    let remarks: String = system.rows.iter().filter(|row| !row.remark.is_empty()).map(remark).collect();
    if remarks.is_empty() { out } else { format!("{out}\n{remarks}") }
}

fn cell(cell: &Cell) -> String {
    let with = |value: &str, ratio: &str| {
        let ratio = if ratio.is_empty() { String::new() } else { format!(" ({ratio})") };
        format!("{value}{ratio}")
    };
    let mut parts = Vec::new();
    if !cell.published.is_empty() {
        parts.push(format!("*{}*", with(&cell.published, &cell.published_ratio)));
    }
    if !cell.measured.is_empty() {
        parts.push(format!("**{}**", with(&cell.measured, &cell.measured_ratio)));
    }
    if let Some(fitted) = &cell.fitted {
        parts.push(format!("*fitted:* {}", text(fitted)));
    }
    parts.join("<br>")
}

fn remark(row: &Row) -> String {
    format!("- {}: {}\n", text(&row.name), text(&row.remark))
}

fn predictions(system: &System) -> String {
    let left_out = system.left_out();
    let left_out = if left_out.is_empty() { left_out } else { format!("\n{left_out}\n") };
    if system.predictions.is_empty() {
        return left_out;
    }
    let line = |[variants, change, rate, mean]: &[String; 4]| {
        format!("| {} | {} | {rate} | {mean} |\n", text(variants), text(change))
    };
    let lines: String = system.predictions.iter().map(line).collect();
    format!(
        "\n| predicted from the earlier variant | change | throughput, predicted → measured | mean latency, predicted → measured \
         |\n|---|---|---:|---:|\n{lines}{left_out}"
    )
}

fn outside(system: &System) -> String {
    let outside = &system.agreement.outside;
    if outside.is_empty() {
        return String::new();
    }
    let line = |[name, published, measured]: &[String; 3]| format!("- {}: {published} → {measured}\n", text(name));
    let lines: String = outside.iter().map(line).collect();
    format!(
        "\n{} more than 20 % from the published, with the reason above where one is known:\n\n{lines}",
        plural(outside.len(), "figure is", "figures are")
    )
}

/// Text as Markdown shows it: nothing in it is markup, and it stays on one line.
pub(crate) fn text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '|' | '*' | '_' | '`' | '[' | ']' | '\\' | '#' => out.extend(['\\', c]),
            '<' => out += "&lt;",
            c if is_obeyed(c) => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use crate::fixture::drones;
    use crate::results::{Source, markdown};

    fn written(change: impl FnOnce(&mut narrows_model::comparison::Outcome)) -> String {
        let mut outcome = drones::outcome();
        change(&mut outcome);
        markdown(&Source { outcomes: &[outcome], command: "narrows demo --all" })
    }

    #[test]
    fn published_measured_and_fitted_are_told_apart() {
        let page = written(|outcome| outcome.beside[0].cells[1].fitted = Some("store_delay".to_owned()));
        assert!(page.starts_with("# Published and measured\n\nMade by `narrows demo --all`;"), "{page}");
        let row = "| throughput | *19.0/s*<br>**26.0/s** | *23.0/s (×1.21)*<br>**45.0/s (×1.73)**<br>*fitted:* store\\_delay |";
        assert!(page.contains(row), "{page}");
        assert!(page.contains("- throughput: The article counts four minutes of one user too.\n"), "{page}");
        assert!(page.contains("The team found: The store refuses what goes beyond its request units."), "{page}");
        assert!(page.contains("- throughput of parallel: ×2.21 → ×2.85\n"), "{page}");
        assert!(!page.contains("- throughput of more-throughput"), "what was fitted is not judged:\n{page}");
    }

    #[test]
    fn texts_of_an_experiment_are_no_markup() {
        let page = written(|outcome| outcome.beside[0].remark = "a | b\n<b>*c*".to_owned());
        assert!(page.contains(r"- throughput: a \| b &lt;b>\*c\*"), "{page}");
    }
}
