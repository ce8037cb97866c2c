//! The predicted gain of each finding, kept beside it, so that whoever reads a finding reads what its fix would buy.

use narrows_model::evidence::TrialEvidence;
use narrows_model::finding::{Finding, Role};
use narrows_model::prediction::{Change, Doubt, Gain, GainOutcome};

use crate::Cannot;
use crate::forecast::Ground;
use crate::suggest;

/// Gives each finding of a trial that suggests a change, and each of its effects, what this change would gain.
pub fn add_gains(trial: &TrialEvidence, findings: &mut [Finding]) {
    let changes = suggested(findings);
    if changes.is_empty() {
        return;
    }
    let gains = gains(trial, findings, changes);
    let gain = |finding: &Finding| {
        let change = suggest::change(finding)?;
        gains.iter().find(|gain| gain.change == change).cloned()
    };
    for finding in findings.iter_mut().filter(|finding| !finding.role.is_about_experiment()) {
        finding.gain = gain(finding);
        finding.effects.iter_mut().for_each(|effect| effect.gain = gain(effect));
    }
}

/// The changes that findings about the system suggest, each once.
fn suggested(findings: &[Finding]) -> Vec<Change> {
    let mut changes: Vec<Change> = Vec::new();
    for change in suggest::all(findings).into_iter().filter_map(|(_, change)| change) {
        if !changes.contains(&change) {
            changes.push(change);
        }
    }
    changes
}

fn gains(trial: &TrialEvidence, findings: &[Finding], changes: Vec<Change>) -> Vec<Gain> {
    let ground = Ground::new(trial, findings);
    let invalid = findings.iter().find(|finding| finding.role == Role::Invalidates);
    let not_predicted =
        |change: Change, cannot: &Cannot| Gain { change, outcome: GainOutcome::NotPredicted(cannot.to_string()) };
    let gain = |change: Change| match &ground {
        Err(cannot) => not_predicted(change, cannot),
        Ok(ground) => match ground.prediction(&change, None) {
            Err(cannot) => not_predicted(change, &cannot),
            Ok(mut prediction) => {
                let doubt = invalid.map(|finding| Doubt::Invalid { finding: finding.kind() });
                prediction.doubts.splice(0..0, doubt);
                Gain::from(&prediction)
            }
        },
    };
    changes.into_iter().map(gain).collect()
}
