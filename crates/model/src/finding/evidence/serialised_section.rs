//! Evidence of `serialised-section`.

use serde::{Deserialize, Serialize};

use super::cpu::Proof;
use super::load::LoadLevel;
use super::one_core::OneCore;

/// A service whose requests take turns, in one interval of the load. Numbers of requests are means at any moment.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SerialisedSection {
    /// Label of the interval.
    pub interval: String,
    /// The load in it.
    pub load: LoadLevel,
    /// Successful responses per second in it.
    pub rate: f64,
    /// Mean latency in it, nanoseconds.
    pub latency_ns: f64,
    /// Requests of the load in progress.
    pub in_flight: f64,
    /// Those of them that wait for their turn.
    pub waiting: f64,
    /// Those of them that are at work.
    pub at_work: f64,
    /// Whether threads wait for a lock; otherwise no thread waits, as with a lock of an asynchronous program.
    pub by_threads: bool,
    /// Cores that the service uses.
    pub cores: f64,
    /// The peer at which the request at work waits most of its time; `None` if there is no such peer.
    pub peer: Option<String>,
    /// Use of the processor, if the request at work computes; `None` if it waits.
    pub computing: Option<OneCore>,
    /// Sign that more load is not carried.
    pub proof: Proof,
}
