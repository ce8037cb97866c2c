//! The result of a query as HTML.

use maud::{Markup, html};
use narrows_model::table::{Cell, Table};

use super::cells;

/// Characters of a cell at most.
const TEXT_CHARS_MAX: usize = 2_000;

/// A table. Where `link` gives a value of a column an address, it leads there.
pub fn html(table: &Table, link: &dyn Fn(&str, &Cell) -> Option<String>) -> Markup {
    let class = |column| cells::is_numeric(table, column).then_some("n");
    html! {
        div.scroll {
            table {
                thead {
                    tr { @for (at, column) in table.columns.iter().enumerate() { th class=[class(at)] { (column.name) } } }
                }
                tbody {
                    @for row in &table.rows {
                        tr {
                            @for (at, (column, value)) in table.columns.iter().zip(row).enumerate() {
                                td class=[class(at)] { (cell(value, link(&column.name, value))) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn cell(value: &Cell, link: Option<String>) -> Markup {
    let whole = cells::shown(value);
    let text: String = whole.chars().take(TEXT_CHARS_MAX).collect();
    html! {
        @match link {
            Some(link) => { a href=(link) { (text) } },
            None => (text),
        }
        @if text.len() < whole.len() { "…" }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture;
    use super::*;

    #[test]
    fn values_stay_text_and_lead_where_they_are_to() {
        let mut table = fixture::all();
        table.rows[0][0] = fixture::text("<script>");
        let link = |column: &str, _: &Cell| (column == "name").then(|| "/a?b=\"c\"".to_owned());
        let html = html(&table, &link).into_string();
        assert!(html.contains("<a href=\"/a?b=&quot;c&quot;\">&lt;script&gt;</a>"), "{html}");
        assert!(html.contains("<th class=\"n\">n</th>") && html.contains("<th>labels</th>"), "{html}");
    }
}
