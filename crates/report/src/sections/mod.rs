//! Sections of the report of a run: one file each, in one list.
//!
//! A page is read from the top and a terminal from the bottom, where the eye rests when it stops scrolling: so a page has
//! details at the end, and the terminal has conclusions there.

mod agents;
mod background;
mod calls;
mod caveats;
mod costs;
mod faults;
mod findings;
mod head;
mod limits;
mod load;
mod objectives;
mod operations;
mod predicted;
pub(crate) mod prediction_cells;
pub(crate) mod published;
mod reasons;
mod services;
mod steps;
mod threads;
mod time;
mod variants;
mod warnings;

use narrows_model::comparison::Outcome;

use crate::html::{Palette, Request, panels, requests};
use crate::section::{Medium, Section};

pub(crate) use calls::under as calls_under;
pub(crate) use head::{Head, head};
pub(crate) use predicted::{changes, names};

/// Part of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Chapter {
    /// Figures of the variants.
    Figures,
    /// Comparison with publications and predictions, findings, caveats.
    Conclusions,
    /// More figures, and everything needed to believe the run or to repeat it.
    Details,
}

/// Builds a section; without blocks if the outcome has nothing for it.
type Build = fn(&Context<'_>) -> Section;

const SECTIONS: [(Chapter, Build); 23] = [
    (Chapter::Figures, warnings::section),
    (Chapter::Figures, steps::section),
    (Chapter::Figures, panels::overview),
    (Chapter::Figures, variants::section),
    (Chapter::Figures, costs::section),
    (Chapter::Figures, load::section),
    (Chapter::Figures, agents::section),
    (Chapter::Figures, limits::section),
    (Chapter::Figures, reasons::section),
    (Chapter::Figures, objectives::section),
    (Chapter::Figures, faults::section),
    (Chapter::Conclusions, published::section),
    (Chapter::Conclusions, predicted::section),
    (Chapter::Conclusions, findings::section),
    (Chapter::Conclusions, caveats::section),
    (Chapter::Details, operations::section),
    (Chapter::Details, services::section),
    (Chapter::Details, time::section),
    (Chapter::Details, calls::section),
    (Chapter::Details, threads::section),
    (Chapter::Details, panels::section),
    (Chapter::Details, requests::section),
    (Chapter::Details, background::section),
];

/// Inputs of sections.
pub(crate) struct Context<'a> {
    pub(crate) outcome: &'a Outcome,
    pub(crate) medium: Medium,
    /// Colours of the services in a page.
    pub(crate) palette: Palette,
    /// The requests that a page draws.
    pub(crate) requests: Vec<Request<'a>>,
}

impl<'a> Context<'a> {
    pub(crate) fn for_terminal(outcome: &'a Outcome) -> Self {
        Self { outcome, medium: Medium::Terminal, palette: Palette::default(), requests: Vec::new() }
    }

    pub(crate) fn for_page(outcome: &'a Outcome) -> Self {
        let palette = Palette::new(&outcome.evidence);
        Self { outcome, medium: Medium::Page, palette, requests: requests::choose(outcome) }
    }
}

/// All sections that have something to show, in the order of the medium.
pub(crate) fn all(context: &Context<'_>) -> Vec<Section> {
    let order = match context.medium {
        Medium::Page => [Chapter::Figures, Chapter::Conclusions, Chapter::Details],
        Medium::Terminal => [Chapter::Figures, Chapter::Details, Chapter::Conclusions],
    };
    let of_chapter = |chapter| SECTIONS.iter().filter(move |(of, _)| *of == chapter).map(|(_, build)| build(context));
    order.into_iter().flat_map(of_chapter).filter(|section| !section.blocks.is_empty()).collect()
}

/// Sections of a run in brief.
pub(crate) fn brief(context: &Context<'_>) -> Vec<Section> {
    let builds: [Build; 4] = [warnings::section, steps::section, costs::section, published::figures];
    builds.iter().map(|build| build(context)).filter(|section| !section.blocks.is_empty()).collect()
}

/// Objectives of each variant; without blocks if the experiment has none.
pub(crate) fn objectives(context: &Context<'_>) -> Section {
    objectives::section(context)
}

#[cfg(test)]
fn in_terminal(build: Build, outcome: &Outcome, width: usize) -> String {
    crate::text::plain(&build(&Context::for_terminal(outcome)), width)
}

/// A section of a page; empty if it has no blocks.
#[cfg(test)]
fn in_page(build: Build, outcome: &Outcome) -> String {
    let section = build(&Context::for_page(outcome));
    if section.blocks.is_empty() { String::new() } else { crate::html::plain(&section) }
}
