//! Meaning of predictions in one sentence.

use narrows_model::prediction::{Change, ChangeKind, Prediction};
use narrows_model::units;

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
        _ => described(&best.change),
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

/// A change as the subject of a sentence.
fn described(change: &Change) -> String {
    let target = &change.target;
    let amount = |usual: f64| units::number(change.amount.unwrap_or(usual));
    match change.kind {
        ChangeKind::AddCpu => format!("{} times the CPU for {target}", amount(2.0)),
        ChangeKind::AddReplicas => match change.amount {
            Some(replicas) => format!("{} replicas of {target}", units::number(replicas)),
            None => format!("twice the replicas of {target}"),
        },
        ChangeKind::AddSidecar if target.is_empty() => "a sidecar beside each service".to_owned(),
        ChangeKind::AddSidecar => format!("a sidecar beside {target}"),
        ChangeKind::BatchCommits => format!("commits of {target} that requests share"),
        ChangeKind::Cache => {
            format!("a cache before {target}, which {} of the calls hit", units::percent(change.amount.unwrap_or(0.0)))
        }
        ChangeKind::DropCall => format!("dropping the calls to {target}"),
        ChangeKind::JoinQueries => format!("one call in place of the repeated ones of {target}"),
        ChangeKind::MoreLoad => "another load".to_owned(),
        ChangeKind::Parallelize => format!("making the calls of {target} at the same time"),
        ChangeKind::RaiseRate if target.is_empty() => "a store that refuses no call".to_owned(),
        ChangeKind::RaiseRate => format!("more request units for {target}"),
        ChangeKind::RemoveSidecar if target.is_empty() => "removing the sidecars".to_owned(),
        ChangeKind::RemoveSidecar => format!("removing the sidecars of {target}"),
        ChangeKind::ResizePool => match change.amount {
            Some(connections) => format!("a pool of {} connections in {target}", units::number(connections)),
            None => format!("twice the connections in the pool of {target}"),
        },
        ChangeKind::RouteQuery => format!("querying only the partition that is needed in {target}"),
        ChangeKind::SpeedUp => format!("making {target} {} times as fast", amount(2.0)),
        ChangeKind::SpreadDatabase => format!("{target} on {} nodes", amount(3.0)),
    }
}
