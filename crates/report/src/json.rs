//! The outcome for other programs.
//!
//! Field names are the model's own and carry their unit last. `format` names this layout; it changes when a field is
//! renamed, removed or gets another meaning, not when one is added. Traces, series and figures of single seconds stay
//! in the run file.
//!
//! `findings` of a trial come in the order in which they are reported. `role` is what each is to the trial:
//! `invalidates`, `narrow-place` (at most one), `in-the-way`, `costs-more` or `limits-reading`; `effects` holds the
//! findings that go away with it, one level deep; `period` the part of the trial that it was seen in, null for all of
//! it; `gain` what the change that it suggests would gain. `ladder` of a trial is the order of changes that gain most
//! together, null if one gains all. `predictions` of the run are changes that later variants made,
//! predicted and measured. `costs` holds what each variant costs by the price list in `notes.prices`: each of its resources for
//! an hour, and a million requests. The edges and nodes of `call_graph` have figures for each of `limit.levels`, in their order;
//! `wait_ns` is the time per call that the caller waits.

use narrows_diagnose::words::{InWords, comparison_caveat, limit_advice, limit_headline, limit_reason, trial_caveat};
use narrows_model::baseline::Check;
use narrows_model::call_graph::CallGraph;
use narrows_model::caveat::ComparisonCaveat;
use narrows_model::comparison::Outcome;
use narrows_model::diff::Diff;
use narrows_model::evidence::{LoadTotals, PartitionThroughput, RequestOfLoad, TrialEvidence};
use narrows_model::finding::Finding;
use narrows_model::histogram::Histogram;
use narrows_model::limit::Limit;
use narrows_model::load::ReportedLoad;
use narrows_model::operation::{CallEvidence, OperationEvidence};
use narrows_model::prediction::{LevelAccuracy, Predictions, ScoreCard, Scored, Tried};
use narrows_model::proof::Proof;
use serde_json::{Value, json};

use crate::ScoredRun;

/// The layout of what [`outcome`] returns.
const FORMAT: &str = "narrows-outcome/1";

/// The layout of what [`diff`] returns.
const DIFF_FORMAT: &str = "narrows-diff/1";

/// The layout of what [`predictions`] returns.
const PREDICTIONS_FORMAT: &str = "narrows-predictions/1";

/// The layout of what [`proof`] returns.
const PROOF_FORMAT: &str = "narrows-proof/1";

/// The layout of what [`check`] returns.
const CHECK_FORMAT: &str = "narrows-check/1";

/// Two variants compared trial by trial, as one JSON object.
pub fn proof(proof: &Proof) -> Value {
    let mut value = json!(proof);
    value["caveats"] = comparison_caveats(&proof.caveats);
    value["format"] = json!(PROOF_FORMAT);
    value
}

/// A run beside a baseline, as one JSON object.
pub fn check(check: &Check) -> Value {
    let mut value = json!(check);
    value["caveats"] = comparison_caveats(&check.caveats);
    value["format"] = json!(CHECK_FORMAT);
    value["is_worse"] = json!(check.is_worse());
    value
}

/// Data and text of each caveat.
fn comparison_caveats(caveats: &[ComparisonCaveat]) -> Value {
    caveats.iter().map(|caveat| with_text(json!(caveat), &comparison_caveat(caveat))).collect()
}

fn with_text(mut value: Value, text: &str) -> Value {
    value["text"] = json!(text);
    value
}

/// Predicted gains of changes, trial by trial, as one JSON object.
pub fn predictions(trials: &[Predictions]) -> Value {
    json!({ "format": PREDICTIONS_FORMAT, "trials": trials })
}

/// The layout of what [`tried`] returns.
const TRY_FORMAT: &str = "narrows-try/1";

/// A change that was made in an experiment, predicted and measured, as one JSON object.
pub fn tried(tried: &Tried) -> Value {
    let mut value = json!(tried);
    value["format"] = json!(TRY_FORMAT);
    value["is_held"] = json!(tried.prediction.is_held());
    value
}

/// The layout of what [`score`] returns.
const SCORE_FORMAT: &str = "narrows-score/1";

/// Predictions of several runs beside what was measured, and how accurate they are.
pub fn score(runs: &[ScoredRun]) -> Value {
    let all: Vec<Scored> = runs.iter().map(|one| one.scored.clone()).collect();
    let one = |one: &ScoredRun| {
        let mut value = json!(one.scored);
        value["run"] = json!(one.run);
        value["has_spans"] = json!(one.has_spans);
        value["judges"] = json!(one.judges);
        value
    };
    json!({
        "format": SCORE_FORMAT,
        "accuracy": ScoreCard::of(&all),
        "levels": LevelAccuracy::of(&all),
        "predictions": runs.iter().map(one).collect::<Vec<_>>(),
    })
}

/// Differences between two variants as one JSON object.
pub fn diff(diff: &Diff) -> Value {
    let mut value = json!(diff);
    value["caveats"] = comparison_caveats(&diff.caveats);
    let of_one = |finding: &Finding| finding.to_json(&finding.wording(std::slice::from_ref(finding)));
    for (at, finding) in diff.findings.iter().enumerate() {
        value["findings"][at]["before"] = json!(finding.before.as_ref().map(of_one));
        value["findings"][at]["after"] = json!(finding.after.as_ref().map(of_one));
    }
    value["format"] = json!(DIFF_FORMAT);
    value
}

/// The outcome as one JSON object. Numbers that are not finite become `null`.
pub fn outcome(outcome: &Outcome) -> Value {
    let trials: Vec<Value> =
        outcome.evidence.trials.iter().enumerate().map(|(index, evidence)| trial(outcome, index, evidence)).collect();
    json!({
        "format": FORMAT,
        "run": outcome.evidence.run,
        "sentence": outcome.sentence,
        "comparison": outcome.comparison,
        "notes": outcome.notes,
        "beside": outcome.beside,
        "costs": outcome.costs,
        "predictions": outcome.scored,
        "trials": trials,
    })
}

fn trial(outcome: &Outcome, index: usize, evidence: &TrialEvidence) -> Value {
    let mut trial = json!(evidence.trial);
    let caveats = evidence.trial.caveats.iter();
    trial["caveats"] = caveats.map(|caveat| with_text(json!(caveat), &trial_caveat(caveat))).collect();
    json!({
        "trial": trial,
        "label": evidence.trial.label(),
        "windows": evidence.windows,
        "services": evidence.services,
        "load": evidence.reported_load().map_or_else(|| load(&evidence.counted_load()), reported),
        "requests": evidence.requests_of_load().iter().map(request).collect::<Vec<_>>(),
        "operations": evidence.operations.iter().map(operation).collect::<Vec<_>>(),
        "throughput": evidence.throughput().iter().map(partition).collect::<Vec<_>>(),
        "spans_total": evidence.spans_total,
        "spans_refused": evidence.spans_refused,
        "limit": outcome.limits.get(index).map(worded_limit),
        "call_graph": outcome.call_graphs.get(index).map(call_graph),
        "ladder": outcome.ladders.get(index).filter(|ladder| !ladder.is_empty()),
        "breakdowns": outcome.breakdowns.get(index).map_or(&[][..], Vec::as_slice),
        "findings": outcome.findings.get(index).map(|findings| worded(findings)).unwrap_or_default(),
        "objectives": outcome.objectives.get(index).map_or(&[][..], Vec::as_slice),
    })
}

/// A call graph, and the wait of each call.
fn call_graph(graph: &CallGraph) -> Value {
    let mut value = json!(graph);
    for (edge, of_edge) in graph.edges.iter().zip(value["edges"].as_array_mut().into_iter().flatten()) {
        for (level, of_level) in edge.levels.iter().zip(of_edge["levels"].as_array_mut().into_iter().flatten()) {
            of_level["all"]["wait_ns"] = json!(level.all.wait_ns());
        }
    }
    value
}

fn worded_limit(limit: &Limit) -> Value {
    let mut value = json!(limit);
    value["headline"] = json!(limit_headline(&limit.verdict));
    value["reason"] = json!(limit_reason(&limit.verdict));
    value["advice"] = json!(limit_advice(&limit.verdict));
    value
}

fn worded(findings: &[Finding]) -> Vec<Value> {
    findings.iter().map(|finding| finding.to_json(&finding.wording(findings))).collect()
}

fn operation(operation: &OperationEvidence) -> Value {
    let call = |call: &CallEvidence| {
        json!({
            "target": call.target,
            "name": call.name,
            "is_database": call.is_database,
            "succeeded": call.succeeded,
            "throttled": call.throttled,
            "failed": call.failed,
            "charge": call.charge,
        })
    };
    json!({
        "service": operation.service,
        "name": operation.name,
        "completed": operation.completed,
        "failed": operation.failed,
        "duration": quantiles(&operation.duration),
        "calls": operation.calls.iter().map(call).collect::<Vec<_>>(),
    })
}

fn partition(partition: &PartitionThroughput) -> Value {
    json!({
        "service": partition.service,
        "partition": partition.partition,
        "provisioned": partition.provisioned,
        "consumed_max": partition.consumed.iter().map(|point| point.value).fold(None, |most: Option<f64>, value| {
            Some(most.map_or(value, |most| most.max(value)))
        }),
    })
}

/// A request of the load, with `scenario` and `request` before the fields of [`load`].
pub(crate) fn request(request: &RequestOfLoad) -> Value {
    let mut value = load(&request.totals);
    value["scenario"] = json!(request.scenario);
    value["request"] = json!(request.request);
    value
}

pub(crate) fn load(totals: &LoadTotals) -> Value {
    json!({
        "seconds": totals.seconds,
        "due": totals.due,
        "late": totals.late,
        "dropped": totals.dropped,
        "offered": totals.offered(),
        "achieved": totals.achieved(),
        "sent": totals.sent,
        "repeated": totals.repeated,
        "cut": totals.cut,
        "succeeded": totals.succeeded,
        "errors": totals.errors,
        "error_rate": totals.error_rate(),
        "rate": totals.known_rate(),
        "bytes": totals.bytes,
        "latency": quantiles(&totals.latency),
        "service": quantiles(&totals.service),
        "lateness": quantiles(&totals.lateness),
    })
}

/// The mean and quantiles of a distribution; all are `null` if nothing was recorded.
pub(crate) fn quantiles(histogram: &Histogram) -> Value {
    let mut value = json!(histogram.quantiles());
    if let Some(fields) = value.as_object_mut().filter(|_| histogram.count() == 0) {
        fields.iter_mut().filter(|(name, _)| *name != "count").for_each(|(_, figure)| *figure = Value::Null);
    }
    value
}

/// The fields of [`load`] that the program that sent the load reports.
fn reported(load: &ReportedLoad) -> Value {
    let latency = &load.latency;
    json!({
        "seconds": load.seconds,
        "due": load.due,
        "dropped": load.dropped,
        "succeeded": load.succeeded(),
        "failed": load.failed,
        "error_rate": load.error_rate(),
        "rate": load.known_rate(),
        "latency": {
            "count": load.succeeded(),
            "mean_ns": latency.mean_ns,
            "min_ns": latency.min_ns,
            "p50_ns": latency.p50_ns,
            "p90_ns": latency.p90_ns,
            "p95_ns": latency.p95_ns,
            "p99_ns": latency.p99_ns,
            "max_ns": latency.max_ns,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, drones};

    fn keys(value: &Value) -> Vec<&str> {
        value.as_object().into_iter().flatten().map(|(key, _)| key.as_str()).collect()
    }

    #[test]
    fn the_layout_is_stable() {
        let value = outcome(&fixture::outcome());
        assert_eq!(value["format"], FORMAT);
        assert_eq!(
            keys(&value),
            ["beside", "comparison", "costs", "format", "notes", "predictions", "run", "sentence", "trials"]
        );
        let trial = [
            "breakdowns",
            "call_graph",
            "findings",
            "label",
            "ladder",
            "limit",
            "load",
            "objectives",
            "operations",
            "requests",
            "services",
            "spans_refused",
            "spans_total",
            "throughput",
            "trial",
            "windows",
        ];
        assert_eq!(keys(&value["trials"][0]), trial);
        assert_eq!(value["trials"][0]["findings"][0]["detector"], "n-plus-one");
        assert_eq!(value["trials"][0]["findings"][0]["role"], "narrow-place");
        assert_eq!(value["trials"][0]["findings"][0]["effects"][0]["detector"], "database-saturation");
        assert_eq!(value["trials"][0]["findings"][0]["period"], Value::Null);
        assert_eq!(value["trials"][0]["findings"][1]["period"]["label"], "“8 users”");
        assert_eq!(value["trials"][0]["objectives"][0]["kept"], "no");
        let difference = &value["comparison"]["variants"][1]["against_first"];
        assert_eq!((&difference["rate"]["meaning"], &difference["basis"]), (&"higher".into(), &"measured-once".into()));
        assert_eq!(value["trials"][0]["load"]["seconds"], 60.0);
    }

    #[test]
    fn requests_and_arrivals_are_there() {
        let value = outcome(&fixture::open_outcome());
        let trial = &value["trials"][0];
        assert_eq!((&trial["load"]["due"], &trial["load"]["offered"]), (&json!(66_000), &json!(1100.0)));
        assert_eq!(trial["requests"][1]["request"], "pay");
        assert_eq!(trial["requests"][1]["due"], 0);
        assert!(trial["requests"][1]["errors"]["check"].as_u64() > Some(0));
        assert_eq!(trial["windows"][1]["rate"], 1100.0);
    }

    #[test]
    fn operations_partitions_and_published_figures_are_there() {
        let value = outcome(&drones::outcome());
        let trial = &value["trials"][0];
        assert_eq!(keys(&trial["operations"][1]), ["calls", "completed", "duration", "failed", "name", "service"]);
        assert_eq!(trial["operations"][1]["calls"][0]["target"], "azure.cosmosdb");
        assert_eq!(keys(&trial["throughput"][8]), ["consumed_max", "partition", "provisioned", "service"]);
        assert_eq!(trial["throughput"][8]["provisioned"], 100.0);
        assert!(trial["throughput"][8]["consumed_max"].as_f64() > Some(60.0));
        assert_eq!(value["comparison"]["variants"][0]["operations"][1]["calls"][0]["succeeded_per_operation"], 9.0);
        assert_eq!(value["comparison"]["variants"][3]["services"][4]["service"], "drone-scheduler");
        assert_eq!(value["beside"][5]["measure"], "charge_per_operation");
        assert_eq!(value["beside"][5]["cells"][2]["published"], Value::Null);
        assert_eq!(value["notes"]["parameters"][0]["name"], "throughput");
    }

    #[test]
    fn numbers_that_are_not_finite_become_null() {
        let mut broken = fixture::outcome();
        broken.findings[0][0].cost_share = f64::NAN;
        assert!(outcome(&broken)["trials"][0]["findings"][0]["cost_share"].is_null());
    }
}
