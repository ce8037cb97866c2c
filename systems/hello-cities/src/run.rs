//! Running a workload: launch it, wait for its end, and read its figures off the hub.

use std::time::{Duration, Instant};

use narrows_durable::store::Batching;
use narrows_durable::{Filter, Reuse, Start, Status, Summary, Time};
use tokio::task::JoinSet;

use crate::code::{
    ADD, COUNTER, CallPlan, ENTITY_CALLS, FAN_OUT_FAN_IN, GO, HELLO_CITIES, LAUNCH, LAUNCHER, PERIODIC,
    SUB_ORCHESTRATIONS, WAITING, counter, instance, prefix,
};
use crate::hub::{Engine, OpenHub};
use crate::plan::{CALLED_ENTITIES, LAUNCHERS};
use crate::process::{cpu_time, memory_bytes_peak};
use crate::{Error, Figures, Launch, Plan, Workload};

/// How long a workload may take.
const TIMEOUT: Duration = Duration::from_secs(900);
/// How long one orchestration of `one-by-one` may take.
const ONE_TIMEOUT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(2);
/// Interval at which events are counted for the peak.
const POLL_EVENTS: Duration = Duration::from_millis(5);
/// The peak is that of the busiest of so many equal parts of a workload's time.
const PEAK_PART: f64 = 10.0;
/// How often all nodes of a hub are asked; it costs each of them some CPU.
const POLL_ALL: Duration = Duration::from_millis(100);
/// Starts that are handed over at a time.
const STARTS_MAX: u64 = 50_000;
/// Signals and events that are under way at a time.
const SENDERS: u64 = 1_024;

/// Figures that only some workloads report.
#[derive(Default)]
struct WorkloadFigures {
    latency_ms_p50: Option<f64>,
    memory_bytes_peak: Option<u64>,
}

/// Counts of this process until now.
struct Mark {
    ended: u64,
    bytes: u64,
    commits: u64,
    cpu: Duration,
}

/// Runs `plan` under the number `run`, which no run on this hub has had.
pub(crate) async fn run(held: &OpenHub, run: u64, plan: &Plan) -> Result<Figures, Error> {
    let done = tokio::time::timeout(TIMEOUT, measure(held, run, plan));
    done.await.unwrap_or(Err(Error::Late(TIMEOUT)))
}

/// Forgets the instances of a run, which have ended.
pub(crate) async fn forget(held: &OpenHub, run: u64, plan: &Plan) -> Result<(), Error> {
    let mut entities = Vec::new();
    if plan.launch == Launch::Entities {
        for launcher in 0..LAUNCHERS {
            entities.push(LAUNCHER.id(format!("{run}-{launcher}"))?);
        }
    }
    let counters = match plan.workload {
        Workload::Counter => 1,
        Workload::EntityCalls => CALLED_ENTITIES,
        _ => 0,
    };
    for number in 0..counters {
        entities.push(counter(run, number)?);
    }
    let mut purges = JoinSet::new();
    for entity in entities {
        let client = held.client.clone();
        purges.spawn(async move { client.purge(entity.instance()).await.map(drop) });
    }
    let client = held.client.clone();
    purges.spawn(async move {
        let all = || client.purge_all(Filter { prefix: prefix(run), ..Filter::default() });
        // A node may be lost before it says that it has done it.
        while let Err(error) = all().await {
            if !matches!(error, narrows_durable::Error::Unknown { .. }) {
                return Err(error);
            }
        }
        Ok(())
    });
    all_done(purges).await
}

async fn measure(held: &OpenHub, run: u64, plan: &Plan) -> Result<Figures, Error> {
    let before = Mark::of(held);
    // Other processes take part in the work of a node.
    let is_whole = matches!(held.engine, Engine::Alone(_));
    let mut counts = EventCounts::default();
    let work = work(held, run, plan, before.ended);
    let (seen, seconds) = if is_whole { counts.during(held, work).await? } else { work.await? };
    let after = Mark::of(held);
    let (events, orchestrations) = (plan.events(), plan.orchestrations());
    let cpu_us = (after.cpu - before.cpu).as_secs_f64() * 1e6;
    Ok(Figures {
        workload: plan.workload.as_str(),
        launch: plan.launch.as_str(),
        store: held.store.as_str(),
        partitions: held.engine.stats().partitions.len(),
        nodes: held.engine.nodes(),
        n: plan.n,
        events,
        seconds,
        events_per_second: events as f64 / seconds,
        events_per_second_peak: counts.peak(Duration::from_secs_f64(seconds / PEAK_PART)),
        orchestrations_per_second: (orchestrations > 0).then(|| orchestrations as f64 / seconds),
        log_bytes_per_event: is_whole.then(|| (after.bytes - before.bytes) as f64 / events as f64),
        commits: is_whole.then(|| after.commits - before.commits),
        cpu_us_per_event: is_whole.then(|| cpu_us / events as f64),
        memory_bytes_peak: seen.memory_bytes_peak.map_or_else(memory_bytes_peak, Ok)?,
        latency_ms_p50: seen.latency_ms_p50,
    })
}

/// Launches a workload and waits for its end. Its own figures, and the seconds that it took; `ended` orchestrations had
/// ended before it.
async fn work(held: &OpenHub, run: u64, plan: &Plan, ended: u64) -> Result<(WorkloadFigures, f64), Error> {
    let seen = launch(held, run, plan).await?;
    let seconds = match plan.workload {
        Workload::Counter => counted(held, run, plan.n).await?,
        _ => {
            all_ended(held, run, plan.instances(), ended).await?;
            completed(held, run, plan.instances()).await?
        }
    };
    Ok((seen, seconds))
}

/// Events of this process so far, at intervals.
#[derive(Default)]
struct EventCounts(Vec<EventCount>);

#[derive(Clone, Copy)]
struct EventCount {
    at: Instant,
    events: u64,
}

impl EventCounts {
    /// Counts while `work` runs.
    async fn during<T>(&mut self, held: &OpenHub, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        loop {
            let partitions = held.engine.stats().partitions;
            let events = partitions.iter().map(|partition| partition.counts.events).sum();
            self.0.push(EventCount { at: Instant::now(), events });
            tokio::select! {
                ended = &mut work => return ended,
                () = tokio::time::sleep(POLL_EVENTS) => {}
            }
        }
    }

    /// The most events a second over at least `time`; `None` if the counts do not span it.
    fn peak(&self, time: Duration) -> Option<f64> {
        let mut from = 0;
        let mut peak = None;
        for last in &self.0 {
            while self.0.get(from + 1).is_some_and(|next| last.at.saturating_duration_since(next.at) >= time) {
                from += 1;
            }
            let first = self.0[from];
            let elapsed = last.at.saturating_duration_since(first.at);
            if elapsed >= time && !elapsed.is_zero() {
                let rate = (last.events - first.events) as f64 / elapsed.as_secs_f64();
                peak = Some(rate.max(peak.unwrap_or(0.0)));
            }
        }
        peak
    }
}

impl Mark {
    fn of(held: &OpenHub) -> Self {
        let partitions = held.engine.stats().partitions;
        let is_grouped = held.batching == Batching::Group;
        Self {
            ended: partitions.iter().map(|partition| partition.counts.ended).sum(),
            bytes: partitions.iter().map(|partition| partition.commit_bytes).sum(),
            commits: partitions
                .iter()
                .map(|partition| if is_grouped { partition.commits } else { partition.commit_frames })
                .sum(),
            cpu: cpu_time(),
        }
    }
}

/// Waits until `n` orchestrations of a run have ended. A hub in this process shows it in its counts; of a hub on several
/// nodes, all are queried at intervals.
async fn all_ended(held: &OpenHub, run: u64, n: u64, before: u64) -> Result<(), Error> {
    const ENDED: [Status; 3] = [Status::Completed, Status::Failed, Status::Terminated];
    match held.engine {
        Engine::Alone(_) => until(|| Mark::of(held).ended >= before + n).await,
        Engine::Node(_) => count(held, run, n, &ENDED).await?,
    }
    Ok(())
}

/// Waits until all orchestrations of a run have been started.
async fn all_started(held: &OpenHub, run: u64, n: u64, before: u64) -> Result<(), Error> {
    match held.engine {
        Engine::Alone(_) => until(|| started(held) >= before + n).await,
        Engine::Node(_) => count(held, run, n, &[Status::Running]).await?,
    }
    Ok(())
}

fn started(held: &OpenHub) -> u64 {
    held.engine.stats().partitions.iter().map(|partition| partition.counts.started).sum()
}

/// Waits until `n` orchestrations of a run have one of these states, wherever they are.
async fn count(held: &OpenHub, run: u64, n: u64, statuses: &[Status]) -> Result<(), Error> {
    let filter = Filter { prefix: prefix(run), statuses: statuses.to_vec(), ..Filter::default() };
    while held.client.count(filter.clone()).await? < n {
        tokio::time::sleep(POLL_ALL).await;
    }
    Ok(())
}

async fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        tokio::time::sleep(POLL).await;
    }
}

async fn launch(held: &OpenHub, run: u64, plan: &Plan) -> Result<WorkloadFigures, Error> {
    let mut seen = WorkloadFigures::default();
    match (plan.workload, plan.launch) {
        (Workload::HelloCities, Launch::Direct) => {
            start_all(held, run, plan.n, |_| Ok(HELLO_CITIES.start(&())?)).await?
        }
        (Workload::HelloCities, Launch::Entities) => signal_launchers(held, run, plan.n).await?,
        (Workload::HelloCities, Launch::OneByOne) => seen.latency_ms_p50 = Some(one_by_one(held, run, plan.n).await?),
        (Workload::FanOutFanIn, _) => {
            start_all(held, run, plan.n, |_| Ok(FAN_OUT_FAN_IN.start(&plan.each)?)).await?;
        }
        (Workload::SubOrchestrations, _) => {
            start_all(held, run, plan.n, |_| Ok(SUB_ORCHESTRATIONS.start(&plan.each)?)).await?;
        }
        (Workload::EntityCalls, _) => {
            start_all(held, run, plan.n, |number| entity_calls(run, number, plan.each)).await?;
        }
        (Workload::Periodic, _) => start_all(held, run, plan.n, |_| Ok(PERIODIC.start(&plan.each)?)).await?,
        (Workload::Counter, _) => signal_counter(held, run, plan.n).await?,
        (Workload::Waiting, _) => {
            let before = started(held);
            start_all(held, run, plan.n, |_| Ok(WAITING.start(&())?)).await?;
            all_started(held, run, plan.n, before).await?;
            seen.memory_bytes_peak = Some(memory_bytes_peak()?);
            raise_all(held, run, plan.n).await?;
        }
    }
    Ok(seen)
}

/// Starts `n` orchestrations, each as `start` says for its number.
async fn start_all(held: &OpenHub, run: u64, n: u64, start: impl Fn(u64) -> Result<Start, Error>) -> Result<(), Error> {
    let mut first = 0;
    while first < n {
        let end = n.min(first + STARTS_MAX);
        // Where a node may be lost in the middle of it, starts may be repeated.
        let reuse = if matches!(held.engine, Engine::Node(_)) { Reuse::Ignore } else { Reuse::IfEnded };
        let start = |number| Ok(start(number)?.id(instance(run, number)?.as_str())?.reuse(reuse));
        let starts: Result<Vec<Start>, Error> = (first..end).map(start).collect();
        for started in held.client.start_many(starts?).await? {
            started?;
        }
        first = end;
    }
    Ok(())
}

/// Start of an orchestration that calls operations of an entity.
fn entity_calls(run: u64, number: u64, calls: u64) -> Result<Start, Error> {
    let plan = CallPlan { run, entity: number % CALLED_ENTITIES, calls };
    Ok(ENTITY_CALLS.start(&plan)?)
}

/// Signals all launchers at the same time.
async fn signal_launchers(held: &OpenHub, run: u64, n: u64) -> Result<(), Error> {
    let mut senders = JoinSet::new();
    for launcher in 0..LAUNCHERS {
        let (first, end) = (n * launcher / LAUNCHERS, n * (launcher + 1) / LAUNCHERS);
        let (client, id) = (held.client.clone(), LAUNCHER.id(format!("{run}-{launcher}"))?);
        senders.spawn(async move { client.signal_entity(&id, LAUNCH, &(run, first, end - first)).await });
    }
    all_done(senders).await
}

/// Each when the one before it has ended; the median of their latencies in milliseconds.
async fn one_by_one(held: &OpenHub, run: u64, n: u64) -> Result<f64, Error> {
    let mut latencies = Vec::new();
    for number in 0..n {
        let start = HELLO_CITIES.start(&())?.id(instance(run, number)?.as_str())?;
        let begun = Instant::now();
        let id = held.client.start(start).await?;
        held.client.wait(&id, ONE_TIMEOUT).await?;
        latencies.push(begun.elapsed());
    }
    latencies.sort_unstable();
    Ok(latencies[latencies.len() / 2].as_secs_f64() * 1e3)
}

async fn signal_counter(held: &OpenHub, run: u64, n: u64) -> Result<(), Error> {
    let id = counter(run, 0)?;
    let mut senders = JoinSet::new();
    for sender in 0..SENDERS.min(n) {
        let (client, id) = (held.client.clone(), id.clone());
        let count = n / SENDERS + u64::from(sender < n % SENDERS);
        senders.spawn(async move {
            for _ in 0..count {
                client.signal_entity(&id, ADD, &1).await?;
            }
            Ok::<_, narrows_durable::Error>(())
        });
    }
    all_done(senders).await
}

async fn raise_all(held: &OpenHub, run: u64, n: u64) -> Result<(), Error> {
    let mut senders = JoinSet::new();
    for sender in 0..SENDERS.min(n) {
        let client = held.client.clone();
        senders.spawn(async move {
            let mut number = sender;
            while number < n {
                client.raise_event(&instance(run, number)?, GO, &()).await?;
                number += SENDERS;
            }
            Ok::<_, narrows_durable::Error>(())
        });
    }
    all_done(senders).await
}

async fn all_done(mut tasks: JoinSet<Result<(), narrows_durable::Error>>) -> Result<(), Error> {
    while let Some(done) = tasks.join_next().await {
        done.unwrap_or(Err(narrows_durable::Error::Closed))?;
    }
    Ok(())
}

/// Waits until the counter has all of them. The seconds from its creation to its last operation.
async fn counted(held: &OpenHub, run: u64, n: u64) -> Result<f64, Error> {
    let id = counter(run, 0)?;
    while held.client.state_of(COUNTER, &id).await? != Some(n) {
        tokio::time::sleep(POLL).await;
    }
    let view = held.client.get(id.instance()).await?;
    let view = view.ok_or_else(|| narrows_durable::Error::NotFound(id.instance().clone()))?;
    Ok(seconds(view.created, view.updated))
}

/// The seconds from the earliest creation to the latest completion; all must have completed.
async fn completed(held: &OpenHub, run: u64, n: u64) -> Result<f64, Error> {
    let filter = Filter { prefix: prefix(run), statuses: vec![Status::Completed], ..Filter::default() };
    let Summary { count, period } = held.client.summary(filter).await?;
    let (first, last) = period.filter(|_| count == n).ok_or(Error::Incomplete { completed: count, expected: n })?;
    Ok(seconds(first, last))
}

/// Time between two moments of the hub's clock, of which one microsecond is the step and the least.
fn seconds(first: Time, last: Time) -> f64 {
    last.0.saturating_sub(first.0).max(1) as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: Duration = Duration::from_millis(100);

    #[test]
    fn the_peak_is_that_of_the_busiest_part() {
        let begun = Instant::now();
        let events = [0, 10, 110, 210, 220];
        let counts = (0_u32..).zip(events).map(|(step, events)| EventCount { at: begun + step * STEP, events });
        let counts = EventCounts(counts.collect());
        for (ms, expected) in [(100, Some(1_000.0)), (200, Some(1_000.0)), (400, Some(550.0)), (401, None)] {
            assert_eq!(counts.peak(Duration::from_millis(ms)), expected, "over {ms} ms");
        }
    }
}
