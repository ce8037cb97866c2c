//! Head of a report: the experiment, one short sentence, and facts of the run.

use narrows_model::caveat::TrialCaveat;
use narrows_model::comparison::{Outcome, VariantSummary};
use narrows_model::run::RunState;
use narrows_model::units;

use crate::bottleneck::bottlenecks;
use crate::figures::{instant, machine, plural};
use crate::section::Tone;

/// A change of throughput by less than this factor is not mentioned.
const RATE_NOTABLE: f64 = 1.02;
/// A step must lower the mean latency at least by this factor to be called a gain.
const GAIN_MIN: f64 = 1.05;

/// Head of a report.
pub(crate) struct Head {
    pub(crate) title: String,
    pub(crate) state: (&'static str, Tone),
    /// Limit of the last variant that is not there to measure a parameter of others, and gain of the best change; empty if
    /// nothing was measured.
    pub(crate) headline: String,
    pub(crate) facts: String,
    pub(crate) machine: String,
}

pub(crate) fn head(outcome: &Outcome) -> Head {
    let run = &outcome.evidence.run;
    let mut facts = vec![trials(outcome)];
    if run.time_scale != 1.0 {
        facts.push(format!("time scale {}", run.time_scale));
    }
    facts.push(instant(run.started_ns));
    facts.push(format!("run {}", run.id));
    Head {
        title: run.experiment.clone(),
        state: match run.state {
            RunState::Complete => ("complete", Tone::Good),
            RunState::Running => ("running", Tone::Doubtful),
            RunState::Interrupted => ("interrupted", Tone::Doubtful),
            RunState::Failed => ("failed", Tone::Bad),
        },
        headline: headline(outcome),
        facts: facts.join(" · "),
        machine: machine(&run.environment).replace(", ", " · "),
    }
}

fn trials(outcome: &Outcome) -> String {
    let trials = outcome.evidence.trials.len();
    // A comparison may end before its last planned pair.
    let made = outcome.evidence.trials.iter().map(|trial| trial.trial.repetition).max().unwrap_or(0);
    match outcome.evidence.run.repetitions {
        0 | 1 => plural(trials, "trial", "trials"),
        n if made < n => {
            format!("{} ({made} of at most {n} repetitions of each variant)", plural(trials, "trial", "trials"))
        }
        n => format!("{} ({n} repetitions of each variant)", plural(trials, "trial", "trials")),
    }
}

fn headline(outcome: &Outcome) -> String {
    let caveats = outcome.evidence.trials.iter().flat_map(|trial| &trial.trial.caveats);
    let measuring: Vec<&str> = caveats
        .filter_map(|caveat| match caveat {
            TrialCaveat::ParameterByUsedCpu { variant, .. } => Some(variant.as_str()),
            _ => None,
        })
        .collect();
    let last = bottlenecks(outcome).into_iter().rfind(|one| !measuring.contains(&one.variant));
    let last = last.filter(|last| !last.what.is_empty());
    let limit = last.map(|last| format!("{}: {}.", last.variant, first_sentence(&last.what)));
    limit.into_iter().chain(best_step(&outcome.comparison.variants)).collect::<Vec<_>>().join(" ")
}

/// The first sentence without its full stop; advice that follows has no place in a headline.
fn first_sentence(text: &str) -> &str {
    text.split_once(". ").map_or(text, |(first, _)| first).trim_end_matches('.')
}

/// The step from one variant to the next that lowers the mean latency by the largest factor, among those that lead below all
/// variants before.
fn best_step(variants: &[VariantSummary]) -> Option<String> {
    let factor = |at: usize| {
        let mean = variants[at].mean_ns?;
        let lowest = variants[..at].iter().filter_map(|variant| variant.mean_ns).fold(f64::INFINITY, f64::min);
        Some(variants[at - 1].mean_ns? / mean).filter(|factor| mean < lowest && *factor >= GAIN_MIN)
    };
    let steps = (1..variants.len()).filter_map(|at| Some((at, factor(at)?)));
    let (at, _) = steps.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let (before, after) = (&variants[at - 1], &variants[at]);
    let mean = format!("mean latency {} → {}", units::duration(before.mean_ns?), units::duration(after.mean_ns?));
    let rate = match (before.rate, after.rate) {
        (Some(old), Some(new)) if new / old >= RATE_NOTABLE => {
            format!("throughput {} → {}, ", units::rate(old), units::rate(new))
        }
        _ => String::new(),
    };
    let lead = if variants.len() > 2 { "Best step, " } else { "" };
    Some(format!("{lead}{} → {}: {rate}{mean}.", before.variant, after.variant))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, drones};

    #[test]
    fn the_headline_names_the_last_limit_and_the_best_step() {
        insta::assert_snapshot!(headline(&drones::outcome()), @"partition-key: drone-scheduler uses up its CPU limit: 92 % of 1 core. Best step, parallel → partition-key: throughput 74.0/s → 99.0/s, mean latency 218 ms → 40.0 ms.");
        insta::assert_snapshot!(headline(&fixture::outcome()), @"as-is → fixed: throughput 245/s → 1,020/s, mean latency 32.1 ms → 7.89 ms.");
        let mut measured = drones::outcome();
        measured.evidence.trials[0].trial.caveats.push(TrialCaveat::ParameterByUsedCpu {
            parameter: "cap".into(),
            value: "0.5".into(),
            times: 1.0,
            service: "drone-scheduler".into(),
            variant: "partition-key".into(),
            cores: Some(0.5),
        });
        let said = headline(&measured);
        assert!(
            said.starts_with("Best step"),
            "the last variant measures a parameter, the one before has no limit: {said}"
        );
        let mut outcome = fixture::outcome();
        outcome.evidence.trials.clear();
        outcome.comparison = Default::default();
        assert_eq!(headline(&outcome), "");
    }
}
