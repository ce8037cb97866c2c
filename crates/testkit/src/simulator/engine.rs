//! Events in order of time: tasks that hold processors, connections and budgets, or wait for them.
//!
//! Times are nanoseconds from the start of the load. First come, first served everywhere; a task that forks goes on when
//! its last branch has ended.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use super::STORE_MS;
use super::record::{History, Request};
use crate::random::Random;
use crate::spans::SpanBuilder;

const MS: f64 = 1e6;
const SECOND_NS: u64 = 1_000_000_000;
/// An attempt that is refused takes so long.
const REFUSAL_MS: f64 = 1.0;
/// The wait that the store requests, doubled with each attempt.
const RETRY_AFTER_MS: f64 = 60.0;
/// Attempts before a caller gives up.
const ATTEMPTS_MAX: u32 = 9;
/// Events of one run.
const EVENTS_MAX: usize = 20_000_000;

/// The next operation of a task.
#[derive(Debug, Clone)]
pub(super) enum Op {
    /// A span begins, below the last that is open.
    Open(Box<SpanBuilder>),
    /// The last open span ends.
    Close,
    /// A processor of a station is held, exponentially long around this mean.
    Work(usize, f64),
    /// Nothing happens for so many milliseconds.
    Wait(f64),
    /// A connection of the pool is taken.
    Acquire,
    /// And given back.
    Release,
    /// A call to the store, again and again until its budget allows it.
    Spend(Box<Spend>),
    /// All branches at once.
    Fork(Vec<Vec<Op>>),
}

/// A call to the store.
#[derive(Debug, Clone)]
pub(super) struct Spend {
    pub(super) span: SpanBuilder,
    pub(super) partition: usize,
    /// Request units.
    pub(super) charge: f64,
    /// Number of attempts before it.
    pub(super) attempt: u32,
}

impl Op {
    pub(super) fn open(span: SpanBuilder) -> Op {
        Op::Open(Box::new(span))
    }

    pub(super) fn work(station: usize, mean_ms: f64) -> Op {
        Op::Work(station, mean_ms)
    }
}

#[derive(Debug, Default)]
struct Server {
    free: u32,
    queue: VecDeque<(usize, u64)>,
    /// Busy nanoseconds by second.
    busy: Vec<f64>,
}

/// A level over time, as its mean in each second.
#[derive(Debug, Default)]
struct Level {
    since: u64,
    now: f64,
    sums: Vec<f64>,
}

impl Level {
    /// It is another from this instant on.
    fn set(&mut self, at: u64, level: f64) {
        while self.since < at {
            let second = (self.since / SECOND_NS) as usize;
            let to = at.min((second as u64 + 1) * SECOND_NS);
            self.sums.resize(self.sums.len().max(second + 1), 0.0);
            self.sums[second] += self.now * (to - self.since) as f64 / SECOND_NS as f64;
            self.since = to;
        }
        self.now = level;
    }
}

#[derive(Debug)]
struct Task {
    ops: VecDeque<Op>,
    /// Open spans, of the request's.
    open: Vec<usize>,
    request: usize,
    /// The task that forked this one.
    parent: Option<usize>,
    /// Branches that have not ended.
    branches: usize,
    /// The station it holds a processor of.
    holds: Option<usize>,
}

pub(super) struct Engine {
    now: u64,
    events: BinaryHeap<Reverse<(u64, u64, usize)>>,
    sequence: u64,
    stations: Vec<Server>,
    pool: Server,
    connections: u32,
    used: Level,
    pending: Level,
    budget: (u32, f64),
    /// By partition and second.
    spent: BTreeMap<(usize, u64), f64>,
    tasks: Vec<Task>,
    requests: Vec<Request>,
    random: Random,
}

impl Engine {
    pub(super) fn new(stations: &[(&str, u32)], pool: u32, budget: (u32, f64), random: Random) -> Self {
        let server = |free: u32| Server { free, ..Server::default() };
        Self {
            now: 0,
            events: BinaryHeap::new(),
            sequence: 0,
            stations: stations.iter().map(|(_, cores)| server(*cores)).collect(),
            pool: server(pool),
            connections: pool,
            used: Level::default(),
            pending: Level::default(),
            budget,
            spent: BTreeMap::new(),
            tasks: Vec::new(),
            requests: Vec::new(),
            random,
        }
    }

    /// Runs all steps; `program` returns what each request does.
    pub(super) fn run(
        &mut self,
        steps: &[(u32, u32)],
        think_ms: f64,
        program: impl Fn(&mut Random) -> Vec<Op>,
    ) -> History {
        let starts: Vec<u64> = starts_of(steps);
        let end = starts[steps.len()];
        let users_at =
            |ns: u64| steps.iter().zip(&starts).rev().find(|(_, start)| **start <= ns).map_or(0, |(s, _)| s.0);
        for user in 0..steps.iter().map(|(users, _)| *users).max().unwrap_or(0) {
            let first =
                steps.iter().zip(&starts).find(|((users, _), _)| *users > user).map_or(end, |(_, start)| *start);
            let at = first + (self.random.unit() * think_ms.max(20.0) * MS) as u64;
            self.begin(at, user, &program);
        }
        for _ in 0..EVENTS_MAX {
            let Some(Reverse((at, _, task))) = self.events.pop() else { break };
            self.now = at;
            let Some(user) = self.go_on(task) else { continue };
            let next = at + (self.random.exponential(think_ms) * MS) as u64;
            if next < end && user < users_at(next) {
                self.begin(next, user, &program);
            }
        }
        let busy = self.stations.iter_mut().map(|station| std::mem::take(&mut station.busy)).collect();
        let pool = [std::mem::take(&mut self.used.sums), std::mem::take(&mut self.pending.sums)];
        History { requests: std::mem::take(&mut self.requests), busy, spent: std::mem::take(&mut self.spent), pool }
    }

    fn begin(&mut self, at: u64, user: u32, program: &impl Fn(&mut Random) -> Vec<Op>) {
        let request = self.requests.len();
        self.requests.push(Request { user, start_ns: at, end_ns: None, spans: Vec::new() });
        let ops = program(&mut self.random).into();
        self.tasks.push(Task { ops, open: Vec::new(), request, parent: None, branches: 0, holds: None });
        self.wake(self.tasks.len() - 1, at);
    }

    fn wake(&mut self, task: usize, at: u64) {
        self.sequence += 1;
        self.events.push(Reverse((at, self.sequence, task)));
    }

    /// Takes a task as far as it gets; the user whose request has ended with it.
    fn go_on(&mut self, at: usize) -> Option<u32> {
        self.let_go(at);
        while let Some(op) = self.tasks[at].ops.pop_front() {
            match op {
                Op::Open(span) => self.open(at, *span),
                Op::Close => self.close(at),
                Op::Wait(ms) => {
                    self.wake(at, self.now + (ms * MS) as u64);
                    return None;
                }
                Op::Work(station, mean_ms) => {
                    let length = (self.random.exponential(mean_ms) * MS) as u64;
                    self.hold(at, station, length);
                    return None;
                }
                Op::Acquire => {
                    if !self.acquire(at) {
                        return None;
                    }
                }
                Op::Release => self.release(),
                Op::Spend(spend) => self.spend(at, *spend),
                Op::Fork(branches) => {
                    self.fork(at, branches);
                    return None;
                }
            }
        }
        self.end(at)
    }

    /// Takes a connection, or waits for one.
    fn acquire(&mut self, at: usize) -> bool {
        let is_free = self.pool.free > 0;
        if is_free {
            self.pool.free -= 1;
        } else {
            self.pool.queue.push_back((at, 0));
        }
        self.note_pool();
        is_free
    }

    fn release(&mut self) {
        match self.pool.queue.pop_front() {
            Some((waiting, _)) => self.wake(waiting, self.now),
            None => self.pool.free += 1,
        }
        self.note_pool();
    }

    fn note_pool(&mut self) {
        self.used.set(self.now, f64::from(self.connections - self.pool.free));
        self.pending.set(self.now, self.pool.queue.len() as f64);
    }

    fn hold(&mut self, at: usize, station: usize, length: u64) {
        if self.stations[station].free == 0 {
            self.stations[station].queue.push_back((at, length));
            return;
        }
        self.stations[station].free -= 1;
        self.work(at, station, length);
    }

    fn work(&mut self, at: usize, station: usize, length: u64) {
        let (mut from, until) = (self.now, self.now + length);
        while from < until {
            let second = (from / SECOND_NS) as usize;
            let to = until.min((second as u64 + 1) * SECOND_NS);
            let busy = &mut self.stations[station].busy;
            busy.resize(busy.len().max(second + 1), 0.0);
            busy[second] += (to - from) as f64;
            from = to;
        }
        self.tasks[at].holds = Some(station);
        self.wake(at, until);
    }

    /// Hands the processor that a task held to the next that waits for one.
    fn let_go(&mut self, at: usize) {
        let Some(station) = self.tasks[at].holds.take() else { return };
        match self.stations[station].queue.pop_front() {
            Some((next, length)) => self.work(next, station, length),
            None => self.stations[station].free += 1,
        }
    }

    fn spend(&mut self, at: usize, spend: Spend) {
        let Spend { span, partition, charge, attempt } = spend;
        let spent = self.spent.entry((partition, self.now / SECOND_NS)).or_default();
        let ops = if *spent + charge <= self.budget.1 {
            *spent += charge;
            vec![Op::open(span.charge(charge)), Op::Wait(STORE_MS), Op::Close]
        } else {
            let retry_ms = RETRY_AFTER_MS * f64::from(1_u32 << attempt.min(4));
            let mut ops = vec![Op::open(span.clone().throttled(Some(retry_ms))), Op::Wait(REFUSAL_MS), Op::Close];
            if attempt < ATTEMPTS_MAX {
                ops.push(Op::Wait(retry_ms));
                ops.push(Op::Spend(Box::new(Spend { span, partition, charge, attempt: attempt + 1 })));
            }
            ops
        };
        for op in ops.into_iter().rev() {
            self.tasks[at].ops.push_front(op);
        }
    }

    fn fork(&mut self, at: usize, branches: Vec<Vec<Op>>) {
        self.tasks[at].branches = branches.len();
        let (open, request) = (self.tasks[at].open.clone(), self.tasks[at].request);
        for ops in branches {
            let task =
                Task { ops: ops.into(), open: open.clone(), request, parent: Some(at), branches: 0, holds: None };
            self.tasks.push(task);
            self.wake(self.tasks.len() - 1, self.now);
        }
    }

    fn end(&mut self, at: usize) -> Option<u32> {
        match self.tasks[at].parent {
            Some(parent) => {
                self.tasks[parent].branches -= 1;
                if self.tasks[parent].branches == 0 {
                    self.wake(parent, self.now);
                }
                None
            }
            None => {
                let request = &mut self.requests[self.tasks[at].request];
                request.end_ns = Some(self.now);
                Some(request.user)
            }
        }
    }

    fn open(&mut self, at: usize, span: SpanBuilder) {
        let task = &mut self.tasks[at];
        let spans = &mut self.requests[task.request].spans;
        spans.push((task.open.last().copied(), span, self.now, self.now));
        task.open.push(spans.len() - 1);
    }

    fn close(&mut self, at: usize) {
        let task = &mut self.tasks[at];
        if let Some(span) = task.open.pop() {
            self.requests[task.request].spans[span].3 = self.now;
        }
    }
}

/// The first instant of each step, and the end of the last.
fn starts_of(steps: &[(u32, u32)]) -> Vec<u64> {
    let ends = steps.iter().scan(0, |at, (_, seconds)| {
        *at += u64::from(*seconds) * SECOND_NS;
        Some(*at)
    });
    std::iter::once(0).chain(ends).collect()
}
