//! Traps of instrumentation: ways in which traces say something else than what happened, each reported as a caveat of
//! the trial, with its numbers, a trace to look at and what to change.
//!
//! Traces are taken as they are by everything else that reads them; what is wrong with them is said here once, instead
//! of in each finding. A trap says nothing where the evidence could as well be in order: an engineer who was sent after
//! a sound set-up once does not read the next caveat. One file for each trap; its section in
//! `docs/reference/instrumentation.md` has its id. Its text is in its
//! file too. To add one: the file, a `mod` line, a line in [`ALL`], a variant of `TrialCaveat`, the section.
//!
//! Nothing is corrected here: doubled queries and spans of pools are set aside where requests are cut out of traces.

pub(crate) mod clock_skew;
pub(crate) mod doubled_spans;
pub(crate) mod impossible_durations;
pub(crate) mod missing_database_spans;
pub(crate) mod missing_parents;
pub(crate) mod nested_doubles;
pub(crate) mod pool_spans;
pub(crate) mod repeated_ids;
pub(crate) mod sampled_traces;
mod scene;
pub(crate) mod start_up_spans;
pub(crate) mod traces_without_request;

use narrows_model::caveat::{Skew, TrialCaveat};
use narrows_model::finding::Finding;

use crate::read::Reading;
use scene::Scene;

/// Looks for one trap.
trait Trap: Sync {
    /// The id: lower case with dashes, as its file is named.
    fn id(&self) -> &'static str;
    /// Caveats, one for each place; empty if nothing is wrong or nothing can be said.
    fn caveats(&self, scene: &Scene<'_>) -> Vec<TrialCaveat>;
}

/// Every trap, in the order of their caveats: first traps that make traces incomplete, then those that make them lie.
const ALL: &[&dyn Trap] = &[
    &sampled_traces::SampledTraces,
    &missing_parents::MissingParents,
    &repeated_ids::RepeatedIds,
    &traces_without_request::TracesWithoutRequest,
    &start_up_spans::StartUpSpans,
    &missing_database_spans::MissingDatabaseSpans,
    &clock_skew::ClockSkew,
    &impossible_durations::ImpossibleDurations,
    &doubled_spans::DoubledSpans,
    &nested_doubles::NestedDoubles,
    &pool_spans::PoolSpans,
];

/// Maximum number of caveats of one trap in one trial; a last one counts the others.
const CAVEATS_MAX: usize = 5;

/// Caveats of all traps for a trial.
pub(crate) fn caveats(reading: &Reading<'_>, findings: &[Finding]) -> Vec<TrialCaveat> {
    let scene = Scene::new(reading, findings);
    ALL.iter().flat_map(|trap| bounded(trap.caveats(&scene), trap.id())).collect()
}

/// The clocks that differ in a trial, those furthest apart first.
pub(crate) fn skews(reading: &Reading<'_>) -> Vec<Skew> {
    clock_skew::skews(&Scene::new(reading, &[]))
}

fn bounded(mut caveats: Vec<TrialCaveat>, id: &str) -> Vec<TrialCaveat> {
    let places = caveats.len().saturating_sub(CAVEATS_MAX);
    caveats.truncate(CAVEATS_MAX);
    caveats.extend((places > 0).then(|| TrialCaveat::MorePlaces { check: id.to_owned(), places }));
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
            assert!(
                THIS.contains(&format!("\npub(crate) mod {};\n", id.replace('-', "_"))),
                "{id} is not named as its file"
            );
        }
        let sections: BTreeSet<&str> = PAGE.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        assert_eq!(sections, ids);
    }

    #[test]
    fn a_trap_that_is_everywhere_is_reported_a_few_times() {
        let caveats = bounded(vec![TrialCaveat::NoSpans; 8], "clock-skew");
        assert_eq!(caveats.len(), CAVEATS_MAX + 1);
        assert_eq!(caveats[CAVEATS_MAX], TrialCaveat::MorePlaces { check: "clock-skew".into(), places: 3 });
        assert_eq!(bounded(vec![TrialCaveat::NoSpans], "clock-skew"), [TrialCaveat::NoSpans]);
        assert!(bounded(Vec::new(), "clock-skew").is_empty());
    }
}
