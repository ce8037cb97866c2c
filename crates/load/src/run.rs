//! Runs a plan: checks it, spreads its users over threads, joins what they report.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{Builder, ScopedJoinHandle};
use std::time::Duration;

use narrows_model::load::{DataValues, LoadBatch, LoadPlan, Pick};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::Error;
use crate::check::{THREADS_MAX, check};
use crate::clock::Clock;
use crate::collector::Collector;
use crate::data::Sources;
use crate::drivers::Driver;
use crate::drivers::worker::{LoadContext, ThreadReport};
use crate::flows::Flows;
use crate::merged::{MergedSeconds, MergedTotals};
use crate::outcome::LoadOutcome;
use crate::part::LoadPart;
use crate::random::Random;
use crate::recorder::{Bounds, Message, Recorder, RowName};
use crate::report::PartReport;
use crate::schedule::Schedule;
use crate::tls::Encryption;
use crate::windows::{WindowsUnderWay, bounds_ns};

/// Seconds that a load thread may be ahead of whoever reads the batches, before it has to wait.
const SECONDS_AHEAD: usize = 64;
/// More seconds than any load has.
const SECONDS_MAX: u64 = 100_000_000;
/// Threads are given this long to start before the load does.
const LEAD_NS: i64 = 2_000_000;
/// Open files of a load thread beside its connections: epoll, timers, what wakes a runtime.
const FILES_PER_THREAD: u64 = 8;
/// Open files beside those: standard streams, the run file, listeners.
const FILES_BESIDE: u64 = 64;

/// Sends the plan's load and blocks until it has ended and all responses have arrived.
///
/// Seconds go to `out` during the load, each (scenario, second) exactly once and in order. `out` should be read by
/// another thread; a reader that falls more than a minute behind holds the load up. When the reader is gone, or `stop`
/// is set, no further request is sent, and the wait for outstanding responses is at most one second.
///
/// An iteration under way when its scenario's time is up may finish its request but begins no further step. Of an open
/// model's iterations, each that is due begins or is counted as dropped.
///
/// When a kept connection breaks before any byte of the response arrives, an idempotent request is sent once more,
/// unless [`LoadPlan::retry`] forbids it; this is counted as repeated. Raises the process's soft limit of open files if
/// the users need it.
///
/// # Errors
/// [`Error::Plan`] if the plan cannot be run, [`Error::OpenFiles`] if it has more users than the process may open
/// connections, [`Error::System`] if the kernel provides no thread or epoll descriptor. A failed request is never an
/// error; it is counted in the outcome.
///
/// # Panics
/// If a load thread panicked, after the others have ended and their measurements were sent to `out`.
pub fn run(
    plan: &LoadPlan,
    clock: Clock,
    stop: &AtomicBool,
    out: &SyncSender<LoadBatch>,
) -> Result<LoadOutcome, Error> {
    check(plan)?;
    let threads = threads(plan, plan.threads);
    let start = || LoadPart::whole(threads, clock.now_ns() + LEAD_NS);
    let (report, totals, started_ns) = run_checked(plan, start, clock, stop, out)?;
    Ok(report.conclude(started_ns, totals))
}

/// Sends a part of the plan's load, as [`run`] sends all of it. The others belong to other processes: see [`LoadPart`].
/// The part's seconds go to `out` in order, beginning with number [`LoadPart::from_second`].
///
/// A part that begins later than its load, because it takes over, cannot know which iterations and which rows that are drawn
/// once were used before: see [`can_be_taken_over`].
///
/// # Errors
/// As [`run`], and [`Error::Plan`] if the load has no such threads.
///
/// # Panics
/// As [`run`].
pub fn run_part(
    plan: &LoadPlan,
    part: LoadPart,
    clock: Clock,
    stop: &AtomicBool,
    out: &SyncSender<LoadBatch>,
) -> Result<PartReport, Error> {
    check(plan)?;
    let is_sound = part.threads > 0
        && part.first.checked_add(part.threads).is_some_and(|end| end <= part.of)
        && part.of <= THREADS_MAX;
    if !is_sound {
        let LoadPart { first, threads, of, .. } = part;
        let problem = format!(
            "{threads} from number {first} on of {of}, expected at least one, and {THREADS_MAX} in all at most"
        );
        return Err(Error::plan("threads", problem));
    }
    Ok(run_checked(plan, || part, clock, stop, out)?.0)
}

/// How many threads a plan's load has that may have so many: no more than users.
pub fn threads(plan: &LoadPlan, allowed: usize) -> usize {
    let users: u64 = plan.scenarios.iter().map(|scenario| u64::from(scenario.model.limits().vus_max)).sum();
    allowed.clamp(1, users.clamp(1, THREADS_MAX as u64) as usize)
}

/// Whether a part of a plan's load may begin later than the load. It may not where iterations are counted or rows drawn once,
/// since some of them would be used twice.
pub fn can_be_taken_over(plan: &LoadPlan) -> bool {
    let is_counted = plan.scenarios.iter().any(|scenario| scenario.model.limits().iterations.is_some());
    let is_drawn_once =
        plan.data.iter().any(|source| matches!(source.values, DataValues::Rows { pick: Pick::Once, .. }));
    !is_counted && !is_drawn_once
}

/// Number of the first second of a plan's load that begins so long after the load or later, and when it begins.
pub fn second_after(plan: &LoadPlan, elapsed: Duration) -> (u64, Duration) {
    seconds_until(plan, |begin| begin >= elapsed)
}

/// When a second of a plan's load begins. Numbers above 100 million are taken for that one.
pub fn second_at(plan: &LoadPlan, number: u64) -> Duration {
    let mut left = number.min(SECONDS_MAX);
    let reached = |_| left.checked_sub(1).map(|rest| left = rest).is_none();
    seconds_until(plan, reached).1
}

/// The first second whose beginning will do.
fn seconds_until(plan: &LoadPlan, mut will_do: impl FnMut(Duration) -> bool) -> (u64, Duration) {
    let of_windows = bounds_ns(plan, 0);
    let bounds = Bounds { start_ns: 0, of_windows: &of_windows, first: 0 };
    let mut at_ns = 0;
    for number in 0..u64::MAX {
        let begin = Duration::from_nanos(at_ns as u64);
        if will_do(begin) {
            return (number, begin);
        }
        at_ns = bounds.after(at_ns);
    }
    (u64::MAX, Duration::MAX)
}

fn run_checked(
    plan: &LoadPlan,
    start: impl FnOnce() -> LoadPart,
    clock: Clock,
    stop: &AtomicBool,
    out: &SyncSender<LoadBatch>,
) -> Result<(PartReport, MergedTotals, i64), Error> {
    let flows = Flows::compile(plan)?;
    let encryption = Encryption::from_plan(plan)?;
    let part = start();
    let schedules: Vec<Schedule> = plan.scenarios.iter().map(|scenario| Schedule::new(scenario, &part)).collect();
    let users = schedules.iter().map(|schedule| part.share(u64::from(schedule.vus_max()))).sum();
    allow_open_files(users, part.threads)?;
    let sources = Sources::new(&plan.data, part);
    let deserted = AtomicBool::new(false);
    let of_windows = bounds_ns(plan, part.start_ns);
    let bounds = Bounds { start_ns: part.start_ns, of_windows: &of_windows, first: part.from_second };
    let shared = LoadContext {
        plan,
        clock,
        part,
        begin_ns: bounds.begin_ns(),
        sources: &sources,
        flows: &flows,
        schedules: &schedules,
        stop,
        deserted: &deserted,
    };
    let (totals, reports) = run_threads(&shared, bounds, encryption.as_ref(), out)?;
    let mut report = PartReport { ended_ns: part.start_ns, ..PartReport::default() };
    reports.into_iter().for_each(|thread| report.merge(thread.into()));
    Ok((report, totals, part.start_ns))
}

fn allow_open_files(users: u64, threads: usize) -> Result<(), Error> {
    let needed = users + threads as u64 * FILES_PER_THREAD + FILES_BESIDE;
    let limits = getrlimit(Resource::Nofile);
    if limits.current.is_none_or(|soft| soft >= needed) {
        return Ok(());
    }
    if let Some(limit) = limits.maximum.filter(|hard| *hard < needed) {
        return Err(Error::OpenFiles { users, needed, limit });
    }
    let raised = Rlimit { current: Some(needed), maximum: limits.maximum };
    setrlimit(Resource::Nofile, raised).map_err(|errno| Error::system("raise the limit of open files", errno))
}

fn run_threads(
    shared: &LoadContext<'_>,
    bounds: Bounds<'_>,
    encryption: Option<&Encryption>,
    out: &SyncSender<LoadBatch>,
) -> Result<(MergedTotals, Vec<ThreadReport>), Error> {
    let threads = shared.part.threads;
    let (report, reports) = sync_channel::<Message>(SECONDS_AHEAD * threads);
    let names = row_names(shared);
    let mut workers = Vec::with_capacity(threads);
    for (at, thread) in shared.part.numbers().enumerate() {
        let random = Random::new(shared.plan.seed, 2 * thread as u64 + 1);
        let recorder = Recorder::new(at, bounds, names.clone(), random, report.clone(), shared.deserted);
        workers.push((thread, Driver::prepare(shared.plan, encryption, shared.clock)?, recorder));
    }
    drop(report);
    std::thread::scope(|scope| {
        let mut running: Vec<ScopedJoinHandle<'_, ThreadReport>> = Vec::with_capacity(threads);
        let mut refused = None;
        for (thread, driver, recorder) in workers {
            let builder = Builder::new().name(format!("load-{thread}"));
            match builder.spawn_scoped(scope, move || driver.run(shared, thread, recorder)) {
                Ok(handle) => running.push(handle),
                Err(source) => {
                    shared.deserted.store(true, Ordering::Relaxed);
                    refused = Some(Error::System { action: "start a load thread", source });
                    break;
                }
            }
        }
        let mut merged = MergedSeconds::new(0, WindowsUnderWay::of(shared.plan));
        (0..threads).for_each(|_| _ = merged.join(bounds.first));
        let totals = Collector::new(out, shared.deserted, merged).run(&reports);
        let ended = running.into_iter().map(|handle| handle.join().unwrap_or_else(|p| std::panic::resume_unwind(p)));
        let ended: Vec<ThreadReport> = ended.collect();
        refused.map_or(Ok((totals, ended)), Err)
    })
}

fn row_names(shared: &LoadContext<'_>) -> Vec<RowName> {
    let scenario = |index: usize| shared.plan.scenarios[index].name.clone();
    let steps = shared.flows.steps().iter();
    steps.map(|step| RowName { scenario: scenario(step.scenario), request: step.name.clone() }).collect()
}
