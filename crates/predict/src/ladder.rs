//! Order of the changes that gain most together: each step is predicted with those before it.
//!
//! A change often gains less than it could because the next limit is close. So after each step, the change that moves the
//! limit which is met then is a candidate too, beside those that findings suggest.

use narrows_model::prediction::{Change, Ladder, Prediction, Resource};

use crate::changes::ALL;
use crate::forecast::Ground;
use crate::sentence;

/// Steps at most: what comes later rests on too much that was not measured.
const STEPS_MAX: usize = 3;
/// Least gain of a step over the one before, as a share of throughput or mean latency: the error that a model of a changed
/// system is given at least.
const GAIN_MIN: f64 = 0.05;

/// The ladder; `singles` are predictions of single changes, those that gain most first.
pub(crate) fn ladder(ground: &Ground<'_>, singles: &[Prediction]) -> Ladder {
    let Some(first) = singles.iter().find(|one| one.is_trusted()) else { return Ladder::default() };
    let mut steps = vec![first.clone()];
    while steps.len() < STEPS_MAX
        && let Some(next) = steps.last().and_then(|last| next(ground, last, singles))
    {
        steps.push(next);
    }
    let sentence = if steps.len() > 1 { sentence::of_steps(&steps) } else { String::new() };
    Ladder { steps, sentence }
}

/// The step after this one; `None` if no further change gains enough.
fn next(ground: &Ground<'_>, last: &Prediction, singles: &[Prediction]) -> Option<Prediction> {
    let together = |change: Change| {
        let with: Vec<Change> = last.with.iter().cloned().chain([change]).collect();
        // Changes may exclude each other, or leave nothing of what another names.
        ground.together(&last.change, &with, last.because).ok()
    };
    let predicted = candidates(last, singles).into_iter().filter_map(together);
    let better = predicted.filter(|step| is_better(step, last));
    better.min_by(|one, other| one.mean_change().total_cmp(&other.mean_change()))
}

/// Changes that may come next: those suggested for something that no step has changed yet, and the one that moves the
/// limit that is met now.
fn candidates(last: &Prediction, singles: &[Prediction]) -> Vec<Change> {
    let is_elsewhere = |other: &&Change| last.changes().all(|change| change.target != other.target);
    let mut all: Vec<Change> = singles.iter().map(|other| &other.change).filter(is_elsewhere).cloned().collect();
    let is_new = |change: &Change| {
        let is_like = |known: &Change| (known.kind, &known.target) == (change.kind, &change.target);
        !last.changes().any(is_like) && !all.iter().any(is_like)
    };
    let moved = last.limit_after.as_ref().and_then(against).filter(is_new);
    all.extend(moved);
    all
}

/// The change that moves a limit. A larger machine moves every limit, and no change is known for a section.
fn against(limit: &Resource) -> Option<Change> {
    ALL.iter().find_map(|method| method.against(limit))
}

fn is_better(step: &Prediction, last: &Prediction) -> bool {
    step.after.rate.value >= (1.0 + GAIN_MIN) * last.after.rate.value
        || step.after.mean_ns.value <= (1.0 - GAIN_MIN) * last.after.mean_ns.value
}

#[cfg(test)]
mod tests {
    use narrows_model::finding::{Finding, FindingKind};
    use narrows_model::prediction::{ChangeKind, Predictions};
    use narrows_testkit::simulator::System;

    use super::*;
    use crate::{DiagnosedTrial, predict_suggested};

    fn predicted(system: &System) -> Predictions {
        let finding = Finding {
            resource: "web".into(),
            operation: Some("GET /orders".into()),
            ..Finding::new(FindingKind::SerialFanOut, 1)
        };
        predict_suggested(&DiagnosedTrial::new(&system.run("a"), &[finding])).expect("a prediction")
    }

    #[test]
    fn a_change_that_meets_the_next_limit_is_followed_by_the_one_that_moves_it() {
        // Calls made at once raise throughput until the one core of the service is used up.
        let steps = vec![(2, 12), (10, 12), (20, 12)];
        let found =
            predicted(&System { steps, peer_calls: 6, web_cores: 1, web_ms: 8.0, think_ms: 20.0, ..System::default() });
        let written = |step: &Prediction| step.changes().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        assert_eq!(found.predictions.len(), 1, "{found:#?}");
        let [first, second, ..] = &found.ladder.steps[..] else { panic!("{found:#?}") };
        assert_eq!(written(first), "parallelize=web GET /orders");
        assert_eq!(written(second), "parallelize=web GET /orders add-cpu=web");
        assert!(is_better(second, first));
        let limit = second.limit_after.as_ref().expect("a limit");
        assert!(limit.rate_max > first.limit_after.as_ref().expect("a limit").rate_max, "{limit:?}");
        let sentence = &found.ladder.sentence;
        assert!(sentence.starts_with("First making the calls of web GET /orders at the same time: "), "{sentence}");
        assert!(sentence.contains("; then 2 times the CPU for web: "), "{sentence}");
    }

    #[test]
    fn a_ladder_ends_where_nothing_gains_more() {
        let found = predicted(&System { peer_calls: 6, web_cores: 8, think_ms: 500.0, ..System::default() });
        assert!(found.ladder.is_empty() && found.ladder.steps.len() == 1, "{:#?}", found.ladder);
    }

    #[test]
    fn no_step_changes_what_an_earlier_one_has_changed() {
        let change = |kind, target: &str| Change::new(kind, target);
        let step = |first: Change, with: Vec<Change>| {
            let system = System { peer_calls: 6, ..System::default() };
            let prediction = predicted(&system).predictions.remove(0);
            Prediction { change: first, with, limit_after: None, ..prediction }
        };
        let singles: Vec<Prediction> = [
            change(ChangeKind::RouteQuery, "web GET /orders"),
            change(ChangeKind::AddCpu, "db"),
            change(ChangeKind::Cache, "stock"),
        ]
        .map(|change| step(change, Vec::new()))
        .into();
        let last =
            step(change(ChangeKind::Parallelize, "web GET /orders"), vec![change(ChangeKind::AddReplicas, "db")]);
        assert_eq!(candidates(&last, &singles), [change(ChangeKind::Cache, "stock")]);
    }
}
