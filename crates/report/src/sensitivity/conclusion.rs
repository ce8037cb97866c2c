//! Whether the conclusions hold: a sentence, and a line for each run in which they do not.

use narrows_model::sensitivity::{Examined, Scaled, Sensitivity};
use narrows_model::units;

use super::judged::{Difference, bottlenecks_of, changed};
use crate::figures::plural;

/// Whether the conclusions hold.
pub(super) struct Conclusion {
    pub(super) sentence: String,
    /// Where they do not hold, and what is not known, a clause each.
    pub(super) places: Vec<String>,
}

/// One run with a scaled parameter.
struct Run<'a> {
    /// `drone-delivery with store_delay_ms 20 (−20 %)`.
    name: String,
    examined: &'a Examined,
    scaled: &'a Scaled,
}

pub(super) fn conclusion(sensitivity: &Sensitivity) -> Conclusion {
    let runs = runs(sensitivity);
    let judged = |run: &Run<'_>| changed(run.examined, run.scaled.point.as_ref()?);
    let (known, missing): (Vec<&Run<'_>>, Vec<&Run<'_>>) = runs.iter().partition(|run| judged(run).is_some());
    let broken = known.iter().filter_map(|run| Some((run.name.clone(), judged(run).filter(|one| !one.is_nothing())?)));
    let broken: Vec<(String, Difference)> = broken.collect();
    let mut places: Vec<String> = broken.iter().map(|(name, changed)| format!("{name}: {}", words(changed))).collect();
    places.extend(missing.iter().map(|run| format!("{}: not measured", run.name)));
    places.extend(sensitivity.experiments.iter().flat_map(unstable));
    Conclusion { sentence: sentence(sensitivity, known.len(), broken.len()), places }
}

fn runs(sensitivity: &Sensitivity) -> Vec<Run<'_>> {
    let changes = super::changes(sensitivity);
    let mut runs = Vec::new();
    for examined in &sensitivity.experiments {
        for parameter in &examined.parameters {
            for (scaled, change) in [&parameter.lower, &parameter.higher].into_iter().zip(&changes) {
                let name = format!("{} with {} {} ({change})", examined.experiment, parameter.name, scaled.value);
                runs.push(Run { name, examined, scaled });
            }
        }
    }
    runs
}

fn sentence(sensitivity: &Sensitivity, known: usize, broken: usize) -> String {
    if known == 0 {
        return "No run with a scaled parameter is complete, so nothing is known of the conclusions.".to_owned();
    }
    let hold = format!(
        "The conclusions hold in {} of {} with a parameter {} lower or higher",
        known - broken,
        plural(known, "run", "runs"),
        units::percent(sensitivity.change)
    );
    match broken {
        0 => format!("{hold}: every variant keeps its bottleneck, and the variants keep their order."),
        _ => format!("{hold}; where they do not is listed here."),
    }
}

fn words(changed: &Difference) -> String {
    let bottleneck = |[variant, before, now]: &[String; 3]| format!("{variant} has {now} in place of {before}");
    changed.bottlenecks.iter().map(bottleneck).chain(changed.order.iter().cloned()).collect::<Vec<_>>().join("; ")
}

/// Variants whose bottleneck differs between runs without a change.
fn unstable(examined: &Examined) -> Vec<String> {
    let variants = examined.as_is.first().into_iter().flat_map(|point| &point.variants);
    let line = |variant: &str| {
        let all = bottlenecks_of(examined, variant);
        let name = &examined.experiment;
        (all.len() > 1)
            .then(|| format!("{name} as it is: the bottleneck of {variant} is {}, so both count", all.join(" or ")))
    };
    variants.filter_map(|of| line(&of.variant)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{point, sensitivity};
    use super::*;

    #[test]
    fn runs_in_which_a_conclusion_does_not_hold_are_named() {
        let conclusion = conclusion(&sensitivity());
        assert_eq!(
            conclusion.sentence,
            "The conclusions hold in 0 of 2 runs with a parameter 20 % lower or higher; where they do not is listed here."
        );
        assert_eq!(
            conclusion.places,
            [
                "shop with store_delay_ms 20 (−20 %): throughput: second no longer above first",
                "shop with store_delay_ms 30 (+20 %): second has cpu-saturation at shop in place of throttling at store",
            ]
        );
    }

    #[test]
    fn conclusions_that_hold_everywhere_need_no_list() {
        let mut sensitivity = sensitivity();
        let parameter = &mut sensitivity.experiments[0].parameters[0];
        parameter.lower.point = Some(point([20.0, 26.0, 46.0]));
        parameter.higher.point = None;
        let one = conclusion(&sensitivity);
        let expected =
            "The conclusions hold in 1 of 1 run with a parameter 20 % lower or higher: every variant keeps its";
        assert!(one.sentence.starts_with(expected), "{}", one.sentence);
        assert_eq!(one.places, ["shop with store_delay_ms 30 (+20 %): not measured"]);
        sensitivity.experiments[0].as_is[1].variants[0].bottleneck = "n-plus-one at shop".to_owned();
        assert_eq!(
            conclusion(&sensitivity).places[1],
            "shop as it is: the bottleneck of first is throttling at store or n-plus-one at shop, so both count"
        );
        sensitivity.experiments[0].parameters.clear();
        assert!(conclusion(&sensitivity).sentence.starts_with("No run with a scaled parameter is complete"));
    }
}
