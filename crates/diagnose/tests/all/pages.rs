//! The lists of detectors and thresholds in the documentation, generated from the code and from the detectors' pages.

use std::fmt::Write as _;

use narrows_diagnose::Detector;
use narrows_diagnose::detectors::ALL;
use narrows_diagnose::pages::page;
use narrows_diagnose::thresholds::Thresholds;
use narrows_model::finding::Finding;
use narrows_testkit::generated;

/// The page with an overview of all findings.
const OVERVIEW: &str = "docs/reference/findings.md";
const THRESHOLDS: &str = "docs/reference/thresholds.md";
/// The file with the navigation of the pages.
const SITE: &str = "mkdocs.yml";
/// Longest meaning in the overview, characters.
const MEANING_MAX: usize = 200;

#[test]
fn the_overview_has_a_row_for_each_detector() {
    let (of_experiment, of_system): (Vec<_>, Vec<_>) = ALL.iter().partition(|detector| is_about_experiment(**detector));
    let overview = generated::read(OVERVIEW);
    let overview = generated::with_part(&overview, "findings: system", &rows(&of_system));
    let overview = generated::with_part(&overview, "findings: experiment", &rows(&of_experiment));
    generated::check(OVERVIEW, &overview);
}

#[test]
fn the_navigation_has_a_page_for_each_detector() {
    let is_finding = |line: &&str| line.contains(": reference/findings/");
    let site = generated::read(SITE);
    let head: Vec<&str> = site.lines().take_while(|line| !is_finding(line)).collect();
    let tail: Vec<&str> = site.lines().skip(head.len()).skip_while(is_finding).collect();
    let entries =
        ALL.iter().map(|detector| detector.id()).map(|id| format!("      - {id}: reference/findings/{id}.md"));
    let lines: Vec<String> =
        head.into_iter().map(str::to_owned).chain(entries).chain(tail.into_iter().map(str::to_owned)).collect();
    generated::check(SITE, &(lines.join("\n") + "\n"));
}

#[test]
fn the_page_of_thresholds_holds_the_table() {
    let mut table = "| name | value | read by | meaning |\n|---|---:|---|---|\n".to_owned();
    for row in Thresholds::default().rows() {
        let meaning = row.meaning().replace('|', "\\|");
        let _ = writeln!(table, "| `{}` | {} | {} | {meaning} |", row.name, row.value, row.read_by);
    }
    generated::check(THRESHOLDS, &generated::with_part(&generated::read(THRESHOLDS), "thresholds", &table));
}

#[test]
fn a_page_opens_with_a_short_sentence() {
    for detector in ALL {
        let meaning = meaning(detector.id());
        assert!(meaning.len() <= MEANING_MAX, "{}: {} characters: {meaning}", detector.id(), meaning.len());
    }
}

fn is_about_experiment(detector: &dyn Detector) -> bool {
    detector.role(&Finding::new(detector.kind(), detector.version())).is_about_experiment()
}

fn rows(detectors: &[&&dyn Detector]) -> String {
    let mut table = "| finding | meaning |\n|---|---|\n".to_owned();
    for id in detectors.iter().map(|detector| detector.id()) {
        let _ = writeln!(table, "| [`{id}`](findings/{id}.md) | {} |", meaning(id));
    }
    table
}

/// First sentence of a detector's page.
fn meaning(id: &str) -> &'static str {
    let page = page(id).unwrap_or_else(|| panic!("no page of {id}"));
    let text = page.lines().skip(1).find(|line| !line.is_empty()).unwrap_or_default();
    text.find(". ").map_or(text, |end| &text[..=end])
}
