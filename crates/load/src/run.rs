//! Runs a plan: checks it, spreads its users over threads, joins what they report.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{Builder, ScopedJoinHandle};

use narrows_model::load::{ErrorCause, LoadBatch, LoadPlan};
use narrows_model::run::Validity;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::Error;
use crate::check::check;
use crate::clock::Clock;
use crate::collector::{CollectedTotals, Collector};
use crate::data::Sources;
use crate::drivers::Driver;
use crate::drivers::worker::{LoadContext, ThreadReport};
use crate::flows::Flows;
use crate::outcome::{ArrivalTotals, LoadOutcome, Phases};
use crate::random::Random;
use crate::recorder::{Bounds, Message, Recorder, RowName};
use crate::schedule::Schedule;
use crate::tls::Encryption;
use crate::validity::{GeneratorFigures, judge};
use crate::windows::{WindowsUnderWay, bounds_ns};

/// Seconds that a load thread may be ahead of whoever reads the batches, before it has to wait.
const SECONDS_AHEAD: usize = 64;
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
    let flows = Flows::compile(plan)?;
    let encryption = Encryption::from_plan(plan)?;
    let schedules: Vec<Schedule> = plan.scenarios.iter().map(Schedule::new).collect();
    let users: u64 = schedules.iter().map(|schedule| u64::from(schedule.vus_max())).sum();
    let threads = plan.threads.clamp(1, users.max(1) as usize);
    allow_open_files(users, threads)?;
    let sources = Sources::new(&plan.data);
    let deserted = AtomicBool::new(false);
    let shared = LoadContext {
        plan,
        clock,
        start_ns: clock.now_ns() + LEAD_NS,
        sources: &sources,
        flows: &flows,
        schedules: &schedules,
        threads,
        stop,
        deserted: &deserted,
    };
    let (totals, reports) = run_threads(&shared, encryption.as_ref(), out)?;
    Ok(sum_up(shared.start_ns, totals, reports))
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
    encryption: Option<&Encryption>,
    out: &SyncSender<LoadBatch>,
) -> Result<(CollectedTotals, Vec<ThreadReport>), Error> {
    let of_windows = bounds_ns(shared.plan, shared.start_ns);
    let bounds = Bounds { start_ns: shared.start_ns, of_windows: &of_windows };
    let (report, reports) = sync_channel::<Message>(SECONDS_AHEAD * shared.threads);
    let names = row_names(shared);
    let mut workers = Vec::with_capacity(shared.threads);
    for thread in 0..shared.threads {
        let random = Random::new(shared.plan.seed, 2 * thread as u64 + 1);
        let recorder = Recorder::new(thread, bounds, names.clone(), random, report.clone(), shared.deserted);
        workers.push((Driver::prepare(shared.plan, encryption, shared.clock)?, recorder));
    }
    drop(report);
    std::thread::scope(|scope| {
        let mut running: Vec<ScopedJoinHandle<'_, ThreadReport>> = Vec::with_capacity(workers.len());
        let mut refused = None;
        for (thread, (driver, recorder)) in workers.into_iter().enumerate() {
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
        let windows = WindowsUnderWay::of(shared.plan);
        let totals = Collector::new(out, shared.deserted, shared.threads, windows).run(&reports);
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

fn sum_up(started_ns: i64, collected: CollectedTotals, reports: Vec<ThreadReport>) -> LoadOutcome {
    let CollectedTotals { whole: mut totals, mut counted } = collected;
    let ended_ns = reports.iter().map(|report| report.ended_ns).fold(started_ns, i64::max);
    totals.seconds = (ended_ns - started_ns) as f64 / 1e9;
    if counted.sent == 0 && counted.due == 0 {
        counted = totals.clone();
    }
    let arrivals_ended_ns = reports.iter().filter_map(|report| report.arrivals_ended_ns).max();
    let arrivals =
        arrivals_ended_ns.map(|ended_ns| ArrivalTotals::of(&totals, (ended_ns - started_ns).max(0) as f64 / 1e9));
    let client_addresses: BTreeSet<IpAddr> =
        reports.iter().flat_map(|report| report.client_addresses.iter().copied()).collect();
    let mut outcome = LoadOutcome {
        started_ns,
        ended_ns,
        totals,
        counted,
        arrivals,
        client_addresses: client_addresses.len().max(1),
        body_bytes: 0,
        statuses: Default::default(),
        causes: Vec::new(),
        phases: Phases::default(),
        ticks_missed: 0,
        undrained: 0,
        threads: Vec::with_capacity(reports.len()),
        validity: Validity::default(),
    };
    for report in reports {
        add(&mut outcome, report);
    }
    outcome.causes.sort_by_key(|cause| std::cmp::Reverse(cause.count));
    let judged = &outcome.counted;
    outcome.validity = judge(&GeneratorFigures {
        ended: judged.succeeded + judged.errors.total(),
        succeeded: judged.succeeded,
        lateness_p99_ns: judged.lateness.quantile_ns(0.99),
        latency_p99_ns: judged.latency.quantile_ns(0.99),
        busiest_thread: outcome.threads.iter().map(|thread| thread.share()).fold(0.0, f64::max),
        arrivals: arrivals.map(|_| ArrivalTotals::of(judged, judged.seconds)),
    });
    outcome
}

fn add(outcome: &mut LoadOutcome, report: ThreadReport) {
    let totals = report.totals;
    for (status, count) in totals.statuses.iter().enumerate().filter(|(_, count)| **count > 0) {
        *outcome.statuses.entry(status as u16).or_default() += count;
    }
    for ((kind, cause), count) in totals.causes {
        let text = cause.to_string();
        match outcome.causes.iter_mut().find(|known| known.kind == kind && known.text == text) {
            Some(known) => known.count += count,
            None => outcome.causes.push(ErrorCause { kind, text, count }),
        }
    }
    outcome.phases.merge(&totals.phases);
    outcome.body_bytes += totals.body_bytes;
    outcome.ticks_missed += totals.ticks_missed;
    outcome.undrained += totals.undrained;
    outcome.threads.push(report.usage);
}
