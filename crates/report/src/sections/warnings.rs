//! Reasons to distrust figures: trials that did not end well, and doubts of the load generator about itself.

use narrows_model::comparison::Outcome;
use narrows_model::run::{RunState, TrialState, Verdict};

use super::Context;
use crate::section::{Block, Line, Section, Tone};
use crate::unfinished::until_then;

pub(super) fn section(context: &Context<'_>) -> Section {
    let lines = [progress(context.outcome), validity(context.outcome)].concat();
    let blocks = if lines.is_empty() { Vec::new() } else { vec![Block::Lines(lines)] };
    Section::new("warnings", "", blocks)
}

/// Finished and unfinished trials, unless all are finished.
fn progress(outcome: &Outcome) -> Vec<Line> {
    let states = [
        (TrialState::Done, "done"),
        (TrialState::Running, "running"),
        (TrialState::Interrupted, "cut short"),
        (TrialState::Failed, "failed"),
        (TrialState::Planned, "not begun"),
    ];
    let trials = || outcome.evidence.trials.iter().map(|evidence| &evidence.trial);
    if outcome.evidence.run.state == RunState::Complete && trials().all(|trial| trial.state == TrialState::Done) {
        return Vec::new();
    }
    let mut lines = Vec::new();
    for (state, label) in states {
        let labels: Vec<String> = trials().filter(|trial| trial.state == state).map(|trial| trial.label()).collect();
        if !labels.is_empty() {
            lines.push(Line::new(label, "", labels.join(", ")).tone(Tone::Plain));
        }
    }
    for evidence in &outcome.evidence.trials {
        let texts = evidence.trial.error.iter().cloned().chain(until_then(evidence));
        lines.extend(texts.map(|text| Line::new("", evidence.trial.label(), text)));
    }
    lines
}

fn validity(outcome: &Outcome) -> Vec<Line> {
    let trials = outcome.evidence.trials.iter().map(|evidence| &evidence.trial);
    let line = |trial: &narrows_model::run::Trial| {
        let (label, tone) = match trial.validity.verdict {
            Verdict::Valid => return None,
            Verdict::Doubtful => ("doubtful", Tone::Doubtful),
            Verdict::Invalid => ("INVALID", Tone::Bad),
        };
        Some(Line::new(label, trial.label(), trial.validity.reasons.join(" ")).tone(tone))
    };
    trials.filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::super::in_page;
    use super::*;
    use crate::fixture;

    #[test]
    fn doubts_and_unfinished_trials_are_warned_of() {
        let mut outcome = fixture::outcome();
        outcome.evidence.trials[0].trial.state = TrialState::Failed;
        outcome.evidence.trials[0].trial.error = Some("port <taken>".to_owned());
        let page = in_page(section, &outcome);
        assert!(
            page.contains("failed</span> as-is</li>") && page.contains("<b>as-is</b> port &lt;taken&gt;</li>"),
            "{page}"
        );
        assert!(page.contains("<b>as-is</b> until then 1"), "{page}");
        assert!(page.contains("doubtful</span> <b>fixed</b> The generator sent"), "{page}");
    }
}
