//! The page about the experiment file has the tables of keys that the grammar has.

use std::path::Path;

use narrows_lab::language;

const PAGE: &str = include_str!("../../../docs/reference/experiment.md");

#[test]
fn the_page_holds_the_tables_of_keys() {
    let expected = language().with_tables(PAGE).unwrap();
    if expected != PAGE {
        let written = Path::new(env!("CARGO_TARGET_TMPDIR")).join("experiment.md");
        std::fs::write(&written, expected).unwrap();
        panic!("the tables of keys have changed: cp {} docs/reference/experiment.md", written.display());
    }
}

#[test]
fn a_page_has_a_table_for_every_map_of_the_file() {
    let error = |page: &str| language().with_tables(page).unwrap_err();
    assert!(error("no tables").contains("no table for `experiment`"));
    assert_eq!(error("<!-- keys: load.datum -->\n<!-- end -->\n"), "`load.datum` is not a map of the experiment file");
    assert!(error("<!-- keys: load.data -->\n").starts_with("no \"<!-- end -->"));
}

#[test]
fn a_map_without_a_table_of_its_own_stands_in_that_of_its_parent() {
    let page = language().with_tables("<!-- keys: experiment -->\n<!-- end -->\n").unwrap();
    for key in ["`system.services.NAME.stop.signal`", "`load.scenarios.NAME.vus`", "`faults[].at`"] {
        assert!(page.contains(key), "{key}\n{page}");
    }
}
