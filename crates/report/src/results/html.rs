//! The page as HTML, in the clothes of the report.

use super::{Cell, Results, Row, System};
use crate::html::{Esc, STYLE};

/// Style that only results pages have.
const OWN_STYLE: &str = ".scroll, section > ul { margin-top: 1.2rem }\n";

pub(super) fn page(results: &Results) -> String {
    let systems: String = results.systems.iter().map(system).collect();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>Published and measured · Narrows</title>\n<style>\n{STYLE}{OWN_STYLE}</style>\n</head>\n<body>\n<main>\n\
         <header class=\"top\"><h1>Published and measured</h1><p class=\"lead wordy\">Each cell has what was \
         <i>published</i> beside what was <b>measured</b>. A cell marked “fitted” was made to come out: the parameter that it names was \
         chosen for it, so it proves nothing. Ratios are to the first variant, except where another one is named.</p><p class=\"note\">{} · made by \
         <code>{}</code></p></header>\n{}{systems}</main>\n</body>\n</html>\n",
        Esc(&results.machine),
        Esc(&results.command),
        summary(results)
    )
}

fn summary(results: &Results) -> String {
    let line = |system: &System| {
        let within = system.agreement.within;
        let all = within + system.agreement.outside.len();
        let name = Esc(&system.name);
        format!(
            "<tr><th scope=\"row\"><a href=\"#{name}\">{name}</a></th><td class=\"n\">{all}</td><td class=\"n\">{within}</td></tr>"
        )
    };
    let lines: String = results.systems.iter().map(line).collect();
    format!(
        "<section><table><thead><tr><th>system</th><th class=\"n\">figures that nothing was fitted to</th><th \
         class=\"n\">within 20 % of the published</th></tr></thead><tbody>{lines}</tbody></table></section>\n"
    )
}

fn system(system: &System) -> String {
    let found: String = system
        .found
        .iter()
        .map(|(variant, found)| format!("<tr><th scope=\"row\">{}</th><td>{}</td></tr>", Esc(variant), Esc(found)))
        .collect();
    let team = match system.team.as_str() {
        "" => String::new(),
        team => format!("<p>The team found: {}</p>", Esc(team)),
    };
    format!(
        "<section id=\"{name}\"><h2>{name}</h2><p class=\"note\"><i>Published</i>: {}. <b>Measured</b>: {}.</p>{team}\
         <div class=\"scroll\"><table><thead><tr><th>variant</th><th>Narrows found</th></tr></thead><tbody>{found}</tbody>\
         </table></div>{}{}{}</section>\n",
        Esc(system.source.trim_end_matches('.')),
        Esc(&system.run),
        figures(system),
        predictions(system),
        outside(system),
        name = Esc(&system.name),
    )
}

fn figures(system: &System) -> String {
    let variants: String =
        system.variants.iter().map(|variant| format!("<th colspan=\"2\" class=\"n\">{}</th>", Esc(variant))).collect();
    let kinds =
        "<th class=\"n\"><i>published</i></th><th class=\"n\"><b>measured</b></th>".repeat(system.variants.len());
    let rows: String = system.rows.iter().map(row).collect();
    let bases = system.bases.as_ref().map_or(String::new(), |bases| format!("<p class=\"note\">{}</p>", Esc(bases)));
    let pairs: String = system.rows.iter().map(|row| row.pairs.as_str()).collect();
    format!(
        "<div class=\"scroll\"><table class=\"wide beside\"><thead><tr><th></th>{variants}</tr><tr><th></th>{kinds}</tr></thead>\
         <tbody>{rows}</tbody></table></div>{bases}{pairs}"
    )
}

fn row(row: &Row) -> String {
    let cells: String = row.cells.iter().map(cell).collect();
    let remark = match row.remark.as_str() {
        "" => String::new(),
        text => format!(
            "<tr class=\"remark\"><td colspan=\"{}\"><span>{}</span></td></tr>",
            row.cells.len() * 2 + 1,
            Esc(text)
        ),
    };
    let class = if remark.is_empty() { "" } else { " class=\"remarked\"" };
    format!("<tr{class}><th scope=\"row\">{}</th>{cells}</tr>{remark}", Esc(&row.name))
}

fn cell(cell: &Cell) -> String {
    let small = |text: &str| if text.is_empty() { String::new() } else { format!("<small>{}</small>", Esc(text)) };
    let fitted = cell
        .fitted
        .as_ref()
        .map_or(String::new(), |fitted| format!("<small class=\"fitted\">fitted: {}</small>", Esc(fitted)));
    format!(
        "<td class=\"n\"><i>{}</i>{}</td><td class=\"n\"><b>{}</b>{}{fitted}</td>",
        Esc(&cell.published),
        small(&cell.published_ratio),
        Esc(&cell.measured),
        small(&cell.measured_ratio)
    )
}

fn predictions(system: &System) -> String {
    let left_out = system.left_out();
    let left_out = if left_out.is_empty() { left_out } else { format!("<p>{}</p>", Esc(left_out)) };
    if system.predictions.is_empty() {
        return left_out;
    }
    let line = |[variants, change, rate, mean]: &[String; 4]| {
        format!(
            "<tr><th scope=\"row\">{}</th><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>",
            Esc(variants),
            Esc(change),
            Esc(rate),
            Esc(mean)
        )
    };
    let lines: String = system.predictions.iter().map(line).collect();
    format!(
        "<div class=\"scroll\"><table><thead><tr><th>predicted</th><th>change</th><th class=\"n\">throughput, predicted → \
         measured</th><th class=\"n\">mean latency, predicted → measured</th></tr></thead><tbody>{lines}</tbody></table></div>{left_out}"
    )
}

fn outside(system: &System) -> String {
    let line = |[name, published, measured]: &[String; 3]| {
        format!("<li>{}: {} → {}</li>", Esc(name), Esc(published), Esc(measured))
    };
    let lines: String = system.agreement.outside.iter().map(line).collect();
    if lines.is_empty() {
        return String::new();
    }
    format!("<p>More than 20 % from the published, with the reason above where one is known:</p><ul>{lines}</ul>")
}

#[cfg(test)]
mod tests {
    use crate::fixture::drones;
    use crate::results::{Source, html};

    #[test]
    fn the_page_marks_what_was_fitted_and_escapes_what_experiments_say() {
        let mut outcome = drones::outcome();
        outcome.beside[0].cells[1].fitted = Some("<delay>".to_owned());
        let page = html(&Source { outcomes: &[outcome], command: "narrows demo --all" });
        assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
        assert!(
            page.contains(
                "<b>45.0/s</b><small>×1.73</small><small class=\"fitted\">fitted: &lt;delay&gt;</small></td>"
            ),
            "{page}"
        );
    }
}
