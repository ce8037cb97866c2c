//! `constant-vus`: a fixed number of users for a fixed time.

use std::time::Duration;

use narrows_model::run::WindowKind;

use super::Model;
use crate::windows::{PlannedWindow, users};

/// See the module.
pub(super) struct ConstantVus {
    pub(super) vus: u32,
    pub(super) duration: Duration,
}

impl Model for ConstantVus {
    fn duration(&self) -> Option<Duration> {
        Some(self.duration)
    }

    fn vus_at(&self, _: Duration) -> u32 {
        self.vus
    }

    fn vus_max(&self) -> u32 {
        self.vus
    }

    fn windows(&self) -> Vec<PlannedWindow> {
        vec![PlannedWindow::of_users(WindowKind::Steady, users(self.vus), Duration::ZERO..self.duration, self.vus)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_never_changes() {
        let model = ConstantVus { vus: 8, duration: Duration::from_secs(30) };
        assert_eq!(model.duration(), Some(Duration::from_secs(30)));
        for t in [0, 1, 29_999] {
            assert_eq!(model.vus_at(Duration::from_millis(t)), 8);
        }
        assert_eq!((model.vus_max(), model.iterations()), (8, None));
    }
}
