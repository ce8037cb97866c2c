//! A table as comma-separated values (RFC 4180), with a header.

use narrows_model::printable;
use narrows_model::table::{Cell, Table};

use super::cells::exact;

/// Every value in full; no value is an empty field. Lines end with a line feed.
pub fn csv(table: &Table) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let header = table.columns.iter().map(|column| printable::cell(&column.name).into_owned()).collect();
    let rows = table.rows.iter().map(|row| row.iter().map(field).collect::<Vec<_>>());
    for record in std::iter::once(header).chain(rows) {
        // Writing to memory cannot fail, and all records are as long as the header.
        let _ = writer.write_record(&record);
    }
    String::from_utf8(writer.into_inner().unwrap_or_default()).unwrap_or_default()
}

/// Untrusted text is never written as a formula.
fn field(cell: &Cell) -> String {
    match cell {
        Cell::Text(text) => printable::cell(text).into_owned(),
        cell => exact(cell),
    }
}

#[cfg(test)]
mod tests {
    use narrows_model::table::ColumnType;

    use super::super::fixture;
    use super::*;

    #[test]
    fn fields_with_commas_quotes_and_lines_are_quoted() {
        insta::assert_snapshot!(csv(&fixture::all()), @r#"
        name,n,ms,ok,at,took,labels
        GET /,9223372036854775807,2,true,2020-06-18T20:59:00.1234567Z,1.02:03:04,"{""b"":1,""a"":[2]}"
        "a ""b"", c|d
        e",,0.30000000000000004,false,,-00:00:01.5000000,not json
        "#);
    }

    #[test]
    fn text_is_no_formula_and_numbers_stay_numbers() {
        let columns = [("=name", ColumnType::Text), ("n", ColumnType::Real), ("took", ColumnType::Span)];
        let row = |name: &str| vec![fixture::text(name), Cell::Real(-1.5), Cell::Span(-1_500_000_000)];
        let table = fixture::table(&columns, vec![row("=HYPERLINK(1)"), row("-1.5"), row("a\x1b[31m\u{202e}")]);
        insta::assert_snapshot!(csv(&table), @r"
        '=name,n,took
        '=HYPERLINK(1),-1.5,-00:00:01.5000000
        -1.5,-1.5,-00:00:01.5000000
        a�[31m�,-1.5,-00:00:01.5000000
        ");
    }
}
