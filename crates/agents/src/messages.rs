//! Messages of coordinator and agents.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use narrows_load::{LoadPart, PartReport};
use narrows_model::load::{ClockOffset, LoadBatch, Tracing};
use narrows_telemetry::Records;
use serde::{Deserialize, Serialize};

/// Version of the messages. Both sides must have the same one, as well as the same version of Narrows: plans are data whose
/// meaning is in the program.
const MESSAGES: u32 = 1;

/// The version of this program, as the other side has to have it.
pub(crate) fn version() -> String {
    format!("{} (messages {MESSAGES})", env!("CARGO_PKG_VERSION"))
}

/// An agent about itself. Only name and version are read of an agent of another version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Introduction {
    pub(crate) name: String,
    pub(crate) version: String,
    #[serde(default)]
    pub(crate) labels: BTreeMap<String, String>,
    /// Cores that it may use.
    #[serde(default)]
    pub(crate) cores: usize,
    /// Its work, if it has any.
    #[serde(default)]
    pub(crate) work: Option<WorkUnderWay>,
    /// Services on its machine that it can look at.
    #[serde(default)]
    pub(crate) watches: Vec<String>,
    /// Whether it receives telemetry of services.
    #[serde(default)]
    pub(crate) receives: bool,
}

/// Parts that an agent is sending.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct WorkUnderWay {
    pub(crate) run: String,
    pub(crate) trial: i64,
}

/// Response to a command.
pub(crate) type Response<T> = Result<T, String>;

/// Response to `ping`: when it came and when this was said, in Unix nanoseconds by the agent's clock.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Pong {
    pub(crate) received_ns: i64,
    pub(crate) responded_ns: i64,
}

/// Command to send a part of the load that the agent has the plan of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Assignment {
    pub(crate) run: String,
    pub(crate) trial: i64,
    /// See [`Begun::load`].
    pub(crate) load: i64,
    /// Number of the part in its trial.
    pub(crate) number: usize,
    pub(crate) part: LoadPart,
    /// How long the agent goes on without a sign of life from the coordinator, in milliseconds.
    pub(crate) alone_ms: u64,
}

/// Command to end parts of a trial before their time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Stop {
    pub(crate) run: String,
    pub(crate) trial: i64,
    /// One part; all when there is none.
    pub(crate) number: Option<usize>,
}

/// Command to look at services on the agent's machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Watch {
    pub(crate) run: String,
    pub(crate) trial: i64,
    /// See [`Begun::load`].
    pub(crate) load: i64,
    /// Which requests of the load are traced.
    pub(crate) tracing: Option<Tracing>,
    /// Addresses of replicas, for connections to them.
    pub(crate) peers: Vec<(SocketAddr, String, u32)>,
}

/// Replica that an agent looks at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchedReplica {
    /// Its service.
    pub service: String,
    /// Its number.
    pub replica: u32,
    /// Its process there; 0 where it is known by its control group.
    pub pid: u32,
}

/// Sign of life of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Alive {
    pub(crate) agent: String,
}

/// Report in the stream of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Report {
    /// The coordinator's: the load begins.
    Begun(Begun),
    /// The coordinator's: a part belongs to an agent from now on.
    Given(Given),
    /// The coordinator's: a part is over, and what its agent reports from now on does not count.
    Lost(Lost),
    /// A second of a part, by its number.
    Second { load: i64, part: usize, number: u64, batch: LoadBatch },
    /// Early end of a part that the coordinator did not ask for.
    Left { load: i64, part: usize, reason: String },
    /// The coordinator's: an agent looks at services.
    Sees(Sees),
    /// Records that an agent saw, by its clock.
    Seen { load: i64, agent: String, records: Records },
    /// The end of what an agent saw.
    Blind(Blind),
    /// The end of a part.
    Ended { load: i64, part: usize, end: Response<Box<PartReport>> },
}

/// The beginning of a load.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Begun {
    /// Number that no other load of the trial has: an agent that was lost may report of an earlier one.
    pub(crate) load: i64,
    /// Its first instant by the coordinator's clock, in Unix nanoseconds.
    pub(crate) start_ns: i64,
    /// Threads of the load.
    pub(crate) threads: usize,
}

/// A part of a load with its agent. Parts are numbered in the order in which they are given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Given {
    pub(crate) agent: String,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) cores: usize,
    /// The part, by the clock of the agent.
    pub(crate) part: LoadPart,
    pub(crate) clock: ClockOffset,
}

/// An agent that looks at services.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sees {
    pub(crate) agent: String,
    pub(crate) clock: ClockOffset,
    pub(crate) receives: bool,
}

/// The end of what an agent saw.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Blind {
    /// See [`Begun::load`].
    pub(crate) load: i64,
    pub(crate) agent: String,
    /// Records that found no room.
    pub(crate) dropped: u64,
}

/// The end of a part whose agent was lost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Lost {
    pub(crate) part: usize,
    pub(crate) reason: String,
}
