//! One load thread: it owns its users, decides who sends what when, and counts what comes of it.
//!
//! The same for every protocol: a [`Transport`] sends and receives. It is a type parameter, so that the hot path has no
//! call that is looked up at run time. Threads share nothing per request but the counters that a plan asks for. In the
//! steady state a request allocates nothing here.
//!
//! A turn of the loop reads the clock, begins the requests whose time has come, waits for the transport or for the next
//! time, whichever is first, and applies the transport's events to users. Nothing but the worker changes a user. Events
//! are applied in order and before the clock is read again, so each counts in the second in which it happened.
//!
//! Not here: what responses mean beyond their status, which is in [`crate::session`]. Names are resolved by whoever
//! makes the plan.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use narrows_model::load::{ErrorKind, LoadPlan};
use rustix::thread::set_current_timer_slack;
use rustix::time::{ClockId, clock_gettime};

use crate::clock::{Clock, nanos};
use crate::data::Sources;
use crate::drivers::transport::Transport;
use crate::flows::Flows;
use crate::outcome::ThreadUse;
use crate::part::LoadPart;
use crate::random::Random;
use crate::recorder::{Cause, Recorder, ThreadTotals};
use crate::request::Scratch;
use crate::schedule::Schedule;
use crate::session::Decoder;

mod arrivals;
mod deadlines;
mod events;
mod exchange;
mod free;
mod iteration;
mod population;
#[cfg(test)]
mod tests;
mod timers;
mod user;

use deadlines::Deadlines;
use population::Population;
use timers::Timers;
use user::User;

/// The number of users, the end of the load and the wish to stop are looked at this often.
const TICK_NS: i64 = 20_000_000;
/// After a wish to stop, the load waits for responses no longer than this.
const STOP_DRAIN: Duration = Duration::from_secs(1);
const TIMED_OUT: Cause = Cause::Text("no complete response in time");
/// Timeouts are looked for no more often than this.
const DEADLINE_STEP_NS: i64 = 1_000_000;

/// State that the threads of a part of a load share.
pub(crate) struct LoadContext<'run> {
    pub(crate) plan: &'run LoadPlan,
    pub(crate) clock: Clock,
    pub(crate) part: LoadPart,
    /// The beginning of the part's first second.
    pub(crate) begin_ns: i64,
    pub(crate) sources: &'run Sources<'run>,
    pub(crate) flows: &'run Flows,
    /// One per scenario, in the plan's order.
    pub(crate) schedules: &'run [Schedule],
    /// The caller's wish to stop.
    pub(crate) stop: &'run AtomicBool,
    /// Nobody listens to the results any more, or one of the threads failed.
    pub(crate) deserted: &'run AtomicBool,
}

impl LoadContext<'_> {
    /// The load's first instant.
    pub(crate) fn start_ns(&self) -> i64 {
        self.part.start_ns
    }

    /// The address that a user connects from; `None` if the kernel chooses.
    pub(crate) fn client_address(&self, vu: u32) -> Option<IpAddr> {
        let all = &self.plan.client_addresses;
        all.get(vu as usize % all.len().max(1)).copied()
    }
}

/// Results of a thread after its load.
#[derive(Debug)]
pub(crate) struct ThreadReport {
    pub(crate) totals: ThreadTotals,
    pub(crate) usage: ThreadUse,
    /// In Unix nanoseconds.
    pub(crate) ended_ns: i64,
    /// When nothing was due any more in any open model, in Unix nanoseconds; none without such a model.
    pub(crate) arrivals_ended_ns: Option<i64>,
    /// Which of the plan's client addresses connections were opened from.
    pub(crate) client_addresses: BTreeSet<IpAddr>,
}

/// How far the load is, as one thread sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// Users send.
    Sending,
    /// Nobody sends any more; the load waits for responses until then.
    Draining { until_ns: i64 },
    /// The same, because the load has to stop.
    Stopping { until_ns: i64 },
}

/// See the module.
pub(crate) struct Worker<'run, T: Transport> {
    shared: &'run LoadContext<'run>,
    thread: usize,
    transport: T,
    users: Vec<User>,
    populations: Vec<Population>,
    timers: Timers,
    recorder: Recorder<'run>,
    random: Random,
    scratch: Scratch,
    decoder: Decoder,
    progress: Progress,
    busy: usize,
    next_tick_ns: i64,
    deadlines: Deadlines,
    /// Timeouts are not looked for before then.
    next_expiry_ns: i64,
    /// Nothing is due before then in any open model.
    next_arrival_ns: i64,
    timeout_ns: i64,
}

impl<'run, T: Transport> Worker<'run, T> {
    /// Prepares a thread's users.
    pub(crate) fn new(shared: &'run LoadContext<'run>, thread: usize, recorder: Recorder<'run>, transport: T) -> Self {
        let mut users = Vec::new();
        let populations = (0..shared.schedules.len()).map(|s| Population::settle(shared, thread, s, &mut users));
        let populations: Vec<Population> = populations.collect();
        users.iter_mut().for_each(|user| user.session = shared.flows.new_session(user.scenario));
        Self {
            shared,
            thread,
            transport,
            timers: Timers::with_capacity(users.len()),
            deadlines: Deadlines::new(users.len()),
            next_arrival_ns: populations.iter().map(Population::next_arrival_ns).min().unwrap_or(i64::MAX),
            users,
            populations,
            recorder,
            random: Random::new(shared.plan.seed, 2 * thread as u64),
            scratch: Scratch::default(),
            decoder: Decoder::default(),
            progress: Progress::Sending,
            busy: 0,
            next_tick_ns: shared.begin_ns,
            next_expiry_ns: 0,
            timeout_ns: nanos(shared.plan.timeout),
        }
    }

    /// Runs this thread's part of the load to its end.
    pub(crate) fn run(mut self) -> ThreadReport {
        let begun_ns = self.shared.clock.now_ns().max(self.shared.begin_ns);
        let cpu_before = thread_cpu();
        // Without this the kernel lets every timer be 50 µs late; where it refuses, they are.
        let _ = set_current_timer_slack(std::num::NonZeroU64::new(1));
        loop {
            let now = self.now();
            if now >= self.next_tick_ns {
                self.tick(now);
            }
            if now >= self.expiry_ns() {
                self.expire(now);
            }
            if self.progress != Progress::Sending && (self.busy == 0 || now >= self.drained_ns()) {
                break;
            }
            let now = self.fire(now);
            let wake_ns = self.wake_ns();
            self.transport.wait(wake_ns, wake_ns.saturating_sub(now));
            self.apply_events();
        }
        self.finish(begun_ns, cpu_before)
    }

    /// When there is something to do even if the transport has no event.
    fn wake_ns(&self) -> i64 {
        let begins_ns = match self.progress {
            Progress::Sending => self.timers.next_ns().min(self.next_arrival_ns),
            Progress::Draining { .. } | Progress::Stopping { .. } => i64::MAX,
        };
        self.next_tick_ns.min(self.expiry_ns()).min(self.drained_ns()).min(begins_ns)
    }

    /// When to look for requests whose time is up.
    fn expiry_ns(&self) -> i64 {
        self.deadlines.next_ns().max(self.next_expiry_ns)
    }

    fn drained_ns(&self) -> i64 {
        match self.progress {
            Progress::Sending => i64::MAX,
            Progress::Draining { until_ns } | Progress::Stopping { until_ns } => until_ns,
        }
    }

    /// The time, after closing the seconds that are over.
    fn now(&mut self) -> i64 {
        let now = self.shared.clock.now_ns();
        self.close_seconds(now);
        now
    }

    /// Closes the seconds that are over at a moment.
    fn close_seconds(&mut self, now: i64) {
        while now >= self.recorder.second_end_ns() {
            self.close_second();
        }
    }

    fn close_second(&mut self) {
        let (from_ns, to_ns) = (self.recorder.second_start_ns(), self.recorder.second_end_ns());
        let mut of_rows = vec![0; self.shared.flows.steps().len()];
        for scenario in 0..self.populations.len() {
            self.admit(scenario, to_ns);
            let population = &self.populations[scenario];
            of_rows[self.shared.flows.first_row(scenario)] =
                population.vus_between(self.shared, self.thread, from_ns, to_ns, &self.users);
        }
        if self.populations.iter().any(|population| population.arrivals_end_within(from_ns, to_ns)) {
            self.recorder.hold_second(&of_rows);
        } else {
            self.recorder.close_second(&of_rows);
        }
    }

    fn is_first_tick(&self) -> bool {
        self.next_tick_ns == self.shared.begin_ns
    }

    /// Follows the number of users and sees whether the load is over.
    fn tick(&mut self, now: i64) {
        let elapsed_ns = now - self.shared.start_ns();
        // The first users are due at the beginning, however late the thread is.
        let begin_ns = if self.is_first_tick() { self.shared.begin_ns } else { now };
        self.next_tick_ns = now + TICK_NS;
        let stop = self.shared.stop.load(Ordering::Relaxed) || self.shared.deserted.load(Ordering::Relaxed);
        let mut over = true;
        for index in 0..self.populations.len() {
            let schedule = &self.shared.schedules[index];
            let population = &mut self.populations[index];
            if stop {
                population.stop_at(now);
            } else if schedule.is_used_up() {
                population.end_at(now);
            }
            let end_ns = population.end_ns();
            if now < end_ns {
                self.next_tick_ns = self.next_tick_ns.min(end_ns);
            } else if self.progress == Progress::Sending {
                self.end_arrivals(index);
            }
            let population = &self.populations[index];
            over &= now >= end_ns && !population.has_steps_left(now, &self.users);
            let vus = if now < population.steps_end_ns() { schedule.vus_at(elapsed_ns) } else { 0 };
            self.populate(index, vus, begin_ns);
        }
        if stop && !matches!(self.progress, Progress::Stopping { .. }) {
            let drain_ns = nanos(self.shared.plan.drain.min(STOP_DRAIN));
            self.progress = Progress::Stopping { until_ns: self.drained_ns().min(now + drain_ns) };
        } else if over && self.progress == Progress::Sending {
            self.progress = Progress::Draining { until_ns: now + nanos(self.shared.plan.drain) };
        }
    }

    /// Begins the requests whose time has come, and returns the current time.
    fn fire(&mut self, now: i64) -> i64 {
        if self.progress != Progress::Sending || self.timers.next_ns().min(self.next_arrival_ns) > now {
            return now;
        }
        while let Some((due_ns, slot)) = self.timers.pop(now) {
            let is_within = self.users[slot].is_within_iteration();
            if if is_within { self.may_go_on(slot, now) } else { self.may_begin(slot, now) } {
                self.begin(slot, due_ns);
                self.apply_events();
            } else {
                self.rest(slot);
            }
        }
        if self.next_arrival_ns <= now {
            for scenario in 0..self.populations.len() {
                self.arrive(scenario, now + 1);
            }
            self.next_arrival_ns = self.populations.iter().map(Population::next_arrival_ns).min().unwrap_or(i64::MAX);
        }
        self.now()
    }

    /// Ends the requests that have taken too long.
    fn expire(&mut self, now: i64) {
        while let Some(slot) = self.deadlines.pop(now) {
            let user = &self.users[slot];
            if !user.is_busy() {
                continue;
            }
            if user.deadline_ns <= now {
                self.fail(slot, ErrorKind::Timeout, TIMED_OUT);
                self.apply_events();
            } else {
                self.deadlines.watch(slot, user.deadline_ns);
            }
        }
        self.next_expiry_ns = now + DEADLINE_STEP_NS;
    }

    fn finish(mut self, begun_ns: i64, cpu_before: Duration) -> ThreadReport {
        let now = self.now();
        // A request that has waited for as long as the end of a load lets it wait is lost, however the load ends.
        let waited_ns = nanos(self.shared.plan.drain);
        for slot in 0..self.users.len() {
            let user = &self.users[slot];
            if !user.is_busy() {
                continue;
            }
            if user.deadline_ns <= now {
                self.fail(slot, ErrorKind::Timeout, TIMED_OUT);
            } else if matches!(self.progress, Progress::Stopping { .. }) && now - user.begun_ns < waited_ns {
                self.recorder.cut(user.position.row);
            } else {
                self.recorder.totals.undrained += 1;
                self.fail(slot, ErrorKind::Timeout, Cause::Text("no complete response by the end of the drain"));
            }
        }
        let second_ns = self.recorder.second_start_ns();
        let is_planned = self.populations.iter().any(|population| second_ns < population.end_ns());
        let ended_ns = self.ended_ns(now);
        if is_planned || self.recorder.has_counted() {
            self.recorder.end_at(ended_ns);
            self.close_second();
        }
        let usage = ThreadUse {
            cpu: thread_cpu().saturating_sub(cpu_before),
            wall: Duration::from_nanos((now - begun_ns).max(0) as u64),
        };
        let open = self.populations.iter().filter(|population| population.arrivals.is_some());
        let arrivals_ended_ns = open.map(Population::end_ns).max();
        let client_addresses = self.client_addresses();
        self.transport.farewell();
        ThreadReport { totals: self.recorder.finish(), usage, ended_ns, arrivals_ended_ns, client_addresses }
    }

    fn client_addresses(&self) -> BTreeSet<IpAddr> {
        let users = self.users.iter().enumerate().filter(|(slot, _)| self.transport.has_dialled(*slot));
        users.filter_map(|(_, user)| self.shared.client_address(user.vu)).collect()
    }

    /// When this thread's part of the load was over. A load of so many requests ends with the last of them, not when
    /// the thread notices.
    fn ended_ns(&self, now: i64) -> i64 {
        if matches!(self.progress, Progress::Stopping { .. }) {
            return now;
        }
        let in_time = self.populations.iter().zip(self.shared.schedules).filter_map(|(population, schedule)| {
            let scheduled_ns = self.shared.start_ns() + schedule.end_ns();
            (population.end_ns() == scheduled_ns).then_some(scheduled_ns)
        });
        in_time.fold(self.recorder.totals.last_done_ns, i64::max)
    }
}

fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.max(0) as u64, time.tv_nsec as u32)
}
