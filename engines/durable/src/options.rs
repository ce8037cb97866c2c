//! The settings of a hub and their limits.

use crate::error::Error;

/// The most partitions a hub may have.
pub const PARTITIONS_MAX: u16 = 64;

/// How far the engine runs ahead of its log.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mode {
    /// Inside a partition, steps go on at once; only what leaves the partition waits until it is durable.
    #[default]
    Speculative,
    /// Every message, also between instances of one partition, waits until the step that sent it is durable.
    PersistFirst,
}

/// Fate of an orchestration whose code is missing or does not decide what its history says.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mismatch {
    /// It is parked: messages for it are kept, and it goes on once the hub is opened with code that fits.
    #[default]
    Park,
    /// It fails, for good.
    Fail,
}

/// The settings of a hub. [`HubOptions::default`] suits one machine.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HubOptions {
    /// How many partitions a new hub gets, 1 to 64; an existing hub keeps its own. Default: one per processor.
    pub partitions: u16,
    /// How far steps run ahead of the log. Stores that take each step alone make it [`Mode::PersistFirst`].
    pub mode: Mode,
    /// Fate of orchestrations whose code does not fit. Default: they are parked.
    pub on_mismatch: Mismatch,
    /// Threads that run activities, 1 to 256. Default: one per processor.
    pub activity_threads: usize,
    /// Activities of one partition that may be under way at once; more wait. At least 1.
    pub activities_running_max: usize,
    /// Bytes of suspended orchestrations that one partition keeps in memory ready to go on; others are replayed.
    pub cursor_cache_bytes: usize,
    /// Bytes of instances, histories, messages that have not arrived, timers and waiting activities that one partition
    /// holds; starts, events and signals beyond it are refused.
    pub instance_bytes_max: u64,
    /// Payloads above this many bytes are kept beside the log. At least 1024.
    pub spill_above_bytes: usize,
    /// Bytes of log after which a snapshot is taken and the log cut. At least 64 KiB.
    pub snapshot_after_bytes: u64,
    /// Requests of clients that one partition takes in at once; more wait. At least 1.
    pub requests_max: usize,
    /// Where the hub's metrics go. Hubs of one process need meters of different scopes, or theirs are taken together.
    /// Default: nowhere.
    pub meter: Option<opentelemetry::metrics::Meter>,
}

impl Default for HubOptions {
    fn default() -> Self {
        let processors = std::thread::available_parallelism().map_or(2, usize::from);
        Self {
            partitions: u16::try_from(processors).unwrap_or(PARTITIONS_MAX).clamp(1, PARTITIONS_MAX),
            mode: Mode::Speculative,
            on_mismatch: Mismatch::Park,
            activity_threads: processors.clamp(1, 256),
            activities_running_max: 65_536,
            cursor_cache_bytes: 256 << 20,
            instance_bytes_max: 4 << 30,
            spill_above_bytes: 64 << 10,
            snapshot_after_bytes: 128 << 20,
            requests_max: 65_536,
            meter: None,
        }
    }
}

impl HubOptions {
    /// Checks every range.
    ///
    /// # Errors
    /// [`Error::BadOption`] for the first setting outside its range.
    pub fn check(&self) -> Result<(), Error> {
        within("partitions", u64::from(self.partitions), 1, u64::from(PARTITIONS_MAX))?;
        within("activity_threads", self.activity_threads as u64, 1, 256)?;
        within("activities_running_max", self.activities_running_max as u64, 1, 1 << 24)?;
        within("spill_above_bytes", self.spill_above_bytes as u64, 1024, 8 << 20)?;
        within("snapshot_after_bytes", self.snapshot_after_bytes, 64 << 10, 1 << 50)?;
        within("requests_max", self.requests_max as u64, 1, 1 << 24)
    }
}

fn within(option: &'static str, value: u64, least: u64, most: u64) -> Result<(), Error> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(Error::BadOption { option, value: value.to_string(), expected: format!("{least} to {most}") })
}
