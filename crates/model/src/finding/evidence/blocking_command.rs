//! Evidence of `blocking-command`.

use serde::{Deserialize, Serialize};

use super::load::LoadLevel;

/// A command that holds the one thread of a server for long, in one interval of the load.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct BlockingCommand {
    /// The command, in capitals.
    pub command: String,
    /// Label of the interval.
    pub interval: String,
    /// The load in it.
    pub load: LoadLevel,
    /// Calls per second, above 0.
    pub calls: f64,
    /// Mean time of a call on the thread, nanoseconds.
    pub call_ns: f64,
    /// The longest call, nanoseconds; `None` if the server's log of slow calls has none.
    pub longest_ns: Option<f64>,
    /// Share of the time that these calls hold the thread, 0 to 1.
    pub thread_share: f64,
    /// Calls of all other commands per second; they wait meanwhile.
    pub other_calls: f64,
    /// Mean time of these on the thread, nanoseconds; `None` without any.
    pub other_call_ns: Option<f64>,
    /// Services of the run that connect to the server, in order; empty if unknown.
    pub clients: Vec<String>,
}
