//! A scenario over the time of a load: its warm-up, then its model, then nobody.
//!
//! A closed model sets how many users there are and how many iterations are left to them; an open one sets when
//! iterations are due. A ticket is the right to begin an iteration, whatever number of requests it has.

use std::iter::Chain;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use narrows_model::load::{Iterations, Scenario};

use crate::arrivals::{Due, Part, RateCurve};
use crate::check::THREADS_MAX;
use crate::clock::nanos;
use crate::models::{self, Model, OpenLoad};
use crate::part::LoadPart;
use crate::random::Random;
use crate::windows::{warmup_rate, warmup_vus};

/// The first of the streams of random numbers that arrivals are drawn from; those below belong to threads.
const ARRIVAL_STREAMS: u64 = 1 << 32;

/// When a scenario's users send. Times are nanoseconds since the load's start. Shared by all threads of a process.
pub(crate) struct Schedule {
    model: Box<dyn Model>,
    open: Option<OpenLoad>,
    warmup: Duration,
    warmup_ns: i64,
    end_ns: i64,
    tickets: Tickets,
    /// Nothing is left to send, whatever the tickets say.
    used_up: AtomicBool,
    /// The pause between a response and the next request.
    pub(crate) think_ns: i64,
    /// The least time from the beginning of an iteration to that of the next, above 0.
    pub(crate) pace_ns: Option<i64>,
}

/// Iterations left to begin, the warm-up's aside.
enum Tickets {
    Unlimited,
    Shared(AtomicU64),
    PerUser {
        each: u64,
        /// Tickets left for all users of this process.
        left: AtomicU64,
    },
}

impl Tickets {
    fn new(model: &dyn Model, part: &LoadPart) -> Self {
        match model.iterations() {
            None => Self::Unlimited,
            Some(Iterations::Shared(all)) => Self::Shared(AtomicU64::new(part.share(all))),
            Some(iterations @ Iterations::PerVu(each)) => {
                let users = part.share(u64::from(model.vus_max()));
                Self::PerUser { each, left: AtomicU64::new(iterations.total(users as u32)) }
            }
        }
    }
}

/// Number of iterations of an open model that are due in all, those of the warm-up included: exactly with even
/// arrivals, on average with those of a Poisson process; `None` if the model is closed.
pub fn arrivals(scenario: &Scenario) -> Option<f64> {
    let curve = models::build(&scenario.model).open()?.curve;
    Some(warmup_rate(&curve) * scenario.warmup.as_secs_f64() + curve.total())
}

impl Schedule {
    /// That of a scenario, with the tickets of a part of the load.
    pub(crate) fn new(scenario: &Scenario, part: &LoadPart) -> Self {
        let model = models::build(&scenario.model);
        let warmup_ns = nanos(scenario.warmup);
        let length_ns = nanos(model.duration().unwrap_or(Duration::MAX));
        Self {
            warmup: scenario.warmup,
            warmup_ns,
            end_ns: warmup_ns + length_ns,
            tickets: Tickets::new(&*model, part),
            used_up: AtomicBool::new(false),
            think_ns: nanos(scenario.think_time.mean()),
            pace_ns: scenario.pace.map(nanos).filter(|pace| *pace > 0),
            open: model.open(),
            model,
        }
    }

    /// The first moment at which nobody begins an iteration any more, as far as time limits them.
    pub(crate) fn end_ns(&self) -> i64 {
        self.end_ns
    }

    /// The most users at any time.
    pub(crate) fn vus_max(&self) -> u32 {
        self.model.vus_max()
    }

    /// Whether iterations are due at times of their own, not when a user is ready.
    pub(crate) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// How many iterations each user may begin after the warm-up, if that is what limits them.
    pub(crate) fn iterations_each(&self) -> Option<u64> {
        if let Tickets::PerUser { each, .. } = self.tickets { Some(each) } else { None }
    }

    /// Users that may be at work at a moment, as far as time limits them.
    pub(crate) fn vus_at(&self, elapsed_ns: i64) -> u32 {
        if elapsed_ns < 0 || elapsed_ns >= self.end_ns {
            0
        } else if elapsed_ns < self.warmup_ns {
            warmup_vus(&*self.model)
        } else {
            self.model.vus_at(Duration::from_nanos((elapsed_ns - self.warmup_ns) as u64))
        }
    }

    /// When the iterations of one part of an open model are due, those of the warm-up first; `None` for a closed model.
    /// The load's own arrivals are counted anew after the warm-up, so that they are exactly as many as planned.
    /// `stream` separates the random numbers of this scenario from those of others.
    pub(crate) fn due(&self, part: Part, seed: u64, stream: u64) -> Option<Chain<Due, Due>> {
        let open = self.open.as_ref()?;
        let arrivals = |curve: RateCurve, start_ns: i64, stage: u64| {
            let number = (2 * stream + stage) * THREADS_MAX as u64 + part.number as u64;
            Due::new(curve, start_ns, open.arrivals, part, Random::new(seed, ARRIVAL_STREAMS + number))
        };
        let warmup = RateCurve::constant(warmup_rate(&open.curve), self.warmup);
        Some(arrivals(warmup, 0, 0).chain(arrivals(open.curve.clone(), self.warmup_ns, 1)))
    }

    /// Whether every iteration there was to begin has begun.
    pub(crate) fn is_used_up(&self) -> bool {
        let left = match &self.tickets {
            Tickets::Unlimited => None,
            Tickets::Shared(left) | Tickets::PerUser { left, .. } => Some(left),
        };
        left.is_some_and(|left| left.load(Ordering::Relaxed) == 0) || self.used_up.load(Ordering::Relaxed)
    }

    /// Records for all threads that nothing is left to send.
    pub(crate) fn use_up(&self) {
        self.used_up.store(true, Ordering::Relaxed);
    }

    /// Takes the right to begin an iteration at a moment; false when there is none left. Those of the warm-up are
    /// free. `begun` is how many counted iterations the user has begun, where [`Schedule::iterations_each`] limits
    /// them.
    pub(crate) fn take_ticket(&self, elapsed_ns: i64, begun: Option<&mut u64>) -> bool {
        if matches!(self.tickets, Tickets::Unlimited) || elapsed_ns < self.warmup_ns {
            return true;
        }
        let take = |left: &AtomicU64| {
            left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
        };
        match (&self.tickets, begun) {
            (Tickets::PerUser { each, left }, Some(begun)) if *begun < *each => {
                *begun += 1;
                take(left)
            }
            (Tickets::PerUser { .. }, _) => false,
            (Tickets::Shared(left), _) => take(left),
            (Tickets::Unlimited, _) => true,
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
    use narrows_model::load::{Arrivals, LoadModel};

    const MS: i64 = 1_000_000;

    fn schedule(model: LoadModel, warmup_ms: u64) -> Schedule {
        let mut plan = plan(model);
        plan.scenarios[0].warmup = Duration::from_millis(warmup_ms);
        Schedule::new(&plan.scenarios[0], &LoadPart::whole(1, 0))
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
        let schedule =
            schedule(LoadModel::Iterations { vus: 2, iterations: Iterations::Shared(3), max_duration: None }, 10);
        assert!((0..10).all(|_| schedule.take_ticket(9 * MS, None)));
        assert!(!schedule.is_used_up());
        let taken: Vec<bool> = (0..5).map(|_| schedule.take_ticket(10 * MS, None)).collect();
        assert_eq!(taken, [true, true, true, false, false]);
        assert!(schedule.is_used_up());
    }

    #[test]
    fn each_user_has_tickets_of_its_own() {
        let schedule =
            schedule(LoadModel::Iterations { vus: 2, iterations: Iterations::PerVu(2), max_duration: None }, 10);
        let mut begun = [0, 0];
        assert!(schedule.take_ticket(9 * MS, Some(&mut begun[0])));
        assert_eq!((begun, schedule.iterations_each()), ([0, 0], Some(2)));
        let taken: Vec<bool> = [0, 0, 0, 1].map(|user| schedule.take_ticket(10 * MS, Some(&mut begun[user]))).to_vec();
        assert_eq!(taken, [true, true, false, true]);
        assert!(!schedule.is_used_up());
        assert!(schedule.take_ticket(10 * MS, Some(&mut begun[1])) && schedule.is_used_up());
    }

    #[test]
    fn a_scenario_without_data_is_used_up_whatever_its_tickets() {
        let schedule = schedule(LoadModel::ConstantVus { vus: 2, duration: Duration::from_secs(1) }, 0);
        assert!(!schedule.is_used_up());
        schedule.use_up();
        assert!(schedule.is_used_up());
    }

    #[test]
    fn an_open_model_warms_up_at_its_first_level_and_then_sends_exactly_what_was_planned() {
        let model = |arrivals| LoadModel::ConstantArrivalRate {
            rate: 100.0,
            duration: Duration::from_millis(95),
            vus_max: 3,
            arrivals,
        };
        let even = schedule(model(Arrivals::Uniform), 44);
        let part = |number, of| Part { number, of };
        let due: Vec<i64> = even.due(part(0, 1), 1, 0).unwrap().collect();
        let warm = due.iter().filter(|due_ns| **due_ns < 44 * MS).count();
        assert_eq!((warm, due.len() - warm, due[warm]), (4, 9, 49 * MS));
        let mut parts: Vec<i64> = (0..3).flat_map(|number| even.due(part(number, 3), 1, 0).unwrap()).collect();
        parts.sort_unstable();
        assert_eq!(parts, due);
        let random = schedule(model(Arrivals::Poisson), 44);
        let drawn = |stream| random.due(part(0, 1), 1, stream).unwrap().collect::<Vec<i64>>();
        assert!(drawn(0) == drawn(0) && drawn(0) != drawn(1));
        assert_eq!((even.is_open(), even.vus_at(0), even.vus_at(139 * MS)), (true, 3, 0));
        let closed = schedule(LoadModel::ConstantVus { vus: 1, duration: Duration::from_secs(1) }, 0);
        assert!(closed.due(part(0, 1), 1, 0).is_none());
    }
}
