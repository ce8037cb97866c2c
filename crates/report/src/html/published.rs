//! What the experiment file states for its readers: parameters with a reason, and published figures beside the measured
//! ones. The two never share a cell, and each is marked as what it is.

use narrows_model::comparison::Outcome;
use narrows_model::published::{Beside, BesideCell};

use super::escape::{Esc, cut};
use super::pairs;
use crate::measures;

/// Parameters shown at most.
const PARAMETERS_MAX: usize = 60;
/// Characters of a value, a reason or a remark at most.
const TEXT_CHARS_MAX: usize = 600;

/// The parameters that have a reason, open; empty when none has.
pub(super) fn parameters(outcome: &Outcome) -> String {
    let parameters = &outcome.notes.parameters;
    if parameters.is_empty() {
        return String::new();
    }
    let rows: String = parameters
        .iter()
        .take(PARAMETERS_MAX)
        .map(|note| {
            format!(
                "<tr><th scope=\"row\">{}</th><td><code>{}</code></td><td>{}</td></tr>",
                Esc(cut(&note.name, TEXT_CHARS_MAX)),
                Esc(cut(&note.value, TEXT_CHARS_MAX)),
                Esc(cut(&note.reason, TEXT_CHARS_MAX))
            )
        })
        .collect();
    format!(
        "<section id=\"reasons\"><details class=\"source\" open><summary>What stands in for what: parameters with a \
         reason</summary><div class=\"scroll\"><table class=\"reasons\"><thead><tr><th>parameter</th><th>value</th>\
         <th>reason</th></tr></thead><tbody>{rows}</tbody></table></div></details></section>\n"
    )
}

/// Published and measured figures; empty when none are published.
pub(super) fn section(outcome: &Outcome) -> String {
    let Some(first) = outcome.beside.first() else { return String::new() };
    let source = match measures::source(outcome) {
        "" => "elsewhere",
        source => source,
    };
    let operation = measures::operation(outcome).map_or_else(
        || format!(" {}", measures::OF_CLIENTS),
        |name| format!(" Durations and calls are those of <b>{}</b>.", Esc(name)),
    );
    let variants: String =
        first.cells.iter().map(|cell| format!("<th colspan=\"2\" class=\"n\">{}</th>", Esc(&cell.variant))).collect();
    let kinds = "<th class=\"n\"><i>published</i></th><th class=\"n\"><b>measured</b></th>".repeat(first.cells.len());
    let rows: String = outcome.beside.iter().map(row).collect();
    let pairs: String = outcome.beside.iter().map(pairs::figure).collect();
    let bases = measures::bases(&outcome.beside).map_or(String::new(), |bases| format!(" {}", Esc(bases)));
    format!(
        "<section id=\"published\"><h2>Published and measured</h2><p class=\"note\"><i>Published</i>: {}. \
         <b>Measured</b>: this run.{operation}{bases}</p><div class=\"scroll\"><table class=\"wide beside\"><thead><tr>\
         <th></th>{variants}</tr><tr><th></th>{kinds}</tr></thead><tbody>{rows}</tbody></table></div>{pairs}</section>\n",
        Esc(cut(source, TEXT_CHARS_MAX).trim_end_matches('.'))
    )
}

fn row(row: &Beside) -> String {
    let has_ratio = measures::has_ratio(row.measure);
    let ratio = |index: usize, of: fn(&BesideCell) -> Option<f64>| {
        let ratio = measures::ratio(row, index, of).filter(|_| has_ratio);
        ratio.map_or(String::new(), |ratio| format!("<small>{ratio}</small>"))
    };
    let cells: String = row
        .cells
        .iter()
        .enumerate()
        .map(|(index, cell)| {
            format!(
                "<td class=\"n\"><i>{}</i>{}</td><td class=\"n\"><b>{}</b>{}{}</td>",
                measures::value(row.measure, cell.published),
                ratio(index, |cell| cell.published),
                measures::value(row.measure, cell.measured),
                ratio(index, |cell| cell.measured),
                fitted(cell)
            )
        })
        .collect();
    let remark = match row.remark.as_str() {
        "" => String::new(),
        text => format!(
            "<tr class=\"remark\"><td colspan=\"{}\"><span>{}</span></td></tr>",
            row.cells.len() * 2 + 1,
            Esc(cut(text, TEXT_CHARS_MAX))
        ),
    };
    let class = if remark.is_empty() { "" } else { " class=\"remarked\"" };
    format!("<tr{class}><th scope=\"row\">{}</th>{cells}</tr>{remark}", Esc(&measures::name(row)))
}

/// The parameter that was fitted to reproduce the measured value.
fn fitted(cell: &BesideCell) -> String {
    let by = cell.fitted.as_ref();
    by.map_or(String::new(), |by| format!("<small class=\"fitted\">fitted: {}</small>", Esc(cut(by, TEXT_CHARS_MAX))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, drones};

    #[test]
    fn published_and_measured_never_share_a_cell() {
        let html = section(&drones::outcome());
        let cells = "<td class=\"n\"><i>42.0/s</i><small>×2.21</small></td><td class=\"n\"><b>74.0/s</b><small>×2.85</small></td>";
        assert!(html.contains(cells), "{html}");
        assert!(html.contains("<i>–</i></td><td class=\"n\"><b>29</b>"), "{html}");
        assert_eq!(html.matches("class=\"remark\"").count(), 2);
        assert_eq!(html.matches("Azure Architecture Center").count(), 1);
        assert_eq!(section(&fixture::outcome()), "");
    }

    #[test]
    fn parameters_say_why() {
        let mut outcome = drones::outcome();
        outcome.notes.parameters[0].reason = "<script>".to_owned();
        let html = parameters(&outcome);
        assert!(html.contains("<th scope=\"row\">throughput</th><td><code>900</code></td><td>&lt;script&gt;</td>"));
        assert_eq!(parameters(&fixture::outcome()), "");
    }
}
