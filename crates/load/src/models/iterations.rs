//! `shared-iterations` and `per-vu-iterations`: an exact number of iterations by a fixed number of users.
//!
//! Iterations are shared by all users, so that a fast user does more of them than a slow one; or each user has its own, so
//! that a fast user is done sooner and the load thins out towards its end.

use std::time::Duration;

use narrows_model::load::Iterations;
use narrows_model::run::WindowKind;

use super::Model;
use crate::windows::{PlannedWindow, users};

/// See the module.
pub(super) struct IterationModel {
    pub(super) vus: u32,
    pub(super) iterations: Iterations,
    pub(super) max_duration: Option<Duration>,
}

impl Model for IterationModel {
    fn duration(&self) -> Option<Duration> {
        self.max_duration
    }

    fn vus_at(&self, _: Duration) -> u32 {
        self.vus
    }

    fn vus_max(&self) -> u32 {
        self.vus
    }

    fn iterations(&self) -> Option<Iterations> {
        Some(self.iterations)
    }

    fn windows(&self) -> Vec<PlannedWindow> {
        let end = self.max_duration.unwrap_or(Duration::MAX);
        vec![PlannedWindow::of_users(WindowKind::Steady, users(self.vus), Duration::ZERO..end, self.vus)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iterations_limit_it_and_time_only_if_a_limit_is_given() {
        let mut model = IterationModel { vus: 3, iterations: Iterations::PerVu(10), max_duration: None };
        assert_eq!((model.vus_at(Duration::ZERO), model.vus_max()), (3, 3));
        assert_eq!((model.iterations(), model.duration()), (Some(Iterations::PerVu(10)), None));
        assert_eq!((model.windows()[0].end, model.windows()[0].label.as_str()), (Duration::MAX, "3 users"));
        model.max_duration = Some(Duration::from_secs(5));
        assert_eq!((model.duration(), model.windows()[0].end), (model.max_duration, Duration::from_secs(5)));
    }
}
