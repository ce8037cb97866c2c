//! Pairs of changes: a change that gains less than it could, because the next limit is close, with the one that moves it.

use narrows_model::prediction::{Change, Prediction, Resource};

use crate::changes::ALL;
use crate::forecast::Ground;

/// Changes that pairs begin with, those that gain most.
const FIRST_MAX: usize = 3;
/// Pairs at most.
const PAIRS_MAX: usize = 3;
/// Least gain of a pair over the better of its changes, as a share of throughput or mean latency.
const GAIN_MIN: f64 = 0.05;

/// The pairs that gain more than either of their changes alone, those that gain most first. Single changes come in order
/// of their gain.
pub(crate) fn pairs(ground: &Ground<'_>, singles: &[Prediction]) -> Vec<Prediction> {
    let mut found: Vec<Prediction> = Vec::new();
    for one in singles.iter().take(FIRST_MAX) {
        for second in seconds(one, singles) {
            let is_known = found.iter().any(|pair| pair.with == [one.change.clone()] && pair.change == second);
            if is_known {
                continue;
            }
            // Two changes may exclude each other, or leave nothing of what the other names.
            let Ok(pair) = ground.together(&one.change, std::slice::from_ref(&second), one.because) else { continue };
            let alone = singles.iter().find(|other| other.change == second);
            if is_better(&pair, one) && alone.is_none_or(|alone| is_better(&pair, alone)) {
                found.push(pair);
            }
        }
    }
    found.sort_by(|a, b| a.mean_change().total_cmp(&b.mean_change()));
    found.truncate(PAIRS_MAX);
    found
}

/// Second changes of a pair: those suggested elsewhere, and the one that moves the limit that the first change meets.
fn seconds(one: &Prediction, singles: &[Prediction]) -> Vec<Change> {
    let is_elsewhere = |other: &&Change| other.target != one.change.target;
    let mut all: Vec<Change> = singles.iter().map(|other| &other.change).filter(is_elsewhere).cloned().collect();
    let moved = one.limit_after.as_ref().and_then(against);
    let is_suggested = |change: &Change| {
        singles.iter().any(|single| (single.change.kind, &single.change.target) == (change.kind, &change.target))
    };
    all.extend(moved.filter(|change| !is_suggested(change)));
    all
}

/// The change that moves a limit. A larger machine moves every limit, and no change is known for a section.
fn against(limit: &Resource) -> Option<Change> {
    ALL.iter().find_map(|method| method.against(limit))
}

fn is_better(pair: &Prediction, alone: &Prediction) -> bool {
    pair.after.rate.value >= (1.0 + GAIN_MIN) * alone.after.rate.value
        || pair.after.mean_ns.value <= (1.0 - GAIN_MIN) * alone.after.mean_ns.value
}

#[cfg(test)]
mod tests {
    use narrows_model::finding::{Finding, FindingKind};
    use narrows_model::prediction::ChangeKind;
    use narrows_testkit::simulator::System;

    use super::*;
    use crate::{DiagnosedTrial, predict_suggested};

    #[test]
    fn a_change_that_meets_the_next_limit_is_paired_with_the_one_that_moves_it() {
        // Calls made at once raise throughput until the one core of the service is used up.
        let steps = vec![(2, 12), (10, 12), (20, 12)];
        let system = System { steps, peer_calls: 6, web_cores: 1, web_ms: 8.0, think_ms: 20.0, ..System::default() };
        let finding = Finding {
            resource: "web".into(),
            operation: Some("GET /orders".into()),
            ..Finding::new(FindingKind::SerialFanOut, 1)
        };
        let found = predict_suggested(&DiagnosedTrial::new(&system.run("a"), &[finding])).expect("a prediction");
        let written: Vec<String> = found.predictions.iter().map(|one| one.change.to_string()).collect();
        assert_eq!(written, ["parallelize=web GET /orders"; 2], "{found:#?}");
        let pair = &found.predictions[1];
        assert_eq!(pair.with, [Change { kind: ChangeKind::AddCpu, target: "web".into(), amount: None }]);
        assert!(is_better(pair, &found.predictions[0]));
    }
}
