//! The arrivals of one open scenario that belong to one thread.
//!
//! When all users are busy an arrival waits its turn. Arrivals are spread over threads before the load, so one may wait
//! here while another thread has a user to spare.
//!
//! Nothing vanishes: what is due begins or is counted as dropped.

use std::collections::VecDeque;
use std::iter::Chain;

use crate::arrivals::{Due, Part};
use crate::schedule::Schedule;

use super::free::Free;
use super::user::User;

/// The most arrivals that wait on one thread for users of one scenario.
const WAITING_MAX: usize = 100_000;

/// See the module. Times are Unix nanoseconds.
pub(super) struct Arrivals {
    due: Chain<Due, Due>,
    start_ns: i64,
    /// The first that is not due yet; `i64::MAX` when none is left.
    next_ns: i64,
    /// Arrivals that were due and have not begun, oldest first.
    waiting: VecDeque<i64>,
    /// How many of them, from the end, no user was looked for yet.
    fresh: usize,
    free: Free,
    /// Users within an iteration.
    at_work: u32,
    /// How many of them there were when the load ended.
    at_end: Option<u32>,
}

/// Iterations that came due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct IterationCounts {
    pub(super) due: u64,
    /// Of those, the ones for which there was no room to wait.
    pub(super) dropped: u64,
}

impl Arrivals {
    /// A thread's part of a scenario's arrivals from an instant on; `None` for a closed model.
    pub(super) fn new(
        schedule: &Schedule,
        (start_ns, begin_ns): (i64, i64),
        part: Part,
        seed: u64,
        scenario: usize,
        free: Free,
    ) -> Option<Self> {
        let due = schedule.due(part, seed, scenario as u64)?;
        let mut arrivals =
            Self { due, start_ns, next_ns: 0, waiting: VecDeque::new(), fresh: 0, free, at_work: 0, at_end: None };
        arrivals.advance();
        while arrivals.next_ns < begin_ns {
            arrivals.advance();
        }
        Some(arrivals)
    }

    fn advance(&mut self) {
        self.next_ns = self.due.next().map_or(i64::MAX, |due_ns| self.start_ns.saturating_add(due_ns));
    }

    /// When there is something to do: at the next arrival, or at once when one waits and a user is free.
    pub(super) fn next_ns(&self) -> i64 {
        if self.waiting.is_empty() || self.free.is_empty() { self.next_ns } else { i64::MIN }
    }

    /// Lets those wait that are due before a moment.
    pub(super) fn admit(&mut self, until_ns: i64) -> IterationCounts {
        let mut admitted = IterationCounts::default();
        while self.next_ns < until_ns {
            admitted.due += 1;
            if self.waiting.len() < WAITING_MAX {
                self.waiting.push_back(self.next_ns);
                self.fresh += 1;
            } else {
                admitted.dropped += 1;
            }
            self.advance();
        }
        admitted
    }

    /// The oldest arrival with a free user for it, who is at work from now on.
    pub(super) fn begin(&mut self, users: &[User]) -> Option<(usize, i64)> {
        if self.waiting.is_empty() {
            return None;
        }
        let slot = self.free.take(users)?;
        self.at_work += 1;
        Some((slot, self.take_waiting()?))
    }

    /// The oldest arrival, for a user that is at work already.
    pub(super) fn take_waiting(&mut self) -> Option<i64> {
        let due_ns = self.waiting.pop_front();
        self.fresh = self.fresh.min(self.waiting.len());
        due_ns
    }

    /// How many of those that wait have been found to be late since the last time.
    pub(super) fn found_late(&mut self) -> u64 {
        std::mem::take(&mut self.fresh) as u64
    }

    /// Takes back a user whose iteration is over.
    pub(super) fn release(&mut self, slot: usize, user: &User) {
        self.at_work -= 1;
        self.free.give(slot, user);
    }

    /// Users within an iteration.
    pub(super) fn at_work(&self) -> u32 {
        self.at_work
    }

    /// Users that were within an iteration when the load ended; none before.
    pub(super) fn at_end(&self) -> Option<u32> {
        self.at_end
    }

    /// Lets nothing be due any more and gives up those that wait; returns how many. Once it is over, this does nothing.
    pub(super) fn end(&mut self) -> u64 {
        self.next_ns = i64::MAX;
        self.fresh = 0;
        self.at_end.get_or_insert(self.at_work);
        std::mem::take(&mut self.waiting).len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::part::LoadPart;
    use crate::testing::plan;
    use narrows_model::load::{Arrivals as Spacing, LoadModel};
    use std::time::Duration;

    const S: i64 = 1_000_000_000;

    fn arrivals(rate: f64, seconds: u64, slots: usize) -> Arrivals {
        let duration = Duration::from_secs(seconds);
        let plan = plan(LoadModel::ConstantArrivalRate { rate, duration, vus_max: 9, arrivals: Spacing::Uniform });
        let schedule = Schedule::new(&plan.scenarios[0], &LoadPart::whole(1, S));
        Arrivals::new(&schedule, (S, S), Part { number: 0, of: 1 }, 1, 0, Free::new(0..slots, 1)).unwrap()
    }

    fn users(n: usize) -> Vec<User> {
        (0..n).map(|vu| User::new(0, vu as u32, ([127, 0, 0, 1], 9).into())).collect()
    }

    #[test]
    fn arrivals_take_free_users_in_turn_and_wait_when_there_is_none() {
        let (mut arrivals, users) = (arrivals(1.0, 10, 2), users(2));
        assert_eq!((arrivals.next_ns(), arrivals.admit(S + S / 2)), (S + S / 2, IterationCounts::default()));
        assert_eq!(arrivals.admit(5 * S), IterationCounts { due: 4, dropped: 0 });
        assert_eq!(arrivals.next_ns(), i64::MIN);
        assert_eq!(arrivals.begin(&users), Some((0, S + S / 2)));
        assert_eq!(arrivals.begin(&users), Some((1, 2 * S + S / 2)));
        assert_eq!((arrivals.begin(&users), arrivals.at_work(), arrivals.found_late()), (None, 2, 2));
        assert_eq!((arrivals.found_late(), arrivals.next_ns()), (0, 5 * S + S / 2));
        arrivals.release(1, &users[1]);
        assert_eq!((arrivals.next_ns(), arrivals.begin(&users)), (i64::MIN, Some((1, 3 * S + S / 2))));
        assert_eq!((arrivals.take_waiting(), arrivals.take_waiting()), (Some(4 * S + S / 2), None));
        assert_eq!((arrivals.admit(100 * S).due, arrivals.end(), arrivals.next_ns()), (6, 6, i64::MAX));
        arrivals.release(0, &users[0]);
        assert_eq!((arrivals.at_end(), arrivals.at_work()), (Some(2), 1));
    }

    #[test]
    fn one_that_begins_before_users_are_counted_out_is_not_late() {
        let (mut arrivals, users) = (arrivals(1.0, 10, 1), users(1));
        arrivals.admit(4 * S);
        assert!(arrivals.begin(&users).is_some() && arrivals.take_waiting().is_some());
        assert_eq!(arrivals.found_late(), 1);
    }

    #[test]
    fn what_finds_no_room_to_wait_is_dropped() {
        let mut arrivals = arrivals(1e6, 1, 1);
        assert_eq!(arrivals.admit(3 * S), IterationCounts { due: 1_000_000, dropped: 900_000 });
        assert_eq!(arrivals.end(), 100_000);
    }
}
