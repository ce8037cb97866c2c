//! The users of one scenario that live on one thread: user `i` lives on thread `i` modulo the number of threads.
//!
//! A user of a closed model may send while its number is below the scenario's number of users. One that is above it
//! ends its request, closes its connection and rests. Users of an open model rest until an arrival takes them.

use super::arrivals::Arrivals;
use super::free::Free;
use super::user::{Activity, User};
use super::{LoadContext, Worker};
use crate::arrivals::Part;
use crate::drivers::transport::Transport;

/// See the module.
pub(super) struct Population {
    scenario: usize,
    /// Where its users begin among the thread's.
    first_slot: usize,
    owned: usize,
    /// How many of them may send, from the first on.
    active: usize,
    /// Users of the scenario on all threads when last looked at.
    vus: u32,
    /// The first moment at which no iteration begins any more, in Unix nanoseconds: its schedule's end, or earlier when
    /// its iterations are used up or the load has to stop.
    end_ns: i64,
    /// The same for steps of iterations that have begun: its schedule's end, or earlier when the load has to stop.
    steps_end_ns: i64,
    /// How many iterations each user has begun, where that is limited.
    begun: Vec<u64>,
    /// Iterations that are due; `None` for a closed model.
    pub(super) arrivals: Option<Arrivals>,
}

impl Population {
    /// Adds a thread's users of a scenario to `users`, all at rest.
    pub(super) fn settle(shared: &LoadContext<'_>, thread: usize, scenario: usize, users: &mut Vec<User>) -> Self {
        let schedule = &shared.schedules[scenario];
        let first_slot = users.len();
        let vus = thread as u32..schedule.vus_max();
        let targets = &shared.plan.targets;
        users.extend(
            vus.step_by(shared.part.of).map(|vu| User::new(scenario, vu, targets[vu as usize % targets.len()])),
        );
        let owned = users.len() - first_slot;
        let end_ns = shared.start_ns() + schedule.end_ns();
        // Threads without a user of the scenario have no arrivals either.
        let part = Part { number: thread, of: shared.part.of.min(schedule.vus_max() as usize) };
        let free = Free::new(first_slot..users.len(), period(targets.len(), shared.part.of));
        let times_ns = (shared.start_ns(), shared.begin_ns);
        let arrivals = Arrivals::new(schedule, times_ns, part, shared.plan.seed, scenario, free);
        Self {
            scenario,
            first_slot,
            owned,
            active: 0,
            vus: 0,
            end_ns,
            steps_end_ns: end_ns,
            begun: schedule.iterations_each().map_or_else(Vec::new, |_| vec![0; owned]),
            arrivals: arrivals.filter(|_| owned > 0),
        }
    }

    /// When no iteration begins any more, as far as known.
    pub(super) fn end_ns(&self) -> i64 {
        self.end_ns
    }

    /// Whether arrivals end after the beginning of an interval of time and not after its end, and have not been ended yet.
    pub(super) fn arrivals_end_within(&self, from_ns: i64, to_ns: i64) -> bool {
        let is_under_way = self.arrivals.as_ref().is_some_and(|arrivals| arrivals.at_end().is_none());
        is_under_way && from_ns < self.end_ns && self.end_ns <= to_ns
    }

    /// When no step begins any more, as far as known.
    pub(super) fn steps_end_ns(&self) -> i64 {
        self.steps_end_ns
    }

    /// Lets no iteration begin from a moment on.
    pub(super) fn end_at(&mut self, now: i64) {
        self.end_ns = self.end_ns.min(now);
    }

    /// Lets no step begin from a moment on.
    pub(super) fn stop_at(&mut self, now: i64) {
        self.end_at(now);
        self.steps_end_ns = self.steps_end_ns.min(now);
    }

    /// Whether a user of this population may be at work.
    pub(super) fn is_active(&self, slot: usize) -> bool {
        slot - self.first_slot < self.active
    }

    /// How many iterations a user has begun, to count on, where that is limited.
    pub(super) fn begun_of(&mut self, slot: usize) -> Option<&mut u64> {
        self.begun.get_mut(slot - self.first_slot)
    }

    /// When there is something to do for an open model.
    pub(super) fn next_arrival_ns(&self) -> i64 {
        self.arrivals.as_ref().map_or(i64::MAX, Arrivals::next_ns)
    }

    /// Whether an iteration has steps to go although no other begins. Costs a look at every user.
    pub(super) fn has_steps_left(&self, now: i64, users: &[User]) -> bool {
        now < self.steps_end_ns && self.own(users).iter().any(User::has_steps_left)
    }

    fn own<'users>(&self, users: &'users [User]) -> &'users [User] {
        &users[self.first_slot..self.first_slot + self.owned]
    }

    /// Users that this thread adds to the scenario's at the end of an interval, or at the scenario's own end if
    /// that comes earlier: those that may send or are still at it and, in an open model, those at work.
    pub(super) fn vus_between(
        &self,
        shared: &LoadContext<'_>,
        thread: usize,
        from_ns: i64,
        to_ns: i64,
        users: &[User],
    ) -> u32 {
        if let Some(arrivals) = &self.arrivals {
            let ends_within = from_ns < self.end_ns && self.end_ns <= to_ns;
            return arrivals.at_end().filter(|_| ends_within).unwrap_or_else(|| arrivals.at_work());
        }
        let schedule = &shared.schedules[self.scenario];
        let last_ns = to_ns.min(self.end_ns) - 1;
        let vus = if from_ns >= self.end_ns { 0 } else { schedule.vus_at(last_ns - shared.start_ns()) };
        let active = share(vus, thread, shared.part.of).min(self.owned);
        let each = schedule.iterations_each();
        let own = self.own(users);
        let is_done = |at: &usize, each: u64| self.begun[*at] >= each && !own[*at].is_at_work();
        let done = each.map_or(0, |each| (0..active).filter(|at| is_done(at, each)).count());
        (active - done + own[active..].iter().filter(|user| user.is_busy()).count()) as u32
    }
}

/// After how many of a thread's users their targets come again: user `i` has target `i` modulo their number.
fn period(targets: usize, threads: usize) -> usize {
    (1..targets).find(|users| (users * threads).is_multiple_of(targets)).unwrap_or(targets)
}

/// How many of the first `vus` users live on a thread.
fn share(vus: u32, thread: usize, threads: usize) -> usize {
    (vus as usize).saturating_sub(thread).div_ceil(threads)
}

impl<T: Transport> Worker<'_, T> {
    /// Lets a scenario have `vus` users from a moment on. Those who begin together do not begin in step.
    pub(super) fn populate(&mut self, index: usize, vus: u32, begin_ns: i64) {
        let is_open = self.shared.schedules[index].is_open();
        let population = &mut self.populations[index];
        let before = std::mem::replace(&mut population.vus, vus);
        let active = share(vus, self.thread, self.shared.part.of);
        let newcomers = population.active..active;
        population.active = active;
        if is_open {
            return;
        }
        let first_slot = population.first_slot;
        let together = f64::from(vus.saturating_sub(before));
        let spread_ns = if together > 1.0 { self.shared.schedules[index].spread_ns() } else { 0 };
        for slot in newcomers.map(|user| first_slot + user) {
            let rank = f64::from(self.users[slot].vu.saturating_sub(before)) + self.random.unit();
            let due_ns = begin_ns + (spread_ns as f64 * (rank / together)) as i64;
            if self.users[slot].activity == Activity::Resting {
                self.users[slot].tick_ns = due_ns;
                self.wait_until(slot, due_ns);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{period, share};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_user_lives_on_one_thread(vus in 0u32..1_000, threads in 1usize..20) {
            let shares: Vec<usize> = (0..threads).map(|thread| share(vus, thread, threads)).collect();
            prop_assert_eq!(shares.iter().sum::<usize>(), vus as usize);
            for (thread, share) in shares.iter().enumerate() {
                prop_assert_eq!(*share, (0..vus as usize).filter(|vu| vu % threads == thread).count());
            }
        }

        #[test]
        fn targets_come_again_after_a_period(targets in 1usize..50, threads in 1usize..20, thread in 0usize..20) {
            let period = period(targets, threads);
            let of: Vec<usize> = (0..200).map(|user| (thread + user * threads) % targets).collect();
            prop_assert!((period..200).all(|user| of[user] == of[user - period]));
            let others: std::collections::BTreeSet<usize> = of[..period].iter().copied().collect();
            prop_assert_eq!(others.len(), period, "each target once");
        }
    }
}
