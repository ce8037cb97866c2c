//! Reads from `/proc` and from control groups what the processes of a trial, the generator and the host use, at a fixed
//! interval.
//!
//! One thread, named `sampler`. Each tick takes one reading (`scan.rs`), and the difference of two readings is a batch
//! of points (`diff.rs`): CPU is a rate, so the first reading of a replica gives memory only. What costs more or matters
//! less than CPU and memory, the details (`rates.rs`), is read at most once a second. Ticks stand on a schedule fixed at
//! the start, so lateness does not add up; a tick that was missed is left out, never made up for. Between ticks, what
//! threads do is sampled every [`STATES_INTERVAL`] (`states.rs`), and connections at least every [`SOCKETS_INTERVAL`]
//! (`sockets/`).
//!
//! A replica is its root process, all descendants of it, and, where the root leads a session, everything in that
//! session, so that children that made themselves daemons still count. A process that leaves both (`setsid` after the
//! parent's death) is lost. Or it is what is in a control group and below. CPU comes in the kernel's clock ticks, usually
//! 10 ms, so at an interval of one second a value is within 0.01 cores, at 100 ms within 0.1.
//!
//! Figures that this user may not read, or this kernel does not have, are absent; [`SamplerStats`] says so. All names
//! with their units: [`narrows_model::series::names::SAMPLED`].

mod cgroups;
mod details;
mod diff;
mod files;
mod host;
mod limits;
mod mounts;
mod points;
mod process;
mod rates;
mod scan;
mod sockets;
mod stat;
mod states;
mod syscalls;
mod table;
mod text;
mod threads;

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use narrows_telemetry::{Receipt, Store};

pub use limits::{
    DESCRIPTORS_MAX, DETAILS_INTERVAL, DeniedFigures, HOST_PROCESSES_MAX, LeftOut, PROCESSES_MAX, PSS_BYTES_MAX,
    RARE_INTERVAL, SOCKETS_FULL_SHARE_MAX, SOCKETS_INTERVAL, SOCKETS_SHARE_MAX, STATES_INTERVAL, STATES_MAX,
    THREADS_MAX,
};
pub use sockets::{SocketGaps, listening_ports};

/// Where the kernel shows processes.
const PROC: &str = "/proc";

/// The shortest interval.
pub const INTERVAL_MIN: Duration = Duration::from_millis(100);

/// Replicas watched at once at most.
pub const WATCHED_MAX: usize = 1024;

/// Why sampling cannot be done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The interval is below [`INTERVAL_MIN`].
    #[error("sampling interval is {0:?}, expected {INTERVAL_MIN:?} or more")]
    IntervalTooShort(Duration),
    /// No thread to be had.
    #[error("cannot start the sampler's thread")]
    Thread(#[source] std::io::Error),
    /// `/proc` is not mounted or hides what is needed.
    #[error("cannot read /proc/stat")]
    Proc(#[source] std::io::Error),
    /// [`WATCHED_MAX`] replicas are watched.
    #[error("cannot watch replica {replica} of {service}: {WATCHED_MAX} replicas are watched, expected fewer")]
    TooManyWatched {
        /// Its service.
        service: String,
        /// Its number.
        replica: u32,
    },
    /// The control group to watch is not there.
    #[error(
        "cannot watch control group {} as replica {replica} of {service}: there is no cgroup.procs in it, expected a \
         folder such as /sys/fs/cgroup/shop.slice or a path from the hierarchy's root such as /shop.slice",
        path.display()
    )]
    NoCgroup {
        /// Its service.
        service: String,
        /// Its number.
        replica: u32,
        /// As it was given.
        path: PathBuf,
    },
}

/// How to sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SamplerConfig {
    /// From reading to reading; [`INTERVAL_MIN`] or more.
    pub interval: Duration,
}

impl Default for SamplerConfig {
    fn default() -> Self {
        Self { interval: Duration::from_secs(1) }
    }
}

/// Counts of the sampler since it started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SamplerStats {
    /// Readings taken.
    pub readings: u64,
    /// Readings left out because an earlier one took too long or the machine was too busy.
    pub missed: u64,
    /// Batches of points that the store refused.
    pub refused: u64,
    /// Omissions because of a limit.
    pub left_out: LeftOut,
    /// Figures that this user may not read.
    pub denied: DeniedFigures,
    /// Sockets that are missing from the samples of the replicas watched now.
    pub sockets: SocketGaps,
}

/// A running sampler. Dropping it stops it.
#[derive(Debug)]
pub struct Sampler {
    watched: Arc<Mutex<Watched>>,
    names: Arc<Mutex<PeerNames>>,
    stats: Arc<Mutex<SamplerStats>>,
    /// Its end is the sign to stop.
    stop: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Service and replica.
type ReplicaKey = (String, u32);

/// Watched replicas.
type Watched = BTreeMap<ReplicaKey, Target>;

/// Replicas by an address of this machine at which they are reached.
type PeerNames = HashMap<SocketAddr, ReplicaKey>;

/// Parts of a replica.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Target {
    /// A root process and what belongs to it.
    Process(u32),
    /// The processes in a control group and below; its folder.
    Cgroup(PathBuf),
}

impl Sampler {
    /// Starts the thread and takes the first reading at once. Points go to `store`; a refusal is counted, not retried.
    ///
    /// # Errors
    /// When the interval is too short, `/proc` cannot be read, or no thread can be started.
    pub fn start(config: SamplerConfig, store: Arc<dyn Store>) -> Result<Self, Error> {
        if config.interval < INTERVAL_MIN {
            return Err(Error::IntervalTooShort(config.interval));
        }
        let scanner = scan::Scanner::new(PROC).map_err(Error::Proc)?;
        let (stop, asked_to_stop) = sync_channel(0);
        let watched = Arc::new(Mutex::new(Watched::new()));
        let names = Arc::new(Mutex::new(PeerNames::new()));
        let stats = Arc::new(Mutex::new(SamplerStats::default()));
        let state = Sampling {
            scanner,
            store,
            interval: config.interval,
            before: None,
            details: None,
            receipt: None,
            watched: Arc::clone(&watched),
            names: Arc::clone(&names),
            stats: Arc::clone(&stats),
        };
        let thread = std::thread::Builder::new()
            .name("sampler".to_owned())
            .spawn(move || state.run(&asked_to_stop))
            .map_err(Error::Thread)?;
        Ok(Self { watched, names, stats, stop: Some(stop), thread: Some(thread) })
    }

    /// From the next reading on, `pid` is the root process of a replica, instead of any earlier one.
    ///
    /// # Errors
    /// When [`WATCHED_MAX`] replicas are watched.
    pub fn watch(&self, service: &str, replica: u32, pid: u32) -> Result<(), Error> {
        self.watch_target(service, replica, Target::Process(pid))
    }

    /// From the next reading on, what is in this control group and below makes up a replica, instead of anything
    /// earlier. The path is the group's folder, such as `/sys/fs/cgroup/shop.slice`, or its path from the root of its
    /// hierarchy as `/proc/PID/cgroup` writes it, such as `/shop.slice`. Processes that join later count too.
    ///
    /// # Errors
    /// When there is no such group, or [`WATCHED_MAX`] replicas are watched.
    pub fn watch_cgroup(&self, service: &str, replica: u32, path: &Path) -> Result<(), Error> {
        let folder = cgroups::folder(&mut files::Files::new(PROC), path);
        let missing = || Error::NoCgroup { service: service.to_owned(), replica, path: path.to_owned() };
        self.watch_target(service, replica, Target::Cgroup(folder.ok_or_else(missing)?))
    }

    fn watch_target(&self, service: &str, replica: u32, target: Target) -> Result<(), Error> {
        let mut watched = lock(&self.watched);
        let key = (service.to_owned(), replica);
        if watched.len() >= WATCHED_MAX && !watched.contains_key(&key) {
            return Err(Error::TooManyWatched { service: service.to_owned(), replica });
        }
        watched.insert(key, target);
        Ok(())
    }

    /// From the next reading on, connections to this address are connections to this replica: a port that a container
    /// publishes, or a service elsewhere.
    pub fn name_peer(&self, address: SocketAddr, service: &str, replica: u32) {
        let mut names = lock(&self.names);
        if names.len() < WATCHED_MAX {
            names.insert(address, (service.to_owned(), replica));
        }
    }

    /// Counts so far.
    pub fn stats(&self) -> SamplerStats {
        *lock(&self.stats)
    }

    /// From the next reading on, only the generator and the host are sampled.
    pub fn unwatch_all(&self) {
        lock(&self.watched).clear();
        lock(&self.names).clear();
    }

    /// Ends the thread, after the reading under way if there is one, and says what it did since the start.
    pub fn stop(mut self) -> SamplerStats {
        self.end();
        *lock(&self.stats)
    }

    fn end(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // Its panic was printed by the thread itself; there is nothing to add.
            let _ = thread.join();
        }
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.end();
    }
}

/// State of the thread.
struct Sampling {
    scanner: scan::Scanner,
    store: Arc<dyn Store>,
    interval: Duration,
    before: Option<scan::Reading>,
    /// The detailed reading before.
    details: Option<details::Details>,
    receipt: Option<Receipt>,
    watched: Arc<Mutex<Watched>>,
    names: Arc<Mutex<PeerNames>>,
    stats: Arc<Mutex<SamplerStats>>,
}

impl Sampling {
    fn run(mut self, asked_to_stop: &Receiver<()>) {
        let began = Instant::now();
        let mut readings = Schedule { next: began, interval: self.interval };
        let mut states = Schedule { next: began + STATES_INTERVAL, interval: STATES_INTERVAL };
        loop {
            if readings.next <= Instant::now() {
                self.tick();
                lock(&self.stats).missed += readings.advance(Instant::now());
            } else if states.next <= Instant::now() {
                self.scanner.sample_states();
                // Samples that were missed leave fewer to take the mean of.
                states.advance(Instant::now());
            } else {
                self.scanner.sample_sockets();
            }
            let next = readings.next.min(states.next).min(self.scanner.sockets_due());
            match asked_to_stop.recv_timeout(next.saturating_duration_since(Instant::now())) {
                Err(RecvTimeoutError::Timeout) => {}
                Ok(()) | Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn tick(&mut self) {
        let watched = lock(&self.watched).clone();
        self.scanner.name_peers(&lock(&self.names));
        // Without /proc/stat there is nothing to say about this tick; the next one is compared with the one before.
        let Ok((reading, details)) = self.scanner.read(&watched, self.interval) else { return };
        let units = self.scanner.units();
        let mut points = diff::points(self.before.as_ref(), &reading, &units);
        if let Some(details) = details {
            points.extend(rates::points(self.details.as_ref(), &details, &units, reading.time_ns));
            self.details = Some(details);
        }
        self.before = Some(reading);
        let receipt = (!points.is_empty()).then(|| self.store.points(points));
        let refused = self.receipt.take().is_some_and(|mut earlier| matches!(earlier.try_recv(), Ok(Err(_))));
        self.receipt = receipt;
        let mut stats = lock(&self.stats);
        (stats.left_out, stats.denied, stats.sockets) = self.scanner.absent();
        stats.readings += 1;
        stats.refused += u64::from(refused);
    }
}

/// When readings are due: every `interval` from the first, whatever became of the earlier ones.
struct Schedule {
    next: Instant,
    interval: Duration,
}

impl Schedule {
    /// Moves on to the first due time after `now`; says how many due times passed unused.
    fn advance(&mut self, now: Instant) -> u64 {
        self.next += self.interval;
        let mut missed = 0;
        while self.next <= now {
            self.next += self.interval;
            missed += 1;
        }
        missed
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
