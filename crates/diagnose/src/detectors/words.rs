//! Findings in words. Each detector says in `words.rs` how its evidence reads; nothing else writes its sentences.

use narrows_model::finding::evidence::load::LoadLevel;
use narrows_model::finding::{Evidence, Figure, Finding};
use narrows_model::units;

use crate::rank::words::reason;

/// The words of one kind of finding.
///
/// They come from the finding's data alone, so that a finding that was read back reads the same. Sentences are whole and
/// end with a full stop, but for the title and what the cost is a share of.
pub(crate) trait Words {
    /// What is narrow or wrong, in one line without a full stop.
    fn title(&self, finding: &Finding) -> String;
    /// What the cost is a share of, such as `of the latency of GET /orders`.
    fn cost_of(&self, finding: &Finding) -> String;
    /// Why it is believed.
    fn reasons(&self, finding: &Finding) -> Vec<String>;
    /// The figures behind it, by name.
    fn figures(&self, finding: &Finding) -> Vec<Figure>;
    /// Source text that shows it: the query, the endpoint.
    fn source_text(&self) -> Option<String> {
        None
    }
    /// What else it could have been, and why it is not.
    fn ruled_out(&self, _finding: &Finding) -> Vec<String> {
        Vec::new()
    }
    /// What would show that the finding is wrong.
    fn falsified_by(&self, finding: &Finding) -> String;
    /// What to change.
    fn advice(&self, finding: &Finding) -> String;
}

/// Puts a finding into words.
pub(crate) fn put_into_words(finding: Finding) -> Finding {
    let Some(words) = words_of(&finding.evidence) else { return finding };
    Finding {
        title: words.title(&finding),
        cost_of: words.cost_of(&finding),
        reasons: words.reasons(&finding).into_iter().chain(finding.relations.iter().map(reason)).collect(),
        numbers: words.figures(&finding),
        evidence_text: words.source_text(),
        ruled_out: words.ruled_out(&finding),
        falsified_by: words.falsified_by(&finding),
        advice: words.advice(&finding),
        ..finding.clone()
    }
}

fn words_of(evidence: &Evidence) -> Option<&dyn Words> {
    match evidence {
        Evidence::ConflictRetry(evidence) => Some(evidence),
        Evidence::GeneratorLimited(evidence) => Some(evidence),
        Evidence::NotSteady(evidence) => Some(evidence),
        Evidence::OfferedLoadLimited(evidence) => Some(evidence),
        Evidence::Outage(evidence) => Some(evidence),
        Evidence::RetrogradeThroughput(evidence) => Some(evidence),
        Evidence::SidecarCost(evidence) => Some(evidence),
        Evidence::SlowQuery(evidence) => Some(evidence),
        Evidence::Throttling(evidence) => Some(evidence),
        Evidence::UnequalRates(evidence) => Some(evidence),
        _ => None,
    }
}

/// How much a load asks for: `8 users`, `50.0/s`.
pub(crate) fn level(load: &LoadLevel) -> String {
    match load.arrivals {
        None => format!("{} users", load.users),
        Some(arrivals) if load.users == 0 => units::rate(arrivals),
        Some(arrivals) => format!("{} users and {}", load.users, units::rate(arrivals)),
    }
}

/// The operation of a finding about one.
pub(crate) fn operation(finding: &Finding) -> &str {
    finding.operation.as_deref().unwrap_or("the operation")
}
