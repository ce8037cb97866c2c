//! Evidence of `hot-partition`.

use serde::{Deserialize, Serialize};

/// Several equal places and the fullest of them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct HotPartition {
    /// Kind of the places.
    pub kind: PlaceKind,
    /// Name of the fullest.
    pub hot: String,
    /// Places, from 2.
    pub places: usize,
    /// Share of the calls, or of the consumption, that the fullest gets, 0 to 1.
    pub share: f64,
    /// Share of the fullest, as a multiple of the mean.
    pub ratio: f64,
    /// Counted quantity.
    pub counted: Counted,
    /// Calls to all places, or calls that would consume as much.
    pub calls: f64,
    /// How much the places use; `None` if that is not known of all of them.
    pub used: Option<PlaceUse>,
    /// How long calls to them take; `None` if it is not known.
    pub latency: Option<PlaceLatency>,
    /// Purpose of the calls; `None` if it is not recorded.
    pub keys: Option<Keys>,
    /// Connections to the places, as sockets show them; `None` if calls are counted otherwise.
    #[serde(default)]
    pub connections: Option<PlaceConnections>,
}

/// Connections that callers keep to places, means.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct PlaceConnections {
    /// To the fullest.
    pub hot: f64,
    /// To each of the others.
    pub others: f64,
    /// Calls over a connection before it is closed, mean; `None` if none was opened.
    pub calls_each: Option<f64>,
}

/// Kind of several equal places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlaceKind {
    /// Physical partitions of a store.
    #[default]
    Partition,
    /// Replicas of a service of the trial.
    Replica,
    /// Servers behind one name.
    Server,
    /// Partitions of a topic or queue.
    Topic,
}

impl PlaceKind {
    /// One of them, for people.
    pub fn word(self) -> &'static str {
        match self {
            PlaceKind::Partition | PlaceKind::Topic => "partition",
            PlaceKind::Replica => "replica",
            PlaceKind::Server => "server",
        }
    }
}

/// Quantity that was counted for each place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Counted {
    /// Calls in the traces.
    #[default]
    Calls,
    /// Consumption that the store reports, because spans do not show the place.
    Consumption,
    /// Calls that the sockets of the callers show, because spans do not show the place.
    Sockets,
}

/// How much places use, means.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct PlaceUse {
    /// By the fullest.
    pub hot: f64,
    /// By each of the others.
    pub others: f64,
    /// Whether these are shares of a limit, 0 to about 1; else request units per second or cores.
    pub is_share: bool,
    /// Whether the fullest uses so much more that it is a sign of strain.
    pub is_strained: bool,
}

/// How long calls to places take, medians.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct PlaceLatency {
    /// To the fullest, nanoseconds.
    pub hot_ns: f64,
    /// To the others, nanoseconds.
    pub others_ns: f64,
    /// Whether the fullest is so much slower that it is a sign of strain.
    pub is_strained: bool,
}

/// The keys that calls are for; of replicas, the clients that call.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Keys {
    /// Different keys.
    pub count: usize,
    /// Share that a hash of that many gives the fullest, as a multiple of the mean.
    pub expected_ratio: f64,
    /// Whether that few keys are often this uneven by chance.
    pub are_too_few: bool,
    /// Share of one key among the calls to the fullest, 0 to 1; `None` if no key makes up most of them.
    pub hot_key_share: Option<f64>,
}
