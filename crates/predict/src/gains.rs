//! The predicted gain of each finding, kept beside it, so that whoever reads a finding reads what its fix would buy.

use narrows_model::call_graph::CallGraph;
use narrows_model::evidence::TrialEvidence;
use narrows_model::finding::{Finding, Role};
use narrows_model::limit::Limit;
use narrows_model::prediction::{Change, Doubt, Gain, GainOutcome, Ladder, Measure, PredictedGain, Prediction};
use narrows_model::units;

use crate::forecast::Ground;
use crate::ladder::ladder;
use crate::suggest;
use crate::{Cannot, DiagnosedTrial};

/// From this factor on, a figure of the model is given as a multiple of the measured one.
const MANY_TIMES: f64 = 3.0;

/// Gives each finding of a trial, by its place in the run, that suggests a change, and each of its effects, what this change would
/// gain. Returns the order in which these changes gain most together.
///
/// # Panics
/// If the run has no trial at this place.
pub fn add_gains(
    run: &[TrialEvidence],
    at: usize,
    limit: Option<&Limit>,
    calls: Option<&CallGraph>,
    findings: &mut [Finding],
) -> Ladder {
    let diagnosed = DiagnosedTrial { trial: &run[at], run, findings, limit, calls };
    let changes = suggest::changes(&diagnosed);
    if changes.is_empty() {
        return Ladder::default();
    }
    let (gains, ladder) = gains(&diagnosed, changes);
    let gain = |finding: &Finding| {
        let change = suggest::change(finding)?;
        gains.iter().find(|gain| gain.change == change).cloned()
    };
    for finding in findings.iter_mut().filter(|finding| !finding.role.is_about_experiment()) {
        finding.gain = gain(finding);
        finding.effects.iter_mut().for_each(|effect| effect.gain = gain(effect));
    }
    ladder
}

fn gains(diagnosed: &DiagnosedTrial<'_>, changes: Vec<Change>) -> (Vec<Gain>, Ladder) {
    let ground = match Ground::new(diagnosed) {
        Ok(ground) => ground,
        Err(cannot) => {
            let gains = changes.into_iter().map(|change| not_predicted(change, &cannot)).collect();
            return (gains, Ladder::default());
        }
    };
    let invalid = diagnosed.findings.iter().find(|finding| finding.role == Role::Invalidates);
    let mut predictions = Vec::new();
    let gain = |change: Change| match ground.prediction(&change, None) {
        Err(cannot) => not_predicted(change, &cannot),
        Ok(mut prediction) => {
            let doubt = invalid.map(|finding| Doubt::Invalid { finding: finding.kind() });
            prediction.doubts.splice(0..0, doubt);
            let gain = in_brief(&prediction);
            predictions.push(prediction);
            gain
        }
    };
    let gains = changes.into_iter().map(gain).collect();
    predictions.sort_by(|one, other| one.mean_change().total_cmp(&other.mean_change()));
    (gains, ladder(&ground, &predictions))
}

fn not_predicted(change: Change, cannot: &Cannot) -> Gain {
    Gain { change, outcome: GainOutcome::NotPredicted(cannot.to_string()) }
}

/// Figures of a prediction in brief. Those that should not be used are left out, with the reason in their place.
fn in_brief(prediction: &Prediction) -> Gain {
    let outcome = match prediction.doubts.iter().find_map(serious_doubt) {
        Some(doubt) => GainOutcome::NotPredicted(doubt),
        None => GainOutcome::Predicted(Box::new(PredictedGain {
            now: prediction.now,
            after: prediction.after,
            limit_after: prediction.limit_after.clone(),
        })),
    };
    Gain { change: prediction.change.clone(), outcome }
}

/// A doubt in few words, if the figures should not be used because of it.
fn serious_doubt(doubt: &Doubt) -> Option<String> {
    match doubt {
        Doubt::BaselineMissed { label, measure, measured, model } => {
            let figure = match measure {
                Measure::Rate => "throughput",
                Measure::Mean => "mean latency",
            };
            let times = model / measured;
            if times >= MANY_TIMES {
                return Some(format!("the model has {times:.0} times the measured {figure} at {label}"));
            }
            let off = units::percent((times - 1.0).abs());
            Some(format!("the model misses the measured {figure} at {label} by {off}"))
        }
        Doubt::Invalid { finding } => Some(format!("the figures of the trial are invalid ({finding})")),
        Doubt::OutsideTraces { share } => {
            Some(format!("traces show only {} of a request's time outside queues", units::percent(*share)))
        }
        Doubt::OneLevel
        | Doubt::BeyondTested { .. }
        | Doubt::Failures { .. }
        | Doubt::FewTraces { .. }
        | Doubt::Overloaded
        | Doubt::OneThread { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_that_should_not_be_used_are_given_as_a_reason() {
        let missed = |measured, model| {
            let doubt = Doubt::BaselineMissed { label: "4/s".into(), measure: Measure::Mean, measured, model };
            assert!(doubt.is_serious());
            serious_doubt(&doubt).unwrap()
        };
        assert_eq!(missed(4e6, 3e6), "the model misses the measured mean latency at 4/s by 25 %");
        assert_eq!(missed(3e8, 2.5e11), "the model has 833 times the measured mean latency at 4/s");
        assert_eq!(serious_doubt(&Doubt::OneLevel), None);
    }
}
