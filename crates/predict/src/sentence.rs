//! Meaning of predictions in one sentence.

use narrows_model::prediction::{ChangeKind, Estimate, Figures, Prediction};
use narrows_model::units;

use crate::changes::method;

/// A change of mean latency or throughput that is worth a mention.
const NOTABLE: f64 = 0.03;

/// One sentence about a change that was made: its prediction beside what was measured, before and with it. `source` is the
/// run that it was predicted from, if that is not the one that is spoken of; `is_same` says that nothing else was measured
/// than before.
pub(crate) fn of_tried(prediction: &Prediction, before: &Figures, source: Option<&str>, is_same: bool) -> String {
    let Some(measured) = prediction.measured.as_ref().map(|measured| measured.figures) else { return String::new() };
    let is_in = |of: &Estimate, measured: f64| if of.holds(measured) { "inside" } else { "outside" };
    let (rate_in, mean_in) =
        (is_in(&prediction.after.rate, measured.rate), is_in(&prediction.after.mean_ns, measured.mean_ns));
    let verdict = match (rate_in == mean_in, rate_in) {
        (true, inside) => format!("both {inside} the 90 % interval"),
        (false, _) => format!("throughput {rate_in}, latency {mean_in} the 90 % interval"),
    };
    let source = source.map_or_else(String::new, |source| format!(" from {source}"));
    let what = method(prediction.change.kind).description(&prediction.change);
    let predicted = format!("{} and a mean latency of {}", rate(prediction), mean(prediction));
    let (old, new) = (units::rate(before.rate), units::rate(measured.rate));
    let (old_mean, new_mean) = (units::duration(before.mean_ns), units::duration(measured.mean_ns));
    let end = if is_same { "; these are the figures from before, so the change seems not to be made" } else { "" };
    format!(
        "Predicted{source} for {what}: {predicted}; measured: {new} after {old}, and {new_mean} after {old_mean}, \
         {verdict}{end}."
    )
}

/// One sentence about the order of changes that gain most together: what each brings, and what limits after the last.
pub(crate) fn of_steps(steps: &[Prediction]) -> String {
    let step = |one: &Prediction| {
        let newest = one.changes().last().unwrap_or(&one.change);
        let (rate, mean) = (units::rate(one.after.rate.value), units::duration(one.after.mean_ns.value));
        format!("{}: {rate} with a mean latency of {mean}", method(newest.kind).description(newest))
    };
    let steps_said: Vec<String> = steps.iter().map(step).collect();
    let limit = steps.last().and_then(|last| last.limit_after.as_ref());
    let limit = limit
        .map_or_else(String::new, |limit| format!("; {limit} would limit then, at {}", units::rate(limit.rate_max)));
    format!("First {}{limit}.", steps_said.join("; then "))
}

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

#[cfg(test)]
mod tests {
    use narrows_model::prediction::{Change, Forecast, Measured};

    use super::*;

    #[test]
    fn a_tried_change_is_summed_up_with_its_interval_and_what_was_measured_before() {
        let figures = |rate: f64| Figures { rate, mean_ns: 8e9 / rate, p95_ns: 9e9 / rate };
        let estimate = |value: f64| Estimate { value, low: 0.9 * value, high: 1.1 * value };
        let prediction = |measured: f64| Prediction {
            measured: Some(Measured { trial: "b".into(), figures: figures(measured), levels: Vec::new() }),
            ..Prediction::new(
                Change { kind: ChangeKind::AddReplicas, target: "web".into(), amount: Some(2.0) },
                figures(50.0),
                Forecast { rate: estimate(100.0), mean_ns: estimate(80e6), p95_ns: estimate(90e6) },
            )
        };
        let predicted =
            "for 2 replicas of web: 100/s (90.0/s to 110/s) and a mean latency of 80.0 ms (72.0 ms to 88.0 ms)";
        assert_eq!(
            of_tried(&prediction(105.0), &figures(50.0), None, false),
            format!(
                "Predicted {predicted}; measured: 105/s after 50.0/s, and 76.2 ms after 160 ms, both inside the 90 % interval."
            )
        );
        let kept = of_tried(&prediction(50.0), &figures(50.0), Some("first:main"), true);
        assert!(kept.starts_with(&format!("Predicted from first:main {predicted}; measured: 50.0/s after")), "{kept}");
        assert!(
            kept.ends_with(
                "both outside the 90 % interval; these are the figures from before, so the change seems not to be made."
            ),
            "{kept}"
        );
    }
}
