//! `ramping-vus`: a number of users that follows stages, evenly or in steps.
//!
//! On a linear stage the number is the line's value rounded to the nearest whole user, so it is exactly the stage's
//! target at its end and never jumps by more than the line's own slope plus one. A stage without duration is a jump.

use std::time::Duration;

use narrows_model::load::{Stage, StageShape};
use narrows_model::run::WindowKind;

use super::{Model, stages_error};
use crate::windows::{PlannedWindow, settling, users};

/// The first sends of users who begin together are spread over no more than this, so that a step is soon a step.
const SPREAD_MAX: Duration = Duration::from_secs(1);

/// See the module.
pub(super) struct RampingVus {
    pub(super) start_vus: u32,
    pub(super) stages: Vec<Stage>,
}

impl Model for RampingVus {
    fn error(&self) -> Option<String> {
        stages_error(&self.stages)
    }

    fn vus_min(&self) -> u32 {
        0
    }

    fn duration(&self) -> Option<Duration> {
        Some(self.stages.iter().fold(Duration::ZERO, |sum, stage| sum.saturating_add(stage.duration)))
    }

    fn vus_at(&self, t: Duration) -> u32 {
        let mut before = self.start_vus;
        let mut passed = Duration::ZERO;
        for stage in &self.stages {
            let end = passed.saturating_add(stage.duration);
            if t < end {
                return within(stage, before, t - passed);
            }
            before = stage.target;
            passed = end;
        }
        before
    }

    fn vus_max(&self) -> u32 {
        self.stages.iter().map(|stage| stage.target).fold(self.start_vus, u32::max)
    }

    fn spread(&self, interval: Duration) -> Duration {
        interval.min(SPREAD_MAX)
    }

    fn windows(&self) -> Vec<PlannedWindow> {
        let mut before = self.start_vus;
        let mut start = Duration::ZERO;
        let mut windows = Vec::with_capacity(self.stages.len());
        for stage in &self.stages {
            let end = start.saturating_add(stage.duration);
            if end > start {
                windows.push(window(stage, before, start, end));
            }
            before = stage.target;
            start = end;
        }
        windows
    }
}

fn within(stage: &Stage, before: u32, t: Duration) -> u32 {
    match stage.shape {
        StageShape::Step => stage.target,
        StageShape::Linear => {
            let (from, to) = (i128::from(before), i128::from(stage.target));
            let length = stage.duration.as_nanos() as i128;
            let moved = ((to - from) * t.as_nanos() as i128 * 2 + length).div_euclid(length * 2);
            (from + moved) as u32
        }
    }
}

fn window(stage: &Stage, before: u32, start: Duration, end: Duration) -> PlannedWindow {
    let ramp = stage.shape == StageShape::Linear && stage.target != before;
    let label = if ramp { format!("{before} → {}", users(stage.target)) } else { users(stage.target) };
    let kind = if ramp { WindowKind::Ramp } else { WindowKind::Steady };
    let start = start + settling(stage.shape, stage.duration);
    PlannedWindow::of_users(kind, label, start..end, stage.target)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stage(seconds: u64, target: u32, shape: StageShape) -> Stage {
        Stage { duration: Duration::from_secs(seconds), target, shape }
    }

    #[test]
    fn users_follow_the_stages() {
        let model = RampingVus {
            start_vus: 1,
            stages: vec![
                stage(10, 11, StageShape::Linear),
                stage(0, 20, StageShape::Linear),
                stage(5, 20, StageShape::Linear),
                stage(5, 4, StageShape::Step),
                stage(4, 0, StageShape::Linear),
            ],
        };
        let cases = [
            (0, 1),
            (499, 1),
            (500, 2),
            (1_500, 3),
            (9_999, 11),
            (10_000, 20),
            (14_999, 20),
            (15_000, 4),
            (19_999, 4),
            (20_000, 4),
            (20_600, 3),
            (23_999, 0),
            (24_000, 0),
        ];
        for (ms, expected) in cases {
            assert_eq!(model.vus_at(Duration::from_millis(ms)), expected, "at {ms} ms");
        }
        assert_eq!((model.duration(), model.vus_max()), (Some(Duration::from_secs(24)), 20));
    }

    fn any_stage() -> impl Strategy<Value = Stage> {
        (0u64..5_000, 0u32..500, any::<bool>()).prop_map(|(ms, target, linear)| Stage {
            duration: Duration::from_millis(ms),
            target,
            shape: if linear { StageShape::Linear } else { StageShape::Step },
        })
    }

    proptest! {
        #[test]
        fn users_stay_between_the_stages_ends(
            start_vus in 0u32..500,
            stages in proptest::collection::vec(any_stage(), 1..6),
            share in 0.0..1.0f64,
        ) {
            let model = RampingVus { start_vus, stages };
            let t = model.duration().unwrap().mul_f64(share);
            let vus = model.vus_at(t);
            let lowest = model.stages.iter().map(|s| s.target).fold(start_vus, u32::min);
            prop_assert!((lowest..=model.vus_max()).contains(&vus));
        }

        #[test]
        fn a_line_has_no_jumps(from in 0u32..2_000, to in 0u32..2_000, ms in 1u64..10_000, at in 0.0..1.0f64) {
            let stages = vec![Stage { duration: Duration::from_millis(ms), target: to, shape: StageShape::Linear }];
            let model = RampingVus { start_vus: from, stages };
            let t = Duration::from_millis(ms).mul_f64(at);
            let next = t + Duration::from_micros(1);
            prop_assume!(next < Duration::from_millis(ms));
            let slope_per_us = f64::from(from.abs_diff(to)) / (ms as f64 * 1e3);
            let jump = f64::from(model.vus_at(t).abs_diff(model.vus_at(next)));
            prop_assert!(jump <= slope_per_us + 1.0);
            let line = f64::from(from) + (f64::from(to) - f64::from(from)) * t.as_secs_f64() / (ms as f64 / 1e3);
            prop_assert!((f64::from(model.vus_at(t)) - line).abs() <= 0.5 + 1e-3);
        }
    }
}
