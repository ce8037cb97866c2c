//! A scenario over the time of a load: its warm-up, then its model, then nobody.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use narrows_model::load::Scenario;

use crate::clock::nanos;
use crate::models::{self, Model};
use crate::windows::warmup_vus;

/// When a scenario's users send. Times are nanoseconds since the load's start. Shared by all threads.
pub(crate) struct Schedule {
    model: Box<dyn Model>,
    warmup_ns: i64,
    end_ns: i64,
    /// Requests left to begin; none when only time limits them.
    tickets: Option<AtomicU64>,
    /// The pause between an answer and the next request.
    pub(crate) think_ns: i64,
    /// The least time from send to send, above 0.
    pub(crate) pace_ns: Option<i64>,
}

impl Schedule {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let model = models::of(&scenario.model);
        let warmup_ns = nanos(scenario.warmup);
        let length_ns = nanos(model.duration().unwrap_or(Duration::MAX));
        Self {
            warmup_ns,
            end_ns: warmup_ns + length_ns,
            tickets: model.iterations().map(AtomicU64::new),
            think_ns: nanos(scenario.think_time),
            pace_ns: scenario.pace.map(nanos).filter(|pace| *pace > 0),
            model,
        }
    }

    /// The first moment at which nobody begins a request any more.
    pub(crate) fn end_ns(&self) -> i64 {
        self.end_ns
    }

    /// The most users at any time.
    pub(crate) fn vus_max(&self) -> u32 {
        self.model.vus_max()
    }

    /// Users that may send at a moment, as far as time limits them.
    pub(crate) fn vus_at(&self, elapsed_ns: i64) -> u32 {
        if elapsed_ns < 0 || elapsed_ns >= self.end_ns {
            0
        } else if elapsed_ns < self.warmup_ns {
            warmup_vus(&*self.model)
        } else {
            self.model.vus_at(Duration::from_nanos((elapsed_ns - self.warmup_ns) as u64))
        }
    }

    /// Whether every request there was to send has begun.
    pub(crate) fn is_used_up(&self) -> bool {
        self.tickets.as_ref().is_some_and(|tickets| tickets.load(Ordering::Relaxed) == 0)
    }

    /// Takes the right to begin a request at a moment; false when there is none left. Those of the warm-up are free.
    pub(crate) fn take_ticket(&self, elapsed_ns: i64) -> bool {
        match &self.tickets {
            Some(tickets) if elapsed_ns >= self.warmup_ns => {
                tickets.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
            }
            _ => true,
        }
    }

    /// How far apart the first sends of users who begin together are spread.
    pub(crate) fn spread_ns(&self) -> i64 {
        let interval_ns = self.think_ns.max(self.pace_ns.unwrap_or(0));
        nanos(self.model.spread(Duration::from_nanos(interval_ns as u64)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::plan;
    use narrows_model::load::LoadModel;

    const MS: i64 = 1_000_000;

    fn schedule(model: LoadModel, warmup_ms: u64) -> Schedule {
        let mut plan = plan(model);
        plan.scenarios[0].warmup = Duration::from_millis(warmup_ms);
        Schedule::new(&plan.scenarios[0])
    }

    #[test]
    fn warm_up_then_load_then_nobody() {
        let stages = vec![narrows_model::load::Stage {
            duration: Duration::from_millis(100),
            target: 10,
            shape: narrows_model::load::StageShape::Linear,
        }];
        let schedule = schedule(LoadModel::RampingVus { start_vus: 0, stages }, 50);
        let users: Vec<u32> = [-1, 0, 49, 50, 100, 149, 150].map(|ms| schedule.vus_at(ms * MS)).to_vec();
        assert_eq!(users, [0, 1, 1, 0, 5, 10, 0]);
        assert_eq!(schedule.end_ns(), 150 * MS);
    }

    #[test]
    fn tickets_are_as_many_as_iterations_and_the_warm_ups_are_free() {
        let schedule = schedule(LoadModel::SharedIterations { vus: 2, iterations: 3, max_duration: None }, 10);
        assert!((0..10).all(|_| schedule.take_ticket(9 * MS)));
        assert!(!schedule.is_used_up());
        let taken: Vec<bool> = (0..5).map(|_| schedule.take_ticket(10 * MS)).collect();
        assert_eq!(taken, [true, true, true, false, false]);
        assert!(schedule.is_used_up());
    }
}
