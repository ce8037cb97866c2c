//! Evidence of `database-saturation`.

use serde::{Deserialize, Serialize};

use super::cpu::{CpuLimit, Proof};
use super::load::LoadLevel;

/// A database without capacity left.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct DatabaseSaturation {
    /// Sign of it.
    pub sign: SaturationSign,
    /// Services that query it and have CPU to spare; empty when one of them has not, or was not sampled.
    pub idle_clients: Vec<ClientCpu>,
    /// The shape of query that most of its time goes to; `None` if its queries took no time.
    pub costliest: Option<CostliestShape>,
    /// A query that took especially long; `None` if no query was seen.
    pub query: Option<String>,
}

/// Sign that a database is saturated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum SaturationSign {
    /// Its CPU is used up.
    Cpu {
        /// Its CPU.
        cpu: FullCpu,
        /// Its queries under two loads; `None` if they are not slower, or something else makes them slower.
        slowed: Option<SlowedQueries>,
    },
    /// The same queries take longer under more load.
    Queries {
        /// Its queries under two loads.
        slowed: SlowedQueries,
        /// How busy its busiest replica is, as a share of the CPU that it may or can use; `None` if not sampled.
        cpu_share: Option<f64>,
        /// Whether its clients have a connection before the span of a query begins.
        is_connected_first: bool,
    },
}

impl Default for SaturationSign {
    fn default() -> Self {
        Self::Cpu { cpu: FullCpu::default(), slowed: None }
    }
}

/// A database at a CPU limit, in one interval of the load.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct FullCpu {
    /// The limit.
    pub limit: CpuLimit,
    /// Share of the limit in use, median, 0 to about 1; of several replicas the one closest to its limit.
    pub level: f64,
    /// Label of the interval.
    pub interval: String,
    /// Successful responses per second in it, from 0.
    pub rate: f64,
    /// Mean latency in it, from the intended send, nanoseconds.
    pub latency_ns: f64,
    /// Cost of requests; `None` if its CPU was not sampled or nothing was completed.
    pub demand: Option<CpuDemand>,
    /// Proof that more load was not carried; `None` without one.
    pub proof: Option<Proof>,
}

/// Cost of a request to a resource, by the utilisation law U = X · D (Denning and Buzen, *The Operational Analysis of
/// Queueing Network Models*, 1978).
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct CpuDemand {
    /// Cores in use by all replicas together, above 0.
    pub cores: f64,
    /// Successful responses per second, above 0.
    pub rate: f64,
    /// Cores that all replicas together can use.
    pub limit_cores: f64,
}

impl CpuDemand {
    /// CPU time for each request, nanoseconds.
    pub fn each_ns(&self) -> f64 {
        self.cores / self.rate * 1e9
    }

    /// The highest rate that the CPU allows, requests per second.
    pub fn rate_max(&self) -> f64 {
        self.limit_cores / self.cores * self.rate
    }
}

/// The queries of a database under the lightest and the heaviest load.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SlowedQueries {
    /// The lightest load.
    pub light: LoadLevel,
    /// The heaviest load.
    pub heavy: LoadLevel,
    /// How many times as long the queries take under the heaviest load.
    pub factor: f64,
    /// Whether spans show that as many rows are returned under both loads.
    pub has_rows: bool,
    /// The shapes of query with most time, most time first.
    pub shapes: Vec<SlowedShape>,
}

/// A shape of query under two loads.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SlowedShape {
    /// Its text, with placeholders.
    pub shape: String,
    /// Median duration under the lightest load, nanoseconds.
    pub light_median_ns: f64,
    /// Median duration under the heaviest load, nanoseconds.
    pub heavy_median_ns: f64,
    /// Median rows returned under the heaviest load; `None` where spans do not show it.
    pub rows: Option<f64>,
}

/// How busy a client of a database is.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ClientCpu {
    /// The service.
    pub service: String,
    /// Share of the CPU that its busiest replica may or can use, 0 to about 1.
    pub cpu_share: f64,
}

/// The shape of query that most of a database's time goes to.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CostliestShape {
    /// Its text, with placeholders.
    pub shape: String,
    /// Share of the time of all queries, 0 to 1.
    pub time_share: f64,
}
