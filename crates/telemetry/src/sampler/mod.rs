//! Reads from `/proc` what the processes of a trial, the generator and the host use, at a fixed interval.
//!
//! One thread, named `sampler`. Each tick scans `/proc` once (`scan.rs`) into a reading, and the difference of two
//! readings is a batch of points (`diff.rs`): CPU is a rate, so the first reading of a replica gives memory only. Ticks
//! stand on a schedule fixed at the start, so lateness does not add up; a tick that was missed is left out, never
//! made up for.
//!
//! A replica is its root process, all descendants of it, and, where the root leads a session, everything in that
//! session, so that children that made themselves daemons still count. A process that leaves both (`setsid` after the
//! parent's death) is lost. CPU comes in the kernel's clock ticks, usually 10 ms, so at an interval of one second a
//! value is within 0.01 cores, at 100 ms within 0.1.
//!
//! Not here: cgroup accounting and pressure (PSI).

mod diff;
mod scan;
mod stat;

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::{Receipt, Store};

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

/// What the sampler did since it started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SamplerStats {
    /// Readings taken.
    pub readings: u64,
    /// Readings left out because an earlier one took too long or the machine was too busy.
    pub missed: u64,
    /// Batches of points that the store refused.
    pub refused: u64,
}

/// A running sampler. Dropping it stops it.
#[derive(Debug)]
pub struct Sampler {
    watched: Arc<Mutex<Watched>>,
    stats: Arc<Mutex<SamplerStats>>,
    /// Its end is the sign to stop.
    stop: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Root processes by service and replica.
type Watched = BTreeMap<(String, u32), u32>;

impl Sampler {
    /// Starts the thread and takes the first reading at once. Points go to `store`; a refusal is counted, not retried.
    ///
    /// # Errors
    /// When the interval is too short, `/proc` cannot be read, or no thread can be started.
    pub fn start(config: SamplerConfig, store: Arc<dyn Store>) -> Result<Self, Error> {
        if config.interval < INTERVAL_MIN {
            return Err(Error::IntervalTooShort(config.interval));
        }
        let scanner = scan::Scanner::new().map_err(Error::Proc)?;
        let (stop, asked_to_stop) = sync_channel(0);
        let watched = Arc::new(Mutex::new(Watched::new()));
        let stats = Arc::new(Mutex::new(SamplerStats::default()));
        let state = Sampling {
            scanner,
            store,
            before: None,
            receipt: None,
            watched: Arc::clone(&watched),
            stats: Arc::clone(&stats),
        };
        let thread = std::thread::Builder::new()
            .name("sampler".to_owned())
            .spawn(move || state.run(config.interval, &asked_to_stop))
            .map_err(Error::Thread)?;
        Ok(Self { watched, stats, stop: Some(stop), thread: Some(thread) })
    }

    /// From the next reading on, `pid` is the root process of a replica, instead of any earlier one.
    ///
    /// # Errors
    /// When [`WATCHED_MAX`] replicas are watched.
    pub fn watch(&self, service: &str, replica: u32, pid: u32) -> Result<(), Error> {
        let mut watched = lock(&self.watched);
        let key = (service.to_owned(), replica);
        if watched.len() >= WATCHED_MAX && !watched.contains_key(&key) {
            return Err(Error::TooManyWatched { service: service.to_owned(), replica });
        }
        watched.insert(key, pid);
        Ok(())
    }

    /// From the next reading on, only the generator and the host are sampled.
    pub fn unwatch_all(&self) {
        lock(&self.watched).clear();
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

/// What the thread owns.
struct Sampling {
    scanner: scan::Scanner,
    store: Arc<dyn Store>,
    before: Option<scan::Reading>,
    receipt: Option<Receipt>,
    watched: Arc<Mutex<Watched>>,
    stats: Arc<Mutex<SamplerStats>>,
}

impl Sampling {
    fn run(mut self, interval: Duration, asked_to_stop: &Receiver<()>) {
        let mut schedule = Schedule { next: Instant::now(), interval };
        loop {
            self.tick();
            let now = Instant::now();
            lock(&self.stats).missed += schedule.advance(now);
            match asked_to_stop.recv_timeout(schedule.next.saturating_duration_since(now)) {
                Err(RecvTimeoutError::Timeout) => {}
                Ok(()) | Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn tick(&mut self) {
        let watched = lock(&self.watched).clone();
        // Without /proc/stat there is nothing to say about this tick; the next one is compared with the one before.
        let Ok(reading) = self.scanner.read(&watched) else { return };
        let points = diff::points(self.before.as_ref(), &reading, &self.scanner.units());
        self.before = Some(reading);
        let receipt = (!points.is_empty()).then(|| self.store.points(points));
        let refused = self.receipt.take().is_some_and(|mut earlier| matches!(earlier.try_recv(), Ok(Err(_))));
        self.receipt = receipt;
        let mut stats = lock(&self.stats);
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
