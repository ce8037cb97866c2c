//! The result of `narrows load` for other programs: the summary's JSON, and beside it what the command adds.

use narrows_load::LoadOutcome;
use narrows_model::load::LoadPlan;
use narrows_report::export::load_json;
use serde_json::{Value, json};

use super::FinishedLoad;
use super::arguments::Arguments;
use super::plan::in_words;
use super::summary::summary;

/// One JSON object and a line feed. `requests` holds what came after the warm-up, all else the whole load.
pub(super) fn json(arguments: &Arguments, plan: &LoadPlan, sent: &FinishedLoad) -> String {
    let mut value = load_json(&summary(arguments, sent));
    value["model"] = in_words(plan).into();
    value["warmup_seconds"] = arguments.open.warmup.as_secs_f64().into();
    value["client_addresses"] = sent.outcome.client_addresses.into();
    value["repeated"] = sent.outcome.totals.repeated.into();
    value["cut"] = sent.outcome.totals.cut.into();
    value["stopped"] = json!(sent.stopped);
    value["objectives"] = json!(sent.objectives);
    value["generator"] = generator(&sent.outcome);
    format!("{value:#}\n")
}

/// The generator's measurements of itself, by which `validity` judges it: how late it sent, and its own processor time.
fn generator(outcome: &LoadOutcome) -> Value {
    let threads = outcome.threads.iter().map(|thread| {
        json!({
            "cpu_seconds": thread.cpu.as_secs_f64(),
            "wall_seconds": thread.wall.as_secs_f64(),
            "busy": thread.share(),
        })
    });
    let cpu_seconds: f64 = outcome.threads.iter().map(|thread| thread.cpu.as_secs_f64()).sum();
    json!({
        "lateness": outcome.totals.lateness.quantiles(),
        "cpu_seconds": cpu_seconds,
        "busiest_thread": outcome.threads.iter().map(|thread| thread.share()).fold(0.0, f64::max),
        "threads": threads.collect::<Vec<_>>(),
        "ticks_missed": outcome.ticks_missed,
    })
}
