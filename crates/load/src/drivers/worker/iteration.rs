//! The beginning and the end of a user's iterations: who may begin one, and what a user does after it.
//!
//! When a scenario's time is up, requests under way are completed but no further step begins, in closed and in open
//! models alike. When only its iterations are used up, those that have begun are walked to their end.

use super::Progress;
use super::Worker;
use super::user::Activity;
use crate::drivers::transport::Transport;

impl<T: Transport> Worker<'_, T> {
    /// Whether a user may begin an iteration of its own accord.
    pub(super) fn may_begin(&self, slot: usize, at_ns: i64) -> bool {
        let population = &self.populations[self.users[slot].scenario];
        self.progress == Progress::Sending && population.is_active(slot) && at_ns < population.end_ns()
    }

    /// Whether a user may begin the next step of its iteration.
    pub(super) fn may_go_on(&self, slot: usize, at_ns: i64) -> bool {
        let population = &self.populations[self.users[slot].scenario];
        self.progress == Progress::Sending && population.is_active(slot) && at_ns < population.steps_end_ns()
    }

    /// Takes the right to begin an iteration. False when there is none left for this user, which then rests.
    pub(super) fn take_ticket(&mut self, slot: usize, begun_ns: i64) -> bool {
        let scenario = self.users[slot].scenario;
        let begun = self.populations[scenario].begun_of(slot);
        if self.shared.schedules[scenario].take_ticket(begun_ns - self.shared.start_ns(), begun) {
            return true;
        }
        // Time to see whether this scenario is over.
        self.next_tick_ns = begun_ns;
        self.rest(slot);
        false
    }

    /// Gives up an iteration that has not sent anything, because there is no data left for it, and ends its scenario.
    pub(super) fn run_dry(&mut self, slot: usize, begun_ns: i64) {
        let scenario = self.users[slot].scenario;
        self.shared.schedules[scenario].use_up();
        self.next_tick_ns = begun_ns;
        if self.populations[scenario].arrivals.is_some() {
            self.recorder.dropped(self.shared.flows.first_row(scenario), 1);
        }
        self.rest(slot);
    }

    /// Decides what a user does whose iteration has just ended.
    pub(super) fn end_iteration(&mut self, slot: usize, done_ns: i64) {
        if self.populations[self.users[slot].scenario].arrivals.is_some() {
            return self.end_arrival(slot, done_ns);
        }
        if !self.may_begin(slot, done_ns) {
            return self.rest(slot);
        }
        let due_ns = self.due_ns(slot, done_ns);
        if due_ns > done_ns {
            self.wait_until(slot, due_ns);
        } else {
            self.begin(slot, due_ns);
        }
    }

    /// A pace is a ticker that holds one tick: a user that missed several begins at once for one of them, and the
    /// others are counted and gone.
    fn due_ns(&mut self, slot: usize, done_ns: i64) -> i64 {
        let user = &mut self.users[slot];
        let think_ns = self.shared.flows.steps()[user.position.row].think_ns(&mut self.random);
        let ready_ns = done_ns + think_ns.max(user.back_off_ns);
        let Some(pace_ns) = self.shared.schedules[user.scenario].pace_ns else { return ready_ns };
        let tick_ns = user.tick_ns + pace_ns;
        let missed = (ready_ns - tick_ns).max(0) / pace_ns;
        user.tick_ns = tick_ns + missed * pace_ns;
        self.recorder.totals.ticks_missed += missed as u64;
        ready_ns.max(tick_ns)
    }

    /// A user with a connection takes the oldest arrival at once. One without leaves that to the loop, lest a target
    /// that refuses every connection be called again and again from within.
    fn end_arrival(&mut self, slot: usize, done_ns: i64) {
        let user = &self.users[slot];
        let population = &mut self.populations[user.scenario];
        let may_begin = self.progress == Progress::Sending && done_ns < population.end_ns();
        let Some(arrivals) = &mut population.arrivals else { return };
        if may_begin
            && user.is_connected
            && let Some(due_ns) = arrivals.take_waiting()
        {
            return self.begin(slot, due_ns);
        }
        self.rest(slot);
        self.next_arrival_ns = self.next_arrival_ns.min(self.populations[self.users[slot].scenario].next_arrival_ns());
    }

    /// Gives a user the time of its next request.
    pub(super) fn wait_until(&mut self, slot: usize, due_ns: i64) {
        self.users[slot].activity = Activity::Waiting;
        self.timers.push(due_ns, slot);
    }

    /// Lets a user do nothing until the load has room for it. In an open model it keeps its connection for another
    /// arrival.
    pub(super) fn rest(&mut self, slot: usize) {
        let user = &mut self.users[slot];
        user.activity = Activity::Resting;
        user.leave_iteration();
        match &mut self.populations[user.scenario].arrivals {
            Some(arrivals) => arrivals.release(slot, user),
            None => self.disconnect(slot),
        }
    }

    /// Begins the arrivals of a scenario that are due before a moment, as far as users are free.
    pub(super) fn arrive(&mut self, scenario: usize, until_ns: i64) {
        self.admit(scenario, until_ns);
        loop {
            let Some(arrivals) = &mut self.populations[scenario].arrivals else { return };
            let Some((slot, due_ns)) = arrivals.begin(&self.users) else { break };
            self.begin(slot, due_ns);
            self.apply_events();
        }
        let Some(arrivals) = &mut self.populations[scenario].arrivals else { return };
        let late = arrivals.found_late();
        self.recorder.late(self.shared.flows.first_row(scenario), late);
    }

    /// Counts the arrivals of a scenario that are due before a moment. Called at the end of every second, so that each
    /// counts in the second in which it was due; that it is late or dropped counts in the second in which that is
    /// found, or in which the load ended.
    pub(super) fn admit(&mut self, scenario: usize, until_ns: i64) {
        let population = &mut self.populations[scenario];
        let until_ns = until_ns.min(population.end_ns());
        let Some(arrivals) = &mut population.arrivals else { return };
        let admitted = arrivals.admit(until_ns);
        let row = self.shared.flows.first_row(scenario);
        self.recorder.due(row, admitted.due);
        self.recorder.dropped(row, admitted.dropped);
    }

    /// Ends the arrivals of a scenario whose time is up: those that were due before and find a user begin, the others
    /// are dropped.
    pub(super) fn end_arrivals(&mut self, scenario: usize) {
        self.arrive(scenario, i64::MAX);
        let Some(arrivals) = &mut self.populations[scenario].arrivals else { return };
        let given_up = arrivals.end();
        self.recorder.given_up(self.shared.flows.first_row(scenario), given_up);
    }
}
