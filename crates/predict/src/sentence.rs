//! Meaning of predictions in one sentence.

use narrows_model::prediction::{ChangeKind, Prediction};
use narrows_model::units;

use crate::changes::method;

/// A change of mean latency or throughput that is worth a mention.
const NOTABLE: f64 = 0.03;

/// One sentence about the change that gains most.
pub(crate) fn sentence(trial: &str, predictions: &[Prediction]) -> String {
    let Some(best) = predictions.iter().find(|one| one.is_trusted()).or(predictions.first()) else {
        return format!("No finding of {trial} suggests a change whose gain can be predicted.");
    };
    if !best.is_trusted() {
        return format!("The model does not hold for {trial}, so none of these figures should be used.");
    }
    let first = if predictions.len() > 1 { ", the change that gains most," } else { "" };
    let what = match best.levels.last() {
        Some(level) if best.change.kind == ChangeKind::MoreLoad => format!("a load of {}", level.label),
        _ => method(best.change.kind).description(&best.change),
    };
    let gain = if best.change.kind == ChangeKind::MoreLoad {
        format!("would reach {} with a mean latency of {}", rate(best), mean(best))
    } else if best.mean_change().abs() < NOTABLE && best.rate_gain().abs() < NOTABLE {
        "would change neither throughput nor latency by much".to_owned()
    } else {
        format!(
            "would bring throughput from {} to {} and mean latency from {} to {}",
            units::rate(best.now.rate),
            rate(best),
            units::duration(best.now.mean_ns),
            mean(best)
        )
    };
    let next = best.limit_after.as_ref().map_or_else(String::new, |limit| {
        format!("; {limit} would be the next limit, at {}", units::rate(limit.rate_max))
    });
    format!("In {trial}, {what}{first} {gain}{next}.")
}

fn rate(prediction: &Prediction) -> String {
    let rate = prediction.after.rate;
    format!("{} ({} to {})", units::rate(rate.value), units::rate(rate.low), units::rate(rate.high))
}

fn mean(prediction: &Prediction) -> String {
    let mean = prediction.after.mean_ns;
    format!("{} ({} to {})", units::duration(mean.value), units::duration(mean.low), units::duration(mean.high))
}
