//! Common parts of findings about CPU: the limit that is reached, and what shows that it holds the load back.

use serde::{Deserialize, Serialize};

use super::load::LoadLevel;

/// The CPU limit that is reached.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum CpuLimit {
    /// The limit in force for each replica.
    Cap {
        /// The limit, cores, above 0.
        cores: f64,
    },
    /// One core, by the busiest thread.
    #[default]
    Thread,
    /// All cores of the machine, by one service.
    Machine,
    /// All cores of the machine, by all programs together.
    Host,
    /// All cores of another machine, by the service and other programs there.
    OtherMachine {
        /// Its cores, 1 or more.
        cores: f64,
        /// Those of them that the service uses.
        used: f64,
    },
}

/// Sign that a load is no longer carried, by comparison with a lighter one.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Proof {
    /// Difference between the two.
    pub sign: ProofSign,
    /// The lighter load.
    pub lighter: LoadPoint,
    /// The load that is no longer carried.
    pub heavier: LoadPoint,
}

/// Sign that a load is no longer carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProofSign {
    /// Throughput no longer grows with the load.
    #[default]
    FlatThroughput,
    /// Requests take longer because they queue.
    Queueing,
}

/// Throughput and latency of a load.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct LoadPoint {
    /// The load.
    pub level: LoadLevel,
    /// Successful responses per second, from 0.
    pub rate: f64,
    /// Mean time of a request, nanoseconds: with arrivals from its actual send, else from its intended send.
    pub request_ns: f64,
}

impl LoadPoint {
    /// Requests in progress at any time, by Little's law: throughput × time of a request.
    pub fn in_flight(&self) -> f64 {
        self.rate * self.request_ns / 1e9
    }
}

/// The largest consumers of a machine's CPU, the largest first; empty when they were not sampled.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CpuConsumers(pub Vec<CpuConsumer>);

/// CPU of the machine that one service or the load generator uses.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CpuConsumer {
    /// The service; `None` for the load generator.
    pub service: Option<String>,
    /// Cores in use by all its replicas, median.
    pub cores: f64,
}

impl CpuConsumer {
    /// Its name, for people.
    pub fn name(&self) -> &str {
        self.service.as_deref().unwrap_or("the load generator")
    }
}
