//! Evidence of `thread-pool`.

use serde::{Deserialize, Serialize};

use super::cpu::Proof;
use super::load::LoadLevel;

/// A pool of threads that all work while requests wait for one, in one interval of the load. Of several pools and
/// replicas the one with most of them is meant.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ThreadPool {
    /// Owner of the pool.
    pub runtime: PoolRuntime,
    /// The pool's own name; `None` if it has none.
    pub pool: Option<String>,
    /// The metric that shows that requests wait, as the service reports it.
    pub metric: String,
    /// Replicas whose pool is full as well.
    pub hot_replicas: usize,
    /// Replicas of the service.
    pub replicas: usize,
    /// Label of the interval.
    pub interval: String,
    /// The load in it.
    pub load: LoadLevel,
    /// Readings of the pool in it.
    pub readings: usize,
    /// Requests of the load under way at any time, from 0.
    pub under_way: f64,
    /// Threads that work, median; `None` if it is not reported.
    pub busy: Option<f64>,
    /// Threads that there are, or may be, median; `None` if it is not reported.
    pub size: Option<f64>,
    /// Requests that wait for a thread, median.
    pub waiting: f64,
    /// Whether the pool reports these; otherwise they are the requests under way beyond its threads.
    pub is_reported: bool,
    /// Share of the CPU that the busiest replica may or can use, 0 to about 1; `None` if it was not sampled.
    pub cpu_share: Option<f64>,
    /// Proof that more load was not carried; `None` without one.
    pub proof: Option<Proof>,
}

/// Owner of a pool of threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PoolRuntime {
    /// Apache Tomcat.
    #[default]
    Tomcat,
    /// Eclipse Jetty.
    Jetty,
    /// An executor of a JVM.
    Executor,
    /// The thread pool of .NET.
    DotNet,
    /// Puma.
    Puma,
    /// Threads of a program that reports none of its pools, as they were sampled.
    Sampled,
}
