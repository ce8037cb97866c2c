//! The stretches of a load in which numbers may be averaged, known before it begins.
//!
//! With several scenarios the windows are those of the one that lasts longest, warm-up included, and of the first
//! among equals: levels of different scenarios that overlap in other ways have no meaning of their own.

use std::time::Duration;

use narrows_model::load::{LoadPlan, Scenario};
use narrows_model::run::WindowKind;

use crate::models;

/// A window, before anybody knows when the load begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedWindow {
    /// What may be done with the numbers in it.
    pub kind: WindowKind,
    /// For people: `warm-up`, `8 users`, `1 → 40 users`.
    pub label: String,
    /// Its first instant, since the load's start.
    pub start: Duration,
    /// Its first instant after, since the load's start. [`Duration::MAX`] when only requests limit the load, so cut
    /// it off at the load's end.
    pub end: Duration,
    /// Virtual users at its end.
    pub vus: u32,
}

/// The windows of a plan, in order, not overlapping: the warm-up if there is one, then one for each load level.
///
/// A step of 5 s or more begins to count after a fifth of it, at most 5 s: what is queued from the level before has
/// to drain first. Between two windows there may therefore be a gap.
pub fn planned_windows(plan: &LoadPlan) -> Vec<PlannedWindow> {
    let mut longest: Option<&Scenario> = None;
    for scenario in &plan.scenarios {
        if longest.is_none_or(|other| length(scenario) > length(other)) {
            longest = Some(scenario);
        }
    }
    longest.map(windows_of).unwrap_or_default()
}

fn length(scenario: &Scenario) -> Duration {
    models::of(&scenario.model).duration().map_or(Duration::MAX, |model| model.saturating_add(scenario.warmup))
}

fn windows_of(scenario: &Scenario) -> Vec<PlannedWindow> {
    let model = models::of(&scenario.model);
    let mut windows = Vec::new();
    if !scenario.warmup.is_zero() {
        windows.push(PlannedWindow {
            kind: WindowKind::Warmup,
            label: "warm-up".into(),
            start: Duration::ZERO,
            end: scenario.warmup,
            vus: warmup_vus(&*model),
        });
    }
    windows.extend(model.windows().into_iter().map(|mut window| {
        window.start = window.start.saturating_add(scenario.warmup);
        window.end = window.end.saturating_add(scenario.warmup);
        window
    }));
    windows
}

/// Users of the warm-up: the first load level, and at least one where there is anybody at all.
pub(crate) fn warmup_vus(model: &dyn models::Model) -> u32 {
    model.vus_at(Duration::ZERO).max(1).min(model.vus_max())
}

/// `1 user`, `8 users`.
pub(crate) fn users(vus: u32) -> String {
    if vus == 1 { "1 user".into() } else { format!("{vus} users") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::plan;
    use narrows_model::load::{LoadModel, Stage, StageShape};

    fn table(warmup: u64, model: LoadModel) -> Vec<String> {
        let mut plan = plan(model);
        plan.scenarios[0].warmup = Duration::from_secs(warmup);
        planned_windows(&plan)
            .iter()
            .map(|w| format!("{:?} {} {:?}..{:?} {}", w.kind, w.label, w.start, w.end, w.vus))
            .collect()
    }

    fn stage(ms: u64, target: u32, shape: StageShape) -> Stage {
        Stage { duration: Duration::from_millis(ms), target, shape }
    }

    #[test]
    fn a_constant_load_has_one_window_after_its_warm_up() {
        let model = LoadModel::ConstantVus { vus: 8, duration: Duration::from_secs(30) };
        assert_eq!(table(0, model.clone()), ["Steady 8 users 0ns..30s 8"]);
        assert_eq!(table(5, model), ["Warmup warm-up 0ns..5s 8", "Steady 8 users 5s..35s 8"]);
    }

    #[test]
    fn steps_settle_and_ramps_are_named_by_both_ends() {
        let stages = vec![
            stage(45_000, 1, StageShape::Step),
            stage(10_000, 5, StageShape::Step),
            stage(4_000, 9, StageShape::Step),
            stage(0, 7, StageShape::Linear),
            stage(20_000, 40, StageShape::Linear),
            stage(5_000, 40, StageShape::Linear),
        ];
        let rows = table(2, LoadModel::RampingVus { start_vus: 0, stages });
        assert_eq!(
            rows,
            [
                "Warmup warm-up 0ns..2s 1",
                "Steady 1 user 7s..47s 1",
                "Steady 5 users 49s..57s 5",
                "Steady 9 users 57s..61s 9",
                "Ramp 7 → 40 users 61s..81s 40",
                "Steady 40 users 81s..86s 40",
            ]
        );
    }

    #[test]
    fn the_longest_scenario_gives_the_windows_and_the_first_among_equals() {
        let constant = |vus, seconds| LoadModel::ConstantVus { vus, duration: Duration::from_secs(seconds) };
        let mut plan = plan(constant(1, 10));
        for (vus, seconds) in [(2, 20), (3, 20)] {
            let mut scenario = plan.scenarios[0].clone();
            scenario.model = constant(vus, seconds);
            plan.scenarios.push(scenario);
        }
        assert_eq!(planned_windows(&plan)[0].label, "2 users");
        plan.scenarios[2].model = LoadModel::SharedIterations { vus: 4, iterations: 1, max_duration: None };
        assert_eq!(planned_windows(&plan)[0].label, "4 users");
        plan.scenarios.clear();
        assert_eq!(planned_windows(&plan), []);
    }
}
