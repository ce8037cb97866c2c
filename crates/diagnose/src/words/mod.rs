//! Findings in words: the one layer that turns their data into sentences.
//!
//! The sentences about the evidence of a kind are in its detector's `words.rs`. Here they are put together with those
//! about caveats and relations, for reports, run files and JSON. Texts depend on the data of the trial's findings alone,
//! so findings that are read back have the same texts.

mod caveat;
mod comparison;
mod kind;
mod limit;
mod prediction;
pub(crate) mod relation;
mod time;
mod trial;

use narrows_model::finding::{Figure, Finding, Wording};

pub use caveat::caveat;
pub use comparison::comparison_caveat;
pub use kind::cause_name;
pub use limit::{limit_advice, limit_headline, limit_name, limit_reason, limit_text};
pub use prediction::{assumption, consumers, doubt, gain, misfit};
pub use time::time_category;
pub use trial::{fault, trial_caveat};

use crate::detectors::words_of;

/// Texts of a finding, see [`Wording`]. They are made anew by each call.
pub trait InWords {
    /// The bottleneck or fault, in one line without a full stop.
    fn title(&self) -> String;
    /// Reference of the cost share, such as `of the latency of GET /orders`.
    fn cost_of(&self) -> String;
    /// Reasons that lie in the finding itself.
    fn reasons(&self) -> Vec<String>;
    /// Figures behind the finding.
    fn numbers(&self) -> Vec<Figure>;
    /// Source text that shows it: the query, the endpoint.
    fn evidence_text(&self) -> Option<String>;
    /// Other possible causes, and why they are ruled out.
    fn ruled_out(&self) -> Vec<String>;
    /// Observation that would disprove the finding.
    fn falsified_by(&self) -> String;
    /// Recommended change.
    fn advice(&self) -> String;
    /// All texts of the finding and its effects. `trial` holds the findings of its trial, whose titles relations cite.
    fn wording(&self, trial: &[Finding]) -> Wording;
}

impl InWords for Finding {
    fn title(&self) -> String {
        words_of(&self.evidence).title(self)
    }

    fn cost_of(&self) -> String {
        words_of(&self.evidence).cost_of(self)
    }

    fn reasons(&self) -> Vec<String> {
        words_of(&self.evidence).reasons(self)
    }

    fn numbers(&self) -> Vec<Figure> {
        words_of(&self.evidence).figures(self)
    }

    fn evidence_text(&self) -> Option<String> {
        words_of(&self.evidence).source_text()
    }

    fn ruled_out(&self) -> Vec<String> {
        words_of(&self.evidence).ruled_out(self)
    }

    fn falsified_by(&self) -> String {
        words_of(&self.evidence).falsified_by(self)
    }

    fn advice(&self) -> String {
        words_of(&self.evidence).advice(self)
    }

    fn wording(&self, trial: &[Finding]) -> Wording {
        let of_relations = self.relations.iter().filter_map(|relation| relation::reason(relation, trial));
        Wording {
            title: self.title(),
            cost_of: self.cost_of(),
            reasons: self.reasons().into_iter().chain(of_relations).collect(),
            numbers: self.numbers(),
            evidence_text: self.evidence_text(),
            ruled_out: self.ruled_out(),
            falsified_by: self.falsified_by(),
            advice: self.advice(),
            caveats: self.caveats.iter().map(caveat).collect(),
            effects: self.effects.iter().map(|effect| effect.wording(trial)).collect(),
        }
    }
}
