//! A hub that runs: its threads, how they come and how they go.
//!
//! Per partition one thread for the state machine and one for its log; for all together, threads for activities, a
//! small runtime for those that wait, and one thread for snapshots.

mod activities;
pub(crate) mod clock;
pub(crate) mod crossing;
mod health;
mod inbox;
pub(crate) mod keeper;
mod log;
mod meter;
mod metrics;
mod shell;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_of_faults;
#[cfg(test)]
mod tests_of_health;
#[cfg(test)]
mod tests_of_locks;
#[cfg(test)]
mod tests_of_metrics;
#[cfg(test)]
mod tests_of_mismatch;

use std::cell::RefCell;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub use health::Health;
pub(crate) use inbox::Inbox;
pub use meter::{HubStats, PartitionStats};
pub(crate) use shell::now;

use activities::{Activities, Duty};
use inbox::Closing;
use keeper::Kept;
use log::{Log, Target};
use meter::Meter;
use metrics::{CommitMetrics, Watched};
use shell::{Recovered, Shell};

use crate::client::Client;
use crate::codec::FORMAT;
use crate::error::Error;
use crate::ids::{Epoch, PartitionId, Position};
use crate::options::{HubOptions, Mode};
use crate::program::Program;
use crate::stopped;
use crate::store::{Batching, HubShape, Location, Store, StoreError};

/// A running hub. Dropping it closes it.
pub struct Hub {
    client: Client,
    store: Arc<dyn Store>,
    inboxes: Vec<Arc<Inbox>>,
    logs: Vec<Arc<Log>>,
    meters: Vec<Arc<Meter>>,
    epochs: Vec<Epoch>,
    activities: Arc<Activities>,
    running: Mutex<Option<Running>>,
}

/// What is there only while the hub runs.
struct Running {
    partitions: Vec<JoinHandle<()>>,
    logs: Vec<JoinHandle<()>>,
    keeper: JoinHandle<()>,
    runtime: tokio::runtime::Runtime,
}

impl Hub {
    /// Opens a hub, new or kept in `store`: recovers all partitions, then starts them.
    ///
    /// # Errors
    /// [`Error::BadOption`], or [`Error::Store`] if the store is in use, damaged or foreign.
    pub fn open(store: Arc<dyn Store>, program: impl Program, options: HubOptions) -> Result<Self, Error> {
        options.check()?;
        let shape = store.open_or_create(HubShape { partitions: options.partitions, format: FORMAT })?;
        let mut epochs = Vec::new();
        let owner = format!("process {}", std::process::id());
        for partition in (0..shape.partitions).map(PartitionId) {
            match store.acquire(partition, &owner) {
                Ok(epoch) => epochs.push(epoch),
                Err(error) => {
                    give_back(&*store, &epochs);
                    return Err(error.into());
                }
            }
        }
        let opened = Self::start(Arc::clone(&store), Arc::new(program), options, epochs.clone());
        if opened.is_err() {
            give_back(&*store, &epochs);
        }
        opened
    }

    fn start(
        store: Arc<dyn Store>,
        program: Arc<dyn Program>,
        mut options: HubOptions,
        epochs: Vec<Epoch>,
    ) -> Result<Self, Error> {
        if store.batching() == Batching::EachStep {
            options.mode = Mode::PersistFirst;
        }
        let count = epochs.len();
        let inboxes: Vec<Arc<Inbox>> = (0..count).map(|_| Arc::default()).collect();
        let logs: Vec<Arc<Log>> = (0..count).map(|_| Arc::default()).collect();
        let commits = |at| options.meter.as_ref().map(|meter| CommitMetrics::new(meter, partition(at)));
        let meters: Vec<Arc<Meter>> = (0..count).map(|at| Arc::new(Meter::new(commits(at)))).collect();
        if let Some(meter) = &options.meter {
            metrics::observe(meter, &Watched::new(&meters, &inboxes));
        }
        let runtime = runtime(&options)?;
        let activities = Activities::new(Arc::clone(&program), inboxes.clone(), runtime.handle().clone());
        let client = Client::new(inboxes.clone(), options.requests_max, runtime.handle().clone());
        let hub = Self {
            client,
            store,
            inboxes,
            logs,
            meters,
            epochs,
            activities: Arc::new(activities),
            running: Mutex::default(),
        };
        hub.spawn(&program, &options, runtime)?;
        Ok(hub)
    }

    /// Starts all threads. Partitions begin to work only once all have recovered and agree, so that an error leaves
    /// nothing done: their threads end when they are not told to go.
    fn spawn(
        &self,
        program: &Arc<dyn Program>,
        options: &HubOptions,
        runtime: tokio::runtime::Runtime,
    ) -> Result<(), Error> {
        let (chores, chores_due) = sync_channel(keeper::WAITING_MAX);
        let count = self.epochs.len();
        let (go, gone) = (0..count).map(|_| sync_channel(1)).collect::<(Vec<_>, Vec<_>)>();
        let (ready, recovered) = (0..count).map(|_| sync_channel(1)).collect::<(Vec<_>, Vec<_>)>();
        let mut partitions = Vec::new();
        for (at, (ready, gone)) in ready.into_iter().zip(gone).enumerate() {
            let id = partition(at);
            let shell = Shell {
                id,
                count: u16::try_from(count).unwrap_or(u16::MAX),
                batching: self.store.batching(),
                store: Arc::clone(&self.store),
                program: Arc::clone(program),
                options: options.clone(),
                inboxes: self.inboxes.clone(),
                log: Arc::clone(&self.logs[at]),
                activities: Arc::clone(&self.activities),
                chores: chores.clone(),
                meter: Arc::clone(&self.meters[at]),
                clock: RefCell::default(),
                begun: Instant::now(),
            };
            partitions.push(thread(format!("partition-{id}"), move || shell.run(ready, &gone))?);
        }
        drop(chores);
        let all: Vec<Result<Recovered, StoreError>> =
            recovered.iter().map(|ready| ready.recv().unwrap_or_else(|_| Err(died()))).collect();
        let cleared = |ends| (0..count).try_for_each(|at| stopped::clear(&*self.store, partition(at))).map(|()| ends);
        let ends = match agreed(all).and_then(cleared) {
            Ok(ends) => ends,
            Err(error) => {
                // They have the store, which is free once they have ended.
                drop(go);
                partitions.into_iter().for_each(|thread| drop(thread.join()));
                runtime.shutdown_background();
                return Err(error.into());
            }
        };
        let logs = self.spawn_logs(&ends)?;
        for go in go {
            // A thread that does not take it has died, which its inbox says.
            let _ = go.send(());
        }
        let keeper = self.spawn_keeper(chores_due)?;
        self.spawn_activities(options.activity_threads)?;
        let running = Running { partitions, logs, keeper, runtime };
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = Some(running);
        Ok(())
    }

    fn spawn_logs(&self, ends: &[Position]) -> Result<Vec<JoinHandle<()>>, Error> {
        let spawn = |(at, end): (usize, &Position)| {
            let (log, inbox) = (Arc::clone(&self.logs[at]), Arc::clone(&self.inboxes[at]));
            let meter = Arc::clone(&self.meters[at]);
            inbox.confirm(*end);
            let id = partition(at);
            let target = Target { store: Arc::clone(&self.store), partition: id, epoch: self.epochs[at], end: *end };
            let (store, inboxes) = (Arc::clone(&self.store), self.inboxes.clone());
            thread(format!("log-{id}"), move || {
                let written = guarded(|| log::write(&log, target, &inbox, &meter));
                if let Err(error) = written.unwrap_or_else(|panic| Err(panicked(id, &panic))) {
                    log.close();
                    stop(&*store, &inboxes, id, &error);
                }
            })
        };
        ends.iter().enumerate().map(spawn).collect()
    }

    fn spawn_keeper(&self, due: std::sync::mpsc::Receiver<keeper::Chore>) -> Result<JoinHandle<()>, Error> {
        let kept: Vec<Kept> = self
            .logs
            .iter()
            .zip(&self.meters)
            .map(|(log, meter)| Kept { log: Arc::clone(log), meter: Arc::clone(meter) })
            .collect();
        let store = Arc::clone(&self.store);
        thread("keeper".to_owned(), move || keeper::keep(&*store, &due, &kept))
    }

    /// These threads are not waited for: user code may never return.
    fn spawn_activities(&self, count: usize) -> Result<(), Error> {
        for at in 0..count {
            let activities = Arc::clone(&self.activities);
            thread(format!("activity-{at}"), move || activities.work(Duty::Regular))?;
        }
        let watch = Arc::clone(&self.activities).watch();
        self.activities.runtime().spawn(watch);
        Ok(())
    }

    /// Sends requests to this hub. Clients are cheap to clone and outlive the hub; their calls then
    /// fail with [`Error::Closed`].
    #[must_use]
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// How each partition does, in order. A hub with one that has stopped should be closed and opened again: what needs
    /// that partition stands still.
    #[must_use]
    pub fn health(&self) -> Vec<Health> {
        self.health_beyond(health::HELD_UP)
    }

    fn health_beyond(&self, held_up: Duration) -> Vec<Health> {
        self.inboxes.iter().zip(&self.meters).map(|(inbox, meter)| health::of(inbox, meter, held_up)).collect()
    }

    /// The hub in figures, as of each partition's last turn.
    #[must_use]
    pub fn stats(&self) -> HubStats {
        HubStats { partitions: self.meters.iter().map(|meter| meter.read()).collect() }
    }

    /// Stops taking things in, waits until all that was taken in is durable, and gives the partitions back. Activities
    /// that are under way are left to themselves and run again when the hub is next opened. Closing twice is no error.
    ///
    /// # Errors
    /// [`Error::Stopped`] if a partition had stopped, so that not all that was taken in is durable; [`Error::Store`] if
    /// the store refuses to take the partitions back.
    pub fn close(&self) -> Result<(), Error> {
        self.end(Closing::Orderly)
    }

    /// Stops at once and loses everything that is not durable yet, as a crash would. For tests.
    pub fn halt(&self) {
        self.logs.iter().for_each(|log| log.halt());
        // A crash would not give the partitions back either, so an error of the store does not matter.
        let _ = self.end(Closing::AtOnce);
    }

    fn end(&self, closing: Closing) -> Result<(), Error> {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(Running { partitions, logs, keeper, runtime }) = running else { return Ok(()) };
        self.activities.close();
        self.inboxes.iter().for_each(|inbox| inbox.close(closing));
        for thread in partitions {
            // A thread that panicked has nothing more to say.
            let _ = thread.join();
        }
        self.logs.iter().for_each(|log| log.close());
        for thread in logs.into_iter().chain([keeper]) {
            let _ = thread.join();
        }
        runtime.shutdown_background();
        let mut released = Ok(());
        for (at, epoch) in self.epochs.iter().enumerate() {
            released = released.and(self.store.release(partition(at), *epoch));
        }
        let stopped = |(at, inbox): (usize, &Arc<Inbox>)| {
            inbox.failure().map(|source| Error::Stopped { partition: partition(at), source })
        };
        let stopped = self.inboxes.iter().enumerate().find_map(stopped);
        stopped.map_or(released.map_err(Error::from), Err)
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        // An error has no caller to go to here; `close` reports it.
        let _ = self.close();
    }
}

fn give_back(store: &dyn Store, epochs: &[Epoch]) {
    for (at, epoch) in epochs.iter().enumerate() {
        // The error that led here is the one to report.
        let _ = store.release(partition(at), *epoch);
    }
}

/// Where the logs end, if all partitions have recovered and none has lost what another knows of.
fn agreed(all: Vec<Result<Recovered, StoreError>>) -> Result<Vec<Position>, StoreError> {
    let all: Vec<Recovered> = all.into_iter().collect::<Result<_, _>>()?;
    crossing::check(&all.iter().map(|recovered| recovered.crossings.clone()).collect::<Vec<_>>())?;
    Ok(all.iter().map(|recovered| recovered.end).collect())
}

/// Stops a partition: it fails all its calls, and the other partitions fail the waits that may need it.
fn stop(store: &dyn Store, inboxes: &[Arc<Inbox>], partition: PartitionId, error: &StoreError) {
    let is_first = inboxes[usize::from(partition.0)].failure().is_none();
    for (at, inbox) in inboxes.iter().enumerate() {
        if at == usize::from(partition.0) {
            inbox.fail(error.clone());
        } else {
            inbox.warn(partition, error.clone());
        }
    }
    if is_first {
        stopped::note(store, partition, error, now());
    }
}

/// Runs something of the engine or of user code, and gives what a panic said.
fn guarded<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).map_err(|panic| {
        let text = panic.downcast_ref::<&str>().copied();
        text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message").to_owned()
    })
}

fn panicked(partition: PartitionId, panic: &str) -> StoreError {
    let place = Location::Partition { partition };
    StoreError::Io { action: "run", place, reason: format!("it panicked: {panic}"), is_full: false }
}

fn partition(at: usize) -> PartitionId {
    PartitionId(u16::try_from(at).unwrap_or(u16::MAX))
}

fn thread(name: String, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, Error> {
    std::thread::Builder::new().name(name).spawn(run).map_err(|error| system("start a thread of", &error))
}

fn runtime(options: &HubOptions) -> Result<tokio::runtime::Runtime, Error> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(options.activity_threads)
        .thread_name("activities-waiting")
        .enable_all()
        .build()
        .map_err(|error| system("start the runtime of", &error))
}

fn system(action: &'static str, error: &std::io::Error) -> Error {
    let place = Location::File { path: "this process".into(), offset: None };
    Error::Store(StoreError::Io { action, place, reason: error.to_string(), is_full: false })
}

fn died() -> StoreError {
    let place = Location::File { path: "the partition".into(), offset: None };
    StoreError::Io { action: "recover", place, reason: "its thread died".to_owned(), is_full: false }
}
