//! The reference pages of detectors and of traps of instrumentation, as they stand in `docs/reference`, for reading where
//! the documentation is not at hand.

use crate::detectors::PAGES;

/// Traps of instrumentation, one section each under a heading of its id.
const TRAPS: &str = include_str!("../../../docs/reference/instrumentation.md");

/// The page of a detector or the section of a trap, in Markdown; `None` if there is none of this id.
pub fn page(id: &str) -> Option<&'static str> {
    let page = PAGES.iter().find(|(known, _)| *known == id).map(|(_, page)| *page);
    page.or_else(|| trap(id))
}

/// The ids that have a page, detectors first.
pub fn ids() -> Vec<&'static str> {
    let traps = TRAPS.lines().filter_map(|line| line.strip_prefix("## "));
    PAGES.iter().map(|(id, _)| *id).chain(traps).collect()
}

fn trap(id: &str) -> Option<&'static str> {
    let start = TRAPS.match_indices("## ").map(|(at, _)| at).find(|at| {
        let is_line = *at == 0 || TRAPS[..*at].ends_with('\n');
        is_line && TRAPS[at + 3..].lines().next() == Some(id)
    })?;
    let rest = &TRAPS[start..];
    let end = rest[3..].find("\n## ").map_or(rest.len(), |at| at + 4);
    Some(rest[..end].trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detectors::ALL;

    #[test]
    fn every_detector_has_its_page_and_no_page_is_without_one() {
        let detectors: Vec<&str> = ALL.iter().map(|detector| detector.id()).collect();
        let pages: Vec<&str> = PAGES.iter().map(|(id, _)| *id).collect();
        assert_eq!(detectors, pages);
        for (id, page) in PAGES {
            assert!(page.starts_with(&format!("# {id}\n")), "the page of {id}");
        }
    }

    #[test]
    fn pages_of_detectors_follow_one_pattern() {
        const HEADINGS: [&str; 4] = ["## Example", "## How it is detected", "## False alarms", "## What to do"];
        for (id, page) in PAGES {
            let headings: Vec<&str> = page.lines().filter(|line| line.starts_with("## ")).collect();
            assert_eq!(headings, HEADINGS, "the page of {id}");
        }
    }

    #[test]
    fn a_section_of_a_trap_is_cut_out() {
        let page = page("clock-skew").expect("a section");
        assert!(page.starts_with("## clock-skew\n") && page.contains("chrony") && !page.contains("\n## "), "{page}");
        assert!(ids().contains(&"clock-skew") && ids().contains(&"throttling"));
        assert_eq!(super::page("no-such-thing"), None);
    }
}
