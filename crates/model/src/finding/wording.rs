//! A finding as people read it.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Finding;

/// Texts of a finding. Whole sentences with a full stop, except the title and the cost's reference.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Wording {
    /// The bottleneck or fault, in one line.
    pub title: String,
    /// Reference of the finding's cost share, such as `of the latency of GET /orders`.
    pub cost_of: String,
    /// Reasons for the finding and for its confidence.
    pub reasons: Vec<String>,
    /// Figures behind the finding.
    pub numbers: Vec<Figure>,
    /// Source text that shows it: the query, the endpoint.
    pub evidence_text: Option<String>,
    /// Other possible causes, and why they are ruled out.
    pub ruled_out: Vec<String>,
    /// Observation that would disprove the finding.
    pub falsified_by: String,
    /// Recommended change.
    pub advice: String,
    /// Caveats of the finding, in their order.
    pub caveats: Vec<String>,
    /// Texts of its effects, in their order.
    pub effects: Vec<Wording>,
}

/// A named number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Name.
    pub name: String,
    /// Its value.
    pub value: f64,
    /// Its unit, UCUM where there is one; empty for a count.
    pub unit: String,
}

impl Figure {
    /// A figure.
    pub fn new(name: impl Into<String>, value: f64, unit: impl Into<String>) -> Self {
        Self { name: name.into(), value, unit: unit.into() }
    }
}

impl Finding {
    /// Data and texts as one JSON object. Numbers that are not finite become `null`.
    pub fn to_json(&self, wording: &Wording) -> Value {
        let mut value = json!(self);
        let texts = json!(wording);
        let of_finding =
            ["title", "cost_of", "reasons", "numbers", "evidence_text", "ruled_out", "falsified_by", "advice"];
        of_finding.iter().for_each(|name| value[*name] = texts[*name].clone());
        for (at, text) in wording.caveats.iter().enumerate().take(self.caveats.len()) {
            value["caveats"][at]["text"] = json!(text);
        }
        let effects = self.effects.iter().zip(&wording.effects);
        value["effects"] = effects.map(|(effect, wording)| effect.to_json(wording)).collect();
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::{Caveat, FindingKind};

    #[test]
    fn json_holds_data_and_texts_of_a_finding_and_its_effects() {
        let effect = Finding { cost_share: f64::NAN, ..Finding::new(FindingKind::RetryStorm, 1) };
        let caveats = vec![Caveat::PartitionsNotMeasured { store: "store".into() }];
        let finding = Finding { caveats, effects: vec![effect], ..Finding::new(FindingKind::Throttling, 1) };
        let titled = |title: &str| Wording { title: title.into(), ..Wording::default() };
        let wording =
            Wording { caveats: vec!["Not measured.".into()], effects: vec![titled("retries")], ..titled("throttled") };
        let value = finding.to_json(&wording);
        assert_eq!((&value["detector"], &value["title"]), (&json!("throttling"), &json!("throttled")));
        let caveat = json!({ "kind": "partitions-not-measured", "store": "store", "text": "Not measured." });
        assert_eq!(value["caveats"], json!([caveat]));
        assert_eq!(value["effects"][0]["title"], "retries");
        assert_eq!(value["effects"][0]["cost_share"], Value::Null);
    }
}
