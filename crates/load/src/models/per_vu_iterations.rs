//! `per-vu-iterations`: an exact number of iterations for each of a fixed number of users.
//!
//! A fast user is done sooner than a slow one and then does nothing, so the load thins out towards its end.

use std::time::Duration;

use narrows_model::run::WindowKind;

use super::{Iterations, Model};
use crate::windows::{PlannedWindow, users};

pub(super) const ID: &str = "per-vu-iterations";

/// See the module.
pub(super) struct PerVuIterations {
    pub(super) vus: u32,
    pub(super) iterations: u64,
    pub(super) max_duration: Option<Duration>,
}

impl Model for PerVuIterations {
    fn duration(&self) -> Option<Duration> {
        self.max_duration
    }

    fn vus_at(&self, _: Duration) -> u32 {
        self.vus
    }

    fn vus_max(&self) -> u32 {
        self.vus
    }

    fn iterations(&self) -> Iterations {
        Iterations::PerUser(self.iterations)
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
    fn each_user_has_its_own_number_and_time_limits_it_only_if_asked_for() {
        let mut model = PerVuIterations { vus: 3, iterations: 10, max_duration: None };
        assert_eq!((model.vus_at(Duration::ZERO), model.vus_max()), (3, 3));
        assert_eq!((model.iterations(), model.duration()), (Iterations::PerUser(10), None));
        assert_eq!((model.windows()[0].end, model.windows()[0].label.as_str()), (Duration::MAX, "3 users"));
        model.max_duration = Some(Duration::from_secs(5));
        assert_eq!((model.duration(), model.windows()[0].end), (model.max_duration, Duration::from_secs(5)));
    }
}
