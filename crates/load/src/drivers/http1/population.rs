//! The users of one scenario that live on one thread: user `i` lives on thread `i` modulo the number of threads.
//!
//! A user may send while its number is below the scenario's number of users. One that is above it ends its request,
//! closes its connection and rests.

use super::user::{Activity, User};
use super::{Progress, Shared, Worker};

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
    /// When the scenario is over, in Unix nanoseconds: its schedule's end, or earlier when its requests are used up or
    /// the load is told to stop.
    end_ns: i64,
}

impl Population {
    /// Adds a thread's users of a scenario to `users`, all at rest.
    pub(super) fn settle(shared: &Shared<'_>, thread: usize, scenario: usize, users: &mut Vec<User>) -> Self {
        let schedule = &shared.schedules[scenario];
        let first_slot = users.len();
        let vus = thread as u32..schedule.vus_max();
        let targets = &shared.plan.targets;
        users.extend(
            vus.step_by(shared.threads).map(|vu| User::new(scenario, vu, targets[vu as usize % targets.len()])),
        );
        let end_ns = shared.start_ns + schedule.end_ns();
        Self { scenario, first_slot, owned: users.len() - first_slot, active: 0, vus: 0, end_ns }
    }

    /// When the scenario is over, as far as known.
    pub(super) fn end_ns(&self) -> i64 {
        self.end_ns
    }

    /// Ends the scenario at a moment, unless it is over already.
    pub(super) fn end_at(&mut self, now: i64) {
        self.end_ns = self.end_ns.min(now);
    }

    /// Users of the scenario on all threads at the end of a stretch of time, or at its own end if that comes earlier;
    /// 0 when it was over before.
    pub(super) fn vus_between(&self, shared: &Shared<'_>, from_ns: i64, to_ns: i64) -> u32 {
        if from_ns >= self.end_ns {
            return 0;
        }
        let last_ns = to_ns.min(self.end_ns) - 1;
        shared.schedules[self.scenario].vus_at(last_ns - shared.start_ns)
    }

    /// How many of this thread's users may send, or are still at it, when `vus` users may send in all.
    pub(super) fn active_or_busy(&self, shared: &Shared<'_>, thread: usize, vus: u32, users: &[User]) -> u32 {
        let active = share(vus, thread, shared.threads).min(self.owned);
        let others = &users[self.first_slot + active..self.first_slot + self.owned];
        (active + others.iter().filter(|user| user.is_busy()).count()) as u32
    }
}

/// How many of the first `vus` users live on a thread.
fn share(vus: u32, thread: usize, threads: usize) -> usize {
    (vus as usize).saturating_sub(thread).div_ceil(threads)
}

impl Worker<'_> {
    /// Lets a scenario have `vus` users from a moment on. Those who begin together do not begin in step.
    pub(super) fn populate(&mut self, index: usize, vus: u32, begin_ns: i64) {
        let population = &mut self.populations[index];
        let before = std::mem::replace(&mut population.vus, vus);
        let active = share(vus, self.thread, self.shared.threads);
        let newcomers = population.active..active;
        population.active = active;
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

    /// Whether a user may begin a request at a moment.
    pub(super) fn may_send(&self, slot: usize, at_ns: i64) -> bool {
        let population = &self.populations[self.users[slot].scenario];
        self.progress == Progress::Sending
            && slot - population.first_slot < population.active
            && at_ns < population.end_ns
    }

    /// Gives a user the time of its next request.
    pub(super) fn wait_until(&mut self, slot: usize, due_ns: i64) {
        self.users[slot].activity = Activity::Waiting;
        self.timers.push(due_ns, slot);
    }

    /// Lets a user do nothing until the load has room for it.
    pub(super) fn rest(&mut self, slot: usize) {
        self.users[slot].activity = Activity::Resting;
        self.disconnect(slot);
    }
}

#[cfg(test)]
mod tests {
    use super::share;
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
    }
}
