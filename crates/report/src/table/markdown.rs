//! A table in Markdown, as GitHub and others read it.

use narrows_model::table::Table;

use super::cells::{is_numeric, shown};
use crate::markdown::table as written;
use crate::section::{Column, Row, Table as Shown};

/// Numbers stand right. Text that would be markup is escaped; a line break becomes `<br>`.
pub fn markdown(table: &Table) -> String {
    let column = |at: usize, name: &str| if is_numeric(table, at) { Column::right(name) } else { Column::left(name) };
    let columns = table.columns.iter().enumerate().map(|(at, one)| column(at, &one.name)).collect();
    let rows = table.rows.iter().map(|row| Row::new(row.iter().map(shown))).collect();
    written(&Shown::new(columns, rows))
}

#[cfg(test)]
mod tests {
    use super::super::fixture;
    use super::*;

    #[test]
    fn cells_stay_cells() {
        insta::assert_snapshot!(markdown(&fixture::all()), @r#"
        | name | n | ms | ok | at | took | labels |
        |---|---:|---:|---|---|---:|---|
        | GET / | 9223372036854775807 | 2 | true | 2020-06-18T20:59:00.1234567Z | 1.02:03:04 | {"b":1,"a":\[2\]} |
        | a "b", c\|d<br>e |  | 0.3 | false |  | -00:00:01.5000000 | not json |
        "#);
    }
}
