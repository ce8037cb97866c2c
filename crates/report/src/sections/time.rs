//! Spending of the time of each operation: a bar for each variant, as long as its mean latency, cut into parts.
//!
//! A service has its colour of the page's charts. A dependency without one there, such as a database that is not the trial's own,
//! takes a colour that is free; waits are hatched, so that they differ from work without colour. A service's own time has
//! its colour throughout, with a pattern for each kind of wait.

use narrows_diagnose::words::time_category;
use narrows_model::breakdown::{Breakdown, OwnTime, TimeCategory, TimePart};
use narrows_model::units;

use super::Context;
use crate::html::Palette;
use crate::section::{Bar, BarPart, Bars, Block, Medium, Phrase, Section};
use crate::spent::{OperationTime, spent};

/// Operations at most.
const OPERATIONS_MAX: usize = 12;
/// Operations in the terminal at most.
const TERMINAL_MAX: usize = 3;
/// Variants of one operation at most.
const VARIANTS_MAX: usize = 24;

/// The bars; without blocks if nothing was traced.
pub(super) fn section(context: &Context<'_>) -> Section {
    let all = spent(context.outcome);
    if all.is_empty() {
        return Section::default();
    }
    let most = if context.medium == Medium::Page { OPERATIONS_MAX } else { TERMINAL_MAX };
    let colours = Colours::new(&all, &context.palette);
    let mut blocks: Vec<Block> = all.iter().take(most).map(|spent| Block::Bars(colours.bars(spent))).collect();
    let rest = match all.len().saturating_sub(most) {
        0 => String::new(),
        n => format!(" {n} that took less time are in the JSON."),
    };
    let note = format!(
        "Critical paths of traced requests, added up: only what a request waited for counts. Bars of an operation share one \
         scale.{rest}"
    );
    blocks.push(Block::Only(Medium::Page, vec![Block::Note(Phrase::from(note))]));
    Section::new("time", "Where the time goes", blocks)
}

/// The colours of a page's dependencies.
struct Colours<'a> {
    palette: &'a Palette,
    /// Dependencies without a colour on the charts, in the order in which they take free ones.
    others: Vec<&'a str>,
}

impl<'a> Colours<'a> {
    fn new(all: &'a [OperationTime<'_>], palette: &'a Palette) -> Self {
        let mut others: Vec<&str> = Vec::new();
        for category in all.iter().flat_map(OperationTime::categories) {
            let TimeCategory::Dependency(name) = category else { continue };
            if !palette.has(name) && !others.contains(&name.as_str()) {
                others.push(name);
            }
        }
        Self { palette, others }
    }

    fn bars(&self, spent: &OperationTime<'_>) -> Bars {
        let categories = spent.categories();
        let legend = categories.iter().map(|category| (self.class(category, spent.service), time_category(category)));
        let variants = spent.variants.iter().take(VARIANTS_MAX);
        Bars {
            title: Phrase::from(spent.service).plain(" ").code(spent.operation).plain(", what its time is spent on"),
            rows: variants.map(|(variant, one)| self.bar(variant, one, &categories, spent.slowest_ns())).collect(),
            legend: legend.collect(),
        }
    }

    fn bar(&self, variant: &str, breakdown: &Breakdown, order: &[&TimeCategory], slowest_ns: f64) -> Bar {
        let mut parts: Vec<&TimePart> = breakdown.parts.iter().collect();
        parts.sort_by_key(|part| order.iter().position(|category| **category == part.category));
        let part = |part: &&TimePart| {
            let share = units::percent(part.share);
            BarPart {
                name: time_category(&part.category),
                colour: self.class(&part.category, &breakdown.service),
                length: if slowest_ns > 0.0 { part.mean_ns / slowest_ns } else { 0.0 },
                share: part.share,
                detail: format!("{}, {share}", units::duration(part.mean_ns)),
                label: share,
            }
        };
        Bar {
            name: variant.to_owned(),
            total: units::duration(breakdown.mean_ns),
            parts: parts.iter().map(part).collect(),
        }
    }

    fn class(&self, category: &TimeCategory, service: &str) -> String {
        if let TimeCategory::Own(time) = category {
            return [self.palette.class(service), pattern(time)].join(" ").trim_end().to_owned();
        }
        let class = match category {
            TimeCategory::Dependency(name) => match self.others.iter().position(|other| other == name) {
                Some(position) => self.palette.free_class(position),
                None => self.palette.class(name),
            },
            TimeCategory::Pool => "pool",
            TimeCategory::BackOff(_) => "backoff",
            TimeCategory::Unknown | TimeCategory::Own(_) => "unknown",
        };
        class.to_owned()
    }
}

/// The pattern of a service's colour; empty where it works or nothing is known.
fn pattern(time: &OwnTime) -> &'static str {
    match time {
        OwnTime::OnCpu | OwnTime::NotSampled => "",
        OwnTime::WaitingForCpu => "own-runnable",
        OwnTime::Disk => "own-disk",
        OwnTime::Sleep => "own-sleep",
        OwnTime::Network(_) => "own-network",
        OwnTime::Connection(_) => "pool",
        OwnTime::Lock => "own-lock",
        OwnTime::Unseen => "own-unseen",
    }
}

#[cfg(test)]
mod tests {
    use super::super::{in_page, in_terminal};
    use super::*;
    use crate::fixture;

    #[test]
    fn a_terminal_names_the_largest_parts_of_each_operation() {
        let mut outcome = crate::spent::tests::outcome();
        outcome.breakdowns.truncate(2);
        insta::assert_snapshot!(in_terminal(section, &outcome, 90), @r"
        gateway GET /api/invoices, what its time is spent on
        time        baseline 652 ms: docstore 49 %, waiting to retry docstore 41 %,
                    drone-scheduler 5.4 %, on CPU 1.7 %
        time        more-throughput 457 ms: docstore 77 %, drone-scheduler 18 %, on CPU 2.4 %,
                    waiting for a connection 1.8 %

        drone-scheduler GET /api/dronedeliveries/utilization, what its time is spent on
        time        baseline 625 ms: docstore 51 %, waiting to retry docstore 43 %, waiting for a
                    lock 5.6 %
        time        more-throughput 430 ms: docstore 81 %, waiting for a lock 19 %
        ");
        assert_eq!(in_terminal(section, &fixture::outcome(), 90), "");
    }

    #[test]
    fn each_variant_has_a_bar_of_its_length() {
        let page = in_page(section, &crate::spent::tests::outcome());
        assert_eq!((page.matches("class=\"stack\"").count(), page.matches("<h3>").count()), (8, 2));
        let store = "<i class=\"c3\" style=\"width:49.08%\" title=\"docstore: 320 ms, 49 %\"><b>49 %</b></i>";
        assert!(page.contains(store), "{page}");
        assert!(page.contains("<i class=\"backoff\""), "{page}");
        assert!(page.contains("<li class=\"c5\"><span>redis</span></li>"), "a free colour: {page}");
        assert!(page.contains("<li class=\"c0\"><span>on CPU</span></li>"), "the service's own colour: {page}");
        let own = "<li class=\"c4 own-lock\"><span>waiting for a lock</span></li>";
        assert!(page.contains(own), "with a pattern: {page}");
    }

    #[test]
    fn names_stay_text() {
        let mut outcome = crate::spent::tests::outcome();
        let breakdown = &mut outcome.breakdowns[0][0];
        (breakdown.service, breakdown.operation) = ("<b>".to_owned(), "\"'><img>".to_owned());
        breakdown.parts[0].category = TimeCategory::Dependency("</section><script>".to_owned());
        outcome.evidence.trials[0].trial.variant = "<script>".to_owned();
        let page = in_page(section, &outcome);
        assert!(!page.contains("<script") && !page.contains("<img") && !page.contains("\"'>"));
    }
}
