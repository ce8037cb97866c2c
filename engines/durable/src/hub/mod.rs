//! A running hub: its threads, how they start and how they end.
//!
//! Per partition one thread for the state machine and one for its log; for all together, threads for activities, a
//! small runtime for those that wait, and one thread for snapshots.

mod activities;
pub(crate) mod agreement;
pub(crate) mod clock;
mod fence;
pub(crate) mod health;
mod inbox;
pub(crate) mod keeper;
mod log;
mod meter;
mod metrics;
mod partition_thread;
mod pending_response;
mod post;
mod tenure;
#[cfg(test)]
mod tests;

use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

pub(crate) use activities::Task;
pub use health::Health;
pub(crate) use inbox::Inbox;
pub use meter::{HubStats, PartitionStats};
pub(crate) use partition_thread::now;
pub(crate) use pending_response::PendingResponse;
pub(crate) use post::Post;

pub(crate) use fence::{Fence, Renewal, Term, Tick};
pub(crate) use meter::Meter;
pub(crate) use post::Away;
pub(crate) use tenure::{Engine, RecoveringPartition, Tenure};

use activities::{Activities, Duty};
use metrics::{CommitMetrics, MetricSource};
use partition_thread::Recovery;

use crate::client::Client;
use crate::codec::FORMAT;
use crate::error::Error;
use crate::ids::{Epoch, PartitionId, Position};
use crate::node::exclusion::{self, SilentNodes};
use crate::options::{HubOptions, Mode};
use crate::program::Program;
use crate::stopped;
use crate::store::{Batching, HubShape, Location, Store, StoreError};

/// A running hub. Dropping it closes it.
pub struct Hub {
    client: Client,
    engine: Arc<Engine>,
    meters: Vec<Arc<Meter>>,
    running: Mutex<Option<Threads>>,
}

/// State that exists only while the hub runs.
struct Threads {
    partitions: Vec<Tenure>,
    keeper: JoinHandle<()>,
    runtime: tokio::runtime::Runtime,
}

impl Hub {
    /// Opens a hub, new or kept in `store`: recovers all partitions, then starts them.
    ///
    /// A hub that [nodes](crate::Node) run is in use. If there are records of nodes, it takes a moment, at most two fifths
    /// of their lease, to see whether they are alive.
    ///
    /// # Errors
    /// [`Error::BadOption`], or [`Error::Store`] if the store is in use, damaged or foreign.
    pub fn open(store: Arc<dyn Store>, program: impl Program, options: HubOptions) -> Result<Self, Error> {
        options.check()?;
        let shape = store.open_or_create(HubShape { partitions: options.partitions, format: FORMAT })?;
        let silent = SilentNodes::nodes(&*store)?;
        let mut epochs = Vec::new();
        let owner = exclusion::name();
        for partition in (0..shape.partitions).map(PartitionId) {
            match store.acquire(partition, &owner) {
                Ok(epoch) => epochs.push(epoch),
                Err(error) => {
                    give_back(&*store, &epochs);
                    return Err(error.into());
                }
            }
        }
        // A node that began in the meantime sees the partitions taken; one of the two sees the other.
        let opened = silent.are_silent(&*store).map_err(Error::from);
        let start = || Self::start(Arc::clone(&store), Arc::new(program), options, epochs.clone());
        let opened = opened.and_then(|()| start());
        if opened.is_err() {
            give_back(&*store, &epochs);
        }
        opened
    }

    fn start(
        store: Arc<dyn Store>,
        program: Arc<dyn Program>,
        options: HubOptions,
        epochs: Vec<Epoch>,
    ) -> Result<Self, Error> {
        let count = u16::try_from(epochs.len()).unwrap_or(u16::MAX);
        let runtime = runtime(&options)?;
        let post = Arc::new(Post::new(count, None));
        let meters = meters(&options, &post);
        let (engine, keeper) = engine(store, program, options, &post, None, &runtime)?;
        let client = Client::new(post, None, engine.options.requests_max, runtime.handle().clone());
        let partitions = match start_all(&engine, &epochs, &meters) {
            Ok(partitions) => partitions,
            Err(error) => {
                engine.activities.close();
                engine.end_chores();
                let _ = keeper.join();
                runtime.shutdown_background();
                return Err(error);
            }
        };
        let running = Mutex::new(Some(Threads { partitions, keeper, runtime }));
        Ok(Self { client, engine, meters, running })
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
        let each = self.engine.post.partitions().zip(&self.meters);
        let of = |(id, meter): (PartitionId, &Arc<Meter>)| {
            self.engine.post.inbox(id).map(|inbox| health::of(&inbox, meter, held_up))
        };
        each.filter_map(of).collect()
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
        self.end(Tenure::close)
    }

    /// Stops at once and loses everything that is not durable yet, as a crash would. For tests.
    pub fn halt(&self) {
        // A crash would not give the partitions back either, so an error of the store does not matter.
        let _ = self.end(Tenure::halt);
    }

    fn end(&self, end: impl Fn(&Tenure)) -> Result<(), Error> {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(Threads { partitions, keeper, runtime }) = running else { return Ok(()) };
        self.engine.activities.close();
        partitions.iter().for_each(&end);
        let owned: Vec<(PartitionId, Epoch)> = partitions.iter().map(|tenure| (tenure.id, tenure.epoch)).collect();
        let failures: Vec<Error> = partitions.into_iter().filter_map(Tenure::ended).collect();
        self.engine.end_chores();
        let _ = keeper.join();
        runtime.shutdown_background();
        let mut released = Ok(());
        for (partition, epoch) in owned {
            released = released.and(self.engine.store.release(partition, epoch));
        }
        failures.into_iter().next().map_or(released.map_err(Error::from), Err)
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

/// Figures of each partition, which are observed if there is something to observe them with.
pub(crate) fn meters(options: &HubOptions, post: &Arc<Post>) -> Vec<Arc<Meter>> {
    let commits = |id| options.meter.as_ref().map(|meter| CommitMetrics::new(meter, id));
    let meters: Vec<Arc<Meter>> = post.partitions().map(|id| Arc::new(Meter::new(commits(id)))).collect();
    if let Some(meter) = &options.meter {
        metrics::observe(meter, &MetricSource::new(&meters, post));
    }
    meters
}

/// The engine that partitions share, with its threads: the keeper, which is joined in the end, and those of activities,
/// which are not, because user code may never return.
pub(crate) fn engine(
    store: Arc<dyn Store>,
    program: Arc<dyn Program>,
    mut options: HubOptions,
    post: &Arc<Post>,
    fence: Option<Arc<Fence>>,
    runtime: &tokio::runtime::Runtime,
) -> Result<(Arc<Engine>, JoinHandle<()>), Error> {
    if store.batching() == Batching::EachStep {
        options.mode = Mode::PersistFirst;
    }
    let (chores, due) = sync_channel(keeper::WAITING_MAX);
    let kept_in = Arc::clone(&store);
    let keeper = thread("keeper".to_owned(), move || keeper::keep(&*kept_in, &due))?;
    let activities = Arc::new(Activities::new(Arc::clone(&program), fence.clone(), runtime.handle().clone()));
    for at in 0..options.activity_threads {
        let activities = Arc::clone(&activities);
        thread(format!("activity-{at}"), move || activities.work(Duty::Regular))?;
    }
    runtime.spawn(Arc::clone(&activities).watch());
    let (post, chores) = (Arc::clone(post), Mutex::new(Some(chores)));
    Ok((Arc::new(Engine { store, program, options, post, fence, activities, chores }), keeper))
}

/// Starts all partitions, which begin to work once all have recovered and agree.
fn start_all(engine: &Arc<Engine>, epochs: &[Epoch], meters: &[Arc<Meter>]) -> Result<Vec<Tenure>, Error> {
    let mut starting = Vec::new();
    for ((id, epoch), meter) in engine.post.partitions().zip(epochs).zip(meters) {
        starting.push(RecoveringPartition::start(engine, id, *epoch, Term::default(), meter)?);
    }
    let all: Vec<Result<Recovery, StoreError>> = starting.iter().map(RecoveringPartition::recovered).collect();
    let cleared = |ends| engine.post.partitions().try_for_each(|id| stopped::clear(&*engine.store, id)).map(|()| ends);
    match agreed(all).and_then(cleared) {
        Ok(ends) => {
            // Each sends the others the messages they may have missed as soon as it works.
            starting.iter().for_each(|partition| partition.admit(engine));
            starting.into_iter().zip(ends).map(|(partition, end)| partition.go(engine, end)).collect()
        }
        Err(error) => {
            // They have the store, which is free once they have ended.
            starting.into_iter().for_each(RecoveringPartition::give_up);
            Err(error.into())
        }
    }
}

/// Where the logs end, if all partitions have recovered and none has lost what another knows of.
fn agreed(all: Vec<Result<Recovery, StoreError>>) -> Result<Vec<Position>, StoreError> {
    let all: Vec<Recovery> = all.into_iter().collect::<Result<_, _>>()?;
    agreement::check(&all.iter().map(|recovered| recovered.progress.clone()).collect::<Vec<_>>())?;
    Ok(all.iter().map(|recovered| recovered.end).collect())
}

/// Runs engine or user code; a panic becomes an error with its message.
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

pub(crate) fn thread(name: String, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, Error> {
    std::thread::Builder::new().name(name).spawn(run).map_err(|error| system("start a thread of", &error))
}

pub(crate) fn runtime(options: &HubOptions) -> Result<tokio::runtime::Runtime, Error> {
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
