//! A table in Markdown, as GitHub and others read it.

use narrows_model::printable::is_obeyed;
use narrows_model::table::Table;

use super::cells::{is_numeric, shown};

/// Numbers stand right. What Markdown would take for its own is escaped; a line break becomes `<br>`.
pub fn markdown(table: &Table) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let rule = |column| if is_numeric(table, column) { "---:" } else { "---" }.to_owned();
    let mut out = line(table.columns.iter().map(|column| escaped(&column.name)).collect());
    out += &line((0..table.columns.len()).map(rule).collect());
    for row in &table.rows {
        out += &line(row.iter().map(|cell| escaped(&shown(cell))).collect());
    }
    out
}

pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push_str("<br>"),
            '<' => out.push_str("&lt;"),
            '|' | '\\' | '*' | '_' | '`' | '[' | ']' => out.extend(['\\', c]),
            c if is_obeyed(c) => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::fixture;
    use super::*;

    #[test]
    fn cells_stay_cells() {
        insta::assert_snapshot!(markdown(&fixture::all()), @r#"
        | name | n | ms | ok | at | took | labels |
        | --- | ---: | ---: | --- | --- | ---: | --- |
        | GET / | 9223372036854775807 | 2 | true | 2020-06-18T20:59:00.1234567Z | 1.02:03:04 | {"b":1,"a":\[2\]} |
        | a "b", c\|d<br>e |  | 0.3 | false |  | -00:00:01.5000000 | not json |
        "#);
    }
}
