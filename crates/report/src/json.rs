//! The outcome for other programs.
//!
//! Field names are the model's own and carry their unit last. `format` names this layout; it changes when a field is
//! renamed, removed or gets another meaning, not when one is added. Traces and series stay in the run file.

use narrows_model::comparison::Outcome;
use narrows_model::evidence::{LoadTotals, TrialEvidence};
use serde_json::{Value, json};

/// The layout of what [`outcome`] returns.
const FORMAT: &str = "narrows-outcome/1";

/// The outcome as one JSON object. Numbers that are not finite become `null`.
pub fn outcome(outcome: &Outcome) -> Value {
    let trials: Vec<Value> =
        outcome.evidence.trials.iter().enumerate().map(|(index, evidence)| trial(outcome, index, evidence)).collect();
    json!({
        "format": FORMAT,
        "run": outcome.evidence.run,
        "sentence": outcome.sentence,
        "comparison": outcome.comparison,
        "trials": trials,
    })
}

fn trial(outcome: &Outcome, index: usize, evidence: &TrialEvidence) -> Value {
    json!({
        "trial": evidence.trial,
        "label": evidence.trial.label(),
        "windows": evidence.windows,
        "services": evidence.services,
        "load": load(&evidence.counted_load()),
        "spans_total": evidence.spans_total,
        "spans_refused": evidence.spans_refused,
        "findings": outcome.findings.get(index).map_or(&[][..], Vec::as_slice),
        "objectives": outcome.objectives.get(index).map_or(&[][..], Vec::as_slice),
    })
}

fn load(totals: &LoadTotals) -> Value {
    json!({
        "seconds": totals.seconds,
        "sent": totals.sent,
        "succeeded": totals.succeeded,
        "errors": totals.errors,
        "error_rate": totals.error_rate(),
        "rate": totals.rate(),
        "bytes": totals.bytes,
        "latency": totals.latency(),
        "service": totals.service.quantiles(),
        "lateness": totals.lateness.quantiles(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn keys(value: &Value) -> Vec<&str> {
        value.as_object().into_iter().flatten().map(|(key, _)| key.as_str()).collect()
    }

    #[test]
    fn the_layout_is_stable() {
        let value = outcome(&fixture::outcome());
        assert_eq!(value["format"], FORMAT);
        assert_eq!(keys(&value), ["comparison", "format", "run", "sentence", "trials"]);
        let trial =
            ["findings", "label", "load", "objectives", "services", "spans_refused", "spans_total", "trial", "windows"];
        assert_eq!(keys(&value["trials"][0]), trial);
        assert_eq!(value["trials"][0]["findings"][0]["detector"], "n-plus-one");
        assert_eq!(value["trials"][0]["objectives"][0]["kept"], "no");
        assert_eq!(value["comparison"]["variants"][1]["against_first"]["rate"]["meaning"], "higher");
        assert_eq!(value["trials"][0]["load"]["seconds"], 60.0);
    }

    #[test]
    fn numbers_that_are_not_finite_become_null() {
        let mut broken = fixture::outcome();
        broken.findings[0][0].cost_share = f64::NAN;
        assert!(outcome(&broken)["trials"][0]["findings"][0]["cost_share"].is_null());
    }
}
