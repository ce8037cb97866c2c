//! `constant-arrival-rate`: iterations that begin at a fixed rate, however many are under way.

use std::time::Duration;

use narrows_model::load::Arrivals;
use narrows_model::run::WindowKind;

use super::{Model, OpenLoad, rate_error};
use crate::arrivals::RateCurve;
use crate::windows::{PlannedWindow, rate};

/// See the module.
pub(super) struct ConstantArrivalRate {
    pub(super) rate: f64,
    pub(super) duration: Duration,
    pub(super) vus_max: u32,
    pub(super) arrivals: Arrivals,
}

impl Model for ConstantArrivalRate {
    fn error(&self) -> Option<String> {
        rate_error(self.rate)
    }

    fn duration(&self) -> Option<Duration> {
        Some(self.duration)
    }

    fn vus_at(&self, _: Duration) -> u32 {
        self.vus_max
    }

    fn vus_max(&self) -> u32 {
        self.vus_max
    }

    fn open(&self) -> Option<OpenLoad> {
        Some(OpenLoad { curve: RateCurve::constant(self.rate, self.duration), arrivals: self.arrivals })
    }

    fn windows(&self) -> Vec<PlannedWindow> {
        vec![PlannedWindow::of_rate(WindowKind::Steady, rate(self.rate), Duration::ZERO..self.duration, self.rate)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_never_changes_and_users_only_limit_it() {
        let duration = Duration::from_secs(30);
        let model = ConstantArrivalRate { rate: 2_000.0, duration, vus_max: 50, arrivals: Arrivals::Poisson };
        assert_eq!((model.duration(), model.vus_max()), (Some(duration), 50));
        let open = model.open().unwrap();
        assert_eq!((open.arrivals, open.curve.rate_max()), (Arrivals::Poisson, 2_000.0));
        for t in [0, 1, 29_999] {
            assert_eq!(open.curve.rate_at(Duration::from_millis(t)), 2_000.0);
        }
        let window = &model.windows()[0];
        assert_eq!((window.label.as_str(), window.vus, window.rate), ("2,000/s", 0, Some(2_000.0)));
    }
}
