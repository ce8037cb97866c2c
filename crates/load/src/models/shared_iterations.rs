//! `shared-iterations`: an exact number of iterations, shared by a fixed number of users.
//!
//! Whoever is free takes the next one, so a fast user does more of them than a slow one.

use std::time::Duration;

use narrows_model::run::WindowKind;

use super::{Iterations, Model};
use crate::windows::{PlannedWindow, users};

pub(super) const ID: &str = "shared-iterations";

/// See the module.
pub(super) struct SharedIterations {
    pub(super) vus: u32,
    pub(super) iterations: u64,
    pub(super) max_duration: Option<Duration>,
}

impl Model for SharedIterations {
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
        Iterations::Shared(self.iterations)
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
    fn iterations_limit_it_and_time_only_if_asked_for() {
        let mut model = SharedIterations { vus: 3, iterations: 1000, max_duration: None };
        assert_eq!(
            (model.vus_at(Duration::ZERO), model.vus_max(), model.iterations()),
            (3, 3, Iterations::Shared(1000))
        );
        assert_eq!((model.duration(), model.windows()[0].end), (None, Duration::MAX));
        model.max_duration = Some(Duration::from_secs(5));
        assert_eq!((model.duration(), model.windows()[0].end), (model.max_duration, Duration::from_secs(5)));
    }
}
