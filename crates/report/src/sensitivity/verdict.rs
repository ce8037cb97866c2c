//! The verdict on the conclusions: a sentence that says how many are kept, and its limits.

use narrows_model::sensitivity::{Examined, Sensitivity};
use narrows_model::units;

use super::claims::{Claim, are_bottlenecks, claims, scaled_runs};
use super::noise::is_noise;
use crate::figures::plural;

/// Verdict on the conclusions.
pub(super) struct Verdict {
    pub(super) sentence: String,
    /// Limits of the sentence, a clause each.
    pub(super) limits: Vec<String>,
}

pub(super) fn verdict(sensitivity: &Sensitivity) -> Verdict {
    let changes = super::changes(sensitivity);
    let all: Vec<Claim> = sensitivity.experiments.iter().flat_map(|examined| claims(examined, &changes)).collect();
    let mut limits: Vec<String> = Vec::new();
    limits.extend(by_bottlenecks(&sensitivity.experiments));
    limits.extend(noise(&sensitivity.experiments));
    for examined in &sensitivity.experiments {
        let missing = scaled_runs(examined, &changes).into_iter().filter(|run| run.point.is_none());
        limits.extend(missing.map(|run| format!("{} with {}: not measured", examined.experiment, run.name)));
    }
    Verdict { sentence: sentence(&all, sensitivity.change), limits }
}

fn sentence(all: &[Claim], change: f64) -> String {
    let stable: Vec<&Claim> = all.iter().filter(|claim| claim.is_stable()).collect();
    let unchanged = format!(
        "{} of {} come back in every unchanged run",
        stable.len(),
        plural(all.len(), "conclusion", "conclusions")
    );
    if !stable.iter().any(|claim| claim.scaled.all > 0) {
        return format!("{unchanged}; no run with a scaled parameter judges them.");
    }
    let kept = stable.iter().filter(|claim| claim.scaled.is_whole()).count();
    let change = units::percent(change);
    format!("{unchanged}, and {kept} of these also in every run with a parameter {change} lower or higher.")
}

/// Experiments without a published conclusion.
fn by_bottlenecks(experiments: &[Examined]) -> Option<String> {
    let names = experiments.iter().filter(|examined| are_bottlenecks(examined));
    let names: Vec<&str> = names.map(|examined| examined.experiment.as_str()).collect();
    (!names.is_empty()).then(|| {
        format!(
            "{}: no published conclusion is recorded, so the bottleneck of each variant in the first unchanged run counts as one",
            names.join(", ")
        )
    })
}

/// Parameters whose effect could be noise.
fn noise(experiments: &[Examined]) -> Option<String> {
    let names = experiments.iter().flat_map(|examined| {
        let noise = examined.parameters.iter().filter(|parameter| is_noise(examined, parameter));
        noise.map(|parameter| format!("{} of {}", parameter.name, examined.experiment))
    });
    let names: Vec<String> = names.collect();
    (!names.is_empty()).then(|| {
        format!("{}: noise, unchanged runs differ as much as its lower and its higher value", names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{point, sensitivity};
    use super::*;

    #[test]
    fn conclusions_that_are_kept_are_counted() {
        let one = verdict(&sensitivity());
        assert_eq!(
            one.sentence,
            "2 of 3 conclusions come back in every unchanged run, and 1 of these also in every run with a parameter 20 % \
             lower or higher."
        );
        assert!(one.limits.is_empty(), "{:?}", one.limits);
    }

    #[test]
    fn what_limits_the_sentence_is_listed() {
        let mut sensitivity = sensitivity();
        let examined = &mut sensitivity.experiments[0];
        examined.as_is.iter_mut().for_each(|point| point.conclusions.clear());
        let mut missing = examined.parameters[0].clone();
        missing.higher.point = None;
        let parameter = &mut examined.parameters[0];
        parameter.lower.point = Some(point([20.0, 26.0, 46.0]));
        parameter.higher.point = Some(point([20.0, 26.0, 46.0]));
        parameter.name = "store_jitter_ms".to_owned();
        examined.parameters.push(missing);
        let one = verdict(&sensitivity);
        let expected = "3 of 3 conclusions come back in every unchanged run, and 3 of";
        assert!(one.sentence.starts_with(expected), "{}", one.sentence);
        assert_eq!(
            one.limits,
            [
                "shop: no published conclusion is recorded, so the bottleneck of each variant in the first unchanged run counts \
                 as one",
                "store_jitter_ms of shop: noise, unchanged runs differ as much as its lower and its higher value",
                "shop with store_delay_ms 30 (+20 %): not measured",
            ]
        );
        sensitivity.experiments[0].parameters.clear();
        let expected =
            "3 of 3 conclusions come back in every unchanged run; no run with a scaled parameter judges them.";
        assert_eq!(verdict(&sensitivity).sentence, expected);
    }
}
