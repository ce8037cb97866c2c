//! Evidence of `slow-dependency`.

use serde::{Deserialize, Serialize};

use super::cpu::Proof;
use super::load::LoadLevel;
use super::sockets::SocketReading;

/// A dependency without spans of its own on which requests of one operation spend most of their critical path.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SlowDependency {
    /// The services that call it, by name.
    pub callers: Vec<String>,
    /// Whether it is a service of the experiment, which sends no spans.
    pub is_in_experiment: bool,
    /// Time of a request's critical path in calls to it, mean, nanoseconds.
    pub request_ns: f64,
    /// Length of one call on the critical path, median, nanoseconds; by sockets the mean.
    pub call_ns: f64,
    /// Calls on the critical path of a request that makes one, median, from 1.
    pub calls_per_request: f64,
    /// Whether calls take longer under more load.
    pub growth: DependencyGrowth,
    /// Time of calls under each load, the lightest first; those loads under which enough requests were seen.
    pub levels: Vec<DependencyLevel>,
    /// Share of the calls that failed, 0 to 1.
    pub failed_share: f64,
    /// How calls ended, most frequent first.
    pub statuses: Vec<DependencyStatus>,
    /// Proof that the heaviest of the loads is not carried; `None` without one, or when it was not read.
    pub proof: Option<Proof>,
    /// Requests that wait for it, as sockets show it; `None` if spans show it.
    #[serde(default)]
    pub sockets: Option<SocketReading>,
}

/// Whether calls to a dependency take longer under more load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DependencyGrowth {
    /// Several times as long: it has no capacity left.
    Grows,
    /// About as long: it is slow by itself.
    Constant,
    /// There was one load only, the growth is small, or a caller that is short of CPU may have caused it.
    #[default]
    Unknown,
}

/// Time of calls under one load.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct DependencyLevel {
    /// The load.
    pub load: LoadLevel,
    /// Successful responses of the load per second, from 0.
    pub rate: f64,
    /// Length of one call, median, nanoseconds.
    pub call_ns: f64,
}

/// How a part of the calls ended.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct DependencyStatus {
    /// The status code of HTTP, RPC or a database, or the type of the error.
    pub status: String,
    /// Share of the calls, 0 to 1.
    pub share: f64,
}
