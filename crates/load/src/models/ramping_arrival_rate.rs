//! `ramping-arrival-rate`: iterations that begin at a rate that follows stages, evenly or in steps.
//!
//! A stage without duration is a jump.

use std::time::Duration;

use narrows_model::load::{Arrivals, RateStage, StageShape};
use narrows_model::run::WindowKind;

use super::{Model, OpenLoad, rate_error, stages_error};
use crate::arrivals::RateCurve;
use crate::windows::{PlannedWindow, per_second, rate, settling};

/// See the module.
pub(super) struct RampingArrivalRate {
    pub(super) start_rate: f64,
    pub(super) stages: Vec<RateStage>,
    pub(super) vus_max: u32,
    pub(super) arrivals: Arrivals,
}

impl RampingArrivalRate {
    /// Each stage with the rate before it.
    fn lines(&self) -> impl Iterator<Item = (f64, &RateStage)> {
        let before = std::iter::once(self.start_rate).chain(self.stages.iter().map(|stage| stage.target));
        before.zip(&self.stages)
    }
}

impl Model for RampingArrivalRate {
    /// A ramp may also begin or end at 0.
    fn error(&self) -> Option<String> {
        let rates = || self.stages.iter().map(|stage| stage.target).chain([self.start_rate]);
        stages_error(&self.stages)
            .or_else(|| rates().filter(|rate| *rate != 0.0).find_map(rate_error))
            .or_else(|| (!rates().any(|rate| rate > 0.0)).then(|| "at least one rate must be above 0".into()))
    }

    fn duration(&self) -> Option<Duration> {
        Some(self.stages.iter().fold(Duration::ZERO, |sum, stage| sum.saturating_add(stage.duration)))
    }

    fn vus_at(&self, _: Duration) -> u32 {
        self.vus_max
    }

    fn vus_max(&self) -> u32 {
        self.vus_max
    }

    fn open(&self) -> Option<OpenLoad> {
        let curve = self.lines().fold(RateCurve::default(), |curve, (before, stage)| {
            let from = if stage.shape == StageShape::Step { stage.target } else { before };
            curve.then(from, stage.target, stage.duration)
        });
        Some(OpenLoad { curve, arrivals: self.arrivals })
    }

    fn windows(&self) -> Vec<PlannedWindow> {
        let mut start = Duration::ZERO;
        let mut windows = Vec::with_capacity(self.stages.len());
        for (before, stage) in self.lines() {
            let end = start.saturating_add(stage.duration);
            if end > start {
                windows.push(window(stage, before, start, end));
            }
            start = end;
        }
        windows
    }
}

fn window(stage: &RateStage, before: f64, start: Duration, end: Duration) -> PlannedWindow {
    let ramp = stage.shape == StageShape::Linear && stage.target != before;
    let start = start + settling(stage.shape, stage.duration);
    if ramp {
        let label = format!("{} → {}", per_second(before), rate(stage.target));
        PlannedWindow::of_rate(WindowKind::Ramp, label, start..end, stage.target)
    } else {
        PlannedWindow::of_rate(WindowKind::Steady, rate(stage.target), start..end, stage.target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(seconds: u64, target: f64, shape: StageShape) -> RateStage {
        RateStage { duration: Duration::from_secs(seconds), target, shape }
    }

    fn model() -> RampingArrivalRate {
        let stages = vec![
            stage(10, 500.0, StageShape::Linear),
            stage(0, 50.0, StageShape::Linear),
            stage(5, 50.0, StageShape::Linear),
            stage(10, 1_000.0, StageShape::Step),
        ];
        RampingArrivalRate { start_rate: 100.0, stages, vus_max: 9, arrivals: Arrivals::Uniform }
    }

    #[test]
    fn the_rate_follows_the_stages() {
        let open = model().open().unwrap();
        let cases = [(0, 100.0), (5_000, 300.0), (10_000, 50.0), (14_999, 50.0), (15_000, 1_000.0), (24_999, 1_000.0)];
        for (ms, expected) in cases {
            assert!((open.curve.rate_at(Duration::from_millis(ms)) - expected).abs() < 1e-6, "at {ms} ms");
        }
        assert_eq!((model().duration(), open.curve.rate_max()), (Some(Duration::from_secs(25)), 1_000.0));
    }

    #[test]
    fn ramps_are_named_by_both_ends_and_steps_settle() {
        let rows: Vec<String> =
            model().windows().iter().map(|w| format!("{:?} {} {:?}..{:?}", w.kind, w.label, w.start, w.end)).collect();
        assert_eq!(rows, ["Ramp 100 → 500/s 0ns..10s", "Steady 50/s 10s..15s", "Steady 1,000/s 17s..25s"]);
    }
}
