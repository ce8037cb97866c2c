//! Traps of instrumentation: ways in which traces say something else than what happened, each reported as a caveat of
//! the trial, with its numbers, a trace to look at and what to change.
//!
//! Traces are taken as they are by everything else that reads them; what is wrong with them is said here once, instead
//! of in each finding. A trap says nothing where the evidence could as well be in order: an engineer who was sent after
//! a sound set-up once does not read the next caveat. One file for each trap; its section in
//! `docs/reference/instrumentation.md` has its id. To add one: the file, a `mod` line, a line in [`ALL`], the section.
//!
//! Nothing is corrected here: doubled queries and spans of pools are set aside where requests are cut out of traces.

mod clock_skew;
mod doubled_spans;
mod impossible_durations;
mod missing_database_spans;
mod missing_parents;
mod nested_doubles;
mod pool_spans;
mod sampled_traces;
mod scene;
mod start_up_spans;
mod traces_without_request;

use narrows_model::caveat::Skew;
use narrows_model::finding::Finding;

use crate::read::Reading;
use scene::Scene;

/// Looks for one trap.
trait Trap: Sync {
    /// The id: lower case with dashes, as its file is named.
    fn id(&self) -> &'static str;
    /// Caveats in whole sentences, one for each place; empty if nothing is wrong or nothing can be said.
    fn caveats(&self, scene: &Scene<'_>) -> Vec<String>;
}

/// Every trap, in the order of their caveats: first traps that make traces incomplete, then those that make them lie.
const ALL: &[&dyn Trap] = &[
    &sampled_traces::SampledTraces,
    &missing_parents::MissingParents,
    &traces_without_request::TracesWithoutRequest,
    &start_up_spans::StartUpSpans,
    &missing_database_spans::MissingDatabaseSpans,
    &clock_skew::ClockSkew,
    &impossible_durations::ImpossibleDurations,
    &doubled_spans::DoubledSpans,
    &nested_doubles::NestedDoubles,
    &pool_spans::PoolSpans,
];

/// The most caveats of one trap in one trial; further ones are counted in the last.
const CAVEATS_MAX: usize = 5;

/// Caveats of all traps for a trial.
pub(crate) fn caveats(reading: &Reading<'_>, findings: &[Finding]) -> Vec<String> {
    let scene = Scene::new(reading, findings);
    ALL.iter().flat_map(|trap| bounded(trap.caveats(&scene), trap.id())).collect()
}

/// The clocks that differ in a trial, those furthest apart first.
pub(crate) fn skews(reading: &Reading<'_>) -> Vec<Skew> {
    clock_skew::skews(&Scene::new(reading, &[]))
}

fn bounded(mut caveats: Vec<String>, id: &str) -> Vec<String> {
    let more = caveats.len().saturating_sub(CAVEATS_MAX);
    caveats.truncate(CAVEATS_MAX);
    if let Some(last) = caveats.last_mut().filter(|_| more > 0) {
        *last += &format!(" {more} more places show the same ({id}).");
    }
    caveats
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_trap_has_its_file_and_its_section() {
        const PAGE: &str = include_str!("../../../../docs/reference/instrumentation.md");
        const THIS: &str = include_str!("mod.rs");
        let ids: BTreeSet<&str> = ALL.iter().map(|trap| trap.id()).collect();
        assert_eq!(ids.len(), ALL.len());
        for id in &ids {
            assert!(PAGE.contains(&format!("\n## {id}\n")), "{id} has no section");
            assert!(THIS.contains(&format!("\nmod {};\n", id.replace('-', "_"))), "{id} is not named as its file");
        }
        let sections: BTreeSet<&str> = PAGE.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        assert_eq!(sections, ids);
    }

    #[test]
    fn a_trap_that_is_everywhere_is_reported_a_few_times() {
        let caveats = bounded((0..8).map(|n| format!("Place {n}.")).collect(), "clock-skew");
        assert_eq!(caveats.len(), CAVEATS_MAX);
        assert_eq!(caveats[4], "Place 4. 3 more places show the same (clock-skew).");
        assert_eq!(bounded(vec!["One.".into()], "clock-skew"), ["One."]);
        assert!(bounded(Vec::new(), "clock-skew").is_empty());
    }
}
