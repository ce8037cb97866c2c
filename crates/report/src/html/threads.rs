//! Where the threads of each service were under the heaviest load.

use narrows_model::comparison::Outcome;

use super::escape::{Esc, cut};
use crate::threads::{COLUMNS, NOTE, Row, rows};

/// The most rows.
const ROWS_MAX: usize = 100;
/// Characters of a name at most.
const NAME_CHARS_MAX: usize = 120;

/// The section; empty when no threads were sampled.
pub(super) fn section(outcome: &Outcome) -> String {
    let rows = rows(outcome);
    if rows.is_empty() {
        return String::new();
    }
    let head: String = COLUMNS.iter().map(|name| format!("<th class=\"n\">{name}</th>")).collect();
    let body: String = rows.iter().take(ROWS_MAX).map(row).collect();
    format!(
        "<section id=\"threads\"><h2>Where the threads are</h2><div class=\"scroll\"><table><thead><tr><th>service</th>\
         <th>load</th>{head}</tr></thead><tbody>{body}</tbody></table></div><p class=\"note\">{NOTE}</p></section>\n"
    )
}

fn row(row: &Row<'_>) -> String {
    let cells: String = row.cells.iter().map(|cell| format!("<td class=\"n\">{cell}</td>")).collect();
    let name = |text: &str| Esc(cut(text, NAME_CHARS_MAX)).to_string();
    format!("<tr><td>{}</td><td>{}</td>{cells}</tr>", name(&row.place), name(row.load))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn each_service_is_a_row_and_names_stay_text() {
        let mut outcome = fixture::stepped_outcome();
        outcome.limits[0].levels[2].threads[0].service = "<b>".to_owned();
        let html = section(&outcome);
        assert!(html.contains("&lt;b&gt;") && !html.contains("<b>") && html.contains("16 users"), "{html}");
        assert_eq!(section(&fixture::outcome()), "");
    }
}
