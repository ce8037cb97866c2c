//! Texts of one kind of finding. Each detector's `words.rs` writes all the sentences about its evidence; no other code
//! does, and `crate::words` puts them together.

use narrows_model::call_graph::Bounds;
use narrows_model::finding::evidence::cpu::{Proof, ProofSign};
use narrows_model::finding::evidence::load::LoadLevel;
use narrows_model::finding::{Figure, Finding};
use narrows_model::units;

/// The words of one kind of finding.
///
/// They depend only on the finding's data, so a finding that is read back has the same texts. Texts are whole sentences
/// with a full stop, except the title and the cost's reference.
pub(crate) trait Words {
    /// The bottleneck or fault, in one line without a full stop.
    fn title(&self, finding: &Finding) -> String;
    /// The finding as a clause of the closing sentence, after “in VARIANT”.
    fn clause(&self, finding: &Finding) -> String {
        self.title(finding)
    }
    /// Reference of the cost share, such as `of the latency of GET /orders`.
    fn cost_of(&self, finding: &Finding) -> String;
    /// Reasons for the finding.
    fn reasons(&self, finding: &Finding) -> Vec<String>;
    /// Figures behind the finding, by name.
    fn figures(&self, finding: &Finding) -> Vec<Figure>;
    /// Source text of the evidence: the query, the endpoint.
    fn source_text(&self) -> Option<String> {
        None
    }
    /// Other possible causes, and why they are ruled out.
    fn ruled_out(&self, _finding: &Finding) -> Vec<String> {
        Vec::new()
    }
    /// Observation that would disprove the finding.
    fn falsified_by(&self, finding: &Finding) -> String;
    /// Recommended change.
    fn advice(&self, finding: &Finding) -> String;
}

/// Text of a value that is known up to bounds: `4.2`, `3.9 to 4.5`.
pub(crate) fn bounds(of: Bounds) -> String {
    match (units::number(of.low), units::number(of.high)) {
        (low, high) if low == high => low,
        (low, high) => format!("{low} to {high}"),
    }
}

/// Text of a load level: `1 user`, `8 users`, `50.0/s`, `the observed load` where its users are not known.
pub(crate) fn level(load: &LoadLevel) -> String {
    match load.arrivals {
        None if load.users == 0 => "the observed load".to_owned(),
        None if load.users == 1 => "1 user".to_owned(),
        None => format!("{} users", load.users),
        Some(arrivals) if load.users == 0 => units::rate(arrivals),
        Some(arrivals) => format!("{} users and {}", load.users, units::rate(arrivals)),
    }
}

fn proven(proof: &Proof) -> String {
    let (lighter, heavier) = (&proof.lighter, &proof.heavier);
    let is_open = heavier.level.arrivals.is_some();
    let times = units::number(heavier.request_ns / lighter.request_ns);
    match proof.sign {
        ProofSign::FlatThroughput if is_open => format!(
            "Throughput no longer follows the rate offered: from {} to {} it went from {} to {}.",
            level(&lighter.level),
            level(&heavier.level),
            units::rate(lighter.rate),
            units::rate(heavier.rate)
        ),
        ProofSign::FlatThroughput => format!(
            "Throughput no longer follows the users: from {} to {} users it went from {} to {}.",
            lighter.level.users,
            heavier.level.users,
            units::rate(lighter.rate),
            units::rate(heavier.rate)
        ),
        ProofSign::Queueing if is_open => format!(
            "Requests queue: at {} {} of them are under way at any time ({} × {}), each {times} times as long as at {}.",
            level(&heavier.level),
            units::number(heavier.in_flight()),
            units::rate(heavier.rate),
            units::duration(heavier.request_ns),
            level(&lighter.level)
        ),
        ProofSign::Queueing => format!(
            "Requests queue: all {} users wait at any time ({} × {}), each {times} times as long as under {} users.",
            heavier.level.users,
            units::rate(heavier.rate),
            units::duration(heavier.request_ns),
            lighter.level.users
        ),
    }
}

/// Sentence with the proof that a load exceeds the capacity, or stating that there is no proof.
pub(crate) fn proof(found: Option<&Proof>) -> String {
    found.map_or_else(
        || "It is not shown whether more CPU would carry more load: no lighter steady load was measured.".into(),
        proven,
    )
}

/// Operation of the finding, else `the operation`.
pub(crate) fn operation(finding: &Finding) -> &str {
    finding.operation.as_deref().unwrap_or("a request")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_without_known_users_is_not_said_to_have_none() {
        let text = |users, arrivals| level(&LoadLevel { users, arrivals });
        let texts = [text(0, None), text(1, None), text(8, None), text(0, Some(50.0))];
        assert_eq!(texts, ["the observed load", "1 user", "8 users", "50.0/s"]);
    }
}
