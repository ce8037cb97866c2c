//! What each variant used: CPU for each request as a bar cut by service, the table of services with their sidecars apart,
//! and the replicas of services that have several.

use narrows_model::comparison::Outcome;
use narrows_model::units;

use super::escape::{Esc, cut};
use super::palette::Palette;
use crate::figures::cpu_per_request;
use crate::used::{Kind, Readings, Replicated, Row, Used, replicated, rows, sidecars, traversal};

/// Variants of one service at most.
const VARIANTS_MAX: usize = 24;
/// Rows of all services together, about.
const ROWS_TOTAL: usize = 200;
/// Characters of a name at most.
const NAME_CHARS_MAX: usize = 120;
/// Replicas of one service at most.
const REPLICAS_MAX: usize = 24;
/// The least share of the longest bar in which a number has room.
const ROOM_FOR_NUMBER: f64 = 0.09;

/// The section; empty when nothing was sampled.
pub(super) fn section(outcome: &Outcome, palette: &Palette) -> String {
    let rows = rows(outcome);
    if rows.is_empty() {
        return String::new();
    }
    format!(
        "<section id=\"services\"><h2>What it used</h2>{}{}{}{}</section>\n",
        bars(outcome, &rows, palette),
        table(outcome, &rows),
        passed(outcome),
        replicas(outcome)
    )
}

/// CPU for each request, a bar for each variant; empty with a single service, about which the table shows all.
fn bars(outcome: &Outcome, rows: &[Row], palette: &Palette) -> String {
    let services: Vec<&Row> = rows.iter().filter(|row| row.kind == Kind::Service).collect();
    let part = |row: &Row, at: usize| row.variants[at].as_ref().and_then(|used| used.per_request).unwrap_or(0.0);
    let variants = outcome.comparison.variants.iter().take(VARIANTS_MAX).enumerate();
    let sums: Vec<f64> = variants.clone().map(|(at, _)| services.iter().map(|row| part(row, at)).sum()).collect();
    let longest = sums.iter().copied().fold(0.0, f64::max);
    if services.len() < 2 || longest <= 0.0 {
        return String::new();
    }
    let bar = |(at, _): (usize, &_)| -> String {
        let piece = |row: &&Row| {
            let (seconds, class) = (part(row, at), palette.class(&row.name));
            let (width, text) = (seconds / longest, units::duration(seconds * 1e9));
            let label = if width >= ROOM_FOR_NUMBER { format!("<b>{text}</b>") } else { String::new() };
            let name = Esc(cut(&row.name, NAME_CHARS_MAX));
            format!("<i class=\"{class}\" style=\"width:{:.2}%\" title=\"{name}: {text}\">{label}</i>", width * 100.0)
        };
        services.iter().filter(|row| part(row, at) > 0.0).map(piece).collect()
    };
    let lines: String = variants
        .map(|(at, variant)| {
            format!(
                "<span>{}</span><div class=\"stack\">{}</div><span class=\"n\">{}</span>",
                Esc(cut(&variant.variant, NAME_CHARS_MAX)),
                bar((at, variant)),
                units::duration(sums[at] * 1e9)
            )
        })
        .collect();
    let entry = |row: &&Row| {
        format!("<li class=\"{}\"><span>{}</span></li>", palette.class(&row.name), Esc(cut(&row.name, NAME_CHARS_MAX)))
    };
    format!(
        "<h3>CPU for each request</h3><div class=\"spent\">{lines}</div><ul class=\"legend parts\">{}</ul>",
        services.iter().map(entry).collect::<String>()
    )
}

fn table(outcome: &Outcome, rows: &[Row]) -> String {
    let variants = &outcome.comparison.variants;
    let of_services =
        || rows.iter().filter(|row| row.kind == Kind::Service).flat_map(|row| row.variants.iter().flatten());
    let highest = [
        of_services().map(|used| used.cores).fold(0.0, f64::max),
        of_services().map(|used| used.memory).fold(0.0, f64::max),
    ];
    let mut left = ROWS_TOTAL / variants.len().clamp(1, VARIANTS_MAX);
    let mut groups = String::new();
    for row in rows {
        if row.kind == Kind::Service && left == 0 {
            continue;
        }
        left = left.saturating_sub(1);
        let of_variant = row.variants.iter().zip(variants).take(VARIANTS_MAX);
        let lines = of_variant.filter_map(|(used, variant)| Some(line(&variant.variant, used.as_ref()?, highest)));
        groups += &format!(
            "<tbody><tr class=\"group\"><th colspan=\"6\">{}</th></tr>{}</tbody>",
            Esc(cut(&row.name, NAME_CHARS_MAX)),
            lines.collect::<String>()
        );
    }
    let head: String = ["CPU, average", "CPU, maximum", "memory, average", "memory, maximum", "CPU per request"]
        .map(|name| format!("<th class=\"n\">{name}</th>"))
        .concat();
    format!(
        "<div class=\"scroll\"><table class=\"wide\"><thead><tr><th>variant</th>{head}</tr></thead>{groups}</table></div>\
         <p class=\"note\">All replicas of a service together, while the load counted. Memory is the proportional set \
         size (PSS), in which pages that processes share count once; where it was not sampled, the resident set size (RSS).</p>"
    )
}

fn line(variant: &str, used: &Used, highest: [f64; 2]) -> String {
    let barred = |text: String, value: f64, highest: f64| {
        // A sum has no place on the scale of its parts.
        let bar = match used.cores_max {
            Some(_) => {
                let share = if highest > 0.0 { value / highest * 100.0 } else { 0.0 };
                format!("<span class=\"bar\"><i style=\"width:{share:.1}%\"></i></span>")
            }
            None => String::new(),
        };
        format!("<td class=\"n\">{text}{bar}</td>")
    };
    let cores = |cores: f64| format!("{cores:.2} cores");
    let dash = || "–".to_owned();
    format!(
        "<tr><th scope=\"row\">{}</th>{}<td class=\"n\">{}</td>{}<td class=\"n\">{}</td><td class=\"n\">{}</td></tr>",
        Esc(cut(variant, NAME_CHARS_MAX)),
        barred(cores(used.cores), used.cores, highest[0]),
        used.cores_max.map_or_else(dash, cores),
        barred(units::bytes(used.memory), used.memory, highest[1]),
        used.memory_max.map_or_else(dash, units::bytes),
        cpu_per_request(used.per_request)
    )
}

/// Cost of each sidecar that a request passes.
fn passed(outcome: &Outcome) -> String {
    let variants = outcome.comparison.variants.iter().zip(sidecars(outcome)).take(VARIANTS_MAX);
    let row = |(variant, sidecars): (&narrows_model::comparison::VariantSummary, Option<_>)| {
        let sidecars: &narrows_model::comparison::SidecarSummary = sidecars?;
        Some(format!(
            "<tr><th scope=\"row\">{}</th><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>",
            Esc(cut(&variant.variant, NAME_CHARS_MAX)),
            traversal(sidecars),
            units::percent(sidecars.cpu_share)
        ))
    };
    let rows: String = variants.filter_map(row).collect();
    if rows.is_empty() {
        return String::new();
    }
    format!(
        "<h3>Sidecars</h3><div class=\"scroll\"><table><thead><tr><th>variant</th><th class=\"n\">CPU of each × passed by a \
         request</th><th class=\"n\">share of all CPU</th></tr></thead><tbody>{rows}</tbody></table></div>"
    )
}

/// The replicas of each service that has several, one by one.
fn replicas(outcome: &Outcome) -> String {
    let all = replicated(outcome);
    let group = |one: &Replicated<'_>| {
        let rates = one.rates();
        let cells = |name: &str, readings: &Readings| {
            let texts = readings.texts().into_iter().take(REPLICAS_MAX);
            let cells: String = texts.map(|text| format!("<td class=\"n\">{text}</td>")).collect();
            format!("<tr><th scope=\"row\">{name}</th>{cells}</tr>")
        };
        let numbers = one.replicas.iter().take(REPLICAS_MAX).map(|one| format!("<th class=\"n\">{}</th>", one.replica));
        format!(
            "<tbody><tr class=\"group\"><th>{} <small>{}</small></th>{}</tr>{}{}{}</tbody>",
            Esc(cut(one.service, NAME_CHARS_MAX)),
            Esc(cut(one.variant, NAME_CHARS_MAX)),
            numbers.collect::<String>(),
            rates.map_or_else(String::new, |rates| cells("requests", &rates)),
            cells("CPU", &one.cpu()),
            cells("memory", &one.memory())
        )
    };
    if all.is_empty() {
        return String::new();
    }
    format!(
        "<h3>Replicas</h3><div class=\"scroll\"><table class=\"wide\">{}</table></div><p class=\"note\">CPU in cores, or of \
         the cap where each has one. Requests: each replica's share of the sampled traces.</p>",
        all.iter().take(ROWS_TOTAL / 4).map(group).collect::<String>()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, drones};
    use crate::used::tests::outcome;

    fn html(outcome: &Outcome) -> String {
        section(outcome, &Palette::new(&outcome.evidence))
    }

    #[test]
    fn services_stand_with_their_variants_and_their_sum() {
        let html = html(&drones::outcome());
        assert_eq!((html.matches("class=\"group\"").count(), html.matches("<th scope=\"row\">").count()), (6, 24));
        assert!(html.contains("<td class=\"n\">1.84 cores</td>") && html.contains("all together"), "{html}");
        assert_eq!(html.matches("class=\"stack\"").count(), 4);
        assert!(!html.contains("Replicas") && !html.contains("<h3>Sidecars"));
        assert_eq!(super::section(&fixture::outcome(), &Palette::new(&fixture::outcome().evidence)), "");
    }

    #[test]
    fn sidecars_and_replicas_have_their_own_tables() {
        let html = html(&outcome());
        assert!(html.contains("gateway.sidecar") && html.contains("sidecars together"), "{html}");
        assert!(html.contains("<h3>Sidecars</h3>") && html.contains("µs × 3</td>"), "{html}");
        assert!(html.contains("<h3>Replicas</h3>") && html.contains("<td class=\"n\">70 %</td>"), "{html}");
    }
}
