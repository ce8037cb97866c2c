//! A table as comma-separated values (RFC 4180), with a header.

use narrows_model::table::Table;

use super::cells::exact;

/// Every value in full; no value is an empty field. Lines end with a line feed.
pub fn csv(table: &Table) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let header = table.columns.iter().map(|column| column.name.clone()).collect();
    let rows = table.rows.iter().map(|row| row.iter().map(exact).collect::<Vec<_>>());
    for record in std::iter::once(header).chain(rows) {
        // Writing to memory cannot fail, and all records are as long as the header.
        let _ = writer.write_record(&record);
    }
    String::from_utf8(writer.into_inner().unwrap_or_default()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
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
}
