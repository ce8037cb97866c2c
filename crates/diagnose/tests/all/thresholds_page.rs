//! The page of thresholds says what the table says.

use narrows_diagnose::thresholds::{Row, Thresholds};

const PAGE: &str = include_str!("../../../../docs/reference/thresholds.md");

fn line(row: &Row) -> String {
    let says: Vec<&str> = row.says.iter().map(|line| line.trim()).collect();
    format!("| `{}` | {} | {} |\n", row.name, row.value, says.join(" ").replace('|', "\\|"))
}

#[test]
fn the_page_holds_the_table() {
    let rows: String = Thresholds::default().rows().iter().map(line).collect();
    let table = format!("| name | value | read by, and what it means |\n|---|---:|---|\n{rows}");
    assert!(PAGE.contains(&table), "docs/reference/thresholds.md must hold this table:\n{table}");
}

#[test]
fn every_threshold_says_who_reads_it() {
    for row in Thresholds::default().rows() {
        let first = row.says.first().map_or("", |line| line.trim());
        let is_said = first.starts_with('`')
            || ["How far apart", "The ranking:", "The limit of a trial:", "Comparison:"]
                .iter()
                .any(|start| first.starts_with(start));
        assert!(is_said, "{}: {first}", row.name);
    }
}
